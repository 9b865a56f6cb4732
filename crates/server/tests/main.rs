//! The integration tests of this crate, in one binary: linking many takes longer than running most
//! of the tests.

mod access;
mod application_sets;
mod applications;
mod audit;
mod auth;
mod catalog;
mod certificates;
mod clusters;
mod common;
mod concealed;
mod connections;
mod description;
mod dex;
mod gpgkeys;
mod health;
mod kubeapps;
mod matrix;
mod notifications;
mod own_page;
mod paths;
mod permissions;
mod policy;
mod remote;
mod requests;
mod secrets;
mod sessions;
mod sso;
mod sso_reports;
mod sso_sign_out;
mod templates;
mod terminal;
mod traces;
mod webhook;
mod webhook_sets;

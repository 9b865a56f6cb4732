//! The API server: gRPC, gRPC-web, REST, streams and the web UI's assets on one port, for Argo CD's
//! clients.
//!
//! Main types: [`Server`], and [`Deps`] (its dependencies, as the traits of [`ports`]). The table
//! of calls is [`table::table`], and `tiphys_rpc` serves it. The server reads and writes records in
//! Kubernetes and reads the state published by the controller; it never imports controllers, and
//! never decides what to apply.

pub mod access;
pub mod adapters;
pub mod assets;
pub mod audit;
pub mod auth;
mod clients;
mod cookies;
mod dex;
mod extension_settings;
mod index;
mod logout;
pub mod metrics;
mod options;
mod pages;
mod parameters;
mod policy;
pub mod ports;
mod referred;
mod role;
mod server;
mod services;
pub mod sessions;
pub mod settings;
mod shown;
mod sign_in;
pub mod sso;
mod state;
pub mod table;
mod told;
mod webhook;

pub use assets::Assets;
pub use options::{Options, VersionInfo};
pub use server::{Deps, Server};
pub use sso::DexTls;
pub use state::State;
pub use tiphys_rpc::{ApiError, Code, Network, Tls};

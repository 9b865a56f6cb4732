//! The API process: gRPC, gRPC-web, REST, streams and the page's assets on one port, for Argo CD's
//! clients.
//!
//! Main types: [`Server`] (what serves), [`Deps`] (what it needs, as the traits of [`ports`]); the
//! table of calls is [`table::table`], and `tiphys_rpc` serves it. It reads and writes records in Kubernetes and reads what the
//! controller publishes; it never imports controllers, and never decides what to apply.

pub mod access;
pub mod adapters;
pub mod assets;
pub mod auth;
mod index;
pub mod metrics;
pub mod ports;
mod role;
mod server;
mod services;
pub mod settings;
pub mod table;
mod webhook;

pub use assets::Assets;
pub use server::{Deps, Options, Server, State, VersionInfo};
pub use tiphys_rpc::{ApiError, Code, Network, Tls};

//! The repo-server: it resolves revisions and renders sources for controllers and API servers, Argo
//! CD's or ours, which ask it over gRPC (`repository.RepoServerService`).
//!
//! Main types: [`Server`] and [`ServerOptions`]; [`Server::of_commits`] is the commit server, which
//! pushes what controllers have had rendered. It keeps nothing but caches, so any number of them
//! can run. All that it knows of an installation is in the requests and in a few mounted files
//! ([`TrustPaths`]): it must not know clusters or the Kubernetes API.

mod access;
mod changes;
mod commits;
mod details;
mod errors;
mod files;
mod integrity;
mod manifests;
mod metrics;
mod revisions;
mod server;
mod shared;
mod sharing;
mod streamed;
mod trust;
mod written;

pub use metrics::GitMetrics;
pub use server::{Server, ServerOptions, StreamLimits};
pub use shared::{Shared, SharedCache};
pub use trust::TrustPaths;

//! A Kubernetes-compatible API server as a library: objects in memory or in a folder, served to kubectl and client libraries.
//!
//! Main type: `EmbeddedKube`. There are no containers: [`sim`] plays the controllers and kubelets. It knows nothing of Argo CD.

pub mod catalog;
pub mod registry;
pub mod sim;
pub mod status;
pub mod store;
mod strategy;

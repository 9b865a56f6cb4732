//! Reconcile loops: they watch the desired and the live state, and let the engine decide what to do
//! about the difference.
//!
//! Main type: [`application::Controller`]; [`applicationset`] generates Applications. It must not know the API server; both communicate
//! through the Kubernetes API and `cluster::app_state`. Decisions that need no I/O are functions in
//! separate files (`refresh`, `auto_sync`, `spec`, `status`, `sharding`).

pub mod application;
pub mod applicationset;
pub mod metrics;
pub mod redis;
pub mod runtime;
pub mod sharding;

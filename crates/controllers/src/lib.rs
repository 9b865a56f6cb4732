//! Reconcile loops: they watch what is wanted and what is, and let the engine decide what to do
//! about the difference.
//!
//! Main type: [`application::Controller`]. It must not know the API server: they meet in the
//! Kubernetes API and in `cluster::app_state`. Decisions that need no IO are functions in files of
//! their own (`refresh`, `auto_sync`, `spec`, `status`, `sharding`).

pub mod application;
pub mod metrics;
pub mod redis;
pub mod runtime;
pub mod sharding;

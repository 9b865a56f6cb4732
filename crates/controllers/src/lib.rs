//! Reconcile loops: they watch the desired and the live state, and let the engine decide what to do
//! about the difference.
//!
//! Main types: [`application::Controller`], those of [`apprepository`], and the loops of
//! [`applicationset`], [`hydrator`] and [`notifications`]. They must not know the API server; all communicate
//! through the Kubernetes API and `cluster::app_state`. Decisions that need no I/O are functions in
//! separate files (`refresh`, `auto_sync`, `spec`, `status`, `sharding`).

// A reconcile waits in futures within futures, down to those of git and HTTP libraries: whether they
// are Send takes more steps to see than the compiler's 128.
#![recursion_limit = "256"]

pub mod application;
pub mod applicationset;
pub mod apprepository;
pub mod hydrator;
pub mod metrics;
pub mod notifications;
pub mod redis;
pub mod runtime;
pub mod sharding;

//! The controllers that create pods.
//!
//! Each file has one pure function `reconcile`, from an object, the objects it owns and the time to
//! a [`Plan`](super::plan::Plan).

pub mod claim;
pub mod cronjob;
pub mod daemonset;
pub mod deployment;
pub mod job;
pub mod pods;
pub mod replicaset;
pub mod revision;
pub mod statefulset;

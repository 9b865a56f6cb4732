//! The integration tests of this crate, in one program: linking many takes longer than most tests
//! run.

mod catalogues;
mod chart_repositories;
mod chart_restarts;
mod charts;
mod exhausting;
mod hostile;
mod hydrated;
mod lfs;
mod links;
mod local;
mod obtained;
mod oci;
mod oci_kept;
mod oci_limits;
mod oci_registry;
mod patience;
mod plugins;
mod proposed;
mod remote;
mod repo_server;
mod reports;
mod restarts;
mod signatures;
mod ssh;
mod submodules;

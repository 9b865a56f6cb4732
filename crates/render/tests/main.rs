//! The integration tests of this crate, in one program: linking many takes longer than most tests
//! run.

mod directory;
mod helm_charts;
mod helm_forms;
mod helm_hostile;
mod helm_kube_version;
mod helm_renders;
mod helm_source;
mod jsonnet;
mod kustomize;
mod kustomize_app;
mod kustomize_details;
mod kustomize_facts;
mod kustomize_time;

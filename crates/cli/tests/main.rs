//! The integration tests of this crate, in one program: linking many takes longer than most tests
//! run.

mod catalog_alone;
mod catalog_kill;
mod client;
mod completion;
mod helm;
#[cfg(target_os = "linux")]
mod hints;
mod idle_streams;
mod isolation;
mod kill;
mod kubectl;
mod kustomize;
mod kustomize_remote;
mod live_objects;
mod misuse;
mod notifications;
mod password_prompt;
mod plugins;
mod rbac;
mod repo_server;
mod repo_server_peer;
mod reports;
mod scenarios;
mod sso;
mod standard_output;
mod transcript;
mod verb_plugins;
mod watch;

//! The roles of the program, which run until they are stopped.

pub mod apprepository_controller;
pub mod argocd;
pub mod asset_syncer;
pub mod audit;
pub mod catalog;
pub mod cmp_server;
pub mod commit_server;
mod connections;
pub mod control_plane;
pub mod controller;
pub mod git;
mod git_service;
pub mod logs;
mod metrics;
mod page;
mod plugins;
pub mod redis;
mod replicas;
mod repo_server;
pub mod repo_server_role;
mod repositories;
pub mod server;
mod source_limits;
mod tls;
mod traces;
pub mod up;
pub mod wire;

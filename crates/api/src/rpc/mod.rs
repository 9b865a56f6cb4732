//! Request and response messages of the API, one module per service. The names on the wire are Argo
//! CD's.

pub mod account;
pub mod application;
pub mod application_set;
pub mod catalog;
pub mod certificate;
pub mod cluster;
pub mod commit;
pub mod events;
pub mod gpgkey;
pub mod kubeapps;
pub mod notification;
pub mod plugin;
pub mod project;
pub mod repo_server;
pub mod repocreds;
pub mod repository;
pub mod session;
pub mod settings;
pub mod version;

//! The implementations of the calls, one module per service. Handlers take the shared state, the
//! caller and the request message.

pub mod account;
pub mod application;
pub mod application_set;
pub mod catalog;
pub mod certificate;
pub mod cluster;
pub mod gpgkey;
pub mod kubeapps;
pub mod links;
pub mod notification;
pub mod project;
pub mod project_tokens;
pub mod repocreds;
pub mod repository;
pub mod session;
pub mod settings;
pub mod version;

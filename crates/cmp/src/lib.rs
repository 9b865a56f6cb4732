//! The server of one plugin: it receives the files of a source over a unix socket and answers with
//! what the commands of a `plugin.yaml` make of them, for Argo CD's repo-server or ours.
//!
//! Main types: [`Config`], a `plugin.yaml`, and [`Server`], which offers
//! `plugin.ConfigManagementPluginService`. The commands are the plugin's author's and run as this
//! process does: that is what a plugin is. The files are somebody else's: nothing of them is written
//! outside of a folder for each call. It must not know Applications, repositories or clusters.

mod config;
mod discover;
mod output;
mod receive;
mod run;
mod service;
mod unpack;

pub use config::{Command, Config, ConfigError, Discover, Find, Parameters, Spec};
pub use receive::ReceiveLimits;
pub use service::{Server, ServerOptions};

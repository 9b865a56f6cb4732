//! Notifications about Applications: which are due, what they say, and what is sent.
//!
//! Main types: [`Config`] (argocd-notifications-cm and its Secret), [`Subject`] (an Application and
//! what is known about it), [`Ledger`] (what was sent already) and [`Notification`]; main
//! functions: [`destinations`], [`evaluate`] and [`send::send`]. Pure: requests go through a
//! [`send::Transport`], and time and randomness are arguments. It knows no API server.

pub mod catalog;
mod config;
mod destinations;
mod evaluate;
mod ledger;
mod notification;
pub mod send;
mod subject;
mod template;
mod triggers;
mod typed;
mod urls;

pub use config::{Config, ConfigSource, GlobalSubscription, Problem, Service};
pub use destinations::{Destination, Destinations, destinations};
pub use evaluate::{Delivery, Event, Outcome, evaluate, is_outdated};
pub use ledger::{Ledger, NOTIFIED};
pub use notification::{Notification, Template};
pub use subject::{CommitMetadata, Lookup, Subject, Unavailable};
pub use triggers::{Condition, ConditionResult, Trigger};
pub use typed::TypeError;

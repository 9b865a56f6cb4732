//! What policies decide, in Argo CD's vocabulary, and who decides it.
//!
//! - A row of the call table names the permissions it needs ([`Access`], [`Ask`]): a [`Resource`]
//!   and an [`Action`].
//! - The [`Enforcer`] answers each [`Question`]. [`PolicyEnforcer`] does so by argocd-rbac-cm and the
//!   projects' roles. The error messages for refused callers are all in the trait's module.

mod action;
mod enforcer;
mod installed;

pub use action::{Access, Action, Ask, Resource};
pub use enforcer::{AdminOnly, Enforcer, Everybody, ObjectSelection, Question};
pub use installed::PolicyEnforcer;

pub(crate) use action::{
    Create, Delete, DeleteResource, Get, OpenShell, Override, ReadLogs, Rollback, RunAction, Sync,
    Update, UpdateResource, Verb, Writes,
};
pub(crate) use enforcer::refusal;

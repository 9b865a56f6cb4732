//! Argo CD's RBAC: who may do what, decided as casbin decides it. Pure.
//!
//! Main types: [`Policy`], one loaded policy; [`Settings`], what argocd-rbac-cm says; [`Rbac`],
//! both with the projects' roles; [`Selection`], one question about many objects.
//!
//! Where Argo CD stops answering (a policy that cannot be loaded), everything is refused.

mod builtin;
mod check;
mod claims;
mod lines;
mod policy;
mod project;
mod question;
mod selection;
mod settings;

pub use check::{Finding, Problem, check};
pub use claims::{Projects, Rbac, groups, user_id};
pub use lines::PolicyFault;
pub use policy::{MatchMode, Policy, Request};
pub use project::{app_name, normalize_tokens, policies, role_fault, tokens};
pub use question::{is_unbound_group, resolve};
pub use selection::Selection;
pub use settings::{Settings, SettingsFault, place, policy_text};

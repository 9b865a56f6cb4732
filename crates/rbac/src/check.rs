//! Looks for faults in a policy before it is used.

use crate::policy::{MatchMode, Policy};

/// What is odd about a policy that can be loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Roles with members and without permissions, in the order of their lines.
    pub roles_without_permissions: Vec<String>,
}

/// Checks a policy by itself, without the built-in roles.
///
/// # Errors
/// A line cannot be read.
pub fn check(policy: &str) -> Result<Findings, crate::PolicyFault> {
    let policy = Policy::load(false, &[policy], MatchMode::Glob)?;
    let roles = policy.roles_without_permissions();
    Ok(Findings {
        roles_without_permissions: roles.into_iter().map(str::to_owned).collect(),
    })
}

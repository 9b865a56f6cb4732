//! The health of a live object, computed from that object alone.
//!
//! Main function: [`of`]. A kind has a file under `kinds/` or, as most custom kinds, a few lines in
//! `rules/data/`. Other kinds have no health, which is different from being healthy. This module
//! must not know of Applications or Git; [`aggregate`] computes the worst health of many resources.

pub mod aggregate;
mod kinds;
mod rules;
mod view;

use crate::{
    customize::Customizations,
    error::EngineError,
    marks,
    spending::Spending,
    types::{Health, HealthStatus},
};
use tiphys_apimachinery::Object;

/// The health of a live object; `None` for kinds without health. An object that cannot be read is
/// `Unknown`, with the reason.
pub fn of(live: &Object) -> Option<Health> {
    assess(live).unwrap_or_else(|error| Some(Health::new(HealthStatus::Unknown, error.why())))
}

/// Like [`of`]; users' scripts take precedence over the built-in rules.
pub fn of_with(live: &Object, customizations: &Customizations) -> Option<Health> {
    assess_with(live, customizations)
        .unwrap_or_else(|error| Some(Health::new(HealthStatus::Unknown, error.why())))
}

/// Like [`assess`]; users' scripts take precedence over the built-in rules.
pub fn assess_with(
    live: &Object,
    customizations: &Customizations,
) -> Result<Option<Health>, EngineError> {
    assess_within(live, customizations, None)
}

/// What a sync knows about the health of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assessed {
    /// Its kind has none: it is complete as soon as it exists.
    Without,
    /// A script returned none, of a user or of those that come with Argo CD: it is waited for until
    /// the script returns some.
    Silent,
    Known(Health),
}

impl Assessed {
    /// The health, if there is any.
    pub fn known(self) -> Option<Health> {
        match self {
            Self::Known(health) => Some(health),
            Self::Without | Self::Silent => None,
        }
    }
}

impl From<Option<Health>> for Assessed {
    fn from(health: Option<Health>) -> Self {
        health.map_or(Self::Without, Self::Known)
    }
}

/// Like [`assess_with`], for a sync.
pub fn assess_for_sync(
    live: &Object,
    customizations: &Customizations,
) -> Result<Assessed, EngineError> {
    // What Argo CD judges by scripts is written as rules here.
    let has_script =
        || customizations.judges_health(live) || rules::knows(live.group(), live.kind());
    Ok(match assess_with(live, customizations)? {
        None if has_script() => Assessed::Silent,
        health => health.into(),
    })
}

/// Like [`assess_with`], with a budget shared by users' programs.
pub fn assess_within(
    live: &Object,
    customizations: &Customizations,
    spending: Option<&Spending>,
) -> Result<Option<Health>, EngineError> {
    match customizations.judges_health(live) && !is_leaving(live) {
        true => customizations
            .health(live, spending)
            .transpose()
            .map(Option::flatten)
            .map_err(|e| EngineError::HealthScript {
                namespace: live.namespace().to_owned(),
                name: live.name().to_owned(),
                why: e.to_string(),
            }),
        false => assess(live),
    }
}

/// Like [`of`], but an object that cannot be read is an error.
pub fn assess(live: &Object) -> Result<Option<Health>, EngineError> {
    if is_leaving(live) {
        return Ok(Some(Health::new(
            HealthStatus::Progressing,
            "Pending deletion",
        )));
    }
    of_kind(live)
}

fn is_leaving(live: &Object) -> bool {
    live.deletion_timestamp().is_some() && !marks::has_hook_finalizer(live)
}

/// Like [`assess`], but ignores a pending deletion: only the rules of the kind.
pub fn of_kind(live: &Object) -> Result<Option<Health>, EngineError> {
    match kinds::check_for(live.group(), live.kind()) {
        Some(check) => check(live).map(Some),
        None => Ok(rules::judge(live).flatten()),
    }
}

/// Whether objects of this kind have health at all.
pub fn is_assessed(group: &str, kind: &str) -> bool {
    kinds::check_for(group, kind).is_some() || rules::knows(group, kind)
}

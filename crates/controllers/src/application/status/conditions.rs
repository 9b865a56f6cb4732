//! Conditions of an Application: which step of a reconcile sets which, and since when they hold.
//! Main function: [`set_conditions`].

use jiff::Timestamp;
use std::collections::BTreeSet;
use tiphys_api::status::{ApplicationCondition, ApplicationStatus};
use tiphys_engine::types::{Condition, ConditionType};

/// The condition types that a comparison sets; others stay.
pub const BY_COMPARISON: [ConditionType; 5] = [
    ConditionType::ComparisonError,
    // For resources that lack a namespace which the spec does not provide either.
    ConditionType::InvalidSpecError,
    ConditionType::SharedResourceWarning,
    ConditionType::RepeatedResourceWarning,
    ConditionType::ExcludedResourceWarning,
];

/// The condition types that the validation of the spec sets.
pub const BY_SPEC: [ConditionType; 2] =
    [ConditionType::InvalidSpecError, ConditionType::UnknownError];

/// Replaces the conditions of the `decided` types; an unchanged one keeps its time.
pub fn set_conditions(
    status: &mut ApplicationStatus,
    found: &[Condition],
    decided: &[ConditionType],
    now: Timestamp,
) {
    let before = std::mem::take(&mut status.conditions);
    let mut after: Vec<_> = before
        .iter()
        .filter(|c| !decided.iter().any(|d| d.as_str() == c.type_))
        .cloned()
        .collect();
    for condition in found.iter().filter(|c| decided.contains(&c.kind)) {
        let kind = condition.kind.as_str();
        let known = before
            .iter()
            .find(|c| c.type_ == kind && c.message == condition.message);
        let time = known
            .and_then(|c| c.last_transition_time)
            .or_else(|| Some(now.into()));
        let new = ApplicationCondition {
            type_: kind.to_owned(),
            message: condition.message.clone(),
            last_transition_time: time,
        };
        if !after.contains(&new) {
            after.push(new);
        }
    }
    after.sort_by(|a, b| (&a.type_, &a.message).cmp(&(&b.type_, &b.message)));
    status.conditions = after;
}

/// The errors among the conditions, as an operation reports them: `<Type>: <message>;…`, in the
/// order of a status.
pub fn error_text(conditions: &[Condition]) -> Option<String> {
    let stops = |c: &&Condition| {
        matches!(
            c.kind,
            ConditionType::ComparisonError
                | ConditionType::InvalidSpecError
                | ConditionType::UnknownError
        )
    };
    let errors: BTreeSet<_> = conditions
        .iter()
        .filter(stops)
        .map(|c| (c.kind.as_str(), c.message.as_str()))
        .collect();
    let texts: Vec<_> = errors
        .into_iter()
        .map(|(kind, message)| format!("{kind}: {message}"))
        .collect();
    (!texts.is_empty()).then(|| texts.join(";"))
}

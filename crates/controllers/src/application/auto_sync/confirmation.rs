//! Pruning much needs a confirmation. Main functions: [`confirmation`] and [`may_prune_much`].

use super::{
    super::{requested, rollback},
    AutoSyncInput,
};
use tiphys_api::{
    Application, constants,
    operation::{Info, Operation},
};
use tiphys_engine::sync::{large_prune::LargePrune, request::deletion_confirmed};

/// The operation's info for an approved large prune.
const CONFIRMED: &str = "Pruning confirmed";

/// The info for the operation if pruning everything, or much, is confirmed; the error says why it
/// is not permitted.
pub(super) fn confirmation(
    app: &Application,
    compared: &AutoSyncInput<'_>,
    unconfirmed: Option<String>,
    prune: bool,
    allow_empty: bool,
) -> Result<Vec<Info>, String> {
    let info = |by: &str| {
        let large = compared.large_prune;
        large
            .map(|large| confirmed(&large, by))
            .into_iter()
            .collect()
    };
    if prune && compared.resources.iter().all(|r| r.requires_pruning) {
        if allow_empty {
            return Ok(info("allowEmpty"));
        }
        let shown = requested::shown(compared.revision, compared.revisions);
        return Err(format!(
            "Skipping sync attempt to [{shown}]: auto-sync will wipe out all resources"
        ));
    }
    match unconfirmed {
        None => Ok(Vec::new()),
        Some(text) => match approval(app, &text) {
            Some(time) => Ok(info(time)),
            None => Err(text),
        },
    }
}

/// Why an automatic sync does not prune this much. Tiphys's own; Argo CD prunes it.
pub fn unconfirmed(large: &LargePrune, revision: &str) -> String {
    let LargePrune { prunes, live } = large;
    let approval = constants::DELETION_APPROVED;
    format!(
        "Skipping sync attempt to [{revision}]: auto-sync would prune {prunes} of {live} resources; sync with prune, or confirm it by {approval}"
    )
}

/// Whether a message is an [`unconfirmed`]. Its numbers are of that moment: a process that has just
/// started may have listed a part only.
pub(super) fn is_unconfirmed(message: &str) -> bool {
    let after = message.strip_prefix("Skipping sync attempt to [");
    after.is_some_and(|rest| rest.contains("]: auto-sync would prune "))
}

/// Whether an operation may prune without limit: a user requested it, or confirmed it.
pub fn may_prune_much(operation: &Operation) -> bool {
    !operation.initiated_by.automated
        || operation.info.iter().any(|i| i.name == CONFIRMED)
        || rollback::origin(operation).is_some()
}

/// The approval of the reported problem, if it came after the report.
fn approval<'a>(app: &'a Application, told: &str) -> Option<&'a str> {
    let since = app
        .status
        .conditions
        .iter()
        .find(|c| c.message == told)?
        .last_transition_time?
        .timestamp();
    let approved = app.metadata.annotations.get(constants::DELETION_APPROVED)?;
    deletion_confirmed(Some(approved), since).then_some(approved)
}

/// It stays with the operation, because a retry may sync another revision.
fn confirmed(large: &LargePrune, by: &str) -> Info {
    Info {
        name: CONFIRMED.into(),
        value: format!("{} of {} resources, {by}", large.prunes, large.live),
    }
}

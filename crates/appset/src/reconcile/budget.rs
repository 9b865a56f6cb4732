//! Holds deletions that are more likely a mistake in a generator than intended, until they are
//! confirmed.
//!
//! Main types: [`DeleteLimit`] and [`Held`]. An approval must come after the condition that told
//! what would be deleted, and counts for nothing else.

use super::{Change, Settings};
use crate::condition::ERROR;
use std::collections::BTreeSet;
use thiserror::Error;
use tiphys_api::Application;
use tiphys_api::application_set::ApplicationSet;
use tiphys_api::constants::{DELETE_LIMIT, DELETION_APPROVED};
use tiphys_engine::sync::request::deletion_confirmed;

/// The most names in a message.
const NAMED: usize = 10;

/// How many Applications a set deletes without asking: deletions are held if they are more than
/// `count` *and* more than `percent` of the set's Applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteLimit {
    pub count: usize,
    /// 100: everything may be deleted.
    pub percent: usize,
}

impl Default for DeleteLimit {
    /// As for the resources that an automated sync prunes.
    fn default() -> Self {
        Self {
            count: 10,
            percent: 50,
        }
    }
}

/// A text that is no limit.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{0:?} is no limit of deletions: it must be a number of Applications, a percentage or both, \
     such as \"10,50%\", or 0 for no limit"
)]
pub struct LimitError(String);

impl DeleteLimit {
    /// `10`, `50%` or `10,50%`; what is not said is the default. `0`: no limit.
    ///
    /// # Errors
    /// If it is none of these.
    pub fn parse(text: &str) -> Result<Self, LimitError> {
        let error = || LimitError(text.to_owned());
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| error());
        let percent = |text: &str| {
            let percent = number(text.trim().strip_suffix('%').ok_or_else(error)?)?;
            (percent <= 100).then_some(percent).ok_or_else(error)
        };
        let default = Self::default();
        Ok(match text.split_once(',') {
            Some((count, share)) => Self {
                count: number(count)?,
                percent: percent(share)?,
            },
            None if text.contains('%') => Self {
                percent: percent(text)?,
                ..default
            },
            None => match number(text)? {
                0 => Self {
                    count: 0,
                    percent: 100,
                },
                count => Self { count, ..default },
            },
        })
    }

    /// The set's own limit, or that of the settings.
    fn of(set: &ApplicationSet, settings: &Settings) -> Result<Self, LimitError> {
        match set.metadata.annotations.get(DELETE_LIMIT) {
            Some(text) => Self::parse(text),
            None => Ok(settings.delete_limit),
        }
    }

    fn is_exceeded(self, deletes: usize, live: usize) -> bool {
        deletes > self.count && deletes * 100 > live * self.percent
    }
}

/// Deletions that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The Applications that would be deleted.
    pub names: Vec<String>,
    /// The Applications that would take their place, which wait with them: two Applications with
    /// the same resources take them from each other.
    pub replacements: Vec<String>,
    /// What the condition says.
    pub message: String,
}

/// The deletions that wait, if they are too many and not confirmed. `owned` are the set's
/// Applications.
pub(super) fn held(
    set: &ApplicationSet,
    deletes: &[Change],
    writes: &[Change],
    owned: &[&Application],
    settings: &Settings,
) -> Option<Held> {
    let names: BTreeSet<&str> = deletes.iter().map(Change::name).collect();
    let stays = |app: &&&Application| app.metadata.deletion_timestamp.is_none();
    let live = owned.iter().filter(stays).count();
    let going: Vec<&Application> = owned
        .iter()
        .filter(stays)
        .filter(|app| names.contains(app.metadata.name.as_str()))
        .copied()
        .collect();
    let limit = match DeleteLimit::of(set, settings) {
        Ok(limit) if limit.is_exceeded(going.len(), live) => Ok(()),
        Ok(_) => return None,
        Err(_) if going.is_empty() => return None,
        Err(error) => Err(error),
    };
    let names: Vec<String> = going.iter().map(|app| app.metadata.name.clone()).collect();
    let replacements = writes.iter().filter_map(|write| match write {
        Change::Create(app) => going
            .iter()
            .any(|old| takes_place(app, old))
            .then(|| app.metadata.name.clone()),
        _ => None,
    });
    let replacements: Vec<String> = replacements.collect();
    let message = match &limit {
        Ok(()) => message(&names, &replacements, live),
        Err(error) => format!("annotation {DELETE_LIMIT}: {error}; nothing is deleted"),
    };
    let is_approved = limit.is_ok() && is_approved(set, &message);
    (!is_approved).then_some(Held {
        names,
        replacements,
        message,
    })
}

/// Whether both deploy the same to the same place.
fn takes_place(new: &Application, old: &Application) -> bool {
    let (new, old) = (&new.spec, &old.spec);
    new.destination == old.destination && new.source == old.source && new.sources == old.sources
}

fn message(names: &[String], replacements: &[String], live: usize) -> String {
    let mut text = format!(
        "Skipping deletion of Applications: the set would delete {} of {live} ({})",
        names.len(),
        listed(names)
    );
    if !replacements.is_empty() {
        text += &format!(
            " and create {} in their place ({})",
            replacements.len(),
            listed(replacements)
        );
    }
    text + &format!("; confirm it by {DELETION_APPROVED}")
}

/// The first names, and how many more there are, with a mark that differs if these differ.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str);
    let shown: Vec<&str> = shown.collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!(
            "{} and {more} more, list {:08x}",
            shown.join(", "),
            fnv(&names[NAMED..])
        ),
    }
}

/// FNV-1a over the names, each ended by a byte that no name has.
fn fnv(names: &[String]) -> u32 {
    let bytes = names.iter().flat_map(|name| name.bytes().chain([0]));
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Whether this very message was told, and approved afterwards.
fn is_approved(set: &ApplicationSet, message: &str) -> bool {
    let told = set
        .status
        .conditions
        .iter()
        .find(|c| c.type_ == ERROR && c.status == "True" && c.message.ends_with(message));
    let Some(since) = told.and_then(|c| c.last_transition_time) else {
        return false;
    };
    let approved = set.metadata.annotations.get(DELETION_APPROVED);
    deletion_confirmed(approved.map(String::as_str), since.timestamp())
}

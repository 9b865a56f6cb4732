//! Prevents the same automatic sync, of the same revision and parameters, from being started
//! repeatedly without a delay, whatever triggers it.
//!
//! Main type: [`Repeats`]. Pure. Otherwise past attempts are judged by the last operation in the
//! status. This considers only what was started, so it still works if the status is lost, changed
//! by others, or cannot tell what was synced. It is not kept across a restart.

use super::{auto_sync::Backoff, requested, rollback};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use tiphys_api::operation::Operation;

/// The recent automatic syncs of one revision with the same parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeats {
    what: String,
    starts: i64,
    last: Timestamp,
}

impl Repeats {
    /// How long this operation must wait, with the message for the `SyncError` condition. `None`:
    /// it may start.
    pub fn pause(
        before: Option<&Self>,
        operation: &Operation,
        backoff: Backoff,
        now: Timestamp,
    ) -> Option<(Duration, String)> {
        let (what, shown) = what(operation)?;
        let before = before.filter(|before| before.what == what)?;
        let left = backoff.before(before.starts - 1) - now.duration_since(before.last);
        let told = format!(
            "The automated sync to [{shown}] was started {} times with the same parameters, and the Application is still OutOfSync. It pauses longer each time; a new revision or other parameters start over",
            before.starts
        );
        (left > SignedDuration::ZERO).then(|| (left.try_into().unwrap_or_default(), told))
    }

    /// The new value after this operation starts.
    pub fn after(
        before: Option<Self>,
        operation: &Operation,
        backoff: Backoff,
        now: Timestamp,
    ) -> Option<Self> {
        let Some((what, _)) = what(operation) else {
            return before;
        };
        // A sync that is repeated only after such a long time is not a loop.
        let recent = |before: &Self| {
            before.what == what && now.duration_since(before.last) <= backoff.cap * 2
        };
        let starts = before.filter(recent).map_or(0, |before| before.starts) + 1;
        Some(Self {
            what,
            starts,
            last: now,
        })
    }
}

/// The parameters of the sync, and its revision for display. Self-heals are ignored, because they
/// count their attempts themselves.
fn what(operation: &Operation) -> Option<(String, String)> {
    let sync = operation
        .sync
        .as_ref()
        .filter(|sync| sync.auto_heal_attempts_count == 0)?;
    let shown = requested::shown(&sync.revision, &sync.revisions);
    let source = sync.source.clone().unwrap_or_default();
    Some((
        format!("{shown} {}", rollback::fingerprint(&source, &sync.sources)),
        shown,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn operation(sync: &Value) -> Operation {
        serde_json::from_value(json!({"sync": sync})).expect("an operation")
    }

    /// When an operation that is always due starts within this many seconds.
    fn starts(
        memory: &mut Option<Repeats>,
        operation: &Operation,
        from: i64,
        until: i64,
    ) -> Vec<i64> {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).expect("a time");
        let mut starts = Vec::new();
        for second in from..until {
            if Repeats::pause(memory.as_ref(), operation, Backoff::default(), at(second)).is_none()
            {
                *memory = Repeats::after(memory.take(), operation, Backoff::default(), at(second));
                starts.push(second - from);
            }
        }
        starts
    }

    #[test]
    fn the_same_sync_pauses_longer_each_time_and_another_one_starts_over() {
        let with_null = json!({"revision": "a", "source": {"repoURL": "r", "helm": {"valuesObject": {"x": null}}}});
        let without =
            json!({"revision": "a", "source": {"repoURL": "r", "helm": {"valuesObject": {}}}});
        let other_revision = json!({"revision": "b", "source": {"repoURL": "r"}});
        let several =
            json!({"revisions": ["a", "b"], "sources": [{"repoURL": "r"}, {"repoURL": "s"}]});
        let mut memory = None;
        for sync in [&with_null, &without, &other_revision, &several] {
            assert_eq!(
                starts(&mut memory, &operation(sync), 0, 1000),
                [0, 1, 3, 9, 27, 81, 243, 543, 843],
                "{sync}"
            );
        }
        let told = Repeats::pause(
            memory.as_ref(),
            &operation(&several),
            Backoff::default(),
            memory.as_ref().expect("known").last,
        );
        let (_, told) = told.expect("it pauses");
        assert!(
            told.starts_with(
                "The automated sync to [a b] was started 9 times with the same parameters"
            ),
            "{told}"
        );
    }

    #[test]
    fn what_comes_back_after_long_and_a_self_heal_do_not_pause() {
        let mut memory = None;
        let sync = operation(&json!({"revision": "a"}));
        assert_eq!(starts(&mut memory, &sync, 0, 30), [0, 1, 3, 9, 27]);
        let before = memory.clone();
        let heal = operation(&json!({"revision": "a", "autoHealAttemptsCount": 1}));
        assert_eq!(starts(&mut memory, &heal, 30, 33), [0, 1, 2]);
        assert_eq!(memory, before);
        assert_eq!(starts(&mut memory, &sync, 700, 704), [0, 1, 3]);
    }
}

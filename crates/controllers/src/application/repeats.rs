//! Prevents the same automatic sync, of the same revision and parameters, from being started
//! repeatedly without a delay, whatever triggers it.
//!
//! Main type: [`Repeats`]. Pure. Otherwise past attempts are judged by the last operation in the
//! status. This considers only what was started, so it still works if the status is lost, changed
//! by others, or cannot tell what was synced. For the next process the number of starts is in the
//! operation itself ([`Repeats::recorded`]).

use super::{auto_sync::Backoff, requested, rollback};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use tiphys_api::{
    Application,
    operation::{Info, Operation},
};

/// The operation's info for a repeated automatic sync: the number of starts, and what is synced.
const REPEATED: &str = "Automated sync repeated";

/// The most starts that are read from an operation; the pauses stop growing long before.
const MOST_STARTS: i64 = 1000;

/// The recent automatic syncs of one revision with the same parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeats {
    what: String,
    starts: i64,
    last: Timestamp,
}

impl Repeats {
    /// What the status says about the last automatic sync, for a process that did not start it.
    pub fn recorded(app: &Application) -> Option<Self> {
        let state = app.status.operation_state.as_ref()?;
        let operation = &state.operation;
        let last = state.started_at?.timestamp();
        let mut told = operation.info.iter().filter(|info| info.name == REPEATED);
        let counted = told.find_map(|info| {
            let (starts, what) = info.value.split_once(' ')?;
            // Anyone may write an operation.
            let starts = starts.parse::<i64>().ok().filter(|starts| *starts > 0)?;
            Some((starts.min(MOST_STARTS), what.to_owned()))
        });
        let (starts, what) = match counted {
            Some(counted) => counted,
            None => (1, what(operation)?.0),
        };
        operation
            .initiated_by
            .automated
            .then_some(Self { what, starts, last })
    }

    /// Records the number of starts in an operation that is about to be started again.
    pub fn record(&self, operation: &mut Operation) {
        let same = what(operation).is_some_and(|(what, _)| what == self.what);
        if same && self.starts > 1 {
            operation.info.push(Info {
                name: REPEATED.to_owned(),
                value: format!("{} {}", self.starts, self.what),
            });
        }
    }

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
        let starts = before.filter(recent).map_or(0, |before| before.starts);
        Some(Self {
            what,
            starts: starts.saturating_add(1),
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
    fn the_next_process_goes_on_counting() {
        let sync = operation(
            &json!({"revision": "a", "source": {"repoURL": "r", "helm": {"valuesObject": {"x": null}}}}),
        );
        let status = |operation: &Operation, automated: bool, at: Timestamp| -> Application {
            let mut operation = json!(operation);
            operation["initiatedBy"] = json!({"automated": automated});
            // What cannot be stored is lost, and is known nevertheless.
            operation["sync"]["source"] = json!({"repoURL": "r"});
            let state =
                json!({"phase": "Succeeded", "startedAt": at.to_string(), "operation": operation});
            serde_json::from_value(
                json!({"metadata": {"name": "a"}, "spec": {}, "status": {"operationState": state}}),
            )
            .expect("an Application")
        };
        let mut memory = None;
        assert_eq!(starts(&mut memory, &sync, 0, 30), [0, 1, 3, 9, 27]);
        let before = memory.clone().expect("known");
        let mut started = sync.clone();
        before.record(&mut started);
        let app = status(&started, true, before.last);
        assert_eq!(Repeats::recorded(&app), memory);
        let mut recorded = Repeats::recorded(&app);
        assert_eq!(starts(&mut recorded, &sync, 30, 90), [51]);
        // Anyone may write a number.
        let mut most = started.clone();
        for info in &mut most.info {
            info.value = info.value.replacen("5 ", &format!("{} ", i64::MAX), 1);
        }
        let most = Repeats::recorded(&status(&most, true, before.last)).expect("known");
        assert_eq!(most.starts, MOST_STARTS);
        let now = before.last;
        assert!(Repeats::pause(Some(&most), &sync, Backoff::default(), now).is_some());
        let next = Repeats::after(Some(most), &sync, Backoff::default(), now);
        assert_eq!(next.expect("known").starts, MOST_STARTS + 1);
        // A user's is none, and the first start needs no number.
        assert_eq!(
            Repeats::recorded(&status(&started, false, before.last)),
            None
        );
        let plain = operation(&json!({"revision": "a", "source": {"repoURL": "r"}}));
        let first = Repeats::after(None, &plain, Backoff::default(), before.last);
        let mut started = plain.clone();
        first.clone().expect("known").record(&mut started);
        assert_eq!(started, plain);
        assert_eq!(
            Repeats::recorded(&status(&started, true, before.last)),
            first
        );
        // Neither is another operation marked.
        let mut other = operation(&json!({"revision": "b"}));
        before.record(&mut other);
        assert!(other.info.is_empty());
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

//! The status of an AppRepository. Pure.
//!
//! Main type: [`Facts`], what is known about its syncs; main function: [`Facts::status`].

use jiff::Timestamp;
use tiphys_api::{
    app_repository::{AppRepositoryCondition, AppRepositoryProblem, AppRepositoryStatus},
    meta::Time,
};

/// How the last sync stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is known.
    #[default]
    Unknown,
    /// What the last attempt said, if it failed and another one is made.
    Running {
        failed: String,
    },
    Succeeded,
    /// A reason in one word, and the message.
    Failed {
        reason: &'static str,
        message: String,
    },
}

/// What the status says. `None` keeps what it said before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub generation: i64,
    pub resync_requests: i64,
    pub phase: Phase,
    pub charts: Option<i64>,
    pub versions: Option<i64>,
    pub skipped: Option<i64>,
    pub problems: Option<Vec<AppRepositoryProblem>>,
    pub succeeded_at: Option<Timestamp>,
    pub attempted_at: Option<Timestamp>,
    pub next_at: Option<Timestamp>,
}

impl Facts {
    /// The status, where nothing changes that is still true.
    pub fn status(&self, before: &AppRepositoryStatus, now: Timestamp) -> AppRepositoryStatus {
        let mut status = before.clone();
        if self.phase != Phase::Unknown {
            status.observed_generation = self.generation;
            status.observed_resync_requests = self.resync_requests;
        }
        status.charts = self.charts.or(status.charts);
        status.versions = self.versions.or(status.versions);
        status.skipped = self.skipped.unwrap_or(status.skipped);
        if let Some(problems) = &self.problems {
            status.problems.clone_from(problems);
        }
        status.last_sync_time = self.succeeded_at.map(Time::from).or(status.last_sync_time);
        status.last_attempt_time = self
            .attempted_at
            .map(Time::from)
            .or(status.last_attempt_time);
        status.next_sync_time = self.next_at.map(Time::from).or(status.next_sync_time);
        for (name, value, reason, message) in self.conditions(before) {
            set(&mut status.conditions, (name, value, reason), message, now);
        }
        match &self.phase {
            Phase::Failed { message, .. } => status.last_error.clone_from(message),
            Phase::Succeeded => status.last_error.clear(),
            Phase::Running { failed } if !failed.is_empty() => status.last_error.clone_from(failed),
            Phase::Unknown | Phase::Running { .. } => {}
        }
        if let Some(word) = word(&status.conditions) {
            word.clone_into(&mut status.status);
        }
        status
    }

    /// The conditions that are known: name, value, reason, message.
    fn conditions(
        &self,
        before: &AppRepositoryStatus,
    ) -> Vec<(&'static str, &'static str, &str, &str)> {
        let is_new = before.conditions.iter().all(|c| c.name != "Ready");
        match &self.phase {
            Phase::Unknown => Vec::new(),
            Phase::Running { failed } => {
                let reason = if failed.is_empty() {
                    "Reading"
                } else {
                    "TryingAgain"
                };
                let mut conditions = vec![("Syncing", "True", reason, &**failed)];
                if is_new {
                    conditions.push(("Ready", "False", "NotRead", "it was not read yet"));
                    conditions.push(("Stalled", "False", "NotRead", ""));
                }
                conditions
            }
            Phase::Succeeded => vec![
                ("Ready", "True", "Synced", ""),
                ("Syncing", "False", "Synced", ""),
                ("Stalled", "False", "Synced", ""),
            ],
            Phase::Failed { reason, message } => vec![
                ("Ready", "False", reason, message),
                ("Syncing", "False", reason, ""),
                ("Stalled", "True", reason, message),
            ],
        }
    }
}

fn set(
    conditions: &mut Vec<AppRepositoryCondition>,
    (name, value, reason): (&str, &str, &str),
    message: &str,
    now: Timestamp,
) {
    let mut wanted = AppRepositoryCondition {
        name: name.to_owned(),
        status: value.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Some(now.into()),
    };
    match conditions.iter_mut().find(|c| c.name == name) {
        None => conditions.push(wanted),
        Some(known) => {
            if known.status == value {
                wanted.last_transition_time = known.last_transition_time;
            }
            *known = wanted;
        }
    }
}

fn word(conditions: &[AppRepositoryCondition]) -> Option<&'static str> {
    let is = |name: &str| {
        let found = conditions.iter().find(|c| c.name == name);
        found.is_some_and(|c| c.status == "True")
    };
    let words = ["Syncing", "Stalled", "Ready"];
    words.into_iter().find(|name| is(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn condition<'a>(status: &'a AppRepositoryStatus, name: &str) -> &'a AppRepositoryCondition {
        let found = status.conditions.iter().find(|c| c.name == name);
        found.expect("it is there")
    }

    #[test]
    fn a_repository_is_read_fails_and_recovers() {
        let facts = |phase| Facts {
            generation: 2,
            phase,
            ..Facts::default()
        };
        let new = AppRepositoryStatus::default();
        assert_eq!(facts(Phase::Unknown).status(&new, at(1)), new);
        let failed = String::new();
        let running = facts(Phase::Running { failed }).status(&new, at(1));
        assert_eq!(
            (&*running.status, running.observed_generation),
            ("Syncing", 2)
        );
        assert_eq!(condition(&running, "Ready").status, "False");
        let read = Facts {
            charts: Some(3),
            succeeded_at: Some(at(5)),
            ..facts(Phase::Succeeded)
        };
        let read = read.status(&running, at(5));
        assert_eq!((&*read.status, read.charts), ("Ready", Some(3)));
        let failed = Phase::Failed {
            reason: "SyncFailed",
            message: "no answer".to_owned(),
        };
        let failed = facts(failed).status(&read, at(9));
        assert_eq!(
            (&*failed.status, &*failed.last_error),
            ("Stalled", "no answer")
        );
        assert_eq!(failed.charts, Some(3), "what was read stays");
        assert_eq!(failed.last_sync_time, Some(at(5).into()));
        let stalled = condition(&failed, "Stalled");
        assert_eq!((&*stalled.status, &*stalled.message), ("True", "no answer"));
        assert_eq!(stalled.last_transition_time, Some(at(9).into()));
        let again = facts(Phase::Succeeded).status(&failed, at(20));
        assert_eq!((&*again.status, &*again.last_error), ("Ready", ""));
        let later = facts(Phase::Succeeded).status(&again, at(30));
        assert_eq!(later, again, "a time changes with its condition only");
    }
}

//! The health of an Application: the worst of its resources', and which ones cause it.

use crate::{
    marks,
    spending::Spending,
    types::{CompareRules, Condition, ConditionType, Entry, Health, HealthStatus},
};
use std::sync::Arc;
use tiphys_apimachinery::{Kept, Object};

/// How many resources a message names; the rest are counted.
const CAUSES_NAMED: usize = 3;

/// Sets the health of an entry and whether it counts towards the Application's.
pub fn judge(
    entry: &mut Entry,
    desired: Option<&Object>,
    live: Option<&Object>,
    rules: &CompareRules,
    spending: &Spending,
) {
    entry.counts =
        !desired.is_some_and(marks::is_skipped) && !live.is_some_and(marks::is_sync_hook);
    entry.health = match live {
        _ if !entry.counts => None,
        // A missing resource already shows as drift; it does not make the Application unhealthy.
        None => Some(Health::new(HealthStatus::Missing, "")),
        Some(live)
            if live.annotation(marks::IGNORE_HEALTHCHECK) == Some("true")
                || is_the_application_itself(live, rules) =>
        {
            None
        }
        Some(live) => super::assess_within(live, &rules.customizations, Some(spending))
            .unwrap_or_else(|error| {
                let health = Health::new(HealthStatus::Unknown, error.why());
                entry.unreadable = Some(error.to_string());
                Some(health)
            }),
    };
}

/// The health of the Application, with a condition if the health of some resources could not be
/// computed.
pub fn aggregate(entries: &[Arc<Entry>]) -> (Health, Option<Condition>) {
    let mut worst = HealthStatus::Healthy;
    let mut causes: Vec<&Entry> = Vec::new();
    let (mut expected, mut any_live) = (false, false);
    let mut errors = Errors::default();
    for entry in entries.iter().filter(|e| e.counts) {
        expected = true;
        let Some(live) = &entry.live else { continue };
        any_live = true;
        let Some(health) = &entry.health else {
            continue;
        };
        if let Some(error) = &entry.unreadable {
            errors.add(live, error);
        }
        let child_application = entry.key.group == "argoproj.io" && entry.key.kind == "Application";
        if child_application
            && matches!(health.status, HealthStatus::Missing | HealthStatus::Unknown)
        {
            continue;
        }
        if health.status > worst {
            worst = health.status;
            causes = vec![entry];
        } else if health.status == worst && worst != HealthStatus::Healthy {
            causes.push(entry);
        }
    }
    if expected && !any_live && worst < HealthStatus::Missing {
        worst = HealthStatus::Missing;
        causes.clear();
    }
    (Health::new(worst, message(&causes)), errors.condition())
}

/// An Application that contains itself could never become healthy.
fn is_the_application_itself(live: &Object, rules: &CompareRules) -> bool {
    let same_name = live.name() == rules.app_name && live.namespace() == rules.app_namespace;
    let same_uid = rules.app_uid.is_empty() || live.uid() == rules.app_uid;
    live.group() == "argoproj.io" && live.kind() == "Application" && same_name && same_uid
}

/// `[group/]Kind:[namespace/]name`.
fn name(entry: &Entry) -> String {
    let key = &entry.key;
    let slash = |prefix: &str| {
        if prefix.is_empty() {
            String::new()
        } else {
            format!("{prefix}/")
        }
    };
    format!(
        "{}{}:{}{}",
        slash(&key.group),
        key.kind,
        slash(&key.namespace),
        key.name
    )
}

fn message(causes: &[&Entry]) -> String {
    if causes.is_empty() {
        return String::new();
    }
    let named: Vec<String> = causes
        .iter()
        .take(CAUSES_NAMED)
        .map(|entry| name(entry))
        .collect();
    let named = named.join(", ");
    let more = causes.len().saturating_sub(CAUSES_NAMED);
    if more > 0 {
        format!("Caused by {named} and {more} more")
    } else {
        format!("Caused by {named}")
    }
}

/// Only the last failure is shown; the others are counted, and are in the log.
#[derive(Default)]
struct Errors {
    count: usize,
    last: String,
}

impl Errors {
    fn add(&mut self, live: &Kept, error: &str) {
        let (kind, name, namespace) = (live.kind(), live.name(), live.namespace());
        self.count += 1;
        self.last = format!(
            "failed to get resource health for {kind:?} with name {name:?} in namespace {namespace:?}: {error}"
        );
    }

    fn condition(self) -> Option<Condition> {
        let last = self.last;
        let what = match self.count {
            0 => return None,
            1 => last,
            n => format!(
                "see application-controller logs for {} other errors; most recent error was: {last}",
                n - 1
            ),
        };
        Some(Condition::new(
            ConditionType::ComparisonError,
            format!("error setting app health: {what}"),
        ))
    }
}

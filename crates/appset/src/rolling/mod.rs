//! RollingSync: Applications are synced step by step.
//!
//! Main function: [`roll`]; main types: [`Steps`] and [`Rollout`].

mod issues;
mod operation;
mod progress;

pub use issues::Issues;
pub use progress::{Wanted, advance, at_once, observe, stored};

use crate::condition::Condition;
use crate::ignored::Ignored;
use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::Application;
use tiphys_api::application_set::{
    ApplicationMatchExpression, ApplicationSet, ApplicationSetApplicationStatus,
    ApplicationSetRolloutStep,
};
use tiphys_api::meta::Time;
use tiphys_api::operation::{Info, Operation, OperationInitiator, RetryStrategy, SyncOperation};

const HEALTHY: &str = "Healthy";
const PENDING: &str = "Pending";

/// Whether a set has the strategy, even without steps.
pub fn is_rolling(set: &ApplicationSet) -> bool {
    let strategy = set.spec.strategy.as_ref();
    strategy.is_some_and(|s| s.type_ == "RollingSync" && s.rolling_sync.is_some())
}

/// The steps of a set with the strategy.
pub fn steps_of(set: &ApplicationSet) -> &[ApplicationSetRolloutStep] {
    let strategy = set.spec.strategy.as_ref().filter(|_| is_rolling(set));
    let rolling = strategy.and_then(|s| s.rolling_sync.as_ref());
    rolling.map(|r| r.steps.as_slice()).unwrap_or_default()
}

/// Whether Applications are deleted in the reverse order of their steps.
pub fn is_reversed(set: &ApplicationSet) -> bool {
    let order = set
        .spec
        .strategy
        .as_ref()
        .map(|s| s.deletion_order.as_str());
    !steps_of(set).is_empty() && order.is_some_and(|order| order.eq_ignore_ascii_case("Reverse"))
}

/// Which Applications belong to which step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// The names by step.
    pub names: Vec<Vec<String>>,
    /// The first step of an Application, from 0.
    pub step_of: BTreeMap<String, usize>,
    pub issues: Issues,
}

impl Steps {
    /// Sorts Applications by their labels.
    pub fn of(set: &ApplicationSet, apps: &[Application]) -> Self {
        let steps = steps_of(set);
        let mut sorted = Self {
            names: vec![Vec::new(); steps.len()],
            ..Self::default()
        };
        for app in apps {
            for (index, step) in steps.iter().enumerate() {
                if sorted.selects(index, &step.match_expressions, app) {
                    sorted.add(index, &app.metadata.name);
                }
            }
        }
        let empty = sorted
            .names
            .iter()
            .enumerate()
            .filter(|(_, names)| names.is_empty());
        sorted.issues.empty_steps = empty.map(|(index, _)| index).collect();
        sorted
    }

    fn add(&mut self, index: usize, name: &str) {
        self.names[index].push(name.to_owned());
        match self.step_of.get(name) {
            Some(first) => {
                let duplicates = &mut self.issues.duplicates;
                duplicates
                    .entry(name.to_owned())
                    .or_insert_with(|| vec![*first])
                    .push(index);
            }
            None => {
                self.step_of.insert(name.to_owned(), index);
            }
        }
    }

    fn selects(
        &mut self,
        index: usize,
        expressions: &[ApplicationMatchExpression],
        app: &Application,
    ) -> bool {
        expressions.iter().all(|expression| {
            let Some(value) = app.metadata.labels.get(&expression.key) else {
                return expression.operator != "In";
            };
            let contains = expression.values.contains(value);
            match expression.operator.as_str() {
                "In" => contains,
                "NotIn" => !contains,
                operator => {
                    self.issues.unknown_operator(index, operator);
                    false
                }
            }
        })
    }

    /// The step as the status shows it: from 1, or -1.
    pub(crate) fn shown(step_of: &BTreeMap<String, usize>, name: &str) -> String {
        match step_of.get(name) {
            Some(step) => (step + 1).to_string(),
            None => "-1".to_owned(),
        }
    }
}

/// The Applications of all steps up to the first one that is not completely healthy.
pub fn may_sync(
    names: &[Vec<String>],
    statuses: &[ApplicationSetApplicationStatus],
    existing: &[&Application],
) -> BTreeSet<String> {
    let mut allowed = BTreeSet::new();
    for step in names {
        allowed.extend(step.iter().cloned());
        let done = step.iter().all(|name| {
            existing.iter().any(|app| app.metadata.name == *name)
                && statuses
                    .iter()
                    .any(|s| s.application == *name && s.status == HEALTHY)
        });
        if !done {
            break;
        }
    }
    allowed
}

/// The state of a rollout in one reconcile.
#[derive(Clone, Debug)]
pub struct Rollout {
    allowed: BTreeSet<String>,
    issues: Issues,
    statuses: Vec<ApplicationSetApplicationStatus>,
    steps: usize,
}

/// Takes a rollout one step further: what the Applications are, and which may start. Those that are
/// `invalid`, by name, are not written, so that nothing starts their syncs.
pub(crate) fn roll(
    set: &ApplicationSet,
    (desired, invalid): (&[Application], &BTreeMap<String, String>),
    existing: &[&Application],
    may_update: bool,
    now: Time,
) -> (Rollout, Vec<ApplicationSetApplicationStatus>) {
    let ignored = Ignored::new(&set.spec.ignore_application_differences);
    let mut steps = Steps::of(set, desired);
    let before = &set.status.application_status;
    let wanted = Wanted {
        applications: desired,
        ignored: &ignored,
        may_update,
    };
    let observed = observe(before, existing, wanted, &steps.step_of, now);
    let observed = stored(before, observed);
    // What is not compared yet with its present sources is not known to be healthy.
    let judged: Vec<&Application> = existing
        .iter()
        .copied()
        .filter(|app| !progress::is_of_other_sources(app, None))
        .collect();
    let mut allowed = may_sync(&steps.names, &observed, &judged);
    allowed.retain(|name| !invalid.contains_key(name));
    let advanced = advance(
        set,
        &observed,
        &allowed,
        &steps.step_of,
        &mut steps.issues,
        now,
    );
    let statuses = stored(&observed, advanced);
    let rollout = Rollout {
        allowed,
        issues: steps.issues,
        statuses: statuses.clone(),
        steps: steps.names.len(),
    };
    (rollout, statuses)
}

impl Rollout {
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        let unfinished = (1..=self.steps).map(|step| step.to_string()).find(|step| {
            let mut of_step = self.statuses.iter().filter(|s| s.step == *step);
            of_step.any(|s| s.status != HEALTHY)
        });
        vec![
            self.issues.condition(),
            match unfinished {
                Some(step) => Condition::new(
                    "RolloutProgressing",
                    true,
                    "ApplicationSetModified",
                    &format!("ApplicationSet is performing rollout of step {step}"),
                ),
                None => Condition::new(
                    "RolloutProgressing",
                    false,
                    "ApplicationSetRolloutComplete",
                    "ApplicationSet Rollout has completed",
                ),
            },
        ]
    }

    /// Turns automated sync off and starts the syncs of those that were pending when the reconcile
    /// began, and have not been synced since.
    pub(crate) fn start_syncs(
        &self,
        set: &ApplicationSet,
        existing: &[&Application],
        apps: &mut [Application],
    ) {
        let was_synced = |status: &&ApplicationSetApplicationStatus| {
            let mut existing = existing.iter();
            let Some(app) = existing.find(|app| app.metadata.name == status.application) else {
                return false;
            };
            let (state, since) = (&app.status.operation_state, status.last_transition_time);
            // A second sync would take the place of the first, or follow it for nothing.
            app.operation.is_some()
                || state.as_ref().is_some_and(|state| state.started_at > since)
                || operation::was_synced_at_once(app, since)
                || operation::awaits_comparison(app, since)
        };
        let before = set.status.application_status.iter();
        let waiting: Vec<_> = before.filter(|s| !was_synced(s)).cloned().collect();
        start_syncs(&waiting, &self.allowed, apps);
    }
}

/// The same for any statuses.
pub fn start_syncs(
    statuses: &[ApplicationSetApplicationStatus],
    allowed: &BTreeSet<String>,
    apps: &mut [Application],
) {
    for app in apps {
        let automated = app
            .spec
            .sync_policy
            .as_ref()
            .and_then(|p| p.automated.as_ref());
        let prune =
            automated.is_some_and(|a| a.enabled.unwrap_or(true) && a.prune.unwrap_or_default());
        disable_automated(app);
        let name = &app.metadata.name;
        let pending = statuses
            .iter()
            .any(|s| s.application == *name && s.status == PENDING);
        if pending && allowed.contains(name) {
            app.operation = Some(Box::new(sync(app, prune)));
        }
    }
}

/// The rollout syncs, not the Application itself.
pub(crate) fn disable_automated(app: &mut Application) {
    let has = app
        .spec
        .sync_policy
        .as_ref()
        .is_some_and(|p| p.automated.is_some());
    if has
        && let Some(policy) = &mut app.spec.sync_policy
        && let Some(automated) = &mut policy.automated
    {
        automated.enabled = Some(false);
    }
}

fn initiator() -> OperationInitiator {
    OperationInitiator {
        username: "applicationset-controller".into(),
        automated: true,
    }
}

fn sync(app: &Application, prune: bool) -> Operation {
    let policy = app.spec.sync_policy.clone();
    let retry = policy.as_ref().and_then(|p| p.retry.clone());
    Operation {
        sync: Some(SyncOperation {
            prune: prune && policy.is_some(),
            sync_options: policy.map(|p| p.sync_options).unwrap_or_default(),
            ..SyncOperation::default()
        }),
        initiated_by: initiator(),
        info: vec![Info {
            name: "Reason".into(),
            value: "ApplicationSet RollingSync triggered a sync of this Application resource"
                .into(),
        }],
        retry: retry.unwrap_or(RetryStrategy {
            limit: 5,
            ..RetryStrategy::default()
        }),
    }
}

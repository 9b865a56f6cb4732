//! What a set does to the Applications of its namespace.
//!
//! Main function: [`plan`]; main types: [`Plan`] and [`Change`]. A plan is a value: a caller carries
//! it out, or shows it. [`Plan::conclude`] makes the status from what came of it.

mod budget;
mod conditions;
mod deletion;
mod update;
mod validate;

pub use crate::condition::Condition;
pub use crate::ignored::{Ignored, specs_equivalent};
pub use budget::{DeleteLimit, Held, LimitError};
pub use conditions::set_conditions;
pub use deletion::{Deletion, Next, plan_deletion};
pub use update::{is_owned, owner_of};
pub use validate::has_no_cluster;

use crate::condition::reasons;
use crate::generate::{Failure, requeue_after};
use crate::{rolling, tombstone};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tiphys_api::Application;
use tiphys_api::application_set::{ApplicationSet, ApplicationSetStatus};
use tiphys_api::constants;
use tiphys_api::meta::Time;
use tiphys_api::status::{HealthStatus, ResourceStatus};
use tiphys_engine::spec::{BrokenCluster, Destination};

/// After an error of the specification or of a generator.
const RETRY: Duration = Duration::from_secs(180);

/// The settings of the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `--policy`; empty means `sync`.
    pub policy: String,
    /// Whether a set's own `applicationsSync` counts.
    pub policy_override: bool,
    pub progressive_syncs: bool,
    pub preserved_annotations: Vec<String>,
    pub preserved_labels: Vec<String>,
    /// The most entries of `status.resources`; 0 means no limit.
    pub most_resources: usize,
    /// For generators without their own time.
    pub requeue: Duration,
    /// For sets without their own.
    pub delete_limit: DeleteLimit,
    /// How long the specs of deleted Applications are kept; 0: they are not.
    pub keep_deleted: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: String::new(),
            policy_override: true,
            progressive_syncs: false,
            preserved_annotations: Vec::new(),
            preserved_labels: Vec::new(),
            most_resources: 5000,
            requeue: crate::DEFAULT_REQUEUE,
            delete_limit: DeleteLimit::default(),
            keep_deleted: tombstone::KEEP,
        }
    }
}

impl Settings {
    fn policy<'s>(&'s self, set: &'s ApplicationSet) -> &'s str {
        let own = set.spec.sync_policy.as_ref();
        let own = own.and_then(|policy| policy.applications_sync.as_deref());
        own.filter(|_| self.policy_override).unwrap_or(&self.policy)
    }

    /// Whether existing Applications are changed.
    pub fn may_update(&self, set: &ApplicationSet) -> bool {
        matches!(self.policy(set), "" | "sync" | "create-update")
    }

    /// Whether Applications are deleted that are no longer generated.
    pub fn may_delete(&self, set: &ApplicationSet) -> bool {
        matches!(self.policy(set), "" | "sync" | "create-delete")
    }
}

/// What exists besides the set.
#[derive(Clone, Copy, Debug)]
pub struct Existing<'a> {
    /// All Applications of the set's namespace.
    pub applications: &'a [Application],
    /// The names of the projects in the controller's namespace.
    pub projects: &'a BTreeSet<String>,
    /// The clusters that may be used; the local one is among them unless it is disabled.
    pub clusters: &'a [Destination],
    /// The names of the local cluster, also while it is disabled.
    pub local_names: &'a [String],
    /// Those whose Secrets cannot be read at present.
    pub broken_clusters: &'a [BrokenCluster],
}

impl<'a> Existing<'a> {
    /// The Applications that belong to a set.
    fn owned(&self, set: &ApplicationSet) -> Vec<&'a Application> {
        self.applications
            .iter()
            .filter(|app| update::is_owned(app, set))
            .collect()
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Create(Box<Application>),
    /// A JSON merge patch of an existing Application, and what it looks like afterwards.
    Update {
        name: String,
        patch: serde_json::Value,
        after: Box<Application>,
    },
    /// `release`: its resources-finalizer is removed first, since its cluster does not exist. Who
    /// carries it out judges both again by what the Application is then.
    Delete {
        name: String,
        release: bool,
    },
}

impl Change {
    /// The name of the Application.
    pub fn name(&self) -> &str {
        match self {
            Self::Create(app) => &app.metadata.name,
            Self::Update { name, .. } | Self::Delete { name, .. } => name,
        }
    }
}

/// What one reconcile does.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Creations and updates, by name.
    pub writes: Vec<Change>,
    /// Only after all writes succeeded.
    pub deletes: Vec<Change>,
    /// Deletions that wait for a confirmation.
    pub held: Option<Held>,
    /// The new value of the set's annotation with deleted Applications, if it changes. It is
    /// written before anything is deleted.
    pub tombstones: Option<tombstone::Written>,
    /// Why the writes cannot all succeed, by the name of an Application.
    pub refused: BTreeMap<String, String>,
    /// The status so far, without resources and without the result of the writes.
    pub status: ApplicationSetStatus,
    pub requeue_after: Option<Duration>,
    /// The reconcile ends here: nothing is written but the status.
    pub ends: bool,
    updates: bool,
    valid: bool,
}

/// What came of carrying out a plan.
pub enum Done {
    /// Everything was written.
    Completely,
    /// A creation or an update failed; nothing was deleted.
    WriteFailed(String),
    DeleteFailed(String),
    /// Everything else was done.
    NotDeleted(String),
}

/// What is kept of the Applications that are deleted.
fn kept(
    set: &ApplicationSet,
    deletes: &[Change],
    owned: &[&Application],
    settings: &Settings,
    now: Time,
) -> Option<tombstone::Written> {
    let names = deletes.iter().map(Change::name).collect();
    tombstone::written(set, &names, owned, settings.keep_deleted, now)
}

/// Plans one reconcile of a set that is not being deleted.
pub fn plan(
    set: &ApplicationSet,
    generated: Result<&[Application], &Failure>,
    existing: &Existing<'_>,
    settings: &Settings,
    now: Time,
) -> Plan {
    let mut plan = Plan {
        status: set.status.clone(),
        ..Plan::default()
    };
    let desired = match generated {
        Ok(desired) => desired,
        Err(failure) => {
            let error = Condition::error(failure.reason.as_str(), &failure.error.to_string());
            set_conditions(&mut plan.status, set, vec![error], false, now);
            return plan.ended();
        }
    };
    let invalid = validate::invalid(set, desired, existing);
    let owned = existing.owned(set);
    let rollout = match roll(&mut plan, set, (desired, &invalid), &owned, settings, now) {
        Ok(rollout) => rollout,
        Err(()) => return plan.ended(),
    };
    plan.valid = invalid.is_empty();
    plan.updates = settings.may_update(set);
    let mut valid: Vec<Application> = desired
        .iter()
        .filter(|app| !invalid.contains_key(&app.metadata.name))
        .cloned()
        .collect();
    if let Some(rollout) = rollout {
        rollout.start_syncs(set, &owned, &mut valid);
    }
    valid.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    if !plan.updates {
        valid.retain(|app| {
            owned
                .iter()
                .all(|old| old.metadata.name != app.metadata.name)
        });
    }
    plan.write(set, valid, existing, settings);
    if settings.may_delete(set) {
        let wanted: BTreeSet<&str> = desired.iter().map(|a| a.metadata.name.as_str()).collect();
        plan.deletes = owned
            .iter()
            .filter(|app| !wanted.contains(app.metadata.name.as_str()))
            .map(|app| Change::Delete {
                name: app.metadata.name.clone(),
                release: validate::has_no_cluster(app, existing),
            })
            .collect();
        plan.hold(set, &owned, settings);
    }
    let problem = (validate::message(&invalid), plan.held.as_ref());
    if let Some(error) = problem_of(problem) {
        set_conditions(&mut plan.status, set, vec![error], true, now);
    }
    plan.tombstones = kept(set, &plan.deletes, &owned, settings, now);
    plan.requeue_after = requeue_after(set, settings.requeue);
    if !plan.valid && plan.requeue_after.is_none() {
        plan.requeue_after = Some(RETRY);
    }
    plan
}

/// What is wrong with a set that was generated.
fn problem_of((invalid, held): (Option<String>, Option<&Held>)) -> Option<Condition> {
    Some(match (invalid, held) {
        (None, None) => return None,
        (Some(invalid), None) => Condition::error(reasons::VALIDATION, &invalid),
        (None, Some(held)) => Condition::error(reasons::HELD, &held.message),
        (Some(invalid), Some(held)) => {
            let both = format!("{invalid}; {}", held.message);
            Condition::error(reasons::VALIDATION, &both)
        }
    })
}

/// The rollout's part; `Err` ends the reconcile.
fn roll(
    plan: &mut Plan,
    set: &ApplicationSet,
    desired: (&[Application], &BTreeMap<String, String>),
    owned: &[&Application],
    settings: &Settings,
    now: Time,
) -> Result<Option<rolling::Rollout>, ()> {
    if !settings.progressive_syncs || !rolling::is_rolling(set) {
        plan.status.application_status.clear();
        return Ok(None);
    }
    if rolling::steps_of(set).is_empty() {
        let error = Condition::error(reasons::ROLLOUT, "No steps defined for rollout");
        set_conditions(&mut plan.status, set, vec![error], true, now);
        return Err(());
    }
    let may_update = settings.may_update(set);
    let (rollout, statuses) = rolling::roll(set, desired, owned, may_update, now);
    plan.status.application_status = statuses;
    set_conditions(&mut plan.status, set, rollout.conditions(), true, now);
    Ok(Some(rollout))
}

impl Plan {
    /// Whether there is nothing to write but, perhaps, the status, and nothing is wrong.
    pub fn is_idle(&self) -> bool {
        self.writes.is_empty()
            && self.deletes.is_empty()
            && self.refused.is_empty()
            && self.held.is_none()
            && self.tombstones.is_none()
            && self.valid
            && !self.ends
    }

    /// Takes the deletions of these Applications out: they are not wanted by one answer only.
    pub fn keep(
        &mut self,
        set: &ApplicationSet,
        names: &BTreeSet<String>,
        existing: &Existing<'_>,
        settings: &Settings,
        now: Time,
    ) {
        self.deletes.retain(|delete| !names.contains(delete.name()));
        let owned = existing.owned(set);
        self.tombstones = kept(set, &self.deletes, &owned, settings, now);
    }

    fn ended(mut self) -> Self {
        self.requeue_after = Some(RETRY);
        self.ends = true;
        self
    }

    /// Takes out what waits for a confirmation. What is already being deleted does not wait.
    fn hold(&mut self, set: &ApplicationSet, owned: &[&Application], settings: &Settings) {
        let Some(held) = budget::held(set, &self.deletes, &self.writes, owned, settings) else {
            return;
        };
        self.deletes
            .retain(|delete| held.names.iter().all(|name| name != delete.name()));
        self.writes
            .retain(|write| held.replacements.iter().all(|name| name != write.name()));
        self.held = Some(held);
    }

    fn write(
        &mut self,
        set: &ApplicationSet,
        valid: Vec<Application>,
        existing: &Existing<'_>,
        settings: &Settings,
    ) {
        let ignored = Ignored::new(&set.spec.ignore_application_differences);
        let all = existing.applications.iter();
        let all: BTreeMap<&str, &Application> =
            all.map(|app| (app.metadata.name.as_str(), app)).collect();
        for app in valid {
            let name = app.metadata.name.clone();
            let live = all.get(name.as_str()).copied();
            match update::change(set, app, live, &ignored, settings) {
                Ok(Some(change)) => self.writes.push(change),
                Ok(None) => {}
                Err(message) => {
                    self.refused.insert(name, message);
                }
            }
        }
    }

    /// The status after the plan was carried out; `owned` are the set's Applications then.
    pub fn conclude(
        &self,
        set: &ApplicationSet,
        done: &Done,
        owned: &[&Application],
        settings: &Settings,
        now: Time,
    ) -> ApplicationSetStatus {
        let mut status = self.status.clone();
        if self.ends {
            return status;
        }
        let failed = match done {
            Done::Completely => None,
            Done::WriteFailed(message) if self.updates => Some((reasons::UPDATE, message)),
            Done::WriteFailed(message) => Some((reasons::CREATE, message)),
            Done::DeleteFailed(message) | Done::NotDeleted(message) => {
                Some((reasons::DELETE, message))
            }
        };
        let error = failed.map(|(reason, message)| Condition::error(reason, message));
        if let (Some(error), false) = (&error, matches!(done, Done::NotDeleted(_))) {
            set_conditions(&mut status, set, vec![error.clone()], true, now);
            return status;
        }
        status.resources = resources(owned);
        status.resources_count = i64::try_from(status.resources.len()).unwrap_or(i64::MAX);
        if settings.most_resources > 0 {
            status.resources.truncate(settings.most_resources);
        }
        if let Some(error) = error {
            set_conditions(&mut status, set, vec![error], true, now);
            return status;
        }
        if self.valid && self.held.is_none() {
            set_conditions(&mut status, set, vec![Condition::up_to_date()], true, now);
        }
        status
    }
}

fn resources(owned: &[&Application]) -> Vec<ResourceStatus> {
    let mut resources: Vec<ResourceStatus> = owned
        .iter()
        .map(|app| ResourceStatus {
            group: constants::GROUP.to_owned(),
            version: constants::VERSION.to_owned(),
            kind: "Application".to_owned(),
            name: app.metadata.name.clone(),
            namespace: app.metadata.namespace.clone(),
            status: app.status.sync.status.clone(),
            health: Some(HealthStatus {
                status: app.status.health.status.clone(),
                ..HealthStatus::default()
            }),
            ..ResourceStatus::default()
        })
        .collect();
    resources.sort_by(|a, b| a.name.cmp(&b.name));
    resources
}

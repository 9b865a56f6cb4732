//! Decides whether an OutOfSync Application starts an automatic sync.
//!
//! Main function: [`decide`]. Pure: status, policy and time are arguments. The messages are Argo
//! CD's.

use super::{requested, rollback};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::sync::Arc;
use tiphys_api::{
    Application, constants,
    operation::{
        Info, Operation, OperationInitiator, RetryStrategy, SyncOperation, SyncOperationResource,
    },
    status::ResourceStatus,
};
use tiphys_apimachinery::ResourceKey;
use tiphys_engine::{
    diff,
    sync::{large_prune::LargePrune, request::deletion_confirmed},
    types::{Comparison, Entry},
};

/// A self-heal that was reverted this many times is reported.
const OFTEN: i64 = 5;
/// At most this many resources are named in that report.
const NAMED: usize = 3;
/// The operation's info for an approved large prune.
const CONFIRMED: &str = "Pruning confirmed";

/// The decision.
#[derive(Clone, Debug, PartialEq)]
pub enum AutoSyncDecision {
    Nothing,
    /// Reconcile again after this time, because self-heal backs off. If self-heal was reverted
    /// often, the text becomes a `SyncError` condition.
    Later(std::time::Duration, Option<String>),
    Start(Box<Operation>),
    /// A `SyncError` condition gives the reason.
    Refused(String),
}

/// The back-off of self-heal (`controller.self.heal.backoff.*`).
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// Delay before the first self-heal.
    pub first: SignedDuration,
    pub initial: SignedDuration,
    pub factor: u32,
    pub cap: SignedDuration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: SignedDuration::ZERO,
            initial: SignedDuration::from_secs(2),
            factor: 3,
            cap: SignedDuration::from_secs(300),
        }
    }
}

impl Backoff {
    /// The delay before attempt `n`, counted from zero.
    pub fn before(&self, attempt: i64) -> SignedDuration {
        if attempt <= 0 {
            return self.first;
        }
        let steps = u32::try_from(attempt - 1).unwrap_or(u32::MAX).min(20);
        let factor = i64::from(self.factor).saturating_pow(steps);
        let secs = self.initial.as_secs().saturating_mul(factor);
        SignedDuration::from_secs(secs).min(self.cap)
    }
}

/// The result of the comparison.
pub struct AutoSyncInput<'a> {
    pub out_of_sync: bool,
    /// The compared revision, a full commit id; `revisions` for several sources.
    pub revision: &'a str,
    pub revisions: &'a [String],
    /// Whether files that the Application is made from may have changed since the last sync. If
    /// not, a new revision is no reason to sync.
    pub touched: bool,
    pub resources: &'a [ResourceStatus],
    /// Resources that require pruning and are already being deleted.
    pub leaving: &'a [&'a ResourceKey],
    /// Pruning would leave little.
    pub large_prune: Option<LargePrune>,
    /// Whether someone else wrote the differences of a resource.
    pub changed_by_others: &'a dyn Fn(&ResourceStatus) -> bool,
}

/// Whether automated sync is enabled for the Application.
pub fn is_on(app: &Application) -> bool {
    app.spec
        .sync_policy
        .as_ref()
        .and_then(|p| p.automated.as_ref())
        .is_some_and(|a| a.enabled != Some(false))
}

/// Decides for an Application that was just compared.
pub fn decide(
    app: &Application,
    compared: &AutoSyncInput<'_>,
    backoff: Backoff,
    now: Timestamp,
) -> AutoSyncDecision {
    let Some(policy) = app.spec.sync_policy.as_ref() else {
        return AutoSyncDecision::Nothing;
    };
    let Some(automated) = policy
        .automated
        .as_ref()
        .filter(|a| a.enabled != Some(false))
    else {
        return AutoSyncDecision::Nothing;
    };
    if app.operation.is_some() || app.metadata.deletion_timestamp.is_some() || !compared.out_of_sync
    {
        return AutoSyncDecision::Nothing;
    }
    let prune = automated.prune.unwrap_or_default();
    if !prune
        && compared
            .resources
            .iter()
            .all(|r| r.status == "Synced" || r.requires_pruning)
    {
        return AutoSyncDecision::Nothing;
    }
    let mut sync = SyncOperation {
        revision: compared.revision.to_owned(),
        revisions: compared.revisions.to_vec(),
        prune,
        sync_options: policy.sync_options.clone(),
        source: app
            .spec
            .sources
            .is_empty()
            .then(|| app.spec.source.clone().unwrap_or_default()),
        sources: app.spec.sources.clone(),
        ..SyncOperation::default()
    };
    let shown = requested::shown(compared.revision, compared.revisions);
    let unconfirmed = compared
        .large_prune
        .filter(|_| prune)
        .map(|large| unconfirmed(&large, &shown));
    match attempted(app, compared, &shown) {
        Attempt::None => {}
        // It failed because a confirmation was missing, which may exist now, or not be needed.
        Attempt::Failed { message, .. } if is_unconfirmed(&message) => {}
        Attempt::Failed { tried, message } => {
            return AutoSyncDecision::Refused(format!(
                "Failed last sync attempt to [{tried}]: {message}"
            ));
        }
        Attempt::Succeeded if !automated.self_heal.unwrap_or_default() => {
            return AutoSyncDecision::Nothing;
        }
        Attempt::Succeeded => {
            if let Some(decision) = heal(app, compared, backoff, now, &mut sync) {
                return decision;
            }
        }
    }
    let allow_empty = automated.allow_empty.unwrap_or_default();
    let info = match confirmation(app, compared, unconfirmed, prune, allow_empty) {
        Ok(info) => info,
        Err(refusal) => return AutoSyncDecision::Refused(refusal),
    };
    let retry = policy.retry.clone().unwrap_or(RetryStrategy {
        limit: 5,
        ..RetryStrategy::default()
    });
    let initiated_by = OperationInitiator {
        automated: true,
        ..OperationInitiator::default()
    };
    AutoSyncDecision::Start(Box::new(Operation {
        sync: Some(sync),
        initiated_by,
        info,
        retry,
    }))
}

/// Synced resources differ again: limits the operation to them. `Some`: do not sync now.
fn heal(
    app: &Application,
    compared: &AutoSyncInput<'_>,
    backoff: Backoff,
    now: Timestamp,
    sync: &mut SyncOperation,
) -> Option<AutoSyncDecision> {
    let left: Vec<&ResourceStatus> = compared
        .resources
        .iter()
        .filter(|r| r.status != "Synced" && !r.hook && !is_leaving(r, compared.leaving))
        .collect();
    if left.is_empty() && !compared.leaving.is_empty() {
        return Some(AutoSyncDecision::Nothing);
    }
    let last = app
        .status
        .operation_state
        .as_ref()
        .and_then(|s| s.operation.sync.as_ref());
    let attempts = last.map_or(0, |s| s.auto_heal_attempts_count);
    if let Some(wait) = remaining(app, backoff.before(attempts), now) {
        let shown = requested::shown(compared.revision, compared.revisions);
        return Some(AutoSyncDecision::Later(
            wait,
            undone(attempts, &shown, compared),
        ));
    }
    sync.auto_heal_attempts_count = attempts + 1;
    sync.resources = left.into_iter().map(selected).collect();
    None
}

/// The info for the operation if pruning everything, or much, is confirmed; the error says why it
/// is not permitted.
fn confirmation(
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
fn is_unconfirmed(message: &str) -> bool {
    let after = message.strip_prefix("Skipping sync attempt to [");
    after.is_some_and(|rest| rest.contains("]: auto-sync would prune "))
}

/// The message of the Event for the start of an operation.
pub fn started(sync: &SyncOperation) -> String {
    let revisions = if sync.revisions.is_empty() {
        sync.revision.clone()
    } else {
        sync.revisions.join(", ")
    };
    format!("Initiated automated sync to '{revisions}'")
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

enum Attempt {
    None,
    Succeeded,
    /// `tried`: the revisions, for display.
    Failed {
        tried: String,
        message: String,
    },
}

/// Whether the last operation already tried this revision with these parameters.
fn attempted(app: &Application, compared: &AutoSyncInput<'_>, shown: &str) -> Attempt {
    let Some(state) = app.status.operation_state.as_ref() else {
        return Attempt::None;
    };
    if !matches!(state.phase.as_str(), "Succeeded" | "Failed" | "Error") {
        return Attempt::None;
    }
    // It timed out, and a rollback replaced this revision.
    if let Some(why) = rollback::reason(&state.operation, shown, &app.spec) {
        return Attempt::Failed {
            tried: shown.to_owned(),
            message: why.to_owned(),
        };
    }
    let same = match (&state.operation.sync, &state.sync_result) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(_), Some(result)) => {
            let same_source =
                !app.spec.sources.is_empty() || Some(&result.source) == app.spec.source.as_ref();
            let same_revision = (result.revision.as_str(), result.revisions.as_slice())
                == (compared.revision, compared.revisions);
            (same_revision || !compared.touched)
                && same_source
                && result.sources == app.spec.sources
        }
    };
    match (same, state.phase.as_str()) {
        (false, _) => Attempt::None,
        (true, "Succeeded") => Attempt::Succeeded,
        (true, _) => {
            let tried = state.sync_result.as_ref().map_or_else(
                || shown.to_owned(),
                |r| requested::shown(&r.revision, &r.revisions),
            );
            Attempt::Failed {
                tried,
                message: state.message.clone(),
            }
        }
    }
}

/// The warning about a self-heal that is reverted again and again. Tiphys's own; Argo CD reports
/// nothing.
fn undone(attempts: i64, revision: &str, compared: &AutoSyncInput<'_>) -> Option<String> {
    if attempts < OFTEN {
        return None;
    }
    let differing = compared
        .resources
        .iter()
        .filter(|r| r.status == "OutOfSync" && !r.hook);
    let (changed, left): (Vec<_>, Vec<_>) =
        differing.partition(|r| (compared.changed_by_others)(r));
    let why = match changed.is_empty() {
        false => format!(
            "was undone {attempts} times: something else changes {}",
            named(&changed)
        ),
        true => format!(
            "had no lasting effect {attempts} times: {} still differs from Git, and no other manager is known to have changed it",
            named(&left)
        ),
    };
    Some(format!(
        "The self-heal to [{revision}] {why}. It pauses longer each time; a new revision starts over"
    ))
}

/// Our own field managers.
const OURS: [&str; 4] = [
    constants::FIELD_MANAGER,
    "kubectl-create",
    "kubectl-replace",
    "argocd-application-controller",
];

/// Resources that require pruning and are already being deleted: a finalizer holds them, and
/// another sync would not speed it up.
pub fn leaving(comparison: &Comparison) -> Vec<&ResourceKey> {
    let pruned = comparison.entries.iter().filter(|e| e.requires_pruning);
    let is_deleted = |e: &&Arc<Entry>| {
        e.live
            .as_ref()
            .is_some_and(|live| live.object().deletion_timestamp().is_some())
    };
    pruned.filter(is_deleted).map(|e| &e.key).collect()
}

fn is_leaving(resource: &ResourceStatus, leaving: &[&ResourceKey]) -> bool {
    leaving.iter().any(|key| is_of(key, resource))
}

fn is_of(key: &ResourceKey, resource: &ResourceStatus) -> bool {
    let key = [&key.group, &key.kind, &key.namespace, &key.name];
    key == [
        &resource.group,
        &resource.kind,
        &resource.namespace,
        &resource.name,
    ]
}

/// Whether someone else deleted a resource, owns a field in which it differs, or has written to it
/// since.
pub fn changed_by_others(
    comparison: &Comparison,
    resource: &ResourceStatus,
    since: Option<Timestamp>,
) -> bool {
    let Some(entry) = comparison.entries.iter().find(|e| is_of(&e.key, resource)) else {
        return false;
    };
    let Some(live) = entry.live.as_ref().map(|live| live.object()) else {
        return true;
    };
    let written = live
        .metadata("managedFields")
        .and_then(Value::as_array)
        .is_some_and(|list| list.iter().any(|entry| wrote_another(entry, since)));
    written
        || diff::why(&entry.diff.read(), &live)
            .iter()
            .flat_map(|reason| &reason.owners)
            .any(|o| !OURS.contains(&o.manager.as_str()))
}

/// Whether an entry of `managedFields` says that someone else wrote something else than the status
/// since then.
fn wrote_another(entry: &Value, since: Option<Timestamp>) -> bool {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    let time = text("time").parse::<Timestamp>().ok();
    let other = !OURS.contains(&text("manager")) && text("subresource") != "status";
    other && time.zip(since).is_some_and(|(time, since)| time >= since)
}

fn named(resources: &[&ResourceStatus]) -> String {
    let mut names: Vec<String> = resources
        .iter()
        .map(|r| format!("{}/{}", r.kind, r.name))
        .collect();
    if names.len() > NAMED {
        names.splice(NAMED.., ["…".to_owned()]);
    }
    names.join(", ")
}

fn remaining(
    app: &Application,
    pause: SignedDuration,
    now: Timestamp,
) -> Option<std::time::Duration> {
    let finished = app
        .status
        .operation_state
        .as_ref()?
        .finished_at?
        .timestamp();
    let left = pause - now.duration_since(finished);
    (left > SignedDuration::ZERO).then(|| left.try_into().unwrap_or_default())
}

fn selected(resource: &ResourceStatus) -> SyncOperationResource {
    SyncOperationResource {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        name: resource.name.clone(),
        ..SyncOperationResource::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn app(change: &Value) -> Application {
        let base = json!({
            "metadata": {"name": "a"},
            "spec": {"project": "default", "source": {"repoURL": "r"}, "destination": {}, "syncPolicy": {"automated": {}}},
            "status": {}
        });
        serde_json::from_value(
            tiphys_apimachinery::patch::json_merge::apply(&base, change).expect("maps"),
        )
        .expect("an Application")
    }

    fn resource(status: &str, requires_pruning: bool) -> ResourceStatus {
        ResourceStatus {
            kind: "ConfigMap".into(),
            name: "c".into(),
            status: status.into(),
            requires_pruning,
            ..ResourceStatus::default()
        }
    }

    fn tried(phase: &str, heal: i64) -> Value {
        json!({"status": {"operationState": {"phase": phase, "message": "boom", "finishedAt": "2026-01-01T00:00:00Z",
            "operation": {"sync": {"revision": "abc", "autoHealAttemptsCount": heal}}, "syncResult": {"revision": "abc", "source": {"repoURL": "r"}}}}})
    }

    fn compared(resources: &[ResourceStatus]) -> AutoSyncInput<'_> {
        AutoSyncInput {
            out_of_sync: true,
            revision: "abc",
            revisions: &[],
            touched: true,
            resources,
            leaving: &[],
            large_prune: None,
            changed_by_others: &|r| r.name == "c",
        }
    }

    fn run_with(change: &Value, compared: &AutoSyncInput<'_>) -> AutoSyncDecision {
        decide(
            &app(change),
            compared,
            Backoff::default(),
            "2026-01-01T00:00:01Z".parse().expect("a time"),
        )
    }

    fn run(change: &Value, resources: &[ResourceStatus]) -> AutoSyncDecision {
        run_with(change, &compared(resources))
    }

    #[test]
    fn only_what_someone_else_wrote_since_then_is_a_change_by_others() {
        let since = "2026-01-01T00:00:01Z".parse().ok();
        let (before, then) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
        for (manager, time, subresource, expected) in [
            ("autoscaler", then, "", true),
            ("autoscaler", "2026-01-01T00:00:02Z", "scale", true),
            ("autoscaler", before, "", false),
            ("autoscaler", then, "status", false),
            ("autoscaler", "", "", false),
            (OURS[0], then, "", false),
        ] {
            let entry = json!({"manager": manager, "time": time, "subresource": subresource});
            assert_eq!(wrote_another(&entry, since), expected, "{entry}");
            assert!(!wrote_another(&entry, None), "{entry}");
        }
    }

    #[test]
    fn c41_a_new_revision_starts_a_sync_with_the_policys_options() {
        let change =
            json!({"spec": {"syncPolicy": {"automated": {"prune": true}, "syncOptions": ["A=b"]}}});
        let AutoSyncDecision::Start(op) = run(&change, &[resource("OutOfSync", false)]) else {
            panic!("it must start")
        };
        let sync = op.sync.expect("a sync");
        assert_eq!(
            (
                sync.revision.as_str(),
                sync.prune,
                sync.sync_options,
                op.retry.limit
            ),
            ("abc", true, vec!["A=b".to_owned()], 5)
        );
        assert!(op.initiated_by.automated);
        assert_eq!(
            started(&SyncOperation {
                revision: "abc".into(),
                ..SyncOperation::default()
            }),
            "Initiated automated sync to 'abc'"
        );
    }

    #[test]
    fn c41_several_sources_and_a_retry_of_its_own() {
        let change = json!({"spec": {"source": null, "sources": [{"repoURL": "r"}, {"repoURL": "s"}],
            "syncPolicy": {"automated": {}, "retry": {"limit": 2}}}});
        let revisions = ["abc".to_owned(), "def".to_owned()];
        let drifted = [resource("OutOfSync", false)];
        let compared = AutoSyncInput {
            revision: "",
            revisions: &revisions,
            ..compared(&drifted)
        };
        let AutoSyncDecision::Start(op) = run_with(&change, &compared) else {
            panic!("it must start")
        };
        let sync = op.sync.expect("a sync");
        assert_eq!(
            (
                sync.revision.as_str(),
                sync.revisions.as_slice(),
                &sync.source
            ),
            ("", &revisions[..], &None)
        );
        assert_eq!(
            (sync.sources.len(), sync.prune, op.retry.limit),
            (2, false, 2)
        );
        assert_eq!(started(&sync), "Initiated automated sync to 'abc, def'");
    }

    #[test]
    fn c42_c43_c44_c45_c52_it_stays_quiet_when_policy_or_state_say_so() {
        let drifted = [resource("OutOfSync", false)];
        for change in [
            json!({"spec": {"syncPolicy": null}}),
            json!({"spec": {"syncPolicy": {"automated": {"enabled": false}}}}),
            json!({"operation": {"sync": {}}}),
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            tried("Succeeded", 0),
            // An operation that ended without a result counts as an attempt, too.
            json!({"status": {"operationState": {"phase": "Succeeded", "operation": {"sync": {}}}}}),
        ] {
            assert_eq!(
                run(&change, &drifted),
                AutoSyncDecision::Nothing,
                "{change}"
            );
        }
        assert_eq!(
            run(
                &json!({}),
                &[resource("OutOfSync", true), resource("Synced", false)]
            ),
            AutoSyncDecision::Nothing,
            "only pruning is left"
        );
        assert!(matches!(
            run(&json!({}), &drifted),
            AutoSyncDecision::Start(_)
        ));
        let calm = AutoSyncInput {
            out_of_sync: false,
            ..compared(&drifted)
        };
        assert_eq!(
            run_with(&json!({}), &calm),
            AutoSyncDecision::Nothing,
            "Synced or Unknown"
        );
    }

    #[test]
    fn c46_a_failed_revision_is_not_tried_again() {
        let expected = "Failed last sync attempt to [abc]: boom";
        assert_eq!(
            run(&tried("Failed", 0), &[resource("OutOfSync", false)]),
            AutoSyncDecision::Refused(expected.into())
        );
    }

    #[test]
    fn c51_a_revision_that_changes_nothing_for_the_application_is_no_new_attempt() {
        let source = json!({"repoURL": "r"});
        let result = |several: bool| match several {
            false => json!({"revision": "old", "source": source}),
            true => {
                json!({"revision": "", "source": {}, "revisions": ["old", "x"], "sources": [source, source]})
            }
        };
        for (several, touched, other_source, phase, expected) in [
            (false, false, false, "Succeeded", "attempted"),
            (false, true, false, "Succeeded", "none"),
            (false, false, true, "Succeeded", "none"),
            (false, false, false, "Failed", "failed at old: boom"),
            (false, false, false, "Running", "none"),
            (true, false, false, "Succeeded", "attempted"),
            (true, true, false, "Succeeded", "none"),
            (true, false, true, "Succeeded", "none"),
            (true, false, false, "Error", "failed at old x: boom"),
        ] {
            let now = if other_source {
                json!({"repoURL": "other"})
            } else {
                source.clone()
            };
            let spec = if several {
                json!({"source": null, "sources": [source, now]})
            } else {
                json!({"source": now})
            };
            let app = app(
                &json!({"spec": spec, "status": {"operationState": {"phase": phase, "message": "boom",
                "operation": {"sync": {}}, "syncResult": result(several)}}}),
            );
            let revisions = ["new".to_owned(), "x".to_owned()];
            let compared = AutoSyncInput {
                out_of_sync: true,
                revision: if several { "" } else { "new" },
                revisions: if several { &revisions } else { &[] },
                touched,
                resources: &[],
                leaving: &[],
                large_prune: None,
                changed_by_others: &|_| true,
            };
            let found = match attempted(&app, &compared, "new") {
                Attempt::None => "none".to_owned(),
                Attempt::Succeeded => "attempted".to_owned(),
                Attempt::Failed { tried, message } => format!("failed at {tried}: {message}"),
            };
            assert_eq!(
                found, expected,
                "several {several}, touched {touched}, another source {other_source}, {phase}"
            );
        }
    }

    #[test]
    fn c47_pruning_everything_needs_allow_empty() {
        let prune = json!({"spec": {"syncPolicy": {"automated": {"prune": true}}}});
        let expected = "Skipping sync attempt to [abc]: auto-sync will wipe out all resources";
        assert_eq!(
            run(&prune, &[resource("OutOfSync", true)]),
            AutoSyncDecision::Refused(expected.into())
        );
        assert_eq!(
            run(&prune, &[]),
            AutoSyncDecision::Refused(expected.into()),
            "there is nothing"
        );
        assert!(
            matches!(
                run(
                    &prune,
                    &[resource("OutOfSync", true), resource("Synced", false)]
                ),
                AutoSyncDecision::Start(_)
            ),
            "one stays"
        );
        let allowed =
            json!({"spec": {"syncPolicy": {"automated": {"prune": true, "allowEmpty": true}}}});
        assert!(matches!(
            run(&allowed, &[resource("OutOfSync", true)]),
            AutoSyncDecision::Start(_)
        ));
    }

    #[test]
    fn a_large_prune_waits_for_an_approval_of_what_was_told() {
        let large = LargePrune {
            prunes: 15,
            live: 20,
        };
        let text = "Skipping sync attempt to [abc]: auto-sync would prune 15 of 20 resources; sync with prune, or confirm it by argocd.argoproj.io/deletion-approved";
        let resources = [resource("OutOfSync", true), resource("Synced", false)];
        let decided = |approved: &str, told: &str, change: &Value| {
            let condition = json!([{"type": "SyncError", "message": told, "lastTransitionTime": "2026-01-01T00:00:10Z"}]);
            let base = json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": approved}},
                "spec": {"syncPolicy": {"automated": {"prune": true}}}, "status": {"conditions": condition}});
            let change =
                tiphys_apimachinery::patch::json_merge::apply(&base, change).expect("maps");
            let compared = AutoSyncInput {
                large_prune: Some(large),
                ..compared(&resources)
            };
            decide(
                &app(&change),
                &compared,
                Backoff::default(),
                "2026-01-01T00:01:00Z".parse().expect("a time"),
            )
        };
        let none = json!({});
        let refused = AutoSyncDecision::Refused(text.to_owned());
        assert_eq!(
            decided("2026-01-01T00:00:10Z", "another revision", &none),
            refused,
            "nobody was told of it"
        );
        assert_eq!(
            decided("2026-01-01T00:00:09Z", text, &none),
            refused,
            "too early"
        );
        assert_eq!(decided("yes", text, &none), refused);
        for counted in ["15 of 20", "15 of 19"] {
            let message = format!("{} (retried 1 times).", text.replace("15 of 20", counted));
            let stopped = tiphys_apimachinery::patch::json_merge::apply(
                &tried("Failed", 0),
                &json!({"status": {"operationState": {"message": message}}}),
            );
            assert_eq!(
                decided("", text, &stopped.expect("maps")),
                refused,
                "an operation that was stopped for it, {counted}"
            );
        }
        let AutoSyncDecision::Start(operation) = decided("2026-01-01T00:00:10Z", text, &none)
        else {
            panic!("it is approved")
        };
        assert!(may_prune_much(&operation) && operation.initiated_by.automated);
        assert_eq!(
            operation.info[0].value,
            "15 of 20 resources, 2026-01-01T00:00:10Z"
        );
        let unpruned = json!({"spec": {"syncPolicy": {"automated": {"prune": false}}}});
        assert_eq!(
            decided("", text, &unpruned),
            AutoSyncDecision::Nothing,
            "nothing is pruned, and nothing else is to be done"
        );
    }

    #[test]
    fn c48_c49_self_heal_selects_what_drifted_and_backs_off() {
        let heal = json!({"spec": {"syncPolicy": {"automated": {"selfHeal": true}}}});
        let with = |attempts| {
            tiphys_apimachinery::patch::json_merge::apply(&tried("Succeeded", attempts), &heal)
                .expect("maps")
        };
        let resources = [resource("OutOfSync", false), resource("Synced", false)];
        let AutoSyncDecision::Start(op) = run(&with(0), &resources) else {
            panic!("it must start")
        };
        let sync = op.sync.expect("a sync");
        assert_eq!(
            (sync.resources.len(), sync.auto_heal_attempts_count),
            (1, 1)
        );
        let (mut pruned, key) = (
            resource("OutOfSync", true),
            ResourceKey {
                kind: "ConfigMap".into(),
                name: "gone".into(),
                ..ResourceKey::default()
            },
        );
        pruned.name = "gone".into();
        let both = [resource("OutOfSync", false), pruned.clone()];
        for (resources, selected) in [(&both[..], Some(1)), (&both[1..], None)] {
            let verdict = run_with(
                &with(0),
                &AutoSyncInput {
                    leaving: &[&key],
                    ..compared(resources)
                },
            );
            let found = match verdict {
                AutoSyncDecision::Start(op) => op.sync.map(|sync| sync.resources.len()),
                _ => None,
            };
            assert_eq!(found, selected, "what is being deleted needs no other sync");
        }
        assert_eq!(
            run(&with(2), &resources),
            AutoSyncDecision::Later(std::time::Duration::from_secs(5), None)
        );
        let many: Vec<_> = (0..5).map(|_| resource("OutOfSync", false)).collect();
        let AutoSyncDecision::Later(_, Some(told)) = run(&with(5), &many) else {
            panic!("it is told")
        };
        assert!(told.contains("undone 5 times: something else changes ConfigMap/c, ConfigMap/c, ConfigMap/c, …. It pauses"), "{told}");
        let own = ResourceStatus {
            name: "own".into(),
            ..resource("OutOfSync", false)
        };
        let AutoSyncDecision::Later(_, Some(told)) = run(&with(5), &[own]) else {
            panic!("it is told")
        };
        assert!(told.contains("had no lasting effect 5 times: ConfigMap/own still differs from Git, and no other manager"), "{told}");
        let pauses: Vec<_> = (0..=7)
            .map(|n| Backoff::default().before(n).as_secs())
            .collect();
        assert_eq!(pauses, [0, 2, 6, 18, 54, 162, 300, 300]);
    }
}

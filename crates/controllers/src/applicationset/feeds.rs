//! Which changes lead to a reconcile of which sets. Main function: [`follow`].

use super::{Controller, REFRESH, Reason, deleted};
use crate::runtime::next;
use std::{sync::Arc, time::Duration};
use tiphys_api::{Application, ApplicationSet, constants};
use tiphys_appset::reconcile::owner_of;
use tiphys_cluster::{AppKey, ChangeType, records::RecordChange};

/// Changes of clusters, projects and Applications come in bursts.
const SETTLE: Duration = Duration::from_millis(20);
/// How much longer the states of Applications gather, for each Application of the set: the status
/// is written with all of them. For more than the most it is no longer.
const OF_EACH: Duration = Duration::from_millis(1);
const MOST_OF_EACH: u32 = 1_000;

/// Follows all feeds until one ends.
pub async fn follow(controller: Arc<Controller>) {
    tokio::select! {
        () = sets(&controller) => {}
        () = applications(&controller) => {}
        () = secrets(&controller) => {}
        () = projects(&controller) => {}
        () = settings(&controller) => {}
        () = leases(&controller) => {}
        () = deleted::expire(&controller) => {}
    }
}

impl Controller {
    fn add_all(&self) {
        for record in self.sets.list() {
            let key = AppKey::new(&record.meta.namespace, &record.meta.name);
            self.queue.gather(key, Reason::default(), SETTLE);
        }
        // Their deletion may be among the changes that were missed.
        for key in self.remembered() {
            if self.sets.get(&key.namespace, &key.name).is_none() {
                self.queue.gather(key, Reason::default(), SETTLE);
            }
        }
    }

    /// After which time a change of an Application leads to a reconcile of its set, if it does.
    fn delay_of(&self, key: &AppKey, wakes: Wakes) -> Option<Duration> {
        let set = || {
            let record = self.sets.get(&key.namespace, &key.name)?;
            record.value().ok()
        };
        match wakes {
            Wakes::Set => Some(SETTLE),
            Wakes::Status => Some(set().map_or(SETTLE, |set| delay_of_status(&set))),
            // A rollout begins once the Applications exist.
            Wakes::Rollout => set()
                .is_some_and(|set| set.spec.strategy.is_some())
                .then_some(SETTLE),
            Wakes::Nothing => None,
        }
    }
}

async fn sets(controller: &Controller) {
    let mut changes = controller.sets.changes();
    controller.add_all();
    while let Some(change) = next(&mut changes).await {
        match change {
            Some(change) if concerns(&change) => {
                let meta = &change.record.meta;
                let key = AppKey::new(&meta.namespace, &meta.name);
                controller.queue.add(key, Reason::default());
            }
            Some(_) => {}
            None => controller.add_all(),
        }
    }
}

/// A status, which is only written here, does not concern the controller, except that a rollout
/// goes on after it was stored; nor do a request that it has just taken away and the deleted
/// Applications that it keeps.
fn concerns(change: &RecordChange<ApplicationSet>) -> bool {
    if change.change_type == ChangeType::Deleted {
        return true;
    }
    let (Some(before), Ok(now)) = (&change.before, change.record.value()) else {
        return true;
    };
    let Ok(before) = before.value() else {
        return true;
    };
    let answered = |set: &ApplicationSet| set.metadata.annotations.contains_key(REFRESH);
    let others = |set: &ApplicationSet| {
        let mut annotations = set.metadata.annotations.clone();
        annotations.remove(constants::DELETED_APPLICATIONS);
        annotations
    };
    let annotated = others(&before) != others(&now) && (answered(&now) || !answered(&before));
    annotated
        || before.spec != now.spec
        || before.status.application_status != now.status.application_status
        || before.metadata.labels != now.metadata.labels
        || before.metadata.finalizers != now.metadata.finalizers
        || before.metadata.deletion_timestamp != now.metadata.deletion_timestamp
}

async fn applications(controller: &Controller) {
    let mut changes = controller.records.applications.changes();
    while let Some(change) = next(&mut changes).await {
        let Some(change) = change else {
            controller.add_all();
            continue;
        };
        if let Ok(app) = change.record.value()
            && let Some(owner) = owner_of(&app).filter(|owner| owner.kind == "ApplicationSet")
        {
            let key = AppKey::new(&change.record.meta.namespace, &owner.name);
            let before = change.before.as_ref().map(|before| before.value());
            let before = before.and_then(Result::ok);
            let wakes = wakes(change.change_type, before.as_deref(), &app);
            if let Some(delay) = controller.delay_of(&key, wakes) {
                controller.queue.gather(key, Reason::default(), delay);
            }
        }
    }
}

/// What a change of an Application wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wakes {
    /// Its set.
    Set,
    /// Its set, whose status tells the state of its Applications and whose rollout goes on by it.
    Status,
    /// Its set, if it rolls out in steps.
    Rollout,
    Nothing,
}

/// While thousands of Applications sync, the state of one of them changes at any time.
fn delay_of_status(set: &ApplicationSet) -> Duration {
    if set.spec.strategy.is_some() {
        return SETTLE;
    }
    let count = u32::try_from(set.status.resources_count).unwrap_or(0);
    SETTLE + OF_EACH * count.min(MOST_OF_EACH)
}

/// Whether someone changed what a set writes, or a rollout may go on. `before` is `None` if it could
/// not be read.
fn wakes(change: ChangeType, before: Option<&Application>, now: &Application) -> Wakes {
    let before = match (change, before) {
        (ChangeType::Deleted, _) | (ChangeType::Modified, None) => return Wakes::Set,
        // The set's own.
        (ChangeType::Added, _) => return Wakes::Rollout,
        (ChangeType::Modified, Some(before)) => before,
    };
    let phase = |app: &Application| {
        let state = app.status.operation_state.as_ref();
        state.map(|state| (state.phase.clone(), state.started_at))
    };
    // Its controller writes its own ones at each step of a sync.
    let annotations = |app: &Application| {
        let mut annotations = app.metadata.annotations.clone();
        annotations.retain(|name, _| !constants::OF_CONTROLLER.contains(&name.as_str()));
        annotations
    };
    let is_changed = before.spec != now.spec
        || before.metadata.annotations != now.metadata.annotations
            && annotations(before) != annotations(now)
        || before.metadata.labels != now.metadata.labels
        || before.metadata.finalizers != now.metadata.finalizers;
    let is_in_another_state = before.status.health.status != now.status.health.status
        || before.status.sync.status != now.status.sync.status
        || phase(before) != phase(now);
    // The same state of other sources may be what a rollout waits for.
    let is_compared_anew = before.status.sync.compared_to != now.status.sync.compared_to;
    match (is_changed, is_in_another_state, is_compared_anew) {
        (true, _, _) => Wakes::Set,
        (false, true, _) => Wakes::Status,
        (false, false, true) => Wakes::Rollout,
        (false, false, false) => Wakes::Nothing,
    }
}

async fn secrets(controller: &Controller) {
    let mut changes = controller.records.secrets.changes();
    while let Some(change) = next(&mut changes).await {
        let is_cluster = change.is_none_or(|change| {
            let label = change.record.meta.labels.get(constants::SECRET_TYPE_LABEL);
            label.is_some_and(|kind| kind == "cluster")
        });
        if is_cluster {
            controller.add_all();
        }
    }
}

async fn projects(controller: &Controller) {
    let mut changes = controller.records.projects.changes();
    while let Some(change) = next(&mut changes).await {
        // Only whether a project exists matters.
        if change.is_none_or(|change| change.change_type != ChangeType::Modified) {
            controller.add_all();
        }
    }
}

async fn settings(controller: &Controller) {
    let mut settings = controller.records.watch_settings();
    while settings.changed().await.is_ok() {
        controller.add_all();
    }
}

/// Who becomes the one that works looks at everything.
async fn leases(controller: &Controller) {
    let Some(leases) = &controller.leases else {
        return std::future::pending().await;
    };
    let mut changes = leases.changes();
    while changes.changed().await.is_ok() {
        // Another replica may have worked meanwhile.
        controller.forget_last(None);
        controller.add_all();
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;
    use serde_json::{Value, json};
    use std::time::Instant;
    use tiphys_apimachinery::{Gvk, Object};
    use tiphys_cluster::{
        Cluster, Kind,
        records::Store,
        request::{Call, JSON},
    };
    use tiphys_embedded_kube::{EmbeddedKube, Options};
    use tiphys_gocompat::yaml;

    const SERVER: &str = "https://kubernetes.default.svc";
    const DEFINITION: &str = include_str!("../../../../deploy/crds/applicationset-crd.yaml");

    /// The records of sets on an API server that has one, argocd/set.
    async fn one_set() -> (EmbeddedKube, Store<ApplicationSet>) {
        let kube = EmbeddedKube::start(Options::default()).await;
        let kube = kube.expect("the embedded server starts");
        let cluster = Cluster::connect_in_process(kube.router(), SERVER).await;
        let cluster = cluster.expect("it answers");
        let definition = yaml::parse_document(
            DEFINITION,
            &yaml::Limits::default(),
            yaml::Duplicates::LastWins,
        );
        let definition = definition.expect("our own file");
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}});
        for (path, object) in [(definitions, definition), ("/api/v1/namespaces", namespace)] {
            let call = Call::new(Method::POST, path).with_body(JSON, object.to_string());
            cluster.http().send(&call).await.expect(path);
        }
        let kind = Kind {
            gvk: Gvk::new(constants::GROUP, constants::VERSION, "ApplicationSet"),
            resource: "applicationsets".to_owned(),
            singular: "applicationset".to_owned(),
            namespaced: true,
            verbs: Vec::new(),
            short_names: Vec::new(),
            categories: Vec::new(),
            subresources: Vec::new(),
        };
        let store = Store::start(cluster, kind, &["argocd".to_owned()], false);
        let set = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": "set", "namespace": "argocd"},
            "spec": {"generators": [{"list": {"elements": []}}], "template": {
                "metadata": {"name": "x"},
                "spec": {"project": "default", "destination": {}},
            }},
        });
        let set = Object::from_value(set).expect("an object");
        // A definition is served a moment after it was created.
        let began = Instant::now();
        while let Err(error) = store.create(&set).await {
            let may_come = error.is_not_found() && began.elapsed() < Duration::from_secs(60);
            assert!(may_come, "{error}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        (kube, store)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_the_controller_writes_does_not_wake_it() {
        let (_kube, store) = one_set().await;
        let mut changes = store.changes();
        let failed = |message: &str| {
            json!({"status": {"conditions": [{
                "type": "ErrorOccurred", "status": "True", "message": message,
                "reason": "ApplicationGenerationFromParamsError",
            }]}})
        };
        let resources = json!([{"kind": "Application", "name": "a", "status": "Synced"}]);
        let pending = json!([{
            "application": "a", "status": "Pending", "step": "1", "message": "m",
            "targetRevisions": [],
        }]);
        let annotated =
            |name: &str, value: Value| json!({"metadata": {"annotations": {name: value}}});
        let kept = constants::DELETED_APPLICATIONS;
        for (what, patch, wanted) in [
            ("an error", failed("request ID-1"), false),
            ("its next text", failed("request ID-2"), false),
            (
                "health",
                json!({"status": {"health": {"status": "Degraded"}}}),
                false,
            ),
            (
                "resources",
                json!({"status": {"resources": resources, "resourcesCount": 1}}),
                false,
            ),
            (
                "what is kept of the deleted",
                annotated(kept, json!("x")),
                false,
            ),
            (
                "a request for a refresh",
                annotated(REFRESH, json!("true")),
                true,
            ),
            ("its answer", annotated(REFRESH, Value::Null), false),
            // A rollout goes on after its state was stored.
            (
                "a rollout",
                json!({"status": {"applicationStatus": pending}}),
                true,
            ),
            (
                "an annotation of others",
                annotated("a/b", json!("c")),
                true,
            ),
            ("a label", json!({"metadata": {"labels": {"a": "b"}}}), true),
            (
                "a finalizer",
                json!({"metadata": {"finalizers": ["a.example/b"]}}),
                true,
            ),
            ("the spec", json!({"spec": {"goTemplate": true}}), true),
        ] {
            let written = match patch.get("status") {
                Some(_) => store.merge_patch_status("argocd", "set", &patch).await,
                None => store.merge_patch("argocd", "set", &patch).await,
            };
            written.expect(what);
            let change = changes.recv().await.expect("a change");
            assert_eq!(concerns(&change), wanted, "{what}");
        }
        // The finalizer keeps it.
        let deleted = store.delete("argocd", "set", "", "").await;
        deleted.expect("it is deleted");
        let change = changes.recv().await.expect("a change");
        assert!(concerns(&change), "its deletion");
    }

    #[test]
    fn the_states_of_many_applications_gather() {
        let delay = |strategy: Value, count: i64| {
            let set = json!({"spec": {"strategy": strategy}, "status": {"resourcesCount": count}});
            delay_of_status(&serde_json::from_value(set).expect("a set"))
        };
        assert_eq!(delay(Value::Null, 0), SETTLE);
        assert_eq!(delay(Value::Null, 300), SETTLE + OF_EACH * 300);
        assert_eq!(delay(Value::Null, 90_000), SETTLE + OF_EACH * MOST_OF_EACH);
        assert_eq!(delay(json!({"type": "RollingSync"}), 300), SETTLE);
    }

    #[test]
    fn applications_wake_their_sets() {
        let app = |changed: &str, value: Value| {
            let mut app = json!({
                "metadata": {"name": "a", "labels": {}, "annotations": {}, "finalizers": []},
                "spec": {"source": {"repoURL": "https://git.example.test/a", "path": "a"}},
                "status": {
                    "health": {"status": "Healthy", "message": ""},
                    "sync": {"status": "Synced", "comparedTo": {
                        "source": {"repoURL": "https://git.example.test/a", "path": "a"}
                    }},
                    "operationState": {
                        "phase": "Running", "operation": {}, "startedAt": "2026-01-01T00:00:00Z"
                    },
                    "reconciledAt": "2026-01-01T00:00:00Z"
                },
            });
            if let Some(place) = app.pointer_mut(changed) {
                *place = value;
            }
            serde_json::from_value::<Application>(app).expect("an Application")
        };
        let before = app("none", Value::Null);
        for (changed, value, wanted) in [
            ("none", Value::Null, Wakes::Nothing),
            (
                "/status/reconciledAt",
                json!("2026-01-01T00:03:00Z"),
                Wakes::Nothing,
            ),
            ("/status/health/message", json!("slow"), Wakes::Nothing),
            (
                "/status/sync/comparedTo/source/path",
                json!("b"),
                Wakes::Rollout,
            ),
            ("/status/sync/status", json!("OutOfSync"), Wakes::Status),
            ("/status/health/status", json!("Degraded"), Wakes::Status),
            (
                "/status/operationState/phase",
                json!("Failed"),
                Wakes::Status,
            ),
            (
                "/status/operationState/startedAt",
                json!("2026-01-02T00:00:00Z"),
                Wakes::Status,
            ),
            ("/spec/source/path", json!("b"), Wakes::Set),
            ("/metadata/labels", json!({"a": "b"}), Wakes::Set),
            ("/metadata/annotations", json!({"a": "b"}), Wakes::Set),
            (
                "/metadata/annotations",
                json!({constants::SYNC_PROGRESS: "x"}),
                Wakes::Nothing,
            ),
            ("/metadata/finalizers", json!(["a/b"]), Wakes::Set),
        ] {
            let now = app(changed, value);
            let found = wakes(ChangeType::Modified, Some(&before), &now);
            assert_eq!(found, wanted, "{changed}");
        }
        let others = [
            (ChangeType::Added, None, Wakes::Rollout),
            (ChangeType::Deleted, Some(&before), Wakes::Set),
            (ChangeType::Modified, None, Wakes::Set),
        ];
        for (change, of, wanted) in others {
            assert_eq!(wakes(change, of, &before), wanted, "{change:?}");
        }
    }
}

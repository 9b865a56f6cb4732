//! Kind `reconcile`: one reconcile with an API server. Main function: [`run`].

use super::generate::shown;
use super::world::{World, clusters};
use super::{Verdict, same};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tiphys_api::meta::{OwnerReference, Time};
use tiphys_api::{Application, ApplicationSet};
use tiphys_apimachinery::patch::json_merge;
use tiphys_appset::reconcile::{
    Change, Done, Existing, Next, Settings, owner_of, plan, plan_deletion,
};
use tiphys_engine::spec::{Destination, in_cluster};

const NOW: Time = Time {
    seconds: 4_000_000_000,
    nanos: 0,
};

/// What the API server holds.
struct Server {
    set: Option<ApplicationSet>,
    apps: Vec<Application>,
    requeue: u64,
    failed: bool,
}

pub fn run(case: &Value) -> Verdict {
    let mut server = Server::new(case)?;
    server.reconcile(case);
    let expected = &case["expected"];
    let by_name = |apps: &mut Vec<Value>| apps.sort_by_key(|a| a["metadata"]["name"].to_string());
    let mut ours: Vec<Value> = server.apps.iter().map(recorded).collect();
    let mut theirs = expected["applications"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    theirs.iter_mut().for_each(plain);
    by_name(&mut ours);
    by_name(&mut theirs);
    same("applications", &ours.into(), &theirs.into())?;
    same(
        "error",
        &server.failed.into(),
        &expected["error"].is_string().into(),
    )?;
    if !server.failed {
        let requeue = &expected["requeue_after_seconds"];
        same("requeue", &server.requeue.into(), requeue)?;
    }
    match (&server.set, expected["status"].is_object()) {
        (Some(set), true) => {
            let ours = serde_json::to_value(&set.status).unwrap_or_default();
            same(
                "status",
                &timeless(ours),
                &timeless(expected["status"].clone()),
            )
        }
        (None, false) => Ok(()),
        (set, _) => Err(format!("the set is left: {}", set.is_some())),
    }
}

impl Server {
    fn new(case: &Value) -> Result<Self, String> {
        let mut document = case["appset"].clone();
        if document["metadata"]["namespace"].is_null() {
            document["metadata"]["namespace"] = json!("argocd");
        }
        document["metadata"]["uid"] = json!("uid-set");
        let set: ApplicationSet = serde_json::from_value(document).map_err(|e| e.to_string())?;
        let apps = case["applications"].as_array().into_iter().flatten();
        let apps = apps
            .map(|app| existing(app, &set))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            set: Some(set),
            apps,
            requeue: 0,
            failed: false,
        })
    }

    fn reconcile(&mut self, case: &Value) {
        let Some(mut set) = self.set.clone() else {
            return;
        };
        let projects = match case["projects"].as_array() {
            Some(list) => list
                .iter()
                .map(|p| super::world::text(&p["metadata"]["name"]))
                .collect(),
            None => BTreeSet::from(["default".to_owned()]),
        };
        let mut clusters: Vec<Destination> = clusters(&case["clusters"])
            .into_iter()
            .map(|cluster| Destination {
                server: cluster.server,
                name: cluster.name,
                project: String::new(),
            })
            .collect();
        let local = in_cluster();
        if clusters
            .iter()
            .all(|cluster| cluster.server != local.server)
        {
            clusters.push(local);
        }
        let settings = settings(&case["settings"]);
        let apps = self.apps.clone();
        let existing = Existing {
            applications: &apps,
            projects: &projects,
            clusters: &clusters,
            local_names: &[],
            broken_clusters: &[],
        };
        if set.metadata.deletion_timestamp.is_some() {
            return self.delete_set(&set, &existing, &settings);
        }
        let generated = World::new(case).generate(&set);
        let outcome = match &generated.failure {
            Some(failure) => Err(failure),
            None => Ok(generated.applications.as_slice()),
        };
        let plan = plan(&set, outcome, &existing, &settings, NOW);
        for change in &plan.writes {
            self.apply(change);
        }
        let done = match plan.refused.values().next() {
            Some(message) => Done::WriteFailed(message.clone()),
            None => {
                plan.deletes.iter().for_each(|change| self.apply(change));
                Done::Completely
            }
        };
        self.failed = matches!(done, Done::WriteFailed(_));
        self.requeue = plan.requeue_after.map_or(0, |after| after.as_secs());
        let owned: Vec<&Application> = self
            .apps
            .iter()
            .filter(|app| owner_of(app).is_some_and(|owner| owner.name == set.metadata.name))
            .collect();
        set.status = plan.conclude(&set, &done, &owned, &settings, NOW);
        self.set = Some(set);
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Create(app) => self.apps.push((**app).clone()),
            Change::Update { name, patch, after } => {
                for app in self.apps.iter_mut().filter(|a| a.metadata.name == *name) {
                    let live = serde_json::to_value(&*app).unwrap_or_default();
                    let patched = json_merge::apply(&live, patch).unwrap_or_default();
                    *app = serde_json::from_value(patched).unwrap_or_default();
                    assert_eq!(app, &**after, "the patch makes what is said");
                }
            }
            Change::Delete { name, release } => {
                for app in self.apps.iter_mut().filter(|a| a.metadata.name == *name) {
                    if *release {
                        let finalizers = &mut app.metadata.finalizers;
                        finalizers.retain(|f| f != tiphys_appset::RESOURCES_FINALIZER);
                    }
                    app.metadata.deletion_timestamp.get_or_insert(NOW);
                }
                self.apps.retain(|app| {
                    app.metadata.name != *name || !app.metadata.finalizers.is_empty()
                });
            }
        }
    }

    fn delete_set(&mut self, set: &ApplicationSet, existing: &Existing<'_>, settings: &Settings) {
        let deletion = plan_deletion(set, existing, settings, NOW);
        for app in &mut self.apps {
            if deletion.release.contains(&app.metadata.name) {
                app.metadata.owner_references.clear();
            }
        }
        match deletion.next {
            Next::Finish => self.set = None,
            Next::Wait(after) => self.requeue = after.as_secs(),
            Next::Stuck(_) => self.failed = true,
            Next::Delete { name, after } => {
                self.apply(&Change::Delete {
                    name,
                    release: false,
                });
                self.requeue = after.as_secs();
            }
        }
    }
}

fn existing(app: &Value, set: &ApplicationSet) -> Result<Application, String> {
    let mut app: Application = serde_json::from_value(app.clone()).map_err(|e| e.to_string())?;
    if app.metadata.namespace.is_empty() {
        app.metadata.namespace.clone_from(&set.metadata.namespace);
    }
    if app.metadata.annotations.remove("oracle/unowned").is_none()
        && app.metadata.owner_references.is_empty()
    {
        app.metadata.owner_references = vec![OwnerReference {
            api_version: "argoproj.io/v1alpha1".into(),
            kind: "ApplicationSet".into(),
            name: set.metadata.name.clone(),
            uid: "uid-set".into(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }];
    }
    Ok(app)
}

fn settings(of: &Value) -> Settings {
    let list = |field: &str| -> Vec<String> {
        let list = of[field].as_array().into_iter().flatten();
        list.map(super::world::text).collect()
    };
    Settings {
        policy: super::world::text(&of["policy"]),
        policy_override: of["enable_policy_override"] == true,
        progressive_syncs: of["progressive_syncs"] == true,
        preserved_annotations: list("global_preserved_annotations"),
        preserved_labels: list("global_preserved_labels"),
        most_resources: of["max_resources_status_count"]
            .as_u64()
            .unwrap_or_default() as usize,
        ..Settings::default()
    }
}

fn recorded(app: &Application) -> Value {
    let mut json = shown(app);
    plain(&mut json);
    if app.metadata.deletion_timestamp == Some(NOW) {
        json["metadata"]["deletionTimestamp"] = json!("<now>");
    }
    json
}

/// Without what one of the two leaves out.
fn plain(app: &mut Value) {
    if let Some(fields) = app.as_object_mut() {
        for field in ["apiVersion", "kind", "status"] {
            fields.remove(field);
        }
    }
}

/// A status without the times of conditions, with `<now>` for those of this run, and without the
/// kind of resources: the controller was given objects that did not say theirs, as they do in a
/// cluster.
fn timeless(mut status: Value) -> Value {
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        if let Some(fields) = condition.as_object_mut() {
            fields.remove("lastTransitionTime");
        }
    }
    for resource in status["resources"].as_array_mut().into_iter().flatten() {
        if let Some(fields) = resource.as_object_mut() {
            fields.retain(|name, _| !["group", "version", "kind"].contains(&name.as_str()));
        }
    }
    let now = serde_json::to_value(NOW).unwrap_or_default();
    if let Some(fields) = status.as_object_mut() {
        for list in ["applicationStatus", "resources"] {
            if fields
                .get(list)
                .and_then(Value::as_array)
                .is_none_or(Vec::is_empty)
            {
                fields.remove(list);
            }
        }
        for app in fields
            .get_mut("applicationStatus")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if app["lastTransitionTime"] == now {
                app["lastTransitionTime"] = json!("<now>");
            }
            if app["targetRevisions"].is_null() {
                app["targetRevisions"] = json!([]);
            }
        }
    }
    status
}

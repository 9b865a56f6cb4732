//! What an Application's own rules of comparison change.

use crate::world::{World, text};
use serde_json::{Value, json};
use tiphys_testkit::{PATIENCE, Repo, apps_path, eventually};

const BACKEND: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: backend
spec:
  replicas: 1
  selector: {matchLabels: {app: backend}}
  template:
    metadata: {labels: {app: backend}}
    spec:
      containers:
      - {name: c, image: registry.example.org/backend:v1}
";

pub fn respected_differences_outlive_a_sync(world: &mut World) {
    let repo = Repo::with(&[("app/backend.yaml", BACKEND)]);
    let mut app = world.application("respect", &repo.url(), "app", &json!({"selfHeal": true}));
    app["spec"]["ignoreDifferences"] = json!([{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}]);
    app["spec"]["syncPolicy"]["syncOptions"] = json!(["CreateNamespace=true", "RespectIgnoreDifferences=true"]);
    world.kube.create(&apps_path(), &app);
    world.until_well("respect", &repo.head());
    world.patch("deployments", "backend", &json!({"spec": {"replicas": 3}}));
    let sha = repo.commit(&[("app/backend.yaml", BACKEND.replace("backend:v1", "backend:v2").as_str())], &[]);
    world.refresh("respect");
    world.until_well("respect", &sha);
    let live = world.find("deployments", "backend").expect("it is there");
    assert_eq!(live["spec"]["replicas"], 3, "the sync left what is ignored as it was");
    assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "registry.example.org/backend:v2");
}

pub fn the_api_server_says_what_differs(world: &mut World) {
    let repo = Repo::with(&[("app/backend.yaml", BACKEND)]);
    let mut app = world.application("asked", &repo.url(), "app", &json!({"selfHeal": true}));
    app["metadata"]["annotations"] = json!({"argocd.argoproj.io/compare-options": "ServerSideDiff=true"});
    world.kube.create(&apps_path(), &app);
    world.until_well("asked", &repo.head());
    world.patch("deployments", "backend", &json!({"spec": {"replicas": 2}}));
    eventually(PATIENCE, "the edit is undone", || match &world.find("deployments", "backend").expect("it is there")["spec"]["replicas"] {
        Value::Number(n) if n.as_u64() == Some(1) => Ok(()),
        other => Err(other.to_string()),
    });
    // What the API server would refuse is known before anything is applied.
    repo.commit(&[("app/backend.yaml", BACKEND.replace("{app: backend}", "{app: other}").as_str())], &[]);
    world.refresh("asked");
    let app = world.until("asked", "refused", |app| text(app, "/status/sync/status") == "Unknown");
    let conditions = app.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let told = conditions.iter().find(|c| c["type"] == "ComparisonError").map(|c| text(c, "/message")).unwrap_or_default();
    let begin = "Failed to compare desired state to live state: failed to calculate diff: error calculating server side diff: \
        error running server side apply in dryrun mode for resource Deployment/backend: ";
    assert!(told.starts_with(begin) && told.contains("field is immutable"), "{told}");
    let sha = repo.commit(&[("app/backend.yaml", BACKEND.replace("replicas: 1", "replicas: 2").as_str())], &[]);
    world.refresh("asked");
    world.until_well("asked", &sha);
}

//! Events on real clusters: an API server that restarts or gets a new certificate, a second
//! cluster, an unreachable cluster.

use crate::scenarios::world::{World, app_path, config_map, is_well, summary, text};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path};
use tiphys_testkit::{
    Api, ControlPlane, PATIENCE, Repo, Running, apps_path, eventually, namespaced,
};

/// Waves of the disturbed sync.
const WAVES: usize = 8;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/cli lies two folders down")
}

/// The script's control plane; `None`, and skipped, if it was created differently.
fn control_plane(world: &World) -> Option<Running> {
    let running = ControlPlane::of(root(), &world.kubeconfig());
    if running.is_none() {
        tiphys_testkit::skip(
            "control-plane",
            "only a control plane of scripts/control-plane can be restarted",
        );
    }
    running
}

/// A Job of a wave; it must not be created twice.
fn step(wave: usize) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata: {{name: step-{wave}, annotations: {{argocd.argoproj.io/sync-wave: \"{wave}\"}}}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: c, image: \"registry.example.org/step:v1\", command: [sleep, \"1\"]}}]
"
    )
}

fn uids(jobs: &[Value]) -> BTreeMap<String, String> {
    jobs.iter()
        .map(|job| (text(job, "/metadata/name"), text(job, "/metadata/uid")))
        .collect()
}

pub fn an_api_server_restarts_in_mid_sync(world: &mut World) {
    let Some(control_plane) = control_plane(world) else {
        return;
    };
    let files: Vec<_> = (0..WAVES)
        .map(|wave| (format!("app/{wave}.yaml"), step(wave)))
        .collect();
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let repo = Repo::with(&files);
    world.deploy("steps", &repo.url(), "app", &json!({}));
    eventually(PATIENCE, "the third wave has begun", || {
        world
            .find("jobs", "step-2")
            .map(drop)
            .ok_or_else(String::new)
    });
    let before = uids(&world.list("jobs"));
    assert!(before.len() < WAVES, "the sync is still under way");
    control_plane.restart_api_server();
    let app = world.until_well("steps", &repo.head());
    let after = uids(&world.list("jobs"));
    assert_eq!(after.len(), WAVES, "{after:?}");
    assert!(
        before
            .iter()
            .all(|(name, uid)| after.get(name) == Some(uid)),
        "no Job was made anew: {before:?} {after:?}"
    );
    assert_eq!(
        app["status"]["operationState"].get("retryCount"),
        None,
        "it went on, and did not begin again"
    );
    assert_eq!(app["status"]["history"].as_array().map(Vec::len), Some(1));
}

pub fn an_api_server_gets_a_new_certificate(world: &mut World) {
    let Some(control_plane) = control_plane(world) else {
        return;
    };
    let repo = Repo::with(&[("app/cm.yaml", config_map("kept", "1").as_str())]);
    world.deploy("kept", &repo.url(), "app", &json!({"selfHeal": true}));
    world.until_well("kept", &repo.head());
    control_plane.rotate_certificate();
    let sha = repo.commit(&[("app/cm.yaml", &config_map("kept", "2"))], &[]);
    world.refresh("kept");
    world.until_well("kept", &sha);
    assert_eq!(world.value("kept", "value").as_deref(), Some("2"));
    world.delete("configmaps", "kept");
    eventually(PATIENCE, "what was deleted is there again", || {
        world
            .find("configmaps", "kept")
            .map(drop)
            .ok_or_else(String::new)
    });
}

/// The Secret that registers another cluster.
fn cluster_secret(name: &str, kubeconfig: &Path) -> (String, Value) {
    let text = fs::read_to_string(kubeconfig).expect("the script wrote it");
    let field = |name: &str| {
        let (_, rest) = text
            .split_once(&format!("{name}: \""))
            .expect("the script writes it so");
        rest.split_once('"').expect("it ends").0.to_owned()
    };
    let server = field("server");
    let config = json!({"bearerToken": field("token"), "tlsClientConfig": {"caData": field("certificate-authority-data")}});
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "stringData": {"name": name, "server": server, "config": config.to_string()}
    });
    (server, secret)
}

fn value(kube: &Api, namespace: &str) -> Option<String> {
    let object = kube.find(&format!(
        "{}/shared",
        namespaced("v1", namespace, "configmaps")
    ))?;
    object["data"]["value"].as_str().map(str::to_owned)
}

pub fn two_clusters_and_one_goes_away(world: &mut World) {
    let other = ControlPlane::start(root());
    let kube = other.api();
    let name = format!("other-{}", std::process::id());
    let (server, secret) = cluster_secret(&name, &other.kubeconfig);
    world
        .kube
        .create(&namespaced("v1", "argocd", "secrets"), &secret);
    let repo = Repo::with(&[
        ("here/cm.yaml", config_map("shared", "here").as_str()),
        ("there/cm.yaml", config_map("shared", "there").as_str()),
    ]);
    world.deploy("here", &repo.url(), "here", &json!({"selfHeal": true}));
    let mut app = world.application("there", &repo.url(), "there", &json!({"selfHeal": true}));
    app["spec"]["destination"]["server"] = json!(server);
    world.kube.create(&apps_path(), &app);
    world.until_well("here", &repo.head());
    world.until_well("there", &repo.head());
    assert_eq!(
        value(&world.kube, &world.namespace).as_deref(),
        Some("here")
    );
    assert_eq!(value(&kube, &world.namespace).as_deref(), Some("there"));
    drop(other);
    let sha = repo.commit(
        &[
            ("here/cm.yaml", &config_map("shared", "still here")),
            ("there/cm.yaml", &config_map("shared", "away")),
        ],
        &[],
    );
    world.refresh("here");
    world.refresh("there");
    world.until_well("here", &sha);
    assert_eq!(
        value(&world.kube, &world.namespace).as_deref(),
        Some("still here")
    );
    // What was known about the other cluster still is; a change there fails, and is reported.
    let failed = |app: &Value| {
        ["Failed", "Error"].contains(&text(app, "/status/operationState/phase").as_str())
    };
    let app = world.until("there", "failed", |app| {
        failed(app) && text(app, "/status/sync/status") != "Synced"
    });
    assert!(
        text(&app, "/status/operationState/message").contains("refused"),
        "{}",
        summary(&app)
    );
    // Resources that can no longer be deleted must not be waited for.
    world
        .kube
        .merge(
            &app_path("there"),
            &json!({"metadata": {"finalizers": null}}),
        )
        .expect("the first cluster is there");
    world.kube.delete(&app_path("there"));
    world
        .kube
        .delete(&format!("{}/{name}", namespaced("v1", "argocd", "secrets")));
}

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Boat, listKind: BoatList, plural: boats, singular: boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {masts: {type: integer}}}}}}
";
const DEFINITION_PATH: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.example.org";
const BOAT: &str =
    "apiVersion: example.org/v1\nkind: Boat\nmetadata: {name: argo}\nspec: {masts: 1}\n";

pub fn a_definition_and_its_object_come_and_go(world: &mut World) {
    let repo = Repo::with(&[("app/crd.yaml", DEFINITION), ("app/boat.yaml", BOAT)]);
    world.deploy("boats", &repo.url(), "app", &json!({"prune": true}));
    world.until_well("boats", &repo.head());
    let boat = format!(
        "{}/argo",
        namespaced("example.org/v1", &world.namespace, "boats")
    );
    let first = world.kube.find(&boat).expect("both came in one sync");
    // Someone deletes the CRD, and with it every object of the kind.
    world.kube.delete(DEFINITION_PATH);
    let missing = |app: &Value| {
        text(app, "/status/sync/status") == "OutOfSync"
            && text(app, "/status/health/status") == "Missing"
    };
    world.until("boats", "known to lack both", |app| {
        missing(app) && world.kube.find(DEFINITION_PATH).is_none()
    });
    world.sync("boats", &json!({}));
    world.until_well("boats", &repo.head());
    let second = world.kube.find(&boat).expect("both are there again");
    assert_ne!(second["metadata"]["uid"], first["metadata"]["uid"]);
    // Both are removed from Git at once. As in Argo CD, CRDs have no tracking metadata, so they are
    // never pruned.
    let sha = repo.commit(
        &[("app/cm.yaml", &config_map("left", "1"))],
        &["app/crd.yaml", "app/boat.yaml"],
    );
    world.refresh("boats");
    world.until("boats", "without them", |app| is_well(app, &sha));
    assert_eq!(world.kube.find(&boat), None);
    world.kube.delete(DEFINITION_PATH);
}

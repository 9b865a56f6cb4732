//! What must work.

use crate::scenarios::world::{World, app_path, config_map, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tiphys_testkit::{PATIENCE, Repo, apps_path, eventually, namespaced};

fn version_of(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion")
        .parse()
        .expect("these API servers count")
}

pub fn examples_become_well(world: &mut World) {
    for name in ["examples", "chart", "guestbook", "waves"] {
        world.until(name, "Synced and Healthy", |app| {
            text(app, "/status/sync/status") == "Synced"
                && text(app, "/status/health/status") == "Healthy"
        });
    }
    let deployment = world
        .kube
        .get(&format!(
            "{}/chart",
            namespaced("apps/v1", "chart", "deployments")
        ))
        .expect("an answer")
        .body;
    let image = text(&deployment, "/spec/template/spec/containers/0/image");
    assert_eq!(
        (&deployment["spec"]["replicas"], image),
        (&json!(3), "registry.example.org/web:v6".into()),
        "a values file, a parameter"
    );
    let page = world
        .kube
        .get(&format!(
            "{}/chart-page",
            namespaced("v1", "chart", "configmaps")
        ))
        .expect("an answer")
        .body;
    assert_eq!(
        text(&page, "/data/index.html"),
        "<h1>Welcome from chart in chart</h1>\n"
    );
    // On a real cluster the password was shown in the first scenario.
    let Some(rest) = world.tiphys.login() else {
        return;
    };
    let apps = rest.get("/api/v1/applications").expect("an answer");
    let names: BTreeSet<_> = apps.body["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|a| text(a, "/metadata/name"))
        .collect();
    assert_eq!(
        names,
        ["chart", "examples", "guestbook", "waves"]
            .map(str::to_owned)
            .into()
    );
    let nobody = tiphys_testkit::Api::plain(&world.tiphys.url)
        .get("/api/v1/applications")
        .expect("an answer");
    assert_eq!(nobody.status, 401, "without a token: {}", nobody.body);
}

pub fn a_commit_reaches_the_cluster(world: &mut World) {
    let repo = Repo::with(&[
        ("app/a.yaml", config_map("a", "1").as_str()),
        ("app/b.yaml", config_map("b", "1").as_str()),
    ]);
    world.deploy(
        "commit",
        &repo.url(),
        "app",
        &json!({"prune": true, "selfHeal": true}),
    );
    world.until_well("commit", &repo.head());
    let sha = repo.commit(
        &[
            ("app/a.yaml", config_map("a", "2").as_str()),
            ("app/c.yaml", config_map("c", "1").as_str()),
        ],
        &["app/b.yaml"],
    );
    world.refresh("commit");
    let app = world.until_well("commit", &sha);
    let values = ["a", "b", "c"].map(|name| world.value(name, "value"));
    assert_eq!(values, [Some("2".to_owned()), None, Some("1".to_owned())]);
    assert_eq!(
        app.pointer("/status/history")
            .and_then(Value::as_array)
            .map(Vec::len),
        Some(2),
        "{}",
        app["status"]["history"]
    );
    assert_eq!(
        text(&app, "/status/operationState/syncResult/revision"),
        sha
    );
    assert_eq!(
        app.pointer("/metadata/annotations/argocd.argoproj.io~1refresh"),
        None,
        "a refresh that was done is no longer asked for"
    );
}

pub fn a_manual_edit_is_healed(world: &mut World) {
    let repo = Repo::with(&[
        ("app/a.yaml", config_map("a", "git").as_str()),
        ("app/b.yaml", config_map("b", "git").as_str()),
    ]);
    world.deploy("heal", &repo.url(), "app", &json!({"selfHeal": true}));
    world.until_well("heal", &repo.head());
    let uid = |name: &str| {
        text(
            &world.find("configmaps", name).unwrap_or_default(),
            "/metadata/uid",
        )
    };
    let before = [uid("a"), uid("b")];
    world.patch("configmaps", "a", &json!({"data": {"value": "by hand"}}));
    eventually(PATIENCE, "the edit is undone", || {
        match world.value("a", "value").as_deref() {
            Some("git") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    world.delete("configmaps", "b");
    eventually(PATIENCE, "the deleted object is back", || {
        match world.value("b", "value").as_deref() {
            Some("git") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    world.until_well("heal", &repo.head());
    assert_eq!(
        uid("a"),
        before[0],
        "healing changes the object, it does not replace it"
    );
    assert_ne!(uid("b"), before[1]);
    // A field that Git does not set is not drift.
    world.patch(
        "configmaps",
        "a",
        &json!({"metadata": {"labels": {"by": "hand"}}}),
    );
    world.refresh("heal");
    world.until_well("heal", &repo.head());
    let label = world
        .find("configmaps", "a")
        .map(|o| text(&o, "/metadata/labels/by"));
    assert_eq!(label.as_deref(), Some("hand"));
}

pub fn without_prune_a_deleted_file_stays(world: &mut World) {
    let repo = Repo::with(&[
        ("app/a.yaml", config_map("a", "1").as_str()),
        ("app/b.yaml", config_map("b", "1").as_str()),
    ]);
    world.deploy("stay", &repo.url(), "app", &json!({"prune": false}));
    world.until_well("stay", &repo.head());
    let uid = text(
        &world.find("configmaps", "b").expect("deployed"),
        "/metadata/uid",
    );
    let sha = repo.commit(&[], &["app/b.yaml"]);
    world.refresh("stay");
    let marked = |app: &Value| {
        let resources = app
            .pointer("/status/resources")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        text(app, "/status/sync/status") == "OutOfSync"
            && text(app, "/status/sync/revision") == sha
            && resources.iter().any(|r| {
                r["name"] == "b" && r["requiresPruning"] == true && r["status"] == "OutOfSync"
            })
            && resources.iter().any(|r| {
                r["name"] == "a" && r["requiresPruning"] != true && r["status"] == "Synced"
            })
    };
    world.until("stay", "OutOfSync with b to be pruned", marked);
    world.sync("stay", &json!({}));
    let app = world.until("stay", "synced by hand", |app| {
        app.get("operation").is_none()
            && text(app, "/status/operationState/phase") == "Succeeded"
            && text(app, "/status/operationState/syncResult/revision") == sha
    });
    let results = app
        .pointer("/status/operationState/syncResult/resources")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    assert!(
        results
            .iter()
            .any(|r| r["name"] == "b" && r["status"] == "PruneSkipped"),
        "{results:?}"
    );
    assert_eq!(
        text(
            &world.find("configmaps", "b").expect("it stays"),
            "/metadata/uid"
        ),
        uid
    );
    world.until("stay", "still OutOfSync", marked);
    world.sync("stay", &json!({"prune": true}));
    world.until_well("stay", &sha);
    assert_eq!(world.find("configmaps", "b"), None);
}

const HOOK: &str = "apiVersion: batch/v1
kind: Job
metadata:
  generateName: before-
  annotations:
    argocd.argoproj.io/hook: PreSync
    argocd.argoproj.io/hook-delete-policy: HookFailed
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: c, image: registry.example.org/hook:v1, command: [\"true\"]}
";

pub const BACKEND: &str = "apiVersion: apps/v1
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

fn in_wave(name: &str, wave: i64) -> String {
    let annotations =
        format!("metadata:\n  annotations:\n    argocd.argoproj.io/sync-wave: \"{wave}\"\n");
    config_map(name, "1").replace("metadata:\n", &annotations)
}

pub fn hooks_run_once_and_waves_in_order(world: &mut World) {
    // Named against the order of the waves, so that alphabetical order would be wrong.
    let (last, first) = (in_wave("a-last", 1), in_wave("z-first", -1));
    let repo = Repo::with(&[
        ("app/hook.yaml", HOOK),
        ("app/1.yaml", last.as_str()),
        ("app/2.yaml", BACKEND),
        ("app/3.yaml", first.as_str()),
    ]);
    let sha = repo.head();
    world.deploy("waves", &repo.url(), "app", &json!({"prune": true}));
    world.until_well("waves", &sha);
    let jobs = world.list("jobs");
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    let get = |plural: &str, name: &str| {
        world
            .find(plural, name)
            .unwrap_or_else(|| panic!("{plural} {name} is missing"))
    };
    let (first, backend, last) = (
        get("configmaps", "z-first"),
        get("deployments", "backend"),
        get("configmaps", "a-last"),
    );
    let created = |o: &Value| text(o, "/metadata/creationTimestamp");
    // Times are RFC 3339 in whole seconds of one clock, so they compare as text.
    assert!(
        text(&jobs[0], "/status/completionTime") <= created(&first),
        "the hook ends before anything is applied"
    );
    assert!(
        version_of(&first) < version_of(&last),
        "wave -1 is written before wave 1"
    );
    assert!(created(&first) <= created(&backend) && created(&backend) <= created(&last));
    let conditions = backend
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let available = conditions
        .iter()
        .find(|c| c["type"] == "Available")
        .map(|c| text(c, "/lastTransitionTime"))
        .unwrap_or_default();
    assert!(
        !available.is_empty() && available <= created(&last),
        "wave 1 waits until wave 0 is healthy: {available} {}",
        created(&last)
    );
    // Every further sync runs it again, and a refresh does not.
    world.refresh("waves");
    world.until("waves", "refreshed", |app| {
        app.pointer("/metadata/annotations/argocd.argoproj.io~1refresh")
            .is_none()
    });
    assert_eq!(world.list("jobs").len(), 1);
    world.sync("waves", &json!({}));
    eventually(PATIENCE, "the second sync is done", || {
        let app = world.get_app("waves").expect("it is there");
        let history = app
            .pointer("/status/history")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        if history == 2 && app.get("operation").is_none() {
            Ok(())
        } else {
            Err(crate::scenarios::world::summary(&app))
        }
    });
    let jobs = world.list("jobs");
    let operations: BTreeSet<_> = jobs
        .iter()
        .map(|j| text(j, "/metadata/annotations/tiphys.dev~1operation-id"))
        .collect();
    assert_eq!((jobs.len(), operations.len()), (2, 2), "{jobs:?}");
}

pub fn deleting_an_application_takes_its_objects(world: &mut World) {
    let repo = Repo::with(&[
        ("gone/cm.yaml", config_map("gone", "1").as_str()),
        ("gone/backend.yaml", BACKEND),
        ("stays/cm.yaml", config_map("stays", "1").as_str()),
    ]);
    world.deploy("gone", &repo.url(), "gone", &json!({"prune": true}));
    let mut app = world.application("stays", &repo.url(), "stays", &json!({"prune": true}));
    app["metadata"]["finalizers"] = Value::Null;
    world.kube.create(&tiphys_testkit::apps_path(), &app);
    for name in ["gone", "stays"] {
        world.until_well(name, &repo.head());
    }
    for name in ["gone", "stays"] {
        world.kube.delete(&app_path(name));
    }
    eventually(PATIENCE, "both Applications are gone", || {
        let left: Vec<_> = ["gone", "stays"]
            .into_iter()
            .filter_map(|n| world.get_app(n))
            .map(|a| crate::scenarios::world::summary(&a))
            .collect();
        if left.is_empty() {
            Ok(())
        } else {
            Err(left.join("\n"))
        }
    });
    assert_eq!(
        world.find("configmaps", "gone"),
        None,
        "the finalizer goes after the objects"
    );
    assert_eq!(world.find("deployments", "backend"), None);
    eventually(PATIENCE, "the pods are gone", || {
        match world.list("pods").len() {
            0 => Ok(()),
            n => Err(format!("{n} left")),
        }
    });
    assert!(
        world.find("configmaps", "stays").is_some(),
        "without a finalizer the objects stay"
    );
}

/// A set of folders: one Application for each, which comes and goes with it.
pub fn an_application_set_deploys_each_folder(world: &mut World) {
    let repo = Repo::with(&[
        ("sets/red/c.yaml", &config_map("set-red", "1")),
        ("sets/blue/c.yaml", &config_map("set-blue", "1")),
    ]);
    let namespace = world.namespace.clone();
    let set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "folders", "namespace": "argocd"},
        "spec": {
            "goTemplate": true,
            "generators": [{"git": {
                "repoURL": repo.url(), "revision": "HEAD", "requeueAfterSeconds": 1,
                "directories": [{"path": "sets/*"}],
            }}],
            "template": {
                "metadata": {"name": "of-{{.path.basename}}"},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": repo.url(), "path": "{{.path.path}}", "targetRevision": "HEAD"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
                    "syncPolicy": {
                        "automated": {"prune": true},
                        "syncOptions": ["CreateNamespace=true"],
                    },
                },
            },
        },
    });
    let sets = namespaced("argoproj.io/v1alpha1", "argocd", "applicationsets");
    world.kube.create(&sets, &set);
    for name in ["of-red", "of-blue"] {
        world.until(name, "Synced and Healthy", |app| {
            text(app, "/status/sync/status") == "Synced"
                && text(app, "/status/health/status") == "Healthy"
        });
    }
    repo.commit(&[], &["sets/blue/c.yaml"]);
    let is_gone = |app: &str, object: &str| match world.get_app(app).is_none()
        && world.find("configmaps", object).is_none()
    {
        true => Ok(()),
        false => Err(format!("{app} or {object} is there")),
    };
    eventually(PATIENCE, "the objects of a folder go with it", || {
        is_gone("of-blue", "set-blue")
    });
    assert!(world.get_app("of-red").is_some());
    world.kube.delete(&format!("{sets}/folders"));
    eventually(PATIENCE, "a set takes its Applications with it", || {
        is_gone("of-red", "set-red")
    });
}

pub fn a_dry_source_is_hydrated_and_synced(world: &mut World) {
    let repo = Repo::with(&[("src/cm.yaml", &config_map("page", "1"))]);
    let mut app = world.application("hydrated", &repo.url(), "src", &json!({}));
    let spec = app["spec"].as_object_mut().expect("a map");
    spec.remove("source");
    spec["destination"]["namespace"] = json!(world.namespace);
    let hydrator = json!({
        "drySource": {"repoURL": repo.url(), "path": "src", "targetRevision": "main"},
        "syncSource": {"targetBranch": "env/dev", "path": "apps/page"},
    });
    spec.insert("sourceHydrator".to_owned(), hydrator);
    world.kube.create(&apps_path(), &app);
    let until = |value: &str, dry: &str| {
        world.until("hydrated", &format!("synced from {dry}"), |app| {
            let state = "/status/sourceHydrator/currentOperation";
            let hydrated = text(app, &format!("{state}/hydratedSHA"));
            text(app, &format!("{state}/phase")) == "Hydrated"
                && text(app, &format!("{state}/drySHA")) == dry
                && text(app, "/status/sync/status") == "Synced"
                && text(app, "/status/sync/revision") == hydrated
                && text(app, "/status/operationState/phase") == "Succeeded"
                && world.value("page", "value").as_deref() == Some(value)
        })
    };
    let app = until("1", &repo.head());
    assert_eq!(
        text(&app, "/status/sync/comparedTo/source/path"),
        "apps/page",
        "what is synced is compared"
    );
    assert!(
        app["spec"].get("source").is_none(),
        "the spec is the user's"
    );
    let second = repo.commit(&[("src/cm.yaml", &config_map("page", "2"))], &[]);
    world.refresh("hydrated");
    until("2", &second);
}

//! The effect of an Application's own comparison rules.

use crate::scenarios::{
    good::BACKEND,
    pods::password,
    world::{World, config_map, program, text},
};
use serde_json::{Value, json};
use tiphys_testkit::{PATIENCE, Repo, apps_path, eventually, namespaced, output_of};

pub fn respected_differences_outlive_a_sync(world: &mut World) {
    let repo = Repo::with(&[("app/backend.yaml", BACKEND)]);
    let mut app = world.application("respect", &repo.url(), "app", &json!({"selfHeal": true}));
    app["spec"]["ignoreDifferences"] =
        json!([{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}]);
    app["spec"]["syncPolicy"]["syncOptions"] =
        json!(["CreateNamespace=true", "RespectIgnoreDifferences=true"]);
    world.kube.create(&apps_path(), &app);
    world.until_well("respect", &repo.head());
    world.patch("deployments", "backend", &json!({"spec": {"replicas": 3}}));
    let sha = repo.commit(
        &[(
            "app/backend.yaml",
            BACKEND.replace("backend:v1", "backend:v2").as_str(),
        )],
        &[],
    );
    world.refresh("respect");
    world.until_well("respect", &sha);
    let live = world.find("deployments", "backend").expect("it is there");
    assert_eq!(
        live["spec"]["replicas"], 3,
        "the sync left what is ignored as it was"
    );
    assert_eq!(
        live["spec"]["template"]["spec"]["containers"][0]["image"],
        "registry.example.org/backend:v2"
    );
}

pub fn the_api_server_says_what_differs(world: &mut World) {
    let repo = Repo::with(&[("app/backend.yaml", BACKEND)]);
    let mut app = world.application("asked", &repo.url(), "app", &json!({"selfHeal": true}));
    app["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/compare-options": "ServerSideDiff=true"});
    world.kube.create(&apps_path(), &app);
    let first = repo.head();
    world.until_well("asked", &first);
    world.patch("deployments", "backend", &json!({"spec": {"replicas": 2}}));
    eventually(PATIENCE, "the edit is undone", || {
        match &world.find("deployments", "backend").expect("it is there")["spec"]["replicas"] {
            Value::Number(n) if n.as_u64() == Some(1) => Ok(()),
            other => Err(other.to_string()),
        }
    });
    // An object that the API server would refuse is detected before anything is applied.
    repo.commit(
        &[(
            "app/backend.yaml",
            BACKEND.replace("{app: backend}", "{app: other}").as_str(),
        )],
        &[],
    );
    world.refresh("asked");
    let app = world.until("asked", "refused", |app| {
        text(app, "/status/sync/status") == "Unknown"
    });
    let conditions = app
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let told = conditions
        .iter()
        .find(|c| c["type"] == "ComparisonError")
        .map(|c| text(c, "/message"))
        .unwrap_or_default();
    let begin = "Failed to compare desired state to live state: failed to calculate diff: error calculating server side diff: \
        serverSideDiff error: error running server side apply in dryrun mode for resource Deployment/backend: ";
    assert!(
        told.starts_with(begin) && told.contains("field is immutable"),
        "{told}"
    );
    let sha = repo.commit(
        &[(
            "app/backend.yaml",
            BACKEND.replace("replicas: 1", "replicas: 2").as_str(),
        )],
        &[],
    );
    world.refresh("asked");
    world.until_well("asked", &sha);

    // The command line asks the API server, too: no default that it adds is a difference.
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config").display().to_string();
    let run = |words: &[&str]| output_of(&program(), &[words, &["--config", &config]].concat());
    let (address, password) = (
        world.tiphys.url.trim_start_matches("http://"),
        password(world),
    );
    let who = ["--username", "admin", "--password", &password];
    let login = run(&[&["login", address, "--plaintext"][..], &who].concat());
    assert_eq!(login.code, Some(0), "{login:?}");
    let diff = ["app", "diff", "asked", "--revision", &first];
    for more in [&[][..], &["--server-side-diff-max-batch-kb", "0"]] {
        let found = run(&[&diff[..], more].concat());
        assert_eq!(found.code, Some(1), "{found:?}");
        let changed: Vec<&str> = found
            .stdout
            .lines()
            .filter(|line| line.starts_with(['<', '>']))
            .collect();
        assert_eq!(changed, ["<   replicas: 2", ">   replicas: 1"], "{found:?}");
    }
    let refused = run(&[&diff[..], &["--server-side-diff-concurrency=0"]].concat());
    assert_eq!(refused.code, Some(20), "{refused:?}");
    let same = run(&["app", "diff", "asked"]);
    assert_eq!(same.code, Some(0), "{same:?}");
}

pub fn sync_windows_hold_syncs_back(world: &mut World) {
    let repo = Repo::with(&[("app/cm.yaml", config_map("held", "1").as_str())]);
    let projects = namespaced("argoproj.io/v1alpha1", "argocd", "appprojects");
    let always = json!({"kind": "deny", "schedule": "* * * * *", "duration": "24h", "applications": ["held"]});
    let spec = json!({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}], "syncWindows": [always]});
    let project = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "windows"}, "spec": spec});
    world.kube.create(&projects, &project);
    let mut app = world.application("held", &repo.url(), "app", &json!({}));
    app["spec"]["project"] = "windows".into();
    world.kube.create(&apps_path(), &app);
    let still = |app: &Value| {
        text(app, "/status/sync/status") == "OutOfSync" && app.get("operation").is_none()
    };
    world.until("held", "OutOfSync and not synced", still);
    // A user's sync waits as well, and can be terminated.
    world.sync("held", &json!({}));
    let blocked = |app: &Value| {
        text(app, "/status/operationState/message") == "Sync operation blocked by sync window"
    };
    let app = world.until("held", "blocked", blocked);
    assert_eq!(text(&app, "/status/operationState/phase"), "Running");
    assert_eq!(world.value("held", "value"), None, "nothing was applied");
    world.change_app(
        "held",
        &json!({"status": {"operationState": {"phase": "Terminating"}}}),
    );
    world.until("held", "ended", |app| {
        app.get("operation").is_none() && text(app, "/status/operationState/phase") == "Failed"
    });
    // A window with manual syncs allowed blocks only automatic ones.
    let windows = |list: Value| {
        world.kube.patch(
            &format!("{projects}/windows"),
            &json!({"spec": {"syncWindows": list}}),
        )
    };
    let mut manual = always.clone();
    manual["manualSync"] = true.into();
    windows(json!([manual]));
    world.refresh("held");
    world.until("held", "OutOfSync and not synced", still);
    world.sync("held", &json!({"syncOptions": ["CreateNamespace=true"]}));
    world.until_well("held", &repo.head());
    let sha = repo.commit(&[("app/cm.yaml", config_map("held", "2").as_str())], &[]);
    world.refresh("held");
    world.until("held", "OutOfSync again", |app| {
        still(app) && text(app, "/status/sync/revision") == sha
    });
    windows(json!([]));
    world.until_well("held", &sha);
    assert_eq!(world.value("held", "value").as_deref(), Some("2"));
}

pub fn orphans_are_counted(world: &mut World) {
    let repo = Repo::with(&[
        ("one/cm.yaml", config_map("one", "1").as_str()),
        ("two/cm.yaml", config_map("two", "1").as_str()),
    ]);
    let projects = namespaced("argoproj.io/v1alpha1", "argocd", "appprojects");
    let spec = json!({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}], "orphanedResources": {"warn": true, "ignore": [{"kind": "ConfigMap", "name": "known-*"}]}});
    let project = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "orphans"}, "spec": spec});
    world.kube.create(&projects, &project);
    for name in ["one", "two"] {
        let mut app = world.application(name, &repo.url(), name, &json!({}));
        app["spec"]["project"] = "orphans".into();
        world.kube.create(&apps_path(), &app);
        world.until_well(name, &repo.head());
    }
    let warning = |app: &Value| {
        let conditions = app
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        conditions
            .iter()
            .find(|c| c["type"] == "OrphanedResourceWarning")
            .map(|c| text(c, "/message").to_owned())
    };
    // Each other's resources, the namespace's default objects and ignored objects are not orphans.
    let create = |name: &str| {
        let path = namespaced("v1", &world.namespace, "configmaps");
        world.kube.create(
            &path,
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}),
        );
    };
    create("known-one");
    create("left");
    for name in ["one", "two"] {
        world.until(name, "one orphan", |app| {
            warning(app).as_deref() == Some("Application has 1 orphaned resources")
        });
    }
    create("also-left");
    world.until("one", "two orphans", |app| {
        warning(app).as_deref() == Some("Application has 2 orphaned resources")
    });
    let change = |orphans: Value| {
        world.kube.patch(
            &format!("{projects}/orphans"),
            &json!({"spec": {"orphanedResources": orphans}}),
        )
    };
    change(json!({"ignore": [{"kind": "ConfigMap", "name": "*"}]}));
    world.until("one", "no orphan", |app| warning(app).is_none());
    change(json!({"ignore": null}));
    world.until("one", "three orphans", |app| {
        warning(app).as_deref() == Some("Application has 3 orphaned resources")
    });
    change(Value::Null);
    world.until("one", "nothing told", |app| warning(app).is_none());
}

pub fn a_sync_that_takes_too_long_is_ended(world: &mut World) {
    let params = format!(
        "{}/argocd-cmd-params-cm",
        namespaced("v1", "argocd", "configmaps")
    );
    world.kube.patch(
        &params,
        &json!({"data": {"controller.sync.timeout.seconds": "2"}}),
    );
    let slow = "apiVersion: batch/v1
kind: Job
metadata:
  name: slow
  annotations: {argocd.argoproj.io/hook: PreSync}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: registry.example.org/hook:v1, command: [sleep, \"600\"]}]
";
    let repo = Repo::with(&[
        ("app/slow.yaml", slow),
        ("app/cm.yaml", config_map("late", "1").as_str()),
    ]);
    world.deploy("late", &repo.url(), "app", &json!({}));
    let ended = |app: &Value| {
        app.get("operation").is_none() && text(app, "/status/operationState/phase") == "Failed"
    };
    let app = world.until("late", "ended", ended);
    assert_eq!(
        text(&app, "/status/operationState/message"),
        "Operation terminated, triggered by controller sync timeout"
    );
    assert_eq!(
        world.value("late", "value"),
        None,
        "what comes after the hook was not applied"
    );
    world.kube.patch(
        &params,
        &json!({"data": {"controller.sync.timeout.seconds": null}}),
    );
}

//! Commands that ask the Kubernetes API itself: those of `admin`, and others with `--core`.

use crate::scenarios::{
    admin::Plane,
    world::{World, config_map, program},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tempfile::TempDir;
use tiphys_gocompat::yaml;
use tiphys_testkit::{Ended, Repo, namespaced};

/// A command with the test's kubeconfig and a home of its own.
fn attempt(kubeconfig: &Path, home: &Path, words: &[&str]) -> Ended {
    let mut command = Command::new(program());
    command.args(words).stdin(Stdio::null());
    command.env("KUBECONFIG", kubeconfig).env("HOME", home);
    for name in ["ARGOCD_SERVER", "ARGOCD_AUTH_TOKEN", "ARGOCD_OPTS"] {
        command.env_remove(name);
    }
    let output = command.output().expect("the program starts");
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The output of a command that must succeed.
#[track_caller]
fn output(kubeconfig: &Path, home: &Path, words: &[&str]) -> String {
    let ended = attempt(kubeconfig, home, words);
    assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
    ended.stdout
}

pub fn commands_of_administrators_read_and_change_the_cluster(world: &mut World) {
    let repo = Repo::with(&[("app/cm.yaml", &config_map("a", "1"))]);
    world.deploy("verbs", &repo.url(), "app", &json!({}));
    world.until_well("verbs", &repo.head());
    let (kubeconfig, folder) = (world.kubeconfig(), TempDir::new().expect("a folder"));
    let path = |name: &str| folder.path().join(name).to_str().expect("plain").to_owned();
    let run = |words: &[&str]| output(&kubeconfig, folder.path(), words);

    let stats = run(&[
        "admin",
        "cluster",
        "stats",
        "-n",
        "argocd",
        "--replicas",
        "2",
    ]);
    let row: Vec<&str> = stats
        .lines()
        .nth(1)
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    assert_eq!(
        row[..3],
        ["https://kubernetes.default.svc", "0", "Successful"],
        "{stats}"
    );
    let count: u64 = row.last().and_then(|n| n.parse().ok()).unwrap_or_default();
    assert!(count > 5, "{stats}");
    let words = [
        "admin",
        "cluster",
        "shards",
        "-n",
        "argocd",
        "--replicas",
        "2",
    ];
    let shards = run(&words);
    assert!(
        shards.starts_with("SHARD  RESOURCES COUNT  % OF TOTAL"),
        "{shards}"
    );
    assert!(shards.contains("\n1      0"), "{shards}");

    let (before, after) = (path("before.yaml"), path("after.json"));
    run(&[
        "admin",
        "app",
        "get-reconcile-results",
        &before,
        "-n",
        "argocd",
    ]);
    let printed = run(&[
        "admin",
        "app",
        "get-reconcile-results",
        &after,
        "-n",
        "argocd",
        "--refresh",
        "--o",
        "json",
    ]);
    assert!(printed.starts_with("Reconciling apps of https://kubernetes.default.svc\n"));
    let read: Value = serde_json::from_slice(&fs::read(&after).expect("written")).expect("JSON");
    assert_eq!(read["applications"][0]["name"], "verbs");
    assert_eq!(read["applications"][0]["sync"]["status"], "Synced");
    let differences = run(&["admin", "app", "diff-reconcile-results", &before, &after]);
    assert_eq!(differences, "verbs\n");

    let written = path("kubeconfig");
    run(&[
        "admin",
        "cluster",
        "kubeconfig",
        "https://kubernetes.default.svc",
        &written,
        "-n",
        "argocd",
    ]);
    let text = fs::read_to_string(&written).expect("written");
    assert!(
        text.contains("current-context: https://kubernetes.default.svc"),
        "{text}"
    );
    let words = ["admin", "cluster", "kubeconfig", "https://gone:1", &written];
    let ended = attempt(&kubeconfig, folder.path(), &words);
    assert_eq!(ended.code, Some(20), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("cluster \\\"https://gone:1\\\" not found"),
        "{ended:?}"
    );

    policies_are_changed(world, &run);
    kinds_are_listed(&path("role.yaml"), &run);
}

fn kinds_are_listed(role: &str, run: &impl Fn(&[&str]) -> String) {
    let rules = "kind: ClusterRole\nrules:\n- apiGroups: [apps]\n  resources: [deployments, \
                 nothing]\n  verbs: [get, create]\n- apiGroups: ['']\n  resources: [pods]\n  \
                 verbs: [get]\n";
    fs::write(role, rules).expect("written");
    let list = run(&["admin", "proj", "generate-allow-list", role, "team"]);
    assert!(
        list.contains("  namespaceResourceWhitelist:\n  - group: apps\n    kind: Deployment\n")
            && !list.contains("Pod"),
        "{list}"
    );
}

fn policies_are_changed(world: &World, run: &impl Fn(&[&str]) -> String) {
    let projects = namespaced("argoproj.io/v1alpha1", "argocd", "appprojects");
    let project = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "verbs"}, "spec": {"roles": [{"name": "deployer"}]}});
    world.kube.create(&projects, &project);
    let words = [
        "admin",
        "proj",
        "update-role-policy",
        "verb*",
        "set",
        "action/*",
    ];
    let flags = [
        "--resource",
        "applications",
        "--scope",
        "*",
        "--permission",
        "allow",
    ];
    let words = [&words[..], &flags, &["-n", "argocd"]].concat();
    let policy = "p, proj:verbs:deployer, applications, action/*, verbs/*, allow";
    let is_stored = || {
        let stored = world
            .kube
            .find(&format!("{projects}/verbs"))
            .expect("it is there");
        stored["spec"]["roles"][0]["policies"] == json!([policy])
    };
    let shown = run(&words);
    assert!(
        shown.starts_with("===== verbs ======\n") && shown.contains(policy),
        "{shown}"
    );
    assert!(!is_stored(), "it was only shown");
    run(&[&words[..], &["--dry-run=false"]].concat());
    assert!(is_stored());
}

pub fn commands_need_no_server(world: &mut World) {
    let repo = Repo::with(&[("app/cm.yaml", &config_map("a", "1"))]);
    world.deploy("headless", &repo.url(), "app", &json!({}));
    world.until_well("headless", &repo.head());
    let (kubeconfig, home) = (world.kubeconfig(), TempDir::new().expect("a folder"));
    let run = |words: &[&str]| output(&kubeconfig, home.path(), words);

    assert_eq!(
        run(&["app", "list", "-o", "name", "--core"]),
        "argocd/headless\n"
    );
    let unknown = attempt(&kubeconfig, home.path(), &["app", "get", "none", "--core"]);
    assert_eq!(unknown.code, Some(20), "{unknown:?}");
    let context = run(&["login", "--core"]);
    assert_eq!(context, "Context 'kubernetes' updated\n");
    let app: Value =
        serde_json::from_str(&run(&["app", "get", "headless", "-o", "json"])).expect("JSON");
    assert_eq!(app["status"]["sync"]["status"], "Synced");
    run(&["app", "set", "headless", "--revision-history-limit", "3"]);
    run(&["app", "sync", "headless", "--async"]);
    world.until("headless", "it was synced by hand", |app| {
        app["spec"]["revisionHistoryLimit"] == 3
            && app["status"]["operationState"]["phase"] == "Succeeded"
    });
    assert_eq!(run(&["proj", "list", "-o", "name"]), "default\n");

    // Report 21: the rights of the kubeconfig decide, also in other namespaces.
    let mut other = world.application("web", &repo.url(), "app", &json!({}));
    other["metadata"]["finalizers"] = json!([]);
    other["spec"]["project"] = "outside".into();
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "outside"},
        "spec": {"sourceRepos": ["*"], "sourceNamespaces": [world.namespace],
            "destinations": [{"server": "*", "namespace": "*"}]},
    });
    let projects = namespaced("argoproj.io/v1alpha1", "argocd", "appprojects");
    world.kube.create(&projects, &project);
    let others = namespaced("argoproj.io/v1alpha1", &world.namespace, "applications");
    world.kube.create(&others, &other);
    let name = format!("{}/web", world.namespace);
    let shown = run(&["app", "get", &name, "--core", "-o", "json"]);
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["metadata"]["namespace"], *world.namespace);

    // Where no installation is, no Applications are not the answer.
    let elsewhere = in_namespace(&kubeconfig, home.path(), "kube-public");
    let nowhere = attempt(&elsewhere, home.path(), &["app", "list", "--core"]);
    assert_eq!(nowhere.code, Some(20), "{nowhere:?}");
    for part in ["argocd-cm", "kube-public", "set-context"] {
        assert!(nowhere.stderr.contains(part), "{nowhere:?}");
    }
    let version = output(&elsewhere, home.path(), &["version", "--client", "--short"]);
    assert!(version.starts_with("tiphys: "), "{version}");

    page_is_served(&kubeconfig, home.path());
}

/// The same kubeconfig with another namespace in its context.
fn in_namespace(kubeconfig: &Path, home: &Path, namespace: &str) -> PathBuf {
    let text = fs::read_to_string(kubeconfig).expect("it is there");
    let parsed = yaml::parse_document(&text, &yaml::Limits::default(), yaml::Duplicates::LastWins);
    let mut config = parsed.expect("a kubeconfig");
    for context in config["contexts"].as_array_mut().expect("contexts") {
        context["context"]["namespace"] = namespace.into();
    }
    let path = home.join(format!("{namespace}.kubeconfig"));
    fs::write(&path, config.to_string()).expect("written");
    path
}

/// The dashboard's page, until it is told to end.
fn page_is_served(kubeconfig: &Path, home: &Path) {
    let mut command = Command::new(program());
    command
        .args(["admin", "dashboard", "--port", "0", "--kubeconfig"])
        .arg(kubeconfig);
    command
        .env("HOME", home)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut plane = Plane(command.spawn().expect("the program starts"));
    let child = &mut plane.0;
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    out.read_line(&mut line).expect("a line");
    let address = line
        .trim()
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    assert!(
        line.starts_with("Argo CD UI is available at http://localhost:"),
        "{line}"
    );
    let mut stream = TcpStream::connect(&address).expect("the port is open");
    let request = "GET /api/v1/applications?fields=items.metadata.name HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("headless"),
        "{answer}"
    );
    let id = child.id().to_string();
    let told = Command::new("kill").args(["-TERM", &id]).status();
    assert!(told.expect("kill is installed").success());
    assert!(child.wait().expect("it ends").success());
    let mut told = String::new();
    child
        .stderr
        .take()
        .expect("piped")
        .read_to_string(&mut told)
        .expect("text");
    assert_eq!(
        told,
        "starting dashboard\nsignal received, shutting down dashboard\nclean shutdown\n"
    );
}

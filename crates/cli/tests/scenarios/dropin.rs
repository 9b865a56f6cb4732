//! The program under the name of Argo CD's controller, with the environment of Argo CD's manifests:
//! a role without leases, variables, a repo-server.

use crate::scenarios::{
    admin::{Plane, as_somebody, get},
    renderer::{REVISION, repo_server},
    world::{World, program, text},
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
};
use tempfile::TempDir;
use tiphys_testkit::{Ended, PATIENCE, eventually, free_port, namespaced, output_of};

const CONTROLLER: &str = "argocd-application-controller";
const APPLICATION_SETS: &str = "argocd-applicationset-controller";

/// The program under another name.
pub struct Named {
    folder: TempDir,
    name: &'static str,
}

impl Named {
    fn new() -> Self {
        Self::called(CONTROLLER)
    }

    pub fn called(name: &'static str) -> Self {
        let folder = TempDir::new().expect("a folder");
        symlink(program(), folder.path().join(name)).expect("a link");
        Self { folder, name }
    }

    pub fn start(&self, kubeconfig: &Path, words: &[&str], variables: &[(&str, &str)]) -> Plane {
        let mut command = Command::new(self.folder.path().join(self.name));
        command
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .envs(variables.iter().copied());
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .expect("a file");
        Plane(
            command
                .stdin(Stdio::null())
                .stdout(log.try_clone().expect("a file"))
                .stderr(log)
                .spawn()
                .expect("it starts"),
        )
    }

    fn log(&self) -> std::path::PathBuf {
        self.folder.path().join("log")
    }

    pub fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }
}

/// A namespace like that of an Argo CD installation, and a service account with the controller's
/// permissions from Argo CD's manifests for one namespace, plus ConfigMaps everywhere; returns its
/// token.
pub fn installation(world: &World, place: &str) -> String {
    let kube = &world.kube;
    kube.namespace(place);
    let maps = namespaced("v1", place, "configmaps");
    for name in ["argocd-cm", "argocd-cmd-params-cm"] {
        kube.create(
            &maps,
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}),
        );
    }
    let project =
        json!({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]});
    kube.create(
        &namespaced("argoproj.io/v1alpha1", place, "appprojects"),
        &json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"}, "spec": project}),
    );
    let accounts = namespaced("v1", place, "serviceaccounts");
    kube.create(
        &accounts,
        &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": CONTROLLER}}),
    );
    let rbac = "rbac.authorization.k8s.io/v1";
    let role = json!({"apiVersion": rbac, "kind": "Role", "metadata": {"name": CONTROLLER}, "rules": [
        {"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["argoproj.io"], "resources": ["applications", "applicationsets", "appprojects"],
         "verbs": ["create", "get", "list", "watch", "update", "patch", "delete"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "list"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch"]}]});
    kube.create(&namespaced(rbac, place, "roles"), &role);
    let subjects = json!([{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": place}]);
    let bind = |kind: &str, of: &str| {
        let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": of, "name": if of == "Role" { CONTROLLER } else { place }});
        json!({"apiVersion": rbac, "kind": kind, "metadata": {"name": place}, "roleRef": reference, "subjects": subjects})
    };
    kube.create(
        &namespaced(rbac, place, "rolebindings"),
        &bind("RoleBinding", "Role"),
    );
    let wide = json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": place}, "rules": [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]});
    kube.create(&format!("/apis/{rbac}/clusterroles"), &wide);
    kube.create(
        &format!("/apis/{rbac}/clusterrolebindings"),
        &bind("ClusterRoleBinding", "ClusterRole"),
    );
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    text(
        &kube.create(&format!("{accounts}/{CONTROLLER}/token"), &request),
        "/status/token",
    )
}

pub fn remove(world: &World, place: &str) {
    for plural in ["clusterroles", "clusterrolebindings"] {
        let _ = world.kube.send(
            "DELETE",
            &format!("/apis/rbac.authorization.k8s.io/v1/{plural}/{place}"),
            "",
            None,
        );
    }
    let _ = world
        .kube
        .send("DELETE", &format!("/api/v1/namespaces/{place}"), "", None);
}

pub fn the_controllers_place_is_taken(world: &mut World) {
    let place = format!("cd-{}", world.namespace);
    let token = installation(world, &place);
    let named = Named::new();
    let own = named.folder.path().join("kubeconfig");
    as_somebody(&world.kubeconfig(), &token, &own);
    let (_renderer, address) = repo_server(|_| {
        vec![json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rendered"}})]
    });
    let metrics = free_port();
    let mut plane = named.start(
        &own,
        &[
            "-n",
            &place,
            "--metrics-port",
            &metrics.to_string(),
            "--operation-processors=25",
            "--self-heal-timeout-seconds",
            "5",
        ],
        &[
            ("ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER", &address),
            (
                "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_PLAINTEXT",
                "true",
            ),
            ("ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_CA_CERT_PATH", ""),
            ("REDIS_SERVER", "127.0.0.1:1"),
            ("REDIS_PASSWORD", "a-password"),
            ("ARGOCD_CONTROLLER_REPLICAS", "1"),
            ("ARGOCD_RECONCILIATION_TIMEOUT", "never"),
            ("ARGOCD_K8S_CLIENT_QPS", "50"),
            // Variables of other roles, which this one ignores.
            ("ARGOCD_SERVER_LISTEN_ADDRESS", "nowhere"),
        ],
    );
    let mut app = world.application(
        "rendered",
        "https://git.example.test/kustomized.git",
        "app",
        &json!({}),
    );
    app["metadata"]["finalizers"] = Value::Null;
    app["spec"]["destination"]["namespace"] = json!(place);
    app["spec"]["syncPolicy"]["syncOptions"] = Value::Null;
    let apps = namespaced("argoproj.io/v1alpha1", &place, "applications");
    world.kube.create(&apps, &app);
    eventually(PATIENCE, "the Application is synced", || {
        let app = world
            .kube
            .find(&format!("{apps}/rendered"))
            .unwrap_or_default();
        let well = text(&app, "/status/sync/status") == "Synced"
            && text(&app, "/status/sync/revision") == REVISION;
        if well {
            Ok(())
        } else {
            Err(format!("{app}\n{}", named.said()))
        }
    });
    assert!(
        world
            .kube
            .find(&format!(
                "{}/rendered",
                namespaced("v1", &place, "configmaps")
            ))
            .is_some()
    );
    assert!(get(metrics, "/healthz").ends_with("ok\n"));
    assert!(get(metrics, "/metrics").contains(&format!(
        "argocd_app_info{{namespace=\"{place}\",name=\"rendered\""
    )));

    let said = named.said();
    let one = |text: &str| assert_eq!(said.matches(text).count(), 1, "{text}: {said}");
    one("\"names\":\"operation-processors,ARGOCD_K8S_CLIENT_QPS\"");
    one("ARGOCD_RECONCILIATION_TIMEOUT is \\\"never\\\", which cannot be read");
    one("this user may not create leases");
    assert!(!said.contains("a-password"), "{said}");
    assert!(
        Command::new("kill")
            .arg(plane.0.id().to_string())
            .status()
            .expect("kill is installed")
            .success()
    );
    assert_eq!(
        plane.0.wait().expect("it ends").code(),
        Some(0),
        "{}",
        named.said()
    );
    remove(world, &place);
}

pub fn shards_are_shared_as_argo_cds_are(world: &mut World) {
    let place = format!("cd-{}", world.namespace);
    drop(installation(world, &place));
    let named = Named::new();
    let kubeconfig = world.kubeconfig();
    let start = |pod: &str, more: (&str, &str)| {
        let variables = [("POD_NAME", pod), more, ("REDIS_SERVER", "127.0.0.1:1")];
        named.start(
            &kubeconfig,
            &["-n", &place, "--metrics-port", &free_port().to_string()],
            &variables,
        )
    };
    // A Pod of a StatefulSet keeps the shard with its number.
    let second = start("controller-1", ("ARGOCD_CONTROLLER_REPLICAS", "2"));
    let lease = |shard: usize| {
        format!(
            "{}/tiphys-{CONTROLLER}-{shard}",
            namespaced("coordination.k8s.io/v1", &place, "leases")
        )
        .replace("argocd-", "")
    };
    let held_by = |shard: usize, pod: &str| {
        eventually(PATIENCE, &format!("shard {shard} is held by {pod}"), || {
            let found = world.kube.find(&lease(shard)).unwrap_or_default();
            if text(&found, "/spec/holderIdentity").starts_with(pod) {
                Ok(())
            } else {
                Err(format!("{found}\n{}", named.said()))
            }
        });
    };
    held_by(1, "controller-1_");
    assert!(
        world.kube.find(&lease(0)).is_none(),
        "the other one is another's"
    );
    drop(second);

    // One of a Deployment claims a shard, and renews the claim at every heartbeat.
    let labels = json!({"app": "controller"});
    let pods = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "example.test/c"}]}});
    let spec = json!({"replicas": 2, "selector": {"matchLabels": labels}, "template": pods});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": CONTROLLER}, "spec": spec});
    world
        .kube
        .create(&namespaced("apps/v1", &place, "deployments"), &deployment);
    let _first = start(
        "controller-abc",
        ("ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION", "true"),
    );
    let map = format!(
        "{}/argocd-app-controller-shard-cm",
        namespaced("v1", &place, "configmaps")
    );
    let entries = || {
        let map = world.kube.find(&map).unwrap_or_default();
        serde_json::from_str::<Vec<Value>>(&text(&map, "/data/shardControllerMapping"))
            .unwrap_or_default()
    };
    let claim = |what: &str, is: &dyn Fn(&Value) -> bool| {
        eventually(PATIENCE, what, || {
            let own = entries()
                .into_iter()
                .find(|entry| text(entry, "/ControllerName") == "controller-abc");
            own.filter(is)
                .ok_or_else(|| format!("{:?}\n{}", entries(), named.said()))
        })
    };
    let first = claim("a shard is claimed", &|_| true);
    claim("the claim is renewed", &|entry| {
        entry["HeartbeatTime"] != first["HeartbeatTime"]
    });
    remove(world, &place);
}

#[test]
fn the_name_alone_makes_the_role() {
    let named = Named::new();
    let path = named.folder.path().join(CONTROLLER);
    let Ended { code, stderr, .. } = output_of(&path, &["--bogus"]);
    assert_eq!(
        (code, stderr.lines().next()),
        (Some(1), Some("Error: unknown flag: --bogus")),
        "{stderr}"
    );
    let Ended { code, stdout, .. } = output_of(
        &program(),
        &["/usr/local/bin/argocd-application-controller", "--help"],
    );
    assert_eq!(code, Some(0));
    assert!(
        stdout.contains("--app-resync int (default 120) [$ARGOCD_RECONCILIATION_TIMEOUT]"),
        "{stdout}"
    );
    let ended = output_of(&path, &["--kubeconfig", "/nowhere/config"]);
    assert!(
        ended.code == Some(1) && ended.stderr.contains("/nowhere/config"),
        "{ended:?}"
    );
    let ended = output_of(&program(), &["argocd-dex", "rundex", "--nope"]);
    assert!(
        ended.code == Some(1) && ended.stderr.contains("Usage: argocd-dex rundex"),
        "{ended:?}"
    );
}

/// One request with a header of GitHub's; the status line and the body.
fn post(port: u16, event: &str, body: &Value) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let body = body.to_string();
    let request = format!(
        "POST /api/webhook HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{event}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

const REPOSITORY: &str = "https://git.example.test/acme/shop.git";

/// A set with a list, and one that follows a repository which nobody can read.
fn create_sets(world: &World, sets: &str) {
    let template = json!({
        "metadata": {"name": "{{name}}"},
        "spec": {
            "project": "default",
            "source": {"repoURL": REPOSITORY, "path": "x", "targetRevision": "HEAD"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "x"},
        },
    });
    let git = json!({"repoURL": REPOSITORY, "revision": "main", "directories": [{"path": "*"}]});
    for (name, generator) in [
        (
            "listed",
            json!({"list": {"elements": [{"name": "one"}, {"name": "two"}]}}),
        ),
        ("followed", json!({"git": git})),
    ] {
        let set = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": name, "labels": {"team": "a"}},
            "spec": {"generators": [generator], "template": template},
        });
        world.kube.create(sets, &set);
    }
}

/// What the role of Argo CD's controller of ApplicationSets has in addition.
fn permit_sets(world: &World, place: &str) {
    let roles = namespaced("rbac.authorization.k8s.io/v1", place, "roles");
    let path = format!("{roles}/{CONTROLLER}");
    let role = world.kube.find(&path).expect("a role");
    let mut rules = role["rules"].as_array().cloned().expect("rules");
    rules.push(json!({
        "apiGroups": ["argoproj.io"],
        "resources": ["applicationsets/status", "applicationsets/finalizers"],
        "verbs": ["get", "patch", "update"],
    }));
    world.kube.patch(&path, &json!({"rules": rules}));
}

/// The ports of the controller: webhook, metrics, probes.
struct Ports([u16; 3]);

impl Ports {
    fn flags(&self) -> [String; 3] {
        let [webhook, metrics, probes] = self.0;
        [
            format!("--webhook-addr=127.0.0.1:{webhook}"),
            format!("--metrics-addr=127.0.0.1:{metrics}"),
            format!("--probe-addr=127.0.0.1:{probes}"),
        ]
    }

    /// One event refreshes the set that follows the repository; what is fetched is another matter.
    fn send_events(&self, world: &World, sets: &str, named: &Named) {
        let push = json!({
            "ref": "refs/heads/main",
            "repository": {
                "html_url": REPOSITORY.trim_end_matches(".git"), "default_branch": "main",
            },
        });
        let answer = post(self.0[0], "X-GitHub-Event: push", &push);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let refresh = "/metadata/annotations/argocd.argoproj.io~1application-set-refresh";
        eventually(PATIENCE, "the set is refreshed", || {
            let set = world
                .kube
                .find(&format!("{sets}/followed"))
                .unwrap_or_default();
            match text(&set, refresh) == "true" {
                true => Ok(()),
                false => Err(format!("{set}\n{}", named.said())),
            }
        });
        let listed = world.kube.find(&format!("{sets}/listed")).expect("the set");
        assert_eq!(listed.pointer(refresh), None);
        // Argo CD's controller does not know this host.
        let answer = post(self.0[0], "X-Event-Key: repo:refs_changed", &push);
        let is_unknown = answer.contains(" 400 ") && answer.contains("Unknown webhook event");
        assert!(is_unknown, "{answer}");
    }

    fn show(&self, place: &str) {
        assert!(get(self.0[2], "/readyz").ends_with("ok\n"));
        let listed = format!("{{namespace=\"{place}\",name=\"listed\"");
        let shown = get(self.0[1], "/metrics");
        for line in [
            format!("argocd_appset_info{listed}"),
            format!("argocd_appset_owned_applications{listed}}} 2"),
            format!("argocd_appset_labels{listed},label_team=\"a\"}} 1"),
        ] {
            assert!(shown.contains(&line), "{line}: {shown}");
        }
    }
}

/// The controller of ApplicationSets with variables of Argo CD's manifest, and its three ports.
pub fn the_set_controllers_place_is_taken(world: &mut World) {
    let place = format!("sets-{}", world.namespace);
    let token = installation(world, &place);
    permit_sets(world, &place);
    let named = Named::called(APPLICATION_SETS);
    let own = named.folder.path().join("kubeconfig");
    as_somebody(&world.kubeconfig(), &token, &own);
    let ports = Ports([free_port(), free_port(), free_port()]);
    let flags = ports.flags();
    let mut words = vec!["-n", &place, "--metrics-applicationset-labels=team"];
    words.extend(flags.iter().map(String::as_str));
    let mut plane = named.start(
        &own,
        &words,
        &[
            (
                "ARGOCD_APPLICATIONSET_CONTROLLER_REPO_SERVER",
                "127.0.0.1:1",
            ),
            (
                "ARGOCD_APPLICATIONSET_CONTROLLER_REPO_SERVER_PLAINTEXT",
                "true",
            ),
            ("ARGOCD_APPLICATIONSET_CONTROLLER_POLICY", "create-only"),
            (
                "ARGOCD_APPLICATIONSET_CONTROLLER_WEBHOOK_PARALLELISM_LIMIT",
                "5",
            ),
            ("ARGOCD_K8S_CLIENT_QPS", "50"),
        ],
    );
    // The secrets of webhooks are in it.
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-secret"},
        "stringData": {"server.secretkey": "key"},
    });
    world
        .kube
        .create(&namespaced("v1", &place, "secrets"), &secret);
    let sets = namespaced("argoproj.io/v1alpha1", &place, "applicationsets");
    create_sets(world, &sets);
    let apps = namespaced("argoproj.io/v1alpha1", &place, "applications");
    let is_there = |name: &str| world.kube.find(&format!("{apps}/{name}")).is_some();
    eventually(PATIENCE, "the Applications are there", || {
        match is_there("one") && is_there("two") {
            true => Ok(()),
            false => Err(named.said()),
        }
    });
    ports.send_events(world, &sets, &named);
    ports.show(&place);
    let killed = Command::new("kill").arg(plane.0.id().to_string()).status();
    assert!(killed.expect("kill is installed").success());
    assert_eq!(
        plane.0.wait().expect("it ends").code(),
        Some(0),
        "{}",
        named.said()
    );
    remove(world, &place);
}

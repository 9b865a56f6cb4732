//! Installing on a cluster, and moving an installation from one cluster to another as a file.

use crate::scenarios::world::{World, app_path, config_map, program, text};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;
use tiphys_testkit::{Ended, PATIENCE, Repo, eventually, free_port, namespaced, output_of};

/// A command on the test's cluster, which must succeed.
#[track_caller]
fn tiphys(kubeconfig: &Path, words: &[&str]) -> String {
    let ended = attempt(kubeconfig, words);
    assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
    ended.stdout
}

fn attempt(kubeconfig: &Path, words: &[&str]) -> Ended {
    output_of(
        &program(),
        &[
            words,
            &["--kubeconfig", kubeconfig.to_str().expect("a plain name")],
        ]
        .concat(),
    )
}

/// The lines between the first and the last, which contain times.
fn middle(report: &str) -> Vec<&str> {
    let lines: Vec<&str> = report.lines().collect();
    lines
        .get(1..lines.len() - 1)
        .unwrap_or_default()
        .iter()
        .copied()
        .filter(|l| !l.ends_with("needs pruning"))
        .collect()
}

/// Exports the settings to a file and returns its content.
fn export(kubeconfig: &Path, file: &str) -> String {
    tiphys(kubeconfig, &["admin", "export", "-n", "argocd", "-o", file]);
    assert_eq!(
        fs::metadata(file).expect("written").permissions().mode() & 0o777,
        0o600,
        "it contains credentials"
    );
    let backup = fs::read_to_string(file).expect("written");
    assert!(
        backup.contains("name: argocd-cm")
            && backup.contains("name: team")
            && !backup.contains("resourceVersion"),
        "{backup}"
    );
    assert!(
        !backup.contains("argocd-initial-admin-secret"),
        "not a part of the settings"
    );
    backup
}

/// Objects that the backup does not contain are listed; with `--prune` they are deleted, but not
/// what they deployed.
fn import_prunes_only_when_asked(world: &mut World, repo: &Repo, file: &str) {
    let kubeconfig = world.kubeconfig();
    world.deploy("newer", &repo.url(), "app", &json!({}));
    let report = tiphys(&kubeconfig, &["admin", "import", file, "-n", "argocd"]);
    assert!(
        report.contains("argoproj.io/Application newer needs pruning"),
        "{report}"
    );
    let report = tiphys(
        &kubeconfig,
        &["admin", "import", file, "-n", "argocd", "--prune"],
    );
    assert!(
        report.contains("argoproj.io/Application newer pruned"),
        "{report}"
    );
    eventually(PATIENCE, "the newer one is gone", || {
        world
            .get_app("newer")
            .map_or(Ok(()), |_| Err("it is there".to_owned()))
    });
    assert_eq!(world.value("a", "value").as_deref(), Some("1"));
}

fn import_refuses_other_kinds(kubeconfig: &Path, backup: &str, wrong: &Path) {
    fs::write(
        wrong,
        format!("{backup}apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n"),
    )
    .expect("written");
    let ended = attempt(
        kubeconfig,
        &[
            "admin",
            "import",
            wrong.to_str().expect("a plain name"),
            "-n",
            "argocd",
        ],
    );
    assert_eq!(ended.code, Some(20), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("v1 Pod is nothing that a backup contains")
            && ended.stdout.is_empty(),
        "{ended:?}"
    );
}

pub fn what_is_exported_can_be_imported(world: &mut World) {
    let repo = Repo::with(&[("app/cm.yaml", &config_map("a", "1"))]);
    world.deploy("moving", &repo.url(), "app", &json!({}));
    let well = world.until_well("moving", &repo.head());
    let projects = namespaced("argoproj.io/v1alpha1", "argocd", "appprojects");
    world.kube.create(
        &projects,
        &json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "team"}, "spec": {"sourceRepos": ["*"]}}),
    );
    let kubeconfig = world.kubeconfig();
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("backup.yaml");
    let file = file.to_str().expect("a plain name");
    let backup = export(&kubeconfig, file);

    // The Application is deleted without its resources, and comes back with its history; the
    // project is as before.
    world.change_app("moving", &json!({"metadata": {"finalizers": null}}));
    world.kube.delete(&app_path("moving"));
    world.kube.patch(
        &format!("{projects}/team"),
        &json!({"spec": {"sourceRepos": ["https://changed.test/*"]}}),
    );
    eventually(PATIENCE, "the Application is gone", || {
        world
            .get_app("moving")
            .map_or(Ok(()), |_| Err("it is there".to_owned()))
    });
    let report = tiphys(
        &kubeconfig,
        &["admin", "import", file, "-n", "argocd", "--dry-run"],
    );
    let expected = [
        "argoproj.io/AppProject team in namespace argocd updated",
        "argoproj.io/Application moving in namespace argocd created",
    ];
    assert_eq!(
        middle(&report),
        expected.map(|line| format!("{line} (dry run)")),
        "{report}"
    );
    assert!(world.get_app("moving").is_none(), "a dry run does nothing");
    assert_eq!(
        middle(&tiphys(
            &kubeconfig,
            &["admin", "import", file, "-n", "argocd"]
        )),
        expected
    );
    let back = world.until_well("moving", &repo.head());
    assert_eq!(back["status"]["history"], well["status"]["history"]);
    assert_eq!(back["spec"], well["spec"]);
    assert_eq!(world.value("a", "value").as_deref(), Some("1"));

    import_prunes_only_when_asked(world, &repo, file);
    world.kube.delete(&format!("{projects}/team"));
    import_refuses_other_kinds(&kubeconfig, &backup, &folder.path().join("wrong.yaml"));
}

/// A control plane as a process; killed when dropped.
pub struct Plane(pub Child);

impl Drop for Plane {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A kubeconfig for another user of the same cluster.
pub fn as_somebody(kubeconfig: &Path, token: &str, file: &Path) {
    let text = fs::read_to_string(kubeconfig).expect("a kubeconfig");
    let (_, rest) = text.split_once("token:").expect("a token");
    let old = rest
        .split(|c: char| c.is_whitespace() || "\"',}".contains(c))
        .find(|part| !part.is_empty())
        .expect("a token");
    fs::write(file, text.replace(old, token)).expect("written");
}

/// The response of a plain HTTP server.
pub fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

/// Installs into this namespace, twice, and waits until the nodes report it as running.
fn install(world: &World, kubeconfig: &Path, place: &str) {
    let report = tiphys(kubeconfig, &["install", "-n", place]);
    assert!(
        report.contains("deployment.apps/tiphys serverside-applied"),
        "{report}"
    );
    assert!(
        report.contains(
            "customresourcedefinition.apiextensions.k8s.io/applications.argoproj.io left as it is"
        ),
        "{report}"
    );
    let again = tiphys(kubeconfig, &["install", "-n", place]);
    assert_eq!(again, report, "once more changes nothing");
    share_with_another_tool(kubeconfig, place);
    let deployment = format!("{}/tiphys", namespaced("apps/v1", place, "deployments"));
    eventually(PATIENCE, "the Deployment is available", || {
        match world.kube.find(&deployment) {
            Some(d) if d["status"]["availableReplicas"] == 1 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

/// What another tool applied as well is no conflict as long as it is the same; another image is one,
/// which a flag settles.
fn share_with_another_tool(kubeconfig: &Path, place: &str) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("manifests.yaml");
    let printed = ["install", "-n", place, "--print", "--without-crds"];
    fs::write(&file, tiphys(kubeconfig, &printed)).expect("written");
    let file = file.to_str().expect("a plain name");
    tiphys(kubeconfig, &["apply", "--server-side", "-f", file]);
    let other = ["install", "-n", place, "--image", "example.test/tiphys:2"];
    let refused = attempt(kubeconfig, &other);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let (_, fields) = refused
        .stderr
        .split_once("Apply failed with 1 conflict")
        .unwrap_or_else(|| panic!("{refused:?}"));
    assert!(fields.contains(".image"), "{refused:?}");
    assert!(fields.contains("`--force-conflicts`"), "{refused:?}");
    tiphys(
        kubeconfig,
        &[other.as_slice(), &["--force-conflicts"]].concat(),
    );
    tiphys(kubeconfig, &["install", "-n", place, "--force-conflicts"]);
}

/// The ports of a control plane.
struct Ports {
    server: u16,
    metrics: u16,
    api_metrics: u16,
}

impl Ports {
    fn free() -> Self {
        let (server, metrics, api_metrics) = (free_port(), free_port(), free_port());
        Self {
            server,
            metrics,
            api_metrics,
        }
    }
}

/// Starts a control plane for this namespace, with its log and its repositories in the folder.
fn start(kubeconfig: &Path, place: &str, ports: &Ports, folder: &Path) -> Plane {
    let mut command = Command::new(program());
    command.args([
        "control-plane",
        "--bootstrap",
        "--address",
        "127.0.0.1",
        "--port",
        &ports.server.to_string(),
        "--namespace",
        place,
    ]);
    command.args([
        "--api-metrics-port",
        &ports.api_metrics.to_string(),
        "--notifications-metrics-port",
        "0",
        "--metrics-port",
        &ports.metrics.to_string(),
        "--metrics-application-conditions",
        "ComparisonError",
    ]);
    command
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("--repositories")
        .arg(folder.join("repositories"));
    let log = fs::File::create(folder.join("log")).expect("a file");
    Plane(
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("it starts"),
    )
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// Logs in with the first password of the admin.
fn log_in(kubeconfig: &Path, place: &str, port: u16, folder: &Path) {
    let password = eventually(PATIENCE, "there is a password", || {
        let ended = attempt(kubeconfig, &["admin", "initial-password", "-n", place]);
        ended
            .stdout
            .lines()
            .next()
            .map(str::to_owned)
            .ok_or_else(|| format!("{ended:?}\n{}", log(folder)))
    });
    let (server, config) = (format!("localhost:{port}"), folder.join("config"));
    let config = config.to_str().expect("a plain name");
    let login = [
        "login",
        &server,
        "--insecure",
        "--username",
        "admin",
        "--password",
        &password,
        "--config",
        config,
    ];
    eventually(PATIENCE, "admin can log in", || {
        match output_of(&program(), &login) {
            Ended { code: Some(0), .. } => Ok(()),
            ended => Err(format!("{ended:?}\n{}", log(folder))),
        }
    });
    assert!(!log(folder).contains(&password), "a log is read by others");
    let known = [
        "cert",
        "list",
        "--hostname-pattern",
        "git*.com",
        "--config",
        config,
    ];
    let known = output_of(&program(), &known).stdout;
    for host in ["github.com", "gitlab.com"] {
        assert!(
            known.contains(host),
            "as in an installation of Argo CD: {known}"
        );
    }
}

fn metrics_show_the_application(ports: &Ports, place: &str) {
    let parts = [
        &format!(
            "argocd_app_info{{namespace=\"{place}\",name=\"unreachable\",project=\"default\",autosync_enabled=\"false\""
        ),
        "dest_server=\"https://kubernetes.default.svc\"",
        "sync_status=\"Unknown\",health_status=\"Healthy\",operation=\"\"} 1",
        "argocd_app_condition{",
        "condition=\"ComparisonError\"} 1",
        "argocd_app_reconcile_bucket{",
        "argocd_cluster_api_resources{server=",
        "# EOF",
    ];
    // The response to its write may reach the program after the write is visible to us.
    eventually(PATIENCE, "the metrics tell of it", || {
        let text = get(ports.metrics, "/metrics");
        let missing = parts.iter().find(|part| !text.contains(**part));
        missing.map_or(Ok(()), |part| Err(format!("{part} is missing in {text}")))
    });
    let text = get(ports.api_metrics, "/metrics");
    for part in [
        "grpc_server_handled_total{",
        "grpc_server_msg_received_total{",
        "argocd_kubectl_requests_total{",
        "argocd_kubectl_request_duration_seconds_bucket{",
        "argocd_kubectl_request_size_bytes_bucket{",
        "argocd_kubectl_response_size_bytes_bucket{",
        "argocd_kubectl_rate_limiter_duration_seconds_bucket{",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(
        !text.contains("# EOF"),
        "the format of Prometheus has no such line"
    );
}

pub fn an_installation_works_with_the_rights_it_installs(world: &mut World) {
    let kubeconfig = world.kubeconfig();
    let place = format!("cd-{}", world.namespace);
    install(world, &kubeconfig, &place);

    // No container runs on these nodes: the control plane is started here, with the installed
    // service account.
    let account = format!(
        "{}/tiphys/token",
        namespaced("v1", &place, "serviceaccounts")
    );
    let review = world.kube.create(
        &account,
        &json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}),
    );
    let folder = TempDir::new().expect("a folder");
    let own = folder.path().join("kubeconfig");
    as_somebody(&kubeconfig, &text(&review, "/status/token"), &own);
    let ports = Ports::free();
    let _plane = start(&own, &place, &ports, folder.path());
    log_in(&kubeconfig, &place, ports.server, folder.path());

    // It reconciles the Applications in its namespace.
    let apps = namespaced("argoproj.io/v1alpha1", &place, "applications");
    let mut app = world.application(
        "unreachable",
        "https://127.0.0.1:1/nothing.git",
        "app",
        &Value::Null,
    );
    app["metadata"]["finalizers"] = Value::Null;
    world.kube.create(&apps, &app);
    eventually(PATIENCE, "the Application is looked at", || {
        let app = world
            .kube
            .find(&format!("{apps}/unreachable"))
            .unwrap_or_default();
        let found = app["status"]["conditions"]
            .as_array()
            .is_some_and(|c| c.iter().any(|c| c["type"] == "ComparisonError"));
        if found {
            Ok(())
        } else {
            Err(format!("{app}\n{}", log(folder.path())))
        }
    });
    metrics_show_the_application(&ports, &place);
    world.kube.delete(&format!("{apps}/unreachable"));
    let _ = world
        .kube
        .send("DELETE", &format!("/api/v1/namespaces/{place}"), "", None);
}

#[test]
fn what_is_printed_is_what_kustomize_makes() {
    let Some(kustomize) = std::env::var_os("KUSTOMIZE") else {
        return tiphys_testkit::skip("kustomize", "KUSTOMIZE does not name a kustomize");
    };
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let built = Command::new(kustomize)
        .arg("build")
        .arg(deploy)
        .output()
        .expect("kustomize runs");
    let sorted = |text: &str| {
        let mut documents: Vec<String> = text.split("---\n").map(|d| d.trim().to_owned()).collect();
        documents.sort();
        documents
    };
    let printed = output_of(&program(), &["install", "--print"]);
    // It begins with a warning about uninstalling.
    let manifests: String = printed
        .stdout
        .lines()
        .skip_while(|line| line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(
        sorted(&manifests),
        sorted(&String::from_utf8_lossy(&built.stdout)),
        "{}",
        printed.stderr
    );
}

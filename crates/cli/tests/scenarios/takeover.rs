//! Replicas of the control plane: the active one is killed, the next one is paused during a sync
//! and resumes late.

use crate::scenarios::{
    admin::{Plane, get},
    dropin::{installation, remove},
    renderer::repo_server,
    world::{World, program, text},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tiphys_testkit::{PATIENCE, eventually, free_port, namespaced};

const APPS: usize = 12;
/// How long each hook takes.
const HOOK_SECONDS: &str = "4";

/// A hook, which is never deleted and so shows how often it ran, and an object in a later phase.
fn manifests(app: &str) -> Vec<Value> {
    let notes = json!({"argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/hook-delete-policy": "HookFailed"});
    let container = json!({"name": "c", "image": "registry.example.org/hook:v1", "command": ["sleep", HOOK_SECONDS]});
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    vec![
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": format!("{app}-"), "annotations": notes},
            "spec": {"backoffLimit": 0, "template": template}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": app}}),
    ]
}

/// An installation with several replicas.
struct Ground<'a> {
    world: &'a World,
    place: String,
    repo_server: String,
    folder: TempDir,
}

impl Ground<'_> {
    fn start(&self, pod: &str) -> Plane {
        let metrics = free_port();
        let mut command = Command::new(program());
        command.args([
            "control-plane",
            "--bootstrap",
            "--address",
            "127.0.0.1",
            "--namespace",
            &self.place,
            "--pod-name",
            pod,
        ]);
        command.args([
            "--port",
            &free_port().to_string(),
            "--api-metrics-port",
            "0",
            "--notifications-metrics-port",
            "0",
            "--metrics-port",
            &metrics.to_string(),
        ]);
        command.args([
            "--repo-server",
            &self.repo_server,
            "--repo-server-plaintext",
        ]);
        command
            .arg("--kubeconfig")
            .arg(self.world.kubeconfig())
            .arg("--repositories")
            .arg(self.folder.path().join(pod));
        let log = File::create(self.folder.path().join(format!("{pod}.log"))).expect("a file");
        let plane = Plane(
            command
                .stdin(Stdio::null())
                .stdout(log.try_clone().expect("a file"))
                .stderr(log)
                .spawn()
                .expect("it starts"),
        );
        eventually(PATIENCE, &format!("{pod} is there"), || {
            let answers = std::net::TcpStream::connect(("127.0.0.1", metrics)).is_ok()
                && get(metrics, "/healthz").ends_with("ok\n");
            if answers { Ok(()) } else { Err(self.said()) }
        });
        plane
    }

    fn said(&self) -> String {
        let logs = fs::read_dir(self.folder.path())
            .expect("a folder")
            .filter_map(Result::ok)
            .map(|entry| entry.path());
        logs.filter(|path| path.extension().is_some_and(|e| e == "log"))
            .filter_map(|path| fs::read_to_string(path).ok())
            .collect()
    }

    fn path(&self) -> String {
        namespaced("argoproj.io/v1alpha1", &self.place, "applications")
    }

    fn apps(&self) -> Vec<Value> {
        self.world.kube.list(&self.path())
    }

    fn lease_is_of(&self, pod: &str) {
        let lease = format!(
            "{}/tiphys-application-controller-0",
            namespaced("coordination.k8s.io/v1", &self.place, "leases")
        );
        eventually(PATIENCE, &format!("{pod} has the lease"), || {
            let found = self.world.kube.find(&lease).unwrap_or_default();
            if text(&found, "/spec/holderIdentity").starts_with(&format!("{pod}_")) {
                Ok(())
            } else {
                Err(format!("{found}\n{}", self.said()))
            }
        });
    }

    /// Waits until hooks run; returns the start times of the running operations.
    fn in_mid_sync(&self, which: usize) -> BTreeMap<String, String> {
        let operations = |app: &Value| {
            app["status"]["history"].as_array().map_or(0, Vec::len) + 1 == which
                && app.get("operation").is_some()
        };
        eventually(PATIENCE, "operations wait for their hooks", || {
            let jobs = self.jobs().len();
            let apps = self.apps();
            let running = apps.iter().filter(|app| {
                operations(app) && text(app, "/status/operationState/phase") == "Running"
            });
            let began: BTreeMap<_, _> = running
                .map(|app| {
                    (
                        text(app, "/metadata/name"),
                        text(app, "/status/operationState/startedAt"),
                    )
                })
                .collect();
            if jobs > (which - 1) * APPS && !began.is_empty() {
                Ok(began)
            } else {
                Err(format!("{jobs} hooks\n{}", self.said()))
            }
        })
    }

    fn jobs(&self) -> Vec<Value> {
        self.world
            .kube
            .list(&namespaced("batch/v1", &self.world.namespace, "jobs"))
    }

    /// Waits until all have been synced this many times, and checks that each action was done
    /// exactly once.
    fn all_are_well(&self, times: usize, began: &BTreeMap<String, String>) {
        let is_well = |app: &Value| {
            text(app, "/status/sync/status") == "Synced"
                && text(app, "/status/operationState/phase") == "Succeeded"
                && app.get("operation").is_none()
                && app["status"]["history"]
                    .as_array()
                    .is_some_and(|h| h.len() >= times)
        };
        let apps = eventually(PATIENCE, &format!("all were synced {times} times"), || {
            let apps = self.apps();
            let bad: Vec<_> = apps
                .iter()
                .filter(|app| !is_well(app))
                .map(|app| app["status"].to_string())
                .collect();
            if bad.is_empty() && apps.len() == APPS {
                Ok(apps)
            } else {
                Err(format!("{bad:?}\n{}", self.said()))
            }
        });
        for app in &apps {
            let name = text(app, "/metadata/name");
            assert_eq!(
                app["status"]["history"].as_array().map(Vec::len),
                Some(times),
                "{name} was synced more often than asked for"
            );
            assert_eq!(
                app.pointer("/status/operationState/retryCount"),
                None,
                "{name}: a death is no failure"
            );
            if let Some(began) = began.get(&name) {
                assert_eq!(
                    *began,
                    text(app, "/status/operationState/startedAt"),
                    "{name}: the operation goes on, it does not begin again"
                );
            }
        }
        let mut hooks: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for job in self.jobs() {
            hooks
                .entry(text(&job, "/metadata/annotations/tiphys.dev~1operation-id"))
                .or_default()
                .insert(text(&job, "/metadata/uid"));
        }
        assert!(
            hooks.values().all(|ran| ran.len() == 1),
            "a hook ran twice: {hooks:?}"
        );
        assert_eq!(hooks.len(), times * APPS, "each operation had its hook");
    }

    fn signal(&self, plane: &Plane, signal: &str) {
        assert!(
            Command::new("kill")
                .args([signal, &plane.0.id().to_string()])
                .status()
                .expect("kill is installed")
                .success()
        );
    }
}

pub fn a_replica_that_dies_is_taken_over(world: &mut World) {
    let place = format!("cd-{}", world.namespace);
    drop(installation(world, &place));
    world.kube.namespace(&world.namespace);
    let (_renderer, repo_server) = repo_server(manifests);
    let ground = Ground {
        world,
        place,
        repo_server,
        folder: TempDir::new().expect("a folder"),
    };
    let first = ground.start("first");
    ground.lease_is_of("first");
    let second = ground.start("second");
    for number in 0..APPS {
        let mut app = world.application(
            &format!("a-{number}"),
            "https://git.example.test/kustomized.git",
            "app",
            &json!({}),
        );
        app["metadata"]["finalizers"] = Value::Null;
        world.kube.create(&ground.path(), &app);
    }
    let began = ground.in_mid_sync(1);
    ground.signal(&first, "-KILL");
    let killed = Instant::now();
    ground.lease_is_of("second");
    eprintln!(
        "killed with {} operations under way; taken over after {:.1} s",
        began.len(),
        killed.elapsed().as_secs_f64()
    );
    ground.all_are_well(1, &began);

    // A paused replica counts as dead, and when it resumes it writes nothing.
    let _third = ground.start("third");
    let sync = json!({"operation": {"initiatedBy": {"username": "test"}, "sync": {}}});
    for app in ground.apps() {
        world.kube.patch(
            &format!("{}/{}", ground.path(), text(&app, "/metadata/name")),
            &sync,
        );
    }
    let began = ground.in_mid_sync(2);
    ground.signal(&second, "-STOP");
    ground.lease_is_of("third");
    ground.all_are_well(2, &began);
    let versions = || {
        ground
            .apps()
            .iter()
            .map(|app| text(app, "/metadata/resourceVersion"))
            .collect::<Vec<_>>()
    };
    let before = versions();
    ground.signal(&second, "-CONT");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(
        versions(),
        before,
        "nobody had a reason to write\n{}",
        ground.said()
    );
    ground.all_are_well(2, &began);
    ground.lease_is_of("third");
    remove(world, &ground.place);
}

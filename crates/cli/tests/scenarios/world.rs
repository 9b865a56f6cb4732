//! One control plane for one scenario: embedded, or for a real cluster. Main type: [`World`].

use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tiphys_testkit::{Api, Options, PATIENCE, Tiphys, apps_path, eventually, namespaced};

/// Everything in the real cluster is shared: one scenario at a time.
static TURN: Mutex<()> = Mutex::new(());

/// The binary under test: `TIPHYS_BIN`, or the one of this build.
pub fn program() -> PathBuf {
    std::env::var_os("TIPHYS_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_tiphys").into(), PathBuf::from)
}

/// A running control plane and the client for its cluster.
pub struct World {
    pub tiphys: Tiphys,
    pub kube: Api,
    /// A namespace of the scenario's own.
    pub namespace: String,
    real: Option<MutexGuard<'static, ()>>,
}

impl World {
    pub fn embedded(scenario: &str) -> Option<Self> {
        Some(Self::start(
            scenario,
            Options {
                program: program(),
                ..Options::default()
            },
            None,
        ))
    }

    /// An embedded control plane in a folder that outlives it.
    pub fn in_folder(scenario: &str, data: &Path) -> Self {
        let options = Options {
            program: program(),
            data: Some(data.to_owned()),
            ..Options::default()
        };
        Self::start(scenario, options, None)
    }

    /// `None` unless `TIPHYS_TEST_REAL=1`; then `KUBECONFIG` names the cluster (`scripts/test-real`
    /// sets both).
    pub fn real(scenario: &str) -> Option<Self> {
        if std::env::var("TIPHYS_TEST_REAL").as_deref() != Ok("1") {
            tiphys_testkit::skip("real", "it needs a real control plane: make test-real");
            return None;
        }
        let kubeconfig =
            PathBuf::from(std::env::var_os("KUBECONFIG").expect("KUBECONFIG names the cluster"));
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        clean(&Api::kubeconfig(&kubeconfig).expect("a kubeconfig"));
        let options = Options {
            program: program(),
            kubeconfig: Some(kubeconfig),
            ..Options::default()
        };
        Some(Self::start(scenario, options, Some(turn)))
    }

    fn start(scenario: &str, options: Options, real: Option<MutexGuard<'static, ()>>) -> Self {
        let examples = scenario.starts_with("examples");
        let mut options = options;
        if scenario.starts_with("chart_repositories") {
            options
                .arguments
                .extend(["--catalog", "in-process"].map(Into::into));
        }
        let (tiphys, kube) = Tiphys::ready(&Options {
            examples,
            ..options
        });
        let namespace = format!("{}-{}", scenario.replace('_', "-"), std::process::id());
        Self {
            tiphys,
            kube,
            namespace,
            real,
        }
    }

    /// The kubeconfig of the cluster.
    pub fn kubeconfig(&self) -> PathBuf {
        self.tiphys
            .kubeconfig()
            .expect("it has been found")
            .to_owned()
    }

    /// An Application with the destination and options of most scenarios.
    pub fn application(&self, name: &str, repo: &str, path: &str, automated: &Value) -> Value {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
            "spec": {
                "project": "default", "source": {"repoURL": repo, "path": path, "targetRevision": "HEAD"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": self.namespace},
                "syncPolicy": {"automated": automated, "syncOptions": ["CreateNamespace=true"], "retry": {"limit": 0}}
            }
        })
    }

    pub fn is_real(&self) -> bool {
        self.real.is_some()
    }

    /// Creates it.
    #[track_caller]
    pub fn deploy(&self, name: &str, repo: &str, path: &str, automated: &Value) {
        self.kube
            .create(&apps_path(), &self.application(name, repo, path, automated));
    }

    #[track_caller]
    pub fn get_app(&self, name: &str) -> Option<Value> {
        self.kube.find(&app_path(name))
    }

    /// Changes its spec.
    #[track_caller]
    pub fn change_app(&self, name: &str, patch: &Value) {
        self.kube.patch(&app_path(name), patch);
    }

    /// Requests a refresh, as `argocd app get --refresh` does.
    #[track_caller]
    pub fn refresh(&self, name: &str) {
        self.change_app(
            name,
            &json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}),
        );
    }

    /// Starts a manual sync.
    #[track_caller]
    pub fn sync(&self, name: &str, sync: &Value) {
        self.change_app(
            name,
            &json!({"operation": {"initiatedBy": {"username": "test"}, "sync": sync}}),
        );
    }

    /// Waits for a state of an Application.
    #[track_caller]
    pub fn until(&self, name: &str, what: &str, mut is: impl FnMut(&Value) -> bool) -> Value {
        eventually(PATIENCE, &format!("Application {name} is {what}"), || {
            let app = self.get_app(name).ok_or("there is none")?;
            if is(&app) {
                Ok(app)
            } else {
                Err(summary(&app))
            }
        })
    }

    /// Waits until it is Synced to a revision and Healthy, and no operation runs.
    #[track_caller]
    pub fn until_well(&self, name: &str, sha: &str) -> Value {
        self.until(name, &format!("Synced to {sha} and Healthy"), |app| {
            is_well(app, sha)
        })
    }

    fn path(&self, plural: &str, name: &str) -> String {
        let version = match plural {
            "deployments" => "apps/v1",
            "jobs" => "batch/v1",
            _ => "v1",
        };
        format!("{}/{name}", namespaced(version, &self.namespace, plural))
    }

    /// An object in the scenario's namespace.
    #[track_caller]
    pub fn find(&self, plural: &str, name: &str) -> Option<Value> {
        self.kube.find(&self.path(plural, name))
    }

    #[track_caller]
    pub fn patch(&self, plural: &str, name: &str, patch: &Value) {
        self.kube.patch(&self.path(plural, name), patch);
    }

    #[track_caller]
    pub fn delete(&self, plural: &str, name: &str) {
        self.kube.delete(&self.path(plural, name));
    }

    #[track_caller]
    pub fn list(&self, plural: &str) -> Vec<Value> {
        self.kube.list(self.path(plural, "").trim_end_matches('/'))
    }

    /// One value of a ConfigMap.
    #[track_caller]
    pub fn value(&self, name: &str, key: &str) -> Option<String> {
        self.find("configmaps", name)?["data"][key]
            .as_str()
            .map(str::to_owned)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.real.is_some() {
            clean(&self.kube);
            let _ = self.kube.send(
                "DELETE",
                &format!("/api/v1/namespaces/{}", self.namespace),
                "",
                None,
            );
        }
    }
}

/// Removes every Application and project, without their resources.
fn clean(kube: &Api) {
    let items = |path: &str| {
        kube.get(path)
            .ok()
            .and_then(|a| a.body["items"].as_array().cloned())
            .unwrap_or_default()
    };
    for plural in ["applications", "appprojects"] {
        let path = namespaced("argoproj.io/v1alpha1", "argocd", plural);
        for item in items(&path) {
            let name = text(&item, "/metadata/name");
            if plural == "applications" || name != "default" {
                // Someone else may remove it concurrently.
                let _ = kube.merge(
                    &format!("{path}/{name}"),
                    &json!({"metadata": {"finalizers": null}}),
                );
                let _ = kube.send("DELETE", &format!("{path}/{name}"), "", None);
            }
        }
    }
}

pub fn app_path(name: &str) -> String {
    format!("{}/{name}", apps_path())
}

pub fn text(value: &Value, pointer: &str) -> String {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// Synced to a revision, Healthy, and no operation runs.
pub fn is_well(app: &Value, sha: &str) -> bool {
    text(app, "/status/sync/status") == "Synced"
        && text(app, "/status/sync/revision") == sha
        && text(app, "/status/health/status") == "Healthy"
        && text(app, "/status/operationState/phase") == "Succeeded"
        && app.get("operation").is_none()
}

/// An Application's state, for messages.
pub fn summary(app: &Value) -> String {
    let status = &app["status"];
    format!(
        "sync {} at {}, health {}, operation {}, conditions {}, resources {}",
        status["sync"]["status"],
        status["sync"]["revision"],
        status["health"],
        status["operationState"],
        status["conditions"],
        status["resources"]
    )
}

/// A ConfigMap of one value.
pub fn config_map(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  value: \"{value}\"\n"
    )
}

//! What the measured servers find in the cluster: the records of an installation and many
//! Applications, with the status of a controller that nobody runs. Main function: [`seed`].

use super::super::{appset, fleet};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};
use tiphys_server::auth::hash_password;
use tiphys_testkit::{Api, namespaced};

pub const NAMESPACE: &str = "bench-server";
/// The password of `admin`, in a cluster that only this program uses.
pub const PASSWORD: &str = "measured-not-guessed";
/// How many Applications have the same value of the label [`LABEL`].
pub const PAGE: usize = 100;
pub const LABEL: &str = "bench-page";

const GROUP: &str = "argoproj.io/v1alpha1";
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
const CONFIG_MAPS: [&str; 6] = [
    "argocd-cm",
    "argocd-rbac-cm",
    "argocd-cmd-params-cm",
    "argocd-ssh-known-hosts-cm",
    "argocd-tls-certs-cm",
    "argocd-gpg-keys-cm",
];

/// Creates what is not there yet, so that a second run on the same cluster begins at once.
///
/// # Errors
/// If something cannot be created, or an earlier run left another number of Applications.
pub fn seed(root: &Path, kube: &Api, apps: usize) -> anyhow::Result<()> {
    appset::define(root, kube)?;
    kube.namespace(NAMESPACE);
    let began = Instant::now();
    while let Err(e) = first(kube) {
        ensure!(
            began.elapsed() < PATIENCE,
            "Applications are not served: {e}"
        );
        thread::sleep(POLL);
    }
    records(kube)?;
    fleet::each_of(apps, |number| {
        present(kube, &applications(), &application(number))
    })?;
    let list = first(kube)?;
    let others = list["metadata"]["remainingItemCount"].as_u64();
    let there = others.unwrap_or_default() + 1;
    ensure!(
        there == apps as u64,
        "{there} Applications are in the namespace {NAMESPACE}, not {apps}: delete those of \
         another run, or choose another API server"
    );
    Ok(())
}

/// The path of the Applications in the Kubernetes API.
pub fn applications() -> String {
    namespaced(GROUP, NAMESPACE, "applications")
}

pub fn name(number: usize) -> String {
    format!("app-{number:05}")
}

/// The value of [`LABEL`] of an Application.
pub fn page(number: usize) -> String {
    format!("p{:04}", number / PAGE)
}

/// The version of the collection, from which watches go on.
///
/// # Errors
/// If the API server does not say it.
pub fn version(kube: &Api) -> anyhow::Result<String> {
    let list = first(kube)?;
    let version = list["metadata"]["resourceVersion"].as_str();
    Ok(version.context("a list has a resourceVersion")?.to_owned())
}

/// A list with the first Application.
fn first(kube: &Api) -> anyhow::Result<Value> {
    let answer = fleet::answered(kube.get(&format!("{}?limit=1", applications())))?;
    ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
    Ok(answer.body)
}

fn records(kube: &Api) -> anyhow::Result<()> {
    let labels = json!({"app.kubernetes.io/part-of": "argocd"});
    let maps = namespaced("v1", NAMESPACE, "configmaps");
    for name in CONFIG_MAPS {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": labels}});
        present(kube, &maps, &object)?;
    }
    let hash = hash_password(PASSWORD)?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "argocd-secret", "labels": labels},
        "stringData": {"server.secretkey": "a-key-of-this-cluster", "admin.password": hash,
            "admin.passwordMtime": "2026-01-01T00:00:00Z"}});
    present(kube, &namespaced("v1", NAMESPACE, "secrets"), &secret)?;
    let project = json!({"apiVersion": GROUP, "kind": "AppProject",
        "metadata": {"name": "default"},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}});
    present(kube, &namespaced(GROUP, NAMESPACE, "appprojects"), &project)
}

/// Creates an object, unless it is there.
fn present(kube: &Api, path: &str, object: &Value) -> anyhow::Result<()> {
    let answer = fleet::answered(kube.post(path, object))?;
    ensure!(
        matches!(answer.status, 201 | 409),
        "{}: {} {}",
        object["metadata"]["name"],
        answer.status,
        answer.body
    );
    Ok(())
}

/// One that was synced three times, with six resources.
fn application(number: usize) -> Value {
    let name = name(number);
    let repository = format!("https://git.example.com/team-{:02}/deploy.git", number % 40);
    let image = format!("registry.example.com/{name}:1.4.2");
    let source = json!({"repoURL": repository, "path": format!("apps/{name}/overlays/production"),
        "targetRevision": "main", "kustomize": {"images": [image]}});
    let destination = json!({"server": "https://kubernetes.default.svc", "namespace": name});
    let kinds = [
        ("", "ConfigMap", "v1"),
        ("", "Service", "v1"),
        ("", "ServiceAccount", "v1"),
        ("apps", "Deployment", "v1"),
        ("autoscaling", "HorizontalPodAutoscaler", "v2"),
        ("networking.k8s.io", "Ingress", "v1"),
    ];
    let resource = |(group, kind, version): &(&str, &str, &str), more: Value| {
        let mut resource =
            json!({"kind": kind, "version": version, "namespace": name, "name": name});
        // Argo CD leaves the empty group out, except in results.
        if !group.is_empty() || more.get("syncPhase").is_some() {
            resource["group"] = json!(group);
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            resource[key] = value.clone();
        }
        resource
    };
    let well = json!({"status": "Synced", "health": {"status": "Healthy"}});
    let resources: Vec<_> = kinds.iter().map(|k| resource(k, well.clone())).collect();
    let synced = |of: &(&str, &str, &str)| {
        let message = format!("{}/{name} configured", of.1.to_lowercase());
        let result = json!({"status": "Synced", "message": message, "hookPhase": "Running",
            "syncPhase": "Sync"});
        resource(of, result)
    };
    let results: Vec<_> = kinds.iter().map(synced).collect();
    let revision = |id: usize| format!("{:040x}", (number + 1) * 2_654_435_761 + id);
    let past = |id: usize| {
        json!({"id": id, "revision": revision(id), "source": source,
            "deployStartedAt": format!("2026-01-0{}T10:00:00Z", id + 1),
            "deployedAt": format!("2026-01-0{}T10:00:04Z", id + 1),
            "initiatedBy": {"automated": true}})
    };
    let operation = json!({"initiatedBy": {"automated": true}, "retry": {"limit": 5},
        "sync": {"prune": true, "revision": revision(2)}});
    let state = json!({"phase": "Succeeded", "message": "successfully synced (all tasks run)",
        "startedAt": "2026-01-03T10:00:00Z", "finishedAt": "2026-01-03T10:00:04Z",
        "operation": operation,
        "syncResult": {"revision": revision(2), "source": source, "resources": results}});
    let status = json!({
        "reconciledAt": "2026-01-03T10:05:00Z", "sourceType": "Kustomize",
        "health": {"status": "Healthy", "lastTransitionTime": "2026-01-03T10:00:30Z"},
        "sync": {"status": "Synced", "revision": revision(2),
            "comparedTo": {"source": source, "destination": destination}},
        "resources": resources, "history": [past(0), past(1), past(2)],
        "summary": {"images": [image], "externalURLs": [format!("https://{name}.example.com/")]},
        "operationState": state
    });
    let spec = json!({"project": "default", "source": source, "destination": destination,
        "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "retry": {"limit": 5},
            "syncOptions": ["CreateNamespace=true", "ServerSideApply=true"]}});
    let annotation = "notifications.argoproj.io/subscribe.on-sync-failed.slack";
    json!({"apiVersion": GROUP, "kind": "Application",
        "metadata": {"name": name, "annotations": {annotation: "deployments"},
            "labels": {LABEL: page(number), "team": format!("team-{:02}", number % 40)}},
        "spec": spec, "status": status})
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_api::Application;

    /// What the first has and the second has not, or has otherwise.
    fn lost(stored: &Value, read: &Value, path: &str) -> Vec<String> {
        let inside = |key: String, stored: &Value, read: Option<&Value>| {
            let path = format!("{path}/{key}");
            read.map_or_else(|| vec![path.clone()], |read| lost(stored, read, &path))
        };
        match (stored, read) {
            (Value::Object(stored), Value::Object(read)) => {
                let fields = stored.iter();
                let fields = fields.flat_map(|(key, v)| inside(key.clone(), v, read.get(key)));
                fields.collect()
            }
            (Value::Array(stored), Value::Array(read)) => {
                let items = stored.iter().enumerate();
                let items = items.flat_map(|(i, v)| inside(i.to_string(), v, read.get(i)));
                items.collect()
            }
            _ if stored == read => Vec::new(),
            _ => vec![path.to_owned()],
        }
    }

    /// An API server drops a field that the kind does not have, and then nobody measures it.
    #[test]
    fn applications_have_only_fields_of_their_kind() {
        let stored = application(12_345);
        let app: Application = serde_json::from_value(stored.clone()).expect("an Application");
        let read = serde_json::to_value(&app).expect("JSON");
        assert_eq!(read["metadata"]["name"], "app-12345");
        let lost = lost(&stored, &read, "");
        assert!(lost.is_empty(), "{lost:?}");
        let size = stored.to_string().len();
        assert!((3_000..8_000).contains(&size), "{size} bytes");
    }

    #[test]
    fn a_hundred_have_the_same_label() {
        let alike = (0..1_000).filter(|n| page(*n) == page(730)).count();
        assert_eq!(alike, PAGE);
        assert_ne!(page(99), page(100));
    }
}

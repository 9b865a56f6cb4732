//! The short notation of objects: `kind name word…`. Main functions: [`object`], and [`fields`] for
//! a change of one.
//!
//! Words for every kind: `wave=`, `hook=`, `delete=` (a hook's policies), `options=` (sync
//! options), `compare=` (compare options), `namespace=`, `label:k=v`, `annotation:k=v`,
//! `finalizer=`. A word with a dot in its left side sets that field: `spec.replicas=3`. A name that
//! ends with `*` is generated. Other words depend on the kind, see [`KINDS`].

use serde_json::{Map, Value, json};
use tiphys_gocompat::yaml;

const IMAGE: &str = "registry.example.org/web:v1";

/// A kind, and an object of it without any words. `NAME` stands for its name.
struct Known {
    word: &'static str,
    version: &'static str,
    kind: &'static str,
    base: fn(&str) -> Value,
}

const fn known(
    word: &'static str,
    version: &'static str,
    kind: &'static str,
    base: fn(&str) -> Value,
) -> Known {
    Known {
        word,
        version,
        kind,
        base,
    }
}

const KINDS: &[Known] = &[
    known("configmap", "v1", "ConfigMap", |_| json!({})),
    known("secret", "v1", "Secret", |_| json!({})),
    known("namespace", "v1", "Namespace", |_| json!({})),
    known("serviceaccount", "v1", "ServiceAccount", |_| json!({})),
    known(
        "service",
        "v1",
        "Service",
        |n| json!({"spec": {"selector": {"app": n}, "ports": [{"port": 80}]}}),
    ),
    known(
        "pod",
        "v1",
        "Pod",
        |n| json!({"spec": {"containers": containers(n)}}),
    ),
    known("volume", "v1", "PersistentVolume", |_| volume()),
    known("claim", "v1", "PersistentVolumeClaim", |_| claim()),
    known(
        "limitrange",
        "v1",
        "LimitRange",
        |_| json!({"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}),
    ),
    known(
        "quota",
        "v1",
        "ResourceQuota",
        |_| json!({"spec": {"hard": {"pods": "99"}}}),
    ),
    known(
        "networkpolicy",
        "networking.k8s.io/v1",
        "NetworkPolicy",
        |_| json!({"spec": {"podSelector": {}}}),
    ),
    known("deployment", "apps/v1", "Deployment", |n| {
        workload(n, json!({"replicas": 1}))
    }),
    known("statefulset", "apps/v1", "StatefulSet", |n| {
        workload(n, json!({"replicas": 1, "serviceName": n}))
    }),
    known("daemonset", "apps/v1", "DaemonSet", |n| {
        workload(n, json!({}))
    }),
    known("job", "batch/v1", "Job", |_| job()),
    known(
        "cronjob",
        "batch/v1",
        "CronJob",
        |_| json!({"spec": {"schedule": "0 0 1 1 *", "jobTemplate": job()}}),
    ),
    known(
        "pdb",
        "policy/v1",
        "PodDisruptionBudget",
        |n| json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": n}}}}),
    ),
    known(
        "role",
        "rbac.authorization.k8s.io/v1",
        "Role",
        |_| json!({"rules": []}),
    ),
    known(
        "rolebinding",
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        binding,
    ),
    known(
        "clusterrole",
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        |_| json!({"rules": []}),
    ),
    known(
        "crd",
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        definition,
    ),
    known(
        "appproject",
        "argoproj.io/v1alpha1",
        "AppProject",
        |_| json!({"metadata": {"namespace": "$ARGOCD"}, "spec": {}}),
    ),
    known(
        "webhook",
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        |_| json!({}),
    ),
    known(
        "application",
        "argoproj.io/v1alpha1",
        "Application",
        application,
    ),
];

fn containers(_: &str) -> Value {
    json!([{"name": "c", "image": IMAGE}])
}

fn workload(name: &str, spec: Value) -> Value {
    let labels = json!({"app": name});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": containers(name)}});
    let mut object = json!({"spec": {"selector": {"matchLabels": labels}, "template": template}});
    merge(&mut object["spec"], spec);
    object
}

/// Binds the ClusterRole of the same name to the service account `deployer`.
fn binding(name: &str) -> Value {
    json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "$NS"}]})
}

fn job() -> Value {
    let container = json!({"name": "c", "image": IMAGE, "command": ["true"]});
    json!({"spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}})
}

/// A volume for a claim of the same script: a real control plane without a provisioner has no
/// others.
fn volume() -> Value {
    json!({"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "$APP", "hostPath": {"path": "/tmp/none"}}})
}

fn claim() -> Value {
    json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "$APP", "resources": {"requests": {"storage": "1Gi"}}}})
}

/// `crd widgets`: kind Widget of the script's own group.
fn definition(name: &str) -> Value {
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    let singular = plural.trim_end_matches('s');
    let kind = singular[..1].to_uppercase() + &singular[1..];
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    json!({"spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "singular": singular, "kind": kind}, "versions": [version]}})
}

/// An Application within the script's own.
fn application(_: &str) -> Value {
    json!({"metadata": {"namespace": "$ARGOCD"}, "spec": {"project": "default",
        "source": {"repoURL": "$REPO", "path": ".", "targetRevision": "HEAD"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "$NS"}}})
}

/// The words of a line; quotes protect spaces.
pub fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|w| !w.is_empty());
    words
}

/// `apiVersion` and `kind` for a word such as `deployment`, `Deployment`, or kubectl's
/// `Kind.version.group`. An unknown kind belongs to the script's own group.
pub fn type_of(word: &str) -> (String, String) {
    if let Some((kind, rest)) = word.split_once('.') {
        let version = rest.split_once('.').map_or_else(
            || rest.to_owned(),
            |(version, group)| format!("{group}/{version}"),
        );
        return (version, kind.to_owned());
    }
    match find(word) {
        Some(known) => (known.version.to_owned(), known.kind.to_owned()),
        None => ("$APP.example.org/v1".to_owned(), word.to_owned()),
    }
}

fn find(word: &str) -> Option<&'static Known> {
    KINDS.iter().find(|k| k.word == word || k.kind == word)
}

/// The object of a line such as `deployment web replicas=2 wave=1`.
pub fn object(line: &str) -> Result<Value, String> {
    let words = words(line);
    let [kind, name, rest @ ..] = words.as_slice() else {
        return Err(format!("`{line}`: an object has a kind and a name"));
    };
    let (version, kind) = type_of(kind);
    let name = if kind == "CustomResourceDefinition" && !name.contains('.') {
        format!("{name}.$APP.example.org")
    } else {
        name.clone()
    };
    let mut object = json!({"apiVersion": version, "kind": kind});
    match name.strip_suffix('*') {
        Some(begin) => object["metadata"]["generateName"] = begin.into(),
        None => object["metadata"]["name"] = name.clone().into(),
    }
    merge(
        &mut object,
        find(&kind).map_or(json!({}), |k| (k.base)(name.trim_end_matches('*'))),
    );
    for word in rest {
        set(&mut object, &kind, word)?;
    }
    Ok(object)
}

/// The changes that words make to an object of a kind: a JSON merge patch.
pub fn fields(kind: &str, words: &[String]) -> Result<Value, String> {
    let mut patch = json!({});
    words
        .iter()
        .try_for_each(|word| set(&mut patch, kind, word))?;
    Ok(patch)
}

fn set(object: &mut Value, kind: &str, word: &str) -> Result<(), String> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let annotation =
        |object: &mut Value, name: &str| object["metadata"]["annotations"][name] = text(value);
    match name {
        "wave" => annotation(object, "argocd.argoproj.io/sync-wave"),
        "hook" => annotation(object, "argocd.argoproj.io/hook"),
        "delete" => annotation(object, "argocd.argoproj.io/hook-delete-policy"),
        "options" => annotation(object, "argocd.argoproj.io/sync-options"),
        "compare" => annotation(object, "argocd.argoproj.io/compare-options"),
        "namespace" => object["metadata"]["namespace"] = value.into(),
        "finalizer" => {
            object["metadata"]["finalizers"] = if value.is_empty() {
                json!([])
            } else {
                json!([value])
            }
        }
        name if name.starts_with("annotation:") => annotation(object, &name["annotation:".len()..]),
        name if name.starts_with("label:") => {
            object["metadata"]["labels"][&name["label:".len()..]] = text(value)
        }
        name if name.contains('.') => put(object, name, scalar(value)?),
        name => return set_own(object, kind, name, value),
    }
    Ok(())
}

/// The words of the kinds.
fn set_own(object: &mut Value, kind: &str, name: &str, value: &str) -> Result<(), String> {
    let template = match kind {
        "Pod" => "",
        "CronJob" => "/spec/jobTemplate/spec/template",
        _ => "/spec/template",
    };
    let container = |object: &mut Value, fields: Value| {
        let path = format!("{template}/spec/containers");
        let mut list = object
            .pointer(&path)
            .cloned()
            .unwrap_or_else(|| containers(""));
        merge(&mut list[0], fields);
        put(object, &path[1..].replace('/', "."), list);
    };
    match (kind, name) {
        ("ConfigMap", _) => object["data"][name] = text(value),
        ("Secret", _) => object["stringData"][name] = text(value),
        ("Deployment" | "StatefulSet", "replicas") => object["spec"]["replicas"] = scalar(value)?,
        ("StatefulSet", "claim") => {
            let mut template = claim();
            template["metadata"] = json!({"name": value});
            object["spec"]["volumeClaimTemplates"] = json!([template]);
        }
        ("Job" | "CronJob" | "Pod", "fails") => container(object, json!({"command": ["false"]})),
        ("Job" | "CronJob" | "Pod", "sleep") => {
            container(object, json!({"command": ["sleep", value]}))
        }
        ("Deployment" | "StatefulSet" | "DaemonSet" | "Job" | "CronJob" | "Pod", "image") => {
            container(
                object,
                json!({"image": format!("registry.example.org/web:{value}")}),
            );
        }
        ("Deployment" | "StatefulSet" | "DaemonSet" | "Pod", "never-ready") => {
            container(
                object,
                json!({"readinessProbe": {"httpGet": {"path": "/does-not-exist", "port": 80}}}),
            );
        }
        ("CronJob", "schedule") => object["spec"]["schedule"] = value.into(),
        ("ValidatingWebhookConfiguration", "webhooks") => object["webhooks"] = scalar(value)?,
        ("Application", "path") => object["spec"]["source"]["path"] = value.into(),
        (kind, name) if find(kind).is_none() => object["spec"][name] = scalar(value)?,
        (kind, name) => return Err(format!("{kind} has no word `{name}`")),
    }
    Ok(())
}

/// Text; `null` removes it.
fn text(value: &str) -> Value {
    if value == "null" {
        Value::Null
    } else {
        value.into()
    }
}

/// A value in YAML's flow style.
fn scalar(text: &str) -> Result<Value, String> {
    yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::LastWins)
        .map_err(|e| format!("`{text}`: {e}"))
}

fn put(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for field in path.split('.') {
        place = &mut place[field];
    }
    *place = value;
}

/// Merges one value into another: maps are merged, everything else is replaced.
pub fn merge(under: &mut Value, over: Value) {
    match over {
        Value::Object(map) => {
            if !under.is_object() {
                *under = Value::Object(Map::new());
            }
            for (name, value) in map {
                merge(&mut under[name.as_str()], value);
            }
        }
        value => *under = value,
    }
}

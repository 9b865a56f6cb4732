//! Sets the service account of a new pod: the account must exist, its pull secrets are added, and
//! its token is mounted.

use super::{Cluster, Objects, Operation, Request, containers, forbidden, spec};
use crate::base::WriteOptions;
use crate::catalog::Resource;
use crate::status::Status;
use crate::validation::MIRROR;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_apimachinery::{Gvk, Gvr, Object};
use tiphys_kube_schema::formats::path_segment;

const DEFAULT: &str = "default";
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_VOLUME: &str = "kube-api-access-";
/// With this annotation, a pod may use only the secrets that the account lists.
const ENFORCED: &str = "kubernetes.io/enforce-mountable-secrets";

/// Completes a new pod.
pub fn admit(cluster: &dyn Cluster, resource: &Resource, pod: &mut Object) -> Result<(), Status> {
    if pod.annotation(MIRROR).is_some() {
        return mirror(resource, pod);
    }
    let name = Some(pod.str_at("/spec/serviceAccountName"))
        .filter(|n| !n.is_empty())
        .unwrap_or(DEFAULT)
        .to_owned();
    let namespace = pod.namespace().to_owned();
    let Some(account) = find(cluster, &namespace, &name) else {
        let odd = path_segment(&name);
        let why = match odd.is_empty() {
            true => format!("serviceaccount \"{name}\" not found"),
            false => format!("invalid resource name \"{name}\": [{}]", odd.join(", ")),
        };
        let why = format!("error looking up service account {namespace}/{name}: {why}");
        return Err(forbidden(resource, pod, &why));
    };
    let fields = spec(pod);
    fields.insert("serviceAccountName".into(), name.as_str().into());
    fields.insert("serviceAccount".into(), name.into());
    let wanted = [
        fields.get("automountServiceAccountToken"),
        account.0.get("automountServiceAccountToken"),
    ];
    if wanted
        .into_iter()
        .flatten()
        .find_map(Value::as_bool)
        .unwrap_or(true)
    {
        mount_token(fields);
    }
    let pulls = account
        .0
        .get("imagePullSecrets")
        .and_then(Value::as_array)
        .filter(|list| !list.is_empty());
    if let (true, Some(list)) = (is_empty(fields, "imagePullSecrets"), pulls) {
        let names: Vec<Value> = list.iter().map(|s| json!({"name": s["name"]})).collect();
        fields.insert("imagePullSecrets".into(), names.into());
    }
    match enforces(&account)
        .then(|| foreign_secret(&account, pod))
        .flatten()
    {
        Some(why) => Err(forbidden(resource, pod, &why)),
        None => Ok(()),
    }
}

fn enforces(account: &Object) -> bool {
    account
        .annotation(ENFORCED)
        .is_some_and(|text| matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"))
}

/// Rejects ephemeral containers with secrets that the account does not list. The real server's
/// error does not say that it is forbidden.
pub fn check(request: &Request<'_>, objects: Objects<'_>) -> Result<(), Status> {
    let debugged =
        request.resource.table == "/pods" && request.subresource == "ephemeralcontainers";
    let Some(pod) = objects
        .new
        .filter(|_| debugged && request.operation == Operation::Update)
    else {
        return Ok(());
    };
    let account = find(
        request.cluster,
        pod.namespace(),
        pod.str_at("/spec/serviceAccountName"),
    );
    let account = account.filter(|account| enforces(account));
    let foreign = account.and_then(|account| {
        secret_of_container(
            &account,
            pod,
            ("ephemeralContainers", "ephemeral container"),
        )
    });
    foreign.map_or(Ok(()), |why| Err(Status::new(500, "", why)))
}

fn is_empty(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key)
        .and_then(Value::as_array)
        .is_none_or(Vec::is_empty)
}

/// A controller creates the default account shortly after the namespace; the API server waits for
/// it.
fn find(cluster: &dyn Cluster, namespace: &str, name: &str) -> Option<Arc<Object>> {
    let gvr = Gvr::new("", "v1", "serviceaccounts");
    if let Ok(found) = cluster.get(&gvr, namespace, name) {
        return Some(found);
    }
    if name != DEFAULT || !cluster.has_controllers() {
        return None;
    }
    let account = Object::skeleton(&Gvk::new("", "v1", "ServiceAccount"), namespace, name);
    match cluster.make_account(
        &gvr,
        namespace,
        account,
        &WriteOptions::manager("kube-controller-manager"),
    ) {
        Ok(account) => Some(account),
        Err(_) => cluster.get(&gvr, namespace, name).ok(),
    }
}

/// A mirror pod represents a static pod of a kubelet: it has no account.
fn mirror(resource: &Resource, pod: &Object) -> Result<(), Status> {
    let volumes = pod
        .pointer("/spec/volumes")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let tokens = |v: &Value| {
        let sources = v.pointer("/projected/sources").and_then(Value::as_array);
        sources
            .into_iter()
            .flatten()
            .any(|s| s["serviceAccountToken"].is_object())
    };
    let problem = match () {
        () if !pod.str_at("/spec/serviceAccountName").is_empty() => {
            "a mirror pod may not reference service accounts"
        }
        () if pod.0.get("spec").is_some_and(names_secret) => {
            "a mirror pod may not reference secrets"
        }
        () if volumes.iter().any(tokens) => {
            "a mirror pod may not use ServiceAccountToken volume projections"
        }
        () => return Ok(()),
    };
    Err(forbidden(resource, pod, problem))
}

/// Adds the volume that gives containers access to the API.
fn mount_token(fields: &mut Map<String, Value>) {
    let volumes = fields.get("volumes").and_then(Value::as_array);
    let present = volumes
        .into_iter()
        .flatten()
        .filter_map(|v| v["name"].as_str())
        .find(|name| name.starts_with(TOKEN_VOLUME));
    let present = present.map(str::to_owned);
    let name = present
        .clone()
        .unwrap_or_else(|| format!("{TOKEN_VOLUME}{}", crate::base::random_suffix()));
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in containers(fields, list) {
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            let Some(mounts) = mounts.as_array_mut() else {
                continue;
            };
            if !mounts.iter().any(|m| m["mountPath"] == TOKEN_PATH) {
                mounts.push(json!({"name": name, "mountPath": TOKEN_PATH, "readOnly": true}));
                mounted = true;
            }
        }
    }
    let volumes = fields.entry("volumes").or_insert_with(|| json!([]));
    if let (true, None, Some(volumes)) = (mounted, present, volumes.as_array_mut()) {
        let field = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
        let sources = json!([
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ]);
        volumes
            .push(json!({"name": name, "projected": {"defaultMode": 0o644, "sources": sources}}));
    }
}

fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn lists(account: &Object, field: &str, name: &Value) -> bool {
    account
        .0
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .any(|entry| entry["name"] == *name)
}

fn not_listed(account: &Object, what: &str) -> String {
    format!(
        "{what} is not allowed because service account {} does not reference that secret",
        account.name()
    )
}

/// The first secret in use that the account does not list.
fn foreign_secret(account: &Object, pod: &Object) -> Option<String> {
    let spec = pod.0.get("spec")?;
    for volume in list(spec, "/volumes") {
        let name = &volume["secret"]["secretName"];
        if !name.is_null() && !lists(account, "secrets", name) {
            return Some(not_listed(
                account,
                &format!("volume with secret.secretName={name}"),
            ));
        }
    }
    let kinds = [
        ("initContainers", "init container"),
        ("containers", "container"),
    ];
    if let Some(why) = kinds
        .into_iter()
        .find_map(|kind| secret_of_container(account, pod, kind))
    {
        return Some(why);
    }
    let (i, secret) = list(spec, "/imagePullSecrets")
        .enumerate()
        .find(|(_, secret)| !lists(account, "imagePullSecrets", &secret["name"]))?;
    let (name, account) = (&secret["name"], account.name());
    let rest = format!(
        "is not allowed because service account {account} does not reference that imagePullSecret"
    );
    Some(format!("imagePullSecrets[{i}].name={name} {rest}"))
}

/// The same for the containers of a list, given their name in messages.
fn secret_of_container(
    account: &Object,
    pod: &Object,
    (field, word): (&str, &str),
) -> Option<String> {
    for container in list(pod.0.get("spec")?, &format!("/{field}")) {
        let of = container["name"].as_str().unwrap_or("");
        for variable in list(container, "/env") {
            let name = &variable["valueFrom"]["secretKeyRef"]["name"];
            if !name.is_null() && !lists(account, "secrets", name) {
                let own = variable["name"].as_str().unwrap_or("");
                return Some(not_listed(
                    account,
                    &format!("{word} {of} with envVar {own} referencing secret.secretName={name}"),
                ));
            }
        }
        for source in list(container, "/envFrom") {
            let name = &source["secretRef"]["name"];
            if !name.is_null() && !lists(account, "secrets", name) {
                return Some(not_listed(
                    account,
                    &format!("{word} {of} with envFrom referencing secret.secretName={name}"),
                ));
            }
        }
    }
    None
}

/// Whether any part of a pod refers to a secret. Of a volume with several sources, only one is
/// checked.
fn names_secret(spec: &Value) -> bool {
    const SOURCES: [(&str, &str); 11] = [
        ("azureFile", "/secretName"),
        ("cephfs", "/secretRef/name"),
        ("cinder", "/secretRef/name"),
        ("flexVolume", "/secretRef/name"),
        ("projected", ""),
        ("rbd", "/secretRef/name"),
        ("secret", "/secretName"),
        ("scaleIO", "/secretRef/name"),
        ("iscsi", "/secretRef/name"),
        ("storageos", "/secretRef/name"),
        ("csi", "/nodePublishSecretRef/name"),
    ];
    let named = |value: &Value, pointer: &str| {
        value
            .pointer(pointer)
            .and_then(Value::as_str)
            .is_some_and(|name| !name.is_empty())
    };
    let of_container = |container: &Value| {
        list(container, "/envFrom").any(|source| named(source, "/secretRef/name"))
            || list(container, "/env")
                .any(|variable| named(variable, "/valueFrom/secretKeyRef/name"))
    };
    let of_volume = |volume: &Value| match SOURCES
        .into_iter()
        .find(|(source, _)| volume[*source].is_object())
    {
        Some(("projected", _)) => {
            list(volume, "/projected/sources").any(|source| named(source, "/secret/name"))
        }
        Some((source, pointer)) => named(&volume[source], pointer),
        None => false,
    };
    list(spec, "/imagePullSecrets").any(|secret| named(secret, "/name"))
        || ["/initContainers", "/containers", "/ephemeralContainers"]
            .iter()
            .any(|all| list(spec, all).any(of_container))
        || list(spec, "/volumes").any(of_volume)
}

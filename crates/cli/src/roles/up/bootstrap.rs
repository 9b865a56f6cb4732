//! Creates what must exist in the control plane's namespace before the roles start: CRDs, settings,
//! the admin password, the default project. Main function: [`run`]. Only missing objects are
//! created: what a user changed stays.

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use http::Method;
use jiff::Timestamp;
use rand::{Rng, distr::Alphanumeric};
use serde_json::{Value, json};
use tiphys_api::constants::KNOWN_HOSTS_CM;
use tiphys_apimachinery::Object;
use tiphys_cluster::{
    Cluster, Error,
    request::{Call, MERGE_PATCH},
};
use tiphys_gocompat::yaml;

const CRDS: [&str; 4] = [
    include_str!("../../../../../deploy/crds/application-crd.yaml"),
    include_str!("../../../../../deploy/crds/applicationset-crd.yaml"),
    include_str!("../../../../../deploy/crds/appproject-crd.yaml"),
    include_str!("../../../../../deploy/crds/apprepository-crd.yaml"),
];
const CONFIG_MAPS: [&str; 5] = [
    "argocd-cm",
    "argocd-rbac-cm",
    "argocd-cmd-params-cm",
    "argocd-gpg-keys-cm",
    "argocd-tls-certs-cm",
];
const KNOWN_HOSTS: &str = include_str!("../../../../../deploy/ssh_known_hosts");
/// The same length as Argo CD's.
const PASSWORD_LENGTH: usize = 16;
/// The Secret with the first password of `admin`.
pub const INITIAL_PASSWORD: &str = "argocd-initial-admin-secret";

/// Creates what is missing. Returns the admin password if it was generated now.
pub async fn run(cluster: &Cluster, namespace: &str) -> anyhow::Result<Option<String>> {
    for text in CRDS {
        let crd = yaml::parse_documents(text, &yaml::Limits::default())?
            .into_iter()
            .next()
            .context("a CRD file is empty")?;
        create(
            cluster,
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &crd.value,
        )
        .await?;
    }
    wait_for_kinds(cluster, namespace).await?;
    create(
        cluster,
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
    )
    .await?;
    let core = |plural: &str| format!("/api/v1/namespaces/{namespace}/{plural}");
    for name in CONFIG_MAPS {
        create(cluster, &core("configmaps"), &labelled("ConfigMap", name)).await?;
    }
    own_records(cluster, namespace).await
}

/// Has an installation trust the public Git hosts, as one of Argo CD does. Where there is a user with
/// known hosts of their own, those count instead.
pub async fn known_hosts(cluster: &Cluster, namespace: &str) -> anyhow::Result<()> {
    let mut map = labelled("ConfigMap", KNOWN_HOSTS_CM);
    map["data"] = json!({"ssh_known_hosts": KNOWN_HOSTS});
    let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
    create(cluster, &collection, &map).await?;
    Ok(())
}

/// What an API server makes in an installation that has the rest: its keys and the password of
/// `admin` in argocd-secret, and the project `default`. Returns a new password.
pub async fn own_records(cluster: &Cluster, namespace: &str) -> anyhow::Result<Option<String>> {
    let collection = format!("/api/v1/namespaces/{namespace}/secrets");
    let password = secrets(cluster, &collection).await?;
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}], "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}
    });
    create(
        cluster,
        &format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/appprojects"),
        &project,
    )
    .await?;
    Ok(password)
}

fn labelled(kind: &str, name: &str) -> Value {
    let labels = json!({"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"});
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": labels}})
}

/// Adds the missing fields of `argocd-secret`, which may exist without content. A newly generated
/// password is stored in a Secret of its own, until an administrator deletes it.
async fn secrets(cluster: &Cluster, collection: &str) -> anyhow::Result<Option<String>> {
    let mut secret = labelled("Secret", "argocd-secret");
    secret["type"] = "Opaque".into();
    create(cluster, collection, &secret).await?;
    let path = format!("{collection}/argocd-secret");
    let found: Value = cluster.http().json(&Call::get(&path)).await?;
    let lacks = |key: &str| found["data"][key].as_str().is_none_or(str::is_empty);
    let encode = |bytes: &[u8]| STANDARD.encode(bytes);
    let mut data = serde_json::Map::new();
    if lacks("server.secretkey") {
        let key: [u8; 32] = rand::rng().random();
        data.insert(
            "server.secretkey".into(),
            encode(STANDARD.encode(key).as_bytes()).into(),
        );
    }
    let mut made = None;
    if lacks("admin.password") {
        let password = initial_password(cluster, collection).await?;
        let text = password.clone();
        let hash = tokio::task::spawn_blocking(move || bcrypt::hash(text, 10)).await??;
        data.insert("admin.password".into(), encode(hash.as_bytes()).into());
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        data.insert("admin.passwordMtime".into(), encode(now.as_bytes()).into());
        made = Some(password);
    }
    if !data.is_empty() {
        // If two processes start at once, one of the writes fails, and that process starts over.
        let patch = json!({"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "data": data});
        let call =
            Call::new(Method::PATCH, path).with_body(MERGE_PATCH, serde_json::to_vec(&patch)?);
        cluster
            .http()
            .send(&call)
            .await
            .context("Secret argocd-secret cannot be filled")?;
    }
    Ok(made)
}

/// The password in the Secret of an earlier, interrupted start, or a new one. It is stored before
/// it takes effect.
async fn initial_password(cluster: &Cluster, collection: &str) -> anyhow::Result<String> {
    let password: String = rand::rng()
        .sample_iter(Alphanumeric)
        .take(PASSWORD_LENGTH)
        .map(char::from)
        .collect();
    let mut secret = labelled("Secret", INITIAL_PASSWORD);
    secret["type"] = "Opaque".into();
    secret["data"] = json!({"password": STANDARD.encode(&password)});
    if create(cluster, collection, &secret).await? {
        return Ok(password);
    }
    let found: Value = cluster
        .http()
        .json(&Call::get(format!("{collection}/{INITIAL_PASSWORD}")))
        .await?;
    let stored = found["data"]["password"]
        .as_str()
        .and_then(|text| String::from_utf8(STANDARD.decode(text).ok()?).ok());
    stored.filter(|p| !p.is_empty()).with_context(|| {
        format!("Secret {INITIAL_PASSWORD} has no `password`: delete it, a new one is made")
    })
}

/// The first password, as long as it is still valid for `admin`.
pub async fn known_password(cluster: &Cluster, namespace: &str) -> anyhow::Result<Option<String>> {
    let read = async |name: &str, key: &str| -> anyhow::Result<Option<String>> {
        let secret = match cluster
            .http()
            .json::<Value>(&Call::get(format!(
                "/api/v1/namespaces/{namespace}/secrets/{name}"
            )))
            .await
        {
            Ok(secret) => secret,
            Err(e) if e.is_not_found() => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        Ok(secret["data"][key]
            .as_str()
            .and_then(|text| String::from_utf8(STANDARD.decode(text).ok()?).ok()))
    };
    let (first, hash) = (
        read(INITIAL_PASSWORD, "password").await?,
        read("argocd-secret", "admin.password").await?,
    );
    let (Some(first), Some(hash)) = (first, hash) else {
        return Ok(None);
    };
    let password = first.clone();
    let is_it =
        tokio::task::spawn_blocking(move || bcrypt::verify(first, &hash).unwrap_or(false)).await?;
    Ok(is_it.then_some(password))
}

/// Creates an object; returns whether it was missing.
pub async fn create(cluster: &Cluster, collection: &str, object: &Value) -> anyhow::Result<bool> {
    let call = Call::new(Method::POST, collection)
        .with_body("application/json", serde_json::to_vec(object)?);
    match cluster.http().json::<Object>(&call).await {
        Ok(_) => Ok(true),
        Err(e) if e.is_already_exists() => Ok(false),
        Err(e) => Err(e).with_context(|| {
            let (kind, name) = (
                object["kind"].as_str().unwrap_or_default(),
                object["metadata"]["name"].as_str().unwrap_or_default(),
            );
            format!("{kind} {name} cannot be created")
        }),
    }
}

/// A CRD is served a moment after it was created.
async fn wait_for_kinds(cluster: &Cluster, namespace: &str) -> anyhow::Result<()> {
    for plural in ["applications", "applicationsets", "appprojects"] {
        let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/{plural}");
        let mut patience = 100;
        loop {
            match cluster.http().json::<Value>(&Call::get(path.clone())).await {
                Ok(_) => break,
                Err(e) if e.is_not_found() && patience > 0 => patience -= 1,
                Err(e) => return Err(Error::into(e)),
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_hosts_are_the_public_ones_with_keys_of_the_types_they_say() {
        let mut hosts = std::collections::BTreeSet::new();
        for line in KNOWN_HOSTS.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let [host, kind, key] = words[..] else {
                panic!("{line}");
            };
            let key = STANDARD.decode(key).expect("base64");
            let length = usize::from(key[3]);
            assert_eq!(key[4..4 + length], *kind.as_bytes(), "{line}");
            hosts.insert(host);
        }
        let public = [
            "[ssh.github.com]:443",
            "bitbucket.org",
            "github.com",
            "gitlab.com",
            "ssh.dev.azure.com",
            "vs-ssh.visualstudio.com",
        ];
        assert!(hosts.into_iter().eq(public));
    }
}

//! Where a cluster is, from a kubeconfig, the environment or a cluster Secret, as one [`kube::Config`].

use super::{Overrides, Source};
use crate::error::Error;
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::PathBuf};
use tiphys_apimachinery::Object;

/// The credentials inside a cluster Secret; they have no Debug and no Display.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Credentials {
    pub username: String,
    pub password: String,
    pub bearer_token: String,
    pub tls_client_config: TlsClientConfig,
    pub exec_provider_config: Option<Value>,
    pub aws_auth_config: Option<Value>,
    pub proxy_url: String,
    pub disable_compression: bool,
}

/// `tlsClientConfig`; the data fields are base64 of PEM, as in the Secret.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsClientConfig {
    pub insecure: bool,
    pub server_name: String,
    pub ca_data: String,
    pub cert_data: String,
    pub key_data: String,
}

/// An Argo CD cluster Secret (`argocd.argoproj.io/secret-type: cluster`).
#[derive(Clone, Default)]
pub struct ClusterSecret {
    pub secret_name: String,
    /// The Secret's own.
    pub uid: String,
    pub name: String,
    pub server: String,
    pub namespaces: Vec<String>,
    pub cluster_resources: bool,
    pub project: String,
    pub shard: Option<i64>,
    pub config: Credentials,
    /// The Secret's.
    pub labels: BTreeMap<String, String>,
}

impl ClusterSecret {
    /// Reads the Secret's `data` (or `stringData`). An error names the field.
    pub fn from_secret(secret: &Object) -> Result<Self, Error> {
        let origin = format!("cluster Secret {}/{}", secret.namespace(), secret.name());
        let field = |name: &str| {
            secret_field(secret, name).map_err(|p| Error::config(&origin, format!("data.{name} {p}"), "store base64 of UTF-8 text"))
        };
        let server = field("server")?.unwrap_or_default();
        if server.is_empty() {
            return Err(Error::config(origin, "data.server is missing", "set it to the URL of the API server"));
        }
        let config = match field("config")?.filter(|c| !c.trim().is_empty()) {
            None => Credentials::default(),
            Some(text) => serde_json::from_str(&text).map_err(|e| {
                Error::config(
                    &origin,
                    format!("data.config is not the expected JSON: {e}"),
                    "correct it; see the declarative setup of clusters",
                )
            })?,
        };
        let name = field("name")?.filter(|n| !n.is_empty()).unwrap_or_else(|| server.clone());
        let namespaces = field("namespaces")?.unwrap_or_default();
        let shard = match field("shard")?.filter(|s| !s.is_empty()) {
            None => None,
            Some(s) => Some(
                s.trim()
                    .parse()
                    .map_err(|_| Error::config(&origin, format!("data.shard is {s:?}, not a number"), "store a number or remove it"))?,
            ),
        };
        Ok(Self {
            secret_name: secret.name().to_owned(),
            uid: secret.uid().to_owned(),
            name,
            server: server.trim_end_matches('/').to_owned(),
            namespaces: namespaces.split(',').map(str::trim).filter(|n| !n.is_empty()).map(str::to_owned).collect(),
            cluster_resources: field("clusterResources")?.as_deref() == Some("true"),
            project: field("project")?.unwrap_or_default(),
            shard,
            config,
            labels: secret.labels(),
        })
    }
}

/// One value of a Secret as text, from `stringData` or base64 `data`.
pub(crate) fn secret_field(secret: &Object, name: &str) -> Result<Option<String>, &'static str> {
    if let Some(text) = secret.0.get("stringData").and_then(|d| d.get(name)).and_then(Value::as_str) {
        return Ok(Some(text.to_owned()));
    }
    let Some(encoded) = secret.0.get("data").and_then(|d| d.get(name)) else { return Ok(None) };
    let encoded = encoded.as_str().ok_or("is not a string")?;
    let bytes = STANDARD.decode(encoded.trim()).map_err(|_| "is not base64")?;
    String::from_utf8(bytes).map(Some).map_err(|_| "is not UTF-8")
}

/// A source turned into what a client is made of. `origin` names it in messages.
pub(super) struct Resolved {
    pub config: Config,
    pub server: String,
    pub origin: String,
}

pub(super) async fn resolve(source: Source, overrides: &Overrides) -> Result<Resolved, Error> {
    match source {
        Source::Kubeconfig { path, context } => kubeconfig(path, context, overrides).await,
        Source::InCluster => in_cluster(),
        Source::Secret(secret) => from_secret(&secret).await,
        Source::Client { .. } => Err(Error::config("client", "is already made", "use it as it is")),
    }
}

fn in_cluster() -> Result<Resolved, Error> {
    let origin = "in-cluster configuration";
    let config = Config::incluster()
        .map_err(|e| Error::config(origin, root_cause(&e), "run inside a pod with a service account, or give --kubeconfig"))?;
    Ok(Resolved { config, server: super::IN_CLUSTER_SERVER.to_owned(), origin: origin.to_owned() })
}

async fn kubeconfig(path: Option<PathBuf>, context: Option<String>, overrides: &Overrides) -> Result<Resolved, Error> {
    let (file, kubeconfig) = match path {
        Some(path) => (format!("kubeconfig {}", path.display()), Kubeconfig::read_from(&path)),
        None => {
            let shown = std::env::var("KUBECONFIG").unwrap_or_else(|_| "~/.kube/config".to_owned());
            (format!("kubeconfig {shown}"), Kubeconfig::read())
        }
    };
    let mut kubeconfig = match kubeconfig {
        // A server on the command line needs no file.
        Err(KubeconfigError::FindPath | KubeconfigError::ReadConfig(..)) if overrides.is_enough() => Overrides::base(),
        result => result.map_err(|e| describe(&file, None, &e))?,
    };
    let chosen = context.clone().or_else(|| kubeconfig.current_context.clone()).filter(|c| !c.is_empty());
    let known: Vec<&str> = kubeconfig.contexts.iter().map(|c| c.name.as_str()).collect();
    let Some(chosen) = chosen else {
        return Err(Error::config(
            file,
            "current-context is not set",
            format!("set it, or choose one with --context: {}", known.join(", ")),
        ));
    };
    if !known.contains(&chosen.as_str()) {
        let fix = if known.is_empty() {
            "the file has no contexts: is it a kubeconfig?".to_owned()
        } else {
            format!("it has: {}", known.join(", "))
        };
        return Err(Error::config(file, format!("context {chosen:?} does not exist"), fix));
    }
    overrides.apply(&mut kubeconfig, &chosen);
    let options = KubeConfigOptions { context: Some(chosen.clone()), ..KubeConfigOptions::default() };
    let origin = format!("{file}, context {chosen:?}");
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|e| describe(&file, Some(&chosen), &e))?;
    let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    Ok(Resolved { config, server, origin })
}

fn describe(file: &str, context: Option<&str>, error: &KubeconfigError) -> Error {
    let origin = context.map_or_else(|| file.to_owned(), |c| format!("{file}, context {c:?}"));
    let (problem, fix) = match error {
        KubeconfigError::ReadConfig(e, _) => (format!("cannot be read: {e}"), "check the path and its permissions"),
        KubeconfigError::FindPath => ("no home folder to look for it in".to_owned(), "give the file with --kubeconfig"),
        KubeconfigError::Parse(e) => (format!("is not a kubeconfig: {e}"), "correct the YAML"),
        KubeconfigError::LoadClusterOfContext(name) => {
            (format!("names the cluster {name:?}, which the file does not have"), "add it under `clusters`, or correct the context")
        }
        KubeconfigError::MissingClusterUrl => ("the cluster has no `server`".to_owned(), "set clusters[].cluster.server"),
        KubeconfigError::ParseClusterUrl(e) => (format!("clusters[].cluster.server is no URL: {e}"), "use https://host:port"),
        KubeconfigError::LoadCertificateAuthority(e) => {
            (format!("certificate-authority(-data): {}", root_cause(e)), "correct the file or the base64 data")
        }
        KubeconfigError::LoadClientCertificate(e) => {
            (format!("client-certificate(-data): {}", root_cause(e)), "correct the file or the base64 data")
        }
        KubeconfigError::LoadClientKey(e) => (format!("client-key(-data): {}", root_cause(e)), "correct the file or the base64 data"),
        KubeconfigError::ParseCertificates(e) => (format!("certificate-authority(-data) is no PEM: {e}"), "put a PEM certificate there"),
        other => (root_cause(other), "correct the file"),
    };
    Error::config(origin, problem, fix)
}

pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// A cluster Secret says the same as a kubeconfig with one context, so it takes the same path.
async fn from_secret(secret: &ClusterSecret) -> Result<Resolved, Error> {
    let origin = format!("cluster {:?}", secret.name);
    let c = &secret.config;
    let unsupported = |field: &str| {
        Error::config(
            &origin,
            format!("config.{field} is not supported yet"),
            "use bearerToken, username/password, tlsClientConfig or execProviderConfig",
        )
    };
    if c.aws_auth_config.is_some() {
        return Err(unsupported("awsAuthConfig"));
    }
    if !c.proxy_url.is_empty() {
        return Err(unsupported("proxyUrl"));
    }
    if c.tls_client_config.insecure && !c.tls_client_config.ca_data.is_empty() {
        return Err(Error::config(origin, "config.tlsClientConfig has both insecure and caData", "remove one of them"));
    }
    let mut user = serde_json::Map::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            user.insert(name.to_owned(), value.into());
        }
    };
    put("username", &c.username);
    put("password", &c.password);
    put("token", &c.bearer_token);
    put("client-certificate-data", &c.tls_client_config.cert_data);
    put("client-key-data", &c.tls_client_config.key_data);
    if let Some(exec) = &c.exec_provider_config {
        user.insert("exec".to_owned(), exec_config(exec));
    }
    let mut cluster = json!({ "server": secret.server, "insecure-skip-tls-verify": c.tls_client_config.insecure });
    for (name, value) in
        [("certificate-authority-data", &c.tls_client_config.ca_data), ("tls-server-name", &c.tls_client_config.server_name)]
    {
        if !value.is_empty() {
            cluster[name] = value.as_str().into();
        }
    }
    let document = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "c", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    let kubeconfig: Kubeconfig =
        serde_json::from_value(document).map_err(|e| Error::config(&origin, format!("config: {e}"), "correct the Secret's config"))?;
    let options = KubeConfigOptions { context: Some("c".to_owned()), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|e| match describe(&origin, None, &e) {
        Error::Config { origin, problem, fix } => {
            Error::Config { origin, problem: problem.replace("certificate-authority(-data)", "config.tlsClientConfig.caData"), fix }
        }
        other => other,
    })?;
    Ok(Resolved { config, server: secret.server.clone(), origin })
}

/// Argo CD keeps the environment as a map, a kubeconfig as a list of name and value.
fn exec_config(exec: &Value) -> Value {
    let text = |name: &str| exec.get(name).and_then(Value::as_str).unwrap_or("");
    let env = exec.get("env").and_then(Value::as_object);
    let env: Vec<Value> = env.map(|m| m.iter().map(|(k, v)| json!({"name": k, "value": v})).collect()).unwrap_or_default();
    json!({
        "apiVersion": text("apiVersion"), "command": text("command"), "args": exec.get("args").cloned().unwrap_or_else(|| json!([])),
        "env": env, "installHint": text("installHint"), "interactiveMode": "Never",
        "provideClusterInfo": exec.get("provideClusterInfo").and_then(Value::as_bool).unwrap_or(false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(data: Value) -> Object {
        Object::from_value(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "argocd"}, "stringData": data}),
        )
        .expect("a map")
    }

    #[test]
    fn a_cluster_secret_is_read_with_argo_cds_field_names() {
        let config = r#"{"bearerToken":"t","tlsClientConfig":{"insecure":true}}"#;
        let s = secret(json!({"name": "prod", "server": "https://p:6443/", "namespaces": "a, b", "config": config, "shard": "2"}));
        let c = ClusterSecret::from_secret(&s).expect("valid");
        assert_eq!((c.name.as_str(), c.server.as_str(), c.namespaces.len(), c.shard), ("prod", "https://p:6443", 2, Some(2)));
        assert!(c.config.tls_client_config.insecure && c.config.bearer_token == "t");
    }

    #[test]
    fn errors_name_the_field() {
        for (data, want) in [
            (json!({"name": "x"}), "data.server is missing"),
            (json!({"server": "https://x", "config": "{"}), "data.config is not the expected JSON"),
            (json!({"server": "https://x", "shard": "one"}), "data.shard is \"one\""),
        ] {
            let error = ClusterSecret::from_secret(&secret(data)).err().expect("invalid").to_string();
            assert!(error.starts_with("cluster Secret argocd/s: ") && error.contains(want), "{error}");
        }
    }

    #[tokio::test]
    async fn a_kubeconfig_without_the_context_lists_those_it_has() {
        let file = std::env::temp_dir().join(format!("tiphys-kubeconfig-{}", std::process::id()));
        let text = "apiVersion: v1\nkind: Config\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: []\nusers: []\n";
        std::fs::write(&file, text).expect("writable");
        let wrong =
            kubeconfig(Some(file.clone()), Some("b".into()), &Overrides::default()).await.err().expect("no such context").to_string();
        let none = kubeconfig(Some(file.clone()), None, &Overrides::default()).await.err().expect("no current context").to_string();
        let dangling =
            kubeconfig(Some(file.clone()), Some("a".into()), &Overrides::default()).await.err().expect("no such cluster").to_string();
        std::fs::remove_file(&file).expect("there");
        assert!(wrong.contains("context \"b\" does not exist; it has: a"), "{wrong}");
        assert!(none.contains("current-context is not set"), "{none}");
        assert!(dangling.contains("context \"a\"") && dangling.contains("cluster"), "{dangling}");
    }
}

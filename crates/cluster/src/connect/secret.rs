//! Argo CD's cluster Secrets: parsing, and conversion to a [`kube::Config`].
//!
//! Main type: [`ClusterSecret`].

use super::{
    IN_CLUSTER_SERVER,
    config::{Resolved, describe, has_authority, in_cluster},
    tokens::Tokens,
};
use crate::error::Error;
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::constants::{REFRESH, SKIP_RECONCILE};
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
    /// Has no effect: responses are never requested compressed.
    pub disable_compression: bool,
}

impl Credentials {
    /// Whether it contains a user name or token.
    pub fn has_user(&self) -> bool {
        !(self.username.is_empty() && self.password.is_empty() && self.bearer_token.is_empty())
    }
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
    /// The Secret's uid.
    pub uid: String,
    pub name: String,
    pub server: String,
    pub namespaces: Vec<String>,
    pub cluster_resources: bool,
    pub project: String,
    pub shard: Option<i64>,
    pub config: Credentials,
    /// Its Applications are not reconciled.
    pub skipped: bool,
    /// The Secret's labels.
    pub labels: BTreeMap<String, String>,
    /// The annotation by which `argocd cluster` has the cache of the cluster made anew.
    pub refresh: Option<String>,
}

/// What a cluster Secret says about its cluster besides how to connect to it. It is known even if
/// the rest of the Secret is invalid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterIdentity {
    /// As written; may be empty.
    pub name: String,
    pub server: String,
    pub project: Option<String>,
}

impl ClusterIdentity {
    /// Reads the Secret's `data` (or `stringData`). An error names the field.
    pub fn from_secret(secret: &Object) -> Result<Self, Error> {
        let field = |name: &str| {
            secret_field(secret, name).map_err(|problem| {
                Error::config(
                    format!("cluster Secret {}/{}", secret.namespace(), secret.name()),
                    format!("data.{name} {problem}"),
                    "store base64 of UTF-8 text",
                )
            })
        };
        Ok(Self {
            name: field("name")?.unwrap_or_default(),
            server: field("server")?.unwrap_or_default(),
            project: field("project")?,
        })
    }
}

impl ClusterSecret {
    /// Reads the Secret's `data` (or `stringData`). An error names the field.
    pub fn from_secret(secret: &Object) -> Result<Self, Error> {
        let origin = format!("cluster Secret {}/{}", secret.namespace(), secret.name());
        let field = |name: &str| {
            secret_field(secret, name).map_err(|p| {
                Error::config(
                    &origin,
                    format!("data.{name} {p}"),
                    "store base64 of UTF-8 text",
                )
            })
        };
        let server = field("server")?.unwrap_or_default();
        if server.is_empty() {
            return Err(Error::config(
                origin,
                "data.server is missing",
                "set it to the URL of the API server",
            ));
        }
        let config = match field("config")?.filter(|c| !c.trim().is_empty()) {
            None => Credentials::default(),
            Some(text) => serde_json::from_str(&text).map_err(|e| {
                // The parser's message may repeat a value.
                let place = format!("line {}, column {}", e.line(), e.column());
                Error::config(
                    &origin,
                    format!("data.config is not the expected JSON ({place})"),
                    "correct it; see the declarative setup of clusters",
                )
            })?,
        };
        let name = field("name")?
            .filter(|n| !n.is_empty())
            .unwrap_or_else(|| server.clone());
        let namespaces = field("namespaces")?.unwrap_or_default();
        let shard = match field("shard")?.filter(|s| !s.is_empty()) {
            None => None,
            Some(s) => Some(s.trim().parse().map_err(|_| {
                Error::config(
                    &origin,
                    format!("data.shard is {s:?}, not a number"),
                    "store a number or remove it",
                )
            })?),
        };
        Ok(Self {
            secret_name: secret.name().to_owned(),
            uid: secret.uid().to_owned(),
            name,
            server: server.trim_end_matches('/').to_owned(),
            namespaces: namespaces
                .split(',')
                .map(str::trim)
                .filter(|n| !n.is_empty())
                .map(str::to_owned)
                .collect(),
            cluster_resources: field("clusterResources")?.as_deref() == Some("true"),
            project: field("project")?.unwrap_or_default(),
            shard,
            config,
            skipped: secret
                .annotation(SKIP_RECONCILE)
                .is_some_and(|word| ["1", "t", "T", "true", "TRUE", "True"].contains(&word)),
            labels: secret.labels(),
            refresh: secret.annotation(REFRESH).map(str::to_owned),
        })
    }
}

/// One value of a Secret as text, from `stringData` or base64 `data`.
pub(crate) fn secret_field(secret: &Object, name: &str) -> Result<Option<String>, &'static str> {
    if let Some(text) = secret
        .0
        .get("stringData")
        .and_then(|d| d.get(name))
        .and_then(Value::as_str)
    {
        return Ok(Some(text.to_owned()));
    }
    let Some(encoded) = secret.0.get("data").and_then(|d| d.get(name)) else {
        return Ok(None);
    };
    let encoded = encoded.as_str().ok_or("is not a string")?;
    let bytes = STANDARD
        .decode(encoded.trim())
        .map_err(|_| "is not base64")?;
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| "is not UTF-8")
}

const UNREADABLE_EXEC: &str =
    "config.execProviderConfig is not as expected: args is a list of texts, env a map of texts";

/// A cluster Secret is equivalent to a kubeconfig with one context, so it is handled the same way.
pub(super) async fn resolve(secret: &ClusterSecret) -> Result<Resolved, Error> {
    let origin = format!("cluster {:?}", secret.name);
    let c = &secret.config;
    if secret.server == IN_CLUSTER_SERVER {
        return in_this_one(c);
    }
    if c.tls_client_config.insecure && !c.tls_client_config.ca_data.is_empty() {
        return Err(Error::config(
            origin,
            "config.tlsClientConfig has both insecure and caData",
            "remove one of them",
        ));
    }
    let tokens = tokens(c).map_err(|(field, e)| {
        Error::config(
            &origin,
            format!("config.{field}: {e}"),
            "correct the Secret's config",
        )
    })?;
    let exec = c.exec_provider_config.as_ref().filter(|_| tokens.is_none());
    // A token provider takes precedence over any other credentials.
    let named = tokens.is_none() && exec.is_none();
    let mut user = serde_json::Map::new();
    let mut put = |name: &str, value: &str, wanted: bool| {
        if !value.is_empty() && wanted {
            user.insert(name.to_owned(), value.into());
        }
    };
    put("username", &c.username, named);
    put("password", &c.password, named);
    put("token", &c.bearer_token, named);
    put(
        "client-certificate-data",
        &c.tls_client_config.cert_data,
        true,
    );
    put("client-key-data", &c.tls_client_config.key_data, true);
    if let Some(exec) = exec {
        user.insert("exec".to_owned(), exec_config(exec));
    }
    let mut cluster = json!({ "server": secret.server, "insecure-skip-tls-verify": c.tls_client_config.insecure });
    for (name, value) in [
        ("certificate-authority-data", &c.tls_client_config.ca_data),
        ("tls-server-name", &c.tls_client_config.server_name),
    ] {
        if !value.is_empty() {
            cluster[name] = value.as_str().into();
        }
    }
    if let Some(config) = exec
        .and_then(|exec| exec.get("config"))
        .filter(|c| !c.is_null())
    {
        cluster["extensions"] =
            json!([{"name": "client.authentication.k8s.io/exec", "extension": config}]);
    }
    let document = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "c", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    let kubeconfig: Kubeconfig = serde_json::from_value(document)
        .map_err(|_| Error::config(&origin, UNREADABLE_EXEC, "correct the Secret's config"))?;
    let options = KubeConfigOptions {
        context: Some("c".to_owned()),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|e| match describe(&origin, None, &e) {
            Error::Config {
                origin,
                problem,
                fix,
            } => Error::Config {
                origin,
                problem: problem.replace(
                    "certificate-authority(-data)",
                    "config.tlsClientConfig.caData",
                ),
                fix,
            },
            other => other,
        })?;
    has_authority(&config, &origin, "config.tlsClientConfig.caData")?;
    let proxy = Some(c.proxy_url.clone()).filter(|url| !url.is_empty());
    Ok(Resolved {
        proxy,
        tokens,
        ..Resolved::new(config, secret.server.clone(), origin)
    })
}

/// The cluster that this process runs in: only the user and the proxy of its Secret are used.
fn in_this_one(credentials: &Credentials) -> Result<Resolved, Error> {
    let mut resolved = in_cluster()?;
    let user = &mut resolved.config.auth_info;
    let text = |value: &str| (!value.is_empty()).then(|| value.to_owned());
    if credentials.has_user() {
        user.token_file = None;
        user.username = text(&credentials.username);
        user.password = text(&credentials.password).map(Into::into);
        user.token = text(&credentials.bearer_token).map(Into::into);
    }
    resolved.proxy = text(&credentials.proxy_url);
    Ok(resolved)
}

/// The token provider, if the Secret configures one; an error with the field's name.
fn tokens(credentials: &Credentials) -> Result<Option<Arc<Tokens>>, (&'static str, String)> {
    let made = match (
        &credentials.aws_auth_config,
        &credentials.exec_provider_config,
    ) {
        (Some(aws), _) => Some(Tokens::aws(aws).map_err(|e| ("awsAuthConfig", e))),
        (None, Some(exec)) => {
            Tokens::of_exec(exec).map(|made| made.map_err(|e| ("execProviderConfig", e)))
        }
        (None, None) => None,
    };
    made.map(|tokens| tokens.map(Arc::new)).transpose()
}

/// Argo CD stores the environment as a map, a kubeconfig as a list of name and value.
fn exec_config(exec: &Value) -> Value {
    let text = |name: &str| exec.get(name).and_then(Value::as_str).unwrap_or("");
    let env = exec.get("env").and_then(Value::as_object);
    let env: Vec<Value> = env
        .map(|m| {
            m.iter()
                .map(|(k, v)| json!({"name": k, "value": v}))
                .collect()
        })
        .unwrap_or_default();
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
        let s = secret(
            json!({"name": "prod", "server": "https://p:6443/", "namespaces": "a, b", "config": config, "shard": "2"}),
        );
        let c = ClusterSecret::from_secret(&s).expect("valid");
        assert_eq!(
            (
                c.name.as_str(),
                c.server.as_str(),
                c.namespaces.len(),
                c.shard
            ),
            ("prod", "https://p:6443", 2, Some(2))
        );
        assert!(c.config.tls_client_config.insecure && c.config.bearer_token == "t" && !c.skipped);
        let mut s = s;
        s.set_annotation(SKIP_RECONCILE, "True");
        assert!(ClusterSecret::from_secret(&s).expect("valid").skipped);
    }

    #[test]
    fn errors_name_the_field() {
        for (data, want) in [
            (json!({"name": "x"}), "data.server is missing"),
            (
                json!({"server": "https://x", "config": "{"}),
                "data.config is not the expected JSON",
            ),
            (
                json!({"server": "https://x", "shard": "one"}),
                "data.shard is \"one\"",
            ),
        ] {
            let error = ClusterSecret::from_secret(&secret(data))
                .err()
                .expect("invalid")
                .to_string();
            assert!(
                error.starts_with("cluster Secret argocd/s: ") && error.contains(want),
                "{error}"
            );
        }
    }
}

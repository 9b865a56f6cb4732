//! `admin cluster kubeconfig`: a kubeconfig for a cluster, from its Secret. Main type:
//! [`Kubeconfig`].

use crate::{client::Failure, kubectl::kube::KubeArgs, output, private};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use tiphys_api::{
    cluster::{ClusterConfig, ExecProviderConfig},
    constants::IN_CLUSTER,
};

/// Where a pod finds its token.
const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Generates kubeconfig for the specified cluster
///
/// The file has the credentials of the cluster's Secret, and can be read by its owner only.
#[derive(clap::Args)]
pub struct Kubeconfig {
    /// Address of the cluster
    #[arg(value_name = "CLUSTER_URL")]
    url: String,
    /// The file to write
    #[arg(value_name = "OUTPUT_PATH")]
    path: PathBuf,
    #[command(flatten)]
    kube: KubeArgs,
}

impl Kubeconfig {
    pub async fn run(self) -> Result<(), Failure> {
        let target = super::connect(&self.kube)
            .await
            .map_err(|e| super::failed(&e))?;
        let namespace = super::backup::namespace(&self.kube, &target);
        let secrets =
            super::clusters::secrets(target.discovery.cluster().http(), &namespace).await?;
        let url = self.url.trim_end_matches('/');
        let meant =
            |secret: &&Value| super::clusters::text(secret, "server").trim_end_matches('/') == url;
        let config = match secrets.iter().find(meant) {
            Some(secret) => config(secret)?,
            // The own cluster needs no Secret.
            None if url == IN_CLUSTER => ClusterConfig::default(),
            None => {
                let text = format!("rpc error: code = NotFound desc = cluster {url:?} not found");
                return Err(Failure::error(text));
            }
        };
        let text = output::yaml(&kubeconfig(url, &namespace, &config))?;
        let path: &Path = &self.path;
        private::write(path, text.as_bytes()).map_err(|e| Failure::file(path, &e))
    }
}

fn config(secret: &Value) -> Result<ClusterConfig, Failure> {
    let text = super::clusters::text(secret, "config");
    if text.is_empty() {
        return Ok(ClusterConfig::default());
    }
    // The parser's message may repeat a value.
    serde_json::from_str(&text).map_err(|e| {
        let name = secret["metadata"]["name"].as_str().unwrap_or_default();
        Failure::error(format!(
            "Secret {name}: data.config is not the expected JSON (line {}, column {})",
            e.line(),
            e.column()
        ))
    })
}

/// All names in it are the address.
fn kubeconfig(server: &str, namespace: &str, config: &ClusterConfig) -> Value {
    let tls = &config.tls_client_config;
    let cluster = without_empty(json!({
        "server": server,
        "certificate-authority-data": STANDARD.encode(&tls.ca_data),
        "insecure-skip-tls-verify": tls.insecure,
        "tls-server-name": tls.server_name,
        "proxy-url": config.proxy_url,
    }));
    let mut user = without_empty(json!({
        "client-certificate-data": STANDARD.encode(&tls.cert_data),
        "client-key-data": STANDARD.encode(&tls.key_data),
        "username": config.username,
        "password": config.password,
        "token": config.bearer_token,
    }));
    if let Some(provider) = exec(config) {
        user.insert("exec".to_owned(), provider);
    }
    if user.is_empty() {
        user.insert("tokenFile".to_owned(), TOKEN_FILE.into());
    }
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": server,
        "clusters": [{"name": server, "cluster": cluster}],
        "contexts": [{
            "name": server,
            "context": {"cluster": server, "namespace": namespace, "user": server},
        }],
        "users": [{"name": server, "user": user}],
    })
}

/// The program that gives credentials; for AWS the one that Argo CD's controller runs.
fn exec(config: &ClusterConfig) -> Option<Value> {
    let provider = match (&config.aws_auth_config, &config.exec_provider_config) {
        (Some(aws), _) => {
            let mut args = vec!["aws".to_owned(), "--cluster-name".to_owned()];
            args.push(aws.cluster_name.clone());
            for (flag, value) in [("--role-arn", &aws.role_arn), ("--profile", &aws.profile)] {
                if !value.is_empty() {
                    args.extend([flag.to_owned(), value.clone()]);
                }
            }
            ExecProviderConfig {
                command: "argocd-k8s-auth".to_owned(),
                args,
                api_version: "client.authentication.k8s.io/v1beta1".to_owned(),
                ..Default::default()
            }
        }
        (None, provider) => provider.clone()?,
    };
    let env = provider.env.iter();
    let env: Vec<_> = env
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    Some(json!({
        "apiVersion": provider.api_version,
        "command": provider.command,
        "args": provider.args,
        "env": env,
        "installHint": provider.install_hint,
        "interactiveMode": "Never",
        "provideClusterInfo": provider.provide_cluster_info,
    }))
}

fn without_empty(value: Value) -> Map<String, Value> {
    let Value::Object(mut fields) = value else {
        return Map::new();
    };
    fields.retain(|_, value| *value != "" && *value != false);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_where_kubectl_looks() {
        let of = |config: Value| {
            let config = serde_json::from_value(config).expect("a configuration");
            let file = kubeconfig("https://a:1", "argocd", &config);
            (
                file["clusters"][0]["cluster"].clone(),
                file["users"][0]["user"].clone(),
            )
        };
        let (cluster, user) = of(json!({"bearerToken": "t", "proxyUrl": "http://p",
            "tlsClientConfig": {"caData": "Y2E=", "serverName": "kube"}}));
        assert_eq!(
            cluster,
            json!({"server": "https://a:1", "certificate-authority-data": "Y2E=",
                "tls-server-name": "kube", "proxy-url": "http://p"})
        );
        assert_eq!(user, json!({"token": "t"}));
        let (cluster, user) = of(json!({"tlsClientConfig": {"insecure": true}}));
        assert_eq!(cluster["insecure-skip-tls-verify"], true);
        assert_eq!(user, json!({"tokenFile": TOKEN_FILE}));
        let (_, user) = of(json!({"awsAuthConfig": {"clusterName": "c", "roleARN": "r"}}));
        assert_eq!(
            user["exec"]["args"],
            json!(["aws", "--cluster-name", "c", "--role-arn", "r"])
        );
        let (_, user) = of(
            json!({"execProviderConfig": {"command": "x", "env": {"K": "v"},
            "apiVersion": "client.authentication.k8s.io/v1"}}),
        );
        assert_eq!(user["exec"]["env"], json!([{"name": "K", "value": "v"}]));
    }

    #[test]
    fn a_broken_secret_is_named_without_its_values() {
        let data = STANDARD.encode("{\"bearerToken\": secret}");
        let secret = json!({"metadata": {"name": "cluster-a"}, "data": {"config": data}});
        let message = config(&secret).err().map(|e| e.message).unwrap_or_default();
        assert!(
            message.starts_with("Secret cluster-a: data.config is not"),
            "{message}"
        );
        assert!(!message.contains("secret}"), "{message}");
    }
}

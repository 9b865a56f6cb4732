//! `admin repo generate-spec` and `admin cluster generate-spec`: the Secrets of a repository and of
//! a cluster, from flags, for a repository. Main types: [`RepoSpecCommand`] and [`ClusterSpec`].

use crate::{
    client::Failure,
    commands::{
        cluster::{ClusterOptions, Endpoint},
        repo::RepoOptions,
    },
    output,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tiphys_api::constants::IN_CLUSTER;
use tiphys_cluster::{
    connect::{Cluster as Connection, ConnectOptions},
    manager::{MANAGER, Manager},
};
use tiphys_server::{
    access::{CredentialUse, cluster_secret, repository_secret},
    ports::SecretRecord,
};

/// The token of a cluster for which none was given.
const PLACEHOLDER: &str = "bearer-token";

#[derive(clap::Subcommand)]
pub enum RepoSpecCommand {
    /// Generate declarative config for a repo
    GenerateSpec {
        #[command(flatten)]
        options: Box<RepoOptions>,
        /// Output format. One of: json|yaml
        #[arg(long, short, default_value = "yaml", value_name = "FORMAT")]
        output: String,
    },
}

/// Generate declarative config for a cluster
///
/// Nothing is asked of the cluster, unless a token is to be generated.
#[derive(clap::Args)]
pub struct ClusterSpec {
    /// Name of a context in the kubeconfig; without it they are listed
    #[arg(value_name = "CONTEXT")]
    context: Option<String>,
    #[command(flatten)]
    options: ClusterOptions,
    /// Authentication token that should be used to access K8S API server
    #[arg(
        long,
        value_name = "TOKEN",
        default_value = "",
        hide_default_value = true
    )]
    bearer_token: String,
    /// Generate authentication token that should be used to access K8S API server
    #[arg(long)]
    generate_bearer_token: bool,
    /// Service account of a generated token
    #[arg(long, value_name = "NAME", default_value = MANAGER)]
    service_account: String,
    /// Output format. One of: json|yaml
    #[arg(long, short, default_value = "yaml", value_name = "FORMAT")]
    output: String,
}

/// A Secret with texts that people can read.
fn declared(secret: &SecretRecord) -> Value {
    let texts: BTreeMap<&String, String> = secret
        .data
        .keys()
        .map(|key| (key, secret.text(key)))
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "annotations": secret.annotations,
            "labels": secret.labels,
            "name": secret.name,
        },
        "stringData": texts,
    })
}

impl RepoSpecCommand {
    pub fn run(self) -> Result<(), Failure> {
        let Self::GenerateSpec { options, output } = self;
        options.check()?;
        let repository = options.repository()?;
        let secret = repository_secret(&repository, CredentialUse::Read, None);
        output::print(&output::document(&declared(&secret), &output)?);
        Ok(())
    }
}

impl ClusterSpec {
    pub async fn run(self) -> Result<(), Failure> {
        let Some(context) = &self.context else {
            return Err(self.options.choose());
        };
        let cluster = self.options.cluster(context, None)?;
        let mut cluster = cluster.ok_or_else(|| {
            Failure::fatal(format!("Context {context} does not exist in kubeconfig"))
        })?;
        let config = &mut cluster.config;
        let is_other = config.aws_auth_config.is_some() || config.exec_provider_config.is_some();
        if !is_other {
            let token = self.token(context).await?;
            let tls = &config.tls_client_config;
            // A client certificate takes precedence, as with Argo CD.
            if tls.cert_data.is_empty() || tls.key_data.is_empty() {
                config.bearer_token = token;
            }
        }
        match self.options.cluster_endpoint {
            Some(Endpoint::Internal) => IN_CLUSTER.clone_into(&mut cluster.server),
            None if self.options.in_cluster => IN_CLUSTER.clone_into(&mut cluster.server),
            Some(Endpoint::KubePublic) => output::log::warn(
                "kube-public cluster endpoints are not supported. Falling back to the endpoint \
                 listed in the kubconfig context.",
            ),
            _ => {}
        }
        let secret = cluster_secret(&cluster, None).map_err(|e| Failure::error(e.to_string()))?;
        output::print(&output::document(&declared(&secret), &self.output)?);
        Ok(())
    }

    async fn token(&self, context: &str) -> Result<String, Failure> {
        if !self.generate_bearer_token {
            let given = Some(&self.bearer_token).filter(|token| !token.is_empty());
            return Ok(given.cloned().unwrap_or_else(|| PLACEHOLDER.to_owned()));
        }
        let path = self.options.kubeconfig.clone();
        let connect = ConnectOptions::kubeconfig(path, Some(context.to_owned()));
        let target = Connection::connect(connect).await;
        let target = target.map_err(|e| Failure::error(e.to_string()))?;
        let manager = Manager {
            http: target.http(),
            namespace: &self.options.system_namespace,
            say: &|_| {},
        };
        let token = manager.token_of(&self.service_account).await;
        token.map_err(|e| Failure::error(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::fs;

    #[derive(Parser)]
    enum Program {
        #[command(subcommand)]
        Repo(RepoSpecCommand),
        Cluster(Box<ClusterSpec>),
    }

    fn repository(words: &[&str]) -> Result<Value, String> {
        let words = [&["admin", "repo", "generate-spec"], words].concat();
        let Program::Repo(RepoSpecCommand::GenerateSpec { options, .. }) =
            Program::parse_from(words)
        else {
            unreachable!("it is about repositories");
        };
        options.check().map_err(|e| e.message)?;
        let repository = options.repository().map_err(|e| e.message)?;
        Ok(declared(&repository_secret(
            &repository,
            CredentialUse::Read,
            None,
        )))
    }

    #[test]
    fn a_repository_is_the_secret_that_the_api_would_write() {
        let words = [
            "https://git.example.com/a",
            "--username",
            "u",
            "--password",
            "p",
        ];
        let words = [&words[..], &["--project", "team", "--enable-lfs"]].concat();
        let name = repository(&words).expect("valid")["metadata"]["name"].clone();
        assert_eq!(
            repository(&words).expect("valid"),
            json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {
                    "name": name,
                    "annotations": {"managed-by": "argocd.argoproj.io"},
                    "labels": {"argocd.argoproj.io/secret-type": "repository"},
                },
                "stringData": {
                    "url": "https://git.example.com/a", "type": "git", "project": "team",
                    "username": "u", "password": "p", "enableLfs": "true",
                },
            })
        );
        assert!(name.as_str().is_some_and(|name| name.starts_with("repo-")));
        let refused = repository(&["oci://a/b", "--type", "helm"]);
        assert_eq!(
            refused,
            Err("Must specify --name for repos of type 'helm'".to_owned())
        );
    }

    #[tokio::test]
    async fn a_cluster_is_of_a_context() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        let text = "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {server: \
                    'https://10.0.0.1:6443'}\ncontexts:\n- name: one\n  context: {cluster: c, \
                    user: u}\nusers:\n- name: u\n  user: {token: own}\n";
        fs::write(&path, text).expect("written");
        let path = path.to_str().expect("plain");
        let run = async |words: &[&str]| {
            let words = [&["admin", "cluster", "--kubeconfig", path], words].concat();
            let Program::Cluster(spec) = Program::parse_from(words) else {
                unreachable!("it is about clusters");
            };
            spec.run().await.map_err(|e| (e.code, e.message))
        };
        assert_eq!(run(&["one", "--in-cluster", "--shard", "2"]).await, Ok(()));
        let unknown = "Context two does not exist in kubeconfig".to_owned();
        assert_eq!(run(&["two"]).await, Err((1, unknown)));
        let format = "unknown output format: bad".to_owned();
        assert_eq!(run(&["one", "-o", "bad"]).await, Err((20, format)));
        assert_eq!(
            run(&[]).await,
            Err((1, String::new())),
            "the contexts are listed"
        );
    }
}

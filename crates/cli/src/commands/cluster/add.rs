//! `cluster add`: hands a cluster of the kubeconfig over to the control plane.

use crate::{
    client::{ConnectArgs, Failure, exit},
    commands::{app::pairs, connect, prompt},
    output,
};
use serde_json::Value;
use std::{collections::BTreeMap, io::IsTerminal as _, path::PathBuf};
use tiphys_api::{
    cluster::{AWSAuthConfig, Cluster, ClusterConfig, ExecProviderConfig, TLSClientConfig},
    constants::IN_CLUSTER,
    rpc::cluster::ClusterCreateRequest,
};
use tiphys_cluster::{
    connect::{
        Cluster as Connection, ConnectOptions,
        context::{Context, context, contexts, published},
    },
    manager::Manager,
    request::Call,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Endpoint {
    /// The address in the kubeconfig
    Kubeconfig,
    /// The address that the cluster publishes in the namespace kube-public
    KubePublic,
    /// The address inside of the cluster
    Internal,
}

#[derive(clap::Args)]
pub struct Add {
    /// Name of a context in the kubeconfig; without it they are listed
    #[arg(value_name = "CONTEXT")]
    context: Option<String>,
    /// Use a particular kubeconfig file
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Overwrite the cluster name
    #[arg(long)]
    name: Option<String>,
    /// Override an existing cluster with the same address even if the spec differs
    #[arg(long)]
    upsert: bool,
    /// Namespaces that are managed; without it all are
    #[arg(long = "namespace")]
    namespaces: Vec<String>,
    /// Manage cluster-scoped resources too, although only some namespaces are managed
    #[arg(long)]
    cluster_resources: bool,
    /// Project of the cluster
    #[arg(long)]
    project: Option<String>,
    /// Shard that serves the cluster; a negative number leaves that to the controllers
    #[arg(long, default_value_t = -1, hide_default_value = true, allow_negative_numbers = true)]
    shard: i64,
    /// Set metadata labels (e.g. --label key=value)
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Set metadata annotations (e.g. --annotation key=value)
    #[arg(long = "annotation", value_name = "KEY=VALUE")]
    annotations: Vec<String>,
    /// Service account to manage the cluster with; without it argocd-manager is created
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
    /// Namespace of the service account
    #[arg(long, default_value = "kube-system", value_name = "NAMESPACE")]
    system_namespace: String,
    /// The control plane runs in this cluster and connects to https://kubernetes.default.svc
    #[arg(long)]
    in_cluster: bool,
    /// Which address the control plane connects to
    #[arg(long, value_name = "ENDPOINT")]
    cluster_endpoint: Option<Endpoint>,
    /// Connect to the cluster through this proxy
    #[arg(long, value_name = "URL")]
    proxy_url: Option<String>,
    /// No effect: compressed answers are never asked for
    #[arg(long)]
    disable_compression: bool,
    /// Skip explicit confirmation
    #[arg(long, short)]
    yes: bool,
    /// Name of the cluster at AWS, to get tokens from its IAM
    #[arg(long, value_name = "NAME")]
    aws_cluster_name: Option<String>,
    /// Role to assume at AWS
    #[arg(long, value_name = "ARN")]
    aws_role_arn: Option<String>,
    /// Profile to use at AWS
    #[arg(long, value_name = "NAME")]
    aws_profile: Option<String>,
    /// Program that gives the control plane credentials for the cluster
    #[arg(long, value_name = "COMMAND")]
    exec_command: Option<String>,
    /// Arguments of --exec-command
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    exec_command_args: Vec<String>,
    /// Environment of --exec-command
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    exec_command_env: Vec<String>,
    /// Version of the messages that --exec-command understands
    #[arg(long, value_name = "VERSION")]
    exec_command_api_version: Option<String>,
    /// What to tell people who do not have --exec-command
    #[arg(long, value_name = "TEXT")]
    exec_command_install_hint: Option<String>,
}

impl Add {
    pub async fn run(mut self, args: &ConnectArgs) -> Result<(), Failure> {
        let Some(name) = self.context.take() else {
            return self.choose();
        };
        if self.in_cluster && self.cluster_endpoint.is_some() {
            return Err(Failure::fatal(
                "Can only use one of --in-cluster or --cluster-endpoint",
            ));
        }
        let labels = pairs(&self.labels)?;
        let annotations = pairs(&self.annotations)?;
        let context = context(self.kubeconfig.as_ref(), &name)
            .map_err(failed)?
            .ok_or_else(|| super::no_such_context(&name))?;
        let target = self.connect(&name).await?;
        let mut cluster = Cluster {
            labels,
            annotations,
            name: self.name.clone().unwrap_or_else(|| name.clone()),
            namespaces: self.namespaces.clone(),
            cluster_resources: self.cluster_resources,
            project: self.project.clone().unwrap_or_default(),
            shard: Some(self.shard).filter(|s| *s >= 0),
            server: context.server.clone(),
            config: self.config(context)?,
            ..Default::default()
        };
        self.authenticate(&name, &target, &mut cluster.config)
            .await?;
        self.address(&target, &mut cluster).await;
        let server = cluster.server.clone();
        let request = ClusterCreateRequest {
            cluster: Some(cluster),
            upsert: self.upsert,
        };
        let client = connect(args).await?;
        let _: Cluster = client
            .unary("/cluster.ClusterService/Create", request)
            .await?;
        output::print(&format!("Cluster '{server}' added\n"));
        Ok(())
    }

    fn choose(&self) -> Result<(), Failure> {
        output::log::error("Choose a context name from:");
        let rows = contexts(self.kubeconfig.as_ref())
            .map_err(failed)?
            .into_iter()
            .map(|c| {
                let mark = if c.is_current { "*" } else { " " };
                vec![mark.to_owned(), c.name, c.cluster, c.server]
            });
        let header = ["CURRENT", "NAME", "CLUSTER", "SERVER"];
        output::print(&output::table::table(&header, rows));
        Err(Failure::exit(exit::FAILED))
    }

    async fn connect(&self, context: &str) -> Result<Connection, Failure> {
        let mut options =
            ConnectOptions::kubeconfig(self.kubeconfig.clone(), Some(context.to_owned()));
        options.overrides.proxy_url.clone_from(&self.proxy_url);
        Connection::connect(options).await.map_err(failed)
    }

    fn config(&self, context: Context) -> Result<ClusterConfig, Failure> {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let aws = self.aws_cluster_name.as_ref().map(|name| AWSAuthConfig {
            cluster_name: name.clone(),
            role_arn: text(&self.aws_role_arn),
            profile: text(&self.aws_profile),
        });
        let env: BTreeMap<String, String> = pairs(&self.exec_command_env)?;
        let exec = self
            .exec_command
            .as_ref()
            .map(|command| ExecProviderConfig {
                command: command.clone(),
                args: self.exec_command_args.clone(),
                env,
                api_version: text(&self.exec_command_api_version),
                install_hint: text(&self.exec_command_install_hint),
                ..Default::default()
            });
        Ok(ClusterConfig {
            tls_client_config: TLSClientConfig {
                insecure: context.insecure,
                server_name: context.server_name,
                ca_data: context.ca_data,
                cert_data: context.cert_data,
                key_data: context.key_data,
            },
            exec_provider_config: exec.filter(|_| aws.is_none()),
            aws_auth_config: aws,
            disable_compression: context.disable_compression,
            proxy_url: self.proxy_url.clone().unwrap_or(context.proxy_url),
            ..Default::default()
        })
    }

    /// Gives the control plane a token of a service account, unless it gets its credentials
    /// elsewhere. A client certificate of the kubeconfig takes precedence, as with Argo CD.
    async fn authenticate(
        &self,
        context: &str,
        target: &Connection,
        config: &mut ClusterConfig,
    ) -> Result<(), Failure> {
        if config.aws_auth_config.is_some() || config.exec_provider_config.is_some() {
            return Ok(());
        }
        let manager = Manager {
            http: target.http(),
            namespace: &self.system_namespace,
            say: &|line| output::log::info(&line),
        };
        let token = match &self.service_account {
            Some(account) => manager.token_of(account).await,
            None => {
                if std::io::stdout().is_terminal() && !self.yes {
                    let level = if self.namespaces.is_empty() {
                        "cluster"
                    } else {
                        "namespace"
                    };
                    let warning = format!(
                        "WARNING: This will create a service account `argocd-manager` on the \
                         cluster referenced by context `{context}` with full {level} level \
                         privileges. Do you want to continue [y/N]? "
                    );
                    if !prompt::proceed(&warning)? {
                        return Err(Failure::exit(exit::FAILED));
                    }
                }
                manager.install(&self.namespaces).await
            }
        }
        .map_err(|e| Failure::error(e.to_string()))?;
        let tls = &config.tls_client_config;
        if tls.cert_data.is_empty() || tls.key_data.is_empty() {
            config.bearer_token = token;
        }
        Ok(())
    }

    /// Sets the address that the control plane connects to.
    async fn address(&self, target: &Connection, cluster: &mut Cluster) {
        if self.in_cluster || self.cluster_endpoint == Some(Endpoint::Internal) {
            IN_CLUSTER.clone_into(&mut cluster.server);
        } else if self.cluster_endpoint == Some(Endpoint::KubePublic) {
            match public_endpoint(target).await {
                Ok((server, ca_data)) => {
                    cluster.server = server;
                    cluster.config.tls_client_config.ca_data = ca_data;
                }
                Err(why) => {
                    output::log::warn(&format!(
                        "Failed to find the cluster endpoint from kube-public data: {why}"
                    ));
                    output::log::info(&format!(
                        "Falling back to the endpoint '{}' as listed in the kubeconfig context",
                        cluster.server
                    ));
                }
            }
        }
    }
}

pub(super) fn failed(e: tiphys_cluster::Error) -> Failure {
    Failure::error(e.to_string())
}

/// The address and CA of the kubeconfig in `kube-public/cluster-info`.
async fn public_endpoint(target: &Connection) -> Result<(String, Vec<u8>), String> {
    let call = Call::get("/api/v1/namespaces/kube-public/configmaps/cluster-info");
    let map: Value = target.http().json(&call).await.map_err(|e| e.to_string())?;
    let text = map["data"]["kubeconfig"]
        .as_str()
        .ok_or("cluster-info does not contain a public kubeconfig")?;
    published(text)
}

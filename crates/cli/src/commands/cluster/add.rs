//! `cluster add`: hands a cluster of the kubeconfig over to the control plane.

use super::options::{ClusterOptions, Endpoint};
use crate::{
    client::{ConnectArgs, Failure, exit},
    commands::{connect, prompt},
    output,
};
use serde_json::Value;
use std::io::IsTerminal as _;
use tiphys_api::{
    cluster::{Cluster, ClusterConfig},
    constants::IN_CLUSTER,
    rpc::cluster::ClusterCreateRequest,
};
use tiphys_cluster::{
    connect::{Cluster as Connection, ConnectOptions, context::published},
    manager::Manager,
    request::Call,
};

#[derive(clap::Args)]
pub struct Add {
    /// Name of a context in the kubeconfig; without it they are listed
    #[arg(value_name = "CONTEXT")]
    context: Option<String>,
    /// Override an existing cluster with the same address even if the spec differs
    #[arg(long)]
    upsert: bool,
    /// Service account to manage the cluster with; without it argocd-manager is created
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
    /// Connect to the cluster through this proxy
    #[arg(long, value_name = "URL")]
    proxy_url: Option<String>,
    /// The proxy of the control plane, if it is another one than this machine's; empty: none
    #[arg(long, value_name = "URL")]
    server_proxy_url: Option<String>,
    /// Skip explicit confirmation
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    options: ClusterOptions,
}

impl Add {
    pub async fn run(mut self, args: &ConnectArgs) -> Result<(), Failure> {
        let Some(name) = self.context.take() else {
            return Err(self.options.choose());
        };
        let proxy = self.server_proxy()?.or(self.proxy_url.as_ref());
        let cluster = self.options.cluster(&name, proxy)?;
        let mut cluster = cluster.ok_or_else(|| super::no_such_context(&name))?;
        let target = self.connect(&name).await?;
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

    /// The proxy that the control plane is to use, if that is said.
    fn server_proxy(&self) -> Result<Option<&String>, Failure> {
        let Some(url) = &self.server_proxy_url else {
            return Ok(None);
        };
        let is_proxy = ["http://", "https://", "socks5://"]
            .iter()
            .any(|scheme| url.starts_with(scheme));
        if !url.is_empty() && !is_proxy {
            return Err(Failure::error(format!(
                "--server-proxy-url {url:?} must begin with http://, https:// or socks5://"
            )));
        }
        Ok(Some(url))
    }

    async fn connect(&self, context: &str) -> Result<Connection, Failure> {
        let mut options =
            ConnectOptions::kubeconfig(self.options.kubeconfig.clone(), Some(context.to_owned()));
        options.overrides.proxy_url.clone_from(&self.proxy_url);
        Connection::connect(options).await.map_err(failed)
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
            namespace: &self.options.system_namespace,
            say: &|line| output::log::info(&line),
        };
        let token = match &self.service_account {
            Some(account) => manager.token_of(account).await,
            None => {
                if std::io::stdout().is_terminal() && !self.yes {
                    let level = if self.options.namespaces.is_empty() {
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
                manager.install(&self.options.namespaces).await
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
        if self.options.in_cluster || self.options.cluster_endpoint == Some(Endpoint::Internal) {
            IN_CLUSTER.clone_into(&mut cluster.server);
        } else if self.options.cluster_endpoint == Some(Endpoint::KubePublic) {
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

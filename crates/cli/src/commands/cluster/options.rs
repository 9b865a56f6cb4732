//! What `cluster add` and `admin cluster generate-spec` say of a cluster of the kubeconfig. Main
//! type: [`ClusterOptions`].

use super::add::failed;
use crate::{
    client::{Failure, exit},
    commands::app::pairs,
    output,
};
use std::{collections::BTreeMap, path::PathBuf};
use tiphys_api::cluster::{
    AWSAuthConfig, Cluster, ClusterConfig, ExecProviderConfig, TLSClientConfig,
};
use tiphys_cluster::connect::context::{Context, context, contexts};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::commands) enum Endpoint {
    /// The address in the kubeconfig
    Kubeconfig,
    /// The address that the cluster publishes in the namespace kube-public
    KubePublic,
    /// The address inside of the cluster
    Internal,
}

#[derive(clap::Args)]
pub struct ClusterOptions {
    /// Use a particular kubeconfig file
    #[arg(long, value_name = "FILE")]
    pub(in crate::commands) kubeconfig: Option<PathBuf>,
    /// Overwrite the cluster name
    #[arg(long)]
    pub(in crate::commands) name: Option<String>,
    /// Namespaces that are managed; without it all are
    #[arg(long = "namespace")]
    pub(in crate::commands) namespaces: Vec<String>,
    /// Manage cluster-scoped resources too, although only some namespaces are managed
    #[arg(long)]
    pub(in crate::commands) cluster_resources: bool,
    /// Project of the cluster
    #[arg(long)]
    pub(in crate::commands) project: Option<String>,
    /// Shard that serves the cluster; a negative number leaves that to the controllers
    #[arg(long, default_value_t = -1, hide_default_value = true, allow_negative_numbers = true)]
    pub(in crate::commands) shard: i64,
    /// Set metadata labels (e.g. --label key=value)
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub(in crate::commands) labels: Vec<String>,
    /// Set metadata annotations (e.g. --annotation key=value)
    #[arg(long = "annotation", value_name = "KEY=VALUE")]
    pub(in crate::commands) annotations: Vec<String>,
    /// Namespace of the service account
    #[arg(long, default_value = "kube-system", value_name = "NAMESPACE")]
    pub(in crate::commands) system_namespace: String,
    /// The control plane runs in this cluster and connects to https://kubernetes.default.svc
    #[arg(long)]
    pub(in crate::commands) in_cluster: bool,
    /// Which address the control plane connects to
    #[arg(long, value_name = "ENDPOINT")]
    pub(in crate::commands) cluster_endpoint: Option<Endpoint>,
    /// (no effect: compressed answers are never asked for)
    #[arg(long)]
    pub(in crate::commands) disable_compression: bool,
    /// Name of the cluster at AWS, to get tokens from its IAM
    #[arg(long, value_name = "NAME")]
    pub(in crate::commands) aws_cluster_name: Option<String>,
    /// Role to assume at AWS
    #[arg(long, value_name = "ARN")]
    pub(in crate::commands) aws_role_arn: Option<String>,
    /// Profile to use at AWS
    #[arg(long, value_name = "NAME")]
    pub(in crate::commands) aws_profile: Option<String>,
    /// Program that gives the control plane credentials for the cluster
    #[arg(long, value_name = "COMMAND")]
    pub(in crate::commands) exec_command: Option<String>,
    /// Arguments of --exec-command
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub(in crate::commands) exec_command_args: Vec<String>,
    /// Environment of --exec-command
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub(in crate::commands) exec_command_env: Vec<String>,
    /// Version of the messages that --exec-command understands
    #[arg(long, value_name = "VERSION")]
    pub(in crate::commands) exec_command_api_version: Option<String>,
    /// What to tell people who do not have --exec-command
    #[arg(long, value_name = "TEXT")]
    pub(in crate::commands) exec_command_install_hint: Option<String>,
}

impl ClusterOptions {
    /// The cluster of a context, without a token; `None`: there is no such context. `proxy_url` takes the place of the context's.
    pub(in crate::commands) fn cluster(
        &self,
        name: &str,
        proxy_url: Option<&String>,
    ) -> Result<Option<Cluster>, Failure> {
        if self.in_cluster && self.cluster_endpoint.is_some() {
            return Err(Failure::fatal(
                "Can only use one of --in-cluster or --cluster-endpoint",
            ));
        }
        let labels = pairs(&self.labels)?;
        let annotations = pairs(&self.annotations)?;
        let found = context(self.kubeconfig.as_ref(), name).map_err(failed)?;
        let Some(mut context) = found else {
            return Ok(None);
        };
        if let Some(url) = proxy_url {
            context.proxy_url.clone_from(url);
        }
        Ok(Some(Cluster {
            labels,
            annotations,
            name: self.name.clone().unwrap_or_else(|| name.to_owned()),
            namespaces: self.namespaces.clone(),
            cluster_resources: self.cluster_resources,
            project: self.project.clone().unwrap_or_default(),
            shard: Some(self.shard).filter(|s| *s >= 0),
            server: context.server.clone(),
            config: self.config(context)?,
            ..Default::default()
        }))
    }

    /// Prints the contexts that there are, and ends the command.
    pub(in crate::commands) fn choose(&self) -> Failure {
        output::log::error("Choose a context name from:");
        let listed = match contexts(self.kubeconfig.as_ref()) {
            Ok(listed) => listed,
            Err(_) if !self.has_kubeconfig() => Vec::new(),
            Err(e) => return failed(e),
        };
        let rows = listed.into_iter().map(|c| {
            let mark = if c.is_current { "*" } else { " " };
            vec![mark.to_owned(), c.name, c.cluster, c.server]
        });
        let header = ["CURRENT", "NAME", "CLUSTER", "SERVER"];
        output::print(&output::table::table(&header, rows));
        Failure::exit(exit::FAILED)
    }

    fn has_kubeconfig(&self) -> bool {
        let is_set = std::env::var_os("KUBECONFIG").is_some_and(|paths| !paths.is_empty());
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let usual = home.is_some_and(|home| home.join(".kube/config").exists());
        self.kubeconfig.is_some() || is_set || usual
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
            proxy_url: context.proxy_url,
            ..Default::default()
        })
    }
}

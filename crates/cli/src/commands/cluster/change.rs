//! `cluster rm`, `cluster rotate-auth` and `cluster set`.

use super::{add::failed, no_such_context, query};
use crate::{
    client::{ConnectArgs, Failure},
    commands::{app::pairs, connect, prompt},
    output,
};
use std::path::PathBuf;
use tiphys_api::{
    cluster::Cluster,
    rpc::cluster::{ClusterID, ClusterResponse, ClusterUpdateRequest},
};
use tiphys_cluster::{
    connect::{Cluster as Connection, ConnectOptions, context::context},
    manager::Manager,
};
use tonic::Code;

/// Where `cluster add` creates its account unless told otherwise.
const SYSTEM_NAMESPACE: &str = "kube-system";

#[derive(clap::Args)]
pub struct Rm {
    /// Addresses or names of clusters
    #[arg(required = true, value_name = "SERVER/NAME")]
    clusters: Vec<String>,
    /// Use a particular kubeconfig file
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Turn off prompting to confirm remove of cluster resources
    #[arg(long, short)]
    yes: bool,
}

impl Rm {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = connect(args).await?;
        let mut all = self.yes;
        let mut removed = Vec::new();
        for selector in &self.clusters {
            if !all && !self.confirm(selector, &mut all)? {
                output::print(&format!(
                    "The command to remove '{selector}' was cancelled.\n"
                ));
                continue;
            }
            let cluster: Cluster = client
                .unary("/cluster.ClusterService/Get", query(selector))
                .await?;
            let _: ClusterResponse = client
                .unary("/cluster.ClusterService/Delete", query(selector))
                .await?;
            output::print(&format!("Cluster '{selector}' removed\n"));
            removed.push(cluster.name);
        }
        // After all clusters: what is left over of one must not keep another one registered.
        let mut failure = Ok(());
        for name in removed {
            failure = failure.and(self.uninstall(&name).await);
        }
        failure
    }

    fn confirm(&self, selector: &str, all: &mut bool) -> Result<bool, Failure> {
        let question = format!(
            "Are you sure you want to remove '{selector}'? Any Apps deploying to this cluster will \
             go to health status Unknown."
        );
        if self.clusters.len() == 1 {
            return prompt::proceed(&format!("{question}[y/n] "));
        }
        let question = format!(
            "{question}[y/n/A] where 'A' is to remove all specified clusters without prompting. \
             Any Apps deploying to these clusters will go to health status Unknown. "
        );
        let answer = prompt::proceed_or_all(&question)?;
        *all = answer == prompt::Answer::All;
        Ok(answer != prompt::Answer::No)
    }

    /// Deletes the account in the cluster, which is that of the context of this name.
    async fn uninstall(&self, name: &str) -> Result<(), Failure> {
        let path = self.kubeconfig.clone();
        // Without a kubeconfig there is no such context, either.
        if context(path.as_ref(), name).ok().flatten().is_none() {
            return Err(no_such_context(name)
                .with_hint("the cluster is removed; argocd-manager is still in it"));
        }
        let options = ConnectOptions::kubeconfig(path, Some(name.to_owned()));
        let target = Connection::connect(options).await.map_err(failed)?;
        let manager = Manager {
            http: target.http(),
            namespace: SYSTEM_NAMESPACE,
            say: &|line| output::log::info(&line),
        };
        manager.uninstall().await.map_err(failed)
    }
}

/// Returns what to print.
pub async fn rotate_auth(selector: &str, args: &ConnectArgs) -> Result<String, Failure> {
    let _: ClusterResponse = connect(args)
        .await?
        .unary("/cluster.ClusterService/RotateAuth", query(selector))
        .await?;
    Ok(format!("Cluster '{selector}' rotated auth\n"))
}

#[derive(clap::Args)]
pub struct Set {
    /// Name of the cluster
    #[arg(value_name = "NAME")]
    cluster: String,
    /// Overwrite the cluster name
    #[arg(long)]
    name: Option<String>,
    /// Namespaces that are managed; '*' for all
    #[arg(long = "namespace")]
    namespaces: Vec<String>,
    /// Set metadata labels (e.g. --label key=value)
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Set metadata annotations (e.g. --annotation key=value)
    #[arg(long = "annotation", value_name = "KEY=VALUE")]
    annotations: Vec<String>,
}

impl Set {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let named = [
            ("name", self.name.is_some()),
            ("namespaces", !self.namespaces.is_empty()),
            ("labels", !self.labels.is_empty()),
            ("annotations", !self.annotations.is_empty()),
        ];
        let updated_fields: Vec<String> = named
            .iter()
            .filter(|(_, given)| *given)
            .map(|(field, _)| (*field).to_owned())
            .collect();
        let labels = pairs(&self.labels)?;
        let annotations = pairs(&self.annotations)?;
        if updated_fields.is_empty() {
            output::print("Specify the cluster field to be updated.\n");
            return Ok(());
        }
        let namespaces = match self.namespaces.as_slice() {
            [all] if all == "*" => Vec::new(),
            _ => self.namespaces,
        };
        let request = ClusterUpdateRequest {
            cluster: Some(Cluster {
                name: self.name.unwrap_or_default(),
                namespaces,
                labels,
                annotations,
                ..Default::default()
            }),
            updated_fields,
            id: Some(ClusterID {
                type_: "name".to_owned(),
                value: self.cluster.clone(),
            }),
        };
        let updated: Result<Cluster, Failure> = connect(args)
            .await?
            .unary("/cluster.ClusterService/Update", request)
            .await
            .map_err(Into::into);
        if let Err(e) = &updated
            && e.status == Some(Code::PermissionDenied)
        {
            output::log::error(
                "Ensure that the cluster is present and you have the necessary permissions to \
                 update the cluster",
            );
        }
        updated?;
        output::print(&format!("Cluster '{}' updated.\n", self.cluster));
        Ok(())
    }
}

//! `admin initial-password`: the first password of `admin`, from its Secret. Main type:
//! [`InitialPassword`].

use crate::{
    client::Failure,
    commands::{apply::HintedError, core::NAME_A_CLUSTER},
    kubectl::kube::KubeArgs,
    output,
    roles::up::{bootstrap::INITIAL_PASSWORD, kubeconfig_of_default},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::time::Duration;
use tiphys_apimachinery::Object;
use tiphys_cluster::{Cluster, apply, request::Call};

/// Timeout for the local cluster of `tiphys up`.
const PATIENCE: Duration = Duration::from_secs(5);

/// Prints initial password to log in to Argo CD for the first time
#[derive(clap::Args)]
pub struct InitialPassword {
    #[command(flatten)]
    kube: KubeArgs,
}

impl InitialPassword {
    pub async fn run(self) -> Result<(), Failure> {
        let kube = where_up_is(self.kube).await;
        let advice = if kube.has_configuration() {
            ""
        } else {
            NAME_A_CLUSTER
        };
        let mut found = None;
        let read = async {
            let target = super::connect(&kube).await?;
            let path = format!(
                "/api/v1/namespaces/{}/secrets/{INITIAL_PASSWORD}",
                super::backup::namespace(&kube, &target)
            );
            let secret: Object = target
                .discovery
                .cluster()
                .http()
                .json(&Call::get(path))
                .await
                .map_err(apply::Failure::from)?;
            found = STANDARD
                .decode(secret.str_at("/data/password"))
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok());
            Ok(())
        };
        read.await
            .map_err(|e: HintedError| super::failed(&e).with_hint(advice))?;
        if let Some(password) = found.filter(|p| !p.is_empty()) {
            output::print(&format!(
                "{password}\n\n This password must be only used for first time login. We strongly recommend you update the password using \
                 `argocd account update-password`.\n"
            ));
        }
        Ok(())
    }
}

/// If no cluster is specified, use that of a running `tiphys up`.
async fn where_up_is(kube: KubeArgs) -> KubeArgs {
    if kube.names_cluster() {
        return kube;
    }
    let Some(path) = kubeconfig_of_default() else {
        return kube;
    };
    let found = kube.clone().with_kubeconfig(path.clone());
    let runs = tokio::time::timeout(PATIENCE, Cluster::connect(found.options()))
        .await
        .is_ok_and(|c| c.is_ok());
    if !runs {
        return kube;
    }
    eprintln!("of the cluster that `tiphys up` runs ({})", path.display());
    found
}

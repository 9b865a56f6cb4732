//! `admin initial-password`: the first password of `admin`, out of its Secret. Main type: [`InitialPassword`].

use crate::{
    client::Failure,
    commands::apply::{finish, kube::KubeArgs},
    output,
    roles::up::bootstrap::INITIAL_PASSWORD,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use tiphys_apimachinery::Object;
use tiphys_cluster::{apply, request::Call};

/// Prints initial password to log in to Argo CD for the first time
#[derive(clap::Args)]
pub struct InitialPassword {
    #[command(flatten)]
    kube: KubeArgs,
}

impl InitialPassword {
    pub async fn run(self) -> Result<(), Failure> {
        let mut found = None;
        let read = async {
            let target = self.kube.connect().await?;
            let path = format!("/api/v1/namespaces/{}/secrets/{INITIAL_PASSWORD}", super::backup::namespace(&self.kube, &target));
            let secret: Object = target.discovery.cluster().http().json(&Call::get(path)).await.map_err(apply::Failure::from)?;
            found = STANDARD.decode(secret.str_at("/data/password")).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            Ok(())
        };
        finish(read.await, 20)?;
        if let Some(password) = found.filter(|p| !p.is_empty()) {
            output::print(&format!(
                "{password}\n\n This password must be only used for first time login. We strongly recommend you update the password using \
                 `argocd account update-password`.\n"
            ));
        }
        Ok(())
    }
}

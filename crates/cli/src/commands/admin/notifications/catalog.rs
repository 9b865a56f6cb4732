//! `admin notifications catalog`: triggers and templates to begin with.

use crate::{client::Failure, output};
use serde_json::{Map, json};
use tiphys_controllers::notifications::CONFIG_MAP;
use tiphys_notify::catalog;

/// Prints a ConfigMap with triggers and templates to begin with
#[derive(clap::Args)]
#[command(after_help = "Examples:
  # Adds them to the configuration of the cluster
  tiphys admin notifications catalog | kubectl -n argocd patch configmap argocd-notifications-cm --patch-file /dev/stdin")]
pub struct Catalog {}

impl Catalog {
    pub fn run(&self) -> Result<(), Failure> {
        let entries = catalog::triggers().into_iter().chain(catalog::templates());
        let data: Map<_, _> = entries.map(|(key, text)| (key, text.into())).collect();
        let config_map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CONFIG_MAP},
            "data": data,
        });
        output::print(&output::yaml(&config_map)?);
        Ok(())
    }
}

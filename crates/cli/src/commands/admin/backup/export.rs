//! `admin export`. Main type: [`Export`].

use super::{Backup, Part, Place};
use crate::{
    client::Failure,
    commands::apply::HintedError,
    output::{self, log},
    private,
};
use serde_json::{Map, Value, json};
use std::path::Path;
use tiphys_apimachinery::Object;
use tiphys_cluster::apply;
use tiphys_gocompat::yaml;

/// Export all Argo CD data to stdout (default) or a file
///
/// Settings, repositories, clusters, projects, Applications and ApplicationSets, as `argocd admin
/// export` writes them. The file contains credentials: a new one can be read by its owner only.
#[derive(clap::Args)]
pub struct Export {
    /// Output to the specified file instead of stdout
    #[arg(long, short = 'o', default_value = "-", value_name = "FILE")]
    out: String,
    #[command(flatten)]
    place: Place,
}

impl Export {
    pub async fn run(self) -> Result<(), Failure> {
        let mut text = String::new();
        let documents = self.documents(&mut text).await;
        documents.map_err(|e| super::super::failed(&e))?;
        if self.out == "-" {
            output::print(&text);
            return Ok(());
        }
        private::write(Path::new(&self.out), text.as_bytes())
            .map_err(|e| Failure::file(&self.out, &e))
    }

    async fn documents(&self, text: &mut String) -> Result<(), HintedError> {
        let target = super::super::connect(&self.place.kube).await?;
        let backup = Backup::new(&target, &self.place).await;
        let backup = backup.map_err(apply::Failure::from)?;
        for part in Part::ALL {
            let Some(objects) = backup.live(part).await.map_err(apply::Failure::from)? else {
                log::warn(
                    "ApplicationSets are not exported: the cluster does not have them, or does not show them to you",
                );
                continue;
            };
            for object in &objects {
                text.push_str(&yaml::to_string(&exported(object, &backup.namespace)));
                text.push_str("---\n");
            }
        }
        Ok(())
    }
}

/// An object without the fields that the API server adds. Its namespace is kept only if it is not
/// the installation's.
fn exported(object: &Object, namespace: &str) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "labels", "annotations", "finalizers"] {
        if let Some(value) = object.metadata(field) {
            metadata.insert(field.into(), value.clone());
        }
    }
    if object.namespace() != namespace {
        metadata.insert("namespace".into(), object.namespace().into());
    }
    let mut value = json!(object.0);
    value["metadata"] = metadata.into();
    value
}

//! The objects of a build, each for a file of its own, as `kustomize build -o FOLDER` writes them.
//! Main function: [`Built::files`].

use super::{
    Built,
    ids::{DEFAULT_NAMESPACE, Gvk},
};
use crate::RenderError;
use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_gocompat::yaml;

impl Built {
    /// Names and texts of the files, each name once. If the objects are in several namespaces, the
    /// names begin with theirs.
    pub fn files(&self) -> Result<Vec<(String, String)>, RenderError> {
        let namespaces: BTreeSet<&str> = self.objects.iter().filter_map(namespace).collect();
        let mut names = BTreeSet::new();
        let file = |object: &Value| {
            let name = match namespace(object).filter(|_| namespaces.len() > 1) {
                Some(namespace) => format!("{namespace}_{}", file_name(object)).to_lowercase(),
                None => file_name(object).to_lowercase(),
            };
            // The file would be in another folder.
            if name.contains('/') {
                let message = format!("an object cannot be written to the file {name:?}");
                return Err(RenderError::Source(message));
            }
            // kustomize writes the last one only.
            if !names.insert(name.clone()) {
                let message = format!("two objects would be written to the file {name:?}");
                return Err(RenderError::Source(message));
            }
            let text = yaml::marshal(object).map_err(|e| RenderError::Source(e.json_text()))?;
            Ok((name, text))
        };
        self.objects.iter().map(file).collect()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn gvk(object: &Value) -> Gvk {
    Gvk::of_api_version(text(&object["apiVersion"]), text(&object["kind"]))
}

/// `None`: it is in none.
fn namespace(object: &Value) -> Option<&str> {
    let named = text(&object["metadata"]["namespace"]);
    let namespace = match named {
        "" => DEFAULT_NAMESPACE,
        named => named,
    };
    (!gvk(object).is_cluster_scoped()).then_some(namespace)
}

fn file_name(object: &Value) -> String {
    let gvk = gvk(object);
    let parts = [&*gvk.group, &*gvk.version, &*gvk.kind].map(str::to_owned);
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let name = text(&object["metadata"]["name"]);
    format!("{}_{name}.yaml", parts.join("_"))
}

//! `spec.source.kustomize`: the steps that Argo CD takes before it builds, and the objects.
//!
//! Main type: [`KustomizeOptions`]; main functions: [`options`] and [`render`].

use super::{Environment, RenderParams, SourceSet};
use crate::{
    Budget, Charts, RenderError, Rendered, SourceKind,
    kustomize::{
        BuildOptions, build,
        edit::{Edit, edit},
    },
    manifest::objects_of_values,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tiphys_api::source::{ApplicationSource, ApplicationSourceKustomize, KustomizeReplica};

/// All that the objects depend on besides files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KustomizeOptions {
    /// The version that the source asks for. There is one, so rendering does not look at it.
    pub version: String,
    pub edits: Vec<Edit>,
    pub build: BuildOptions,
}

/// The options of a source whose overrides have been merged.
pub(super) fn options(
    source: &ApplicationSource,
    params: &RenderParams,
) -> Result<KustomizeOptions, RenderError> {
    let own = source.kustomize.clone().unwrap_or_default();
    let facts = &params.cluster_facts;
    let environment = Environment::new(&params.app, &params.source);
    let flags = facts.kustomize_build_options.split_whitespace();
    let mut build = BuildOptions::from_flags(flags).map_err(|reason| {
        RenderError::Source(format!(
            "`kustomize build` failed exit status 1: Error: {reason}"
        ))
    })?;
    // Only charts ask for it.
    if build.enable_helm {
        let version = if own.kube_version.is_empty() {
            &facts.kube_version
        } else {
            &own.kube_version
        };
        if !version.is_empty() {
            build.kube_version = version.strip_prefix('v').unwrap_or(version).to_owned();
        }
        let api_versions = if own.api_versions.is_empty() {
            &facts.api_versions[..]
        } else {
            &own.api_versions
        };
        if !api_versions.is_empty() {
            let all = build.api_versions.iter().chain(api_versions).cloned();
            build.api_versions = all.collect();
        }
    }
    Ok(KustomizeOptions {
        version: own.version.clone(),
        edits: edits(&own, &environment)?,
        build,
    })
}

/// In Argo CD's order.
fn edits(
    own: &ApplicationSourceKustomize,
    environment: &Environment,
) -> Result<Vec<Edit>, RenderError> {
    let mut edits = Vec::new();
    let expanded = |texts: &BTreeMap<String, String>| {
        let texts = texts.iter();
        let texts = texts.map(|(name, text)| (name.clone(), environment.expand(text)));
        texts.collect::<BTreeMap<_, _>>()
    };
    if !own.name_prefix.is_empty() {
        edits.push(Edit::NamePrefix(own.name_prefix.clone()));
    }
    if !own.name_suffix.is_empty() {
        edits.push(Edit::NameSuffix(own.name_suffix.clone()));
    }
    if !own.images.is_empty() {
        let images = own.images.iter().map(|image| environment.expand(image));
        edits.push(Edit::Images(images.collect()));
    }
    if !own.replicas.is_empty() {
        let replicas = own.replicas.iter().map(replica);
        edits.push(Edit::Replicas(replicas.collect::<Result<_, _>>()?));
    }
    if !own.common_labels.is_empty() {
        edits.push(Edit::Labels {
            texts: expanded(&own.common_labels),
            force: own.force_common_labels,
            without_selector: own.label_without_selector,
            include_templates: own.label_include_templates,
        });
    }
    if !own.common_annotations.is_empty() {
        let texts = if own.common_annotations_envsubst {
            expanded(&own.common_annotations)
        } else {
            own.common_annotations.clone()
        };
        edits.push(Edit::Annotations {
            texts,
            force: own.force_common_annotations,
        });
    }
    if !own.namespace.is_empty() {
        edits.push(Edit::Namespace(own.namespace.clone()));
    }
    if !own.patches.is_empty() {
        let patches = serde_json::to_string(&own.patches);
        let patches = patches.map_err(|error| RenderError::Source(error.to_string()))?;
        edits.push(Edit::Patches(patches));
    }
    if !own.components.is_empty() {
        edits.push(Edit::Components {
            paths: own.components.clone(),
            ignore_missing: own.ignore_missing_components,
        });
    }
    Ok(edits)
}

/// A number, or a text that is one.
fn replica(own: &KustomizeReplica) -> Result<String, RenderError> {
    let count = &own.count;
    if count.kind == 0 {
        return Ok(format!("{}={}", own.name, count.int_val));
    }
    match count.str_val.parse::<i64>() {
        Ok(number) => Ok(format!("{}={number}", own.name)),
        Err(_) => Err(RenderError::Source(format!(
            "expected integer value for count. Received: {}",
            count.str_val
        ))),
    }
}

/// The objects of a kustomization.
pub(crate) fn render(
    sources: &SourceSet<'_>,
    folder: &str,
    options: &KustomizeOptions,
    charts: &dyn Charts,
    budget: &Budget,
) -> Result<Rendered, RenderError> {
    let edited = edit(sources.files, folder, &options.edits, &budget.yaml)?;
    let own = BuildOptions {
        kustomization: edited,
        ..options.build.clone()
    };
    let shown = if folder.is_empty() { "." } else { folder };
    let built = build(sources, folder, &own, charts, budget).map_err(|error| match error {
        RenderError::Source(text) => RenderError::Source(format!(
            "`kustomize build {shown}` failed exit status 1: Error: {text}"
        )),
        error => error,
    })?;
    let (objects, errors) = objects_of_values(shown, built.objects);
    Ok(Rendered {
        objects,
        errors,
        warnings: built.warnings,
        kind: SourceKind::Kustomize,
    })
}

/// The images of all containers, sorted: what may be set.
pub(super) fn images(rendered: &Rendered) -> Vec<String> {
    let mut images = Vec::new();
    for object in &rendered.objects {
        add_images(&object.0, &mut images);
    }
    images.sort();
    images
}

fn add_images(map: &Map<String, Value>, images: &mut Vec<String>) {
    for (name, value) in map {
        let items = match value {
            Value::Object(map) => {
                add_images(map, images);
                continue;
            }
            Value::Array(items) => items.iter().filter_map(Value::as_object),
            _ => continue,
        };
        for item in items {
            if name == "containers" || name == "initContainers" {
                images.extend(item.get("image").map(|image| match image {
                    Value::String(image) => image.clone(),
                    other => other.to_string(),
                }));
            } else {
                add_images(item, images);
            }
        }
    }
}

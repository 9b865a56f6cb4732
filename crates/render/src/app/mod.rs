//! Prepares an Application's source for rendering: merges the overrides from the repository and
//! fills in the build environment.
//!
//! Main function: [`prepare`]; main type: [`Prepared`], which holds everything that the result
//! depends on besides files.

mod chart;
mod details;
mod kustomize;
mod overrides;
mod value_files;

pub(crate) use chart::render;
pub use chart::{Charts, HelmOptions, set_lines};
pub use details::{Details, HelmDetails, details};
pub use kustomize::KustomizeOptions;
pub(crate) use kustomize::render as render_kustomization;

use crate::{
    AppFacts, DirectoryOptions, Environment, ExplicitKind, FileKind, JsonnetOptions,
    JsonnetVariable, PluginOptions, Plugins, RenderError, SourceFiles, SourceKind, SourceRef,
    detect, files::clean_app_path, plugin,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::source::{ApplicationSource, JsonnetVar};

/// The files of a source, and of the other sources that it references.
#[derive(Clone)]
pub struct SourceSet<'a> {
    pub files: &'a dyn SourceFiles,
    /// The sources that have a `ref`, by that name.
    pub refs: BTreeMap<String, &'a dyn SourceFiles>,
    /// What earlier renders of the same needed ([`RenderError::Need`]).
    pub fetched: BTreeMap<SourceRef, &'a dyn SourceFiles>,
    /// The servers of plugins, and what they answered to earlier renders of the same.
    pub plugins: Plugins<'a>,
    /// The Application has `spec.sources`: a `$name` that nobody has is an error.
    pub several: bool,
}

impl<'a> SourceSet<'a> {
    pub fn new(files: &'a dyn SourceFiles) -> Self {
        Self {
            files,
            refs: BTreeMap::new(),
            fetched: BTreeMap::new(),
            plugins: Plugins::default(),
            several: false,
        }
    }
}

/// What templates see of the cluster, and what the settings allow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterFacts {
    /// Such as `v1.36.3`. Empty: what Helm assumes without a cluster.
    pub kube_version: String,
    /// `apps/v1` and `apps/v1/Deployment`, sorted.
    pub api_versions: Arc<[String]>,
    /// URL schemes that values files may have (`helm.valuesFileSchemes`).
    pub value_file_schemes: Vec<String>,
    /// Tools that are disabled (`helm.enable`, `kustomize.enable`): their folders are treated as
    /// plain manifests. Directory: Jsonnet files are left out (`jsonnet.enable`).
    pub switched_off: Vec<SourceKind>,
    /// Flags of `kustomize build`, between blanks (`kustomize.buildOptions`).
    pub kustomize_build_options: String,
}

/// What to render.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RenderParams {
    pub source: ApplicationSource,
    /// The folder with the files if it is not the source's path: a local folder.
    /// `$ARGOCD_APP_SOURCE_PATH` remains the path.
    pub folder: Option<String>,
    pub app: AppFacts,
    pub cluster_facts: ClusterFacts,
}

/// A source ready to be rendered. Two equal values render to the same objects from the same files.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Prepared {
    /// The Application's folder.
    pub folder: String,
    pub tool: Tool,
}

/// The tool that renders the source, with its options.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Tool {
    Directory(DirectoryOptions),
    Helm(Box<HelmOptions>),
    Kustomize(Box<KustomizeOptions>),
    Plugin(Box<PluginOptions>),
}

impl Tool {
    pub fn kind(&self) -> SourceKind {
        match self {
            Self::Directory(_) => SourceKind::Directory,
            Self::Helm(_) => SourceKind::Helm,
            Self::Kustomize(_) => SourceKind::Kustomize,
            Self::Plugin(_) => SourceKind::Plugin,
        }
    }
}

/// Reads the overrides in the repository and detects the tool. Cheap: it lists one folder.
///
/// # Errors
/// [`RenderError::Need`], until it is known whether the source is for a plugin.
pub fn prepare(sources: &SourceSet<'_>, params: &RenderParams) -> Result<Prepared, RenderError> {
    let Recognised {
        folder,
        source,
        kind,
        plugin,
    } = recognise(sources, params)?;
    let tool = match kind {
        SourceKind::Directory => Tool::Directory(directory_options(&source, params)),
        SourceKind::Helm => Tool::Helm(Box::new(chart::options(sources, &source, params)?)),
        SourceKind::Kustomize => Tool::Kustomize(Box::new(kustomize::options(&source, params)?)),
        SourceKind::Plugin => Tool::Plugin(Box::new(plugin::options(&source, plugin, params)?)),
    };
    Ok(Prepared { folder, tool })
}

/// What renders the source.
///
/// # Errors
/// [`RenderError::Need`], until it is known whether the source is for a plugin.
pub fn source_kind(
    sources: &SourceSet<'_>,
    params: &RenderParams,
) -> Result<SourceKind, RenderError> {
    Ok(recognise(sources, params)?.kind)
}

/// A source, as far as it is known before its tool reads it.
struct Recognised {
    folder: String,
    /// With its overrides.
    source: ApplicationSource,
    kind: SourceKind,
    /// The plugin that said that the source is for it.
    plugin: Option<String>,
}

fn recognise(sources: &SourceSet<'_>, params: &RenderParams) -> Result<Recognised, RenderError> {
    let files = sources.files;
    let path = params.folder.as_ref().unwrap_or(&params.source.path);
    let folder = clean_app_path(path)?;
    match files.kind(&folder)? {
        None => return Err(RenderError::PathMissing(path.clone())),
        Some(FileKind::Dir) => {}
        Some(_) => return Err(RenderError::PathNotDirectory(path.clone())),
    }
    let source = overrides::merge(files, &folder, &params.source, &params.app.name)?;
    let explicit = ExplicitKind {
        kustomize: source.kustomize.is_some(),
        helm: source.helm.is_some(),
        directory: source.directory.is_some(),
        plugin: source.plugin.is_some(),
    };
    // Plugins are asked first, as one may be for what another tool would recognise, too.
    let plugin = if explicit == ExplicitKind::default() {
        plugin::detect(sources, &folder, &source, params)?
    } else {
        None
    };
    let kind = match plugin {
        Some(_) => SourceKind::Plugin,
        None => detect(files, &folder, Some(explicit))?,
    };
    let off = params.cluster_facts.switched_off.contains(&kind);
    Ok(Recognised {
        folder,
        source,
        kind: if off { SourceKind::Directory } else { kind },
        plugin,
    })
}

fn directory_options(source: &ApplicationSource, params: &RenderParams) -> DirectoryOptions {
    let skip_jsonnet = params
        .cluster_facts
        .switched_off
        .contains(&SourceKind::Directory);
    let Some(d) = &source.directory else {
        return DirectoryOptions {
            skip_jsonnet,
            ..DirectoryOptions::default()
        };
    };
    let environment = Environment::new(&params.app, source);
    let variables = |variables: &[JsonnetVar]| {
        let variables = variables.iter().map(|variable| JsonnetVariable {
            name: variable.name.clone(),
            value: environment.expand(&variable.value),
            code: variable.code,
        });
        variables.collect()
    };
    DirectoryOptions {
        skip_jsonnet,
        jsonnet: JsonnetOptions {
            ext_vars: variables(&d.jsonnet.ext_vars),
            tlas: variables(&d.jsonnet.tlas),
            libs: d.jsonnet.libs.clone(),
        },
        recurse: d.recurse,
        include: d.include.clone(),
        exclude: d.exclude.clone(),
        disable_extension_filter: d.disable_extension_filter,
    }
}

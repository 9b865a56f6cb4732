//! Renders files to Kubernetes objects, using only its arguments.
//!
//! Main functions: [`prepare`] and [`render`]; files are read through [`SourceFiles`]. Plain
//! directories are rendered by Argo CD's rules (their Jsonnet by go-jsonnet's), charts by Helm's and
//! kustomizations by Kustomize's; what plugins make is asked for. Pure: no file
//! system, network, clock or process. It must not know where the files come from or what the
//! objects are used for.

mod app;
mod detect;
mod directory;
mod environment;
mod files;
pub mod helm;
mod jsonnet;
pub mod kustomize;
mod manifest;
mod need;
mod plugin;
pub mod tar;

pub use app::{
    Charts, ClusterFacts, Details, HelmDetails, HelmOptions, KustomizeOptions, Prepared,
    RenderParams, SourceSet, Tool, details, prepare, set_lines, source_kind,
};
pub use detect::{ExplicitKind, SourceKind, detect};
pub use environment::{AppFacts, Environment};
pub use files::{
    FileEntry, FileError, FileKind, MemoryFiles, SourceFiles, clean_app_path as app_folder,
};
pub use jsonnet::{
    EvaluateJsonnet, InProcess, JSONNET_STACK, JsonnetError, JsonnetFile, JsonnetLimits,
    JsonnetOptions, JsonnetVariable, evaluate_here as evaluate_jsonnet_here,
};
pub use manifest::{Failed, ManifestError, objects_of_text};
pub use need::SourceRef;
pub use plugin::{PluginAnswer, PluginOptions, PluginQuestion, PluginTask, Plugins};

use serde::{Deserialize, Serialize};
use tiphys_apimachinery::Object;

/// Limits for one render.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Combined size of the manifest files of a directory; 0 means no limit. Argo CD's default is
    /// 10M.
    pub combined_bytes: u64,
    /// Files and folders that may be visited.
    pub files: usize,
    /// Objects that may be produced.
    pub objects: usize,
    /// Memory of all values of a kustomization while it is built, about. Nothing is freed before the
    /// end: each JSON patch of an object adds the object once more.
    pub kustomize_bytes: usize,
    /// Nesting, values and aliases per file.
    pub yaml: tiphys_gocompat::yaml::Limits,
    pub jsonnet: JsonnetLimits,
}

impl Default for Budget {
    fn default() -> Self {
        let yaml = tiphys_gocompat::yaml::Limits {
            bytes: 32 << 20,
            ..Default::default()
        };
        Self {
            combined_bytes: 10_000_000,
            files: 100_000,
            objects: 50_000,
            kustomize_bytes: 1 << 30,
            yaml,
            jsonnet: JsonnetLimits::default(),
        }
    }
}

/// `spec.source.directory`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DirectoryOptions {
    pub recurse: bool,
    /// Glob over the path relative to the Application's folder; empty means everything.
    pub include: String,
    pub exclude: String,
    /// Read files of every extension.
    pub disable_extension_filter: bool,
    /// Skip Jsonnet files instead of evaluating them.
    pub skip_jsonnet: bool,
    pub jsonnet: JsonnetOptions,
}

/// The outcome of a render. Broken files are listed in `errors` and never hide the valid ones.
/// Anything that prunes must check `errors` first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    pub objects: Vec<Object>,
    pub errors: Vec<ManifestError>,
    /// Warnings, for example about files that were left out.
    pub warnings: Vec<String>,
    pub kind: SourceKind,
}

/// Why there is no result at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum RenderError {
    #[error("{0}: app path is absolute")]
    PathAbsolute(String),
    #[error("{0}: app path outside root")]
    PathOutside(String),
    #[error("{0}: app path does not exist")]
    PathMissing(String),
    #[error("{0}: app path is not a directory")]
    PathNotDirectory(String),
    #[error("{0}")]
    SourceTypes(String),
    /// The tool's message, or Argo CD's about the request.
    #[error("{0}")]
    Source(String),
    /// A glob of values files, as written. A later commit may add files that match.
    #[error("error resolving helm value files: values file glob {0:?} matched no files")]
    NoValuesFile(String),
    #[error("{0} not supported yet")]
    Unsupported(String),
    #[error("{what} exceeds the limit of {limit}")]
    OverBudget { what: String, limit: u64 },
    /// Not a failure where somebody can fetch: what must be in [`SourceSet::fetched`] before the
    /// same render says more.
    #[error("{} cannot be fetched here", shown(.0))]
    Need(Vec<SourceRef>),
    /// It took more time or memory than a render may.
    #[error("rendering was stopped: {0}")]
    Stopped(String),
    /// The process that renders was lost, or there is none. The content need not be the cause.
    #[error("rendering failed: {0}")]
    Lost(String),
    #[error(transparent)]
    File(#[from] FileError),
}

fn shown(needed: &[SourceRef]) -> String {
    let all: Vec<String> = needed.iter().map(ToString::to_string).collect();
    all.join(", ")
}

/// Renders what was prepared. `charts` has charts that are ready, chance and time for their
/// templates, and evaluates Jsonnet.
pub fn render(
    sources: &SourceSet<'_>,
    prepared: &Prepared,
    charts: &dyn Charts,
    budget: &Budget,
) -> Result<Rendered, RenderError> {
    match &prepared.tool {
        Tool::Directory(options) => {
            let (files, folder) = (sources.files, &prepared.folder);
            directory::render(files, folder, options, budget, charts.jsonnet())
        }
        Tool::Helm(options) => app::render(sources, &prepared.folder, options, charts, budget),
        Tool::Kustomize(options) => {
            app::render_kustomization(sources, &prepared.folder, options, charts, budget)
        }
        Tool::Plugin(options) => plugin::render(sources, &prepared.folder, options, budget),
    }
}

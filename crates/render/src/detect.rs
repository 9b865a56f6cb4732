//! Detects the tool that renders a folder: the one that the Application names, else by the folder's
//! content.

use crate::{FileKind, RenderError, SourceFiles};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The source type, printed as Argo CD does in `status.sourceType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SourceKind {
    #[default]
    Directory,
    Helm,
    Kustomize,
    Plugin,
}

impl SourceKind {
    /// The types that the settings disable: their folders are treated as plain manifests.
    pub fn switched_off(is_on: impl Fn(&str) -> bool) -> Vec<Self> {
        [Self::Directory, Self::Helm, Self::Kustomize]
            .into_iter()
            .filter(|kind| !is_on(kind.as_str()))
            .collect()
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Directory => "Directory",
            Self::Helm => "Helm",
            Self::Kustomize => "Kustomize",
            Self::Plugin => "Plugin",
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The blocks of `spec.source` that are set (not empty).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExplicitKind {
    pub kustomize: bool,
    pub helm: bool,
    pub directory: bool,
    pub plugin: bool,
}

impl ExplicitKind {
    fn kinds(self) -> Vec<SourceKind> {
        let all = [
            (self.kustomize, SourceKind::Kustomize),
            (self.helm, SourceKind::Helm),
            (self.directory, SourceKind::Directory),
            (self.plugin, SourceKind::Plugin),
        ];
        all.into_iter()
            .filter(|(set, _)| *set)
            .map(|(_, kind)| kind)
            .collect()
    }
}

/// The explicit type, else the type by the folder's content. A kustomization takes precedence over
/// a chart only because of the order of their names, as in Argo CD.
pub fn detect(
    files: &dyn SourceFiles,
    path: &str,
    explicit: Option<ExplicitKind>,
) -> Result<SourceKind, RenderError> {
    let explicit = explicit.unwrap_or_default().kinds();
    match explicit.as_slice() {
        [] => {}
        [kind] => return Ok(*kind),
        many => {
            let names: Vec<&str> = many.iter().map(|k| k.as_str()).collect();
            return Err(RenderError::SourceTypes(format!(
                "multiple application sources defined: {}",
                names.join(",")
            )));
        }
    }
    let mut kind = SourceKind::Directory;
    for entry in files.list(path)?.unwrap_or_default() {
        if entry.kind == FileKind::Dir {
            continue;
        }
        if entry.name.ends_with("Chart.yaml") {
            kind = SourceKind::Helm;
        }
        if matches!(
            entry.name.as_str(),
            "kustomization.yaml" | "kustomization.yml" | "Kustomization"
        ) {
            kind = SourceKind::Kustomize;
        }
    }
    Ok(kind)
}

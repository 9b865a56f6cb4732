//! Helm in process: loads charts, merges values and renders manifests, byte for byte as Helm 4.2.4
//! does.
//!
//! Main types: [`chart::Chart`], created from a folder or an archive, [`values::Values`] and
//! [`ParsedChart`]; main function: [`render_chart`]. Everything is computed from bytes in memory,
//! under [`Limits`]; missing dependencies are named ([`dependencies::complete`]), never fetched here.

mod capabilities;
pub mod chart;
pub mod dependencies;
mod engine;
pub mod lint;
pub mod log;
mod manifests;
mod release;
mod render;
pub mod values;

pub use capabilities::{Capabilities, HELM_VERSION, KubeVersion};
pub use engine::{LooseTemplate, render_templates};
pub use manifests::{Hook, Manifest};
pub use release::{Release, check_name, release_name};
pub use render::{
    ParsedChart, PrintOptions, RenderOptions, RenderedChart, check_installable, document,
    render_chart,
};
pub use tiphys_gocompat::{sprig::Sources, template::Deadline};

use crate::{FileError, SourceRef};
use tiphys_gocompat::yaml::{self, Duplicates};

/// Limits for a chart with all its subcharts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Unpacked bytes of all files. Helm applies this limit to each archive.
    pub bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Files of the chart and of all its subcharts.
    pub files: usize,
    /// Nesting of charts, and of folders.
    pub depth: usize,
    /// Values that may be copied while the values of all charts are coalesced.
    pub nodes: usize,
    /// For every YAML file of the chart.
    pub yaml: yaml::Limits,
    /// For executing all templates of the chart.
    pub templates: tiphys_gocompat::template::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        let yaml = yaml::Limits {
            bytes: 5 << 20,
            ..Default::default()
        };
        // The largest known charts take a million steps and a tenth of the other limits, plus two
        // million steps for each RSA key.
        let templates = tiphys_gocompat::template::Limits {
            steps: 100_000_000,
            output: 64 << 20,
            memory: 128 << 20,
        };
        Self {
            bytes: 100 << 20,
            file_bytes: 5 << 20,
            files: 20_000,
            depth: 50,
            nodes: 20_000_000,
            yaml,
            templates,
        }
    }
}

/// A location in a file or in a template's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file or the template.
    pub source: String,
    /// The text of the file, or the rendered document.
    pub text: String,
    pub made: bool,
    /// Line in `text`, from 1. The line numbers in Helm's messages differ.
    pub line: usize,
    pub column: usize,
}

impl Place {
    /// The location of the YAML syntax error in a text, if it has one.
    pub fn broken(source: &str, text: &[u8], made: bool, limits: &Limits) -> Option<Box<Self>> {
        let first = yaml::parse_document(text, &limits.yaml, Duplicates::LastWins).err();
        let error = first.or_else(|| yaml::parse_documents(text, &limits.yaml).err())?;
        let (source, text) = (
            source.to_owned(),
            String::from_utf8_lossy(text).into_owned(),
        );
        Some(Box::new(Self {
            source,
            text,
            made,
            line: error.line,
            column: error.column,
        }))
    }
}

/// Why a chart, its values or its manifests are not available, with Helm's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelmError {
    #[error("{0}")]
    Chart(String),
    /// A template that cannot be parsed, that failed, or whose output cannot be read.
    #[error("{0}")]
    Template(String),
    /// A template's output is not valid YAML, or not YAML that Helm can read.
    #[error("{message}")]
    Manifest { message: String, place: Box<Place> },
    /// A template exceeded the limits. Helm has no such limit.
    #[error("{0}")]
    Limit(String),
    #[error("{what} exceeds the limit of {limit}")]
    OverBudget { what: String, limit: u64 },
    #[error(transparent)]
    File(#[from] FileError),
    /// Charts that must be fetched first.
    #[error("{} must be fetched first", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Need(Vec<SourceRef>),
}

impl HelmError {
    pub(crate) fn chart(message: impl Into<String>) -> Self {
        Self::Chart(message.into())
    }

    pub(crate) fn template(message: impl Into<String>) -> Self {
        Self::Template(message.into())
    }

    pub(crate) fn over(what: impl Into<String>, limit: impl TryInto<u64>) -> Self {
        Self::OverBudget {
            what: what.into(),
            limit: limit.try_into().unwrap_or(u64::MAX),
        }
    }

    /// Whether Helm had begun to render when it failed. Its messages then mention how to show the
    /// invalid output.
    pub fn while_rendering(&self) -> bool {
        matches!(
            self,
            Self::Template(_) | Self::Manifest { .. } | Self::Limit(_)
        )
    }

    /// The error with a prefix that says what was being done.
    pub(crate) fn within(self, prefix: &str) -> Self {
        match self {
            Self::Chart(message) => Self::Chart(format!("{prefix}: {message}")),
            Self::Template(message) => Self::Template(format!("{prefix}: {message}")),
            Self::Manifest { message, place } => Self::Manifest {
                message: format!("{prefix}: {message}"),
                place,
            },
            Self::Limit(message) => Self::Limit(format!("{prefix}: {message}")),
            Self::OverBudget { what, limit } => Self::OverBudget {
                what: format!("{prefix}: {what}"),
                limit,
            },
            other @ (Self::File(_) | Self::Need(_)) => other,
        }
    }
}

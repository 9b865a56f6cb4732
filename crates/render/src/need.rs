//! What a render finds that it must have and does not: the rest of the program fetches it, and the
//! render runs again.
//!
//! Main type: [`SourceRef`]. A renderer looks a reference up in [`SourceSet::fetched`] and, when it
//! is not there, ends with [`RenderError::Need`], naming as many as it can find at once. So
//! rendering stays free of IO, and what was fetched is part of what the result is remembered by.

use crate::{PluginQuestion, PluginTask, RenderError, SourceFiles, SourceSet};

/// Something outside of the source and of the sources that it has a `ref` to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceRef {
    /// All files of a Git repository.
    Git {
        url: String,
        /// A branch, a tag or a commit; empty: what HEAD is.
        revision: String,
        /// With the repositories inside of it.
        submodules: bool,
    },
    /// One file, fetched over http or https. It is [`SourceRef::FILE`] of its [`SourceFiles`].
    File { url: String },
    /// A packed chart, by the rules of `helm dependency build`.
    Chart {
        /// Of a classic repository, or `oci://…`.
        repository: String,
        name: String,
        /// As it is written: it may be a range.
        version: String,
    },
    /// What a plugin answers. It has no files: it is in [`crate::Plugins::answers`].
    Plugin(Box<PluginQuestion>),
}

impl SourceRef {
    /// The path of what there is only one file of.
    pub const FILE: &'static str = "file";
}

impl std::fmt::Display for SourceRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Git { url, revision, .. } if revision.is_empty() => write!(f, "{url}"),
            Self::Git { url, revision, .. } => write!(f, "{url} at {revision}"),
            Self::File { url } => write!(f, "{url}"),
            Self::Chart {
                repository,
                name,
                version,
            } => write!(f, "chart {name} {version} of {repository}"),
            Self::Plugin(question) => {
                let what = match question.task {
                    PluginTask::Detect => "whether it is for these files",
                    PluginTask::Generate => "the manifests",
                    PluginTask::Announce => "the parameters",
                };
                match question.plugin.as_str() {
                    "" => write!(f, "what a plugin says: {what}"),
                    name => write!(f, "what plugin {name} says: {what}"),
                }
            }
        }
    }
}

impl<'a> SourceSet<'a> {
    /// The files of a reference.
    ///
    /// # Errors
    /// [`RenderError::Need`]: it was not fetched yet.
    pub fn fetched(&self, needed: &SourceRef) -> Result<&'a dyn SourceFiles, RenderError> {
        let found = self.fetched.get(needed).copied();
        found.ok_or_else(|| RenderError::Need(vec![needed.clone()]))
    }
}

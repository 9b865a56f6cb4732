//! What a render finds that it must have and does not: the rest of the program fetches it, and the
//! render runs again.
//!
//! Main type: [`SourceRef`]. A renderer looks a reference up in [`SourceSet::fetched`] and, when it
//! is not there, ends with [`RenderError::Need`], naming as many as it can find at once. So
//! rendering stays free of IO, and what was fetched is part of what the result is remembered by.

use crate::{PluginQuestion, PluginTask, RenderError, SourceFiles, SourceSet};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tiphys_api::access::hide_password;

/// Something outside of the source and of the sources that it has a `ref` to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// A URL as it is shown, without its password.
pub(crate) fn shown(url: &str) -> Cow<'_, str> {
    hide_password(url).map_or(Cow::Borrowed(url), Cow::Owned)
}

impl std::fmt::Display for SourceRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Git { url, revision, .. } if revision.is_empty() => f.write_str(&shown(url)),
            Self::Git { url, revision, .. } => write!(f, "{} at {revision}", shown(url)),
            Self::File { url } => f.write_str(&shown(url)),
            Self::Chart {
                repository,
                name,
                version,
            } => write!(f, "chart {name} {version} of {}", shown(repository)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        let git = |url: &str, revision: &str| SourceRef::Git {
            url: url.to_owned(),
            revision: revision.to_owned(),
            submodules: true,
        };
        let (login, query) = (
            "https://me:CANARY@h/r",
            "https://h/v.yaml?private_token=CANARY",
        );
        for (needed, text) in [
            (git(login, ""), "https://me:******@h/r"),
            (git(login, "v1"), "https://me:******@h/r at v1"),
            (git("https://h/r", "v1"), "https://h/r at v1"),
            (
                SourceRef::File {
                    url: query.to_owned(),
                },
                "https://h/v.yaml?private_token=******",
            ),
            (
                SourceRef::Chart {
                    repository: login.to_owned(),
                    name: "web".to_owned(),
                    version: "1.x".to_owned(),
                },
                "chart web 1.x of https://me:******@h/r",
            ),
        ] {
            assert_eq!(needed.to_string(), text);
        }
    }
}

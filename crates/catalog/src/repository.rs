//! What the catalogue is told about a repository. Main type: [`Repository`].

use crate::Filter;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A repository's name within the catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RepoId {
    pub namespace: String,
    pub name: String,
}

impl RepoId {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// Whose rules decide what of an index is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Helm's: what Helm could not install is skipped with a reason; deprecated charts are kept
    /// and marked.
    #[default]
    Helm,
    /// kubeapps': every entry whose fields have the right types is kept, so that rows are what its
    /// own syncer writes; a chart whose newest version is deprecated is left out.
    Kubeapps,
}

/// A repository with an index.
#[derive(Clone, Debug, Default)]
pub struct Repository {
    pub id: RepoId,
    /// http or https.
    pub url: String,
    pub form: Form,
    pub filter: Filter,
}

impl Repository {
    /// Differs when something else than the index changes what is stored.
    pub(crate) fn config_sha(&self) -> String {
        let mut hash = Sha256::new();
        let form = match self.form {
            Form::Helm => "helm",
            Form::Kubeapps => "kubeapps",
        };
        // The last is for changes of this program: whoever stores more must read again.
        for part in [&*self.url, form, &self.filter.text(), "1"] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hex(&hash.finalize())
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

pub(crate) fn sha256(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

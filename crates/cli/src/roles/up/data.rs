//! The data folder: the API server's store, copies of repositories, the kubeconfig.

use super::UpArgs;
use crate::private;
use anyhow::Context;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folder; with `--ephemeral` a temporary one, removed at the end.
pub struct DataFolder {
    path: PathBuf,
    temporary: bool,
}

impl DataFolder {
    /// Finds or creates the folder, readable only for its owner.
    pub fn open(args: &UpArgs) -> anyhow::Result<Self> {
        let temporary = args.ephemeral;
        let path = match &args.data {
            Some(path) => path.clone(),
            // A new one with an unpredictable name, because others may write to the temporary
            // folder as well.
            None if temporary => tempfile::Builder::new()
                .prefix("tiphys-")
                .tempdir()
                .context("no temporary folder can be made")?
                .keep(),
            None => {
                default_folder().context("no folder for data: set --data, XDG_DATA_HOME or HOME")?
            }
        };
        private::folder(&path).with_context(|| unusable(&path))?;
        let path = path
            .canonicalize()
            .with_context(|| format!("data folder {}", path.display()))?;
        Ok(Self { path, temporary })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A subfolder.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.path.join(name);
        private::closed_folder(&path).with_context(|| unusable(&path))?;
        Ok(path)
    }

    /// Writes a file that only its owner may read.
    pub fn write_private(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.path.join(name);
        private::write(&path, text.as_bytes())
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(path)
    }

    pub fn close(self) {
        if self.temporary
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "the temporary folder stays");
        }
    }
}

fn unusable(path: &Path) -> String {
    format!(
        "data folder {} cannot be used; choose another with --data",
        path.display()
    )
}

/// The kubeconfig of the embedded cluster in the default folder, if there is one.
pub fn kubeconfig_of_default() -> Option<PathBuf> {
    default_folder()
        .map(|folder| folder.join("kubeconfig"))
        .filter(|path| path.is_file())
}

/// `$XDG_DATA_HOME/tiphys` or `~/.local/share/tiphys`.
pub fn default_folder() -> Option<PathBuf> {
    let from = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    from("XDG_DATA_HOME")
        .or_else(|| from("HOME").map(|h| h.join(".local/share")))
        .map(|p| p.join("tiphys"))
}

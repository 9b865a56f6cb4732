//! The folder with everything that stays: the API server's store, copies of repositories, the kubeconfig.

use super::UpArgs;
use anyhow::Context;
use std::{
    fs,
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// The folder; a temporary one with `--ephemeral`, removed at the end.
pub struct DataFolder {
    path: PathBuf,
    temporary: bool,
}

impl DataFolder {
    /// Finds the folder and makes it, readable for its owner only.
    pub fn open(args: &UpArgs) -> anyhow::Result<Self> {
        let temporary = args.ephemeral;
        let path = match &args.data {
            Some(path) => path.clone(),
            None if temporary => std::env::temp_dir().join(format!("tiphys-{}", std::process::id())),
            None => default_folder().context("no folder for data: set --data, XDG_DATA_HOME or HOME")?,
        };
        make(&path)?;
        let path = path.canonicalize().with_context(|| format!("data folder {}", path.display()))?;
        Ok(Self { path, temporary })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder in it.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.path.join(name);
        make(&path)?;
        Ok(path)
    }

    /// Writes a file that only its owner may read.
    pub fn write_private(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.path.join(name);
        let open = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
        open.and_then(|mut f| f.write_all(text.as_bytes())).with_context(|| format!("{} cannot be written", path.display()))?;
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

fn make(path: &Path) -> anyhow::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("data folder {} cannot be made; choose another with --data", path.display()))
}

fn default_folder() -> Option<PathBuf> {
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    from("XDG_DATA_HOME").or_else(|| from("HOME").map(|h| h.join(".local/share"))).map(|p| p.join("tiphys"))
}

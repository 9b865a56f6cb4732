//! The folder for copies of repositories. Main type: [`RepositoryArgs`].

use anyhow::Context;
use clap::Args;
use std::{os::unix::fs::DirBuilderExt, path::PathBuf};

#[derive(Args, Debug)]
pub struct RepositoryArgs {
    /// Folder for copies of repositories [default: a new one in the temporary folder]
    #[arg(long = "repositories", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Let Applications name repositories of this machine (file:// URLs and absolute paths): for
    /// tests; everybody who may create an Application can then read every repository that this
    /// process can
    #[arg(long)]
    allow_file_repositories: bool,
}

/// A folder for copies of repositories; one that was created for this process is removed with it.
pub struct Repositories {
    pub path: PathBuf,
    temporary: bool,
}

impl Drop for Repositories {
    fn drop(&mut self) {
        if self.temporary
            && let Err(error) = std::fs::remove_dir_all(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "the temporary folder of repositories is left behind");
        }
    }
}

impl RepositoryArgs {
    pub fn are_local_allowed(&self) -> bool {
        self.allow_file_repositories
    }

    /// The given folder, else a new one that no one else can have created before.
    pub fn folder(&self) -> anyhow::Result<Repositories> {
        let new = || {
            std::env::temp_dir().join(format!(
                "tiphys-repositories-{:016x}",
                rand::random::<u64>()
            ))
        };
        let path = self.folder.clone().unwrap_or_else(new);
        let made = std::fs::DirBuilder::new()
            .recursive(self.folder.is_some())
            .mode(0o700)
            .create(&path);
        made.with_context(|| {
            format!(
                "folder {} cannot be made; choose another with --repositories",
                path.display()
            )
        })?;
        Ok(Repositories {
            path,
            temporary: self.folder.is_none(),
        })
    }
}

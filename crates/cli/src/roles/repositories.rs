//! The folder for copies of repositories. Main type: [`RepositoryArgs`].

use super::git::GitArgs;
use anyhow::Context;
use clap::Args;
use std::{os::unix::fs::DirBuilderExt, path::PathBuf};
use tiphys_repo::RepoOptions;

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
    /// The limits of repositories, and whether those of this machine may be used.
    pub fn options(&self, git: &GitArgs) -> RepoOptions {
        RepoOptions {
            allow_local: self.allow_file_repositories,
            ..git.options()
        }
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

/// What a role says about repositories of this machine, by the options that it has with some flags.
///
/// # Panics
/// If it uses them without being told to, or does not although it was.
#[cfg(test)]
pub async fn check_local(options: impl Fn(&[&str]) -> RepoOptions) {
    use tiphys_repo::{RepoAccess, Repos, Since};
    let repository = tiphys_testkit::Repo::with(&[("a.yaml", "")]);
    let folder = tempfile::tempdir().expect("a folder");
    let resolve = async |flags: &[&str], url: &str| {
        let repos = Repos::with_options(folder.path(), options(flags));
        let access = RepoAccess::public(url);
        let found = repos.resolve(&access, "HEAD", Since::now()).await;
        found.map(|found| found.sha).map_err(|e| e.to_string())
    };
    for url in [repository.url(), repository.bare().display().to_string()] {
        let refusal = format!(
            "repository URL {url:?} is refused: repositories of the local file system are not \
             allowed here"
        );
        assert_eq!(resolve(&[], &url).await, Err(refusal));
        let allowed = resolve(&["--allow-file-repositories"], &url).await;
        assert_eq!(allowed, Ok(repository.head()));
    }
}

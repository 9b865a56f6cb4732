//! The folder for copies of repositories. Main type: [`RepositoryArgs`].

use super::git::GitArgs;
use anyhow::Context;
use clap::Args;
use std::{os::unix::fs::DirBuilderExt, path::PathBuf};
use tiphys_repo::{DiskCache, RepoOptions};

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

impl Repositories {
    /// What was rendered before. A folder that is removed with this process has nothing for the next
    /// one.
    pub fn disk_cache(&self, git: &GitArgs) -> anyhow::Result<Option<DiskCache>> {
        if self.temporary {
            return Ok(None);
        }
        git.disk_cache(&self.path)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser};
    use std::{fs, os::unix::fs::PermissionsExt as _};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        repositories: RepositoryArgs,
        #[command(flatten)]
        git: GitArgs,
    }

    #[test]
    fn roles_render_in_workers() {
        let workers = |flags: &[&str]| {
            let words = ["tiphys"].into_iter().chain(flags.iter().copied());
            let line = Line::parse_from(words);
            let isolation = line.repositories.options(&line.git).isolation;
            isolation.expect("no render in this process").args
        };
        assert_eq!(workers(&[]), ["render-worker", "2048"]);
        let memory = ["render-worker", "300"];
        assert_eq!(workers(&["--render-memory-mib=300"]), memory);
    }

    /// Neither the flag nor the variable is forgotten silently.
    #[test]
    fn the_limit_for_jsonnet_alone_is_refused() {
        let refused = Line::try_parse_from(["tiphys", "--jsonnet-memory-mib=300"]);
        let why = refused.err().expect("refused").to_string();
        assert!(why.contains("TIPHYS_RENDER_MEMORY_MIB"), "{why}");
        let line = Line::command();
        let former = |arg: &&clap::Arg| arg.get_long() == Some("jsonnet-memory-mib");
        let former = line.get_arguments().find(former).expect("it is known");
        let variable = former.get_env().and_then(|name| name.to_str());
        assert_eq!(variable, Some("TIPHYS_JSONNET_MEMORY_MIB"));
    }

    #[test]
    fn what_was_rendered_is_kept_where_the_folder_stays() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("copies");
        let named = format!("--repositories={}", path.display());
        let is_kept = |flags: &[&str]| {
            let words: Vec<&str> = ["tiphys"]
                .into_iter()
                .chain(flags.iter().copied())
                .collect();
            let line = Line::parse_from(words);
            let made = line.repositories.folder().expect("made");
            let cache = made.disk_cache(&line.git);
            cache
                .map(|cache| cache.is_some())
                .map_err(|e| format!("{e:#}"))
        };
        assert_eq!(is_kept(&[]), Ok(false));
        assert_eq!(is_kept(&[&named, "--render-cache-bytes=0"]), Ok(false));
        assert!(!path.join("rendered").exists());
        assert_eq!(is_kept(&[&named]), Ok(true));
        let rendered = path.join("rendered");
        fs::set_permissions(&rendered, fs::Permissions::from_mode(0o777)).expect("ours");
        let refused = is_kept(&[&named]).expect_err("others may write to it");
        assert_eq!(
            refused,
            format!(
                "rendered manifests cannot be kept; --render-cache-bytes=0 keeps none: everybody may \
                 write to folder {} for what was rendered (mode 0777); run chmod 700 on it",
                rendered.display()
            )
        );
    }
}

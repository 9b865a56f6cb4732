//! A bare Git repository in a temporary folder. Main type: [`Repo`].

use std::{fs, path::Path, process::Command};
use tempfile::TempDir;

/// A bare repository and the files of its only branch, `main`. Deleted on drop.
pub struct Repo {
    folder: TempDir,
}

impl Default for Repo {
    fn default() -> Self {
        Self::new()
    }
}

impl Repo {
    /// An empty repository.
    ///
    /// # Panics
    /// If `git` is not installed.
    pub fn new() -> Self {
        let repo = Self {
            folder: TempDir::new().expect("a temporary folder"),
        };
        fs::create_dir(repo.tree()).expect("the folder is new");
        repo.git(&["init", "--quiet", "--bare", "--initial-branch=main"]);
        repo
    }

    /// A repository with one commit.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let repo = Self::new();
        repo.commit(files, &[]);
        repo
    }

    /// The URL for an Application's `repoURL`.
    pub fn url(&self) -> String {
        format!("file://{}", self.bare().display())
    }

    /// Makes symbolic links, to be committed with the next change.
    pub fn link(&self, links: &[(&str, &str)]) {
        for (name, target) in links {
            let path = self.tree().join(name);
            fs::create_dir_all(path.parent().expect("it is in the tree")).expect("a folder");
            std::os::unix::fs::symlink(target, path).expect("a link");
        }
    }

    /// Writes and deletes files, commits, and returns the commit's SHA.
    pub fn commit(&self, write: &[(&str, &str)], delete: &[&str]) -> String {
        for (name, text) in write {
            let path = self.tree().join(name);
            fs::create_dir_all(path.parent().expect("it is in the tree")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        for name in delete {
            fs::remove_file(self.tree().join(name)).expect("the file to delete is there");
        }
        self.git(&["add", "--all", "."]);
        self.git(&[
            "commit",
            "--quiet",
            "--allow-empty",
            "--message",
            "A change",
        ]);
        self.head()
    }

    /// The files of the latest commit.
    pub fn files(&self) -> Vec<String> {
        self.git(&["ls-files"]).lines().map(str::to_owned).collect()
    }

    /// The SHA of the latest commit.
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Points a reference such as `refs/tags/v1` at a commit.
    pub fn set_reference(&self, name: &str, sha: &str) {
        self.git(&["update-ref", name, sha]);
    }

    /// Deletes a reference.
    pub fn delete_reference(&self, name: &str) {
        self.git(&["update-ref", "-d", name]);
    }

    /// Makes this the default branch, which further commits go to.
    pub fn set_head(&self, branch: &str) {
        self.git(&["symbolic-ref", "HEAD", &format!("refs/heads/{branch}")]);
    }

    /// Makes the repository unavailable, or available again.
    pub fn set_away(&self, away: bool) {
        let (here, there) = (self.bare(), self.folder.path().join("away.git"));
        let (from, to) = if away { (here, there) } else { (there, here) };
        fs::rename(from, to).expect("it is where it was left");
    }

    /// Where it is.
    pub fn bare(&self) -> std::path::PathBuf {
        self.folder.path().join("repo.git")
    }

    fn tree(&self) -> std::path::PathBuf {
        self.folder.path().join("tree")
    }

    /// The output of `git` in it, without blanks at its end.
    ///
    /// # Panics
    /// If it fails.
    pub fn git(&self, arguments: &[&str]) -> String {
        let git = |tree: &Path| {
            Command::new("git")
                .current_dir(tree)
                .env("GIT_DIR", self.bare())
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .envs((arguments[0] != "init").then_some(("GIT_WORK_TREE", tree)))
                .args([
                    "-c",
                    "user.name=Test",
                    "-c",
                    "user.email=test@example.org",
                    "-c",
                    "gc.auto=0",
                    "-c",
                    "commit.gpgSign=false",
                ])
                .args(arguments)
                .output()
                .expect("git is installed")
        };
        let output = git(&self.tree());
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

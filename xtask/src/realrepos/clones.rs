//! Cloned repositories below a folder, and the documents in them.
//!
//! Main type: [`Clone`].

use anyhow::{Context, bail};
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tiphys_api::repo_url::RepoUrl;
use tiphys_apimachinery::Object;
use tiphys_render::{Budget, objects_of_text};

/// Folders between what the user named and a repository.
const DEPTH: usize = 3;

pub struct Clone {
    /// For people: the last part of its address, or its folder.
    pub name: String,
    /// The Git directory.
    pub path: PathBuf,
    /// Where it was cloned from.
    pub url: Option<RepoUrl>,
    pub head: String,
}

impl Clone {
    /// The repositories below `dir`, which may be one itself, sorted by name.
    pub fn below(dir: &Path) -> anyhow::Result<Vec<Self>> {
        let mut found = Vec::new();
        search(dir, DEPTH, &mut found)?;
        found.sort_by(|a: &Self, b: &Self| a.name.cmp(&b.name));
        Ok(found)
    }

    fn open(path: PathBuf, folder: &Path) -> anyhow::Result<Self> {
        let head = git(&path, &["rev-parse", "HEAD"])?;
        let origin = git(&path, &["config", "--get", "remote.origin.url"]).unwrap_or_default();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        // A mirror without an origin is known by its folder: owner+name.
        let url = match name.split_once('+') {
            Some((owner, name)) if origin.is_empty() => {
                RepoUrl::parse(&format!("https://github.com/{owner}/{name}")).ok()
            }
            _ => RepoUrl::parse(&origin).ok(),
        };
        Ok(Self {
            name: name.into_owned(),
            path,
            url,
            head,
        })
    }

    /// The paths of all files, in Git's order.
    pub fn files(&self) -> anyhow::Result<Vec<String>> {
        let listed = git(&self.path, &["ls-tree", "-r", "-z", "--name-only", "HEAD"])?;
        Ok(listed
            .split('\0')
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect())
    }

    /// The objects in a YAML file; none if it is not one.
    pub fn objects(
        &self,
        paths: &[&str],
        mut each: impl FnMut(&str, Object),
    ) -> anyhow::Result<()> {
        let names: String = paths
            .iter()
            .filter(|path| !path.contains('\n'))
            .map(|path| format!("HEAD:{path}\n"))
            .collect();
        let mut process = Command::new("git")
            .arg("--git-dir")
            .arg(&self.path)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("git")?;
        let mut input = process.stdin.take().context("git's input")?;
        let writer = std::thread::spawn(move || input.write_all(names.as_bytes()));
        let output = process.wait_with_output()?;
        let _ = writer.join();
        let mut rest = &output.stdout[..];
        for path in paths.iter().filter(|path| !path.contains('\n')) {
            let end = rest.iter().position(|b| *b == b'\n').context("a header")?;
            let header = String::from_utf8_lossy(&rest[..end]).into_owned();
            rest = &rest[end + 1..];
            // What a partial clone lacks is "missing".
            let Some(size) = header.rsplit_once(" blob ").map(|(_, size)| size) else {
                continue;
            };
            let size: usize = size.parse().context("a size")?;
            let content = rest.get(..size).context("a content")?;
            rest = rest.get(size + 1..).unwrap_or_default();
            for object in objects_of_text(path, content, &Budget::default()).0 {
                each(path, object);
            }
        }
        Ok(())
    }
}

fn search(dir: &Path, depth: usize, found: &mut Vec<Clone>) -> anyhow::Result<()> {
    for git_dir in [dir.join(".git"), dir.to_owned()] {
        if git_dir.join("HEAD").is_file() && git_dir.join("objects").is_dir() {
            // `owner+name/repo` is a mirror of one repository.
            let folder = match (dir.ends_with("repo"), dir.parent()) {
                (true, Some(parent)) => parent,
                _ => dir,
            };
            match Clone::open(git_dir, folder) {
                Ok(clone) => found.push(clone),
                Err(e) => eprintln!("{}: {e:#}", dir.display()),
            }
            return Ok(());
        }
    }
    if depth == 0 || !dir.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(dir).with_context(|| format!("{}", dir.display()))? {
        search(&entry?.path(), depth - 1, found)?;
    }
    Ok(())
}

fn git(git_dir: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git")
        .arg("--git-dir")
        .arg(git_dir)
        .args(args)
        .output()
        .context("git")?;
    if !output.status.success() {
        bail!(
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

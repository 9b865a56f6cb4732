//! What people reported about sources (`../shared/cases/reports/sources`), with the right answers:
//! the files of each case, rendered by what renders the sources of Applications.

#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

mod charts;
mod files;
mod git;
mod kustomize;
mod plugins;

use crate::local::{commit, git};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};
use tiphys_gocompat::yaml::{self, Duplicates, Limits};
use tiphys_repo::{
    ClusterFacts, ManifestRequest, Manifests, OtherRepository, Others, Reach, RepoAccess, Repos,
    Since,
};
use tiphys_testkit::{charts::package, shared};

/// The folder of a case, by its number; `None`: the cases are not here, and the test is skipped.
fn case(number: &str) -> Option<PathBuf> {
    let folders = fs::read_dir(shared("cases/reports/sources")?).expect("the cases can be read");
    let mut folders = folders.map(|folder| folder.expect("a folder").path());
    let is_it = |folder: &PathBuf| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&format!("{number}-"))
    };
    Some(folders.find(is_it).expect("the case"))
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The lines of a table, whose columns are separated by tabs.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = text(path);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}

fn documents(text: &str) -> Vec<Value> {
    format!("\n{text}")
        .split("\n---")
        .map(|document| {
            yaml::parse_document(document, &Limits::default(), Duplicates::LastWins).expect("YAML")
        })
        .filter(|document| !document.is_null())
        .collect()
}

fn local(path: &Path) -> RepoAccess {
    RepoAccess::public(path.to_str().expect("UTF-8"))
}

/// A folder with what a case needs, and what renders.
struct Here {
    dir: tempfile::TempDir,
    repos: Repos,
}

impl Here {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let repos = Repos::new(dir.path().join("cache"));
        Self { dir, repos }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A copy of a folder, as a Git repository with one commit. The text `from` is `to` in it.
    fn repository(&self, name: &str, folder: &Path, [from, to]: [&str; 2]) -> PathBuf {
        let copy = self.path(name);
        copied(folder, &copy, &|text| text.replace(from, to));
        committed(&copy);
        copy
    }

    /// What a case's `setup.sh` makes, in a folder of its own.
    fn set_up(&self, case: &Path) -> (PathBuf, String) {
        let folder = self.path("set-up");
        fs::create_dir_all(&folder).expect("a folder");
        let mut sh = Command::new("sh");
        let made = sh.arg(case.join("setup.sh")).arg(&folder).output();
        let made = made.expect("sh runs");
        assert!(made.status.success(), "{made:?}");
        (folder, String::from_utf8_lossy(&made.stdout).into_owned())
    }

    /// The commit of a revision.
    async fn resolve(&self, access: &RepoAccess, revision: &str) -> Result<String, String> {
        let found = self.repos.resolve(access, revision, Since::now()).await;
        found.map(|found| found.sha).map_err(|e| e.to_string())
    }

    /// Renders a source of a repository, as far as it is JSON.
    async fn render(
        &self,
        access: &RepoAccess,
        sha: &str,
        source: Value,
    ) -> Result<Arc<Manifests>, String> {
        let mut source = source;
        source["repoURL"] = json!(access.url);
        let request = ManifestRequest {
            access: access.clone(),
            source: serde_json::from_value(source).expect("a source"),
            sha: sha.to_owned(),
            app_name: "shop".to_owned(),
            others: anything(),
            cluster_facts: ClusterFacts {
                kustomize_build_options: "--enable-helm".to_owned(),
                ..ClusterFacts::default()
            },
            ..ManifestRequest::default()
        };
        self.rendered(request).await
    }

    async fn rendered(&self, request: ManifestRequest) -> Result<Arc<Manifests>, String> {
        let made = self.repos.manifests(request).await;
        let made = made.map_err(|e| e.to_string())?;
        match made.errors.is_empty() {
            true => Ok(made),
            false => Err(made.errors.iter().map(ToString::to_string).collect()),
        }
    }

    /// Renders the newest commit of a local repository.
    async fn built(&self, repository: &Path, source: Value) -> Result<Vec<Value>, String> {
        let access = local(repository);
        let sha = self.resolve(&access, "HEAD").await?;
        let made = self.render(&access, &sha, source).await?;
        Ok(objects(&made))
    }
}

fn objects(made: &Manifests) -> Vec<Value> {
    let objects = made.objects.iter();
    objects
        .map(|object| Value::Object(object.object().0.clone()))
        .collect()
}

/// Permits all repositories, without credentials.
fn anything() -> Others {
    Others::new(|wanted| match wanted {
        OtherRepository::Url(url) => Ok(Reach {
            access: RepoAccess::public(url),
            permitted: true,
        }),
        OtherRepository::Named(name) => panic!("{name} has no settings"),
    })
}

fn committed(folder: &Path) -> String {
    git(folder, &["init", "-q"]);
    commit(folder, "one")
}

/// Copies a folder with its links; texts are edited.
fn copied(from: &Path, to: &Path, edit: &dyn Fn(String) -> String) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().expect("its kind");
        if kind.is_symlink() {
            let target = fs::read_link(&from).expect("a link");
            std::os::unix::fs::symlink(target, to).expect("a link");
        } else if kind.is_dir() {
            copied(&from, &to, edit);
        } else {
            match fs::read_to_string(&from) {
                Ok(text) => fs::write(to, edit(text)).expect("a file"),
                Err(_) => drop(fs::copy(from, to).expect("a file")),
            }
        }
    }
}

/// The archive of a chart's folder with another version.
fn packed(folder: &Path, version: &str) -> Vec<u8> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    let name = folder.file_name().expect("a name").to_string_lossy();
    let chart = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    let mut files: Vec<(String, String)> = files
        .iter()
        .map(|path| {
            let inner = path.strip_prefix(folder).expect("it is below");
            (inner.to_string_lossy().into_owned(), text(path))
        })
        .filter(|(inner, _)| inner != "Chart.yaml")
        .collect();
    files.push(("Chart.yaml".to_owned(), chart));
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&**a, &**b)).collect();
    package(&name, &files)
}

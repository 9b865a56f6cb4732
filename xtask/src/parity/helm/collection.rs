//! The charts of a folder, with their dependencies added as `helm dependency build` would from
//! `file://` repositories.
//!
//! Main type: [`Collection`]. Charts are copied to the scratch folder; a dependency is packed by
//! `helm package`, once per content.

use super::{Case, real::Helm};
use anyhow::Context;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use tiphys_gocompat::{
    semver::{Constraints, Version},
    yaml::{self, Duplicates},
};
use tiphys_render::{
    MemoryFiles,
    helm::{
        Limits,
        chart::Chart,
        values::{MissingDependency, missing_dependencies},
    },
};

/// How deep charts are searched for.
const DEPTH: usize = 6;

/// Whether a chart can be rendered.
#[derive(Clone)]
pub enum Prepared {
    Ready(PathBuf),
    /// Its dependencies that are not available.
    Missing(Vec<String>),
}

pub struct Collection {
    /// By name, which is the relative path in the collection.
    charts: BTreeMap<String, PathBuf>,
    /// By the name in Chart.yaml: version and folder.
    known: BTreeMap<String, Vec<(String, PathBuf)>>,
    prepared: BTreeMap<PathBuf, Option<Prepared>>,
    scratch: PathBuf,
    without_missing: bool,
}

impl Collection {
    pub fn find(
        dir: &Path,
        more: &[PathBuf],
        scratch: &Path,
        without_missing: bool,
    ) -> anyhow::Result<Self> {
        let mut charts = BTreeMap::new();
        for folder in chart_folders(dir, 0)? {
            let inside = folder
                .strip_prefix(dir)
                .unwrap_or(&folder)
                .to_string_lossy()
                .into_owned();
            let name = inside
                .rsplit('/')
                .next()
                .filter(|n| !n.is_empty())
                .unwrap_or("chart")
                .to_owned();
            let name = if charts.contains_key(&name) {
                inside
            } else {
                name
            };
            charts.insert(name, folder);
        }
        let mut known: BTreeMap<String, Vec<(String, PathBuf)>> = BTreeMap::new();
        let others = more
            .iter()
            .map(|dir| chart_folders(dir, 0))
            .collect::<anyhow::Result<Vec<_>>>()?;
        for folder in charts.values().cloned().chain(others.into_iter().flatten()) {
            if let Some(chart) = load(&folder) {
                known
                    .entry(chart.name().to_owned())
                    .or_default()
                    .push((chart.metadata.version.clone(), folder));
            }
        }
        let scratch = scratch.join("charts");
        if scratch.exists() {
            fs::remove_dir_all(&scratch)?;
        }
        Ok(Self {
            charts,
            known,
            prepared: BTreeMap::new(),
            scratch,
            without_missing,
        })
    }

    pub fn names(&self) -> impl Iterator<Item = String> {
        self.charts.keys().cloned()
    }

    pub fn prepare(&mut self, name: &str, helm: &Helm) -> anyhow::Result<Prepared> {
        let folder = self
            .charts
            .get(name)
            .context("it was found before")?
            .clone();
        self.place(&folder, helm)
    }

    fn place(&mut self, folder: &Path, helm: &Helm) -> anyhow::Result<Prepared> {
        if let Some(known) = self.prepared.get(folder) {
            return Ok(known.clone().unwrap_or_else(|| {
                Prepared::Missing(vec![format!("itself ({})", folder.display())])
            }));
        }
        self.prepared.insert(folder.to_owned(), None);
        let prepared = self.place_anew(folder, helm)?;
        self.prepared
            .insert(folder.to_owned(), Some(prepared.clone()));
        Ok(prepared)
    }

    fn place_anew(&mut self, folder: &Path, helm: &Helm) -> anyhow::Result<Prepared> {
        let name = folder.file_name().unwrap_or_default();
        let copy = self
            .scratch
            .join(self.prepared.len().to_string())
            .join(name);
        copy_folder(folder, &copy)?;
        // A chart that we cannot load is compared unchanged.
        let Some(chart) = load(folder) else {
            return Ok(Prepared::Ready(copy));
        };
        let mut missing = Vec::new();
        let mut lacking = Vec::new();
        for dependency in missing_dependencies(&chart) {
            let source = self.source(folder, &dependency);
            let packed = match source.map(|source| self.place(&source, helm)).transpose()? {
                Some(Prepared::Ready(chart)) => helm.package(&chart)?,
                Some(Prepared::Missing(deeper)) => {
                    missing.extend(
                        deeper
                            .iter()
                            .map(|what| format!("{} → {what}", dependency.name)),
                    );
                    None
                }
                None => {
                    missing.push(format!(
                        "{} {} of {}",
                        dependency.name,
                        dependency.version,
                        or_nowhere(&dependency.repository)
                    ));
                    None
                }
            };
            let Some(packed) = packed else {
                lacking.push(dependency.name);
                continue;
            };
            let charts = copy.join("charts");
            fs::create_dir_all(&charts)?;
            fs::copy(&packed, charts.join(packed.file_name().unwrap_or_default()))?;
        }
        if lacking.is_empty() {
            return Ok(Prepared::Ready(copy));
        }
        if !self.without_missing {
            return Ok(Prepared::Missing(missing));
        }
        drop_dependencies(&copy, &lacking)?;
        Ok(Prepared::Ready(copy))
    }

    /// The folder of a matching chart: by its `file://` URL, or the newest of the known ones.
    fn source(&self, folder: &Path, wanted: &MissingDependency) -> Option<PathBuf> {
        if let Some(path) = wanted.repository.strip_prefix("file://") {
            return Some(folder.join(path)).filter(|path| path.join("Chart.yaml").is_file());
        }
        let constraints = Constraints::parse(&wanted.version).ok()?;
        let parsed = self
            .known
            .get(&wanted.name)?
            .iter()
            .filter_map(|(version, path)| Some((Version::parse(version).ok()?, path)));
        let mut fitting: Vec<_> = parsed
            .filter(|(version, _)| constraints.check(version))
            .collect();
        fitting.sort_by(|a, b| a.0.precedence(&b.0));
        fitting.last().map(|(_, path)| (*path).clone())
    }
}

fn or_nowhere(repository: &str) -> &str {
    if repository.is_empty() {
        "no repository"
    } else {
        repository
    }
}

/// The renders of a chart: with its defaults, and with each file in its `ci/` folder.
pub fn cases(name: &str, chart: &Path) -> anyhow::Result<Vec<Case>> {
    let mut cases = vec![Case {
        name: name.to_owned(),
        chart: chart.to_owned(),
        values: None,
    }];
    let mut files = Vec::new();
    for entry in fs::read_dir(chart.join("ci")).into_iter().flatten() {
        let path = entry?.path();
        if path.is_file()
            && path
                .extension()
                .is_some_and(|extension| extension == "yaml" || extension == "yml")
        {
            files.push(Path::new("ci").join(path.file_name().unwrap_or_default()));
        }
    }
    files.sort();
    let case = |file: PathBuf| Case {
        name: format!("{name} {}", file.display()),
        chart: chart.to_owned(),
        values: Some(file),
    };
    cases.extend(files.into_iter().map(case));
    Ok(cases)
}

/// The folders with a Chart.yaml, except those inside charts; sorted.
fn chart_folders(dir: &Path, depth: usize) -> anyhow::Result<Vec<PathBuf>> {
    if dir.join("Chart.yaml").is_file() {
        return Ok(vec![dir.to_owned()]);
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    if depth < DEPTH {
        let entries =
            fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
        for entry in entries
            .collect::<Result<Vec<_>, _>>()?
            .iter()
            .filter(|entry| entry.path().is_dir())
        {
            folders.extend(chart_folders(&entry.path(), depth + 1)?);
        }
    }
    folders.sort();
    Ok(folders)
}

pub fn load(folder: &Path) -> Option<Chart> {
    let files = read_folder(folder).ok()?;
    Chart::from_folder(&files, "", &Limits::default())
        .ok()
        .map(|loaded| loaded.chart)
}

/// All files of a folder, by relative path.
pub fn read_folder(folder: &Path) -> anyhow::Result<MemoryFiles> {
    let mut files = MemoryFiles::default();
    each_file(folder, "", &mut |name, path| {
        files.0.insert(name.to_owned(), fs::read(path)?);
        Ok(())
    })?;
    Ok(files)
}

fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    each_file(from, "", &mut |name, path| {
        let target = to.join(name);
        fs::create_dir_all(target.parent().context("a file lies in a folder")?)?;
        fs::copy(path, target).with_context(|| format!("cannot copy {}", path.display()))?;
        Ok(())
    })
}

fn each_file(
    folder: &Path,
    prefix: &str,
    visit: &mut dyn FnMut(&str, &Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        let name = format!(
            "{prefix}{}",
            path.file_name().unwrap_or_default().to_string_lossy()
        );
        if path.is_dir() {
            each_file(&path, &format!("{name}/"), visit)?;
        } else {
            visit(&name, &path)?;
        }
    }
    Ok(())
}

/// Removes dependencies from Chart.yaml, and the lock file.
fn drop_dependencies(chart: &Path, names: &[String]) -> anyhow::Result<()> {
    for file in ["Chart.yaml", "requirements.yaml"] {
        let path = chart.join(file);
        let Ok(text) = fs::read(&path) else { continue };
        let mut about =
            yaml::parse_document(&text, &yaml::Limits::default(), Duplicates::LastWins)?;
        if let Some(Value::Array(list)) = about.get_mut("dependencies") {
            list.retain(|entry| !names.iter().any(|name| entry["name"] == **name));
        }
        fs::write(&path, yaml::to_string(&about))?;
    }
    for lock in ["Chart.lock", "requirements.lock"]
        .map(|name| chart.join(name))
        .iter()
        .filter(|lock| lock.exists())
    {
        fs::remove_file(lock)?;
    }
    Ok(())
}

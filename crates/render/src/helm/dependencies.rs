//! Adds the dependencies of a chart that are not in its `charts/` folder, as `helm dependency build`
//! does. Pure: what must be fetched is named ([`HelmError::Need`]).
//!
//! Main function: [`complete`].

use super::{
    HelmError, Limits,
    chart::{Chart, Dependency, Lock},
    values::missing_dependencies,
};
use crate::{SourceFiles, SourceRef, files::join};
use sha2::{Digest, Sha256};
use std::{borrow::Cow, collections::BTreeMap};
use tiphys_gocompat::{
    json,
    semver::{Constraints, Version},
};

/// Where a dependency comes from.
enum Origin<'a> {
    /// The `charts/` folder.
    Here,
    /// A folder beside the chart: `file://../other`.
    Folder(&'a str),
    Repository,
}

impl<'a> Origin<'a> {
    fn of(repository: &'a str) -> Self {
        match repository.strip_prefix("file://") {
            _ if repository.is_empty() => Self::Here,
            Some(path) => Self::Folder(path),
            None => Self::Repository,
        }
    }
}

/// Adds what is missing. A chart that has all of its dependencies is returned as it is, whatever
/// versions they have.
///
/// `folder` is the chart's own folder in `files`, for dependencies beside it.
///
/// # Errors
/// [`HelmError::Need`], naming all charts that are not in `fetched` yet.
pub fn complete(
    mut chart: Chart,
    files: &dyn SourceFiles,
    folder: &str,
    fetched: &BTreeMap<SourceRef, &dyn SourceFiles>,
    limits: &Limits,
) -> Result<Chart, HelmError> {
    if missing_dependencies(&chart).is_empty() {
        return Ok(chart);
    }
    let wanted = wanted(&chart)?;
    let mut needed = Vec::new();
    let mut added: Vec<Chart> = Vec::new();
    for dependency in wanted.iter() {
        match Origin::of(&dependency.repository) {
            Origin::Here => {
                if !chart
                    .dependencies
                    .iter()
                    .any(|there| there.name() == dependency.name)
                {
                    return Err(HelmError::chart(format!(
                        "unable to load chart 'charts/{}': it has no repository, and it is not in charts/",
                        dependency.name
                    )));
                }
            }
            Origin::Folder(path) => added.push(beside(files, folder, path, dependency, limits)?),
            Origin::Repository => {
                let reference = SourceRef::Chart {
                    repository: dependency.repository.trim_end_matches('/').to_owned(),
                    name: dependency.name.clone(),
                    version: dependency.version.clone(),
                };
                match fetched.get(&reference) {
                    None => needed.push(reference),
                    Some(files) => added.push(Chart::from_unpacked(*files, limits)?.chart),
                }
            }
        }
    }
    if !needed.is_empty() {
        return Err(HelmError::Need(needed));
    }
    // A chart may be wanted twice, under two aliases.
    let mut seen = Vec::new();
    added.retain(|chart| {
        let identity = (chart.name().to_owned(), chart.metadata.version.clone());
        let is_new = !seen.contains(&identity);
        seen.push(identity);
        is_new
    });
    chart
        .dependencies
        .retain(|there| !added.iter().any(|new| new.name() == there.name()));
    chart.dependencies.extend(added);
    // In the order of their archives in charts/.
    chart.dependencies.sort_by_key(|dependency| {
        format!("{}-{}.tgz", dependency.name(), dependency.metadata.version)
    });
    Ok(chart)
}

/// What lies in `charts/` in another version than Chart.yaml wants; it is rendered all the same.
pub fn unsatisfied(chart: &Chart) -> Vec<String> {
    let wanted = chart.metadata.dependencies.iter().flatten();
    let differs = |dependency: &Dependency| {
        let mut of_name = chart
            .dependencies
            .iter()
            .filter(|there| there.name() == dependency.name)
            .peekable();
        let first = of_name.peek()?.metadata.version.clone();
        let satisfied = of_name.any(|there| satisfies(dependency, &there.metadata.version));
        (!satisfied).then(|| {
            format!(
                "chart {} in charts/ has version {first}, which does not satisfy {:?} in Chart.yaml",
                dependency.name, dependency.version
            )
        })
    };
    wanted.filter_map(differs).collect()
}

fn satisfies(dependency: &Dependency, version: &str) -> bool {
    match (
        Constraints::parse(&dependency.version),
        Version::parse(version),
    ) {
        (Ok(constraints), Ok(version)) => constraints.check(&version),
        _ => false,
    }
}

/// The dependencies with the versions to fetch: those of the lock file if there is one.
fn wanted(chart: &Chart) -> Result<Cow<'_, [Dependency]>, HelmError> {
    let declared = chart.metadata.dependencies.as_deref().unwrap_or_default();
    let Some(lock) = &chart.lock else {
        return Ok(Cow::Borrowed(declared));
    };
    let is_v1 = chart.metadata.api_version == "v1";
    if !is_in_sync(declared, lock, is_v1) {
        let (lock, file) = if is_v1 {
            ("requirements.lock", "requirements.yaml")
        } else {
            ("Chart.lock", "Chart.yaml")
        };
        return Err(HelmError::chart(format!(
            "the lock file ({lock}) is out of sync with the dependencies file ({file}). Please update the dependencies"
        )));
    }
    Ok(Cow::Borrowed(&lock.dependencies))
}

fn is_in_sync(declared: &[Dependency], lock: &Lock, is_v1: bool) -> bool {
    let now = format!("[{},{}]", as_json(declared), as_json(&lock.dependencies));
    // Helm 2 hashed the declared ones alone.
    let before = format!("{{\"dependencies\":{}}}", as_json(declared));
    let is = |text: &str| lock.digest == format!("sha256:{}", sha256(text));
    is(&now) || (is_v1 && is(&before))
}

fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().map(|b| format!("{b:02x}")).collect()
}

/// As Go marshals Helm's type; the order of the fields matters, since the text is hashed.
fn as_json(dependencies: &[Dependency]) -> String {
    let one = |d: &Dependency| {
        let mut fields = vec![format!("\"name\":{}", json::quote(&d.name))];
        let text = |fields: &mut Vec<String>, key: &str, value: &str| {
            if !value.is_empty() {
                fields.push(format!("\"{key}\":{}", json::quote(value)));
            }
        };
        text(&mut fields, "version", &d.version);
        fields.push(format!("\"repository\":{}", json::quote(&d.repository)));
        text(&mut fields, "condition", &d.condition);
        if !d.tags.is_empty() {
            let tags = d.tags.iter().map(|tag| json::quote(tag));
            fields.push(format!("\"tags\":[{}]", tags.collect::<Vec<_>>().join(",")));
        }
        if d.enabled {
            fields.push("\"enabled\":true".to_owned());
        }
        if !d.import_values.is_empty() {
            let values = d.import_values.iter().map(json::to_string);
            let values = values.collect::<Vec<_>>().join(",");
            fields.push(format!("\"import-values\":[{values}]"));
        }
        text(&mut fields, "alias", &d.alias);
        format!("{{{}}}", fields.join(","))
    };
    let all: Vec<String> = dependencies.iter().map(one).collect();
    format!("[{}]", all.join(","))
}

fn beside(
    files: &dyn SourceFiles,
    folder: &str,
    path: &str,
    dependency: &Dependency,
    limits: &Limits,
) -> Result<Chart, HelmError> {
    if path.starts_with('/') {
        return Err(HelmError::chart(format!(
            "the repository file://{path} of the dependency {} is not relative to the chart",
            dependency.name
        )));
    }
    let at = within(folder, path).ok_or_else(|| {
        HelmError::chart(format!(
            "the repository file://{path} of the dependency {} is outside of the source's repository",
            dependency.name
        ))
    })?;
    if files.list(&at)?.is_none() {
        return Err(HelmError::chart(format!("directory {at} not found")));
    }
    let chart = Chart::from_folder(files, &at, limits)?.chart;
    if satisfies(dependency, &chart.metadata.version) {
        return Ok(chart);
    }
    Err(HelmError::chart(format!(
        "can't get a valid version for dependency {}",
        dependency.name
    )))
}

/// A path relative to a folder, from the root; `None` if it leads out of it.
fn within(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(
        parts
            .into_iter()
            .fold(String::new(), |at, part| join(&at, part)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryFiles;

    fn chart(text: &str) -> MemoryFiles {
        MemoryFiles::new([("Chart.yaml", text)])
    }

    fn dep(version: &str) -> MemoryFiles {
        chart(&format!("apiVersion: v2\nname: dep\nversion: {version}\n"))
    }

    fn reference(repository: &str, version: &str) -> SourceRef {
        SourceRef::Chart {
            repository: repository.to_owned(),
            name: "dep".to_owned(),
            version: version.to_owned(),
        }
    }

    fn completed(
        files: &MemoryFiles,
        folder: &str,
        fetched: &[(SourceRef, MemoryFiles)],
    ) -> Result<Vec<String>, HelmError> {
        let fetched = fetched
            .iter()
            .map(|(needed, files)| (needed.clone(), files as &dyn SourceFiles))
            .collect();
        let limits = Limits::default();
        let own = Chart::from_folder(files, folder, &limits)?.chart;
        let chart = complete(own, files, folder, &fetched, &limits)?;
        let name = |c: &Chart| format!("{} {}", c.name(), c.metadata.version);
        Ok(chart.dependencies.iter().map(name).collect())
    }

    const TOP: &str = "apiVersion: v2\nname: top\nversion: 0.1.0\ndependencies:\n";

    #[test]
    fn what_is_missing_is_named_and_then_added() {
        let text = format!(
            "{TOP}- {{name: dep, version: 0.1.x, repository: 'https://h/a/'}}\n\
             - {{name: dep, version: 0.2.x, repository: 'https://h/b', alias: second}}\n"
        );
        let files = chart(&text);
        let (a, b) = (
            reference("https://h/a", "0.1.x"),
            reference("https://h/b", "0.2.x"),
        );
        assert_eq!(
            completed(&files, "", &[]),
            Err(HelmError::Need(vec![a.clone(), b.clone()]))
        );
        let one = [(a.clone(), dep("0.1.9"))];
        assert_eq!(
            completed(&files, "", &one),
            Err(HelmError::Need(vec![b.clone()]))
        );
        let both = [(b, dep("0.2.0")), (a, dep("0.1.9"))];
        assert_eq!(
            completed(&files, "", &both).expect("all is there"),
            ["dep 0.1.9", "dep 0.2.0"]
        );
    }

    #[test]
    fn what_lies_in_charts_is_taken_as_it_is() {
        let text = format!("{TOP}- {{name: dep, version: 0.2.x, repository: 'https://h/a'}}\n");
        let dep = "apiVersion: v2\nname: dep\nversion: 0.1.4\n";
        let files = MemoryFiles::new([
            ("Chart.yaml", text.as_str()),
            ("charts/dep/Chart.yaml", dep),
        ]);
        assert_eq!(
            completed(&files, "", &[]).expect("nothing is missing"),
            ["dep 0.1.4"]
        );
        let loaded = Chart::from_folder(&files, "", &Limits::default()).expect("a chart");
        assert_eq!(
            unsatisfied(&loaded.chart),
            [
                "chart dep in charts/ has version 0.1.4, which does not satisfy \"0.2.x\" in Chart.yaml"
            ]
        );
    }

    #[test]
    fn a_lock_file_decides_while_it_is_in_sync() {
        // As `helm dependency update` of Helm 4.2.4 wrote it.
        let text = format!(
            "{TOP}- name: dep\n  version: \">=0.1.0 <0.2.0\"\n  repository: https://h/a\n  alias: one\n  \
             condition: one.enabled\n  tags: [x]\n  import-values: [data]\n"
        );
        let locked = "- name: dep\n  repository: https://h/a\n  version: 0.1.4\n";
        let lock = |digest: &str| {
            format!(
                "dependencies:\n{locked}digest: sha256:{digest}\ngenerated: \"2026-01-01T00:00:00Z\"\n"
            )
        };
        let hashed = "[[{\"name\":\"dep\",\"version\":\"\\u003e=0.1.0 \\u003c0.2.0\",\"repository\":\"https://h/a\",\
            \"condition\":\"one.enabled\",\"tags\":[\"x\"],\"import-values\":[\"data\"],\"alias\":\"one\"}],\
            [{\"name\":\"dep\",\"version\":\"0.1.4\",\"repository\":\"https://h/a\"}]]";
        let good = lock(&sha256(hashed));
        let with =
            |lock: &str| MemoryFiles::new([("Chart.yaml", text.as_str()), ("Chart.lock", lock)]);
        assert_eq!(
            completed(&with(&good), "", &[]),
            Err(HelmError::Need(vec![reference("https://h/a", "0.1.4")]))
        );
        let stale = completed(&with(&lock(&"0".repeat(64))), "", &[]);
        assert_eq!(
            stale.expect_err("it is stale").to_string(),
            "the lock file (Chart.lock) is out of sync with the dependencies file (Chart.yaml). Please update the dependencies"
        );
    }

    #[test]
    fn charts_beside_the_chart() {
        let text = |path: &str| {
            format!("{TOP}- {{name: dep, version: 0.1.x, repository: 'file://{path}'}}\n")
        };
        let dep = "apiVersion: v2\nname: dep\nversion: 0.1.4\n";
        let tree = |path: &str| {
            let text = text(path);
            MemoryFiles::new([
                ("apps/top/Chart.yaml", text.as_str()),
                ("libs/dep/Chart.yaml", dep),
                ("libs/dep/.helmignore", "values.yaml\n"),
            ])
        };
        assert_eq!(
            completed(&tree("../../libs/dep"), "apps/top", &[]).expect("it is there"),
            ["dep 0.1.4"]
        );
        for (path, error) in [
            (
                "../../../dep",
                "the repository file://../../../dep of the dependency dep is outside of the source's repository",
            ),
            (
                "/libs/dep",
                "the repository file:///libs/dep of the dependency dep is not relative to the chart",
            ),
            ("../none", "directory apps/none not found"),
        ] {
            let refused = completed(&tree(path), "apps/top", &[]);
            assert_eq!(refused.expect_err(path).to_string(), error);
        }
        let files = MemoryFiles::new([
            (
                "top/Chart.yaml",
                text("../dep").replace("0.1.x", "0.2.x").as_str(),
            ),
            ("dep/Chart.yaml", dep),
        ]);
        assert_eq!(
            completed(&files, "top", &[])
                .expect_err("another version")
                .to_string(),
            "can't get a valid version for dependency dep"
        );
    }
}

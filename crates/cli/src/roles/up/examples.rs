//! The embedded examples, and the Git repository created from them.

use anyhow::Context;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};
use tiphys_repo::Repos;

/// The files of `examples/` in the source tree.
macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../../../../../examples/", $name)))),*] };
}

/// `REPO_URL` stands for the repository's own address.
const FILES: &[(&str, &str)] = files![
    "README.md",
    "app-of-apps/chart.yaml",
    "app-of-apps/guestbook.yaml",
    "app-of-apps/waves.yaml",
    "chart/Chart.yaml",
    "chart/templates/_helpers.tpl",
    "chart/templates/deployment.yaml",
    "chart/templates/migrate.yaml",
    "chart/templates/page.yaml",
    "chart/templates/service.yaml",
    "chart/values-prod.yaml",
    "chart/values.yaml",
    "guestbook/guestbook.yaml",
    "waves/backend.yaml",
    "waves/frontend.yaml",
    "waves/migrate.yaml",
];

/// The path of the app of apps in the repository.
pub const ROOT_PATH: &str = "app-of-apps";
/// Its name.
pub const ROOT: &str = "examples";

/// The names of all Applications: each file of the app of apps defines one with the same name.
pub fn applications() -> BTreeSet<String> {
    let name = |(path, _): &(&str, &str)| {
        path.strip_prefix(ROOT_PATH)?
            .strip_prefix('/')?
            .strip_suffix(".yaml")
            .map(str::to_owned)
    };
    FILES
        .iter()
        .filter_map(name)
        .chain([ROOT.to_owned()])
        .collect()
}

/// Creates `<folder>/examples.git` unless it exists, and returns its URL.
pub fn repository(folder: &Path) -> anyhow::Result<String> {
    let path: PathBuf = folder.join("examples.git");
    let url = format!("file://{}", path.display());
    if !path.exists() {
        let files: Vec<(&str, String)> = FILES
            .iter()
            .map(|(name, text)| (*name, text.replace("REPO_URL", &url)))
            .collect();
        let files = files.iter().map(|(name, text)| (*name, text.as_str()));
        Repos::init_example(&path, files)
            .with_context(|| format!("the example repository {} cannot be made", path.display()))?;
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files below a folder.
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                below(&path, found)
            } else {
                found.push(path)
            }
        }
    }

    #[test]
    fn every_example_is_carried() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut found = Vec::new();
        below(&examples, &mut found);
        let mut found: Vec<String> = found
            .iter()
            .map(|path| {
                path.strip_prefix(&examples)
                    .expect("below it")
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        found.sort();
        let mut carried: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        carried.sort();
        assert_eq!(found, carried);
        assert_eq!(
            applications(),
            ["chart", "examples", "guestbook", "waves"]
                .map(str::to_owned)
                .into()
        );
    }
}

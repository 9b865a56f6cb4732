//! The paths that affect an Application's manifests: the annotation
//! `argocd.argoproj.io/manifest-generate-paths`.
//!
//! Main functions: [`whole`] and [`touched`].

use tiphys_gocompat::path_match;

/// The paths of the annotation, relative to the repository's root; those that do not begin with `/`
/// are relative to the source's path.
pub fn whole(annotation: &str, path: &str) -> Vec<String> {
    let whole = |item: &str| match item.strip_prefix('/') {
        Some(absolute) => absolute.to_owned(),
        None => clean(&format!("{path}/{item}")),
    };
    annotation
        .split(';')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(whole)
        .collect()
}

/// Whether one of the changed files is below one of the paths or matches it. True if there are no
/// paths or the changed files are unknown.
pub fn touched(paths: &[String], changed: &[String]) -> bool {
    if paths.is_empty() || changed.is_empty() {
        return true;
    }
    let files: Vec<String> = changed.iter().map(|file| rooted(file)).collect();
    paths.iter().map(|path| rooted(path)).any(|path| {
        let folder = match clean(&path).trim_start_matches("../") {
            "." | ".." => "/".to_owned(),
            clean => format!("/{clean}/"),
        };
        files.iter().any(|file| {
            *file == path
                || file.starts_with(&folder)
                || path_match::matches(&path, file).unwrap_or(false)
        })
    })
}

fn rooted(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    }
}

/// A relative path without `.`, and without `..` where there is a parent to remove.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    if parts.is_empty() {
        ".".to_owned()
    } else {
        parts.join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_the_repositorys() {
        let paths = |annotation: &str, path: &str| whole(annotation, path).join(" ");
        assert_eq!(
            paths(".; /shared ;;../base", "apps/a"),
            "apps/a shared apps/base"
        );
        assert_eq!(paths("../../..", "a"), "../..");
        assert_eq!(paths(".", ""), ".");
    }

    #[test]
    fn files_below_a_path_concern_it() {
        for (annotation, path, files, concerns) in [
            ("", "apps/a", "other", true),
            (".", "apps/a", "", true),
            (".", "apps/a", "apps/a/x.yaml", true),
            (".", "apps/a", "apps/ab/x.yaml", false),
            (".", "apps/a", "README.md apps/a/deep/er/x.yaml", true),
            (".;/shared", "apps/a", "shared/x.yaml", true),
            ("/shared/x.yaml", "apps/a", "shared/x.yaml", true),
            ("/shared/*.yaml", "apps/a", "shared/y.yaml", true),
            ("/shared/*.yaml", "apps/a", "shared/deep/y.yaml", false),
            ("../base", "apps/a", "apps/base/k.yaml", true),
            ("../../..", "a", "anything", true),
            ("..", "apps", "anything", true),
            ("[", "apps", "anything", false),
        ] {
            let files: Vec<String> = files.split_whitespace().map(str::to_owned).collect();
            assert_eq!(
                touched(&whole(annotation, path), &files),
                concerns,
                "{annotation} {path} {files:?}"
            );
        }
    }
}

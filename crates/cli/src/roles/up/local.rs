//! What `tiphys up --repo FOLDER` means: a repository on this machine, and a folder in it. Main
//! function: [`settle`].

use super::UpArgs;
use crate::output;
use anyhow::{Context as _, bail};
use std::{fs, path::Path};

/// Makes a folder on this machine a `file://` URL, before anything is started. A folder in a
/// working tree is a folder of that repository.
pub fn settle(args: &mut UpArgs) -> anyhow::Result<()> {
    let Some(named) = args.repo.clone().filter(|named| !is_remote(named)) else {
        return Ok(());
    };
    let folder = Path::new(&named)
        .canonicalize()
        .with_context(|| format!("--repo {named}: there is no such folder, and it is no URL"))?;
    if !folder.is_dir() {
        bail!("--repo {named}: this is neither a folder nor a URL");
    }
    let Some(top) = folder.ancestors().find(|folder| is_repository(folder)) else {
        bail!(
            "--repo {named}: this folder is in no Git repository, and commits are what is \
             deployed: `git init`, `git add .` and `git commit` there make it one"
        );
    };
    if args.revision == "HEAD" && !may_have_commits(top) {
        bail!(
            "--repo {named}: nothing is committed in {} yet, and commits are what is deployed: \
             `git add .` and `git commit` there first",
            top.display()
        );
    }
    let inside = folder.strip_prefix(top).unwrap_or(Path::new(""));
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.with_context(|| format!("--repo {named}: the name of this folder is not UTF-8"))
    };
    let (inside, top) = (text(inside)?, text(top)?);
    if !inside.is_empty() {
        args.path = below(&inside, &args.path);
        output::print(&format!("the folder {} of {top}\n", args.path));
    }
    args.repo = Some(format!("file://{top}"));
    Ok(())
}

fn is_remote(named: &str) -> bool {
    named.contains("://") || (named.contains(':') && !Path::new(named).exists())
}

/// With a working tree, or bare.
fn is_repository(folder: &Path) -> bool {
    folder.join(".git").exists()
        || (folder.join("HEAD").is_file() && folder.join("objects").is_dir())
}

fn below(folder: &str, path: &str) -> String {
    match path.trim_start_matches("./").trim_matches('/') {
        "" | "." => folder.to_owned(),
        path => format!("{folder}/{path}"),
    }
}

/// False only for a repository in which surely nothing was committed: anything else is found out
/// when it is read.
fn may_have_commits(top: &Path) -> bool {
    let tree = top.join(".git");
    let git = if tree.is_dir() { tree.as_path() } else { top };
    let head = fs::read_to_string(git.join("HEAD")).unwrap_or_default();
    !head.starts_with("ref: refs/heads/")
        || git.join("packed-refs").exists()
        || git.join("reftable").exists()
        || may_have_files(&git.join("refs"))
}

fn may_have_files(folder: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(folder) else {
        return true;
    };
    entries.any(
        |entry| match entry.and_then(|e| Ok((e.file_type()?, e.path()))) {
            Ok((kind, path)) => !kind.is_dir() || may_have_files(&path),
            Err(_) => true,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::{below, is_remote};

    #[test]
    fn what_is_no_url_is_a_folder() {
        for (named, remote) in [
            ("https://example.org/r.git", true),
            ("git@example.org:r.git", true),
            ("ssh://git@example.org/r.git", true),
            // Tests run in the folder of their crate.
            ("src", false),
            ("no-such-folder", false),
        ] {
            assert_eq!(is_remote(named), remote, "{named}");
        }
    }

    #[test]
    fn paths_are_below_the_folder() {
        for (path, expected) in [
            (".", "apps/web"),
            ("", "apps/web"),
            ("./", "apps/web"),
            ("base", "apps/web/base"),
            ("./base/", "apps/web/base"),
        ] {
            assert_eq!(below("apps/web", path), expected, "{path}");
        }
    }
}

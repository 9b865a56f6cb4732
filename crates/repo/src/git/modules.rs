//! What `.gitmodules` says about the submodules of a commit. Main type: [`Submodule`].

use super::{GitFiles, Store, tree::Node};
use crate::{RepoError, url::refuse};
use gix::{ObjectId, bstr::ByteSlice, objs::tree::EntryKind};
use std::sync::Arc;
use tiphys_api::repo_url::{Form, RepoUrl};

/// The file, in the root of a commit.
pub(crate) const FILE: &str = ".gitmodules";
/// Longest `.gitmodules` that is read.
const MAX_BYTES: u64 = 1 << 20;

/// A submodule that a commit contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Submodule {
    /// Where it is in the commit.
    pub path: String,
    /// As it is written, possibly relative to the URL of the repository.
    pub url: String,
    /// The commit of the submodule.
    pub sha: ObjectId,
}

/// The submodules of a tree, in the order of `.gitmodules`. As in git, a path that is no submodule
/// in this commit is ignored.
///
/// # Errors
/// `.gitmodules` cannot be read, or asks for something that is not permitted.
pub(crate) fn submodules(store: &Store, tree: ObjectId) -> Result<Vec<Submodule>, RepoError> {
    let files = GitFiles::new(store, tree, Some(""));
    let bad = |reason: String| RepoError::Submodules {
        url: store.url.to_string(),
        reason,
    };
    let unreadable = |e: tiphys_render::FileError| bad(e.to_string());
    let nodes = files.tree(tree, "").map_err(unreadable)?;
    let Some(node) = nodes.iter().find(|node| &*node.name == FILE) else {
        return Ok(Vec::new());
    };
    let text = match node.kind {
        EntryKind::Blob | EntryKind::BlobExecutable => {
            files.blob(node.id, FILE, MAX_BYTES).map_err(unreadable)?
        }
        EntryKind::Link => return Err(bad(format!("{FILE} is a symbolic link"))),
        EntryKind::Tree | EntryKind::Commit => return Ok(Vec::new()),
    };
    let mut out = Vec::new();
    for section in sections(&text).map_err(|e| bad(format!("{FILE}: {e}")))? {
        let Some(path) = section.path else {
            continue;
        };
        let fault = |why: &str| bad(format!("submodule {path:?}: {why}"));
        let segments =
            segments(&path).ok_or_else(|| fault("its path is not inside the repository"))?;
        let Some(sha) = gitlink(&files, tree, &segments).map_err(unreadable)? else {
            continue;
        };
        match section.update.as_deref() {
            Some("none") => continue,
            // A command, which only a user's own configuration may name.
            Some(command) if command.starts_with('!') => {
                return Err(fault("its update is a command"));
            }
            _ => {}
        }
        let url = section.url.ok_or_else(|| fault("it has no url"))?;
        if out.iter().any(|known: &Submodule| known.path == path) {
            continue;
        }
        out.push(Submodule {
            path: segments.join("/"),
            url,
            sha,
        });
    }
    Ok(out)
}

#[derive(Default)]
struct Section {
    path: Option<String>,
    url: Option<String>,
    update: Option<String>,
}

/// The sections of the file; parts with the same name are one, and the last value counts.
fn sections(text: &[u8]) -> Result<Vec<Section>, String> {
    let meta = gix::config::file::Metadata::api();
    let options = gix::config::file::init::Options::default();
    let file = gix::config::File::from_bytes_no_includes(text, meta, options)
        .map_err(|e| e.to_string())?;
    let mut out: Vec<(String, Section)> = Vec::new();
    for section in file.sections_by_name("submodule").into_iter().flatten() {
        let Some(name) = section.header().subsection_name() else {
            continue;
        };
        let name = name.to_str_lossy().into_owned();
        let index = out.iter().position(|(known, _)| *known == name);
        let index = index.unwrap_or_else(|| {
            out.push((name, Section::default()));
            out.len() - 1
        });
        let Some((_, found)) = out.get_mut(index) else {
            continue;
        };
        for (key, kept) in [
            ("path", &mut found.path),
            ("url", &mut found.url),
            ("update", &mut found.update),
        ] {
            if let Some(value) = section.value(key) {
                let value = value.to_str().map_err(|_| format!("{key} is not UTF-8"))?;
                *kept = Some(value.to_owned());
            }
        }
    }
    Ok(out.into_iter().map(|(_, section)| section).collect())
}

/// The segments of a path inside of the repository; None for any other path.
fn segments(path: &str) -> Option<Vec<&str>> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let is_good = |part: &&str| {
        !part.is_empty()
            && !matches!(*part, "." | "..")
            && !part.eq_ignore_ascii_case(".git")
            && !part.contains(['\\', '\0', '\n', '\r'])
    };
    let parts: Vec<&str> = path.split('/').collect();
    parts.iter().all(is_good).then_some(parts)
}

/// The commit at a path. Links are not followed: git does not either, and a link could lead into
/// another submodule.
fn gitlink(
    files: &GitFiles,
    root: ObjectId,
    segments: &[&str],
) -> Result<Option<ObjectId>, tiphys_render::FileError> {
    let mut here = root;
    let Some((last, folders)) = segments.split_last() else {
        return Ok(None);
    };
    for folder in folders {
        match node(&files.tree(here, FILE)?, folder) {
            Some((EntryKind::Tree, id)) => here = id,
            _ => return Ok(None),
        }
    }
    Ok(match node(&files.tree(here, FILE)?, last) {
        Some((EntryKind::Commit, id)) => Some(id),
        _ => None,
    })
}

fn node(tree: &Arc<[Node]>, name: &str) -> Option<(EntryKind, ObjectId)> {
    let index = tree.binary_search_by(|n| (*n.name).cmp(name)).ok()?;
    tree.get(index).map(|n| (n.kind, n.id))
}

/// The absolute URL of a submodule, by git's rules: `./x` and `../x` are relative to the URL of the
/// repository that names it. The result is on the same server then.
pub(crate) fn absolute(url: &str, of: &str) -> Result<String, RepoError> {
    let is_relative = |url: &str| url.starts_with("./") || url.starts_with("../");
    if !is_relative(url) {
        return Ok(url.to_owned());
    }
    let parent = RepoUrl::parse(of).map_err(|fault| refuse(of, &fault.to_string()))?;
    let outside = || refuse(url, "it leads out of the server of its repository");
    let mut base = of.trim_end_matches('/');
    let mut rest = url;
    let start = match parent.form {
        // The colon ends the host, the path begins behind it.
        Form::Scp => of.find(':').map(|at| at + 1),
        Form::File => Some(0),
        _ => of.find("://").and_then(|at| {
            let host = at + 3;
            of.get(host..)?.find('/').map(|slash| host + slash + 1)
        }),
    };
    let start = start.ok_or_else(outside)?;
    loop {
        if let Some(next) = rest.strip_prefix("./") {
            rest = next.trim_start_matches('/');
        } else if let Some(next) = rest.strip_prefix("../") {
            rest = next.trim_start_matches('/');
            if base.len() < start {
                return Err(outside());
            }
            let path = base.get(start..).unwrap_or_default();
            if path.is_empty() {
                return Err(outside());
            }
            let cut = path.rfind('/').map_or(start, |slash| start + slash);
            base = base.get(..cut).unwrap_or_default();
        } else {
            break;
        }
    }
    let rest = rest.trim_end_matches('/');
    let joined = if base.ends_with([':', '/']) {
        format!("{base}{rest}")
    } else {
        format!("{base}/{rest}")
    };
    let child = RepoUrl::parse(&joined).map_err(|fault| refuse(&joined, &fault.to_string()))?;
    let server = |url: &RepoUrl| (url.form, url.host.clone(), url.port);
    if server(&child) != server(&parent) {
        return Err(outside());
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_urls_are_resolved_as_git_does() {
        for (of, url, expected) in [
            ("https://h/a/b.git", "../c.git", "https://h/a/c.git"),
            ("https://h/a/b.git/", "../c.git", "https://h/a/c.git"),
            ("https://h/a/b.git", "../../x/c", "https://h/x/c"),
            ("https://h/a/b.git", "./c/", "https://h/a/b.git/c"),
            ("https://h:8443/a/b", ".././../c", "https://h:8443/c"),
            ("git@h:a/b.git", "../c.git", "git@h:a/c.git"),
            ("git@h:a/b.git", "../../c.git", "git@h:c.git"),
            ("ssh://git@h:22/a/b.git", "../c", "ssh://git@h:22/a/c"),
            ("https://h/a", "https://other/x", "https://other/x"),
        ] {
            assert_eq!(absolute(url, of).expect(url), expected, "{of} {url}");
        }
        for (of, url) in [
            ("https://h/a/b", "../../../c"),
            ("https://h", "../c"),
            ("git@h:a", "../../c"),
            ("https://h/a/b", "../c/../../../../x"),
            ("https://h/a/b", "../c\nd"),
        ] {
            assert!(absolute(url, of).is_err(), "{of} {url}");
        }
    }

    #[test]
    fn paths_stay_inside() {
        for path in ["a", "a/b", "a/b/"] {
            assert!(segments(path).is_some(), "{path}");
        }
        for path in [
            "", "/", "/a", "..", "../a", "a/../b", "a//b", ".", "a/.git", ".GIT/x", "a\\b", "a\nb",
            "a\r", "a\rb",
        ] {
            assert!(segments(path).is_none(), "{path:?}");
        }
    }

    #[test]
    fn sections_are_merged_as_git_does() {
        let text = b"[submodule \"a\"]\n\tpath = x\n[core]\n\tpath = y\n[submodule \"a\"]\n\turl = ../u\n\tpath = z\n";
        let found = sections(text).expect("it parses");
        assert_eq!(found.len(), 1);
        let of = |s: &Section| (s.path.clone(), s.url.clone());
        assert_eq!(
            found.iter().map(of).collect::<Vec<_>>(),
            [(Some("z".to_owned()), Some("../u".to_owned()))]
        );
        assert!(sections(b"[submodule \"a\n").is_err());
    }
}

//! Lists what a commit has: files that match a pattern, folders, and folders that a tool renders.
//!
//! All of it is counted: the same folder may be in a tree a million times.

use crate::{
    ManifestRequest, RepoError, Repos,
    git::{Commit, GitFiles},
    ground::blocking,
};
use gix::glob::wildmatch;
use std::collections::BTreeMap;
use tiphys_api::access::shown_url;
use tiphys_gocompat::doublestar::{self, GlobError};
use tiphys_render::{FileEntry, FileError, FileKind, SourceFiles as _, SourceKind};

/// Files and folders that are looked at.
const MAX_ENTRIES: usize = 500_000;
/// Bytes of the files that are read, together.
const MAX_BYTES: usize = 64 << 20;

/// Which files are listed, by their paths from the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePattern {
    /// As git matches paths: a path stands for everything below it, and `*` and `?` match slashes.
    Git(String),
    /// As doublestar does: `*` ends at a slash, `**` is for any number of folders.
    Doublestar(String),
}

/// A listing of one commit.
struct Listing {
    files: GitFiles,
    url: String,
    seen: usize,
    bytes: usize,
}

impl Listing {
    fn new((store, id): &Commit, url: &str) -> Self {
        Self {
            files: GitFiles::new(store, id.tree, Some("")),
            url: shown_url(url),
            seen: 0,
            bytes: 0,
        }
    }

    fn over(&self, excess: String) -> RepoError {
        RepoError::OverLimit {
            url: self.url.clone(),
            excess,
        }
    }

    fn unreadable(&self, e: FileError) -> RepoError {
        RepoError::Corrupt {
            url: self.url.clone(),
            reason: e.to_string(),
        }
    }

    /// The entries of a folder, sorted by name; None: it is no folder, or leads out.
    fn entries(&mut self, folder: &str) -> Result<Option<Vec<FileEntry>>, RepoError> {
        let listed = match self.files.list(folder) {
            Err(FileError::OutsideLink(_)) => None,
            listed => listed.map_err(|e| self.unreadable(e))?,
        };
        self.seen += listed.as_ref().map_or(0, Vec::len);
        if self.seen > MAX_ENTRIES {
            let excess = format!("more than {MAX_ENTRIES} files that would have to be looked at");
            return Err(self.over(excess));
        }
        Ok(listed)
    }

    /// Calls `visit` for everything, a folder before what is in it; one that it declines is not
    /// entered. Links to folders are not followed.
    fn walk(
        &mut self,
        folder: &str,
        visit: &mut impl FnMut(&mut Self, &str, FileKind) -> Result<bool, RepoError>,
    ) -> Result<(), RepoError> {
        for entry in self.entries(folder)?.unwrap_or_default() {
            let path = if folder.is_empty() {
                entry.name
            } else {
                format!("{folder}/{}", entry.name)
            };
            if visit(self, &path, entry.kind)? && entry.kind == FileKind::Dir {
                self.walk(&path, visit)?;
            }
        }
        Ok(())
    }

    /// The content of a file; None: it is none.
    fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, RepoError> {
        let content = self.files.read(path).map_err(|e| self.unreadable(e))?;
        self.bytes += content.as_ref().map_or(0, Vec::len);
        if self.bytes > MAX_BYTES {
            return Err(self.over(format!("matching files of more than {MAX_BYTES} bytes")));
        }
        Ok(content)
    }

    fn by_git(&mut self, pattern: &str) -> Result<BTreeMap<String, Vec<u8>>, RepoError> {
        let pattern = pathspec(pattern)?;
        let mut found = BTreeMap::new();
        self.walk("", &mut |listing, path, kind| {
            let is_file = matches!(kind, FileKind::File { .. } | FileKind::Symlink);
            if is_file
                && is_git_match(&pattern, path)
                && let Some(content) = listing.read(path)?
            {
                found.insert(path.to_owned(), content);
            }
            Ok(true)
        })?;
        Ok(found)
    }

    fn by_doublestar(&mut self, pattern: &str) -> Result<BTreeMap<String, Vec<u8>>, RepoError> {
        let pattern = pattern.trim_start_matches("./").trim_start_matches('/');
        let pattern = if pattern == "." { "" } else { pattern };
        let listed = doublestar::glob(pattern, &mut |folder: &str| {
            let Some(entries) = self.entries(folder)? else {
                return Ok(None);
            };
            let entry = |entry: FileEntry| {
                let path = if folder.is_empty() {
                    entry.name.clone()
                } else {
                    format!("{folder}/{}", entry.name)
                };
                let is_dir = match entry.kind {
                    // One that leads out is no folder.
                    FileKind::Symlink => self
                        .files
                        .kind(&path)
                        .is_ok_and(|kind| kind == Some(FileKind::Dir)),
                    kind => kind == FileKind::Dir,
                };
                doublestar::Entry {
                    name: entry.name,
                    is_dir,
                }
            };
            Ok(Some(entries.into_iter().map(entry).collect()))
        });
        let listed = listed.map_err(|e| match e {
            GlobError::Pattern(e) => RepoError::Unsupported(format!("pattern {pattern:?}: {e}")),
            GlobError::List(e) => e,
        })?;
        let mut found = BTreeMap::new();
        for path in listed {
            match self.files.kind(&path) {
                Err(FileError::OutsideLink(_)) => {
                    tracing::warn!("{path} leads out of repository {}", self.url);
                }
                Err(e) => return Err(self.unreadable(e)),
                Ok(Some(FileKind::File { .. })) => {
                    if let Some(content) = self.read(&path)? {
                        found.insert(path, content);
                    }
                }
                Ok(_) => {}
            }
        }
        Ok(found)
    }

    fn folders(&mut self, with_hidden: bool) -> Result<Vec<String>, RepoError> {
        let mut found = Vec::new();
        self.walk("", &mut |_, path, kind| {
            // The folder of a submodule is there, and empty unless it was fetched.
            if !matches!(kind, FileKind::Dir | FileKind::Other) || is_hidden(path) && !with_hidden {
                return Ok(false);
            }
            found.push(path.to_owned());
            Ok(true)
        })?;
        Ok(found)
    }

    fn tools(&mut self, off: &[SourceKind]) -> Result<BTreeMap<String, SourceKind>, RepoError> {
        let mut found = BTreeMap::new();
        self.walk("", &mut |_, path, kind| {
            if kind == FileKind::Dir {
                return Ok(true);
            }
            let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
            let tool = match name {
                "kustomization.yaml" | "kustomization.yml" | "Kustomization" => {
                    Some(SourceKind::Kustomize)
                }
                name if name.ends_with("Chart.yaml") => Some(SourceKind::Helm),
                _ => None,
            };
            if let Some(tool) = tool.filter(|tool| !off.contains(tool)) {
                found.insert(folder.to_owned(), tool);
            }
            Ok(true)
        })?;
        Ok(found)
    }
}

fn is_hidden(path: &str) -> bool {
    path.rsplit('/')
        .next()
        .is_some_and(|name| name.starts_with('.'))
}

/// A pattern as git understands it, from the root. Empty: everything.
fn pathspec(pattern: &str) -> Result<String, RepoError> {
    let refuse = |why: &str| {
        let text = format!("pattern {pattern:?}: {why}");
        Err(RepoError::Unsupported(text))
    };
    if pattern.starts_with(':') {
        return refuse("what begins with a colon is not supported");
    }
    if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
        return refuse("it leads out of the repository");
    }
    let parts = pattern.split('/').filter(|part| *part != ".");
    Ok(parts.collect::<Vec<_>>().join("/"))
}

fn is_git_match(pattern: &str, path: &str) -> bool {
    let is_below = || {
        path.strip_prefix(pattern)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || pattern.ends_with('/'))
    };
    pattern.is_empty()
        || is_below()
        || gix::glob::wildmatch(pattern.into(), path.into(), wildmatch::Mode::empty())
}

impl Repos {
    /// The contents of the files of a commit that match a pattern, by path. Those of submodules
    /// count only for [`FilePattern::Doublestar`], as a work tree has them.
    pub async fn files(
        &self,
        request: &ManifestRequest,
        pattern: FilePattern,
    ) -> Result<BTreeMap<String, Vec<u8>>, RepoError> {
        let request = ManifestRequest {
            no_submodules: request.no_submodules || matches!(pattern, FilePattern::Git(_)),
            ..request.clone()
        };
        self.listing(&request, move |listing| match &pattern {
            FilePattern::Git(pattern) => listing.by_git(pattern),
            FilePattern::Doublestar(pattern) => listing.by_doublestar(pattern),
        })
        .await
    }

    /// The folders of a commit in the order of their paths, without the root. A hidden folder is
    /// left out with all that is in it, unless `with_hidden`.
    pub async fn folders(
        &self,
        request: &ManifestRequest,
        with_hidden: bool,
    ) -> Result<Vec<String>, RepoError> {
        self.listing(request, move |listing| listing.folders(with_hidden))
            .await
    }

    /// The folders of a commit that Helm or Kustomize render, with the tool; `.` is the root.
    pub async fn tools(
        &self,
        request: &ManifestRequest,
    ) -> Result<BTreeMap<String, SourceKind>, RepoError> {
        let off = request.cluster_facts.switched_off.clone();
        self.listing(request, move |listing| listing.tools(&off))
            .await
    }

    async fn listing<T: Send + 'static>(
        &self,
        request: &ManifestRequest,
        work: impl FnOnce(&mut Listing) -> Result<T, RepoError> + Send + 'static,
    ) -> Result<T, RepoError> {
        let commit = self.whole(&request.access, &request.sha, request).await?;
        let url = request.access.url.clone();
        blocking(move || work(&mut Listing::new(&commit, &url))).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_as_in_git() {
        for (pattern, path, expected) in [
            (".", "a/b.yaml", true),
            ("", "a", true),
            ("a", "a", true),
            ("a", "a/b.yaml", true),
            ("a/", "a/b.yaml", true),
            ("a", "ab", false),
            ("./a", "a/b", true),
            ("*.yaml", "a/b.yaml", true),
            ("a/*.yaml", "a/b/c.yaml", true),
            ("a/?.yaml", "a/b.yaml", true),
            ("a/**/c.yaml", "a/b/c.yaml", true),
            ("[ab]/*", "b/x", true),
            ("*.yml", "a/b.yaml", false),
            ("{a,b}", "a", false),
            ("a*b", "a/x/b", true),
        ] {
            let spec = pathspec(pattern).expect("valid");
            assert_eq!(is_git_match(&spec, path), expected, "{pattern} {path}");
        }
        for pattern in ["/a", "../a", "a/../../b", ":(glob)a", ":!a"] {
            assert!(pathspec(pattern).is_err(), "{pattern}");
        }
    }
}

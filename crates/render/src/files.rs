//! Reading a source: the trait that this crate reads files through, its errors, and an in-memory
//! implementation.

use crate::RenderError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FileKind {
    File {
        size: u64,
    },
    Dir,
    /// Only in listings; [`SourceFiles::kind`] follows links.
    Symlink,
    /// A submodule or anything else that can be neither read nor listed.
    Other,
}

/// An entry of a folder, with links not followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    pub name: String,
    pub kind: FileKind,
}

/// Why a path cannot be read although it may exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum FileError {
    #[error("illegal filepath in symlink at \"{0}\"")]
    OutsideLink(String),
    #[error("\"{0}\" is outside of the source")]
    Outside(String),
    #[error("too many links at \"{0}\"")]
    LinkLoop(String),
    #[error("\"{path}\" has {size} bytes, more than the {limit} that may be read")]
    TooLarge { path: String, size: u64, limit: u64 },
    #[error(
        "\"{0}\" is a Git LFS pointer, and Git LFS is not supported: its content is not in the repository"
    )]
    LfsPointer(String),
    #[error("cannot read \"{path}\": {reason}")]
    Unreadable { path: String, reason: String },
}

/// Read-only files of one revision. Paths use `/`, are relative to the root of the source and
/// contain no `.` or `..`; `""` is the root. Links inside the source are followed. A link that
/// leaves it is an error; it is never treated as missing.
pub trait SourceFiles: Send + Sync {
    /// The kind of the path with links followed, or None if it (or the target of a link) does not
    /// exist.
    fn kind(&self, path: &str) -> Result<Option<FileKind>, FileError>;
    /// The content of a file, or None if there is no such file.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FileError>;
    /// The same of a file that was just found to have so many bytes.
    fn read_found(&self, path: &str, _size: u64) -> Result<Option<Vec<u8>>, FileError> {
        self.read(path)
    }
    /// The entries of a folder sorted by name, or None if there is no such folder.
    fn list(&self, path: &str) -> Result<Option<Vec<FileEntry>>, FileError>;
    /// The path with links followed, which begins with `../` if it leads out of the source; None if
    /// there is nothing. Without links it is the path itself.
    fn resolved(&self, path: &str) -> Result<Option<String>, FileError> {
        Ok(self.kind(path)?.map(|_| path.to_owned()))
    }
    /// These paths are about to be looked up, and in those that are folders the names `inside`:
    /// whoever gets the files from elsewhere may get them at once. It has no other effect.
    fn expect(&self, _paths: &[String], _inside: &[&str]) {}
    /// The path on this machine and, for a link, its target: for messages about a user's local
    /// files.
    fn link(&self, _path: &str) -> Option<(String, String)> {
        None
    }
}

/// Files in memory: for tests, and for manifests that a client sent. No links.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(pub BTreeMap<String, Vec<u8>>);

impl MemoryFiles {
    pub fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(
            files
                .into_iter()
                .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
                .collect(),
        )
    }
}

impl SourceFiles for MemoryFiles {
    fn kind(&self, path: &str) -> Result<Option<FileKind>, FileError> {
        if let Some(content) = self.0.get(path) {
            return Ok(Some(FileKind::File {
                size: content.len() as u64,
            }));
        }
        let folder = if path.is_empty() {
            String::new()
        } else {
            format!("{path}/")
        };
        let exists = path.is_empty()
            || self
                .0
                .range(folder.clone()..)
                .next()
                .is_some_and(|(name, _)| name.starts_with(&folder));
        Ok(exists.then_some(FileKind::Dir))
    }

    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FileError> {
        Ok(self.0.get(path).cloned())
    }

    fn list(&self, path: &str) -> Result<Option<Vec<FileEntry>>, FileError> {
        if self.kind(path)? != Some(FileKind::Dir) {
            return Ok(None);
        }
        let folder = if path.is_empty() {
            String::new()
        } else {
            format!("{path}/")
        };
        let mut entries = BTreeMap::new();
        for (name, content) in self.0.range(folder.clone()..) {
            let Some(rest) = name.strip_prefix(&folder) else {
                break;
            };
            match rest.split_once('/') {
                Some((dir, _)) => entries.insert(dir.to_owned(), FileKind::Dir),
                None => entries.insert(
                    rest.to_owned(),
                    FileKind::File {
                        size: content.len() as u64,
                    },
                ),
            };
        }
        Ok(Some(
            entries
                .into_iter()
                .map(|(name, kind)| FileEntry { name, kind })
                .collect(),
        ))
    }
}

/// Normalizes the Application's path to the form that [`SourceFiles`] expects. `..` is allowed as
/// long as the path stays inside the source.
pub fn clean_app_path(path: &str) -> Result<String, RenderError> {
    if path.starts_with('/') {
        return Err(RenderError::PathAbsolute(path.to_owned()));
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return Err(RenderError::PathOutside(path.to_owned())),
            ".." => {}
            _ => parts.push(part),
        }
    }
    if parts.iter().any(|p| p.contains('\0')) {
        return Err(RenderError::PathMissing(path.replace('\0', "\u{FFFD}")));
    }
    Ok(parts.join("/"))
}

pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        [folder, "/", name].concat()
    }
}

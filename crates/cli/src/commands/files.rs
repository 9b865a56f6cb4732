//! A local folder as the source of a chart. Main type: [`LocalFiles`]. Links are followed wherever
//! they lead, as in Helm.

use std::{
    fs, io,
    path::{Path, PathBuf},
};
use tiphys_render::{FileEntry, FileError, FileKind, SourceFiles};

pub struct LocalFiles(PathBuf);

impl LocalFiles {
    pub fn new(folder: &Path) -> Self {
        Self(folder.to_owned())
    }
}

fn kind(about: &fs::Metadata) -> FileKind {
    match about.file_type() {
        t if t.is_symlink() => FileKind::Symlink,
        t if t.is_dir() => FileKind::Dir,
        t if t.is_file() => FileKind::File { size: about.len() },
        _ => FileKind::Other,
    }
}

/// A missing file is None; any other failure is an error.
fn there<T>(path: &str, result: io::Result<T>) -> Result<Option<T>, FileError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(e) => Err(FileError::Unreadable {
            path: path.to_owned(),
            reason: crate::client::reason(&e),
        }),
    }
}

impl SourceFiles for LocalFiles {
    fn kind(&self, path: &str) -> Result<Option<FileKind>, FileError> {
        Ok(there(path, fs::metadata(self.0.join(path)))?.map(|about| kind(&about)))
    }

    fn resolved(&self, path: &str) -> Result<Option<String>, FileError> {
        let (Some(root), Some(whole)) = (
            there(path, fs::canonicalize(&self.0))?,
            there(path, fs::canonicalize(self.0.join(path)))?,
        ) else {
            return Ok(None);
        };
        let shown = |path: &Path| path.display().to_string();
        Ok(Some(match whole.strip_prefix(&root) {
            Ok(inside) => shown(inside),
            Err(_) => format!("..{}", shown(&whole)),
        }))
    }

    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FileError> {
        match self.kind(path)? {
            Some(FileKind::File { .. }) => there(path, fs::read(self.0.join(path))),
            _ => Ok(None),
        }
    }

    fn list(&self, path: &str) -> Result<Option<Vec<FileEntry>>, FileError> {
        let Some(entries) = there(path, fs::read_dir(self.0.join(path)))? else {
            return Ok(None);
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let name = entry
                .file_name()
                .into_string()
                .map_err(|name| FileError::Unreadable {
                    path: format!("{path}/{}", name.display()),
                    reason: "the name is not UTF-8".to_owned(),
                })?;
            if let Some(about) = there(path, entry.metadata())? {
                found.push(FileEntry {
                    name,
                    kind: kind(&about),
                });
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(found))
    }

    fn link(&self, path: &str) -> Option<(String, String)> {
        let full = std::path::absolute(self.0.join(path)).ok()?;
        let shown = full.display().to_string();
        let shown = shown.trim_end_matches('/').to_owned();
        let is_link = fs::symlink_metadata(&shown).is_ok_and(|about| about.is_symlink());
        is_link
            .then(|| Some((shown, fs::canonicalize(&full).ok()?.display().to_string())))
            .flatten()
    }
}

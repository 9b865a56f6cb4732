//! A local folder as the source of a chart. Main type: [`LocalFiles`]. Links are followed wherever
//! they lead, as in Helm.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};
use tiphys_render::{FileEntry, FileError, FileKind, SourceFiles};

pub struct LocalFiles(PathBuf);

impl LocalFiles {
    pub fn new(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    fn full(&self, path: &str) -> PathBuf {
        // `Path::join` allocates twice.
        let mut full = PathBuf::with_capacity(self.0.as_os_str().len() + 1 + path.len());
        full.push(&self.0);
        full.push(path);
        full
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

/// The most that is allocated before a file is read.
const ROOM: usize = 16 << 20;

/// The content of a file that probably has so many bytes: large charts have thousands of files, and
/// the system is not asked again what each is.
fn content(path: &Path, size: u64) -> io::Result<Vec<u8>> {
    let size = usize::try_from(size).unwrap_or(ROOM);
    // One more byte, so that the end is found without more room.
    let mut data = Vec::with_capacity(size.min(ROOM) + 1);
    // `read_to_end` of a plain file asks for its size; behind `take` it does not.
    fs::File::open(path)?
        .take(u64::MAX)
        .read_to_end(&mut data)?;
    Ok(data)
}

impl SourceFiles for LocalFiles {
    fn kind(&self, path: &str) -> Result<Option<FileKind>, FileError> {
        Ok(there(path, fs::metadata(self.full(path)))?.map(|about| kind(&about)))
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
            Some(FileKind::File { .. }) => there(path, fs::read(self.full(path))),
            _ => Ok(None),
        }
    }

    fn read_found(&self, path: &str, size: u64) -> Result<Option<Vec<u8>>, FileError> {
        there(path, content(&self.full(path), size))
    }

    fn list(&self, path: &str) -> Result<Option<Vec<FileEntry>>, FileError> {
        let Some(entries) = there(path, fs::read_dir(self.full(path)))? else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_whole_whatever_size_they_had() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = "x".repeat(10_000);
        fs::write(folder.path().join("a"), &text).expect("written");
        let files = LocalFiles::new(folder.path());
        for size in [0, 1, 9_999, 10_000, 10_001, 1 << 30] {
            let read = files.read_found("a", size).expect("read").expect("a file");
            assert!(read == text.as_bytes(), "{size}: {} bytes", read.len());
        }
        assert_eq!(files.read_found("b", 1), Ok(None));
        assert!(files.read_found("", 1).is_err(), "a folder is no file");
    }
}

//! Where an import is looked for: beside the file that has it, then in the libraries from the last
//! to the first, then in the Application's folder.
//!
//! Main type: [`Library`]. Everything stays inside the source: the real program would also read
//! absolute paths and whatever `..` leads to.

use super::JsonnetOptions;
use crate::files::join;
use crate::{FileError, FileKind, RenderError, SourceFiles};

/// The folders of one Application.
pub(super) struct Library<'a> {
    files: &'a dyn SourceFiles,
    /// In the order of the search.
    folders: Vec<String>,
    /// Bytes that may still be read.
    left: u64,
    limit: u64,
}

/// Why an import has no content.
#[derive(Debug)]
pub(super) enum ImportFailure {
    /// A fault of the program.
    Message(String),
    /// The source cannot be read.
    File(FileError),
}

impl<'a> Library<'a> {
    /// # Errors
    /// A library outside of the source.
    pub(super) fn new(
        files: &'a dyn SourceFiles,
        folder: &str,
        options: &JsonnetOptions,
        bytes: u64,
    ) -> Result<Self, RenderError> {
        let mut folders = Vec::new();
        for library in options.libs.iter().rev() {
            let inside = normal("", library.trim_start_matches('/')).ok_or_else(|| {
                RenderError::Source(format!(
                    "file '{library}' resolved to outside repository root"
                ))
            })?;
            // A link that leads out is found now, not only when something is imported.
            files.kind(&inside)?;
            folders.push(inside);
        }
        folders.push(folder.to_owned());
        Ok(Self {
            files,
            folders,
            left: bytes,
            limit: bytes,
        })
    }

    /// The path and the content of what a file in the folder `beside` imports.
    pub(super) fn find(
        &mut self,
        beside: Option<&str>,
        import: &str,
    ) -> Result<(String, Vec<u8>), ImportFailure> {
        let refused =
            |why: &str| ImportFailure::Message(format!("couldn't open import {import:?}: {why}"));
        if import.starts_with('/') {
            return Err(refused("absolute paths are not supported"));
        }
        let mut left_the_source = false;
        let folders = beside
            .into_iter()
            .chain(self.folders.iter().map(String::as_str));
        for folder in folders {
            let Some(path) = normal(folder, import) else {
                left_the_source = true;
                continue;
            };
            match self.files.kind(&path).map_err(ImportFailure::File)? {
                Some(FileKind::File { size }) => {
                    self.left = self.left.checked_sub(size).ok_or_else(|| {
                        refused(&format!(
                            "the files together have more than the {} bytes that may be read",
                            self.limit
                        ))
                    })?;
                    if let Some(content) = self.files.read(&path).map_err(ImportFailure::File)? {
                        return Ok((path, content));
                    }
                }
                Some(_) => return Err(refused(&format!("{path:?} is not a file"))),
                None => {}
            }
        }
        Err(refused(if left_the_source {
            "it is outside of the repository"
        } else {
            "no match locally or in the Jsonnet library paths"
        }))
    }
}

/// The path without `.` and `..`, as Go's filepath.Join makes it; `None` outside of the source.
fn normal(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part if part.contains('\0') => return None,
            part => parts.push(part),
        }
    }
    Some(
        parts
            .iter()
            .fold(String::new(), |path, part| join(&path, part)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        for (folder, path, want) in [
            ("app", "a.libsonnet", Some("app/a.libsonnet")),
            ("app", "./x/../a", Some("app/a")),
            ("app", "../a", Some("a")),
            ("app", "../../a", None),
            ("", "..", None),
            ("", "", Some("")),
        ] {
            assert_eq!(normal(folder, path).as_deref(), want, "{folder} {path}");
        }
    }
}

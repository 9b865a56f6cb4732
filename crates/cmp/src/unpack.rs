//! Unpacks the files of a source into a folder, out of which nothing leads.
//!
//! Main function: [`unpack`].

use std::{
    collections::VecDeque,
    fs::{self, OpenOptions},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};
use tiphys_render::tar::{Allowance, Kind, Tar, TarFault};

/// Links followed for one path, as in Linux.
const MAX_LINKS: usize = 40;
const FOLDER: u32 = 0o755;
const FILE: u32 = 0o644;

/// Why files cannot be unpacked, in Argo CD's words where it has some.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("error while iterating on tar reader: {0}")]
    Tar(#[from] TarFault),
    #[error("illegal filepath in archive: {0}")]
    Path(String),
    #[error("illegal filepath in symlink: {0}")]
    Link(String),
    #[error("error creating file {path:?}: {reason}")]
    Write { path: String, reason: io::Error },
    #[error("it unpacks to more than {0} bytes")]
    Bytes(u64),
    #[error("it has more than {0} files")]
    Entries(u64),
}

/// What an archive may unpack to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub bytes: u64,
    pub entries: u64,
}

struct Left {
    limits: Limits,
    left: Limits,
}

impl Allowance for Left {
    type Error = UnpackError;

    fn entry(&mut self) -> Result<(), UnpackError> {
        let left = self.left.entries.checked_sub(1);
        self.left.entries = left.ok_or(UnpackError::Entries(self.limits.entries))?;
        Ok(())
    }

    fn bytes(&mut self, bytes: u64) -> Result<(), UnpackError> {
        let left = self.left.bytes.checked_sub(bytes);
        self.left.bytes = left.ok_or(UnpackError::Bytes(self.limits.bytes))?;
        Ok(())
    }
}

/// Unpacks an archive into an empty folder. `keep_modes`: files may be run as in the archive. Blocks.
pub fn unpack(
    archive: impl Read,
    root: &Path,
    keep_modes: bool,
    limits: Limits,
) -> Result<(), UnpackError> {
    let left = Left {
        limits,
        left: limits,
    };
    let mut tar = Tar::new(archive, left);
    let mut links = Vec::new();
    while let Some(entry) = tar.next()? {
        let illegal = || UnpackError::Path(entry.name.clone());
        let relative = inside(&entry.name).ok_or_else(illegal)?;
        let failed = |reason| UnpackError::Write {
            path: entry.name.clone(),
            reason,
        };
        if relative.is_empty() {
            tar.skip(entry.size)?;
            continue;
        }
        let (path, mode) = (root.join(&relative), |usual| {
            if keep_modes { entry.mode } else { usual }
        });
        let parent = relative.rsplit_once('/').map_or("", |(parent, _)| parent);
        match &entry.kind {
            Kind::Folder => {
                tar.skip(entry.size)?;
                folders(root, &relative, &entry.name)?;
                // Everything below has to be written, too.
                let mode = mode(FOLDER) | 0o700;
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(failed)?;
            }
            Kind::File => {
                folders(root, parent, &entry.name)?;
                let mut options = OpenOptions::new();
                // New: never through a link.
                let opened = options
                    .write(true)
                    .create_new(true)
                    .mode(mode(FILE))
                    .open(&path);
                let mut file = opened.map_err(failed)?;
                tar.copy(entry.size, &mut file)?.map_err(failed)?;
            }
            Kind::Symlink(target) => {
                tar.skip(entry.size)?;
                if target.starts_with('/') || target.is_empty() {
                    return Err(UnpackError::Link(format!("{} -> {target}", entry.name)));
                }
                folders(root, parent, &entry.name)?;
                std::os::unix::fs::symlink(target, &path).map_err(failed)?;
                links.push(relative);
            }
            Kind::HardLink | Kind::Other => tar.skip(entry.size)?,
        }
    }
    // Now that all are there: one link may lead out only through another.
    for link in links {
        if !stays_inside(root, &link) {
            return Err(UnpackError::Link(link));
        }
    }
    Ok(())
}

/// The path without `.` and `..`, or None if it leads out.
fn inside(name: &str) -> Option<String> {
    if name.starts_with('/') || name.contains('\0') {
        return None;
    }
    let mut parts = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Makes the folders of a path. None of them may be a link.
fn folders(root: &Path, path: &str, name: &str) -> Result<(), UnpackError> {
    let mut here = root.to_owned();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        here.push(part);
        match fs::symlink_metadata(&here) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(UnpackError::Path(name.to_owned())),
            Err(_) => fs::DirBuilder::new()
                .mode(FOLDER)
                .create(&here)
                .map_err(|reason| UnpackError::Write {
                    path: name.to_owned(),
                    reason,
                })?,
        }
    }
    Ok(())
}

/// Whether a path leads to a place in the root, with links followed as the kernel does. What it
/// leads to need not exist.
fn stays_inside(root: &Path, path: &str) -> bool {
    let parts = |text: &str| -> Vec<String> { text.split('/').map(str::to_owned).collect() };
    let mut todo: VecDeque<String> = parts(path).into();
    let (mut here, mut links) = (Vec::<String>::new(), 0);
    while let Some(part) = todo.pop_front() {
        match part.as_str() {
            "" | "." => continue,
            ".." => {
                if here.pop().is_none() {
                    return false;
                }
                continue;
            }
            _ => here.push(part),
        }
        let place: PathBuf = root.join(here.join("/"));
        let Ok(target) = fs::read_link(&place) else {
            continue;
        };
        links += 1;
        let Some(target) = target.to_str().filter(|target| !target.starts_with('/')) else {
            return false;
        };
        if links > MAX_LINKS {
            // The kernel does not follow it either.
            return true;
        }
        here.pop();
        for part in parts(target).into_iter().rev() {
            todo.push_front(part);
        }
    }
    true
}

#[cfg(test)]
#[path = "unpack_tests.rs"]
mod tests;

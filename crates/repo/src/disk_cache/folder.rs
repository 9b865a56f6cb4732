//! The folder of a [`DiskCache`](super::DiskCache): whether it can be believed, and what is in it.

use super::{DiskCacheError, INCOMPLETE, Name};
use crate::ground::hex;
use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::Path,
    time::SystemTime,
};

/// The files of the folder with their sizes, those first that were used longest ago.
pub(super) fn open(path: &Path) -> Result<Vec<(Name, u64)>, DiskCacheError> {
    let unusable = |cause: io::Error| DiskCacheError::Unusable {
        path: path.to_owned(),
        cause,
    };
    // A link or a file at this place is told of below.
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    let about = match (fs::symlink_metadata(path), made) {
        (Ok(about), _) => about,
        (Err(_), Err(cause)) | (Err(cause), Ok(())) => return Err(unusable(cause)),
    };
    if !about.is_dir() {
        return Err(DiskCacheError::NoFolder(path.to_owned()));
    }
    let mode = about.mode() & 0o777;
    if mode & 0o002 != 0 {
        let path = path.to_owned();
        return Err(DiskCacheError::Open { path, mode });
    }
    // A new file shows our user.
    let probe = tempfile::Builder::new()
        .prefix(INCOMPLETE)
        .tempfile_in(path)
        .map_err(unusable)?;
    let own = probe.as_file().metadata().map_err(unusable)?.uid();
    drop(probe);
    if about.uid() != own {
        return Err(DiskCacheError::Foreign(path.to_owned()));
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(unusable)?;
    // Kubernetes lets the group of a pod write to the folders of its volumes. That is no reason not
    // to start, but someone else may have written what is there.
    let is_believed = mode & 0o020 == 0;
    let (found, discarded) = files(path, own, is_believed).map_err(unusable)?;
    if discarded > 0 {
        tracing::warn!(
            folder = %path.display(),
            mode = format!("{mode:o}"),
            files = discarded,
            "discarded what was kept: others could have written it"
        );
    }
    Ok(found)
}

/// Also returns how many were discarded because someone else may have written them.
fn files(path: &Path, own: u32, is_believed: bool) -> io::Result<(Vec<(Name, u64)>, usize)> {
    let mut found: Vec<(SystemTime, Name, u64)> = Vec::new();
    let mut discarded = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let file = entry.file_name();
        let file = file.to_string_lossy();
        let Some(name) = name_of(&file) else {
            if file.starts_with(INCOMPLETE) {
                discard(&entry.path());
            }
            continue;
        };
        let about = entry.metadata()?;
        if is_believed && about.is_file() && about.uid() == own && about.mode() & 0o022 == 0 {
            let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            found.push((used, name, about.len()));
        } else {
            discard(&entry.path());
            discarded += 1;
        }
    }
    found.sort_unstable();
    let found = found.into_iter().map(|(_, name, size)| (name, size));
    Ok((found.collect(), discarded))
}

pub(super) fn remove(folder: &Path, name: &Name) {
    discard(&folder.join(hex(name)));
}

/// A file that cannot be removed only wastes space: it is not read.
fn discard(path: &Path) {
    let _ = fs::remove_file(path);
}

/// The digest that a file is named by, if it is one of ours.
fn name_of(file: &str) -> Option<Name> {
    if file.len() != 64 {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut name = [0; 32];
    for (pair, byte) in file.as_bytes().chunks_exact(2).zip(&mut name) {
        *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
    }
    Some(name)
}

//! Unpacks the archive of a download into a commit of our own, so that never more than a part of a
//! file is in memory.
//!
//! Main function: [`store`].

use super::layer::{self, LayerError, LayerFile, LayerLimits};
use crate::{
    RepoError,
    git::Commit,
    unpacked::{Unpacked, UnpackedKey},
};
use std::{
    fs::File,
    io::{BufReader, Seek as _},
};

/// The files of an archive, as a commit that is found by a key. `is`: whether it is packed, and
/// whether it is a chart.
///
/// # Errors
/// It cannot be stored; inside, there is something wrong with the archive.
pub(crate) fn store(
    mut archive: File,
    is: (bool, bool),
    limits: LayerLimits,
    unpacked: &Unpacked,
    key: UnpackedKey,
) -> Result<Result<Commit, LayerError>, RepoError> {
    let rewound = archive.rewind();
    rewound.map_err(|e| RepoError::Internal(format!("a download cannot be read: {e}")))?;
    let mut storing = unpacked.begin()?;
    let adding = &mut storing.adding;
    let found = layer::files(BufReader::new(archive), is, limits, |content, size| {
        adding.file(content, size).map_err(|e| e.to_string())
    });
    let found = match found {
        Ok(found) => found,
        Err(LayerError::NotKept(reason)) => {
            return Err(storing.failure(RepoError::Internal(reason)));
        }
        Err(e) => return Ok(Err(e)),
    };
    let mut list = Vec::with_capacity(found.len());
    for (path, file) in &found {
        let added = match file {
            LayerFile::File(added) => *added,
            LayerFile::Link(target) => {
                let added = storing.adding.link(target);
                added.map_err(|e| storing.failure(e))?
            }
        };
        list.push((path.as_str(), added));
    }
    storing.finish(&[key], list).map(Ok)
}

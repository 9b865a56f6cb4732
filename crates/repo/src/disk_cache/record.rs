//! One file of a [`DiskCache`](super::DiskCache): what it begins with, the digest of the rest, and
//! the packed content.

use super::Name;
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use sha2::{Digest, Sha256};
use std::{
    fs::{File, FileTimes},
    io::{self, Read as _, Write as _},
    path::Path,
    time::SystemTime,
};

/// What files of this form begin with.
const BEGINNING: &[u8] = b"tiphys cache 1\n";
const DIGEST: usize = 32;
/// The largest content, packed or not.
const MOST: u64 = 256 << 20;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is incomplete or was changed")]
    Changed,
    #[error("it is too large")]
    TooLarge,
}

/// The bytes of a file. It tells its own name, so that it does not stand for another.
pub(super) fn packed(name: &Name, content: &[u8]) -> io::Result<Vec<u8>> {
    if content.len() as u64 > MOST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content)?;
    let packed = encoder.finish()?;
    let digest = digest(name, &packed);
    Ok([BEGINNING, digest.as_slice(), packed.as_slice()].concat())
}

/// The content of a file, which counts as used now.
pub(super) fn read(path: &Path, name: &Name) -> Result<Vec<u8>, Unread> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    (&mut file).take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(Unread::TooLarge);
    }
    let rest = bytes.strip_prefix(BEGINNING).ok_or(Unread::Changed)?;
    let (told, packed) = rest.split_at_checked(DIGEST).ok_or(Unread::Changed)?;
    if told != digest(name, packed) {
        return Err(Unread::Changed);
    }
    let mut content = Vec::new();
    ZlibDecoder::new(packed)
        .take(MOST + 1)
        .read_to_end(&mut content)?;
    if content.len() as u64 > MOST {
        return Err(Unread::TooLarge);
    }
    // For the order after a restart; without it the order is only another one.
    let _ = file.set_times(FileTimes::new().set_modified(SystemTime::now()));
    Ok(content)
}

fn digest(name: &Name, packed: &[u8]) -> [u8; DIGEST] {
    let mut hash = Sha256::new();
    hash.update(name);
    hash.update(packed);
    hash.finalize().into()
}

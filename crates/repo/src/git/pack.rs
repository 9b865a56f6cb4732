//! New objects as a pack, to send them to a remote. Main function: [`pack`].

use super::{Store, error::text};
use crate::RepoError;
use flate2::{Compression, write::ZlibEncoder};
use gix::{ObjectId, objs::Kind};
use std::io::Write as _;

const VERSION: u32 = 2;

/// A pack of whole objects, none of which is a difference from another one.
pub(super) fn pack(store: &Store, objects: &[ObjectId]) -> Result<Vec<u8>, RepoError> {
    let failed = |e: &dyn std::fmt::Display| RepoError::Internal(format!("writing a pack: {e}"));
    let count = u32::try_from(objects.len()).map_err(|e| failed(&e))?;
    let mut out = b"PACK".to_vec();
    out.extend(VERSION.to_be_bytes());
    out.extend(count.to_be_bytes());
    let repo = store.local();
    for id in objects {
        let object = repo.find_object(*id).map_err(|e| failed(&text(&e)))?;
        entry_header(&mut out, object.kind, object.data.len());
        let mut zlib = ZlibEncoder::new(&mut out, Compression::default());
        zlib.write_all(&object.data).map_err(|e| failed(&e))?;
        zlib.finish().map_err(|e| failed(&e))?;
    }
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(&out);
    let checksum = hasher.try_finalize().map_err(|e| failed(&text(&e)))?;
    out.extend(checksum.as_slice());
    Ok(out)
}

/// The type in three bits of the first byte, the size in four bits of it and seven of each
/// following one, the lowest first.
fn entry_header(out: &mut Vec<u8>, kind: Kind, size: usize) {
    let kind: u8 = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let low = |size: usize, mask: usize| u8::try_from(size & mask).unwrap_or_default();
    let mut byte = (kind << 4) | low(size, 0xf);
    let mut rest = size >> 4;
    while rest > 0 {
        out.push(byte | 0x80);
        byte = low(rest, 0x7f);
        rest >>= 7;
    }
    out.push(byte);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_from_their_low_end() {
        for (size, bytes) in [
            (0, vec![0x30]),
            (15, vec![0x3f]),
            (16, vec![0xb0, 0x01]),
            (2047, vec![0xbf, 0x7f]),
            (2048, vec![0xb0, 0x80, 0x01]),
        ] {
            let mut out = Vec::new();
            entry_header(&mut out, Kind::Blob, size);
            assert_eq!(out, bytes, "{size}");
        }
    }
}

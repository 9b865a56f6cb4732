//! A large index on disk, for whoever reads it in any order.
//!
//! Main type: [`Spooled`].

use super::remote::Known;
use crate::{RepoError, ground::blocking, spool};
use std::{
    fs::File,
    io::{self, Cursor, Read, Seek, Write},
};

/// What is read in any order.
pub trait Seekable: Read + Seek + Send {}

impl<T: Read + Seek + Send> Seekable for T {}

/// A document and what its server said about it.
pub struct Spooled {
    /// At its beginning. The file has no name and goes with this.
    pub content: Box<dyn Seekable>,
    /// As hexadecimal digits.
    pub sha256: String,
    pub version: Known,
}

/// A file or memory. Not a `Box<dyn …>`: rustc does not prove of a future with its lifetime that it is
/// Send.
pub(super) enum Kept {
    File(File),
    Memory(Cursor<Vec<u8>>),
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Memory(memory) => memory.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Memory(memory) => memory.flush(),
        }
    }
}

/// Receives a document.
pub(super) type Spool = spool::Spool<Kept>;

/// Memory is used where there is no temporary folder.
pub(super) async fn begun() -> Result<Spool, RepoError> {
    let file = blocking(|| {
        Ok(match tempfile::tempfile() {
            Ok(file) => Kept::File(file),
            Err(e) => {
                tracing::debug!(error = %e, "a document is kept in memory");
                Kept::Memory(Cursor::default())
            }
        })
    });
    Ok(Spool::new(file.await?))
}

/// What was received.
pub(super) async fn finished(spool: Spool, version: Known) -> Result<Spooled, RepoError> {
    let (kept, sha256) = spool.finish().await?;
    blocking(move || {
        let mut content: Box<dyn Seekable> = match kept {
            Kept::File(file) => Box::new(file),
            Kept::Memory(memory) => Box::new(memory),
        };
        content.rewind().map_err(|e| spool::failed(&e))?;
        Ok(Spooled {
            content,
            sha256,
            version,
        })
    })
    .await
}

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

/// A file or memory; nothing is made before there is something to keep: mostly a server says that the
/// document is the known one. Not a `Box<dyn …>`: rustc does not prove of a future with its lifetime that it is
/// Send.
pub(super) enum Kept {
    Nothing,
    File(File),
    Memory(Cursor<Vec<u8>>),
}

impl Kept {
    /// Memory is used where there is no temporary folder.
    fn begun() -> Self {
        match tempfile::tempfile() {
            Ok(file) => Self::File(file),
            Err(e) => {
                tracing::debug!(error = %e, "a document is kept in memory");
                Self::Memory(Cursor::default())
            }
        }
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Self::Nothing = self {
            *self = Self::begun();
        }
        match self {
            Self::Nothing => Ok(0),
            Self::File(file) => file.write(bytes),
            Self::Memory(memory) => memory.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::File(file) => file.flush(),
            Self::Memory(memory) => memory.flush(),
        }
    }
}

/// Receives a document.
pub(super) type Spool = spool::Spool<Kept>;

pub(super) fn begun() -> Spool {
    Spool::new(Kept::Nothing)
}

/// What was received.
pub(super) async fn finished(spool: Spool, version: Known) -> Result<Spooled, RepoError> {
    let (kept, sha256) = spool.finish().await?;
    blocking(move || {
        let mut content: Box<dyn Seekable> = match kept {
            Kept::Nothing => Box::new(Cursor::new(Vec::new())),
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

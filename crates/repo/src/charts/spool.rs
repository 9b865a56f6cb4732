//! A large document on disk, so that nobody has it in memory as a whole.
//!
//! Main type: [`Spooled`].

use super::remote::Known;
use crate::{
    RepoError,
    ground::{blocking, hex},
    http::Sink,
};
use sha2::{Digest as _, Sha256};
use std::io::{Cursor, Read, Seek, Write};

/// Bytes that are written at once.
const WRITTEN: usize = 256 << 10;

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

trait Kept: Seekable + Write {}

impl<T: Seekable + Write> Kept for T {}

/// Receives a document.
pub(super) struct Spool {
    /// `None` once writing failed.
    file: Option<(Box<dyn Kept>, Sha256)>,
    waiting: Vec<u8>,
}

impl Spool {
    /// Memory is used where there is no temporary folder.
    pub async fn new() -> Result<Self, RepoError> {
        let file = blocking(|| {
            Ok(match tempfile::tempfile() {
                Ok(file) => Box::new(file) as Box<dyn Kept>,
                Err(e) => {
                    tracing::debug!(error = %e, "a document is kept in memory");
                    Box::new(Cursor::new(Vec::new()))
                }
            })
        });
        Ok(Self {
            file: Some((file.await?, Sha256::new())),
            waiting: Vec::with_capacity(WRITTEN),
        })
    }

    async fn write(&mut self) -> Result<(), RepoError> {
        let (mut file, mut hash) = self.file.take().ok_or_else(broken)?;
        let mut waiting = std::mem::take(&mut self.waiting);
        let written = blocking(move || {
            hash.update(&waiting);
            file.write_all(&waiting).map_err(failed)?;
            waiting.clear();
            Ok(((file, hash), waiting))
        });
        let (file, waiting) = written.await?;
        (self.file, self.waiting) = (Some(file), waiting);
        Ok(())
    }

    pub async fn finish(mut self, version: Known) -> Result<Spooled, RepoError> {
        self.write().await?;
        let (mut file, hash) = self.file.ok_or_else(broken)?;
        blocking(move || {
            file.rewind().map_err(failed)?;
            Ok(Spooled {
                content: file,
                sha256: hex(&hash.finalize()),
                version,
            })
        })
        .await
    }
}

impl Sink for Spool {
    async fn receive(&mut self, mut part: &[u8]) -> Result<(), RepoError> {
        while !part.is_empty() {
            let room = WRITTEN.saturating_sub(self.waiting.len()).max(1);
            let (now, later) = part.split_at(room.min(part.len()));
            self.waiting.extend_from_slice(now);
            part = later;
            if self.waiting.len() >= WRITTEN {
                self.write().await?;
            }
        }
        Ok(())
    }
}

fn failed(e: std::io::Error) -> RepoError {
    RepoError::Internal(format!("a document cannot be kept on disk: {e}"))
}

fn broken() -> RepoError {
    RepoError::Internal("a document was not kept".to_owned())
}

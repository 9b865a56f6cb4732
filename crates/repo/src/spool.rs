//! Receives a document of any size into a file, so that nobody has it in memory as a whole.
//!
//! Main type: [`Spool`].

use crate::{
    RepoError,
    ground::{blocking, hex},
    http::Sink,
};
use sha2::{Digest as _, Sha256};
use std::{fs::File, io::Write, path::PathBuf};

/// Bytes that are written at once.
const WRITTEN: usize = 256 << 10;

/// Receives a document.
pub(crate) struct Spool<F> {
    /// `None` once writing failed.
    file: Option<(F, Sha256)>,
    waiting: Vec<u8>,
}

impl<F: Write + Send + 'static> Spool<F> {
    pub fn new(file: F) -> Self {
        Self {
            file: Some((file, Sha256::new())),
            waiting: Vec::with_capacity(WRITTEN),
        }
    }

    async fn write(&mut self) -> Result<(), RepoError> {
        let (mut file, mut hash) = self.file.take().ok_or_else(broken)?;
        let mut waiting = std::mem::take(&mut self.waiting);
        let written = blocking(move || {
            hash.update(&waiting);
            file.write_all(&waiting).map_err(|e| failed(&e))?;
            waiting.clear();
            Ok(((file, hash), waiting))
        });
        let (file, waiting) = written.await?;
        (self.file, self.waiting) = (Some(file), waiting);
        Ok(())
    }

    /// The file, at its end, and the SHA-256 of what was received, as hexadecimal digits.
    pub async fn finish(mut self) -> Result<(F, String), RepoError> {
        self.write().await?;
        let (file, hash) = self.file.ok_or_else(broken)?;
        Ok((file, hex(&hash.finalize())))
    }
}

impl<F: Write + Send + 'static> Sink for Spool<F> {
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

/// A file in a folder, which is created if it is missing. It has no name, and goes when it is
/// closed.
pub(crate) async fn nameless(folder: PathBuf) -> Result<File, RepoError> {
    blocking(move || {
        std::fs::create_dir_all(&folder).map_err(|e| failed(&e))?;
        tempfile::tempfile_in(&folder).map_err(|e| failed(&e))
    })
    .await
}

pub(crate) fn failed(e: &std::io::Error) -> RepoError {
    RepoError::Internal(format!("a document cannot be kept on disk: {e}"))
}

fn broken() -> RepoError {
    RepoError::Internal("a document was not kept".to_owned())
}

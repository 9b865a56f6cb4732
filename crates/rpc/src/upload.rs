//! Archives that a client sends in the chunks of a stream.
//!
//! Main function: [`receive`]. How long a client may take is a limit of its connection.

use futures::{Stream, StreamExt as _};
use sha2::{Digest, Sha256};
use std::{
    fmt::Write as _,
    fs::File,
    io::{self, BufWriter, Write as _},
};

/// Why an archive is not taken, in Argo CD's words.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// What the stream has in place of a chunk.
    #[error("{0}")]
    Stream(String),
    #[error("file exceeded max size of {0} bytes")]
    TooLarge(u64),
    #[error("file checksum validation error: calc {found} sent {sent}")]
    Checksum { found: String, sent: String },
    #[error("error creating file: {0}")]
    Create(io::Error),
    #[error("error writing file: {0}")]
    Write(io::Error),
}

/// The archive in a file without a name. `checksum`: its SHA-256 in hexadecimal; `limit`: its bytes.
pub async fn receive(
    mut chunks: impl Stream<Item = Result<Vec<u8>, String>> + Unpin,
    checksum: &str,
    limit: u64,
) -> Result<File, UploadError> {
    let file = tempfile::tempfile().map_err(UploadError::Create)?;
    // Small pieces that the system keeps in memory: writing them does not wait.
    let (mut file, mut hash, mut size) = (BufWriter::new(file), Sha256::new(), 0u64);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(UploadError::Stream)?;
        size += chunk.len() as u64;
        if size > limit {
            return Err(UploadError::TooLarge(limit));
        }
        hash.update(&chunk);
        file.write_all(&chunk).map_err(UploadError::Write)?;
    }
    let mut found = String::new();
    for byte in hash.finalize() {
        let _ = write!(found, "{byte:02x}");
    }
    if found != checksum {
        let sent = checksum.to_owned();
        return Err(UploadError::Checksum { found, sent });
    }
    file.into_inner()
        .map_err(|e| UploadError::Write(e.into_error()))
}

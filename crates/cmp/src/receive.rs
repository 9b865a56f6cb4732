//! Receives the files of a source.
//!
//! Main function: [`receive`].

use crate::unpack::{Limits, unpack};
use flate2::bufread::MultiGzDecoder;
use futures::{StreamExt as _, stream::BoxStream};
use sha2::{Digest, Sha256};
use std::{
    fmt::Write as _,
    fs::File,
    io::{BufReader, BufWriter, Seek as _, Write as _},
    path::Path,
};
use tiphys_api::rpc::plugin::{AppStreamRequest, ManifestRequestMetadata};
use tiphys_rpc::ApiError;

/// What one call may send. Argo CD has no limits here.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveLimits {
    /// Bytes of the archive.
    pub archive: u64,
    /// What it unpacks to.
    pub bytes: u64,
    pub entries: u64,
}

impl Default for ReceiveLimits {
    fn default() -> Self {
        Self {
            archive: 2 << 30,
            bytes: 8 << 30,
            entries: 2_000_000,
        }
    }
}

/// Unpacks what is sent into an empty folder, and returns what was said of it.
pub async fn receive(
    mut messages: BoxStream<'static, Result<AppStreamRequest, ApiError>>,
    root: &Path,
    keep_modes: bool,
    limits: ReceiveLimits,
) -> Result<ManifestRequestMetadata, String> {
    let first = messages.next().await;
    let first = first.unwrap_or_else(|| Err(ApiError::plain("EOF")));
    let first = first.map_err(|e| format!("error receiving stream header: {}", e.message))?;
    let metadata = first
        .metadata
        .ok_or("error getting stream metadata: metadata is nil")?;
    let failed = |e: String| format!("error receiving tgz file: {e}");
    let archive = archive(messages, &metadata.checksum, limits.archive).await;
    let archive = archive.map_err(failed)?;
    let root = root.to_owned();
    let limits = Limits {
        bytes: limits.bytes,
        entries: limits.entries,
    };
    let unpacked = tokio::task::spawn_blocking(move || {
        let files = MultiGzDecoder::new(BufReader::new(archive));
        if files.header().is_none() {
            return Err("error reading file: gzip: invalid header".to_owned());
        }
        unpack(files, &root, keep_modes, limits).map_err(|e| e.to_string())
    });
    let unpacked = unpacked.await.map_err(|e| e.to_string())?;
    unpacked.map_err(|e| format!("error decompressing tgz file: {e}"))?;
    Ok(metadata)
}

/// The archive in a file without a name.
async fn archive(
    mut messages: BoxStream<'static, Result<AppStreamRequest, ApiError>>,
    checksum: &str,
    limit: u64,
) -> Result<File, String> {
    let written = |e: std::io::Error| format!("error writing file: {e}");
    let file = tempfile::tempfile().map_err(|e| format!("error creating file: {e}"))?;
    // Small pieces that the system keeps in memory: writing them does not wait.
    let (mut file, mut hash, mut size) = (BufWriter::new(file), Sha256::new(), 0u64);
    while let Some(message) = messages.next().await {
        let message = message.map_err(|e| format!("stream Recv error: {}", e.message))?;
        let chunk = message.file.ok_or("stream request file is nil")?.chunk;
        size += chunk.len() as u64;
        if size > limit {
            return Err(format!("it has more than {limit} bytes"));
        }
        hash.update(&chunk);
        file.write_all(&chunk).map_err(written)?;
    }
    let mut found = String::new();
    for byte in hash.finalize() {
        let _ = write!(found, "{byte:02x}");
    }
    if found != checksum {
        return Err("file checksum validation error".to_owned());
    }
    let mut file = file.into_inner().map_err(|e| written(e.into_error()))?;
    file.rewind().map_err(|e| format!("seek error: {e}"))?;
    Ok(file)
}

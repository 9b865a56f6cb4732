//! What a worker and its owner say to each other: frames of a JSON header and a body of bytes.
//!
//! Main types: [`Order`], [`Report`].

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{Error, ErrorKind, Read, Result, Write};
use tiphys_render::{JsonnetLimits, JsonnetOptions};

/// Longest part of a frame. A header has variables of a source; a body a file, or a result.
const MAX_HEADER: usize = 64 << 20;
const MAX_BODY: usize = 512 << 20;

/// From the owner.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Say [`Report::Ready`].
    Check,
    /// Evaluate the file in the body.
    Jsonnet {
        folder: String,
        path: String,
        options: JsonnetOptions,
        limits: JsonnetLimits,
        /// Processor time, in seconds.
        seconds: u64,
    },
    /// The answer to [`Report::Kind`].
    Kind(Option<PathKind>),
    /// The answer to [`Report::Read`]: the body, if there is a file.
    Content { exists: bool },
    /// The source cannot be read there; the owner knows why.
    Unreadable,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum PathKind {
    File { size: u64 },
    Folder,
    Other,
}

/// From the worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// It waits for orders. `why_open`: why the kernel does not restrict it.
    Ready {
        why_open: Option<String>,
    },
    Kind {
        path: String,
    },
    Read {
        path: String,
    },
    /// The body is the value, as JSON.
    Value,
    /// What is wrong with the program.
    Program(String),
    /// What is wrong with the source.
    Source(String),
    /// What the owner answered last was [`Order::Unreadable`].
    Unreadable,
}

pub(super) fn send(to: &mut impl Write, header: &impl Serialize, body: &[u8]) -> Result<()> {
    let header = serde_json::to_vec(header)?;
    let mut frame = Vec::with_capacity(8 + header.len() + body.len());
    for part in [&header[..], body] {
        let length = u32::try_from(part.len()).map_err(|_| too_long())?;
        frame.extend(length.to_le_bytes());
    }
    frame.extend(&header);
    frame.extend(body);
    to.write_all(&frame)
}

/// The next frame, or `None` if the other side has ended.
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> Result<Option<(T, Vec<u8>)>> {
    let mut lengths = [0; 8];
    match from.read_exact(&mut lengths) {
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let (header, body) = lengths.split_at(4);
    let header = part(from, header, MAX_HEADER)?;
    let body = part(from, body, MAX_BODY)?;
    Ok(Some((serde_json::from_slice(&header)?, body)))
}

/// Grows with what arrives: a length alone takes no memory.
fn part(from: &mut impl Read, length: &[u8], limit: usize) -> Result<Vec<u8>> {
    let length = length.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b));
    if length > limit {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

fn too_long() -> Error {
    Error::new(ErrorKind::InvalidData, "the message is too long")
}

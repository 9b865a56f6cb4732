//! The chain of hashes: each line has the hash of the line before it, and its own. Main functions:
//! [`sealed`] and [`verify`].
//!
//! A hash covers the text of its line up to the hash itself, so nothing depends on how JSON is
//! written.

use super::record::{Record, Verdict};
use sha2::{Digest, Sha256};
use std::{
    fmt::Write as _,
    io::{BufRead, Error},
};

/// What the first record has in place of a hash before it.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// Longest line, in bytes.
pub(super) const MAX_LINE: usize = 256 * 1024;
const HASH: &str = ",\"hash\":\"";
const END: &str = "\"}";

pub(super) fn sha256(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A record as a line without its end, and its hash.
pub(super) fn sealed(record: &Record) -> Result<(String, String), serde_json::Error> {
    let mut line = serde_json::to_string(record)?;
    line.pop();
    let hash = sha256(line.as_bytes());
    line.push_str(HASH);
    line.push_str(&hash);
    line.push_str(END);
    Ok((line, hash))
}

/// Why a line is not one of the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("it is no record")]
    NoRecord,
    #[error("it was changed: its hash is another one")]
    Changed,
    #[error("it has number {found} where {wanted} was expected: records are missing or moved")]
    Order { found: u64, wanted: u64 },
    #[error("it does not follow the record before it: records are missing or moved")]
    Link,
    #[error("it is not finished, and the record after it does not say so")]
    Torn,
    #[error("it is longer than {MAX_LINE} bytes")]
    Long,
}

/// The record of a line, with its hash.
///
/// # Errors
/// It is none, or was changed.
pub fn opened(line: &str) -> Result<(Record, String), Fault> {
    let (content, rest) = line.rsplit_once(HASH).ok_or(Fault::NoRecord)?;
    let hash = rest.strip_suffix(END).ok_or(Fault::NoRecord)?;
    if sha256(content.as_bytes()) != hash {
        return Err(Fault::Changed);
    }
    let record = serde_json::from_str(&format!("{content}}}")).map_err(|_| Fault::NoRecord)?;
    Ok((record, hash.to_owned()))
}

/// What is at the end of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub seq: u64,
    pub hash: String,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            seq: 0,
            hash: GENESIS.to_owned(),
        }
    }
}

/// Why a log is not as it was written.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("line {line}: {fault}")]
    Line { line: usize, fault: Fault },
    #[error("the log cannot be read: {0}")]
    Read(#[from] Error),
}

/// Reads a log record by record and checks the chain. The head is what witnesses elsewhere must
/// agree with: the log itself cannot tell that its last records are missing.
///
/// # Errors
/// The first line that is wrong.
pub fn verify(
    mut log: impl BufRead,
    mut each: impl FnMut(Record, &str),
) -> Result<Head, VerifyError> {
    let (mut head, mut torn) = (Head::default(), None::<(usize, String)>);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if log.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let at = |fault| VerifyError::Line {
            line: number,
            fault,
        };
        if line.len() > MAX_LINE {
            return Err(at(Fault::Long));
        }
        let content = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = String::from_utf8_lossy(content);
        let (record, hash) = match opened(&text) {
            Ok(read) => read,
            // A process that was killed leaves a part of a line, which the next one vouches for.
            Err(Fault::NoRecord) if torn.is_none() => {
                torn = Some((number, sha256(content)));
                continue;
            }
            Err(fault) => return Err(at(fault)),
        };
        if let Some((line, found)) = torn.take()
            && (record.verdict != Verdict::Opened || record.torn != found)
        {
            let fault = Fault::Torn;
            return Err(VerifyError::Line { line, fault });
        }
        let wanted = head.seq + 1;
        if record.seq != wanted {
            let found = record.seq;
            return Err(at(Fault::Order { found, wanted }));
        }
        if record.prev != head.hash {
            return Err(at(Fault::Link));
        }
        head = Head {
            seq: record.seq,
            hash: hash.clone(),
        };
        each(record, &hash);
    }
    match torn {
        Some((line, _)) => Err(VerifyError::Line {
            line,
            fault: Fault::Torn,
        }),
        None => Ok(head),
    }
}

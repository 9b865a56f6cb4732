//! The file: records are appended to it, and nothing else. Main type: [`Log`].

use super::{
    chain::{self, Head, MAX_LINE},
    record::{Record, Verdict, Who},
};
use jiff::Timestamp;
use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Records that wait until the file can be written again.
const MAX_WAITING: usize = 1000;
/// The call of records that the log writes about itself.
pub(super) const OWN: &str = "audit log";

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("the audit log {} cannot be opened: {why}", path.display())]
    Open { path: PathBuf, why: io::Error },
    #[error("the audit log {} is in use by another process", .0.display())]
    InUse(PathBuf),
    #[error("the end of the audit log {} is no record: {fault}", path.display())]
    End { path: PathBuf, fault: chain::Fault },
    #[error("the audit log {} cannot be written: {why}", path.display())]
    Write { path: PathBuf, why: io::Error },
}

/// An open log, which no other process can open.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    head: Head,
    /// Oldest first; what was done is not forgotten because the disk was full.
    waiting: VecDeque<Record>,
}

impl Log {
    /// Opens or creates a log, and continues its chain.
    ///
    /// # Errors
    /// It cannot be read or written, another process has it, or its end was changed.
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        let failed = |why| AuditError::Open {
            path: path.to_owned(),
            why,
        };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(AuditError::InUse(path.to_owned()));
            }
            Err(std::fs::TryLockError::Error(why)) => return Err(failed(why)),
        }
        let (head, torn) = end(&mut file).map_err(failed)?.map_err(|fault| {
            let path = path.to_owned();
            AuditError::End { path, fault }
        })?;
        let mut record = Record::new(Who::default(), OWN, Verdict::Opened);
        if !torn.is_empty() {
            file.write_all(b"\n").map_err(failed)?;
            record.torn = chain::sha256(&torn);
        }
        let log = Self {
            path: path.to_owned(),
            state: Mutex::new(State {
                file,
                head,
                waiting: VecDeque::new(),
            }),
        };
        log.write(Some(record))?;
        Ok(log)
    }

    /// A log in this file, as if it had become another one.
    #[cfg(test)]
    pub fn moved_to(&self, file: File) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.file = file;
    }

    /// Appends what waits, and a record; it is on the disk then. Returns where the log ends.
    ///
    /// # Errors
    /// The file cannot be written: the record waits.
    pub fn write(&self, record: Option<Record>) -> Result<Head, AuditError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        if let Some(mut record) = record {
            record.time = Timestamp::now().to_string();
            if state.waiting.len() == MAX_WAITING {
                state.waiting.pop_front();
                tracing::error!("a record of the audit log is lost: too many wait");
            }
            state.waiting.push_back(record);
        }
        while let Some(record) = state.waiting.front().cloned() {
            state.head = state.append(record).map_err(|why| AuditError::Write {
                path: self.path.clone(),
                why,
            })?;
            state.waiting.pop_front();
        }
        Ok(state.head.clone())
    }
}

impl State {
    fn append(&mut self, mut record: Record) -> io::Result<Head> {
        record.seq = self.head.seq + 1;
        record.prev.clone_from(&self.head.hash);
        let (mut line, mut hash) = chain::sealed(&record)?;
        if line.len() >= MAX_LINE {
            // Which objects were changed remains.
            record.changes.iter_mut().for_each(|c| c.diff.clear());
            record.asked.truncate(1);
            record.message.truncate(0);
            (line, hash) = chain::sealed(&record)?;
        }
        line.push('\n');
        let before = self.file.metadata()?.len();
        let written = self.file.write_all(line.as_bytes());
        let written = written.and_then(|()| self.file.sync_data());
        if let Err(why) = written {
            // The part of a line that was written is no record.
            let _ = self.file.set_len(before);
            return Err(why);
        }
        Ok(Head {
            seq: record.seq,
            hash,
        })
    }
}

type End = Result<(Head, Vec<u8>), chain::Fault>;

/// The last record, and the part of a line behind it.
fn end(file: &mut File) -> io::Result<End> {
    let length = file.metadata()?.len();
    let start = length.saturating_sub(2 * MAX_LINE as u64);
    file.seek(SeekFrom::Start(start))?;
    let mut reader = BufReader::new(file.take(2 * MAX_LINE as u64));
    if start > 0 {
        // The rest of a line whose beginning is not read.
        reader.read_until(b'\n', &mut Vec::new())?;
    }
    let (mut last, mut torn) = (None, Vec::new());
    loop {
        let mut line = Vec::new();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        match line.strip_suffix(b"\n") {
            Some(whole) => last = Some(whole.to_vec()),
            None => torn = line,
        }
    }
    let Some(last) = last else {
        return Ok(Ok((Head::default(), torn)));
    };
    let read = chain::opened(&String::from_utf8_lossy(&last));
    Ok(read.map(|(record, hash)| {
        let seq = record.seq;
        (Head { seq, hash }, torn)
    }))
}

//! The entries of a tar archive, one after the other, within an allowance.
//!
//! Main type: [`Tar`]. What the names mean, and which kinds of entries are accepted, is decided by
//! whoever reads the archive. Sparse files are not understood.

use std::io::{ErrorKind, Read, Take, Write};

const BLOCK: usize = 512;
/// Longest extended header. It holds little more than a name.
const MAX_HEADER: u64 = 1 << 20;

/// Why an archive cannot be read, in the words of Go's packages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TarFault {
    #[error("unexpected EOF")]
    Truncated,
    #[error("archive/tar: invalid tar header")]
    Header,
    #[error("gzip: {0}")]
    Packed(String),
}

/// What an archive may still use. Both functions are called before anything is read.
pub trait Allowance {
    type Error: From<TarFault>;

    fn entry(&mut self) -> Result<(), Self::Error>;
    fn bytes(&mut self, bytes: u64) -> Result<(), Self::Error>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    /// With its target, as it is written.
    Symlink(String),
    HardLink,
    /// A device or a pipe.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub kind: Kind,
    /// Who may read, write and run it.
    pub mode: u32,
    /// Of the data that follow; they are read or skipped before the next entry.
    pub size: u64,
}

pub struct Tar<R, A> {
    input: R,
    allowance: A,
    /// What extended headers set for the next entry.
    name: Option<String>,
    target: Option<String>,
    size: Option<u64>,
}

impl<R: Read, A: Allowance> Tar<R, A> {
    pub fn new(input: R, allowance: A) -> Self {
        Self {
            input,
            allowance,
            name: None,
            target: None,
            size: None,
        }
    }

    pub fn allowance(&self) -> &A {
        &self.allowance
    }

    #[expect(clippy::should_implement_trait, reason = "it can fail")]
    pub fn next(&mut self) -> Result<Option<Entry>, A::Error> {
        while let Some(block) = self.block()? {
            if block.iter().all(|b| *b == 0) {
                return Ok(None);
            }
            self.allowance.entry()?;
            let header = Header(&block);
            let size = header.size()?;
            match block[156] {
                b'x' => {
                    let records = self.extension(size)?;
                    self.records(&records)?;
                }
                b'L' => self.name = Some(text(&self.extension(size)?)),
                b'K' => self.target = Some(text(&self.extension(size)?)),
                b'g' => self.skip(size)?,
                flag => {
                    let name = self.name.take().unwrap_or_else(|| header.name());
                    let size = self.size.take().unwrap_or(size);
                    // No data follow these, whatever their header says.
                    let size = if matches!(flag, b'1'..=b'6') { 0 } else { size };
                    let target = self.target.take();
                    let kind = match flag {
                        b'5' => Kind::Folder,
                        0 | b'0' | b'7' if name.ends_with('/') => Kind::Folder,
                        0 | b'0' | b'7' => Kind::File,
                        b'1' => Kind::HardLink,
                        b'2' => Kind::Symlink(target.unwrap_or_else(|| text(&block[157..257]))),
                        _ => Kind::Other,
                    };
                    let mode = header.mode();
                    return Ok(Some(Entry {
                        name,
                        kind,
                        mode,
                        size,
                    }));
                }
            }
        }
        Ok(None)
    }

    fn block(&mut self) -> Result<Option<[u8; BLOCK]>, TarFault> {
        let mut block = [0; BLOCK];
        match self.input.read(&mut block[..1]).map_err(fault)? {
            0 => Ok(None),
            _ => self
                .input
                .read_exact(&mut block[1..])
                .map_err(fault)
                .map(|()| Some(block)),
        }
    }

    /// The data of the entry that was returned last.
    pub fn data(&mut self, size: u64) -> Result<Vec<u8>, A::Error> {
        self.allowance.bytes(size)?;
        let mut data = Vec::new();
        let read = (&mut self.input)
            .take(size)
            .read_to_end(&mut data)
            .map_err(fault)?;
        if read as u64 != size {
            return Err(TarFault::Truncated.into());
        }
        let rest = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
        std::io::copy(&mut (&mut self.input).take(rest), &mut std::io::sink()).map_err(fault)?;
        Ok(data)
    }

    /// The same, for data that need not fit into memory.
    ///
    /// # Errors
    /// The archive cannot be read; inside, the other side cannot be written.
    pub fn copy(
        &mut self,
        size: u64,
        out: &mut impl Write,
    ) -> Result<std::io::Result<()>, A::Error> {
        self.allowance.bytes(size)?;
        let mut left = size;
        let mut buffer = [0; 16 * BLOCK];
        while left > 0 {
            let most = buffer
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = self.input.read(&mut buffer[..most]).map_err(fault)?;
            if read == 0 {
                return Err(TarFault::Truncated.into());
            }
            if let Err(e) = out.write_all(&buffer[..read]) {
                return Ok(Err(e));
            }
            left -= read as u64;
        }
        let rest = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
        std::io::copy(&mut (&mut self.input).take(rest), &mut std::io::sink()).map_err(fault)?;
        Ok(Ok(()))
    }

    /// What `work` makes of the data, which it reads as a stream; what it leaves is skipped.
    ///
    /// # Errors
    /// The archive cannot be read, whatever `work` makes of that.
    pub fn stream<T>(
        &mut self,
        size: u64,
        work: impl FnOnce(&mut dyn Read) -> T,
    ) -> Result<T, A::Error> {
        self.allowance.bytes(size)?;
        let mut data = Data {
            input: (&mut self.input).take(size),
            fault: None,
        };
        let done = work(&mut data);
        let (left, found) = (data.input.limit(), data.fault);
        if let Some(found) = found {
            return Err(found.into());
        }
        let rest = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
        let behind = left.saturating_add(rest);
        std::io::copy(&mut (&mut self.input).take(behind), &mut std::io::sink()).map_err(fault)?;
        Ok(done)
    }

    pub fn skip(&mut self, size: u64) -> Result<(), A::Error> {
        self.allowance.bytes(size)?;
        let padded = size
            .checked_next_multiple_of(BLOCK as u64)
            .ok_or(TarFault::Header)?;
        std::io::copy(&mut (&mut self.input).take(padded), &mut std::io::sink()).map_err(fault)?;
        Ok(())
    }

    fn extension(&mut self, size: u64) -> Result<Vec<u8>, A::Error> {
        if size > MAX_HEADER {
            return Err(TarFault::Header.into());
        }
        self.data(size)
    }

    /// PAX records: `LENGTH KEY=VALUE\n`.
    fn records(&mut self, records: &[u8]) -> Result<(), TarFault> {
        let invalid = || TarFault::Header;
        let mut rest = records;
        while !rest.is_empty() {
            let space = rest.iter().position(|b| *b == b' ').ok_or_else(invalid)?;
            let length: usize = std::str::from_utf8(&rest[..space])
                .ok()
                .and_then(|n| n.parse().ok())
                .ok_or_else(invalid)?;
            let record = rest
                .get(space + 1..length)
                .and_then(|r| r.strip_suffix(b"\n"))
                .ok_or_else(invalid)?;
            let equals = record.iter().position(|b| *b == b'=').ok_or_else(invalid)?;
            let value = String::from_utf8_lossy(&record[equals + 1..]).into_owned();
            match &record[..equals] {
                b"path" if !value.is_empty() => self.name = Some(value),
                b"linkpath" if !value.is_empty() => self.target = Some(value),
                b"size" if !value.is_empty() => {
                    self.size = Some(value.parse().map_err(|_| invalid())?)
                }
                _ => {}
            }
            rest = &rest[length..];
        }
        Ok(())
    }
}

/// The data of an entry. It remembers why they could not be read: whoever reads them may make
/// something else of the error.
struct Data<R> {
    input: Take<R>,
    fault: Option<TarFault>,
}

impl<R: Read> Read for Data<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.input.read(buffer) {
            Ok(0) if !buffer.is_empty() && self.input.limit() > 0 => {
                self.fault = Some(TarFault::Truncated);
                Err(ErrorKind::UnexpectedEof.into())
            }
            Ok(read) => Ok(read),
            Err(e) if e.kind() == ErrorKind::Interrupted => Err(e),
            Err(e) => {
                let told = std::io::Error::from(e.kind());
                self.fault = Some(fault(e));
                Err(told)
            }
        }
    }
}

struct Header<'a>(&'a [u8; BLOCK]);

impl Header<'_> {
    fn name(&self) -> String {
        let name = text(&self.0[..100]);
        let prefix = if &self.0[257..263] == b"ustar\0" {
            text(&self.0[345..500])
        } else {
            String::new()
        };
        if prefix.is_empty() {
            name
        } else {
            format!("{prefix}/{name}")
        }
    }

    fn mode(&self) -> u32 {
        let mode = octal(&self.0[100..108]).unwrap_or_default();
        u32::try_from(mode & 0o777).unwrap_or_default()
    }

    /// The size, after the checksum was verified.
    fn size(&self) -> Result<u64, TarFault> {
        let sum: u64 = self
            .0
            .iter()
            .enumerate()
            .map(|(i, b)| {
                if (148..156).contains(&i) {
                    32
                } else {
                    u64::from(*b)
                }
            })
            .sum();
        if octal(&self.0[148..156]) != Some(sum) {
            return Err(TarFault::Header);
        }
        let field = &self.0[124..136];
        if field[0] & 0x80 == 0 {
            return octal(field).ok_or(TarFault::Header);
        }
        let high = field[0] & 0x7f == 0 && field[1..4].iter().all(|b| *b == 0);
        let number = field[4..].iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        if high && number <= i64::MAX as u64 {
            Ok(number)
        } else {
            Err(TarFault::Header)
        }
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits = text(field);
    let digits = digits.trim_matches(' ');
    if digits.is_empty() {
        Some(0)
    } else {
        u64::from_str_radix(digits, 8).ok()
    }
}

/// The text up to the first NUL.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

fn fault(e: std::io::Error) -> TarFault {
    match e.kind() {
        ErrorKind::UnexpectedEof => TarFault::Truncated,
        _ => TarFault::Packed(e.to_string()),
    }
}

//! The files of a chart archive: gzip and tar, with Helm's rules for names.
//!
//! Main function: [`files`]. Links are refused; Helm would read them as empty files.

use super::{File, Meter, without_mark};
use crate::helm::{HelmError, Limits};
use flate2::bufread::MultiGzDecoder;
use std::io::{ErrorKind, Read};
use tiphys_gocompat::text::quote;

const GZIP_HEADER: usize = 10;
const BLOCK: usize = 512;
/// Longest extended header. It holds little more than a name.
const MAX_HEADER: u64 = 1 << 20;

pub(super) fn files(
    bytes: &[u8],
    limits: &Limits,
    meter: &mut Meter,
) -> Result<Vec<File>, HelmError> {
    match bytes {
        [] => return Err(HelmError::chart("EOF")),
        [0x1f, 0x8b, ..] if bytes.len() >= GZIP_HEADER => {}
        _ if bytes.len() < GZIP_HEADER => return Err(HelmError::chart("unexpected EOF")),
        _ => return Err(HelmError::chart("gzip: invalid header")),
    }
    let mut tar = Tar {
        input: MultiGzDecoder::new(bytes),
        name: None,
        size: None,
    };
    let mut files = Vec::new();
    while let Some(entry) = tar.next(limits, meter)? {
        if entry.kind == Kind::Folder {
            tar.skip(entry.size, meter, limits)?;
            continue;
        }
        let name = file_name(&entry.name)?;
        if entry.kind == Kind::Irregular {
            return Err(HelmError::chart(format!(
                "chart contains {}, which is a link or no regular file",
                quote(&entry.name)
            )));
        }
        if entry.size > meter.bytes {
            return Err(HelmError::chart(format!(
                "decompressed chart is larger than the maximum size {}",
                limits.bytes
            )));
        }
        if entry.size > limits.file_bytes {
            let (name, limit) = (quote(&entry.name), limits.file_bytes);
            return Err(HelmError::chart(format!(
                "decompressed chart file {name} is larger than the maximum file size {limit}"
            )));
        }
        let data = tar.data(entry.size, meter, limits)?;
        files.push(File {
            name,
            data: without_mark(&data).into(),
        });
    }
    if files.is_empty() {
        return Err(HelmError::chart("no files in chart archive"));
    }
    Ok(files)
}

/// The path inside the chart: without the first folder, which is the chart itself.
fn file_name(full: &str) -> Result<String, HelmError> {
    let delimiter = if full.contains('\\') { '\\' } else { '/' };
    let (top, rest) = full.split_once(delimiter).unwrap_or((full, ""));
    let path = rest.replace(delimiter, "/");
    if path.starts_with('/') {
        return Err(HelmError::chart("chart illegally contains absolute paths"));
    }
    let name = clean(&path);
    if name == "." {
        return Err(HelmError::chart(format!(
            "chart illegally contains content outside the base directory: {}",
            quote(full)
        )));
    }
    if name.starts_with("..") {
        return Err(HelmError::chart(
            "chart illegally references parent directory",
        ));
    }
    if matches!(name.as_bytes(), [drive, b':', b'/', ..] if drive.is_ascii_alphabetic()) {
        return Err(HelmError::chart("chart contains illegally named files"));
    }
    if top == "Chart.yaml" {
        return Err(HelmError::chart("chart yaml not in base directory"));
    }
    Ok(name)
}

/// Go's `path.Clean` for a relative path.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if parts.is_empty() {
        ".".to_owned()
    } else {
        parts.join("/")
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
    Irregular,
}

struct Entry {
    name: String,
    kind: Kind,
    size: u64,
}

struct Tar<R> {
    input: R,
    /// The name that an extended header sets for the next entry.
    name: Option<String>,
    size: Option<u64>,
}

impl<R: Read> Tar<R> {
    fn next(&mut self, limits: &Limits, meter: &mut Meter) -> Result<Option<Entry>, HelmError> {
        while let Some(block) = self.block()? {
            if block.iter().all(|b| *b == 0) {
                return Ok(None);
            }
            meter.file(limits)?;
            let header = Header(&block);
            let size = header.size()?;
            match block[156] {
                b'x' => {
                    let records = self.extension(size, meter, limits)?;
                    self.records(&records)?;
                }
                b'L' => {
                    let name = self.extension(size, meter, limits)?;
                    self.name = Some(text(&name));
                }
                b'g' | b'K' => self.skip(size, meter, limits)?,
                flag => {
                    let name = self.name.take().unwrap_or_else(|| header.name());
                    let size = self.size.take().unwrap_or(size);
                    let kind = match flag {
                        b'5' => Kind::Folder,
                        0 | b'0' | b'7' if name.ends_with('/') => Kind::Folder,
                        0 | b'0' | b'7' => Kind::File,
                        _ => Kind::Irregular,
                    };
                    return Ok(Some(Entry { name, kind, size }));
                }
            }
        }
        Ok(None)
    }

    fn block(&mut self) -> Result<Option<[u8; BLOCK]>, HelmError> {
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

    fn data(
        &mut self,
        size: u64,
        meter: &mut Meter,
        limits: &Limits,
    ) -> Result<Vec<u8>, HelmError> {
        meter.data(size, limits)?;
        let mut data = Vec::new();
        let read = (&mut self.input)
            .take(size)
            .read_to_end(&mut data)
            .map_err(fault)?;
        if read as u64 != size {
            return Err(HelmError::chart("unexpected EOF"));
        }
        let rest = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
        std::io::copy(&mut (&mut self.input).take(rest), &mut std::io::sink()).map_err(fault)?;
        Ok(data)
    }

    fn skip(&mut self, size: u64, meter: &mut Meter, limits: &Limits) -> Result<(), HelmError> {
        meter.data(size, limits)?;
        let padded = size.next_multiple_of(BLOCK as u64);
        std::io::copy(&mut (&mut self.input).take(padded), &mut std::io::sink())
            .map_err(fault)
            .map(|_| ())
    }

    fn extension(
        &mut self,
        size: u64,
        meter: &mut Meter,
        limits: &Limits,
    ) -> Result<Vec<u8>, HelmError> {
        if size > MAX_HEADER {
            return Err(invalid());
        }
        self.data(size, meter, limits)
    }

    /// PAX records: `LENGTH KEY=VALUE\n`.
    fn records(&mut self, records: &[u8]) -> Result<(), HelmError> {
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

    /// The size, after the checksum was verified.
    fn size(&self) -> Result<u64, HelmError> {
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
            return Err(invalid());
        }
        let field = &self.0[124..136];
        if field[0] & 0x80 == 0 {
            return octal(field).ok_or_else(invalid);
        }
        let high = field[0] & 0x7f == 0 && field[1..4].iter().all(|b| *b == 0);
        let number = field[4..].iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        if high && number <= i64::MAX as u64 {
            Ok(number)
        } else {
            Err(invalid())
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

fn invalid() -> HelmError {
    HelmError::chart("archive/tar: invalid tar header")
}

fn fault(e: std::io::Error) -> HelmError {
    match e.kind() {
        ErrorKind::UnexpectedEof => HelmError::chart("unexpected EOF"),
        _ => HelmError::chart(format!("gzip: {e}")),
    }
}

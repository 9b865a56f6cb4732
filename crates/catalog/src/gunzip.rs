//! Reads gzip from memory with an inflater that was used before: making one takes longer than
//! unpacking most charts. Pure.
//!
//! Main types: [`Inflater`] and [`Gunzip`]. What is read, and what is refused, is as with
//! [`flate2::bufread::MultiGzDecoder`].

use flate2::{Crc, Decompress, FlushDecompress, Status};
use std::{
    io::{self, ErrorKind, Read},
    ops::Range,
};

/// What is unpacked at once.
const BUFFER: usize = 32 << 10;

const HEADER: usize = 10;
const TRAILER: usize = 8;
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const HAS_CHECKSUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

/// The memory to unpack with.
pub struct Inflater {
    inflate: Decompress,
    buffer: Vec<u8>,
}

impl Default for Inflater {
    fn default() -> Self {
        Self {
            inflate: Decompress::new(false),
            buffer: vec![0; BUFFER],
        }
    }
}

/// The content of all members.
pub struct Gunzip<'a> {
    packed: &'a [u8],
    inflater: &'a mut Inflater,
    /// What of the buffer was not read yet.
    ready: Range<usize>,
    crc: Crc,
    next: Part,
}

enum Part {
    Header,
    Body,
    Trailer,
    Broken,
    End,
}

impl<'a> Gunzip<'a> {
    pub fn new(packed: &'a [u8], inflater: &'a mut Inflater) -> Self {
        Self {
            packed,
            inflater,
            ready: 0..0,
            crc: Crc::new(),
            next: Part::Header,
        }
    }

    /// Unpacks the next part; afterwards nothing is ready only at the end.
    fn fill(&mut self) -> io::Result<()> {
        while self.ready.is_empty() {
            match self.next {
                Part::Header => {
                    self.packed = after_header(self.packed)?;
                    self.inflater.inflate.reset(false);
                    self.crc.reset();
                    self.next = Part::Body;
                }
                Part::Body => self.inflate()?,
                Part::Trailer => {
                    let (trailer, rest) = split(self.packed, TRAILER)?;
                    let sums = [self.crc.sum(), self.crc.amount()].map(u32::to_le_bytes);
                    if *trailer != *sums.as_flattened() {
                        return Err(checksum());
                    }
                    self.packed = rest;
                    self.next = match rest {
                        [] => Part::End,
                        _ => Part::Header,
                    };
                }
                Part::Broken => return Err(invalid("corrupt deflate stream")),
                Part::End => return Ok(()),
            }
        }
        Ok(())
    }

    fn inflate(&mut self) -> io::Result<()> {
        let Inflater { inflate, buffer } = &mut *self.inflater;
        let before = (inflate.total_in(), inflate.total_out());
        let flush = match self.packed {
            [] => FlushDecompress::Finish,
            _ => FlushDecompress::None,
        };
        let status = inflate.decompress(self.packed, buffer, flush);
        let count = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
        let taken = count(inflate.total_in(), before.0);
        let given = count(inflate.total_out(), before.1);
        self.packed = self.packed.get(taken..).unwrap_or_default();
        self.crc.update(&buffer[..given]);
        self.ready = 0..given;
        match status {
            Ok(Status::StreamEnd) => self.next = Part::Trailer,
            Ok(_) if taken == 0 && given == 0 => {
                let why = "incomplete deflate stream";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, why));
            }
            Ok(_) => {}
            // What came before it is read first.
            Err(_) => self.next = Part::Broken,
        }
        Ok(())
    }
}

impl Read for Gunzip<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        self.fill()?;
        let ready = &self.inflater.buffer[self.ready.clone()];
        let count = ready.len().min(into.len());
        into[..count].copy_from_slice(&ready[..count]);
        self.ready.start += count;
        Ok(count)
    }
}

/// What follows the header of a member.
fn after_header(packed: &[u8]) -> io::Result<&[u8]> {
    let (fixed, mut rest) = split(packed, HEADER)?;
    let flags = fixed[3];
    if fixed[..3] != MAGIC || flags & RESERVED != 0 {
        return Err(invalid("invalid gzip header"));
    }
    if flags & HAS_EXTRA != 0 {
        let (length, after) = split(rest, 2)?;
        let length = u16::from_le_bytes([length[0], length[1]]);
        (_, rest) = split(after, usize::from(length))?;
    }
    for flag in [HAS_NAME, HAS_COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0).ok_or_else(cut)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & HAS_CHECKSUM != 0 {
        let mut crc = Crc::new();
        crc.update(&packed[..packed.len() - rest.len()]);
        let wanted;
        (wanted, rest) = split(rest, 2)?;
        if wanted != &crc.sum().to_le_bytes()[..2] {
            return Err(checksum());
        }
    }
    Ok(rest)
}

fn split(bytes: &[u8], at: usize) -> io::Result<(&[u8], &[u8])> {
    bytes.split_at_checked(at).ok_or_else(cut)
}

fn cut() -> io::Error {
    ErrorKind::UnexpectedEof.into()
}

fn checksum() -> io::Error {
    invalid("corrupt gzip stream does not have a matching checksum")
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, GzBuilder, bufread::MultiGzDecoder};
    use std::io::Write as _;

    fn all(mut packed: impl Read) -> Result<Vec<u8>, String> {
        let mut content = Vec::new();
        let read = packed.read_to_end(&mut content);
        read.map_err(|e| e.to_string())?;
        Ok(content)
    }

    fn packed(content: &[u8], header: GzBuilder) -> Vec<u8> {
        let mut packer = header.write(Vec::new(), Compression::default());
        packer.write_all(content).expect("memory");
        packer.finish().expect("memory")
    }

    /// The same inflater for all of them.
    #[test]
    fn everything_is_read_as_by_the_usual_decoder() {
        let long: Vec<u8> = (0..3 * BUFFER).map(|n| (n * n / 7) as u8).collect();
        let header = || {
            let named = GzBuilder::new().filename("a.tar").comment("why");
            named.extra([1, 2, 3])
        };
        let plain = packed(b"some words, some words", GzBuilder::new());
        let named = packed(b"other words", header());
        let two = [&*plain, &*named, &*packed(b"", GzBuilder::new())].concat();
        let mut samples = vec![
            Vec::new(),
            b"no gzip".to_vec(),
            packed(&long, GzBuilder::new()),
            packed(&vec![7; 10 * BUFFER], header()),
            [&*plain, &b"\0\0\0"[..]].concat(),
            [&*plain, &plain[..5]].concat(),
        ];
        for whole in [plain, named, two] {
            samples.extend((0..whole.len()).map(|end| whole[..end].to_vec()));
            for place in 0..whole.len() {
                for bit in 0..8 {
                    let mut other = whole.clone();
                    other[place] ^= 1 << bit;
                    samples.push(other);
                }
            }
            samples.push(whole);
        }
        let mut inflater = Inflater::default();
        for sample in samples {
            let wanted = all(MultiGzDecoder::new(sample.as_slice()));
            let found = all(Gunzip::new(&sample, &mut inflater));
            // What is wrong with broken ones may be told in other words.
            assert_eq!(found.ok(), wanted.ok(), "{sample:?}");
        }
    }
}

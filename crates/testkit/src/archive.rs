//! Tar archives, written entry by entry, also such as no good program writes.
//!
//! Main type: [`TarEntry`]; main functions: [`tar`] and [`gzip`].

use flate2::{Compression, write::GzEncoder};
use std::io::Write;

/// One entry of an archive.
#[derive(Clone, Copy, Debug)]
pub struct TarEntry<'a> {
    name: &'a str,
    flag: u8,
    target: &'a str,
    content: &'a str,
    /// What the header says about the size.
    size: usize,
}

impl<'a> TarEntry<'a> {
    pub fn file(name: &'a str, content: &'a str) -> Self {
        Self {
            name,
            flag: b'0',
            target: "",
            content,
            size: content.len(),
        }
    }

    pub fn folder(name: &'a str) -> Self {
        Self {
            flag: b'5',
            ..Self::file(name, "")
        }
    }

    pub fn symlink(name: &'a str, target: &'a str) -> Self {
        Self {
            flag: b'2',
            target,
            ..Self::file(name, "")
        }
    }

    pub fn hard_link(name: &'a str, target: &'a str) -> Self {
        Self {
            flag: b'1',
            target,
            ..Self::file(name, "")
        }
    }

    /// A file that is said to be larger than it is.
    pub fn claiming(name: &'a str, size: usize) -> Self {
        Self {
            size,
            ..Self::file(name, "")
        }
    }

    /// A pipe.
    pub fn other(name: &'a str) -> Self {
        Self {
            flag: b'6',
            ..Self::file(name, "")
        }
    }
}

/// An archive with these entries, in the ustar format.
///
/// # Panics
/// If a name or a target is longer than 100 bytes.
pub fn tar(entries: &[TarEntry<'_>]) -> Vec<u8> {
    let mut archive = Vec::new();
    for entry in entries {
        let mut header = [0_u8; 512];
        put(&mut header, 0, entry.name.as_bytes());
        put(&mut header, 100, b"0000644\0");
        put(&mut header, 108, b"0000000\0");
        put(&mut header, 116, b"0000000\0");
        put(
            &mut header,
            124,
            format!("{:011o}\0", entry.size).as_bytes(),
        );
        put(&mut header, 136, b"00000000000\0");
        put(&mut header, 148, b"        ");
        put(&mut header, 156, &[entry.flag]);
        put(&mut header, 157, entry.target.as_bytes());
        put(&mut header, 257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
        put(&mut header, 148, format!("{sum:06o}\0 ").as_bytes());
        archive.extend_from_slice(&header);
        archive.extend_from_slice(entry.content.as_bytes());
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

fn put(header: &mut [u8; 512], at: usize, text: &[u8]) {
    let to = header.get_mut(at..at + text.len());
    to.expect("the text fits into the header")
        .copy_from_slice(text);
}

pub fn gzip(content: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(content).expect("memory can be written");
    packed.finish().expect("memory can be written")
}

//! Where the charts of an index are, and what is around them.

use super::IndexFault;
use std::io::{BufRead as _, BufReader, Read, Seek};
use tiphys_repo::{Divider, Place};

/// The longest line of an index that is divided.
const LINE: u64 = 8 << 20;
const BUFFER: usize = 64 << 10;

pub struct Lines {
    /// In the order of the index.
    pub places: Vec<Place>,
    /// The text before the first and after the last chart.
    pub around: String,
}

/// `None`: it cannot be divided.
pub fn read(source: &mut (impl Read + Seek)) -> Result<Option<Lines>, IndexFault> {
    source.rewind()?;
    let mut divider = Divider::default();
    let mut reader = BufReader::with_capacity(BUFFER, &mut *source);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.len() as u64 == LINE {
            return Ok(None);
        }
        let text = str::from_utf8(&line).map_err(|_| IndexFault::content("it is not UTF-8"))?;
        if divider.line(text).is_err() {
            return Ok(None);
        }
    }
    let Ok(places) = divider.finish() else {
        return Ok(None);
    };
    let around = around(source, &places)?;
    Ok(Some(Lines { places, around }))
}

fn around(source: &mut (impl Read + Seek), places: &[Place]) -> Result<String, IndexFault> {
    let end = source.seek(std::io::SeekFrom::End(0))?;
    let mut part = |bytes: std::ops::Range<u64>| {
        let key = String::new();
        super::text_of(super::bytes(source, &Place { key, bytes }, "")?)
    };
    match (places.first(), places.last()) {
        (Some(first), Some(last)) => {
            let (head, tail) = (part(0..first.bytes.start)?, part(last.bytes.end..end)?);
            Ok(format!("{head}\n{tail}"))
        }
        _ => part(0..end),
    }
}

//! Reads the index of a chart repository from its file: a usual one as a whole, of a huge one the
//! lines of one chart at a time, so that it never is in memory. Only where the lines of its charts are
//! is remembered of it: of one chart, or of a limited number of them.
//!
//! Main type: [`OnDisk`].

use super::{
    divide::{Divider, PLACES, Place, Undivided},
    index::{self, Entries},
};
use std::{
    collections::{HashMap, hash_map},
    fs::File,
    io::{BufRead, BufReader, Read as _, Seek as _, SeekFrom},
    ops::Range,
    path::Path,
};

/// The largest index that is read as a whole, and the most lines of one chart.
const WHOLE: u64 = 128 << 20;
/// The longest line of a larger one.
const LINE: u64 = 4 << 20;

/// The file of an index. It stays the same one when another takes its place in the folder.
pub(super) struct OnDisk {
    file: File,
    whole: u64,
}

impl OnDisk {
    /// # Errors
    /// There is no such file.
    pub fn open(path: &Path) -> Result<Self, String> {
        Ok(Self {
            file: File::open(path).map_err(|e| e.to_string())?,
            whole: WHOLE,
        })
    }

    /// The versions of a chart; `None`: the index does not list the chart.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn entries(&self, chart: &str) -> Result<Option<Entries>, String> {
        if self.is_usual()? {
            return index::entries(&self.text()?, chart);
        }
        // The last of them, as where the whole index is parsed.
        let mut places = self.places(Divider::only(chart))?;
        let Some(place) = places.pop() else {
            return Ok(None);
        };
        let block = self.lines(&place.bytes)?;
        index::of_block(chart, &block).ok_or_else(|| self.too_large())
    }

    /// The charts with their versions, in the order of the index.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn charts(&self) -> Result<Vec<(String, Vec<String>)>, String> {
        if self.is_usual()? {
            return index::charts(&self.text()?);
        }
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut last: Vec<Place> = Vec::new();
        for place in self.places(Divider::default())? {
            match known.entry(place.key.clone()) {
                hash_map::Entry::Occupied(at) => last[*at.get()] = place,
                hash_map::Entry::Vacant(at) => {
                    at.insert(last.len());
                    last.push(place);
                }
            }
        }
        let read = |place: Place| {
            let block = self.lines(&place.bytes)?;
            let entries = index::of_block(&place.key, &block).ok_or_else(|| self.too_large())?;
            Ok((place.key, entries.unwrap_or_default().tags()))
        };
        last.into_iter().map(read).collect()
    }

    fn is_usual(&self) -> Result<bool, String> {
        let about = self.file.metadata().map_err(|e| e.to_string())?;
        Ok(about.len() <= self.whole)
    }

    /// The file, from a place on.
    fn at(&self, place: u64) -> Result<&File, String> {
        let mut file = &self.file;
        let sought = file.seek(SeekFrom::Start(place));
        sought.map_err(|e| e.to_string())?;
        Ok(file)
    }

    fn text(&self) -> Result<Vec<u8>, String> {
        let (mut file, mut text) = (self.at(0)?, Vec::new());
        let read = file.read_to_end(&mut text);
        read.map_err(|e| e.to_string())?;
        Ok(text)
    }

    /// Where the lines of the charts are that the divider looks for.
    fn places(&self, mut divider: Divider) -> Result<Vec<Place>, String> {
        let mut input = BufReader::new(self.at(0)?);
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut limited = input.by_ref().take(LINE + 1);
            let read = limited.read_until(b'\n', &mut line);
            let read = read.map_err(|e| e.to_string())?;
            if read == 0 {
                break;
            }
            if line.len() as u64 > LINE {
                return Err(self.too_large());
            }
            let text = std::str::from_utf8(&line).map_err(|_| "it is not UTF-8".to_owned())?;
            divider.line(text).map_err(|why| self.undivided(why))?;
        }
        divider.finish().map_err(|why| self.undivided(why))
    }

    fn lines(&self, bytes: &Range<u64>) -> Result<String, String> {
        let size = bytes.end.saturating_sub(bytes.start);
        if size > self.whole {
            return Err(self.too_large());
        }
        let (file, mut text) = (self.at(bytes.start)?, String::new());
        let read = file.take(size).read_to_string(&mut text);
        read.map_err(|e| e.to_string())?;
        Ok(text)
    }

    fn undivided(&self, why: Undivided) -> String {
        match why {
            Undivided::Style => self.too_large(),
            Undivided::TooMany => format!(
                "it has more than {} bytes, and more than {PLACES} charts, or too long names of them, \
                 to be listed",
                self.whole
            ),
        }
    }

    fn too_large(&self) -> String {
        format!(
            "it has more than {} bytes, and is not in the form that Helm writes, of which parts can \
             be read",
            self.whole
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const INDEX: &str = r#"apiVersion: v1
entries:
  demo:
  - apiVersion: v2
    name: demo
    urls:
    - demo-1.2.3.tgz
    version: 1.2.3
  "quoted":
    - version: v2.0.0
      urls: [a]
  demo:
  - name: demo
    version: 1.2.4
    urls: [demo-1.2.4.tgz]
generated: "2026-01-01T00:00:00Z"
"#;

    fn file(text: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(text).expect("written");
        file
    }

    fn huge(file: &tempfile::NamedTempFile, whole: u64) -> OnDisk {
        OnDisk {
            whole,
            ..OnDisk::open(file.path()).expect("it is there")
        }
    }

    #[test]
    fn a_huge_index_reads_as_a_usual_one() {
        let file = file(INDEX.as_bytes());
        let usual = OnDisk::open(file.path()).expect("it is there");
        let huge = huge(&file, 150);
        assert!(usual.is_usual().expect("it is there"));
        assert!(!huge.is_usual().expect("it is there"));
        for chart in ["demo", "quoted", "absent"] {
            let (one, other) = (usual.entries(chart), huge.entries(chart));
            assert_eq!(one, other, "{chart}");
            assert_eq!(one.expect("read").is_some(), chart != "absent", "{chart}");
        }
        assert_eq!(usual.charts(), huge.charts());
        assert_eq!(huge.charts().expect("read").len(), 2);
    }

    #[test]
    fn a_huge_index_in_another_form_is_refused() {
        for (text, error) in [
            (
                "apiVersion: v1\nentries: {demo: [{version: 1.2.3}]}\n".to_owned(),
                "it has more than 20 bytes, and is not in the form",
            ),
            (
                "entries:\n  demo:\n  - \u{fffd}\n".repeat(2),
                "it has more than 20",
            ),
            (
                format!("entries:\n  demo:\n  - {}\n", "x".repeat(5 << 20)),
                "it has more than 20 bytes",
            ),
        ] {
            let file = file(text.as_bytes());
            let refused = huge(&file, 20).entries("demo").expect_err(error);
            assert!(refused.starts_with(error), "{refused}");
        }
        let file = file(b"entries:\n  demo:\n  - \xff\xff\n");
        let refused = huge(&file, 20).charts().expect_err("no text");
        assert_eq!(refused, "it is not UTF-8");
    }

    #[test]
    fn an_index_of_countless_charts_is_not_listed() {
        let lines = " a:\n".repeat(PLACES);
        let file = file(format!("entries:\n{lines} demo:\n - version: 1.2.3\n").as_bytes());
        let huge = huge(&file, 40);
        let found = huge.entries("demo").expect("read").expect("listed");
        assert_eq!(found.tags(), ["1.2.3"]);
        assert_eq!(huge.entries("absent"), Ok(None));
        let refused = huge.charts().expect_err("too many");
        let error = "it has more than 40 bytes, and more than 1000000 charts";
        assert!(refused.starts_with(error), "{refused}");
    }

    #[test]
    fn an_index_is_read_to_its_end_when_another_takes_its_place() {
        let before = file(INDEX.as_bytes());
        let huge = huge(&before, 150);
        let expected = huge.charts().expect("read");
        let (path, after) = (before.path().to_owned(), file(b"entries: {}\n"));
        std::fs::rename(after.path(), &path).expect("replaced");
        assert_eq!(huge.charts().expect("read"), expected);
        assert!(huge.entries("demo").expect("read").is_some());
    }
}

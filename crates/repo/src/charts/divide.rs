//! Divides the text of an index into its charts, line by line, without parsing it. Pure.
//!
//! Main type: [`Divider`]. It works for the block style that Helm writes, where the indentation says
//! what belongs together.

use super::open_text::OpenText;
use std::ops::Range;

/// The most places that are remembered, those of a repeated key included, and the most bytes that
/// their keys have together.
pub(super) const PLACES: usize = 1_000_000;
const KEY_BYTES: usize = 64 << 20;

/// Why an index is not divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undivided {
    /// It is in another style: only a parser can divide it.
    Style,
    /// It has too many charts for their places to be remembered.
    TooMany,
}

/// One chart of an index: its key, and the bytes of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub key: String,
    pub bytes: Range<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Whether a key of the index was there, after which a line may be indented, and whether the
    /// mark of the beginning (`---`), after which another one ends the document.
    Head {
        has_key: bool,
        has_mark: bool,
    },
    /// With the indentation of the keys, once it is known.
    Entries(Option<usize>),
    Tail,
}

/// Is given an index line by line.
pub struct Divider {
    part: Part,
    text: OpenText,
    /// Where the next line begins.
    at: u64,
    /// The only key whose place is remembered, and of several the last; `None`: all places are.
    only: Option<String>,
    /// The chart that the last lines belong to.
    open: Option<Place>,
    places: Vec<Place>,
    key_bytes: usize,
}

impl Default for Divider {
    fn default() -> Self {
        Self {
            part: Part::Head {
                has_key: false,
                has_mark: false,
            },
            text: OpenText::default(),
            at: 0,
            only: None,
            open: None,
            places: Vec::new(),
            key_bytes: 0,
        }
    }
}

impl Divider {
    /// Looks for the last place of one chart, so that it does not matter how many there are.
    pub fn only(chart: &str) -> Self {
        Self {
            only: Some(chart.to_owned()),
            ..Self::default()
        }
    }

    /// `line`: with the end that it has.
    ///
    /// # Errors
    /// The index cannot be divided.
    pub fn line(&mut self, line: &str) -> Result<(), Undivided> {
        let text = line.strip_suffix('\n').unwrap_or(line);
        let is_ended = text.len() < line.len();
        let text = match text.strip_suffix('\r') {
            Some(text) if is_ended => text,
            _ => text,
        };
        // To YAML a lone carriage return ends a line, too.
        if text.contains('\r') {
            return Err(Undivided::Style);
        }
        let from = self.at;
        self.at += line.len() as u64;
        let text = match text.strip_prefix('\u{feff}') {
            Some(text) if from == 0 => text,
            _ => text,
        };
        let is_inside = self.text.line(text);
        match self.part {
            Part::Head { .. } if text.starts_with("entries:") => {
                if is_inside || text.trim_end() != "entries:" {
                    return Err(Undivided::Style);
                }
                self.part = Part::Entries(None);
                Ok(())
            }
            Part::Head { has_key, has_mark } => self.head(text, (has_key, has_mark), is_inside),
            Part::Entries(indent) => self.entry(text, indent, from, is_inside),
            Part::Tail => tail(text),
        }
    }

    /// # Errors
    /// There were no entries, or too many.
    pub fn finish(mut self) -> Result<Vec<Place>, Undivided> {
        self.close()?;
        match self.part {
            Part::Head { .. } => Err(Undivided::Style),
            Part::Entries(_) | Part::Tail => Ok(self.places),
        }
    }

    /// Remembers the place of the chart whose lines have ended, if it is wanted.
    fn close(&mut self) -> Result<(), Undivided> {
        let Some(place) = self.open.take() else {
            return Ok(());
        };
        match &self.only {
            Some(only) if *only == place.key => self.places = vec![place],
            Some(_) => {}
            None => {
                self.key_bytes = self.key_bytes.saturating_add(place.key.len());
                if self.places.len() >= PLACES || self.key_bytes > KEY_BYTES {
                    return Err(Undivided::TooMany);
                }
                self.places.push(place);
            }
        }
        Ok(())
    }

    /// A line before the entries. What could end the document, so that a parser would not read the
    /// entries, is another style.
    fn head(
        &mut self,
        text: &str,
        (has_key, has_mark): (bool, bool),
        is_inside: bool,
    ) -> Result<(), Undivided> {
        let content = text.trim_end();
        let is_bare = content.is_empty() || content.trim_start().starts_with('#');
        let continues = content.starts_with(' ') || content.starts_with("- ") || content == "-";
        if is_inside || is_bare || continues && has_key {
            return Ok(());
        }
        let is_mark = content == "---" && !has_key && !has_mark;
        if !is_mark {
            name_of(content).ok_or(Undivided::Style)?;
        }
        self.part = Part::Head {
            has_key: !is_mark,
            has_mark: has_mark || is_mark,
        };
        Ok(())
    }

    fn entry(
        &mut self,
        text: &str,
        indent: Option<usize>,
        from: u64,
        is_inside: bool,
    ) -> Result<(), Undivided> {
        let content = text.trim_start_matches(' ');
        let blanks = text.len() - content.len();
        let content = content.trim_end();
        if content.is_empty() || content.starts_with('#') {
            return Ok(());
        }
        // What a text over several lines holds may look like a key.
        let is_outermost = indent.is_none_or(|indent| blanks <= indent);
        if content.starts_with('\t') || is_inside && is_outermost {
            return Err(Undivided::Style);
        }
        if blanks == 0 {
            self.part = Part::Tail;
            return tail(text);
        }
        let indent = indent.unwrap_or(blanks);
        self.part = Part::Entries(Some(indent));
        if blanks < indent {
            return Err(Undivided::Style);
        }
        if blanks == indent && !content.starts_with("- ") && content != "-" {
            let key = name_of(content).ok_or(Undivided::Style)?;
            self.close()?;
            self.open = Some(Place {
                key,
                bytes: from..from,
            });
        }
        self.open.as_mut().ok_or(Undivided::Style)?.bytes.end = self.at;
        Ok(())
    }
}

/// The last of two keys counts, and only the first was looked at.
fn tail(text: &str) -> Result<(), Undivided> {
    match name_of(text.trim_end()) {
        Some(key) if key == "entries" => Err(Undivided::Style),
        _ => Ok(()),
    }
}

/// The charts of an index and their lines. `None` if the index is not in the block style that Helm
/// writes, so that it cannot be divided by indentation, or has too many.
pub fn sections(text: &str) -> Option<Vec<(String, &str)>> {
    let mut divider = Divider::default();
    for line in text.split_inclusive('\n') {
        divider.line(line).ok()?;
    }
    let lines = |place: Place| {
        let (from, to) = (place.bytes.start, place.bytes.end);
        let bytes = usize::try_from(from).ok()?..usize::try_from(to).ok()?;
        Some((place.key, text.get(bytes)?))
    };
    divider.finish().ok()?.into_iter().map(lines).collect()
}

/// The key of a line such as `demo:`; `None` if it is not plain or quoted text.
fn name_of(content: &str) -> Option<String> {
    let (key, rest) = match content.as_bytes().first()? {
        quote @ (b'"' | b'\'') => {
            let quote = char::from(*quote);
            let (key, rest) = content.get(1..)?.split_once(quote)?;
            (key, rest.strip_prefix(':')?)
        }
        b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => content.split_once(':')?,
        _ => return None,
    };
    let is_end = rest.is_empty() || rest.starts_with(' ');
    (is_end && !key.contains(['\\', '#', ' '])).then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_divided() {
        for (index, wanted) in [
            ("entries:\n  a:\n  - x\n", Some("a")),
            ("a: b\nentries:   \r\n  a:\r\n  - x\r\n", Some("a")),
            ("entries:\n\n# one\n  a:\n\n    # two\n  - x", Some("a")),
            (
                "entries:\n    a:\n    - x\n    'b':\n    -\nb: c\n",
                Some("a b"),
            ),
            ("entries:\n", Some("")),
            ("entries:\nentries:\n", None),
            ("entries:\n  a:\nb: c\n\"entries\": {}\n", None),
            ("entries: {}\n", None),
            ("a: b\n", None),
            ("", None),
            ("entries:\n  - x\n", None),
            ("entries:\n  a:\n b:\n", None),
            ("entries:\n\ta:\n", None),
            ("entries:\n  a b:\n", None),
            ("entries:\n  a:\n  - x\r  b:\n", None),
            ("entries:\n  a:\n  - x\r\r\n", None),
            ("entries:\n  a:\n  - \"x\n    b:\n    \"\n", Some("a")),
            ("entries:\n  a:\n  - \"x\n  b:\n  - y\"\n", None),
            ("entries:\n  a:\n  - [x,\n  b:\n  - y]\n", None),
            ("a: 'b\nentries:\n  c:\n  - x'\n", None),
            ("entries:\n  a:\n  - x\r", None),
            (
                "---\na:\n  b: c\nd:\n- e\n# f\n\nentries:\n  a:\n",
                Some("a"),
            ),
            ("# c\n\n---\na: b\nentries:\n  a:\n", Some("a")),
            ("\u{feff}entries:\n  a:\n", Some("a")),
            ("\u{feff}---\n_a: b\nentries:\n  a:\n", Some("a")),
            // A parser ends the document before the entries.
            ("---\n# c\n---\na: b\nentries:\n  a:\n", None),
            ("a: b\n\u{feff}entries:\n  a:\n", None),
            (" a: b\nentries:\n  a:\n", None),
            ("a: b\n---\nentries:\n  a:\n", None),
            ("---\n---\nentries:\n  a:\n", None),
            ("a: b\n...\nentries:\n  a:\n", None),
            ("{a: b}\nentries:\n  a:\n", None),
            ("%YAML 1.1\n---\nentries:\n  a:\n", None),
        ] {
            let found = sections(index).map(|found| {
                let names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
                names.join(" ")
            });
            assert_eq!(found.as_deref(), wanted, "{index:?}");
        }
    }

    /// The places in an index with so many keys.
    fn places(mut divider: Divider, keys: usize) -> Result<Vec<Place>, Undivided> {
        divider.line("entries:\n")?;
        for _ in 0..keys {
            divider.line(" a:\n")?;
        }
        divider.line(" b:\n")?;
        divider.finish()
    }

    #[test]
    fn no_more_places_are_remembered_than_are_wanted() {
        let found = places(Divider::default(), PLACES - 1).map(|found| found.len());
        assert_eq!(found, Ok(PLACES));
        let refused = places(Divider::default(), PLACES);
        assert_eq!(refused, Err(Undivided::TooMany));
        let end = 9 + 4 * (PLACES as u64 + 1);
        for (key, bytes) in [("a", end - 4..end), ("b", end..end + 4)] {
            let key = key.to_owned();
            let found = places(Divider::only(&key), PLACES + 1);
            assert_eq!(found, Ok(vec![Place { key, bytes }]));
        }
        assert_eq!(places(Divider::only("c"), 3), Ok(Vec::new()));

        let (mut long, name) = (Divider::default(), "x".repeat(KEY_BYTES / 2));
        long.line("entries:\n").expect("they begin");
        for line in [format!(" {name}:\n"), format!(" {name}y:\n")] {
            long.line(&line).expect("a chart");
        }
        assert_eq!(long.finish(), Err(Undivided::TooMany));
    }

    #[test]
    fn the_lines_of_a_chart_end_with_its_last_content() {
        let index =
            "entries:\n  a:\n  - x\n\n  # of a\n  - y\n\n  # of none\n  b:\n  - z\n\nc: d\n";
        let wanted = [
            ("a".to_owned(), "  a:\n  - x\n\n  # of a\n  - y\n"),
            ("b".to_owned(), "  b:\n  - z\n"),
        ];
        assert_eq!(sections(index).as_deref(), Some(wanted.as_slice()));
    }
}

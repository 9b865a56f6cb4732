//! Divides the text of an index into its charts, line by line, without parsing it. Pure.
//!
//! Main type: [`Divider`]. It works for the block style that Helm writes, where the indentation says
//! what belongs together.

use std::ops::Range;

/// The index is in another style: only a parser can divide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undivided;

/// One chart of an index: its key, and the bytes of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub key: String,
    pub bytes: Range<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Head,
    /// With the indentation of the keys, once it is known.
    Entries(Option<usize>),
    Tail,
}

/// Is given an index line by line.
pub struct Divider {
    part: Part,
    /// Where the next line begins.
    at: u64,
    places: Vec<Place>,
}

impl Default for Divider {
    fn default() -> Self {
        Self {
            part: Part::Head,
            at: 0,
            places: Vec::new(),
        }
    }
}

impl Divider {
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
            return Err(Undivided);
        }
        let from = self.at;
        self.at += line.len() as u64;
        match self.part {
            Part::Head if text.starts_with("entries:") => {
                if text.trim_end() != "entries:" {
                    return Err(Undivided);
                }
                self.part = Part::Entries(None);
                Ok(())
            }
            Part::Head => Ok(()),
            Part::Entries(indent) => self.entry(text, indent, from).ok_or(Undivided),
            Part::Tail => tail(text).ok_or(Undivided),
        }
    }

    /// # Errors
    /// There were no entries.
    pub fn finish(self) -> Result<Vec<Place>, Undivided> {
        match self.part {
            Part::Head => Err(Undivided),
            Part::Entries(_) | Part::Tail => Ok(self.places),
        }
    }

    fn entry(&mut self, text: &str, indent: Option<usize>, from: u64) -> Option<()> {
        let blanks = text.len() - text.trim_start_matches(' ').len();
        let content = text.get(blanks..)?.trim_end();
        if content.is_empty() || content.starts_with('#') {
            return Some(());
        }
        if content.starts_with('\t') {
            return None;
        }
        if blanks == 0 {
            self.part = Part::Tail;
            return tail(text);
        }
        let indent = indent.unwrap_or(blanks);
        self.part = Part::Entries(Some(indent));
        if blanks < indent {
            return None;
        }
        if blanks == indent && !content.starts_with("- ") && content != "-" {
            self.places.push(Place {
                key: name_of(content)?,
                bytes: from..from,
            });
        }
        self.places.last_mut()?.bytes.end = self.at;
        Some(())
    }
}

/// The last of two keys counts, and only the first was looked at.
fn tail(text: &str) -> Option<()> {
    let is_again = name_of(text.trim_end()).is_some_and(|key| key == "entries");
    (!is_again).then_some(())
}

/// The charts of an index and their lines. `None` if the index is not in the block style that Helm
/// writes, so that it cannot be divided by indentation.
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
        first if first.is_ascii_alphanumeric() => content.split_once(':')?,
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
            ("entries:\n  a:\n  - x\r", None),
        ] {
            let found = sections(index).map(|found| {
                let names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
                names.join(" ")
            });
            assert_eq!(found.as_deref(), wanted, "{index:?}");
        }
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

//! Whether a line of a YAML text begins inside a quoted text or a flow collection that an earlier
//! line opened: their lines may be indented less than what they belong to, and look like keys.
//!
//! Main type: [`OpenText`]. Where a line may be read in two ways, it is taken for an open one.

/// Is given a text line by line, without the ends of the lines.
#[derive(Default)]
pub(super) struct OpenText {
    quote: Option<u8>,
    /// Open brackets.
    depth: usize,
    /// The column of what a block scalar (`|`) or a text without quotes belongs to: lines that are
    /// indented more go on with it, and nothing in them opens anything.
    text: Option<usize>,
}

const BLANKS: [char; 2] = [' ', '\t'];

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The value of a key on the same line.
fn value_of(text: &str) -> Option<&str> {
    let colons = text.match_indices(':');
    let mut values = colons.filter_map(|(at, _)| text.get(at + 1..));
    values.find(|value| value.starts_with(BLANKS))
}

impl OpenText {
    /// Whether the line begins inside of what an earlier one opened.
    pub fn line(&mut self, line: &str) -> bool {
        if self.quote.is_some() || self.depth > 0 {
            self.scan(line);
            return true;
        }
        let mut rest = line.trim_start_matches(' ');
        let mut owner = line.len() - rest.len();
        if let Some(text) = self.text {
            if rest.is_empty() || owner > text {
                return false;
            }
            self.text = None;
        }
        // A text alone in its line goes on at its own column.
        let mut before = owner.checked_sub(1);
        let mut is_value = false;
        while let Some(first) = rest.bytes().next() {
            let column = line.len() - rest.len();
            let after = rest.get(1..).unwrap_or_default();
            let next = match first {
                b'"' | b'\'' | b'[' | b'{' => {
                    let after = self.scan(rest).map(str::trim_start);
                    after.and_then(|after| after.strip_prefix(':'))
                }
                b'|' | b'>' => {
                    self.text = Some(owner);
                    None
                }
                b'&' | b'!' => rest.split_once(BLANKS).map(|(_, after)| after),
                b'-' | b'?' if after.starts_with(BLANKS) => {
                    (owner, before) = (column, Some(column));
                    rest = after.trim_start_matches(BLANKS);
                    continue;
                }
                b'#' => None,
                _ => {
                    // One line has one key.
                    let value = value_of(rest).filter(|_| !is_value);
                    let is_key = !is_value && rest.trim_end().ends_with(':');
                    if value.is_none() && !is_key {
                        self.text = before;
                    }
                    value
                }
            };
            let Some(next) = next else { break };
            if !matches!(first, b'&' | b'!') {
                (owner, before, is_value) = (column, Some(column), true);
            }
            rest = next.trim_start_matches(BLANKS);
        }
        false
    }

    /// Reads on in a quoted text or a flow collection. What follows its end, if it ends here.
    fn scan<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let bytes = text.as_bytes();
        let mut at = 0;
        // Only there does a quote open a text.
        let mut begins = true;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            let next = bytes.get(at);
            match (self.quote, byte) {
                (Some(b'"'), b'\\') => at += 1,
                (Some(b'\''), b'\'') if next == Some(&b'\'') => at += 1,
                (Some(quote), _) if quote == byte => {
                    (self.quote, begins) = (None, false);
                    if self.depth == 0 {
                        return text.get(at..);
                    }
                }
                (Some(_), _) => {}
                (None, b'"' | b'\'') if begins => self.quote = Some(byte),
                (None, b'[' | b'{') => (self.depth, begins) = (self.depth + 1, true),
                (None, b']' | b'}') => {
                    (self.depth, begins) = (self.depth.saturating_sub(1), false);
                    if self.depth == 0 {
                        return text.get(at..);
                    }
                }
                (None, b',') => begins = true,
                // The quote of what a tag or an anchor is written before.
                (None, b'!' | b'&') if begins => {
                    let is_of_it = |byte: &&u8| !is_blank(**byte) && !b",[]{}".contains(byte);
                    let rest = bytes.get(at..).unwrap_or_default();
                    at += rest.iter().take_while(is_of_it).count();
                }
                (None, b':') => begins = matches!(next, Some(b' ' | b'\t' | b'"' | b'\'')),
                (None, b' ' | b'\t') if next == Some(&b'#') => break,
                (None, b' ' | b'\t') => {}
                (None, _) => begins = false,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the lines that begin inside of what an earlier one opened.
    fn inside(text: &str) -> Vec<usize> {
        let mut open = OpenText::default();
        let lines = text.lines().enumerate();
        lines
            .filter_map(|(n, line)| open.line(line).then_some(n))
            .collect()
    }

    #[test]
    fn quoted_texts_and_flow_collections_over_lines() {
        for (text, wanted) in [
            ("a: b\nc: 'd'\ne: \"f\"\n", vec![]),
            ("a: \"b\nc: d\n\"\ne: f", vec![1, 2]),
            ("- - a: 'b\nc: d''\n'\ne: f", vec![1, 2]),
            ("a: \"\\\"\nc: d\"\ne: f", vec![1]),
            ("\"a\": 'b\nc: d'\n", vec![1]),
            ("a: &x \"b\nc: d\"\n", vec![1]),
            ("a: !!str 'b\nc: d'\n", vec![1]),
            ("a: [b,\nc,\n[d]\n]\ne: f", vec![1, 2, 3]),
            ("a: {b: [c], d: 'e\n}'\n}\ne: f", vec![1, 2]),
            ("a: {\"b\":\"}\n\"}\ne: f", vec![1]),
            // A bracket of a comment, and quotes inside of words.
            ("a: [b # ]\n]\nc: d", vec![1]),
            ("a: [it's, b]\nc: it's\nd: 5\"\n", vec![]),
            ("a: b # c: \"d\ne: f", vec![]),
            ("# a: \"b\nc: d", vec![]),
            // What a block scalar holds is text.
            ("a: |\n  b: \"c\n\n  'd\ne: f", vec![]),
            ("- a: >-\n    b: [\n  c: 'd\n  '\n", vec![3]),
            ("- |\n  b: \"c\n- d\n", vec![]),
            // So is what goes on with a text without quotes.
            ("a: of the\n  '90s\nb: c", vec![]),
            ("- a: of the\n\n    [90s\n  b: c\n- \"d\ne\"", vec![5]),
            ("- of the\n  '90s\n- b", vec![]),
            ("a:\n  of the\n  '90s\nb: 'c\nd'", vec![4]),
            ("a: !!str of the\n  \"90s\nb: c", vec![]),
            // What begins a line below a key, a tag or a comment does open.
            ("a:\n  'b\nc: d'", vec![2]),
            ("a: &x\n  'b\nc: d'", vec![2]),
            ("a: !!str\n  'b\nc: d'", vec![2]),
            ("a: # b\n  'c\nd: e'", vec![2]),
            ("- a:\n    'b\nc: d'", vec![2]),
            // Tags and anchors in flow collections.
            ("a: [!!str \"b]\nc: d\"]\n", vec![1]),
            ("a: {b: &x 'c}\nd: e'}\n", vec![1]),
            ("a: [&x,\nb]\nc: d", vec![1]),
            // Tabs separate, too.
            ("a:\t\"b\nc: d\"", vec![1]),
            ("-\t'b\nc: d'", vec![1]),
            ("a: [b:\t\"c]\nd: e\"]", vec![1]),
        ] {
            assert_eq!(inside(text), wanted, "{text:?}");
        }
    }
}

//! What JSON takes in memory and how deep it is, found without parsing it.

/// Lists and maps in each other that can be read: `serde_json` refuses one more.
pub(super) const DEEPEST: usize = 127;

/// For how many values a map counts: the smallest one has a node for eleven entries.
const MAP: usize = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// Each takes about a hundred bytes when it is parsed, however short its text is.
    pub values: usize,
    /// Lists and maps in each other.
    pub depth: usize,
}

impl Size {
    /// Whether a text of so many bytes could have more values than that.
    pub fn may_exceed(bytes: usize, values: usize) -> bool {
        bytes.saturating_mul(MAP) > values
    }

    /// Each value follows one of these characters, or a name that does.
    pub fn of(json: &[u8]) -> Self {
        let (mut size, mut depth) = (Self::default(), 0_usize);
        let (mut in_text, mut is_escaped) = (false, false);
        for byte in json {
            if in_text {
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' => is_escaped = true,
                    b'"' => in_text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => in_text = true,
                b',' => size.values += 1,
                b'[' | b'{' => {
                    size.values += if *byte == b'{' { MAP } else { 1 };
                    depth += 1;
                    size.depth = size.depth.max(depth);
                }
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_levels_are_counted() {
        for (json, values, depth) in [
            ("", 0, 0),
            ("1", 0, 0),
            ("[1,2,[3]]", 4, 2),
            ("[[],[],[]]", 6, 2),
            ("{\"a\":{\"b\":1},\"c\":2}", 2 * MAP + 1, 2),
            // What looks like lists in a text is none.
            ("[\"[{,\\\"[\\\\\",\"[\"]", 2, 1),
            ("]]]]", 0, 0),
        ] {
            assert_eq!(Size::of(json.as_bytes()), Size { values, depth }, "{json}");
        }
        assert!(Size::may_exceed(4, 20) && !Size::may_exceed(3, 20));
    }

    #[test]
    fn what_is_as_deep_as_may_be_is_read() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        for (levels, is_read) in [(DEEPEST, true), (DEEPEST + 1, false)] {
            let text = nested(levels);
            assert_eq!(Size::of(text.as_bytes()).depth, levels);
            let read = serde_json::from_str::<serde_json::Value>(&text);
            assert_eq!(read.is_ok(), is_read, "{levels}");
        }
    }
}

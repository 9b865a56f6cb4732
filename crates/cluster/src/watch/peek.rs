//! Finds parts of an object's JSON without parsing the object: every event is looked at before it
//! is known whether anyone needs the rest.
//!
//! Main functions: [`version_of`] and [`metadata_of`]. They do not validate: of valid JSON the
//! result is what a parser finds, of anything else it is a part of the text or `None`.

use std::borrow::Cow;

/// `metadata.resourceVersion`; `None`: there is none, or it is empty or not a string.
pub fn version_of(object: &str) -> Option<Cow<'_, str>> {
    let mut cursor = Cursor::new(object);
    cursor.take(b'{')?;
    while cursor.find("metadata").is_some() {
        cursor.take(b'{')?;
        if cursor.find("resourceVersion").is_some() {
            return content(cursor.string()?).filter(|version| !version.is_empty());
        }
        cursor.take(b'}')?;
    }
    None
}

/// The text of `metadata`, whatever its type.
pub fn metadata_of(object: &str) -> Option<&str> {
    let mut cursor = Cursor::new(object);
    cursor.take(b'{')?;
    cursor.find("metadata")?;
    cursor.value()
}

/// A place in a text.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Passes blanks; returns the byte after them.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while is_blank(*bytes.get(self.at)?) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        let is_here = self.peek()? == wanted;
        is_here.then(|| self.at += 1)
    }

    /// Goes from a place between two members to the value of the next member with this name.
    /// `None`: the object ends before, at this place.
    fn find(&mut self, name: &str) -> Option<()> {
        loop {
            if self.peek()? == b',' {
                self.at += 1;
            }
            let key = self.string()?;
            self.take(b':')?;
            if is_named(key, name) {
                return Some(());
            }
            self.value()?;
        }
    }

    /// Passes a string, which is returned with its quotes.
    fn string(&mut self) -> Option<&'a str> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.at;
        self.at = end_of_string(self.text.as_bytes(), start)?;
        self.text.get(start..self.at)
    }

    /// Passes a value. Nesting takes no stack.
    fn value(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let mut at = start;
        match first {
            b'"' => return self.string(),
            b'{' | b'[' => {
                let mut depth = 0_usize;
                loop {
                    match *bytes.get(at)? {
                        b'"' => {
                            at = end_of_string(bytes, at)?;
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth -= 1,
                        _ => {}
                    }
                    at += 1;
                    if depth == 0 {
                        break;
                    }
                }
            }
            _ => {
                let ends = |byte: u8| is_blank(byte) || matches!(byte, b',' | b'}' | b']');
                while !ends(*bytes.get(at)?) {
                    at += 1;
                }
            }
        }
        self.at = at;
        self.text.get(start..at)
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The place after the string that starts here.
fn end_of_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match *bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// What a string with its quotes means; `None`: it has an invalid escape.
fn content(literal: &str) -> Option<Cow<'_, str>> {
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str::<String>(literal).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

fn is_named(literal: &str, name: &str) -> bool {
    content(literal).is_some_and(|key| key == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// What a parser finds.
    fn parsed(object: &str) -> Option<String> {
        let value: Value = serde_json::from_str(object).unwrap_or_else(|e| panic!("{object}: {e}"));
        let version = value["metadata"]["resourceVersion"].as_str();
        version.filter(|v| !v.is_empty()).map(str::to_owned)
    }

    #[test]
    fn the_version_is_found_wherever_it_stands() {
        for (object, version) in [
            (r#"{"metadata":{"resourceVersion":"7"}}"#, Some("7")),
            (
                r#"{"kind":"K","spec":{},"metadata":{"name":"a","resourceVersion":"7","uid":"u"},"z":1}"#,
                Some("7"),
            ),
            (
                " {\n\t\"metadata\" : { \"a\" : [ ] ,\r\n \"resourceVersion\" : \"7\" } } ",
                Some("7"),
            ),
            // The same name in other places.
            (
                r#"{"resourceVersion":"1","spec":{"metadata":{"resourceVersion":"2"}},"metadata":{"labels":{"resourceVersion":"3"},"ownerReferences":[{"metadata":{"resourceVersion":"4"}}],"resourceVersion":"7"},"status":{"resourceVersion":"5"}}"#,
                Some("7"),
            ),
            (
                r#"{"a":[{"metadata":{"resourceVersion":"1"}}],"metadata":{"annotations":{"l":"{\"metadata\":{\"resourceVersion\":\"2\"}}"}}}"#,
                None,
            ),
            (
                r#"{"metadata":{"f:resourceVersion":"1","resourceVersions":"2"}}"#,
                None,
            ),
            // Escapes, and what looks like an end of a string or of a map.
            (
                r#"{"a":"}\\","b":"\"]","metadata":{"c":"\\\"}","resourceVersion":"7"}}"#,
                Some("7"),
            ),
            (
                r#"{"met\u0061data":{"resource\u0056ersion":"\u0037"}}"#,
                Some("7"),
            ),
            (
                r#"{"é":"ü\u00e9","metadata":{"n":"日本","resourceVersion":"7"}}"#,
                Some("7"),
            ),
            // Every type of value is passed.
            (
                r#"{"a":null,"b":true,"c":-1.5e3,"d":[1,[2,{}],"]"],"e":{"f":{}},"metadata":{"g":0,"h":false ,"resourceVersion":"7"}}"#,
                Some("7"),
            ),
            // It is missing or of another type.
            ("{}", None),
            (r#"{"metadata":{}}"#, None),
            (r#"{"metadata":null}"#, None),
            (r#"{"metadata":"resourceVersion"}"#, None),
            (r#"{"metadata":[{"resourceVersion":"7"}]}"#, None),
            (r#"{"metadata":{"resourceVersion":""}}"#, None),
            (r#"{"metadata":{"resourceVersion":7}}"#, None),
            (r#"{"metadata":{"resourceVersion":null}}"#, None),
            (r#"[{"metadata":{"resourceVersion":"7"}}]"#, None),
            ("null", None),
            (r#""metadata""#, None),
        ] {
            assert_eq!(version_of(object).as_deref(), version, "{object}");
            assert_eq!(parsed(object).as_deref(), version, "{object}");
        }
    }

    /// Watched objects have been validated, responses have not.
    #[test]
    fn what_is_no_json_has_no_version() {
        let whole = r#"{"a":["\\"],"metadata":{"b":{"c":1},"resourceVersion":"7"#;
        for end in 0..=whole.len() {
            assert_eq!(version_of(&whole[..end]), None, "{}", &whole[..end]);
        }
        for bad in [
            r#"{"metadata" {"resourceVersion":"7"}}"#,
            r#"{metadata:{"resourceVersion":"7"}}"#,
            r#"{"metadata":{"resourceVersion":"\x"}}"#,
            r#"{"metadata":{"resourceVersion":"\ud800"}}"#,
            r#"{"a":},"metadata":{"resourceVersion":"7"}}"#,
            "{\"a\":\"\\",
            "}",
            "<html>",
        ] {
            assert_eq!(version_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn nesting_takes_no_stack() {
        let deep = 1_000_000;
        let object = format!(
            r#"{{"a":{}{},"metadata":{{"resourceVersion":"7"}}}}"#,
            "[".repeat(deep),
            "]".repeat(deep)
        );
        assert_eq!(version_of(&object).as_deref(), Some("7"));
    }

    #[test]
    fn the_metadata_is_returned_as_it_stands() {
        for (object, metadata) in [
            (
                r#"{"kind":"K","metadata": {"a":"}", "b":[{}]} ,"spec":{"metadata":{}}}"#,
                Some(r#"{"a":"}", "b":[{}]}"#),
            ),
            (
                r#"{"spec":{"metadata":{"a":1}},"metad\u0061ta":{}}"#,
                Some("{}"),
            ),
            (r#"{"metadata":12 }"#, Some("12")),
            (r#"{"metadata":"a"}"#, Some(r#""a""#)),
            (r#"{"spec":{"metadata":{}}}"#, None),
            (r#"{"metadata":{"a":1}"#, Some(r#"{"a":1}"#)),
            (r#"{"metadata":{"a":1"#, None),
        ] {
            assert_eq!(metadata_of(object), metadata, "{object}");
        }
    }
}

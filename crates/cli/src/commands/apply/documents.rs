//! Splits a text into documents, distinguishing JSON and YAML as kubectl does. Main function:
//! [`documents`].
//!
//! Everything before the first document that cannot be parsed is kept; locations are kept for
//! hints.

use serde_json::Value;
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

/// One document of a text.
pub struct Document {
    pub value: Value,
    pub place: Place,
}

/// The location of a document, for hints.
#[derive(Clone)]
pub struct Place {
    pub source: String,
    number: usize,
    line: usize,
}

impl Place {
    pub fn hint(&self, fix: &str) -> String {
        format!(
            "hint: {}, document {} (line {}): {fix}",
            self.source, self.number, self.line
        )
    }
}

/// Why the rest of a text cannot be parsed, and a hint.
pub type Broken = (String, String);

/// The documents of a text up to the first one that cannot be parsed. A text that looks like JSON
/// is parsed as JSON first.
pub fn documents(source: &str, data: &[u8]) -> (Vec<Document>, Option<Broken>) {
    let limits = Limits::default();
    let mut found = Vec::new();
    let text = match yaml::decode_text(data, &limits) {
        Ok(text) => text,
        Err(e) => return (found, Some(yaml_error(source, 0, 1, &e))),
    };
    let mut rest = &*text;
    let mut json_error = None;
    if text.trim_start().starts_with('{') {
        let mut stream = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        loop {
            let start = stream.byte_offset();
            match stream.next() {
                None => return (found, None),
                Some(Ok(value)) => {
                    let skipped = text[start..].len() - text[start..].trim_start().len();
                    let line = text[..start + skipped].matches('\n').count() + 1;
                    let place = Place {
                        source: source.to_owned(),
                        number: found.len() + 1,
                        line,
                    };
                    push(
                        &mut found,
                        Document {
                            value: whole_numbers(value),
                            place,
                        },
                    );
                }
                Some(Err(e)) => {
                    let hint = format!(
                        "hint: {source}, line {}, column {}: {e}",
                        e.line(),
                        e.column()
                    );
                    json_error = Some((
                        format!("error parsing {source}: json: offset {start}: {e}"),
                        hint,
                    ));
                    // Several objects prove that this is not YAML.
                    if found.len() > 1 {
                        return (found, json_error);
                    }
                    rest = &text[start..];
                    break;
                }
            }
        }
    }
    let first_line = text[..text.len() - rest.len()].matches('\n').count();
    let error = yaml_documents(source, rest, first_line, &limits, &mut found);
    (found, error.map(|e| json_error.unwrap_or(e)))
}

fn yaml_documents(
    source: &str,
    text: &str,
    first_line: usize,
    limits: &Limits,
    found: &mut Vec<Document>,
) -> Option<Broken> {
    let mut budget = *limits;
    let chunks = match yaml::split_documents(text, limits) {
        Ok(chunks) => chunks,
        Err(e) => return Some(yaml_error(source, found.len(), 1, &e)),
    };
    for (number, chunk) in (found.len() + 1..).zip(chunks) {
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(e) => {
                let hint = format!(
                    "hint: {source}, line {}: nothing but a comment may follow `---`",
                    first_line + e.line
                );
                return Some((format!("error parsing {source}: {}", e.message), hint));
            }
        };
        match yaml::parse_chunk(&chunk, &mut budget, Duplicates::LastWins) {
            Ok((value, line)) => {
                let place = Place {
                    source: source.to_owned(),
                    number,
                    line: first_line + line,
                };
                push(
                    found,
                    Document {
                        value: whole_numbers(value),
                        place,
                    },
                );
            }
            Err(e) => return Some(yaml_error(source, number, chunk.line, &e)),
        }
    }
    None
}

/// kubectl counts lines within the document; the hint contains those of the file.
fn yaml_error(source: &str, number: usize, first_line: usize, e: &yaml::YamlError) -> Broken {
    let within = (e.line + 1).saturating_sub(first_line);
    let message = format!(
        "error parsing {source}: error converting YAML to JSON: yaml: line {within}: {}",
        e.message
    );
    (
        message,
        format!(
            "hint: {source}, document {number}, line {}, column {}: {}",
            e.line, e.column, e.message
        ),
    )
}

fn push(found: &mut Vec<Document>, document: Document) {
    if !document.value.is_null() {
        found.push(document);
    }
}

/// Go encodes 1.0 as 1.
fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(n) => match n.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
            Some(f) if n.is_f64() && f.fract() == 0.0 && f.abs() < 9.2e18 => Value::from(f as i64),
            _ => Value::Number(n),
        },
        Value::Array(list) => list.into_iter().map(whole_numbers).collect(),
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(k, v)| (k, whole_numbers(v)))
                .collect(),
        ),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<(Value, usize, usize)>, Option<Broken>) {
        let (found, error) = documents("a.yaml", text.as_bytes());
        (
            found
                .into_iter()
                .map(|d| (d.value, d.place.number, d.place.line))
                .collect(),
            error,
        )
    }

    #[test]
    fn documents_have_numbers_and_lines() {
        let (found, error) = read("a: 1\n---\n# nothing\n---\nb: 2.0\n");
        assert_eq!(
            found,
            [
                (serde_json::json!({"a": 1}), 1, 1),
                (serde_json::json!({"b": 2}), 3, 5)
            ]
        );
        assert!(error.is_none());
        let (found, error) = read("{\"a\": 1}\n\n{\"b\": 1.0}");
        assert_eq!(
            found,
            [
                (serde_json::json!({"a": 1}), 1, 1),
                (serde_json::json!({"b": 1}), 2, 3)
            ]
        );
        assert!(error.is_none());
        let (found, error) = read("{\"a\": 1,}\n");
        assert_eq!((found.len(), error), (1, None));
    }

    #[test]
    fn what_comes_before_the_broken_document_is_kept() {
        let (found, error) = read("a: 1\n---\nb: 1\n  c: 2\n---\nd: 1\n");
        let (message, hint) = error.expect("it is broken");
        assert_eq!(found.len(), 1);
        assert!(
            message
                .starts_with("error parsing a.yaml: error converting YAML to JSON: yaml: line 2: "),
            "{message}"
        );
        assert!(
            hint.starts_with("hint: a.yaml, document 2, line 4, column "),
            "{hint}"
        );
    }
}

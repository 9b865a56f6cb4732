//! Decodes YAML values into fields as `sigs.k8s.io/yaml` and `encoding/json` decode them into Go
//! structs.
//!
//! Main type: [`Decoder`]. Scalars are converted where a string is expected, names match
//! case-insensitively, `null` changes nothing, and the first field with the wrong type is the
//! error.

use serde_json::Value;
use tiphys_gocompat::json::kind;
use tiphys_gocompat::text::float32;

pub struct Decoder {
    /// Name of the innermost struct and the names of the fields on the way to it.
    structs: Vec<&'static str>,
    path: Vec<&'static str>,
    wrong: Option<String>,
}

impl Decoder {
    /// Passes each field of a document to `field`. The name is the struct's, with its package.
    pub fn run(
        name: &'static str,
        value: &Value,
        mut field: impl FnMut(&mut Self, &str, &Value),
    ) -> Result<(), String> {
        let mut decoder = Self {
            structs: vec![plain(name)],
            path: Vec::new(),
            wrong: None,
        };
        match value {
            Value::Null => {}
            Value::Object(map) => map
                .iter()
                .for_each(|(key, value)| field(&mut decoder, &key.to_ascii_lowercase(), value)),
            other => {
                return Err(decoding(format!(
                    "json: cannot unmarshal {} into Go value of type {name}",
                    kind(other)
                )));
            }
        }
        decoder.wrong.map_or(Ok(()), |wrong| Err(decoding(wrong)))
    }

    fn wrong(&mut self, field: &'static str, value: &Value, wanted: &str) {
        let path = self
            .path
            .iter()
            .copied()
            .chain([field])
            .filter(|p| !p.is_empty())
            .collect::<Vec<_>>()
            .join(".");
        let place = self.structs.last().copied().unwrap_or_default();
        let text = format!(
            "json: cannot unmarshal {} into Go struct field {place}.{path} of type {wanted}",
            kind(value)
        );
        self.wrong.get_or_insert(text);
    }

    pub fn text(&mut self, field: &'static str, value: &Value, into: &mut String) {
        match value {
            Value::Null => {}
            Value::String(s) => into.clone_from(s),
            Value::Bool(b) => *into = b.to_string(),
            Value::Number(n) => {
                *into = n
                    .as_f64()
                    .filter(|_| n.is_f64())
                    .map_or_else(|| n.to_string(), float32)
            }
            other => self.wrong(field, other, "string"),
        }
    }

    pub fn flag(&mut self, field: &'static str, value: &Value, into: &mut bool) {
        match value {
            Value::Null => {}
            Value::Bool(b) => *into = *b,
            other => self.wrong(field, other, "bool"),
        }
    }

    pub fn texts(&mut self, field: &'static str, value: &Value, into: &mut Vec<String>) {
        into.clear();
        for item in self.list(field, value, "[]string") {
            let mut text = String::new();
            self.text(field, item, &mut text);
            into.push(text);
        }
    }

    pub fn list<'v>(&mut self, field: &'static str, value: &'v Value, wanted: &str) -> &'v [Value] {
        match value {
            Value::Null => &[],
            Value::Array(items) => items,
            other => {
                self.wrong(field, other, wanted);
                &[]
            }
        }
    }

    /// The pairs of a map of strings.
    pub fn pairs(
        &mut self,
        field: &'static str,
        value: &Value,
        mut into: impl FnMut(String, String),
    ) {
        match value {
            Value::Null => {}
            Value::Object(map) => {
                for (key, value) in map {
                    let mut text = String::new();
                    self.text(field, value, &mut text);
                    into(key.clone(), text);
                }
            }
            other => self.wrong(field, other, "map[string]string"),
        }
    }

    /// Passes the fields of a nested struct, given its type; false for `null`.
    pub fn inner(
        &mut self,
        field: &'static str,
        name: &'static str,
        value: &Value,
        mut each: impl FnMut(&mut Self, &str, &Value),
    ) -> bool {
        match value {
            Value::Null => return false,
            Value::Object(map) => {
                self.structs.push(if name.starts_with("struct ") {
                    ""
                } else {
                    plain(name)
                });
                self.path.push(field);
                map.iter()
                    .for_each(|(key, value)| each(self, &key.to_ascii_lowercase(), value));
                self.path.pop();
                self.structs.pop();
            }
            other => self.wrong(field, other, name),
        }
        true
    }
}

/// The type name without its package.
fn plain(name: &'static str) -> &'static str {
    name.rsplit('.').next().unwrap_or(name)
}

fn decoding(message: String) -> String {
    format!("error unmarshaling JSON: while decoding JSON: {message}")
}

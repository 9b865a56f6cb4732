//! Parses one file into Kubernetes objects, by Argo CD's rules.

use crate::Budget;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use tiphys_apimachinery::Object;
use tiphys_gocompat::yaml::{self, Duplicates, Limits, YamlError};

/// A file, or a part of it, that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{}", self.text())]
pub struct ManifestError {
    pub failed: Failed,
    /// Path relative to the Application's folder.
    pub file: String,
    /// Line in the file, from 1; 0 means the whole file.
    pub line: usize,
    pub message: String,
}

impl ManifestError {
    fn text(&self) -> String {
        let (file, line) = (&self.file, shown_line(self.line));
        let what = match self.failed {
            Failed::Unmarshal => "unmarshal",
            Failed::Evaluate => "evaluate jsonnet",
            Failed::UnmarshalEvaluated => "unmarshal generated json",
            Failed::Many => {
                let message = &self.message;
                return format!("Found multiple objects in \"{file}\". {message}");
            }
        };
        format!("Failed to {what} \"{file}\": {line}{}", self.message)
    }
}

/// What could not be done with a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failed {
    #[default]
    Unmarshal,
    /// A Jsonnet file.
    Evaluate,
    /// What a Jsonnet file evaluates to.
    UnmarshalEvaluated,
    /// It has more than one object.
    Many,
}

fn shown_line(line: usize) -> String {
    if line == 0 {
        String::new()
    } else {
        format!("line {line}: ")
    }
}

/// The objects of one file and the errors in it. A broken document does not hide the others.
///
/// A YAML file that contains no object and does not look like a manifest either (no `apiVersion:`,
/// `kind:` and `metadata:`) is ignored.
pub fn objects_of_text(
    file: &str,
    content: &[u8],
    budget: &Budget,
) -> (Vec<Object>, Vec<ManifestError>) {
    let mut reader = Reader {
        file,
        objects: Vec::new(),
        errors: Vec::new(),
        limits: budget.yaml,
    };
    match yaml::decode_text(content, &budget.yaml) {
        Err(e) => reader.yaml_error(e),
        Ok(text) if file.ends_with(".json") => reader.json_file(&text),
        Ok(text) => reader.yaml_file(&text),
    }
    let Reader {
        objects,
        mut errors,
        ..
    } = reader;
    if objects.is_empty() && !file.ends_with(".json") && !looks_like_manifest(content) {
        errors.retain(|(of_manifest, _)| *of_manifest);
    }
    (objects, errors.into_iter().map(|(_, e)| e).collect())
}

/// The objects of a template's output; every document in it must be one.
pub(crate) fn objects_of_template(
    template: &str,
    content: &[u8],
    budget: &Budget,
) -> (Vec<Object>, Vec<ManifestError>) {
    let mut reader = Reader {
        file: template,
        objects: Vec::new(),
        errors: Vec::new(),
        limits: budget.yaml,
    };
    match yaml::decode_text(content, &budget.yaml) {
        Err(e) => reader.yaml_error(e),
        Ok(text) => reader.yaml_file(&text),
    }
    (
        reader.objects,
        reader.errors.into_iter().map(|(_, e)| e).collect(),
    )
}

/// The objects among values that a tool made; everything must be one.
pub(crate) fn objects_of_values(
    source: &str,
    values: Vec<Value>,
) -> (Vec<Object>, Vec<ManifestError>) {
    let mut reader = Reader {
        file: source,
        objects: Vec::new(),
        errors: Vec::new(),
        limits: Limits::default(),
    };
    for (index, value) in values.into_iter().enumerate() {
        let place = Place {
            document: index + 1,
            line: 0,
        };
        reader.document(value, place);
    }
    (
        reader.objects,
        reader.errors.into_iter().map(|(_, e)| e).collect(),
    )
}

/// The objects of an evaluated Jsonnet file: one, or an array of them with nulls between.
pub(crate) fn objects_of_jsonnet(file: &str, value: Value) -> (Vec<Object>, Vec<ManifestError>) {
    let values = match value {
        Value::Array(values) => values,
        value => vec![value],
    };
    let (objects, mut errors) = objects_of_values(file, values);
    for error in &mut errors {
        error.failed = Failed::UnmarshalEvaluated;
    }
    (objects, errors)
}

fn looks_like_manifest(content: &[u8]) -> bool {
    let has = |word: &str| content.windows(word.len()).any(|w| w == word.as_bytes());
    has("apiVersion:") && has("kind:") && has("metadata:")
}

struct Reader<'a> {
    file: &'a str,
    objects: Vec<Object>,
    /// Each error, with whether the document is definitely a manifest.
    errors: Vec<(bool, ManifestError)>,
    limits: Limits,
}

/// The location of a document, for messages.
#[derive(Clone, Copy)]
struct Place {
    document: usize,
    line: usize,
}

impl Reader<'_> {
    fn error(&mut self, line: usize, message: impl Into<String>) {
        self.errors.push((
            false,
            ManifestError {
                failed: Failed::Unmarshal,
                file: self.file.to_owned(),
                line,
                message: message.into(),
            },
        ));
    }

    fn manifest_error(&mut self, line: usize, message: String) {
        self.errors.push((
            true,
            ManifestError {
                failed: Failed::Unmarshal,
                file: self.file.to_owned(),
                line,
                message,
            },
        ));
    }

    fn yaml_error(&mut self, e: YamlError) {
        let message = if e.column > 0 {
            format!("column {}: {}", e.column, e.message)
        } else {
            e.message
        };
        self.error(e.line, message);
    }

    /// A `.json` file holds exactly one object; an OCI image manifest is ignored.
    fn json_file(&mut self, text: &str) {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        match values.next() {
            None => self.error(0, "the file is empty"),
            Some(Err(e)) => self.error(e.line(), e.to_string()),
            Some(Ok(value)) => {
                let rest = text.get(values.byte_offset()..).unwrap_or_default();
                if !rest.trim().is_empty() {
                    self.error(0, "Only single objects are allowed in JSON files.");
                    if let Some((_, error)) = self.errors.last_mut() {
                        error.failed = Failed::Many;
                    }
                    return;
                }
                if !is_image_manifest(&value) {
                    self.document(
                        value,
                        Place {
                            document: 1,
                            line: 1,
                        },
                    );
                }
            }
        }
    }

    fn yaml_file(&mut self, text: &str) {
        if text.trim_start().starts_with('{') && self.json_stream(text) {
            return;
        }
        let chunks = match yaml::split_documents(text, &self.limits) {
            Ok(chunks) => chunks,
            Err(e) => return self.yaml_error(e),
        };
        let mut limits = self.limits;
        for (index, chunk) in chunks.enumerate() {
            match chunk
                .and_then(|chunk| yaml::parse_chunk(&chunk, &mut limits, Duplicates::LastWins))
            {
                Ok((value, line)) => self.document(
                    value,
                    Place {
                        document: index + 1,
                        line,
                    },
                ),
                Err(e) => self.yaml_error(e),
            }
        }
    }

    /// A file that starts like JSON is read as a stream of JSON objects. False if it turns out to
    /// be YAML.
    fn json_stream(&mut self, text: &str) -> bool {
        let mut documents = Vec::new();
        for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            match value {
                Ok(value) => documents.push(value),
                Err(_) if documents.len() <= 1 => return false,
                Err(e) => {
                    self.error(e.line(), e.to_string());
                    break;
                }
            }
        }
        for (index, value) in documents.into_iter().enumerate() {
            self.document(
                value,
                Place {
                    document: index + 1,
                    line: 0,
                },
            );
        }
        true
    }

    /// One document: empty, an object, or a list of objects.
    fn document(&mut self, mut value: Value, place: Place) {
        kubernetes_numbers(&mut value);
        let map = match value {
            Value::Null => return,
            Value::Object(map) => map,
            _ => {
                return self.error(
                    place.line,
                    format!("document {}: a manifest must be a map", place.document),
                );
            }
        };
        if map
            .get("kind")
            .and_then(Value::as_str)
            .is_none_or(str::is_empty)
        {
            return self.error(
                place.line,
                format!("document {}: Object 'Kind' is missing", place.document),
            );
        }
        match list_items(map) {
            Listed::Single(map) => self.object(map, place, None),
            Listed::Empty => {}
            Listed::Items(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    match item {
                        Value::Object(map) => self.object(map, place, Some(index + 1)),
                        _ => self.manifest_error(
                            place.line,
                            format!(
                                "document {}: item {} is not an object",
                                place.document,
                                index + 1
                            ),
                        ),
                    }
                }
            }
        }
    }

    fn object(&mut self, map: Map<String, Value>, place: Place, item: Option<usize>) {
        let object = Object(map);
        match object.check_identity() {
            Ok(()) => self.objects.push(object),
            Err(e) => {
                let item = item.map(|i| format!(", item {i}")).unwrap_or_default();
                let what = match (object.kind(), object.name()) {
                    ("", _) => String::new(),
                    (kind, "") => format!(" ({kind})"),
                    (kind, name) => format!(" ({kind} {name:?})"),
                };
                self.manifest_error(
                    place.line,
                    format!("document {}{item}{what}: {e}", place.document),
                );
            }
        }
    }
}

enum Listed {
    Single(Map<String, Value>),
    Items(Vec<Value>),
    Empty,
}

/// Any object with an array in `items` is a list of objects, whatever its kind. `items: null`
/// without spec and status is an empty list.
fn list_items(mut map: Map<String, Value>) -> Listed {
    if map.get("items").is_some_and(Value::is_null)
        && !map.contains_key("spec")
        && !map.contains_key("status")
    {
        return Listed::Empty;
    }
    match map.get_mut("items") {
        Some(Value::Array(items)) => Listed::Items(std::mem::take(items)),
        _ => Listed::Single(map),
    }
}

fn is_image_manifest(value: &Value) -> bool {
    value.get("kind").is_none()
        && value.get("schemaVersion").is_some_and(Value::is_u64)
        && value.get("layers").is_some_and(Value::is_array)
}

/// Numbers as Kubernetes decodes them: 64-bit integers if the number is whole and fits, else
/// floats.
fn kubernetes_numbers(value: &mut Value) {
    match value {
        Value::Number(n) => {
            if n.is_i64() {
                return;
            }
            let Some(float) = n.as_f64() else { return };
            let whole = if n.is_f64() && float.fract() == 0.0 && float.abs() < 1e19 {
                format!("{float}").parse::<i64>().ok()
            } else {
                None
            };
            match (whole, Number::from_f64(float)) {
                (Some(whole), _) => *value = whole.into(),
                (None, Some(float)) => *n = float,
                (None, None) => {}
            }
        }
        Value::Array(items) => items.iter_mut().for_each(kubernetes_numbers),
        Value::Object(map) => map.values_mut().for_each(kubernetes_numbers),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(file: &str, text: &str) -> (Vec<String>, Vec<String>) {
        let (objects, errors) = objects_of_text(file, text.as_bytes(), &Budget::default());
        (
            objects
                .iter()
                .map(|o| format!("{} {}", o.kind(), o.name()))
                .collect(),
            errors.iter().map(ToString::to_string).collect(),
        )
    }

    fn cm(name: &str) -> String {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
    }

    #[test]
    fn documents_and_lists() {
        let two = format!("{}---\n---\n# nothing\n---\n{}", cm("a"), cm("b"));
        assert_eq!(read("x.yaml", &two).0, ["ConfigMap a", "ConfigMap b"]);
        let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: x}}\n- {apiVersion: v1, kind: B, metadata: {generateName: y-}}\n";
        assert_eq!(
            read("x.yaml", list),
            (vec!["A x".to_owned(), "B ".to_owned()], vec![])
        );
        assert_eq!(
            read(
                "x.yaml",
                "apiVersion: v1\nitems: null\nkind: ConfigMapList\n"
            ),
            (vec![], vec![])
        );
        assert_eq!(read("x.yaml", ""), (vec![], vec![]));
        // Some hooks have no name (`generateName`); for all others the sync reports a missing name.
        assert_eq!(
            read("x.yaml", "apiVersion: v1\nkind: X\nmetadata: {}\n"),
            (vec!["X ".to_owned()], vec![])
        );
    }

    #[test]
    fn a_broken_document_does_not_hide_the_others() {
        let text = format!(
            "{}---\napiVersion: v1\nkind: ConfigMap\nmetadata: [\n---\n{}",
            cm("a"),
            cm("b")
        );
        let (objects, errors) = read("dir/x.yaml", &text);
        assert_eq!(objects, ["ConfigMap a", "ConfigMap b"]);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(
            errors[0].starts_with("Failed to unmarshal \"dir/x.yaml\": line 9: column "),
            "{errors:?}"
        );
    }

    #[test]
    fn incomplete_manifests_are_named() {
        let cases = [
            (
                "x.yaml",
                "a: 1\n---\nkind: X\nmetadata: {name: m}\napiVersion: \n",
                "line 3: document 2 (X \"m\"): field `apiVersion` is missing",
            ),
            (
                "x.yaml",
                "apiVersion: v1\nkind: X\nmetadata: {name: 5}\n",
                "line 1: document 1 (X): field `metadata.name` must be a string",
            ),
            (
                "x.yaml",
                "kind: List\nitems: [1]\n",
                "line 1: document 1: item 1 is not an object",
            ),
            (
                "x.json",
                "{\"a\":1}",
                "line 1: document 1: Object 'Kind' is missing",
            ),
            (
                "x.json",
                "[1]",
                "line 1: document 1: a manifest must be a map",
            ),
            ("x.json", "", "the file is empty"),
        ];
        for (file, text, want) in cases {
            let (_, errors) = read(file, text);
            assert_eq!(
                errors.last().map(String::as_str),
                Some(format!("Failed to unmarshal {file:?}: {want}").as_str()),
                "{text:?}"
            );
        }
        let (_, errors) = read("x.json", "{} {}");
        let many =
            "Found multiple objects in \"x.json\". Only single objects are allowed in JSON files.";
        assert_eq!(errors, [many]);
    }

    #[test]
    fn other_yaml_is_ignored_unless_it_looks_like_a_manifest() {
        assert_eq!(read("values.yaml", "replicas: 1\n"), (vec![], vec![]));
        assert_eq!(read("broken.yaml", "{{ template }}: [\n"), (vec![], vec![]));
        assert_eq!(
            read("m.json", "{\"schemaVersion\": 2, \"layers\": []}"),
            (vec![], vec![])
        );
        assert_eq!(
            read("x.yaml", "# apiVersion: kind: metadata:\na: 1\n")
                .1
                .len(),
            1
        );
        assert_eq!(
            read("x.yaml", &format!("a: 1\n---\n{}", cm("b"))).1.len(),
            1
        );
    }

    #[test]
    fn json_in_yaml_files() {
        let one = "{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"x\"}}";
        assert_eq!(read("x.yaml", &format!("{one}\n{one}")).0, ["A x", "A x"]);
        assert_eq!(
            read("x.yaml", &format!("{one}\n---\n{one}\n")).0,
            ["A x", "A x"]
        );
        assert_eq!(
            read("x.yaml", "{apiVersion: v1, kind: A, metadata: {name: x}}").0,
            ["A x"]
        );
    }

    #[test]
    fn numbers_as_kubernetes_keeps_them() {
        let mut v = json!([1, 1.0, 1e6, 1.5, u64::MAX, -3.0, 1e20, 1e300]);
        kubernetes_numbers(&mut v);
        assert_eq!(
            v,
            json!([
                1,
                1,
                1_000_000,
                1.5,
                18_446_744_073_709_551_615.0,
                -3,
                1e20,
                1e300
            ])
        );
    }
}

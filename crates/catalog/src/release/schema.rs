//! What a chart's schema refers to elsewhere: never fetched, so not checked. Pure.
//!
//! Main functions: [`cut`] and [`without_others`].

use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_render::{MemoryFiles, helm::chart::Chart};

/// Its name in a chart.
const FILE: &str = "values.schema.json";
/// Values in a schema, which are no schemas.
const DATA: [&str; 5] = ["enum", "const", "default", "examples", "example"];
/// References to the language itself, which everybody knows.
const LANGUAGE: [&str; 2] = ["http://json-schema.org/", "https://json-schema.org/"];

/// A schema that allows everything where another document would decide, and the references to such
/// documents, sorted. What is no JSON stays as it is.
pub fn without_others(schema: &[u8]) -> (Vec<u8>, Vec<String>) {
    let unchanged = || (schema.to_vec(), Vec::new());
    // The parser bounds the depth.
    let Ok(mut document) = serde_json::from_slice::<Value>(schema) else {
        return unchanged();
    };
    let (mut names, mut found) = (BTreeSet::new(), BTreeSet::new());
    collect_names(&document, &mut names);
    cut_below(&mut document, &names, &mut found);
    if found.is_empty() {
        return unchanged();
    }
    let text = document.to_string().into_bytes();
    (text, found.into_iter().collect())
}

/// The same for the schemas of a chart and of the charts in its folders.
pub(super) fn cut_files(files: &mut MemoryFiles) -> Vec<String> {
    let is_schema = |path: &str| path == FILE || path.ends_with(&format!("/{FILE}"));
    let mut all = BTreeSet::new();
    for (_, content) in files.0.iter_mut().filter(|(path, _)| is_schema(path)) {
        let (schema, found) = without_others(content);
        *content = schema;
        all.extend(found);
    }
    all.into_iter().collect()
}

/// The same for a chart and those that it contains.
pub fn cut(chart: &mut Chart) -> Vec<String> {
    let mut all = BTreeSet::new();
    cut_chart(chart, &mut all);
    all.into_iter().collect()
}

fn cut_chart(chart: &mut Chart, all: &mut BTreeSet<String>) {
    if let Some(schema) = &mut chart.schema {
        let (left, found) = without_others(schema);
        *schema = left.into();
        all.extend(found);
    }
    for dependency in &mut chart.dependencies {
        cut_chart(dependency, all);
    }
}

/// What is said about each reference.
pub fn note(reference: &str) -> String {
    let shown: String = reference.chars().take(200).collect();
    format!(
        "schema not available: {shown}: what it describes is not checked, and neither is it when \
         the chart is rendered (skipSchemaValidation)"
    )
}

/// The `$id`s within a document.
fn collect_names(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(id)) = fields.get("$id").or_else(|| fields.get("id")) {
                names.insert(id.trim_end_matches('#').to_owned());
            }
            for (_, below) in fields.iter().filter(|(key, _)| !DATA.contains(&&***key)) {
                collect_names(below, names);
            }
        }
        Value::Array(list) => list.iter().for_each(|below| collect_names(below, names)),
        _ => {}
    }
}

fn cut_below(schema: &mut Value, names: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            let references = ["$ref", "$dynamicRef", "$recursiveRef"];
            let mut references = references
                .iter()
                .filter_map(|key| fields.get(*key)?.as_str());
            if let Some(reference) = references.find(|reference| leads_out(reference, names)) {
                found.insert(reference.to_owned());
                *schema = Value::Bool(true);
                return;
            }
            for (key, below) in fields.iter_mut() {
                if !DATA.contains(&&**key) {
                    cut_below(below, names, found);
                }
            }
        }
        Value::Array(list) => list
            .iter_mut()
            .for_each(|below| cut_below(below, names, found)),
        _ => {}
    }
}

fn leads_out(reference: &str, names: &BTreeSet<String>) -> bool {
    let document = reference.split('#').next().unwrap_or_default();
    // As in Helm, an unknown `urn:` allows everything.
    let is_known = document.is_empty()
        || document.starts_with("urn:")
        || LANGUAGE.iter().any(|known| document.starts_with(known))
        || names.iter().any(|name| name.ends_with(document));
    !is_known
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_leads_out_is_cut() {
        let remote = json!({"$ref": "https://x.example/int.json#/a", "minimum": 1});
        for (schema, left, found) in [
            (
                json!({"a": remote}),
                json!({"a": true}),
                vec!["https://x.example/int.json#/a"],
            ),
            (
                json!({"allOf": [{"$ref": "../b.json"}, {"$ref": "a.json"}], "type": "object"}),
                json!({"allOf": [true, true], "type": "object"}),
                vec!["../b.json", "a.json"],
            ),
            (
                json!({"$ref": "#/$defs/a"}),
                json!({"$ref": "#/$defs/a"}),
                vec![],
            ),
            (json!({"$ref": "urn:x"}), json!({"$ref": "urn:x"}), vec![]),
            (
                json!({"$defs": {"n": {"$id": "https://x.example/n.json"}}, "$ref": "n.json"}),
                json!({"$defs": {"n": {"$id": "https://x.example/n.json"}}, "$ref": "n.json"}),
                vec![],
            ),
            (
                json!({"$ref": "http://json-schema.org/draft-07/schema#"}),
                json!({"$ref": "http://json-schema.org/draft-07/schema#"}),
                vec![],
            ),
            (
                json!({"default": remote}),
                json!({"default": remote}),
                vec![],
            ),
            // A value that is called so.
            (
                json!({"properties": {"$ref": {"type": "string"}}}),
                json!({"properties": {"$ref": {"type": "string"}}}),
                vec![],
            ),
        ] {
            let (text, references) = without_others(schema.to_string().as_bytes());
            let text: Value = serde_json::from_slice(&text).expect("JSON");
            assert_eq!(
                (text, references),
                (left, found.into_iter().map(str::to_owned).collect())
            );
        }
        for text in ["{", "", &"[".repeat(100_000)] {
            let (same, none) = without_others(text.as_bytes());
            assert_eq!((same, none.len()), (text.as_bytes().to_vec(), 0));
        }
    }
}

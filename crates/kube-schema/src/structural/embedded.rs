//! Embedded objects (`x-kubernetes-embedded-resource`): they need a kind, an apiVersion and valid
//! metadata.
//!
//! Main function: [`check`]; main type: [`Reading`].

use super::Node;
use super::problem::Problem;
use crate::cause::Cause;
use crate::formats;
use serde_json::{Map, Value};

/// The errors of embedded objects at any depth (`root`: the value itself counts as one).
pub fn check(
    node: &Node,
    value: &Value,
    path: &str,
    root: bool,
    metadata: &dyn Fn(&Value, &str) -> Vec<Cause>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    walk(node, value, path, root, metadata, &mut problems);
    problems
}

/// Decodes metadata at a path and returns the unknown fields, or an error.
type Reader = dyn Fn(&mut Value, &str) -> Result<Vec<String>, String>;

/// How embedded objects are decoded.
pub struct Reading<'a> {
    pub metadata: &'a Reader,
    /// Nulls are allowed in place of strings.
    pub keep_nulls: bool,
}

impl Reading<'_> {
    /// Decodes the metadata of embedded objects; returns the unknown fields, sorted.
    pub fn of(&self, node: &Node, value: &mut Value, path: &str) -> Result<Vec<String>, Problem> {
        let mut unknown = Vec::new();
        self.walk(node, value, path, &mut unknown)?;
        unknown.sort();
        Ok(unknown)
    }

    fn walk(
        &self,
        node: &Node,
        value: &mut Value,
        path: &str,
        unknown: &mut Vec<String>,
    ) -> Result<(), Problem> {
        match value {
            Value::Object(map) => {
                if node.embedded {
                    self.object(map, path, unknown)?;
                }
                for (key, item) in map {
                    match (node.properties.get(key), node.additional.schema()) {
                        (Some(of), _) => self.walk(of, item, &child(path, key), unknown)?,
                        (None, Some(of)) => {
                            self.walk(of, item, &format!("{path}[{key}]"), unknown)?
                        }
                        _ => {}
                    }
                }
            }
            Value::Array(list) => {
                if let Some(items) = &node.items {
                    for (i, item) in list.iter_mut().enumerate() {
                        self.walk(items, item, &format!("{path}[{i}]"), unknown)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn object(
        &self,
        map: &mut Map<String, Value>,
        path: &str,
        unknown: &mut Vec<String>,
    ) -> Result<(), Problem> {
        for key in ["apiVersion", "kind"] {
            if let Some(value) = map
                .get(key)
                .filter(|v| !(v.is_string() || self.keep_nulls && v.is_null()))
            {
                return Err(Problem::invalid(
                    &child(path, key),
                    value,
                    "must be a string",
                ));
            }
        }
        if let Some(metadata) = map.get_mut("metadata") {
            let at = child(path, "metadata");
            let before = metadata.clone();
            unknown.extend(
                (self.metadata)(metadata, &at)
                    .map_err(|why| Problem::invalid(&at, &before, &why))?,
            );
        }
        Ok(())
    }
}

fn child(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn walk(
    node: &Node,
    value: &Value,
    path: &str,
    root: bool,
    metadata: &dyn Fn(&Value, &str) -> Vec<Cause>,
    problems: &mut Vec<Problem>,
) {
    match value {
        Value::Object(map) => {
            if node.embedded || root {
                object(map, path, metadata, problems);
            }
            for (key, item) in map {
                match (node.properties.get(key), node.additional.schema()) {
                    (Some(of), _) => walk(of, item, &child(path, key), false, metadata, problems),
                    (None, Some(of)) => walk(
                        of,
                        item,
                        &format!("{path}[{key}]"),
                        false,
                        metadata,
                        problems,
                    ),
                    _ => {}
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                for (i, item) in list.iter().enumerate() {
                    walk(
                        items,
                        item,
                        &format!("{path}[{i}]"),
                        false,
                        metadata,
                        problems,
                    );
                }
            }
        }
        _ => {}
    }
}

fn object(
    map: &Map<String, Value>,
    path: &str,
    metadata: &dyn Fn(&Value, &str) -> Vec<Cause>,
    problems: &mut Vec<Problem>,
) {
    for key in ["apiVersion", "kind"] {
        if !map.contains_key(key) {
            problems.push(Problem::required(&child(path, key), ""));
        }
    }
    for (key, value) in map {
        let at = child(path, key);
        let mut bad = |detail: &str| problems.push(Problem::invalid(&at, value, detail));
        match (key.as_str(), value.as_str()) {
            ("apiVersion" | "kind", None) => bad("must be a string"),
            ("apiVersion" | "kind", Some("")) => bad("must not be empty"),
            ("apiVersion", Some(text)) if text.matches('/').count() > 1 => {
                bad(&format!("unexpected GroupVersion string: {text}"))
            }
            ("kind", Some(text)) => {
                let errors = formats::dns1035_label(&text.to_lowercase());
                if !errors.is_empty() {
                    bad(&format!(
                        "may have mixed case, but should otherwise match: {}",
                        errors.join(",")
                    ));
                }
            }
            ("metadata", _) => {
                let causes = metadata(value, &at);
                problems.extend(causes.into_iter().map(|c| Problem {
                    reason: c.reason,
                    path: c.field,
                    text: c.message,
                }));
            }
            _ => {}
        }
    }
}

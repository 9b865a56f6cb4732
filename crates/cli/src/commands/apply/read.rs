//! From texts to objects to apply: documents, lists, kinds, namespaces and labels. Main function:
//! [`read`].
//!
//! An error in one object does not hide the others; a text ends at the first part that cannot be
//! parsed, as in kubectl.

use super::{
    documents::{Document, documents},
    source::{FileArgs, Text},
};
use crate::kubectl::{failure::Trouble, kube::Target};
use serde_json::{Map, Value};
use std::sync::Arc;
use tiphys_apimachinery::{Gvk, Object, selector::LabelSelector};
use tiphys_cluster::{Kind, apply::Item};
use tiphys_gocompat::json;

/// The objects found, and the errors.
#[derive(Default)]
pub struct Found {
    pub items: Vec<Item>,
    pub trouble: Option<Trouble>,
    /// Advice with a location, for errors that have one.
    pub hints: Vec<String>,
}

/// Which objects are accepted, and how strictly they are validated.
pub struct Rules {
    pub validate: bool,
    pub selector: String,
}

/// Reads everything that the flags name.
pub async fn read(files: &FileArgs, target: &Target, rules: &Rules) -> Result<Found, Trouble> {
    read_texts(files.texts().await?, target, rules).await
}

/// Reads the given texts.
pub async fn read_texts(
    texts: Vec<Text>,
    target: &Target,
    rules: &Rules,
) -> Result<Found, Trouble> {
    let text = rules.selector.trim();
    let selector = LabelSelector::parse(text)
        .map_err(|e| Trouble::text(format!("the provided selector {text:?} is not valid: {e}")))?;
    let mut reader = Reader {
        target,
        rules,
        selector,
        found: Found::default(),
        broken: Vec::new(),
        misplaced: Vec::new(),
    };
    for text in texts {
        reader.text(text).await;
    }
    Ok(reader.finish())
}

struct Reader<'a> {
    target: &'a Target,
    rules: &'a Rules,
    selector: LabelSelector,
    found: Found,
    /// Errors found while parsing, and while checking namespaces.
    broken: Vec<Trouble>,
    misplaced: Vec<Trouble>,
}

impl Reader<'_> {
    fn finish(mut self) -> Found {
        let mut all = self.misplaced;
        match self.broken.len() {
            0 => {}
            // Parse errors are reported as one; alone they are reported line by line.
            _ if all.is_empty() => all = self.broken,
            _ => all.push(Trouble::Many(self.broken)),
        }
        self.found.trouble = (!all.is_empty()).then_some(Trouble::Many(all));
        self.found
    }

    async fn text(&mut self, text: Text) {
        let data = match text.data {
            Ok(data) => data,
            Err(problem) => return self.broken.push(Trouble::text(problem)),
        };
        let (documents, error) = documents(&text.source, &data);
        for document in documents {
            // As in kubectl, an error in the document itself ends the text.
            if let Err((problem, hint)) = self.check(&document) {
                self.found.hints.push(hint);
                return self.broken.push(Trouble::text(problem));
            }
            if let Err((trouble, fix)) = self.document(&document).await {
                self.found.hints.push(document.place.hint(&fix));
                self.broken.push(trouble);
            }
        }
        if let Some((problem, hint)) = error {
            self.found.hints.push(hint);
            self.broken.push(Trouble::text(problem));
        }
    }

    /// apiVersion and kind must be present before the rest is checked.
    fn check(&self, document: &Document) -> Result<(), (String, String)> {
        if !self.rules.validate {
            return Ok(());
        }
        let problems = identity_problems(&document.value);
        if problems.is_empty() {
            return Ok(());
        }
        let text = if let [one] = &problems[..] {
            one.clone()
        } else {
            format!("[{}]", problems.join(", "))
        };
        let message = format!(
            "error validating {:?}: error validating data: {text}; if you choose to ignore these errors, turn validation off with \
             --validate=false",
            document.place.source
        );
        let missing: Vec<&str> = ["apiVersion", "kind"]
            .into_iter()
            .filter(|f| problems.iter().any(|p| p.starts_with(f)))
            .collect();
        let fix = if missing.is_empty() {
            "it must be a map".to_owned()
        } else {
            format!("set {} to a text", missing.join(" and "))
        };
        Err((message, document.place.hint(&fix)))
    }

    async fn document(&mut self, document: &Document) -> Result<(), (Trouble, String)> {
        let source = &document.place.source;
        let undecodable = |problem: String, fix: &str| {
            (
                Trouble::text(format!("unable to decode {source:?}: {problem}")),
                fix.to_owned(),
            )
        };
        let Value::Object(map) = &document.value else {
            return Err(undecodable(
                "json: cannot unmarshal into a Kubernetes object".into(),
                "it must be a map",
            ));
        };
        let object = Object(map.clone());
        if object.kind().is_empty() {
            let text = json::to_string(&document.value);
            return Err(undecodable(
                format!("Object 'Kind' is missing in '{text}'"),
                "set kind",
            ));
        }
        if is_list(map) {
            return self.list(&object, source).await;
        }
        if let Some(problem) = metadata_problem(map) {
            return Err(undecodable(
                problem,
                "correct the field of metadata; numbers and booleans need quotes",
            ));
        }
        match self.kind(&object).await {
            Ok(kind) => self.take(object, kind, source),
            Err(problem) => {
                let message = format!(
                    "resource mapping not found for name: {:?} namespace: {:?} from {source:?}: {problem}\nensure CRDs are installed first",
                    object.name(),
                    object.namespace()
                );
                return Err((
                    Trouble::text(message),
                    "correct apiVersion and kind, or install the CRD of this kind first".into(),
                ));
            }
        }
        Ok(())
    }

    /// The elements of a list, and of lists in it. An error in one does not hide the others.
    async fn list(&mut self, list: &Object, source: &str) -> Result<(), (Trouble, String)> {
        let mut waiting = vec![list.clone()];
        let mut items = Vec::new();
        let mut at = 0;
        while at < waiting.len() {
            let current = waiting[at].clone();
            at += 1;
            match elements(&current) {
                None => items.push(current),
                Some(Ok(elements)) => waiting.extend(elements),
                Some(Err(problem)) => {
                    return Err((
                        Trouble::text(problem),
                        "give every element of items apiVersion and kind".into(),
                    ));
                }
            }
        }
        let mut problems = Vec::new();
        for item in items {
            match self.kind(&item).await {
                Ok(kind) => self.take(item, kind, source),
                Err(problem) => {
                    problems.push(Trouble::text(format!("unable to recognize {problem}")))
                }
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err((
                Trouble::Many(problems),
                "correct apiVersion and kind of its items".into(),
            ))
        }
    }

    async fn kind(&self, object: &Object) -> Result<Arc<Kind>, String> {
        let gvk = Gvk::from_api_version(object.api_version(), object.kind());
        self.target
            .discovery
            .resolve(&gvk)
            .await
            .map_err(|e| e.to_string())
    }

    /// Sets the namespace of an object and keeps the object if its labels match.
    fn take(&mut self, mut object: Object, kind: Arc<Kind>, source: &str) {
        if !self.selector.is_everything() && !self.selector.matches_object(&object) {
            return;
        }
        if !kind.namespaced {
            object.set_namespace("");
        } else if object.namespace().is_empty() {
            object.set_namespace(&self.target.namespace);
        } else if self.target.enforce && object.namespace() != self.target.namespace {
            let (theirs, ours) = (object.namespace(), &self.target.namespace);
            return self.misplaced.push(Trouble::text(format!(
                "the namespace from the provided object {theirs:?} does not match the namespace {ours:?}. You must pass \
                 '--namespace={theirs}' to perform this operation."
            )));
        }
        self.found.items.push(Item {
            kind,
            object,
            source: source.to_owned(),
        });
    }
}

fn is_list(map: &Map<String, Value>) -> bool {
    map.get("items").is_some_and(Value::is_array)
}

/// The objects in a list, with the kind that is implied by the list; `None` if it is not a list.
fn elements(list: &Object) -> Option<Result<Vec<Object>, String>> {
    if !is_list(&list.0) {
        return None;
    }
    let items = list.0.get("items").and_then(Value::as_array)?;
    let item_kind = list.kind().strip_suffix("List").unwrap_or_default();
    let read = |item: &Value| {
        let mut object = Object::from_value(item.clone()).map_err(|_| {
            format!(
                "json: cannot unmarshal {} into a Kubernetes object",
                json::kind(item)
            )
        })?;
        if object.kind().is_empty() && object.api_version().is_empty() && !item_kind.is_empty() {
            object.0.insert("kind".into(), item_kind.into());
            object
                .0
                .insert("apiVersion".into(), list.api_version().into());
        }
        if object.kind().is_empty() {
            return Err(format!(
                "Object 'Kind' is missing in '{}'",
                json::to_string(item)
            ));
        }
        Ok(object)
    };
    Some(items.iter().map(read).collect())
}

fn identity_problems(value: &Value) -> Vec<String> {
    let Some(map) = value.as_object() else {
        return vec!["invalid object to validate".into()];
    };
    let check = |field: &str| match map.get(field) {
        None | Some(Value::Null) => Some(format!("{field} not set")),
        Some(Value::String(_)) => None,
        Some(_) => Some(format!("{field} isn't string type")),
    };
    ["apiVersion", "kind"]
        .into_iter()
        .filter_map(check)
        .collect()
}

/// The error of Go's decoder for the metadata.
fn metadata_problem(map: &Map<String, Value>) -> Option<String> {
    let metadata = map.get("metadata").filter(|m| !m.is_null())?;
    let Some(metadata) = metadata.as_object() else {
        return Some(format!(
            "json: cannot unmarshal {} into Go struct field metadataOnlyObject.metadata of type v1.ObjectMeta",
            json::kind(metadata)
        ));
    };
    let wrong = |field: &str, value: &Value, ty: &str| {
        Some(format!(
            "json: cannot unmarshal {} into Go struct field ObjectMeta.metadata.{field} of type {ty}",
            json::kind(value)
        ))
    };
    for (field, value) in metadata.iter().filter(|(_, v)| !v.is_null()) {
        let problem = match field.as_str() {
            "name" | "namespace" | "generateName" | "resourceVersion" | "uid"
                if !value.is_string() =>
            {
                wrong(field, value, "string")
            }
            "labels" | "annotations" => match value.as_object() {
                None => wrong(field, value, "map[string]string"),
                Some(entries) => entries
                    .values()
                    .find(|v| !v.is_string() && !v.is_null())
                    .and_then(|v| wrong(field, v, "string")),
            },
            "ownerReferences" => {
                let owners = value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_object);
                let mut fields = owners.flat_map(|o| {
                    o.iter().filter(|(k, _)| {
                        ["apiVersion", "kind", "name", "uid"].contains(&k.as_str())
                    })
                });
                let wrong = fields.find(|(_, v)| !v.is_string() && !v.is_null());
                wrong.map(|(k, v)| {
                    let ty = if k == "uid" { "types.UID" } else { "string" };
                    format!(
                        "json: cannot unmarshal {} into Go struct field OwnerReference.metadata.ownerReferences.{k} of type {ty}",
                        json::kind(v)
                    )
                })
            }
            "finalizers" if !value.is_array() => wrong(field, value, "[]string"),
            _ => None,
        };
        if problem.is_some() {
            return problem;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_checked_as_go_does() {
        let problem = |v: Value| metadata_problem(v.as_object().expect("a map"));
        assert_eq!(
            problem(serde_json::json!({"metadata": {"labels": {"a": "b", "c": null}}})),
            None
        );
        assert_eq!(
            problem(serde_json::json!({"metadata": {"labels": {"a": 1}}})).as_deref(),
            Some(
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
            )
        );
    }
}

//! Secrets: a normal form for comparison, and a masked form for display.
//!
//! Main functions: [`normalize`] and [`mask`].

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::{access::hide_in_strings, constants};
use tiphys_apimachinery::{Object, patch::last_applied};

/// The mask of a value. Further distinct values of the same key get four more plus signs each.
const MASK: &str = "++++++++";

/// The fields that hold the values.
const FIELDS: [&str; 2] = ["data", "stringData"];
/// The fields that hold none. Any other is a misspelt one of those that do, as far as a reader of
/// manifests can know.
const OPEN_FIELDS: [&str; 5] = ["apiVersion", "kind", "metadata", "type", "immutable"];

pub fn is_secret(object: &Object) -> bool {
    object.kind() == "Secret" && object.group().is_empty()
}

/// Moves `stringData` into `data` and writes missing values as empty ones. A Secret with invalid
/// data is left unchanged, so that applying it fails with the API server's message.
pub fn normalize(secret: &mut Object) {
    fold_string_data(secret);
    if !decodes(secret) {
        return;
    }
    if let Some(Value::Object(data)) = secret.0.get_mut("data") {
        for value in data.values_mut().filter(|v| v.is_null()) {
            *value = "".into();
        }
    }
}

pub fn fold_string_data(secret: &mut Object) {
    let Some(Value::Object(plain)) = secret.0.get("stringData").cloned() else {
        return;
    };
    let mut data = match secret.0.get("data") {
        Some(Value::Object(data)) => data.clone(),
        Some(Value::Null) | None => Map::new(),
        Some(_) => return,
    };
    for (key, value) in plain {
        // A value that is not a string stays, for the API server to refuse.
        let value = value
            .as_str()
            .map_or(value.clone(), |text| STANDARD.encode(text).into());
        data.insert(key, value);
    }
    secret.0.insert("data".into(), data.into());
    secret.0.remove("stringData");
}

fn decodes(secret: &Object) -> bool {
    let valid = |v: &Value| match v {
        Value::Null => true,
        Value::String(text) => STANDARD.decode(text.replace(['\n', '\r'], "")).is_ok(),
        _ => false,
    };
    secret.0.get("data").is_none_or(|data| {
        data.as_object()
            .is_some_and(|data| data.values().all(valid))
    })
}

/// Copies of a desired and a live Secret in which every value is replaced by plus signs: equal
/// values of a key get the same number, different values different numbers, so that a reader sees
/// *that* they differ. `annotations` lists annotations to mask as well. The last-applied annotation
/// is masked the same way. A field that should be a map of values but is not is masked as one
/// value.
pub fn mask(
    desired: Option<&Object>,
    live: Option<&Object>,
    annotations: &BTreeSet<String>,
) -> (Option<Object>, Option<Object>) {
    let mut sides = [Side::new(desired), Side::new(live)];
    sides
        .iter_mut()
        .flat_map(Side::objects)
        .filter(|object| is_secret(object))
        .for_each(normalize);
    let mut fields: BTreeSet<String> = FIELDS.map(str::to_owned).into();
    for object in sides.iter_mut().flat_map(Side::objects) {
        let closed = object
            .0
            .keys()
            .filter(|key| !OPEN_FIELDS.contains(&key.as_str()));
        fields.extend(closed.cloned());
    }
    for field in &fields {
        let mut keys = BTreeSet::new();
        for object in sides.iter_mut().flat_map(Side::objects) {
            keys.extend(
                object
                    .0
                    .get(field)
                    .and_then(Value::as_object)
                    .into_iter()
                    .flat_map(|d| d.keys().cloned()),
            );
        }
        hide(&mut sides, &keys, &[field]);
    }
    hide(&mut sides, &fields, &[]);
    hide(&mut sides, annotations, &["metadata", "annotations"]);
    let [desired, live] = sides.map(|side| side.finish(annotations));
    (desired, live)
}

/// `resource.sensitive.mask.annotations` of argocd-cm: names of annotations, separated by commas.
pub fn hidden_annotations(setting: &str) -> BTreeSet<String> {
    setting
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Whether a text is what [`mask`] puts in place of a value, or JSON that has it, as in the
/// last-applied annotation.
pub fn has_mask(text: &str) -> bool {
    let text = text.trim();
    let is_mask = text.len() >= MASK.len() && text.bytes().all(|b| b == b'+');
    is_mask
        || text
            .match_indices(MASK)
            .any(|(at, _)| text[..at].ends_with('"'))
}

/// An object for display: a Secret without its values and these annotations, one of ours without
/// passwords in URLs, anything else unchanged. Each of them leaves a mark, because people send back
/// what they were shown.
pub fn shown(object: &mut Object, annotations: &BTreeSet<String>) {
    if object.group() == constants::GROUP {
        object.0.values_mut().for_each(|member| {
            hide_in_strings(member);
        });
    }
    if is_secret(object)
        && let (_, Some(masked)) = mask(None, Some(object), annotations)
    {
        *object = masked;
    }
}

/// A message about an object for display. API servers repeat values that they refuse in their
/// messages.
pub fn shown_message(message: &str, about: &Object) -> String {
    if !is_secret(about) {
        return message.to_owned();
    }
    let mut values = BTreeSet::new();
    for field in FIELDS {
        about
            .0
            .get(field)
            .into_iter()
            .for_each(|value| scalars(value, &mut values));
    }
    // The longest first, because one may be part of another.
    let mut values: Vec<_> = values.into_iter().filter(|v| v.len() > 2).collect();
    values.sort_by_key(|v| std::cmp::Reverse(v.len()));
    values.iter().fold(message.to_owned(), |text, value| {
        text.replace(value.as_str(), MASK)
    })
}

/// The values in the forms in which a message may contain them.
fn scalars(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => {
            out.insert(number.to_string());
        }
        Value::String(text) => {
            let decoded = STANDARD
                .decode(text.replace(['\n', '\r'], ""))
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok());
            for form in decoded.iter().chain([text, &STANDARD.encode(text)]) {
                let quoted = Value::from(form.as_str()).to_string();
                out.insert(quoted.trim_matches('"').to_owned());
                out.insert(form.clone());
            }
        }
        Value::Array(list) => list.iter().for_each(|value| scalars(value, out)),
        Value::Object(map) => map.values().for_each(|value| scalars(value, out)),
    }
}

/// An object and its last-applied configuration.
struct Side {
    object: Option<Object>,
    last_applied: Option<Object>,
    /// The annotation exists but cannot be parsed, so it cannot be masked value by value.
    unreadable: bool,
}

impl Side {
    fn new(object: Option<&Object>) -> Self {
        let text = object.and_then(|o| o.annotation(last_applied::ANNOTATION));
        let parsed = text.map(|text| {
            serde_json::from_str::<Value>(text)
                .ok()
                .and_then(|v| Object::from_value(v).ok())
        });
        let unreadable = matches!(parsed, Some(None));
        Self {
            object: object.cloned(),
            last_applied: parsed.flatten(),
            unreadable,
        }
    }

    fn objects(&mut self) -> impl Iterator<Item = &mut Object> {
        self.object.iter_mut().chain(self.last_applied.iter_mut())
    }

    fn finish(self, hidden: &BTreeSet<String>) -> Option<Object> {
        let mut object = self.object?;
        let whole = self.unreadable
            || (self.last_applied.is_some() && hidden.contains(last_applied::ANNOTATION));
        if whole {
            object.set_annotation(last_applied::ANNOTATION, MASK);
        } else if let Some(last) = self.last_applied {
            object.set_annotation(last_applied::ANNOTATION, &Value::Object(last.0).to_string());
        }
        Some(object)
    }
}

fn hide(sides: &mut [Side; 2], keys: &BTreeSet<String>, path: &[&str]) {
    let [desired, live] = sides;
    // Objects before their last-applied configuration, so that the visible ones get the shortest
    // masks.
    let order = [
        &mut desired.object,
        &mut live.object,
        &mut desired.last_applied,
        &mut live.last_applied,
    ];
    let mut maps: Vec<&mut Map<String, Value>> = order
        .into_iter()
        .flatten()
        .filter_map(|o| map_at(&mut o.0, path))
        .collect();
    for key in keys {
        let mut masks: BTreeMap<String, String> = BTreeMap::new();
        for map in &mut maps {
            let Some(value) = map.get_mut(key) else {
                continue;
            };
            // The map itself: its values are already masked.
            if path.is_empty() && (value.is_object() || value.is_null()) {
                continue;
            }
            let plain = value.as_str().map_or_else(
                || {
                    if value.is_null() {
                        String::new()
                    } else {
                        value.to_string()
                    }
                },
                str::to_owned,
            );
            let next = format!("{MASK}{}", "++++".repeat(masks.len()));
            *value = masks.entry(plain).or_insert(next).clone().into();
        }
    }
}

fn map_at<'a>(
    map: &'a mut Map<String, Value>,
    path: &[&str],
) -> Option<&'a mut Map<String, Value>> {
    path.iter()
        .try_fold(map, |map, step| map.get_mut(*step)?.as_object_mut())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LAST: &str = last_applied::ANNOTATION;

    #[test]
    fn what_is_ours_shows_no_password_of_a_url() {
        // Behind the last password is a quote that JSON escapes.
        let last = r#"{"spec":{"source":{"repoURL":"https://me:CANARY@git.example/r","helm":{"values":"a: \"https://h/v?token=CANARY\""}}}}"#;
        let mut app = Object::from_value(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "a", "annotations": {LAST: last}},
            "spec": {"source": {"repoURL": "https://me:CANARY@git.example/r", "helm": {"valueFiles": ["https://u:CANARY@h/v.yaml"]}}}}))
        .expect("a map");
        shown(&mut app, &BTreeSet::new());
        let text = Value::Object(app.0.clone()).to_string();
        assert!(
            !text.contains("CANARY") && text.contains("https://me:******@git.example/r"),
            "{text}"
        );
        let shown_last = app.annotation(LAST).expect("it is still there");
        let shown_last: Value = serde_json::from_str(shown_last).expect("still JSON");
        assert_eq!(
            shown_last["spec"]["source"]["helm"]["values"],
            json!("a: \"https://h/v?token=******\"")
        );
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "https://me:kept@host"}});
        let mut map = Object::from_value(map).expect("a map");
        let before = map.clone();
        shown(&mut map, &BTreeSet::new());
        assert_eq!(map, before);
    }

    #[test]
    fn a_mask_is_recognized() {
        for (text, is_one) in [
            ("++++++++", true),
            ("++++++++++++\n", true),
            (r#"{"data":{"a":"++++++++++++"}}"#, true),
            ("+++++++", false),
            ("++++++++aa==", false),
            ("", false),
        ] {
            assert_eq!(has_mask(text), is_one, "{text}");
        }
    }

    #[test]
    fn no_form_of_a_secret_shows_its_values() {
        let hidden = BTreeSet::from(["token".to_owned()]);
        let forms = [
            json!({"data": {"a": "Q0FOQVJZ"}, "stringData": {"b": "CANARY"}}),
            json!({"data": ["CANARY"]}),
            json!({"data": "CANARY"}),
            json!({"data": {"a": ["CANARY"]}}),
            json!({"data": {"a": {"b": "CANARY"}}}),
            json!({"data": {"a": 1_234_567}}),
            json!({"data": 1_234_567}),
            json!({"data": [], "stringData": {"b": "CANARY"}}),
            json!({"data": "", "stringData": {"b": "CANARY"}}),
            json!({"data": null, "stringData": ["CANARY"]}),
            json!({"stringData": "CANARY"}),
            json!({"stringData": [{"b": "CANARY"}]}),
            json!({"stringData": {"b": ["CANARY"]}}),
            json!({"stringData": {"b": 1_234_567}}),
            json!({"data": {"a": "not base64 CANARY"}, "stringData": {"b": "CANARY"}}),
            json!({"metadata": {"annotations": {"token": "CANARY"}}}),
            json!({"Data": {"a": "CANARY"}, "stringdata": {"b": ["CANARY"]}, "extra": "CANARY"}),
        ];
        for form in forms {
            let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {"kept": "yes"}}});
            tiphys_apimachinery::patch::json_merge::apply_in_place(&mut object, &form)
                .expect("maps");
            let last = object.to_string();
            let mut with_last = object.clone();
            with_last["metadata"]["annotations"][LAST] = last.into();
            for object in [object, with_last] {
                let object = Object::from_value(object).expect("a map");
                let mut alone = object.clone();
                shown(&mut alone, &hidden);
                let (desired, live) = mask(Some(&object), Some(&object), &hidden);
                for shown in [Some(alone), desired, live].into_iter().flatten() {
                    let text = Value::Object(shown.0.clone()).to_string();
                    assert!(
                        !text.contains("CANARY")
                            && !text.contains("Q0FOQVJZ")
                            && !text.contains("1234567"),
                        "{form}: {text}"
                    );
                    assert_eq!(shown.annotation("kept"), Some("yes"));
                    if let Some(last) = shown.annotation(LAST) {
                        let last: Value =
                            serde_json::from_str(last).expect("last-applied stays JSON");
                        assert_eq!(last["kind"], "Secret");
                    }
                }
            }
        }
        let mut map = Object::from_value(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}),
        )
        .expect("a map");
        shown(&mut map, &hidden);
        assert_eq!(map.0["data"]["a"], "b");
    }

    #[test]
    fn a_refusal_does_not_repeat_values() {
        let secret = Object::from_value(
            json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "CAN\"ARY", "n": 1_234_567}, "data": {"b": "Q0FOQVJZ"}}),
        )
        .expect("a map");
        for message in [
            r#".stringData.a: expected string, got &value.valueUnstructured{Value:"CAN\"ARY"}"#,
            ".stringData.n: expected string, got &value.valueUnstructured{Value:1234567}",
            "Secret \"s\" is invalid: data[b]: Invalid value: \"Q0FOQVJZ\"",
            "Invalid value: CANARY",
        ] {
            let shown = shown_message(message, &secret);
            assert!(
                shown.contains(MASK)
                    && !shown.contains("ARY")
                    && !shown.contains("Q0FOQVJZ")
                    && !shown.contains("1234567"),
                "{shown}"
            );
        }
    }
}

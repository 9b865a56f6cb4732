//! Secrets: one form for comparing them, and a masked one for showing them.
//!
//! Main functions: [`normalize`] and [`mask`].

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use tiphys_apimachinery::{Object, patch::last_applied};

/// What a masked value starts with; further different values of the same key get four more each.
const MASK: &str = "++++++++";

pub fn is_secret(object: &Object) -> bool {
    object.kind() == "Secret" && object.group().is_empty()
}

/// Moves `stringData` into `data` and writes missing values as empty ones. A Secret whose data is not valid is left as it is, so that
/// applying it fails with the API server's words.
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

fn fold_string_data(secret: &mut Object) {
    let Some(Value::Object(plain)) = secret.0.get("stringData").cloned() else { return };
    let mut data = match secret.0.get("data") {
        Some(Value::Object(data)) => data.clone(),
        Some(Value::Null) | None => Map::new(),
        Some(_) => return,
    };
    for (key, value) in plain {
        // What is not text stays: the API server is to refuse it.
        let value = value.as_str().map_or(value.clone(), |text| STANDARD.encode(text).into());
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
    secret.0.get("data").is_none_or(|data| data.as_object().is_some_and(|data| data.values().all(valid)))
}

/// Copies of a desired and a live Secret in which every value is replaced by plus signs: the same number for equal values of a key,
/// different numbers for different ones, so that a reader sees *that* they differ. `annotations` names annotations to hide as well.
/// What was applied last is hidden with them.
pub fn mask(desired: Option<&Object>, live: Option<&Object>, annotations: &BTreeSet<String>) -> (Option<Object>, Option<Object>) {
    let mut sides = [Side::new(desired), Side::new(live)];
    let mut keys = BTreeSet::new();
    for object in sides.iter_mut().flat_map(Side::objects) {
        if is_secret(object) {
            normalize(object);
        }
        keys.extend(object.0.get("data").and_then(Value::as_object).into_iter().flat_map(|d| d.keys().cloned()));
    }
    hide(&mut sides, &keys, &["data"]);
    hide(&mut sides, annotations, &["metadata", "annotations"]);
    let [desired, live] = sides.map(|side| side.finish(annotations));
    (desired, live)
}

/// An object and what it remembers as applied last.
struct Side {
    object: Option<Object>,
    last_applied: Option<Object>,
    /// The annotation is there but cannot be read, so it cannot be masked value by value.
    unreadable: bool,
}

impl Side {
    fn new(object: Option<&Object>) -> Self {
        let text = object.and_then(|o| o.annotation(last_applied::ANNOTATION));
        let parsed = text.map(|text| serde_json::from_str::<Value>(text).ok().and_then(|v| Object::from_value(v).ok()));
        let unreadable = matches!(parsed, Some(None));
        Self { object: object.cloned(), last_applied: parsed.flatten(), unreadable }
    }

    fn objects(&mut self) -> impl Iterator<Item = &mut Object> {
        self.object.iter_mut().chain(self.last_applied.iter_mut())
    }

    fn finish(self, hidden: &BTreeSet<String>) -> Option<Object> {
        let mut object = self.object?;
        let whole = self.unreadable || (self.last_applied.is_some() && hidden.contains(last_applied::ANNOTATION));
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
    // Objects before what they remember: so the visible ones get the shortest masks.
    let order = [&mut desired.object, &mut live.object, &mut desired.last_applied, &mut live.last_applied];
    let mut maps: Vec<&mut Map<String, Value>> = order.into_iter().flatten().filter_map(|o| map_at(&mut o.0, path)).collect();
    for key in keys {
        let mut masks: BTreeMap<String, String> = BTreeMap::new();
        for map in &mut maps {
            let Some(value) = map.get_mut(key) else { continue };
            let plain = value.as_str().map_or_else(|| if value.is_null() { String::new() } else { value.to_string() }, str::to_owned);
            let next = format!("{MASK}{}", "++++".repeat(masks.len()));
            *value = masks.entry(plain).or_insert(next).clone().into();
        }
    }
}

fn map_at<'a>(map: &'a mut Map<String, Value>, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    path.iter().try_fold(map, |map, step| map.get_mut(*step)?.as_object_mut())
}

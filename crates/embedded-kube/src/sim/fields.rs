//! Helpers that read fields several controllers use: times, conditions, owners, counts.

use super::kind::Kind;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use tiphys_apimachinery::Object;
use tiphys_gocompat::fnv::hash32a;

/// As Kubernetes writes times: UTC, whole seconds.
pub fn rfc3339(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second())
        .unwrap_or(time)
        .to_string()
}

pub fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// `time` plus some seconds, saturating.
pub fn after(time: Timestamp, seconds: i64) -> Timestamp {
    time.saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX)
}

/// A condition of `status.conditions`.
pub fn condition<'a>(object: &'a Object, kind: &str) -> Option<&'a Value> {
    find_condition(object.pointer("/status/conditions")?.as_array()?, kind)
}

pub fn find_condition<'a>(list: &'a [Value], kind: &str) -> Option<&'a Value> {
    list.iter().find(|c| text(c, "type") == kind)
}

pub fn conditions(object: &Object) -> Vec<Value> {
    object
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

pub fn condition_is_true(object: &Object, kind: &str) -> bool {
    condition(object, kind).is_some_and(|c| text(c, "status") == "True")
}

pub fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("")
}

/// The significant parts of a condition.
#[derive(Clone, Copy, Debug)]
pub struct Cond<'a> {
    pub kind: &'a str,
    pub status: bool,
    pub reason: &'a str,
    pub message: &'a str,
}

impl Cond<'_> {
    fn value(&self, transition: &str) -> Map<String, Value> {
        let mut map = Map::new();
        map.insert("type".into(), self.kind.into());
        map.insert(
            "status".into(),
            if self.status { "True" } else { "False" }.into(),
        );
        map.insert("lastTransitionTime".into(), transition.into());
        for (key, value) in [("reason", self.reason), ("message", self.message)] {
            if !value.is_empty() {
                map.insert(key.into(), value.into());
            }
        }
        map
    }
}

/// Sets a condition; the transition time changes only with the status. An unchanged condition keeps
/// its position.
pub fn set_condition(list: &mut Vec<Value>, cond: Cond<'_>, now: Timestamp) {
    let now = rfc3339(now);
    let status = if cond.status { "True" } else { "False" };
    match list.iter_mut().find(|c| text(c, "type") == cond.kind) {
        Some(old) => {
            let since = if text(old, "status") == status {
                text(old, "lastTransitionTime").to_owned()
            } else {
                now
            };
            let mut new = cond.value(&since);
            // Additional fields of the kind's own conditions (lastProbeTime, observedGeneration)
            // are kept.
            for (key, value) in old.as_object().into_iter().flatten() {
                if !matches!(key.as_str(), "reason" | "message") {
                    new.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
            *old = Value::Object(new);
        }
        None => list.push(Value::Object(cond.value(&now))),
    }
}

pub fn remove_condition(list: &mut Vec<Value>, kind: &str) {
    list.retain(|c| text(c, "type") != kind);
}

/// An owner reference with `controller` and `blockOwnerDeletion` set.
pub fn owner_reference(owner: &Object) -> Value {
    json!({
        "apiVersion": owner.api_version(), "kind": owner.kind(), "name": owner.name(), "uid": owner.uid(),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// A new object of `kind` in `owner`'s namespace that `owner` controls.
pub fn owned_object(kind: Kind, owner: &Object, name: &str) -> Object {
    let mut object = Object::skeleton(&kind.gvk(), owner.namespace(), name);
    object
        .metadata_mut()
        .insert("ownerReferences".into(), json!([owner_reference(owner)]));
    object
}

/// Sets a string map of `metadata` (labels, annotations), leaving out an empty one.
pub fn set_metadata_map(object: &mut Object, field: &str, map: Option<&Value>) {
    if let Some(Value::Object(map)) = map
        && !map.is_empty()
    {
        object
            .metadata_mut()
            .insert(field.into(), Value::Object(map.clone()));
    }
}

/// A field of `spec` as an integer.
pub fn spec_i64(object: &Object, field: &str, default: i64) -> i64 {
    object
        .pointer("/spec")
        .and_then(|s| s.get(field))
        .and_then(Value::as_i64)
        .unwrap_or(default)
}

pub fn spec_bool(object: &Object, field: &str) -> bool {
    object
        .pointer("/spec")
        .and_then(|s| s.get(field))
        .and_then(Value::as_bool)
        .unwrap_or(false)
}

pub fn status_i64(object: &Object, field: &str) -> i64 {
    object
        .pointer("/status")
        .and_then(|s| s.get(field))
        .and_then(Value::as_i64)
        .unwrap_or(0)
}

/// Sets `spec.<field>`.
pub fn set_spec(object: &mut Object, field: &str, value: Value) {
    tiphys_apimachinery::object::map_entry(&mut object.0, "spec").insert(field.into(), value);
}

/// Inserts counts that are not zero, as `omitempty` does.
pub fn put_counts(status: &mut Map<String, Value>, counts: &[(&str, i64)]) {
    for (field, count) in counts {
        if *count != 0 {
            status.insert((*field).into(), (*count).into());
        }
    }
}

/// A number or a percentage of `total`, as `maxSurge` and `maxUnavailable` are.
pub fn int_or_percent(value: Option<&Value>, total: i64, round_up: bool, default: i64) -> i64 {
    match value {
        Some(Value::Number(n)) => n.as_i64().unwrap_or(default),
        Some(Value::String(s)) => match s.strip_suffix('%').unwrap_or(s).parse::<i64>() {
            Ok(percent) if s.ends_with('%') => {
                let product = percent.saturating_mul(total);
                if round_up {
                    (product + 99).div_euclid(100)
                } else {
                    product.div_euclid(100)
                }
            }
            Ok(number) => number,
            Err(_) => default,
        },
        _ => default,
    }
}

/// Whether two values are equal to a typed reader: an absent field, `null`, an empty map and an
/// empty list are the same.
pub fn same_meaning(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let within = |from: &Map<String, Value>, to: &Map<String, Value>| {
                from.iter().all(|(key, value)| {
                    to.get(key)
                        .map_or_else(|| is_void(value), |other| same_meaning(value, other))
                })
            };
            within(a, b)
                && b.iter()
                    .all(|(key, value)| a.contains_key(key) || is_void(value))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_meaning(a, b))
        }
        _ => a == b || (is_void(a) && is_void(b)),
    }
}

/// [`same_meaning`] of two objects.
pub fn same_object(a: &Object, b: &Object) -> bool {
    let covers = |a: &Object, b: &Object| {
        a.0.iter()
            .all(|(key, value)| same_meaning(value, b.0.get(key).unwrap_or(&Value::Null)))
    };
    covers(a, b) && covers(b, a)
}

/// Whether a value is empty at every depth.
fn is_void(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_void),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// A short name part made from a JSON value: the 32-bit FNV-1a of its text, spelled in letters that
/// form no words.
pub fn short_hash(value: &Value, salt: i64) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let text = format!(
        "{value}{}",
        if salt == 0 {
            String::new()
        } else {
            salt.to_string()
        }
    );
    hash32a(text.bytes())
        .to_string()
        .bytes()
        .map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_null_and_empty_mean_the_same() {
        for (a, b, want) in [
            (json!({"a": 1, "resources": {}}), json!({"a": 1}), true),
            (json!({"m": {"creationTimestamp": null}}), json!({}), true),
            (json!({"l": []}), json!({"l": null}), true),
            (json!({"l": [{}]}), json!({"l": []}), false),
            (json!({"a": 1}), json!({"a": 2}), false),
            (json!({"a": ""}), json!({}), false),
            (json!({}), json!({"a": 0}), false),
        ] {
            assert_eq!(
                (same_meaning(&a, &b), same_meaning(&b, &a)),
                (want, want),
                "{a} {b}"
            );
        }
    }

    #[test]
    fn percentages_round_as_asked() {
        for (value, total, up, want) in [
            (json!("25%"), 3, true, 1),
            (json!("25%"), 3, false, 0),
            (json!("25%"), 10, true, 3),
            (json!("100%"), 7, false, 7),
            (json!(2), 10, true, 2),
            (json!("x"), 10, true, 9),
        ] {
            assert_eq!(
                int_or_percent(Some(&value), total, up, 9),
                want,
                "{value} of {total}"
            );
        }
    }

    #[test]
    fn a_condition_keeps_its_transition_time_while_its_status_stays() {
        let at = |s| Timestamp::from_second(s).expect("in range");
        let mut list = Vec::new();
        set_condition(
            &mut list,
            Cond {
                kind: "Ready",
                status: true,
                reason: "A",
                message: "",
            },
            at(10),
        );
        set_condition(
            &mut list,
            Cond {
                kind: "Ready",
                status: true,
                reason: "B",
                message: "m",
            },
            at(20),
        );
        assert_eq!(
            list,
            [
                json!({"type": "Ready", "status": "True", "reason": "B", "message": "m", "lastTransitionTime": "1970-01-01T00:00:10Z"})
            ]
        );
        set_condition(
            &mut list,
            Cond {
                kind: "Ready",
                status: false,
                reason: "C",
                message: "",
            },
            at(30),
        );
        assert_eq!(text(&list[0], "lastTransitionTime"), "1970-01-01T00:00:30Z");
        assert!(list[0].get("message").is_none());
    }

    #[test]
    fn the_hash_depends_on_value_and_salt() {
        let a = short_hash(&json!({"a": 1}), 0);
        assert_eq!(a, short_hash(&json!({"a": 1}), 0));
        assert_ne!(a, short_hash(&json!({"a": 2}), 0));
        assert_ne!(a, short_hash(&json!({"a": 1}), 1));
    }
}

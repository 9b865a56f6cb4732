//! Names of fields as Go reads them, to which upper and lower case are the same. Pure.

use serde_json::Value;
use std::borrow::Cow;

/// Of an index.
pub(crate) const INDEX: &[&str] = &["apiVersion", "entries"];

const ENTRY: &[&str] = &[
    "name",
    "version",
    "description",
    "home",
    "icon",
    "appVersion",
    "digest",
    "created",
    "deprecated",
    "urls",
    "keywords",
    "sources",
    "maintainers",
    "annotations",
];
const PERSON: &[&str] = &["name", "email", "url"];

/// The same value with these names as they are written here.
pub(crate) fn named<'v>(value: &'v Value, names: &[&str]) -> Cow<'v, Value> {
    let Some(map) = value.as_object() else {
        return Cow::Borrowed(value);
    };
    let meant = |key: &str| {
        let is_meant = |name: &&&str| name.len() == key.len() && name.eq_ignore_ascii_case(key);
        names.iter().find(is_meant).copied()
    };
    let is_odd = |key: &String| meant(key).is_some_and(|name| name != key);
    if !map.keys().any(is_odd) {
        return Cow::Borrowed(value);
    }
    let mut fields: Vec<(&str, &str)> = map
        .keys()
        .filter_map(|key| Some((key.as_str(), meant(key)?)))
        .collect();
    // Of several, Go takes the last in this order; `null` changes nothing.
    fields.sort_unstable();
    let mut whole = map.clone();
    whole.retain(|key, _| !is_odd(key));
    for (key, name) in fields {
        let field = &map[key];
        if !field.is_null() || !whole.contains_key(name) {
            whole.insert(name.to_owned(), field.clone());
        }
    }
    Cow::Owned(Value::Object(whole))
}

/// The same for an entry, and the people in it.
pub(crate) fn entry(value: &Value) -> Cow<'_, Value> {
    let mut entry = named(value, ENTRY);
    let people = entry.get("maintainers").and_then(Value::as_array);
    let is_odd = |person: &Value| matches!(named(person, PERSON), Cow::Owned(_));
    if !people.is_some_and(|people| people.iter().any(is_odd)) {
        return entry;
    }
    if let Some(Value::Array(people)) = entry.to_mut().get_mut("maintainers") {
        for person in people {
            let read = named(person, PERSON).into_owned();
            *person = read;
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_of_fields_are_read_whatever_their_case() {
        let written = json!({
            "NAME": "pump", "Version": "1.0.0", "appversion": "2", "AppVersion": "1", "kind": "x",
            "description": null, "Description": "d", "Icon": null,
            "Maintainers": [{"Name": "a", "EMAIL": "b"}, null, {"url": "c"}],
        });
        let read = json!({
            "name": "pump", "version": "1.0.0", "appVersion": "2", "kind": "x",
            "description": "d", "icon": null,
            "maintainers": [{"name": "a", "email": "b"}, null, {"url": "c"}],
        });
        assert_eq!(*entry(&written), read);
        assert!(matches!(entry(&read), Cow::Borrowed(_)));
        assert!(matches!(entry(&json!(["Name"])), Cow::Borrowed(_)));
    }
}

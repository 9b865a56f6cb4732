//! ConfigMaps and Secrets.

use super::rules::At;
use crate::status::Cause;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::formats;

const MAX_SIZE: usize = 1024 * 1024;
const FROZEN: &str = "field is immutable when `immutable` is set";
const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// The keys that a type of secret needs, and whether the value must be JSON.
const KEYS: [(&str, &[&str], bool); 3] = [
    ("kubernetes.io/dockercfg", &[".dockercfg"], true),
    (
        "kubernetes.io/dockerconfigjson",
        &[".dockerconfigjson"],
        true,
    ),
    ("kubernetes.io/tls", &["tls.crt", "tls.key"], false),
];

pub fn config_map(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let (data, binary) = (
        At::of(object, old, "data"),
        At::of(object, old, "binaryData"),
    );
    // Without strings an empty map is the default, so it does not count as a change.
    let had_texts = data
        .old
        .and_then(Value::as_object)
        .is_some_and(|old| !old.is_empty());
    let texts_changed = data.is_changed() && (had_texts || !data.is_empty());
    frozen(
        object,
        old,
        &[(&data, texts_changed), (&binary, binary.is_changed())],
        causes,
    );
    keys(&data, causes);
    for (key, value) in data
        .entries()
        .iter()
        .filter(|(key, _)| binary.value.get(key).is_some())
    {
        causes.push(Cause::invalid(
            &value.path,
            &(*key).into(),
            "duplicate of key present in binaryData",
        ));
    }
    keys(&binary, causes);
    let size: usize =
        data.entries().iter().map(|(_, v)| v.len()).sum::<usize>() + decoded_size(&binary);
    if size > MAX_SIZE {
        causes.push(At::new(&Value::Null, "[]").too_long(MAX_SIZE));
    }
}

pub fn secret(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let kind = At::of(object, old, "type");
    if kind.is_changed() {
        causes.push(kind.invalid("field is immutable"));
    }
    let data = At::of(object, old, "data");
    frozen(object, old, &[(&data, data.is_changed())], causes);
    keys(&data, causes);
    if decoded_size(&data) > MAX_SIZE {
        causes.push(data.too_long(MAX_SIZE));
    }
    let missing = |key: &str| data.value.get(key).is_none();
    let required = |key: &str| data.key(key).required("");
    match kind.text() {
        "kubernetes.io/service-account-token"
            if object.annotation(ACCOUNT).is_none_or(str::is_empty) =>
        {
            causes.push(Cause::required(
                &format!("metadata.annotations[{ACCOUNT}]"),
                "",
            ));
        }
        "kubernetes.io/basic-auth" if missing("username") && missing("password") => {
            causes.extend([required("username"), required("password")]);
        }
        "kubernetes.io/ssh-auth" if data.key("ssh-privatekey").is_empty() => {
            causes.push(required("ssh-privatekey"))
        }
        _ => {}
    }
    let Some((_, keys, json)) = KEYS.iter().find(|(of, ..)| *of == kind.text()) else {
        return;
    };
    for key in *keys {
        if missing(key) {
            causes.push(required(key));
        } else if let (true, Some(problem)) = (*json, not_a_json_map(data.key(key).text())) {
            causes.push(
                data.key(key)
                    .invalid_as("<secret contents redacted>", &problem),
            );
        }
    }
}

/// `fields`: the contents, and whether they changed.
fn frozen(
    object: &Object,
    old: Option<&Object>,
    fields: &[(&At<'_>, bool)],
    causes: &mut Vec<Cause>,
) {
    if old.is_none_or(|old| old.0.get("immutable") != Some(&Value::Bool(true))) {
        return;
    }
    let immutable = At::of(object, old, "immutable");
    if !immutable.is_true() {
        causes.push(immutable.forbidden(FROZEN));
    }
    causes.extend(
        fields
            .iter()
            .filter(|(_, changed)| *changed)
            .map(|(at, _)| at.forbidden(FROZEN)),
    );
}

fn keys(data: &At<'_>, causes: &mut Vec<Cause>) {
    for (key, value) in data.entries() {
        causes.extend(
            formats::config_key(key)
                .iter()
                .map(|problem| Cause::invalid(&value.path, &key.into(), problem)),
        );
    }
}

/// Of base64 values.
fn decoded_size(data: &At<'_>) -> usize {
    let size = |text: &str| {
        text.len() / 4 * 3
            - text
                .bytes()
                .rev()
                .take_while(|b| *b == b'=')
                .count()
                .min(text.len() / 4 * 3)
    };
    data.entries().iter().map(|(_, v)| size(v.text())).sum()
}

/// Go's JSON error about a value that should be a map.
fn not_a_json_map(base64: &str) -> Option<String> {
    let bytes = STANDARD.decode(base64).unwrap_or_default();
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => None,
        Ok(other) => {
            let word = tiphys_gocompat::json::kind(&other);
            Some(format!(
                "json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"
            ))
        }
        // Input that only Go accepts is valid.
        Err(_) => tiphys_kube_schema::gotypes::syntax_error(&bytes),
    }
}

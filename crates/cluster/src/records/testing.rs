//! What the tests of several modules need. Main function: [`secret`].

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use tiphys_apimachinery::Object;

/// The Secret `s` of a kind, with this data.
pub fn secret(kind: &str, data: &[(&str, &str)]) -> Object {
    let data: Map<String, Value> = data
        .iter()
        .map(|(k, v)| ((*k).to_owned(), STANDARD.encode(v).into()))
        .collect();
    Object::from_value(json!({
        "kind": "Secret",
        "metadata": {"name": "s", "labels": {"argocd.argoproj.io/secret-type": kind}},
        "data": data,
    }))
    .expect("a map")
}

//! Health of the built-in kinds, against what Argo CD said about the same objects.

mod common;

use serde_json::{Value, json};
use tiphys_apimachinery::Object;
use tiphys_engine::health;

#[test]
fn builtin_kinds_are_judged_as_by_argo_cd() {
    let Some(cases) = common::cases("health_builtin.jsonl") else { return };
    let mut failures = Vec::new();
    for case in &cases {
        let object = Object::from_value(case["input"].clone()).expect("an object");
        let got = health::of(&object).map_or(Value::Null, |h| json!({"status": h.status.as_str(), "message": h.message}));
        let mut expected = case["expected"].clone();
        if let Value::Object(map) = &mut expected {
            map.remove("error");
            map.entry("message").or_insert_with(|| json!(""));
        }
        if got != expected {
            failures.push(format!("{}: got {got}, expected {expected}", case["id"]));
        }
    }
    common::report("health_builtin", &failures, cases.len(), cases.len());
}

//! Suites `health_builtin` and `health`: Argo CD's results for the same objects.

use super::{Verdict, same};
use serde_json::{Value, json};
use tiphys_apimachinery::Object;
use tiphys_engine::{health, types::Health};

pub fn built_in(case: &Value) -> Verdict {
    same(&expected(case), &as_json(health::of(&object(case)?)))
}

/// Custom kinds, with the built-in rules only. The cases are about a kind's fields, whether or not
/// the object is being deleted.
pub fn custom(case: &Value) -> Verdict {
    same(
        &expected(case),
        &as_json(health::of_kind(&object(case)?).map_err(|e| e.to_string())?),
    )
}

fn object(case: &Value) -> Result<Object, String> {
    Object::from_value(case["input"].clone()).map_err(|e| e.to_string())
}

fn expected(case: &Value) -> Value {
    let mut expected = case["expected"].clone();
    if let Value::Object(map) = &mut expected {
        map.remove("error");
        map.entry("message").or_insert_with(|| json!(""));
    }
    expected
}

fn as_json(health: Option<Health>) -> Value {
    health.map_or(
        Value::Null,
        |h| json!({"status": h.status.as_str(), "message": h.message}),
    )
}

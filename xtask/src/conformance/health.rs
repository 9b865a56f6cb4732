//! Suites `health_builtin` and `health`: what Argo CD said of the same objects.

use super::{Verdict, same};
use serde_json::{Value, json};
use tiphys_apimachinery::Object;
use tiphys_engine::health;

pub fn built_in(case: &Value) -> Verdict {
    let mut expected = case["expected"].clone();
    if let Value::Object(map) = &mut expected {
        map.remove("error");
        map.entry("message").or_insert_with(|| json!(""));
    }
    same(&expected, &judged(case)?)
}

/// Custom kinds, with no more than the knowledge that ships in the program.
pub fn custom(case: &Value) -> Verdict {
    built_in(case)
}

fn judged(case: &Value) -> Result<Value, String> {
    let object = Object::from_value(case["input"].clone()).map_err(|e| e.to_string())?;
    Ok(health::of(&object).map_or(Value::Null, |h| json!({"status": h.status.as_str(), "message": h.message})))
}

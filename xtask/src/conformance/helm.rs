//! Suite `helm_unit`: Helm's own unit tests. So far the `--set` lines; template functions and renders need the templates.

use super::{Verdict, same, text};
use serde_json::{Map, Value};
use tiphys_gocompat::strvals::{Form, Limits, apply};

pub fn run(case: &Value) -> Verdict {
    match case["kind"].as_str() {
        Some("helm_strvals") => set_line(case),
        _ => Err("templates cannot be run yet".into()),
    }
}

fn set_line(case: &Value) -> Verdict {
    let form = match text(case, "fn").as_str() {
        "Parse" | "ParseInto" => Form::Set,
        "ParseString" | "ParseIntoString" => Form::Text,
        "ParseLiteral" | "ParseLiteralInto" => Form::Literal,
        other => return Err(format!("no such function: {other}")),
    };
    let mut values: Map<String, Value> = case["dest"].as_object().cloned().unwrap_or_default();
    let result = apply(form, &text(case, "input"), &mut values, &Limits::default());
    match (result, case["error"].as_str()) {
        (Ok(()), None) => same(&case["expected"], &Value::Object(values)),
        (Err(e), Some(want)) if e.to_string() == want => Ok(()),
        (got, want) => Err(format!("expected {want:?}, got {got:?}")),
    }
}

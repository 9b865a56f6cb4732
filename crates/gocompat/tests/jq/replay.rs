//! Compares gojq's results for programs, one JSON line per case, with ours.
//!
//! Main function: [`replay`].

use serde_json::Value;
use tiphys_gocompat::jq::{Limits, Program};

/// The number of cases, and the errors in those that differ.
pub fn replay(lines: &str) -> (usize, Vec<String>) {
    let mut count = 0;
    let mut wrong = Vec::new();
    for line in lines.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("a baseline line is JSON");
        count += 1;
        wrong.extend(differs(&case));
    }
    (count, wrong)
}

fn text<'c>(case: &'c Value, key: &str) -> &'c str {
    case[key].as_str().unwrap_or_default()
}

fn differs(case: &Value) -> Option<String> {
    let source = text(case, "q");
    let refused = text(case, "c");
    let told = |theirs: &str, ours: &str| {
        Some(format!(
            "{source}\n  on {}\n  gojq {theirs}\n  ours {ours}",
            case["i"]
        ))
    };
    let program = match Program::parse(source) {
        Ok(_) if !refused.is_empty() => return told(&format!("refuses: {refused}"), "takes it"),
        Ok(program) => program,
        // Syntax errors are worded differently.
        Err(ours) if refused.contains("not defined") && ours.to_string() != refused => {
            return told(refused, &ours.to_string());
        }
        Err(_) if !refused.is_empty() => return None,
        Err(ours) => return told("takes it", &format!("refuses: {ours}")),
    };
    let mut error = String::new();
    let mut results = Vec::new();
    for result in program.run(&case["i"], Limits::default()).take(200) {
        match result {
            Ok(value) => results.push(value),
            Err(e) => error = e.to_string(),
        }
    }
    let expected: Vec<Value> = case["o"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|text| parsed(text.as_str().unwrap_or_default()))
        .collect();
    let same = expected.len() == results.len()
        && expected.iter().zip(&results).all(|(a, b)| is_same(a, b));
    if same && error == text(case, "e") {
        return None;
    }
    let shown =
        |results: &[Value], error: &str| format!("{} {error}", Value::from(results.to_vec()));
    told(&shown(&expected, text(case, "e")), &shown(&results, &error))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Numbers are compared as floats, so that 1 and 1.0 are the same.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((k, a), (l, b))| k == l && is_same(a, b))
        }
        _ => a == b,
    }
}

//! Compares the results of sigs.k8s.io/yaml for documents and values, one JSON line per case, with
//! ours.
//!
//! Main functions: [`replay`] and, for one case, [`differs`].

use serde_json::Value;
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

/// A difference: its class, their result and ours.
#[derive(Clone)]
pub struct Difference {
    pub class: &'static str,
    pub theirs: String,
    pub ours: String,
}

/// The number of cases, and those that differ.
pub fn replay(lines: &str) -> (usize, Vec<(Value, Difference)>) {
    let cases = lines
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).expect("a baseline line is JSON"));
    let cases: Vec<Value> = cases.collect();
    let wrong = cases
        .iter()
        .filter_map(|case| Some((case.clone(), differs(case)?)))
        .collect();
    (cases.len(), wrong)
}

pub fn differs(case: &Value) -> Option<Difference> {
    match case["d"].as_str() {
        Some(document) => reads_differently(document, case),
        None => prints_differently(case),
    }
}

fn reads_differently(document: &str, case: &Value) -> Option<Difference> {
    let duplicates = if case["s"] == Value::Bool(true) {
        Duplicates::Refuse
    } else {
        Duplicates::LastWins
    };
    let ours = yaml::parse_document(document, &Limits::default(), duplicates);
    let class = match (&ours, case.get("e")) {
        (Err(error), None) if is_unseen(&error.message) => return None,
        (Ok(_), Some(_)) => "we read it, Go does not",
        (Err(_), None) => "Go reads it, we do not",
        (Ok(value), None) if !is_same(value, &case["j"]) => "another value",
        (Err(error), Some(theirs))
            if !is_said(&error.go_text(), theirs.as_str().unwrap_or_default()) =>
        {
            "another error"
        }
        _ => return None,
    };
    let theirs = case.get("e").unwrap_or(&case["j"]).to_string();
    Some(Difference {
        class,
        theirs,
        ours: ours.map_or_else(|e| e.go_text(), |value| value.to_string()),
    })
}

fn prints_differently(case: &Value) -> Option<Difference> {
    let value = &case["v"];
    let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
    let class = match (yaml::marshal(value), case.get("e")) {
        (Ok(ours), None) => Err(("other text", text("y"), ours)),
        (Err(_), Some(_)) => Ok(()),
        (Ok(ours), Some(_)) => Err(("we print it, Go does not", text("e"), ours)),
        (Err(ours), None) => Err(("Go prints it, we do not", text("y"), ours.to_string())),
    };
    let pretty = (
        "other text of toYamlPretty",
        text("p"),
        yaml::to_string_v3(&value.into()),
    );
    let found = [class.err(), Some(pretty)]
        .into_iter()
        .flatten()
        .find(|(_, theirs, ours)| theirs != ours);
    found.map(|(class, theirs, ours)| Difference {
        class,
        theirs,
        ours,
    })
}

/// Go accepts a value that JSON cannot represent if a later key replaces it, and a control
/// character in a part that it does not read.
fn is_unseen(ours: &str) -> bool {
    [
        "json: unsupported",
        "unsupported map key",
        "control characters",
    ]
    .iter()
    .any(|start| ours.starts_with(start))
}

/// Go reports all duplicate keys, the types of invalid keys, and errors of merge keys before those
/// in the merged value.
fn is_said(ours: &str, theirs: &str) -> bool {
    let theirs = theirs.trim_start_matches("yaml: ");
    let other = [
        "unmarshal errors:",
        "unsupported map key of type",
        "invalid map key",
        "map merge requires map or sequence of maps",
    ];
    ours == theirs || other.iter().any(|start| theirs.starts_with(start)) || is_unseen(ours)
}

/// Compares numbers by value: Go prints 1e20 as digits, which serde_json parses as a float.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            x == y || ((x.is_f64() || y.is_f64()) && x.as_f64() == y.as_f64())
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| is_same(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .zip(y)
                    .all(|((k, x), (l, y))| k == l && is_same(x, y))
        }
        _ => a == b,
    }
}

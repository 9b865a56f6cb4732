//! `--set` lines compared with the results of Helm's strvals (tests/baseline, made by
//! tests/baseline/generate/helm).

use serde_json::{Map, Value};
use tiphys_gocompat::strvals::{Form, Limits, apply};

/// A file of the generator: names that begin with `missing` do not exist.
fn read(name: &str) -> Result<String, String> {
    match name.starts_with("missing") {
        true => Err(format!("open {name}: no such file or directory")),
        false => Ok(format!("content of {name}")),
    }
}

fn form(name: &str) -> Form<'static> {
    match name {
        "set" => Form::Set,
        "string" => Form::Text,
        "literal" => Form::Literal,
        "json" => Form::Json,
        _ => Form::File(&read),
    }
}

/// Lines with an intended difference.
const KNOWN: &[(&str, &str)] = &[(
    "a=\"\\ud800\"",
    "half of a surrogate pair is refused, Go writes U+FFFD",
)];

/// The prefixes of Go's JSON errors.
const JSON_FAULTS: &[&str] = &["invalid character ", "unexpected EOF", "json: "];

/// 1 and 1.0 are the same JSON number, because Go prints both alike.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| equal(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .zip(y)
                    .all(|((k, x), (l, y))| k == l && equal(x, y))
        }
        _ => a == b,
    }
}

#[test]
fn lines_are_read_as_helm_does() {
    let mut lines = include_str!("baseline/strvals.jsonl")
        .lines()
        .skip(1)
        .map(|l| serde_json::from_str::<Value>(l).expect("JSON"));
    // the generator decodes it with encoding/json, so its numbers are floats
    let into = lines.next().expect("the values to write into")["into"]
        .to_string()
        .replace(":0}", ":0.0}")
        .replace(":2}", ":2.0}")
        .replace(":1}", ":1.0}");
    let into: Map<String, Value> = serde_json::from_str(&into).expect("a map");
    let mut wrong = Vec::new();
    for line in lines {
        let text = line["in"].as_str().expect("in");
        let mut data = if line["into"] == true {
            into.clone()
        } else {
            Map::new()
        };
        let got = apply(
            form(line["form"].as_str().expect("form")),
            text,
            &mut data,
            &Limits::default(),
        );
        let same = match (&got, line["error"].as_str()) {
            // Helm does not report the error in the JSON
            (Err(e), Some(want)) => {
                e.to_string() == want || JSON_FAULTS.iter().any(|fault| want.starts_with(fault))
            }
            (Ok(()), None) => {
                line["long"] == true || equal(&Value::Object(data.clone()), &line["out"])
            }
            _ => false,
        };
        if same
            == KNOWN
                .iter()
                .any(|(known, _)| *known == text && line["form"] == "json")
        {
            wrong.push(format!(
                "got {got:?} {}\n  want {line}",
                Value::Object(data)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn whole_numbers_stay_whole() {
    let mut data = Map::new();
    apply(Form::Set, "a=1", &mut data, &Limits::default()).expect("a line");
    apply(Form::Json, "b=1", &mut data, &Limits::default()).expect("a line");
    assert!(data["a"].is_i64() && data["b"].is_f64(), "{data:?}");
}

#[test]
fn hostile_lines_are_refused() {
    for line in [
        format!("a{}=1", "[0]".repeat(100_000)),
        format!("{}a=1", "a[0].".repeat(100_000)),
        (0..1000).map(|i| format!("k{i}[65536]=1,")).collect(),
        "a[65536][65536]".repeat(50),
    ] {
        assert!(
            apply(Form::Set, &line, &mut Map::new(), &Limits::default()).is_err(),
            "{}",
            &line[..30]
        );
    }
}

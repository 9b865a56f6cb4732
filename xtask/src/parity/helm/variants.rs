//! Generates values for a chart that its authors did not think of: its own defaults, some of them
//! replaced.
//!
//! Main function: [`variants`]. The same seed generates the same values.

use super::{Case, collection::load};
use anyhow::Context;
use serde_json::{Map, Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tiphys_gocompat::yaml;
use tiphys_testkit::Rng;

/// Maximum number of changes in one variant.
const MOST: u64 = 6;

/// Creates this many renders of a chart, each with a values file below `folder`.
pub fn variants(
    name: &str,
    chart: &Path,
    folder: &Path,
    count: u64,
    seed: u64,
) -> anyhow::Result<Vec<Case>> {
    let Some(loaded) = load(chart) else {
        return Ok(Vec::new());
    };
    let mut places = Vec::new();
    collect(
        &Value::Object((*loaded.values).clone()),
        &mut Vec::new(),
        &mut places,
    );
    for dependency in &loaded.dependencies {
        collect(
            &Value::Object((*dependency.values).clone()),
            &mut vec![dependency.name().to_owned()],
            &mut places,
        );
    }
    let mut cases = Vec::new();
    for number in (0..count).filter(|_| !places.is_empty()) {
        let mut rng = Rng::new(
            seed.wrapping_mul(1_000_003)
                ^ number
                ^ name
                    .bytes()
                    .fold(7, |sum, b| sum * 31 % 1_000_003 + u64::from(b)),
        );
        let mut values = Map::new();
        for _ in 0..=rng.below(MOST) {
            let (path, old) = &places[rng.below(places.len() as u64) as usize];
            put(&mut values, path, changed(old, &mut rng));
        }
        let file = folder.join(format!("{name}-{seed}-{number}.yaml"));
        fs::create_dir_all(folder)?;
        fs::write(&file, yaml::to_string(&Value::Object(values)))?;
        let values = fs::canonicalize(&file)?
            .to_str()
            .map(PathBuf::from)
            .context("the scratch folder has a plain name")?;
        cases.push(Case {
            name: format!("{name} variant {seed}-{number}"),
            chart: chart.to_owned(),
            values: Some(values),
        });
    }
    Ok(cases)
}

/// Every value with its path, except those in lists.
fn collect(value: &Value, path: &mut Vec<String>, places: &mut Vec<(Vec<String>, Value)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                path.push(key.clone());
                collect(value, path, places);
                path.pop();
            }
        }
        other => {
            // Booleans enable whole parts of a chart.
            let weight = if other.is_boolean() { 3 } else { 1 };
            places.extend(std::iter::repeat_n((path.clone(), other.clone()), weight));
        }
    }
}

fn changed(old: &Value, rng: &mut Rng) -> Value {
    let pick = |rng: &mut Rng, list: &[Value]| list[rng.below(list.len() as u64) as usize].clone();
    match old {
        Value::Bool(on) if rng.below(12) > 0 => json!(!on),
        Value::Number(_) => pick(
            rng,
            &[
                json!(0),
                json!(3),
                json!(1234567),
                json!(1.5),
                json!("7"),
                Value::Null,
                json!(-1),
            ],
        ),
        Value::String(text) if text.is_empty() => pick(
            rng,
            &[
                json!("x"),
                json!("a: b"),
                json!("{{ .Release.Name }}-x"),
                json!("*.example.com"),
                json!("yes"),
                json!("1e3"),
                json!("a\nb\n"),
                Value::Null,
            ],
        ),
        Value::String(text) => pick(
            rng,
            &[
                json!(""),
                json!(format!("{text}x")),
                json!("{{ .Chart.Name }}"),
                Value::Null,
                json!(5),
            ],
        ),
        Value::Array(list) if list.is_empty() => pick(
            rng,
            &[
                json!(["x", "y"]),
                json!([{"name": "x", "value": "y"}]),
                json!([{"name": "x", "port": 80, "protocol": "TCP"}]),
                json!([""]),
                Value::Null,
            ],
        ),
        Value::Array(_) => pick(
            rng,
            &[json!([]), Value::Null, json!(["{{ .Release.Namespace }}"])],
        ),
        Value::Object(_) => pick(
            rng,
            &[
                json!({"a": "b", "c.d/e": "f"}),
                json!({"k": true, "n": 1}),
                json!({"t": "{{ .Release.Name }}"}),
                json!({"x": {"y": []}}),
                Value::Null,
            ],
        ),
        _ => pick(
            rng,
            &[
                json!("x"),
                json!(true),
                json!(1),
                json!(["a"]),
                json!({"a": "b"}),
            ],
        ),
    }
}

fn put(values: &mut Map<String, Value>, path: &[String], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        values.insert(first.clone(), value);
        return;
    }
    let inner = values
        .entry(first.clone())
        .or_insert_with(|| Value::Object(Map::new()));
    if !inner.is_object() {
        *inner = Value::Object(Map::new());
    }
    if let Value::Object(inner) = inner {
        put(inner, rest, value);
    }
}

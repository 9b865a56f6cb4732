//! Runs one recorded case. Main functions: [`expanded`] and [`run`].

mod generate;
mod pathspec;
mod reconcile;
mod rollout;
mod units;

pub use rollout::on_purpose;
pub mod world;

use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What is wrong with our result.
pub type Verdict = Result<(), String>;

/// The case with its fixtures in their places.
pub fn expanded(mut case: Value, fixtures: &Value) -> Value {
    let fields = [
        "repos",
        "clusters",
        "scm",
        "pull_requests",
        "configmaps",
        "secrets",
        "decision",
        "plugin",
        "exchanges",
    ];
    for field in fields {
        if let Some(name) = case[field].as_str().filter(|name| name.starts_with('@')) {
            case[field] = fixtures["fixtures"][name].clone();
        }
    }
    case
}

/// Compares our result for an expanded case with the recorded one.
pub fn run(case: &Value) -> Verdict {
    let run = || match case["kind"].as_str() {
        Some("generate") => generate::run(case),
        Some("reconcile") => reconcile::run(case),
        Some("unit") => units::run(case),
        kind => Err(format!("nothing can run {kind:?}")),
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("it panics".into()))
}

/// Compares two values and says where they differ first.
pub fn same(what: &str, ours: &Value, theirs: &Value) -> Verdict {
    match difference(ours, theirs, what) {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

fn difference(ours: &Value, theirs: &Value, path: &str) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => a.keys().chain(b.keys()).find_map(|key| {
            let path = format!("{path}.{key}");
            match (a.get(key), b.get(key)) {
                (Some(a), Some(b)) => difference(a, b, &path),
                (a, b) => Some(format!("{path}: {a:?} instead of {b:?}")),
            }
        }),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(i, (a, b))| difference(a, b, &format!("{path}[{i}]"))),
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        (a, b) if a == b => None,
        (a, b) => Some(format!("{path}: {a} instead of {b}")),
    }
}

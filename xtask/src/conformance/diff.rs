//! Suites `diff/*`: differences compared with the results of Argo CD's own engine for the same
//! objects.

use super::{Verdict, same, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tiphys_apimachinery::Object;
use tiphys_engine::{
    diff::{self, Options, steps},
    types::{Diff, IgnoreStatus},
};

/// The normalizer that does nothing.
const PLAIN: &str = "*diff.noopNormalizer";

/// Cases whose normalizer is Go code cannot be expressed as data.
pub fn needs_code(case: &Value) -> bool {
    case["options"]["normalizer"]
        .as_str()
        .is_some_and(|n| n != PLAIN)
}

pub fn run(case: &Value) -> Verdict {
    let operation = text(case, "op");
    let got = match operation.as_str() {
        "diff" => as_json(&diff::diff(
            side(case, "target")?.as_ref(),
            side(case, "live")?.as_ref(),
            &options(case),
        )),
        "two_way" => as_json(&steps::two_way(
            side(case, "target")?.as_ref(),
            side(case, "live")?.as_ref(),
        )),
        "three_way" => {
            let [original, target, live] = [
                object(case, "orig")?,
                object(case, "target")?,
                object(case, "live")?,
            ];
            as_json(&diff::three_way(&original, &target, &live).map_err(|e| e.to_string())?)
        }
        "structured_merge" => {
            let found = diff::structured(
                &object(case, "target")?,
                &object(case, "live")?,
                &text(case, "manager"),
            );
            as_json(&found.map_err(|e| e.to_string())?)
        }
        "server_side" => {
            let (live, predicted) = (object(case, "live")?, object(case, "dry_run_result")?);
            let include = !case["options"]["ignore_mutation_webhook"]
                .as_bool()
                .unwrap_or(true);
            as_json(&steps::server_side(
                &live,
                &predicted,
                include,
                &options(case),
            )?)
        }
        "normalize" => {
            let mut input = object(case, "input")?;
            steps::normalize(&mut input, &options(case));
            input.into_value()
        }
        "normalize_secret" => {
            let mut input = object(case, "input")?;
            steps::normalize_secret(&mut input);
            input.into_value()
        }
        "remarshal" => steps::remarshal(&object(case, "input")?).into_value(),
        "hide_secret" => {
            let hidden: BTreeSet<String> = case["hide_annotations"]
                .as_object()
                .map(|m| m.keys().cloned().collect())
                .unwrap_or_default();
            let (target, live) = diff::mask_secret(
                side(case, "target")?.as_ref(),
                side(case, "live")?.as_ref(),
                &hidden,
            );
            json!({"target": target.map(Object::into_value), "live": live.map(Object::into_value)})
        }
        other => return Err(format!("nothing can run `{other}` yet")),
    };
    same(&case["expected"], &got)
}

fn side(case: &Value, key: &str) -> Result<Option<Object>, String> {
    if case[key].is_null() {
        Ok(None)
    } else {
        object(case, key).map(Some)
    }
}

fn object(case: &Value, key: &str) -> Result<Object, String> {
    Object::from_value(case[key].clone()).map_err(|e| format!("{key}: {e}"))
}

fn options(case: &Value) -> Options<'static> {
    let ignore_aggregated_roles = case["options"]["ignore_aggregated_roles"]
        .as_bool()
        .unwrap_or(false);
    Options {
        ignore: &[],
        ignore_status: IgnoreStatus::None,
        ignore_aggregated_roles,
        server_side_apply: false,
        customizations: None,
        spending: None,
    }
}

fn as_json(diff: &Diff) -> Value {
    json!({"modified": diff.modified, "normalized_live": *diff.normalized_live, "predicted_live": *diff.predicted_live})
}

//! Suite `smp`: recorded results of kubectl's patch library.

use super::Verdict;
use anyhow::Context;
use serde_json::{Map, Value, json};
use std::{fs, path::Path};
use tiphys_apimachinery::{
    patch::{PatchError, json_merge, strategic, three_way},
    schema::{Schema, TypeRef},
};

/// Parses `smp_schema.json`, which is next to the cases.
pub fn types(dir: &Path) -> anyhow::Result<Schema> {
    let file = dir.join("smp_schema.json");
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Schema::from_openapi_v3(&openapi(&serde_json::from_str(
        &text,
    )?)?)?)
}

/// The types of the recorded cases as an OpenAPI document.
fn openapi(schema: &Value) -> anyhow::Result<Value> {
    let mut definitions = Map::new();
    for (name, fields) in schema
        .as_object()
        .context("smp_schema.json: a map is expected")?
        .iter()
        .filter(|(n, _)| *n != "_comment")
    {
        let fields = fields
            .as_object()
            .context("smp_schema.json: fields are a map")?;
        let properties: Map<String, Value> = fields
            .iter()
            .map(|(n, f)| (n.clone(), property(f)))
            .collect();
        definitions.insert(
            name.clone(),
            json!({"type": "object", "properties": properties}),
        );
    }
    Ok(json!({"definitions": definitions}))
}

fn property(field: &Value) -> Value {
    let mut out = match field.get("$ref").and_then(Value::as_str) {
        Some(name) => json!({"$ref": format!("#/definitions/{name}")}),
        None => match field["type"].as_str().unwrap_or_default() {
            "list" => json!({"type": "array", "items": property(&field["items"])}),
            "map" => json!({"type": "object", "additionalProperties": property(&field["items"])}),
            "raw" | "struct{Raw bytes}" => json!({"type": "object"}),
            scalar => json!({"type": scalar}),
        },
    };
    for (from, to) in [
        ("patchStrategy", "x-kubernetes-patch-strategy"),
        ("patchMergeKey", "x-kubernetes-patch-merge-key"),
    ] {
        if let Some(value) = field.get(from) {
            out[to] = value.clone();
        }
    }
    out
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Verdict {
    if got == expected {
        Ok(())
    } else {
        Err(format!(
            "{what}\n      got: {got:?}\n expected: {expected:?}"
        ))
    }
}

fn fails_with(what: &str, got: Result<Value, PatchError>, text: &Value) -> Verdict {
    match got {
        Err(e) if text.as_str().is_none_or(|t| e.to_string().contains(t)) => Ok(()),
        other => Err(format!("{what}: {other:?} instead of an error with {text}")),
    }
}

pub fn run(case: &Value, schema: &Schema) -> Verdict {
    let ty = case
        .get("schema")
        .and_then(Value::as_str)
        .and_then(|n| schema.definition(n));
    let at = |key: &str| case.get(key).unwrap_or(&Value::Null);
    let typed = || ty.ok_or_else(|| "its type is not in smp_schema.json".to_owned());
    match at("op").as_str().unwrap_or_default() {
        "sort" => check(
            "sorted",
            strategic::sort_merge_lists(at("original"), typed()?),
            Ok(at("sorted").clone()),
        ),
        "apply" => {
            let got = strategic::apply(at("original"), at("patch"), typed()?);
            match case.get("expected") {
                Some(expected) => check("result", got, Ok(expected.clone())),
                None => fails_with(
                    "result",
                    got,
                    case.get("expected_error").unwrap_or(&Value::Null),
                ),
            }
        }
        "create" => create(case, typed()?),
        "json_three_way" => {
            let patch = json_merge::create_three_way(at("original"), at("modified"), at("current"));
            check("three_way", patch.clone(), Ok(at("three_way").clone()))?;
            check(
                "result",
                json_merge::apply(at("current"), &patch.map_err(|e| e.to_string())?),
                Ok(at("result").clone()),
            )
        }
        "filter_null" => {
            check(
                "keep_only_null",
                json_merge::filter_null(at("original"), true),
                at("keep_only_null").clone(),
            )?;
            check(
                "drop_null",
                json_merge::filter_null(at("original"), false),
                at("drop_null").clone(),
            )
        }
        "has_conflicts" => check(
            "conflict",
            json_merge::has_conflicts(at("a"), at("b")),
            at("conflict") == &json!(true),
        ),
        other => Err(format!("unknown op {other}")),
    }
}

fn create(case: &Value, ty: TypeRef<'_>) -> Verdict {
    let at = |key: &str| case.get(key).unwrap_or(&Value::Null);
    let two_way = strategic::create_two_way(at("original"), at("modified"), ty);
    if let Some(text) = case.get("two_way_error") {
        fails_with("two_way", two_way, text)?;
    } else if let Some(expected) = case.get("lib_two_way").or_else(|| case.get("two_way")) {
        check("two_way", two_way.clone(), Ok(expected.clone()))?;
        if let Some(result) = case.get("lib_two_way_result") {
            check(
                "two_way_result",
                strategic::apply(at("original"), &two_way.map_err(|e| e.to_string())?, ty),
                Ok(result.clone()),
            )?;
        }
    }
    let three = |overwrite| {
        three_way::create(
            at("original"),
            at("modified"),
            at("current"),
            Some(ty),
            overwrite,
        )
    };
    if let Some(text) = case.get("three_way_error") {
        fails_with("three_way", three(true), text)?;
    } else if let Some(expected) = case
        .get("lib_three_way_overwrite")
        .or_else(|| case.get("three_way"))
    {
        let patch = three(true);
        check("three_way", patch.clone(), Ok(expected.clone()))?;
        if let Some(result) = case.get("lib_three_way_result") {
            check(
                "three_way_result",
                strategic::apply(at("current"), &patch.map_err(|e| e.to_string())?, ty),
                Ok(result.clone()),
            )?;
        }
    }
    if let Some(conflict) = case.get("lib_three_way_conflict").and_then(Value::as_bool) {
        let got = three(false);
        check(
            "conflict",
            matches!(got, Err(PatchError::Conflict { .. })),
            conflict,
        )?;
        if let (true, Some(text)) = (
            conflict,
            case.get("lib_three_way_error").and_then(Value::as_str),
        ) {
            check(
                "conflict text",
                got.map_err(|e| e.to_string()),
                Err(text.to_owned()),
            )?;
        }
    }
    Ok(())
}

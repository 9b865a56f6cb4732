//! Recorded answers of kubectl's patch library, when `../shared/cases` lies beside the workspace.
#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

use serde_json::{Map, Value, json};
use std::{fs, path::Path};
use tiphys_apimachinery::{
    patch::{PatchError, json_merge, strategic, three_way},
    schema::{Schema, TypeRef},
};

/// The types of the recorded cases, told as an OpenAPI document.
fn openapi(schema: &Value) -> Value {
    let mut definitions = Map::new();
    for (name, fields) in schema.as_object().expect("a map").iter().filter(|(n, _)| *n != "_comment") {
        let properties: Map<String, Value> = fields.as_object().expect("fields").iter().map(|(n, f)| (n.clone(), property(f))).collect();
        definitions.insert(name.clone(), json!({"type": "object", "properties": properties}));
    }
    json!({"definitions": definitions})
}

fn property(field: &Value) -> Value {
    let mut out = match field.get("$ref").and_then(Value::as_str) {
        Some(name) => json!({"$ref": format!("#/definitions/{name}")}),
        None => match field["type"].as_str().expect("a type") {
            "list" => json!({"type": "array", "items": property(&field["items"])}),
            "map" => json!({"type": "object", "additionalProperties": property(&field["items"])}),
            "raw" | "struct{Raw bytes}" => json!({"type": "object"}),
            scalar => json!({"type": scalar}),
        },
    };
    for (from, to) in [("patchStrategy", "x-kubernetes-patch-strategy"), ("patchMergeKey", "x-kubernetes-patch-merge-key")] {
        if let Some(value) = field.get(from) {
            out[to] = value.clone();
        }
    }
    out
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what}\n      got: {got:?}\n expected: {expected:?}")) }
}

fn fails_with(what: &str, got: Result<Value, PatchError>, text: &Value) -> Result<(), String> {
    match got {
        Err(e) if text.as_str().is_none_or(|t| e.to_string().contains(t)) => Ok(()),
        other => Err(format!("{what}: {other:?} instead of an error with {text}")),
    }
}

fn run_case(case: &Value, schema: &Schema) -> Result<(), String> {
    let ty = case.get("schema").and_then(Value::as_str).map(|n| schema.definition(n).expect("a known type"));
    let at = |key: &str| case.get(key).unwrap_or(&Value::Null);
    match at("op").as_str().expect("op") {
        "sort" => check("sorted", strategic::sort_merge_lists(at("original"), ty.expect("a type")), Ok(at("sorted").clone())),
        "apply" => {
            let got = strategic::apply(at("original"), at("patch"), ty.expect("a type"));
            match case.get("expected") {
                Some(expected) => check("result", got, Ok(expected.clone())),
                None => fails_with("result", got, case.get("expected_error").unwrap_or(&Value::Null)),
            }
        }
        "create" => create(case, ty.expect("a type")),
        "json_three_way" => {
            let patch = json_merge::create_three_way(at("original"), at("modified"), at("current"));
            check("three_way", patch.clone(), Ok(at("three_way").clone()))?;
            check("result", json_merge::apply(at("current"), &patch.expect("it is as expected")), Ok(at("result").clone()))
        }
        "filter_null" => {
            check("keep_only_null", json_merge::filter_null(at("original"), true), at("keep_only_null").clone())?;
            check("drop_null", json_merge::filter_null(at("original"), false), at("drop_null").clone())
        }
        "has_conflicts" => check("conflict", json_merge::has_conflicts(at("a"), at("b")), at("conflict") == &json!(true)),
        other => Err(format!("unknown op {other}")),
    }
}

fn create(case: &Value, ty: TypeRef<'_>) -> Result<(), String> {
    let at = |key: &str| case.get(key).unwrap_or(&Value::Null);
    let two_way = strategic::create_two_way(at("original"), at("modified"), ty);
    if let Some(text) = case.get("two_way_error") {
        fails_with("two_way", two_way, text)?;
    } else if let Some(expected) = case.get("lib_two_way").or_else(|| case.get("two_way")) {
        check("two_way", two_way.clone(), Ok(expected.clone()))?;
        if let Some(result) = case.get("lib_two_way_result") {
            check("two_way_result", strategic::apply(at("original"), &two_way.expect("as expected"), ty), Ok(result.clone()))?;
        }
    }
    let three = |overwrite| three_way::create(at("original"), at("modified"), at("current"), Some(ty), overwrite);
    if let Some(text) = case.get("three_way_error") {
        fails_with("three_way", three(true), text)?;
    } else if let Some(expected) = case.get("lib_three_way_overwrite").or_else(|| case.get("three_way")) {
        let patch = three(true);
        check("three_way", patch.clone(), Ok(expected.clone()))?;
        if let Some(result) = case.get("lib_three_way_result") {
            check("three_way_result", strategic::apply(at("current"), &patch.expect("as expected"), ty), Ok(result.clone()))?;
        }
    }
    if let Some(conflict) = case.get("lib_three_way_conflict").and_then(Value::as_bool) {
        let got = three(false);
        check("conflict", matches!(got, Err(PatchError::Conflict { .. })), conflict)?;
        if let (true, Some(text)) = (conflict, case.get("lib_three_way_error").and_then(Value::as_str)) {
            check("conflict text", got.map_err(|e| e.to_string()), Err(text.to_owned()))?;
        }
    }
    Ok(())
}

#[test]
fn recorded_cases() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    let Ok(cases) = fs::read_to_string(dir.join("smp.jsonl")) else {
        println!("skipped: ../shared is absent");
        return;
    };
    let schema: Value = serde_json::from_str(&fs::read_to_string(dir.join("smp_schema.json")).expect("smp_schema.json")).expect("JSON");
    let schema = Schema::from_openapi_v3(&openapi(&schema)).expect("a schema");
    let (mut passed, mut all) = (0, 0);
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        all += 1;
        match run_case(&case, &schema) {
            Ok(()) => passed += 1,
            Err(why) => println!("{}: {why}", case["id"]),
        }
    }
    println!("smp {passed}/{all}");
    assert!(all > 100, "the file has cases");
    assert_eq!(passed, all);
}

//! Checks custom resources against the schema of their definition. Main functions: [`read`],
//! [`check`], [`warnings`].

use crate::base::Part;
use crate::catalog::{Resource, crd::Custom};
use crate::convert;
use crate::status::Cause;
use serde_json::Value;
use tiphys_apimachinery::{Object, gvk::split_api_version, schema};
use tiphys_kube_schema::cel::rules::Budget;
use tiphys_kube_schema::gofmt;
use tiphys_kube_schema::structural::problem::Problem;
use tiphys_kube_schema::structural::{Node, embedded, lists, shape, validate};

const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// Reasons that prevent rules from being run, because rules may rely on the schema.
const BLOCKING: &[&str] = &[
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];
const NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

/// Drops fields that the schema lacks and adds its defaults; returns the paths that were dropped.
/// Metadata that Go cannot decode is an error.
pub fn read(
    resource: &Resource,
    value: &mut Value,
    keep_nulls: bool,
) -> Result<Vec<String>, String> {
    let mut unknown = Vec::new();
    if let Some(metadata) = value.get_mut("metadata") {
        // Go encodes the metadata and decodes it again.
        gofmt::make_whole(metadata);
        let mut nothing = serde_json::Map::new();
        if keep_nulls {
            drop_malformed(metadata);
            nothing = metadata.as_object().cloned().unwrap_or_default();
            nothing.retain(|_, value| convert::is_nothing(value));
        }
        unknown.extend(read_metadata(metadata, "metadata")?);
        unknown.sort();
        if let Some(metadata) = metadata.as_object_mut() {
            nothing.retain(|key, _| !metadata.contains_key(key));
            metadata.extend(nothing);
        }
    }
    let api_version = value["apiVersion"].as_str().unwrap_or("");
    // There is no schema for an object of another kind.
    if value["kind"] != resource.kind || split_api_version(api_version).0 != resource.group {
        return Ok(unknown);
    }
    let Some(custom) = resource.in_version(api_version) else {
        unknown.extend(forget_all(value));
        return Ok(unknown);
    };
    if let Some(node) = &custom.node {
        let mut undeclared = shape::prune(value, node);
        undeclared.sort();
        unknown.extend(undeclared);
        if !keep_nulls {
            shape::drop_nulls(value, Some(node));
        }
        let reading = embedded::Reading {
            metadata: &read_metadata,
            keep_nulls,
        };
        unknown.extend(
            reading
                .of(node, value, "")
                .map_err(|problem| problem.line())?,
        );
        shape::fill_in(value, node);
    }
    Ok(unknown)
}

/// A version that does not exist declares no fields.
fn forget_all(value: &mut Value) -> Vec<String> {
    let Some(map) = value.as_object_mut() else {
        return Vec::new();
    };
    let undeclared = |key: &&String| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata");
    let all: Vec<String> = map.keys().filter(undeclared).cloned().collect();
    map.retain(|key, _| !all.contains(key));
    all
}

/// Server-side apply omits metadata fields that Go cannot decode.
fn drop_malformed(metadata: &mut Value) {
    let (Some(map), Some(of)) = (
        metadata.as_object_mut(),
        tiphys_kube_schema::gotypes::find("meta/v1.ObjectMeta"),
    ) else {
        return;
    };
    map.retain(|key, value| {
        let mut alone = serde_json::Map::from_iter([(key.clone(), value.clone())]);
        tiphys_kube_schema::gotypes::normalize(&mut alone, of).is_ok()
    });
}

/// Go's error for an invalid deletion time, which fails the conversion to the storage version.
pub fn unreadable_deletion(object: &Object) -> Option<String> {
    let time = object
        .metadata("deletionTimestamp")
        .filter(|time| !time.is_object() && !time.is_array())?;
    let mut alone = serde_json::Map::from_iter([("deletionTimestamp".to_owned(), time.clone())]);
    tiphys_kube_schema::gotypes::normalize(
        &mut alone,
        tiphys_kube_schema::gotypes::find("meta/v1.ObjectMeta")?,
    )
    .err()
    .map(|why| why.to_string())
}

/// Decodes metadata into Go's struct and back; returns the fields that the struct lacks.
pub fn read_metadata(metadata: &mut Value, path: &str) -> Result<Vec<String>, String> {
    let unknown = match schema::builtin().definition(METADATA) {
        Some(ty) if metadata.is_object() => schema::prune(metadata, ty),
        _ => Vec::new(),
    };
    let word = match metadata {
        Value::Null => {
            *metadata = serde_json::json!({});
            return Ok(unknown);
        }
        Value::Object(map) => {
            if let Some(of) = tiphys_kube_schema::gotypes::find("meta/v1.ObjectMeta") {
                tiphys_kube_schema::gotypes::normalize(map, of).map_err(|e| e.to_string())?;
            }
            return Ok(unknown
                .into_iter()
                .map(|field| format!("{path}.{field}"))
                .collect());
        }
        other => tiphys_gocompat::json::kind(other),
    };
    Err(format!(
        "json: cannot unmarshal {word} into Go value of type v1.ObjectMeta"
    ))
}

/// Checks that a custom object has the kind and version in which it is stored; nothing else checks
/// this.
pub fn wrong_type(resource: &Resource, object: &Object) -> Vec<Cause> {
    if resource.custom.is_none() {
        return Vec::new();
    }
    let said = [
        ("kind", object.kind().to_owned(), resource.kind.clone()),
        (
            "apiVersion",
            object.gvk().api_version(),
            resource.api_version(),
        ),
    ];
    let wrong = said.into_iter().filter(|(_, said, wanted)| said != wanted);
    wrong
        .map(|(field, said, wanted)| {
            Cause::invalid(field, &said.into(), &format!("must be {wanted}"))
        })
        .collect()
}

/// All errors besides those `found` before, and the warnings. An object that is not `of_kind` skips
/// the schema, but not the other checks.
pub fn check(
    custom: &Custom,
    object: &Object,
    (old, part): (Option<&Object>, Part),
    (found, of_kind): (&[Cause], bool),
) -> (Vec<Cause>, Vec<String>) {
    let Some(node) = &custom.node else {
        return (Vec::new(), Vec::new());
    };
    let value = Value::Object(object.0.clone());
    let before = old.map(|o| Value::Object(o.0.clone()));
    let mut problems = Vec::new();
    if of_kind {
        problems.extend(by_schema(node, &value, before.as_ref(), part));
        if part != Part::Status {
            problems.extend(scale(custom, object, false));
        }
        problems.extend(scale(custom, object, true));
    }
    if part != Part::Status {
        problems.extend(embedded::check(
            node,
            &value,
            "",
            false,
            &super::embedded_metadata,
        ));
    }
    if before
        .as_ref()
        .is_none_or(|b| lists::check(node, b).is_empty())
    {
        problems.extend(lists::check(node, &value));
    }
    let mut warnings = Vec::new();
    if let Some(rules) = &custom.rules {
        if problems
            .iter()
            .map(|p| p.reason)
            .chain(found.iter().map(|c| c.reason))
            .any(|reason| BLOCKING.contains(&reason))
        {
            let text = format!("Invalid value: null: {NOT_CHECKED}");
            problems.push(Problem {
                reason: "FieldValueInvalid",
                path: "<nil>".into(),
                text,
            });
        } else {
            let found = rules.check_with(
                node,
                "",
                &value,
                before.as_ref(),
                before.is_some(),
                &mut Budget::default(),
            );
            problems.extend(found.problems);
            warnings = found.warnings;
        }
    }
    (problems.into_iter().map(Cause::from).collect(), warnings)
}

/// The schema violations, of the whole object or of its status alone.
fn by_schema(node: &Node, value: &Value, before: Option<&Value>, part: Part) -> Vec<Problem> {
    if part != Part::Status {
        return validate::check(node, value, before, "");
    }
    match (value.get("status"), node.properties.get("status")) {
        (Some(status), Some(of)) => {
            validate::check(of, status, before.and_then(|b| b.get("status")), "status")
        }
        _ => Vec::new(),
    }
}

/// `%T`
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The value at a path such as `.spec.replicas`, if it has the wanted type.
fn at<'a>(
    object: &'a Object,
    path: &str,
    wanted: &str,
    fits: fn(&Value) -> bool,
) -> Result<Option<&'a Value>, String> {
    let fail = |at: &str, value: &Value, wanted: &str| {
        Err(format!(
            "{at} accessor error: {} is of the type {}, expected {wanted}",
            gofmt::plain(value),
            go_type(value)
        ))
    };
    let steps: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let Some(mut value) = steps.first().and_then(|first| object.0.get(*first)) else {
        return Ok(None);
    };
    for (i, step) in steps.iter().enumerate().skip(1) {
        // Null has no fields, but is not an object of the wrong type either.
        if value.is_null() {
            return Ok(None);
        }
        let Value::Object(map) = value else {
            return fail(
                &format!(".{}", steps[..=i].join(".")),
                value,
                "map[string]interface{}",
            );
        };
        match map.get(*step) {
            Some(next) => value = next,
            None => return Ok(None),
        }
    }
    if fits(value) {
        Ok(Some(value))
    } else {
        fail(path, value, wanted)
    }
}

/// Checks the numbers of the scale subresource.
fn scale(custom: &Custom, object: &Object, of_status: bool) -> Vec<Problem> {
    let Some(scale) = &custom.scale else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    let path = if of_status {
        &scale.status
    } else {
        &scale.spec
    };
    match at(object, path, "int64", Value::is_i64) {
        Err(text) => problems.push(Problem::invalid(path, &0.into(), &text)),
        Ok(None) => {}
        Ok(Some(value)) => match value.as_i64().unwrap_or(0) {
            n if n < 0 => problems.push(Problem::invalid(
                path,
                value,
                "should be a non-negative integer",
            )),
            n if n > i64::from(i32::MAX) => {
                problems.push(Problem::invalid(
                    path,
                    value,
                    &format!("should be less than or equal to {}", i32::MAX),
                ));
            }
            _ => {}
        },
    }
    if let (true, Some(path)) = (of_status, &scale.selector)
        && let Err(text) = at(object, path, "string", Value::is_string)
    {
        problems.push(Problem::invalid(path, &"".into(), &text));
    }
    problems
}

/// Warns about finalizers with invalid names.
pub fn warnings(object: &Object, old: Option<&Object>) -> Vec<String> {
    const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    let before = old.map(Object::finalizers).unwrap_or_default();
    let mut new: Vec<String> = object
        .finalizers()
        .into_iter()
        .filter(|f| !before.contains(f))
        .collect();
    new.sort();
    new.dedup();
    let mut found = Vec::new();
    for name in new {
        let field = "metadata.finalizers";
        found.extend(
            tiphys_kube_schema::formats::qualified_name(&name)
                .into_iter()
                .map(|m| format!("{field}: \"{name}\": {m}")),
        );
        if name.contains('/') || STANDARD.contains(&name.as_str()) {
            continue;
        }
        let how = if name.contains('.') {
            " including a path (/)"
        } else {
            ""
        };
        found.push(format!(
            "{field}: \"{name}\": prefer a domain-qualified finalizer name{how} to avoid accidental conflicts with other finalizer writers"
        ));
    }
    found
}

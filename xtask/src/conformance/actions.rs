//! Suite `actions`: the results of Argo CD's resource actions on recorded objects, and which
//! actions exist.

use super::{Verdict, same};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tiphys_apimachinery::Object;
use tiphys_engine::{
    actions::{self, Operation},
    customize::Customizations,
};

pub fn run(case: &Value) -> Verdict {
    let live = Object::from_value(case["input"].clone()).map_err(|e| e.to_string())?;
    if case["kind"] == "discovery" {
        return discovery(case, &live);
    }
    let parameters: Vec<_> = case["parameters"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(k, v)| (k.clone(), text(v)))
        .collect();
    let action = case["action"].as_str().unwrap_or_default();
    let result = actions::run(
        &live,
        action,
        &parameters,
        &Customizations::default(),
        Timestamp::UNIX_EPOCH,
    );
    let expected = &case["expected"];
    if let Some(error) = expected["error"].as_str() {
        return match result {
            Err(got) if got.to_string() == error => Ok(()),
            other => Err(format!("expected the error {error:?}, got {other:?}")),
        };
    }
    let impacts = result.map_err(|e| e.to_string())?;
    let wanted: Vec<Value> = expected["impacted"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|impact| normalized(impact["object"].clone(), &live))
        .collect();
    let got = impacts.iter().enumerate().map(|(n, impact)| {
        let mut object = normalized(Value::Object(impact.object.0.clone()), &live);
        if let Some(wanted) = wanted.get(n) {
            leave_out(
                &mut object["metadata"],
                &wanted["metadata"],
                impact.operation,
            );
        }
        without_nulls(json!({"operation": impact.operation.as_str(), "object": object}))
    });
    let got = got.collect();
    // The recordings of created objects do not contain it.
    let operation = |object: &Value| {
        if object["kind"] == live.kind() {
            "patch"
        } else {
            "create"
        }
    };
    let wanted = wanted
        .iter()
        .map(|object| without_nulls(json!({"operation": operation(object), "object": object})));
    same(&wanted.collect(), &got)
}

/// The metadata in recordings is incomplete: a missing map or field is not compared, nor are labels
/// of created objects.
fn leave_out(got: &mut Value, wanted: &Value, operation: Operation) {
    if let Some(fields) = got.as_object_mut() {
        fields.retain(|field, _| wanted.get(field).is_some());
    }
    if let (Operation::Create, Some(labels)) = (
        operation,
        got.get_mut("labels").and_then(Value::as_object_mut),
    ) {
        labels.retain(|label, _| wanted["labels"].get(label).is_some());
    }
}

fn discovery(case: &Value, live: &Object) -> Verdict {
    let found = actions::discover(live, &Customizations::default()).map_err(|e| e.to_string())?;
    let got = found.iter().map(|a| {
        let params: Vec<&str> = a.params.iter().map(|p| p.name.as_str()).collect();
        (
            a.name.clone(),
            json!([a.disabled, a.display_name, a.icon_class, params]),
        )
    });
    let wanted = case["expected"]["actions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|a| {
            let params: Vec<String> = a["params"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|p| text(&p["name"]))
                .collect();
            let disabled = a["disabled"].as_bool().unwrap_or_default();
            (
                text(&a["name"]),
                json!([
                    disabled,
                    text(&a["displayName"]),
                    text(&a["iconClass"]),
                    params
                ]),
            )
        });
    same(
        &Value::Object(wanted.collect::<Map<_, _>>()),
        &Value::Object(got.collect::<Map<_, _>>()),
    )
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(
        || {
            if value.is_null() {
                String::new()
            } else {
                value.to_string()
            }
        },
        str::to_owned,
    )
}

/// The object without what depends on the time, and what the recordings do not keep.
fn normalized(mut object: Value, live: &Object) -> Value {
    const MOMENTS: [&str; 5] = [
        "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt",
        "/metadata/annotations/kubectl.kubernetes.io~1restartedAt",
        "/metadata/annotations/reconcile.fluxcd.io~1requestedAt",
        "/metadata/annotations/cnpg.io~1reloadedAt",
        "/spec/restartAt",
    ];
    const OTHERS: [&str; 2] = [
        "/metadata/annotations/force-sync",
        "/status/targetPrimaryTimestamp",
    ];
    for pointer in MOMENTS.iter().chain(&OTHERS) {
        if let Some(moment) = object.pointer_mut(pointer) {
            *moment = "(a moment)".into();
        }
    }
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        annotations.remove("workflows.argoproj.io/scheduled-time");
    }
    for condition in object
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if condition["type"] == "FailureTarget" {
            condition["lastTransitionTime"] = "(a moment)".into();
        }
    }
    if object["kind"] != live.kind() && text(&object["metadata"]["name"]).starts_with(live.name()) {
        object["metadata"]["name"] = "(made up)".into();
    }
    if object["kind"] == "Deployment" {
        for (parent, field) in [
            ("", "status"),
            ("/metadata", "creationTimestamp"),
            ("/metadata", "generation"),
        ] {
            if let Some(Value::Object(fields)) = object.pointer_mut(parent) {
                fields.remove(field);
            }
        }
    }
    object
}

/// Lua does not distinguish null from absent values, nor do the recordings distinguish empty from
/// absent maps and lists.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields
                .into_iter()
                .map(|(k, v)| (k, without_nulls(v)))
                .filter(|(_, v)| !is_empty(v));
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

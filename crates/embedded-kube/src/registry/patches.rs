//! Applies patches to objects and rejects them as the real server does. Main functions:
//! [`patched`], [`unreadable`].

use super::MAX_DEPTH;
use super::meta::{group_version, is_version};
use crate::base::options::{Patch, Spelling, WriteOptions};
use crate::catalog::Resource;
use crate::status::{Cause, Status, patch_refused};
use crate::strategy::{Unreadable, judge};
use serde_json::Value;
use tiphys_apimachinery::object::is_deeper_than;
use tiphys_apimachinery::patch::{self, PatchError};
use tiphys_apimachinery::schema::{self, TypeRef};
use tiphys_apimachinery::{Gvk, Object};
use tiphys_gocompat::json;
use tiphys_kube_schema::gotypes::AsWritten;
use tiphys_kube_schema::{gofmt, gotypes};

/// The error for a patch whose result cannot be read as its kind. `result` is the patched object.
pub fn unreadable(
    gvk: &Gvk,
    builtin: bool,
    how: &Patch,
    old: &Object,
    result: &Object,
    why: &Unreadable,
) -> Status {
    match how {
        Patch::Strategic(_) if why.inside => Status::new(500, "", why.reading.clone()),
        Patch::Strategic(sent) => {
            let rest = schema::builtin()
                .type_for(gvk)
                .map(|ty| patch::strategic::rest(&Value::Object(old.0.clone()), sent, ty));
            refused(gofmt::plain(rest.as_ref().unwrap_or(sent)), &why.converting)
        }
        Patch::Apply(_) if !builtin => Status::new(500, "", why.reading.clone()),
        Patch::Apply(config) => {
            let who = format!("{}/{}; {}", config.namespace(), config.name(), config.gvk());
            let text = match why.inside {
                true => format!("failed to convert to unversioned ({who}): {}", why.reading),
                false => format!(
                    "failed to convert new object ({who}) to proper version: unable to convert unstructured object to {gvk}: {}",
                    why.converting
                ),
            };
            Status::new(500, "", text)
        }
        Patch::Merge(_) | Patch::Json(..) => {
            refused(patched_text(gvk, builtin, how, old, result), &why.reading)
        }
    }
}

/// The error for a patch with an invalid result.
fn refused(shown: String, why: &str) -> Status {
    Status::invalid(
        "",
        "",
        "",
        vec![Cause::invalid("patch", &shown.into(), why)],
    )
}

/// The text of a patched object.
fn patched_text(gvk: &Gvk, builtin: bool, how: &Patch, old: &Object, result: &Object) -> String {
    let written = gotypes::of(gvk)
        .filter(|_| builtin)
        .map(|of| AsWritten::new(&old.0, of));
    match (written, how) {
        (Some(written), Patch::Json(operations, _)) => written.json_patched(operations),
        (Some(written), Patch::Merge(patch)) => written.merge_patched(patch),
        _ => gofmt::json(&Value::Object(result.0.clone())),
    }
}

/// The error for a patch that turns an object into a list.
pub fn not_an_object(text: String) -> Status {
    refused(
        text,
        &format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type {TYPE_META}"
        ),
    )
}

/// Handles a patch that changes the type of a built-in object or removes its version.
pub fn settle_said_type(
    resource: &Resource,
    (how, options): (&Patch, &WriteOptions),
    old: &Object,
    new: &mut Object,
) -> Result<(), Status> {
    settle_type(resource, how, old, new)?;
    match matches!(how, Patch::Json(..) | Patch::Merge(_)) && says_no_version(resource, new) {
        true => Err(without_version(resource, (old, new), how, options)),
        false => Ok(()),
    }
}

/// Handles a patch that changes the type of an object. A strategic patch cannot change it; the
/// other patches work on the text, which is then decoded as the new type.
pub fn settle_type(
    resource: &Resource,
    how: &Patch,
    old: &Object,
    result: &mut Object,
) -> Result<(), Status> {
    if result.api_version() == old.api_version() && result.kind() == old.kind() {
        return Ok(());
    }
    let (builtin, is_text) = (
        resource.custom.is_none(),
        matches!(how, Patch::Merge(_) | Patch::Json(..)),
    );
    let refused = |result: &Object, why: Unreadable| {
        Err(unreadable(&resource.gvk(), builtin, how, old, result, &why))
    };
    if (builtin || is_text)
        && let Some(why) = unreadable_type(result)
    {
        return refused(result, why);
    }
    if is_text && let Err(why) = group_version(result.api_version()) {
        return refused(result, why.into());
    }
    let missing = |field: &str, result: &Object| {
        format!(
            "Object '{field}' is missing in '{}'",
            patched_text(&resource.gvk(), builtin, how, old, result)
        )
    };
    if !builtin {
        return match result.0.get("apiVersion") {
            _ if !is_text => Ok(()),
            _ if result.kind().is_empty() => refused(result, missing("Kind", result).into()),
            Some(Value::Null) => refused(
                result,
                ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
                    .to_owned()
                    .into(),
            ),
            _ => Ok(()),
        };
    }
    match how {
        Patch::Apply(_) => return Ok(()),
        _ if is_text && says_no_version(resource, result) => {
            let (group, kind) = (&resource.group, result.kind());
            if kind.is_empty()
                || kind == resource.kind
                || schema::resources()
                    .iter()
                    .any(|known| known.group == *group && known.kind == kind)
            {
                return Ok(());
            }
            let scheme = "in scheme \"pkg/runtime/scheme.go:111\"";
            return refused(result, format!("no kind {kind:?} is registered for the internal version of group {group:?} {scheme}").into());
        }
        _ if is_text && !result.kind().is_empty() => {
            let got = result.gvk();
            if got.group == resource.group
                && got.kind == resource.kind
                && is_version(&resource.gvk(), &got)
            {
                result
                    .0
                    .insert("apiVersion".into(), old.api_version().into());
                return Ok(());
            }
            if got.group == resource.group
                && got.kind == resource.kind
                && schema::builtin().type_for(&got).is_some()
            {
                return Ok(());
            }
            if got.version.is_empty() {
                return refused(result, missing("apiVersion", result).into());
            }
            let read =
                gotypes::of(&got).map(|of| gotypes::read_into(&mut result.0.clone(), of, false));
            return match read {
                Some(Err(wrong)) => refused(result, wrong.into()),
                _ => refused(result, super::meta::not_of_type(resource, &got).into()),
            };
        }
        _ => {}
    }
    result
        .0
        .insert("apiVersion".into(), old.api_version().into());
    result.0.insert("kind".into(), old.kind().into());
    Ok(())
}

/// The error for a kind or version that is not a string.
fn unreadable_type(result: &Object) -> Option<Unreadable> {
    let wrong = |field| {
        Some((
            field,
            result
                .0
                .get(field)
                .filter(|v| !v.is_string() && !v.is_null())?,
        ))
    };
    let (field, value) = ["kind", "apiVersion"].into_iter().find_map(wrong)?;
    let kind = json::kind(value);
    Some(Unreadable {
        reading: format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go struct field .{field} of type string"
        ),
        converting: match value.is_i64() || value.is_u64() {
            true => "cannot convert int64 to string".to_owned(),
            false => "unrecognized type: string".to_owned(),
        },
        inside: false,
    })
}

/// Whether a patched object has no version. An object with another version cannot be read.
pub fn says_no_version(resource: &Resource, result: &Object) -> bool {
    let said = result.gvk();
    said.version.is_empty()
        && (said.group.is_empty() || said.group == resource.group || resource.custom.is_some())
}

/// The error for a patch that removes the version of a built-in object: the real server then
/// decodes it into its internal struct, whose fields match none of the object's.
fn without_version(
    resource: &Resource,
    (old, result): (&Object, &Object),
    how: &Patch,
    options: &WriteOptions,
) -> Status {
    let unknown = result
        .0
        .keys()
        .filter(|key| !matches!(key.as_str(), "apiVersion" | "kind"));
    let unknown = unknown.map(|key| format!("unknown field {}", gofmt::quoted(key)));
    match judge(
        options.findings.iter().cloned().chain(unknown).collect(),
        options,
    ) {
        Err(why) => unreadable(&resource.gvk(), true, how, old, result, &why),
        Ok(warnings) => {
            let name = old.name();
            Status::bad_request(format!("the name of the object ({name} based on URL) was undeterminable: name must be provided"))
                .warned(&warnings)
        }
    }
}

/// The Go struct that kind and version are decoded into.
pub const TYPE_META: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// The error for a patch whose JSON type is already wrong; it is the same whether fields are
/// validated or not.
fn wrong_patch(found: &Value, wanted: &str) -> Status {
    Status::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {} into Go value of type {wanted}",
        json::kind(found)
    ))
}

/// The decoder's error for the first operation that has a field of a wrong type.
fn wrong_operation(operations: &[Value]) -> Option<Status> {
    operations
        .iter()
        .find_map(|operation| match operation {
            Value::Null => None,
            Value::Object(map) => ["from", "op", "path"].iter().find_map(|field| {
                let value = map.get(*field).filter(|v| !v.is_string() && !v.is_null())?;
                Some(
                    wrong_patch(value, "string")
                        .message
                        .replace("Go value", &format!("Go struct field jsonPatchOp.{field}")),
                )
            }),
            other => Some(wrong_patch(other, "handlers.jsonPatchOp").message),
        })
        .map(Status::bad_request)
}

fn compares(operations: &Value) -> bool {
    operations
        .as_array()
        .is_some_and(|list| list.iter().any(|operation| operation["op"] == "test"))
}

/// The characters that Go's encoder escapes, and the backslash, to distinguish escapes from text.
const ESCAPES: [(&str, &str); 6] = [
    ("\\", "\\\\"),
    ("<", "\\u003c"),
    (">", "\\u003e"),
    ("&", "\\u0026"),
    ("\u{2028}", "\\u2028"),
    ("\u{2029}", "\\u2029"),
];

/// Patches the document in its text form with Go's escapes, as the real server does.
fn as_texts(document: &Value, operations: &Value) -> Result<Value, PatchError> {
    let (mut document, mut operations) = (document.clone(), operations.clone());
    respell(&mut document, &|text| {
        ESCAPES
            .iter()
            .fold(text.to_owned(), |text, (plain, escaped)| {
                text.replace(plain, escaped)
            })
    });
    for operation in operations.as_array_mut().into_iter().flatten() {
        operation
            .get_mut("value")
            .into_iter()
            .for_each(|value| respell(value, &|text| text.replace(ESCAPES[0].0, ESCAPES[0].1)));
    }
    let mut result = patch::json::apply(&document, &operations)?;
    respell(&mut result, &|text| {
        let part = |part: &str| {
            ESCAPES[1..]
                .iter()
                .fold(part.to_owned(), |text, (plain, escaped)| {
                    text.replace(escaped, plain)
                })
        };
        text.split(ESCAPES[0].1)
            .map(part)
            .collect::<Vec<_>>()
            .join(ESCAPES[0].0)
    });
    Ok(result)
}

/// Rewrites every string in a value.
fn respell(value: &mut Value, spell: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = spell(text),
        Value::Array(list) => list.iter_mut().for_each(|value| respell(value, spell)),
        Value::Object(map) => map.values_mut().for_each(|value| respell(value, spell)),
        _ => {}
    }
}

/// Applies a patch to the scale subresource.
pub fn patched_scale(scale: &Object, how: &Patch) -> Result<Object, Status> {
    patched_as(scale_type(), scale, how)
}

/// The schema of a Scale.
pub fn scale_type() -> Option<TypeRef<'static>> {
    schema::builtin().type_for(&Gvk::new("autoscaling", "v1", "Scale"))
}

/// Applies a patch to an object.
pub fn patched(resource: &Resource, old: &Object, how: &Patch) -> Result<Object, Status> {
    patched_as(resource.builtin_type(), old, how)
}

fn patched_as(ty: Option<TypeRef<'static>>, old: &Object, how: &Patch) -> Result<Object, Status> {
    match how {
        Patch::Json(p, _) if !p.is_array() => return Err(wrong_patch(p, "[]handlers.jsonPatchOp")),
        Patch::Json(Value::Array(list), _) => {
            if let Some(status) = wrong_operation(list) {
                return Err(status);
            }
        }
        Patch::Merge(p) if !p.is_object() => return Err(wrong_patch(p, "map[string]interface {}")),
        Patch::Strategic(p) if !p.is_object() => {
            let mut status = wrong_patch(p, "map[string]interface {}");
            status.message = status.message.replacen("error decoding patch: ", "", 1);
            return Err(status);
        }
        _ => {}
    }
    let mut document = old.clone().into_value();
    let result = match how {
        Patch::Json(p, Spelling::Plain) if compares(p) => as_texts(&document, p),
        Patch::Json(p, _) => patch::json::apply_in_place(&mut document, p).map(|()| document),
        Patch::Merge(p) => patch::json_merge::apply_in_place(&mut document, p).map(|()| document),
        Patch::Strategic(p) => match ty {
            Some(ty) => patch::strategic::apply_owned(document, p.clone(), ty),
            None => {
                return Err(Status::unsupported_media_type(
                    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                ));
            }
        },
        Patch::Apply(_) => Ok(document),
    };
    let value = result.map_err(|e| patch_refused(&e))?;
    if is_deeper_than(&value, MAX_DEPTH) {
        return Err(Status::bad_request(format!(
            "exceeded max depth: the object would have more than {MAX_DEPTH} levels"
        )));
    }
    match value {
        Value::Object(map) => Ok(Object(map)),
        list => Err(not_an_object(gofmt::json(&list))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_server_escapes_is_not_what_a_plain_text_says() {
        let document = json!({"a": "x < y", "b": r"\u003c", "c": "z"});
        let patch = |value: &str| json!([{"op": "test", "path": "/a", "value": value}, {"op": "add", "path": "/d", "value": r"& \u0026"}]);
        assert!(as_texts(&document, &patch("x < y")).is_err());
        let added = json!([{"op": "add", "path": "/d", "value": r"<\u003c"}, {"op": "test", "path": "/d", "value": r"<\u003c"}]);
        let patched = as_texts(&document, &added).expect("applies");
        assert_eq!(
            patched,
            json!({"a": "x < y", "b": r"\u003c", "c": "z", "d": r"<\u003c"})
        );
    }
}

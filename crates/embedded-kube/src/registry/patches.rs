//! What a patch makes of an object, and how the real server refuses one. Main functions: [`patched`], [`unreadable`].

use super::options::Patch;
use crate::catalog::Resource;
use crate::gotypes;
use crate::status::{Cause, Status};
use crate::strategy::Unreadable;
use crate::structural::gofmt;
use serde_json::{Map, Value};
use tiphys_apimachinery::object::map_entry;
use tiphys_apimachinery::patch::{self, PatchError};
use tiphys_apimachinery::schema::{self, TypeRef};
use tiphys_apimachinery::{Gvk, Object};

/// The refusal of a patch whose result cannot be read as the kind it should be. `result` is the patched object.
pub fn unreadable(gvk: &Gvk, builtin: bool, how: &Patch, old: &Object, result: &Object, why: &Unreadable) -> Status {
    let refused = |shown: String, why: &str| Status::invalid("", "", "", vec![Cause::invalid("patch", &shown.into(), why)]);
    let of = gotypes::of(gvk).filter(|_| builtin);
    match how {
        Patch::Strategic(patch) => {
            let mut left = patch.clone();
            use_up(&mut left, Some(&Value::Object(old.0.clone())));
            refused(gofmt::plain(&left), &why.converting)
        }
        Patch::Apply(_) if !builtin => Status::new(500, "", why.reading.clone()),
        Patch::Apply(config) => {
            let who = format!("{}/{}; {}", config.namespace(), config.name(), config.gvk());
            let text = format!(
                "failed to convert new object ({who}) to proper version: unable to convert unstructured object to {gvk}: {}",
                why.converting
            );
            Status::new(500, "", text)
        }
        Patch::Merge(patch) => refused(as_go_writes(of, result, patch), &why.reading),
        Patch::Json(patch) => refused(as_go_writes(of, result, &touched_by(patch, old)), &why.reading),
    }
}

/// Whether a patched object does not say its version. One that says something else cannot be read.
pub fn says_no_version(result: &Object) -> bool {
    result.0.get("apiVersion").is_none_or(|version| version.is_null() || version == "")
}

/// The refusal of a patch that takes the version away: what is built in is read as the struct inside then, in which nothing is found.
pub fn without_version(resource: &Resource, name: &str) -> Status {
    match resource.custom {
        Some(_) => Status::internal("Object 'apiVersion' is missing in 'object has no apiVersion field'"),
        None => Status::bad_request(format!("the name of the object ({name} based on URL) was undeterminable: name must be provided")),
    }
}

/// Takes out of a strategic patch what is gone from it once it has been merged: directives that replace, and nulls for what is not
/// there.
fn use_up(patch: &mut Value, old: Option<&Value>) {
    let Value::Object(map) = patch else { return };
    if old.is_some_and(Value::is_object) {
        if map.get("$patch").is_some_and(|directive| directive == "replace") {
            map.remove("$patch");
            return;
        }
    } else {
        map.retain(|_, value| !value.is_null());
    }
    map.iter_mut().for_each(|(key, value)| use_up(value, old.and_then(|old| old.get(key))));
}

/// The patched text: what the patch did not touch is written as Go writes its structs, the rest in order of the keys.
fn as_go_writes(of: Option<&'static gotypes::Struct>, result: &Object, touched: &Value) -> String {
    match of {
        Some(of) => gotypes::text_of_patched(&result.0, of, touched),
        None => gofmt::json(&Value::Object(result.0.clone())),
    }
}

/// The places that a JSON Patch looks at, as a merge patch would name them.
fn touched_by(operations: &Value, old: &Object) -> Value {
    let mut places = Map::new();
    for operation in operations.as_array().into_iter().flatten() {
        for pointer in ["path", "from"].iter().filter_map(|field| operation.get(*field).and_then(Value::as_str)) {
            let words: Vec<String> = pointer.split('/').skip(1).map(|w| w.replace("~1", "/").replace("~0", "~")).collect();
            let Some((last, parents)) = words.split_last() else { continue };
            let at = parents.iter().fold(&mut places, |map, word| map_entry(map, word));
            // What is only looked at stays as it was written.
            if operation["op"] != "test" || old.pointer(pointer).is_none() {
                at.entry(last.clone()).or_insert(Value::Null);
            }
        }
    }
    places.into()
}

/// A patch that does not even have the right JSON type; requests say so whether fields are validated or not.
fn wrong_patch(found: &Value, wanted: &str) -> Status {
    Status::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {} into Go value of type {wanted}",
        tiphys_gocompat::json::kind(found)
    ))
}

/// What the server's decoder says of the first operation that has a field of a wrong type.
fn wrong_operation(operations: &[Value]) -> Option<Status> {
    operations
        .iter()
        .find_map(|operation| match operation {
            Value::Null => None,
            Value::Object(map) => ["from", "op", "path"].iter().find_map(|field| {
                let value = map.get(*field).filter(|v| !v.is_string() && !v.is_null())?;
                Some(wrong_patch(value, "string").message.replace("Go value", &format!("Go struct field jsonPatchOp.{field}")))
            }),
            other => Some(wrong_patch(other, "handlers.jsonPatchOp").message),
        })
        .map(Status::bad_request)
}

/// Why a patch does not apply, as the real server answers it.
pub fn patch_refused(error: &PatchError) -> Status {
    match error {
        // No more is said of what the document does not allow.
        PatchError::Operation { .. } | PatchError::ListOfLists => {
            Status::new(422, "Invalid", "the server rejected our request due to an error in our request").with_causes(Vec::new())
        }
        PatchError::TooManyOperations { .. } => Status::new(413, "RequestEntityTooLarge", format!("Request entity too large: {error}")),
        PatchError::Format(_) => Status::bad_request(error.to_string()),
        // The server looks at Go structs, which are called like the last word of the type's name.
        PatchError::UnknownField { type_name, field } => {
            let name = type_name.rsplit('.').next().unwrap_or(type_name);
            Status::new(500, "", format!("unable to find api field in struct {name} for the json field {field:?}"))
        }
        _ => Status::new(500, "", error.to_string()),
    }
}

/// A patch of the scale subresource.
pub fn patched_scale(scale: &Object, how: &Patch) -> Result<Object, Status> {
    patched_as(scale_type(), scale, how)
}

/// What a Scale consists of.
pub fn scale_type() -> Option<TypeRef<'static>> {
    schema::builtin().type_for(&Gvk::new("autoscaling", "v1", "Scale"))
}

/// A patch of an object.
pub fn patched(resource: &Resource, old: &Object, how: &Patch) -> Result<Object, Status> {
    patched_as(resource.builtin_type(), old, how)
}

fn patched_as(ty: Option<TypeRef<'static>>, old: &Object, how: &Patch) -> Result<Object, Status> {
    match how {
        Patch::Json(p) if !p.is_array() => return Err(wrong_patch(p, "[]handlers.jsonPatchOp")),
        Patch::Json(Value::Array(list)) => {
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
    let document = old.clone().into_value();
    let result = match how {
        Patch::Json(p) => patch::json::apply(&document, p),
        Patch::Merge(p) => patch::json_merge::apply(&document, p),
        Patch::Strategic(p) => match ty {
            Some(ty) => patch::strategic::apply(&document, p, ty),
            None => {
                return Err(Status::unsupported_media_type(
                    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                ));
            }
        },
        Patch::Apply(_) => Ok(document),
    };
    let value = result.map_err(|e| patch_refused(&e))?;
    Object::from_value(value).map_err(|e| Status::bad_request(e.to_string()))
}

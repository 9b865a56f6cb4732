//! What a patch makes of an object, and how the real server refuses one. Main functions: [`patched`], [`unreadable`].

use super::options::{Patch, Spelling};
use crate::catalog::Resource;
use crate::gotypes::{self, AsWritten};
use crate::status::{Cause, Status};
use crate::strategy::Unreadable;
use crate::structural::gofmt;
use serde_json::Value;
use tiphys_apimachinery::patch::{self, PatchError};
use tiphys_apimachinery::schema::{self, TypeRef};
use tiphys_apimachinery::{Gvk, Object};
use tiphys_gocompat::json;

/// The refusal of a patch whose result cannot be read as the kind it should be. `result` is the patched object.
pub fn unreadable(gvk: &Gvk, builtin: bool, how: &Patch, old: &Object, result: &Object, why: &Unreadable) -> Status {
    let refused = |shown: String, why: &str| Status::invalid("", "", "", vec![Cause::invalid("patch", &shown.into(), why)]);
    let of = gotypes::of(gvk).filter(|_| builtin);
    match how {
        Patch::Strategic(sent) => {
            let rest = schema::builtin().type_for(gvk).map(|ty| patch::strategic::rest(&Value::Object(old.0.clone()), sent, ty));
            refused(gofmt::plain(rest.as_ref().unwrap_or(sent)), &why.converting)
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
        Patch::Merge(_) | Patch::Json(..) => {
            let text = match (of.map(|of| AsWritten::new(&old.0, of)), how) {
                (Some(written), Patch::Json(operations, _)) => written.json_patched(operations),
                (Some(written), Patch::Merge(patch)) => written.merge_patched(patch),
                _ => gofmt::json(&Value::Object(result.0.clone())),
            };
            refused(text, &why.reading)
        }
    }
}

/// Decides what a patch does that makes an object of another kind: strategic patches have no say in it, and of the text that the
/// others make something else is read.
pub fn settle_type(resource: &Resource, how: &Patch, old: &Object, result: &mut Object) -> Result<(), Status> {
    if resource.custom.is_some() || (result.api_version() == old.api_version() && result.kind() == old.kind()) {
        return Ok(());
    }
    let refused = |why: Unreadable| Err(unreadable(&resource.gvk(), true, how, old, result, &why));
    let wrong =
        ["kind", "apiVersion"].into_iter().find_map(|field| Some((field, result.0.get(field).filter(|v| !v.is_string() && !v.is_null())?)));
    if let Some((field, value)) = wrong {
        let kind = json::kind(value);
        return refused(Unreadable {
            reading: format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go struct field .{field} of type string"
            ),
            converting: match value.is_i64() || value.is_u64() {
                true => "cannot convert int64 to string".to_owned(),
                false => "unrecognized type: string".to_owned(),
            },
        });
    }
    let says_kind = !result.kind().is_empty();
    match how {
        Patch::Merge(_) | Patch::Json(..) if says_no_version(result) => return Ok(()),
        Patch::Merge(_) | Patch::Json(..) if says_kind => {
            let got = result.gvk();
            if got.group == resource.group && got.kind == resource.kind && schema::builtin().type_for(&got).is_some() {
                return Ok(());
            }
            let read = gotypes::of(&got).map(|of| gotypes::read_into(&mut result.0.clone(), of, false));
            return refused(match read {
                Some(Err(wrong)) => wrong.into(),
                _ => super::meta::not_of_type(resource, &got).into(),
            });
        }
        Patch::Apply(_) => return Ok(()),
        _ => {}
    }
    result.0.insert("apiVersion".into(), old.api_version().into());
    result.0.insert("kind".into(), old.kind().into());
    Ok(())
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

/// A patch that does not even have the right JSON type; requests say so whether fields are validated or not.
fn wrong_patch(found: &Value, wanted: &str) -> Status {
    Status::bad_request(format!("error decoding patch: json: cannot unmarshal {} into Go value of type {wanted}", json::kind(found)))
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

fn compares(operations: &Value) -> bool {
    operations.as_array().is_some_and(|list| list.iter().any(|operation| operation["op"] == "test"))
}

/// What Go's encoder writes as an escape, and a backslash to tell escapes from text.
const ESCAPES: [(&str, &str); 6] =
    [("\\", "\\\\"), ("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u{2028}", "\\u2028"), ("\u{2029}", "\\u2029")];

/// Patches the document as the text that it is to the server, with its escapes.
fn as_texts(document: &Value, operations: &Value) -> Result<Value, PatchError> {
    let (mut document, mut operations) = (document.clone(), operations.clone());
    respell(&mut document, &|text| ESCAPES.iter().fold(text.to_owned(), |text, (plain, escaped)| text.replace(plain, escaped)));
    for operation in operations.as_array_mut().into_iter().flatten() {
        operation.get_mut("value").into_iter().for_each(|value| respell(value, &|text| text.replace(ESCAPES[0].0, ESCAPES[0].1)));
    }
    let mut result = patch::json::apply(&document, &operations)?;
    respell(&mut result, &|text| {
        let part = |part: &str| ESCAPES[1..].iter().fold(part.to_owned(), |text, (plain, escaped)| text.replace(escaped, plain));
        text.split(ESCAPES[0].1).map(part).collect::<Vec<_>>().join(ESCAPES[0].0)
    });
    Ok(result)
}

/// Changes every text in a value.
fn respell(value: &mut Value, spell: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = spell(text),
        Value::Array(list) => list.iter_mut().for_each(|value| respell(value, spell)),
        Value::Object(map) => map.values_mut().for_each(|value| respell(value, spell)),
        _ => {}
    }
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
    Object::from_value(value).map_err(|e| Status::bad_request(e.to_string()))
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
        assert_eq!(patched, json!({"a": "x < y", "b": r"\u003c", "c": "z", "d": r"<\u003c"}));
    }
}

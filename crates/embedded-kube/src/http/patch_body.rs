//! The body of a patch. Main function: [`read`].

use super::body;
use super::tree::Known;
use crate::base::{FieldValidation, Patch, Spelling};
use crate::registry::not_an_object;
use crate::status::Status;
use serde_json::{Map, Value};
use tiphys_gocompat::json;

pub const JSON: &str = "application/json-patch+json";
pub const MERGE: &str = "application/merge-patch+json";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";
/// The patch types that built-in kinds accept.
pub const ALL: [&str; 4] = [JSON, MERGE, STRATEGIC, APPLY];

const NO_PATCH: &str = "Invalid JSON Patch";

/// The patch and its decoder's findings. If fields are validated, it is decoded twice, and the
/// first decoder reports errors.
pub fn read(
    media: &str,
    validation: FieldValidation,
    bytes: &[u8],
) -> Result<(Patch, Vec<String>), Status> {
    if media == APPLY {
        let (config, findings) = body::parse_apply(bytes)?;
        return Ok((Patch::Apply(config), findings));
    }
    let validated = validation != FieldValidation::Ignore;
    let (value, mut findings) = body::parse_patch(
        bytes,
        if media == JSON {
            Known::Operations
        } else {
            Known::Nothing
        },
    )
    .map_err(|why| unreadable(media, validated, why))?;
    let patch = match media {
        JSON => {
            findings
                .iter_mut()
                .for_each(|finding| finding.insert_str(0, "json patch "));
            let plain =
                String::from_utf8_lossy(bytes).contains(['<', '>', '&', '\u{2028}', '\u{2029}']);
            Patch::Json(
                operations(value, validated)?,
                if plain {
                    Spelling::Plain
                } else {
                    Spelling::Escaped
                },
            )
        }
        MERGE => Patch::Merge(fields(value, validated)?),
        _ if value.is_null() => Patch::Strategic(Map::new().into()),
        _ => Patch::Strategic(value),
    };
    Ok((patch, findings))
}

fn unreadable(media: &str, validated: bool, why: String) -> Status {
    Status::bad_request(match media {
        MERGE if !validated => NO_PATCH.to_owned(),
        JSON | MERGE if validated => format!("error decoding patch: {why}"),
        _ => why,
    })
}

/// With field validation, other errors in the operations are reported when they are applied.
fn operations(mut value: Value, validated: bool) -> Result<Value, Status> {
    let refused = |found: &Value, wanted: &str| {
        Status::bad_request(format!(
            "json: cannot unmarshal {} into Go value of type jsonpatch.{wanted}",
            json::kind(found)
        ))
    };
    match &mut value {
        Value::Null => return Ok(Vec::<Value>::new().into()),
        _ if validated => {}
        Value::Array(list) => {
            if let Some(other) = list
                .iter()
                .find(|operation| !operation.is_object() && !operation.is_null())
            {
                return Err(refused(other, "Operation"));
            }
            // A member that is not a string is ignored.
            for operation in list.iter_mut().filter_map(Value::as_object_mut) {
                operation.retain(|field, word| {
                    word.is_string() || !matches!(field.as_str(), "op" | "path" | "from")
                });
            }
        }
        other => return Err(refused(other, "Patch")),
    }
    Ok(value)
}

fn fields(value: Value, validated: bool) -> Result<Value, Status> {
    match value {
        Value::Null => Err(Status::bad_request(NO_PATCH)),
        // The array would become the patched object.
        Value::Array(_) if !validated => Err(not_an_object(value.to_string())),
        Value::Object(_) => Ok(value),
        _ if !validated => Err(Status::bad_request(NO_PATCH)),
        _ => Ok(value),
    }
}

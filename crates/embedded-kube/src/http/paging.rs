//! Paging of lists: revisions, limits and continue tokens. Main type: [`PageRequest`].

use super::{Call, object};
use crate::status::Status;
use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tiphys_gocompat::json;
use tiphys_kube_schema::gotypes;

/// The unused trailing bits are ignored.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// The paging parameters of a list.
#[derive(Default)]
pub struct PageRequest {
    /// The revision to list at; none for the current one.
    pub revision: Option<u64>,
    /// The key at which the list continues; empty for the beginning.
    pub start: String,
    goes_on: bool,
    /// 0 for no limit.
    pub limit: usize,
}

impl PageRequest {
    pub fn of(call: &Call<'_>) -> Result<Self, Status> {
        let limit = usize::try_from(call.query.number("limit")?.unwrap_or(0)).unwrap_or(0);
        if let Some(token) = call.query.get("continue") {
            let (revision, start) = read_token(token)
                .map_err(|why| Status::bad_request(format!("invalid continue token: {why}")))?;
            if call
                .query
                .get("resourceVersion")
                .is_some_and(|version| version != "0")
            {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let revision = u64::try_from(revision).ok();
            revision.map_or(Ok(()), |revision| {
                object::check_not_ahead(call.registry(), revision)
            })?;
            return Ok(Self {
                revision,
                start,
                goes_on: true,
                limit,
            });
        }
        let Some(version) = call.query.get("resourceVersion") else {
            return Ok(Self {
                limit,
                ..Self::default()
            });
        };
        let asked = object::revision(version).map_err(|status| {
            Status::bad_request(format!("invalid resource version: {}", status.message))
        })?;
        object::check_not_ahead(call.registry(), asked)?;
        // A list that accepts any cached revision is never paged.
        let limit = if asked == 0 { 0 } else { limit };
        let exactly = match call.query.get("resourceVersionMatch") {
            Some(how) => how == "Exact",
            None => limit > 0,
        };
        Ok(Self {
            revision: Some(asked).filter(|_| exactly),
            limit,
            ..Self::default()
        })
    }

    /// The error for a list at a revision that has been discarded.
    pub fn too_old(&self) -> Status {
        if !self.goes_on {
            return Status::expired("The resourceVersion for the provided list is too old.");
        }
        let mut status = Status::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the \
             continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the \
             provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first \
             chunk was returned and now may show up in the list.",
        );
        status.goes_on = Some(write_token(-1, &self.start));
        status
    }
}

pub fn write_token(revision: i64, start: &str) -> String {
    URL_SAFE_NO_PAD
        .encode(json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start}).to_string())
}

/// The revision in a token (negative: the newest), and the next key.
fn read_token(token: &str) -> Result<(i64, String), String> {
    let invalid = |why: &str| format!("continue key is not valid: {why}");
    let bytes = LENIENT.decode(token).map_err(|_| {
        let wrong = |b: u8| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        let at = token
            .bytes()
            .position(wrong)
            .unwrap_or(token.len().saturating_sub(1));
        invalid(&format!("illegal base64 data at input byte {at}"))
    })?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        invalid(&gotypes::syntax_error(&bytes).unwrap_or_else(|| error.to_string()))
    })?;
    if !value.is_object() && !value.is_null() {
        return Err(invalid(&format!(
            "json: cannot unmarshal {} into Go value of type storage.continueToken",
            json::kind(&value)
        )));
    }
    let wrong = |field: &str, word: &str| {
        let found = json::kind(&value[field]);
        invalid(&format!(
            "json: cannot unmarshal {found} into Go struct field continueToken.{field} of type {word}"
        ))
    };
    let text = |field: &str| match &value[field] {
        Value::Null => Ok(""),
        found => found.as_str().ok_or_else(|| wrong(field, "string")),
    };
    let revision = match &value["rv"] {
        Value::Null => 0,
        found => found.as_i64().ok_or_else(|| wrong("rv", "int64"))?,
    };
    match text("v")? {
        "meta.k8s.io/v1" => {}
        other => {
            return Err(invalid(&format!(
                "server does not recognize this encoded version {other}"
            )));
        }
    }
    match (revision, text("start")?) {
        (0, _) => Err(invalid(
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        )),
        (_, "") => Err(invalid("encoded start key empty (version meta.k8s.io/v1)")),
        (_, start) if !is_clean(start) => Err(invalid(start)),
        (revision, start) => Ok((
            revision,
            start.strip_prefix('/').unwrap_or(start).to_owned(),
        )),
    }
}

/// Whether a key has no path elements that are empty, `.` or `..`.
fn is_clean(key: &str) -> bool {
    key == "/"
        || key
            .strip_prefix('/')
            .unwrap_or(key)
            .split('/')
            .all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_say_what_is_wrong_with_them() {
        assert_eq!(
            read_token(&write_token(7, "a\0")),
            Ok((7, "a\0".to_owned()))
        );
        let refused = |text: &str| read_token(&URL_SAFE_NO_PAD.encode(text)).expect_err("no token");
        assert_eq!(
            refused("[]"),
            "continue key is not valid: json: cannot unmarshal array into Go value of type storage.continueToken"
        );
        assert_eq!(
            refused("{}"),
            "continue key is not valid: server does not recognize this encoded version "
        );
        assert_eq!(
            refused(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a/../b"}"#),
            "continue key is not valid: a/../b"
        );
    }
}

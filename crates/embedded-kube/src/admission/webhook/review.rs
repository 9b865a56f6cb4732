//! `AdmissionReview`: the request sent to a webhook and its response. Main types: [`Review`],
//! [`WebhookResponse`].

use crate::admission::request::{Objects, Request};
use crate::catalog::Resource;
use crate::outbound::{Answer, refused};
use crate::status::{Cause, Details, Status};
use base64::Engine;
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;

const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";

pub struct Review {
    uid: String,
    version: String,
    question: Value,
}

/// The decision of a webhook.
#[derive(Debug, Default)]
pub struct WebhookResponse {
    pub allowed: bool,
    pub warnings: Vec<String>,
    pub patch: Vec<u8>,
    pub patch_type: String,
    status: Value,
}

/// Reasons that a Status can have.
const REASONS: &[&str] = &[
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Gone",
    "Invalid",
    "ServerTimeout",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "BadRequest",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "InternalError",
    "Expired",
    "ServiceUnavailable",
    "FieldValueNotFound",
    "FieldValueRequired",
    "FieldValueDuplicate",
    "FieldValueInvalid",
    "FieldValueNotSupported",
    "FieldValueForbidden",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "InternalError",
    "FieldValueTypeInvalid",
];

/// A known reason; others are not passed on.
fn reason(text: &str) -> &'static str {
    REASONS
        .iter()
        .find(|known| **known == text)
        .copied()
        .unwrap_or("")
}

impl Review {
    /// Fails if the webhook supports no known version. The inner result fails if the objects cannot
    /// be converted.
    pub fn new(
        request: &Request<'_>,
        objects: Objects<'_>,
        matched: &Arc<Resource>,
        versions: &Value,
    ) -> Result<Result<Self, Status>, String> {
        let known = versions
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .find(|v| matches!(*v, "v1" | "v1beta1"));
        let version =
            known.ok_or("could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)")?;
        let uid = uuid::Uuid::new_v4().to_string();
        let mut asked = request.to_json(matched);
        asked.insert("uid".into(), uid.clone().into());
        let [new, old] = match request.convert_all(objects, matched) {
            Ok(both) => both,
            Err(status) => return Ok(Err(status)),
        };
        for (field, object) in [("object", new), ("oldObject", old)] {
            asked.insert(field.into(), object.map_or(Value::Null, Object::into_value));
        }
        let question =
            json!({"kind": KIND, "apiVersion": format!("{GROUP}/{version}"), "request": asked});
        Ok(Ok(Self {
            uid,
            version: version.to_owned(),
            question,
        }))
    }

    pub fn body(&self) -> Vec<u8> {
        serde_json::to_vec(&self.question).expect("a JSON tree serialises")
    }

    /// The response as JSON of the right kind.
    pub fn read(&self, (code, media, body): Answer) -> Result<Value, String> {
        let text = String::from_utf8_lossy(&body);
        if !(200..300).contains(&code) {
            return Err(refused(code, &media, text.trim()));
        }
        if body.is_empty() {
            return Err(format!(
                "0-length response with status code: {code} and content type: {media}"
            ));
        }
        const WANTED: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
        let unread = |why: String| format!("couldn't get version/kind; json parse error: {why}");
        // The real client parses text that is not JSON as YAML.
        let answer: Value = match serde_json::from_slice(&body) {
            Ok(answer) => answer,
            Err(_) if !text.trim_start().starts_with('{') => Value::String(text.into_owned()),
            Err(error) => return Err(unread(go_error(&body, &error))),
        };
        if !answer.is_object() {
            let kind = tiphys_gocompat::json::kind(&answer);
            return Err(unread(format!(
                "json: cannot unmarshal {kind} into Go value of type {WANTED}"
            )));
        }
        let (version, kind) = (
            answer["apiVersion"].as_str().unwrap_or(""),
            answer["kind"].as_str().unwrap_or(""),
        );
        if !kind.is_empty() && kind != KIND {
            return Err(format!(
                "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
            ));
        }
        match version.strip_prefix("admission.k8s.io/") {
            Some(other @ ("v1" | "v1beta1")) if other != self.version => Err(format!(
                "converting ({other}.{KIND}) to ({}.{KIND}): unknown conversion",
                self.version
            )),
            _ => Ok(answer),
        }
    }

    /// Checks that the response answers this request, and returns its contents.
    pub fn verify(&self, answer: &Value, mutating: bool) -> Result<WebhookResponse, String> {
        let response = &answer["response"];
        if response.is_null() {
            return Err("webhook response was absent".to_owned());
        }
        let strict = self.version == "v1";
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        if strict {
            let uid = text(&response["uid"]);
            if uid != self.uid {
                return Err(format!(
                    "expected response.uid=\"{}\", got \"{uid}\"",
                    self.uid
                ));
            }
            let (version, kind) = (text(&answer["apiVersion"]), text(&answer["kind"]));
            if version != "admission.k8s.io/v1" || kind != KIND {
                return Err(format!(
                    "expected webhook response of {GROUP}/v1, Kind={KIND}, got {version}, Kind={kind}"
                ));
            }
        }
        let given = text(&response["patch"]);
        let typed = !response["patchType"].is_null();
        if strict && !mutating && !given.is_empty() {
            return Err("validating webhook may not return response.patch".to_owned());
        }
        if strict && !mutating && typed {
            return Err("validating webhook may not return response.patchType".to_owned());
        }
        if strict && !given.is_empty() && !typed {
            return Err("webhook returned response.patch but not response.patchType".to_owned());
        }
        if strict && given.is_empty() && typed {
            return Err("webhook returned response.patchType but not response.patch".to_owned());
        }
        let patch = base64::engine::general_purpose::STANDARD
            .decode(&given)
            .map_err(|e| format!("illegal base64 data: {e}"))?;
        let warnings = response["warnings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|w| w.as_str().map(str::to_owned))
            .collect();
        Ok(WebhookResponse {
            allowed: response["allowed"] == true,
            warnings,
            patch: if mutating { patch } else { Vec::new() },
            patch_type: if strict {
                text(&response["patchType"])
            } else {
                "JSONPatch".to_owned()
            },
            status: response["status"].clone(),
        })
    }
}

impl WebhookResponse {
    /// The error for a denial, with the message of the webhook.
    pub fn refusal(&self, webhook: &str) -> Status {
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let code = self.status["code"]
            .as_u64()
            .and_then(|c| u16::try_from(c).ok())
            .unwrap_or(0)
            .max(400);
        let by = format!("admission webhook \"{webhook}\" denied the request");
        let (message, why) = (text(&self.status["message"]), text(&self.status["reason"]));
        let message = match (message.as_str(), why.as_str()) {
            ("", "") => format!("{by} without explanation"),
            ("", why) => format!("{by}: {why}"),
            (message, _) => format!("{by}: {message}"),
        };
        let mut status = Status::new(code, reason(&why), message);
        let details = &self.status["details"];
        if details.is_object() {
            let cause = |c: &Value| Cause {
                reason: reason(&text(&c["reason"])),
                message: text(&c["message"]),
                field: text(&c["field"]),
            };
            status.details = Some(Box::new(Details {
                name: text(&details["name"]),
                group: text(&details["group"]),
                kind: text(&details["kind"]),
                uid: text(&details["uid"]),
                causes: details["causes"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(cause)
                    .collect(),
                retry_after_seconds: details["retryAfterSeconds"]
                    .as_u64()
                    .and_then(|n| u32::try_from(n).ok())
                    .unwrap_or(0),
            }));
        }
        status
    }
}

/// Go's error for bytes that are not JSON.
pub fn go_error(bytes: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let first = String::from_utf8_lossy(bytes)
        .chars()
        .find(|c| !c.is_whitespace())
        .unwrap_or(' ');
    match error.column() {
        0 | 1 => format!("invalid character '{first}' looking for beginning of value"),
        _ if error.line() == 1 && !matches!(first, '{' | '[') => {
            format!("invalid character '{first}' looking for beginning of value")
        }
        _ => error.to_string(),
    }
}

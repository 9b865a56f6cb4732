//! What the controller receives: errors, complete responses, and responses that break off.

use super::Answer;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower::BoxError;

pub fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message})
}

pub fn refusal(code: u16, message: &str, wait: bool) -> Answer {
    let reason = match code {
        409 => "Conflict",
        413 => "RequestEntityTooLarge",
        403 => "Forbidden",
        404 => "NotFound",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        _ => "InternalError",
    };
    let mut answer = whole(
        StatusCode::from_u16(code).expect("a status"),
        Bytes::from(status(code, reason, message).to_string()),
    );
    if wait {
        answer
            .headers_mut()
            .insert("Retry-After", http::HeaderValue::from_static("1"));
    }
    answer
}

pub fn whole(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(
        http_body_util::Full::new(body)
            .map_err(|never| match never {})
            .boxed_unsync(),
    );
    *answer.status_mut() = status;
    answer
}

pub fn cut(status: StatusCode, body: &Bytes) -> Answer {
    let (sender, receiver) = mpsc::unbounded_channel();
    let _ = sender.send(Ok(body.slice(..body.len() / 2)));
    let _ = sender.send(Err("the connection is cut".into()));
    let mut answer = Response::new(streamed(receiver));
    *answer.status_mut() = status;
    answer
}

pub fn streamed(
    receiver: mpsc::UnboundedReceiver<Result<Bytes, BoxError>>,
) -> UnsyncBoxBody<Bytes, BoxError> {
    let frames = futures::stream::unfold(receiver, |mut receiver| async move {
        Some((receiver.recv().await?.map(Frame::data), receiver))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Discovery's answer as the API server gives it when it cannot reach the server of the groups that
/// end like this.
pub fn without_kinds(answer: &[u8], groups: &str) -> Bytes {
    let mut answer: Value = serde_json::from_slice(answer).expect("it is asked for as JSON");
    let list = answer["items"].as_array_mut().into_iter().flatten();
    for group in list {
        let is_one = group["metadata"]["name"]
            .as_str()
            .is_some_and(|name| name.ends_with(groups));
        let versions = group["versions"].as_array_mut().into_iter().flatten();
        for version in versions.filter(|_| is_one) {
            version["freshness"] = "Stale".into();
            version["resources"] = json!([]);
        }
    }
    answer.to_string().into()
}

//! Requests to an in-process server.

use axum::Router;
use axum::body::Body;
use http::{Method, Request, header::CONTENT_TYPE};
use http_body_util::BodyExt;
use serde_json::Value;
use tiphys_embedded_kube::{Data, EmbeddedKube, Options};
use tower::ServiceExt;

pub async fn start(data: Data) -> EmbeddedKube {
    EmbeddedKube::start(Options {
        data,
        ..Options::default()
    })
    .await
    .expect("the server starts")
}

/// Sends a request with a JSON body (empty for null) and gives code and answer (a string when it is
/// not JSON).
pub async fn send(
    router: &Router,
    method: &str,
    path: &str,
    media: &str,
    body: &Value,
) -> (u16, Value) {
    let body = if body.is_null() {
        Body::empty()
    } else {
        Body::from(body.to_string())
    };
    let method: Method = method.parse().expect("a method");
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, media)
        .body(body)
        .expect("a request");
    let response = router.clone().oneshot(request).await.expect("it answers");
    let code = response.status().as_u16();
    let bytes = response
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    let value = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    (code, value)
}

pub async fn get(router: &Router, path: &str) -> (u16, Value) {
    send(router, "GET", path, "application/json", &Value::Null).await
}

pub async fn post(router: &Router, path: &str, body: &Value) -> (u16, Value) {
    send(router, "POST", path, "application/json", body).await
}

/// Counts answers, and keeps those that differ from a real server's.
#[derive(Default)]
pub struct Comparison {
    compared: usize,
    differences: Vec<String>,
}

impl Comparison {
    pub fn add(&mut self, what: &str, found: &Value, wanted: &Value) {
        self.compared += 1;
        if found != wanted {
            self.differences
                .push(format!("{what}\n  real {wanted}\n  here {found}"));
        }
    }

    /// Fails when an answer differed.
    pub fn finish(self) {
        println!(
            "{} of {} answers are equal",
            self.compared - self.differences.len(),
            self.compared
        );
        assert!(
            self.differences.is_empty(),
            "{}",
            self.differences.join("\n")
        );
    }
}

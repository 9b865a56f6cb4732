//! What the controller sends: recorded, and refused where a scenario says so. Main type: [`Wire`].

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{Method, StatusCode, header};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use tower::ServiceExt;

/// The longest body.
const LIMIT: usize = 16 << 20;

/// A request that writes, with the status of its answer.
#[derive(Clone, Debug)]
pub struct Write {
    pub verb: String,
    pub path: String,
    pub status: u16,
    pub body: Value,
}

struct Fault {
    verb: String,
    path: String,
    status: u16,
    reason: String,
    times: u64,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Wire {
    /// The API server.
    router: axum::Router,
    seen: Arc<Mutex<(Vec<Write>, Vec<Fault>)>>,
}

impl Wire {
    pub fn new(router: axum::Router) -> Self {
        Self {
            router,
            seen: Arc::default(),
        }
    }

    /// The API server as the controller sees it.
    pub fn router(&self) -> axum::Router {
        let wire = self.clone();
        axum::Router::new().fallback(move |request: Request| {
            let wire = wire.clone();
            async move { wire.pass(request).await }
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Vec<Write>, Vec<Fault>)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn writes(&self) -> Vec<Write> {
        self.lock().0.clone()
    }

    pub fn take(&self) -> Vec<Write> {
        std::mem::take(&mut self.lock().0)
    }

    /// The next requests of these kinds are refused.
    pub fn faults(&self, faults: &Value) {
        let of = |fault: &Value, field: &str| fault[field].as_str().unwrap_or_default().to_owned();
        let faults = faults.as_array().into_iter().flatten();
        self.lock().1.extend(faults.map(|fault| {
            Fault {
                verb: of(fault, "Verb"),
                path: of(fault, "Path"),
                status: fault["Status"]
                    .as_u64()
                    .and_then(|s| s.try_into().ok())
                    .unwrap_or(500),
                reason: of(fault, "Reason"),
                times: fault["Times"].as_u64().unwrap_or(1),
            }
        }));
    }

    fn fault(&self, verb: &str, path: &str) -> Option<Response> {
        let mut seen = self.lock();
        let fits = |fault: &&mut Fault| {
            fault.times > 0 && fault.verb == verb && path.contains(&fault.path)
        };
        let fault = seen.1.iter_mut().find(fits)?;
        fault.times -= 1;
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "message": "injected failure", "reason": fault.reason, "code": fault.status,
        });
        let code = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let headers = [(header::CONTENT_TYPE, "application/json")];
        Some((code, headers, status.to_string()).into_response())
    }

    async fn pass(&self, request: Request) -> Response {
        if request.method() == Method::GET {
            return self.send(request).await;
        }
        let (parts, body) = request.into_parts();
        let (verb, path) = (parts.method.to_string(), parts.uri.path().to_owned());
        let Ok(body) = to_bytes(body, LIMIT).await else {
            return StatusCode::PAYLOAD_TOO_LARGE.into_response();
        };
        let sent = serde_json::from_slice(&body).unwrap_or_default();
        let response = match self.fault(&verb, &path) {
            Some(refusal) => refusal,
            None => {
                self.send(Request::from_parts(parts, Body::from(body)))
                    .await
            }
        };
        let response = if verb == "POST" && path.ends_with("/jobs") {
            self.complete(response).await
        } else {
            response
        };
        self.lock().0.push(Write {
            verb,
            path,
            status: response.status().as_u16(),
            body: sent,
        });
        response
    }

    async fn send(&self, request: Request) -> Response {
        let answered = self.router.clone().oneshot(request).await;
        answered.unwrap_or_else(|never| match never {})
    }

    /// A Job that was made is complete before its maker knows of it.
    async fn complete(&self, response: Response) -> Response {
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, LIMIT).await.unwrap_or_default();
        let job: Value = serde_json::from_slice(&body).unwrap_or_default();
        let of = |field: &str| job["metadata"][field].as_str().unwrap_or_default();
        if parts.status.is_success() {
            let (namespace, name) = (of("namespace"), of("name"));
            let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs/{name}/status");
            let at = of("creationTimestamp");
            let condition = |name: &str| {
                json!({"type": name, "status": "True", "lastProbeTime": at,
                    "lastTransitionTime": at})
            };
            let status = json!({"status": {
                "startTime": at, "completionTime": at, "succeeded": 1,
                "uncountedTerminatedPods": {},
                "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
            }});
            let request = Request::builder()
                .method(Method::PATCH)
                .uri(path)
                .header(header::CONTENT_TYPE, "application/merge-patch+json")
                .body(Body::from(status.to_string()));
            if let Ok(request) = request {
                let answer = self.send(request).await;
                assert!(answer.status().is_success(), "{:?}", answer.into_parts().0);
            }
        }
        Response::from_parts(parts, Body::from(body))
    }
}

//! Health, version and the subresources that are not plain writes.

use super::{Call, connect, object, pod_log, pod_requests, scale, token, write};
use crate::registry::Part;
use crate::status::Status;
use axum::body::Body;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Response};
use serde_json::{Value, json};

/// What `/version` says; the mark after the plus tells that this is not the real one.
pub const GIT_VERSION: &str = "v1.36.3+tiphys";

pub fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": GIT_VERSION, "gitCommit": concat!("embedded-", env!("CARGO_PKG_VERSION")), "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_arch()),
    })
}

/// The processor as Go calls it.
fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn text(text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// A server that answers is healthy: there is nothing it waits for.
pub fn health(path: &str, check: &str, verbose: bool) -> Result<Response<Body>, Status> {
    if !check.is_empty() && !CHECKS.contains(&check) && !check.starts_with("poststarthook/") {
        return Err(Status::no_such_path());
    }
    let name = path.trim_start_matches('/').split('/').next().unwrap_or("");
    let passed = if check.is_empty() { "[+]ping ok\n[+]store ok\n".to_owned() } else { format!("[+]{check} ok\n") };
    Ok(if verbose { text(format!("{passed}{name} check passed\n")) } else { text("ok".to_owned()) })
}

/// What can be asked for by itself.
const CHECKS: [&str; 8] = ["ping", "log", "etcd", "etcd-readiness", "informer-sync", "shutdown", "autoregister-completion", "store"];

pub async fn subresource(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let name = call.target.subresource.as_deref().unwrap_or("");
    if call.resource.subresource(name).is_none() {
        return Err(match call.resource.custom {
            Some(_) => Status::not_found(&call.resource.group, &call.resource.resource, call.name()),
            None => Status::not_served(),
        });
    }
    match (name, &call.parts.method) {
        ("status", &Method::GET) => object::get(call),
        ("status", &Method::PUT) => write::update(call, incoming, Part::Status).await,
        ("status", &Method::PATCH) => write::patch(call, incoming, Part::Status).await,
        ("scale", &Method::GET) => scale::get(call),
        ("scale", &Method::PUT) => scale::update(call, incoming).await,
        ("scale", &Method::PATCH) => scale::patch(call, incoming).await,
        ("finalize", &Method::PUT) => write::update(call, incoming, Part::Finalize).await,
        ("log", &Method::GET) => pod_log::get(call),
        ("eviction", &Method::POST) => pod_requests::evict(call, incoming).await,
        ("binding", &Method::POST) => pod_requests::bind(call, incoming).await,
        ("ephemeralcontainers" | "resize" | "approval", &Method::GET) => object::get(call),
        ("ephemeralcontainers", &Method::PUT) => write::update(call, incoming, Part::Ephemeral).await,
        ("ephemeralcontainers", &Method::PATCH) => write::patch(call, incoming, Part::Ephemeral).await,
        ("resize", &Method::PUT) => write::update(call, incoming, Part::Resize).await,
        ("resize", &Method::PATCH) => write::patch(call, incoming, Part::Resize).await,
        ("approval", &Method::PUT) => write::update(call, incoming, Part::Approval).await,
        ("approval", &Method::PATCH) => write::patch(call, incoming, Part::Approval).await,
        ("status" | "scale" | "finalize" | "log" | "eviction" | "binding" | "ephemeralcontainers" | "resize" | "approval", _) => {
            Err(Status::not_allowed())
        }
        ("exec" | "attach" | "portforward" | "proxy", _) => connect::connect(call, name),
        ("token", &Method::POST) => token::create(call, incoming).await,
        ("token", _) => Err(Status::not_allowed()),
        _ => Err(Status::not_implemented(format!("the subresource {name} of {} is not supported", call.resource.resource))),
    }
}

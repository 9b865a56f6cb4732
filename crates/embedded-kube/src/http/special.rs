//! Health, version, and the subresources that are not plain writes.

use super::{
    Call, check_media, connect, json_response, negotiate, object, pod_log, pod_requests, scale,
    token, write,
};
use crate::base::Part;
use crate::status::Status;
use axum::body::Body;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

/// The version in `/version`; the suffix after the plus marks this as not the real server.
pub const GIT_VERSION: &str = "v1.36.3+tiphys";

pub fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": GIT_VERSION, "gitCommit": concat!("embedded-", env!("CARGO_PKG_VERSION")), "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_arch()),
    })
}

/// The processor architecture in Go's naming.
fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn text(text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

/// A server that answers is healthy: it depends on nothing else.
pub fn health(path: &str, check: &str, verbose: bool) -> Result<Response<Body>, Status> {
    if !check.is_empty() && !CHECKS.contains(&check) && !check.starts_with("poststarthook/") {
        return Err(Status::no_such_path());
    }
    let name = path.trim_start_matches('/').split('/').next().unwrap_or("");
    let passed = if check.is_empty() {
        "[+]ping ok\n[+]store ok\n".to_owned()
    } else {
        format!("[+]{check} ok\n")
    };
    Ok(if verbose {
        text(format!("{passed}{name} check passed\n"))
    } else {
        text("ok".to_owned())
    })
}

/// The OpenID configuration, which tells clients how to verify tokens.
pub fn open_id() -> Value {
    json!({
        "issuer": crate::auth::jwt::ISSUER, "jwks_uri": format!("{}/openid/v1/jwks", crate::auth::jwt::ISSUER),
        "response_types_supported": ["id_token"], "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["ES256"],
    })
}

/// The keys to verify tokens with.
pub fn key_set(keys: &Value) -> Response<Body> {
    let mut response = json_response(keys);
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/jwk-set+json"),
    );
    response
}

/// The response of a handler that does not even return a Status for an unknown path.
pub fn nothing(status: &Status) -> Result<Response<Body>, Status> {
    if !status.is_no_such_path() {
        return Err(status.clone());
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_FOUND;
    Ok(response)
}

/// The response to a path that cannot be resolved.
pub fn incomplete(uri: &http::Uri) -> Response<Body> {
    let asked = uri
        .path_and_query()
        .map_or("", http::uri::PathAndQuery::as_str);
    let shown = format!(
        "{asked:?}: failed to create RequestInfo: unable to determine kind and namespace from url, {asked}"
    );
    let shown = shown
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let mut response = text(format!("Internal Server Error: {shown}\n"));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

/// The checks that can be requested individually.
const CHECKS: [&str; 8] = [
    "ping",
    "log",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    "shutdown",
    "autoregister-completion",
    "store",
];

pub async fn subresource(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let name = call.target.subresource.as_deref().unwrap_or("");
    if call.resource.subresource(name).is_none() {
        return Err(match call.resource.custom {
            Some(_) => {
                Status::not_found(&call.resource.group, &call.resource.resource, call.name())
            }
            None => Status::not_served(),
        });
    }
    if call.target.rest && call.resource.custom.is_none() && name != "proxy" {
        return Err(Status::not_served());
    }
    // Only the handler of custom kinds supports HEAD.
    let method = match &call.parts.method {
        &Method::HEAD if call.resource.custom.is_some() => &Method::GET,
        other => other,
    };
    let served = is_served(call, name, method);
    if served && call.resource.custom.is_none() {
        check_names(call)?;
    }
    match (name, served) {
        ("log", true) => negotiate::check_text(&call.parts.headers)?,
        // The other end of the connection decides.
        ("exec" | "attach" | "portforward" | "proxy", _) => {}
        (_, true) => check_media(call, false)?,
        _ => {}
    }
    match (name, method) {
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
        ("ephemeralcontainers", &Method::PUT) => {
            write::update(call, incoming, Part::Ephemeral).await
        }
        ("ephemeralcontainers", &Method::PATCH) => {
            write::patch(call, incoming, Part::Ephemeral).await
        }
        ("resize", &Method::PUT) => write::update(call, incoming, Part::Resize).await,
        ("resize", &Method::PATCH) => write::patch(call, incoming, Part::Resize).await,
        ("approval", &Method::PUT) => write::update(call, incoming, Part::Approval).await,
        ("approval", &Method::PATCH) => write::patch(call, incoming, Part::Approval).await,
        ("status" | "scale", other) if call.resource.custom.is_some() => {
            let verb = if other == Method::POST {
                "create"
            } else {
                "delete"
            };
            Err(Status::method_not_allowed(
                &call.resource.group,
                &call.resource.resource,
                verb,
            ))
        }
        (
            "status"
            | "scale"
            | "finalize"
            | "log"
            | "eviction"
            | "binding"
            | "ephemeralcontainers"
            | "resize"
            | "approval",
            _,
        ) => Err(Status::not_allowed()),
        ("exec" | "attach" | "portforward" | "proxy", _) => connect::connect(call, name),
        ("token", &Method::POST) => token::create(call, incoming).await,
        ("token", _) => Err(Status::not_allowed()),
        _ => Err(Status::not_implemented(format!(
            "the subresource {name} of {} is not supported",
            call.resource.resource
        ))),
    }
}

/// Whether a subresource supports a method; connections check it themselves.
fn is_served(call: &Call<'_>, subresource: &str, method: &Method) -> bool {
    let verb = match *method {
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        _ => return false,
    };
    call.resource
        .subresource(subresource)
        .is_some_and(|s| s.verbs.iter().any(|v| v == verb))
}

/// Rejects an empty name or namespace.
fn check_names(call: &Call<'_>) -> Result<(), Status> {
    if call.name().is_empty() {
        return Err(Status::bad_request("name must be provided"));
    }
    if call.target.namespace.as_deref() == Some("") {
        return Err(Status::bad_request("Namespace parameter required."));
    }
    Ok(())
}

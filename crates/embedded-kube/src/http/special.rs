//! Health, version and the subresources that are not plain writes.

use super::{Call, Query, body, bytes_response, object, scale, write};
use crate::registry::{DeleteOptions, Part};
use crate::status::Status;
use axum::body::Body;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tiphys_apimachinery::Gvr;
use tiphys_apimachinery::selector::LabelSelector;

/// What `/version` says; the mark after the plus tells that this is not the real one.
pub const GIT_VERSION: &str = "v1.36.3+tiphys";

pub fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": GIT_VERSION, "gitCommit": concat!("embedded-", env!("CARGO_PKG_VERSION")), "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

fn text(text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// A server that answers is healthy: there is nothing it waits for.
pub fn health(path: &str, check: &str, verbose: bool) -> Response<Body> {
    let name = path.trim_start_matches('/').split('/').next().unwrap_or("");
    let passed = if check.is_empty() { "[+]ping ok\n[+]store ok\n".to_owned() } else { format!("[+]{check} ok\n") };
    if verbose { text(format!("{passed}{name} check passed\n")) } else { text("ok".to_owned()) }
}

pub async fn subresource(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let name = call.target.subresource.as_deref().unwrap_or("");
    if call.resource.subresource(name).is_none() {
        return Err(Status::no_such_path());
    }
    let not_allowed = || Status::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
    match (name, &call.parts.method) {
        ("status", &Method::GET) => object::get(call),
        ("status", &Method::PUT) => write::update(call, incoming, Part::Status).await,
        ("status", &Method::PATCH) => write::patch(call, incoming, Part::Status).await,
        ("scale", &Method::GET) => scale::get(call),
        ("scale", &Method::PUT) => scale::update(call, incoming).await,
        ("scale", &Method::PATCH) => scale::patch(call, incoming).await,
        ("finalize", &Method::PUT) => write::update(call, incoming, Part::Finalize).await,
        ("log", &Method::GET) => log(call),
        ("eviction", &Method::POST) => evict(call, incoming).await,
        ("status" | "scale" | "finalize" | "log" | "eviction", _) => Err(not_allowed()),
        ("exec" | "attach" | "portforward" | "proxy", _) => Err(Status::not_implemented(format!(
            "{name} is not possible: this embedded API server simulates pods, there is no container to connect to"
        ))),
        ("token", _) => Err(Status::not_implemented("this embedded API server issues no service account tokens")),
        ("binding", _) => Err(Status::not_implemented("pods are placed by the simulation; binding them is not supported")),
        _ => Err(Status::not_implemented(format!("the subresource {name} of {} is not supported", call.resource.resource))),
    }
}

fn log(call: &Call<'_>) -> Result<Response<Body>, Status> {
    let pod = call.registry().get_stored(&call.resource, &call.namespace, call.name())?.object();
    let container = call.query.get("container").unwrap_or("");
    let list = pod.pointer("/spec/containers").and_then(Value::as_array);
    let names: Vec<&str> = list.map(|l| l.iter().filter_map(|c| c["name"].as_str()).collect()).unwrap_or_default();
    if container.is_empty() && names.len() > 1 {
        return Err(Status::bad_request(format!(
            "a container name must be specified for pod {}, choose one of: [{}]",
            call.name(),
            names.join(" ")
        )));
    }
    let mut out = (call.shared.logs)(&pod, container).map_err(Status::bad_request)?;
    if let Some(tail) = call.query.number("tailLines")?.and_then(|n| usize::try_from(n).ok()) {
        let lines: Vec<&str> = out.lines().collect();
        let kept = &lines[lines.len().saturating_sub(tail)..];
        out = kept.iter().map(|l| format!("{l}\n")).collect();
    }
    if let Some(limit) = call.query.number("limitBytes")?.and_then(|n| usize::try_from(n).ok()) {
        let mut end = limit.min(out.len());
        while !out.is_char_boundary(end) {
            end -= 1;
        }
        out.truncate(end);
    }
    Ok(text(out))
}

/// Eviction is a delete that disruption budgets may forbid; budgets are not evaluated, so a pod that has one stays.
async fn evict(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let bytes = body::read(incoming).await?;
    let (request, _) = body::read_object(&call.parts.headers, &bytes)?;
    let pod = call.registry().get_stored(&call.resource, &call.namespace, call.name())?;
    let budgets = call.registry().list(&Gvr::new("policy", "v1", "poddisruptionbudgets"), Some(&call.namespace))?;
    let covers = |selector: Option<&Value>| {
        selector.is_some_and(|s| LabelSelector::from_json(s).is_ok_and(|selector| selector.matches(&pod.meta.labels)))
    };
    if budgets.iter().any(|b| covers(b.pointer("/spec/selector"))) {
        return Err(Status::not_implemented("eviction of a pod with a PodDisruptionBudget is not supported: budgets are not evaluated"));
    }
    let options: DeleteOptions = Query::default().delete_options(request.0.get("deleteOptions"))?;
    let deleted = call.registry().delete(&call.resource.gvr(), &call.namespace, call.name(), &options)?;
    call.registry().durable(deleted.revision).await?;
    let mut response = bytes_response(Status::new(201, "", "").to_json().to_string().into());
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

//! Connections to containers, services and nodes. There is nothing to connect to, but admission
//! runs before the request is rejected for that reason. Main function: [`connect`].

use super::{Call, write};
use crate::admission::{Answers, Objects, Operation, Request};
use crate::status::Status;
use crate::{admission, sim};
use axum::body::Body;
use http::{Method, Response};
use serde_json::Value;
use std::num::{IntErrorKind, ParseIntError};
use tiphys_apimachinery::{Gvr, Object};
use tiphys_kube_schema::gotypes;
use tiphys_kube_schema::gotypes::{Field, Type};

/// Runs admission for a connection, then reports that there is no container.
pub fn connect(call: &Call<'_>, subresource: &str) -> Result<Response<Body>, Status> {
    if subresource != "proxy" && !matches!(call.parts.method, Method::GET | Method::POST) {
        return Err(Status::not_allowed());
    }
    let mut asked = options(call, subresource)?;
    let sender = write::sender(call);
    let at = (call.namespace.as_str(), call.name());
    let request = Request::new(
        call.registry(),
        &call.resource,
        Operation::Connect,
        at,
        (false, &sender),
    )
    .of(subresource);
    let mut answers = Answers::default();
    admission::admit(&request, &mut asked, None, &mut answers)?;
    let warnings = admission::check(
        &request,
        Objects {
            new: Some(&asked),
            old: None,
        },
        answers,
    )?;
    let nobody = || {
        Status::not_implemented(format!(
            "{subresource} is not possible: this embedded API server simulates pods, there is no container to connect to"
        ))
    };
    Err(reach(call, subresource, &asked)
        .map_or_else(|status| status, |()| nobody())
        .warned(&warnings))
}

/// Looks up the target of the connection, with the errors of the real server.
fn reach(call: &Call<'_>, subresource: &str, asked: &Object) -> Result<(), Status> {
    let get = |name: &str| {
        call.registry()
            .get(&call.resource.gvr(), &call.namespace, name)
    };
    if subresource != "proxy" {
        let pod = get(call.name())?;
        if subresource != "portforward" {
            sim::container(&pod, asked.str_at("/container")).map_err(Status::bad_request)?;
        }
        let placed = !pod.str_at("/spec/nodeName").is_empty();
        let nowhere =
            || Status::bad_request(format!("pod {} does not have a host assigned", call.name()));
        return placed.then_some(()).ok_or_else(nowhere);
    }
    let what = call.resource.singular.as_str();
    let invalid = || Status::bad_request(format!("invalid {what} request {:?}", call.name()));
    let (name, port) = place(call.name()).ok_or_else(invalid)?;
    match what {
        "service" => service(call, name, port),
        "pod" if get(name)?.str_at("/status/podIP").is_empty() => {
            Err(Status::bad_request("address not allowed"))
        }
        _ => get(name).map(drop),
    }
}

/// The name and the port in `scheme:name:port`.
fn place(text: &str) -> Option<(&str, &str)> {
    let (scheme, name, port) = match text.split(':').collect::<Vec<_>>()[..] {
        [name] => ("", name, ""),
        [name, port] => ("", name, port),
        [scheme, name, port] => (scheme, name, port),
        _ => return None,
    };
    (!name.is_empty() && matches!(scheme, "" | "http" | "https")).then_some((name, port))
}

/// Checks that a port of a service, given by number or name, has an endpoint.
fn service(call: &Call<'_>, name: &str, port: &str) -> Result<(), Status> {
    let unavailable = |why: String| Status::new(503, "ServiceUnavailable", why);
    let mut port = port.to_owned();
    if let Ok(number) = port.parse::<i64>() {
        let service = call
            .registry()
            .get(&call.resource.gvr(), &call.namespace, name)?;
        let found = list(&service, "/spec/ports")
            .into_iter()
            .find(|p| p["port"] == number);
        let found = found.ok_or_else(|| {
            unavailable(format!(
                "no service port {number} found for service {name:?}"
            ))
        })?;
        port = found["name"].as_str().unwrap_or_default().to_owned();
    }
    let endpoints = call
        .registry()
        .get(&Gvr::new("", "v1", "endpoints"), &call.namespace, name);
    let endpoints = endpoints.map_err(|_| Status::not_found("", "services", name))?;
    let subsets = list(&endpoints, "/subsets");
    if subsets.is_empty() {
        return Err(unavailable(format!(
            "no endpoints available for service {name:?}"
        )));
    }
    let has_port = |subset: &&Value| {
        subset["ports"].as_array().is_some_and(|all| {
            all.iter()
                .any(|p| p["name"].as_str().unwrap_or_default() == port)
        })
    };
    let has_pod = |subset: &Value| {
        subset["addresses"]
            .as_array()
            .is_some_and(|all| all.iter().any(|a| a["targetRef"].is_object()))
    };
    match subsets.into_iter().filter(has_port).any(has_pod) {
        true => Ok(()),
        false => Err(unavailable(format!(
            "no endpoints available for service {:?}",
            call.name()
        ))),
    }
}

fn list<'a>(object: &'a Object, pointer: &str) -> Vec<&'a Value> {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect()
}

/// The options in the query (and the path, for a proxy) as an object of the subresource's kind.
fn options(call: &Call<'_>, subresource: &str) -> Result<Object, Status> {
    let resource = call.spoken()?;
    let mut object = Object::default();
    object
        .0
        .insert("apiVersion".into(), resource.api_version().into());
    object.0.insert("kind".into(), resource.kind.clone().into());
    for field in gotypes::of(&resource.gvk())
        .into_iter()
        .flat_map(|of| &of.fields)
    {
        if let Some(value) = parameter(call, field)? {
            object.0.insert(field.name.to_owned(), value);
        }
    }
    let start = format!("/{}/{subresource}/", call.name());
    if let (true, Some((_, rest))) = (
        subresource == "proxy",
        call.parts.uri.path().split_once(&start),
    ) {
        object.0.insert("path".into(), format!("/{rest}").into());
    }
    Ok(object)
}

fn parameter(call: &Call<'_>, field: &Field) -> Result<Option<Value>, Status> {
    let sent = call.query.all(field.name);
    let wrong = |text: &str, error: &ParseIntError| {
        let why = if *error.kind() == IntErrorKind::PosOverflow {
            "value out of range"
        } else {
            "invalid syntax"
        };
        Status::bad_request(format!(
            "cannot convert to []int32: strconv.ParseUint: parsing {text:?}: {why}"
        ))
    };
    Ok(match &field.ty {
        Type::Bool => call.query.flag(field.name).then_some(true.into()),
        Type::String => call.query.get(field.name).map(Value::from),
        Type::List(item) if matches!(**item, Type::Int32) && !sent.is_empty() => {
            let numbers = sent.iter().map(|text| {
                text.parse::<u16>()
                    .map(Value::from)
                    .map_err(|error| wrong(text, &error))
            });
            Some(numbers.collect::<Result<Vec<_>, _>>()?.into())
        }
        Type::List(item) if matches!(**item, Type::String) && !sent.is_empty() => Some(sent.into()),
        Type::List(_) if !field.omit_empty => Some(Value::Null),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_name_may_have_a_scheme_and_a_port() {
        let names = ["web", "web:80", "https:web:80", "https:web:"]
            .map(|text| place(text).map(|(name, _)| name));
        assert_eq!(names, [Some("web"); 4]);
        assert_eq!(["ftp:web:80", "a:b:c:d", ":80"].map(place), [None; 3]);
    }
}

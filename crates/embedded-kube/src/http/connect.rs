//! Connections to containers, services and nodes: nobody is there to connect to, but whoever judges connections is asked before that
//! is said. Main function: [`connect`].

use super::{Call, write};
use crate::gotypes::{self, Field, Type};
use crate::status::Status;
use crate::strategy::admission::{self, Answers, Objects, Operation, Request};
use axum::body::Body;
use http::{Method, Response};
use serde_json::Value;
use tiphys_apimachinery::Object;

/// Judges a connection and says that there is no container.
pub fn connect(call: &Call<'_>, subresource: &str) -> Result<Response<Body>, Status> {
    if subresource != "proxy" && !matches!(call.parts.method, Method::GET | Method::POST) {
        return Err(Status::not_allowed());
    }
    let mut asked = options(call, subresource)?;
    let sender = write::sender(call);
    let at = (call.namespace.as_str(), call.name());
    let request = Request::new(call.registry(), &call.resource, Operation::Connect, at, (false, &sender)).of(subresource);
    let mut answers = Answers::default();
    admission::admit(&request, &mut asked, None, &mut answers)?;
    let warnings = admission::check(&request, Objects { new: Some(&asked), old: None }, answers)?;
    let there = call.registry().get(&call.resource.gvr(), &call.namespace, bare(call.name()));
    let nobody = || {
        Status::not_implemented(format!(
            "{subresource} is not possible: this embedded API server simulates pods, there is no container to connect to"
        ))
    };
    Err(there.map_or_else(|status| status, |_| nobody()).warned(&warnings))
}

/// The name in `scheme:name:port`.
fn bare(name: &str) -> &str {
    match name.split(':').collect::<Vec<_>>()[..] {
        [name, _] | [_, name, _] => name,
        _ => name,
    }
}

/// What the query says, and for a proxy the path, as the kind that the subresource speaks.
fn options(call: &Call<'_>, subresource: &str) -> Result<Object, Status> {
    let resource = call.spoken()?;
    let mut object = Object::default();
    object.0.insert("apiVersion".into(), resource.api_version().into());
    object.0.insert("kind".into(), resource.kind.clone().into());
    for field in gotypes::of(&resource.gvk()).into_iter().flat_map(|of| &of.fields) {
        if let Some(value) = parameter(call, field)? {
            object.0.insert(field.name.to_owned(), value);
        }
    }
    let start = format!("/{}/{subresource}/", call.name());
    if let (true, Some((_, rest))) = (subresource == "proxy", call.parts.uri.path().split_once(&start)) {
        object.0.insert("path".into(), format!("/{rest}").into());
    }
    Ok(object)
}

fn parameter(call: &Call<'_>, field: &Field) -> Result<Option<Value>, Status> {
    let sent = call.query.all(field.name);
    let wrong = |text: &str| Status::bad_request(format!("cannot convert to []int32: strconv.ParseUint: parsing {text:?}: invalid syntax"));
    Ok(match &field.ty {
        Type::Bool => call.query.flag(field.name).then_some(true.into()),
        Type::String => call.query.get(field.name).map(Value::from),
        Type::List(item) if matches!(**item, Type::Int32) && !sent.is_empty() => {
            let numbers = sent.iter().map(|text| text.parse::<u32>().map(Value::from).map_err(|_| wrong(text)));
            Some(numbers.collect::<Result<Vec<_>, _>>()?.into())
        }
        Type::List(item) if matches!(**item, Type::String) && !sent.is_empty() => Some(sent.into()),
        Type::List(_) if !field.omit_empty => Some(Value::Null),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::bare;

    #[test]
    fn a_name_may_have_a_scheme_and_a_port() {
        assert_eq!(["web", "web:80", "https:web:80", "https:web:"].map(bare), ["web"; 4]);
    }
}

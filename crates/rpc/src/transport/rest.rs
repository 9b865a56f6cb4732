//! REST: path, query and body become the request message of a call; the reply is JSON, and streams
//! are JSON lines or server-sent events. Behaves as grpc-gateway does for Argo CD.

use super::{compressed, deadline, text, traceparent};
use crate::{
    ApiError, Role, StreamFile, heavy,
    running::Running,
    table::{
        Bindings, BodyOf, Call, Fields, JsonRequest, Kind, Reply, Request as CallRequest, Rest,
        Session, query,
    },
};
use bytes::Bytes;
use futures::{StreamExt as _, future::ready, stream::BoxStream};
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use serde_json::{Map, Value};
use std::{convert::Infallible, net::IpAddr, sync::Arc, time::Duration};
use tiphys_gocompat::json_error;
use tonic::body::Body;
use tracing::Instrument as _;

/// An idle event stream sends a comment at this interval, to detect clients that are gone.
const HEARTBEAT: Duration = Duration::from_secs(15);
const EVENT_STREAM: &str = "text/event-stream";
const GRPC_CONTENT_TYPE: &str = "grpc-metadata-content-type";

pub async fn handle<S: Role>(
    state: Arc<S>,
    source: IpAddr,
    request: Request<Body>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if parts.method != Method::GET && !state.takes(content_type(&parts)) {
        return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Invalid content type\n");
    }
    let path = parts.uri.path();
    let response = match state.table().by_rest(&parts.method, path) {
        Some(route) => {
            let is_stream = route.0.kind == Kind::ServerStream;
            let running = Running::begin(&state, route.0, source);
            match answer(&state, source, &parts, route, body, &running).await {
                Ok(response) => response,
                Err(e) => {
                    // Unless it was run, and has ended.
                    running.failed(&e);
                    if is_stream && !e.is_of_unread() {
                        failed_stream(&e, wants_events(&parts))
                    } else {
                        json(e.code.http(), e.json().to_string().into_bytes().into())
                    }
                }
            }
        }
        None if state.table().knows_path(path) => {
            text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n")
        }
        None => text(StatusCode::NOT_FOUND, "Not Found\n"),
    };
    let is_event_stream = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind == EVENT_STREAM);
    if is_event_stream || !state.compresses() {
        return response;
    }
    compressed(&parts.headers, response)
}

type Route<'a, S> = (&'a Call<S>, &'a Rest, Bindings);

fn content_type(parts: &Parts) -> &str {
    let value = parts.headers.get(header::CONTENT_TYPE);
    value.and_then(|v| v.to_str().ok()).unwrap_or_default()
}

async fn answer<S: Role>(
    state: &Arc<S>,
    source: IpAddr,
    parts: &Parts,
    (call, rest, bindings): Route<'_, S>,
    body: Body,
    running: &Running<S>,
) -> Result<Response<Body>, ApiError> {
    let found = state.caller(source, &parts.headers, Some(&call.access));
    let caller = match found.await {
        Ok(caller) => caller,
        Err(e) => {
            state.refused(call, source, &e).await;
            return Err(e);
        }
    };
    running.called_by(&caller);
    let end = deadline::of(&parts.headers)?;
    let read = read_body(rest, body, state.max_request(&caller)).await;
    let mut message = match read.map_err(ApiError::of_unread)? {
        Value::Object(message) => message,
        // Its error says what it has to be.
        message => {
            let request = JsonRequest {
                message,
                ..JsonRequest::default()
            };
            let request = CallRequest::Json(request);
            let reply = call.run(state, caller, request, running).await?;
            return respond(parts, reply).await;
        }
    };
    let mut asked = parts.uri.query().unwrap_or_default();
    if rest.body == BodyOf::Whole {
        // What is no field of the message then is not read.
        asked = "";
    }
    let (fields, texts) =
        query::read(&mut message, asked, bindings).map_err(ApiError::of_unread)?;
    let fields = fields.filter(|_| state.selects_fields(call));
    let fields = match fields {
        Some(fields) if !state.keeps_list_metadata(call) => Some(fields.strictly()),
        fields => fields,
    };
    let lacks = call.lacks(&message);
    let lacks = lacks.map(|field| format!("grpc: error while marshaling: {field}"));
    if lacks.is_some() {
        // A required field that is null is absent, too.
        message.retain(|_, value| !value.is_null());
    }
    let renewed = state.renewed(&caller, &parts.headers).await;
    let name = call.rpc.trim_start_matches('/');
    let span = tracing::trace_span!(
        "request",
        "otel.kind" = "server",
        "otel.name" = name,
        "http.request.method" = parts.method.as_str(),
        traceparent = traceparent(&parts.headers)
    );
    let body = match rest.body {
        BodyOf::Field(field) => Some(field),
        BodyOf::None | BodyOf::Whole => None,
    };
    let request = JsonRequest {
        message: Value::Object(message),
        texts,
        body,
        lacks,
    };
    let run = call
        .run(state, caller, CallRequest::Json(request), running)
        .instrument(span);
    let cut = running.clone();
    let reply = deadline::within(end, run, move |e| cut.failed(e)).await?;
    let file = state.file(call, parts.uri.query().unwrap_or_default());
    // A file is made of whole messages.
    let fields = fields.filter(|_| file.is_none());
    let mut response = match (select(reply, fields).await, file) {
        (Reply::Stream(messages), Some(file)) => saved(messages, file),
        (reply, _) => respond(parts, reply).await?,
    };
    // The gateway of other servers passes on what its calls answered, if they did.
    if response.extensions_mut().remove::<Silent>().is_none() {
        let kind = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert(GRPC_CONTENT_TYPE, kind);
    }
    let cookies = match call.session {
        Session::Stays => renewed,
        Session::Ends => state.cookie("").into_iter().collect(),
        Session::Begins => {
            let token = session_token(&mut response).await?;
            let cookie = token.and_then(|token| state.cookie(&token));
            cookie.into_iter().collect()
        }
    };
    let cookies = cookies.into_iter().map(|value| (header::SET_COOKIE, value));
    response.headers_mut().extend(cookies);
    Ok(response)
}

/// The token of the session that a login has begun.
async fn session_token(response: &mut Response<Body>) -> Result<Option<String>, ApiError> {
    let body = std::mem::replace(response.body_mut(), Body::empty());
    let bytes = body
        .collect()
        .await
        .map_err(|e| ApiError::internal(e.to_string()))?
        .to_bytes();
    let token = serde_json::from_slice::<Value>(&bytes)
        .ok()
        .and_then(|v| v["token"].as_str().map(str::to_owned));
    *response.body_mut() = Body::new(Full::new(bytes));
    Ok(token)
}

/// The message as far as it is in the body; an object, unless the body is wrong.
async fn read_body(rest: &Rest, body: Body, limit: usize) -> Result<Value, ApiError> {
    let nothing = || Ok(Value::Object(Map::new()));
    if rest.body == BodyOf::None {
        return nothing();
    }
    let bytes = Limited::new(body, limit)
        .collect()
        .await
        .map_err(|e| ApiError::invalid(format!("cannot read the body: {e}")))?
        .to_bytes();
    if bytes.is_empty() {
        return nothing();
    }
    // Only the first value, as Go's decoder reads it.
    let mut values = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
    let value = match values.next() {
        None => return nothing(),
        Some(value) => value.map_err(|e| ApiError::invalid(json_error::of_decoder(&bytes, &e)))?,
    };
    match (rest.body, value) {
        (BodyOf::Field(field), value) => {
            Ok(Value::Object(Map::from_iter([(field.to_owned(), value)])))
        }
        (_, Value::Null) => nothing(),
        (_, value) => Ok(value),
    }
}

fn json(status: StatusCode, body: crate::Parts) -> Response<Body> {
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

/// Reduces the reply to the requested fields.
async fn select(reply: Reply, fields: Option<Fields>) -> Reply {
    match (reply, fields) {
        (reply, None) => reply,
        (Reply::One(message), Some(fields)) => {
            let reduced = match message.len() {
                ..heavy::LARGE => fields.apply(&message.joined()),
                _ => heavy::run(move || fields.apply(&message.joined())).await,
            };
            Reply::One(reduced.into())
        }
        (Reply::Stream(messages), Some(fields)) => {
            Reply::Stream(messages.map(move |m| m.map(|m| fields.apply(&m))).boxed())
        }
    }
}

/// Whether a stream is sent as server-sent events.
fn wants_events(parts: &Parts) -> bool {
    let mut accepted = parts.headers.get_all(header::ACCEPT).iter();
    accepted.any(|v| v.to_str().is_ok_and(|v| v.contains(EVENT_STREAM)))
}

async fn respond(parts: &Parts, reply: Reply) -> Result<Response<Body>, ApiError> {
    match reply {
        Reply::One(message) => Ok(json(StatusCode::OK, message)),
        Reply::Stream(messages) => stream(messages, wants_events(parts)).await,
    }
}

/// Marks the answer of a stream that ended without a message, or is a file.
#[derive(Clone)]
struct Silent;

type Messages = BoxStream<'static, Result<Vec<u8>, ApiError>>;

/// A stream begins with its first message, as from Argo CD: until then, it can still fail as a
/// whole. Proxies need not wait for it forever.
async fn stream(mut messages: Messages, events: bool) -> Result<Response<Body>, ApiError> {
    let messages = match tokio::time::timeout(HEARTBEAT, messages.next()).await {
        Err(_) => messages,
        Ok(None) => {
            let mut response = of_stream(Body::empty(), events);
            response.extensions_mut().insert(Silent);
            return Ok(response);
        }
        Ok(Some(first)) => {
            let first = first?;
            let first = futures::stream::once(std::future::ready(Ok(first)));
            first.chain(messages).boxed()
        }
    };
    let line = move |message: Result<Vec<u8>, ApiError>| {
        let content = match message {
            Ok(message) => [b"{\"result\":", message.as_slice(), b"}"].concat(),
            Err(e) => e.stream_line().into_bytes(),
        };
        framed(&content, events)
    };
    let lines = messages.map(line);
    let frames = if events {
        with_heartbeat(lines.boxed())
    } else {
        lines.boxed()
    };
    let body = StreamBody::new(frames.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes))));
    Ok(of_stream(Body::new(body), events))
}

/// A stream as a file. An error on the way is its last line: its beginning has been sent.
fn saved(messages: Messages, file: StreamFile) -> Response<Body> {
    let content = move |message: Result<Vec<u8>, ApiError>| {
        let bytes = match message {
            Ok(message) => (file.content)(&message)?,
            Err(e) => e.message.into_bytes(),
        };
        Some(Ok::<_, Infallible>(Frame::data(Bytes::from(bytes))))
    };
    let frames = messages
        .map(content)
        .take_while(|frame| ready(frame.is_some()))
        .filter_map(ready);
    let mut response = Response::new(Body::new(StreamBody::new(frames)));
    response.extensions_mut().insert(Silent);
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    let name = format!("attachment;filename=\"{}\"", file.name);
    if let Ok(name) = HeaderValue::try_from(name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    response
}

/// A message of a stream as a line or an event.
fn framed(content: &[u8], events: bool) -> Bytes {
    let (before, after): (&[u8], &[u8]) = if events {
        (b"data: ", b" \n\n")
    } else {
        (b"", b"\n")
    };
    Bytes::from([before, content, after].concat())
}

/// The answer to a call of a stream that failed before its first message.
fn failed_stream(e: &ApiError, events: bool) -> Response<Body> {
    let body = framed(e.stream_line().as_bytes(), events);
    let mut response = of_stream(Body::new(Full::new(body)), events);
    *response.status_mut() = e.code.http();
    response
}

fn of_stream(body: Body, events: bool) -> Response<Body> {
    let mut response = Response::new(body);
    let kind = if events {
        EVENT_STREAM
    } else {
        "application/json"
    };
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn with_heartbeat(lines: BoxStream<'static, Bytes>) -> BoxStream<'static, Bytes> {
    futures::stream::unfold(lines, |mut lines| async move {
        match tokio::time::timeout(HEARTBEAT, lines.next()).await {
            Ok(line) => line.map(|line| (line, lines)),
            Err(_) => Some((Bytes::from_static(b":\n\n"), lines)),
        }
    })
    .boxed()
}

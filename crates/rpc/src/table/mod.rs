//! The table of calls: RPC name, its REST methods and paths, who may call, and the handler. gRPC,
//! gRPC-web and REST all look up here. [`Table`] is the main type; [`unary`], [`encoded`],
//! [`server_stream`], [`client_stream`] and [`missing`](Call::missing) make its rows.

mod fields;
mod go_types;
mod inside;
mod lenient;
mod pattern;
pub mod query;
mod shape;
mod texts;

pub use fields::Fields;
pub use go_types::qualified;
pub use lenient::{JsonRequest, MessageError, from_json, from_value};
pub use pattern::{Bindings, Pattern, percent_decode};
pub use shape::{Find, Shape, Shapes};

use crate::{ApiError, Code, Parts, Role, heavy, kind::names, running::Running};

pub use crate::kind::Kind;
use bytes::Bytes;
use futures::{StreamExt as _, future::BoxFuture, stream::BoxStream};
use http::Method;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::{collections::HashMap, marker::PhantomData, sync::Arc};

/// Which part of the request message the REST body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyOf {
    None,
    Whole,
    Field(&'static str),
}

/// One REST binding of a call.
#[derive(Clone, Debug)]
pub struct Rest {
    pub method: Method,
    pub pattern: Pattern,
    pub body: BodyOf,
}

/// A request message in its encoding; the reply uses the same.
pub enum Request {
    Proto(Bytes),
    Json(JsonRequest),
    /// The messages of a client stream, which exists only in gRPC.
    Stream(BoxStream<'static, Result<Bytes, ApiError>>),
}

/// The reply: encoded messages.
pub enum Reply {
    One(Parts),
    Stream(BoxStream<'static, Result<Vec<u8>, ApiError>>),
}

/// What a call answers.
type Answering = BoxFuture<'static, Result<Reply, ApiError>>;

type Handler<S> = Box<dyn Fn(Arc<S>, <S as Role>::Caller, Request) -> Answering + Send + Sync>;

/// The call's effect on the caller's session, for a browser's cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    Stays,
    /// The reply has a field `token` with the new session's token.
    Begins,
    Ends,
}

/// One row.
pub struct Call<S: Role> {
    /// `/service/Method`.
    pub rpc: String,
    pub access: S::Access,
    pub kind: Kind,
    pub rest: Vec<Rest>,
    pub session: Session,
    /// Fields that every request has, with their numbers.
    required: &'static [(u32, &'static str)],
    /// What its messages look like in JSON; `None` if the call is not implemented yet.
    pub shapes: Option<Shapes>,
    /// `None` if the call is not implemented yet.
    pub handler: Option<Handler<S>>,
}

impl<S: Role> Call<S> {
    fn new(
        rpc: &str,
        rest: &[&str],
        access: S::Access,
        kind: Kind,
        handler: Option<Handler<S>>,
    ) -> Self {
        Self {
            rpc: format!("/{rpc}"),
            access,
            kind,
            rest: rest.iter().map(|text| Rest::parse(text)).collect(),
            session: Session::Stays,
            required: &[],
            shapes: None,
            handler,
        }
    }

    fn with_shapes(self, shapes: Shapes) -> Self {
        let shapes = Some(shapes);
        Self { shapes, ..self }
    }

    /// A row for a call that is not implemented yet.
    pub fn missing(rpc: &str, rest: &[&str], access: S::Access) -> Self {
        Self::new(rpc, rest, access, Kind::Unary, None)
    }

    /// REST bindings of a call that only gRPC has: they say so.
    #[must_use]
    pub fn with_rest(self, rest: &[&str]) -> Self {
        let rest = rest.iter().map(|text| Rest::parse(text)).collect();
        Self { rest, ..self }
    }

    /// Paths are decoded before they are divided: see [`Pattern::decoded_first`].
    #[must_use]
    pub fn with_decoded_paths(self) -> Self {
        let decoded = |rest: Rest| Rest {
            pattern: rest.pattern.decoded_first(),
            ..rest
        };
        let rest = self.rest.into_iter().map(decoded).collect();
        Self { rest, ..self }
    }

    /// Names the fields that every request has (`required` in Argo CD's descriptions), with their
    /// numbers.
    #[must_use]
    pub fn requiring(self, required: &'static [(u32, &'static str)]) -> Self {
        Self { required, ..self }
    }

    /// What a REST request lacks; the last of several, as Go's encoder finds it.
    pub(crate) fn lacks(&self, message: &Map<String, Value>) -> Option<String> {
        let is_there = |name: &str| message.get(name).is_some_and(|value| !value.is_null());
        let mut required = self.required.iter().rev();
        let (_, name) = required.find(|(_, name)| !is_there(name))?;
        Some(not_set(name))
    }

    /// What an encoded request lacks; the first of several, as Go's decoder finds it.
    fn lacks_encoded(&self, bytes: &Bytes) -> Option<String> {
        if self.required.is_empty() {
            return None;
        }
        let numbers = numbers(bytes.clone());
        let mut required = self.required.iter();
        let (_, name) = required.find(|(number, _)| !numbers.contains(number))?;
        Some(not_set(name))
    }

    #[must_use]
    pub fn with_session(self, session: Session) -> Self {
        Self { session, ..self }
    }

    /// Answers a request. The call ends with its reply.
    pub(crate) async fn run(
        &self,
        state: &Arc<S>,
        caller: S::Caller,
        request: Request,
        running: &Running<S>,
    ) -> Result<Reply, ApiError> {
        if self.kind == Kind::ServerStream {
            running.received();
        }
        let lacks = match &request {
            Request::Proto(bytes) => self.lacks_encoded(bytes),
            _ => None,
        };
        let reply = match (&self.handler, lacks) {
            (_, Some(field)) => Err(unreadable(&field)),
            (Some(handler), None) => {
                let answer = handler(state.clone(), caller.clone(), request);
                state.around(self, &caller, answer).await
            }
            (None, None) => Err(missing(&self.rpc)),
        };
        match reply {
            Ok(Reply::Stream(messages)) => Ok(Reply::Stream(running.follow(messages))),
            Ok(reply) => {
                running.succeeded();
                Ok(reply)
            }
            Err(e) => {
                running.failed(&e);
                Err(e)
            }
        }
    }
}

fn not_set(name: &str) -> String {
    format!("proto: required field {name:?} not set")
}

/// The error for a message that cannot be decoded.
fn unreadable(why: &str) -> ApiError {
    ApiError::internal(format!("grpc: error unmarshalling request: {why}"))
}

/// The numbers of the fields at the top of a message, as far as it can be read.
fn numbers(mut bytes: Bytes) -> Vec<u32> {
    use prost::encoding::{DecodeContext, decode_key, skip_field};
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let Ok((number, wire)) = decode_key(&mut bytes) else {
            break;
        };
        found.push(number);
        if skip_field(wire, number, &mut bytes, DecodeContext::default()).is_err() {
            break;
        }
    }
    found
}

/// The error for a call without a handler.
pub fn missing(rpc: &str) -> ApiError {
    let (service, method) = names(rpc);
    ApiError::new(
        Code::Unimplemented,
        format!("method {method} of service {service} is not implemented"),
    )
}

impl Rest {
    /// Parses `GET /path`, `POST /path *` (the body is the message) or `PUT /path spec` (the body
    /// is that field).
    fn parse(text: &str) -> Self {
        let mut words = text.split(' ');
        let method = words
            .next()
            .and_then(|m| m.parse().ok())
            .unwrap_or(Method::GET);
        let pattern = Pattern::parse(words.next().unwrap_or_default());
        let body = match words.next() {
            None => BodyOf::None,
            Some("*") => BodyOf::Whole,
            Some(field) => BodyOf::Field(Box::leak(field.to_owned().into_boxed_str())),
        };
        Self {
            method,
            pattern,
            body,
        }
    }
}

/// A request message.
pub trait Query: prost::Message + Default + DeserializeOwned + 'static {}
impl<Q: prost::Message + Default + DeserializeOwned + 'static> Query for Q {}

/// A message of a reply.
pub trait Answer: prost::Message + Serialize + DeserializeOwned + 'static {}
impl<R: prost::Message + Serialize + DeserializeOwned + 'static> Answer for R {}

/// A handler that decodes the request, which `answer` then answers in the same encoding.
fn decoding<S, Q, F>(rpc: &str, answer: F) -> Handler<S>
where
    S: Role,
    Q: Query,
    F: Fn(Arc<S>, S::Caller, Q, Encoding) -> Answering + Send + Sync + 'static,
{
    let package = package(rpc);
    Box::new(
        move |state, caller, request| match decode::<Q>(request, &package) {
            Err(e) => Box::pin(std::future::ready(Err(e))),
            Ok((query, encoding)) => answer(state, caller, query, encoding),
        },
    )
}

/// A row whose reply is one message. `finish` is applied to every reply before it is encoded.
pub fn unary<S, Q, R, F, Fut>(
    rpc: &str,
    rest: &[&str],
    access: S::Access,
    finish: fn(&mut R),
    f: F,
) -> Call<S>
where
    S: Role,
    Q: Query,
    R: Answer,
    F: Fn(Arc<S>, S::Caller, Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ApiError>> + Send + 'static,
{
    let handler = decoding::<S, Q, _>(rpc, move |state, caller, query, encoding| {
        let reply = f(state, caller, query);
        Box::pin(async move { encoding.reply(reply.await?, finish).await })
    });
    Call::new(rpc, rest, access, Kind::Unary, Some(handler)).with_shapes(Shapes::of::<Q, R>())
}

/// A row whose reply is one message that the handler encodes, from what it kept of earlier ones.
pub fn encoded<S, Q, R, F, Fut>(rpc: &str, rest: &[&str], access: S::Access, f: F) -> Call<S>
where
    S: Role,
    Q: Query,
    R: Answer,
    F: Fn(Arc<S>, S::Caller, Q, Encoding) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Encoded<R>, ApiError>> + Send + 'static,
{
    let handler = decoding::<S, Q, _>(rpc, move |state, caller, query, encoding| {
        let reply = f(state, caller, query, encoding);
        Box::pin(async move { Ok(Reply::One(reply.await?.parts)) })
    });
    Call::new(rpc, rest, access, Kind::Unary, Some(handler)).with_shapes(Shapes::of::<Q, R>())
}

/// A row whose reply is a stream of messages. `finish` is applied to each before it is encoded.
pub fn server_stream<S, Q, R, F, Fut>(
    rpc: &str,
    rest: &[&str],
    access: S::Access,
    finish: fn(&mut R),
    f: F,
) -> Call<S>
where
    S: Role,
    Q: Query,
    R: Answer,
    F: Fn(Arc<S>, S::Caller, Q) -> Fut + Send + Sync + 'static,
    Fut:
        Future<Output = Result<BoxStream<'static, Result<R, ApiError>>, ApiError>> + Send + 'static,
{
    let handler = decoding::<S, Q, _>(rpc, move |state, caller, query, encoding| {
        let reply = f(state.clone(), caller.clone(), query);
        Box::pin(async move {
            let messages = reply.await?;
            let encoded = messages.map(move |m| encoding.message(m?, finish)).boxed();
            Ok(Reply::Stream(state.guard(&caller, encoded)))
        })
    });
    Call::new(rpc, rest, access, Kind::ServerStream, Some(handler))
        .with_shapes(Shapes::of::<Q, R>())
}

/// A row that takes a stream of messages and replies with one. REST has no such calls.
pub fn client_stream<S, Q, R, F, Fut>(
    rpc: &str,
    access: S::Access,
    finish: fn(&mut R),
    f: F,
) -> Call<S>
where
    S: Role,
    Q: Query,
    R: Answer,
    F: Fn(Arc<S>, S::Caller, BoxStream<'static, Result<Q, ApiError>>) -> Fut
        + Send
        + Sync
        + 'static,
    Fut: Future<Output = Result<R, ApiError>> + Send + 'static,
{
    let handler: Handler<S> = Box::new(move |state, caller, request| {
        // What REST sends is no stream: the handler says what is missing.
        let messages = match request {
            Request::Stream(messages) => messages,
            Request::Proto(_) | Request::Json(_) => futures::stream::empty().boxed(),
        };
        let queries = messages.map(|bytes| Ok(decode(Request::Proto(bytes?), "")?.0));
        let reply = f(state, caller, queries.boxed());
        Box::pin(async move { Encoding::Proto.reply(reply.await?, finish).await })
    });
    Call::new(rpc, &[], access, Kind::ClientStream, Some(handler)).with_shapes(Shapes::of::<Q, R>())
}

/// How a request is encoded, and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Proto,
    Json,
}

/// A reply that its handler has encoded.
pub struct Encoded<R> {
    parts: Parts,
    message: PhantomData<fn() -> R>,
}

impl<R> Encoded<R> {
    /// `parts` must be the message in the encoding of its request.
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            message: PhantomData,
        }
    }
}

impl Encoding {
    async fn reply<R: Answer>(self, reply: R, finish: fn(&mut R)) -> Result<Reply, ApiError> {
        // Encoding a list of all Applications takes long.
        let message = match reply.encoded_len() {
            ..heavy::LARGE => self.message(reply, finish),
            _ => heavy::run(move || self.message(reply, finish)).await,
        };
        Ok(Reply::One(message?.into()))
    }

    fn message<R: Answer>(self, mut message: R, finish: fn(&mut R)) -> Result<Vec<u8>, ApiError> {
        finish(&mut message);
        match self {
            Self::Proto => Ok(message.encode_to_vec()),
            Self::Json => serde_json::to_vec(&message)
                .map_err(|e| ApiError::internal(format!("cannot write the reply: {e}"))),
        }
    }
}

/// The package of a service's messages in Go.
pub fn package(rpc: &str) -> String {
    let service = rpc
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default();
    match service.rsplit_once('.') {
        // Its package is not that of its description.
        Some((_, "SettingsService")) => "settings".to_owned(),
        Some((package, _)) => package.to_owned(),
        None => String::new(),
    }
}

fn decode<Q: Query>(request: Request, package: &str) -> Result<(Q, Encoding), ApiError> {
    match request {
        Request::Proto(bytes) => {
            Q::decode(bytes)
                .map(|q| (q, Encoding::Proto))
                .map_err(|e| match e.to_string() {
                    text if text.contains("buffer underflow")
                        || text.contains("unexpected end")
                        || text.contains("invalid varint") =>
                    {
                        unreadable("unexpected EOF")
                    }
                    text => unreadable(&text),
                })
        }
        Request::Json(mut request) => {
            let lacks = request.lacks.take();
            let read = lenient::from_request(request, package).map_err(|e| match e {
                MessageError::Gos(text) => ApiError::invalid(text),
                MessageError::Other(text) => ApiError::invalid(format!("invalid request: {text}")),
            });
            let query = match (read, lacks) {
                (Ok(_), Some(why)) => Err(ApiError::internal(why)),
                (read, _) => read,
            };
            query
                .map(|q| (q, Encoding::Json))
                .map_err(ApiError::of_unread)
        }
        Request::Stream(_) => Err(ApiError::internal(
            "a stream where one message was expected",
        )),
    }
}

/// All calls, found by RPC name or by REST method and path.
pub struct Table<S: Role> {
    calls: Vec<Call<S>>,
    by_rpc: HashMap<String, usize>,
}

impl<S: Role> Table<S> {
    pub fn new(calls: Vec<Call<S>>) -> Self {
        let by_rpc = calls
            .iter()
            .enumerate()
            .map(|(n, call)| (call.rpc.clone(), n))
            .collect();
        Self { calls, by_rpc }
    }

    pub fn calls(&self) -> &[Call<S>] {
        &self.calls
    }

    pub fn by_rpc(&self, path: &str) -> Option<&Call<S>> {
        self.by_rpc.get(path).map(|n| &self.calls[*n])
    }

    /// The call for a REST request, with its binding and the path's variables. Literal paths take
    /// precedence over variables.
    pub fn by_rest(&self, method: &Method, path: &str) -> Option<(&Call<S>, &Rest, Bindings)> {
        let matches = self
            .calls
            .iter()
            .flat_map(|call| call.rest.iter().map(move |rest| (call, rest)));
        matches
            .filter(|(_, rest)| rest.method == *method)
            .filter_map(|(call, rest)| {
                rest.pattern
                    .matches(path)
                    .map(|bindings| (call, rest, bindings))
            })
            .min_by_key(|(call, rest, _)| (rest.pattern.variables(), call.handler.is_none()))
    }

    /// Whether the path has a call with any method.
    pub fn knows_path(&self, path: &str) -> bool {
        self.calls
            .iter()
            .flat_map(|c| &c.rest)
            .any(|rest| rest.pattern.matches(path).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_inside_each_other_are_refused() {
        // Fields 1 and 15, each as the start of a group.
        for begin in [0x0b, 0x7b] {
            let request = Request::Proto(Bytes::from(vec![begin; 60_000]));
            assert!(decode::<tiphys_api::rpc::application::ApplicationQuery>(request, "").is_err());
        }
    }

    #[test]
    fn fields_of_a_message_are_found() {
        // Field 1 is text, field 2 a number, and field 3 is cut off.
        let bytes = Bytes::from_static(&[0x0a, 1, b'x', 0x10, 5, 0x1a, 9]);
        assert_eq!(numbers(bytes), [1, 2, 3]);
        assert_eq!(numbers(Bytes::new()), [0_u32; 0]);
    }

    #[test]
    fn a_missing_call_is_named() {
        let e = missing("/application.ApplicationService/GetOCIMetadata");
        assert_eq!(
            e.message,
            "method GetOCIMetadata of service application.ApplicationService is not implemented"
        );
    }
}

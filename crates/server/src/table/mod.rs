//! The one table of calls: RPC name, its REST method and path, who may call, and the handler. gRPC,
//! gRPC-web and REST all look up here. [`Table`] is the main type; `calls` has the entries.

mod calls;
mod fields;
mod lenient;
mod pattern;
pub mod query;
mod shown;

pub use fields::Fields;
pub use lenient::from_value;
pub use pattern::{Bindings, Pattern, percent_decode};
pub use shown::Shown;

use crate::{auth::Caller, error::ApiError, heavy, server::State};
use bytes::Bytes;
use futures::{StreamExt as _, future::BoxFuture, stream::BoxStream};
use http::Method;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};

/// Where a REST body goes in the request message.
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

/// A request message, in the encoding it came in. The reply is in the same.
pub enum Request {
    Proto(Bytes),
    Json(Value),
}

/// The reply: encoded messages.
pub enum Reply {
    One(Vec<u8>),
    Stream(BoxStream<'static, Result<Vec<u8>, ApiError>>),
}

type Handler = Box<
    dyn Fn(Arc<State>, Caller, Request) -> BoxFuture<'static, Result<Reply, ApiError>>
        + Send
        + Sync,
>;

/// Who may make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever is logged in.
    Session,
    /// Everybody; the handler may tell those who are logged in more.
    Public,
}

/// One row.
pub struct Call {
    /// `/service/Method`.
    pub rpc: String,
    pub access: Access,
    pub streams: bool,
    pub rest: Vec<Rest>,
    /// None: known, but not there yet.
    pub handler: Option<Handler>,
}

impl Call {
    fn new(rpc: &str, rest: &[&str], streams: bool, handler: Option<Handler>) -> Self {
        let rest = rest.iter().map(|text| Rest::parse(text)).collect();
        Self {
            rpc: format!("/{rpc}"),
            access: Access::Session,
            streams,
            rest,
            handler,
        }
    }

    fn public(mut self) -> Self {
        self.access = Access::Public;
        self
    }

    /// Answers a request, and counts it.
    pub async fn run(
        &self,
        state: &Arc<State>,
        caller: Caller,
        request: Request,
    ) -> Result<Reply, ApiError> {
        state.metrics.started(self);
        let reply = match &self.handler {
            Some(handler) => handler(state.clone(), caller, request).await,
            None => Err(Self::missing(&self.rpc)),
        };
        state.metrics.handled(self, reply.as_ref().err());
        reply
    }

    /// What a caller hears when there is no handler.
    pub fn missing(rpc: &str) -> ApiError {
        let name = rpc.trim_start_matches('/');
        let (service, method) = name.split_once('/').unwrap_or((name, ""));
        ApiError::new(
            crate::Code::Unimplemented,
            format!("method {method} of service {service} is not implemented"),
        )
    }
}

impl Rest {
    /// `GET /path`, `POST /path *` for the whole body, `PUT /path spec` for a field of it.
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

/// A row whose reply is one message.
fn unary<Q, R, F, Fut>(rpc: &str, rest: &[&str], f: F) -> Call
where
    Q: prost::Message + Default + DeserializeOwned,
    R: prost::Message + Serialize + Shown + 'static,
    F: Fn(Arc<State>, Caller, Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ApiError>> + Send + 'static,
{
    let handler: Handler = Box::new(move |state, caller, request| match decode::<Q>(request) {
        Err(e) => Box::pin(std::future::ready(Err(e))),
        Ok((query, encode)) => {
            let reply = f(state, caller, query);
            Box::pin(async move {
                let reply = reply.await?;
                // A list of all Applications takes its time.
                let message = match reply.encoded_len() {
                    ..heavy::LARGE => encode.message(reply),
                    _ => heavy::run(move || encode.message(reply)).await,
                };
                Ok(Reply::One(message?))
            })
        }
    });
    Call::new(rpc, rest, false, Some(handler))
}

/// A row whose reply is a stream of messages.
fn stream<Q, R, F, Fut>(rpc: &str, rest: &[&str], f: F) -> Call
where
    Q: prost::Message + Default + DeserializeOwned,
    R: prost::Message + Serialize + Shown + 'static,
    F: Fn(Arc<State>, Caller, Q) -> Fut + Send + Sync + 'static,
    Fut:
        Future<Output = Result<BoxStream<'static, Result<R, ApiError>>, ApiError>> + Send + 'static,
{
    let handler: Handler = Box::new(move |state, caller, request| match decode::<Q>(request) {
        Err(e) => Box::pin(std::future::ready(Err(e))),
        Ok((query, encode)) => {
            let (auth, claims) = (state.auth.clone(), caller.claims.clone());
            let reply = f(state, caller, query);
            Box::pin(async move {
                let messages = auth.while_valid(claims, reply.await?);
                Ok(Reply::Stream(
                    messages.map(move |m| encode.message(m?)).boxed(),
                ))
            })
        }
    });
    Call::new(rpc, rest, true, Some(handler))
}

/// A row that is known, but not there yet.
fn missing(rpc: &str, rest: &[&str]) -> Call {
    Call::new(rpc, rest, false, None)
}

#[derive(Clone, Copy)]
enum Encoding {
    Proto,
    Json,
}

impl Encoding {
    fn message<R: prost::Message + Serialize + Shown>(
        self,
        mut message: R,
    ) -> Result<Vec<u8>, ApiError> {
        message.conceal();
        match self {
            Self::Proto => Ok(message.encode_to_vec()),
            Self::Json => serde_json::to_vec(&message)
                .map_err(|e| ApiError::internal(format!("cannot write the reply: {e}"))),
        }
    }
}

fn decode<Q: prost::Message + Default + DeserializeOwned>(
    request: Request,
) -> Result<(Q, Encoding), ApiError> {
    match request {
        Request::Proto(bytes) => Q::decode(bytes)
            .map(|q| (q, Encoding::Proto))
            .map_err(|e| ApiError::invalid(format!("the request is not a valid message: {e}"))),
        Request::Json(value) => from_value(value)
            .map(|q| (q, Encoding::Json))
            .map_err(|e| ApiError::invalid(format!("invalid request: {e}"))),
    }
}

/// All calls, found by RPC name or by REST method and path.
pub struct Table {
    calls: Vec<Call>,
    by_rpc: HashMap<String, usize>,
}

impl Table {
    pub fn new() -> Self {
        let calls = calls::all();
        let by_rpc = calls
            .iter()
            .enumerate()
            .map(|(n, call)| (call.rpc.clone(), n))
            .collect();
        Self { calls, by_rpc }
    }

    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    pub fn by_rpc(&self, path: &str) -> Option<&Call> {
        self.by_rpc.get(path).map(|n| &self.calls[*n])
    }

    /// The call for a REST request, with its binding and the path's variables. Literal paths win
    /// over variables.
    pub fn by_rest(&self, method: &Method, path: &str) -> Option<(&Call, &Rest, Bindings)> {
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

    /// Whether the path has some call, with another method.
    pub fn knows_path(&self, path: &str) -> bool {
        self.calls
            .iter()
            .flat_map(|c| &c.rest)
            .any(|rest| rest.pattern.matches(path).is_some())
    }
}

impl Default for Table {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rpc_is_there_once() {
        let table = Table::new();
        assert_eq!(table.calls.len(), 109, "the public services have 109 RPCs");
        assert_eq!(table.by_rpc.len(), 109);
        assert_eq!(
            table.calls.iter().map(|c| c.rest.len()).sum::<usize>(),
            110,
            "pod logs have two paths"
        );
    }

    #[test]
    fn groups_inside_each_other_are_refused() {
        // Fields 1 and 15, each the beginning of a group.
        for begin in [0x0b, 0x7b] {
            let request = Request::Proto(Bytes::from(vec![begin; 60_000]));
            assert!(decode::<tiphys_api::rpc::application::ApplicationQuery>(request).is_err());
        }
    }

    #[test]
    fn literal_paths_win() {
        let table = Table::new();
        let rpc = |method: Method, path: &str| {
            table
                .by_rest(&method, path)
                .map(|(call, ..)| call.rpc.clone())
        };
        assert_eq!(
            rpc(Method::GET, "/api/v1/session/userinfo").as_deref(),
            Some("/session.SessionService/GetUserInfo")
        );
        assert_eq!(
            rpc(Method::POST, "/api/v1/applications/a/sync").as_deref(),
            Some("/application.ApplicationService/Sync")
        );
        assert_eq!(
            rpc(Method::GET, "/api/v1/repositories").as_deref(),
            Some("/repository.RepositoryService/List")
        );
        assert_eq!(rpc(Method::GET, "/api/v1/nothing"), None);
    }

    #[test]
    fn a_missing_call_is_named() {
        let e = Call::missing("/application.ApplicationService/GetOCIMetadata");
        assert_eq!(
            e.message,
            "method GetOCIMetadata of service application.ApplicationService is not implemented"
        );
    }
}

//! gRPC and gRPC-web: tonic does framing and status, with one codec of bytes for all calls; the
//! table does the rest.

use super::{reflection, traceparent};
use crate::{
    ApiError, Code, Parts, Role, Table,
    running::Running,
    table::{Kind, Reply, Request as CallRequest, missing},
};
use bytes::{Buf, BufMut, Bytes};
use futures::{StreamExt as _, future::BoxFuture, stream::BoxStream};
use http::{Request, Response};
use std::{convert::Infallible, net::IpAddr, sync::Arc};
use tonic::{
    Status, Streaming,
    body::Body,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    server::Grpc,
};
use tower::ServiceExt as _;
use tracing::Instrument as _;

/// A codec that passes bytes through: the table encodes and decodes messages.
#[derive(Clone, Copy)]
pub(super) struct Raw;

impl Codec for Raw {
    type Encode = Parts;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Parts;
    type Error = Status;

    fn encode(&mut self, mut item: Parts, dst: &mut EncodeBuf<'_>) -> Result<(), Status> {
        dst.reserve(item.len());
        while let Some(part) = item.pop() {
            dst.put_slice(&part);
        }
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, src: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(src.copy_to_bytes(src.remaining())))
    }
}

/// One call, ready to run.
struct Invoke<S: Role> {
    state: Arc<S>,
    caller: S::Caller,
    rpc: String,
    running: Running<S>,
}

// Not derived: the state itself need not be `Clone`.
impl<S: Role> Clone for Invoke<S> {
    fn clone(&self) -> Self {
        Self {
            state: self.state.clone(),
            caller: self.caller.clone(),
            rpc: self.rpc.clone(),
            running: self.running.clone(),
        }
    }
}

impl<S: Role> Invoke<S> {
    async fn run(self, request: CallRequest) -> Result<Reply, ApiError> {
        let call = self
            .state
            .table()
            .by_rpc(&self.rpc)
            .ok_or_else(|| missing(&self.rpc))?;
        call.run(&self.state, self.caller, request, &self.running)
            .await
    }

    async fn one(self, request: CallRequest) -> Result<tonic::Response<Parts>, Status> {
        match self.run(request).await? {
            Reply::One(message) => Ok(tonic::Response::new(message)),
            Reply::Stream(_) => Err(Status::internal("a stream where one message was expected")),
        }
    }
}

impl<S: Role> tonic::server::UnaryService<Bytes> for Invoke<S> {
    type Response = Parts;
    type Future = BoxFuture<'static, Result<tonic::Response<Parts>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let request = CallRequest::Proto(request.into_inner());
        Box::pin(self.clone().one(request))
    }
}

impl<S: Role> tonic::server::ClientStreamingService<Bytes> for Invoke<S> {
    type Response = Parts;
    type Future = BoxFuture<'static, Result<tonic::Response<Parts>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Bytes>>) -> Self::Future {
        let running = self.running.clone();
        let counted = move |message: Result<Bytes, Status>| {
            message.inspect(|_| running.received()).map_err(broken)
        };
        let messages = request.into_inner().map(counted);
        Box::pin(self.clone().one(CallRequest::Stream(messages.boxed())))
    }
}

/// The error for a client message that could not be read.
pub(super) fn broken(status: Status) -> ApiError {
    let code = match status.code() {
        tonic::Code::ResourceExhausted => Code::ResourceExhausted,
        tonic::Code::Cancelled => Code::Canceled,
        _ => Code::InvalidArgument,
    };
    ApiError::new(code, status.message())
}

impl<S: Role> tonic::server::ServerStreamingService<Bytes> for Invoke<S> {
    type Response = Parts;
    type ResponseStream = BoxStream<'static, Result<Parts, Status>>;
    type Future = BoxFuture<'static, Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let invoke = self.clone();
        Box::pin(async move {
            let messages = match invoke.run(CallRequest::Proto(request.into_inner())).await? {
                Reply::One(message) => {
                    futures::stream::once(std::future::ready(Ok(message))).boxed()
                }
                Reply::Stream(messages) => messages
                    .map(|m| m.map(Parts::from).map_err(Status::from))
                    .boxed(),
            };
            Ok(tonic::Response::new(messages))
        })
    }
}

/// A HealthCheckRequest contains at most a service name.
const MAX_HEALTH_REQUEST: usize = 64 * 1024;
const HEALTH: &str = "/grpc.health.v1.Health/Check";

pub async fn handle<S: Role>(
    state: Arc<S>,
    source: IpAddr,
    request: Request<Body>,
) -> Response<Body> {
    let rpc = request.uri().path().to_owned();
    let mut grpc = Grpc::new(Raw).max_encoding_message_size(usize::MAX);
    if rpc == HEALTH {
        // HealthCheckResponse{status: SERVING}
        let serving = tower::service_fn(|_: tonic::Request<Bytes>| async {
            Ok::<_, Status>(tonic::Response::new(Parts::from(vec![8u8, 1])))
        });
        return grpc
            .max_decoding_message_size(MAX_HEALTH_REQUEST)
            .unary(serving, request)
            .await;
    }
    if reflection::METHODS.contains(&rpc.as_str()) {
        return reflection::handle(state, source, request).await;
    }
    let Some(call) = state.table().by_rpc(&rpc) else {
        return Status::from(unknown(state.table(), &rpc)).into_http();
    };
    let (kind, running) = (call.kind, Running::begin(&state, call, source));
    // Authenticate before reading any of the message.
    let headers = own_headers(request.headers());
    let caller = match state.caller(source, &headers, Some(&call.access)).await {
        Ok(caller) => caller,
        Err(e) => {
            state.refused(call, source, &e).await;
            running.failed(&e);
            return Status::from(e).into_http();
        }
    };
    running.called_by(&caller);
    let agent = request.headers().get(http::header::USER_AGENT);
    let agent = agent.and_then(|agent| agent.to_str().ok());
    if let Some(e) = agent.and_then(|agent| state.turns_away(agent)) {
        running.failed(&e);
        return Status::from(e).into_http();
    }
    grpc = grpc.max_decoding_message_size(state.max_request(&caller));
    let span = tracing::trace_span!(
        "request",
        "otel.kind" = "server",
        "otel.name" = rpc.trim_start_matches('/'),
        "rpc.system" = "grpc",
        traceparent = traceparent(request.headers())
    );
    let invoke = Invoke {
        caller,
        state,
        rpc,
        running: running.clone(),
    };
    let answer = async move {
        match kind {
            Kind::Unary => grpc.unary(invoke, request).await,
            Kind::ServerStream => grpc.server_streaming(invoke, request).await,
            Kind::ClientStream => grpc.client_streaming(invoke, request).await,
        }
    };
    let response = answer.instrument(span).await;
    if let Some(status) = Status::from_header_map(response.headers())
        && status.code() != tonic::Code::Ok
    {
        running.refused(&status);
    }
    response
}

/// The error for a method that is not there.
fn unknown<S: Role>(table: &Table<S>, path: &str) -> ApiError {
    let why = match path.trim_start_matches('/').rsplit_once('/') {
        None => format!("malformed method name: {path:?}"),
        Some((service, method)) => {
            let prefix = format!("/{service}/");
            if table
                .calls()
                .iter()
                .any(|call| call.rpc.starts_with(&prefix))
            {
                format!("unknown method {method} for service {service}")
            } else {
                format!("unknown service {service}")
            }
        }
    };
    ApiError::new(Code::Unimplemented, why)
}

/// The headers by which a caller is known: a browser's cookie counts in gRPC only where a gateway
/// says that it is one.
pub(super) fn own_headers(headers: &http::HeaderMap) -> http::HeaderMap {
    let mut own = headers.clone();
    own.remove(http::header::COOKIE);
    if let Some(cookie) = headers.get("grpcgateway-cookie") {
        own.insert(http::header::COOKIE, cookie.clone());
    }
    own
}

pub async fn handle_web<S: Role>(
    state: Arc<S>,
    source: IpAddr,
    request: Request<Body>,
) -> Response<Body> {
    let inner = tower::service_fn(move |request: Request<Body>| {
        let state = state.clone();
        async move { Ok::<_, Infallible>(handle(state, source, request).await) }
    });
    let web = tower::Layer::layer(&tonic_web::GrpcWebLayer::new(), inner);
    match web.oneshot(request).await {
        Ok(mut response) => {
            spell_out_message(response.headers_mut());
            expose(response.headers_mut());
            response
        }
        Err(never) => match never {},
    }
}

/// Lets pages of other origins, which may not call us, read what they get all the same, as Argo CD
/// does: the names of the headers.
fn expose(headers: &mut http::HeaderMap) {
    let own = [
        ("grpc-message", "Grpc-Message, "),
        ("grpc-status", "Grpc-Status, "),
    ];
    let own = own.iter().filter(|(name, _)| headers.contains_key(*name));
    let own: String = own.map(|(_, shown)| *shown).collect();
    let names = format!("Content-Type, Date, {own}Vary, grpc-message, grpc-status");
    headers.insert("vary", http::HeaderValue::from_static("Origin"));
    if let Ok(names) = http::HeaderValue::from_str(&names) {
        headers.insert("access-control-expose-headers", names);
    }
}

/// Printable characters that our encoder escapes but Go's does not: Argo CD's gRPC-web client shows
/// the message without decoding it.
const PRINTABLE: [(&str, &str); 9] = [
    ("%20", " "),
    ("%22", "\""),
    ("%23", "#"),
    ("%3C", "<"),
    ("%3E", ">"),
    ("%60", "`"),
    ("%3F", "?"),
    ("%7B", "{"),
    ("%7D", "}"),
];

fn spell_out_message(headers: &mut http::HeaderMap) {
    let Some(text) = headers.get("grpc-message").and_then(|v| v.to_str().ok()) else {
        return;
    };
    let plain = PRINTABLE
        .iter()
        .fold(text.to_owned(), |text, (escaped, plain)| {
            text.replace(escaped, plain)
        });
    if let Ok(value) = http::HeaderValue::from_str(&plain) {
        headers.insert("grpc-message", value);
    }
}

#[cfg(test)]
mod tests {
    use super::spell_out_message;

    #[test]
    fn a_message_for_grpc_web_reads_as_gos() {
        let mut headers = http::HeaderMap::new();
        headers.insert(
            "grpc-message",
            http::HeaderValue::from_static("app%20%22a%22%20100%25%20not%20found%0A"),
        );
        spell_out_message(&mut headers);
        assert_eq!(headers["grpc-message"], "app \"a\" 100%25 not found%0A");
    }
}

//! gRPC and gRPC-web: framing and status by tonic, one codec of bytes for all calls. The table does
//! the rest.

use super::{MAX_PUBLIC_REQUEST, max_request, session, traceparent};
use crate::{
    ApiError,
    auth::Caller,
    server::State,
    table::{Call, Reply, Request as CallRequest},
};
use bytes::{Buf, BufMut, Bytes};
use futures::{StreamExt as _, future::BoxFuture, stream::BoxStream};
use http::{Request, Response};
use std::{convert::Infallible, net::IpAddr, sync::Arc};
use tonic::{
    Status,
    body::Body,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    server::Grpc,
};
use tower::ServiceExt as _;
use tracing::Instrument as _;

/// Messages as bytes: the table encodes and decodes them.
#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
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
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, dst: &mut EncodeBuf<'_>) -> Result<(), Status> {
        dst.put_slice(&item);
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
#[derive(Clone)]
struct Invoke {
    state: Arc<State>,
    caller: Caller,
    rpc: String,
}

impl Invoke {
    async fn run(self, message: Bytes) -> Result<Reply, ApiError> {
        let call = self
            .state
            .table
            .by_rpc(&self.rpc)
            .ok_or_else(|| Call::missing(&self.rpc))?;
        call.run(&self.state, self.caller, CallRequest::Proto(message))
            .await
    }
}

impl tonic::server::UnaryService<Bytes> for Invoke {
    type Response = Vec<u8>;
    type Future = BoxFuture<'static, Result<tonic::Response<Vec<u8>>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let invoke = self.clone();
        Box::pin(async move {
            match invoke.run(request.into_inner()).await? {
                Reply::One(message) => Ok(tonic::Response::new(message)),
                Reply::Stream(_) => {
                    Err(Status::internal("a stream where one message was expected"))
                }
            }
        })
    }
}

impl tonic::server::ServerStreamingService<Bytes> for Invoke {
    type Response = Vec<u8>;
    type ResponseStream = BoxStream<'static, Result<Vec<u8>, Status>>;
    type Future = BoxFuture<'static, Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let invoke = self.clone();
        Box::pin(async move {
            let messages = match invoke.run(request.into_inner()).await? {
                Reply::One(message) => {
                    futures::stream::once(std::future::ready(Ok(message))).boxed()
                }
                Reply::Stream(messages) => messages.map(|m| m.map_err(Status::from)).boxed(),
            };
            Ok(tonic::Response::new(messages))
        })
    }
}

const HEALTH: &str = "/grpc.health.v1.Health/Check";

pub async fn handle(state: Arc<State>, source: IpAddr, request: Request<Body>) -> Response<Body> {
    let rpc = request.uri().path().to_owned();
    let mut grpc = Grpc::new(Raw).max_encoding_message_size(usize::MAX);
    if rpc == HEALTH {
        // HealthCheckResponse{status: SERVING}
        let serving = tower::service_fn(|_: tonic::Request<Bytes>| async {
            Ok::<_, Status>(tonic::Response::new(vec![8u8, 1]))
        });
        return grpc
            .max_decoding_message_size(MAX_PUBLIC_REQUEST)
            .unary(serving, request)
            .await;
    }
    let call = state.table.by_rpc(&rpc);
    let streams = call.is_some_and(|c| c.streams);
    // Before anything of the message is read.
    let caller = match session::check(&state, source, request.headers(), call).await {
        Ok(caller) => caller,
        Err(e) => return Status::from(e).into_http(),
    };
    grpc = grpc.max_decoding_message_size(max_request(&caller));
    let span = tracing::trace_span!(
        "request",
        "otel.kind" = "server",
        "otel.name" = rpc.trim_start_matches('/'),
        "rpc.system" = "grpc",
        traceparent = traceparent(request.headers())
    );
    let invoke = Invoke { caller, state, rpc };
    let answer = async move {
        if streams {
            grpc.server_streaming(invoke, request).await
        } else {
            grpc.unary(invoke, request).await
        }
    };
    answer.instrument(span).await
}

pub async fn handle_web(
    state: Arc<State>,
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
            response
        }
        Err(never) => match never {},
    }
}

/// Printable characters that our encoder escapes and Go's does not: Argo CD's gRPC-web client shows
/// the message as it comes.
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

//! gRPC server reflection, with which `grpcurl list` and its like find the services. Main function:
//! [`handle`].
//!
//! As in Argo CD only the services are listed: descriptions of their messages are not registered
//! there, so that clients need its `.proto` files to make calls.

use super::grpc::{Raw, broken, own_headers};
use crate::{ApiError, Parts, Role, kind::names};
use bytes::Bytes;
use futures::{
    StreamExt as _,
    future::{Ready, ready},
    stream::BoxStream,
};
use http::{Request, Response};
use prost::Message as _;
use std::{collections::BTreeSet, net::IpAddr, sync::Arc};
use tonic::{Code, Status, Streaming, body::Body, server::Grpc};

/// The method, in both versions of the protocol; their messages are the same.
pub const METHODS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];
/// The services that every role has besides those of its table.
const COMMON: [&str; 3] = [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];
/// A request contains one name.
const MAX_REQUEST: usize = 64 * 1024;

/// `ServerReflectionRequest`.
#[derive(Clone, PartialEq, prost::Message)]
struct Question {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(oneof = "Wanted", tags = "3, 4, 5, 6, 7")]
    wanted: Option<Wanted>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Wanted {
    #[prost(string, tag = "3")]
    File(String),
    #[prost(string, tag = "4")]
    Symbol(String),
    #[prost(message, tag = "5")]
    Extension(Extension),
    #[prost(string, tag = "6")]
    ExtensionsOf(String),
    #[prost(string, tag = "7")]
    Services(String),
}

/// `ExtensionRequest`.
#[derive(Clone, PartialEq, prost::Message)]
struct Extension {
    #[prost(string, tag = "1")]
    containing_type: String,
    #[prost(int32, tag = "2")]
    number: i32,
}

/// `ServerReflectionResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    #[prost(string, tag = "1")]
    valid_host: String,
    #[prost(message, optional, tag = "2")]
    original_request: Option<Question>,
    #[prost(message, optional, tag = "6")]
    services: Option<Services>,
    #[prost(message, optional, tag = "7")]
    error: Option<Refusal>,
}

/// `ListServiceResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    service: Vec<Service>,
}

/// `ServiceResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
}

/// `ErrorResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct Refusal {
    #[prost(int32, tag = "1")]
    error_code: i32,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// Answers the call of a client that the role lets in.
pub async fn handle<S: Role>(
    state: Arc<S>,
    source: IpAddr,
    request: Request<Body>,
) -> Response<Body> {
    let headers = own_headers(request.headers());
    let caller = match state.caller(source, &headers, None).await {
        Ok(caller) => caller,
        Err(e) => return Status::from(e).into_http(),
    };
    let mut grpc = Grpc::new(Raw)
        .max_encoding_message_size(usize::MAX)
        .max_decoding_message_size(MAX_REQUEST);
    grpc.streaming(Reflection { state, caller }, request).await
}

struct Reflection<S: Role> {
    state: Arc<S>,
    caller: S::Caller,
}

impl<S: Role> tonic::server::StreamingService<Bytes> for Reflection<S> {
    type Response = Parts;
    type ResponseStream = BoxStream<'static, Result<Parts, Status>>;
    type Future = Ready<Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Bytes>>) -> Self::Future {
        let rpcs = self.state.table().calls().iter();
        let own = rpcs.map(|call| names(&call.rpc).0.to_owned());
        let services: BTreeSet<String> = own.chain(COMMON.map(str::to_owned)).collect();
        let answers = request
            .into_inner()
            .map(move |message| answer(&services, message.map_err(broken)?));
        let answers = self.state.guard(&self.caller, answers.boxed());
        let answers = answers
            .map(|answer| answer.map(Parts::from).map_err(Status::from))
            .boxed();
        ready(Ok(tonic::Response::new(answers)))
    }
}

fn answer(services: &BTreeSet<String>, message: Bytes) -> Result<Vec<u8>, ApiError> {
    let question = Question::decode(message)
        .map_err(|e| ApiError::internal(format!("grpc: error unmarshalling request: {e}")))?;
    let name = match question.wanted.clone() {
        None => return Err(ApiError::invalid("invalid MessageRequest: none is given")),
        Some(Wanted::Services(_)) => None,
        Some(Wanted::File(name) | Wanted::Symbol(name) | Wanted::ExtensionsOf(name)) => Some(name),
        Some(Wanted::Extension(extension)) => Some(extension.containing_type),
    };
    let mut answer = Answer {
        valid_host: question.host.clone(),
        original_request: Some(question),
        services: None,
        error: None,
    };
    match name {
        None => {
            let service = services.iter().map(|name| Service { name: name.clone() });
            answer.services = Some(Services {
                service: service.collect(),
            });
        }
        Some(name) => {
            answer.error = Some(Refusal {
                error_code: i32::from(Code::NotFound),
                error_message: format!(
                    "not found: {name}: the server lists its services but does not describe them; \
                     use the .proto files of Argo CD"
                ),
            });
        }
    }
    Ok(answer.encode_to_vec())
}

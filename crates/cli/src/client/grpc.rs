//! Calls over gRPC, that is over HTTP/2. [`GrpcTransport`] is the main type.

use super::{Connection, Failure, MAX_MESSAGE, cause, net, retry::Retries};
use crate::failure::hint::NO_SERVER;
use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use http::{Uri, uri::PathAndQuery};
use hyper_util::rt::TokioIo;
use tiphys_repo::net::endpoint;
use tonic::{
    Code, Request, Status,
    client::Grpc,
    metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap},
    transport::Channel,
};
use tonic_prost::ProstCodec;

/// One HTTP/2 connection, reopened when it breaks.
#[derive(Clone)]
pub struct GrpcTransport {
    channel: Channel,
    metadata: MetadataMap,
}

/// The headers of every call.
pub fn headers(c: &Connection) -> Vec<(String, String)> {
    let mut headers = c.headers.clone();
    if !c.token.is_empty() {
        headers.push(("token".into(), c.token.clone()));
    }
    headers
}

impl GrpcTransport {
    pub async fn connect(c: &Connection) -> Result<Self, Failure> {
        let failed = |e: String| {
            Failure::fatal(format!(
                "Failed to establish connection to {}: {e}",
                c.server
            ))
            .with_hint(NO_SERVER)
        };
        let mut metadata = MetadataMap::new();
        for (name, value) in headers(c) {
            let bad = || {
                Failure::fatal(format!(
                    "header {name} has a name or a value that HTTP does not allow"
                ))
            };
            let key = AsciiMetadataKey::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            metadata.append(key, AsciiMetadataValue::try_from(value).map_err(|_| bad())?);
        }
        let endpoint = endpoint(&c.server, c.plaintext).map_err(failed)?;
        let connection = c.clone();
        let connector = tower::service_fn(move |_: Uri| {
            let connection = connection.clone();
            async move { net::dial_h2(&connection).await.map(TokioIo::new) }
        });
        let mut retries = Retries::if_asked(c.retries);
        loop {
            match endpoint.connect_with_connector(connector.clone()).await {
                Ok(channel) => return Ok(Self { channel, metadata }),
                Err(e) => {
                    if !retries.wait().await {
                        return Err(failed(innermost(&e)));
                    }
                }
            }
        }
    }

    async fn ready(&self) -> Result<Grpc<Channel>, Status> {
        let mut grpc = Grpc::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE);
        grpc.ready()
            .await
            .map_err(|e| Status::from_error(Box::new(e)))?;
        Ok(grpc)
    }

    fn request<Q>(&self, message: Q) -> Request<Q> {
        let mut request = Request::new(message);
        *request.metadata_mut() = self.metadata.clone();
        request
    }

    pub async fn unary<Q, R>(&self, path: &'static str, message: Q) -> Result<R, Status>
    where
        Q: prost::Message + 'static,
        R: prost::Message + Default + 'static,
    {
        let codec = ProstCodec::<Q, R>::default();
        let reply = self
            .ready()
            .await?
            .unary(
                self.request(message),
                PathAndQuery::from_static(path),
                codec,
            )
            .await?;
        Ok(reply.into_inner())
    }

    /// A call that sends several messages.
    pub async fn send<Q, R>(
        &self,
        path: &'static str,
        messages: BoxStream<'static, Q>,
    ) -> Result<R, Status>
    where
        Q: prost::Message + 'static,
        R: prost::Message + Default + 'static,
    {
        let codec = ProstCodec::<Q, R>::default();
        let path = PathAndQuery::from_static(path);
        let mut grpc = self.ready().await?;
        let reply = grpc
            .client_streaming(self.request(messages), path, codec)
            .await?;
        Ok(reply.into_inner())
    }

    pub async fn stream<Q, R>(
        &self,
        path: &'static str,
        message: Q,
    ) -> Result<BoxStream<'static, Result<R, Status>>, Status>
    where
        Q: prost::Message + 'static,
        R: prost::Message + Default + 'static,
    {
        let codec = ProstCodec::<Q, R>::default();
        let reply = self
            .ready()
            .await?
            .server_streaming(
                self.request(message),
                PathAndQuery::from_static(path),
                codec,
            )
            .await?;
        Ok(reply.into_inner().map_err(lost).boxed())
    }
}

/// A stream that breaks with its connection ends with `Unavailable`, as it does for the `argocd`
/// command, so that commands that follow something open it again.
fn lost(status: Status) -> Status {
    // Resets by the server have codes of their own.
    if status.code() == Code::Unknown && is_of_transport(&status) {
        return cause::broken(status.message());
    }
    status
}

/// Whether the connection failed, as opposed to the server's handler.
pub fn is_of_transport(status: &Status) -> bool {
    cause::is_of_connection(status)
}

/// The innermost cause: tonic's own message is just "transport error".
fn innermost(e: &tonic::transport::Error) -> String {
    let mut reason: &dyn std::error::Error = e;
    while let Some(inner) = reason.source() {
        reason = inner;
    }
    reason.to_string()
}

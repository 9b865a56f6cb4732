//! The connection to an API server. [`Client`] is the main type: it makes calls by RPC name, over
//! gRPC or gRPC-web. It must not know what the calls mean, or print anything except warnings.

mod cause;
mod config;
mod grpc;
mod net;
mod noted;
mod options;
mod proxy;
mod retry;
mod web;

pub use crate::failure::{Failure, exit};
pub use config::{ContextRef, LocalConfig, Server, User};
pub use net::{TlsProbe, probe};
pub use options::{ConnectArgs, Connection, Core, FORWARDED};

pub use tiphys_repo::net::reason;

use crate::output::log;
use futures::stream::BoxStream;
use grpc::GrpcTransport;
use retry::Retries;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tonic::{Code, Status};
use web::WebTransport;

/// Maximum size of a message in bytes.
const MAX_MESSAGE: usize = 200 << 20;
/// Whether the server did not answer, or says that it cannot yet.
fn is_silent(status: &Status) -> bool {
    status.code() == Code::Unavailable || grpc::is_of_transport(status)
}

/// An API server.
#[derive(Clone)]
pub struct Client {
    connection: Arc<Connection>,
    grpc: Option<GrpcTransport>,
    web: WebTransport,
    /// gRPC has succeeded once, or gRPC-web has after gRPC failed.
    settled: Arc<AtomicBool>,
    use_web: Arc<AtomicBool>,
}

impl Client {
    /// Connects. If HTTP/2 is not available, the first call falls back to gRPC-web.
    pub async fn connect(connection: Connection) -> Result<Self, Failure> {
        let connection = Arc::new(connection);
        let web = WebTransport::new(connection.clone());
        let grpc = if connection.grpc_web {
            None
        } else {
            Some(GrpcTransport::connect(&connection).await?)
        };
        let use_web = Arc::new(AtomicBool::new(grpc.is_none()));
        Ok(Self {
            settled: Arc::new(AtomicBool::new(grpc.is_none())),
            connection,
            grpc,
            web,
            use_web,
        })
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// A call with one reply. `path` is `/service/Method`.
    pub async fn unary<Q, R>(&self, path: &'static str, request: Q) -> Result<R, Status>
    where
        Q: prost::Message + Clone + 'static,
        R: prost::Message + Default + 'static,
    {
        let mut retries = Retries::of_call(self.connection.retries);
        loop {
            let result = self.once(path, request.clone()).await;
            let may_pass = result.as_ref().is_err_and(|e| self.may_pass(path, e));
            if !(may_pass && retries.wait().await) {
                return result.map_err(|e| noted::noted(e, path));
            }
        }
    }

    /// Whether another try may have another result, and does nothing twice: a proxy does not say
    /// whether the server got the call. What a proxy says for a server that is away counts only if
    /// the user asks for more tries.
    fn may_pass(&self, path: &str, status: &Status) -> bool {
        if !retry::is_read(path) {
            return web::is_unsent(status);
        }
        is_silent(status) || (self.connection.retries.is_some() && web::is_overloaded(status))
    }

    async fn once<Q, R>(&self, path: &'static str, request: Q) -> Result<R, Status>
    where
        Q: prost::Message + Clone + 'static,
        R: prost::Message + Default + 'static,
    {
        let Some(grpc) = self
            .grpc
            .as_ref()
            .filter(|_| !self.use_web.load(Ordering::Relaxed))
        else {
            return self.web.unary(path, &request).await;
        };
        let result = grpc.unary(path, request.clone()).await;
        match &result {
            // The response came from the server itself.
            Ok(_) => self.settled.store(true, Ordering::Relaxed),
            Err(e) if !grpc::is_of_transport(e) => self.settled.store(true, Ordering::Relaxed),
            Err(_) if self.settled.load(Ordering::Relaxed) => {}
            // Where there is no connection, there is none for gRPC-web either.
            Err(e) if web::is_unsent(e) => {}
            Err(_) => return self.fall_back(path, &request, result).await,
        }
        result
    }

    async fn fall_back<Q, R>(
        &self,
        path: &'static str,
        request: &Q,
        first: Result<R, Status>,
    ) -> Result<R, Status>
    where
        Q: prost::Message,
        R: prost::Message + Default,
    {
        let result = self.web.unary(path, request).await;
        if result.as_ref().is_err_and(web::is_of_transport) {
            return first;
        }
        log::warn(
            "Failed to invoke grpc call. Use flag --grpc-web in grpc calls to suppress this warning message.",
        );
        self.use_web.store(true, Ordering::Relaxed);
        self.settled.store(true, Ordering::Relaxed);
        result
    }

    /// A call that sends several messages. gRPC-web has no such calls.
    pub async fn send<Q, R>(
        &self,
        path: &'static str,
        messages: BoxStream<'static, Q>,
    ) -> Result<R, Status>
    where
        Q: prost::Message + 'static,
        R: prost::Message + Default + 'static,
    {
        let grpc = self
            .grpc
            .as_ref()
            .filter(|_| !self.use_web.load(Ordering::Relaxed));
        match grpc {
            Some(grpc) => grpc
                .send(path, messages)
                .await
                .map_err(|e| noted::noted(e, path)),
            None => Err(Status::unimplemented(
                "files cannot be sent over gRPC-web: connect without --grpc-web",
            )),
        }
    }

    /// A call with a stream of replies.
    pub async fn stream<Q, R>(
        &self,
        path: &'static str,
        request: Q,
    ) -> Result<BoxStream<'static, Result<R, Status>>, Status>
    where
        Q: prost::Message + Clone + 'static,
        R: prost::Message + Default + 'static,
    {
        let grpc = self
            .grpc
            .as_ref()
            .filter(|_| !self.use_web.load(Ordering::Relaxed));
        let mut retries = Retries::if_asked(self.connection.retries);
        loop {
            let begun = match grpc {
                Some(grpc) => grpc.stream(path, request.clone()).await,
                None => self.web.stream(path, &request).await,
            };
            let may_pass = begun.as_ref().is_err_and(|e| self.may_pass(path, e));
            if !(may_pass && retries.wait().await) {
                return begun.map_err(|e| noted::noted(e, path));
            }
        }
    }
}

//! A repo-server that returns a test's objects. Main function: [`repo_server`].

use serde_json::Value;
use std::{
    convert::Infallible,
    future::{Ready, ready},
    net::TcpListener,
    pin::Pin,
    task::{Context, Poll},
};
use tiphys_api::rpc::repo_server::{ManifestRequest, ManifestResponse};
use tonic::{Request, Response, Status, body::Body, server::Grpc, transport::Server};

/// The commit that everything is rendered from.
pub const REVISION: &str = "0123456789012345678901234567890123456789";

/// The objects of an Application, by its name.
type Render = fn(&str) -> Vec<Value>;

#[derive(Clone)]
struct Renderer(Render);

impl tonic::server::NamedService for Renderer {
    const NAME: &'static str = "repository.RepoServerService";
}

impl tonic::server::UnaryService<ManifestRequest> for Renderer {
    type Response = ManifestResponse;
    type Future = Ready<Result<Response<ManifestResponse>, Status>>;

    fn call(&mut self, request: Request<ManifestRequest>) -> Self::Future {
        let objects = (self.0)(&request.into_inner().app_name);
        let answer = ManifestResponse {
            manifests: objects.iter().map(Value::to_string).collect(),
            revision: REVISION.into(),
            source_type: "Kustomize".into(),
            ..Default::default()
        };
        ready(Ok(Response::new(answer)))
    }
}

impl tower::Service<http::Request<Body>> for Renderer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let renderer = self.clone();
        Box::pin(async move {
            Ok(Grpc::new(tonic_prost::ProstCodec::default())
                .unary(renderer, request)
                .await)
        })
    }
}

/// Returns its address; it serves as long as the runtime exists.
pub fn repo_server(render: Render) -> (tokio::runtime::Runtime, String) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("threads");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("localhost:{}", listener.local_addr().expect("bound").port());
    listener.set_nonblocking(true).expect("a socket");
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
        let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
        Server::builder()
            .serve_with_incoming(Renderer(render), incoming)
            .await
    });
    (runtime, address)
}

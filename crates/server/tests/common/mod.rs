//! A server on loopback with in-memory fakes behind it, and clients for REST and gRPC.

#![allow(dead_code)]

pub mod charts;
pub mod fakes;
pub mod sets;

use bytes::Bytes;
use charts::FakeCatalog;
use fakes::{FakeLive, FakeSources, FakeStore};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy, rt::TokioExecutor};
use serde_json::{Value, json};
use sets::FakeSets;
use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};
use tiphys_server::{
    Assets, Deps, Options, Server, Tls,
    access::{AdminOnly, Enforcer, PolicyEnforcer},
    audit::{AuditError, AuditOptions},
    ports::{SecretRecord, SharedSessions, Sources, Store as _, StoreError},
};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{metadata::MetadataValue, transport::Channel};
use tonic_prost::ProstCodec;

/// Names and values.
type Pairs<'a> = &'a [(&'a str, &'a str)];

pub const PASSWORD: &str = "correct horse";
/// Two ed25519 host keys, and the fingerprint of the first one.
pub const HOST_KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAfuCHKVTjquxvt6CM6tdG4SLp1Btn/nOeHHE5UOzRdf";
pub const OTHER_HOST_KEY: &str =
    "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
pub const FINGERPRINT: &str = "eUXGGm1YGsMAS7vkcx6JOJdOGHPem5gQp4taiCfCLB8";
pub const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

/// Kubernetes takes no others in a Secret.
fn keys_are_valid(data: &BTreeMap<String, Vec<u8>>) -> Result<(), StoreError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_key = |key: &String| !key.is_empty() && key.len() <= 253 && key.chars().all(is_plain);
    match data.keys().find(|key| !is_key(key)) {
        Some(key) => Err(StoreError::Invalid(format!("a key is {key:?}"))),
        None => Ok(()),
    }
}

pub struct World {
    pub store: Arc<FakeStore>,
    pub live: Arc<FakeLive>,
    pub sets: Arc<FakeSets>,
    pub catalog: Arc<FakeCatalog>,
    pub address: SocketAddr,
    pub token: String,
    pub connections: tiphys_listen::Connections,
    pub server: Server,
    pub stop: CancellationToken,
    /// Ends when the server has.
    pub serving: JoinHandle<std::io::Result<()>>,
    _stop: DropGuard,
}

impl World {
    pub async fn start() -> Self {
        Self::start_with(&[], &[]).await
    }

    /// Starts with other sources.
    pub async fn start_from(sources: Arc<dyn Sources>) -> Self {
        Self::started(&[], &[], sources, Arc::new(AdminOnly)).await
    }

    /// Starts with another enforcer.
    pub async fn start_under(enforcer: Arc<dyn Enforcer>) -> Self {
        Self::started(&[], &[], Arc::new(FakeSources), enforcer).await
    }

    /// Starts with these values in argocd-cm and argocd-secret.
    pub async fn start_with(config: &[(&str, &str)], secrets: &[(&str, &str)]) -> Self {
        Self::started(config, secrets, Arc::new(FakeSources), Arc::new(AdminOnly)).await
    }

    /// The same, with the policy that is among these values.
    pub async fn start_by_policy(config: &[(&str, &str)], secrets: &[(&str, &str)]) -> Self {
        let store = Arc::new(FakeStore::default());
        let enforcer = Arc::new(PolicyEnforcer::new(store.clone()));
        let options = options_of_tests();
        Self::begun(
            store,
            (config, secrets),
            Arc::new(FakeSources),
            enforcer,
            options,
        )
        .await
    }

    /// The same, with an audit log.
    pub async fn start_audited(config: &[(&str, &str)], audit: AuditOptions) -> Self {
        Self::start_audited_with(config, audit, options_of_tests()).await
    }

    /// The same with other options.
    pub async fn start_audited_with(
        config: &[(&str, &str)],
        audit: AuditOptions,
        options: Options,
    ) -> Self {
        let store = Arc::new(FakeStore::default());
        let enforcer = Arc::new(PolicyEnforcer::new(store.clone()));
        let options = Options { audit, ..options };
        Self::begun(
            store,
            (config, &[]),
            Arc::new(FakeSources),
            enforcer,
            options,
        )
        .await
    }

    /// Whether a server with this audit log can be made.
    pub fn try_audited(audit: AuditOptions) -> Result<Server, AuditError> {
        let store = Arc::new(FakeStore::default());
        Server::new(Deps {
            store,
            live: Arc::new(FakeLive::default()),
            sources: Arc::new(FakeSources),
            sets: Arc::new(FakeSets::default()),
            catalog: Arc::new(FakeCatalog::default()),
            sessions: None,
            assets: Assets::new([("index.html", "text/html", "the page")]),
            options: Options {
                audit,
                ..options_of_tests()
            },
        })
    }

    async fn started(
        config: &[(&str, &str)],
        secrets: &[(&str, &str)],
        sources: Arc<dyn Sources>,
        enforcer: Arc<dyn Enforcer>,
    ) -> Self {
        let store = Arc::new(FakeStore::default());
        let options = options_of_tests();
        Self::begun(store, (config, secrets), sources, enforcer, options).await
    }

    async fn begun(
        store: Arc<FakeStore>,
        (config, secrets): (Pairs<'_>, Pairs<'_>),
        sources: Arc<dyn Sources>,
        enforcer: Arc<dyn Enforcer>,
        options: Options,
    ) -> Self {
        let live = Arc::new(FakeLive::default());
        // bcrypt's lowest cost: the tests are not about its speed.
        let hash = bcrypt::hash(PASSWORD, 4).expect("it hashes");
        let mut secret = SecretRecord {
            name: "argocd-secret".into(),
            ..Default::default()
        };
        secret
            .data
            .insert("admin.password".into(), hash.into_bytes());
        secret
            .data
            .insert("server.secretkey".into(), b"signing key".to_vec());
        secret.data.extend(
            secrets
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())),
        );
        store.put_secret(&secret).await.expect("stored");
        store.config.lock().expect("not poisoned").extend(
            config
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
        );
        let mut project = tiphys_api::AppProject::default();
        project.metadata.name = "default".into();
        project.metadata.namespace = "argocd".into();
        project.spec.source_repos = vec!["*".into()];
        project.spec.destinations = vec![
            serde_json::from_value(json!({"server": "*", "namespace": "*"}))
                .expect("a destination"),
        ];
        store.create_project(&project).await.expect("stored");
        let mut world = Self::serve(store, live, sources, options, enforcer).await;
        let body = json!({"username": "admin", "password": PASSWORD});
        let session = world
            .rest(Method::POST, "/api/v1/session", Some(body))
            .await
            .1;
        world.token = session["token"].as_str().expect("a token").to_owned();
        world
    }

    /// Stores a Secret of this type, as a person does with kubectl.
    pub async fn store_secret(&self, name: &str, kind: &str, values: &[(&str, &str)]) {
        let mut secret = SecretRecord {
            name: name.to_owned(),
            ..Default::default()
        };
        let label = "argocd.argoproj.io/secret-type";
        secret.labels.insert(label.into(), kind.into());
        for (key, value) in values {
            secret.data.insert((*key).into(), (*value).into());
        }
        self.store.put_secret(&secret).await.expect("stored");
    }

    /// Starts another server with the same records, using the session of this one.
    pub async fn again(&self, options: Options) -> Self {
        let mut world = Self::serve(
            self.store.clone(),
            self.live.clone(),
            Arc::new(FakeSources),
            options,
            Arc::new(AdminOnly),
        )
        .await;
        world.token.clone_from(&self.token);
        world
    }

    /// The same, which shares the ends of sessions in this way, too.
    pub async fn again_with_sessions(&self, sessions: Arc<dyn SharedSessions>) -> Self {
        let mut world = Self::serve_with(
            (self.store.clone(), self.live.clone()),
            Arc::new(FakeSources),
            Options::default(),
            Arc::new(AdminOnly),
            Some(sessions),
        )
        .await;
        world.token.clone_from(&self.token);
        world
    }

    async fn serve(
        store: Arc<FakeStore>,
        live: Arc<FakeLive>,
        sources: Arc<dyn Sources>,
        options: Options,
        enforcer: Arc<dyn Enforcer>,
    ) -> Self {
        Self::serve_with((store, live), sources, options, enforcer, None).await
    }

    async fn serve_with(
        (store, live): (Arc<FakeStore>, Arc<FakeLive>),
        sources: Arc<dyn Sources>,
        options: Options,
        enforcer: Arc<dyn Enforcer>,
        sessions: Option<Arc<dyn SharedSessions>>,
    ) -> Self {
        let sets = Arc::new(FakeSets::default());
        let catalog = Arc::new(FakeCatalog::default());
        let deps = Deps {
            store: store.clone(),
            live: live.clone(),
            sources,
            sets: sets.clone(),
            catalog: catalog.clone(),
            sessions,
            assets: Assets::new([("index.html", "text/html", "the page")]),
            options: Options {
                refresh_timeout: Duration::from_secs(5),
                ..options
            },
        };
        let server = Server::with_enforcer(deps, enforcer).expect("a server");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("an address");
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let (connections, serving) = (server.connections(), server.clone());
        let serving = async move { serving.serve(listener, Tls::Off, stopped).await };
        let serving = tokio::spawn(serving);
        Self {
            store,
            live,
            sets,
            catalog,
            address,
            token: String::new(),
            connections,
            server,
            stop: stop.clone(),
            serving,
            _stop: stop.drop_guard(),
        }
    }

    /// One REST request with the session; the reply as JSON.
    pub async fn rest(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        self.rest_as(&self.token, method, path, body).await
    }

    /// The same with another token.
    pub async fn rest_as(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (u16, Value) {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let body = body.map(|b| b.to_string()).unwrap_or_default();
        let response = self
            .send(
                request
                    .body(Full::new(Bytes::from(body)))
                    .expect("a request"),
            )
            .await;
        let status = response.status().as_u16();
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        (
            status,
            serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())),
        )
    }

    pub async fn send(&self, mut request: Request<Full<Bytes>>) -> Response<hyper::body::Incoming> {
        let uri = format!("http://{}{}", self.address, request.uri());
        *request.uri_mut() = uri.parse().expect("a URI");
        let client: legacy::Client<_, Full<Bytes>> =
            legacy::Client::builder(TokioExecutor::new()).build_http();
        client.request(request).await.expect("an answer")
    }

    /// Waits for the end of the server, which was told to stop.
    pub async fn ended(&mut self) {
        let ended = tokio::time::timeout(Duration::from_secs(60), &mut self.serving).await;
        ended
            .expect("within 60 s")
            .expect("no panic")
            .expect("served");
    }

    pub async fn channel(&self) -> Channel {
        let endpoint = Channel::from_shared(format!("http://{}", self.address)).expect("a URI");
        endpoint.connect().await.expect("a connection")
    }

    fn request<Q>(&self, message: Q) -> tonic::Request<Q> {
        let mut request = tonic::Request::new(message);
        request.metadata_mut().insert(
            "token",
            MetadataValue::try_from(&self.token).expect("a token"),
        );
        request
    }

    /// One gRPC call, with the session.
    pub async fn grpc<Q, R>(&self, rpc: &'static str, message: Q) -> Result<R, tonic::Status>
    where
        Q: prost::Message + Default + 'static,
        R: prost::Message + Default + 'static,
    {
        let mut client = tonic::client::Grpc::new(self.channel().await);
        client.ready().await.expect("a connection");
        let codec = ProstCodec::<Q, R>::default();
        client
            .unary(
                self.request(message),
                http::uri::PathAndQuery::from_static(rpc),
                codec,
            )
            .await
            .map(tonic::Response::into_inner)
    }

    /// A call that sends several messages.
    pub async fn grpc_send<Q, R>(
        &self,
        rpc: &'static str,
        messages: Vec<Q>,
    ) -> Result<R, tonic::Status>
    where
        Q: prost::Message + Default + 'static,
        R: prost::Message + Default + 'static,
    {
        let mut client = tonic::client::Grpc::new(self.channel().await);
        client.ready().await.expect("a connection");
        let codec = ProstCodec::<Q, R>::default();
        let path = http::uri::PathAndQuery::from_static(rpc);
        let messages = self.request(futures::stream::iter(messages));
        let reply = client.client_streaming(messages, path, codec).await;
        reply.map(tonic::Response::into_inner)
    }

    pub async fn grpc_stream<Q, R>(&self, rpc: &'static str, message: Q) -> tonic::Streaming<R>
    where
        Q: prost::Message + Default + 'static,
        R: prost::Message + Default + 'static,
    {
        self.stream_of(rpc, self.request(message)).await
    }

    /// The same with another's token.
    pub async fn grpc_stream_as<Q, R>(
        &self,
        token: &str,
        rpc: &'static str,
        message: Q,
    ) -> tonic::Streaming<R>
    where
        Q: prost::Message + Default + 'static,
        R: prost::Message + Default + 'static,
    {
        let mut request = tonic::Request::new(message);
        let token = MetadataValue::try_from(token).expect("a token");
        request.metadata_mut().insert("token", token);
        self.stream_of(rpc, request).await
    }

    async fn stream_of<Q, R>(
        &self,
        rpc: &'static str,
        request: tonic::Request<Q>,
    ) -> tonic::Streaming<R>
    where
        Q: prost::Message + Default + 'static,
        R: prost::Message + Default + 'static,
    {
        let mut client = tonic::client::Grpc::new(self.channel().await);
        client.ready().await.expect("a connection");
        let codec = ProstCodec::<Q, R>::default();
        let path = http::uri::PathAndQuery::from_static(rpc);
        client
            .server_streaming(request, path, codec)
            .await
            .expect("a stream")
            .into_inner()
    }
}

fn options_of_tests() -> Options {
    Options {
        hydrator_enabled: true,
        ..Options::default()
    }
}

pub fn app(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "argocd", "labels": {"team": "a"}},
        "spec": {"project": "default", "source": {"repoURL": "https://example.org/r.git", "path": "p"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "n"}}
    })
}

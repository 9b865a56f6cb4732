//! The API with a repo-server: Applications that only render there can be created, and for those
//! that don't, its error is returned.

use crate::common;

use common::{World, app};
use http::Method;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::{Arc, Mutex},
    time::Duration,
};
use tiphys_api::{
    AppProject,
    rpc::repo_server::{
        ManifestRequest, ManifestResponse, ResolveRevisionRequest, ResolveRevisionResponse,
    },
};
use tiphys_cluster::Settings;
use tiphys_repo::{RepoServer, RepoServerOptions, Repos};
use tiphys_server::adapters::RepoSources;
use tiphys_sources::Sources;
use tokio::net::TcpListener;
use tonic::{Request, Response, Status, server::Grpc};
use tonic_prost::ProstCodec;

type Asked = Arc<Mutex<Vec<ManifestRequest>>>;

/// A repo-server that has version 1.2.3 of every chart, and fails to render broken ones.
#[derive(Clone, Default)]
struct Renderer(Asked);

impl tonic::server::UnaryService<ResolveRevisionRequest> for Renderer {
    type Response = ResolveRevisionResponse;
    type Future = Ready<Result<Response<ResolveRevisionResponse>, Status>>;
    fn call(&mut self, request: Request<ResolveRevisionRequest>) -> Self::Future {
        let message = request.into_inner();
        let source = message
            .app
            .and_then(|app| app.spec.source.clone())
            .unwrap_or_default();
        assert_eq!(
            (source.target_revision, message.source_index),
            (message.ambiguous_revision, -1)
        );
        ready(Ok(Response::new(ResolveRevisionResponse {
            revision: "1.2.3".into(),
            ambiguous_revision: "1.x (1.2.3)".into(),
        })))
    }
}

impl tonic::server::UnaryService<ManifestRequest> for Renderer {
    type Response = ManifestResponse;
    type Future = Ready<Result<Response<ManifestResponse>, Status>>;
    fn call(&mut self, request: Request<ManifestRequest>) -> Self::Future {
        let message = request.into_inner();
        let source = message.application_source.clone().unwrap_or_default();
        let revision = message.revision.clone();
        self.0.lock().expect("not poisoned").push(message);
        let manifest =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}).to_string();
        ready(match source.chart.as_str() {
            "broken" => Err(Status::unknown("helm template failed")),
            _ => Ok(Response::new(ManifestResponse {
                manifests: vec![manifest],
                revision,
                source_type: "Helm".into(),
                ..Default::default()
            })),
        })
    }
}

/// Starts the repo-server and returns its address.
async fn serve(renderer: Renderer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let renderer = renderer.clone();
            let service =
                hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    let renderer = renderer.clone();
                    async move {
                        Ok::<_, Infallible>(match request.uri().path() {
                            "/repository.RepoServerService/ResolveRevision" => {
                                Grpc::new(ProstCodec::<
                                    ResolveRevisionResponse,
                                    ResolveRevisionRequest,
                                >::default())
                                .unary(renderer, request)
                                .await
                            }
                            "/repository.RepoServerService/GenerateManifest" => Grpc::new(
                                ProstCodec::<ManifestResponse, ManifestRequest>::default(),
                            )
                            .unary(renderer, request)
                            .await,
                            other => Status::unimplemented(other.to_owned()).into_http(),
                        })
                    }
                });
            tokio::spawn(
                hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    address
}

fn chart(name: &str, chart: &str) -> Value {
    let mut app = app(name);
    app["spec"]["source"] = json!({"repoURL": "https://charts.example", "chart": chart, "targetRevision": "1.x", "helm": {"releaseName": "r"}});
    app
}

#[tokio::test]
async fn what_only_a_repo_server_renders_can_be_created() {
    let renderer = Renderer::default();
    let options = RepoServerOptions {
        address: serve(renderer.clone()).await,
        timeout: Duration::from_secs(10),
        plaintext: true,
        trusted: Vec::new(),
        identity: None,
    };
    let server = RepoServer::new(options).expect("an address");
    let settings = Settings::of_config([("helm.enable".to_owned(), "true".to_owned())].into());
    let mut project = AppProject::default();
    (project.metadata.name, project.spec.source_repos) = ("default".into(), vec!["*".into()]);
    let (settings, project) = (Arc::new(settings), Arc::new(project));
    let sources = Sources::with(
        Repos::new(std::env::temp_dir().join("tiphys-test-unused")),
        Some(server),
        move || settings.clone(),
        move |name| (name == "default").then(|| project.clone()),
    );
    let world = World::start_from(Arc::new(RepoSources::new(sources))).await;

    let (status, created) = world
        .rest(
            Method::POST,
            "/api/v1/applications",
            Some(chart("good", "web")),
        )
        .await;
    assert_eq!(status, 200, "{created}");
    let asked = renderer.0.lock().expect("not poisoned").remove(0);
    let repo = asked.repo.expect("a repository");
    assert_eq!(
        (
            repo.repo.as_str(),
            repo.type_.as_str(),
            asked.revision.as_str()
        ),
        ("https://charts.example", "helm", "1.2.3")
    );
    assert_eq!(
        (
            asked.app_name.as_str(),
            asked.project_name.as_str(),
            asked.tracking_method.as_str()
        ),
        ("good", "default", "annotation")
    );
    assert_eq!(
        (
            asked.enabled_source_types["Helm"],
            asked.project_source_repos
        ),
        (true, vec!["*".to_owned()])
    );

    let (status, refused) = world
        .rest(
            Method::POST,
            "/api/v1/applications",
            Some(chart("bad", "broken")),
        )
        .await;
    assert_eq!(status, 400);
    let error = refused["error"].as_str().expect("a reason");
    assert!(
        error.contains("Unable to generate manifests in") && error.contains("helm template failed"),
        "{error}"
    );
    assert!(!world.store.exists("bad"));

    let (status, manifests) = world
        .rest(Method::GET, "/api/v1/applications/good/manifests", None)
        .await;
    assert_eq!(
        (status, manifests["manifests"].as_array().map(Vec::len)),
        (200, Some(1)),
        "{manifests}"
    );
    let (status, synced) = world
        .rest(
            Method::POST,
            "/api/v1/applications/good/sync",
            Some(json!({})),
        )
        .await;
    assert_eq!(
        (status, &synced["operation"]["sync"]["revision"]),
        (200, &json!("1.2.3")),
        "{synced}"
    );
}

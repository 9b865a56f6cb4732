//! What a Secret of a repository that cannot be read stops where a repo-server renders: only what
//! needs that repository.

use serde_json::json;
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use tiphys_api::{AppProject, repository::Repository};
use tiphys_cluster::{Settings, records::RepoSecret};
use tiphys_listen::{Connections, Limits};
use tiphys_repo::{RepoOptions, RepoServer, RepoServerOptions, Repos};
use tiphys_repo_server::{Server, ServerOptions, StreamLimits, TrustPaths};
use tiphys_rpc::Tls;
use tiphys_sources::{AppRequest, SourceRequest, Sources};
use tiphys_testkit::charts::{FileServer, index, plain_chart};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A repo-server of ours, until the guard is dropped.
async fn serve(dir: &TempDir) -> (RepoServer, DropGuard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let options = ServerOptions {
        max_message: 8 << 20,
        trust: TrustPaths {
            known_hosts: dir.path().join("ssh_known_hosts"),
            certificates: dir.path().join("tls"),
            keys: dir.path().join("keys"),
        },
        version: "v1".to_owned(),
        streamed: StreamLimits {
            archive: 1 << 20,
            bytes: 4 << 20,
        },
        hidden_folders: false,
    };
    let repos = Repos::with_options(dir.path().join("of-server"), RepoOptions::default());
    let (server, stop) = (
        Arc::new(Server::new(repos, options)),
        CancellationToken::new(),
    );
    let guard = stop.clone().drop_guard();
    let connections = Connections::new(Limits::default());
    let serving = server.serve(listener, Tls::Off, connections, stop);
    tokio::spawn(async move { serving.await.expect("it needs no certificate") });
    let client = RepoServer::new(RepoServerOptions {
        address: format!("localhost:{port}"),
        timeout: Duration::from_secs(60),
        plaintext: true,
        trusted: Vec::new(),
        identity: None,
    });
    (client.expect("an address"), guard)
}

fn sources(dir: &TempDir, server: RepoServer, faulty: &str) -> Sources {
    let value = Repository {
        repo: faulty.to_owned(),
        name: "faulty".to_owned(),
        type_: "helm".to_owned(),
        ..Repository::default()
    };
    let settings = Arc::new(Settings {
        repositories: vec![RepoSecret {
            secret_name: "s".to_owned(),
            managed: false,
            value: value.with_fault("Secret s cannot be read".to_owned()),
        }],
        ..Settings::default()
    });
    let mut project = AppProject::default();
    project.spec.source_repos = vec!["*".to_owned()];
    let project = Arc::new(project);
    Sources::with(
        Repos::new(dir.path().join("cache")),
        Some(server),
        move || Arc::clone(&settings),
        move |_| Some(Arc::clone(&project)),
    )
}

fn request(url: &str, chart: &str) -> SourceRequest {
    let source = json!({"repoURL": url, "chart": chart, "targetRevision": "1.0.0"});
    SourceRequest {
        app: Arc::new(AppRequest {
            instance: "shop".to_owned(),
            ..AppRequest::default()
        }),
        repository: Repository {
            repo: url.to_owned(),
            type_: "helm".to_owned(),
            ..Repository::default()
        },
        source: serde_json::from_value(source).expect("a source"),
        revision: "1.0.0".to_owned(),
    }
}

/// R126: one of ours refuses it where it is needed, so the others need not be stopped. Nobody asks
/// the repository without its credentials.
#[tokio::test(flavor = "multi_thread")]
async fn only_charts_that_need_a_faulty_repository_are_refused() {
    let (dir, web) = (TempDir::new().expect("a folder"), FileServer::start());
    let (good, faulty) = (
        format!("{}/good", web.url()),
        format!("{}/faulty", web.url()),
    );
    let needs = format!(
        "apiVersion: v2\nname: needs\nversion: 1.0.0\ndependencies:\n\
         - {{name: inner, version: 1.0.0, repository: {faulty}}}\n"
    );
    let charts = [
        ("plain", "1.0.0", "plain-1.0.0.tgz", ""),
        ("needs", "1.0.0", "needs-1.0.0.tgz", ""),
    ];
    web.serve("/good/index.yaml", index(&charts).as_str());
    web.serve("/good/plain-1.0.0.tgz", plain_chart("plain", "1.0.0", &[]));
    let more = [("Chart.yaml", needs.as_str())];
    web.serve(
        "/good/needs-1.0.0.tgz",
        plain_chart("needs", "1.0.0", &more),
    );
    let inner = index(&[("inner", "1.0.0", "inner-1.0.0.tgz", "")]);
    web.serve("/faulty/index.yaml", inner.as_str());
    web.serve(
        "/faulty/inner-1.0.0.tgz",
        plain_chart("inner", "1.0.0", &[]),
    );

    let (server, _serving) = serve(&dir).await;
    assert!(server.is_ours().await.expect("an answer"));
    let sources = sources(&dir, server, &faulty);
    let made = sources.manifests(&request(&good, "plain"), None).await;
    assert_eq!(made.expect("it needs no other").objects.len(), 1);
    let refused = sources.manifests(&request(&good, "needs"), None).await;
    let refused = refused.expect_err("it is not asked").to_string();
    let why = format!("failed to get repo \"{faulty}\": Secret s cannot be read");
    assert!(refused.contains(&why), "{refused}");
    let paths = web.paths();
    assert!(
        !paths.iter().any(|path| path.contains("faulty")),
        "{paths:?}"
    );
}

//! The client of a repo-server against a fake one over loopback: responses, errors, and trusted
//! certificates.

use std::{
    convert::Infallible,
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};
use tiphys_api::{
    project::{SourceIntegrityCheckResult, SourceIntegrityCheckResultItem},
    rpc::repo_server::{ManifestRequest, ManifestResponse},
};
use tiphys_repo::{ErrorKind, RepoServer, RepoServerOptions};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Code, Request, Response, Status,
    body::Body,
    server::{Grpc, NamedService, UnaryService},
    transport::{Certificate, Identity, Server, ServerTlsConfig},
};
use tonic_prost::ProstCodec;

type Answers = Arc<Mutex<Vec<Result<ManifestResponse, Status>>>>;

/// Returns the prepared responses, one per call, and records the requests.
#[derive(Clone, Default)]
struct Fake {
    answers: Answers,
    asked: Arc<Mutex<Vec<ManifestRequest>>>,
    /// `traceparent` of each request.
    traces: Arc<Mutex<Vec<Option<String>>>>,
}

impl NamedService for Fake {
    const NAME: &'static str = "repository.RepoServerService";
}

impl UnaryService<ManifestRequest> for Fake {
    type Response = ManifestResponse;
    type Future = std::future::Ready<Result<Response<ManifestResponse>, Status>>;

    fn call(&mut self, request: Request<ManifestRequest>) -> Self::Future {
        let trace = request
            .metadata()
            .get("traceparent")
            .map(|value| value.to_str().expect("plain").to_owned());
        self.traces.lock().expect("no panic").push(trace);
        self.asked
            .lock()
            .expect("no panic")
            .push(request.into_inner());
        std::future::ready(
            self.answers
                .lock()
                .expect("no panic")
                .remove(0)
                .map(Response::new),
        )
    }
}

impl tower::Service<http::Request<Body>> for Fake {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        assert_eq!(
            request.uri().path(),
            "/repository.RepoServerService/GenerateManifest"
        );
        let service = self.clone();
        Box::pin(async move {
            Ok(Grpc::new(ProstCodec::default())
                .unary(service, request)
                .await)
        })
    }
}

/// Serves the responses, with or without TLS; returns the address.
async fn serve(fake: &Fake, tls: Option<ServerTlsConfig>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("localhost:{}", listener.local_addr().expect("bound").port());
    let mut server = Server::builder();
    if let Some(tls) = tls {
        server = server.tls_config(tls).expect("a good configuration");
    }
    tokio::spawn(server.serve_with_incoming(fake.clone(), TcpListenerStream::new(listener)));
    address
}

fn options(address: String) -> RepoServerOptions {
    RepoServerOptions {
        address,
        timeout: Duration::from_secs(20),
        plaintext: true,
        trusted: Vec::new(),
        identity: None,
    }
}

fn config_map(name: &str) -> ManifestResponse {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"big":"9007199254740993"}}}}"#
    );
    ManifestResponse {
        manifests: vec![text],
        revision: "abc".into(),
        source_type: "Helm".into(),
        ..ManifestResponse::default()
    }
}

#[tokio::test]
async fn manifests_are_read_once() {
    let fake = Fake::default();
    let again = ManifestResponse {
        revision: "def".into(),
        ..config_map("a")
    };
    *fake.answers.lock().expect("no panic") =
        vec![Ok(config_map("a")), Ok(again), Ok(config_map("b"))];
    let server = RepoServer::new(options(serve(&fake, None).await)).expect("an address");
    let request = ManifestRequest {
        revision: "main".into(),
        app_name: "guestbook".into(),
        ..ManifestRequest::default()
    };
    let first = server.manifests(&request).await.expect("an answer");
    assert_eq!(
        (
            first.revision.as_str(),
            first.source_type.as_str(),
            first.objects[0].name()
        ),
        ("abc", "Helm", "a")
    );
    let second = server.manifests(&request).await.expect("an answer");
    assert_eq!(
        (second.revision.as_str(), &second.digest),
        ("def", &first.digest)
    );
    assert!(
        Arc::ptr_eq(&first.objects, &second.objects),
        "the same text is not read again"
    );
    let third = server.manifests(&request).await.expect("an answer");
    assert_ne!(third.digest, first.digest);
    assert_eq!(
        *fake.asked.lock().expect("no panic"),
        vec![request.clone(), request.clone(), request]
    );
}

/// Also if the objects are those of an earlier response.
#[tokio::test]
async fn what_was_found_of_signatures_is_told() {
    let fake = Fake::default();
    let checks = |problems: &[&str]| {
        let problems = problems.iter().map(|text| (*text).to_owned()).collect();
        let name = Some("GIT/GPG".to_owned());
        SourceIntegrityCheckResult {
            checks: vec![SourceIntegrityCheckResultItem { name, problems }],
        }
    };
    let verdicts = [
        (Some(checks(&["unsigned"])), ""),
        (Some(checks(&[])), ""),
        (None, "gpg: Signature made"),
        (None, ""),
    ];
    let answer = |(integrity, printed): (Option<SourceIntegrityCheckResult>, &str)| {
        Ok(ManifestResponse {
            source_integrity_result: integrity,
            verify_result: printed.to_owned(),
            ..config_map("a")
        })
    };
    *fake.answers.lock().expect("no panic") = verdicts.clone().map(answer).into();
    let server = RepoServer::new(options(serve(&fake, None).await)).expect("an address");
    for (integrity, printed) in verdicts {
        let manifests = server.manifests(&ManifestRequest::default()).await;
        let told = &manifests.as_ref().expect("an answer").told;
        assert_eq!(
            (&told.integrity, told.verify_result.as_str()),
            (&integrity, printed)
        );
    }
}

#[tokio::test]
async fn the_trace_is_told() {
    let fake = Fake::default();
    *fake.answers.lock().expect("no panic") = vec![Ok(config_map("a")), Ok(config_map("a"))];
    let server = RepoServer::new(options(serve(&fake, None).await)).expect("an address");
    server
        .manifests(&ManifestRequest::default())
        .await
        .expect("an answer");
    let traced = server.with_context(|| Some("00-1-2-01".to_owned()));
    traced
        .manifests(&ManifestRequest::default())
        .await
        .expect("an answer");
    assert_eq!(
        *fake.traces.lock().expect("no panic"),
        [None, Some("00-1-2-01".to_owned())]
    );
}

#[tokio::test]
async fn errors_are_told_as_go_tells_them() {
    let fake = Fake::default();
    let broken = ManifestResponse {
        manifests: vec!["{".into()],
        ..ManifestResponse::default()
    };
    let unknown = Status::new(
        Code::Unknown,
        "Manifest generation error (cached): app path does not exist",
    );
    let busy = || Err(Status::unavailable("busy"));
    *fake.answers.lock().expect("no panic") = vec![
        Err(unknown),
        Ok(broken),
        busy(),
        Ok(config_map("a")),
        busy(),
        busy(),
        busy(),
    ];
    let server = RepoServer::new(options(serve(&fake, None).await)).expect("an address");
    let ask = || async {
        server
            .manifests(&ManifestRequest::default())
            .await
            .map_err(|e| (e.to_string(), e.kind()))
    };
    let text = "rpc error: code = Unknown desc = Manifest generation error (cached): app path does not exist";
    assert_eq!(ask().await.err(), Some((text.to_owned(), ErrorKind::User)));
    let (text, _) = ask().await.expect_err("half an object");
    assert!(
        text.starts_with("manifest 1 of 1: EOF while parsing"),
        "{text}"
    );
    assert_eq!(ask().await.expect("asked again").objects[0].name(), "a");
    assert_eq!(
        ask().await.err(),
        Some((
            "rpc error: code = Unavailable desc = busy".to_owned(),
            ErrorKind::Upstream
        ))
    );
    assert_eq!(fake.asked.lock().expect("no panic").len(), 7);
}

#[tokio::test]
async fn nobody_there_is_told_with_the_address() {
    let address = TcpListener::bind("127.0.0.1:0")
        .await
        .and_then(|l| l.local_addr())
        .expect("a port that is free again")
        .to_string();
    let server = RepoServer::new(options(address.clone())).expect("an address");
    let error = server
        .manifests(&ManifestRequest::default())
        .await
        .expect_err("nobody there");
    let text = format!(
        "rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: dial tcp {address}: connect: connection refused\""
    );
    assert_eq!((error.to_string(), error.retryable()), (text, true));
}

/// A self-signed certificate for localhost, in files.
fn certificate(folder: &tempfile::TempDir, name: &str) -> (PathBuf, PathBuf, Identity) {
    let made =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let paths = (
        folder.path().join(format!("{name}.crt")),
        folder.path().join(format!("{name}.key")),
    );
    std::fs::write(&paths.0, &certificate).expect("writable");
    std::fs::write(&paths.1, &key).expect("writable");
    (paths.0, paths.1, Identity::from_pem(certificate, key))
}

#[tokio::test]
async fn certificates_are_checked_as_asked() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (ours, ours_key, _) = certificate(&folder, "ours");
    let (theirs, _, identity) = certificate(&folder, "theirs");
    let fake = Fake::default();
    *fake.answers.lock().expect("no panic") = (0..3).map(|_| Ok(config_map("a"))).collect();
    let root = Certificate::from_pem(std::fs::read(&ours).expect("written"));
    let open = serve(
        &fake,
        Some(ServerTlsConfig::new().identity(identity.clone())),
    )
    .await;
    let mutual = serve(
        &fake,
        Some(
            ServerTlsConfig::new()
                .identity(identity)
                .client_ca_root(root),
        ),
    )
    .await;
    let ask = |address: &str, trusted: Option<&PathBuf>, identity: Option<&PathBuf>| {
        let identity = identity.map(|path| (path.clone(), ours_key.clone()));
        let trusted = trusted.into_iter().cloned().collect();
        let server = RepoServer::new(RepoServerOptions {
            plaintext: false,
            trusted,
            identity,
            ..options(address.to_owned())
        });
        async move {
            server
                .expect("an address")
                .manifests(&ManifestRequest::default())
                .await
                .map(drop)
                .map_err(|e| e.to_string())
        }
    };
    assert_eq!(
        ask(&open, None, None).await,
        Ok(()),
        "any certificate will do"
    );
    assert_eq!(ask(&open, Some(&theirs), None).await, Ok(()));
    let (stranger, nobody, unknown) = tokio::join!(
        ask(&open, Some(&ours), None),
        ask(&mutual, None, None),
        ask(&open, Some(&folder.path().join("none")), None)
    );
    assert!(
        stranger
            .as_ref()
            .is_err_and(|e| e.contains("tls: failed to verify certificate: x509: ")),
        "{stranger:?}"
    );
    assert!(
        nobody
            .as_ref()
            .is_err_and(|e| e.starts_with("rpc error: code = Unavailable")),
        "{nobody:?}"
    );
    assert!(
        unknown
            .as_ref()
            .is_err_and(|e| e.contains("none: no such file or directory")),
        "{unknown:?}"
    );
    assert_eq!(
        ask(&mutual, None, Some(&ours)).await,
        Ok(()),
        "who shows the right certificate is let in"
    );
}

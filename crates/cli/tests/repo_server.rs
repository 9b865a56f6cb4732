//! `argocd-repo-server`, which is this program under another name, as a manifest starts it: with
//! Argo CD's flags and variables, and asked as a controller does.

use crate::scenarios::world::program;
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::symlink,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tiphys_api::{
    repository::Repository, rpc::repo_server::ManifestRequest, source::ApplicationSource,
};
use tiphys_repo::{RepoServer, RepoServerOptions};
use tiphys_testkit::{PATIENCE, Repo, free_port};

/// Ended with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The answer to a path, once the port is open.
fn get(port: u16, path: &str) -> String {
    let begun = Instant::now();
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(e) => assert!(begun.elapsed() < PATIENCE, "no port: {e}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_is_served() {
    let dir = TempDir::new().expect("a folder");
    let name = dir.path().join("argocd-repo-server");
    symlink(program(), &name).expect("linked");
    let (port, metrics_port) = (free_port(), free_port());
    let mut command = Command::new(name);
    command
        .args(["--port", &port.to_string()])
        .arg(format!("--metrics-port={metrics_port}"))
        .env("ARGOCD_REPO_SERVER_LISTEN_ADDRESS", "127.0.0.1")
        .env("ARGOCD_REPO_SERVER_METRICS_LISTEN_ADDRESS", "127.0.0.1")
        .env("ARGOCD_REPO_SERVER_PARALLELISM_LIMIT", "2")
        .env("ARGOCD_APP_CONF_PATH", dir.path())
        .env("TMPDIR", dir.path())
        .stderr(Stdio::null());
    let mut server = Running(command.spawn().expect("it starts"));
    for path in ["/healthz", "/healthz?full=true"] {
        let answer = get(metrics_port, path);
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }

    // Its certificate is its own, as a controller of Argo CD expects it.
    let client = RepoServer::new(RepoServerOptions {
        address: format!("localhost:{port}"),
        timeout: Duration::from_secs(60),
        plaintext: false,
        trusted: Vec::new(),
        identity: None,
    });
    let client = client.expect("an address");
    assert!(client.plugins().await.expect("an answer").is_empty());
    // Repositories of its own machine are nobody's to name.
    let repository = Repo::with(&[("app/a.yaml", "")]);
    let request = ManifestRequest {
        repo: Some(Repository {
            repo: repository.url(),
            ..Repository::default()
        }),
        application_source: Some(ApplicationSource {
            repo_url: repository.url(),
            path: "app".to_owned(),
            ..ApplicationSource::default()
        }),
        ..ManifestRequest::default()
    };
    let e = client.manifests(&request).await.expect_err("refused");
    assert!(e.to_string().contains("is refused"), "{e}");

    let metrics = get(metrics_port, "/metrics");
    for line in [
        "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"ListPlugins\",grpc_service=\"repository.RepoServerService\",grpc_type=\"unary\"} 1",
        "grpc_server_handled_total{grpc_code=\"Unknown\",grpc_method=\"GenerateManifest\",grpc_service=\"repository.RepoServerService\",grpc_type=\"unary\"} 1",
        "# TYPE argocd_git_request_total counter",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}\n{metrics}"
        );
    }
    let terminated = Command::new("kill").arg(server.0.id().to_string()).status();
    assert!(terminated.expect("it is told to end").success());
    let ended = server.0.wait().expect("it ends");
    assert!(ended.success(), "{ended}");
    let left: Vec<String> = fs::read_dir(dir.path())
        .expect("a folder")
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    assert_eq!(left, ["argocd-repo-server"], "its copies are removed");
}

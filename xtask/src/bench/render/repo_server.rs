//! A genuine repo-server and ours, asked for the same manifests over gRPC, none of which they may
//! take from a cache.
//!
//! Main function: [`rows`]. The genuine one gets a small Redis, so that it does not wait for one.

use super::{Row, inputs, inputs::Tree};
use anyhow::{Context, ensure};
use serde_json::json;
use std::{
    fs,
    net::TcpStream,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tiphys_api::{
    repository::Repository, rpc::repo_server::ManifestRequest, source::ApplicationSource,
};
use tiphys_repo::{RepoServer, RepoServerOptions};
use tiphys_testkit::{PATIENCE, Repo, free_port, redis::Redis};

const AIM: f64 = 20.0;

/// What is started.
pub struct Programs<'a> {
    pub genuine: &'a Path,
    pub ours: &'a Path,
    pub helm: &'a Path,
    pub kustomize: &'a Path,
}

/// Ended with this value.
struct Peer {
    process: Child,
    client: RepoServer,
    _folder: TempDir,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The same requests to both.
///
/// # Errors
/// A program does not start, or an answer is an error.
pub fn rows(programs: &Programs<'_>, rounds: usize) -> anyhow::Result<Vec<Row>> {
    let runtime = tokio::runtime::Runtime::new()?;
    // Clients are made in it.
    let _entered = runtime.enter();
    let redis = Redis::default();
    let redis = redis.serve(0);
    let genuine = genuine(programs, &redis.address.to_string())?;
    let ours = start(
        Command::new(programs.ours).args(["repo-server", "--allow-file-repositories"]),
        tempfile::tempdir()?,
    )?;
    let mut files = Vec::new();
    for (folder, tree) in [("overlay", inputs::overlay()), ("chart", inputs::chart())] {
        let Tree(own) = tree;
        files.extend(
            own.into_iter()
                .map(|(path, text)| (format!("{folder}/{path}"), text)),
        );
    }
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let repo = Repo::with(&files);
    let mut rows = Vec::new();
    for (what, path) in [("an overlay", "overlay/prod"), ("a chart", "chart")] {
        let request = request(&repo, path)?;
        let theirs = best(&runtime, &genuine, &request, rounds)?;
        let own = best(&runtime, &ours, &request, rounds)?;
        let what = format!("{what}, asked of a repo-server");
        rows.push(Row::times(what, theirs, own, AIM));
    }
    Ok(rows)
}

/// Seconds of the fastest answer.
fn best(
    runtime: &tokio::runtime::Runtime,
    peer: &Peer,
    request: &ManifestRequest,
    rounds: usize,
) -> anyhow::Result<f64> {
    let mut best = f64::MAX;
    // The first answer, which also fetches, does not count.
    for round in 0..=rounds {
        let start = Instant::now();
        let answer = runtime.block_on(peer.client.manifests(request))?;
        let seconds = start.elapsed().as_secs_f64();
        ensure!(!answer.objects.is_empty(), "the answer is empty");
        if round > 0 {
            best = best.min(seconds);
        }
    }
    Ok(best)
}

fn request(repo: &Repo, path: &str) -> anyhow::Result<ManifestRequest> {
    let source = json!({"repoURL": repo.url(), "path": path, "targetRevision": "main"});
    let source: ApplicationSource = serde_json::from_value(source)?;
    Ok(ManifestRequest {
        repo: Some(Repository {
            repo: repo.url(),
            type_: "git".to_owned(),
            ..Repository::default()
        }),
        revision: repo.head(),
        no_cache: true,
        app_label_key: "app.kubernetes.io/instance".to_owned(),
        app_name: "web".to_owned(),
        namespace: "prod".to_owned(),
        application_source: Some(source),
        kube_version: "1.33.0".to_owned(),
        tracking_method: "annotation".to_owned(),
        project_name: "default".to_owned(),
        project_source_repos: vec!["*".to_owned()],
        ..ManifestRequest::default()
    })
}

fn genuine(programs: &Programs<'_>, redis: &str) -> anyhow::Result<Peer> {
    let folder = tempfile::tempdir()?;
    let name = folder.path().join("argocd-repo-server");
    symlink(fs::canonicalize(programs.genuine)?, &name)?;
    for program in [programs.helm, programs.kustomize] {
        let own = program.file_name().context("a program has a name")?;
        symlink(fs::canonicalize(program)?, folder.path().join(own))?;
    }
    // It calls this for each commit, whether signatures are demanded or not.
    let verify = folder.path().join("git-verify-wrapper.sh");
    fs::write(&verify, "#!/bin/sh\n")?;
    fs::set_permissions(&verify, fs::Permissions::from_mode(0o700))?;
    let words = ["--client-ca-path=", "--redis", redis];
    start(Command::new(name).args(words), folder)
}

/// Starts a repo-server and waits until its port is open.
fn start(command: &mut Command, folder: TempDir) -> anyhow::Result<Peer> {
    let (port, metrics) = (free_port(), free_port());
    let known = std::env::var_os("PATH").unwrap_or_default();
    let all = [folder.path().to_owned()].into_iter();
    let path = std::env::join_paths(all.chain(std::env::split_paths(&known)))?;
    let process = command
        .args(["--port", &port.to_string()])
        .args(["--metrics-port", &metrics.to_string()])
        .args(["--address", "127.0.0.1", "--metrics-address", "127.0.0.1"])
        .arg("--disable-tls")
        .env("PATH", path)
        .env("TMPDIR", folder.path())
        .env("HOME", folder.path())
        .env("ARGOCD_GPG_ENABLED", "false")
        .env("ARGOCD_PLUGINSOCKFILEPATH", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let client = RepoServer::new(RepoServerOptions {
        address: format!("127.0.0.1:{port}"),
        timeout: PATIENCE,
        plaintext: true,
        trusted: Vec::new(),
        identity: None,
    })?;
    let peer = Peer {
        process,
        client,
        _folder: folder,
    };
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        ensure!(begun.elapsed() < PATIENCE, "{command:?} opens no port");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(peer)
}

//! A running server, and a repository for it.

use bytes::Bytes;
use futures::StreamExt as _;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tiphys_api::{
    repository::Repository, rpc::repo_server::ManifestRequest, source::ApplicationSource,
};
use tiphys_listen::{Connections, Limits};
use tiphys_repo::{PluginSettings, RepoOptions, RepoServer, RepoServerOptions, Repos};
use tiphys_repo_server::{Server, ServerOptions, Shared, StreamLimits, TrustPaths};
use tiphys_rpc::Tls;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// A server that ends with this value.
pub struct World {
    pub dir: TempDir,
    pub port: u16,
    stop: CancellationToken,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The options of a server whose files are in a folder.
pub fn options(dir: &Path) -> ServerOptions {
    ServerOptions {
        max_message: 8 << 20,
        trust: TrustPaths {
            known_hosts: dir.join("ssh_known_hosts"),
            certificates: dir.join("tls"),
            keys: dir.join("keys"),
        },
        version: "v1.2.3".to_owned(),
        streamed: StreamLimits {
            archive: 1 << 20,
            bytes: 4 << 20,
        },
        hidden_folders: false,
    }
}

impl World {
    pub async fn plain() -> Self {
        Self::with(Tls::Off).await
    }

    pub async fn with(tls: Tls) -> Self {
        Self::serving(tls, Server::new).await
    }

    /// A commit server.
    pub async fn of_commits() -> Self {
        Self::serving(Tls::Off, Server::of_commits).await
    }

    /// One of several that share what they render.
    pub async fn sharing(shared: Shared) -> Self {
        let server = |repos, options| Server::new(repos, options).sharing(shared);
        Self::serving(Tls::Off, server).await
    }

    async fn serving(tls: Tls, server: impl FnOnce(Repos, ServerOptions) -> Server) -> Self {
        let dir = TempDir::new().expect("a folder");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let options = RepoOptions {
            plugins: PluginSettings {
                dir: Some(dir.path().join("sockets")),
                ask_pass: dir.path().join("ask-pass.sock"),
                ..PluginSettings::default()
            },
            ..RepoOptions::default()
        };
        let repos = Repos::with_options(dir.path().join("cache"), options);
        let server = Arc::new(server(repos, self::options(dir.path())));
        let stop = CancellationToken::new();
        let connections = Connections::new(Limits {
            body: Duration::from_secs(3),
            ..Limits::default()
        });
        let serving = server.serve(listener, tls, connections, stop.clone());
        tokio::spawn(async move { serving.await.expect("usable certificates") });
        Self { dir, port, stop }
    }

    pub fn client(&self) -> RepoServer {
        RepoServer::new(self.client_options()).expect("an address")
    }

    pub fn client_options(&self) -> RepoServerOptions {
        RepoServerOptions {
            address: format!("localhost:{}", self.port),
            timeout: Duration::from_secs(60),
            plaintext: true,
            trusted: Vec::new(),
            identity: None,
        }
    }

    /// A repository with one commit; its path and the commit.
    pub fn repository(&self, name: &str, files: &[(&str, &str)]) -> (PathBuf, String) {
        let path = self.dir.path().join(name);
        let sha = Repos::init_example(&path, files.iter().copied()).expect("it is made");
        (path, sha)
    }

    /// The response of a method, or its status and message.
    pub async fn ask<Q: Message, R: Message + Default>(
        &self,
        method: &str,
        query: &Q,
    ) -> Result<R, (String, String)> {
        let method = format!("repository.RepoServerService/{method}");
        let found = self.raw(&method, &query.encode_to_vec()).await;
        if found.status == "0" {
            Ok(R::decode(found.body.as_slice()).expect("a message"))
        } else {
            Err((found.status, found.message))
        }
    }

    /// The response of a method that takes several messages. `ends`: nothing follows them.
    pub async fn stream<Q: Message, R: Message + Default>(
        &self,
        method: &str,
        messages: &[Q],
        ends: bool,
    ) -> Result<R, (String, String)> {
        let method = format!("repository.RepoServerService/{method}");
        let messages: Vec<Vec<u8>> = messages.iter().map(Message::encode_to_vec).collect();
        let found = self.send(&method, &messages, ends).await;
        if found.status == "0" {
            Ok(R::decode(found.body.as_slice()).expect("a message"))
        } else {
            Err((found.status, found.message))
        }
    }

    /// The response to encoded bytes: status code, message, and the body without its frame.
    pub async fn raw(&self, method: &str, message: &[u8]) -> Raw {
        self.send(method, &[message.to_vec()], true).await
    }

    async fn send(&self, method: &str, messages: &[Vec<u8>], ends: bool) -> Raw {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await;
        let io = TokioIo::new(stream.expect("it listens"));
        let (mut send, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
                .await
                .expect("HTTP/2");
        tokio::spawn(connection);
        let framed = messages.iter().map(|message| {
            let mut framed = vec![0];
            let size = u32::try_from(message.len()).expect("small");
            framed.extend(size.to_be_bytes());
            framed.extend(message);
            Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from(framed)))
        });
        let framed: Vec<_> = framed.collect();
        let frames = futures::stream::iter(framed);
        let body = if ends {
            StreamBody::new(frames.boxed())
        } else {
            StreamBody::new(frames.chain(futures::stream::pending()).boxed())
        };
        let request = hyper::Request::post(format!("http://localhost/{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(body)
            .expect("a request");
        let response = send.send_request(request).await.expect("a response");
        let (head, body) = response.into_parts();
        let collected = body.collect().await.expect("a body");
        let trailers = collected.trailers().cloned().unwrap_or_default();
        let text = |name: &str| {
            let value = trailers.get(name).or_else(|| head.headers.get(name));
            value.map_or_else(String::new, |v| v.to_str().expect("text").to_owned())
        };
        Raw {
            status: text("grpc-status"),
            message: plain(&text("grpc-message")),
            body: collected.to_bytes().get(5..).unwrap_or_default().to_vec(),
        }
    }
}

/// A response as it is on the wire.
#[derive(Debug)]
pub struct Raw {
    pub status: String,
    pub message: String,
    pub body: Vec<u8>,
}

/// What gRPC writes with `%`.
fn plain(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let digits = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = digits.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code.filter(|_| *first == b'%') {
            Some(code) => {
                out.push(code);
                rest = &after[2..];
            }
            None => out.push(*first),
        }
    }
    String::from_utf8(out).expect("text")
}

/// A repository without credentials.
pub fn repo(url: &str) -> Option<Repository> {
    Some(Repository {
        repo: url.to_owned(),
        ..Repository::default()
    })
}

/// The request of a controller for a folder of a repository.
pub fn request(repository: &Path, path: &str) -> ManifestRequest {
    let repo = Repository {
        repo: text(repository),
        ..Repository::default()
    };
    ManifestRequest {
        application_source: Some(ApplicationSource {
            repo_url: repo.repo.clone(),
            path: path.to_owned(),
            ..ApplicationSource::default()
        }),
        repo: Some(repo),
        revision: "main".to_owned(),
        app_name: "web".to_owned(),
        app_label_key: "app.kubernetes.io/instance".to_owned(),
        tracking_method: "annotation".to_owned(),
        namespace: "prod".to_owned(),
        project_name: "default".to_owned(),
        project_source_repos: vec!["*".to_owned()],
        kube_version: "v1.33.0".to_owned(),
        ..ManifestRequest::default()
    }
}

pub fn text(path: &Path) -> String {
    path.to_str().expect("a plain path").to_owned()
}

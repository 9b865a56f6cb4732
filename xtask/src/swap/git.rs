//! A repository over HTTP, as a Git host serves it: `git http-backend` behind one route. Main type:
//! [`GitHost`].

use anyhow::{Context, ensure};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use std::{path::PathBuf, process::Stdio, sync::Arc};
use tiphys_testkit::Repo;
use tokio::{io::AsyncWriteExt, net::TcpListener, process::Command, runtime::Runtime};

/// Serves a [`Repo`] until it is dropped.
pub struct GitHost {
    pub url: String,
    pub repo: Repo,
    _runtime: Runtime,
}

impl GitHost {
    /// # Errors
    /// If no port is free.
    pub fn start(repo: Repo) -> anyhow::Result<Self> {
        let runtime = Runtime::new()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let bare = repo.bare();
        let name = bare.file_name().context("a bare repository has a name")?;
        let url = format!("http://{}/{}", listener.local_addr()?, name.display());
        let root = Arc::new(bare.parent().context("it lies in a folder")?.to_owned());
        let app = Router::new().fallback(answer).with_state(root);
        runtime.spawn(async move { axum::serve(listener, app).await });
        Ok(Self {
            url,
            repo,
            _runtime: runtime,
        })
    }
}

async fn answer(
    State(root): State<Arc<PathBuf>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match backend(&root, &method, &uri, &headers, &body).await {
        Ok(response) => response,
        Err(e) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{e:#}")).into_response(),
    }
}

/// One call of the program, by the rules of CGI.
async fn backend(
    root: &PathBuf,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: &[u8],
) -> anyhow::Result<Response> {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", uri.path())
        .env("QUERY_STRING", uri.query().unwrap_or_default())
        .env("REQUEST_METHOD", method.as_str())
        .env("CONTENT_TYPE", text("content-type").unwrap_or_default())
        .env(
            "HTTP_CONTENT_ENCODING",
            text("content-encoding").unwrap_or_default(),
        )
        .env("GIT_PROTOCOL", text("git-protocol").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut input = child.stdin.take().context("it has an input")?;
    input.write_all(body).await?;
    drop(input);
    let output = child.wait_with_output().await?;
    ensure!(
        output.status.success(),
        "git http-backend: {}",
        output.status
    );
    let end = output.stdout.windows(4).position(|w| w == b"\r\n\r\n");
    let (head, rest) = output
        .stdout
        .split_at(end.context("an answer has a header")? + 4);
    let (mut status, mut kind) = (StatusCode::OK, String::new());
    for line in std::str::from_utf8(head)?.lines() {
        match line.split_once(": ") {
            Some(("Status", code)) => status = code.get(..3).unwrap_or(code).parse()?,
            Some(("Content-Type", value)) => value.clone_into(&mut kind),
            _ => {}
        }
    }
    Ok((status, [(header::CONTENT_TYPE, kind)], rest.to_vec()).into_response())
}

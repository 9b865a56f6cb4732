//! Serves generated repositories on loopback. Main type: [`Server`].

use super::charts::Charts;
use anyhow::Context as _;
use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// An index with what identifies it.
struct Index {
    text: Bytes,
    etag: String,
}

struct Served {
    index: Index,
    changed: Index,
    archives: HashMap<String, Bytes>,
    is_changed: AtomicBool,
}

/// A server that ends when this is dropped.
pub struct Server {
    address: SocketAddr,
    served: Arc<HashMap<String, Served>>,
    // Dropping it stops its tasks.
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    /// Each repository is at `/NAME`.
    ///
    /// # Errors
    /// There is no port.
    pub fn start(repositories: Vec<(&str, Charts)>) -> anyhow::Result<Self> {
        let served = repositories
            .into_iter()
            .map(|(name, charts)| (name.to_owned(), served(charts)));
        let served: Arc<HashMap<String, Served>> = Arc::new(served.collect());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let routes = Router::new()
            .route("/{repository}/index.yaml", get(index))
            .route("/{repository}/{chart}/{version}", get(archive))
            .with_state(Arc::clone(&served));
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Ok(Self {
            address,
            served,
            _runtime: runtime,
        })
    }

    pub fn url(&self, repository: &str) -> String {
        format!("http://{}/{repository}", self.address)
    }

    /// From now on a repository has one version more, or has it no more.
    ///
    /// # Errors
    /// There is no such repository.
    pub fn change(&self, repository: &str, is_changed: bool) -> anyhow::Result<()> {
        let served = self.served.get(repository).context("no such repository")?;
        served.is_changed.store(is_changed, Ordering::Relaxed);
        Ok(())
    }
}

fn served(charts: Charts) -> Served {
    let index = |text: String| Index {
        etag: format!("\"{:x}\"", Sha256::digest(&text)),
        text: text.into(),
    };
    let archives = charts.archives.into_iter();
    Served {
        index: index(charts.index),
        changed: index(charts.changed),
        archives: archives.map(|(path, bytes)| (path, bytes.into())).collect(),
        is_changed: AtomicBool::new(false),
    }
}

type All = State<Arc<HashMap<String, Served>>>;

async fn index(State(all): All, Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(served) = all.get(&name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let index = match served.is_changed.load(Ordering::Relaxed) {
        true => &served.changed,
        false => &served.index,
    };
    let known = headers.get(header::IF_NONE_MATCH);
    if known.is_some_and(|known| known.as_bytes() == index.etag.as_bytes()) {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    ([(header::ETAG, index.etag.clone())], index.text.clone()).into_response()
}

async fn archive(
    State(all): All,
    Path((name, chart, version)): Path<(String, String, String)>,
) -> Response {
    let served = all.get(&name);
    match served.and_then(|served| served.archives.get(&format!("{chart}/{version}"))) {
        Some(archive) => archive.clone().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

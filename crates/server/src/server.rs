//! The server put together: [`Deps`] in, [`Server`] out. Owns the background task that follows the Applications.

use crate::{
    Assets, Table, Tls,
    auth::{Auth, Limits},
    index::Index,
    ports::{Live, Sources, Store},
    services::repository::Connections,
    settings::SettingsCache,
    transport,
    webhook::Webhooks,
};
use std::sync::Arc;
use tiphys_api::Application;
use tiphys_cluster::AppKey;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What `argocd version` shows of the server.
#[derive(Clone, Debug, Default)]
pub struct VersionInfo {
    pub version: String,
    pub build_date: String,
    pub git_commit: String,
    pub platform: String,
    pub kubectl_version: String,
}

/// How to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespace of the control plane and of its Applications.
    pub namespace: String,
    /// A path prefix that a proxy keeps, such as `/argo-cd`; empty for none.
    pub root_path: String,
    pub limits: Limits,
    /// How long a refresh may take.
    pub refresh_timeout: std::time::Duration,
    /// Whether the session cookie is only for HTTPS.
    pub secure_cookie: bool,
    pub version: VersionInfo,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: "argocd".into(),
            root_path: String::new(),
            limits: Limits::default(),
            refresh_timeout: std::time::Duration::from_secs(60),
            secure_cookie: false,
            version: VersionInfo::default(),
        }
    }
}

/// What a server needs.
pub struct Deps {
    pub store: Arc<dyn Store>,
    pub live: Arc<dyn Live>,
    pub sources: Arc<dyn Sources>,
    pub assets: Assets,
    pub options: Options,
}

/// What handlers share.
pub struct State {
    pub store: Arc<dyn Store>,
    pub live: Arc<dyn Live>,
    pub sources: Arc<dyn Sources>,
    pub settings: Arc<SettingsCache>,
    pub auth: Auth,
    pub index: Index,
    pub(crate) connections: Connections,
    pub options: Options,
    pub table: Table,
    pub assets: Assets,
    pub(crate) webhooks: Webhooks,
}

impl State {
    /// The namespace asked for, or ours.
    pub(crate) fn namespace_or_ours<'a>(&'a self, namespace: &'a str) -> &'a str {
        if namespace.is_empty() { &self.options.namespace } else { namespace }
    }

    /// How an Application marks its objects: `<namespace>_<name>` outside our namespace.
    pub(crate) fn instance(&self, app: &Application) -> String {
        AppKey::new(self.namespace_or_ours(&app.metadata.namespace), &app.metadata.name).instance(&self.options.namespace)
    }
}

/// The API process.
#[derive(Clone)]
pub struct Server(Arc<State>);

impl Server {
    pub fn new(deps: Deps) -> Self {
        let settings = Arc::new(SettingsCache::new(deps.store.clone()));
        Self(Arc::new(State {
            auth: Auth::new(settings.clone(), deps.options.limits),
            store: deps.store,
            live: deps.live,
            sources: deps.sources,
            settings,
            index: Index::default(),
            connections: Connections::default(),
            options: deps.options,
            table: Table::new(),
            assets: deps.assets,
            webhooks: Webhooks::default(),
        }))
    }

    /// Serves until the token is cancelled, then lets open requests end.
    pub async fn serve(&self, listener: TcpListener, tls: Tls, shutdown: CancellationToken) -> std::io::Result<()> {
        let state = self.0.clone();
        let follow = tokio::spawn(async move { state.index.follow(state.store.as_ref()).await });
        let served = transport::listen::serve(self.0.clone(), listener, tls, shutdown).await;
        follow.abort();
        served
    }

    /// Returns once the Applications are known.
    pub async fn ready(&self) {
        self.0.index.ready().await;
    }
}

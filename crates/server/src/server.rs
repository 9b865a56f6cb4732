//! Assembles the server: [`Deps`] in, [`Server`] out. Owns the background tasks that follow the
//! Applications and the ends of sessions.

pub(crate) mod health;

use crate::{
    Assets,
    access::{Enforcer, Everybody, PolicyEnforcer, Reach},
    audit::{Audit, AuditError, RecordedSets, RecordedStore},
    metrics::ApiMetrics,
    options::Options,
    ports::{Catalog, Live, Sets, SharedSessions, Sources, Store},
    sessions::Auth,
    settings::SettingsCache,
    sso::Sso,
    state::{Connections, Probes, State, Webhooks},
    table::table,
    told::Told,
    webhook,
};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tiphys_rpc::{Role as _, Tls};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;

/// What the log calls the task that tells other servers of ended sessions.
const ENDS: &str = "the ends of sessions";
/// How long the last of them may take when the server ends.
const LAST_ENDS: Duration = Duration::from_secs(1);

/// The server's dependencies.
pub struct Deps {
    pub store: Arc<dyn Store>,
    pub live: Arc<dyn Live>,
    pub sources: Arc<dyn Sources>,
    pub sets: Arc<dyn Sets>,
    pub catalog: Arc<dyn Catalog>,
    /// Where ended sessions are shared with other servers, besides the record in the namespace.
    pub sessions: Option<Arc<dyn SharedSessions>>,
    pub assets: Assets,
    pub options: Options,
}

/// The API server.
#[derive(Clone)]
pub struct Server(Arc<State>);

impl Server {
    /// # Errors
    /// The audit log cannot be opened.
    pub fn new(deps: Deps) -> Result<Self, AuditError> {
        let enforcer: Arc<dyn Enforcer> = if deps.options.auth_disabled {
            Arc::new(Everybody)
        } else {
            Arc::new(PolicyEnforcer::new(deps.store.clone()))
        };
        Self::with_enforcer(deps, enforcer)
    }

    /// Creates a server that uses this enforcer for permissions.
    ///
    /// # Errors
    /// The audit log cannot be opened.
    pub fn with_enforcer(mut deps: Deps, enforcer: Arc<dyn Enforcer>) -> Result<Self, AuditError> {
        let (wanted, namespace) = (&deps.options.audit, &deps.options.namespace);
        let audit = Audit::open(wanted, deps.store.clone(), namespace)?;
        if audit.is_on() {
            deps.store = Arc::new(RecordedStore(deps.store));
            deps.sets = Arc::new(RecordedSets(deps.sets));
        }
        let settings = Arc::new(SettingsCache::new(deps.store.clone(), enforcer.clone()));
        let options = &deps.options;
        let assets = deps.assets.below(options.place_of_page());
        let sso = Arc::new(Sso::new(
            options.dex_server.clone(),
            options.dex_tls.clone(),
        ));
        Ok(Self(Arc::new(State {
            audit: Arc::new(audit),
            auth: Arc::new(Auth::new(
                settings.clone(),
                deps.store.clone(),
                deps.sessions,
                deps.options.limits,
                sso.clone(),
            )),
            sso,
            reach: Arc::new(Reach::new(
                deps.store,
                deps.live,
                deps.sources,
                deps.sets,
                deps.catalog,
                deps.options.namespace.clone(),
            )),
            enforcer,
            settings,
            account_changes: tokio::sync::Mutex::default(),
            connections: Connections::default(),
            probes: Probes::default(),
            connections_open: tiphys_listen::Connections::new(deps.options.connections),
            metrics: ApiMetrics::new(deps.options.time_calls),
            stop: OnceLock::new(),
            told: Told::default(),
            options: deps.options,
            table: table(),
            assets,
            webhooks: Webhooks::default(),
            swagger: OnceLock::new(),
        })))
    }

    /// Serves until the token is cancelled and the notice is over, then lets open requests finish:
    /// those that change something also when their clients are gone.
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: Tls,
        shutdown: CancellationToken,
    ) -> std::io::Result<()> {
        // It is served only once.
        let _ = self.0.stop.set(shutdown.clone());
        let state = self.0.clone();
        let follow = tokio::spawn(async move { state.reach.follow().await });
        let state = self.0.clone();
        let ends = tokio::spawn(async move { follow_ends(&state).await });
        let served = tiphys_rpc::serve(
            self.0.clone(),
            listener,
            tls,
            self.0.connections_open.clone(),
            shutdown,
        )
        .await;
        ends.abort();
        // Now no round of its own can begin any more.
        let _ = ends.await;
        if self.0.auth.has_ends() {
            let auth = self.0.auth.clone();
            let told = async move { auth.tell_ends().await };
            drop(self.0.audit.work.begun(ENDS, told));
        }
        let (finish, recording) = (self.0.options.finish, self.0.options.recording);
        self.0.audit.work.end(finish, recording).await;
        // Changes that were under way may have left some.
        if self.0.auth.has_ends() {
            let told = tokio::time::timeout(LAST_ENDS, self.0.auth.tell_ends()).await;
            if told.is_err() {
                tracing::warn!("The server ends before the end of some sessions was recorded");
            }
        }
        follow.abort();
        served
    }

    /// Answers an event of a Git host for ApplicationSets alone, where their controller has a port
    /// of its own. The server need not serve.
    pub async fn webhook_of_sets<B>(&self, request: http::Request<B>) -> http::Response<Body>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let request = request.map(Body::new);
        webhook::handle(self.0.clone(), request, webhook::Scope::Sets).await
    }

    /// The open client connections.
    pub fn connections(&self) -> tiphys_listen::Connections {
        self.0.connections_open.clone()
    }

    /// The metrics in Prometheus text format.
    pub fn metrics(&self) -> String {
        let mut text = self.0.metrics.text(self.0.connections_open.open());
        text.push_str(&format!(
            "# HELP tiphys_audit_failures_total Records of the audit log that could not be written.\n\
             # TYPE tiphys_audit_failures_total counter\ntiphys_audit_failures_total {}\n",
            self.0.audit.failures()
        ));
        text
    }

    /// What `/healthz` says, for other ports.
    ///
    /// # Errors
    /// The text of the refusal, if clients should not be sent here; with `is_full`, also if what
    /// the server reads cannot be read.
    pub async fn health(&self, is_full: bool) -> Result<(), String> {
        self.0.health(is_full).await.map_err(|why| why.text())
    }

    /// Returns once the Applications have been listed.
    pub async fn ready(&self) {
        self.0.reach.ready().await;
    }
}

/// Tells other servers of the sessions that end. Never returns.
async fn follow_ends(state: &State) {
    loop {
        state.auth.until_ends().await;
        let auth = state.auth.clone();
        let told = async move { auth.tell_ends().await };
        state.audit.work.unstopped(ENDS, told).await;
    }
}

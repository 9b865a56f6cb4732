//! Assembles the server: [`Deps`] in, [`Server`] out. Owns the background tasks that follow the
//! Applications and the ends of sessions.

pub(crate) mod health;

use crate::{
    Assets,
    access::{Access, Enforcer, Everybody, Guard, PolicyEnforcer, Reach},
    audit::{Audit, AuditError, AuditOptions, RecordedSets, RecordedStore},
    auth::{Caller, Limits},
    metrics::ApiMetrics,
    pages::swagger::Swagger,
    ports::{Catalog, Live, Sets, SharedSessions, Sources, Store},
    services::{cluster::Probes, repository::Connections},
    sessions::Auth,
    settings::SettingsCache,
    sso::{DexTls, Sso},
    table::table,
    told::Told,
    webhook::{self, Webhooks},
};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tiphys_api::Application;
use tiphys_cluster::AppKey;
use tiphys_rpc::{Network, Role as _, Table, Tls};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;

/// What the log calls the task that tells other servers of ended sessions.
const ENDS: &str = "the ends of sessions";
/// How long the last of them may take when the server ends.
const LAST_ENDS: Duration = Duration::from_secs(1);

/// The server's part of the output of `argocd version`.
#[derive(Clone, Debug, Default)]
pub struct VersionInfo {
    pub version: String,
    pub build_date: String,
    pub git_commit: String,
    pub platform: String,
    pub kubectl_version: String,
}

/// The server's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespace of the control plane and of its Applications.
    pub namespace: String,
    /// A path prefix that a proxy keeps, such as `/argo-cd`; empty for none.
    pub root_path: String,
    /// One that a proxy cuts off: only the page must know it. A root path counts instead.
    pub base_href: String,
    pub limits: Limits,
    /// Timeout for a refresh.
    pub refresh_timeout: Duration,
    /// Whether the session cookie is restricted to HTTPS.
    pub secure_cookie: bool,
    pub version: VersionInfo,
    /// Limits for connections: how many, and how long a client may keep an idle one open.
    pub connections: tiphys_listen::Limits,
    /// Proxies whose X-Forwarded-For header is trusted.
    pub trusted_proxies: Vec<Network>,
    /// The address of the Dex server, for installations that sign in through it.
    pub dex_server: String,
    /// How its certificate is checked.
    pub dex_tls: DexTls,
    /// Whether Applications with a hydrator are hydrated.
    pub hydrator_enabled: bool,
    /// Whether answers are compressed for clients that accept it.
    pub gzip: bool,
    /// Whether a sync may replace objects.
    pub replace_allowed: bool,
    /// Whether nobody has to log in, and everybody may do everything.
    pub auth_disabled: bool,
    /// The only token that is accepted, where nobody has to log in: for a server of one process.
    pub only_with: Option<String>,
    /// Whether requests below `/extensions` are passed on to the services of argocd-cm.
    pub proxy_extensions: bool,
    /// Whether the API is described at `/swagger.json` and `/swagger-ui`.
    pub swagger: bool,
    /// Content types of requests that change something; none: any will do, which lets forms of
    /// other sites use a browser's session.
    pub content_types: Vec<String>,
    /// `X-Frame-Options` and `Content-Security-Policy` of answers; empty for none.
    pub frame_options: String,
    pub content_security_policy: String,
    /// Where it is recorded who changed what, and who was refused.
    pub audit: AuditOptions,
    /// Whether each call is logged when it ends.
    pub log_calls: bool,
    /// Whether the metrics say how long calls take.
    pub time_calls: bool,
    /// How long connections are still accepted when the server ends, while /healthz says that it
    /// does.
    pub notice: Duration,
    /// How long changes that are under way when the server ends may take then. Less than
    /// Kubernetes gives a process that ends.
    pub finish: Duration,
    /// How long the records of those that are cut off then may take.
    pub recording: Duration,
}

impl Options {
    /// Where browsers find the page.
    fn place_of_page(&self) -> &str {
        match self.root_path.trim_matches('/') {
            "" => &self.base_href,
            _ => &self.root_path,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: "argocd".into(),
            root_path: String::new(),
            base_href: String::new(),
            limits: Limits::default(),
            refresh_timeout: Duration::from_secs(60),
            secure_cookie: false,
            version: VersionInfo::default(),
            connections: tiphys_listen::Limits::default(),
            trusted_proxies: Vec::new(),
            dex_server: "http://argocd-dex-server:5556".into(),
            dex_tls: DexTls::default(),
            hydrator_enabled: false,
            gzip: true,
            replace_allowed: true,
            auth_disabled: false,
            only_with: None,
            proxy_extensions: false,
            swagger: true,
            content_types: vec!["application/json".into()],
            frame_options: tiphys_rpc::FRAME_OPTIONS.into(),
            content_security_policy: tiphys_rpc::CONTENT_SECURITY_POLICY.into(),
            audit: AuditOptions::default(),
            log_calls: false,
            time_calls: false,
            notice: Duration::ZERO,
            finish: Duration::from_secs(5),
            recording: Duration::from_secs(2),
        }
    }
}

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

/// The state shared by handlers.
pub struct State {
    /// Everything that requires a permission.
    pub reach: Reach,
    pub enforcer: Arc<dyn Enforcer>,
    pub settings: Arc<SettingsCache>,
    pub auth: Arc<Auth>,
    pub(crate) sso: Arc<Sso>,
    /// Held while the record of an account is read and written.
    pub(crate) account_changes: tokio::sync::Mutex<()>,
    pub(crate) connections: Connections,
    pub(crate) probes: Probes,
    pub options: Options,
    pub(crate) table: Table<Self>,
    pub assets: Assets,
    pub(crate) webhooks: Webhooks,
    connections_open: tiphys_listen::Connections,
    pub(crate) metrics: ApiMetrics,
    /// Cancelled when the server ends; not there before it serves.
    pub(crate) stop: OnceLock<CancellationToken>,
    pub(crate) told: Told,
    pub(crate) audit: Arc<Audit>,
    pub(crate) swagger: OnceLock<Swagger>,
}

impl State {
    /// The guard that checks permissions for the caller of a row.
    pub(crate) fn guard(&self, caller: Caller, access: Access) -> Guard {
        let namespace = self.options.namespace.as_str().into();
        Guard::new(caller, access, self.enforcer.clone(), namespace)
    }

    /// The requested namespace, or the control plane's.
    pub(crate) fn namespace_or_ours<'a>(&'a self, namespace: &'a str) -> &'a str {
        if namespace.is_empty() {
            &self.options.namespace
        } else {
            namespace
        }
    }

    /// The instance name in the tracking mark of the Application's objects: `<namespace>_<name>`
    /// outside the control plane's namespace.
    pub(crate) fn instance(&self, app: &Application) -> String {
        AppKey::new(
            self.namespace_or_ours(&app.metadata.namespace),
            &app.metadata.name,
        )
        .instance(&self.options.namespace)
    }
}

impl State {
    /// Tells other servers of the sessions that end. Never returns.
    async fn follow_ends(&self) {
        loop {
            self.auth.until_ends().await;
            let auth = self.auth.clone();
            let told = async move { auth.tell_ends().await };
            self.audit.work.unstopped(ENDS, told).await;
        }
    }
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
            reach: Reach::new(
                deps.store,
                deps.live,
                deps.sources,
                deps.sets,
                deps.catalog,
                deps.options.namespace.clone(),
            ),
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
        let ends = tokio::spawn(async move { state.follow_ends().await });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_where_browsers_see_it() {
        for (root_path, base_href, place) in [
            ("", "", ""),
            ("", "/argo/", "/argo/"),
            ("/", "/argo", "/argo"),
            ("/kept", "/argo", "/kept"),
        ] {
            let options = Options {
                root_path: root_path.to_owned(),
                base_href: base_href.to_owned(),
                ..Options::default()
            };
            assert_eq!(options.place_of_page(), place);
        }
    }
}

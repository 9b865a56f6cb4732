//! A Kubernetes-compatible API server as a library: objects in memory or in a folder, served to
//! kubectl and client libraries.
//!
//! Main type: [`EmbeddedKube`]. There are no containers: [`sim`] simulates the controllers and
//! kubelets. It knows nothing of Argo CD.

mod admission;
pub mod auth;
mod base;
pub mod catalog;
mod convert;
mod defaults;
mod edge;
mod error;
mod http;
mod lifecycle;
mod outbound;
mod quiet;
mod rbac;
mod reader;
pub mod registry;
mod route;
mod serve;
pub mod sim;
pub mod status;
pub mod store;
mod strategy;
mod tls;
mod validation;
mod warnings;

pub use edge::Limits;
pub use error::Error;
use registry::Registry;
use std::path::PathBuf;
use std::sync::Arc;
use store::disk::Disk;
use store::{Memory, Store};
pub use strategy::try_schema;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Where objects are stored.
#[derive(Clone, Debug)]
pub enum Data {
    /// In memory only: lost when the process ends.
    Memory,
    /// In a folder, which is created if it is missing. An acknowledged write survives a crash.
    Dir(PathBuf),
}

/// The options of a server. The default is in memory, with a simulated cluster, in real time.
pub struct Options {
    pub data: Data,
    pub sim: sim::SimOptions,
    /// The bearer token of [`EmbeddedKube::serve`]; if not given, one is generated (and kept in the
    /// folder).
    pub admin_token: Option<String>,
    /// Additional users of [`EmbeddedKube::serve`], by token. Roles define their permissions.
    pub users: Vec<auth::TokenUser>,
    /// The request limits of [`EmbeddedKube::serve`].
    pub limits: Limits,
    /// False starts only an API server, like a real one without a controller manager: there is no
    /// garbage collection, and nothing becomes ready.
    pub controllers: bool,
    /// The time that objects and the simulated cluster see.
    pub clock: Arc<dyn sim::Clock>,
}

impl Default for Options {
    fn default() -> Self {
        let clock = Arc::new(sim::SystemClock);
        Self {
            data: Data::Memory,
            sim: sim::SimOptions::default(),
            admin_token: None,
            users: Vec::new(),
            limits: Limits::default(),
            controllers: true,
            clock,
        }
    }
}

/// A running API server with its simulated cluster.
pub struct EmbeddedKube {
    registry: Registry,
    router: axum::Router,
    auth: Arc<auth::Auth>,
    limits: Limits,
    identity: tls::Identity,
    acceptor: TlsAcceptor,
    /// The garbage collector and the simulated cluster, if they run.
    controllers: Vec<quiet::Asker>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl EmbeddedKube {
    /// Opens the store and starts the controllers. Must be called inside a tokio runtime.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let folder = match &options.data {
            Data::Memory => None,
            Data::Dir(folder) => Some(folder.clone()),
        };
        let clock = options.clock.clone();
        let open = move || -> Result<_, Error> {
            let store: Arc<dyn Store> = match &folder {
                None => Arc::new(Memory),
                Some(folder) => Arc::new(Disk::open(folder)?),
            };
            let registry = Registry::open(store, Arc::new(move || clock.now()))?;
            Ok((
                registry,
                tls::Identity::load(
                    folder.map(|f| f.join("pki")).as_deref(),
                    options.admin_token,
                )?,
            ))
        };
        let (registry, identity) = tokio::task::spawn_blocking(open)
            .await
            .map_err(|e| Error::Identity(e.to_string()))??;
        let acceptor = TlsAcceptor::from(Arc::new(identity.server_config()?));
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let admin = auth::TokenUser {
            token: identity.token.clone(),
            info: auth::UserInfo::admin(),
        };
        let signer = auth::jwt::Signer::new(&identity.account_key_pem)
            .map_err(|e| Error::Identity(format!("the key of service accounts: {e}")))?;
        let auth = Arc::new(auth::Auth::new(
            registry.clone(),
            signer,
            options.users.into_iter().chain([admin]),
        ));
        let changes = registry.subscribe();
        if !options.controllers {
            registry.leave_alone();
        }
        lifecycle::make_system_namespaces(&registry)?;
        auth::make_defaults(&registry)?;
        registry.durable(registry.revision()).await?;
        let mut controllers = Vec::new();
        if options.controllers {
            tasks.spawn(auth::run(
                auth.clone(),
                identity.ca_pem.clone(),
                registry.subscribe(),
                stop.clone(),
            ));
            let ((collector, first), (cluster, second)) = (quiet::channel(), quiet::channel());
            controllers.extend([collector, cluster]);
            tasks.spawn(lifecycle::run(
                registry.clone(),
                changes,
                first,
                stop.clone(),
            ));
            let sim = sim::SimOptions {
                ca_certificate: identity.ca_pem.clone(),
                ..options.sim
            };
            tasks.spawn(sim::run(
                sim::RegistryStore::new(registry.clone()),
                sim,
                options.clock,
                second,
                stop.clone(),
            ));
        }
        if !options.controllers {
            // The API server itself deletes the objects of deleted definitions.
            let changes = registry.subscribe();
            tasks.spawn(lifecycle::run_definitions(
                registry.clone(),
                changes,
                stop.clone(),
            ));
        }
        let router = http::router(registry.clone(), auth.clone(), Arc::new(sim::log));
        Ok(Self {
            registry,
            router,
            auth,
            limits: options.limits,
            identity,
            acceptor,
            controllers,
            stop,
            tasks,
        })
    }

    /// The API as an in-process service with full access.
    pub fn router(&self) -> axum::Router {
        self.router.clone()
    }

    /// The API as it is served to clients: with tokens, impersonation, and role-based
    /// authorization.
    pub fn client_router(&self) -> axum::Router {
        edge::guarded(self.router(), self.auth.clone(), self.limits)
    }

    /// The objects, for tests and in-process tools.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Waits until the controllers have no work left at the current time, and returns when they
    /// will have some if nothing is written.
    pub async fn settle(&self) -> Option<jiff::Timestamp> {
        loop {
            let before = self.registry.revision();
            let mut next = None;
            for controller in &self.controllers {
                next = [next, controller.ask().await].into_iter().flatten().min();
            }
            // A write by one controller may affect another that was asked before.
            if self.registry.revision() == before {
                return next;
            }
        }
    }

    /// Serves TLS on a socket, to users with a token and the permissions of their roles, until
    /// [`EmbeddedKube::shutdown`].
    pub fn serve(&self, listener: TcpListener) -> JoinHandle<()> {
        self.tasks.spawn(serve::serve(
            listener,
            self.acceptor.clone(),
            self.client_router(),
            self.limits.connections,
            self.stop.clone(),
        ))
    }

    /// A kubeconfig for the administrator; `address` is host and port of the socket.
    pub fn kubeconfig(&self, address: impl std::fmt::Display) -> String {
        self.identity.kubeconfig(&address.to_string())
    }

    /// Ends the connections and the controllers, and makes sure that everything is on disk.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        if let Err(status) = self.registry.durable(self.registry.revision()).await {
            tracing::error!(%status, "the last writes may be lost");
        }
        self.registry.close().await;
    }
}

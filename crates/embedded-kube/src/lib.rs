//! A Kubernetes-compatible API server as a library: objects in memory or in a folder, served to kubectl and client libraries.
//!
//! Main type: [`EmbeddedKube`]. There are no containers: [`sim`] plays the controllers and kubelets. It knows nothing of Argo CD.

pub mod catalog;
mod gotypes;
mod http;
mod lifecycle;
pub mod registry;
mod serve;
pub mod sim;
pub mod status;
pub mod store;
mod strategy;
mod tls;

use registry::Registry;
use std::path::PathBuf;
use std::sync::Arc;
use store::disk::Disk;
use store::{Memory, Store, StoreError};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Where objects are kept.
#[derive(Clone, Debug)]
pub enum Data {
    /// Nowhere: gone when the process ends.
    Memory,
    /// In a folder, which is made when it is missing. An acknowledged write survives a crash.
    Dir(PathBuf),
}

/// How to start.
pub struct Options {
    pub data: Data,
    pub sim: sim::SimOptions,
    /// The bearer token of [`EmbeddedKube::serve`]; one is made (and kept in the folder) when it is not given.
    pub admin_token: Option<String>,
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot prepare the server's identity: {0}")]
    Identity(String),
    #[error("cannot prepare the cluster: {0}")]
    Bootstrap(#[from] status::Status),
}

/// A running API server with its simulated cluster.
pub struct EmbeddedKube {
    registry: Registry,
    router: axum::Router,
    identity: tls::Identity,
    acceptor: TlsAcceptor,
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
        let open = move || -> Result<_, Error> {
            let store: Arc<dyn Store> = match &folder {
                None => Arc::new(Memory),
                Some(folder) => Arc::new(Disk::open(folder)?),
            };
            let registry = Registry::open(store, Arc::new(jiff::Timestamp::now))?;
            Ok((registry, tls::Identity::load(folder.map(|f| f.join("pki")).as_deref(), options.admin_token)?))
        };
        let (registry, identity) = tokio::task::spawn_blocking(open).await.map_err(|e| Error::Identity(e.to_string()))??;
        let acceptor = TlsAcceptor::from(Arc::new(identity.server_config()?));
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let changes = registry.subscribe();
        lifecycle::make_system_namespaces(&registry)?;
        registry.durable(registry.revision()).await?;
        tasks.spawn(lifecycle::run(registry.clone(), changes, stop.clone()));
        let sim = sim::SimOptions { ca_certificate: identity.ca_pem.clone(), ..options.sim };
        let store = sim::RegistryStore::new(registry.clone());
        tasks.spawn(sim::run(store, sim, Arc::new(sim::SystemClock), stop.clone()));
        let router = http::router(registry.clone(), Arc::new(logs));
        Ok(Self { registry, router, identity, acceptor, stop, tasks })
    }

    /// The API as a service for the same process: whoever holds it may do everything.
    pub fn router(&self) -> axum::Router {
        self.router.clone()
    }

    /// The objects, for tests and in-process tools.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Serves TLS with the bearer token on a socket, until [`EmbeddedKube::shutdown`].
    pub fn serve(&self, listener: TcpListener) -> JoinHandle<()> {
        let token: Arc<str> = self.identity.token.as_str().into();
        self.tasks.spawn(serve::serve(listener, self.acceptor.clone(), self.router(), token, self.stop.clone()))
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

fn logs(pod: &tiphys_apimachinery::Object, container: &str) -> Result<String, String> {
    if container.is_empty() {
        return Ok(sim::logs(pod));
    }
    sim::container_logs(pod, container).ok_or_else(|| format!("container {container} is not valid for pod {}", pod.name()))
}

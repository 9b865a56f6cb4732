//! Notifications: evaluates the triggers of every Application when something changes, and delivers
//! what is due.
//!
//! Main function: [`run`]. It is level-triggered: what was sent is in an annotation of the
//! Application ([`tiphys_notify::Ledger`]), which is written after each delivery, and only after it
//! has succeeded. What to send is decided by `tiphys_notify`; here are the watches and the network.

mod controller;
mod feeds;
mod lookup;
mod mail;
mod metrics;
mod nats;
mod reconcile;
mod settings;
mod transport;

pub use metrics::NotificationMetrics;
pub use transport::{Link, LinkError};

use crate::runtime::{self, Clock, Queue, Seats};
use controller::Controller;
use std::sync::{Arc, Mutex};
use tiphys_apimachinery::Object;
use tiphys_cluster::{
    leases::Leases,
    records::{Records, Store},
};
use tiphys_sources::Sources;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The usual ConfigMap and Secret with the configuration.
pub const CONFIG_MAP: &str = "argocd-notifications-cm";
pub const SECRET: &str = "argocd-notifications-secret";

/// The controller's dependencies.
pub struct Dependencies {
    pub records: Records,
    /// For the functions of `repo`.
    pub sources: Sources,
    /// The one lease that permits to send; `None`: there is no other replica.
    pub lease: Option<Arc<Leases>>,
    /// The names of the ConfigMap and the Secret.
    pub config_map: String,
    pub secret: String,
    /// The same of the other namespaces, where they may configure notifications of their own.
    pub self_service: Option<SelfService>,
    /// Concurrent evaluations.
    pub workers: usize,
    /// Sends requests and mails.
    pub link: Link,
    pub metrics: NotificationMetrics,
    pub clock: Clock,
}

/// The ConfigMaps and Secrets with the configurations of namespaces. An Application is evaluated by
/// that of its own namespace too.
#[derive(Clone)]
pub struct SelfService {
    pub config_maps: Store<Object>,
    pub secrets: Store<Object>,
}

impl SelfService {
    /// Starts watching. Must be called inside a tokio runtime, when the records are ready.
    pub fn start(records: &Records, config_map: &str, secret: &str) -> Self {
        let (config_maps, secrets) = records.named_in_namespaces(config_map, secret);
        Self {
            config_maps,
            secrets,
        }
    }
}

/// Runs until cancelled; running evaluations are finished first.
pub async fn run(dependencies: Dependencies, shutdown: CancellationToken) {
    let workers = dependencies.workers.max(1);
    let controller = Arc::new(Controller {
        dependencies,
        shutdown: shutdown.clone(),
        configs: Mutex::default(),
        threads: Mutex::default(),
        memos: Mutex::default(),
        queue: Queue::default(),
    });
    controller.read_settings();
    let mut tasks = JoinSet::new();
    let (feeds, stop) = (controller.clone(), shutdown.clone());
    tasks.spawn(async move {
        tokio::select! { () = stop.cancelled() => {}, () = feeds.follow() => {} }
    });
    let time = controller.clone();
    tasks.spawn(async move { time.queue.keep_time().await });
    tasks.spawn(runtime::work(
        controller.clone(),
        |controller| &controller.queue,
        Seats::new(workers),
        async |controller: Arc<Controller>, key, _| controller.reconcile(&key).await,
    ));
    shutdown.cancelled().await;
    controller.queue.close();
    while tasks.join_next().await.is_some() {}
}

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
mod reconcile;
mod settings;
mod transport;

pub use transport::{Link, LinkError};

use crate::runtime::{self, Clock, Queue, Seats};
use controller::Controller;
use std::sync::{Arc, Mutex};
use tiphys_cluster::{leases::Leases, records::Records};
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
    /// Concurrent evaluations.
    pub workers: usize,
    /// Sends requests and mails.
    pub link: Link,
    pub clock: Clock,
}

/// Runs until cancelled; running evaluations are finished first.
pub async fn run(dependencies: Dependencies, shutdown: CancellationToken) {
    let workers = dependencies.workers.max(1);
    let controller = Arc::new(Controller {
        dependencies,
        config: Mutex::default(),
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

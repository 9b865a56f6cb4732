//! Simulates the controllers, the scheduler and the kubelets of a cluster that has no containers.
//!
//! Main function: [`run`], one task for a whole cluster. Level-triggered: each reconciler is a pure
//! function from an object, its dependents and the time to a [`plan::Plan`]; [`engine::Engine`]
//! carries out plans and reconciles again when something changes. An idle cluster costs nothing.
//! Garbage collection and emptying namespaces are left to the API server. It knows no HTTP.

mod autoscaler;
mod cache;
pub mod clock;
mod cluster;
mod dispatch;
mod disruption;
pub mod engine;
mod events;
mod fields;
pub mod kind;
mod network;
mod node;
pub mod plan;
pub mod pod;
mod quota;
mod registry_store;
mod route;
mod storage;
pub mod store;
#[cfg(test)]
mod tests;
mod workload;

pub use clock::{Clock, SystemClock, VirtualClock};
pub use pod::{BEHAVIOUR, ENDED, Log, SAID, container, log};
pub use registry_store::RegistryStore;

use crate::quiet::Asked;
use std::{sync::Arc, time::Duration};
use store::{ChangeFeed, SimStore};
use tokio_util::sync::CancellationToken;

/// The settings of the simulated cluster.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// The time from a node's acceptance of a pod to its containers running.
    pub start_delay: Duration,
    /// How long a command without a `sleep` runs.
    pub finish_delay: Duration,
    /// How long a running container takes to stop. A real server container often takes seconds;
    /// this default is short for convenience.
    pub stop_delay: Duration,
    /// The delay until a load balancer or an ingress has an address.
    pub balancer_delay: Duration,
    /// The heartbeat interval of a node; zero means no heartbeat after the first. A kubelet renews
    /// its lease every 10 s, but here nothing checks it, and each write goes to the disk.
    pub heartbeat: Duration,
    /// The number of `events` objects that are kept; 0 writes none.
    pub events: usize,
    /// The PEM content of `kube-root-ca.crt` in each namespace.
    pub ca_certificate: String,
    /// Whether claims get volumes even if their storage class is not defined, as on a cluster that
    /// has every class.
    pub any_storage_class: bool,
    /// Commands that someone runs for real: a container with one of them, named by the last part of
    /// its path, ends when the annotation [`ENDED`] says so.
    pub programs: Vec<String>,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            start_delay: Duration::from_millis(300),
            finish_delay: Duration::from_millis(700),
            stop_delay: Duration::from_millis(300),
            balancer_delay: Duration::from_millis(500),
            heartbeat: Duration::from_secs(300),
            events: 2_000,
            ca_certificate: String::new(),
            any_storage_class: false,
            programs: Vec::new(),
        }
    }
}

/// How many objects are reconciled before other tasks get a turn.
const BATCH: usize = 64;

/// Runs the controllers until `stop` is cancelled or the store ends.
pub async fn run<S: SimStore>(
    store: S,
    options: SimOptions,
    clock: Arc<dyn Clock>,
    mut asked: Asked,
    stop: CancellationToken,
) {
    let mut engine = engine::Engine::new(store, options);
    engine.start(clock.now());
    loop {
        if stop.is_cancelled() {
            return;
        }
        if engine.step(clock.now(), BATCH) {
            tokio::task::yield_now().await;
            continue;
        }
        let wake = engine.next_wake();
        asked.answer(wake);
        let sleep = async {
            match wake {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep => {}
            () = asked.next() => {}
            change = engine.feed().next() => match change {
                Some(change) => engine.notice(change),
                None => return,
            },
        }
    }
}

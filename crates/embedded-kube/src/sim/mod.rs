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
pub use pod::{BEHAVIOUR, Log, container, log};
pub use registry_store::RegistryStore;

use crate::quiet::Asked;
use std::{sync::Arc, time::Duration};
use store::{ChangeFeed, SimStore};
use tokio_util::sync::CancellationToken;

/// How the simulated cluster behaves.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// From a node's acceptance of a pod to its containers running.
    pub start_delay: Duration,
    /// How long a command runs that does not say so with `sleep`.
    pub finish_delay: Duration,
    /// How long a running container takes to stop. A real server container often takes seconds;
    /// this default is short so that trying things out is pleasant.
    pub stop_delay: Duration,
    /// Until a load balancer or an ingress has an address.
    pub balancer_delay: Duration,
    /// Between two signs of life of a node; zero: it gives none after the first. A kubelet renews
    /// its lease each 10 s, but here nobody looks at it, and each write goes to a disk.
    pub heartbeat: Duration,
    /// How many entries of the `events` resource are kept; 0 writes none.
    pub events: usize,
    /// What `kube-root-ca.crt` holds in each namespace, PEM.
    pub ca_certificate: String,
    /// Whether claims get volumes of storage classes that nobody defined, as on a cluster that has
    /// whatever they ask for.
    pub any_storage_class: bool,
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
        }
    }
}

/// How many objects are looked at before other tasks get a turn.
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

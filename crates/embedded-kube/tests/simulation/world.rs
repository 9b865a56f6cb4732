//! An embedded server with a clock that the test controls, for the scenario runner.

use std::time::Duration;
use tiphys_embedded_kube::{
    EmbeddedKube, Options,
    sim::{Clock, SimOptions, VirtualClock},
};
use tiphys_testkit::{Api, scenario::Cluster};
use tokio::{net::TcpListener, runtime::Runtime};

/// A server on a socket of the loopback address.
pub struct World {
    kube: Option<EmbeddedKube>,
    pub clock: VirtualClock,
    pub api: Api,
    runtime: Runtime,
}

impl World {
    /// Starts at a full minute of a Wednesday.
    pub fn start() -> Self {
        Self::starting_at("2026-03-04T10:00:00Z", Options::default())
    }

    pub fn starting_at(time: &str, options: Options) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let clock = VirtualClock::starting_at(time.parse().expect("a time"));
        // In days of virtual time, heartbeats would be most of what happens.
        let sim = SimOptions {
            heartbeat: Duration::ZERO,
            ..options.sim
        };
        let options = Options {
            clock: std::sync::Arc::new(clock.clone()),
            sim,
            ..options
        };
        let (kube, file) = runtime.block_on(async {
            let kube = EmbeddedKube::start(options)
                .await
                .expect("the server starts");
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a socket");
            let address = listener.local_addr().expect("it is bound");
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), kube.kubeconfig(address)).expect("it can be written");
            kube.serve(listener);
            (kube, file)
        });
        let api = Api::kubeconfig(file.path()).expect("our own kubeconfig");
        Self {
            kube: Some(kube),
            clock,
            api,
            runtime,
        }
    }

    /// Lets time pass, handling in order what comes due.
    pub fn advance(&self, by: Duration) {
        let kube = self.kube.as_ref().expect("it runs");
        let until = self.clock.now() + by;
        self.runtime.block_on(async {
            while let Some(next) = kube.settle().await.filter(|next| *next <= until) {
                self.clock.advance_to(next);
            }
            self.clock.advance_to(until);
            kube.settle().await;
        });
    }
}

impl Cluster for World {
    fn api(&self) -> &Api {
        &self.api
    }

    fn pass(&self, time: Duration) {
        self.advance(time);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(kube) = self.kube.take() {
            self.runtime.block_on(kube.shutdown());
        }
    }
}

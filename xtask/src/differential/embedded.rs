//! The embedded API server in this process, on its own socket. Main type: [`Embedded`].

use anyhow::anyhow;
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_testkit::differential::Remote;
use tokio::{net::TcpListener, runtime::Runtime};

/// A running server without controllers; stopped on drop.
pub struct Embedded {
    kubeconfig: String,
    /// Runs the server's tasks.
    _runtime: Runtime,
    _kube: EmbeddedKube,
}

impl Embedded {
    pub fn start() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let (kube, kubeconfig) = runtime.block_on(async {
            let kube = EmbeddedKube::start(Options {
                controllers: false,
                ..Options::default()
            })
            .await?;
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            let kubeconfig = kube.kubeconfig(listener.local_addr()?);
            kube.serve(listener);
            anyhow::Ok((kube, kubeconfig))
        })?;
        Ok(Self {
            kubeconfig,
            _runtime: runtime,
            _kube: kube,
        })
    }

    pub fn remote(&self) -> anyhow::Result<Remote> {
        Remote::from_kubeconfig(&self.kubeconfig).map_err(|e| anyhow!(e))
    }
}

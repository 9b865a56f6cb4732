//! `admin dashboard`: API and web UI for the cluster of the kubeconfig, on this machine. Main type:
//! [`Dashboard`].

use crate::{
    client::Failure,
    commands::core,
    kubectl::kube::KubeArgs,
    output,
    roles::{controller::terminated, server::headless},
};
use std::net::IpAddr;

/// Starts Argo CD Web UI locally
///
/// Everybody on this machine who can reach the port has the rights of the kubeconfig.
#[derive(clap::Args)]
pub struct Dashboard {
    #[arg(hide = true)]
    ignored: Vec<String>,
    /// Listen on given port
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Listen on given address
    #[arg(long, default_value = "localhost")]
    address: String,
    #[command(flatten)]
    kube: KubeArgs,
}

impl Dashboard {
    pub async fn run(self) -> Result<(), Failure> {
        eprintln!("starting dashboard");
        let failed = |why: String| Failure::error(format!("could not start dashboard: {why}"));
        if !self.kube.has_configuration() {
            return Err(failed(core::no_cluster()));
        }
        let ip = match self.address.as_str() {
            "localhost" => core::LOOPBACK,
            other => other
                .parse::<IpAddr>()
                .map_err(|_| failed(format!("--address {other:?} is not an address")))?,
        };
        let server = headless::start(self.kube, (ip, self.port), None).await;
        let server = server.map_err(|e| failed(format!("{e:#}")))?;
        let port = server.address.port();
        output::print(&format!(
            "Argo CD UI is available at http://{}:{port}\n",
            self.address
        ));
        terminated().await.map_err(|e| failed(e.to_string()))?;
        eprintln!("signal received, shutting down dashboard");
        server.stop().await.map_err(|e| failed(e.to_string()))?;
        eprintln!("clean shutdown");
        Ok(())
    }
}

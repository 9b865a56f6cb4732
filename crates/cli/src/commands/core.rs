//! `--core`: commands that need no server, with one in this process. Main function: [`connect`].

use crate::{
    client::{Client, Connection, Core, Failure},
    kubectl::kube::KubeArgs,
    roles::server::headless,
};
use std::net::{IpAddr, Ipv4Addr};

pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Go's words for a command line without a cluster.
pub const NO_CONFIGURATION: &str = "invalid configuration: no configuration has been provided, try \
                                    setting KUBERNETES_MASTER environment variable";
/// What to do about it.
pub const NAME_A_CLUSTER: &str =
    "set KUBECONFIG to the kubeconfig of a cluster; `tiphys up` prints that of its own";

/// Why no server can be started without a cluster.
pub fn no_cluster() -> String {
    format!("error creating client config: {NO_CONFIGURATION}")
}

/// Starts a server for the cluster of the kubeconfig, which ends with the process, and connects to
/// it. Others who find its port are refused: they do not have the rights of the kubeconfig.
pub async fn connect(core: Core) -> Result<Client, Failure> {
    let kube = KubeArgs::of_context(core.context);
    if !kube.has_configuration() {
        return Err(Failure::fatal(no_cluster()).with_hint(NAME_A_CLUSTER));
    }
    let token = format!("{:032x}", rand::random::<u128>());
    let started = headless::start(kube, (LOOPBACK, 0), Some(token.clone())).await;
    let server = started.map_err(|e| Failure::error(format!("{e:#}")))?;
    Client::connect(Connection {
        server: server.address.to_string(),
        plaintext: true,
        token,
        ..Connection::default()
    })
    .await
}

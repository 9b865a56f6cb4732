//! `--port-forward`: a server that only the Kubernetes API reaches. Main function: [`settle`].

use crate::{
    client::{ConnectArgs, Connection, Failure},
    commands::core::{NAME_A_CLUSTER, NO_CONFIGURATION},
    kubectl::kube::KubeArgs,
    output::log,
};
use tiphys_cluster::{
    Cluster,
    streams::{self, Way},
};

/// The port on which the server's pods listen.
const PORT: u16 = 8080;

/// Replaces the server's address by a local port that leads to one of its pods, where the command
/// line wants that.
pub async fn settle(args: &ConnectArgs, connection: &mut Connection) -> Result<(), Failure> {
    let Some(forward) = args.forward()? else {
        return Ok(());
    };
    let kube = KubeArgs::of_context(forward.context);
    if !kube.has_configuration() {
        return Err(Failure::fatal(NO_CONFIGURATION).with_hint(NAME_A_CLUSTER));
    }
    let failed = |e: tiphys_cluster::Error| Failure::error(format!("--port-forward: {e}"));
    let cluster = Cluster::connect(kube.options()).await.map_err(failed)?;
    let label = |name: &String| format!("app.kubernetes.io/name={name}");
    let way = Way {
        namespace: forward
            .namespace
            .unwrap_or_else(|| cluster.default_namespace().to_owned()),
        selectors: forward.servers.iter().map(label).collect(),
        port: PORT,
    };
    let told = |why: String| log::warn(&format!("--port-forward: {why}"));
    let address = streams::forward(&cluster, way, told)
        .await
        .map_err(failed)?;
    connection.server = address.to_string();
    // The certificate is for the server's own name; who reaches this port, and what it leads to, the
    // Kubernetes API decides.
    connection.insecure = true;
    Ok(())
}

//! The API server in the process of a command, for a cluster of the kubeconfig: `--core` and `admin
//! dashboard`. Main function: [`start`].
//!
//! It has the rights of the kubeconfig's user and nothing else, makes nothing in the cluster, and
//! renders in this process.

use super::ServerArgs;
use crate::{commands::KubeArgs, roles::argocd::named};
use clap::Parser;
use std::net::{IpAddr, SocketAddr};
use tiphys_server::{Options, Tls};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// The namespace of an installation, where the kubeconfig does not name one.
const NAMESPACE: &str = "argocd";

const WITHOUT_REDIS: &str = "trees, differences and states of clusters are in the Redis of the \
                             controllers: REDIS_SERVER names it";

/// The flags of the server, for their defaults and variables.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: ServerArgs,
}

/// A server that serves.
pub struct Headless {
    pub address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
}

/// Serves at an address, 0 for any port. With a `token`, only to who has it.
pub async fn start(
    kube: KubeArgs,
    (ip, port): (IpAddr, u16),
    token: Option<String>,
) -> anyhow::Result<Headless> {
    let mut words = vec!["server", "--disable-auth", "--insecure"];
    if token.is_some() {
        // Who has the token runs this process, and can read these folders without it.
        words.push("--allow-file-repositories");
    }
    let mut args = Line::try_parse_from(words)?.args;
    args.plane.kube = kube;
    let (cluster, mut namespace) = args.plane.connect().await?;
    if args.plane.kube.namespace().is_none() && namespace == "default" {
        NAMESPACE.clone_into(&mut namespace);
    }
    let others = named(&args.application_namespaces);
    let place = (cluster, namespace.clone());
    let mut begun = args.plane.begin(place, others, Default::default()).await?;
    begun
        .plane
        .without_controller(args.elsewhere(&namespace, WITHOUT_REDIS)?);
    let options = Options {
        auth_disabled: true,
        only_with: token,
        ..args.options()?
    };
    let server = begun.plane.server(false, "", options)?;
    let listener = TcpListener::bind((ip, port)).await?;
    let address = listener.local_addr()?;
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let repositories = begun.repositories;
    let serving = tokio::spawn(async move {
        let served = server.serve(listener, Tls::Off, stopped).await;
        drop(repositories);
        served
    });
    Ok(Headless {
        address,
        stop,
        serving,
    })
}

impl Headless {
    /// Lets open requests finish.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        Ok(self.serving.await??)
    }
}

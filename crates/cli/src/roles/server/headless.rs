//! The API server in the process of a command, for a cluster of the kubeconfig: `--core` and `admin
//! dashboard`. Main function: [`start`].
//!
//! It has the rights of the kubeconfig's user and nothing else, makes nothing in the cluster, and
//! renders in this process.

use super::ServerArgs;
use crate::{kubectl::kube::KubeArgs, roles::argocd::named};
use clap::Parser;
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use tiphys_cluster::{Cluster, request::Call};
use tiphys_server::{Options, Tls};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// The namespace of an installation, where the kubeconfig does not name one.
const NAMESPACE: &str = "argocd";

const SETTINGS: &str = "argocd-cm";

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
    check(&cluster, &namespace, args.plane.kube.context()).await?;
    let mut others = named(&args.application_namespaces);
    if others.is_empty() && may_list_all(&cluster).await? {
        // The rights of the kubeconfig decide, and nobody else's.
        others.push("*".to_owned());
    }
    let place = (cluster, namespace.clone());
    let mut begun = args.plane.begin(place, others, Default::default()).await?;
    begun
        .plane
        .without_controller(args.elsewhere(&namespace, WITHOUT_REDIS)?);
    let options = Options {
        auth_disabled: true,
        only_with: token,
        ..args.options(args.connections.options())?
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

/// That there is an installation: what is not there must not look like one without Applications.
async fn check(cluster: &Cluster, namespace: &str, context: Option<&str>) -> anyhow::Result<()> {
    let settings = format!("/api/v1/namespaces/{namespace}/configmaps/{SETTINGS}");
    match cluster.http().json::<Value>(&Call::get(&settings)).await {
        Err(e) if e.is_not_found() => {}
        // What may not be read may be there.
        _ => return Ok(()),
    }
    let apps = format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications?limit=1");
    let apps = cluster.http().json::<Value>(&Call::get(&apps)).await;
    let has_some = |list: Value| {
        list["items"]
            .as_array()
            .is_some_and(|items| !items.is_empty())
    };
    if apps.is_ok_and(has_some) {
        return Ok(());
    }
    let context = match context {
        Some(context) => format!("context {context:?}"),
        None => "the current context".to_owned(),
    };
    anyhow::bail!(
        "configmap \"{SETTINGS}\" not found in namespace {namespace:?} of {context}, and no \
         Applications: name the namespace of the installation in the kubeconfig (kubectl config \
         set-context --current --namespace NAMESPACE), or choose another context"
    )
}

/// Whether the kubeconfig's user may see the Applications of all namespaces.
async fn may_list_all(cluster: &Cluster) -> anyhow::Result<bool> {
    let all = Call::get("/apis/argoproj.io/v1alpha1/applications?limit=1");
    match cluster.http().json::<Value>(&all).await {
        Ok(_) => Ok(true),
        // Without the definition there are none, which is told where they are read.
        Err(e) if e.is_forbidden() || e.is_not_found() => Ok(false),
        Err(e) => Err(e.into()),
    }
}

impl Headless {
    /// Lets open requests finish.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        Ok(self.serving.await??)
    }
}

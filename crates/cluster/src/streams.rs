//! Connections into pods, which pass through the API server and the kubelet: a forwarded port and a
//! shell.
//!
//! Main functions: [`forward`] and [`shell`]. Clusters in this process only simulate containers and
//! refuse both.

use crate::{Cluster, Error};
use futures::{FutureExt as _, future::BoxFuture};
use http::HeaderValue;
use k8s_openapi::{
    api::core::v1::{Pod, PodStatus},
    apimachinery::pkg::apis::meta::v1::Status,
};
use kube::api::{Api, AttachParams, ListParams, Portforwarder, TerminalSize};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::{
    io::{AsyncRead, AsyncWrite, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

/// A command that runs in a container, on a terminal.
pub struct Shell {
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Columns and rows of the terminal.
    pub size: Box<dyn FnMut(u16, u16) + Send>,
    pub ended: BoxFuture<'static, Ended>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It ran. Some shells end with a code that is not 0.
    Ran,
    /// It could not be started, as where the container does not have it.
    NotStarted(String),
}

/// A way to a port of a ready pod.
pub struct Way {
    pub namespace: String,
    /// Label selectors; pods of an earlier one are preferred.
    pub selectors: Vec<String>,
    pub port: u16,
}

/// Opens a local port that leads to a pod. Connections are accepted until the process ends; `told`
/// learns why one could not be passed on.
///
/// # Errors
/// No pod is ready, or the API server does not pass connections on.
pub async fn forward(
    cluster: &Cluster,
    way: Way,
    told: impl Fn(String) + Clone + Send + 'static,
) -> Result<SocketAddr, Error> {
    let pods: Api<Pod> = Api::namespaced(cluster.upgrading(None)?, &way.namespace);
    let name = ready(&pods, &way).await?;
    let port = way.port;
    let opened = move |pods: Api<Pod>, name: String| async move {
        let opened = pods.portforward(&name, &[port]).await;
        opened.map_err(|e| failed(&format!("connecting to pod {name}"), &e))
    };
    // The first connection is made before anyone asks for it: what refuses it is told at once.
    let mut first = Some(opened(pods.clone(), name.clone()).await?);
    let local = |e: std::io::Error| Error::Transport {
        what: "opening a local port".to_owned(),
        reason: e.to_string(),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(local)?;
    let address = listener.local_addr().map_err(local)?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (pods, name, told, first) =
                (pods.clone(), name.clone(), told.clone(), first.take());
            tokio::spawn(async move {
                let opened = match first {
                    Some(opened) => Ok(opened),
                    None => opened(pods, name.clone()).await,
                };
                let passed = match opened {
                    Ok(opened) => pass(stream, opened, port).await,
                    Err(e) => Err(e.to_string()),
                };
                if let Err(why) = passed {
                    told(format!("port {port} of pod {name}: {why}"));
                }
            });
        }
    });
    Ok(address)
}

/// The name of a ready pod.
async fn ready(pods: &Api<Pod>, way: &Way) -> Result<String, Error> {
    for selector in &way.selectors {
        let found = pods.list(&ListParams::default().labels(selector)).await;
        let found = found.map_err(|e| failed("listing pods", &e))?;
        let ready = found
            .into_iter()
            .find(|pod| pod.status.as_ref().is_some_and(is_ready));
        if let Some(name) = ready.and_then(|pod| pod.metadata.name) {
            return Ok(name);
        }
    }
    Err(Error::Transport {
        what: format!("namespace {}", way.namespace),
        reason: format!(
            "cannot find ready pod with selector: {}",
            way.selectors.join(" or ")
        ),
    })
}

fn is_ready(status: &PodStatus) -> bool {
    let conditions = status.conditions.iter().flatten();
    status.phase.as_deref() == Some("Running")
        && conditions
            .filter(|c| c.type_ == "Ready")
            .any(|c| c.status == "True")
}

/// Passes both directions on until one of them ends.
async fn pass(mut local: TcpStream, mut opened: Portforwarder, port: u16) -> Result<(), String> {
    let stream = opened.take_stream(port);
    let refused = opened.take_error(port);
    let (Some(mut stream), Some(refused)) = (stream, refused) else {
        return Err("it was not opened".to_owned());
    };
    let copied = async {
        // Either side may leave at any time.
        let _ = copy_bidirectional(&mut local, &mut stream).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        why = refused => why.map_or(Ok(()), Err),
        () = copied => Ok(()),
    }
}

/// Runs a command on a terminal in a container. `user`: whom to impersonate.
///
/// # Errors
/// The API server does not run it. That the container cannot is how it ends.
pub async fn shell(
    cluster: &Cluster,
    (namespace, pod, container): (&str, &str, &str),
    command: &str,
    user: Option<&str>,
) -> Result<Shell, Error> {
    let doing = format!("a shell in pod {namespace}/{pod}");
    let user = user.map(HeaderValue::from_str).transpose();
    let user = user.map_err(|e| Error::Transport {
        what: doing.clone(),
        reason: format!("the user to impersonate: {e}"),
    })?;
    let pods: Api<Pod> = Api::namespaced(cluster.upgrading(user.as_ref())?, namespace);
    let terminal = AttachParams::interactive_tty().container(container);
    let mut process = pods
        .exec(pod, [command], &terminal)
        .await
        .map_err(|e| failed(&doing, &e))?;
    let lost = || Error::Transport {
        what: doing.clone(),
        reason: "the answer has no terminal".to_owned(),
    };
    let (input, output) = (process.stdin(), process.stdout());
    let (size, status) = (process.terminal_size(), process.take_status());
    let status = status.ok_or_else(lost)?;
    let mut size = size.ok_or_else(lost)?;
    Ok(Shell {
        input: Box::new(input.ok_or_else(lost)?),
        output: Box::new(output.ok_or_else(lost)?),
        // A size that comes while others wait is outdated soon.
        size: Box::new(move |width, height| drop(size.try_send(TerminalSize { width, height }))),
        ended: async move {
            let status = status.await;
            // It ends with the process that it belongs to.
            drop(process);
            status.map_or(Ended::Ran, |status| ended(&status))
        }
        .boxed(),
    })
}

/// Codes with which container runtimes say that a command could not be started.
const NOT_STARTED: [&str; 2] = ["126", "127"];

fn ended(status: &Status) -> Ended {
    if status.status.as_deref() == Some("Success") {
        return Ended::Ran;
    }
    let causes = status
        .details
        .iter()
        .flat_map(|d| d.causes.iter().flatten());
    let code = causes
        .filter(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .find_map(|cause| cause.message.as_deref());
    if code.is_some_and(|code| !NOT_STARTED.contains(&code)) {
        return Ended::Ran;
    }
    Ended::NotStarted(status.message.clone().unwrap_or_default())
}

fn failed(doing: &str, e: &kube::Error) -> Error {
    let reason = match e {
        kube::Error::Api(status) => status.message.clone(),
        e => crate::client::root_cause(e),
    };
    Error::Transport {
        what: doing.to_owned(),
        reason,
    }
}

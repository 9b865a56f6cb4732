//! Opens a checked connection to a cluster.
//!
//! Main type: [`Cluster`]. Sources are a kubeconfig, the pod's service account, an Argo CD cluster
//! Secret and a server in this process. It knows nothing about the cluster's content.

mod config;
pub mod context;
mod overrides;
mod proxy;
mod secret;
mod stack;
mod tokens;

pub use crate::client::{AnswerBody, Client};
pub use overrides::Overrides;
pub use secret::{ClusterIdentity, ClusterSecret, Credentials};
pub use tiphys_cloud::proxy::{from_environment as environment_proxy, is_here};

use crate::{
    client::Lane,
    error::Error,
    request::{Call, Http},
    taps::Taps,
    traffic::Traffic,
};
use http::{HeaderValue, Request, Response};
use kube::client::Body;
use proxy::Proxy;
use serde::Deserialize;
use stack::Versions;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tower::{BoxError, Service};

/// Argo CD's URL for the cluster that it runs in.
pub const IN_CLUSTER_SERVER: &str = "https://kubernetes.default.svc";

/// kube-apiserver allows 100 streams per HTTP/2 connection; watches never end, so they are spread
/// over several connections.
const WATCHES_A_CONNECTION: usize = 80;

/// The address of a cluster and how to authenticate.
pub enum Source {
    /// A kubeconfig file (`None`: `$KUBECONFIG`, then `~/.kube/config`) and a context (`None`: its
    /// current one).
    Kubeconfig {
        path: Option<PathBuf>,
        context: Option<String>,
    },
    /// The service account mounted into the pod.
    InCluster,
    /// An Argo CD cluster Secret, already read.
    Secret(Box<ClusterSecret>),
    /// A client created elsewhere, such as by [`in_process`].
    Client { client: Client, server: String },
}

/// How to connect.
pub struct ConnectOptions {
    pub source: Source,
    /// Timeout of the first response.
    pub timeout: Duration,
    /// Maximum number of concurrent requests, watches not included.
    pub concurrency: usize,
    /// Overrides of the kubeconfig.
    pub overrides: Overrides,
}

impl ConnectOptions {
    pub fn new(source: Source) -> Self {
        Self {
            source,
            timeout: Duration::from_secs(10),
            concurrency: 64,
            overrides: Overrides::default(),
        }
    }

    pub fn kubeconfig(path: Option<PathBuf>, context: Option<String>) -> Self {
        Self::new(Source::Kubeconfig { path, context })
    }
}

/// The API server's answer at `/version`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Version {
    pub major: String,
    pub minor: String,
    pub git_version: String,
    pub platform: String,
}

impl Version {
    /// `1.36`.
    pub fn short(&self) -> String {
        format!("{}.{}", self.major, self.minor.trim_end_matches('+'))
    }

    /// `v1.36.3`, without vendor suffixes, as Argo CD shows it and charts see it.
    pub fn plain(&self) -> String {
        let numbers = self.git_version.trim_start_matches('v');
        let end = numbers
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(numbers.len());
        format!("v{}", numbers[..end].trim_end_matches('.'))
    }
}

/// A checked connection to one API server. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

struct Inner {
    http: Http,
    server: String,
    version: Version,
    default_namespace: String,
    lanes: Lanes,
    taps: Taps,
}

type Make = dyn Fn(Versions) -> Result<Client, Error> + Send + Sync;

/// Connections for watches.
struct Lanes {
    /// Creates another connection; `None` if one connection can carry any number of watches.
    make: Option<Box<Make>>,
    used: Mutex<Vec<(Client, Arc<()>)>>,
}

/// A client of a server in this process: any tower service of HTTP requests, such as an
/// `axum::Router`.
pub fn in_process<S, B>(service: S) -> Client
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Client::new(service, "default")
}

impl Cluster {
    /// Connects and requests the version. An error names the file, context or field that caused it,
    /// and a fix.
    pub async fn connect(options: ConnectOptions) -> Result<Self, Error> {
        stack::install_crypto();
        let ConnectOptions {
            source,
            timeout,
            concurrency,
            overrides,
        } = options;
        let (client, server, origin, lanes) = match source {
            Source::Client { client, server } => {
                let origin = "in this process".to_owned();
                (
                    client,
                    server,
                    origin,
                    Lanes {
                        make: None,
                        used: Mutex::default(),
                    },
                )
            }
            source => {
                let config::Resolved {
                    config,
                    proxy,
                    tokens,
                    server,
                    origin,
                } = config::resolve(source, &overrides).await?;
                let config = config::with_scheme(config, &origin)?;
                let fix = "name it as http://, https:// or socks5://host:port";
                let proxy = Proxy::of(&config.cluster_url, proxy.as_deref())
                    .map_err(|e| Error::config(&origin, format!("proxy URL: {e}"), fix))?;
                let from = origin.clone();
                let make = Box::new(move |versions| {
                    stack::client(&config, &proxy, tokens.as_ref(), versions, &from)
                });
                let client = make(Versions::All)?;
                (
                    client,
                    server,
                    origin,
                    Lanes {
                        make: Some(make),
                        used: Mutex::default(),
                    },
                )
            }
        };
        let default_namespace = client.default_namespace.clone();
        let http = Http::new(client, concurrency, Traffic::of(&server));
        let version = check(&http, &server, &origin, timeout).await?;
        Ok(Self {
            inner: Arc::new(Inner {
                http,
                server,
                version,
                default_namespace,
                lanes,
                taps: Taps::default(),
            }),
        })
    }

    /// Connects to a server in this process. `server` is its URL, such as [`IN_CLUSTER_SERVER`].
    pub async fn connect_in_process<S, B>(service: S, server: &str) -> Result<Self, Error>
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self::connect(ConnectOptions::new(Source::Client {
            client: in_process(service),
            server: server.to_owned(),
        }))
        .await
    }

    /// The API server's URL, as the configuration gives it.
    pub fn server(&self) -> &str {
        &self.inner.server
    }

    pub fn version(&self) -> &Version {
        &self.inner.version
    }

    pub fn client(&self) -> Client {
        self.inner.http.client().clone()
    }

    /// The namespace of the kubeconfig's context.
    pub fn default_namespace(&self) -> &str {
        &self.inner.default_namespace
    }

    pub fn http(&self) -> &Http {
        &self.inner.http
    }

    /// The watches on this connection that can be shared.
    pub fn taps(&self) -> &Taps {
        &self.inner.taps
    }

    /// Requests the version again, to check whether the cluster is reachable now.
    pub async fn check(&self, timeout: Duration) -> Result<Version, Error> {
        check(
            &self.inner.http,
            &self.inner.server,
            "connected before",
            timeout,
        )
        .await
    }

    /// A client for connections that stop speaking HTTP: only HTTP/1.1 lets them. `user`: whom to
    /// impersonate.
    pub(crate) fn upgrading(&self, user: Option<&HeaderValue>) -> Result<kube::Client, Error> {
        let make = self.inner.lanes.make.as_ref().ok_or_else(|| {
            Error::config(
                &self.inner.server,
                "this cluster only simulates containers",
                "use one whose nodes run them",
            )
        })?;
        Ok(make(Versions::Http1)?.into_kube(user.cloned()))
    }

    /// A connection with room for one more watch.
    pub(crate) fn lane(&self) -> Result<Lane, Error> {
        let (lanes, traffic) = (&self.inner.lanes, self.http().traffic().clone());
        let Some(make) = &lanes.make else {
            return Ok(Lane::new(self.client(), traffic, Arc::new(())));
        };
        let mut used = lanes.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((client, room)) = used
            .iter()
            .find(|(_, room)| Arc::strong_count(room) <= WATCHES_A_CONNECTION)
        {
            traffic.connection(true);
            return Ok(Lane::new(client.clone(), traffic, room.clone()));
        }
        let (client, room) = (make(Versions::All)?, Arc::new(()));
        used.push((client.clone(), room.clone()));
        traffic.connection(false);
        Ok(Lane::new(client, traffic, room))
    }
}

async fn check(
    http: &Http,
    server: &str,
    origin: &str,
    timeout: Duration,
) -> Result<Version, Error> {
    let unreachable = |reason: String, fix: &str| Error::Unreachable {
        server: server.into(),
        origin: origin.into(),
        reason,
        fix: fix.into(),
    };
    match http
        .json::<Version>(&Call::get("/version").timeout(timeout))
        .await
    {
        Ok(version) => Ok(version),
        Err(Error::Timeout { after, .. }) => Err(unreachable(
            format!("no answer within {}s", after.as_secs_f32()),
            "check that the address is right and that a firewall or VPN lets it through",
        )),
        Err(Error::Transport { reason, .. }) => {
            let fix = hint(&reason);
            Err(unreachable(reason, fix))
        }
        Err(Error::Api(e)) if e.code == 401 => Err(unreachable(
            e.message,
            "the credentials are refused: renew the token or certificate of the user",
        )),
        // /version may be forbidden for this user although the rest is not; missing permissions
        // show on the requests that need them.
        Err(Error::Api(e)) if e.code == 403 => Ok(Version::default()),
        Err(Error::Decode { reason, .. }) => Err(unreachable(
            format!("the answer is not Kubernetes' ({reason})"),
            "check that the server address is that of a Kubernetes API",
        )),
        Err(e) => Err(unreachable(
            e.to_string(),
            "check that the server address is that of a Kubernetes API",
        )),
    }
}

fn hint(reason: &str) -> &'static str {
    let lower = reason.to_lowercase();
    if lower.contains("refused") {
        "is the cluster running, and is the port right?"
    } else if lower.contains("unknownissuer") || lower.contains("certificate") {
        "the server's certificate is not signed by the configured authority: correct certificate-authority-data (caData), or set insecure"
    } else if lower.contains("lookup")
        || lower.contains("name or service")
        || lower.contains("resolve")
    {
        "the host name cannot be resolved: correct the server address"
    } else {
        "check the server address and the network"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_where_nothing_listens_is_named_with_the_fix() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        drop(listener);
        let secret = ClusterSecret {
            name: "far".into(),
            server: format!("http://{address}"),
            ..ClusterSecret::default()
        };
        let error = Cluster::connect(ConnectOptions::new(Source::Secret(Box::new(secret))))
            .await
            .err()
            .expect("nothing listens")
            .to_string();
        assert!(
            error.contains(&address.to_string())
                && error.contains("refused")
                && error.contains("cluster \"far\""),
            "{error}"
        );
    }

    #[tokio::test]
    async fn what_an_exec_provider_is_called_with_and_prints_is_not_shown() {
        for script in ["echo CANARY; echo CANARY >&2; exit 3", "echo CANARY"] {
            let exec = serde_json::json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
                "args": ["-c", script, "CANARY"], "env": {"TOKEN": "CANARY"}});
            let config = Credentials {
                exec_provider_config: Some(exec),
                ..Credentials::default()
            };
            let secret = ClusterSecret {
                name: "far".into(),
                server: "https://127.0.0.1:1".into(),
                config,
                ..ClusterSecret::default()
            };
            let error = Cluster::connect(ConnectOptions::new(Source::Secret(Box::new(secret))))
                .await
                .err()
                .expect("no credentials");
            let told = format!("{error} {error:?}");
            assert!(
                !told.contains("CANARY") && told.contains("the program of the exec provider"),
                "{told}"
            );
        }
        let broken = serde_json::json!({"command": "sh", "args": "CANARY", "env": {"TOKEN": 5}});
        let config = Credentials {
            exec_provider_config: Some(broken),
            ..Credentials::default()
        };
        let secret = ClusterSecret {
            name: "far".into(),
            server: "https://127.0.0.1:1".into(),
            config,
            ..ClusterSecret::default()
        };
        let error = Cluster::connect(ConnectOptions::new(Source::Secret(Box::new(secret))))
            .await
            .err()
            .expect("unreadable")
            .to_string();
        assert!(
            !error.contains("CANARY") && error.contains("execProviderConfig"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_missing_kubeconfig_is_named() {
        let error = Cluster::connect(ConnectOptions::kubeconfig(
            Some("/nowhere/config".into()),
            None,
        ))
        .await
        .err()
        .expect("no such file");
        assert!(
            error
                .to_string()
                .starts_with("kubeconfig /nowhere/config: cannot be read: No such file"),
            "{error}"
        );
    }

    #[test]
    fn versions_are_shown_without_what_vendors_add() {
        for (git_version, plain) in [
            ("v1.36.3", "v1.36.3"),
            ("v1.30.11+IKS", "v1.30.11"),
            ("v1.34.1-gke.100", "v1.34.1"),
            ("1.29.", "v1.29"),
        ] {
            assert_eq!(
                Version {
                    git_version: git_version.into(),
                    ..Version::default()
                }
                .plain(),
                plain
            );
        }
    }
}

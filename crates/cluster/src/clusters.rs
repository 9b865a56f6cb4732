//! The destination clusters, opened when an Application first needs them.
//!
//! Main types: [`Clusters`] and [`LiveCluster`], a cluster with its live cache and its executor. A
//! cluster that cannot be reached is an error only for Applications deployed to it. If its Secret
//! or the settings of its cache change, it is closed, and opened again on the next request.

mod labels;

use crate::{
    cache::{CacheOptions, Known, LiveCache},
    connect::{Cluster, ClusterSecret, ConnectOptions, Credentials, Source},
    discovery::Discovery,
    error::Error,
    execute::Executor,
    records::{Records, Settings},
};
use jiff::{SignedDuration, Timestamp};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tiphys_api::{
    cluster::{ClusterCacheInfo, ClusterInfo, ConnectionState},
    constants::IN_CLUSTER,
};
use tiphys_engine::{spec::Destination, types::ExclusionRule};
use tokio::{
    sync::{OnceCell, broadcast},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// Why a cluster cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// Nothing says how to connect to this address.
    #[error("cluster {0} has no Secret")]
    NoSecret(String),
    /// What its cache watches cannot be told from argocd-cm.
    #[error("{0}")]
    Settings(String),
    #[error(transparent)]
    Cluster(#[from] Error),
}

/// The message, for callers that only show it.
impl From<OpenError> for String {
    fn from(error: OpenError) -> Self {
        error.to_string()
    }
}

/// How long an unreachable cluster is not tried again.
pub const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(10);

/// A cluster that Applications are deployed to.
pub struct LiveCluster {
    pub destination: Destination,
    pub cache: LiveCache,
    pub executor: Executor,
    /// When everything in it had been listed.
    pub ready: Instant,
    /// How long that took, from the first request.
    pub took: Duration,
    terms: Terms,
    closed: CancellationToken,
}

impl LiveCluster {
    /// Its state as Argo CD's server shows it. The number of its Applications is not known here.
    pub fn info(&self, now: Timestamp) -> ClusterInfo {
        let (stats, discovery) = (self.cache.stats(), self.cache.discovery());
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let listed = SignedDuration::try_from(self.ready.elapsed())
            .ok()
            .and_then(|age| now.checked_sub(age).ok());
        // If an Application has resources of such a kind, that is an error of its own; if only its
        // resources' children are of that kind, they are missing from its tree.
        let message = self.cache.readable(&Known::Nothing).map_or_else(
            |e| format!("Resource trees are incomplete: {}", e.brief()),
            |()| String::new(),
        );
        ClusterInfo {
            connection_state: ConnectionState {
                status: "Successful".into(),
                message,
                attempted_at: Some(now.into()),
            },
            server_version: discovery.cluster().version().plain(),
            cache_info: ClusterCacheInfo {
                resources_count: count(stats.objects),
                apis_count: count(stats.kinds),
                last_cache_sync_time: listed.map(Into::into),
            },
            api_versions: self.cache.kinds().api_versions().to_vec(),
            ..ClusterInfo::default()
        }
    }

    /// Resolves when this connection is replaced. Users of the cache should then drop it.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }
}

/// The settings that a connection and its cache depend on.
#[derive(PartialEq)]
struct Terms {
    /// From the Secret; `None`: it has none.
    credentials: Option<Credentials>,
    options: CacheOptions,
    /// When somebody asked last that it is opened anew.
    refresh: Option<String>,
}

impl Terms {
    fn of(
        settings: &Settings,
        destination: &Destination,
        contents: Contents,
    ) -> Result<Self, OpenError> {
        let secret = settings.cluster(&destination.server, &destination.name);
        let options = settings.cache_options(secret);
        let mut options = options.map_err(OpenError::Settings)?;
        if contents == Contents::Nothing {
            // An entry without lists matches every kind.
            options.exclusions = [ExclusionRule::default()].into();
        }
        Ok(Self {
            credentials: secret.map(|s| s.config.clone()),
            refresh: secret.and_then(|s| s.refresh.clone()),
            options,
        })
    }
}

/// What the caches of clusters hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    /// What Applications may manage.
    Managed,
    /// No kind is listed or watched; objects are read when they are asked for.
    Nothing,
}

#[derive(Default)]
struct Slot {
    cell: Arc<OnceCell<Arc<LiveCluster>>>,
    failed: Option<(Instant, OpenError)>,
    /// It is being opened, for all callers that request it meanwhile.
    opening: bool,
}

impl Slot {
    /// Why it could not be opened, while it is too early to retry.
    fn failure(&self) -> Option<&OpenError> {
        self.failed
            .as_ref()
            .filter(|(at, _)| at.elapsed() < PAUSE_AFTER_FAILURE)
            .map(|(_, why)| why)
    }
}

/// Clears the flag set by [`Clusters::is_opening`] when dropped.
struct Opening {
    clusters: Clusters,
    server: String,
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(slot) = self.clusters.slots().get_mut(&self.server) {
            slot.opening = false;
        }
    }
}

/// All clusters in use. Cheap to clone.
#[derive(Clone)]
pub struct Clusters {
    shared: Arc<Shared>,
}

struct Shared {
    /// The cluster the control plane runs in.
    own: Cluster,
    records: Records,
    slots: Mutex<HashMap<String, Slot>>,
    /// The settings that the open clusters were last compared with.
    seen: Mutex<Arc<Settings>>,
    opened: broadcast::Sender<Arc<LiveCluster>>,
    contents: Contents,
}

impl Clusters {
    /// `own` is the cluster the control plane runs in; the others are described by Secrets.
    pub fn new(own: Cluster, records: Records) -> Self {
        Self::holding(Contents::Managed, own, records)
    }

    /// The same, for a process that only reads and writes single objects: it watches nothing.
    pub fn unwatched(own: Cluster, records: Records) -> Self {
        Self::holding(Contents::Nothing, own, records)
    }

    fn holding(contents: Contents, own: Cluster, records: Records) -> Self {
        let seen = Mutex::new(records.settings());
        Self {
            shared: Arc::new(Shared {
                own,
                records,
                slots: Mutex::default(),
                seen,
                opened: broadcast::Sender::new(64),
                contents,
            }),
        }
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, HashMap<String, Slot>> {
        self.shared
            .slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the clusters whose settings changed since they were opened. Failures are cleared,
    /// because the cause may be fixed now.
    fn compare_with_settings(&self) {
        let settings = self.shared.records.settings();
        {
            let mut seen = self
                .shared
                .seen
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if Arc::ptr_eq(&seen, &settings) {
                return;
            }
            *seen = settings.clone();
        }
        self.slots().retain(|_, slot| {
            slot.failed = None;
            let Some(live) = slot.cell.get() else {
                return true;
            };
            // Settings that cannot be read change nothing.
            let same = Terms::of(&settings, &live.destination, self.shared.contents)
                .map_or(true, |terms| terms == live.terms);
            if same {
                self.label(&settings, live);
            } else {
                live.closed.cancel();
            }
            same
        });
    }

    /// Writes what the Secret of an open cluster wants to be told of it.
    fn label(&self, settings: &Settings, live: &LiveCluster) {
        let to = &live.destination;
        if self.shared.contents == Contents::Managed
            && let Some(secret) = settings.cluster(&to.server, &to.name)
        {
            let discovery = live.cache.discovery();
            labels::update(&self.shared.records, secret, discovery.cluster().version());
        }
    }

    /// Whether the cluster is still being opened. The first call starts that; [`Clusters::opened`]
    /// reports the end. So a slow or unresponsive cluster does not delay other work.
    pub fn is_opening(&self, destination: &Destination) -> bool {
        self.compare_with_settings();
        {
            let mut slots = self.slots();
            let slot = slots.entry(destination.server.clone()).or_default();
            if slot.cell.initialized() || slot.failure().is_some() {
                return false;
            }
            if std::mem::replace(&mut slot.opening, true) {
                return true;
            }
        }
        let (opening, destination) = (
            Opening {
                clusters: self.clone(),
                server: destination.server.clone(),
            },
            destination.clone(),
        );
        tokio::spawn(async move {
            // The result is stored for the next caller.
            let _ = opening.clusters.get(&destination).await;
        });
        true
    }

    /// The cluster, with its cache ready.
    ///
    /// # Errors
    /// The same one is returned for a while, so that an unreachable cluster is not tried repeatedly.
    pub async fn get(&self, destination: &Destination) -> Result<Arc<LiveCluster>, OpenError> {
        self.compare_with_settings();
        let cell = {
            let mut slots = self.slots();
            let slot = slots.entry(destination.server.clone()).or_default();
            if let Some(why) = slot.failure() {
                return Err(why.clone());
            }
            slot.cell.clone()
        };
        match cell.get_or_try_init(|| self.open(destination)).await {
            Ok(cluster) => {
                cluster
                    .cache
                    .customize(&self.shared.records.settings().customizations);
                Ok(cluster.clone())
            }
            Err(why) => {
                if let Some(slot) = self.slots().get_mut(&destination.server) {
                    slot.failed = Some((Instant::now(), why.clone()));
                }
                Err(why)
            }
        }
    }

    /// A new connection to the cluster that a Secret describes, which need not be stored.
    ///
    /// # Errors
    /// Names the field that is wrong, or why the cluster does not answer.
    pub async fn connect(&self, secret: &ClusterSecret) -> Result<Cluster, Error> {
        // A Secret of the own cluster without a user only adds a name, namespaces or labels.
        if secret.server == IN_CLUSTER && (!secret.config.has_user() || is_own_in_cluster()) {
            return Ok(self.shared.own.clone());
        }
        Cluster::connect(ConnectOptions::new(Source::Secret(Box::new(
            secret.clone(),
        ))))
        .await
    }

    async fn open(&self, destination: &Destination) -> Result<Arc<LiveCluster>, OpenError> {
        let begun = Instant::now();
        let settings = self.shared.records.settings();
        let secret = settings.cluster(&destination.server, &destination.name);
        let cluster = match secret {
            None if destination.server == IN_CLUSTER => self.shared.own.clone(),
            None => return Err(OpenError::NoSecret(destination.server.clone())),
            Some(secret) => self.connect(secret).await?,
        };
        let terms = Terms::of(&settings, destination, self.shared.contents)?;
        let discovery = Discovery::new(cluster).await?;
        let cache = LiveCache::start(discovery, terms.options.clone());
        cache.customize(&settings.customizations);
        cache.wait_ready().await;
        let executor = Executor::new(cache.clone());
        let (destination, ready, closed) = (
            destination.clone(),
            Instant::now(),
            CancellationToken::new(),
        );
        let took = ready - begun;
        let live = Arc::new(LiveCluster {
            destination,
            cache,
            executor,
            ready,
            took,
            terms,
            closed,
        });
        self.label(&settings, &live);
        // An error only means that there are no receivers.
        let _ = self.shared.opened.send(live.clone());
        Ok(live)
    }

    /// The open clusters.
    pub fn list(&self) -> Vec<Arc<LiveCluster>> {
        self.slots()
            .values()
            .filter_map(|s| s.cell.get().cloned())
            .collect()
    }

    /// Clusters that are opened from now on.
    pub fn opened(&self) -> broadcast::Receiver<Arc<LiveCluster>> {
        self.shared.opened.subscribe()
    }
}

/// Whether the own cluster's address always means the connection of this process, even for a Secret
/// with a user: as Argo CD reads it, for a controller that runs outside the cluster.
fn is_own_in_cluster() -> bool {
    std::env::var("ARGOCD_FAKE_IN_CLUSTER").is_ok_and(|value| value == "true")
}

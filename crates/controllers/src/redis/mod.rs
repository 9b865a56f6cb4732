//! Writes the state of Applications and clusters to Redis, in the format that Argo CD's servers
//! read, and reads it; keeps what repo-servers share.
//!
//! Main function: [`follow`]; main type: [`Store`]. The function writes what was published since the last write, and everything
//! again after the connection was lost or when values are about to expire or are missing. Nothing
//! waits for it: if Redis is down, Applications are still compared and synced. Main type for API
//! servers: [`Reader`].

mod format;
mod reader;
mod sentinel;
mod store;

pub use format::Format;
pub use reader::{ReadError, Reader};
pub use sentinel::Sentinels;
pub use store::Store;

use crate::metrics::RedisRequests;
use format::{Item, channel};
use redis::{
    AsyncConnectionConfig, FromRedisValue, Pipeline, RedisConnectionInfo, RedisError,
    aio::MultiplexedConnection,
};
use std::{
    collections::{BTreeSet, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    time::Duration,
};
use tiphys_api::cluster::ClusterInfo;
use tiphys_cluster::app_state::{AppKey, AppStates};
use tiphys_repo::{
    Secret,
    net::{self, Tls},
};
use tokio::{
    sync::broadcast::error::RecvError,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::task::AbortOnDropHandle;

/// Timeout of a response.
const PATIENCE: Duration = Duration::from_secs(5);
/// Publications come in bursts; only the last one of an Application matters.
const SETTLE: Duration = Duration::from_millis(50);
/// How often cluster values are written, and sentinels asked.
const CLUSTERS: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The address of Redis and how to write to it.
#[derive(Clone)]
pub struct Place {
    pub server: Server,
    pub db: i64,
    pub login: Login,
    /// The same for sentinels.
    pub tls: Option<Tls>,
    pub format: Format,
}

#[derive(Clone)]
pub enum Server {
    /// A fixed `host:port`.
    At(String),
    /// The master according to these sentinels.
    Known(Sentinels),
}

#[derive(Clone, Default)]
pub struct Login {
    pub username: String,
    pub password: Secret,
}

impl Login {
    fn info(&self) -> RedisConnectionInfo {
        let info = RedisConnectionInfo::default().set_skip_set_lib_name();
        match (self.username.as_str(), self.password.expose()) {
            (_, "") => info,
            ("", password) => info.set_password(password),
            (username, password) => info.set_password(password).set_username(username),
        }
    }
}

impl Place {
    async fn address(&self) -> Result<String, RedisError> {
        match &self.server {
            Server::At(address) => Ok(address.clone()),
            Server::Known(sentinels) => sentinels.ask(self.tls.as_ref()).await,
        }
    }

    /// Fails if another server is the master now. A disconnected old master may still accept writes
    /// that no one reads.
    async fn check(&self, address: &str) -> Result<(), RedisError> {
        let Server::Known(_) = &self.server else {
            return Ok(());
        };
        match self.address().await {
            Ok(now) if now != address => {
                Err(io::Error::other(format!("the master is {now} now")).into())
            }
            // Without sentinels the last known master is used.
            _ => Ok(()),
        }
    }
}

/// The data to write.
pub struct Known {
    pub states: AppStates,
    /// The control plane's namespace.
    pub namespace: String,
    /// Whether the Application exists. If another replica owns it, that one's values are kept.
    pub is_there: IsThere,
    /// The clusters in use, by server.
    pub clusters: InUse,
}

pub type IsThere = Box<dyn Fn(&AppKey) -> bool + Send + Sync>;
pub type InUse = Box<dyn Fn() -> Vec<(String, ClusterInfo)> + Send + Sync>;

/// Writes until cancelled.
pub async fn follow(place: Place, known: Known, metrics: RedisRequests) {
    let mut failures = 0;
    loop {
        let Err(error) = connected(&place, &known, &metrics, &mut failures).await;
        if failures == 0 {
            tracing::warn!(%error, "Redis cannot be written to; others see nothing new of this controller until it can");
        }
        failures += 1;
        sleep(
            Duration::from_millis(250)
                .saturating_mul(1 << failures.min(8))
                .min(LONGEST_PAUSE),
        )
        .await;
    }
}

enum Never {}

/// From a new connection until it is lost.
async fn connected(
    place: &Place,
    known: &Known,
    metrics: &RedisRequests,
    failures: &mut u32,
) -> Result<Never, RedisError> {
    let mut changes = known.states.changes();
    let address = place.address().await?;
    let (connection, _driver) = connect(
        &address,
        place.tls.as_ref(),
        place.login.info().set_db(place.db),
    )
    .await?;
    let mut writer = Writer {
        connection,
        format: &place.format,
        metrics,
        written: HashMap::new(),
    };
    let (mut dirty, mut anew, mut clusters) = (BTreeSet::new(), Instant::now(), Instant::now());
    loop {
        let now = Instant::now();
        if now >= anew {
            // Values expire, and someone may have flushed the server.
            writer.written.clear();
            dirty.extend(known.states.keys());
            anew = now + place.format.keep / 2;
        }
        if now >= clusters {
            place.check(&address).await?;
            for (server, info) in (known.clusters)() {
                writer
                    .put(&[place.format.cluster(&server, &info)], None)
                    .await?;
            }
            clusters = now + CLUSTERS;
        }
        while let Some(app) = dirty.pop_first() {
            writer.application(known, &app).await?;
        }
        if std::mem::take(failures) > 0 {
            tracing::info!("Redis is written to again");
        }
        tokio::select! {
            () = sleep_until(anew.min(clusters)) => {}
            change = changes.recv() => {
                match change {
                    Ok(app) => drop(dirty.insert(app)),
                    Err(RecvError::Lagged(_)) => dirty.extend(known.states.keys()),
                    // Does not happen: `known` holds the states.
                    Err(RecvError::Closed) => anew = Instant::now() + place.format.keep,
                }
                sleep(SETTLE).await;
                while let Ok(app) = changes.try_recv() {
                    dirty.insert(app);
                }
            }
        }
    }
}

/// The connection, and the task that drives it.
async fn connect(
    address: &str,
    tls: Option<&Tls>,
    login: RedisConnectionInfo,
) -> Result<(MultiplexedConnection, AbortOnDropHandle<()>), RedisError> {
    let stream = timeout(PATIENCE, net::dial(address, tls, "")).await;
    let stream = stream.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(PATIENCE));
    let (connection, driver) =
        MultiplexedConnection::new_with_config(&login, stream, config).await?;
    Ok((connection, AbortOnDropHandle::new(tokio::spawn(driver))))
}

struct Writer<'a> {
    connection: MultiplexedConnection,
    format: &'a Format,
    metrics: &'a RedisRequests,
    /// Hashes of the values written over this connection, by key.
    written: HashMap<String, u64>,
}

impl Writer<'_> {
    async fn application(&mut self, known: &Known, app: &AppKey) -> Result<(), RedisError> {
        let instance = app.instance(&known.namespace);
        match known.states.get(app) {
            Some(state) => {
                let items = match state.is_compared() {
                    true => self
                        .format
                        .application(&instance, &state.managed(), &state.tree),
                    // What an earlier process knew of the resources stays.
                    false => self.format.tree(&instance, &state.tree),
                };
                self.put(&items, Some(&channel(&instance))).await
            }
            None if (known.is_there)(app) => Ok(()),
            None => {
                let mut pipe = Pipeline::new();
                let keys = self.format.gone(&instance);
                let commands = [("del", keys.len()), ("publish", 1)];
                for key in keys {
                    self.written.remove(&key);
                    pipe.del(key).ignore();
                }
                pipe.publish(channel(&instance), "").ignore();
                self.send(&pipe, &commands).await
            }
        }
    }

    async fn send<T: FromRedisValue>(
        &mut self,
        pipe: &Pipeline,
        commands: &[(&'static str, usize)],
    ) -> Result<T, RedisError> {
        let begun = Instant::now();
        let answer = pipe.query_async(&mut self.connection).await;
        self.metrics
            .made(commands, answer.is_err(), begun.elapsed());
        answer
    }

    /// Writes the values that changed, extends the lifetime of the others, and notifies
    /// subscribers.
    async fn put(&mut self, items: &[Item], channel: Option<&str>) -> Result<(), RedisError> {
        let mut pipe = Pipeline::new();
        let mut new = Vec::new();
        for item in items {
            let mut hasher = DefaultHasher::new();
            item.value.hash(&mut hasher);
            let (hash, seconds) = (hasher.finish(), item.keep.as_secs());
            if self.written.get(&item.key) == Some(&hash) {
                pipe.expire(&item.key, i64::try_from(seconds).unwrap_or(i64::MAX));
            } else {
                pipe.set_ex(&item.key, &item.value, seconds).ignore();
                new.push((item.key.clone(), hash));
            }
        }
        let told = channel.filter(|_| !new.is_empty());
        if let Some(channel) = told {
            pipe.publish(channel, "").ignore();
        }
        let commands = [
            ("set", new.len()),
            ("expire", items.len() - new.len()),
            ("publish", usize::from(told.is_some())),
        ];
        let still_there: Vec<bool> = self.send(&pipe, &commands).await?;
        if still_there.contains(&false) {
            // The server was flushed: write everything again.
            for item in items {
                self.written.remove(&item.key);
            }
            return Box::pin(self.put(items, channel)).await;
        }
        // Cluster values change over time, so they are always written.
        self.written
            .extend(new.into_iter().filter(|_| channel.is_some()));
        Ok(())
    }
}

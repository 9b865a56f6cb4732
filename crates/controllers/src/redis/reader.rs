//! Reads what a controller has written, and shares ended sessions with other servers of Argo CD.
//! Main type: [`Reader`].

use super::{
    Place, connect,
    format::{announced, channels, joined, pieces},
};
use futures::{StreamExt as _, stream::BoxStream};
use redis::{RedisError, aio::MultiplexedConnection, aio::PubSub, cmd, pipe};
use serde::de::DeserializeOwned;
use std::{
    collections::HashSet,
    io,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};
use tiphys_api::{
    cluster::ClusterInfo,
    resource::{ApplicationTree, ResourceDiff},
};
use tiphys_repo::net;
use tokio::{
    sync::{broadcast, watch},
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::task::AbortOnDropHandle;

/// The keys and the channel of ended sessions.
const REVOKED: &str = "revoked-token|";
const REVOKED_CHANNEL: &str = "new-revoked-token";
/// How often all ended sessions are read again, as by Argo CD.
const RESYNC: Duration = Duration::from_secs(15);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often it is logged that Redis still cannot be read.
const TOLD_AGAIN: Duration = Duration::from_secs(60);
/// Changes that a watcher may be behind before it just reads again.
const CHANGES: usize = 1024;
/// Most ended sessions that are kept in memory.
const MOST_REVOKED: usize = 1_000_000;

/// Redis does not answer, or has something else than expected.
#[derive(Clone, Debug, thiserror::Error)]
#[error("Redis cannot be read: {0}")]
pub struct ReadError(String);

impl From<RedisError> for ReadError {
    fn from(e: RedisError) -> Self {
        Self(e.to_string())
    }
}

impl From<io::Error> for ReadError {
    fn from(e: io::Error) -> Self {
        Self(e.to_string())
    }
}

type Driven = (MultiplexedConnection, Arc<AbortOnDropHandle<()>>);

/// What a controller published, by instance names of Applications. Cheap to clone.
#[derive(Clone)]
pub struct Reader(Arc<Shared>);

struct Shared {
    place: Place,
    connection: Mutex<Option<Driven>>,
    /// The instance that has changed; empty: any may have.
    changes: broadcast::Sender<String>,
    revoked: RwLock<HashSet<String>>,
    /// Whether the connection that listens works.
    is_connected: watch::Sender<bool>,
}

impl Reader {
    /// Reads ended sessions and follows changes as long as the process runs.
    pub fn start(place: Place) -> Self {
        let reader = Self(Arc::new(Shared {
            place,
            connection: Mutex::default(),
            changes: broadcast::Sender::new(CHANGES),
            revoked: RwLock::default(),
            is_connected: watch::Sender::new(false),
        }));
        tokio::spawn(reader.clone().follow());
        reader
    }

    /// The managed resources with their differences.
    ///
    /// # Errors
    /// Redis does not answer, or has something else there.
    pub async fn managed(&self, instance: &str) -> Result<Option<Vec<ResourceDiff>>, ReadError> {
        // A nil slice of Go.
        let read: Option<Option<_>> = self.get(self.format().managed_key(instance)).await?;
        Ok(read.map(Option::unwrap_or_default))
    }

    /// The resource tree, from all of its pieces.
    ///
    /// # Errors
    /// The same, or a piece is missing.
    pub async fn tree(&self, instance: &str) -> Result<Option<ApplicationTree>, ReadError> {
        let first = self.get(self.format().tree_key(instance, 0)).await?;
        let Some(first) = first else {
            return Ok(None);
        };
        let count = pieces(&first)?;
        let mut all = vec![first];
        for shard in 1..count {
            let piece = self.get(self.format().tree_key(instance, shard)).await?;
            let missing = || ReadError(format!("piece {shard} of a tree is missing"));
            all.push(piece.ok_or_else(missing)?);
        }
        Ok(Some(joined(all)))
    }

    /// The tree now, if there is one, and after each change; an error is the last item.
    pub fn watch_tree(
        &self,
        instance: &str,
    ) -> BoxStream<'static, Result<ApplicationTree, ReadError>> {
        // Subscribed before the first read, so that no change in between is missed.
        let changes = self.0.changes.subscribe();
        let watch = (self.clone(), instance.to_owned(), Some(changes), true);
        let next = |(reader, instance, changes, first): (Self, String, Option<_>, bool)| async move {
            let mut changes: broadcast::Receiver<String> = changes?;
            if !first {
                reader.changed(&mut changes, &instance).await?;
            }
            let read = reader.tree(&instance).await.transpose();
            let changes = read.as_ref().is_none_or(Result::is_ok).then_some(changes);
            Some((read, (reader, instance, changes, false)))
        };
        let read = futures::stream::unfold(watch, next);
        read.filter_map(std::future::ready).boxed()
    }

    /// Returns when the Application may have changed; `None`: never again.
    async fn changed(
        &self,
        changes: &mut broadcast::Receiver<String>,
        instance: &str,
    ) -> Option<()> {
        loop {
            match changes.recv().await {
                Ok(changed) if changed.is_empty() || changed == instance => return Some(()),
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => return Some(()),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// What a controller says of a cluster.
    ///
    /// # Errors
    /// Redis does not answer, or has something else there.
    pub async fn cluster(&self, server: &str) -> Result<Option<ClusterInfo>, ReadError> {
        self.get(self.format().cluster_key(server)).await
    }

    /// Whether the session with this id has ended.
    pub fn is_revoked(&self, id: &str) -> bool {
        let revoked = self.0.revoked.read();
        revoked.unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    /// Tells other servers that a session has ended; `seconds` later it would have expired.
    ///
    /// # Errors
    /// Redis does not answer.
    pub async fn revoke(&self, id: &str, seconds: i64) -> Result<(), ReadError> {
        self.remember(id);
        let key = format!("{REVOKED}{id}");
        let mut commands = pipe();
        // What never expires is kept so long that it makes no difference.
        let seconds = u64::try_from(seconds).unwrap_or(1).min(1 << 40);
        commands.set_ex(key, "", seconds).ignore();
        commands.publish(REVOKED_CHANNEL, id).ignore();
        let (mut connection, _driver) = self.connection().await?;
        let sent = commands.query_async::<()>(&mut connection).await;
        Ok(self.checked(sent)?)
    }

    /// Returns once the connection that follows changes works.
    pub async fn connected(&self) {
        let mut is_connected = self.0.is_connected.subscribe();
        // The sender is in here, so this cannot fail.
        let _ = is_connected.wait_for(|is| *is).await;
    }

    fn format(&self) -> &super::Format {
        &self.0.place.format
    }

    fn remember(&self, id: &str) {
        let revoked = self.0.revoked.write();
        let mut revoked = revoked.unwrap_or_else(PoisonError::into_inner);
        if revoked.len() < MOST_REVOKED {
            revoked.insert(id.to_owned());
        }
    }

    /// A value, unpacked off the threads of the network.
    async fn get<T: DeserializeOwned + Send + 'static>(
        &self,
        key: String,
    ) -> Result<Option<T>, ReadError> {
        let (mut connection, _driver) = self.connection().await?;
        let got = cmd("GET").arg(&key).query_async(&mut connection).await;
        let value: Option<Vec<u8>> = self.checked(got)?;
        let Some(value) = value else {
            return Ok(None);
        };
        let format = self.format().clone();
        let read = spawn_blocking(move || format.read(&value)).await;
        let read = read.map_err(|e| ReadError(e.to_string()))?;
        Ok(Some(read.map_err(|e| ReadError(format!("{key}: {e}")))?))
    }

    /// After an error, the next request connects anew.
    fn checked<T>(&self, answer: Result<T, RedisError>) -> Result<T, RedisError> {
        if answer.is_err() {
            *self.slot() = None;
        }
        answer
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Driven>> {
        let slot = self.0.connection.lock();
        slot.unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, with the task that must live as long as it is used: another request may
    /// replace it meanwhile.
    async fn connection(&self) -> Result<Driven, RedisError> {
        if let Some(driven) = &*self.slot() {
            return Ok(driven.clone());
        }
        let place = &self.0.place;
        let address = place.address().await?;
        let login = place.login.info().set_db(place.db);
        let (connection, driver) = connect(&address, place.tls.as_ref(), login).await?;
        let driven = (connection, Arc::new(driver));
        *self.slot() = Some(driven.clone());
        Ok(driven)
    }

    async fn follow(self) {
        let (mut failures, mut told) = (0, None::<Instant>);
        loop {
            let Err(error) = self.listened(&mut failures).await;
            self.0.is_connected.send_replace(false);
            if failures == 0 || told.is_none_or(|at| at.elapsed() >= TOLD_AGAIN) {
                told = Some(Instant::now());
                // Argo CD's words, and as often; it is tried more often than they say.
                tracing::warn!(
                    effect = "trees are not shown until Redis can be read, and sessions that end elsewhere may last",
                    "Failed to resync revoked tokens. retrying again in 1 minute: {error}"
                );
            }
            failures += 1;
            let pause = Duration::from_millis(250).saturating_mul(1 << failures.min(8));
            sleep(pause.min(LONGEST_PAUSE)).await;
        }
    }

    /// From a new connection until it is lost.
    async fn listened(&self, failures: &mut u32) -> Result<super::Never, RedisError> {
        let place = &self.0.place;
        let address = place.address().await?;
        let dialed = timeout(super::PATIENCE, net::dial(&address, place.tls.as_ref(), ""));
        let stream = dialed
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        let mut subscription = PubSub::new(&place.login.info(), stream).await?;
        subscription.psubscribe(channels()).await?;
        subscription.subscribe(REVOKED_CHANNEL).await?;
        self.read_revoked().await?;
        if std::mem::take(failures) > 0 {
            tracing::info!("Redis is read again");
        }
        self.0.is_connected.send_replace(true);
        // Whatever changed meanwhile. An error only means that nobody watches.
        let _ = self.0.changes.send(String::new());
        let (mut messages, mut resync) = (subscription.on_message(), Instant::now() + RESYNC);
        loop {
            tokio::select! {
                () = sleep_until(resync) => {
                    place.check(&address).await?;
                    self.read_revoked().await?;
                    resync = Instant::now() + RESYNC;
                }
                message = messages.next() => {
                    let message = message.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset))?;
                    let channel = message.get_channel_name();
                    if channel == REVOKED_CHANNEL {
                        self.remember(&message.get_payload::<String>()?);
                    } else if let Some(instance) = announced(channel) {
                        let _ = self.0.changes.send(instance.to_owned());
                    }
                }
            }
        }
    }

    /// All ended sessions. Those that are known stay: one that expires meanwhile is refused anyway.
    async fn read_revoked(&self) -> Result<(), RedisError> {
        let (mut connection, _driver) = self.connection().await?;
        let mut cursor = 0u64;
        loop {
            let mut scan = cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(format!("{REVOKED}*"));
            let scanned = scan.arg("COUNT").arg(10_000).query_async(&mut connection);
            let (next, keys): (u64, Vec<String>) = self.checked(scanned.await)?;
            for id in keys.iter().filter_map(|key| key.strip_prefix(REVOKED)) {
                self.remember(id);
            }
            cursor = next;
            if cursor == 0 {
                return Ok(());
            }
        }
    }
}

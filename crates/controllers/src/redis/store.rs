//! Values that several processes share, JSON by names. Main type: [`Store`].
//!
//! Redis is a cache: while it cannot be asked, there are no values, and nobody waits for it longer
//! than for one answer.

use super::{Format, Place, connect};
use crate::metrics::RedisRequests;
use redis::{FromRedisValue, Pipeline, RedisError, aio::MultiplexedConnection};
use std::{io, sync::Arc, time::Duration};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};
use tokio_util::task::AbortOnDropHandle;

/// Longest time until an answer, a new connection included.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_secs(5);
/// Bytes of a value that is read, unpacked.
const LARGEST: u64 = 128 << 20;

/// A Redis, connected when it is first asked. Cheap to clone.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    place: Place,
    metrics: RedisRequests,
    link: Mutex<Link>,
}

/// The connection, and what is known of the last failure.
#[derive(Default)]
struct Link {
    open: Option<(MultiplexedConnection, AbortOnDropHandle<()>)>,
    not_before: Option<Instant>,
}

impl Store {
    pub fn new(place: Place, metrics: RedisRequests) -> Self {
        Self(Arc::new(Inner {
            place,
            metrics,
            link: Mutex::default(),
        }))
    }

    fn format(&self) -> &Format {
        &self.0.place.format
    }

    /// The JSON under a name. `None`: there is none, it cannot be read, or Redis cannot be asked.
    pub async fn get(&self, name: &str) -> Option<Vec<u8>> {
        let mut pipe = Pipeline::new();
        pipe.get(self.format().key(name));
        let (found,): (Option<Vec<u8>>,) = self.ask("get", pipe).await?;
        let (packed, is_packed) = (found?, self.format().compress);
        let unpacked = tokio::task::spawn_blocking(move || {
            if is_packed {
                super::format::gunzip(&packed, LARGEST)
            } else {
                Ok(packed)
            }
        });
        match unpacked.await {
            Ok(Ok(json)) => Some(json),
            Ok(Err(error)) => {
                tracing::warn!(%error, "a value of Redis is not read");
                None
            }
            Err(_) => None,
        }
    }

    /// Keeps JSON under a name.
    pub async fn put(&self, name: &str, json: Vec<u8>, keep: Duration) {
        let is_packed = self.format().compress;
        let packed = tokio::task::spawn_blocking(move || {
            if is_packed {
                super::format::gzip(&json)
            } else {
                json
            }
        });
        let Ok(value) = packed.await else {
            return;
        };
        let mut pipe = Pipeline::new();
        pipe.set_ex(self.format().key(name), value, keep.as_secs().max(1))
            .ignore();
        let _: Option<()> = self.ask("set", pipe).await;
    }

    async fn ask<T: FromRedisValue>(&self, command: &'static str, pipe: Pipeline) -> Option<T> {
        let begun = Instant::now();
        let mut connection = self.connection().await?;
        let answer = timeout(PATIENCE, pipe.query_async(&mut connection)).await;
        let answer = answer.unwrap_or_else(|_| Err(timed_out()));
        let made = [(command, 1)];
        match answer {
            Ok(found) => {
                self.0.metrics.made(&made, false, begun.elapsed());
                Some(found)
            }
            Err(error) => {
                self.0.metrics.made(&made, true, begun.elapsed());
                let mut link = self.0.link.lock().await;
                self.lost(&mut link, &error);
                None
            }
        }
    }

    /// `None`: there is no connection, and it is too early for another attempt. While one request
    /// connects, others do without.
    async fn connection(&self) -> Option<MultiplexedConnection> {
        let mut link = self.0.link.try_lock().ok()?;
        if let Some((connection, _)) = &link.open {
            return Some(connection.clone());
        }
        let now = Instant::now();
        if link.not_before.is_some_and(|not_before| now < not_before) {
            return None;
        }
        let opened = timeout(PATIENCE, self.open()).await;
        match opened.unwrap_or_else(|_| Err(timed_out())) {
            Ok((connection, driver)) => {
                if link.not_before.take().is_some() {
                    tracing::info!("Redis is used again");
                }
                link.open = Some((connection.clone(), driver));
                Some(connection)
            }
            Err(error) => {
                self.lost(&mut link, &error);
                None
            }
        }
    }

    async fn open(&self) -> Result<(MultiplexedConnection, AbortOnDropHandle<()>), RedisError> {
        let place = &self.0.place;
        let address = place.address().await?;
        let login = place.login.info().set_db(place.db);
        connect(&address, place.tls.as_ref(), login).await
    }

    fn lost(&self, link: &mut Link, error: &RedisError) {
        if link.not_before.is_none() {
            tracing::warn!(%error, "Redis cannot be asked; nothing is shared until it can");
        }
        link.open = None;
        link.not_before = Some(Instant::now() + PAUSE);
    }
}

fn timed_out() -> RedisError {
    io::Error::from(io::ErrorKind::TimedOut).into()
}

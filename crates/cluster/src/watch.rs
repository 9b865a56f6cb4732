//! Lists and watches one kind forever: pages, bookmarks, resuming, relisting, back-off.
//!
//! Main types: [`Target`] (what to follow) and [`Sink`] (receives the raw objects). Objects are
//! passed on as bytes; the sink interprets them.

mod peek;

pub use crate::taps::EventKind;
pub(crate) use peek::{metadata_of, version_of};

use crate::{
    connect::Cluster,
    error::{ApiError, Error},
    request::{Call, backoff, open, push_query},
    taps::{Heard, Listener, Tap},
};
use bytes::{Buf, BytesMut};
use futures::StreamExt;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, io::BufRead, sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, broadcast},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// Objects in a page of a list.
const PAGE: &str = "500";
/// Maximum size of an event: etcd stores 1.5 MB, and escaping can double it.
const MAX_EVENT: usize = 16 << 20;
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
/// A watch that ends earlier than this without events was useless.
const FRUITLESS: Duration = Duration::from_secs(30);
/// How often the delay until the next list doubles. The longest delay is shorter than the time for
/// which listed objects count as current.
const MAX_FRUITLESS: u32 = 6;

/// What to follow.
pub struct Target {
    /// The collection's path, such as `/api/v1/pods`.
    pub path: String,
    pub field_selector: String,
    /// Limits concurrent lists, shared between the kinds of a cluster.
    pub lists: Arc<Semaphore>,
    /// Where to forward the events.
    pub tap: Option<Tap>,
}

/// Receives what [`follow`] reads. Calls are in the order of the server's history.
pub trait Sink: Send {
    /// A list begins; until [`Sink::list_done`] its objects are passed to [`Sink::page`].
    fn list_begin(&mut self);
    /// Items of a list, each a whole JSON object (built-in kinds without apiVersion and kind).
    fn page(&mut self, items: &[&RawValue]);
    /// The list was complete at this resourceVersion: any other object is gone.
    fn list_done(&mut self, resource_version: &str);
    fn event(&mut self, kind: EventKind, object: &RawValue);
    /// Whether the state with this resourceVersion is already known and need not be passed on.
    fn knows(&mut self, _resource_version: &str) -> bool {
        false
    }
    /// Everything up to this resourceVersion has been passed on.
    fn position(&mut self, resource_version: &str);
    /// A list or watch failed; it will be retried.
    fn failed(&mut self, error: &Error);
}

/// Follows until cancelled.
pub async fn follow(
    cluster: Cluster,
    target: Target,
    mut sink: impl Sink,
    cancel: CancellationToken,
) {
    tokio::select! {
        () = cancel.cancelled() => {}
        () = follow_for_ever(&cluster, &target, &mut sink) => {}
    }
}

/// Follows until cancelled, using another watch of the same collection as long as there is one.
pub async fn listen(
    cluster: Cluster,
    target: Target,
    mut listener: Listener,
    mut sink: impl Sink,
    cancel: CancellationToken,
) {
    tokio::select! {
        () = cancel.cancelled() => {}
        () = async {
            hear_all(&cluster, &target, &mut listener, &mut sink).await;
            follow_for_ever(&cluster, &target, &mut sink).await;
        } => {}
    }
}

/// Listens until the other watch ends.
async fn hear_all(
    cluster: &Cluster,
    target: &Target,
    listener: &mut Listener,
    sink: &mut impl Sink,
) {
    loop {
        let told = listener.position();
        let listed = list_at_last(cluster, target, sink).await;
        if listed.parse::<u64>().is_ok_and(|listed| listed < told) {
            // This server lags behind the one that serves the other watch.
            tokio::time::sleep(backoff(FIRST_BACKOFF, 0)).await;
            continue;
        }
        loop {
            match listener.heard.recv().await {
                Ok(Heard::Event(kind, object)) => sink.event(kind, &object),
                Ok(Heard::Anew) | Err(broadcast::error::RecvError::Lagged(_)) => break,
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    }
}

async fn follow_for_ever(cluster: &Cluster, target: &Target, sink: &mut impl Sink) {
    let mut fruitless = 0;
    loop {
        let mut position = list_at_last(cluster, target, sink).await;
        let (listed, began) = (position.clone(), Instant::now());
        if let Some(tap) = &target.tap {
            tap.anew(&position);
        }
        let why = watch_from(cluster, target, sink, &mut position).await;
        tracing::debug!(path = %target.path, reason = %why, "listing again");
        if !why.is_gone() {
            sink.failed(&why);
        }
        // A collection that can be listed but not watched is listed again and again, with a delay.
        let is_fruitless = position == listed && began.elapsed() < FRUITLESS;
        fruitless = if is_fruitless {
            MAX_FRUITLESS.min(fruitless + 1)
        } else {
            0
        };
        tokio::time::sleep(backoff(FIRST_BACKOFF, fruitless)).await;
    }
}

/// Lists until it succeeds; returns the resourceVersion to watch from.
async fn list_at_last(cluster: &Cluster, target: &Target, sink: &mut impl Sink) -> String {
    let mut failures = 0;
    loop {
        match list(cluster, target, sink).await {
            Ok(position) => return position,
            Err(error) => {
                sink.failed(&error);
                failures += 1;
                // A kind that does not exist (any more) or is forbidden is retried rarely.
                let base = if error.is_not_found() || error.is_forbidden() {
                    Duration::from_secs(5)
                } else {
                    FIRST_BACKOFF
                };
                tokio::time::sleep(backoff(base, failures)).await;
            }
        }
    }
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ListMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    next: String,
}

/// Lists all pages; returns the resourceVersion to watch from.
async fn list(cluster: &Cluster, target: &Target, sink: &mut impl Sink) -> Result<String, Error> {
    let _turn = target
        .lists
        .acquire()
        .await
        .map_err(|e| Error::transport(format!("GET {}", target.path), e))?;
    sink.list_begin();
    let mut next = String::new();
    loop {
        let call = Call::get(&target.path)
            .query("fieldSelector", &target.field_selector)
            .query("limit", PAGE)
            .query("continue", &next)
            .timeout(Duration::from_secs(120));
        let body = cluster.http().send(&call).await?;
        let page: List<'_> = serde_json::from_slice(&body)
            .map_err(|e| Error::decode(format!("GET {}", target.path), e))?;
        // Something else, such as an answer of a proxy, does not say that nothing is there.
        if page.items.is_none() && !page.kind.ends_with("List") {
            let what = format!("GET {}", target.path);
            return Err(Error::decode(what, "it is not a list"));
        }
        sink.page(page.items.as_deref().unwrap_or_default());
        if page.metadata.next.is_empty() {
            sink.list_done(&page.metadata.resource_version);
            return Ok(page.metadata.resource_version);
        }
        next = page.metadata.next;
        // Yield to other tasks: a large kind is many pages of parsing.
        tokio::task::yield_now().await;
    }
}

/// Watches, resuming where a watch ended, until a new list is required; returns why.
async fn watch_from(
    cluster: &Cluster,
    target: &Target,
    sink: &mut impl Sink,
    position: &mut String,
) -> Error {
    let mut failures = 0;
    loop {
        let before = position.clone();
        match watch(cluster, target, sink, position).await {
            Ok(()) => failures = 0,
            Err(e) if e.is_gone() || matches!(e, Error::Decode { .. }) => return e,
            Err(e) if e.is_not_found() || e.is_forbidden() => return e,
            Err(e) => {
                failures = if *position == before { failures + 1 } else { 0 };
                tracing::debug!(path = %target.path, error = %e, "watch broke");
                if failures > 1 {
                    sink.failed(&e);
                }
                let pause = match &e {
                    Error::Api(a) => a.retry_after.unwrap_or_default(),
                    _ => Duration::ZERO,
                };
                tokio::time::sleep(pause.max(backoff(FIRST_BACKOFF, failures))).await;
            }
        }
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// One watch request; `Ok` is its normal end.
async fn watch(
    cluster: &Cluster,
    target: &Target,
    sink: &mut impl Sink,
    position: &mut String,
) -> Result<(), Error> {
    let lane = cluster.lane()?;
    // Random, so that the watches do not all end at once after five minutes.
    let seconds: u64 = rand::random_range(290..580);
    let mut call = Call::get(&target.path)
        .query("fieldSelector", &target.field_selector)
        .query("resourceVersion", position);
    push_query(&mut call.query, "watch", "true");
    push_query(&mut call.query, "allowWatchBookmarks", "true");
    push_query(&mut call.query, "timeoutSeconds", &seconds.to_string());
    let what = format!("watch {}", target.path);
    let mut stream = open(&lane, &call.timeout(Duration::from_secs(30)))
        .await?
        .into_data_stream();
    let deadline = Instant::now() + Duration::from_secs(seconds + 30);
    let mut buffer = BytesMut::new();
    let mut searched = 0;
    loop {
        let chunk = match tokio::time::timeout_at(deadline, stream.next()).await {
            Ok(Some(chunk)) => chunk.map_err(|e| Error::transport(&what, e))?,
            Ok(None) => return Ok(()),
            Err(_) => {
                return Err(Error::Timeout {
                    what,
                    after: Duration::from_secs(seconds + 30),
                });
            }
        };
        buffer.extend_from_slice(&chunk);
        while let Some(length) = line(&buffer[searched..]) {
            let end = searched + length;
            deliver(&buffer[..end], (sink, target.tap.as_ref()), position, &what)?;
            buffer.advance(end);
            searched = 0;
        }
        searched = buffer.len();
        if searched > MAX_EVENT {
            return Err(Error::decode(
                what,
                format!("an event is longer than {} MiB", MAX_EVENT >> 20),
            ));
        }
    }
}

/// The length of the first line including its end; `None`: the line is incomplete.
fn line(mut text: &[u8]) -> Option<usize> {
    let whole = text;
    let length = text.skip_until(b'\n').expect("memory can be read");
    whole[..length].ends_with(b"\n").then_some(length)
}

fn deliver(
    line: &[u8],
    (sink, tap): (&mut impl Sink, Option<&Tap>),
    position: &mut String,
    what: &str,
) -> Result<(), Error> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(());
    }
    let event: Event<'_> = serde_json::from_slice(line).map_err(|e| Error::decode(what, e))?;
    let kind = match &*event.kind {
        "ADDED" => Some(EventKind::Added),
        "MODIFIED" => Some(EventKind::Modified),
        "DELETED" => Some(EventKind::Deleted),
        "BOOKMARK" => None,
        "ERROR" => {
            let status: serde_json::Value =
                serde_json::from_str(event.object.get()).map_err(|e| Error::decode(what, e))?;
            return Err(Error::Api(ApiError::from_status(500, &status)));
        }
        other => return Err(Error::decode(what, format!("unknown event type {other:?}"))),
    };
    let version = version_of(event.object.get());
    if let Some(kind) = kind {
        let is_echo = kind != EventKind::Deleted
            && version
                .as_deref()
                .is_some_and(|version| sink.knows(version));
        if !is_echo {
            sink.event(kind, event.object);
        }
        if let Some(tap) = tap {
            tap.event(kind, event.object, version.as_deref().unwrap_or_default());
        }
    }
    if let Some(version) = version {
        position.clear();
        position.push_str(&version);
        sink.position(position);
    }
    Ok(())
}

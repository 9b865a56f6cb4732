//! Watches: a stream of JSON lines, one per change. Main function: [`watch`].

use super::negotiate::{self, Form};
use super::selectors::Filter;
use super::{Call, object, table};
use crate::base::Stored;
use crate::catalog::Resource;
use crate::convert;
use crate::registry::{Change, EventType, Registry};
use crate::status::Status;
use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use rand::Rng;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// Changes that are ready together are sent together, up to this size.
const CHUNK: usize = 64 * 1024;

/// Formats changes as lines.
struct Printer {
    registry: Registry,
    resource: Arc<Resource>,
    /// There was an object that the old definition cannot read: nothing is sent any more.
    blind: bool,
    filter: Filter,
    form: Form,
    /// Tables and metadata in v1beta1.
    beta: bool,
    include: table::Include,
    /// A table's column definitions are sent once.
    headed: bool,
}

struct Stream {
    printer: Printer,
    ready: VecDeque<Bytes>,
    changes: mpsc::Receiver<Arc<Change>>,
    bookmarks: bool,
    next_bookmark: Instant,
    /// For the next bookmark or the end. A single timer for all events, because creating one costs
    /// more than sending an event.
    timer: Pin<Box<Sleep>>,
    end: Instant,
    last: u64,
    over: bool,
}

/// A watch requested by the path. Custom kinds ignore the method.
pub fn in_path(call: &Call<'_>) -> Result<Response<Body>, Status> {
    let custom = call.resource.custom.is_some();
    match call.target.subresource.as_deref() {
        Some(name) if custom && call.resource.subresource(name).is_some() => {
            return Err(Status::method_not_allowed(
                &call.resource.group,
                &call.resource.resource,
                "watch",
            ));
        }
        Some(_) if custom => {
            return Err(Status::not_found(
                &call.resource.group,
                &call.resource.resource,
                call.name(),
            ));
        }
        Some(_) => return Err(Status::not_served()),
        None if !call.resource.allows("watch") => return Err(Status::not_served()),
        None if !custom && call.parts.method != http::Method::GET => {
            return Err(Status::not_allowed());
        }
        None => {}
    }
    super::check_media(call, true)?;
    watch(call)
}

pub fn watch(call: &Call<'_>) -> Result<Response<Body>, Status> {
    negotiate::check_stream(&call.parts.headers)?;
    let form = negotiate::form(&call.parts.headers)?;
    // A watch requested only by the path is validated as a list.
    let lists = call.target.watched && !call.query.flag("watch");
    let problems = if lists {
        call.query.list_problems()
    } else {
        call.query.watch_problems()
    };
    let filter = Filter::from_query(&call.query, &call.resource, &problems)?
        .named(call.target.name.as_deref())?;
    let initial = wants_initial_events(call);
    let bookmarks = call.query.flag("allowWatchBookmarks");
    let seconds = call.query.number("timeoutSeconds")?.filter(|s| *s > 0);
    let seconds = seconds.map_or_else(
        || rand::rng().random_range(1800..3600),
        |s| s.unsigned_abs().min(86_400),
    );
    let include = table::Include::from_query(
        call.query
            .get("includeObject")
            .filter(|_| form == Form::Table),
    )?;
    let beta = negotiate::is_beta(&call.parts.headers);
    let (registry, resource) = (call.registry().clone(), call.resource.clone());
    let mut printer = Printer {
        beta,
        registry,
        resource,
        blind: false,
        filter,
        form,
        include,
        headed: false,
    };
    let asked = call.query.get("resourceVersion").unwrap_or("");
    let after = match asked {
        "" | "0" => None,
        text => Some(object::revision(text)?),
    };
    let mut ready = VecDeque::new();
    let namespace = call.target.namespace.as_deref();
    let mut state = call.registry().lock();
    let start = match (initial, after) {
        (true, _) | (false, None) => state.revision,
        (false, Some(after)) => after.min(state.revision),
    };
    let existing = if initial {
        state.list(&call.resource.table, namespace)
    } else {
        Vec::new()
    };
    let followed = state.watch(&call.resource.table, namespace, start);
    drop(state);
    let end = Instant::now() + Duration::from_secs(seconds);
    if let Some(Err(status)) = after
        .filter(|_| initial)
        .map(|after| object::check_not_ahead(call.registry(), after))
    {
        return Ok(respond(Stream::refused(printer, &status, end, start)));
    }
    let (past, changes) = match followed {
        Ok(found) => found,
        Err(too_old) => {
            let status = Status::expired(format!(
                "too old resource version: {start} ({})",
                too_old.oldest
            ));
            return Ok(respond(Stream::refused(printer, &status, end, start)));
        }
    };
    for stored in &existing {
        if printer.filter.matches(stored) {
            ready.extend(printer.event(EventType::Added.word(), stored));
        }
    }
    if initial && bookmarks && call.query.flag("sendInitialEvents") {
        ready.push_back(printer.bookmark(start, true));
    }
    ready.extend(past.iter().filter_map(|change| printer.change(change)));
    Ok(respond(Stream {
        ready,
        ..Stream::new(printer, changes, bookmarks, end, start)
    }))
}

/// Whether the stream begins with the existing objects.
fn wants_initial_events(call: &Call<'_>) -> bool {
    match call.query.has("sendInitialEvents") {
        true => call.query.flag("sendInitialEvents"),
        false => matches!(call.query.get("resourceVersion"), None | Some("0")),
    }
}

fn respond(stream: Stream) -> Response<Body> {
    let body = Body::from_stream(stream::unfold(stream, |mut s| async move {
        let chunk = s.next().await?;
        Some((Ok::<Bytes, Infallible>(chunk), s))
    }));
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl Stream {
    /// A stream with nothing but an error, for a request that was accepted before the error was
    /// found.
    fn refused(printer: Printer, status: &Status, end: Instant, start: u64) -> Self {
        let (_, closed) = mpsc::channel(1);
        let ready = VecDeque::from([line(
            "ERROR",
            &serde_json::to_vec(&status.to_json()).expect("a JSON tree serialises"),
        )]);
        Self {
            ready,
            over: true,
            ..Self::new(printer, closed, false, end, start)
        }
    }

    fn new(
        printer: Printer,
        changes: mpsc::Receiver<Arc<Change>>,
        bookmarks: bool,
        end: Instant,
        last: u64,
    ) -> Self {
        let next_bookmark = Instant::now() + BOOKMARK_EVERY;
        let first = if bookmarks {
            next_bookmark.min(end)
        } else {
            end
        };
        let timer = Box::pin(tokio::time::sleep_until(first));
        Self {
            printer,
            ready: VecDeque::new(),
            changes,
            bookmarks,
            next_bookmark,
            timer,
            end,
            last,
            over: false,
        }
    }

    /// The next piece of the body; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.ready.is_empty() {
                return Some(self.take_ready());
            }
            if self.over {
                return None;
            }
            tokio::select! {
                change = self.changes.recv() => match change {
                    Some(change) => {
                        self.accept(&change);
                        // Other tasks run first, so that changes written meanwhile are sent
                        // together.
                        tokio::task::yield_now().await;
                        while let Ok(change) = self.changes.try_recv() {
                            self.accept(&change);
                        }
                    }
                    // The watcher fell behind or the resource is no longer served: the client lists
                    // again.
                    None => self.over = true,
                },
                () = &mut self.timer => self.on_timer(),
            }
        }
    }

    fn accept(&mut self, change: &Change) {
        self.last = change.revision;
        self.ready.extend(self.printer.change(change));
    }

    fn on_timer(&mut self) {
        // Every change up to this revision is already in the channel, since both happen under one
        // lock.
        let revision = self.printer.registry.revision();
        while let Ok(change) = self.changes.try_recv() {
            self.accept(&change);
        }
        if self.bookmarks && revision >= self.last {
            self.ready.push_back(self.printer.bookmark(revision, false));
        }
        self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
        self.over = Instant::now() >= self.end;
        let next = if self.bookmarks {
            self.next_bookmark.min(self.end)
        } else {
            self.end
        };
        self.timer.as_mut().reset(next);
    }

    fn take_ready(&mut self) -> Bytes {
        let first = self.ready.pop_front().unwrap_or_default();
        if self
            .ready
            .front()
            .is_none_or(|next| first.len() + next.len() > CHUNK)
        {
            return first;
        }
        let mut out = BytesMut::from(first);
        while let Some(next) = self
            .ready
            .front()
            .filter(|next| out.len() + next.len() <= CHUNK)
        {
            out.put_slice(next);
            self.ready.pop_front();
        }
        out.freeze()
    }
}

fn line(word: &str, object: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(object.len() + 40);
    out.put_slice(b"{\"type\":\"");
    out.put_slice(word.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
    out.freeze()
}

impl Printer {
    /// A change as seen through the filter: an object that starts to match is added, one that stops
    /// matching is deleted.
    fn change(&mut self, change: &Change) -> Option<Bytes> {
        let old_definition = self.has_new_definition();
        if old_definition && !self.converts() {
            self.blind |= self.resource.written_as(&change.stored.object()).is_none();
            if self.blind {
                return None;
            }
        }
        let now = self.filter.matches(&change.stored);
        let before = change
            .previous
            .as_ref()
            .is_some_and(|p| self.filter.matches(p));
        let word = match (change.kind, before, now) {
            (EventType::Added, _, true) => "ADDED",
            (EventType::Modified, true, true) => "MODIFIED",
            (EventType::Modified, false, true) => "ADDED",
            (EventType::Modified, true, false) => return self.no_longer(change),
            (EventType::Deleted, true, _) => "DELETED",
            _ => return None,
        };
        let as_kept =
            self.resource.is_storage() && !old_definition && !convert::is_older(&self.resource);
        if word == change.kind.word()
            && matches!(self.form, Form::Object | Form::GroupDiscovery)
            && as_kept
        {
            return Some(
                change
                    .line
                    .get_or_init(|| line(word, &change.stored.bytes))
                    .clone(),
            );
        }
        self.event(word, &change.stored)
    }

    /// Whether the definition of a custom kind has changed since the watch began.
    fn has_new_definition(&self) -> bool {
        let now = || self.registry.resource(&self.resource.gvr());
        self.resource.custom.is_some() && !now().is_ok_and(|now| Arc::ptr_eq(&now, &self.resource))
    }

    fn converts(&self) -> bool {
        self.resource
            .custom
            .as_ref()
            .is_some_and(|custom| custom.conversion.is_some())
    }

    /// The object converted by the definition that the watch began with. None if that definition
    /// does not have its version.
    fn by_old_definition(&self, stored: &Stored) -> Option<Arc<Stored>> {
        let mut object = (*stored.object()).clone();
        if let Some(node) = self.resource.written_as(&object)?.node.as_ref() {
            convert::fit(&mut object, node, true);
        }
        if object.api_version() != self.resource.api_version() {
            convert::rename_version(&self.resource, &mut object);
            if let Some(node) = self
                .resource
                .custom
                .as_ref()
                .and_then(|custom| custom.node.as_ref())
            {
                convert::fit(&mut object, node, false);
            }
        }
        Some(Arc::new(Stored::new(
            &Arc::new(object),
            stored.meta.revision,
        )))
    }

    /// The last matching state, with the revision of the change that ended the match.
    fn no_longer(&mut self, change: &Change) -> Option<Bytes> {
        let previous = change.previous.as_ref().unwrap_or(&change.stored);
        let mut object = (*previous.object()).clone();
        object
            .metadata_mut()
            .insert("resourceVersion".into(), change.revision.to_string().into());
        let object = Arc::new(object);
        self.event("DELETED", &Arc::new(Stored::new(&object, change.revision)))
    }

    fn event(&mut self, word: &str, stored: &Arc<Stored>) -> Option<Bytes> {
        let by_old_definition = !self.converts() && self.has_new_definition();
        let stored = &if by_old_definition {
            self.by_old_definition(stored)?
        } else {
            match self
                .registry
                .as_served(&self.resource, vec![stored.clone()])
            {
                Ok(served) => served.into_iter().next().unwrap_or_else(|| stored.clone()),
                Err(status) => return Some(line("ERROR", &to_bytes(&status.to_json()))),
            }
        };
        Some(match self.form {
            // It is already decoded; decoding it again would add the defaults of a second version.
            Form::Object | Form::GroupDiscovery if by_old_definition => line(word, &stored.bytes),
            Form::Object | Form::GroupDiscovery => {
                line(word, &object::bytes(&self.resource, stored))
            }
            Form::Metadata | Form::MetadataList => line(
                word,
                &self.of_meta(object::metadata_only(&self.resource, &stored.object())),
            ),
            Form::Table => {
                let meta = json!({"resourceVersion": stored.meta.revision.to_string()});
                let rows = std::slice::from_ref(stored);
                let table = table::table(
                    &self.resource,
                    rows,
                    meta,
                    self.include,
                    self.registry.now(),
                );
                let table = self.head_once(table);
                line(word, &self.of_meta(table))
            }
        })
    }

    /// Only the first table of a watch has column definitions.
    fn head_once(&mut self, mut table: Value) -> Value {
        if std::mem::replace(&mut self.headed, true) {
            table["columnDefinitions"] = Value::Null;
        }
        table
    }

    fn bookmark(&mut self, revision: u64, initial_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.form {
            Form::Table => {
                let meta = json!({"resourceVersion": metadata["resourceVersion"]});
                let blank = object::blank(&self.resource, metadata);
                let table = table::of_object(
                    &self.resource,
                    &blank,
                    meta,
                    self.include,
                    self.registry.now(),
                );
                self.head_once(table)
            }
            Form::Metadata | Form::MetadataList => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            _ => object::blank(&self.resource, metadata).into_value(),
        };
        line("BOOKMARK", &self.of_meta(object))
    }

    fn of_meta(&self, value: Value) -> Vec<u8> {
        to_bytes(&negotiate::in_version(self.beta, value))
    }
}

fn to_bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a JSON tree serialises")
}

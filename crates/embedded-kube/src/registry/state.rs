//! The objects in memory: tables, the owner index, watch history and watchers, under one revision
//! counter.
//!
//! Main type: [`State`]. It makes no decision about an object: the caller of [`State::put`] has
//! validated it. It knows no HTTP.

use crate::base::stored::{Stored, bytes_of, table_key};
use crate::catalog::Resource;
use crate::store::Write;
use bytes::Bytes;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, OnceLock};
use tiphys_apimachinery::Object;
use tokio::sync::mpsc;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    Added,
    Modified,
    Deleted,
}

impl EventType {
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// A change as in-process followers see it. `object` is in the storage version; for `Deleted` it is
/// the last state.
#[derive(Clone, Debug)]
pub struct Event {
    pub kind: EventType,
    pub resource: Arc<Resource>,
    pub object: Arc<Object>,
    pub revision: u64,
}

/// A change as watches see it: bytes only.
#[derive(Debug)]
pub struct Change {
    pub kind: EventType,
    pub stored: Arc<Stored>,
    pub previous: Option<Arc<Stored>>,
    pub revision: u64,
    /// The line that most watchers send, made by the first of them.
    pub line: OnceLock<Bytes>,
}

/// How many changes one watcher may fall behind before its stream is ended; the client then lists
/// again.
const WATCHER_BACKLOG: usize = 16_384;
/// How many changes of one resource are kept for watches that start in the past.
const HISTORY: usize = 8_192;

/// All objects of one resource.
#[derive(Default)]
pub struct Table {
    pub items: BTreeMap<String, Arc<Stored>>,
    history: VecDeque<Arc<Change>>,
    /// Changes up to this revision are no longer known.
    floor: u64,
    watchers: Vec<(Option<String>, mpsc::Sender<Arc<Change>>)>,
}

/// Everything, at one revision.
#[derive(Default)]
pub struct State {
    pub revision: u64,
    tables: HashMap<String, Table>,
    /// Where a table that does not exist yet has its floor: the revision the server started with.
    start: u64,
    /// uid -> (table, key)
    uids: HashMap<String, (String, String)>,
    /// owner uid -> what it owns, as (table, key)
    owned: HashMap<String, HashSet<(String, String)>>,
    followers: Vec<mpsc::UnboundedSender<Event>>,
    outbox: Option<std::sync::mpsc::Sender<Write>>,
}

/// A watch asked for changes that are no longer known.
#[derive(Debug, PartialEq, Eq)]
pub struct TooOld {
    pub oldest: u64,
}

impl State {
    pub fn new(revision: u64, outbox: Option<std::sync::mpsc::Sender<Write>>) -> Self {
        Self {
            revision,
            start: revision,
            outbox,
            ..Self::default()
        }
    }

    /// From now on nothing is handed to the store.
    pub fn close(&mut self) {
        self.outbox = None;
    }

    /// Puts an object that was read from the store, without an event.
    pub fn load(&mut self, table: &str, stored: Stored) {
        let key = table_key(&stored.meta.namespace, &stored.meta.name);
        let stored = Arc::new(stored);
        self.index(table, &key, None, Some(&stored));
        self.table_mut(table).items.insert(key, stored);
    }

    pub fn table(&self, table: &str) -> Option<&Table> {
        self.tables.get(table)
    }

    pub fn tables(&self) -> impl Iterator<Item = (&String, &Table)> {
        self.tables.iter()
    }

    fn table_mut(&mut self, table: &str) -> &mut Table {
        let floor = self.start;
        self.tables
            .entry(table.to_owned())
            .or_insert_with(|| Table {
                floor,
                ..Table::default()
            })
    }

    pub fn get(&self, table: &str, namespace: &str, name: &str) -> Option<&Arc<Stored>> {
        self.tables
            .get(table)?
            .items
            .get(&table_key(namespace, name))
    }

    /// The objects of a namespace (all namespaces for `None`), in key order.
    pub fn list(&self, table: &str, namespace: Option<&str>) -> Vec<Arc<Stored>> {
        let Some(table) = self.tables.get(table) else {
            return Vec::new();
        };
        match namespace {
            None => table.items.values().cloned().collect(),
            Some(ns) => {
                let prefix = format!("{ns}/");
                let range = table.items.range(prefix.clone()..);
                range
                    .take_while(|(key, _)| key.starts_with(&prefix))
                    .map(|(_, stored)| stored.clone())
                    .collect()
            }
        }
    }

    /// The same as of a revision. Of the first one nothing is known: there was nothing yet.
    pub fn list_at(
        &self,
        table: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Vec<Arc<Stored>>, TooOld> {
        let (floor, history) = self
            .tables
            .get(table)
            .map_or((self.start, None), |t| (t.floor, Some(&t.history)));
        if revision < floor.max(2) {
            return Err(TooOld { oldest: floor });
        }
        let now = self.list(table, namespace);
        let later = history
            .into_iter()
            .flatten()
            .rev()
            .take_while(|change| change.revision > revision);
        let mut later = later
            .filter(|change| namespace.is_none_or(|ns| ns == change.stored.meta.namespace))
            .peekable();
        if later.peek().is_none() {
            return Ok(now);
        }
        let key = |stored: &Arc<Stored>| table_key(&stored.meta.namespace, &stored.meta.name);
        let mut items: BTreeMap<String, Arc<Stored>> = now
            .into_iter()
            .map(|stored| (key(&stored), stored))
            .collect();
        for change in later {
            match &change.previous {
                Some(previous) => items.insert(key(previous), previous.clone()),
                None => items.remove(&key(&change.stored)),
            };
        }
        Ok(items.into_values().collect())
    }

    /// The object with this uid.
    pub fn by_uid(&self, uid: &str) -> Option<(&str, &Arc<Stored>)> {
        let (table, key) = self.uids.get(uid)?;
        Some((table, self.tables.get(table)?.items.get(key)?))
    }

    /// What names `uid` among its owners, with the table of each.
    pub fn owned_by(&self, uid: &str) -> Vec<(String, Arc<Stored>)> {
        let Some(set) = self.owned.get(uid) else {
            return Vec::new();
        };
        set.iter()
            .filter_map(|(table, key)| {
                Some((
                    table.clone(),
                    self.tables.get(table)?.items.get(key)?.clone(),
                ))
            })
            .collect()
    }

    /// Stores a new version: gives it the next revision, tells the watchers and hands it to the
    /// store.
    pub fn put(&mut self, resource: &Arc<Resource>, object: Object) -> (Arc<Object>, Arc<Stored>) {
        self.put_completed(resource, object, None)
    }

    /// The same for an object with more than a real server's store would hold: `bare`.
    pub fn put_completed(
        &mut self,
        resource: &Arc<Resource>,
        mut object: Object,
        bare: Option<Object>,
    ) -> (Arc<Object>, Arc<Stored>) {
        self.revision += 1;
        let revision = self.revision;
        object
            .metadata_mut()
            .insert("resourceVersion".into(), revision.to_string().into());
        let object = Arc::new(object);
        let mut stored = Stored::new(&object, revision);
        stored.bare = bare.map(|mut bare| {
            bare.metadata_mut()
                .insert("resourceVersion".into(), revision.to_string().into());
            if bare == *object {
                stored.bytes.clone()
            } else {
                bytes_of(&bare)
            }
        });
        let stored = Arc::new(stored);
        let key = table_key(&stored.meta.namespace, &stored.meta.name);
        let previous = self
            .table_mut(&resource.table)
            .items
            .insert(key.clone(), stored.clone());
        self.index(&resource.table, &key, previous.as_ref(), Some(&stored));
        self.hand_over(&resource.table, &stored, Some(stored.bytes.clone()));
        let kind = if previous.is_some() {
            EventType::Modified
        } else {
            EventType::Added
        };
        self.announce(
            resource,
            Change {
                kind,
                stored: stored.clone(),
                previous,
                revision,
                line: OnceLock::new(),
            },
            &object,
        );
        (object, stored)
    }

    /// Takes from the objects of a table, and from what is known of their past, what a real
    /// server's store would not hold: the schemas of now say what is filled in.
    pub fn lay_bare(&mut self, table: &str) {
        let Some(table) = self.tables.get_mut(table) else {
            return;
        };
        let bare = |stored: &Arc<Stored>| {
            stored
                .bare
                .clone()
                .and_then(|bare| Stored::from_bytes(bare).ok())
                .map(Arc::new)
        };
        for stored in table.items.values_mut() {
            *stored = bare(stored).unwrap_or_else(|| stored.clone());
        }
        for change in &mut table.history {
            let (now, before) = (
                bare(&change.stored),
                change.previous.as_ref().and_then(bare),
            );
            if now.is_some() || before.is_some() {
                let (stored, previous) = (
                    now.unwrap_or_else(|| change.stored.clone()),
                    before.or_else(|| change.previous.clone()),
                );
                *change = Arc::new(Change {
                    kind: change.kind,
                    stored,
                    previous,
                    revision: change.revision,
                    line: OnceLock::new(),
                });
            }
        }
    }

    /// Removes an object. The event carries `last`, which has the revision of the removal.
    pub fn remove(
        &mut self,
        resource: &Arc<Resource>,
        mut last: Object,
    ) -> (Arc<Object>, Arc<Stored>) {
        self.revision += 1;
        let revision = self.revision;
        last.metadata_mut()
            .insert("resourceVersion".into(), revision.to_string().into());
        let object = Arc::new(last);
        let stored = Arc::new(Stored::new(&object, revision));
        let key = table_key(&stored.meta.namespace, &stored.meta.name);
        let previous = self.table_mut(&resource.table).items.remove(&key);
        self.index(&resource.table, &key, previous.as_ref(), None);
        self.hand_over(&resource.table, &stored, None);
        self.announce(
            resource,
            Change {
                kind: EventType::Deleted,
                stored: stored.clone(),
                previous,
                revision,
                line: OnceLock::new(),
            },
            &object,
        );
        (object, stored)
    }

    fn index(
        &mut self,
        table: &str,
        key: &str,
        old: Option<&Arc<Stored>>,
        new: Option<&Arc<Stored>>,
    ) {
        let here = || (table.to_owned(), key.to_owned());
        if let Some(old) = old {
            if new.is_none_or(|n| n.meta.uid != old.meta.uid) {
                self.uids.remove(&old.meta.uid);
            }
            for owner in old
                .meta
                .owners
                .iter()
                .filter(|o| new.is_none_or(|n| !n.meta.owners.contains(o)))
            {
                if let Some(set) = self.owned.get_mut(owner) {
                    set.remove(&here());
                    if set.is_empty() {
                        self.owned.remove(owner);
                    }
                }
            }
        }
        if let Some(new) = new {
            if old.is_none_or(|o| o.meta.uid != new.meta.uid) {
                self.uids.insert(new.meta.uid.clone(), here());
            }
            for owner in new
                .meta
                .owners
                .iter()
                .filter(|o| old.is_none_or(|old| !old.meta.owners.contains(o)))
            {
                self.owned.entry(owner.clone()).or_default().insert(here());
            }
        }
    }

    fn hand_over(&mut self, table: &str, stored: &Stored, value: Option<Bytes>) {
        if let Some(outbox) = &self.outbox {
            let key = format!("{table}/{}/{}", stored.meta.namespace, stored.meta.name);
            // The receiver only goes away at shutdown, when nobody waits for an answer any more.
            let _ = outbox.send(Write {
                key,
                value,
                revision: stored.meta.revision,
            });
        }
    }

    fn announce(&mut self, resource: &Arc<Resource>, change: Change, object: &Arc<Object>) {
        let event = Event {
            kind: change.kind,
            resource: resource.clone(),
            object: object.clone(),
            revision: change.revision,
        };
        self.followers.retain(|f| f.send(event.clone()).is_ok());
        let change = Arc::new(change);
        let table = self.table_mut(&resource.table);
        table.watchers.retain(|(namespace, sender)| {
            let wanted = namespace
                .as_deref()
                .is_none_or(|ns| ns == change.stored.meta.namespace);
            !sender.is_closed() && (!wanted || sender.try_send(change.clone()).is_ok())
        });
        table.history.push_back(change);
        if table.history.len() > HISTORY {
            table.floor = table
                .history
                .pop_front()
                .map_or(table.floor, |old| old.revision);
        }
    }

    /// Every change of every resource from now on.
    pub fn follow(&mut self) -> mpsc::UnboundedReceiver<Event> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.followers.push(sender);
        receiver
    }

    /// The changes after `after` that are known, and a channel with the coming ones.
    #[allow(clippy::type_complexity)]
    pub fn watch(
        &mut self,
        table: &str,
        namespace: Option<&str>,
        after: u64,
    ) -> Result<(Vec<Arc<Change>>, mpsc::Receiver<Arc<Change>>), TooOld> {
        let table = self.table_mut(table);
        if after < table.floor {
            return Err(TooOld {
                oldest: table.floor,
            });
        }
        let start = table.history.partition_point(|c| c.revision <= after);
        let wanted = |c: &&Arc<Change>| namespace.is_none_or(|ns| ns == c.stored.meta.namespace);
        let past = table
            .history
            .iter()
            .skip(start)
            .filter(wanted)
            .cloned()
            .collect();
        let (sender, receiver) = mpsc::channel(WATCHER_BACKLOG);
        table.watchers.push((namespace.map(str::to_owned), sender));
        Ok((past, receiver))
    }

    /// Ends every watch of a resource that is no longer served.
    pub fn drop_watchers(&mut self, table: &str) {
        if let Some(table) = self.tables.get_mut(table) {
            table.watchers.clear();
        }
    }
}

/// The string at `metadata.<field>` of a JSON object.
pub fn metadata_str<'a>(value: &'a Value, field: &str) -> &'a str {
    value
        .get("metadata")
        .and_then(|m| m.get(field))
        .and_then(Value::as_str)
        .unwrap_or("")
}

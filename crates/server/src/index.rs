//! The latest known Applications and their changes, which List and Watch read. [`Index`] follows
//! the store's watch and applies our own writes immediately, so that a caller sees what it just
//! did.

mod forms;
mod history;
mod marks;

pub use forms::Listed;

use crate::ports::{Store, StoreEvent};
use forms::Kept;
use futures::StreamExt as _;
use history::History;
use marks::Marks;
use std::{
    collections::{BTreeMap, VecDeque},
    hash::RandomState,
    ops::Bound,
    sync::{Arc, RwLock},
    time::Duration,
};
use tiphys_api::Application;
use tokio::sync::{broadcast, watch};

const BUFFERED_EVENTS: usize = 2048;
/// How many deletions are remembered, for watches that go on where another one ended.
const REMEMBERED: usize = 256;
/// After so long without a list, what lists have encoded is forgotten.
const IDLE: Duration = Duration::from_secs(300);

/// How an Application changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One change; for a deletion, the last state of the Application.
#[derive(Clone, Debug)]
pub struct AppEvent {
    pub change: Change,
    pub app: Arc<Application>,
    /// Its place among the changes that are sent.
    pub at: u64,
}

/// Name and namespace: what lists are sorted by.
pub type Place = (String, String);

/// What part of a sorted list is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// It begins after this.
    pub after: Option<Place>,
    /// The most that it has.
    pub limit: usize,
}

/// A part of a list.
pub struct Page<T> {
    pub items: Vec<T>,
    /// How many the list has after it.
    pub left: usize,
    /// The resource version of the list.
    pub version: u64,
}

/// All Applications at one place among the changes.
pub struct Moment {
    pub apps: Vec<Arc<Application>>,
    pub at: u64,
}

#[derive(Default)]
struct Known {
    apps: BTreeMap<Place, Listed>,
    /// The highest version that the watch has delivered.
    version: u64,
    /// With which version those came that the first list did not have.
    came: BTreeMap<Place, u64>,
    /// The last deletions.
    gone: VecDeque<Gone>,
    history: History,
}

struct Gone {
    /// A list with this version, or a later one, does not have the Application.
    at: u64,
    app: Arc<Application>,
}

impl Known {
    /// The version of a list of all Applications.
    fn list_version(&self) -> u64 {
        // Where several namespaces are watched there is no version of all of them.
        match self.version {
            0 => self
                .apps
                .values()
                .map(|listed| version(listed.app()))
                .max()
                .unwrap_or_default(),
            known => known,
        }
    }

    fn all(&self) -> Vec<Arc<Application>> {
        self.apps
            .values()
            .map(|listed| listed.app().clone())
            .collect()
    }

    fn moment(&self) -> Moment {
        Moment {
            apps: self.all(),
            at: self.history.place(),
        }
    }

    /// Remembers a deletion; `before` is the version that lists had until then.
    fn remember(&mut self, app: Arc<Application>, before: u64) {
        // A deletion may be known before its version is.
        let at = self.list_version().max(before.saturating_add(1));
        if self.gone.len() >= REMEMBERED {
            self.gone.pop_front();
        }
        self.came.remove(&key(&app));
        self.gone.push_back(Gone { at, app });
    }
}

pub struct Index {
    known: RwLock<Known>,
    events: broadcast::Sender<AppEvent>,
    ready: watch::Sender<bool>,
    /// Another one in each process.
    keyed: RandomState,
    kept: Arc<Kept>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            known: RwLock::default(),
            events: broadcast::Sender::new(BUFFERED_EVENTS),
            ready: watch::Sender::new(false),
            keyed: RandomState::new(),
            kept: Arc::default(),
        }
    }
}

impl Index {
    /// Follows the store forever.
    pub async fn follow(&self, store: &dyn Store) {
        let mut events = store.watch_apps();
        let mut idle = tokio::time::interval(IDLE);
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => self.apply(event),
                    None => return,
                },
                _ = idle.tick() => self.forget_unused(),
            }
        }
    }

    /// Forgets what lists have encoded, if there was no list since this was last called.
    fn forget_unused(&self) {
        if !self.kept.is_idle() {
            return;
        }
        let known = self
            .known
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        known.apps.values().for_each(Listed::forget);
    }

    /// Returns once the first list has been received.
    pub async fn ready(&self) {
        // An error means that the sender was dropped, but `self` holds it.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    pub fn subscribe(&self) -> broadcast::Receiver<AppEvent> {
        self.events.subscribe()
    }

    /// All Applications sorted by their places, and the resource version of the list.
    pub fn all(&self) -> (Vec<Arc<Application>>, u64) {
        let known = self
            .known
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        (known.all(), known.list_version())
    }

    /// A part of the list of those that are wanted, to be sent. Of the others in it nothing is
    /// copied, however many there are. `labels`: those that all have which are wanted; what has
    /// others is mostly not asked about.
    pub fn page(
        &self,
        part: &Part,
        labels: &[(&str, &str)],
        mut wanted: impl FnMut(&Application) -> bool,
    ) -> Page<Listed> {
        self.kept.uses();
        let marks = Marks::of(&self.keyed, labels.iter().copied());
        let known = self
            .known
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let begin = match &part.after {
            Some(place) => Bound::Excluded(place.clone()),
            None => Bound::Unbounded,
        };
        let (mut items, mut left) = (Vec::new(), 0);
        for (_, listed) in known.apps.range::<Place, _>((begin, Bound::Unbounded)) {
            if !listed.marks().may_have(marks) || !wanted(listed.app()) {
                continue;
            }
            if items.len() < part.limit {
                items.push(listed.clone());
            } else {
                left += 1;
            }
        }
        Page {
            items,
            left,
            version: known.list_version(),
        }
    }

    /// All Applications. From now on it is remembered what they were before each change.
    pub fn moment(&self) -> Moment {
        {
            let known = self
                .known
                .read()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            if known.history.is_kept() {
                return known.moment();
            }
        }
        // The first one alone keeps the others from reading.
        let mut known = self
            .known
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        known.history.keep();
        known.moment()
    }

    /// All Applications as they were at a place, if that is still remembered.
    pub fn at(&self, place: u64) -> Option<Vec<Arc<Application>>> {
        let known = self
            .known
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let changed = known.history.at(place)?;
        let same = known
            .apps
            .iter()
            .filter(|(key, _)| !changed.contains_key(*key));
        let same = same.map(|(_, listed)| listed.app().clone());
        Some(same.chain(changed.values().flatten().cloned()).collect())
    }

    /// Hashes of this are nobody else's: not those of another process, either.
    pub fn keyed(&self) -> &RandomState {
        &self.keyed
    }

    /// What a client may not know that has seen everything up to a version: the deletions that are
    /// remembered, and the Applications that came or changed. Clients resume with the version of
    /// their list, so they may also know what came after it: its deletion is told too.
    pub fn since(&self, since: u64) -> Vec<(Change, Arc<Application>)> {
        let known = self
            .known
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let gone = known.gone.iter().filter(|gone| gone.at > since);
        let deleted = gone.map(|gone| (Change::Deleted, gone.app.clone()));
        let apps = known.apps.iter().map(|(key, listed)| (key, listed.app()));
        let there = apps.filter(|(_, app)| version(app) > since);
        let changed = there.map(|(key, app)| {
            let change = match known.came.get(key).is_some_and(|came| *came > since) {
                true => Change::Added,
                false => Change::Modified,
            };
            (change, app.clone())
        });
        deleted.chain(changed).collect()
    }

    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<Application>> {
        let known = self
            .known
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        known
            .apps
            .get(&(name.to_owned(), namespace.to_owned()))
            .map(|listed| listed.app().clone())
    }

    /// Applies the result of one of our own writes.
    pub fn wrote(&self, app: &Application) {
        let mut known = self
            .known
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // Otherwise the watch is already past this version, and may even have seen the deletion.
        if version(app) > known.version {
            self.put(&mut known, Arc::new(app.clone()));
        }
    }

    fn apply(&self, event: StoreEvent) {
        let mut known = self
            .known
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            StoreEvent::Reset {
                items,
                resource_version,
            } => {
                let before = known.list_version();
                known.version = known.version.max(resource_version.parse().unwrap_or(0));
                let listed: BTreeMap<_, _> =
                    items.into_iter().map(|app| (key(&app), app)).collect();
                let gone: Vec<_> = known
                    .apps
                    .keys()
                    .filter(|k| !listed.contains_key(k))
                    .cloned()
                    .collect();
                for key in &gone {
                    if let Some(last) = known.apps.remove(key) {
                        let app = last.app().clone();
                        known.remember(app.clone(), before);
                        self.send(&mut known, Change::Deleted, app.clone(), Some(app));
                    }
                }
                for (_, app) in listed {
                    self.put(&mut known, app);
                }
                if !self.is_ready() {
                    known.came.clear();
                }
                self.ready.send_replace(true);
            }
            StoreEvent::Changed(app) => {
                known.version = known.version.max(version(&app));
                self.put(&mut known, app);
            }
            StoreEvent::Deleted(app) => {
                let before = known.list_version();
                known.version = known.version.max(version(&app));
                let outdated = known
                    .apps
                    .get(&key(&app))
                    .is_some_and(|have| have.app().metadata.uid != app.metadata.uid);
                if outdated {
                    return;
                }
                if let Some(last) = known.apps.remove(&key(&app)) {
                    known.remember(app.clone(), before);
                    self.send(&mut known, Change::Deleted, app, Some(last.app().clone()));
                }
            }
        }
    }

    fn put(&self, known: &mut Known, app: Arc<Application>) {
        let before = known.apps.get(&key(&app));
        if before.is_some_and(|have| version(have.app()) >= version(&app)) {
            return;
        }
        let change = if before.is_some() {
            Change::Modified
        } else {
            known.came.insert(key(&app), version(&app));
            Change::Added
        };
        let labels = app.metadata.labels.iter();
        let labels = labels.map(|(key, value)| (key.as_str(), value.as_str()));
        let marks = Marks::of(&self.keyed, labels);
        let listed = Listed::new(app.clone(), marks, &self.kept);
        let before = known.apps.insert(key(&app), listed);
        self.send(
            known,
            change,
            app,
            before.map(|before| before.app().clone()),
        );
    }

    /// `before` is the state that the change replaces.
    fn send(
        &self,
        known: &mut Known,
        change: Change,
        app: Arc<Application>,
        before: Option<Arc<Application>>,
    ) {
        let at = known.history.record(key(&app), before);
        // There may be no receivers.
        let _ = self.events.send(AppEvent { change, app, at });
    }
}

fn key(app: &Application) -> Place {
    (app.metadata.name.clone(), app.metadata.namespace.clone())
}

/// Resource versions are numbers in all known Kubernetes versions; anything else counts as the
/// oldest.
pub fn version(app: &Application) -> u64 {
    app.metadata.resource_version.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn app(name: &str, uid: &str, version: u64) -> Application {
        let mut app = Application::default();
        (
            app.metadata.name,
            app.metadata.uid,
            app.metadata.resource_version,
        ) = (name.into(), uid.into(), version.to_string());
        app
    }

    fn drain(events: &mut broadcast::Receiver<AppEvent>) -> Vec<String> {
        std::iter::from_fn(|| events.try_recv().ok())
            .map(|e| format!("{} {}", e.change.word(), e.app.metadata.name))
            .collect()
    }

    #[test]
    fn what_was_at_a_place_can_be_found_out() {
        let index = Index::default();
        let changed = |name: &str, uid: &str, version: u64| {
            index.apply(StoreEvent::Changed(Arc::new(app(name, uid, version))));
        };
        let versions = |apps: Vec<Arc<Application>>| {
            let version = |app: &Arc<Application>| {
                format!("{} {}", app.metadata.name, app.metadata.resource_version)
            };
            apps.iter().map(version).collect::<BTreeSet<_>>()
        };
        let of = |texts: &[&str]| {
            texts
                .iter()
                .map(|t| (*t).to_owned())
                .collect::<BTreeSet<_>>()
        };
        changed("a", "1", 1);
        assert!(index.at(0).is_none(), "nobody has asked before");
        changed("b", "2", 2);
        let place = index.moment().at;
        changed("a", "1", 3);
        changed("c", "3", 4);
        index.apply(StoreEvent::Deleted(Arc::new(app("b", "2", 5))));
        changed("b", "4", 6);
        let then = index.at(place).expect("it is remembered");
        assert_eq!(versions(then), of(&["a 1", "b 2"]));
        let now = index.moment();
        assert_eq!(now.at, place + 4);
        assert_eq!(versions(now.apps), of(&["a 3", "b 6", "c 4"]));
        assert_eq!(
            index.at(now.at).map(versions),
            Some(of(&["a 3", "b 6", "c 4"]))
        );
        assert!(index.at(now.at + 1).is_none());
    }

    #[test]
    fn own_writes_are_seen_at_once_and_only_once() {
        let index = Index::default();
        let mut events = index.subscribe();
        index.apply(StoreEvent::Reset {
            items: vec![app("a", "1", 5).into()],
            resource_version: "7".into(),
        });
        index.wrote(&app("b", "2", 8));
        index.apply(StoreEvent::Changed(Arc::new(app("b", "2", 8))));
        assert_eq!(drain(&mut events), ["ADDED a", "ADDED b"]);
    }

    #[test]
    fn a_late_own_write_does_not_bring_back_the_deleted() {
        let index = Index::default();
        index.apply(StoreEvent::Changed(Arc::new(app("a", "1", 5))));
        index.apply(StoreEvent::Deleted(Arc::new(app("a", "1", 9))));
        index.wrote(&app("a", "1", 8));
        assert!(index.all().0.is_empty());
        assert_eq!(index.all().1, 9);
    }

    #[test]
    fn a_new_list_tells_what_was_missed() {
        let index = Index::default();
        index.apply(StoreEvent::Reset {
            items: vec![app("a", "1", 1).into(), app("b", "2", 2).into()],
            resource_version: "2".into(),
        });
        let mut events = index.subscribe();
        index.apply(StoreEvent::Reset {
            items: vec![app("b", "2", 4).into(), app("c", "3", 5).into()],
            resource_version: "5".into(),
        });
        assert_eq!(drain(&mut events), ["DELETED a", "MODIFIED b", "ADDED c"]);
    }

    #[test]
    fn who_has_seen_a_version_is_told_what_came_after_it() {
        let index = Index::default();
        index.apply(StoreEvent::Reset {
            items: vec![
                app("a", "a", 1).into(),
                app("b", "b", 1).into(),
                app("c", "c", 1).into(),
            ],
            resource_version: "3".into(),
        });
        let since = |version: u64| -> Vec<String> {
            let events = index.since(version).into_iter();
            events
                .map(|(change, app)| format!("{} {}", change.word(), app.metadata.name))
                .collect()
        };
        assert!(since(3).is_empty());
        index.apply(StoreEvent::Changed(Arc::new(app("b", "b", 4))));
        index.apply(StoreEvent::Changed(Arc::new(app("d", "d", 5))));
        index.apply(StoreEvent::Changed(Arc::new(app("e", "e", 6))));
        // The version of the deletion is not known, or only with the next list.
        index.apply(StoreEvent::Deleted(Arc::new(app("a", "a", 1))));
        index.apply(StoreEvent::Deleted(Arc::new(app("e", "e", 8))));
        // A watch that began with the list at version 3 may have told of "e", too.
        assert_eq!(
            since(3),
            ["DELETED a", "DELETED e", "MODIFIED b", "ADDED d"]
        );
        assert_eq!(since(6), ["DELETED a", "DELETED e"]);
        assert!(since(8).is_empty());
        index.apply(StoreEvent::Reset {
            items: vec![app("b", "b", 4).into(), app("d", "d", 9).into()],
            resource_version: "10".into(),
        });
        assert_eq!(since(8), ["DELETED c", "MODIFIED d"]);
        assert!(since(10).is_empty());
    }

    #[test]
    fn a_list_by_a_label_looks_at_few_others() {
        let index = Index::default();
        for n in 0..100 {
            let mut app = app(&format!("app-{n:02}"), "", n + 1);
            let page = (n / 10).to_string();
            app.metadata.labels.insert("page".to_owned(), page);
            index.wrote(&app);
        }
        let part = Part {
            after: Some(("app-33".to_owned(), String::new())),
            limit: 4,
        };
        let mut looked = 0;
        let page = index.page(&part, &[("page", "3")], |app| {
            looked += 1;
            app.metadata.labels["page"] == "3"
        });
        let names = page.items.iter().map(|item| &*item.app().metadata.name);
        let names: Vec<&str> = names.collect();
        assert_eq!(names, ["app-34", "app-35", "app-36", "app-37"]);
        assert_eq!((page.left, page.version), (2, 100));
        assert!(looked < 66, "{looked}");
    }

    #[test]
    fn deletions_are_forgotten_in_the_end() {
        let index = Index::default();
        for n in 0..2 * REMEMBERED as u64 {
            let name = format!("app-{n}");
            index.apply(StoreEvent::Changed(Arc::new(app(&name, &name, 1))));
            index.apply(StoreEvent::Deleted(Arc::new(app(&name, &name, n + 2))));
        }
        assert_eq!(index.since(1).len(), REMEMBERED);
    }
}

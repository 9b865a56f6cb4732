//! What Applications were before their last changes, for watches that send only changes and go on
//! where another one ended. There is one for the whole server, however many watch.
//!
//! Main type: [`History`].

use prost::Message as _;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use tiphys_api::Application;

const MAX_STATES: usize = 4096;
/// Of the states as they are encoded; in memory they take a few times as much.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// What a state takes besides the Application.
const OVERHEAD: usize = 128;

/// Name and namespace.
type Key = (String, String);

pub(super) struct History {
    /// How many changes there were.
    place: u64,
    /// The first place that is still known; none while nobody has asked for one.
    first: Option<u64>,
    states: VecDeque<State>,
    bytes: usize,
    max_bytes: usize,
}

/// What an Application was before a change.
struct State {
    /// The place of the change.
    at: u64,
    key: Key,
    app: Option<Arc<Application>>,
    bytes: usize,
}

impl Default for History {
    fn default() -> Self {
        Self {
            place: 0,
            first: None,
            states: VecDeque::new(),
            bytes: 0,
            max_bytes: MAX_BYTES,
        }
    }
}

impl History {
    /// The place of the last change.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// Remembers what is recorded from now on.
    pub fn keep(&mut self) {
        self.first.get_or_insert(self.place);
    }

    /// Whether anything is remembered.
    pub fn is_kept(&self) -> bool {
        self.first.is_some()
    }

    /// Counts a change of an Application and returns its place.
    pub fn record(&mut self, key: Key, before: Option<Arc<Application>>) -> u64 {
        self.place += 1;
        if self.first.is_none() {
            return self.place;
        }
        let bytes = OVERHEAD + before.as_ref().map_or(0, |app| app.encoded_len());
        self.bytes += bytes;
        self.states.push_back(State {
            at: self.place,
            key,
            app: before,
            bytes,
        });
        while self.states.len() > MAX_STATES || self.bytes > self.max_bytes {
            let Some(forgotten) = self.states.pop_front() else {
                break;
            };
            self.bytes -= forgotten.bytes;
            self.first = Some(forgotten.at);
        }
        self.place
    }

    /// The Applications that have changed since a place, as they were then: none where there was
    /// none. Nothing at all if the place is not known.
    pub fn at(&self, place: u64) -> Option<BTreeMap<Key, Option<Arc<Application>>>> {
        if place > self.place || place < self.first? {
            return None;
        }
        let from = self.states.partition_point(|state| state.at <= place);
        let mut then = BTreeMap::new();
        for state in self.states.range(from..) {
            then.entry(state.key.clone())
                .or_insert_with(|| state.app.clone());
        }
        Some(then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        ("argocd".to_owned(), name.to_owned())
    }

    fn state(version: &str) -> Option<Arc<Application>> {
        let mut app = Application::default();
        app.metadata.resource_version = version.to_owned();
        Some(Arc::new(app))
    }

    fn versions(history: &History, place: u64) -> Option<Vec<(String, String)>> {
        let then = history.at(place)?;
        let version = |app: Option<Arc<Application>>| {
            app.map_or("-".to_owned(), |app| app.metadata.resource_version.clone())
        };
        Some(
            then.into_iter()
                .map(|((_, name), app)| (name, version(app)))
                .collect(),
        )
    }

    #[test]
    fn what_was_is_known_as_far_as_it_is_kept() {
        let mut history = History::default();
        history.record(key("a"), None);
        assert_eq!(versions(&history, 1), None, "nobody has asked yet");
        history.keep();
        history.record(key("a"), state("1"));
        history.record(key("b"), None);
        history.record(key("a"), state("2"));
        let pair = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        assert_eq!(versions(&history, 0), None);
        assert_eq!(
            versions(&history, 1),
            Some(vec![pair("a", "1"), pair("b", "-")])
        );
        assert_eq!(versions(&history, 3), Some(vec![pair("a", "2")]));
        assert_eq!(versions(&history, 4), Some(vec![]));
        assert_eq!(versions(&history, 5), None, "it is of another server");
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut history = History {
            max_bytes: 3 * OVERHEAD,
            ..History::default()
        };
        history.keep();
        for _ in 0..5 {
            history.record(key("a"), None);
        }
        assert_eq!((history.states.len(), history.bytes), (3, 3 * OVERHEAD));
        assert_eq!(versions(&history, 1), None);
        assert!(versions(&history, 2).is_some());
        history.max_bytes = usize::MAX;
        for _ in 0..2 * MAX_STATES {
            history.record(key("a"), None);
        }
        assert_eq!(history.states.len(), MAX_STATES);
    }
}

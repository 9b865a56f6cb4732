//! A watch that sends only what changes: first all Applications, then of each change the parts of
//! the Application that differ. Main function: [`watch`].
//!
//! Each event says with which token another watch goes on after it. A token is a place among the
//! changes of this server, and a hash of the names that the client knew there. Going on, the server
//! finds out what these Applications were at that place. If it no longer knows, or if the names are
//! others because policies or the query have changed, the client is told to begin again.

use super::{read::Filter, with_health};
use crate::{
    ApiError, Code,
    access::{AllChanges, Authorized, Get, Guard},
    index::Change,
    state::State,
};
use futures::{StreamExt as _, stream::BoxStream};
use prost::Message as _;
use std::{
    collections::{BTreeMap, VecDeque},
    hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};
use tiphys_api::{
    Application,
    application::{
        ApplicationDelta, ApplicationWatchEvent,
        watch_event::{self, changed},
    },
};
use tiphys_rpc::heavy;
use tokio::{
    sync::broadcast::error::RecvError,
    time::{Instant, timeout},
};

/// Roles of projects change without a sign: after this time, what may be seen is looked at again.
const RECHECK: Duration = Duration::from_secs(60);
/// After so many changes of which the client was told nothing, it gets a newer token.
const UNTOLD: u64 = 256;
/// Two states with more bytes, as they are encoded, are compared where that holds up no other
/// caller.
const LARGE: usize = 64 * 1024;
const BOOKMARK: &str = "BOOKMARK";
const EXPIRED: &str = "EXPIRED";
const RESOURCES: &str = "status.resources";

/// Namespace and name.
type Key = (String, String);
type SeenApp = Authorized<Arc<Application>, Get>;
type Event = Result<ApplicationWatchEvent, ApiError>;

/// What the client knows of an Application.
struct Told {
    app: SeenApp,
    /// The health of its resources, which is not in the record; `None` if it is not known what the
    /// client knows of it.
    health: Option<u64>,
}

enum Step {
    /// What the client knew is of no use.
    Expired,
    /// The client knows everything now.
    Place,
    /// `None`: it is gone, or the client may not see it any more.
    App(Key, Option<SeenApp>),
}

struct Deltas {
    state: Arc<State>,
    filter: Filter,
    guard: Guard,
    changes: AllChanges,
    told: BTreeMap<Key, Told>,
    /// The hashes of the keys of `told`, together.
    names: u64,
    pending: VecDeque<Step>,
    /// After `pending`, the client knows all changes up to this place.
    at: u64,
    /// The place of the last token.
    given: u64,
    policy: u64,
    checked: Instant,
}

/// The Applications must have been listed.
///
/// # Errors
/// If the text of `resume` is no token at all.
pub(super) async fn watch(
    state: Arc<State>,
    guard: Guard,
    filter: Filter,
    resume: &str,
) -> Result<BoxStream<'static, Event>, ApiError> {
    let mut deltas = Deltas {
        changes: state.reach.all_changes(&guard),
        policy: guard.policy_revision(),
        checked: Instant::now(),
        state,
        filter,
        guard,
        told: BTreeMap::new(),
        names: 0,
        pending: VecDeque::new(),
        at: 0,
        given: 0,
    };
    if !resume.is_empty() {
        let token = Token::read(resume)?;
        if !deltas.resume(&token).await {
            deltas.pending.push_back(Step::Expired);
        }
    }
    deltas.catch_up().await;
    if deltas.pending.is_empty() {
        deltas.pending.push_back(Step::Place);
    }
    Ok(futures::stream::unfold(Some(deltas), next).boxed())
}

/// `None`: the stream has ended.
async fn next(deltas: Option<Deltas>) -> Option<(Event, Option<Deltas>)> {
    let mut deltas = deltas?;
    loop {
        if let Some(step) = deltas.pending.pop_front() {
            match deltas.event(step).await {
                Some(event) => return Some(with_what_follows(event, deltas)),
                None => continue,
            }
        }
        match timeout(RECHECK, deltas.changes.next()).await {
            Ok(Ok(noted)) if noted.at <= deltas.at => {}
            Ok(Ok(noted)) => {
                deltas.at = noted.at;
                deltas.note((noted.namespace, noted.name), noted.app).await;
            }
            Ok(Err(RecvError::Lagged(_))) | Err(_) => deltas.catch_up().await,
            Ok(Err(RecvError::Closed)) => {
                let e = ApiError::new(Code::Unavailable, "the server is shutting down");
                return Some((Err(e), None));
            }
        }
    }
}

/// Nothing comes after an error: the client has missed a change then, and must ask again.
fn with_what_follows<T>(event: Event, rest: T) -> (Event, Option<T>) {
    let rest = event.is_ok().then_some(rest);
    (event, rest)
}

impl Deltas {
    /// Finds out what the client knows; `false` if that is impossible.
    async fn resume(&mut self, token: &Token) -> bool {
        if token.server != self.server() {
            return false;
        }
        let Some(apps) = self.state.reach.sight_at(&self.guard, token.at).await else {
            return false;
        };
        for app in apps.into_iter().filter(|app| self.filter.matches(app)) {
            let key = key(&app);
            self.names ^= self.hash(&key);
            let health = (!is_in_tree(&app)).then_some(0);
            self.told.insert(key, Told { app, health });
        }
        if self.names == token.names {
            return true;
        }
        (self.names, self.told) = (0, BTreeMap::new());
        false
    }

    /// Compares what the client knows with everything that it may see now.
    async fn catch_up(&mut self) {
        self.changes = self.state.reach.all_changes(&self.guard);
        self.policy = self.guard.policy_revision();
        self.checked = Instant::now();
        let sight = self.state.reach.sight(&self.guard).await;
        self.at = sight.at;
        let apps = sight
            .apps
            .into_iter()
            .filter(|app| self.filter.matches(app));
        let mut now: BTreeMap<Key, SeenApp> = apps.map(|app| (key(&app), app)).collect();
        for (key, told) in &self.told {
            let is_same = now.get(key).map(|app| Arc::ptr_eq(&**app, &*told.app));
            match is_same {
                None => self.pending.push_back(Step::App(key.clone(), None)),
                Some(true) => {
                    now.remove(key);
                }
                Some(false) => {}
            }
        }
        let steps = now.into_iter().map(|(key, app)| Step::App(key, Some(app)));
        self.pending.extend(steps);
        if !self.pending.is_empty() {
            self.pending.push_back(Step::Place);
        }
    }

    async fn note(&mut self, key: Key, app: Option<SeenApp>) {
        if self.guard.policy_revision() != self.policy || self.checked.elapsed() >= RECHECK {
            self.catch_up().await;
            return;
        }
        let app = app.filter(|app| self.filter.matches(app));
        if app.is_some() || self.told.contains_key(&key) {
            self.pending.push_back(Step::App(key, app));
        } else if self.at.saturating_sub(self.given) >= UNTOLD {
            self.pending.push_back(Step::Place);
        }
    }

    /// The event of a step; `None` if it changes nothing for the client.
    async fn event(&mut self, step: Step) -> Option<Event> {
        match step {
            Step::Expired => Some(Ok(self.said(EXPIRED, Application::default(), Vec::new()))),
            Step::Place => Some(Ok(self.said(BOOKMARK, Application::default(), Vec::new()))),
            Step::App(key, None) => {
                let told = self.told.remove(&key)?;
                self.names ^= self.hash(&key);
                let gone = identity(&told.app);
                Some(Ok(self.said(Change::Deleted.word(), gone, Vec::new())))
            }
            Step::App(key, Some(app)) => self.changed(key, app).await.transpose(),
        }
    }

    async fn changed(
        &mut self,
        key: Key,
        app: SeenApp,
    ) -> Result<Option<ApplicationWatchEvent>, ApiError> {
        let shown = with_health(&self.state, app.owned()).await;
        let health = health_of(&shown);
        let before = self.told.get(&key);
        let before = before.filter(|told| told.app.metadata.uid == app.metadata.uid);
        let before = before.map(|told| (told.app.clone().into_inner(), told.health));
        let hash = self.hash(&key);
        let told = Told {
            app: app.clone(),
            health: Some(health),
        };
        if self.told.insert(key, told).is_none() {
            self.names ^= hash;
        }
        let Some((before, known)) = before else {
            return Ok(Some(self.said(watch_event::ADDED, shown, Vec::new())));
        };
        let after = app.into_inner();
        let is_large = before.encoded_len() + after.encoded_len() > LARGE;
        let compare = move || -> Result<_, ApiError> {
            let mut paths = changed(&before, &after).map_err(of_json)?;
            let has_resources = paths.iter().any(|path| path == RESOURCES);
            if known != Some(health) && !has_resources {
                paths.push(RESOURCES.to_owned());
            }
            Ok((part(&shown, &paths)?, paths))
        };
        let (part, paths) = match is_large {
            true => heavy::run(compare).await?,
            false => compare()?,
        };
        Ok((!paths.is_empty()).then(|| self.said(Change::Modified.word(), part, paths)))
    }

    /// An event, with a token if the client knows everything after it.
    fn said(
        &mut self,
        word: &str,
        application: Application,
        changed: Vec<String>,
    ) -> ApplicationWatchEvent {
        let mut resume = String::new();
        if self.pending.is_empty() {
            self.given = self.at;
            let token = Token {
                server: self.server(),
                at: self.at,
                names: self.names,
            };
            resume = token.text();
        }
        ApplicationWatchEvent {
            type_: word.to_owned(),
            application,
            delta: Some(ApplicationDelta { resume, changed }),
        }
    }

    fn hash(&self, key: &Key) -> u64 {
        self.state.reach.keyed().hash_one(key)
    }

    /// What is in the tokens of this server only.
    fn server(&self) -> u64 {
        self.state.reach.keyed().hash_one("the server")
    }
}

fn key(app: &Application) -> Key {
    (app.metadata.namespace.clone(), app.metadata.name.clone())
}

/// Which Application it is, as [`watch_event::part`] tells it.
fn identity(app: &Application) -> Application {
    let mut named = Application::default();
    named.metadata.name.clone_from(&app.metadata.name);
    named.metadata.namespace.clone_from(&app.metadata.namespace);
    named.metadata.uid.clone_from(&app.metadata.uid);
    named
}

fn part(app: &Application, paths: &[String]) -> Result<Application, ApiError> {
    let part = watch_event::part(app, paths).map_err(of_json)?;
    serde_json::from_value(part).map_err(of_json)
}

fn of_json(e: serde_json::Error) -> ApiError {
    ApiError::internal(format!("cannot compare two states of an Application: {e}"))
}

/// Whether the health of the resources is in the tree rather than in the record.
fn is_in_tree(app: &Application) -> bool {
    app.status.resource_health_source == "appTree"
}

/// A hash of that health; 0 if it is in the record.
fn health_of(app: &Application) -> u64 {
    if !is_in_tree(app) {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    for resource in &app.status.resources {
        let health = resource.health.as_ref();
        health.map(|h| (&h.status, &h.message)).hash(&mut hasher);
    }
    hasher.finish()
}

#[derive(Debug, PartialEq)]
struct Token {
    server: u64,
    at: u64,
    names: u64,
}

impl Token {
    fn text(&self) -> String {
        format!("{:x}-{:x}-{:x}", self.server, self.at, self.names)
    }

    fn read(text: &str) -> Result<Self, ApiError> {
        let numbers: Result<Vec<u64>, _> = text
            .split('-')
            .take(4)
            .map(|number| u64::from_str_radix(number, 16))
            .collect();
        match numbers.as_deref() {
            Ok(&[server, at, names]) => Ok(Self { server, at, names }),
            _ => Err(ApiError::invalid(
                "resume: not what an event of a watch says; ask without it",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_named_as_in_other_events() {
        let mut app = Application::default();
        app.metadata.name = "web".into();
        app.metadata.namespace = "argocd".into();
        app.metadata.uid = "1".into();
        app.spec.project = "p".into();
        assert_eq!(Ok(identity(&app)), part(&app, &[]));
    }

    #[test]
    fn a_stream_ends_with_an_error() {
        let event = ApplicationWatchEvent::default();
        assert_eq!(with_what_follows(Ok(event), 1).1, Some(1));
        let lost = Err(ApiError::internal("a change is lost"));
        assert_eq!(with_what_follows(lost, 1).1, None);
    }

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let token = Token {
            server: u64::MAX,
            at: 0,
            names: 255,
        };
        assert_eq!(Token::read(&token.text()), Ok(token));
        for text in ["-", "1-2", "1-2-3-4", "1-2-g", "1-2-10000000000000000"] {
            assert!(Token::read(text).is_err(), "{text}");
        }
    }
}

//! Watch: the current Applications, or what changed since a version, then every change. Clients
//! that ask for changes only get those of `deltas`.

use super::{deltas, read::Filter, with_health};
use crate::{
    ApiError, Code,
    access::{Authorized, Get, Guard, Seen, SeenEvents},
    index::{Change, version},
    state::State,
};
use futures::{StreamExt as _, stream::BoxStream};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};
use tiphys_api::{
    Application, application::ApplicationWatchEvent, rpc::application::ApplicationQuery,
};
use tokio::sync::broadcast::error::RecvError;

struct Watch {
    state: Arc<State>,
    filter: Filter,
    /// Older versions are not sent.
    min_version: u64,
    guard: Guard,
    events: SeenEvents,
    pending: VecDeque<Seen>,
    /// The Applications already sent to the client.
    told: BTreeMap<(String, String), Authorized<Arc<Application>, Get>>,
}

pub async fn watch(
    state: Arc<State>,
    guard: Guard,
    mut q: ApplicationQuery,
) -> Result<BoxStream<'static, Result<ApplicationWatchEvent, ApiError>>, ApiError> {
    let one = q.name.as_ref().is_some_and(|n| !n.is_empty());
    if one && q.app_namespace.as_deref().unwrap_or_default().is_empty() {
        q.app_namespace = Some(state.options.namespace.clone());
    }
    let mut filter = Filter::new(&q, "error parsing labels with selectors")?;
    // Argo CD does not select by it here.
    filter.repo.clear();
    state.reach.ready().await;
    let resume = q.resume.unwrap_or_default();
    if q.delta == Some(true) || !resume.is_empty() {
        return deltas::watch(state, guard, filter, &resume).await;
    }
    let resource_version = q.resource_version.unwrap_or_default();
    let mut watch = Watch {
        events: state.reach.app_events(&guard),
        guard,
        min_version: resource_version.parse().unwrap_or(0),
        state,
        filter,
        pending: VecDeque::new(),
        told: BTreeMap::new(),
    };
    // A watch of a single Application must not miss anything, even if it gives a version.
    if resource_version.is_empty() || one {
        watch.snapshot(Change::Added);
    } else if watch.min_version > 0 {
        // Between the list that had this version and now, or while a watch was interrupted.
        watch.pending = watch
            .state
            .reach
            .apps_since(&watch.guard, watch.min_version)
            .into();
    }
    Ok(futures::stream::unfold(watch, next).boxed())
}

impl Watch {
    fn snapshot(&mut self, change: Change) {
        self.pending = self
            .state
            .reach
            .apps(&self.guard, |_| true)
            .0
            .into_iter()
            .map(|app| Seen { change, app })
            .collect();
    }

    fn wanted(&mut self, event: Seen) -> Option<Seen> {
        // A deletion may be known before its version is: then it has that of the last change.
        let is_old = version(&event.app) < self.min_version;
        if is_old && event.change != Change::Deleted || !self.filter.matches(&event.app) {
            return None;
        }
        let key = key(&event.app);
        if event.change == Change::Deleted {
            self.told.remove(&key);
        } else {
            // Changes between subscribing and the snapshot arrive twice.
            if self
                .told
                .get(&key)
                .is_some_and(|told| version(told) >= version(&event.app))
            {
                return None;
            }
            self.told.insert(key, event.app.clone());
        }
        Some(event)
    }

    /// After events were dropped: sends all current Applications, and deletions of those that no
    /// longer exist: of those that this watch told of, and of those that the client knows from
    /// before it.
    fn catch_up(&mut self) {
        self.events = self.state.reach.app_events(&self.guard);
        self.snapshot(Change::Modified);
        let here: BTreeSet<_> = self.pending.iter().map(|e| key(&e.app)).collect();
        let gone = self.told.iter().filter(|(key, _)| !here.contains(key));
        self.pending.extend(gone.map(|(_, app)| Seen {
            change: Change::Deleted,
            app: app.clone(),
        }));
        if self.min_version > 0 {
            let since = self.state.reach.apps_since(&self.guard, self.min_version);
            let is_gone = |e: &Seen| {
                let key = key(&e.app);
                e.change == Change::Deleted && !here.contains(&key) && !self.told.contains_key(&key)
            };
            self.pending.extend(since.into_iter().filter(is_gone));
        }
    }
}

fn key(app: &Application) -> (String, String) {
    (app.metadata.namespace.clone(), app.metadata.name.clone())
}

async fn next(mut watch: Watch) -> Option<(Result<ApplicationWatchEvent, ApiError>, Watch)> {
    loop {
        let event = match watch.pending.pop_front() {
            Some(event) => event,
            None => match watch.events.recv().await {
                Ok(event) => event,
                Err(RecvError::Lagged(_)) => {
                    watch.catch_up();
                    continue;
                }
                Err(RecvError::Closed) => {
                    let e = ApiError::new(Code::Unavailable, "the server is shutting down");
                    return Some((Err(e), watch));
                }
            },
        };
        if let Some(Seen { change, app }) = watch.wanted(event) {
            let event = ApplicationWatchEvent {
                type_: change.word().into(),
                application: with_health(&watch.state, app.owned()).await,
                delta: None,
            };
            return Some((Ok(event), watch));
        }
    }
}

//! All changes of Applications, for watches that must also notice when the caller loses sight of
//! one. What the caller may not see is only named.

use super::{Authorized, Get, Guard, Reach};
use crate::index::{AppEvent, Change};
use std::{hash::RandomState, sync::Arc};
use tiphys_api::Application;
use tokio::sync::broadcast::{self, error::RecvError};

/// How many Applications the policy is asked about before other tasks may run.
const AT_A_TIME: usize = 64;

type SeenApp = Authorized<Arc<Application>, Get>;

/// The Applications that the caller may see, at one place among the changes.
pub(crate) struct Sight {
    pub apps: Vec<SeenApp>,
    pub at: u64,
}

/// A change of an Application.
pub(crate) struct Noted {
    pub at: u64,
    pub namespace: String,
    pub name: String,
    /// Its state; `None` if it is gone, or the caller may not see it.
    pub app: Option<SeenApp>,
}

/// The changes of all Applications.
pub(crate) struct AllChanges {
    guard: Guard,
    events: broadcast::Receiver<AppEvent>,
}

impl AllChanges {
    /// Waits for the next change.
    pub async fn next(&mut self) -> Result<Noted, RecvError> {
        let AppEvent { change, app, at } = self.events.recv().await?;
        let (namespace, name) = (app.metadata.namespace.clone(), app.metadata.name.clone());
        let app = match change {
            Change::Deleted => None,
            Change::Added | Change::Modified => self.guard.grant(app).ok(),
        };
        Ok(Noted {
            at,
            namespace,
            name,
            app,
        })
    }
}

impl Reach {
    pub(crate) fn all_changes(&self, guard: &Guard) -> AllChanges {
        AllChanges {
            guard: guard.clone(),
            events: self.index.subscribe(),
        }
    }

    /// What the caller may see now.
    pub(crate) async fn sight(&self, guard: &Guard) -> Sight {
        let moment = self.index.moment();
        Sight {
            apps: granted(guard, moment.apps).await,
            at: moment.at,
        }
    }

    /// Of the Applications as they were at a place, what the caller may see by the policy of now.
    /// `None` if it is not remembered what they were.
    pub(crate) async fn sight_at(&self, guard: &Guard, place: u64) -> Option<Vec<SeenApp>> {
        Some(granted(guard, self.index.at(place)?).await)
    }

    /// Makes hashes that no other process makes.
    pub(crate) fn keyed(&self) -> &RandomState {
        self.index.keyed()
    }
}

/// Lets other tasks run in between: there may be thousands, and as many rules for each.
async fn granted(guard: &Guard, apps: Vec<Arc<Application>>) -> Vec<SeenApp> {
    let mut seen: Vec<SeenApp> = Vec::new();
    for some in apps.chunks(AT_A_TIME) {
        seen.extend(guard.grant_apps::<_, Get>(some.iter().cloned()));
        tokio::task::yield_now().await;
    }
    seen
}

//! What a set that is being deleted does to its Applications. Main function: [`plan_deletion`].

use super::{Existing, Settings};
use crate::rolling;
use std::time::Duration;
use tiphys_api::application_set::ApplicationSet;
use tiphys_api::meta::Time;

/// How soon to look again after an Application.
const NEXT: Duration = Duration::from_secs(10);
/// In seconds: an Application that is still there then is an error.
const TOO_LONG: i64 = 120;

/// What is to be done. Kubernetes deletes what the set owns once its finalizer is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// These Applications survive: the set's references are removed from them first.
    pub release: Vec<String>,
    pub next: Next,
}

/// The step after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Deletes one Application and looks again.
    Delete { name: String, after: Duration },
    /// Waits for an Application to go.
    Wait(Duration),
    /// This Application does not go.
    Stuck(String),
    /// Removes the set's finalizer.
    Finish,
}

/// Plans one step of a deletion.
pub fn plan_deletion(
    set: &ApplicationSet,
    existing: &Existing<'_>,
    settings: &Settings,
    now: Time,
) -> Deletion {
    let owned = existing.owned(set);
    if !settings.may_delete(set) {
        return Deletion {
            release: owned.iter().map(|app| app.metadata.name.clone()).collect(),
            next: Next::Finish,
        };
    }
    let mut next = Next::Finish;
    if rolling::is_reversed(set) {
        let owners: Vec<_> = owned.iter().map(|app| (*app).clone()).collect();
        let steps = rolling::Steps::of(set, &owners);
        let last = owned
            .into_iter()
            .filter_map(|app| {
                let step = steps.step_of.get(&app.metadata.name)?;
                Some((*step, app))
            })
            .max_by(|a, b| (a.0, &b.1.metadata.name).cmp(&(b.0, &a.1.metadata.name)));
        if let Some((_, app)) = last {
            next = match app.metadata.deletion_timestamp {
                Some(since) if now.seconds - since.seconds > TOO_LONG => {
                    Next::Stuck(app.metadata.name.clone())
                }
                Some(_) => Next::Wait(NEXT),
                None => Next::Delete {
                    name: app.metadata.name.clone(),
                    after: NEXT,
                },
            };
        }
    }
    Deletion {
        release: Vec::new(),
        next,
    }
}

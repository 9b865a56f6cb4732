//! The Events about a set. Main type: [`Told`].
//!
//! A set may write thousands of Applications at once. Much as Argo CD's, which are combined from the
//! tenth on, Events that differ only in their message are combined from the eleventh on.

use super::Controller;
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};
use tiphys_api::{ApplicationSet, constants};
use tiphys_apimachinery::Gvk;
use tiphys_appset::reconcile::Held;
use tiphys_cluster::records::{Event, EventTarget};

/// How many Events of one reason are written each by itself.
const SINGLE: u32 = 10;
/// How the message of an Event begins that stands for several.
const COMBINED: &str = "(combined from similar events): ";

/// The Events of writes that are made together, by their reasons.
#[derive(Default)]
pub(super) struct Told(Mutex<BTreeMap<&'static str, Similar>>);

/// Events of one reason.
#[derive(Default)]
struct Similar {
    single: u32,
    combined: u32,
    /// The last message of those that are combined.
    last: String,
}

impl Similar {
    /// The message back if its Event is written now.
    fn add(&mut self, message: String) -> Option<String> {
        if self.single < SINGLE {
            self.single += 1;
            return Some(message);
        }
        self.combined += 1;
        self.last = message;
        None
    }

    /// The message of the Event that stands for those not written yet, and how many they are.
    fn rest(self) -> Option<(String, u32)> {
        match self.combined {
            0 => None,
            1 => Some((self.last, 1)),
            count => Some((format!("{COMBINED}{}", self.last), count)),
        }
    }
}

impl Controller {
    pub(super) fn tell(
        &self,
        set: &ApplicationSet,
        told: &Told,
        reason: &'static str,
        message: String,
    ) {
        let single = {
            let mut all = told.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(reason).or_default().add(message)
        };
        if let Some(message) = single {
            self.events.record(Event::new(target(set), reason, message));
        }
    }

    /// Writes the Events that stand for those which were not written each by itself.
    pub(super) fn tell_rest(&self, set: &ApplicationSet, told: Told) {
        let all = told.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (reason, similar) in all {
            if let Some((message, count)) = similar.rest() {
                let event = Event::new(target(set), reason, message);
                self.events.record(event.counted(count));
            }
        }
    }

    /// An Event for deletions that wait, once for each condition.
    pub(super) fn warn_of_held(&self, set: &ApplicationSet, held: &Held) {
        if self.settings.dry_run {
            return;
        }
        let conditions = &set.status.conditions;
        if !conditions
            .iter()
            .any(|c| c.message.ends_with(&held.message))
        {
            let event = Event::new(target(set), "DeletionsNotConfirmed", held.message.clone());
            self.events.record(event.warning(true));
        }
    }
}

fn target(set: &ApplicationSet) -> EventTarget {
    EventTarget {
        gvk: Gvk::new(constants::GROUP, constants::VERSION, "ApplicationSet"),
        namespace: set.metadata.namespace.clone(),
        name: set.metadata.name.clone(),
        uid: set.metadata.uid.clone(),
        resource_version: set.metadata.resource_version.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_events_of_one_reason_are_combined() {
        let of = |count: u32| {
            let mut similar = Similar::default();
            let written = (0..count).filter_map(|n| similar.add(format!("created {n}")));
            (written.count(), similar.rest())
        };
        let rest = |message: &str, count: u32| Some((message.to_owned(), count));
        for (count, wanted) in [
            (0, (0, None)),
            (1, (1, None)),
            (10, (10, None)),
            (11, (10, rest("created 10", 1))),
            (
                12,
                (10, rest("(combined from similar events): created 11", 2)),
            ),
            (
                1_000,
                (10, rest("(combined from similar events): created 999", 990)),
            ),
        ] {
            assert_eq!(of(count), wanted, "{count}");
        }
    }
}

//! The decisions of a reconciler: writes, events to record and when to reconcile again.
//!
//! Main type: [`Plan`]. A plan is a value; only the engine carries it out.

use super::{fields::same_meaning, kind::Key, store::Propagation};
use jiff::Timestamp;
use serde_json::Value;
use tiphys_apimachinery::Object;

/// An entry for the `events` resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub warning: bool,
    pub reason: &'static str,
    /// `{name}` stands for the name of the object created by the write it belongs to.
    pub message: String,
}

impl Note {
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            warning: false,
            reason,
            message: message.into(),
        }
    }

    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            warning: true,
            reason,
            message: message.into(),
        }
    }
}

/// One change to the store.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Create(Object),
    /// Everything but the status; carries the resourceVersion that was read.
    Update(Object),
    /// The status only; carries the resourceVersion that was read.
    Status(Object),
    Delete {
        key: Key,
        uid: String,
        grace_seconds: Option<i64>,
        propagation: Propagation,
    },
}

/// A change and the event to record when it succeeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub change: Change,
    pub notes: Vec<Note>,
}

/// A reconciler's decision about one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In order. A rejected write does not stop the following ones.
    pub writes: Vec<Write>,
    /// Events about the object without a write; each is recorded once, however often it is planned.
    pub remarks: Vec<Note>,
    /// Reconcile again at this time even if nothing changes.
    pub wake: Option<Timestamp>,
}

impl Plan {
    pub fn push(&mut self, change: Change) -> &mut Self {
        self.writes.push(Write {
            change,
            notes: Vec::new(),
        });
        self
    }

    pub fn remark(&mut self, note: Note) {
        self.remarks.push(note);
    }

    pub fn create(&mut self, object: Object, note: Option<Note>) {
        self.writes.push(Write {
            change: Change::Create(object),
            notes: note.into_iter().collect(),
        });
    }

    pub fn update(&mut self, object: Object, note: Option<Note>) {
        self.writes.push(Write {
            change: Change::Update(object),
            notes: note.into_iter().collect(),
        });
    }

    /// Writes `status` if it differs from that of `object`; returns whether it did.
    pub fn status(&mut self, object: &Object, status: Value, notes: Vec<Note>) -> bool {
        if object
            .0
            .get("status")
            .is_some_and(|old| same_meaning(old, &status))
        {
            return false;
        }
        let mut object = object.clone();
        object.0.insert("status".into(), status);
        self.writes.push(Write {
            change: Change::Status(object),
            notes,
        });
        true
    }

    /// Deletes with the kind's default grace period, in the background.
    pub fn delete(&mut self, object: &Object, note: Option<Note>) {
        self.delete_with(object, None, Propagation::Background, note);
    }

    pub fn delete_with(
        &mut self,
        object: &Object,
        grace_seconds: Option<i64>,
        propagation: Propagation,
        note: Option<Note>,
    ) {
        let Some(key) = Key::of(object) else { return };
        let change = Change::Delete {
            key,
            uid: object.uid().to_owned(),
            grace_seconds,
            propagation,
        };
        self.writes.push(Write {
            change,
            notes: note.into_iter().collect(),
        });
    }

    /// Requests a reconcile at `at`, unless an earlier one is planned.
    pub fn wake_at(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |w| w.min(at)));
    }

    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.remarks.is_empty() && self.wake.is_none()
    }
}

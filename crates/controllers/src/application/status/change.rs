//! What of a new status is written and told. Main function: [`difference`].

use serde_json::{Value, json};
use tiphys_api::{
    Application, Shared,
    status::{ApplicationCondition, ApplicationStatus},
};

/// A value that changes and changes back before it is stored has not changed: its time is kept.
pub fn keep_times(before: &ApplicationStatus, after: &mut Shared<ApplicationStatus>) {
    let is_stored = |now: &ApplicationCondition| {
        before
            .conditions
            .iter()
            .find(|c| c.type_ == now.type_ && c.message == now.message)
    };
    let stays = |now: &ApplicationCondition| {
        is_stored(now).is_some_and(|c| c.last_transition_time != now.last_transition_time)
    };
    if before.health.status == after.health.status
        && before.health.last_transition_time != after.health.last_transition_time
    {
        after.health.last_transition_time = before.health.last_transition_time;
    }
    // Writing would copy the shared status.
    if after.conditions.iter().any(stays) {
        for condition in &mut after.conditions {
            if let Some(stored) = is_stored(condition) {
                condition.last_transition_time = stored.last_transition_time;
            }
        }
    }
}

/// `before` and `after`, reduced to what the controller writes (status and operation) and to what
/// differs. Both are empty maps if nothing differs.
pub fn difference(before: &Application, after: &Application) -> (Value, Value) {
    let (mut from, mut to) = (json!({}), json!({}));
    if before.status != after.status {
        let (mut old, mut new) = before.status.differing(&after.status);
        if old.sync.compared_to == new.sync.compared_to {
            // Most writes change only a revision and a time.
            (old.sync.compared_to, new.sync.compared_to) = Default::default();
        }
        (from["status"], to["status"]) = (json!(old), json!(new));
    }
    if before.operation != after.operation {
        for (part, app) in [(&mut from, before), (&mut to, after)] {
            if let Some(operation) = &app.operation {
                part["operation"] = json!(operation);
            }
        }
    }
    (from, to)
}

/// The messages of the Events for a change of status.
pub fn events(before: &ApplicationStatus, after: &ApplicationStatus) -> Vec<String> {
    let mut events = Vec::new();
    if before.sync.status != after.sync.status {
        events.push(format!(
            "Updated sync status: {} -> {}",
            before.sync.status, after.sync.status
        ));
    }
    if before.health.status != after.health.status {
        let mut text = format!(
            "Updated health status: {} -> {}",
            before.health.status, after.health.status
        );
        if !after.health.message.is_empty() {
            text = format!("{text} ({})", after.health.message);
        }
        events.push(text);
    }
    events
}

//! The conditions of a set and its health. Main function: [`set_conditions`].

use crate::condition::{
    Condition, ERROR, GENERATED, INVALID_ROLLOUT, PROGRESSING, UP_TO_DATE, reasons,
};
use crate::rolling::is_rolling;
use std::collections::BTreeSet;
use tiphys_api::application_set::{ApplicationSet, ApplicationSetCondition, ApplicationSetStatus};
use tiphys_api::meta::Time;
use tiphys_api::status::HealthStatus;

const TRUE: &str = "True";
const FALSE: &str = "False";

/// Sets conditions, with those that follow from them, and the health. A condition that does not
/// change keeps its time.
pub fn set_conditions(
    status: &mut ApplicationSetStatus,
    set: &ApplicationSet,
    conditions: Vec<Condition>,
    generated: bool,
    now: Time,
) {
    let mut evaluated = BTreeSet::from([GENERATED]);
    if !is_rolling(set) {
        evaluated.extend([INVALID_ROLLOUT, PROGRESSING]);
    }
    let error = conditions.iter().find(|condition| condition.type_ == ERROR);
    let mut new = vec![match generated {
        true => Condition::new(
            GENERATED,
            true,
            reasons::GENERATED,
            "Successfully generated parameters for all Applications",
        ),
        false => {
            let message = error.map_or("progressive sync", |error| error.message.as_str());
            Condition::new(GENERATED, false, reasons::ERROR, message)
        }
    }];
    for condition in conditions {
        evaluated.insert(condition.type_);
        let follows = match (condition.type_, condition.status) {
            (UP_TO_DATE, true) => Some(Condition::new(
                ERROR,
                false,
                &condition.reason,
                &condition.message,
            )),
            (ERROR, true) => Some(Condition::new(
                UP_TO_DATE,
                false,
                reasons::ERROR,
                &condition.message,
            )),
            _ => None,
        };
        new.push(condition);
        if let Some(follows) = follows {
            evaluated.insert(follows.type_);
            new.push(follows);
        }
    }
    let mut all: Vec<ApplicationSetCondition> = status
        .conditions
        .iter()
        .filter(|old| !evaluated.contains(old.type_.as_str()))
        .cloned()
        .collect();
    for condition in new {
        all.push(timed(condition, &status.conditions, now));
    }
    all.sort_by(|a, b| {
        let key = |c: &ApplicationSetCondition| {
            (
                c.type_.clone(),
                c.status.clone(),
                c.reason.clone(),
                c.message.clone(),
            )
        };
        key(a).cmp(&key(b))
    });
    status.conditions = all;
    status.health = health(&status.conditions);
}

fn timed(
    condition: Condition,
    old: &[ApplicationSetCondition],
    now: Time,
) -> ApplicationSetCondition {
    let new = ApplicationSetCondition {
        type_: condition.type_.to_owned(),
        message: condition.message,
        last_transition_time: Some(now),
        status: if condition.status { TRUE } else { FALSE }.to_owned(),
        reason: condition.reason,
    };
    let same = old.iter().find(|old| old.type_ == new.type_).filter(|old| {
        old.message == new.message && old.reason == new.reason && old.status == new.status
    });
    same.cloned().unwrap_or(new)
}

fn health(conditions: &[ApplicationSetCondition]) -> HealthStatus {
    let of = |status: &str, message: &str| HealthStatus {
        status: status.to_owned(),
        message: message.to_owned(),
        last_transition_time: None,
    };
    let holds = |type_: &str| {
        conditions
            .iter()
            .find(|c| c.type_ == type_ && c.status == TRUE)
            .map(|c| c.message.as_str())
    };
    if conditions.is_empty() {
        of("Unknown", "No status conditions found for ApplicationSet")
    } else if let Some(message) = holds(ERROR) {
        of("Degraded", message)
    } else if let Some(message) = holds(PROGRESSING) {
        of("Progressing", message)
    } else if let Some(message) = holds(UP_TO_DATE) {
        of("Healthy", message)
    } else {
        of("Unknown", "Waiting for health status to be determined")
    }
}

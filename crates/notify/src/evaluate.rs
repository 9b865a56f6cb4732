//! One evaluation of all triggers of an Application.
//!
//! Main function: [`evaluate`].

use crate::ledger::{Ledger, key};
use crate::triggers::ConditionResult;
use crate::{Destination, Destinations, Subject};
use jiff::Timestamp;
use serde_json::Value as Json;

/// What became of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Sent,
    /// The service has it already, or will never take it: it counts as sent.
    Refused(String),
    /// It is sent again at the next evaluation.
    Failed(String),
    /// There is no such service. Nothing was tried, and nothing changes until the configuration
    /// does: like Argo CD, a notification that is sent once for a value counts as sent.
    NoService(String),
}

/// What happened in an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A trigger that is not configured, or is broken.
    Trigger {
        trigger: String,
        problem: String,
    },
    /// An expression without a value, which counts as not triggered.
    Condition {
        trigger: String,
        problem: String,
    },
    Sent {
        trigger: String,
        to: Destination,
    },
    Already {
        trigger: String,
        to: Destination,
    },
    Failed {
        trigger: String,
        to: Destination,
        problem: String,
    },
}

/// Delivers what is due. A closure is one that remembers nothing before the end.
pub trait Delivery {
    /// Renders templates by their names, and sends the notification.
    fn deliver(&mut self, to: &Destination, templates: &[String]) -> Outcome;

    /// A condition of a trigger was evaluated.
    fn evaluated(&mut self, _trigger: &str, _triggered: bool) {}

    /// A delivery was recorded. What is stored now is not sent again if the process ends before the
    /// evaluation does.
    fn remember(&mut self, _ledger: &Ledger) {}
}

impl<F: FnMut(&Destination, &[String]) -> Outcome> Delivery for F {
    fn deliver(&mut self, to: &Destination, templates: &[String]) -> Outcome {
        self(to, templates)
    }
}

/// Runs the triggers, delivers what is due, and records it in the ledger. A failed delivery is
/// never recorded as sent.
pub fn evaluate(
    subject: &Subject<'_>,
    destinations: &Destinations,
    ledger: &mut Ledger,
    delivery: &mut dyn Delivery,
) -> Vec<Event> {
    let mut events = Vec::new();
    for (trigger, destinations) in destinations {
        let problem = |problem: String| Event::Trigger {
            trigger: trigger.clone(),
            problem,
        };
        let found = match subject.config.triggers.get(trigger) {
            Some(Ok(found)) => found,
            Some(Err(error)) => {
                events.push(problem(error.to_string()));
                continue;
            }
            None => {
                events.push(problem(format!("trigger '{trigger}' is not configured")));
                continue;
            }
        };
        for result in found.run(subject) {
            delivery.evaluated(trigger, result.triggered);
            events.extend(result.problem.clone().map(|problem| Event::Condition {
                trigger: trigger.clone(),
                problem,
            }));
            for to in destinations {
                events.extend(one(subject, trigger, &result, to, ledger, delivery));
            }
        }
    }
    events
}

fn one(
    subject: &Subject<'_>,
    trigger: &str,
    result: &ConditionResult,
    to: &Destination,
    ledger: &mut Ledger,
    delivery: &mut dyn Delivery,
) -> Option<Event> {
    let key = key(subject.config.key_namespace(), trigger, result, to);
    if !result.triggered {
        ledger.forget(&key);
        return None;
    }
    let (trigger, to) = (trigger.to_owned(), to.clone());
    if ledger.contains(&key) {
        return Some(Event::Already { trigger, to });
    }
    let templates = result.templates.as_deref().unwrap_or_default();
    let outcome = delivery.deliver(&to, templates);
    let counts = match &outcome {
        Outcome::Sent | Outcome::Refused(_) => true,
        Outcome::Failed(_) => false,
        Outcome::NoService(_) => result.once_per.is_some(),
    };
    if counts {
        ledger.record(key, subject.clock.now.as_second());
        delivery.remember(ledger);
    }
    Some(match outcome {
        Outcome::Sent => Event::Sent { trigger, to },
        Outcome::Refused(problem) | Outcome::Failed(problem) | Outcome::NoService(problem) => {
            Event::Failed {
                trigger,
                to,
                problem,
            }
        }
    })
}

/// Whether the sync status is older than the last operation, so that triggers would judge by it too
/// early.
pub fn is_outdated(app: &Json) -> bool {
    let status = &app["status"];
    let operation = &status["operationState"];
    let time = |value: &Json| value.as_str()?.parse::<Timestamp>().ok();
    match operation["phase"].as_str() {
        Some("Failed" | "Error" | "Succeeded") => {}
        _ => return false,
    }
    let Some(finished) = time(&operation["finishedAt"]) else {
        return true;
    };
    let seen = [&status["reconciledAt"], &status["observedAt"]];
    !seen.into_iter().filter_map(time).any(|at| at >= finished)
}

#[cfg(test)]
mod tests {
    use super::is_outdated;
    use serde_json::json;

    #[test]
    fn a_status_older_than_the_operation_is_outdated() {
        let early = "2024-03-01T10:05:00Z";
        let late = "2024-03-01T10:07:00Z";
        let finished = "2024-03-01T10:06:00Z";
        let table = [
            (json!({}), false),
            (json!({"operationState": {"phase": "Running"}}), false),
            (json!({"operationState": {"phase": "Failed"}}), true),
            (
                json!({"operationState": {"phase": "Succeeded", "finishedAt": finished},
                    "reconciledAt": early}),
                true,
            ),
            (
                json!({"operationState": {"phase": "Error", "finishedAt": finished},
                    "reconciledAt": late}),
                false,
            ),
            (
                json!({"operationState": {"phase": "Error", "finishedAt": finished},
                    "reconciledAt": early, "observedAt": late}),
                false,
            ),
        ];
        for (status, outdated) in table {
            assert_eq!(
                is_outdated(&json!({"status": status})),
                outdated,
                "{status}"
            );
        }
    }
}

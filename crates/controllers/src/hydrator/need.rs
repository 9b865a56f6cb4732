//! Whether an Application's branch must be written, as far as the Application itself says. Pure.
//!
//! Main function: [`need`].

use jiff::{SignedDuration, Timestamp};
use tiphys_api::{Application, constants::HYDRATE, operation::HydrateOperation};

pub const HYDRATING: &str = "Hydrating";
pub const HYDRATED: &str = "Hydrated";
pub const FAILED: &str = "Failed";

/// How long a hydration that failed is not tried again, unless someone asks or there is a new
/// revision.
const COOLDOWN: SignedDuration = SignedDuration::from_secs(120);

/// What the Application needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// To be hydrated; why.
    Hydration(&'static str),
    /// That too if its revision is another one than this; `again`: when to ask even if it is not.
    IfChanged {
        since: String,
        again: Option<SignedDuration>,
    },
    /// Nothing yet.
    Later(&'static str, SignedDuration),
    /// It is being hydrated, or was when a process ended.
    Running,
    /// Nothing: it has no hydrator.
    Nothing,
}

/// Whether a hydration is requested; `hard`: of everything again.
pub fn requested(app: &Application) -> Option<&str> {
    app.metadata.annotations.get(HYDRATE).map(String::as_str)
}

/// What an Application needs.
pub fn need(app: &Application, now: Timestamp) -> Need {
    let Some(hydrator) = &app.spec.source_hydrator else {
        return Need::Nothing;
    };
    let status = &app.status.source_hydrator;
    let Some(operation) = &status.current_operation else {
        return Need::Hydration("no previous hydrate operation");
    };
    if operation.phase == HYDRATING {
        return Need::Running;
    }
    if requested(app) == Some("hard") {
        return Need::Hydration("hard hydrate requested");
    }
    if **hydrator != operation.source_hydrator {
        return Need::Hydration("spec.sourceHydrator differs");
    }
    let since = status.last_compared_dry_revision.clone();
    let mut again = None;
    if operation.phase == FAILED {
        let rest = rest(operation, now);
        match () {
            () if requested(app).is_some() => {
                return Need::Hydration("retrying previous failed hydration");
            }
            () if rest.is_zero() => {
                return Need::Hydration(
                    "previous hydrate operation failed more than 2 minutes ago",
                );
            }
            () if since.is_empty() => {
                return Need::Later("previous hydrate operation failed", rest);
            }
            () => again = Some(rest),
        }
    }
    if since.is_empty() {
        return Need::Hydration("new revision may have changes");
    }
    Need::IfChanged { since, again }
}

/// How long an operation that failed rests.
fn rest(operation: &HydrateOperation, now: Timestamp) -> SignedDuration {
    let Some(finished) = operation.finished_at else {
        return COOLDOWN;
    };
    let age = now.duration_since(finished.timestamp());
    (COOLDOWN - age).clamp(SignedDuration::ZERO, COOLDOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NOW: &str = "2026-01-01T00:10:00Z";

    fn app(annotation: Option<&str>, status: Value) -> Application {
        let hydrator = json!({"drySource": {"repoURL": "r", "path": "p", "targetRevision": ""}});
        let mut app = json!({
            "metadata": {"name": "web"},
            "spec": {"sourceHydrator": hydrator},
            "status": {"sourceHydrator": status},
        });
        if let Some(value) = annotation {
            app["metadata"]["annotations"] = json!({HYDRATE: value});
        }
        serde_json::from_value(app).expect("an Application")
    }

    fn operation(phase: &str, finished: &str) -> Value {
        let hydrator = json!({"drySource": {"repoURL": "r", "path": "p", "targetRevision": ""}});
        json!({"phase": phase, "finishedAt": finished, "sourceHydrator": hydrator})
    }

    #[test]
    fn each_state_has_its_need() {
        let old = "2026-01-01T00:00:00Z";
        let new = "2026-01-01T00:09:00Z";
        let minute = SignedDuration::from_secs(60);
        let with = |operation: Value| json!({"currentOperation": operation, "lastComparedDryRevision": "abc"});
        let changed = |again| Need::IfChanged {
            since: "abc".to_owned(),
            again,
        };
        let mut other = operation(HYDRATED, old);
        other["sourceHydrator"]["drySource"]["path"] = json!("q");
        let bare = json!({"currentOperation": operation(FAILED, new)});
        for (annotation, status, expected) in [
            (
                None,
                json!({}),
                Need::Hydration("no previous hydrate operation"),
            ),
            (Some("hard"), with(operation(HYDRATING, old)), Need::Running),
            (None, with(operation(HYDRATED, old)), changed(None)),
            (
                Some("normal"),
                with(operation(HYDRATED, old)),
                changed(None),
            ),
            (
                Some("hard"),
                with(operation(HYDRATED, old)),
                Need::Hydration("hard hydrate requested"),
            ),
            (
                None,
                with(other),
                Need::Hydration("spec.sourceHydrator differs"),
            ),
            (None, with(operation(FAILED, new)), changed(Some(minute))),
            (
                Some("normal"),
                with(operation(FAILED, new)),
                Need::Hydration("retrying previous failed hydration"),
            ),
            (
                None,
                with(operation(FAILED, old)),
                Need::Hydration("previous hydrate operation failed more than 2 minutes ago"),
            ),
            (
                None,
                bare,
                Need::Later("previous hydrate operation failed", minute),
            ),
            (
                None,
                json!({"currentOperation": operation(HYDRATED, old)}),
                Need::Hydration("new revision may have changes"),
            ),
        ] {
            let found = need(
                &app(annotation, status.clone()),
                NOW.parse().expect("a time"),
            );
            assert_eq!(found, expected, "{annotation:?} {status}");
        }
        let none = Application::default();
        assert_eq!(need(&none, NOW.parse().expect("a time")), Need::Nothing);
    }
}

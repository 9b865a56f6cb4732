//! Writes of `status`: impossible counts, and values that must not decrease.

use super::*;

/// Counts that must not be negative, and those that must not exceed another one.
struct Counts {
    table: &'static str,
    fields: &'static [&'static str],
    /// Field, the larger field, the message.
    below: &'static [(&'static str, &'static str, &'static str)],
}

const TOTAL: &str = "cannot be greater than status.replicas";
const READY: &str = "cannot be greater than readyReplicas";
const KINDS: &[Counts] = &[
    Counts {
        table: "apps/deployments",
        fields: &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        below: &[
            ("updatedReplicas", "replicas", TOTAL),
            ("readyReplicas", "replicas", TOTAL),
            ("availableReplicas", "replicas", TOTAL),
            ("availableReplicas", "readyReplicas", READY),
        ],
    },
    Counts {
        table: "apps/replicasets",
        fields: &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
        below: &[
            ("fullyLabeledReplicas", "replicas", TOTAL),
            ("readyReplicas", "replicas", TOTAL),
            ("availableReplicas", "replicas", TOTAL),
            ("availableReplicas", "readyReplicas", READY),
        ],
    },
    Counts {
        table: "/replicationcontrollers",
        fields: &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
        ],
        below: &[
            ("fullyLabeledReplicas", "replicas", TOTAL),
            ("readyReplicas", "replicas", TOTAL),
            ("availableReplicas", "replicas", TOTAL),
            ("availableReplicas", "readyReplicas", READY),
        ],
    },
    Counts {
        table: "apps/statefulsets",
        fields: &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        below: &[
            ("readyReplicas", "replicas", TOTAL),
            ("currentReplicas", "replicas", TOTAL),
            ("updatedReplicas", "replicas", TOTAL),
            ("availableReplicas", "replicas", TOTAL),
            (
                "availableReplicas",
                "readyReplicas",
                "cannot be greater than status.readyReplicas",
            ),
        ],
    },
    Counts {
        table: "apps/daemonsets",
        fields: &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
        below: &[],
    },
];

/// A changed status; `None` for kinds whose status is not checked here.
pub fn check(
    resource: &Resource,
    at: &At<'_>,
    metadata: impl Fn(&mut Vec<Cause>),
) -> Option<Vec<Cause>> {
    let mut causes = Vec::new();
    match resource.table.as_str() {
        "batch/jobs" => {
            metadata(&mut causes);
            super::job_status::check(at, &mut causes);
            return Some(causes);
        }
        // The checks of all kinds are enough.
        "batch/cronjobs" => return Some(causes),
        _ => {}
    }
    let kind = KINDS.iter().find(|kind| kind.table == resource.table)?;
    let status = at.get("status");
    // StatefulSets check their status first.
    let metadata_last = resource.table == "apps/statefulsets";
    if !metadata_last {
        metadata(&mut causes);
    }
    counts(&status, kind, &mut causes);
    if metadata_last {
        metadata(&mut causes);
    }
    let collisions = status.get("collisionCount");
    let (now, before) = (collisions.int(), collisions.old.and_then(Value::as_i64));
    if kind.fields.contains(&"collisionCount")
        && before.is_some_and(|before| now.is_none_or(|now| now < before))
    {
        causes.push(collisions.invalid_as(now.unwrap_or(0), "cannot be decremented"));
    }
    Some(causes)
}

fn counts(status: &At<'_>, kind: &Counts, causes: &mut Vec<Cause>) {
    kind.fields
        .iter()
        .for_each(|field| status.get(field).check(AT_LEAST_0, causes));
    for (field, limit, says) in kind.below {
        let (at, limit) = (status.get(field), status.get(limit).int().unwrap_or(0));
        if at.int().unwrap_or(0) > limit {
            causes.push(at.invalid_as(at.int().unwrap_or(0), says));
        }
    }
}

//! Databases: MariaDB, CloudNativePG's Cluster, PerconaServerMongoDB.

use super::{
    ActionError, Call, Described, Kind, Ran, action,
    edit::{annotation, at, is_true, length},
};
use serde_json::Value;
use tiphys_api::resource::ResourceAction;

const SUSPEND: [&str; 2] = ["spec", "suspend"];
const LOOP: &str = "cnpg.io/reconciliationLoop";
const HEALTHY: [&str; 3] = ["status", "instancesStatus", "healthy"];

pub fn kind(group: &str, kind: &str) -> Option<Kind> {
    Some(match (group, kind) {
        ("k8s.mariadb.com", "MariaDB") => Kind {
            discover: |live| {
                vec![match is_true(at(live, &SUSPEND)) {
                    true => action("resume").icon("fa fa-fw fa-play").called("Resume"),
                    false => action("suspend")
                        .icon("fa fa-fw fa-pause")
                        .called("Suspend"),
                }]
            },
            run: |call| match call.action {
                "suspend" => call.patch(|edit| edit.set(&SUSPEND, true)),
                "resume" => call.patch(|edit| edit.resume(&SUSPEND)),
                _ => None,
            },
        },
        ("postgresql.cnpg.io", "Cluster") => Kind {
            discover: cluster,
            run: run_cluster,
        },
        ("psmdb.percona.com", "PerconaServerMongoDB") => Kind {
            discover: |live| {
                let paused = is_true(at(live, &["spec", "pause"]));
                vec![
                    action("pause")
                        .icon("fa fa-fw fa-pause-circle")
                        .disabled(paused),
                    action("unpause")
                        .icon("fa fa-fw fa-play-circle")
                        .disabled(!paused),
                ]
            },
            run: |call| match call.action {
                "pause" => call.patch(|edit| edit.set(&["spec", "pause"], true)),
                "unpause" => call.patch(|edit| edit.set(&["spec", "pause"], false)),
                _ => None,
            },
        },
        _ => return None,
    })
}

fn cluster(live: &Value) -> Vec<ResourceAction> {
    vec![
        action("restart")
            .icon("fa fa-fw fa-recycle")
            .called("Rollout restart Cluster"),
        action("reload")
            .icon("fa fa-fw fa-rotate-right")
            .called("Reload all Configuration"),
        action("promote")
            .icon("fa fa-fw fa-angles-up")
            .called("Promote Replica to Primary")
            .disabled(length(at(live, &HEALTHY)) < 2)
            .with_parameter("instance"),
        match annotation(live, LOOP) {
            Some("disabled") => action("resume")
                .icon("fa fa-fw fa-play")
                .called("Resume Reconciliation"),
            _ => action("suspend")
                .icon("fa fa-fw fa-pause")
                .called("Suspend Reconciliation"),
        },
    ]
}

fn run_cluster(call: &Call<'_>) -> Ran {
    match call.action {
        "restart" => {
            call.patch(|edit| edit.annotate("kubectl.kubernetes.io/restartedAt", call.timestamp()))
        }
        "reload" => call.patch(|edit| edit.annotate("cnpg.io/reloadedAt", call.timestamp())),
        "suspend" => call.patch(|edit| edit.annotate(LOOP, "disabled")),
        "resume" => call.patch(|edit| edit.remove(&["metadata", "annotations", LOOP])),
        "promote" => call.try_patch(|edit| {
            let wanted = call.parameter("instance").unwrap_or_default();
            let chosen =
                new_primary(&Value::Object(call.live.0.clone()), wanted).ok_or_else(|| {
                    ActionError::Refused(format!(
                        "Could not find a healthy instance matching the criteria: {wanted}"
                    ))
                })?;
            edit.set(
                &["status", "phaseReason"],
                format!("Switching over to {chosen}"),
            );
            edit.set(&["status", "targetPrimary"], chosen);
            edit.set(&["status", "targetPrimaryTimestamp"], call.timestamp());
            edit.set(&["status", "phase"], "Switchover in progress");
            Ok(())
        }),
        _ => None,
    }
}

/// A healthy instance by its name or number; `any` is the one after the current primary.
fn new_primary(live: &Value, wanted: &str) -> Option<String> {
    let healthy: Vec<&str> = at(live, &HEALTHY)
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if wanted == "any" {
        let primary = at(live, &["status", "currentPrimary"]).as_str();
        let after = healthy
            .iter()
            .position(|name| Some(*name) == primary)
            .map_or(0, |at| at + 1);
        return healthy
            .get(after)
            .or(healthy.first())
            .map(ToString::to_string);
    }
    let name = match wanted.parse::<f64>() {
        Ok(_) => format!(
            "{}-{wanted}",
            at(live, &["metadata", "name"]).as_str().unwrap_or_default()
        ),
        Err(_) => wanted.to_owned(),
    };
    healthy.contains(&name.as_str()).then_some(name)
}

//! CronJob and Job.

use super::{
    Described, Kind, action,
    edit::{at, is_true},
};
use serde_json::{Map, Value, json};

const SUSPEND: [&str; 2] = ["spec", "suspend"];

pub fn kind(kind: &str) -> Option<Kind> {
    Some(match kind {
        "CronJob" => Kind {
            discover: |live| {
                vec![
                    action("create-job")
                        .icon("fa fa-fw fa-plus")
                        .called("Create Job"),
                    toggle(live),
                ]
            },
            run: |call| match call.action {
                "suspend" => call.patch(|edit| edit.set(&SUSPEND, true)),
                "resume" => call.patch(|edit| edit.resume(&SUSPEND)),
                "create-job" => {
                    let live = Value::Object(call.live.0.clone());
                    let template = at(&live, &["spec", "jobTemplate"]);
                    let mut metadata = template["metadata"]
                        .as_object()
                        .cloned()
                        .unwrap_or_default();
                    let annotations = metadata
                        .entry("annotations")
                        .or_insert_with(|| Map::new().into());
                    annotations["cronjob.kubernetes.io/instantiate"] = "manual".into();
                    let name = format!("{}-{}", call.live.name(), call.time("%y%m%d%H%M"));
                    let metadata = call.owned(name, metadata, true);
                    call.create(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]}))
                }
                _ => None,
            },
        },
        "Job" => Kind {
            discover: |live| {
                if has_ended(live) {
                    return Vec::new();
                }
                let terminate = action("terminate").icon("fa fa-fw fa-stop");
                [
                    Some(toggle(live)),
                    (!live["status"].is_null()).then_some(terminate),
                ]
                .into_iter()
                .flatten()
                .collect()
            },
            run: |call| match call.action {
                "suspend" => call.patch(|edit| edit.set(&SUSPEND, true)),
                "resume" => call.patch(|edit| edit.resume(&SUSPEND)),
                "terminate" => call.patch(|edit| {
                    let conditions = ["status", "conditions"];
                    if edit.get(&["status"]).is_null()
                        || has_ended(&Value::Object(call.live.0.clone()))
                    {
                        return;
                    }
                    let mut all = edit
                        .get(&conditions)
                        .as_array()
                        .cloned()
                        .unwrap_or_default();
                    all.push(json!({
                        "lastTransitionTime": call.timestamp(),
                        "message": "Job was terminated explicitly through Argo CD",
                        "reason": "ManuallyTerminated",
                        "status": "True",
                        "type": "FailureTarget",
                    }));
                    edit.set(&conditions, all);
                }),
                _ => None,
            },
        },
        _ => return None,
    })
}

fn toggle(live: &Value) -> tiphys_api::resource::ResourceAction {
    if is_true(at(live, &SUSPEND)) {
        action("resume").icon("fa fa-fw fa-play")
    } else {
        action("suspend").icon("fa fa-fw fa-pause")
    }
}

/// Whether the Job has completed or failed.
fn has_ended(live: &Value) -> bool {
    let conditions = at(live, &["status", "conditions"])
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let ends = |c: &Value| {
        matches!(
            c["type"].as_str(),
            Some("Complete" | "Failed" | "FailureTarget" | "SuccessCriteriaMet")
        )
    };
    conditions.iter().any(|c| ends(c) && c["status"] == "True")
}

//! Deployment, StatefulSet, DaemonSet.

use super::{
    Described, Kind, action,
    edit::{at, is_true, number},
};
use serde_json::Value;
use tiphys_api::resource::ResourceAction;

const RESTARTED: [&str; 5] = [
    "spec",
    "template",
    "metadata",
    "annotations",
    "kubectl.kubernetes.io/restartedAt",
];

pub fn kind(kind: &str) -> Option<Kind> {
    let discover: fn(&Value) -> Vec<ResourceAction> = match kind {
        "DaemonSet" => |_| vec![restart()],
        "StatefulSet" => |_| vec![restart(), scale()],
        "Deployment" => |live| {
            let paused = is_true(at(live, &["spec", "paused"]));
            vec![
                restart(),
                action("pause")
                    .icon("fa fa-fw fa-pause-circle")
                    .disabled(paused),
                action("resume")
                    .icon("fa fa-fw fa-play-circle")
                    .disabled(!paused),
                scale(),
            ]
        },
        _ => return None,
    };
    Some(Kind {
        discover,
        run: |call| match (call.live.kind(), call.action) {
            (_, "restart") => call.patch(|edit| edit.set(&RESTARTED, call.timestamp())),
            ("Deployment", "pause") => call.patch(|edit| edit.set(&["spec", "paused"], true)),
            ("Deployment", "resume") => call.patch(|edit| edit.remove(&["spec", "paused"])),
            ("Deployment" | "StatefulSet", "scale") => call.try_patch(|edit| {
                edit.set(&["spec", "replicas"], number(call.parameter("replicas"))?);
                Ok(())
            }),
            _ => None,
        },
    })
}

fn restart() -> ResourceAction {
    action("restart").icon("fa fa-fw fa-redo")
}

fn scale() -> ResourceAction {
    action("scale")
        .icon("fa fa-fw fa-plus-circle")
        .with_parameter("replicas")
}

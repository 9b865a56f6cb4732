//! Flux: all kinds that can be suspended; most can also be reconciled on demand.

use super::{
    Described, Kind, action,
    edit::{at, is_true},
};
use serde_json::Value;
use tiphys_api::resource::ResourceAction;

const SUSPEND: [&str; 2] = ["spec", "suspend"];

pub fn kind(group: &str, kind: &str) -> Option<Kind> {
    let discover: fn(&Value) -> Vec<ResourceAction> =
        match (group.strip_suffix(".toolkit.fluxcd.io")?, kind) {
            ("helm", "HelmRelease")
            | ("image", "ImageRepository" | "ImageUpdateAutomation")
            | ("kustomize", "Kustomization")
            | ("notification", "Receiver")
            | (
                "source",
                "Bucket" | "GitRepository" | "HelmChart" | "HelmRepository" | "OCIRepository",
            ) => |live| {
                let suspended = is_true(at(live, &SUSPEND));
                [
                    vec![action("reconcile").disabled(suspended)],
                    toggles(suspended),
                ]
                .concat()
            },
            ("notification", "Alert" | "Provider") => |live| toggles(is_true(at(live, &SUSPEND))),
            _ => return None,
        };
    Some(Kind {
        discover,
        run: |call| match (call.live.kind(), call.action) {
            (_, "suspend") => call.patch(|edit| edit.set(&SUSPEND, true)),
            (_, "resume") => call.patch(|edit| edit.resume(&SUSPEND)),
            ("Alert" | "Provider", _) => None,
            (_, "reconcile") => call.patch(|edit| {
                let when = call.time("By Argo CD at: %Y-%m-%dT%H:%M:%S");
                edit.annotate("reconcile.fluxcd.io/requestedAt", when);
            }),
            _ => None,
        },
    })
}

fn toggles(suspended: bool) -> Vec<ResourceAction> {
    vec![
        action("suspend").disabled(suspended),
        action("resume").disabled(!suspended),
    ]
}

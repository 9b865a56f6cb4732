//! Checks a resize of a pod that is on a node: the node must have enough room and must support
//! resizing. Main function: [`check`].

use super::refusal;
use super::request::{Objects, Request};
use super::usage::needs;
use crate::status::{Cause, Status};
use serde_json::Value;
use tiphys_apimachinery::quantity::Quantity;
use tiphys_apimachinery::{Gvr, Object};

/// The features that a node must declare for changing the resources of the pod itself or of an init
/// container.
const OF_PODS: &str = "InPlacePodLevelResourcesVerticalScaling";
const OF_FIRST: &str = "InPlacePodVerticalScalingInitContainers";

/// Rejects resizes that the pod's node does not support.
pub fn check(request: &Request<'_>, objects: Objects<'_>) -> Result<(), Status> {
    let (Some(new), Some(old)) = (objects.new, objects.old) else {
        return Ok(());
    };
    let name = new.str_at("/spec/nodeName");
    if name.is_empty() || new.0.get("spec") == old.0.get("spec") {
        return Ok(());
    }
    let refuse = |why: &str, reason: &'static str| {
        let cause = Cause {
            reason,
            message: String::new(),
            field: String::new(),
        };
        let causes = (!reason.is_empty()).then_some(cause);
        Err(refusal(request, objects, why).with_causes(causes.into_iter().collect()))
    };
    let Ok(node) = request.cluster.get(&Gvr::new("", "v1", "nodes"), "", name) else {
        return refuse(&format!("node {name:?} not found"), "");
    };
    let lacking = undeclared(&node, old, new);
    if !lacking.is_empty() {
        let why = format!(
            "pod update requires features {} which are not available on node {name:?}",
            lacking.join(", ")
        );
        return refuse(&why, "");
    }
    let system = node.label("kubernetes.io/os").unwrap_or("linux");
    if system != "linux" {
        let why =
            format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
        return refuse(&why, "UnsupportedPlatform");
    }
    let lacking = no_room(&node, new);
    if !lacking.is_empty() {
        return refuse(
            &format!(
                "node didn't have enough allocatable resources: {}",
                lacking.join("; ")
            ),
            "NodeCapacity",
        );
    }
    Ok(())
}

fn undeclared(node: &Object, old: &Object, new: &Object) -> Vec<&'static str> {
    let declared = node
        .pointer("/status/declaredFeatures")
        .and_then(Value::as_array);
    let is_declared = |feature: &str| declared.into_iter().flatten().any(|name| name == feature);
    let initial = |pod: &Object| {
        pod.pointer("/spec/initContainers")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (before, now) = (initial(old), initial(new));
    let first = before
        .iter()
        .zip(&now)
        .any(|(old, new)| old["restartPolicy"] != "Always" && old["resources"] != new["resources"]);
    let own = old.pointer("/spec/resources") != new.pointer("/spec/resources");
    let needed = [(OF_PODS, own), (OF_FIRST, first)].into_iter();
    needed
        .filter(|(feature, is_needed)| *is_needed && !is_declared(feature))
        .map(|(feature, _)| feature)
        .collect()
}

fn no_room(node: &Object, pod: &Object) -> Vec<String> {
    let requests = needs(pod, "requests");
    let compared = |name: &str, number: fn(&Quantity) -> i64| {
        let wanted = requests.get(name).copied().unwrap_or(Quantity::ZERO);
        let there = node
            .str_at(&format!("/status/allocatable/{name}"))
            .parse()
            .unwrap_or(Quantity::ZERO);
        (wanted > there).then(|| {
            format!(
                "{name}, requested: {}, allocatable: {}",
                number(&wanted),
                number(&there)
            )
        })
    };
    [
        compared("cpu", Quantity::milli_value),
        compared("memory", Quantity::value),
    ]
    .into_iter()
    .flatten()
    .collect()
}

//! The row of a pod: its STATUS is worked out from phase, conditions and container states.

use super::age;
use super::cells::{condition, list, or_none, text};
use jiff::Timestamp;
use serde_json::Value;
use tiphys_apimachinery::Object;

/// How a container that ended is called: its reason, else its signal or exit code.
fn ended(terminated: &Value, prefix: &str) -> String {
    let reason = text(terminated, "reason");
    let signal = terminated["signal"].as_i64().unwrap_or(0);
    match (reason, signal) {
        ("", 0) => format!("{prefix}ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or(0)),
        ("", signal) => format!("{prefix}Signal:{signal}"),
        (reason, _) => format!("{prefix}{reason}"),
    }
}

fn restarts(status: &Value) -> i64 {
    status["restartCount"].as_i64().unwrap_or(0)
}

/// The first init container that is not done, as a status.
fn initializing(pod: &Object) -> Option<String> {
    let total = list(pod, "/spec/initContainers").len();
    for (i, status) in list(pod, "/status/initContainerStatuses").iter().enumerate() {
        let state = &status["state"];
        if let Some(terminated) = state.get("terminated") {
            if terminated["exitCode"].as_i64() == Some(0) {
                continue;
            }
            return Some(ended(terminated, "Init:"));
        }
        if status["started"] == true && is_sidecar(pod, text(status, "name")) {
            continue;
        }
        return Some(match state.get("waiting").map(|w| text(w, "reason")) {
            Some(reason) if !reason.is_empty() && reason != "PodInitializing" => format!("Init:{reason}"),
            _ => format!("Init:{i}/{total}"),
        });
    }
    None
}

fn is_sidecar(pod: &Object, name: &str) -> bool {
    list(pod, "/spec/initContainers").iter().any(|c| text(c, "name") == name && text(c, "restartPolicy") == "Always")
}

/// What the running containers say, if anything beyond `reason`.
fn from_containers(pod: &Object, mut reason: String) -> String {
    let (mut running, mut failed) = (false, None);
    for status in list(pod, "/status/containerStatuses").iter().rev() {
        let state = &status["state"];
        let waiting = state.get("waiting").map(|w| text(w, "reason")).unwrap_or("");
        if !waiting.is_empty() {
            reason = waiting.to_owned();
        } else if let Some(terminated) = state.get("terminated") {
            reason = ended(terminated, "");
            if terminated["exitCode"].as_i64().unwrap_or(0) != 0 {
                failed = Some(reason.clone());
            }
        } else if status["ready"] == true && state.get("running").is_some() {
            running = true;
        }
    }
    match (reason.as_str(), running, failed) {
        ("Completed", true, _) if condition(pod, "Ready") => "Running".to_owned(),
        ("Completed", _, Some(failed)) => failed,
        ("Completed", true, None) => "NotReady".to_owned(),
        _ => reason,
    }
}

fn status(pod: &Object) -> String {
    let phase = pod.str_at("/status/phase");
    let mut reason = match pod.str_at("/status/reason") {
        "" => phase.to_owned(),
        reason => reason.to_owned(),
    };
    let gated = |c: &Value| text(c, "type") == "PodScheduled" && text(c, "reason") == "SchedulingGated";
    if list(pod, "/status/conditions").iter().any(gated) {
        reason = "SchedulingGated".to_owned();
    }
    reason = match initializing(pod) {
        Some(init) if !condition(pod, "Initialized") => init,
        _ => from_containers(pod, reason),
    };
    match pod.deletion_timestamp() {
        Some(_) if pod.str_at("/status/reason") == "NodeLost" => "Unknown".to_owned(),
        Some(_) if !matches!(phase, "Failed" | "Succeeded") => "Terminating".to_owned(),
        _ => reason,
    }
}

fn restart_text(pod: &Object, now: Timestamp) -> String {
    let statuses = list(pod, "/status/containerStatuses");
    let total: i64 = statuses.iter().map(restarts).sum();
    let last = statuses.iter().filter_map(|s| s.pointer("/lastState/terminated/finishedAt")).max_by_key(|v| v.as_str());
    match last {
        Some(time) if total > 0 => format!("{total} ({} ago)", age::since(Some(time), now)),
        _ => total.to_string(),
    }
}

fn readiness_gates(pod: &Object) -> String {
    let gates = list(pod, "/spec/readinessGates");
    let open = gates.iter().filter(|g| condition(pod, text(g, "conditionType"))).count();
    if gates.is_empty() { "<none>".to_owned() } else { format!("{open}/{}", gates.len()) }
}

pub fn cells(pod: &Object, now: Timestamp) -> Vec<Value> {
    let sidecars = list(pod, "/spec/initContainers").iter().filter(|c| text(c, "restartPolicy") == "Always").count();
    let total = list(pod, "/spec/containers").len() + sidecars;
    let is_up = |s: &&Value| s["ready"] == true && s["state"].get("running").is_some();
    let ready = list(pod, "/status/containerStatuses").iter().filter(is_up).count()
        + list(pod, "/status/initContainerStatuses").iter().filter(|s| is_up(s) && is_sidecar(pod, text(s, "name"))).count();
    let ip = list(pod, "/status/podIPs").first().map(|ip| text(ip, "ip")).unwrap_or("");
    vec![
        pod.name().into(),
        format!("{ready}/{total}").into(),
        status(pod).into(),
        restart_text(pod, now).into(),
        age::since(pod.metadata("creationTimestamp"), now).into(),
        or_none(ip).into(),
        or_none(pod.str_at("/spec/nodeName")).into(),
        or_none(pod.str_at("/status/nominatedNodeName")).into(),
        readiness_gates(pod).into(),
    ]
}

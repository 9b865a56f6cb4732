//! The row of a pod. Its STATUS is derived from the phase, conditions and container states.

use super::age;
use super::cells::{condition, list, or_none, text};
use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_apimachinery::Object;

/// The status of a container that ended: its reason, else its signal or exit code.
fn ended(terminated: &Value, prefix: &str) -> String {
    let reason = text(terminated, "reason");
    let signal = terminated["signal"].as_i64().unwrap_or(0);
    match (reason, signal) {
        ("", 0) => format!(
            "{prefix}ExitCode:{}",
            terminated["exitCode"].as_i64().unwrap_or(0)
        ),
        ("", signal) => format!("{prefix}Signal:{signal}"),
        (reason, _) => format!("{prefix}{reason}"),
    }
}

/// The number of restarts of the containers, and the time of the last one.
#[derive(Default)]
struct Restarts<'a> {
    count: i64,
    last: Option<&'a str>,
}

impl<'a> Restarts<'a> {
    fn add(&mut self, status: &'a Value) {
        self.count += status["restartCount"].as_i64().unwrap_or(0);
        self.last = self.last.max(
            status
                .pointer("/lastState/terminated/finishedAt")
                .and_then(Value::as_str),
        );
    }

    fn text(&self, now: Timestamp) -> String {
        match self.last {
            Some(time) if self.count != 0 => format!(
                "{} ({} ago)",
                self.count,
                age::since(Some(&time.into()), now)
            ),
            _ => self.count.to_string(),
        }
    }
}

/// A row's summary of the containers of a pod.
#[derive(Default)]
struct Containers<'a> {
    reason: Option<String>,
    restarts: Restarts<'a>,
    ready: usize,
}

impl<'a> Containers<'a> {
    /// The init containers, up to the first that is not done. The second value covers only the
    /// sidecars among them.
    fn initial(pod: &'a Object) -> (Self, Self) {
        let total = list(pod, "/spec/initContainers").len();
        let (mut all, mut stay) = (Self::default(), Self::default());
        for (i, status) in list(pod, "/status/initContainerStatuses")
            .iter()
            .enumerate()
        {
            let state = &status["state"];
            let is_sidecar = is_sidecar(pod, text(status, "name"));
            all.restarts.add(status);
            if is_sidecar {
                stay.restarts.add(status);
            }
            let terminated = state.get("terminated");
            if terminated.is_some_and(|t| t["exitCode"].as_i64().unwrap_or(0) == 0) {
                continue;
            }
            if is_sidecar && status["started"] == true {
                all.ready += usize::from(status["ready"] == true);
                continue;
            }
            let waits = state
                .get("waiting")
                .map(|w| text(w, "reason"))
                .filter(|reason| !matches!(*reason, "" | "PodInitializing"));
            all.reason = Some(match (terminated, waits) {
                (Some(terminated), _) => ended(terminated, "Init:"),
                (None, Some(reason)) => format!("Init:{reason}"),
                (None, None) => format!("Init:{i}/{total}"),
            });
            break;
        }
        stay.reason.clone_from(&all.reason);
        stay.ready = all.ready;
        (all, stay)
    }

    /// Adds the regular containers.
    fn with_others(mut self, pod: &'a Object, otherwise: &str) -> Self {
        let mut reason = self.reason.take().unwrap_or_else(|| otherwise.to_owned());
        let (mut running, mut failed) = (false, None);
        for status in list(pod, "/status/containerStatuses").iter().rev() {
            self.restarts.add(status);
            let state = &status["state"];
            let waiting = state
                .get("waiting")
                .map(|w| text(w, "reason"))
                .unwrap_or("");
            if !waiting.is_empty() {
                reason = waiting.to_owned();
            } else if let Some(terminated) = state.get("terminated") {
                reason = ended(terminated, "");
                if terminated["exitCode"].as_i64().unwrap_or(0) != 0 {
                    failed = Some(reason.clone());
                }
            } else if status["ready"] == true && state.get("running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        let reason = match (reason.as_str(), running, failed) {
            ("Completed", true, _) if condition(pod, "Ready") => "Running".to_owned(),
            ("Completed", _, Some(failed)) => failed,
            ("Completed", true, None) => "NotReady".to_owned(),
            _ => reason,
        };
        Self {
            reason: Some(reason),
            ..self
        }
    }

    fn of(pod: &'a Object) -> Self {
        let gated =
            |c: &Value| text(c, "type") == "PodScheduled" && text(c, "reason") == "SchedulingGated";
        let reason = match pod.str_at("/status/reason") {
            _ if list(pod, "/status/conditions").iter().any(gated) => "SchedulingGated",
            "" => pod.str_at("/status/phase"),
            reason => reason,
        };
        let (all, stay) = Self::initial(pod);
        match all.reason.is_some() && !condition(pod, "Initialized") {
            true => all,
            false => stay.with_others(pod, reason),
        }
    }
}

fn is_sidecar(pod: &Object, name: &str) -> bool {
    list(pod, "/spec/initContainers")
        .iter()
        .any(|c| text(c, "name") == name && text(c, "restartPolicy") == "Always")
}

/// The row's conditions of a pod that has ended.
pub fn conditions(pod: &Object) -> Option<Value> {
    let (reason, message) = match pod.str_at("/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn readiness_gates(pod: &Object) -> String {
    let gates = list(pod, "/spec/readinessGates");
    let open = gates
        .iter()
        .filter(|g| condition(pod, text(g, "conditionType")))
        .count();
    if gates.is_empty() {
        "<none>".to_owned()
    } else {
        format!("{open}/{}", gates.len())
    }
}

pub fn cells(pod: &Object, now: Timestamp) -> Vec<Value> {
    let sidecars = list(pod, "/spec/initContainers")
        .iter()
        .filter(|c| text(c, "restartPolicy") == "Always")
        .count();
    let total = list(pod, "/spec/containers").len() + sidecars;
    let found = Containers::of(pod);
    let status = match pod.deletion_timestamp() {
        Some(_) if pod.str_at("/status/reason") == "NodeLost" => "Unknown".to_owned(),
        Some(_) if !matches!(pod.str_at("/status/phase"), "Failed" | "Succeeded") => {
            "Terminating".to_owned()
        }
        _ => found.reason.unwrap_or_default(),
    };
    let ip = list(pod, "/status/podIPs")
        .first()
        .map(|ip| text(ip, "ip"))
        .unwrap_or("");
    vec![
        pod.name().into(),
        format!("{}/{total}", found.ready).into(),
        status.into(),
        found.restarts.text(now).into(),
        age::since(pod.metadata("creationTimestamp"), now).into(),
        or_none(ip).into(),
        or_none(pod.str_at("/spec/nodeName")).into(),
        or_none(pod.str_at("/status/nominatedNodeName")).into(),
        readiness_gates(pod).into(),
    ]
}

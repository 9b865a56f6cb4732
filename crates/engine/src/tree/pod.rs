//! Pods: the status that `kubectl get pods` shows, the node, and how many containers are ready.

use super::info::Info;
use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_api::resource::ResourceNetworkingInfo;
use tiphys_apimachinery::{Object, quantity::Quantity};

pub fn fill(pod: &Object, info: &mut Info) {
    let specs = || {
        list(pod, "/spec/initContainers")
            .iter()
            .chain(list(pod, "/spec/containers"))
    };
    let images: BTreeSet<&str> = specs().map(|c| text(c, "image")).collect();
    info.images = images.into_iter().map(str::to_owned).collect();

    let mut summary = Summary::new(pod);
    let initializing = summary.read_init_containers(pod);
    if !initializing || condition(pod, "Initialized").is_some_and(|c| text(c, "status") == "True") {
        summary.read_containers(pod);
    }
    let reason = summary.reason_with_deletion(pod);
    if !reason.is_empty() {
        info.push("Status Reason", reason);
    }
    info.push("Node", pod.str_at("/spec/nodeName"));
    info.push("Containers", format!("{}/{}", summary.ready, summary.total));
    if summary.restarts > 0 {
        info.push("Restart Count", summary.restarts.to_string());
    }
    if !is_over(pod) {
        info.push("cpu", milli_requests(pod, "cpu").to_string());
        info.push("memory", milli_requests(pod, "memory").to_string());
    }
    let external_urls = info
        .networking
        .take()
        .map(|n| n.external_urls)
        .unwrap_or_default();
    info.networking = Some(ResourceNetworkingInfo {
        labels: pod.labels(),
        external_urls,
        ..Default::default()
    });
}

struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
}

impl Summary {
    fn new(pod: &Object) -> Self {
        let reason = match (pod.str_at("/status/reason"), pod.str_at("/status/phase")) {
            ("", phase) => phase,
            (reason, _) => reason,
        };
        let gated =
            condition(pod, "PodScheduled").is_some_and(|c| text(c, "reason") == "SchedulingGated");
        let sidecars = list(pod, "/spec/initContainers")
            .iter()
            .filter(|c| is_sidecar(c))
            .count();
        Self {
            reason: if gated {
                "SchedulingGated".to_owned()
            } else {
                reason.to_owned()
            },
            ready: 0,
            total: list(pod, "/spec/containers").len() + sidecars,
            restarts: 0,
        }
    }

    /// Returns whether the Pod still waits for an init container.
    fn read_init_containers(&mut self, pod: &Object) -> bool {
        let specs = list(pod, "/spec/initContainers");
        for (index, status) in list(pod, "/status/initContainerStatuses")
            .iter()
            .enumerate()
        {
            self.restarts += number(status, "/restartCount");
            let terminated = status.pointer("/state/terminated").filter(|t| !t.is_null());
            let sidecar = specs
                .iter()
                .any(|c| text(c, "name") == text(status, "name") && is_sidecar(c));
            if terminated.is_some_and(|t| number(t, "/exitCode") == 0) {
                continue;
            }
            if sidecar && flag(status, "started") {
                self.ready += usize::from(flag(status, "ready"));
                continue;
            }
            let waiting = text_at(status, "/state/waiting/reason");
            self.reason = match terminated {
                Some(terminated) => format!("Init:{}", end_of(terminated)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => {
                    format!("Init:{waiting}")
                }
                None => format!("Init:{index}/{}", specs.len()),
            };
            return true;
        }
        false
    }

    fn read_containers(&mut self, pod: &Object) {
        let mut running = false;
        // From the last to the first, so that the first container's reason remains.
        for status in list(pod, "/status/containerStatuses").iter().rev() {
            self.restarts += number(status, "/restartCount");
            let waiting = text_at(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) =
                status.pointer("/state/terminated").filter(|t| !t.is_null())
            {
                self.reason = end_of(terminated);
            } else if flag(status, "ready")
                && status
                    .pointer("/state/running")
                    .is_some_and(|r| !r.is_null())
            {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && running {
            "Running".clone_into(&mut self.reason);
        }
    }

    fn reason_with_deletion(&self, pod: &Object) -> String {
        match pod.deletion_timestamp() {
            Some(_) if pod.str_at("/status/reason") == "NodeLost" => "Unknown".to_owned(),
            Some(_) if !is_over(pod) => "Terminating".to_owned(),
            _ => self.reason.clone(),
        }
    }
}

/// `OOMKilled`, `Signal:9` or `ExitCode:1`.
fn end_of(terminated: &Value) -> String {
    match (text(terminated, "reason"), number(terminated, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn is_over(pod: &Object) -> bool {
    matches!(pod.str_at("/status/phase"), "Failed" | "Succeeded")
}

/// An init container that keeps running next to the others.
fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

/// What the scheduler reserves for the Pod, in thousandths: its containers and sidecars together,
/// or the peak during its init containers, plus the overhead of its runtime class.
fn milli_requests(pod: &Object, resource: &str) -> i64 {
    let quantity = |value: Option<&Value>| match value {
        Some(Value::String(text)) => text.parse::<Quantity>().map_or(0, |q| q.milli_value()),
        Some(Value::Number(n)) => n
            .to_string()
            .parse::<Quantity>()
            .map_or(0, |q| q.milli_value()),
        _ => 0,
    };
    let request = |container: &Value| {
        quantity(
            container
                .pointer("/resources/requests")
                .and_then(|r| r.get(resource)),
        )
    };
    let (mut sidecars, mut start) = (0, 0);
    for container in list(pod, "/spec/initContainers") {
        if is_sidecar(container) {
            sidecars += request(container);
            start = start.max(sidecars);
        } else {
            start = start.max(sidecars + request(container));
        }
    }
    let running: i64 = sidecars
        + list(pod, "/spec/containers")
            .iter()
            .map(request)
            .sum::<i64>();
    let for_pod = pod
        .pointer("/spec/resources/requests")
        .and_then(|r| r.get(resource));
    let wanted = if for_pod.is_some() {
        quantity(for_pod)
    } else {
        running.max(start)
    };
    wanted + quantity(pod.pointer("/spec/overhead").and_then(|o| o.get(resource)))
}

fn list<'a>(pod: &'a Object, pointer: &str) -> &'a [Value] {
    pod.pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn condition<'a>(pod: &'a Object, kind: &str) -> Option<&'a Value> {
    list(pod, "/status/conditions")
        .iter()
        .find(|c| text(c, "type") == kind)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("")
}

fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn number(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn flag(value: &Value, field: &str) -> bool {
    value.get(field).and_then(Value::as_bool).unwrap_or(false)
}

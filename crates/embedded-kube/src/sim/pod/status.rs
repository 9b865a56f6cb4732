//! The status that a kubelet would write at each step of a pod's lifecycle.

use super::super::{
    fields::{Cond, conditions, rfc3339, set_condition, text},
    plan::{Note, Plan},
};
use super::{PodWorld, life};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use tiphys_apimachinery::Object;

/// The QoS class, from the containers' CPU and memory requests and limits.
pub fn qos_class(spec: &Value) -> &'static str {
    let (mut any, mut all) = (false, true);
    let lists = ["containers", "initContainers"]
        .into_iter()
        .filter_map(|l| spec.get(l)?.as_array());
    for container in lists.flatten() {
        for resource in ["cpu", "memory"] {
            let request = container
                .pointer("/resources/requests")
                .and_then(|r| r.get(resource));
            let limit = container
                .pointer("/resources/limits")
                .and_then(|r| r.get(resource));
            any |= request.is_some() || limit.is_some();
            all &= limit.is_some() && request.is_none_or(|r| Some(r) == limit);
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// The state of a container, as reported in its status.
enum State<'a> {
    Running,
    /// `after` is the exit code of the previous run, if there was one.
    Waiting {
        reason: &'a str,
        message: String,
        after: Option<i64>,
    },
    Ended {
        exit_code: i64,
    },
}

fn status_map(pod: &Object) -> Map<String, Value> {
    let mut status = pod
        .pointer("/status")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    if pod.generation() > 0 {
        status.insert("observedGeneration".into(), pod.generation().into());
    }
    if !status.contains_key("qosClass") {
        status.insert(
            "qosClass".into(),
            qos_class(pod.pointer("/spec").unwrap_or(&Value::Null)).into(),
        );
    }
    status
}

fn container_status(
    pod: &Object,
    container: &Value,
    old: Option<&Value>,
    state: &State<'_>,
    ready: bool,
    now: &str,
) -> Value {
    let name = text(container, "name");
    let id = format!("sim://{}/{name}", pod.uid());
    let started = old
        .and_then(|o| o.pointer("/state/running/startedAt"))
        .and_then(Value::as_str)
        .unwrap_or(now);
    let mut restarts = old
        .and_then(|o| o.get("restartCount"))
        .and_then(Value::as_i64)
        .unwrap_or(0);
    let mut last = old
        .and_then(|o| o.get("lastState"))
        .cloned()
        .unwrap_or_else(|| json!({}));
    let new_state = match state {
        State::Running => {
            let crashed = |o: &Value| {
                o.pointer("/state/waiting/reason")
                    .is_some_and(|r| r == "CrashLoopBackOff")
            };
            if old.is_some_and(crashed) {
                restarts += 1;
            }
            json!({"running": {"startedAt": now}})
        }
        State::Waiting {
            reason,
            message,
            after,
        } => {
            if let Some(code) = after {
                last = ended(pod, *code, started, now, &id);
            }
            let mut waiting = json!({"reason": reason});
            if !message.is_empty() {
                waiting["message"] = message.as_str().into();
            }
            json!({"waiting": waiting})
        }
        State::Ended { exit_code } => ended(pod, *exit_code, started, now, &id),
    };
    let made = !matches!(state, State::Waiting { after: None, .. });
    let mut status = json!({
        "name": name, "image": text(container, "image"), "imageID": if made { text(container, "image") } else { "" },
        "ready": ready, "started": matches!(state, State::Running), "restartCount": restarts, "state": new_state, "lastState": last,
    });
    if made {
        status["containerID"] = id.into();
    }
    status
}

fn ended(pod: &Object, code: i64, started: &str, now: &str, id: &str) -> Value {
    let reason = end_reason(pod, code);
    let mut end = json!({"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now, "containerID": id});
    // As a program leaves it in its termination log.
    if let Some(said) = pod.annotation(life::SAID).filter(|_| code != 0) {
        end["message"] = said.into();
    }
    json!({"terminated": end})
}

/// Why a container ended.
fn end_reason(pod: &Object, code: i64) -> &'static str {
    match code {
        0 => "Completed",
        137 if life::behaviour(pod).oom => "OOMKilled",
        _ => "Error",
    }
}

fn container_statuses(pod: &Object, state: &State<'_>, ready: bool, now: &str) -> Value {
    let old = pod
        .pointer("/status/containerStatuses")
        .and_then(Value::as_array);
    let status = |c| {
        let before = old.and_then(|l| l.iter().find(|o| text(o, "name") == text(c, "name")));
        container_status(pod, c, before, state, ready, now)
    };
    life::containers(pod).map(status).collect()
}

/// The statuses of the init containers after `done` of them have ended; sidecars run alongside
/// those that follow them.
fn init_statuses(pod: &Object, done: usize, now: &str) -> Option<Value> {
    let old = pod
        .pointer("/status/initContainerStatuses")
        .and_then(Value::as_array);
    let mut turn = 0;
    let mut list = Vec::new();
    for container in life::init_containers(pod) {
        let before = old.and_then(|l| {
            l.iter()
                .find(|o| text(o, "name") == text(container, "name"))
        });
        let sidecar = life::is_sidecar(container);
        let state = match turn.cmp(&done) {
            Ordering::Less if !sidecar => State::Ended { exit_code: 0 },
            Ordering::Less | Ordering::Equal => State::Running,
            Ordering::Greater => State::Waiting {
                reason: "PodInitializing",
                message: String::new(),
                after: None,
            },
        };
        let ready = sidecar || matches!(state, State::Ended { .. });
        let unchanged = before.filter(|b| {
            matches!(state, State::Ended { .. }) && b.pointer("/state/terminated").is_some()
        });
        let unchanged = unchanged.or(before
            .filter(|b| matches!(state, State::Running) && b.pointer("/state/running").is_some()));
        list.push(
            unchanged
                .cloned()
                .unwrap_or_else(|| container_status(pod, container, before, &state, ready, now)),
        );
        turn += usize::from(!sidecar);
    }
    (!list.is_empty()).then_some(Value::Array(list))
}

fn pod_conditions(pod: &Object, ready: bool, reason: &str, message: &str, now: Timestamp) -> Value {
    let mut list = conditions(pod);
    let initialized_reason = if reason == "PodCompleted" { reason } else { "" };
    let mut set = |kind: &str, status, reason: &str, message: &str| {
        set_condition(
            &mut list,
            Cond {
                kind,
                status,
                reason,
                message,
            },
            now,
        )
    };
    set(
        "PodReadyToStartContainers",
        !matches!(reason, "PodCompleted" | "PodFailed"),
        "",
        "",
    );
    set("Initialized", true, initialized_reason, "");
    set("Ready", ready, reason, message);
    set("ContainersReady", ready, reason, message);
    set("PodScheduled", true, "", "");
    for gate in pod
        .pointer("/spec/readinessGates")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        set(text(gate, "conditionType"), true, "", "");
    }
    Value::Array(list)
}

fn unready_message(pod: &Object) -> String {
    let names: Vec<&str> = life::containers(pod).map(|c| text(c, "name")).collect();
    format!("containers with unready status: [{}]", names.join(" "))
}

fn container_notes(pod: &Object) -> Vec<Note> {
    let of_one = |c: &Value| {
        let pulled = format!(
            "Container image \"{}\" already present on machine and can be accessed by the pod",
            text(c, "image")
        );
        [
            Note::normal("Pulled", pulled),
            Note::normal("Created", "Container created"),
            Note::normal("Started", "Container started"),
        ]
    };
    life::containers(pod).flat_map(of_one).collect()
}

fn addresses(status: &mut Map<String, Value>, pod: &Object, world: &PodWorld<'_>) {
    let node = world
        .nodes
        .iter()
        .find(|n| n.node.name() == pod.str_at("/spec/nodeName"));
    let host = node.map_or("", |n| n.address());
    if !host.is_empty() {
        status.insert("hostIP".into(), host.into());
        status.insert("hostIPs".into(), json!([{"ip": host}]));
    }
    let on_host = pod
        .pointer("/spec/hostNetwork")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let ip = if on_host { host } else { world.free_ip };
    if !status.contains_key("podIP") && !ip.is_empty() {
        status.insert("podIP".into(), ip.into());
        status.insert("podIPs".into(), json!([{"ip": ip}]));
    }
}

/// The next init container starts after the previous one has ended.
pub fn initialize(plan: &mut Plan, pod: &Object, done: usize, world: &PodWorld<'_>) {
    let now = rfc3339(world.now);
    let waiting = State::Waiting {
        reason: "PodInitializing",
        message: String::new(),
        after: None,
    };
    let left: Vec<&str> = life::init_containers(pod)
        .filter(|c| !life::is_sidecar(c))
        .skip(done)
        .map(|c| text(c, "name"))
        .collect();
    let mut conditions: Vec<Value> = pod_conditions(
        pod,
        false,
        "ContainersNotReady",
        &unready_message(pod),
        world.now,
    )
    .as_array()
    .cloned()
    .unwrap_or_default();
    let message = format!("containers with incomplete status: [{}]", left.join(" "));
    let initialized = Cond {
        kind: "Initialized",
        status: false,
        reason: "ContainersNotInitialized",
        message: &message,
    };
    set_condition(&mut conditions, initialized, world.now);
    let mut status = status_map(pod);
    status.insert("phase".into(), "Pending".into());
    status
        .entry("startTime")
        .or_insert_with(|| now.clone().into());
    status.insert("conditions".into(), Value::Array(conditions));
    status.insert(
        "containerStatuses".into(),
        container_statuses(pod, &waiting, false, &now),
    );
    if let Some(list) = init_statuses(pod, done, &now) {
        status.insert("initContainerStatuses".into(), list);
    }
    addresses(&mut status, pod, world);
    plan.status(pod, Value::Object(status), Vec::new());
}

/// Whether the containers become ready when they run.
fn becomes_ready(pod: &Object) -> bool {
    let behaviour = life::behaviour(pod);
    !(behaviour.never_ready || behaviour.crash_loop || life::probe_fails(pod))
}

/// The containers start.
pub fn start(plan: &mut Plan, pod: &Object, world: &PodWorld<'_>) {
    let now = rfc3339(world.now);
    let ready = becomes_ready(pod);
    let message = unready_message(pod);
    let (reason, message) = if ready {
        ("", "")
    } else {
        ("ContainersNotReady", message.as_str())
    };
    let mut status = status_map(pod);
    status.insert("phase".into(), "Running".into());
    status
        .entry("startTime")
        .or_insert_with(|| now.clone().into());
    status.insert(
        "conditions".into(),
        pod_conditions(pod, ready, reason, message, world.now),
    );
    status.insert(
        "containerStatuses".into(),
        container_statuses(pod, &State::Running, ready, &now),
    );
    if let Some(list) = init_statuses(pod, usize::MAX, &now) {
        status.insert("initContainerStatuses".into(), list);
    }
    // A pod whose probe fails never gets an address. The rules shared by both servers say so.
    if !life::probe_fails(pod) {
        addresses(&mut status, pod, world);
    }
    plan.status(pod, Value::Object(status), container_notes(pod));
}

/// The image name cannot be parsed, or the image cannot be pulled: the containers wait, and the pod
/// stays Pending.
pub fn bad_image(plan: &mut Plan, pod: &Object, world: &PodWorld<'_>) {
    let now = rfc3339(world.now);
    let image = life::containers(pod)
        .next()
        .map_or("", |c| text(c, "image"));
    let pulls = life::behaviour(pod).image_pull_error;
    let (reason, message) = match pulls {
        true => (
            "ImagePullBackOff",
            format!("Back-off pulling image {image:?}: ErrImagePull: no such image, by annotation"),
        ),
        false => ("InvalidImageName", "couldn't parse image name".to_owned()),
    };
    let waiting = State::Waiting {
        reason,
        message,
        after: None,
    };
    let mut status = status_map(pod);
    status.insert("phase".into(), "Pending".into());
    status.insert("startTime".into(), now.clone().into());
    status.insert(
        "conditions".into(),
        pod_conditions(
            pod,
            false,
            "ContainersNotReady",
            &unready_message(pod),
            world.now,
        ),
    );
    status.insert(
        "containerStatuses".into(),
        container_statuses(pod, &waiting, false, &now),
    );
    addresses(&mut status, pod, world);
    let failed = |c: &Value| match (pulls, text(c, "image")) {
        (true, image) => Note::warning(
            "Failed",
            format!("Failed to pull image {image:?}: no such image, by annotation"),
        ),
        (false, image) => Note::warning(
            "InspectFailed",
            format!("Failed to inspect image {image:?}: couldn't parse image name"),
        ),
    };
    let last = if pulls {
        "Error: ErrImagePull"
    } else {
        "Error: InvalidImageName"
    };
    let notes = life::containers(pod)
        .map(failed)
        .chain([Note::warning("Failed", last)])
        .collect();
    plan.status(pod, Value::Object(status), notes);
}

/// The containers end for good.
pub fn finish(plan: &mut Plan, pod: &Object, exit_code: i64, world: &PodWorld<'_>) {
    let now = rfc3339(world.now);
    let (phase, reason) = if exit_code == 0 {
        ("Succeeded", "PodCompleted")
    } else {
        ("Failed", "PodFailed")
    };
    let mut status = status_map(pod);
    status.insert("phase".into(), phase.into());
    status.insert(
        "conditions".into(),
        pod_conditions(pod, false, reason, "", world.now),
    );
    status.insert(
        "containerStatuses".into(),
        container_statuses(pod, &State::Ended { exit_code }, false, &now),
    );
    plan.status(pod, Value::Object(status), Vec::new());
}

/// The containers end with an error and will be restarted.
pub fn crash(plan: &mut Plan, pod: &Object, exit_code: i64, world: &PodWorld<'_>) {
    let restarts = pod
        .i64_at("/status/containerStatuses/0/restartCount")
        .unwrap_or(0);
    let names: Vec<&str> = life::containers(pod).map(|c| text(c, "name")).collect();
    let first = names.first().copied().unwrap_or("");
    let place = format!("{}_{}({})", pod.name(), pod.namespace(), pod.uid());
    let message = format!(
        "back-off {}s restarting failed container={first} pod={place}",
        life::back_off(restarts).as_secs()
    );
    let waiting = State::Waiting {
        reason: "CrashLoopBackOff",
        message,
        after: Some(exit_code),
    };
    let mut status = status_map(pod);
    status.insert(
        "conditions".into(),
        pod_conditions(
            pod,
            false,
            "ContainersNotReady",
            &unready_message(pod),
            world.now,
        ),
    );
    status.insert(
        "containerStatuses".into(),
        container_statuses(pod, &waiting, false, &rfc3339(world.now)),
    );
    let note = Note::warning(
        "BackOff",
        format!("Back-off restarting failed container {first} in pod {place}"),
    );
    plan.status(pod, Value::Object(status), vec![note]);
}

/// The containers of a crashed pod start again.
pub fn restart(plan: &mut Plan, pod: &Object, world: &PodWorld<'_>) {
    let ready = becomes_ready(pod);
    let mut status = status_map(pod);
    if ready {
        status.insert(
            "conditions".into(),
            pod_conditions(pod, true, "", "", world.now),
        );
    }
    status.insert(
        "containerStatuses".into(),
        container_statuses(pod, &State::Running, ready, &rfc3339(world.now)),
    );
    plan.status(pod, Value::Object(status), container_notes(pod));
}

/// No node can run the pod at the moment.
pub fn unschedulable(plan: &mut Plan, pod: &Object, reason: &str, message: &str, now: Timestamp) {
    let mut list = conditions(pod);
    set_condition(
        &mut list,
        Cond {
            kind: "PodScheduled",
            status: false,
            reason,
            message,
        },
        now,
    );
    let mut status = status_map(pod);
    status.insert("phase".into(), "Pending".into());
    status.insert("conditions".into(), Value::Array(list));
    let notes = if reason == "Unschedulable" {
        vec![Note::warning("FailedScheduling", message)]
    } else {
        Vec::new()
    };
    plan.status(pod, Value::Object(status), notes);
}

/// The event about a pod whose containers are stopped.
pub fn stopped(pod: &Object) -> Option<Note> {
    let first = life::containers(pod)
        .next()
        .filter(|_| life::phase(pod) == "Running")?;
    Some(Note::normal(
        "Killing",
        format!("Stopping container {}", text(first, "name")),
    ))
}

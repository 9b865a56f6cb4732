//! Determines the lifecycle stage of a pod and how long the stage lasts.

use super::super::{
    SimOptions,
    fields::{after, condition, parse_time, text},
};
use jiff::Timestamp;
use serde_json::Value;
use std::time::Duration;
use tiphys_apimachinery::Object;

/// The annotation that selects a special behaviour of a pod; several words are separated by commas.
/// `slow=10s`: starting takes that long. `never-ready`: it runs, but never becomes Ready.
/// `crash-loop`: its container ends with an error soon after each start. `fail-after=30s`: it ends
/// with an error after that time. `exit=N`: the exit code. `oom`: it is killed because of memory.
/// `image-pull-error`: it never starts.
pub const BEHAVIOUR: &str = "sim.tiphys.dev/behaviour";

/// The annotation that says how a program that runs elsewhere has ended: `RESTARTS:CODE`, with the
/// restarts of its container before.
pub const ENDED: &str = "sim.tiphys.dev/ended";
/// The annotation with what such a program printed.
pub const SAID: &str = "sim.tiphys.dev/said";

/// The parsed value of [`BEHAVIOUR`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// How long starting takes, if not the default.
    pub slow: Option<Duration>,
    pub never_ready: bool,
    pub crash_loop: bool,
    pub fail_after: Option<Duration>,
    pub exit: Option<i64>,
    pub oom: bool,
    pub image_pull_error: bool,
}

impl Behaviour {
    /// The exit code with which the container ends by itself, if it does.
    pub fn exit_code(&self) -> Option<i64> {
        match self {
            Self {
                exit: Some(code), ..
            } => Some(*code),
            Self { oom: true, .. } => Some(137),
            Self {
                crash_loop: true, ..
            }
            | Self {
                fail_after: Some(_),
                ..
            } => Some(1),
            _ => None,
        }
    }
}

/// The next step of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing, until the pod changes.
    Rest,
    Bind,
    /// `done` init containers have ended, and the next one runs.
    Init {
        done: usize,
    },
    Start,
    BadImage,
    Finish {
        exit_code: i64,
    },
    /// The container ends and waits to be restarted.
    Crash {
        exit_code: i64,
    },
    Restart,
    ReleaseFinalizers,
    Stop,
}

/// Reads the annotation; unknown words are ignored.
pub fn behaviour(pod: &Object) -> Behaviour {
    let mut wanted = Behaviour::default();
    for word in pod
        .annotation(BEHAVIOUR)
        .unwrap_or("")
        .split(',')
        .map(str::trim)
    {
        match word.split_once('=') {
            Some(("slow", time)) => wanted.slow = duration(time),
            Some(("fail-after", time)) => wanted.fail_after = duration(time),
            Some(("exit", code)) => {
                wanted.exit = code.parse().ok().filter(|c| (0..=255).contains(c))
            }
            None if word == "crash-loop" => wanted.crash_loop = true,
            None if word == "never-ready" => wanted.never_ready = true,
            None if word == "oom" => wanted.oom = true,
            None if word == "image-pull-error" => wanted.image_pull_error = true,
            _ => {}
        }
    }
    wanted
}

/// `10`, `10s`, `500ms`, `2m` or `1h`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let millis = match &text[digits..] {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.saturating_mul(millis)))
}

/// The stage of a pod, and how long after entering it the next step happens.
pub fn stage(pod: &Object, options: &SimOptions) -> (Stage, Duration) {
    if pod.deletion_timestamp().is_some() {
        return terminating(pod, options);
    }
    match phase(pod) {
        "Pending" if pod.str_at("/spec/nodeName").is_empty() => (Stage::Bind, Duration::ZERO),
        "Pending" => starting(pod, options),
        "Running" => running(pod, options),
        _ => (Stage::Rest, Duration::ZERO),
    }
}

/// The phase; Pending for a pod without a status.
pub fn phase(pod: &Object) -> &str {
    match pod.str_at("/status/phase") {
        "" => "Pending",
        phase => phase,
    }
}

fn terminating(pod: &Object, options: &SimOptions) -> (Stage, Duration) {
    let hook = first_container(pod).and_then(|c| c.pointer("/lifecycle/preStop/exec/command"));
    let releases = hook.is_some_and(|c| words(Some(c)).join(" ").contains("/metadata/finalizers"));
    if releases && !pod.finalizers().is_empty() {
        return (Stage::ReleaseFinalizers, Duration::from_millis(1500));
    }
    // Grace period 0: the containers have stopped, and only finalizers keep the object.
    if pod
        .metadata("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        == Some(0)
    {
        return (Stage::Rest, Duration::ZERO);
    }
    // Containers never run longer than the grace period.
    let grace = pod
        .metadata("deletionGracePeriodSeconds")
        .and_then(Value::as_u64)
        .map_or(Duration::MAX, Duration::from_secs);
    let delay = if phase(pod) == "Running" {
        options.stop_delay
    } else {
        options.stop_delay.min(Duration::from_millis(300))
    };
    (Stage::Stop, delay.min(grace))
}

fn starting(pod: &Object, options: &SimOptions) -> (Stage, Duration) {
    let behaviour = behaviour(pod);
    let delay = behaviour.slow.unwrap_or(options.start_delay);
    if behaviour.image_pull_error || containers(pod).any(|c| bad_image(text(c, "image"))) {
        let reported = pod.pointer("/status/containerStatuses").is_some();
        return (
            if reported {
                Stage::Rest
            } else {
                Stage::BadImage
            },
            delay,
        );
    }
    let inits: Vec<Duration> = init_containers(pod)
        .filter(|c| !is_sidecar(c))
        .map(init_time)
        .collect();
    if inits.iter().all(Duration::is_zero) {
        return (Stage::Start, delay);
    }
    let Some(statuses) = pod
        .pointer("/status/initContainerStatuses")
        .and_then(Value::as_array)
    else {
        return (Stage::Init { done: 0 }, delay);
    };
    let done = statuses
        .iter()
        .filter(|s| s.pointer("/state/terminated").is_some())
        .count();
    let time = inits.get(done).copied().unwrap_or_default();
    (
        if done + 1 < inits.len() {
            Stage::Init { done: done + 1 }
        } else {
            Stage::Start
        },
        time,
    )
}

/// How long an init container runs, from the `sleep` in its command.
fn init_time(container: &Value) -> Duration {
    let mut all = words(container.get("command"));
    all.extend(words(container.get("args")));
    sleep_time(&all.join(" ")).unwrap_or_default()
}

fn running(pod: &Object, options: &SimOptions) -> (Stage, Duration) {
    let behaviour = behaviour(pod);
    if let Some(exit_code) = behaviour.exit_code() {
        let first = pod.pointer("/status/containerStatuses/0");
        if first.is_some_and(|c| c.pointer("/state/waiting").is_some()) {
            return (Stage::Restart, pause(first));
        }
        let time = behaviour
            .fail_after
            .or_else(|| sleep_time(&command_line(pod)))
            .unwrap_or(options.finish_delay);
        let again = match pod.str_at("/spec/restartPolicy") {
            "Never" => false,
            "OnFailure" => exit_code != 0,
            _ => true,
        };
        return (
            if again {
                Stage::Crash { exit_code }
            } else {
                Stage::Finish { exit_code }
            },
            time,
        );
    }
    if runs_elsewhere(pod, options) {
        return elsewhere(pod);
    }
    match outcome(pod) {
        Outcome::Runs => (Stage::Rest, Duration::ZERO),
        Outcome::Fails => (Stage::Finish { exit_code: 1 }, options.finish_delay),
        Outcome::Succeeds(time) => (
            Stage::Finish { exit_code: 0 },
            time.unwrap_or(options.finish_delay),
        ),
    }
}

/// Whether the command is one of those that someone runs for real.
fn runs_elsewhere(pod: &Object, options: &SimOptions) -> bool {
    let words = first_container(pod).map(|c| words(c.get("command")));
    let command = words.and_then(|words| words.first().copied());
    let name = command.and_then(|command| command.rsplit('/').next());
    name.is_some_and(|name| options.programs.iter().any(|program| program == name))
}

/// The stage of a pod whose program runs elsewhere.
fn elsewhere(pod: &Object) -> (Stage, Duration) {
    let first = pod.pointer("/status/containerStatuses/0");
    if first.is_some_and(|c| c.pointer("/state/waiting").is_some()) {
        return (Stage::Restart, pause(first));
    }
    let restarts = first.and_then(|c| c.get("restartCount"));
    let restarts = restarts.and_then(Value::as_i64).unwrap_or(0);
    let ended = pod.annotation(ENDED).and_then(|text| text.split_once(':'));
    let ended = ended.filter(|(run, _)| run.parse() == Ok(restarts));
    let Some(exit_code) = ended.and_then(|(_, code)| code.parse::<i64>().ok()) else {
        return (Stage::Rest, Duration::ZERO);
    };
    let again = match pod.str_at("/spec/restartPolicy") {
        "Never" => false,
        "OnFailure" => exit_code != 0,
        _ => true,
    };
    let stage = if again {
        Stage::Crash { exit_code }
    } else {
        Stage::Finish { exit_code }
    };
    (stage, Duration::ZERO)
}

/// The restart delay of a container that ended; it is reset after a run of ten minutes.
fn pause(status: Option<&Value>) -> Duration {
    let at = |pointer: &str| {
        status
            .and_then(|s| s.pointer(pointer))
            .and_then(Value::as_str)
            .and_then(parse_time)
    };
    let ran = at("/lastState/terminated/finishedAt")
        .zip(at("/lastState/terminated/startedAt"))
        .map(|(end, start)| end.duration_since(start));
    let restarts = status
        .and_then(|s| s.get("restartCount"))
        .and_then(Value::as_i64)
        .unwrap_or(0);
    back_off(
        if ran.is_some_and(|r| r >= jiff::SignedDuration::from_mins(10)) {
            0
        } else {
            restarts
        },
    )
}

/// Since when a pod has been in a stage according to its status, which is all that is known after a
/// restart of this process.
pub fn entered(pod: &Object, stage: Stage) -> Option<Timestamp> {
    let at = |pointer: &str| {
        pod.pointer(pointer)
            .and_then(Value::as_str)
            .and_then(parse_time)
    };
    let scheduled =
        || condition(pod, "PodScheduled").and_then(|c| parse_time(text(c, "lastTransitionTime")));
    match stage {
        Stage::Rest | Stage::Bind | Stage::ReleaseFinalizers => None,
        Stage::Init { .. } | Stage::Start | Stage::BadImage => {
            let statuses = pod
                .pointer("/status/initContainerStatuses")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let running = statuses.filter_map(|s| {
                s.pointer("/state/running/startedAt")?
                    .as_str()
                    .and_then(parse_time)
            });
            running.max().or_else(scheduled)
        }
        Stage::Finish { .. } | Stage::Crash { .. } => {
            at("/status/containerStatuses/0/state/running/startedAt")
        }
        Stage::Restart => at("/status/containerStatuses/0/lastState/terminated/finishedAt"),
        Stage::Stop => {
            let grace = pod
                .metadata("deletionGracePeriodSeconds")
                .and_then(Value::as_i64)
                .unwrap_or(0);
            pod.deletion_timestamp()
                .and_then(parse_time)
                .map(|until| after(until, -grace))
        }
    }
}

/// The restart delay of a crashed container: 10 s, doubled at each restart, at most 5 minutes.
pub fn back_off(restarts: i64) -> Duration {
    let doublings = u32::try_from(restarts.clamp(0, 5)).unwrap_or(0);
    Duration::from_secs((10 << doublings).min(300))
}

enum Outcome {
    Runs,
    Fails,
    Succeeds(Option<Duration>),
}

fn outcome(pod: &Object) -> Outcome {
    if matches!(pod.str_at("/spec/restartPolicy"), "Always" | "") {
        return Outcome::Runs;
    }
    let command = command_line(pod);
    if fails(&command) {
        return Outcome::Fails;
    }
    let of_job = pod.owner_references().iter().any(|o| o.kind == "Job");
    if command.is_empty() && !of_job {
        Outcome::Runs
    } else {
        Outcome::Succeeds(sleep_time(&command))
    }
}

/// `false`, or an `exit` with a code other than 0.
fn fails(command: &str) -> bool {
    let exits = command
        .match_indices("exit ")
        .any(|(at, word)| matches!(command.as_bytes().get(at + word.len()), Some(b'1'..=b'9')));
    exits || command == "false" || command.starts_with("false ")
}

/// The first `sleep N` in a command.
pub fn sleep_time(command: &str) -> Option<Duration> {
    command.match_indices("sleep ").find_map(|(at, word)| {
        let rest = &command[at + word.len()..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit = rest[digits..]
            .bytes()
            .next()
            .filter(|u| b"smh".contains(u))
            .map_or(0, |_| 1);
        if digits == 0 {
            None
        } else {
            duration(&rest[..digits + unit])
        }
    })
}

/// Command and arguments of the first container, joined with spaces.
pub fn command_line(pod: &Object) -> String {
    let Some(first) = first_container(pod) else {
        return String::new();
    };
    let mut all = words(first.get("command"));
    all.extend(words(first.get("args")));
    all.join(" ")
}

fn words(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array)
        .map(|l| l.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

fn bad_image(image: &str) -> bool {
    image.contains('!') || matches!(image, "test" | "latest")
}

/// Whether a readiness probe requests a path whose name says that it does not exist.
pub fn probe_fails(pod: &Object) -> bool {
    containers(pod).any(|c| {
        c.pointer("/readinessProbe/httpGet/path")
            .and_then(Value::as_str)
            .is_some_and(|p| p.contains("does-not-exist"))
    })
}

pub fn init_containers(pod: &Object) -> impl Iterator<Item = &Value> {
    pod.pointer("/spec/initContainers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Whether an init container keeps running beside the others.
pub fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

pub fn containers(pod: &Object) -> impl Iterator<Item = &Value> {
    pod.pointer("/spec/containers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn first_container(pod: &Object) -> Option<&Value> {
    containers(pod).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(policy: &str, command: &[&str], owner: &str) -> Object {
        let owners = if owner.is_empty() {
            json!([])
        } else {
            json!([{"apiVersion": "x/v1", "kind": owner, "name": "o", "uid": "u"}])
        };
        Object::from_value(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d", "ownerReferences": owners},
            "spec": {"restartPolicy": policy, "nodeName": "node-1", "containers": [{"name": "c", "image": "busybox", "command": command}]},
            "status": {"phase": "Running"},
        }))
        .expect("a map")
    }

    #[test]
    fn a_pod_lives_as_its_command_says() {
        let ok = |ms| (Stage::Finish { exit_code: 0 }, Duration::from_millis(ms));
        let bad = (Stage::Finish { exit_code: 1 }, Duration::from_millis(700));
        let runs = (Stage::Rest, Duration::ZERO);
        for (policy, command, owner, want) in [
            ("Never", &["true"][..], "Job", ok(700)),
            ("OnFailure", &["sleep", "5"], "", ok(5_000)),
            ("Never", &["sh", "-c", "echo a; sleep 2m"], "", ok(120_000)),
            ("Never", &["sh", "-c", "sleep x; sleep 3s"], "", ok(3_000)),
            ("Never", &["sh", "-c", "sleep 1; exit 3"], "Job", bad),
            ("Never", &["sh", "-c", "exit 0"], "Job", ok(700)),
            ("Never", &["false"], "", bad),
            ("Never", &["falsely"], "", ok(700)),
            ("Always", &["false"], "ReplicaSet", runs),
            ("Never", &[], "", runs),
            ("Never", &[], "Job", ok(700)),
        ] {
            assert_eq!(
                stage(&pod(policy, command, owner), &SimOptions::default()),
                want,
                "{policy} {command:?} {owner}"
            );
        }
    }

    #[test]
    fn the_annotation_asks_for_more() {
        for (text, want) in [
            (
                "slow=10s",
                Behaviour {
                    slow: Some(Duration::from_secs(10)),
                    ..Behaviour::default()
                },
            ),
            (
                "crash-loop",
                Behaviour {
                    crash_loop: true,
                    ..Behaviour::default()
                },
            ),
            (
                "never-ready, slow=500ms",
                Behaviour {
                    never_ready: true,
                    slow: Some(Duration::from_millis(500)),
                    ..Behaviour::default()
                },
            ),
            (
                "fail-after=30s, exit=3",
                Behaviour {
                    fail_after: Some(Duration::from_secs(30)),
                    exit: Some(3),
                    ..Behaviour::default()
                },
            ),
            (
                "oom,exit=999",
                Behaviour {
                    oom: true,
                    ..Behaviour::default()
                },
            ),
            ("slow=soon,what", Behaviour::default()),
        ] {
            let mut p = pod("Always", &[], "");
            p.set_annotation(BEHAVIOUR, text);
            assert_eq!(behaviour(&p), want, "{text}");
        }
        assert_eq!(back_off(0), Duration::from_secs(10));
        assert_eq!(back_off(2), Duration::from_secs(40));
        assert_eq!(back_off(99), Duration::from_secs(300));
    }
}

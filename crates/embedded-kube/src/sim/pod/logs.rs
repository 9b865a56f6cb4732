//! The log of a simulated container: the output of each `echo` in its command once the `sleep`s
//! before it have passed, or one line that names what runs.
//!
//! Main function: [`log`].

use super::super::fields::{parse_time, text};
use super::life;
use jiff::Timestamp;
use serde_json::Value;
use tiphys_apimachinery::Object;

/// The log of one container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Each line with the time it was written.
    pub lines: Vec<(Timestamp, String)>,
    /// The container has ended for good, so there will be no more lines.
    pub ended: bool,
}

/// The output of the container until `now`; with `previous`, the output before its last restart.
/// The error is the message of a real server.
pub fn log(pod: &Object, container: &str, previous: bool, now: Timestamp) -> Result<Log, String> {
    let found = self::container(pod, container)?;
    let name = text(found, "name");
    if pod.str_at("/spec/nodeName").is_empty() {
        return Ok(Log {
            lines: Vec::new(),
            ended: pod.deletion_timestamp().is_some(),
        });
    }
    let status = status_of(pod, name);
    let at = |pointer: &str| status.and_then(|s| s.pointer(pointer));
    if previous {
        return match at("/lastState/terminated") {
            Some(ended) => Ok(of_run(pod, found, ended, now)),
            None => Err(format!(
                "previous terminated container {name:?} in pod {:?} not found",
                pod.name()
            )),
        };
    }
    if let Some(run) = at("/state/running").or(at("/state/terminated")) {
        return Ok(of_run(pod, found, run, now));
    }
    // A container that waits for a restart shows its last run.
    if let Some(ended) = at("/lastState/terminated") {
        return Ok(Log {
            ended: false,
            ..of_run(pod, found, ended, now)
        });
    }
    let why = match at("/state/waiting/reason").and_then(Value::as_str) {
        Some("ErrImagePull" | "ImagePullBackOff") => "trying and failing to pull image",
        Some(reason) => reason,
        None => "ContainerCreating",
    };
    Err(format!(
        "container {name:?} in pod {:?} is waiting to start: {why}",
        pod.name()
    ))
}

/// The container with the given name, or the only one.
pub fn container<'a>(pod: &'a Object, name: &str) -> Result<&'a Value, String> {
    let of = |list: &str| {
        pod.pointer("/spec")
            .and_then(|s| s.get(list))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    if !name.is_empty() {
        let mut all = of("containers")
            .chain(of("initContainers"))
            .chain(of("ephemeralContainers"));
        return all
            .find(|c| text(c, "name") == name)
            .ok_or_else(|| format!("container {name} is not valid for pod {}", pod.name()));
    }
    let mut all = of("containers");
    if let (Some(only), None) = (all.next(), all.next()) {
        return Ok(only);
    }
    let all = of("initContainers")
        .chain(of("containers"))
        .chain(of("ephemeralContainers"));
    let names: Vec<&str> = all.map(|c| text(c, "name")).collect();
    Err(format!(
        "a container name must be specified for pod {}, choose one of: [{}]",
        pod.name(),
        names.join(" ")
    ))
}

fn status_of<'a>(pod: &'a Object, name: &str) -> Option<&'a Value> {
    let lists = [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ];
    let all = lists
        .into_iter()
        .filter_map(|l| pod.pointer("/status")?.get(l)?.as_array())
        .flatten();
    all.into_iter().find(|s| text(s, "name") == name)
}

/// The output of one run, which may have ended.
fn of_run(pod: &Object, container: &Value, run: &Value, now: Timestamp) -> Log {
    let time = |field: &str| run.get(field).and_then(Value::as_str).and_then(parse_time);
    let (start, end) = (time("startedAt").unwrap_or(now), time("finishedAt"));
    let list = |field: &str| {
        container
            .get(field)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    };
    let command = list("command")
        .chain(list("args"))
        .collect::<Vec<_>>()
        .join(" ");
    let until = end.unwrap_or(now);
    if let (Some(said), Some(end)) = (pod.annotation(life::SAID), end) {
        let lines = said.lines().map(|line| (end, line.to_owned())).collect();
        return Log { lines, ended: true };
    }
    // A run ends after the first `sleep` of its command: later output is printed at its end.
    let mut lines = said(&command, start);
    lines.retain(|(at, _)| *at <= until || end.is_some());
    lines.iter_mut().for_each(|(at, _)| *at = (*at).min(until));
    if lines.is_empty() && !command.contains("echo ") {
        let (name, image, node) = (
            text(container, "name"),
            text(container, "image"),
            pod.str_at("/spec/nodeName"),
        );
        let what = if command.is_empty() {
            "its image's command".to_owned()
        } else {
            format!("`{command}`")
        };
        lines.push((
            start,
            format!("simulated container {name} of {image} on {node} runs {what}"),
        ));
    }
    let code = run.get("exitCode").and_then(Value::as_i64);
    if let (Some(code), Some(end)) = (code.filter(|c| *c != 0), end) {
        lines.push((
            end,
            format!(
                "simulated container {} ended with exit code {code}",
                text(container, "name")
            ),
        ));
    }
    Log {
        lines,
        ended: end.is_some(),
    }
}

/// The output of the `echo`s in a shell line, with times.
fn said(command: &str, start: Timestamp) -> Vec<(Timestamp, String)> {
    let mut time = start;
    let mut lines = Vec::new();
    for part in command.split([';', '\n', '&', '|']).map(str::trim) {
        if let Some(pause) = life::sleep_time(part) {
            time = time.saturating_add(pause).unwrap_or(Timestamp::MAX);
        }
        let Some(at) = part
            .find("echo ")
            .filter(|at| *at == 0 || part[..*at].ends_with(' '))
        else {
            continue;
        };
        lines.push((
            time,
            part[at + 5..].trim().trim_matches(['"', '\'']).to_owned(),
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(spec: Value, statuses: Value) -> Object {
        let mut spec = spec;
        spec["nodeName"] = "node-1".into();
        Object::from_value(json!({"metadata": {"name": "p"}, "spec": spec, "status": {"containerStatuses": statuses}})).expect("a map")
    }

    fn container(command: Value) -> Value {
        json!({"containers": [{"name": "c", "image": "i", "command": command}]})
    }

    const START: &str = "2026-03-04T10:00:00Z";

    fn text_at(pod: &Object, seconds: i64) -> Result<String, String> {
        let now = parse_time(START).expect("a time") + jiff::SignedDuration::from_secs(seconds);
        log(pod, "", false, now).map(|l| {
            l.lines
                .into_iter()
                .map(|(_, t)| t)
                .collect::<Vec<_>>()
                .join("|")
        })
    }

    #[test]
    fn a_container_prints_what_it_echoes_when_its_time_has_come() {
        let running = json!([{"name": "c", "state": {"running": {"startedAt": START}}}]);
        let talks = pod(
            container(json!([
                "sh",
                "-c",
                "echo \"hello world\" && sleep 5; echo 'done'"
            ])),
            running.clone(),
        );
        assert_eq!(text_at(&talks, 1).as_deref(), Ok("hello world"));
        assert_eq!(text_at(&talks, 5).as_deref(), Ok("hello world|done"));
        let silent = pod(container(json!(null)), running);
        assert_eq!(
            text_at(&silent, 0).as_deref(),
            Ok("simulated container c of i on node-1 runs its image's command")
        );
        let ended = json!([{"name": "c", "state": {"terminated": {"startedAt": START, "finishedAt": START, "exitCode": 1}}}]);
        let failed = pod(container(json!(["false"])), ended);
        let want = "simulated container c of i on node-1 runs `false`|simulated container c ended with exit code 1";
        assert_eq!(text_at(&failed, 0).as_deref(), Ok(want));
    }

    #[test]
    fn what_cannot_be_shown_is_said_as_a_real_server_says_it() {
        let waiting =
            |reason: &str| json!([{"name": "c", "state": {"waiting": {"reason": reason}}}]);
        for (statuses, want) in [
            (
                json!([]),
                "container \"c\" in pod \"p\" is waiting to start: ContainerCreating",
            ),
            (
                waiting("PodInitializing"),
                "container \"c\" in pod \"p\" is waiting to start: PodInitializing",
            ),
            (
                waiting("ImagePullBackOff"),
                "container \"c\" in pod \"p\" is waiting to start: trying and failing to pull image",
            ),
        ] {
            assert_eq!(
                text_at(&pod(container(json!(null)), statuses), 0).expect_err("it waits"),
                want
            );
        }
        let now = parse_time(START).expect("a time");
        let one = pod(container(json!(null)), json!([]));
        assert_eq!(
            log(&one, "x", false, now).expect_err("no such"),
            "container x is not valid for pod p"
        );
        assert_eq!(
            log(&one, "c", true, now).expect_err("no such"),
            "previous terminated container \"c\" in pod \"p\" not found"
        );
        let two = pod(
            json!({"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}),
            json!([]),
        );
        let want = "a container name must be specified for pod p, choose one of: [i a b]";
        assert_eq!(log(&two, "", false, now).expect_err("which"), want);
    }
}

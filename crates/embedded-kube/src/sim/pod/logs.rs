//! What a simulated container says.

use super::super::fields::text;
use super::life;
use serde_json::Value;
use std::fmt::Write as _;
use tiphys_apimachinery::Object;

/// The log of a pod's containers: what `echo` in its command prints, and what happened to it. Empty before it starts.
pub fn logs(pod: &Object) -> String {
    let mut out = String::new();
    let statuses = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    for container in life::containers(pod) {
        let status = statuses.and_then(|l| l.iter().find(|s| text(s, "name") == text(container, "name")));
        if let Some(status) = status {
            container_log(&mut out, pod, container, status);
        }
    }
    out
}

/// The log of one container; `None` when the pod has no such container.
pub fn container_logs(pod: &Object, name: &str) -> Option<String> {
    let container = life::containers(pod).find(|c| text(c, "name") == name)?;
    let statuses = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    let mut out = String::new();
    if let Some(status) = statuses.and_then(|l| l.iter().find(|s| text(s, "name") == name)) {
        container_log(&mut out, pod, container, status);
    }
    Some(out)
}

fn container_log(out: &mut String, pod: &Object, container: &Value, status: &Value) {
    let at = |path: &str| status.pointer(path).and_then(Value::as_str);
    let started = at("/state/running/startedAt").or(at("/state/terminated/startedAt")).or(at("/lastState/terminated/startedAt"));
    let Some(started) = started else { return };
    let list = |field: &str| container.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let command: Vec<&str> = list("command").chain(list("args")).collect();
    let command = command.join(" ");
    let said: Vec<&str> = echoes(&command);
    // Writing into a String cannot fail.
    if said.is_empty() {
        let (name, image, node) = (text(container, "name"), text(container, "image"), pod.str_at("/spec/nodeName"));
        let what = if command.is_empty() { "its image's command".to_owned() } else { format!("`{command}`") };
        let _ = writeln!(out, "{started} simulated container {name} of {image} on {node} runs {what}");
    }
    for line in said {
        let _ = writeln!(out, "{line}");
    }
    let code = status.pointer("/state/terminated/exitCode").or(status.pointer("/lastState/terminated/exitCode")).and_then(Value::as_i64);
    if let Some(code) = code.filter(|c| *c != 0) {
        let _ = writeln!(out, "simulated container {} ended with exit code {code}", text(container, "name"));
    }
}

/// What the `echo`s of a shell line print.
fn echoes(command: &str) -> Vec<&str> {
    let parts = command.split([';', '\n', '&', '|']).map(str::trim);
    let said = parts.filter_map(|p| Some(&p[p.find("echo ").filter(|at| *at == 0 || p[..*at].ends_with(' '))? + 5..]));
    said.map(|s| s.trim().trim_matches(['"', '\''])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_container_prints_what_it_echoes() {
        let pod = |command: Value, status: Value| {
            Object::from_value(json!({"spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "i", "command": command}]}, "status": {"containerStatuses": status}})).expect("a map")
        };
        let running = json!([{"name": "c", "state": {"running": {"startedAt": "T"}}}]);
        let failed = json!([{"name": "c", "state": {"terminated": {"startedAt": "T", "exitCode": 1}}}]);
        assert_eq!(logs(&pod(json!(["sh", "-c", "echo \"hello world\" && sleep 1"]), running.clone())), "hello world\n");
        assert_eq!(
            logs(&pod(json!(["false"]), failed)),
            "T simulated container c of i on node-1 runs `false`\nsimulated container c ended with exit code 1\n"
        );
        assert_eq!(logs(&pod(json!(null), json!([]))), "");
        assert_eq!(container_logs(&pod(json!(null), running), "other"), None);
    }
}

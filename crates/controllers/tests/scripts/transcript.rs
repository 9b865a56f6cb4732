//! What is shown after a step: the operation, the Application, the cluster's objects. Main type:
//! [`Transcript`].
//!
//! A section that is unchanged since the previous step is left out. Times, uids and generated parts
//! of names are replaced by placeholders, commits by their number. Results and resources are in the
//! Application's order; objects of the cluster are sorted, because an API server has no order of
//! its own.

use regex::Regex;
use serde_json::Value;
use std::{collections::BTreeMap, sync::LazyLock};

/// The sections that were last shown, by title.
#[derive(Clone, Default)]
pub struct Transcript {
    shown: BTreeMap<String, Vec<String>>,
}

/// A title (empty for the script's own Application) and its lines, the first of which describes
/// them.
pub type Section = (String, Vec<String>);

impl Transcript {
    /// The lines of changed sections. Nothing is stored: see [`Transcript::keep`].
    pub fn news(&self, sections: &[Section]) -> Vec<String> {
        sections
            .iter()
            .filter(|(title, lines)| self.shown.get(title) != Some(lines))
            .flat_map(|(_, lines)| lines.clone())
            .collect()
    }

    pub fn keep(&mut self, sections: Vec<Section>) {
        self.shown = sections.into_iter().collect();
    }
}

fn word<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The words of each line, aligned in columns.
fn table(rows: Vec<Vec<String>>) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        rows.iter()
            .filter_map(|r| r.get(at))
            .map(|w| w.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        format!("  {}", cells.join("  ")).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn or_dash(text: &str) -> String {
    if text.is_empty() {
        "-".into()
    } else {
        text.into()
    }
}

/// `Kind/name`, with the namespace if it is not the usual one.
fn name_of(resource: &Value, usual: &str) -> String {
    let (kind, name, namespace) = (
        word(resource, "/kind"),
        word(resource, "/name"),
        word(resource, "/namespace"),
    );
    if namespace.is_empty() || namespace == usual {
        format!("{kind}/{name}")
    } else {
        format!("{kind}/{namespace}/{name}")
    }
}

/// The revision, or those of several sources.
pub fn revision_of(value: &Value) -> String {
    match list(value, "/revisions") {
        [] => word(value, "/revision").to_owned(),
        several => several
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// An Application's operation.
pub fn operation(app: &Value, title: &str, usual: &str) -> Option<Section> {
    let state = app.pointer("/status/operationState")?;
    let (phase, message, revision) = (
        word(state, "/phase"),
        word(state, "/message"),
        revision_of(&state["syncResult"]),
    );
    let at = if revision.is_empty() {
        String::new()
    } else {
        format!(" at {revision}")
    };
    let mut lines: Vec<String> = format!("{title}operation {phase}{at}: {message}")
        .lines()
        .map(str::to_owned)
        .collect();
    let row = |r: &Value| {
        let cells = ["/syncPhase", "", "/status", "/hookPhase", "/message"];
        cells
            .iter()
            .map(|p| {
                if p.is_empty() {
                    name_of(r, usual)
                } else {
                    or_dash(word(r, p))
                }
            })
            .collect()
    };
    lines.extend(table(
        list(state, "/syncResult/resources")
            .iter()
            .map(row)
            .collect(),
    ));
    Some((format!("{title}operation"), lines))
}

/// An Application's own state.
pub fn application(app: Option<&Value>, title: &str, usual: &str) -> Section {
    let Some(app) = app else {
        return (
            format!("{title}application"),
            vec![format!("{title}application is gone")],
        );
    };
    let leaves = if app.pointer("/metadata/deletionTimestamp").is_some() {
        ", being deleted"
    } else {
        ""
    };
    let (sync, revision, health) = (
        word(app, "/status/sync/status"),
        revision_of(&app["status"]["sync"]),
        word(app, "/status/health/status"),
    );
    let at = if revision.is_empty() {
        String::new()
    } else {
        format!(" at {revision}")
    };
    let mut lines = vec![format!(
        "{title}application {}{at}, {}{leaves}",
        or_dash(sync),
        or_dash(health)
    )];
    // Argo CD does not have this one, and it repeats what the resources below show: scripts that
    // are about it show it themselves.
    let conditions = list(app, "/status/conditions")
        .iter()
        .filter(|c| word(c, "/type") != "OutOfSyncWarning");
    lines.extend(conditions.map(|c| format!("  {}: {}", word(c, "/type"), word(c, "/message"))));
    let row = |r: &Value| {
        let prune = if r["requiresPruning"] == true {
            "to be pruned"
        } else {
            ""
        };
        let hook = if r["hook"] == true { "hook" } else { "" };
        let health = word(r, "/health/message");
        let marks: Vec<&str> = [prune, hook, health]
            .into_iter()
            .filter(|m| !m.is_empty())
            .collect();
        vec![
            name_of(r, usual),
            or_dash(word(r, "/status")),
            or_dash(word(r, "/health/status")),
            marks.join(", "),
        ]
    };
    lines.extend(table(
        list(app, "/status/resources").iter().map(row).collect(),
    ));
    (format!("{title}application"), lines)
}

/// The objects in the cluster.
pub fn cluster(objects: &[Value], usual: &str) -> Section {
    // The script's own namespace is implied.
    let told = |row: &Vec<String>| row[0] != format!("Namespace/{usual}") || !row[1].is_empty();
    let mut rows: Vec<Vec<String>> = objects
        .iter()
        .map(|o| object(o, usual))
        .filter(told)
        .collect();
    rows.sort();
    let mut lines = vec![if rows.is_empty() {
        "cluster has nothing".to_owned()
    } else {
        "cluster".to_owned()
    }];
    lines.extend(table(rows));
    ("cluster".into(), lines)
}

fn object(object: &Value, usual: &str) -> Vec<String> {
    let begin = word(object, "/metadata/generateName");
    let name = word(object, "/metadata/name");
    let name = if begin.is_empty() || !name.starts_with(begin) {
        name.to_owned()
    } else {
        format!("{begin}*")
    };
    let of = serde_json::json!({"kind": object["kind"], "name": name, "namespace": object["metadata"]["namespace"]});
    let mut row = vec![name_of(&of, usual), detail(object)];
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        let held: Vec<&str> = list(object, "/metadata/finalizers")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let held = if held.is_empty() {
            String::new()
        } else {
            format!(", held by {}", held.join(", "))
        };
        row[1] = format!("{} being deleted{held}", row[1]).trim().to_owned();
    }
    row
}

/// The relevant details of an object of its kind.
fn detail(object: &Value) -> String {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let pairs = |pointer: &str, hidden: fn(&str) -> bool| {
        let map = object
            .pointer(pointer)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let shown = map.filter(|(k, _)| !hidden(k)).map(|(k, v)| match v {
            Value::String(text) => format!("{k}={text}"),
            other => format!("{k}={other}"),
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    let image = || {
        word(object, "/spec/template/spec/containers/0/image")
            .rsplit(':')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    match word(object, "/kind") {
        "ConfigMap" => pairs("/data", |_| false),
        "Secret" => pairs("/data", |_| false),
        "Deployment" | "StatefulSet" => format!(
            "{} of {} ready, {}",
            number("/status/readyReplicas"),
            number("/spec/replicas"),
            image()
        ),
        "DaemonSet" => image(),
        "Job" => {
            let ended = list(object, "/status/conditions").iter().find(|c| {
                c["status"] == "True" && ["Complete", "Failed"].contains(&word(c, "/type"))
            });
            ended.map_or("running", |c| word(c, "/type")).to_owned()
        }
        "CronJob" => word(object, "/spec/schedule").to_owned(),
        "PersistentVolumeClaim" | "PersistentVolume" => word(object, "/status/phase").to_owned(),
        "Namespace" => {
            let labels = pairs("/metadata/labels", |k| k.starts_with("kubernetes.io/"));
            let annotations = pairs("/metadata/annotations", |k| {
                k.contains("argoproj.io/") || k.contains("kubernetes.io/")
            });
            format!("{labels} {annotations}").trim().to_owned()
        }
        _ if word(object, "/apiVersion").contains("example.org/") => pairs("/spec", |_| false),
        _ => String::new(),
    }
}

fn regex(text: &str) -> Regex {
    Regex::new(text).expect("a valid expression")
}

/// Values that differ from run to run, wherever they occur.
static VOLATILE: LazyLock<[(Regex, &'static str); 4]> = LazyLock::new(|| {
    [
        (regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
        (regex(r"\b\d{1,2}:\d\d[AP]M\b"), "<time>"),
        (
            regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
            "<uid>",
        ),
        (
            regex(r"-(presync|sync|postsync|syncfail|predelete|postdelete)-\d{9,}"),
            "-$1-<time>",
        ),
    ]
});

/// A value without what differs from run to run; `names` maps values to placeholders.
pub fn plain_value(value: &Value, names: &[(String, String)]) -> Value {
    serde_json::from_str(&plain(&value.to_string(), names)).expect("a name does not break JSON")
}

/// The same for a text.
pub fn plain(text: &str, names: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (from, to) in names {
        text = text.replace(from.as_str(), to);
    }
    for (pattern, to) in VOLATILE.iter() {
        text = pattern.replace_all(&text, *to).into_owned();
    }
    text
}

//! The row of a HorizontalPodAutoscaler: how far each metric is from its target.

use super::cells::{NONE, list, number, shown};
use serde_json::Value;
use tiphys_apimachinery::Object;

pub fn cells(o: &Object, age: Value) -> Vec<Value> {
    let reference = format!(
        "{}/{}",
        o.str_at("/spec/scaleTargetRef/kind"),
        o.str_at("/spec/scaleTargetRef/name")
    );
    let statuses = list(o, "/status/currentMetrics");
    let metric = |(i, spec): (usize, &Value)| target(spec, statuses.get(i).unwrap_or(&Value::Null));
    let mut targets: Vec<String> = list(o, "/spec/metrics")
        .iter()
        .enumerate()
        .map(metric)
        .collect();
    let more = targets.len().saturating_sub(2);
    targets.truncate(2);
    let targets = match (targets.is_empty(), more) {
        (true, _) => NONE.to_owned(),
        (_, 0) => targets.join(", "),
        _ => format!("{} + {more} more...", targets.join(", ")),
    };
    vec![
        o.name().into(),
        reference.into(),
        targets.into(),
        shown(o.pointer("/spec/minReplicas"), "<unset>").into(),
        number(o, "/spec/maxReplicas").into(),
        number(o, "/status/currentReplicas").into(),
        age,
    ]
}

/// Current and target value of a metric. Statuses are in the order of the metrics.
fn target(spec: &Value, status: &Value) -> String {
    let (source, is_resource) = match spec["type"].as_str().unwrap_or("") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let (wanted, current) = (&spec[source]["target"], &status[source]["current"]);
    let now = |field: &str, absent: &str| match status[source].is_object() {
        true => shown(current.get(field), absent),
        false => "<unknown>".to_owned(),
    };
    let average = wanted.get("averageValue").filter(|v| !v.is_null());
    match (average, is_resource) {
        (Some(average), true) => {
            format!(
                "{}: {}/{}",
                shown(spec[source].get("name"), ""),
                now("averageValue", "<nil>"),
                shown(Some(average), "")
            )
        }
        (None, true) => {
            let percent = |v: &Value, absent: &str| {
                v["averageUtilization"]
                    .as_i64()
                    .map_or_else(|| absent.to_owned(), |n| format!("{n}%"))
            };
            format!(
                "{}: {}/{}",
                shown(spec[source].get("name"), ""),
                percent(current, "<unknown>"),
                percent(wanted, "<auto>")
            )
        }
        (average, false) if source == "pods" => format!(
            "{}/{}",
            now("averageValue", "<nil>"),
            shown(average, "<nil>")
        ),
        (Some(average), false) => format!(
            "{}/{} (avg)",
            now("averageValue", "<unknown>"),
            shown(Some(average), "")
        ),
        (None, false) => format!(
            "{}/{}",
            now("value", "<nil>"),
            shown(wanted.get("value"), "<nil>")
        ),
    }
}

//! Converts HorizontalPodAutoscalers between v1 and v2. Main functions: [`to_v2`], [`to_v1`].
//!
//! v1 has a field only for CPU utilization. It keeps everything else in annotations: the metrics as
//! JSON in an older form, and the behavior in the form of the API server's internal structs.

use serde_json::{Map, Value, json};
use tiphys_apimachinery::{Object, object::map_entry};
use tiphys_kube_schema::gofmt;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const ROUND_TRIP: [&str; 6] = [
    METRICS,
    CURRENT,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// Those that belong to the spec, and those that belong to the status.
const OF_SPEC: [&str; 2] = [METRICS, BEHAVIOR];
const OF_STATUS: [&str; 2] = [CURRENT, CONDITIONS];

/// The types of metrics: a metric's `type` and the field that holds it.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
    ("External", "external"),
];

/// Whether a v1 autoscaler has metrics besides the one in its field.
pub fn has_other_metrics(object: &Object) -> bool {
    annotated(object, METRICS).is_some_and(|list| !list.is_empty())
}

/// The list in an annotation, if it can be parsed.
fn annotated(object: &Object, name: &str) -> Option<Vec<Value>> {
    let list: Vec<Value> = serde_json::from_str(object.annotation(name)?).ok()?;
    list.iter().all(Value::is_object).then_some(list)
}

fn cpu(utilization: Value) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": utilization}}})
}

pub fn to_v2(object: &mut Object) {
    let (metrics, current, conditions) = (
        annotated(object, METRICS),
        annotated(object, CURRENT),
        annotated(object, CONDITIONS),
    );
    let behavior = object
        .annotation(BEHAVIOR)
        .and_then(|text| serde_json::from_str(text).ok())
        .and_then(|value| read_behavior(&value));
    drop_annotations(object);
    let spec = map_entry(&mut object.0, "spec");
    let mut all: Vec<Value> = metrics
        .iter()
        .flatten()
        .map(|metric| newer(metric, false))
        .collect();
    all.extend(spec.remove("targetCPUUtilizationPercentage").map(cpu));
    if all.is_empty() {
        all.push(cpu(80.into()));
    }
    spec.insert("metrics".into(), all.into());
    spec.extend(behavior.map(|behavior| ("behavior".to_owned(), behavior)));
    let Some(status) = object.0.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let utilization = status.remove("currentCPUUtilizationPercentage").map(|n| {
        let source = json!({"name": "cpu", "current": {"averageUtilization": n}});
        vec![json!({"type": "Resource", "resource": source})]
    });
    let current = current
        .map(|list| list.iter().map(|metric| newer(metric, true)).collect())
        .or(utilization);
    // Omitted if it is 0, unlike in v1.
    status.retain(|name, value| name != "currentReplicas" || *value != 0);
    status.insert(
        "currentMetrics".into(),
        current.map_or(Value::Null, |list: Vec<Value>| list.into()),
    );
    status.extend(conditions.map(|list| ("conditions".to_owned(), list.into())));
}

pub fn to_v1(object: &mut Object) {
    drop_annotations(object);
    let list = |map: &mut Map<String, Value>, field: &str| match map.remove(field) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let spec = map_entry(&mut object.0, "spec");
    let utilization = |m: &Value, which: &str| {
        let is_cpu = m["type"] == "Resource"
            && m.pointer("/resource/name")
                .is_some_and(|name| name == "cpu");
        m.pointer(&format!("/resource/{which}/averageUtilization"))
            .filter(|_| is_cpu)
            .cloned()
    };
    let metrics = list(spec, "metrics");
    if let Some(target) = metrics.iter().find_map(|m| utilization(m, "target")) {
        spec.insert("targetCPUUtilizationPercentage".into(), target);
    }
    let behavior = spec.remove("behavior");
    let others: Vec<String> = metrics
        .iter()
        .filter(|m| utilization(m, "target").is_none())
        .map(|m| older(m, false))
        .collect();
    let (mut current, mut conditions) = (Vec::new(), Vec::new());
    if let Some(status) = object.0.get_mut("status").and_then(Value::as_object_mut) {
        (current, conditions) = (list(status, "currentMetrics"), list(status, "conditions"));
        let last = current
            .iter()
            .filter_map(|m| utilization(m, "current"))
            .next_back();
        status.entry("currentReplicas").or_insert(0.into());
        status.extend(last.map(|n| ("currentCPUUtilizationPercentage".to_owned(), n)));
    }
    let mut annotate = |name: &str, list: Vec<String>| {
        if !list.is_empty() {
            object.set_annotation(name, &format!("[{}]", list.join(",")));
        }
    };
    annotate(METRICS, others);
    annotate(CURRENT, current.iter().map(|m| older(m, true)).collect());
    annotate(
        CONDITIONS,
        conditions.iter().map(written_condition).collect(),
    );
    if let Some(behavior) = behavior {
        object.set_annotation(BEHAVIOR, &written_behavior(&behavior));
    }
}

/// Keeps the parts that a write to a v1 autoscaler must not change: the status, or everything but
/// the status.
pub fn keep_annotations(old: Option<&Object>, new: &mut Object, writes_status: bool) {
    let annotations = old.map(Object::annotations).unwrap_or_default();
    for name in if writes_status { OF_SPEC } else { OF_STATUS } {
        match annotations.get(name) {
            Some(text) => new.set_annotation(name, text),
            None => new.remove_annotation(name),
        };
    }
}

/// v2 has a field for everything, so nothing is kept in annotations.
pub fn drop_annotations(object: &mut Object) {
    let Some(annotations) = object
        .metadata_mut()
        .get_mut("annotations")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    annotations.retain(|name, _| !ROUND_TRIP.contains(&name.as_str()));
    if annotations.is_empty() {
        object.metadata_mut().remove("annotations");
    }
}

/// A struct as Go writes it: the fields in order, without the omitted ones.
fn written(fields: &[(&str, Option<String>)]) -> String {
    let there = fields
        .iter()
        .filter_map(|(name, value)| Some(format!("\"{name}\":{}", value.as_ref()?)));
    format!("{{{}}}", there.collect::<Vec<_>>().join(","))
}

/// Converts a metric (or a metric status) to the older form.
fn older(metric: &Value, is_status: bool) -> String {
    let mut fields = vec![("type", Some(gofmt::json(&metric["type"])))];
    for (_, field) in SOURCES {
        fields.push((
            field,
            metric
                .get(field)
                .filter(|v| v.is_object())
                .map(|source| older_source(field, source, is_status)),
        ));
    }
    written(&fields)
}

fn older_source(kind: &str, source: &Value, is_status: bool) -> String {
    let target = &source[if is_status { "current" } else { "target" }];
    let json = |value: Option<&Value>| value.filter(|v| !v.is_null()).map(gofmt::json);
    let text = |value: Option<&Value>| json(value).or_else(|| Some("\"\"".to_owned()));
    let amount = |value: Option<&Value>| json(value).or_else(|| Some("\"0\"".to_owned()));
    let (value, average) = (target.get("value"), target.get("averageValue"));
    let (name, selector) = (
        text(source.pointer("/metric/name")),
        json(source.pointer("/metric/selector")),
    );
    let utilization = json(target.get("averageUtilization"));
    match (kind, is_status) {
        ("object", _) => {
            let of = &source["describedObject"];
            let of = written(&[
                ("kind", text(of.get("kind"))),
                ("name", text(of.get("name"))),
                ("apiVersion", json(of.get("apiVersion"))),
            ]);
            let field = if is_status {
                "currentValue"
            } else {
                "targetValue"
            };
            let fields = [
                ("target", Some(of)),
                ("metricName", name),
                (field, amount(value)),
                ("selector", selector),
            ];
            written(&[fields.as_slice(), &[("averageValue", json(average))]].concat())
        }
        ("pods", _) => {
            let field = if is_status {
                "currentAverageValue"
            } else {
                "targetAverageValue"
            };
            written(&[
                ("metricName", name),
                (field, amount(average)),
                ("selector", selector),
            ])
        }
        ("external", true) => written(&[
            ("metricName", name),
            ("metricSelector", selector),
            ("currentValue", amount(value)),
            ("currentAverageValue", json(average)),
        ]),
        ("external", false) => written(&[
            ("metricName", name),
            ("metricSelector", selector),
            ("targetValue", json(value)),
            ("targetAverageValue", json(average)),
        ]),
        (kind, _) => {
            let container = (kind == "containerResource")
                .then(|| text(source.get("container")))
                .flatten();
            let (percent, average) = match is_status {
                true => (
                    "currentAverageUtilization",
                    ("currentAverageValue", amount(average)),
                ),
                false => (
                    "targetAverageUtilization",
                    ("targetAverageValue", json(average)),
                ),
            };
            written(&[
                ("name", text(source.get("name"))),
                (percent, utilization),
                average,
                ("container", container),
            ])
        }
    }
}

/// Converts a metric (or a metric status) from the older form.
fn newer(metric: &Value, is_status: bool) -> Value {
    let mut out = Map::new();
    out.insert(
        "type".into(),
        metric.get("type").cloned().unwrap_or_else(|| "".into()),
    );
    for (_, field) in SOURCES {
        if let Some(source) = metric.get(field).filter(|v| v.is_object()) {
            out.insert(field.into(), newer_source(field, source, is_status));
        }
    }
    out.into()
}

fn newer_source(kind: &str, source: &Value, is_status: bool) -> Value {
    let field = |name: &str| source.get(name).filter(|v| !v.is_null()).cloned();
    let text = |name: &str| field(name).unwrap_or_else(|| "".into());
    let zero = |value: Option<Value>| value.or_else(|| Some("0".into()));
    let word = |end: &str| format!("{}{end}", if is_status { "current" } else { "target" });
    let (value, percent) = (field(&word("Value")), field(&word("AverageUtilization")));
    let average = if kind == "object" {
        field("averageValue")
    } else {
        field(&word("AverageValue"))
    };
    let (kind_of_target, value, average) = match (kind, is_status) {
        ("object" | "external", true) => ("", zero(value), average),
        ("object", false) if average.is_none() => ("Value", zero(value), None),
        ("object", false) => ("AverageValue", value.filter(|v| v != "0"), average),
        ("external", false) => (
            if value.is_none() {
                "AverageValue"
            } else {
                "Value"
            },
            value,
            average,
        ),
        ("pods", _) => ("AverageValue", None, zero(average)),
        (_, true) => ("", None, zero(average)),
        _ => (
            if percent.is_none() {
                "AverageValue"
            } else {
                "Utilization"
            },
            None,
            average,
        ),
    };
    let mut target = Map::new();
    if !is_status {
        target.insert("type".into(), kind_of_target.into());
    }
    let amounts = [
        ("value", value),
        ("averageValue", average),
        ("averageUtilization", percent),
    ];
    target.extend(
        amounts
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?))),
    );
    let mut out = Map::from_iter([(word(""), Value::Object(target))]);
    if matches!(kind, "resource" | "containerResource") {
        out.insert("name".into(), text("name"));
        out.extend(
            (kind == "containerResource").then(|| ("container".to_owned(), text("container"))),
        );
        return out.into();
    }
    let mut metric = Map::from_iter([("name".to_owned(), text("metricName"))]);
    let selector = field(if kind == "external" {
        "metricSelector"
    } else {
        "selector"
    });
    metric.extend(selector.map(|selector| ("selector".to_owned(), selector)));
    out.insert("metric".into(), metric.into());
    if kind == "object" {
        out.insert(
            "describedObject".into(),
            source
                .get("target")
                .cloned()
                .unwrap_or_else(|| json!({"kind": "", "name": ""})),
        );
    }
    out.into()
}

fn written_condition(condition: &Value) -> String {
    let json = |name: &str| condition.get(name).map(gofmt::json);
    let text = |name: &str| json(name).or_else(|| Some("\"\"".to_owned()));
    let time = json("lastTransitionTime").or_else(|| Some("null".to_owned()));
    let fields = [
        ("type", text("type")),
        ("status", text("status")),
        ("lastTransitionTime", time),
    ];
    written(
        &[
            fields.as_slice(),
            &[("reason", json("reason")), ("message", json("message"))],
        ]
        .concat(),
    )
}

const RULES: [(&str, &str); 2] = [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")];
const RULE_FIELDS: [(&str, &str); 4] = [
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
];
const POLICY_FIELDS: [(&str, &str); 3] = [
    ("Type", "type"),
    ("Value", "value"),
    ("PeriodSeconds", "periodSeconds"),
];

/// The server's internal structs have capitalized fields, and include empty ones.
fn written_behavior(behavior: &Value) -> String {
    let json = |value: Option<&Value>| Some(value.map_or("null".to_owned(), gofmt::json));
    let policy = |p: &Value| written(&POLICY_FIELDS.map(|(own, field)| (own, json(p.get(field)))));
    let policies = |rules: &Value| {
        let list = rules.get("policies").and_then(Value::as_array);
        list.map_or("null".to_owned(), |list| {
            format!(
                "[{}]",
                list.iter().map(policy).collect::<Vec<_>>().join(",")
            )
        })
    };
    let rules = |rules: &Value| {
        written(&RULE_FIELDS.map(|(own, field)| {
            (
                own,
                if own == "Policies" {
                    Some(policies(rules))
                } else {
                    json(rules.get(field))
                },
            )
        }))
    };
    written(&RULES.map(|(own, field)| {
        (
            own,
            Some(behavior.get(field).map_or("null".to_owned(), rules)),
        )
    }))
}

/// The members of an object that match the fields case-insensitively, with their new names.
fn renamed(value: &Value, fields: &[(&str, &str)]) -> Map<String, Value> {
    let name = |key: &str| {
        fields
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(key))
            .map(|(_, field)| (*field).to_owned())
    };
    let members = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_null());
    members
        .filter_map(|(key, value)| Some((name(key)?, value.clone())))
        .collect()
}

fn read_behavior(value: &Value) -> Option<Value> {
    let mut behavior = renamed(value, &RULES);
    for rules in behavior.values_mut() {
        let mut read = renamed(rules, &RULE_FIELDS);
        for policy in read
            .get_mut("policies")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            *policy = renamed(policy, &POLICY_FIELDS).into();
        }
        *rules = read.into();
    }
    (!behavior.is_empty()).then(|| behavior.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_first_version_has_no_fields_for_comes_back() {
        let pods = json!({"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "5"}}});
        let rules = json!({"scaleDown": {"stabilizationWindowSeconds": 3, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 9}]}});
        let spec = json!({"maxReplicas": 3, "metrics": [pods, cpu(50.into())], "behavior": rules});
        let object = Object::from_value(json!({"metadata": {"name": "a"}, "spec": spec}))
            .expect("an object");
        let mut old = object.clone();
        to_v1(&mut old);
        assert_eq!(old.i64_at("/spec/targetCPUUtilizationPercentage"), Some(50));
        let metrics = r#"[{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"5"}}]"#;
        assert_eq!(old.annotation(METRICS), Some(metrics));
        assert!(
            old.annotation(BEHAVIOR)
                .is_some_and(|text| text.starts_with(r#"{"ScaleUp":null,"ScaleDown":{"Stab"#))
        );
        to_v2(&mut old);
        assert_eq!(old, object);
    }
}

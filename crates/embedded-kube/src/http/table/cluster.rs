//! The rows of cluster-level kinds: admission policies, flow control, certificates, addresses,
//! devices.

use super::age::human;
use super::cells::{NONE, list, number, or_none, shown, text};
use serde_json::Value;
use tiphys_apimachinery::Object;

/// The cells of an object; `None` for other kinds.
pub fn cells(table: &str, o: &Object, age: &dyn Fn() -> Value) -> Option<Vec<Value>> {
    let name = || Value::from(o.name());
    Some(match table {
        "/componentstatuses" => {
            let healthy = list(o, "/conditions")
                .iter()
                .find(|c| text(c, "type") == "Healthy");
            let status = healthy.map_or("Unknown", |c| {
                if text(c, "status") == "True" {
                    "Healthy"
                } else {
                    "Unhealthy"
                }
            });
            let said = |key: &str| Value::from(healthy.map_or("", |c| text(c, key)));
            vec![name(), status.into(), said("message"), said("error")]
        }
        "admissionregistration.k8s.io/validatingadmissionpolicies" => {
            vec![
                name(),
                list(o, "/spec/validations").len().into(),
                param_kind(o).into(),
                age(),
            ]
        }
        "admissionregistration.k8s.io/mutatingadmissionpolicies" => {
            vec![
                name(),
                list(o, "/spec/mutations").len().into(),
                param_kind(o).into(),
                age(),
            ]
        }
        "admissionregistration.k8s.io/validatingadmissionpolicybindings"
        | "admissionregistration.k8s.io/mutatingadmissionpolicybindings" => {
            vec![
                name(),
                o.str_at("/spec/policyName").into(),
                parameters(o).into(),
                age(),
            ]
        }
        "certificates.k8s.io/certificatesigningrequests" => vec![
            name(),
            age(),
            or_none(o.str_at("/spec/signerName")).into(),
            o.str_at("/spec/username").into(),
            o.i64_at("/spec/expirationSeconds")
                .map_or_else(|| NONE.to_owned(), human)
                .into(),
            request_state(o).into(),
        ],
        "flowcontrol.apiserver.k8s.io/flowschemas" => {
            let dangling = list(o, "/status/conditions")
                .iter()
                .find(|c| text(c, "type") == "Dangling");
            vec![
                name(),
                o.str_at("/spec/priorityLevelConfiguration/name").into(),
                number(o, "/spec/matchingPrecedence").into(),
                shown(o.pointer("/spec/distinguisherMethod/type"), NONE).into(),
                age(),
                dangling.map_or("?", |c| text(c, "status")).into(),
            ]
        }
        "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations" => {
            let of = |pointer: &str| o.pointer(pointer).cloned().unwrap_or_else(|| NONE.into());
            let queuing = |field: &str| of(&format!("/spec/limited/limitResponse/queuing/{field}"));
            let shares = of("/spec/limited/nominalConcurrencyShares");
            let kind = o.str_at("/spec/type").into();
            vec![
                name(),
                kind,
                shares,
                queuing("queues"),
                queuing("handSize"),
                queuing("queueLengthLimit"),
                age(),
            ]
        }
        "networking.k8s.io/servicecidrs" => {
            let ranges: Vec<&str> = list(o, "/spec/cidrs")
                .iter()
                .filter_map(Value::as_str)
                .collect();
            vec![name(), ranges.join(",").into(), age()]
        }
        // The real server also sends an age, for which there is no column.
        "networking.k8s.io/ipaddresses" => vec![name(), parent(o).into(), age()],
        "node.k8s.io/runtimeclasses" => vec![name(), o.str_at("/handler").into(), age()],
        "resource.k8s.io/resourceclaims" => vec![name(), claim_state(o).into(), age()],
        "resource.k8s.io/resourceslices" => {
            let [node, driver, pool] =
                ["/spec/nodeName", "/spec/driver", "/spec/pool/name"].map(|p| o.str_at(p).into());
            vec![name(), node, driver, pool, age()]
        }
        _ => return None,
    })
}

fn param_kind(o: &Object) -> String {
    o.pointer("/spec/paramKind").map_or_else(
        || "<unset>".to_owned(),
        |p| format!("{}/{}", text(p, "apiVersion"), text(p, "kind")),
    )
}

/// The parameters of a binding: a single one by name, or a selector as Go prints it.
fn parameters(o: &Object) -> String {
    let Some(reference) = o.pointer("/spec/paramRef") else {
        return "<unset>".to_owned();
    };
    match (
        text(reference, "name"),
        text(reference, "namespace"),
        reference.get("selector"),
    ) {
        ("", _, Some(selector)) => go_selector(selector),
        ("", _, None) => "<unset>".to_owned(),
        (name, "", _) => format!("*/{name}"),
        (name, namespace, _) => format!("{namespace}/{name}"),
    }
}

fn go_selector(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels: String = labels
        .map(|(k, v)| format!("{k}: {},", v.as_str().unwrap_or("")))
        .collect();
    let expression = |e: &Value| {
        let values: Vec<&str> = e["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let (key, operator) = (text(e, "key"), text(e, "operator"));
        format!(
            "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},",
            values.join(" ")
        )
    };
    let expressions: String = selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(expression)
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

fn request_state(o: &Object) -> String {
    let has = |kind: &str| {
        list(o, "/status/conditions")
            .iter()
            .any(|c| text(c, "type") == kind)
    };
    let decided = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if o.str_at("/status/certificate").is_empty() {
        ""
    } else {
        ",Issued"
    };
    format!("{decided}{failed}{issued}")
}

fn parent(o: &Object) -> String {
    let Some(parent) = o.pointer("/spec/parentRef") else {
        return NONE.to_owned();
    };
    let mut words = vec![match text(parent, "group") {
        "" => text(parent, "resource").to_lowercase(),
        group => format!("{}.{group}", text(parent, "resource")).to_lowercase(),
    }];
    words.extend(Some(text(parent, "namespace").to_owned()).filter(|n| !n.is_empty()));
    words.push(text(parent, "name").to_owned());
    words.join("/")
}

fn claim_state(o: &Object) -> String {
    let (deleted, allocated) = (
        o.deletion_timestamp().is_some(),
        o.pointer("/status/allocation").is_some(),
    );
    let reserved = allocated && !list(o, "/status/reservedFor").is_empty();
    let words = [
        (deleted, "deleted"),
        (!allocated && !deleted, "pending"),
        (allocated, "allocated"),
        (reserved, "reserved"),
    ];
    words
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, word)| word)
        .collect::<Vec<_>>()
        .join(",")
}

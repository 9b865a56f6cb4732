//! The rows of the built-in kinds, one small function per kind. The order and number of cells match
//! the columns.

use super::cells::{
    NONE, condition, containers, count, list, number, or_default, or_none, selector_text, shown,
    text,
};
use super::{age, autoscaler, cluster, pod, storage};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_apimachinery::Object;

/// The cells of an object.
pub fn cells(table: &str, o: &Object, now: Timestamp) -> Vec<Value> {
    let age = &|| Value::from(age::since(o.metadata("creationTimestamp"), now));
    // An object that was never created, such as a bookmark, has Go's zero time.
    let created = || created(o);
    let name = || Value::from(o.name());
    match table {
        "/pods" => pod::cells(o, now),
        "apps/deployments" => deployment(o, age()),
        "apps/replicasets" | "/replicationcontrollers" => replica_set(o, age()),
        "apps/statefulsets" => stateful_set(o, age()),
        "apps/daemonsets" => daemon_set(o, age()),
        "batch/jobs" => job(o, age(), now),
        "batch/cronjobs" => cron_job(o, age(), now),
        "/services" => service(o, age()),
        "networking.k8s.io/ingresses" => ingress(o, age()),
        "networking.k8s.io/ingressclasses" => ingress_class(o, age()),
        "networking.k8s.io/networkpolicies" => {
            vec![name(), selector(o, "/spec/podSelector"), age()]
        }
        "policy/poddisruptionbudgets" => vec![
            name(),
            shown(o.pointer("/spec/minAvailable"), "N/A").into(),
            shown(o.pointer("/spec/maxUnavailable"), "N/A").into(),
            number(o, "/status/disruptionsAllowed").into(),
            age(),
        ],
        "apps/controllerrevisions" => controller_revision(o, age()),
        super::SCALES => vec![
            name(),
            number(o, "/spec/replicas").into(),
            number(o, "/status/replicas").into(),
            age(),
        ],
        "/podtemplates" => {
            let (names, images) = containers(o, "/template/spec");
            vec![
                name(),
                names.into(),
                images.into(),
                selector(o, "/template/metadata/labels"),
            ]
        }
        "/endpoints" => vec![name(), endpoints(o).into(), age()],
        "discovery.k8s.io/endpointslices" => endpoint_slice(o, age()),
        "/nodes" => node(o, age()),
        "/events" | "events.k8s.io/events" => event(o, now),
        "/namespaces" => vec![name(), o.str_at("/status/phase").into(), age()],
        "/secrets" => vec![
            name(),
            o.str_at("/type").into(),
            count(o.0.get("data")).into(),
            age(),
        ],
        "/configmaps" => vec![
            name(),
            (count(o.0.get("data")) + count(o.0.get("binaryData"))).into(),
            age(),
        ],
        "autoscaling/horizontalpodautoscalers" => autoscaler::cells(o, age()),
        "rbac.authorization.k8s.io/rolebindings"
        | "rbac.authorization.k8s.io/clusterrolebindings" => binding(o, age()),
        "rbac.authorization.k8s.io/roles"
        | "rbac.authorization.k8s.io/clusterroles"
        | "apiextensions.k8s.io/customresourcedefinitions"
        | "/limitranges" => vec![name(), created()],
        "coordination.k8s.io/leases" => {
            vec![name(), o.str_at("/spec/holderIdentity").into(), age()]
        }
        "/resourcequotas" => vec![
            name(),
            quota(o, "").into(),
            quota(o, "limits.").into(),
            age(),
        ],
        "scheduling.k8s.io/priorityclasses" => vec![
            name(),
            number(o, "/value").into(),
            o.0.get("globalDefault").cloned().unwrap_or(false.into()),
            age(),
            shown(o.0.get("preemptionPolicy"), "").into(),
        ],
        "admissionregistration.k8s.io/mutatingwebhookconfigurations"
        | "admissionregistration.k8s.io/validatingwebhookconfigurations" => {
            vec![name(), count(o.0.get("webhooks")).into(), age()]
        }
        "apiregistration.k8s.io/apiservices" => api_service(o, age()),
        _ => storage::cells(table, o, age)
            .or_else(|| cluster::cells(table, o, age))
            .unwrap_or_else(|| vec![name(), age()]),
    }
}

fn ingress_class(o: &Object, age: Value) -> Vec<Value> {
    let group = o
        .pointer("/spec/parameters/apiGroup")
        .and_then(Value::as_str)
        .map(|g| format!(".{g}"))
        .unwrap_or_default();
    let parameters = o.pointer("/spec/parameters").map_or(NONE.to_owned(), |p| {
        format!("{}{group}/{}", text(p, "kind"), text(p, "name"))
    });
    let name = or_default(o, "ingressclass.kubernetes.io/is-default-class");
    vec![
        name,
        o.str_at("/spec/controller").into(),
        parameters.into(),
        age,
    ]
}

fn controller_revision(o: &Object, age: Value) -> Vec<Value> {
    let group = |c: &str| {
        Some(group_of(c))
            .filter(|g| !g.is_empty())
            .map(|g| format!(".{g}"))
            .unwrap_or_default()
    };
    let owner = o.controller_of().map(|c| {
        format!(
            "{}{}/{}",
            c.kind.to_lowercase(),
            group(&c.api_version),
            c.name
        )
    });
    vec![
        o.name().into(),
        owner.unwrap_or_else(|| NONE.to_owned()).into(),
        number(o, "/revision").into(),
        age,
    ]
}

fn api_service(o: &Object, age: Value) -> Vec<Value> {
    let service = o.pointer("/spec/service").map_or("Local".to_owned(), |s| {
        format!("{}/{}", text(s, "namespace"), text(s, "name"))
    });
    vec![o.name().into(), service.into(), available(o).into(), age]
}

/// Whether an API is available, and if not, why.
fn available(o: &Object) -> String {
    let Some(found) = list(o, "/status/conditions")
        .iter()
        .find(|c| text(c, "type") == "Available")
    else {
        return "Unknown".to_owned();
    };
    match (text(found, "status"), text(found, "reason")) {
        (status, reason) if status != "True" && !reason.is_empty() => {
            format!("{status} ({reason})")
        }
        (status, _) => status.to_owned(),
    }
}

/// An object that was never created, such as the bookmark that ends the initial list of a watch,
/// has Go's zero time.
pub fn created(o: &Object) -> Value {
    Value::from(if o.creation_timestamp().is_empty() {
        "0001-01-01T00:00:00Z"
    } else {
        o.creation_timestamp()
    })
}

fn group_of(api_version: &str) -> &str {
    tiphys_apimachinery::gvk::split_api_version(api_version).0
}

fn selector(o: &Object, pointer: &str) -> Value {
    o.pointer(pointer)
        .map_or_else(|| NONE.to_owned(), selector_text)
        .into()
}

/// Containers, images and selector: the wide columns of workloads.
fn workload(o: &Object) -> [Value; 3] {
    let (names, images) = containers(o, "/spec/template/spec");
    [names.into(), images.into(), selector(o, "/spec/selector")]
}

fn deployment(o: &Object, age: Value) -> Vec<Value> {
    let ready = format!(
        "{}/{}",
        number(o, "/status/readyReplicas"),
        number(o, "/spec/replicas")
    );
    let (updated, available) = (
        number(o, "/status/updatedReplicas"),
        number(o, "/status/availableReplicas"),
    );
    let mut row = vec![
        o.name().into(),
        ready.into(),
        updated.into(),
        available.into(),
        age,
    ];
    row.extend(workload(o));
    // Other kinds show `<none>` if there is no selector.
    if o.pointer("/spec/selector")
        .is_none_or(|s| s.as_object().is_none_or(serde_json::Map::is_empty))
    {
        row.pop();
        row.push("".into());
    }
    row
}

fn replica_set(o: &Object, age: Value) -> Vec<Value> {
    let numbers = [
        "/spec/replicas",
        "/status/replicas",
        "/status/readyReplicas",
    ]
    .map(|p| Value::from(number(o, p)));
    let mut row = vec![o.name().into()];
    row.extend(numbers);
    row.push(age);
    row.extend(workload(o));
    row
}

fn stateful_set(o: &Object, age: Value) -> Vec<Value> {
    let ready = format!(
        "{}/{}",
        number(o, "/status/readyReplicas"),
        number(o, "/spec/replicas")
    );
    let (names, images) = containers(o, "/spec/template/spec");
    vec![
        o.name().into(),
        ready.into(),
        age,
        names.into(),
        images.into(),
    ]
}

fn daemon_set(o: &Object, age: Value) -> Vec<Value> {
    let fields = [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    ];
    let mut row = vec![o.name().into()];
    row.extend(fields.map(|f| Value::from(number(o, &format!("/status/{f}")))));
    row.extend([selector(o, "/spec/template/spec/nodeSelector"), age]);
    row.extend(workload(o));
    row
}

fn job(o: &Object, age: Value, now: Timestamp) -> Vec<Value> {
    let succeeded = number(o, "/status/succeeded");
    let completions = match (
        o.i64_at("/spec/completions"),
        number(o, "/spec/parallelism"),
    ) {
        (Some(total), _) => format!("{succeeded}/{total}"),
        (None, parallel) if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        _ => format!("{succeeded}/1"),
    };
    let start = o.pointer("/status/startTime");
    let duration = age::between(start, o.pointer("/status/completionTime"));
    let duration = duration
        .or_else(|| start.map(|_| age::since(start, now)))
        .unwrap_or_default();
    let status = match () {
        () if condition(o, "Complete") => "Complete",
        () if condition(o, "Failed") => "Failed",
        () if o.deletion_timestamp().is_some() => "Terminating",
        () if condition(o, "Suspended") => "Suspended",
        () if condition(o, "FailureTarget") => "FailureTarget",
        () if condition(o, "SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    let mut row = vec![
        o.name().into(),
        status.into(),
        completions.into(),
        duration.into(),
        age,
    ];
    row.extend(workload(o));
    row
}

fn cron_job(o: &Object, age: Value, now: Timestamp) -> Vec<Value> {
    let last = o
        .pointer("/status/lastScheduleTime")
        .map_or_else(|| NONE.to_owned(), |t| age::since(Some(t), now));
    let (names, images) = containers(o, "/spec/jobTemplate/spec/template/spec");
    vec![
        o.name().into(),
        o.str_at("/spec/schedule").into(),
        or_none(o.str_at("/spec/timeZone")).into(),
        shown(o.pointer("/spec/suspend"), "<unset>")
            .replace("true", "True")
            .replace("false", "False")
            .into(),
        list(o, "/status/active").len().into(),
        last.into(),
        age,
        names.into(),
        images.into(),
        selector(o, "/spec/jobTemplate/spec/selector"),
    ]
}

fn balancer(o: &Object) -> String {
    let one = |i| {
        if text(i, "ip").is_empty() {
            text(i, "hostname")
        } else {
            text(i, "ip")
        }
    };
    let points: BTreeSet<&str> = list(o, "/status/loadBalancer/ingress")
        .iter()
        .map(one)
        .filter(|point| !point.is_empty())
        .collect();
    Vec::from_iter(points).join(",")
}

fn external_ip(o: &Object) -> String {
    let own: Vec<&str> = list(o, "/spec/externalIPs")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    match o.str_at("/spec/type") {
        "LoadBalancer" => {
            let mut all: Vec<String> = Some(balancer(o))
                .into_iter()
                .filter(|b| !b.is_empty())
                .collect();
            all.extend(own.iter().map(|ip| (*ip).to_owned()));
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => o.str_at("/spec/externalName").to_owned(),
        // A bookmark of a watch is a service without a type.
        "" => "<unknown>".to_owned(),
        _ => or_none(&own.join(",")),
    }
}

fn service(o: &Object, age: Value) -> Vec<Value> {
    let port = |p: &Value| {
        let node = p["nodePort"]
            .as_i64()
            .filter(|n| *n > 0)
            .map(|n| format!(":{n}"))
            .unwrap_or_default();
        format!("{}{node}/{}", shown(p.get("port"), ""), text(p, "protocol"))
    };
    let ports = list(o, "/spec/ports")
        .iter()
        .map(port)
        .collect::<Vec<_>>()
        .join(",");
    let kind = o.str_at("/spec/type").into();
    let ip = or_none(o.str_at("/spec/clusterIP")).into();
    vec![
        o.name().into(),
        kind,
        ip,
        external_ip(o).into(),
        or_none(&ports).into(),
        age,
        selector(o, "/spec/selector"),
    ]
}

fn ingress(o: &Object, age: Value) -> Vec<Value> {
    let rules = list(o, "/spec/rules");
    let named = rules
        .iter()
        .enumerate()
        .filter(|(_, r)| !text(r, "host").is_empty())
        .take(3);
    let (places, hosts): (Vec<usize>, Vec<&str>) = named.map(|(i, r)| (i, text(r, "host"))).unzip();
    // Every host after the third counts as more, even an empty one.
    let more = places.get(2).is_some_and(|last| last + 1 < rules.len());
    let hosts = match (hosts.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (false, true) => format!("{} + {} more...", hosts.join(","), rules.len() - 3),
        (false, false) => hosts.join(","),
    };
    let class = o
        .pointer("/spec/ingressClassName")
        .and_then(Value::as_str)
        .unwrap_or(NONE);
    let ports = if list(o, "/spec/tls").is_empty() {
        "80"
    } else {
        "80, 443"
    };
    vec![
        o.name().into(),
        class.into(),
        hosts.into(),
        balancer(o).into(),
        ports.into(),
        age,
    ]
}

fn limited(all: Vec<String>, max: usize) -> String {
    match all.len() {
        0 => NONE.to_owned(),
        n if n > max => format!("{} + {} more...", all[..max].join(","), n - max),
        _ => all.join(","),
    }
}

fn endpoints(o: &Object) -> String {
    let mut all = Vec::new();
    for subset in list(o, "/subsets") {
        let addresses = subset["addresses"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let ports = subset["ports"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        if ports.is_empty() {
            all.extend(addresses.iter().map(|a| text(a, "ip").to_owned()));
        }
        for port in ports {
            all.extend(addresses.iter().map(|a| match text(a, "ip") {
                ip if ip.contains(':') => format!("[{ip}]:{}", shown(port.get("port"), "")),
                ip => format!("{ip}:{}", shown(port.get("port"), "")),
            }));
        }
    }
    // Subsets without ready addresses are not the same as no subsets.
    if all.is_empty() && !list(o, "/subsets").is_empty() {
        String::new()
    } else {
        limited(all, 3)
    }
}

fn endpoint_slice(o: &Object, age: Value) -> Vec<Value> {
    let ports = list(o, "/ports")
        .iter()
        .map(|p| shown(p.get("port").or_else(|| p.get("name")), "*"))
        .collect::<Vec<_>>();
    let ports = if ports.concat().is_empty() {
        "<unset>".to_owned()
    } else {
        limited(ports, 3)
    };
    let addresses = list(o, "/endpoints")
        .iter()
        .flat_map(|e| e["addresses"].as_array().into_iter().flatten());
    let addresses: Vec<String> = addresses
        .filter_map(|a| a.as_str().map(str::to_owned))
        .collect();
    let addresses = if addresses.is_empty() {
        "<unset>".to_owned()
    } else {
        limited(addresses, 3)
    };
    vec![
        o.name().into(),
        o.str_at("/addressType").into(),
        ports.into(),
        addresses.into(),
        age,
    ]
}

fn node(o: &Object, age: Value) -> Vec<Value> {
    let mut status = vec![if condition(o, "Ready") {
        "Ready"
    } else {
        "NotReady"
    }];
    if !list(o, "/status/conditions")
        .iter()
        .any(|c| text(c, "type") == "Ready")
    {
        status = vec!["Unknown"];
    }
    if o.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push("SchedulingDisabled");
    }
    let labels = o.labels();
    let role = |(key, value): (&'_ String, &'_ String)| match key
        .strip_prefix("node-role.kubernetes.io/")
    {
        None if key == "kubernetes.io/role" => value.clone(),
        role => role.unwrap_or("").to_owned(),
    };
    let roles: BTreeSet<String> = labels.iter().map(role).filter(|r| !r.is_empty()).collect();
    let roles: Vec<String> = roles.into_iter().collect();
    let address = |kind: &str| {
        let found = list(o, "/status/addresses")
            .iter()
            .find(|a| text(a, "type") == kind);
        or_none(found.map(|a| text(a, "address")).unwrap_or(""))
    };
    let info = |field: &str| match o.str_at(&format!("/status/nodeInfo/{field}")) {
        "" => "<unknown>".to_owned(),
        text => text.to_owned(),
    };
    let machine = Some(o.str_at("/status/nodeInfo/architecture"))
        .filter(|a| !a.is_empty())
        .map(|a| format!(" ({a})"))
        .unwrap_or_default();
    vec![
        o.name().into(),
        status.join(",").into(),
        or_none(&roles.join(",")).into(),
        age,
        o.str_at("/status/nodeInfo/kubeletVersion").into(),
        address("InternalIP").into(),
        address("ExternalIP").into(),
        info("osImage").into(),
        (info("kernelVersion") + &machine).into(),
        info("containerRuntimeVersion").into(),
    ]
}

fn event(o: &Object, now: Timestamp) -> Vec<Value> {
    let pick = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|n| o.0.get(*n).filter(|v| !v.is_null()))
    };
    let first = age::since(
        pick(["firstTimestamp", "deprecatedFirstTimestamp"]).or_else(|| o.0.get("eventTime")),
        now,
    );
    let last = pick(["lastTimestamp", "deprecatedLastTimestamp"])
        .map_or_else(|| first.clone(), |t| age::since(Some(t), now));
    let series = o.0.get("series").filter(|s| s.is_object());
    let last = series
        .and_then(|s| s.get("lastObservedTime"))
        .map_or(last, |t| age::since(Some(t), now));
    let times = series.map_or_else(
        || pick(["count", "deprecatedCount"]).and_then(Value::as_i64),
        |s| s["count"].as_i64(),
    );
    let about = pick(["involvedObject", "regarding"]).unwrap_or(&Value::Null);
    let kind = text(about, "kind").to_lowercase();
    let target = if text(about, "name").is_empty() {
        kind
    } else {
        format!("{kind}/{}", text(about, "name"))
    };
    let either = |a: &str, b: &str| match o.str_at(a) {
        "" => o.str_at(b).to_owned(),
        found => found.to_owned(),
    };
    let (component, host) = (
        either("/source/component", "/reportingComponent"),
        either("/source/host", "/reportingInstance"),
    );
    let source = if host.is_empty() {
        component
    } else {
        format!("{component}, {host}")
    };
    let message = either("/message", "/note");
    vec![
        last.into(),
        o.str_at("/type").into(),
        o.str_at("/reason").into(),
        target.into(),
        text(about, "fieldPath").into(),
        source.into(),
        message.trim().into(),
        first.into(),
        times
            .filter(|n| *n != 0 || series.is_some())
            .unwrap_or(1)
            .into(),
        o.name().into(),
    ]
}

fn binding(o: &Object, age: Value) -> Vec<Value> {
    let of = |kind: &str| {
        let subjects = list(o, "/subjects")
            .iter()
            .filter(|s| text(s, "kind") == kind);
        let name = |s: &Value| {
            if kind == "ServiceAccount" {
                format!("{}/{}", text(s, "namespace"), text(s, "name"))
            } else {
                text(s, "name").to_owned()
            }
        };
        subjects.map(name).collect::<Vec<_>>().join(", ")
    };
    let role = format!(
        "{}/{}",
        o.str_at("/roleRef/kind"),
        o.str_at("/roleRef/name")
    );
    vec![
        o.name().into(),
        role.into(),
        age,
        of("User").into(),
        of("Group").into(),
        of("ServiceAccount").into(),
    ]
}

/// Used and hard amounts of a quota whose names start with `prefix` (for the empty prefix: all but
/// limits).
fn quota(o: &Object, prefix: &str) -> String {
    let Some(hard) = o.pointer("/status/hard").and_then(Value::as_object) else {
        return String::new();
    };
    let wanted = hard
        .iter()
        .filter(|(name, _)| name.starts_with("limits.") != prefix.is_empty());
    let used = |name: &str| shown(o.pointer("/status/used").and_then(|u| u.get(name)), "0");
    wanted
        .map(|(name, amount)| format!("{name}: {}/{}", used(name), shown(Some(amount), "")))
        .collect::<Vec<_>>()
        .join(", ")
}

//! The checks of the Pod Security Standards levels, by Kubernetes version. Main function:
//! [`violations`].

use serde_json::Value;
use std::collections::BTreeSet;

/// The last version in which a check changed; later versions are the same.
const NEWEST: u32 = 35;

/// A violation: the reason, and the details.
pub struct Violation {
    pub reason: String,
    pub detail: String,
}

/// The template or pod to check.
struct Pod<'a> {
    spec: &'a Value,
    annotations: &'a Value,
    version: u32,
}

type Check = fn(&Pod<'_>) -> Option<Violation>;

/// In the order in which they are reported: the version since which the check applies, the version
/// until which `restricted` includes it, and the check.
const BASELINE: [(u32, u32, Check); 12] = [
    (0, u32::MAX, app_armor),
    (0, 22, added_capabilities),
    (0, u32::MAX, host_namespaces),
    (0, 0, host_paths),
    (0, u32::MAX, host_ports),
    (34, u32::MAX, hosts_of_probes),
    (0, u32::MAX, privileged),
    (0, 35, proc_mount_outside),
    (0, u32::MAX, selinux),
    (0, 19, seccomp),
    (0, u32::MAX, sysctls),
    (0, u32::MAX, host_process),
];

const RESTRICTED: [(u32, Check); 7] = [
    (8, privilege_escalation),
    (22, dropped_capabilities),
    (35, proc_mount),
    (0, volume_types),
    (0, non_root),
    (23, user_zero),
    (19, seccomp_required),
];

/// The violations of a pod spec. `version` is the minor version; none for the newest.
pub fn violations(
    restricted: bool,
    version: Option<u32>,
    spec: &Value,
    annotations: &Value,
) -> Vec<Violation> {
    let version = version.unwrap_or(NEWEST).min(NEWEST);
    let pod = Pod {
        spec,
        annotations,
        version,
    };
    let baseline = BASELINE
        .iter()
        .filter(|(since, until, _)| version >= *since && (!restricted || version < *until))
        .map(|(.., check)| check);
    let strict = RESTRICTED
        .iter()
        .filter(|(since, _)| restricted && version >= *since)
        .map(|(_, check)| check);
    baseline
        .chain(strict)
        .filter_map(|check| check(&pod))
        .collect()
}

fn violation(reason: &str, detail: String) -> Option<Violation> {
    Some(Violation {
        reason: reason.to_owned(),
        detail,
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

fn quoted<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> String {
    let items: Vec<String> = items
        .into_iter()
        .map(|i| format!("\"{}\"", i.as_ref()))
        .collect();
    items.join(", ")
}

fn plural<'w>(one: &'w str, many: &'w str, n: usize) -> &'w str {
    if n == 1 { one } else { many }
}

/// `container "a"` or `containers "a", "b"`.
fn containers(names: &[&str]) -> String {
    format!(
        "{} {}",
        plural("container", "containers", names.len()),
        quoted(names)
    )
}

impl<'a> Pod<'a> {
    fn containers(&self) -> impl Iterator<Item = &'a Value> {
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(|field| list(self.spec, field))
    }

    /// The names of the containers for which `is_bad` holds.
    fn bad(&self, is_bad: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        self.containers()
            .filter(|c| is_bad(c))
            .map(|c| text(&c["name"]))
            .collect()
    }

    fn context(&self) -> &'a Value {
        &self.spec["securityContext"]
    }

    fn is_windows(&self) -> bool {
        self.version >= 25 && self.spec["os"]["name"] == "windows"
    }

    /// Root in a user namespace has no privileges outside of it.
    fn has_own_users(&self) -> bool {
        self.version >= 35 && self.spec["hostUsers"] == false
    }

    /// `pod and container "a"`: where a forbidden value is set.
    fn setters(&self, is_bad: impl Fn(&Value) -> bool) -> Vec<String> {
        let pod = is_bad(self.context()).then(|| "pod".to_owned());
        let named = self.bad(|c| is_bad(&c["securityContext"]));
        pod.into_iter()
            .chain((!named.is_empty()).then(|| containers(&named)))
            .collect()
    }

    /// All security contexts, the pod's first.
    fn contexts(&self) -> impl Iterator<Item = &'a Value> {
        std::iter::once(self.context()).chain(self.containers().map(|c| &c["securityContext"]))
    }
}

fn app_armor(pod: &Pod<'_>) -> Option<Violation> {
    let kind = |context: &Value| {
        context
            .get("appArmorProfile")
            .filter(|p| !p.is_null())
            .map(|p| text(&p["type"]).to_owned())
    };
    let bad = |context: &Value| {
        kind(context).filter(|k| !matches!(k.as_str(), "RuntimeDefault" | "Localhost"))
    };
    let mut setters = pod.setters(|context| bad(context).is_some());
    let mut values: Vec<String> = pod
        .contexts()
        .filter_map(bad)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let allowed = |v: &str| v.is_empty() || v == "runtime/default" || v.starts_with("localhost/");
    let all = pod.annotations.as_object().into_iter().flatten();
    let annotations: BTreeSet<String> = all
        .filter(|(key, value)| {
            key.starts_with("container.apparmor.security.beta.kubernetes.io/")
                && !allowed(text(value))
        })
        .map(|(key, value)| format!("{key}=\"{}\"", text(value)))
        .collect();
    if !annotations.is_empty() {
        setters.push(plural("annotation", "annotations", annotations.len()).to_owned());
        values.extend(annotations);
    }
    if setters.is_empty() {
        return None;
    }
    let reason = plural(
        "forbidden AppArmor profile",
        "forbidden AppArmor profiles",
        values.len(),
    );
    violation(
        reason,
        format!(
            "{} must not set AppArmor profile type to {}",
            setters.join(" and "),
            quoted(&values)
        ),
    )
}

/// The forbidden capabilities that containers add, and the names of those containers.
fn adds<'a>(pod: &Pod<'a>, allowed: &[&str]) -> Option<String> {
    let added = |c: &'a Value| {
        list(&c["securityContext"]["capabilities"], "add")
            .iter()
            .map(text)
            .filter(|c| !allowed.contains(c))
    };
    let names: Vec<&str> = pod
        .containers()
        .filter(|c| added(c).next().is_some())
        .map(|c| text(&c["name"]))
        .collect();
    let forbidden: BTreeSet<&str> = pod.containers().flat_map(added).collect();
    let what = quoted(&forbidden);
    (!names.is_empty()).then(|| {
        format!(
            "{} must not include {what} in securityContext.capabilities.add",
            containers(&names)
        )
    })
}

fn added_capabilities(pod: &Pod<'_>) -> Option<Violation> {
    const DEFAULT: [&str; 13] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    violation("non-default capabilities", adds(pod, &DEFAULT)?)
}

fn dropped_capabilities(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() {
        return None;
    }
    let keeps = pod.bad(|c| {
        !list(&c["securityContext"]["capabilities"], "drop")
            .iter()
            .any(|d| d == "ALL")
    });
    let keeps = (!keeps.is_empty()).then(|| {
        format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            containers(&keeps)
        )
    });
    let details: Vec<String> = keeps
        .into_iter()
        .chain(adds(pod, &["NET_BIND_SERVICE"]))
        .collect();
    if details.is_empty() {
        None
    } else {
        violation("unrestricted capabilities", details.join("; "))
    }
}

fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let shared: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .iter()
        .filter(|f| pod.spec[**f] == true)
        .map(|f| format!("{f}=true"))
        .collect();
    if shared.is_empty() {
        None
    } else {
        violation("host namespaces", shared.join(", "))
    }
}

fn host_paths(pod: &Pod<'_>) -> Option<Violation> {
    let names: Vec<&str> = list(pod.spec, "volumes")
        .iter()
        .filter(|v| v["hostPath"].is_object())
        .map(|v| text(&v["name"]))
        .collect();
    if names.is_empty() {
        return None;
    }
    violation(
        "hostPath volumes",
        format!(
            "{} {}",
            plural("volume", "volumes", names.len()),
            quoted(&names)
        ),
    )
}

fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    let ports = |c: &Value| -> Vec<String> {
        list(c, "ports")
            .iter()
            .filter_map(|p| p["hostPort"].as_i64())
            .filter(|n| *n != 0)
            .map(|n| n.to_string())
            .collect()
    };
    let names = pod.bad(|c| !ports(c).is_empty());
    let all: BTreeSet<String> = pod.containers().flat_map(ports).collect();
    if names.is_empty() {
        return None;
    }
    let (uses, what) = (
        plural("uses", "use", names.len()),
        plural("hostPort", "hostPorts", all.len()),
    );
    violation(
        "hostPort",
        format!(
            "{} {uses} {what} {}",
            containers(&names),
            all.into_iter().collect::<Vec<_>>().join(", ")
        ),
    )
}

fn hosts_of_probes(pod: &Pod<'_>) -> Option<Violation> {
    let hosts = |c: &Value| -> Vec<String> {
        let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|f| c[f].clone());
        let handlers = ["postStart", "preStop"].map(|f| c["lifecycle"][f].clone());
        let of = |v: &Value| ["httpGet", "tcpSocket"].map(|f| text(&v[f]["host"]).to_owned());
        probes
            .iter()
            .chain(&handlers)
            .flat_map(of)
            .filter(|h| !h.is_empty())
            .collect()
    };
    let names: BTreeSet<&str> = pod.bad(|c| !hosts(c).is_empty()).into_iter().collect();
    let names: Vec<&str> = names.into_iter().collect();
    let all: BTreeSet<String> = pod.containers().flat_map(hosts).collect();
    if names.is_empty() {
        return None;
    }
    let what = plural(
        "probe or lifecycle host",
        "probe or lifecycle hosts",
        all.len(),
    );
    let uses = plural("uses", "use", names.len());
    violation(
        "probe or lifecycle host",
        format!("{} {uses} {what} {}", containers(&names), quoted(&all)),
    )
}

fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let names = pod.bad(|c| c["securityContext"]["privileged"] == true);
    if names.is_empty() {
        return None;
    }
    violation(
        "privileged",
        format!(
            "{} must not set securityContext.privileged=true",
            containers(&names)
        ),
    )
}

fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    let kind = |c: &Value| {
        c["securityContext"]["procMount"]
            .as_str()
            .filter(|k| *k != "Default")
            .map(str::to_owned)
    };
    let names = pod.bad(|c| kind(c).is_some());
    let kinds: BTreeSet<String> = pod.containers().filter_map(kind).collect();
    if names.is_empty() {
        return None;
    }
    violation(
        "procMount",
        format!(
            "{} must not set securityContext.procMount to {}",
            containers(&names),
            quoted(&kinds)
        ),
    )
}

fn proc_mount_outside(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_own_users() {
        None
    } else {
        proc_mount(pod)
    }
}

fn selinux(pod: &Pod<'_>) -> Option<Violation> {
    let allowed = |kind: &str| {
        matches!(
            kind,
            "" | "container_t" | "container_init_t" | "container_kvm_t"
        ) || (kind == "container_engine_t" && pod.version >= 31)
    };
    let options = |context: &'_ Value| context["seLinuxOptions"].clone();
    let set = |o: &Value, field: &str| !text(&o[field]).is_empty();
    let setters = pod.setters(|context| {
        let o = options(context);
        !allowed(text(&o["type"])) || set(&o, "user") || set(&o, "role")
    });
    if setters.is_empty() {
        return None;
    }
    let all: Vec<Value> = pod.contexts().map(options).collect();
    let kinds: BTreeSet<&str> = all
        .iter()
        .map(|o| text(&o["type"]))
        .filter(|k| !allowed(k))
        .collect();
    let mut data = Vec::new();
    if !kinds.is_empty() {
        data.push(format!(
            "{} {}",
            plural("type", "types", kinds.len()),
            quoted(&kinds)
        ));
    }
    for field in ["user", "role"] {
        data.extend(
            all.iter()
                .any(|o| set(o, field))
                .then(|| format!("{field} may not be set")),
        );
    }
    let who = setters.join(" and ");
    violation(
        "seLinuxOptions",
        format!(
            "{who} set forbidden securityContext.seLinuxOptions: {}",
            data.join("; ")
        ),
    )
}

fn seccomp_type(context: &Value) -> Option<String> {
    context
        .get("seccompProfile")
        .filter(|p| !p.is_null())
        .map(|p| text(&p["type"]).to_owned())
}

fn is_confined(kind: &str) -> bool {
    matches!(kind, "Localhost" | "RuntimeDefault")
}

fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
    if pod.version < 19 {
        return seccomp_annotations(pod);
    }
    let bad = |context: &Value| seccomp_type(context).filter(|k| !is_confined(k));
    let setters = pod.setters(|context| bad(context).is_some());
    let values: BTreeSet<String> = pod.contexts().filter_map(bad).collect();
    if setters.is_empty() {
        return None;
    }
    let who = setters.join(" and ");
    violation(
        "seccompProfile",
        format!(
            "{who} must not set securityContext.seccompProfile.type to {}",
            quoted(&values)
        ),
    )
}

fn seccomp_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let allowed =
        |v: &str| matches!(v, "runtime/default" | "docker/default") || v.starts_with("localhost/");
    let names = pod.containers().map(|c| {
        format!(
            "container.seccomp.security.alpha.kubernetes.io/{}",
            text(&c["name"])
        )
    });
    let keys = std::iter::once("seccomp.security.alpha.kubernetes.io/pod".to_owned()).chain(names);
    let forbidden: BTreeSet<String> = keys
        .filter_map(|key| {
            let value = pod.annotations[&key].as_str().filter(|v| !allowed(v))?;
            Some(format!("{key}=\"{value}\""))
        })
        .collect();
    if forbidden.is_empty() {
        return None;
    }
    let what = plural("annotation", "annotations", forbidden.len());
    violation(
        "seccompProfile",
        format!(
            "forbidden {what} {}",
            forbidden.into_iter().collect::<Vec<_>>().join(", ")
        ),
    )
}

fn seccomp_required(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() {
        return None;
    }
    if let Some(found) = seccomp(pod) {
        return Some(found);
    }
    let whole = seccomp_type(pod.context()).is_some();
    let names = pod.bad(|c| !whole && seccomp_type(&c["securityContext"]).is_none());
    if names.is_empty() {
        return None;
    }
    let who = containers(&names);
    let what =
        "must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"";
    violation("seccompProfile", format!("pod or {who} {what}"))
}

fn sysctls(pod: &Pod<'_>) -> Option<Violation> {
    // Each with the version since which it is allowed.
    const ALLOWED: [(&str, u32); 12] = [
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
    ];
    let allowed = |name: &str| {
        ALLOWED
            .iter()
            .any(|(known, since)| *known == name && pod.version >= *since)
    };
    let names: Vec<&str> = list(pod.context(), "sysctls")
        .iter()
        .map(|s| text(&s["name"]))
        .filter(|n| !allowed(n))
        .collect();
    if names.is_empty() {
        None
    } else {
        violation("forbidden sysctls", names.join(", "))
    }
}

fn host_process(pod: &Pod<'_>) -> Option<Violation> {
    let setters = pod.setters(|context| context["windowsOptions"]["hostProcess"] == true);
    if setters.is_empty() {
        return None;
    }
    violation(
        "hostProcess",
        format!(
            "{} must not set securityContext.windowsOptions.hostProcess=true",
            setters.join(" and ")
        ),
    )
}

fn privilege_escalation(pod: &Pod<'_>) -> Option<Violation> {
    let names = pod.bad(|c| c["securityContext"]["allowPrivilegeEscalation"] != false);
    if pod.is_windows() || names.is_empty() {
        return None;
    }
    let detail = format!(
        "{} must set securityContext.allowPrivilegeEscalation=false",
        containers(&names)
    );
    violation("allowPrivilegeEscalation != false", detail)
}

fn volume_types(pod: &Pod<'_>) -> Option<Violation> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let volumes = list(pod.spec, "volumes")
        .iter()
        .filter(|v| !ALLOWED.iter().any(|kind| v[*kind].is_object()));
    let (mut names, mut kinds) = (Vec::new(), BTreeSet::new());
    for volume in volumes {
        names.push(text(&volume["name"]));
        let kind = volume
            .as_object()
            .into_iter()
            .flatten()
            .find(|(field, value)| *field != "name" && value.is_object());
        kinds.insert(kind.map_or("unknown", |(field, _)| field.as_str()));
    }
    if names.is_empty() {
        return None;
    }
    let (uses, what) = (
        plural("uses", "use", names.len()),
        plural(
            "restricted volume type",
            "restricted volume types",
            kinds.len(),
        ),
    );
    let volumes = plural("volume", "volumes", names.len());
    violation(
        "restricted volume types",
        format!(
            "{volumes} {} {uses} {what} {}",
            quoted(&names),
            quoted(&kinds)
        ),
    )
}

fn non_root(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_own_users() {
        return None;
    }
    const REASON: &str = "runAsNonRoot != true";
    let setters = pod.setters(|context| context["runAsNonRoot"] == false);
    if !setters.is_empty() {
        return violation(
            REASON,
            format!(
                "{} must not set securityContext.runAsNonRoot=false",
                setters.join(" and ")
            ),
        );
    }
    let whole = pod.context()["runAsNonRoot"] == true;
    let names = pod.bad(|c| !whole && !c["securityContext"]["runAsNonRoot"].is_boolean());
    if names.is_empty() {
        return None;
    }
    violation(
        REASON,
        format!(
            "pod or {} must set securityContext.runAsNonRoot=true",
            containers(&names)
        ),
    )
}

fn user_zero(pod: &Pod<'_>) -> Option<Violation> {
    let setters = pod.setters(|context| context["runAsUser"] == 0);
    if pod.has_own_users() || setters.is_empty() {
        return None;
    }
    violation(
        "runAsUser=0",
        format!("{} must not set runAsUser=0", setters.join(" and ")),
    )
}

//! Pods and pod templates.
//!
//! Main functions: [`create`] and [`template`]; updates are in [`update`]. Each part of a pod has
//! its own file; facts about the whole pod that several parts need are in [`Pod`].

pub mod affinity;
pub mod annotations;
pub mod claim;
mod container;
mod env;
mod network;
mod probe;
mod projected;
pub mod resize;
pub mod resources;
mod security;
pub mod status;
pub mod update;
pub mod volume;
mod windows;

use super::rules::{At, Check, Rule, labels};
use crate::status::Cause;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tiphys_kube_schema::formats::{dns_label, dns_subdomain, qualified_name};

/// The field of errors about a pod as a whole.
const NOWHERE: &str = "[]";

/// A pod spec, and the names that its parts refer to.
pub struct Pod<'a> {
    pub spec: &'a At<'a>,
    /// Valid volumes, by name.
    pub volumes: BTreeMap<&'a str, &'a Value>,
    /// Names in `resourceClaims`.
    pub claims: BTreeSet<&'a str>,
    pub grace: Option<i64>,
    pub host_users: bool,
}

impl<'a> Pod<'a> {
    fn new(spec: &'a At<'a>) -> Self {
        let claims = spec.get("resourceClaims").items();
        Self {
            spec,
            volumes: BTreeMap::new(),
            claims: claims
                .iter()
                .map(|c| c.get("name").text())
                .filter(|n| !n.is_empty())
                .collect(),
            grace: spec.get("terminationGracePeriodSeconds").int(),
            host_users: spec.get("hostUsers").value != false,
        }
    }

    /// All containers, in the order in which the API server visits them.
    pub fn visited(&self) -> Vec<At<'a>> {
        visited(self.spec)
    }
}

fn visited<'v>(spec: &At<'v>) -> Vec<At<'v>> {
    ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|list| spec.get(list).items())
        .collect()
}

/// Fields without a file of their own that are checked after the containers.
const MIDDLE: &[Rule] = &[
    Rule::By(host_network),
    Rule::By(|spec, causes| {
        spec.get("restartPolicy").check(
            &[
                Check::Required(""),
                Check::OneOf(&["Always", "OnFailure", "Never"]),
            ],
            causes,
        );
    }),
    Rule::Field(
        "dnsPolicy",
        &[
            Check::Required(""),
            Check::OneOf(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
        ],
    ),
    Rule::By(|spec, causes| labels(&spec.get("nodeSelector"), causes)),
    Rule::By(security::pod),
    Rule::By(|spec, causes| affinity::affinity(&spec.get("affinity"), causes)),
    Rule::By(network::dns),
    Rule::By(|spec, causes| {
        let gates = spec.get("readinessGates");
        gates
            .items()
            .iter()
            .for_each(|gate| gate.get("conditionType").form(qualified_name, causes));
    }),
    Rule::By(scheduling_gates),
    Rule::By(|spec, causes| affinity::spread(&spec.get("topologySpreadConstraints"), causes)),
];

/// Fields that are checked last.
const END: &[Rule] = &[
    Rule::By(host_users),
    Rule::By(network::host_name),
    Rule::Field("serviceAccountName", &[Check::Form(dns_subdomain)]),
    Rule::Field("nodeName", &[Check::Form(dns_subdomain)]),
    Rule::Field(
        "activeDeadlineSeconds",
        &[Check::Between(1, i32::MAX as i64)],
    ),
    Rule::Field("hostname", &[Check::Form(dns_label)]),
    Rule::Field("subdomain", &[Check::Form(dns_label)]),
    Rule::By(|spec, causes| affinity::tolerations(&spec.get("tolerations"), causes)),
    Rule::By(network::host_aliases),
    Rule::Field("priorityClassName", &[Check::Form(dns_subdomain)]),
    Rule::By(|spec, causes| {
        let class = spec.get("runtimeClassName");
        if !class.is_null() {
            class.form(dns_subdomain, causes);
        }
    }),
    Rule::By(|spec, causes| {
        let policy = spec.get("preemptionPolicy");
        if !policy.is_null() {
            policy.check(
                &[
                    Check::Required(""),
                    Check::OneOf(&["PreemptLowerPriority", "Never"]),
                ],
                causes,
            );
        }
    }),
    Rule::By(|spec, causes| {
        let overhead = spec.get("overhead");
        if !overhead.is_null() {
            resources::overhead(&overhead, causes);
        }
    }),
];

/// A pod spec. `name` is the pod's name; templates have none. `is_static`: it is a static pod of a
/// kubelet.
fn spec(at: &At<'_>, name: &str, (is_pod, is_static): (bool, bool), causes: &mut Vec<Cause>) {
    let mut pod = Pod::new(at);
    if pod.grace.is_none() {
        causes.push(at.get("terminationGracePeriodSeconds").required(""));
    }
    pod.volumes = volume::volumes(&at.get("volumes"), name, is_pod, causes);
    resource_claims(&at.get("resourceClaims"), is_static, causes);
    container::all(&pod, causes);
    resources::pod(at, &pod.claims, causes);
    at.walk(MIDDLE, causes);
    windows::host_processes(&pod, causes);
    at.walk(END, causes);
    windows::system(&pod, causes);
    file_keys(&pod, causes);
}

fn resource_claims(all: &At<'_>, is_static: bool, causes: &mut Vec<Cause>) {
    let mut names = HashSet::new();
    for claim in all.items() {
        if is_static {
            causes.push(Cause::forbidden(
                NOWHERE,
                "static pods do not support resource claims",
            ));
            continue;
        }
        let name = claim.get("name");
        if name.is_empty() {
            causes.push(name.required(""));
        } else if !names.insert(name.text()) {
            causes.push(name.duplicate());
        } else {
            name.form(dns_label, causes);
        }
        let parts =
            ["resourceClaimName", "resourceClaimTemplateName"].map(|field| claim.get(field));
        let problem = match parts.iter().filter(|p| !p.is_null()).count() {
            0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => None,
            _ => Some(
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
        };
        causes.extend(problem.map(|p| claim.invalid_struct("core/v1.PodResourceClaim", p)));
        parts
            .iter()
            .filter(|p| !p.is_null())
            .for_each(|part| part.form(dns_subdomain, causes));
    }
}

fn host_network(spec: &At<'_>, causes: &mut Vec<Cause>) {
    if !spec.get("hostNetwork").is_true() {
        return;
    }
    for port in spec
        .get("containers")
        .items()
        .iter()
        .flat_map(|c| c.get("ports").items())
    {
        let (host, own) = (
            port.get("hostPort"),
            port.get("containerPort").int().unwrap_or(0),
        );
        let number = host.int().unwrap_or(0);
        if number != 0 && number != own {
            causes.push(host.invalid("must match `containerPort` when `hostNetwork` is true"));
        }
    }
}

fn scheduling_gates(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let mut seen = HashSet::new();
    for gate in spec.get("schedulingGates").items() {
        let name = gate.get("name").text();
        causes.extend(
            qualified_name(name)
                .iter()
                .map(|p| gate.invalid_as(name, p)),
        );
        if !seen.insert(name) {
            causes.push(Cause::duplicate(&gate.path, &name.into()));
        }
    }
}

/// A pod with its own user namespace can share less with its host.
fn host_users(spec: &At<'_>, causes: &mut Vec<Cause>) {
    const WHEN: &str = "when `hostUsers` is false";
    if spec.get("hostUsers").value != false {
        return;
    }
    for (field, shown) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if spec.get(field).is_true() {
            causes.push(spec.get(shown).forbidden(WHEN));
        }
    }
    for container in visited(spec) {
        let devices = container.get("volumeDevices");
        causes.extend((!devices.is_empty()).then(|| devices.forbidden(WHEN)));
    }
}

/// Variables from a file of another container.
fn file_keys(pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    for variable in pod.visited().iter().flat_map(|c| c.get("env").items()) {
        let reference = variable.get("valueFrom.fileKeyRef");
        if reference.is_null() {
            continue;
        }
        let name = reference.get("volumeName");
        let volumes = pod.spec.get("volumes").items();
        match volumes
            .iter()
            .rev()
            .find(|v| v.get("name").value == name.value)
        {
            None => causes.push(name.not_found()),
            Some(volume) if volume.get("emptyDir").is_null() => {
                causes.push(name.invalid("referenced volume must be of type emptyDir"));
            }
            Some(_) => {}
        }
    }
}

/// The checks of every write of a pod's spec.
fn whole(pod: &At<'_>, causes: &mut Vec<Cause>) {
    let at = pod.get("spec");
    annotations::check(&pod.get("metadata.annotations"), &at, causes);
    let is_static = pod
        .get("metadata.annotations")
        .value
        .get(annotations::MIRROR)
        .is_some();
    spec(
        &at,
        pod.get("metadata.name").text(),
        (true, is_static),
        causes,
    );
    at.walk(projected::TOKENS_NEED_AN_ACCOUNT, causes);
    for list in ["containers", "initContainers"] {
        at.get(list)
            .items()
            .iter()
            .for_each(|c| container::trimmed_image(c, causes));
    }
}

/// A new pod; its metadata has been checked.
pub fn create(pod: &At<'_>, causes: &mut Vec<Cause>) {
    whole(pod, causes);
    let spec = pod.get("spec");
    let ephemeral = spec.get("ephemeralContainers");
    causes.extend((!ephemeral.is_empty()).then(|| ephemeral.forbidden("cannot be set on create")));
    if !spec.get("nodeName").is_empty() && !spec.get("schedulingGates").is_empty() {
        causes.push(
            spec.get("nodeName")
                .forbidden("cannot be set until all schedulingGates have been cleared"),
        );
    }
    annotations::agree(&pod.get("metadata.annotations"), &Pod::new(&spec), causes);
}

/// A pod template. Causes of its metadata leave out the word `metadata`.
pub fn template(template: &At<'_>, causes: &mut Vec<Cause>) {
    template_metadata(template, causes);
    let at = template.get("spec");
    spec(&at, "", (false, false), causes);
    annotations::agree(
        &template.get("metadata.annotations"),
        &Pod::new(&at),
        causes,
    );
    let ephemeral = at.get("ephemeralContainers");
    causes.extend(
        (!ephemeral.is_empty())
            .then(|| ephemeral.forbidden("ephemeral containers not allowed in pod template")),
    );
}

/// Labels and annotations of a template.
pub fn template_metadata(template: &At<'_>, causes: &mut Vec<Cause>) {
    let part = |field: &str| {
        At::new(
            template.get("metadata").get(field).value,
            format!("{}.{field}", template.path),
        )
    };
    labels(&part("labels"), causes);
    super::meta::annotations(&part("annotations"), causes);
    annotations::check(&part("annotations"), &template.get("spec"), causes);
}

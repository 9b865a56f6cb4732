//! Names, labels, annotations, owners and finalizers.
//!
//! Main function: [`check`]. The API server validates metadata several times, each time with
//! different rules for names and finalizers, and reports an error once per pass: [`Plan`] says how
//! many passes a kind has.

use super::rules::{self, At};
use crate::base::Part;
use crate::catalog::{CRD_TABLE, Resource};
use crate::status::Cause;
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_gocompat::text::is_print;
use tiphys_kube_schema::formats;
use tiphys_kube_schema::formats::Format;

const MAX_ANNOTATIONS: usize = 256 * 1024;
const MAX_MANAGER: usize = 128;
const MAX_SUBRESOURCE: usize = 256;

/// How much of the metadata is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CheckMode {
    /// Everything.
    Full,
    /// Only what an update can make invalid, which excludes finalizers and the name.
    Update,
}

use CheckMode::{Full, Update};

/// The additional metadata checks of a kind.
struct Plan {
    name: Format,
    /// Finalizers need a domain.
    domains: bool,
    /// Names are also checked before they are generated.
    prefix: bool,
    create: &'static [CheckMode],
    update: &'static [CheckMode],
    status: &'static [CheckMode],
}

impl Plan {
    fn of(resource: &Resource) -> Self {
        let plan = Self {
            name: formats::dns_subdomain,
            domains: true,
            prefix: true,
            create: &[Full],
            update: &[Update, Full],
            status: &[Update],
        };
        if resource.custom.is_some() || resource.table == CRD_TABLE {
            return Self {
                domains: false,
                update: &[Update],
                ..plan
            };
        }
        plan.for_core_kind(resource)
    }

    /// Kinds of the core group; events are in two groups.
    fn for_core_kind(self, resource: &Resource) -> Self {
        match resource.table.as_str() {
            "/replicationcontrollers" => Self {
                name: formats::long_name,
                prefix: false,
                ..self
            },
            "/namespaces" => Self {
                name: formats::dns_label,
                update: &[Full, Update],
                ..self
            },
            "/services" => Self {
                name: formats::dns_label,
                update: &[Update],
                ..self
            },
            "/nodes" => Self {
                update: &[Full, Update],
                ..self
            },
            "/persistentvolumes" => Self {
                update: &[Full, Full],
                ..self
            },
            "/limitranges" => Self {
                update: &[Full],
                ..self
            },
            "/resourcequotas" => Self {
                update: &[Update],
                ..self
            },
            "/events" if resource.group.is_empty() => Self {
                create: &[],
                update: &[],
                ..self
            },
            "/events" => Self {
                update: &[Update],
                ..self
            },
            _ => self.for_other_kind(resource),
        }
    }

    fn for_other_kind(self, resource: &Resource) -> Self {
        match resource.table.as_str() {
            "apps/statefulsets" => Self {
                name: formats::dns_label,
                ..self
            },
            "resource.k8s.io/deviceclasses" => Self {
                name: formats::long_name,
                prefix: false,
                update: &[Full, Update],
                ..self
            },
            "storage.k8s.io/volumeattachments" => Self {
                update: &[Full],
                status: &[],
                ..self
            },
            "networking.k8s.io/ipaddresses" => Self {
                name: formats::canonical_ip,
                update: &[Full, Update],
                ..self
            },
            "policy/poddisruptionbudgets" => Self {
                create: &[],
                update: &[],
                status: &[],
                ..self
            },
            "apiregistration.k8s.io/apiservices" => Self {
                name: formats::path_segment,
                domains: false,
                update: &[Full, Update],
                status: &[],
                ..self
            },
            "certificates.k8s.io/certificatesigningrequests" => Self {
                name: |_| Vec::new(),
                update: &[Full, Update],
                status: &[Full, Update],
                ..self
            },
            "node.k8s.io/runtimeclasses" => Self {
                domains: false,
                update: &[Full, Update],
                ..self
            },
            "coordination.k8s.io/leases" => Self {
                domains: false,
                update: &[Update],
                ..self
            },
            "storage.k8s.io/storageclasses" | "storage.k8s.io/csistoragecapacities" => Self {
                update: &[Full, Update],
                ..self
            },
            "discovery.k8s.io/endpointslices" | "storage.k8s.io/csinodes" => Self {
                update: &[Full],
                ..self
            },
            "networking.k8s.io/networkpolicies"
            | "networking.k8s.io/servicecidrs"
            | "storage.k8s.io/csidrivers"
            | "autoscaling/horizontalpodautoscalers"
            | "scheduling.k8s.io/priorityclasses"
            | "resource.k8s.io/resourceslices" => Self {
                update: &[Update],
                ..self
            },
            _ => self.for_group(&resource.group),
        }
    }

    /// The settings of all other kinds of a group.
    fn for_group(self, group: &str) -> Self {
        match group {
            "rbac.authorization.k8s.io" => Self {
                name: formats::path_segment,
                update: &[Full, Update],
                ..self
            },
            "admissionregistration.k8s.io" => Self {
                domains: false,
                update: &[Full],
                status: &[],
                ..self
            },
            "flowcontrol.apiserver.k8s.io" => Self {
                update: &[Full],
                status: &[],
                ..self
            },
            "resource.k8s.io" => Self {
                update: &[Full, Update],
                status: &[],
                ..self
            },
            _ => self,
        }
    }

    fn look(&self, object: &Object, causes: &mut Vec<Cause>) {
        match self.prefix {
            true => full(object, self.name, self.domains, causes),
            false => named(object, self.name, self.domains, causes),
        }
    }

    fn on_update(&self, part: Part) -> &'static [CheckMode] {
        match part {
            Part::Status => self.status,
            Part::Finalize => &[Update],
            _ => self.update,
        }
    }
}

/// The checks of every update, whatever the kind.
pub fn check_update(object: &Object, old: &Object) -> Vec<Cause> {
    let mut causes = check_common(object);
    update(object, old, false, &mut causes);
    causes
}

/// Whether the kind checks metadata changes on updates.
pub fn looks_at_updates(resource: &Resource, part: Part) -> bool {
    Plan::of(resource).on_update(part).contains(&Update)
}

/// The checks of the kind, for the write of a part.
pub fn check_kind(
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
    part: Part,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    let plan = Plan::of(resource);
    for one in old.map_or(plan.create, |_| plan.on_update(part)) {
        match (one, old) {
            (Update, Some(old)) => update(object, old, plan.domains, &mut causes),
            _ => plan.look(object, &mut causes),
        }
    }
    causes
}

/// A full check by the rules of the kind.
pub fn check(resource: &Resource, object: &Object) -> Vec<Cause> {
    let mut causes = Vec::new();
    Plan::of(resource).look(object, &mut causes);
    causes
}

/// A full check of the metadata of a Scale.
pub fn check_scale(scale: &Object) -> Vec<Cause> {
    let mut causes = Vec::new();
    full(scale, formats::dns_subdomain, true, &mut causes);
    causes
}

/// The check of every new object after its kind's own checks have passed.
pub fn check_common(object: &Object) -> Vec<Cause> {
    let mut causes = Vec::new();
    full(object, formats::path_segment, false, &mut causes);
    causes
}

/// The metadata of an embedded object, which needs no name.
pub fn embedded(metadata: &Value, path: &str) -> Vec<Cause> {
    let mut object = Object::default();
    object.0.insert("metadata".into(), metadata.clone());
    if object.name().is_empty() {
        object
            .metadata_mut()
            .insert("name".into(), "fakename".into());
    }
    let mut causes = check_common(&object);
    for cause in &mut causes {
        cause.field = cause.field.replacen("metadata", path, 1);
    }
    causes
}

fn metadata(object: &Object) -> At<'_> {
    static NULL: Value = Value::Null;
    At::new(object.0.get("metadata").unwrap_or(&NULL), "metadata")
}

fn full(object: &Object, name: Format, domains: bool, causes: &mut Vec<Cause>) {
    let prefix = metadata(object).get("generateName");
    if !prefix.is_empty() {
        let text = prefix.text();
        // A dash at the end is allowed if something follows, and so are dots.
        let masked = match text.strip_suffix('-') {
            Some(stem) if !stem.is_empty() => {
                format!(
                    "{}a",
                    &stem[..stem.char_indices().next_back().map_or(0, |(i, _)| i)]
                )
            }
            _ => text.to_owned(),
        };
        let fits = |problem: &&String| !domains && problem.starts_with("may not be '");
        causes.extend(
            name(&masked)
                .iter()
                .filter(|p| !fits(p))
                .map(|problem| prefix.invalid(problem)),
        );
    }
    named(object, name, domains, causes);
}

fn named(object: &Object, name: Format, domains: bool, causes: &mut Vec<Cause>) {
    let meta = metadata(object);
    let given = meta.get("name");
    match given.is_empty() {
        true => causes.push(given.required("name or generateName is required")),
        false => given.form(name, causes),
    }
    // For objects that are not embedded, this has been checked before.
    let namespace = meta.get("namespace");
    if !namespace.is_empty() {
        namespace.form(formats::dns_label, causes);
    }
    let generation = meta.get("generation");
    if generation.int().is_some_and(|n| n < 0) {
        causes.push(generation.invalid("must be greater than or equal to 0"));
    }
    common(&meta, causes);
    for finalizer in meta.get("finalizers").items() {
        let problems = formats::qualified_name(finalizer.text());
        causes.extend(
            problems
                .iter()
                .map(|p| At::new(finalizer.value, "metadata.finalizers").invalid(p)),
        );
    }
    let all = object.finalizers();
    if all.iter().any(|f| f == "orphan") && all.iter().any(|f| f == "foregroundDeletion") {
        causes.push(
            meta.get("finalizers")
                .invalid("finalizer orphan and foregroundDeletion cannot be both set"),
        );
    }
    managers(&meta, causes);
    finalizer_domains(&meta, domains, causes);
}

/// Checks what an update can make invalid.
pub fn update(object: &Object, old: &Object, domains: bool, causes: &mut Vec<Cause>) {
    let meta = metadata(object);
    let before = |field: &str| old.metadata(field).cloned().unwrap_or(Value::Null);
    if old.deletion_timestamp().is_some() {
        let known = old.finalizers();
        let mut added: Vec<String> = object
            .finalizers()
            .into_iter()
            .filter(|f| !known.contains(f))
            .collect();
        added.sort();
        if !added.is_empty() {
            let list: Vec<String> = added.iter().map(|f| format!("\"{f}\"")).collect();
            let said = format!("[]string{{{}}}", list.join(", "));
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers {said}"
            );
            causes.push(meta.get("finalizers").forbidden(&detail));
        }
    }
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        let now = meta.get(field);
        if *now.value != before(field) {
            causes.push(now.invalid_as(now.value.clone(), "field is immutable"));
        }
    }
    common(&meta, causes);
    managers(&meta, causes);
    finalizer_domains(&meta, domains, causes);
}

/// Labels, annotations and owners.
fn common(meta: &At<'_>, causes: &mut Vec<Cause>) {
    check_map(&meta.get("labels"), causes);
    check_map(&meta.get("annotations"), causes);
    rules::labels(&meta.get("labels"), causes);
    annotations(&meta.get("annotations"), causes);
    owners(&meta.get("ownerReferences"), causes);
}

/// The keys of annotations, and their total size.
pub fn annotations(at: &At<'_>, causes: &mut Vec<Cause>) {
    for (key, _) in at.entries() {
        causes.extend(
            formats::qualified_name(&key.to_lowercase())
                .iter()
                .map(|p| at.invalid_as(key, p)),
        );
    }
    if at
        .entries()
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum::<usize>()
        > MAX_ANNOTATIONS
    {
        causes.push(at.too_long(MAX_ANNOTATIONS));
    }
}

/// The metadata of a template: only annotations and labels are checked.
pub fn template(metadata: &At<'_>, causes: &mut Vec<Cause>) {
    const OTHERS: [&str; 13] = [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ];
    annotations(&metadata.get("annotations"), causes);
    rules::labels(&metadata.get("labels"), causes);
    for field in OTHERS.iter().filter(|field| !metadata.get(field).is_null()) {
        causes.push(
            metadata
                .get(if *field == "uid" { "uID" } else { field })
                .forbidden("cannot be set"),
        );
    }
}

/// The metadata of custom resources has not been decoded into typed metadata.
fn check_map(map: &At<'_>, causes: &mut Vec<Cause>) {
    let fits = match map.value {
        Value::Null => true,
        Value::Object(entries) => entries.values().all(Value::is_string),
        _ => false,
    };
    if !fits {
        causes.push(Cause::type_invalid(
            &map.path,
            map.value,
            "must be a map of strings to strings",
        ));
    }
}

fn owners(all: &At<'_>, causes: &mut Vec<Cause>) {
    let mut first: Option<String> = None;
    for item in all.items() {
        // The position is not part of these paths.
        let owner = At::new(item.value, all.path.clone());
        let (api_version, kind) = (owner.get("apiVersion"), owner.get("kind"));
        if api_version.text().is_empty()
            || api_version.text().ends_with('/')
            || api_version.text().matches('/').count() > 1
        {
            causes.push(api_version.invalid("version must not be empty"));
        }
        for field in ["kind", "name", "uid"] {
            let field = owner.get(field);
            causes.extend(field.is_empty().then(|| field.invalid("must not be empty")));
        }
        if (api_version.text().trim_start_matches('/'), kind.text()) == ("v1", "Event") {
            causes.push(owner.invalid_struct(
                "meta/v1.OwnerReference",
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if owner.get("controller").is_true() {
            let name = format!("{}/{}", kind.text(), owner.get("name").text());
            match &first {
                Some(first) => {
                    let found = format!("Found \"true\" in references for {first} and {name}");
                    let detail =
                        format!("Only one reference can have Controller set to true. {found}");
                    causes.push(all.invalid_struct("[]meta/v1.OwnerReference", &detail));
                }
                None => first = Some(name),
            }
        }
    }
}

fn managers(meta: &At<'_>, causes: &mut Vec<Cause>) {
    for entry in meta.get("managedFields").items() {
        manager_problems(&entry.get("manager"), causes);
        let subresource = entry.get("subresource");
        if subresource.len() > MAX_SUBRESOURCE {
            causes.push(subresource.too_long(MAX_SUBRESOURCE));
        }
    }
}

/// Validates the name of a manager.
pub fn manager_problems(manager: &At<'_>, causes: &mut Vec<Cause>) {
    if manager.len() > MAX_MANAGER {
        causes.push(manager.too_long(MAX_MANAGER));
    }
    for (at, c) in manager.text().char_indices().filter(|(_, c)| !is_print(*c)) {
        causes.push(manager.invalid(&format!(
            "invalid character U+{:04X} (at position {at})",
            u32::from(c)
        )));
    }
}

fn finalizer_domains(meta: &At<'_>, domains: bool, causes: &mut Vec<Cause>) {
    for finalizer in meta.get("finalizers").items().iter().filter(|_| domains) {
        let text = finalizer.text();
        if !text.contains('/') && !matches!(text, "kubernetes" | "orphan" | "foregroundDeletion") {
            causes
                .push(finalizer.invalid(
                    "name is neither a standard finalizer name nor is it fully qualified",
                ));
        }
    }
}

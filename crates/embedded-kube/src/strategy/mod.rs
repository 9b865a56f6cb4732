//! What depends on the kind: which fields exist, what is filled in, what is refused.
//!
//! Main functions, called by the registry in this order: [`check_fields`], [`fill_in`], [`prepare_create`] or [`prepare_update`],
//! [`validate`].

pub mod admission;
mod custom;
mod defaults;
mod definition;
pub mod parts;
mod pods;
pub mod service;
pub(crate) mod validate;
mod warnings;

use crate::catalog::{CRD_TABLE, Resource};
use crate::gotypes;
use crate::registry::{FieldValidation, Part, Registry, WriteOptions};
use crate::status::Status;
pub(crate) use definition::go_regex;
pub use definition::{
    CLEANUP, is_established, mark_deleted as mark_definition_deleted, mark_emptying as mark_definition_emptying,
    settle as settle_definition, try_schema,
};
use serde_json::{Map, Value, json};
use tiphys_apimachinery::object::map_entry;
use tiphys_apimachinery::{Gvk, Object, schema};

/// Keep a claim that a pod uses, and a volume that is bound.
pub const CLAIM_IN_USE: &str = "kubernetes.io/pvc-protection";
pub const VOLUME_IN_USE: &str = "kubernetes.io/pv-protection";

const CSR: &str = "certificates.k8s.io/certificatesigningrequests";

/// Counts the changes of a DaemonSet's template.
pub const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The cluster IP of the service `kubernetes`.
pub const API_SERVICE_IP: &str = "10.0.0.1";

/// Drops fields that the type does not have and what Go would not keep; fills in what a CustomResourceDefinition has as default.
/// Returns warnings.
pub fn check_fields(resource: &Resource, object: &mut Object, options: &WriteOptions) -> Result<Vec<String>, Status> {
    // What is no kind of Go's is called as it calls itself.
    let own = Some(object.kind().to_owned()).filter(|kind| resource.custom.is_some() && !kind.is_empty());
    read_fields(resource, object, options).map_err(|unreadable| {
        let named = own.unwrap_or_else(|| resource.kind.clone());
        not_handled(resource, &named, &unreadable.reading)
    })
}

/// Why an object cannot be read, in Go's words.
pub struct Unreadable {
    /// When it reads the object's text.
    pub reading: String,
    /// When it converts the object's tree.
    pub converting: String,
}

impl From<String> for Unreadable {
    fn from(why: String) -> Self {
        Self { converting: why.clone(), reading: why }
    }
}

impl From<gotypes::WrongType> for Unreadable {
    fn from(wrong: gotypes::WrongType) -> Self {
        Self { reading: wrong.to_string(), converting: wrong.converting() }
    }
}

/// The same as [`check_fields`], for callers who answer in another way.
pub fn read_fields(resource: &Resource, object: &mut Object, options: &WriteOptions) -> Result<Vec<String>, Unreadable> {
    let mut findings = options.findings.clone();
    if resource.custom.is_some() || resource.ty().is_some() {
        let mut value = std::mem::take(object).into_value();
        let unknown = match (&resource.custom, resource.ty()) {
            (Some(custom), _) => custom::read((custom, &resource.kind), &mut value, options.from_tree)?,
            (None, Some(ty)) => schema::prune(&mut value, ty),
            (None, None) => Vec::new(),
        };
        // What of an applied custom object nobody declares goes without a word.
        if !(resource.custom.is_some() && options.from_tree) {
            findings.extend(unknown.into_iter().map(|path| format!("unknown field \"{path}\"")));
        }
        *object = Object::from_value(value).map_err(|e| e.to_string())?;
    }
    if let Some(of) = gotypes::of(&resource.gvk()).filter(|_| resource.custom.is_none()) {
        if options.from_tree {
            gotypes::cut_numbers(&mut object.0, of);
        }
        gotypes::read_into(&mut object.0, of, options.from_tree)?;
    }
    judge(findings, options)
}

/// Why an applied object cannot be kept, although it can be read as what it is.
pub fn refused_by_store(resource: &Resource, applied: &Object) -> Option<Status> {
    let converted = resource.custom.is_some() && !resource.is_storage();
    let why = converted.then(|| custom::unreadable_deletion(applied)).flatten()?;
    Some(Status::new(500, "", why))
}

/// Reads a Scale; returns warnings.
pub fn read_scale(object: &mut Object, options: &WriteOptions) -> Result<Vec<String>, Unreadable> {
    let gvk = Gvk::new("autoscaling", "v1", "Scale");
    let mut findings = options.findings.clone();
    let mut value = std::mem::take(object).into_value();
    if let Some(ty) = schema::builtin().type_for(&gvk) {
        findings.extend(schema::prune(&mut value, ty).into_iter().map(|path| format!("unknown field \"{path}\"")));
    }
    *object = Object::from_value(value).map_err(|e| e.to_string())?;
    if let Some(of) = gotypes::of(&gvk) {
        gotypes::normalize(&mut object.0, of)?;
    }
    judge(findings, options)
}

/// What the request wants to be made of unknown fields and keys that appear twice.
fn judge(findings: Vec<String>, options: &WriteOptions) -> Result<Vec<String>, Unreadable> {
    match options.validation {
        _ if findings.is_empty() => Ok(findings),
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(findings),
        FieldValidation::Strict => Err(format!("strict decoding error: {}", findings.join(", ")).into()),
    }
}

fn not_handled(resource: &Resource, named: &str, why: &str) -> Status {
    let (kind, version) = (&resource.kind, &resource.version);
    Status::bad_request(format!("{named} in version \"{version}\" cannot be handled as a {kind}: {why}"))
}

/// What Go writes of a built-in object: lists and maps without anything in them only matter until then.
pub fn drop_empty(resource: &Resource, object: &mut Object) {
    let Some(of) = gotypes::of(&resource.gvk()).filter(|_| resource.custom.is_none()) else { return };
    // An empty list resets the managers, which is not the same as to say nothing of them.
    let managers = object.metadata("managedFields").cloned();
    gotypes::drop_empty(&mut object.0, of);
    if let Some(managers) = managers {
        object.metadata_mut().insert("managedFields".into(), managers);
    }
}

/// Reads a built-in object with what the server decided into Go types.
fn read_again(resource: &Resource, object: &mut Object) -> Result<(), Status> {
    if resource.custom.is_some() {
        return Ok(());
    }
    match gotypes::of(&resource.gvk()) {
        Some(of) => gotypes::read_into(&mut object.0, of, false).map_err(|e| not_handled(resource, &resource.kind, &e.to_string())),
        None => Ok(()),
    }
}

/// Defaults of built-in kinds.
pub fn fill_in(registry: &Registry, resource: &Resource, object: &mut Object) {
    if resource.table == CRD_TABLE {
        definition::fill_in(object);
    } else if resource.is("autoscaling", "horizontalpodautoscalers") && resource.version == "v1" {
        defaults::old_autoscaler(object);
    } else if resource.custom.is_none() {
        defaults::apply(&resource.table, object);
        if resource.table == "resource.k8s.io/resourceslices" {
            defaults::taint_times(object, &crate::registry::meta::timestamp(registry.now()));
        }
    }
}

/// Fills in the status that a kind has from the beginning; whether there was something to do.
pub fn complete(resource: &Resource, object: &mut Object) -> bool {
    let first_phase = match resource.table.as_str() {
        "/persistentvolumes" | "/persistentvolumeclaims" => "Pending",
        "/namespaces" => "Active",
        _ => return false,
    };
    let missing = object.str_at("/status/phase").is_empty();
    if missing {
        map_entry(&mut object.0, "status").insert("phase".into(), first_phase.into());
    }
    missing
}

fn add_finalizer(object: &mut Object, name: &str) {
    let mut finalizers = object.finalizers();
    if !finalizers.iter().any(|f| f == name) {
        finalizers.push(name.to_owned());
    }
    object.set_finalizers(finalizers);
}

/// What the server decides about a new object; it matters whether it is made by its status, and whether only for show.
pub fn prepare_create(registry: &Registry, resource: &Resource, object: &mut Object, (part, dry_run): (Part, bool)) -> Result<(), Status> {
    if resource.has_status() && resource.table != "/nodes" {
        object.0.remove("status");
    }
    match resource.table.as_str() {
        CRD_TABLE => definition::prepare_create(object),
        "/namespaces" => {
            let name = object.name().to_owned();
            object.set_label("kubernetes.io/metadata.name", &name);
            let spec = map_entry(&mut object.0, "spec");
            let mut finalizers = spec.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
            if !finalizers.iter().any(|f| f == "kubernetes") {
                finalizers.push("kubernetes".into());
            }
            spec.insert("finalizers".into(), finalizers.into());
            object.0.insert("status".into(), json!({"phase": "Active"}));
        }
        "/pods" => {
            pods::prepare_create(object, &crate::registry::meta::timestamp(registry.now()));
        }
        "/persistentvolumes" => {
            let now = crate::registry::meta::timestamp(registry.now());
            object.0.insert("status".into(), json!({"phase": "Pending", "lastPhaseTransitionTime": now}));
            add_finalizer(object, VOLUME_IN_USE);
        }
        "/persistentvolumeclaims" => {
            match_data_sources(None, object);
            add_finalizer(object, CLAIM_IN_USE);
        }
        // What comes as a status is given nothing.
        "/services" if part == Part::Status => {}
        "/services" => service::allocate(registry, object, None, dry_run)?,
        "/nodes" => taint_new_node(object),
        "storage.k8s.io/volumeattributesclasses" => add_finalizer(object, "kubernetes.io/vac-protection"),
        "discovery.k8s.io/endpointslices" => drop_topology(None, object),
        "coordination.k8s.io/leases" => drop_strategy(object),
        "resource.k8s.io/resourceslices" => drop(drop_device_fields(object)),
        "apiregistration.k8s.io/apiservices" if object.pointer("/spec/service").is_none_or(Value::is_null) => {
            let now = crate::registry::meta::timestamp(registry.now());
            let message = "Local APIServices are always available";
            let condition =
                json!({"type": "Available", "status": "True", "reason": "Local", "message": message, "lastTransitionTime": now});
            object.0.insert("status".into(), json!({"conditions": [condition]}));
        }
        "/limitranges" if object.name().is_empty() => {
            object.metadata_mut().insert("name".into(), uuid::Uuid::new_v4().to_string().into());
        }
        "batch/jobs" => defaults::job_selector(object),
        "apps/daemonsets" => object.set_annotation(TEMPLATE_GENERATION, "1"),
        _ => {}
    }
    read_again(resource, object)
}

/// A Job without labels has those of its pods, also the ones that it got to tell its pods apart.
pub fn share_labels(resource: &Resource, object: &mut Object) {
    if resource.table == "batch/jobs"
        && let Some(labels) = object.pointer("/spec/template/metadata/labels").cloned()
    {
        object.metadata_mut().insert("labels".into(), labels);
    }
}

/// What the server decides about a changed object.
pub fn prepare_update(
    registry: &Registry,
    resource: &Resource,
    old: &Object,
    new: &mut Object,
    (part, dry_run): (Part, bool),
) -> Result<(), Status> {
    if resource.table == CSR {
        parts::prepare_request(part, old, new, &crate::registry::meta::timestamp(registry.now()));
    }
    if part == Part::Status || part == Part::Finalize {
        fill_in(registry, resource, new);
        if let Some(count) = old.annotation(TEMPLATE_GENERATION).filter(|_| resource.table == "apps/daemonsets") {
            new.set_annotation(TEMPLATE_GENERATION, count);
        }
        complete(resource, new);
        match resource.table.as_str() {
            "/persistentvolumes" => note_phase(registry, old, new),
            "/pods" => pods::keep_status(old, new),
            _ => {}
        }
        return Ok(());
    }
    fill_in(registry, resource, new);
    match resource.table.as_str() {
        CRD_TABLE => definition::prepare_update(old, new),
        "/namespaces" => {
            let spec = map_entry(&mut new.0, "spec");
            match old.pointer("/spec/finalizers") {
                Some(finalizers) => spec.insert("finalizers".into(), finalizers.clone()),
                None => spec.remove("finalizers"),
            };
        }
        "/services" => service::allocate(registry, new, Some(old), dry_run)?,
        "discovery.k8s.io/endpointslices" => drop_topology(Some(old), new),
        "coordination.k8s.io/leases" => drop_strategy(new),
        // Counted before it is dropped.
        "resource.k8s.io/resourceslices" if drop_device_fields(new) => {
            let next = old.generation() + 1;
            new.metadata_mut().insert("generation".into(), next.into());
        }
        // Counted from the first change on.
        "storage.k8s.io/csidrivers" if old.0.get("spec") != new.0.get("spec") => {
            let next = old.generation() + 1;
            new.metadata_mut().insert("generation".into(), next.into());
        }
        "/persistentvolumeclaims" => match_data_sources(Some(old), new),
        "apps/daemonsets" => count_template(old, new),
        _ => {}
    }
    Ok(())
}

/// Nobody is placed on a node before it said that it is ready.
fn taint_new_node(node: &mut Object) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let ready = |c: &Value| c["type"] == "Ready" && c["status"] == "True";
    if node.pointer("/status/conditions").and_then(Value::as_array).is_some_and(|list| list.iter().any(ready)) {
        return;
    }
    let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
    let taints = map_entry(&mut node.0, "spec").entry("taints").or_insert_with(|| json!([]));
    if let Some(list) = taints.as_array_mut()
        && !list.iter().any(|t| t["key"] == NOT_READY && t["effect"] == "NoSchedule")
    {
        list.push(taint);
    }
}

/// A volume says since when it is in its phase.
fn note_phase(registry: &Registry, old: &Object, new: &mut Object) {
    let field = "lastPhaseTransitionTime";
    let same_phase = old.pointer("/status/phase") == new.pointer("/status/phase");
    let before = old.pointer(&format!("/status/{field}")).cloned();
    let sent = new.pointer(&format!("/status/{field}")).cloned();
    let status = map_entry(&mut new.0, "status");
    if same_phase && sent.is_none() {
        status.extend(before.map(|time| (field.to_owned(), time)));
    } else if !same_phase && (sent.is_none() || sent == before) {
        status.insert(field.into(), crate::registry::meta::timestamp(registry.now()).into());
    }
}

/// Leases of servers that elect leaders by version have two fields more; that is not switched on.
fn drop_strategy(lease: &mut Object) {
    let spec = map_entry(&mut lease.0, "spec");
    spec.remove("strategy");
    spec.remove("preferredHolder");
}

/// Attributes with several values, and devices that stand for a node's own resources, are not switched on; whether there were any.
fn drop_device_fields(slice: &mut Object) -> bool {
    let dropped = |map: &mut Map<String, Value>, fields: &[&str]| {
        let gone: Vec<Value> = fields.iter().filter_map(|field| map.remove(*field)).collect();
        gone.iter()
            .any(|value| value.as_array().is_some_and(|list| !list.is_empty()) || value.as_object().is_some_and(|map| !map.is_empty()))
    };
    let mut any = false;
    let devices = slice.0.get_mut("spec").and_then(|spec| spec.get_mut("devices")).and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten().filter_map(Value::as_object_mut) {
        any |= dropped(device, &["nodeAllocatableResourceMappings"]);
        let attributes = device.get_mut("attributes").and_then(Value::as_object_mut);
        for attribute in attributes.into_iter().flat_map(|map| map.values_mut()).filter_map(Value::as_object_mut) {
            any |= dropped(attribute, &["bools", "ints", "strings", "versions"]);
        }
    }
    any
}

/// A claim's two ways of saying what it is filled with follow each other.
fn match_data_sources(old: Option<&Object>, claim: &mut Object) {
    let had_one = old.is_some_and(|o| ["dataSource", "dataSourceRef"].iter().any(|f| o.pointer(&format!("/spec/{f}")).is_some()));
    let spec = map_entry(&mut claim.0, "spec");
    let text = |source: &Value, field: &str| source[field].as_str().unwrap_or("").to_owned();
    if spec.get("dataSourceRef").is_some_and(|r| !text(r, "namespace").is_empty()) && !had_one {
        spec.remove("dataSourceRef");
    }
    let known = |source: &Value| match text(source, "kind").as_str() {
        "PersistentVolumeClaim" => text(source, "apiGroup").is_empty(),
        "VolumeSnapshot" => text(source, "apiGroup") == "snapshot.storage.k8s.io",
        _ => false,
    };
    if !had_one && !spec.contains_key("dataSourceRef") && spec.get("dataSource").is_some_and(|s| !known(s)) {
        spec.remove("dataSource");
    }
    let (source, reference) = (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned());
    match (source, reference) {
        (Some(source), None) => drop(spec.insert("dataSourceRef".into(), source)),
        (None, Some(reference)) if text(&reference, "namespace").is_empty() => drop(spec.insert("dataSource".into(), reference)),
        _ => {}
    }
}

/// Topology as it was before it had fields of its own cannot be written any more.
fn drop_topology(old: Option<&Object>, new: &mut Object) {
    if old.is_some_and(|old| old.0.get("endpoints") == new.0.get("endpoints")) {
        return;
    }
    for endpoint in new.0.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(endpoint) = endpoint.as_object_mut() {
            endpoint.remove("deprecatedTopology");
        }
    }
}

/// DaemonSets count the changes of their template in an annotation, from the time when others were missing.
fn count_template(old: &Object, new: &mut Object) {
    let before = old.annotation(TEMPLATE_GENERATION).and_then(|a| a.parse::<i64>().ok()).unwrap_or(0);
    let changed = old.pointer("/spec/template") != new.pointer("/spec/template");
    new.set_annotation(TEMPLATE_GENERATION, &(before + i64::from(changed)).to_string());
}

/// Refuses what must not be stored; returns warnings.
pub fn validate(resource: &Resource, object: &Object, old: Option<&Object>, part: Part) -> Result<Vec<String>, Status> {
    // Whoever places a pod goes to the store itself, with whatever labels and whatever name of a node he sent.
    if part == Part::Binding {
        return Ok(Vec::new());
    }
    let wrong = custom::wrong_type(resource, object);
    // Only what differs by more than by having nothing in it is a change, except where Go compares to the letter.
    let lenient = resource.custom.is_none() && !matches!(resource.table.as_str(), "/configmaps" | "/secrets");
    let shared = old.filter(|_| lenient).cloned().map(|mut old| {
        gotypes::of(&resource.gvk()).into_iter().for_each(|of| gotypes::share_empty(&object.0, &mut old.0, of));
        old
    });
    let old = shared.as_ref().or(old);
    let mut causes = match old {
        _ if wrong.is_some() => wrong.iter().cloned().collect(),
        Some(old) if part == Part::Approval => validate::decision(object, old),
        _ => validate::check(resource, object, old, part),
    };
    let mut warnings = Vec::new();
    if let Some(custom) = &resource.custom {
        let (more, ratcheted) = custom::check(custom, object, (old, part), (&causes, wrong.is_none()));
        causes.extend(more);
        warnings = ratcheted;
        if part != Part::Status && causes.is_empty() {
            warnings.extend(custom::warnings(object, old));
        }
    } else if resource.table == CRD_TABLE && part == Part::Status {
        causes.extend(definition::check_status(object));
    } else if resource.table == CRD_TABLE {
        causes.extend(definition::check(object, old));
        warnings = definition::warnings(object, old);
    }
    if causes.is_empty() && (resource.custom.is_some() || resource.table == CRD_TABLE) {
        return Ok(warnings);
    }
    if causes.is_empty() {
        return Ok(warnings::of(resource, object, old, part));
    }
    if wrong.is_some() {
        return Err(Status::invalid(&object.gvk().group, object.kind(), object.name(), causes).warned(&warnings));
    }
    // Events are of the core group, whatever they are asked for as.
    let group = if resource.table == "/events" { "" } else { &resource.group };
    // What was let pass is told although something else was not.
    let warnings = if resource.custom.is_some() { warnings } else { Vec::new() };
    Err(Status::invalid(group, &resource.kind, object.name(), causes).warned(&warnings))
}

/// What is wrong with a custom object and let pass, because it was so before.
pub fn let_pass(resource: &Resource, object: &Object, old: &Object, part: Part) -> Vec<String> {
    resource.custom.as_ref().map(|custom| custom::check(custom, object, (Some(old), part), (&[], true)).1).unwrap_or_default()
}

/// Whether the server changes such objects beyond defaults when they are updated.
pub fn decides_on_update(resource: &Resource, part: Part) -> bool {
    let tables = ["/services", "/persistentvolumes", "/persistentvolumeclaims", "/namespaces", "apps/daemonsets", CSR];
    tables.contains(&resource.table.as_str()) || (part == Part::Status && resource.is("", "pods"))
}

/// Makes the object that was sent the one whose fields its sender owns: with defaults, before the server decides anything.
pub fn as_sent(registry: &Registry, resource: &Resource, sent: &mut Object) {
    fill_in(registry, resource, sent);
    complete(resource, sent);
}

/// Kinds whose updates must say which version they replace.
const LOCKED: [&str; 12] = [
    "apiservices",
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "customresourcedefinitions",
    "leases",
    "mutatingwebhookconfigurations",
    "poddisruptionbudgets",
    "runtimeclasses",
    "validatingadmissionpolicies",
    "validatingwebhookconfigurations",
    "volumeattachments",
];

/// Whether an update of what is not there makes it.
pub fn creates_on_update(resource: &Resource) -> bool {
    const TABLES: [&str; 11] = [
        "/endpoints",
        "/events",
        "/limitranges",
        "/services",
        "coordination.k8s.io/leases",
        "coordination.k8s.io/leasecandidates",
        "node.k8s.io/runtimeclasses",
        "rbac.authorization.k8s.io/clusterrolebindings",
        "rbac.authorization.k8s.io/clusterroles",
        "rbac.authorization.k8s.io/rolebindings",
        "rbac.authorization.k8s.io/roles",
    ];
    TABLES.contains(&resource.table.as_str())
}

/// Whether an update without a resourceVersion overwrites what is there.
pub fn allows_blind_update(resource: &Resource) -> bool {
    let policies = ["validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"];
    let name = resource.resource.as_str();
    resource.custom.is_none() && !LOCKED.contains(&name) && !policies.contains(&name)
}

/// What is wrong with the selectors in the `resourceAttributes` of a question about access.
pub(crate) fn selector_attributes(attributes: &Value) -> Vec<crate::status::Cause> {
    let mut causes = Vec::new();
    validate::rules::selector_attributes(&validate::rules::At::new(attributes, "spec.resourceAttributes"), &mut causes);
    causes
}

/// What is wrong with the metadata of an object inside an object.
pub(crate) fn embedded_metadata(metadata: &Value, path: &str) -> Vec<crate::status::Cause> {
    validate::embedded(metadata, path)
}

/// A path that a rule names, as messages show it.
pub(crate) fn definition_path(path: &str, node: &crate::structural::Node) -> Option<String> {
    definition::path::resolve(path, node, true).ok().map(|(found, _)| found)
}

/// A rule as the real server's messages show it.
pub(crate) fn rule_as_json(rule: &Value) -> String {
    definition::internal::rule(rule)
}

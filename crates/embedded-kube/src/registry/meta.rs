//! The rules of `metadata` that hold for every kind. Plain functions; each sees one object at a
//! time and has no access to the store.

use super::Registry;
use crate::base::options::Part;
use crate::base::{random_suffix, timestamp};
use crate::catalog::Resource;
use crate::status::{Cause, Status};
use serde_json::Value;
use tiphys_apimachinery::{Gvk, Object};
use tiphys_kube_schema::gotypes;

/// Fields of `metadata` that clients cannot set on new objects.
const SYSTEM: [&str; 5] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
];

/// Checks that the object's type is that of the resource.
pub fn check_type(resource: &Resource, object: &mut Object) -> Result<(), Status> {
    if object.api_version() != resource.api_version() || object.kind() != resource.kind {
        let (want, got) = (resource.gvk(), object.gvk());
        let nothing = object.api_version().is_empty() && object.kind().is_empty();
        let fits = is_version(&want, &got) && (got.kind.is_empty() || got.kind == want.kind);
        // A typed decoder fills in a missing kind and version; for a custom object, the kind is
        // left to validation.
        if resource.custom.is_some() && !nothing {
            let null = ["apiVersion", "kind"]
                .into_iter()
                .find(|field| object.0.get(*field).is_some_and(serde_json::Value::is_null));
            if let Some(field) = null {
                let kind = &resource.kind;
                let version = object.api_version();
                let why = format!("{kind} in version {version:?} cannot be handled as a {kind}: ");
                return Err(Status::bad_request(format!(
                    "{why}.{field} accessor error: <nil> is of the type <nil>, expected string"
                )));
            }
        } else if nothing || fits {
            object
                .0
                .insert("apiVersion".into(), want.api_version().into());
            object.0.insert("kind".into(), want.kind.into());
        } else {
            return Err(wrong_type(resource, &filled_in(got, want)));
        }
    }
    if let Some(other) = object
        .0
        .get("metadata")
        .filter(|m| !m.is_object() && !m.is_null())
    {
        let word = tiphys_gocompat::json::kind(other);
        let (kind, version) = (&resource.kind, &resource.version);
        let place = if resource.custom.is_some() {
            "value".to_owned()
        } else {
            format!("struct field {kind}.metadata")
        };
        return Err(Status::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: json: cannot unmarshal {word} into Go {place} of type \
             v1.ObjectMeta"
        )));
    }
    Ok(())
}

/// Whether a string is a group and version.
pub fn group_version(text: &str) -> Result<(), String> {
    match text.matches('/').count() {
        0 | 1 => Ok(()),
        _ => Err(format!("unexpected GroupVersion string: {text}")),
    }
}

/// The type given in the object, completed from the wanted type.
fn filled_in(said: Gvk, want: Gvk) -> Gvk {
    let kind = if said.kind.is_empty() {
        want.kind
    } else {
        said.kind
    };
    let nothing = said.version.is_empty() && (said.group.is_empty() || said.group == want.group);
    let (group, version) = if nothing {
        (want.group, want.version)
    } else {
        (said.group, said.version)
    };
    Gvk {
        group,
        version,
        kind,
    }
}

/// Whether the version of an object is the wanted one, is empty, or is empty within the wanted
/// group.
pub fn is_version(want: &Gvk, said: &Gvk) -> bool {
    (said.group.is_empty() && said.version.is_empty())
        || (said.group == want.group && (said.version.is_empty() || said.version == want.version))
}

/// Checks that a custom object has the version of the URL. It is decoded before this check.
pub fn check_version(resource: &Resource, object: &Object) -> Result<(), Status> {
    if resource.custom.is_none() {
        return Ok(());
    }
    let (got, want) = (object.gvk().api_version(), resource.api_version());
    if got == want {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "the API version in the data ({got}) does not match the expected API version ({want})"
    )))
}

/// Checks that the object's namespace is that of the URL; an empty namespace is replaced by it.
pub fn check_namespace(
    resource: &Resource,
    namespace: &str,
    object: &mut Object,
) -> Result<(), Status> {
    if resource.namespaced
        && !["", namespace].contains(&object.namespace())
        && !namespace.is_empty()
    {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    object.set_namespace(namespace);
    Ok(())
}

/// The error for an object whose type differs from the URL. Go's message depends on whether it
/// knows the type.
fn wrong_type(resource: &Resource, got: &Gvk) -> Status {
    let why = not_of_type(resource, got);
    Status::bad_request(format!(
        "{} in version {:?} cannot be handled as a {}: {why}",
        got.kind, got.version, resource.kind
    ))
}

/// The message for an object of another kind than the resource's.
pub fn not_of_type(resource: &Resource, got: &Gvk) -> String {
    let want = resource.gvk();
    let all = tiphys_apimachinery::schema::resources();
    let known = all
        .iter()
        .any(|r| r.group == got.group && r.version == got.version && r.kind == got.kind);
    if known && got.group == want.group && got.kind == want.kind {
        let (got, want) = (got.api_version(), want.api_version());
        format!(
            "the API version in the data ({got}) does not match the expected API version ({want})"
        )
    } else if known {
        // The Go package of the internal type.
        let package = want
            .group
            .split('.')
            .next()
            .filter(|word| !word.is_empty())
            .unwrap_or("core");
        format!(
            "converting ({}.{}) to ({package}.{}): unknown conversion",
            got.version, got.kind, want.kind
        )
    } else {
        format!(
            "no kind {:?} is registered for version {:?} in scheme \"pkg/runtime/scheme.go:111\"",
            got.kind,
            got.api_version()
        )
    }
}

/// Removes the fields set by the server from an object that is to be created. An object created by
/// PUT or apply keeps those that the server does not set again.
pub fn forget_system(object: &mut Object) {
    let metadata = object.metadata_mut();
    for field in SYSTEM {
        metadata.remove(field);
    }
}

/// Sets the server-controlled fields of a new object.
pub fn prepare_create(registry: &Registry, resource: &Resource, object: &mut Object) {
    let now = timestamp(registry.now());
    let generates = object.name().is_empty() && !object.generate_name().is_empty();
    let generated = generates.then(|| match resource.table.as_str() {
        // The names of these objects have a meaning, so none is generated.
        "networking.k8s.io/ipaddresses" => object.generate_name().to_owned(),
        _ => {
            let base: String = object.generate_name().chars().take(58).collect();
            format!("{base}{}", random_suffix())
        }
    });
    drop_empty(resource, object);
    let metadata = object.metadata_mut();
    if let Some(name) = generated {
        metadata.insert("name".into(), name.into());
    }
    metadata.insert("uid".into(), uuid::Uuid::new_v4().to_string().into());
    metadata.insert("creationTimestamp".into(), now.into());
    // Kinds without a generation keep the value that was sent.
    if resource.has_generation() {
        metadata.insert("generation".into(), 1.into());
    } else if metadata.get("generation").and_then(Value::as_i64) == Some(0) {
        metadata.remove("generation");
    }
}

/// Removes empty maps and lists of `metadata`. Custom objects keep those that were applied,
/// although responses do not show them.
fn drop_empty(resource: &Resource, object: &mut Object) {
    const EMPTY: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];
    if resource.custom.is_none() {
        object.metadata_mut().retain(|key, value| {
            !(value.is_null()
                || (EMPTY.contains(&key.as_str()) && crate::convert::is_nothing(value)))
        });
    }
}

/// The `resourceVersion` in a request; none if it is empty.
pub fn asked_revision(object: &Object) -> Result<Option<u64>, Status> {
    match object.resource_version() {
        "" => Ok(None),
        text => match text.parse() {
            Ok(0) => Ok(None),
            Ok(revision) => Ok(Some(revision)),
            Err(_) => {
                let digits = text.bytes().all(|b| b.is_ascii_digit());
                let why = if digits {
                    "value out of range"
                } else {
                    "invalid syntax"
                };
                Err(Status::new(
                    500,
                    "",
                    format!("strconv.ParseUint: parsing {text:?}: {why}"),
                ))
            }
        },
    }
}

/// The `resourceVersion` in a write, which must be the current one.
pub fn replaces(resource: &Resource, object: &Object, current: u64) -> Result<Option<u64>, Status> {
    let asked = asked_revision(object)?;
    if asked.is_none() && !crate::strategy::allows_blind_update(resource) {
        let cause = Cause::invalid(
            "metadata.resourceVersion",
            &0.into(),
            "must be specified for an update",
        );
        // This error has the resource where others have the kind.
        return Err(Status::invalid(
            &resource.group,
            &resource.resource,
            object.name(),
            vec![cause],
        ));
    }
    if asked.is_some_and(|revision| revision != current) {
        return Err(Status::modified(
            &resource.group,
            &resource.resource,
            object.name(),
        ));
    }
    Ok(asked)
}

/// Checks that the uid in an update is that of the existing object (empty if there is none).
pub fn check_uid(
    resource: &Resource,
    object: &Object,
    found: &str,
    dry_run: bool,
) -> Result<(), Status> {
    check_precondition(resource, object, ("UID", object.uid(), found), dry_run)
}

/// Checks a precondition of a request, if it is set: the field, the requested value, and the
/// current value.
pub fn check_precondition(
    resource: &Resource,
    object: &Object,
    (field, asked, found): (&str, &str, &str),
    dry_run: bool,
) -> Result<(), Status> {
    if asked.is_empty() || asked == found {
        return Ok(());
    }
    // In a dry run, the path in the message lacks the root of the store.
    let root = if dry_run { "" } else { "/registry" };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {root}{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {field} in \
         precondition: {asked}, {field} in object meta: {found}",
        storage_key(resource, object.namespace(), object.name()),
    );
    Err(Status::conflict(
        &resource.group,
        &resource.resource,
        object.name(),
        &why,
    ))
}

/// Tables whose storage path contains their group.
const OWN_FOLDER: [&str; 2] = [
    crate::catalog::CRD_TABLE,
    "apiregistration.k8s.io/apiservices",
];

/// The path of an object in the real server's store, as some messages show it.
fn storage_key(resource: &Resource, namespace: &str, name: &str) -> String {
    let folder = match (resource.group.as_str(), resource.resource.as_str()) {
        ("", "services") => "services/specs",
        ("", "endpoints") => "services/endpoints",
        ("", "nodes") => "minions",
        ("", "replicationcontrollers") => "controllers",
        ("networking.k8s.io", "ingresses") => "ingress",
        _ if OWN_FOLDER.contains(&resource.table.as_str()) || resource.custom.is_some() => {
            &resource.table
        }
        (_, other) => other,
    };
    match namespace {
        "" => format!("/{folder}/{name}"),
        namespace => format!("/{folder}/{namespace}/{name}"),
    }
}

/// Checks that the object has the name in the URL.
pub fn check_name(asked: &str, object: &Object) -> Result<(), Status> {
    match object.name() {
        "" => Err(Status::bad_request(format!(
            "the name of the object ({asked} based on URL) was undeterminable: name must be provided"
        ))),
        sent if sent == asked => Ok(()),
        sent => Err(Status::bad_request(format!(
            "the name of the object ({sent}) does not match the name on the URL ({asked})"
        ))),
    }
}

/// A patch must not change the identity of an object.
pub fn check_patched_identity(
    resource: &Resource,
    old: &Object,
    new: &mut Object,
) -> Result<(), Status> {
    if new.namespace().is_empty() {
        new.set_namespace(old.namespace());
    }
    for field in ["apiVersion", "kind"] {
        if let (false, Some(value)) = (new.0.contains_key(field), old.0.get(field)) {
            new.0.insert(field.into(), value.clone());
        }
    }
    if old.namespace() != new.namespace() {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    check_name(old.name(), new)?;
    if resource.custom.is_none()
        && (old.api_version() != new.api_version() || old.kind() != new.kind())
    {
        return Err(Status::bad_request(format!(
            "the API version in the data ({},{}) does not match the expected API version ({},{})",
            new.api_version(),
            new.kind(),
            old.api_version(),
            old.kind()
        )));
    }
    Ok(())
}

/// Copies the fields from `old` that a write to this part must not change.
pub fn prepare_update(
    resource: &Resource,
    old: &Object,
    new: &mut Object,
    part: Part,
) -> Result<(), Status> {
    match part {
        Part::Status => keep_all_but_status(resource, old, new),
        Part::Finalize => {
            set_or_remove(&mut new.0, "status", old.0.get("status").cloned());
        }
        Part::Ephemeral | Part::Resize | Part::Approval => {
            crate::strategy::parts::take(part, old, new)
        }
        Part::Binding => {}
        Part::Main | Part::Scale | Part::Token => {
            if resource.has_status() {
                set_or_remove(&mut new.0, "status", old.0.get("status").cloned());
            }
        }
    }
    let metadata = new.metadata_mut();
    for field in ["uid", "creationTimestamp", "generation", "resourceVersion"] {
        set_or_remove(metadata, field, old.metadata(field).cloned());
    }
    if let Some(before) = old.metadata("deletionTimestamp") {
        metadata.insert("deletionTimestamp".into(), before.clone());
    }
    // A changed value is left in place, so that validation rejects it as immutable.
    if let (Some(before), None | Some(Value::Null)) = (
        old.metadata("deletionGracePeriodSeconds"),
        metadata.get("deletionGracePeriodSeconds"),
    ) {
        metadata.insert("deletionGracePeriodSeconds".into(), before.clone());
    }
    drop_empty(resource, new);
    Ok(())
}

/// Changes in a request that the server reverts: the deletion time and grace period, and the status
/// of a custom object. They are still needed to compute field ownership, because a value that does
/// not fit its type makes ownership unknown.
#[derive(Default)]
pub struct TakenBack {
    end: Option<[(&'static str, Option<Value>); 2]>,
    status: Option<Option<Value>>,
}

impl TakenBack {
    pub fn of(resource: &Resource, old: &Object, new: &Object, part: Part) -> Self {
        let fields = ["deletionTimestamp", "deletionGracePeriodSeconds"];
        let differs = fields.iter().any(|field| {
            old.metadata(field)
                .is_some_and(|was| new.metadata(field) != Some(was))
        });
        let replaced = resource.custom.is_some()
            && resource.has_status()
            && part == Part::Main
            && old.0.get("status") != new.0.get("status");
        Self {
            end: differs.then(|| fields.map(|field| (field, new.metadata(field).cloned()))),
            status: replaced.then(|| new.0.get("status").cloned()),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.end.is_none() && self.status.is_none()
    }

    /// Restores the values that were sent.
    pub fn put(&self, sent: &mut Object) {
        self.end
            .iter()
            .flatten()
            .for_each(|(field, value)| set_or_remove(sent.metadata_mut(), field, value.clone()));
        self.status
            .iter()
            .for_each(|status| set_or_remove(&mut sent.0, "status", status.clone()));
    }
}

pub fn set_or_remove(map: &mut serde_json::Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) => map.insert(key.to_owned(), value),
        None => map.remove(key),
    };
}

/// Kinds whose status writes do not change labels, annotations, finalizers and owners.
const STATUS_ONLY: [&str; 12] = [
    "apiservices",
    "deviceclasses",
    "devicetaintrules",
    "flowschemas",
    "podcertificaterequests",
    "podgroups",
    "prioritylevelconfigurations",
    "resourceclaims",
    "servicecidrs",
    "storageversionmigrations",
    "validatingadmissionpolicies",
    "volumeattachments",
];

/// A status write of a custom resource changes nothing but the status; that of most built-in kinds
/// may also change metadata.
fn keep_all_but_status(resource: &Resource, old: &Object, new: &mut Object) {
    let status = new.0.remove("status");
    let sent = std::mem::take(new.metadata_mut());
    *new = old.clone();
    set_or_remove(&mut new.0, "status", status);
    let metadata = new.metadata_mut();
    set_or_remove(
        metadata,
        "managedFields",
        sent.get("managedFields").cloned(),
    );
    if resource.custom.is_some() || resource.group == "flowcontrol.apiserver.k8s.io" {
        return;
    }
    for field in ["generateName", "deletionGracePeriodSeconds"] {
        set_or_remove(metadata, field, sent.get(field).cloned());
    }
    if STATUS_ONLY.contains(&resource.resource.as_str()) {
        return;
    }
    let keeps_labels = resource.is("apps", "deployments");
    let keeps_owners = resource.is("", "pods");
    for field in [
        "annotations",
        "finalizers",
        "labels",
        "ownerReferences",
        "deletionTimestamp",
        "selfLink",
    ] {
        if !(keeps_labels && field == "labels" || keeps_owners && field == "ownerReferences") {
            set_or_remove(metadata, field, sent.get(field).cloned());
        }
    }
}

/// Removes duplicate owners and returns a warning about them. For a patch, the warning has the text
/// of the real server's check after mutating admission.
pub fn distinct_owners(object: &mut Object, patched: bool) -> Option<String> {
    let owners = object
        .metadata_mut()
        .get_mut("ownerReferences")
        .and_then(Value::as_array_mut)?;
    let (mut seen, mut twice): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    for owner in std::mem::take(owners) {
        match seen.contains(&owner) {
            true => twice.push(owner["uid"].as_str().unwrap_or("").to_owned()),
            false => seen.push(owner),
        }
    }
    *owners = seen;
    let when = if patched {
        " after mutating admission happens"
    } else {
        ""
    };
    let explained = "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; \
                     duplicate UID(s) observed: ";
    (!twice.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; {explained}{}",
            twice.join(", ")
        )
    })
}

/// Whether an empty list or map was added where there was none. Only some kinds count that as a
/// change.
pub fn counts_empty(resource: &Resource, old: &Object, new: &Object) -> bool {
    let field = match resource.table.as_str() {
        "networking.k8s.io/networkpolicies" => "spec",
        "admissionregistration.k8s.io/mutatingwebhookconfigurations"
        | "admissionregistration.k8s.io/validatingwebhookconfigurations" => "webhooks",
        _ => return false,
    };
    old.0.get(field) != new.0.get(field)
}

/// Increments `generation` if anything but metadata and status has changed.
pub fn bump_generation(resource: &Resource, old: &Object, new: &mut Object, emptied: bool) {
    if !resource.has_generation() {
        return;
    }
    // For a custom kind without a status subresource, the status is an ordinary field.
    let skipped = |key: &str| match key {
        "metadata" | "apiVersion" | "kind" => true,
        "status" => resource.custom.is_none() || resource.has_status(),
        _ => false,
    };
    let differ = |old: &Object, new: &Object| {
        old.0
            .keys()
            .chain(new.0.keys())
            .any(|key| !skipped(key) && old.0.get(key) != new.0.get(key))
    };
    // An empty list equals a missing one, even where Go writes it, and quantities are compared by
    // value, not by spelling.
    let of = resource.go_type();
    let changed = differ(old, new)
        && of.is_none_or(|of| {
            let counted = new.0.iter().filter(|(key, _)| !skipped(key));
            let mut kept = Object(
                counted
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect(),
            );
            gotypes::forget_empty(&mut kept.0, of);
            let mut before = old.clone();
            gotypes::share_equal(&kept.0, &mut before.0, of);
            differ(&before, &kept)
        });
    // Annotations count as well for Deployments.
    let annotations = resource.is("apps", "deployments") && old.annotations() != new.annotations();
    // Assigning a pod to a node does not change the desired state.
    if resource.is("", "pods") && old.str_at("/spec/nodeName") != new.str_at("/spec/nodeName") {
        return;
    }
    // The value of a class never changes, and its other fields are not counted.
    if resource.is("scheduling.k8s.io", "priorityclasses") {
        return;
    }
    let labels = resource.is("discovery.k8s.io", "endpointslices") && old.labels() != new.labels();
    if annotations || labels || emptied || changed {
        let next = old.generation().wrapping_add(1);
        new.metadata_mut().insert("generation".into(), next.into());
    }
}

/// Whether an object that is being deleted can be removed: nothing holds it back.
pub fn is_finished(resource: &Resource, object: &Object) -> bool {
    let grace = object
        .metadata("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    let has_content = resource.is("", "namespaces") && holds_content(object);
    object.deletion_timestamp().is_some()
        && object.finalizers().is_empty()
        && grace == 0
        && !has_content
}

/// Whether a namespace has not been emptied yet.
pub fn holds_content(namespace: &Object) -> bool {
    namespace
        .pointer("/spec/finalizers")
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty())
}

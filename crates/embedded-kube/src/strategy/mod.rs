//! The kind-specific rules: which fields exist, which are defaulted, which values are rejected.
//!
//! Main functions, called by the registry in this order: [`check_fields`], [`fill_in`],
//! [`prepare_create`] or [`prepare_update`], [`validate`].

mod custom;
mod definition;
pub mod parts;
mod pods;
mod prepare;
pub mod service;

use crate::base::{FieldValidation, Part, WriteOptions};
use crate::catalog::{CRD_TABLE, Resource};
use crate::convert::{annotated, autoscaler};
use crate::reader::Reader;
use crate::status::{Cause, Status};
use crate::{defaults, validation, warnings};
pub use definition::{
    CLEANUP, is_named_for as is_definition_named_for, mark_deleted as mark_definition_deleted,
    mark_emptied as mark_definition_emptied, mark_emptying as mark_definition_emptying,
    settle as settle_definition, try_schema,
};
pub use prepare::{asked_by, complete, forgets, prepare_create, prepare_update, share_labels};
use serde_json::Value;
use tiphys_apimachinery::{Gvk, Object, schema};
use tiphys_kube_schema::{gofmt, gotypes};

/// The finalizers that keep a claim that a pod uses, and a volume that is bound.
pub const CLAIM_IN_USE: &str = "kubernetes.io/pvc-protection";
pub const VOLUME_IN_USE: &str = "kubernetes.io/pv-protection";

/// The error for a custom object without a version.
pub const WITHOUT_VERSION: &str =
    "Object 'apiVersion' is missing in 'object has no apiVersion field'";

const CSR: &str = "certificates.k8s.io/certificatesigningrequests";

/// The cluster IP of the service `kubernetes`.
pub const API_SERVICE_IP: &str = "10.0.0.1";

/// Drops fields that the type lacks and that Go would not keep; adds the defaults of a
/// CustomResourceDefinition. Returns warnings.
pub fn check_fields(
    resource: &Resource,
    object: &mut Object,
    options: &WriteOptions,
) -> Result<Vec<String>, Status> {
    // An object that is not of a Go type is identified by its own kind.
    let own = Some(object.gvk()).filter(|own| resource.custom.is_some() && !own.kind.is_empty());
    read_fields(resource, object, options).map_err(|unreadable| match own {
        Some(own) if own.version.is_empty() => Status::bad_request(WITHOUT_VERSION),
        own => not_handled(
            resource,
            &own.unwrap_or_else(|| resource.gvk()),
            &unreadable.reading,
        ),
    })
}

/// Why an object cannot be decoded, with Go's wording.
pub struct Unreadable {
    /// When decoding the object's text.
    pub reading: String,
    /// When converting the object's tree.
    pub converting: String,
    /// It can be decoded in its version, but has no internal form in the server.
    pub inside: bool,
}

impl From<String> for Unreadable {
    fn from(why: String) -> Self {
        Self {
            converting: why.clone(),
            reading: why,
            inside: false,
        }
    }
}

impl From<gotypes::WrongType> for Unreadable {
    fn from(wrong: gotypes::WrongType) -> Self {
        Self {
            reading: wrong.to_string(),
            converting: wrong.converting(),
            inside: false,
        }
    }
}

/// The same as [`check_fields`], for callers with their own error responses.
pub fn read_fields(
    resource: &Resource,
    object: &mut Object,
    options: &WriteOptions,
) -> Result<Vec<String>, Unreadable> {
    let mut findings = options.findings.clone();
    if resource.custom.is_some() || resource.ty().is_some() {
        let mut value = std::mem::take(object).into_value();
        let unknown = match (&resource.custom, resource.ty()) {
            (Some(_), _) => custom::read(resource, &mut value, options.from_tree)?,
            (None, Some(ty)) if options.from_tree => schema::prune_tree(&mut value, ty),
            (None, Some(ty)) => schema::prune(&mut value, ty),
            (None, None) => Vec::new(),
        };
        if !options.applied {
            // Converting a tree does not escape quoted text.
            let quoted = |path: String| {
                if options.from_tree {
                    format!("\"{path}\"")
                } else {
                    gofmt::quoted(&path)
                }
            };
            findings.extend(
                unknown
                    .into_iter()
                    .map(|path| format!("unknown field {}", quoted(path))),
            );
        }
        *object = Object::from_value(value).map_err(|e| e.to_string())?;
    }
    if let Some(of) = resource.go_type() {
        if options.from_tree {
            gotypes::cut_numbers(&mut object.0, of);
        }
        gotypes::read_into(&mut object.0, of, options.from_tree)?;
        annotated::read(&resource.table, object).map_err(|why| Unreadable {
            inside: true,
            ..why.into()
        })?;
    }
    judge(findings, options)
}

/// Why an applied object cannot be stored, although it can be decoded.
pub fn refused_by_store(resource: &Resource, applied: &Object) -> Option<Status> {
    let converted = resource.custom.is_some() && !resource.is_storage();
    let why = converted
        .then(|| custom::unreadable_deletion(applied))
        .flatten()?;
    Some(Status::new(500, "", why))
}

/// Decodes a Scale; returns warnings.
pub fn read_scale(object: &mut Object, options: &WriteOptions) -> Result<Vec<String>, Unreadable> {
    let gvk = Gvk::new("autoscaling", "v1", "Scale");
    let mut findings = options.findings.clone();
    let mut value = std::mem::take(object).into_value();
    let unknown = match schema::builtin().type_for(&gvk) {
        Some(ty) if options.from_tree => schema::prune_tree(&mut value, ty),
        Some(ty) => schema::prune(&mut value, ty),
        None => Vec::new(),
    };
    findings.extend(
        unknown
            .into_iter()
            .map(|path| format!("unknown field \"{path}\"")),
    );
    *object = Object::from_value(value).map_err(|e| e.to_string())?;
    if let Some(of) = gotypes::of(&gvk) {
        if options.from_tree {
            gotypes::cut_numbers(&mut object.0, of);
        }
        gotypes::read_into(&mut object.0, of, options.from_tree)?;
        gotypes::drop_empty(&mut object.0, of);
    }
    judge(findings, options)
}

/// Handles unknown fields and duplicate keys as the request specifies.
pub fn judge(findings: Vec<String>, options: &WriteOptions) -> Result<Vec<String>, Unreadable> {
    match options.validation {
        _ if findings.is_empty() => Ok(findings),
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(findings
            .iter()
            .flat_map(|finding| finding.split("\n  "))
            .map(str::to_owned)
            .collect()),
        FieldValidation::Strict => {
            let told: Vec<String> = findings.into_iter().map(as_error).collect();
            Err(format!("{STRICT}: {}", told.join(", ")).into())
        }
    }
}

/// A warning contains only the line of a finding of Go's YAML decoder.
fn as_error(finding: String) -> String {
    if finding.starts_with("line ") {
        format!("yaml: unmarshal errors:\n  {finding}")
    } else {
        finding
    }
}

/// The prefix of errors about objects that can be decoded, but not strictly.
const STRICT: &str = "strict decoding error";

/// `said` is the type in the object, under which it is handled once it has been decoded.
fn not_handled(resource: &Resource, said: &Gvk, why: &str) -> Status {
    let wanted = if why.starts_with(STRICT) {
        &said.kind
    } else {
        &resource.kind
    };
    Status::bad_request(format!(
        "{} in version \"{}\" cannot be handled as a {wanted}: {why}",
        said.kind, said.version
    ))
}

/// Drops what Go does not write of a built-in object: empty lists and maps matter only until then.
pub fn drop_empty(resource: &Resource, object: &mut Object) {
    let Some(of) = resource.go_type() else { return };
    // An empty list resets the managers, unlike a missing one.
    let managers = object
        .0
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
        .and_then(|metadata| metadata.remove("managedFields"));
    gotypes::drop_empty(&mut object.0, of);
    if let Some(managers) = managers {
        object
            .metadata_mut()
            .insert("managedFields".into(), managers);
    }
}

/// Decodes a built-in object into Go types again, after the server has set its fields.
fn read_again(resource: &Resource, object: &mut Object) -> Result<(), Status> {
    if resource.custom.is_some() {
        return Ok(());
    }
    match gotypes::of(&resource.gvk()) {
        Some(of) => gotypes::read_into(&mut object.0, of, false)
            .map_err(|e| not_handled(resource, &resource.gvk(), &e.to_string())),
        None => Ok(()),
    }
}

/// Defaults of built-in kinds.
pub fn fill_in(reader: &dyn Reader, resource: &Resource, object: &mut Object) {
    if resource.table == CRD_TABLE {
        definition::fill_in(object);
    } else if resource.is("autoscaling", "horizontalpodautoscalers") && resource.version == "v1" {
        defaults::old_autoscaler(object);
    } else if resource.custom.is_none() {
        if resource.is("autoscaling", "horizontalpodautoscalers") {
            autoscaler::drop_annotations(object);
        }
        defaults::apply(&resource.table, object);
        if resource.table == "resource.k8s.io/resourceslices" {
            defaults::taint_times(object, &crate::base::timestamp(reader.now()));
        }
    }
}

/// Rejects objects that must not be stored; returns warnings.
pub fn validate(
    reader: &dyn Reader,
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
    part: Part,
) -> Result<Vec<String>, Status> {
    // A Binding goes directly to the store, whatever labels and node name it contains.
    if part == Part::Binding {
        return Ok(Vec::new());
    }
    let wrong = custom::wrong_type(resource, object);
    let is_wrong = !wrong.is_empty();
    // Only differences in Go's view are changes, except where Go compares literally.
    let lenient =
        resource.custom.is_none() && !matches!(resource.table.as_str(), "/configmaps" | "/secrets");
    let shared = old
        .filter(|old| lenient && gotypes::may_share(&object.0, &old.0))
        .cloned()
        .map(|mut old| {
            resource
                .go_type()
                .into_iter()
                .for_each(|of| gotypes::share_equal(&object.0, &mut old.0, of));
            old
        });
    let old = shared.as_ref().or(old);
    let mut causes = match old {
        _ if is_wrong => wrong,
        Some(old) if part == Part::Approval => validation::decision(object, old),
        _ => validation::check(resource, object, old, part),
    };
    causes.splice(..0, admin_access(reader, resource, object, old, part));
    let mut warnings = Vec::new();
    if let Some(custom) = &resource.custom {
        let (more, ratcheted) = custom::check(custom, object, (old, part), (&causes, !is_wrong));
        causes.extend(more);
        warnings = ratcheted;
        if part != Part::Status && causes.is_empty() {
            warnings.extend(custom::warnings(object, old));
        }
    } else if resource.table == CRD_TABLE && part == Part::Status {
        causes.extend(definition::check_status(object));
    } else if resource.table == CRD_TABLE {
        definition::check_name(object, old, &mut causes);
        causes.extend(definition::check(object, old));
        warnings = definition::warnings(object, old);
    }
    if causes.is_empty() && (resource.custom.is_some() || resource.table == CRD_TABLE) {
        return Ok(warnings);
    }
    if causes.is_empty() {
        return Ok(warnings::of(resource, object, old, part));
    }
    if is_wrong {
        return Err(
            Status::invalid(&object.gvk().group, object.kind(), object.name(), causes)
                .warned(&warnings),
        );
    }
    // Events are reported as core group, whichever group the request uses.
    let group = if resource.table == "/events" {
        ""
    } else {
        &resource.group
    };
    // Ignored errors are reported as warnings even if there are other errors.
    let warnings = if resource.custom.is_some() {
        warnings
    } else {
        Vec::new()
    };
    Err(Status::invalid(group, &resource.kind, object.name(), causes).warned(&warnings))
}

/// Admin access to devices is allowed only in namespaces that are labelled for it.
fn admin_access(
    reader: &dyn Reader,
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
    part: Part,
) -> Option<Cause> {
    const LABEL: &str = "resource.kubernetes.io/admin-access";
    let field = validation::admin_access(&resource.table, object, old, part)?;
    let namespace = reader
        .stored("/namespaces", "", object.namespace())
        .map(|stored| stored.object());
    let marked = namespace.is_some_and(|namespace| namespace.label(LABEL) == Some("true"));
    let why = format!(
        "admin access to devices requires the `{LABEL}: true` label on the containing namespace"
    );
    (!marked).then(|| Cause::forbidden(&field, &why))
}

/// The errors in a custom object that are ignored because they are not new.
pub fn let_pass(resource: &Resource, object: &Object, old: &Object, part: Part) -> Vec<String> {
    resource
        .custom
        .as_ref()
        .map(|custom| custom::check(custom, object, (Some(old), part), (&[], true)).1)
        .unwrap_or_default()
}

/// Whether the server changes more than defaults when such an object is updated.
pub fn decides_on_update(resource: &Resource, part: Part) -> bool {
    const TABLES: [&str; 10] = [
        "/namespaces",
        "/nodes",
        "/persistentvolumeclaims",
        "/persistentvolumes",
        "/serviceaccounts",
        "/services",
        "apps/daemonsets",
        "apps/statefulsets",
        "storage.k8s.io/csidrivers",
        CSR,
    ];
    let has_decided_status = matches!(
        resource.table.as_str(),
        "/pods" | "apps/deployments" | "resource.k8s.io/resourceclaims"
    );
    let old_autoscaler =
        resource.is("autoscaling", "horizontalpodautoscalers") && !resource.is_storage();
    TABLES.contains(&resource.table.as_str())
        || old_autoscaler
        || (part == Part::Status && has_decided_status)
}

/// Completes the object that was sent, whose fields its sender owns: with defaults, but before the
/// server sets anything.
pub fn as_sent(reader: &dyn Reader, resource: &Resource, sent: &mut Object, part: Part) {
    fill_in(reader, resource, sent);
    complete(resource, sent);
    // For other parts, the status is not the one that was sent.
    as_converted(resource, sent, part != Part::Main);
}

/// A v1 autoscaler is converted to v2 and back: its sender owns the annotations for fields that v1
/// lacks.
pub fn as_converted(resource: &Resource, sent: &mut Object, with_status: bool) {
    if !resource.is("autoscaling", "horizontalpodautoscalers") || resource.is_storage() {
        return;
    }
    let status = sent
        .0
        .get_mut("status")
        .filter(|_| !with_status)
        .map(|status| std::mem::replace(status, serde_json::json!({})));
    autoscaler::to_v2(sent);
    autoscaler::to_v1(sent);
    sent.0
        .extend(status.map(|status| ("status".to_owned(), status)));
}

/// Kinds whose updates must contain a resourceVersion.
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

/// Whether an update of a missing object creates it.
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

/// Whether an update without a resourceVersion overwrites the current object.
pub fn allows_blind_update(resource: &Resource) -> bool {
    let policies = [
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    ];
    let name = resource.resource.as_str();
    resource.custom.is_none() && !LOCKED.contains(&name) && !policies.contains(&name)
}

/// Validates the selectors in the `resourceAttributes` of an access review.
pub(crate) fn selector_attributes(attributes: &Value) -> Vec<crate::status::Cause> {
    let mut causes = Vec::new();
    validation::rules::selector_attributes(
        &validation::rules::At::new(attributes, "spec.resourceAttributes"),
        &mut causes,
    );
    causes
}

/// Validates a Scale.
pub(crate) fn check_scale(scale: &Object) -> Vec<crate::status::Cause> {
    validation::scale(scale)
}

/// Validates the metadata of an embedded object.
pub(crate) fn embedded_metadata(metadata: &Value, path: &str) -> Vec<crate::status::Cause> {
    validation::embedded(metadata, path)
}

/// Decodes the metadata of an embedded object.
pub(crate) fn read_metadata(metadata: &mut Value, path: &str) -> Result<Vec<String>, String> {
    custom::read_metadata(metadata, path)
}

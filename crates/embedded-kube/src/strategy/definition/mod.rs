//! CustomResourceDefinitions: defaults, checks, names, conditions.
//!
//! Main functions: [`fill_in`], [`prepare_create`], [`prepare_update`], [`check`], and [`settle`],
//! which plays the controllers inside the API server: they accept names and establish definitions.

mod conversion;
mod defaults;
mod schema;
mod spec;
mod structure;
mod visit;

use crate::base::timestamp;
use crate::catalog::CRD_TABLE;
use crate::catalog::crd::{TERMINATING, condition, is_established};
use crate::reader::Reader;
use crate::status::Cause;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;
use tiphys_kube_schema::structural::problem::Problem;

/// The finalizer that keeps a definition until its objects are gone.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Defaults of the spec.
pub fn fill_in(object: &mut Object) {
    if object
        .pointer("/status/storedVersions")
        .and_then(Value::as_array)
        .is_none_or(Vec::is_empty)
    {
        note_storage(object);
    }
    let spec = map_entry(&mut object.0, "spec");
    let names = map_entry(spec, "names");
    let kind = names
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or("")
        .to_owned();
    let missing = |map: &Map<String, Value>, key: &str| {
        map.get(key)
            .and_then(Value::as_str)
            .unwrap_or("")
            .is_empty()
    };
    if missing(names, "singular") && !kind.is_empty() {
        names.insert("singular".into(), kind.to_lowercase().into());
    }
    if missing(names, "listKind") && !kind.is_empty() {
        names.insert("listKind".into(), format!("{kind}List").into());
    }
    for version in spec
        .get_mut("versions")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            tidy(schema, 0);
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".into(), json!({"strategy": "None"}));
    }
    let conversion = map_entry(spec, "conversion");
    // A webhook without client configuration and versions counts as missing.
    if conversion
        .get("webhook")
        .is_some_and(|w| w["clientConfig"].is_null() && w["conversionReviewVersions"].is_null())
    {
        conversion.remove("webhook");
    }
    if conversion.get("strategy").and_then(Value::as_str) == Some("Webhook")
        && let Some(service) = conversion
            .get_mut("webhook")
            .and_then(|w| w.pointer_mut("/clientConfig/service"))
            .and_then(Value::as_object_mut)
    {
        service.entry("port").or_insert_with(|| 443.into());
    }
}

/// Normalizes a schema to the form in which Go holds it: empty fields are omitted, at every level.
fn tidy(schema: &mut Value, depth: usize) {
    let (Some(map), Some(of)) = (
        schema.as_object_mut(),
        tiphys_kube_schema::gotypes::find(tiphys_kube_schema::gotypes::SCHEMA),
    ) else {
        return;
    };
    if depth > 200 {
        return;
    }
    // Wrong types have been rejected before.
    let _ = tiphys_kube_schema::gotypes::read_into(map, of, false);
    // Below `items` and the like, fields unknown to Go are not reported.
    map.retain(|key, value| {
        of.fields.iter().any(|f| f.name == key)
            && !(value.is_null() && matches!(key.as_str(), "default" | "example"))
    });
    for (key, value) in map.iter_mut() {
        match (key.as_str(), value) {
            ("items" | "not" | "additionalProperties" | "additionalItems", Value::Array(list)) => {
                list.iter_mut().for_each(|s| tidy(s, depth + 1))
            }
            ("items" | "not" | "additionalProperties" | "additionalItems", one) => {
                tidy(one, depth + 1)
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => {
                list.iter_mut().for_each(|s| tidy(s, depth + 1))
            }
            (
                "properties" | "patternProperties" | "definitions" | "dependencies",
                Value::Object(map),
            ) => map.values_mut().for_each(|s| tidy(s, depth + 1)),
            _ => {}
        }
    }
}

/// The name may be missing; that is reported later.
fn storage_version(object: &Object) -> Option<String> {
    let versions = object
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    versions
        .iter()
        .find(|v| v["storage"] == true)
        .map(|v| v["name"].as_str().unwrap_or("").to_owned())
}

/// Adds the storage version to the stored versions.
fn note_storage(object: &mut Object) {
    let Some(storage) = storage_version(object) else {
        return;
    };
    let status = map_entry(&mut object.0, "status");
    let mut stored = status
        .get("storedVersions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if !stored.iter().any(|v| *v == storage.as_str()) {
        stored.push(storage.into());
    }
    status.insert("storedVersions".into(), stored.into());
}

/// The status of a new definition contains only its storage version.
pub fn prepare_create(object: &mut Object) {
    let status = json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null});
    object.0.insert("status".into(), status);
    note_storage(object);
}

/// Clients cannot change the status.
pub fn prepare_update(old: &Object, object: &mut Object) {
    match old.0.get("status") {
        Some(status) => object.0.insert("status".into(), status.clone()),
        None => object.0.remove("status"),
    };
    note_storage(object);
}

fn names_in_use(reader: &dyn Reader, object: &Object) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    let group = object.str_at("/spec/group");
    for other in reader.all_stored(CRD_TABLE, None) {
        // Only those of the group are parsed: a cluster may have thousands of others.
        if other.meta.name == object.name() || !is_named_for(&other.meta.name, group) {
            continue;
        }
        let other = other.object();
        if other.str_at("/spec/group") != group {
            continue;
        }
        let accepted = other
            .pointer("/status/acceptedNames")
            .cloned()
            .unwrap_or(Value::Null);
        let word = |key: &str| accepted[key].as_str().unwrap_or("").to_owned();
        resources.extend([word("plural"), word("singular")]);
        resources.extend(
            accepted["shortNames"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|s| s.as_str().map(str::to_owned)),
        );
        kinds.extend([word("kind"), word("listKind")]);
    }
    (resources, kinds)
}

struct Naming {
    accepted: Map<String, Value>,
    reason: &'static str,
    message: String,
}

/// Whether a definition of this name may be of the group: the name consists of its resource and its
/// group.
pub fn is_named_for(name: &str, group: &str) -> bool {
    name.strip_suffix(group)
        .is_some_and(|rest| rest.ends_with('.'))
}

/// Which of the wanted names the definition gets.
fn accept_names(reader: &dyn Reader, object: &Object) -> Naming {
    let (resources, kinds) = names_in_use(reader, object);
    let wanted = object
        .pointer("/spec/names")
        .cloned()
        .unwrap_or(Value::Null);
    let mut accepted = object
        .pointer("/status/acceptedNames")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut problem: Option<(&'static str, String)> = None;
    let mut take = |key: &str,
                    used: &BTreeSet<String>,
                    reason: &'static str,
                    accepted: &mut Map<String, Value>| {
        let name = wanted[key].as_str().unwrap_or("");
        if accepted.get(key).and_then(Value::as_str).unwrap_or("") != name && used.contains(name) {
            problem = Some((reason, format!("\"{name}\" is already in use")));
        } else {
            accepted.insert(key.to_owned(), name.into());
        }
    };
    take("plural", &resources, "PluralConflict", &mut accepted);
    take("singular", &resources, "SingularConflict", &mut accepted);
    take("kind", &kinds, "KindConflict", &mut accepted);
    take("listKind", &kinds, "ListKindConflict", &mut accepted);
    let short: Vec<&str> = wanted["shortNames"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let taken: Vec<String> = short
        .iter()
        .filter(|s| resources.contains(**s))
        .map(|s| format!("\"{s}\" is already in use"))
        .collect();
    if taken.is_empty() {
        copy(&wanted, "shortNames", &mut accepted);
    } else if problem
        .as_ref()
        .is_none_or(|(reason, _)| matches!(*reason, "PluralConflict" | "SingularConflict"))
    {
        let message = if taken.len() == 1 {
            taken[0].clone()
        } else {
            format!("[{}]", taken.join(", "))
        };
        problem = Some(("ShortNamesConflict", message));
    }
    copy(&wanted, "categories", &mut accepted);
    let (reason, message) = problem.unwrap_or(("NoConflicts", "no conflicts found".into()));
    Naming {
        accepted,
        reason,
        message,
    }
}

fn copy(from: &Value, key: &str, to: &mut Map<String, Value>) {
    match from
        .get(key)
        .filter(|v| v.as_array().is_some_and(|l| !l.is_empty()))
    {
        Some(value) => to.insert(key.to_owned(), value.clone()),
        None => to.remove(key),
    };
}

/// Puts a condition in place; its time changes with its status.
fn set_condition(
    status: &mut Map<String, Value>,
    kind: &str,
    (state, reason, message): (bool, &str, &str),
    now: &str,
) {
    let word = if state { "True" } else { "False" };
    let list = status.entry("conditions").or_insert(Value::Null);
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else {
        return;
    };
    let mut new = json!({"type": kind, "status": word, "lastTransitionTime": now, "reason": reason, "message": message});
    match list.iter_mut().find(|c| c["type"] == kind) {
        Some(old) => {
            if old["status"] == word {
                new["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = new;
        }
        None => list.push(new),
    }
}

const INITIAL_NAMES: &str = "the initial names have been accepted";

/// The next step that the real server's own controllers take shortly after a definition is written:
/// they accept names, and then establish it. None if nothing changes.
pub fn settle(reader: &dyn Reader, object: &Object) -> Option<Object> {
    let mut settled = object.clone();
    let now = timestamp(reader.now());
    if object.pointer("/spec/names") != object.pointer("/status/acceptedNames") {
        let naming = accept_names(reader, object);
        let good = naming.reason == "NoConflicts";
        let status = map_entry(&mut settled.0, "status");
        status.insert("acceptedNames".into(), naming.accepted.into());
        set_condition(
            status,
            "NamesAccepted",
            (good, naming.reason, &naming.message),
            &now,
        );
        let established = condition(&Value::Object(status.clone()), "Established")
            .is_some_and(|c| c["status"] == "True");
        if !established {
            let why = if good {
                ("Installing", INITIAL_NAMES)
            } else {
                ("NotAccepted", "not all names are accepted")
            };
            set_condition(status, "Established", (false, why.0, why.1), &now);
            return Some(settled);
        }
    }
    let status = map_entry(&mut settled.0, "status");
    let view = Value::Object(status.clone());
    let is = |kind: &str| condition(&view, kind).is_some_and(|c| c["status"] == "True");
    if is("NamesAccepted") && !is("Established") {
        set_condition(
            status,
            "Established",
            (true, "InitialNamesAccepted", INITIAL_NAMES),
            &now,
        );
    }
    (settled.0.get("status") != object.0.get("status")).then_some(settled)
}

/// The changes of a delete: the finalizer that waits for the objects, and the condition that
/// reports it.
pub fn mark_deleted(object: &mut Object, now: &str) {
    let mut finalizers = object.finalizers();
    if !finalizers.iter().any(|f| f == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    object.set_finalizers(finalizers);
    let message =
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(
        map_entry(&mut object.0, "status"),
        TERMINATING,
        (true, "InstanceDeletionPending", message),
        now,
    );
}

/// Sets the condition that the objects of a definition are being deleted; returns false if it is
/// already set.
pub fn mark_emptying(object: &mut Object) -> bool {
    let (reason, message) = (
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    );
    let since = object.deletion_timestamp().unwrap_or_default().to_owned();
    let status = map_entry(&mut object.0, "status");
    if condition(&Value::Object(status.clone()), TERMINATING).is_some_and(|c| c["reason"] == reason)
    {
        return false;
    }
    set_condition(status, TERMINATING, (true, reason, message), &since);
    true
}

/// Records that the objects of a definition are gone, and removes the finalizer; returns false if
/// it has already been removed.
pub fn mark_emptied(object: &mut Object) -> bool {
    let mut finalizers = object.finalizers();
    if !finalizers.iter().any(|f| f == CLEANUP) {
        return false;
    }
    finalizers.retain(|f| f != CLEANUP);
    let (reason, message) = match is_established(object) {
        true => ("InstanceDeletionCompleted", "removed all instances"),
        false => ("NeverEstablished", "resource was never established"),
    };
    let since = object.deletion_timestamp().unwrap_or_default().to_owned();
    object.set_finalizers(finalizers);
    set_condition(
        map_entry(&mut object.0, "status"),
        TERMINATING,
        (false, reason, message),
        &since,
    );
    true
}

/// The name of a new definition must consist of its resource and group; this is reported after
/// other errors in the name.
pub fn check_name(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let wanted = format!(
        "{}.{}",
        object.str_at("/spec/names/plural"),
        object.str_at("/spec/group")
    );
    let mut at = 0;
    for (field, name) in [
        ("metadata.generateName", object.generate_name()),
        ("metadata.name", object.name()),
    ] {
        at = causes
            .iter()
            .rposition(|cause| cause.field == field)
            .map_or(at, |last| last + 1);
        if old.is_none() && !name.is_empty() && name != wanted {
            causes.insert(
                at,
                Cause::invalid(
                    field,
                    &name.into(),
                    "must be spec.names.plural+\".\"+spec.group",
                ),
            );
            at += 1;
        }
    }
}

/// All errors in a definition.
pub fn check(object: &Object, old: Option<&Object>) -> Vec<Cause> {
    let null = Value::Null;
    let spec = object.0.get("spec").unwrap_or(&null);
    let mut problems = Vec::new();
    problems.extend(spec::check(spec, old.is_none_or(bears_any_bundle)));
    if let Some(old) = old {
        let established = is_established(old);
        for (pointer, field, always) in [
            ("/spec/scope", "spec.scope", false),
            ("/spec/names/kind", "spec.names.kind", false),
            ("/spec/group", "spec.group", true),
            ("/spec/names/plural", "spec.names.plural", true),
        ] {
            let now = object.pointer(pointer).unwrap_or(&null);
            if (always || established) && old.pointer(pointer).unwrap_or(&null) != now {
                problems.push(Problem::invalid(field, now, "field is immutable"));
            }
        }
    }
    status(object, &mut problems);
    let stored = object
        .pointer("/status/storedVersions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    spec::stored_versions(&stored, spec, &mut problems);
    let annotations = |o: &'_ Object| {
        o.metadata("annotations")
            .and_then(Value::as_object)
            .cloned()
    };
    let (now, before) = (annotations(object), old.map(annotations));
    spec::approval(
        spec::text(spec, "group"),
        now.as_ref(),
        before.as_ref().map(Option::as_ref),
        &mut problems,
    );
    let keeps = |o: &Object| o.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true));
    if keeps(object) && !old.is_some_and(keeps) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        problems.push(Problem::invalid(
            "spec.preserveUnknownFields",
            &true.into(),
            detail,
        ));
    }
    problems.into_iter().map(Cause::from).collect()
}

/// Whether an update may have an unreadable CA bundle: the existing one cannot be read either, or
/// the definition is not established, so that its webhook is not called yet.
fn bears_any_bundle(old: &Object) -> bool {
    !is_established(old)
        || crate::outbound::unreadable(old.str_at("/spec/conversion/webhook/clientConfig/caBundle"))
            .is_some()
}

/// Validates the status, which may also be written alone.
fn status(object: &Object, problems: &mut Vec<Problem>) {
    let names = object
        .pointer("/status/acceptedNames")
        .cloned()
        .unwrap_or(Value::Null);
    spec::check_names(&names, "status.acceptedNames", problems);
}

pub fn check_status(object: &Object) -> Vec<Cause> {
    let mut problems = Vec::new();
    status(object, &mut problems);
    problems.into_iter().map(Cause::from).collect()
}

/// Warns once about each unknown format.
pub fn warnings(object: &Object, old: Option<&Object>) -> Vec<String> {
    let formats = |o: &Object| visit::unknown_formats(o.0.get("spec").unwrap_or(&Value::Null));
    let known = old.map(formats).unwrap_or_default();
    formats(object)
        .into_iter()
        .filter(|f| !known.contains(f))
        .map(|f| format!("unrecognized format \"{f}\""))
        .collect()
}

/// For fuzzing: a JSON map with a `schema` and a `value`. Checks the schema as in a definition,
/// then the value against it, within the same budgets as the server; the error is the first one
/// found.
pub fn try_schema(bytes: &[u8]) -> Result<(), String> {
    use tiphys_kube_schema::cel::rules::{Budget, Compiled};
    use tiphys_kube_schema::structural::{Node, lists, shape, validate};
    let mut document: Value = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let raw = json!({"openAPIV3Schema": document["schema"].take()});
    let mut value = document["value"].take();
    let mut problems = Vec::new();
    schema::check(Some(&raw), "spec.validation", false, &mut problems);
    if problems.is_empty() {
        let node = Node::read(&raw["openAPIV3Schema"]);
        shape::prune(&mut value, &node);
        shape::drop_nulls(&mut value, Some(&node));
        shape::fill_in(&mut value, &node);
        problems.extend(validate::check(&node, &value, None, ""));
        problems.extend(lists::check(&node, &value));
        problems.extend(
            Compiled::new(&node, true)
                .check_with(&node, "", &value, None, false, &mut Budget::default())
                .problems,
        );
    }
    problems.first().map_or(Ok(()), |p| Err(p.line()))
}

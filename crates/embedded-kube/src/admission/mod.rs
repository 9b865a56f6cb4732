//! Admission as in a default API server: plugins that complete or reject a write depending on other
//! objects.
//!
//! Main functions: [`admit`], which runs before the validation of the kind, and [`check`], which
//! runs after it. Plugins read through [`Cluster`]; they write nothing but quotas and missing
//! service accounts. The policies and webhooks of the cluster run after the built-in plugins.

mod account;
mod classes;
mod cluster;
mod hooks;
mod limits;
mod matching;
mod pod_security;
mod policy;
mod priority;
mod quota;
mod request;
mod resize;
mod runtime;
mod signers;
mod tolerations;
mod topology;
mod usage;
mod webhook;

use crate::base::{FieldValidation, WriteOptions};
use crate::catalog::Resource;
use crate::reader::Reader;
use crate::status::Status;
use serde_json::{Map, Value};
use std::sync::Arc;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

pub use cluster::Cluster;
pub use hooks::{GROUP, Hooks};
pub use request::{Objects, Operation, Request};

/// Additional output for the client.
#[derive(Default)]
pub struct Answers {
    pub warnings: Vec<String>,
    /// A pod has an empty overhead: it counts, although it is not visible.
    hollow_overhead: bool,
}

impl Answers {
    /// Adds a warning, without duplicates.
    fn warn(&mut self, text: String) {
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }
}

/// Completes the object depending on other objects, and lets policies and webhooks change it; `old`
/// is set for updates. Returns whether they changed it.
pub fn admit(
    request: &Request<'_>,
    object: &mut Object,
    old: Option<&Object>,
    answers: &mut Answers,
) -> Result<bool, Status> {
    not_ending(request)?;
    let hidden = hide(request, object);
    fill_in(request, object, old)?;
    let changed = change(request, object, old, answers)?;
    answers.hollow_overhead = object
        .pointer("/spec/overhead")
        .and_then(Value::as_object)
        .is_some_and(Map::is_empty);
    show(object, hidden);
    Ok(changed)
}

/// Rejects new objects of a kind whose definition is being deleted.
fn not_ending(request: &Request<'_>) -> Result<(), Status> {
    let ends = request
        .resource
        .custom
        .as_ref()
        .is_some_and(|custom| custom.terminating);
    if !ends || request.operation != Operation::Create {
        return Ok(());
    }
    let why = "create not allowed while custom resource definition is terminating";
    Err(Status::forbidden(
        &request.resource.group,
        &request.resource.resource,
        request.name,
        why,
    ))
}

fn change(
    request: &Request<'_>,
    object: &mut Object,
    old: Option<&Object>,
    answers: &mut Answers,
) -> Result<bool, Status> {
    let hooks = request.cluster.hooks();
    if !hooks.may_change() || is_exempt(request) {
        return Ok(false);
    }
    let by_policy = policy::mutate(&hooks.mutating, request, object, old, false)?;
    let first = webhook::mutate(
        &hooks.mutating_webhooks,
        request,
        &mut Some(object),
        old,
        None,
        answers,
    )?;
    let changed = by_policy || first.changed();
    if changed {
        let seen = object.clone();
        fill_in(request, object, old)?;
        policy::mutate(&hooks.mutating, request, object, old, true)?;
        let moved = *object != seen;
        webhook::mutate(
            &hooks.mutating_webhooks,
            request,
            &mut Some(object),
            old,
            Some((&first, moved)),
            answers,
        )?;
    }
    Ok(changed)
}

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Mutating webhooks are called for a delete, too, although there is nothing they could change.
pub fn admit_delete(
    request: &Request<'_>,
    old: &Object,
    answers: &mut Answers,
) -> Result<(), Status> {
    if request.resource.table == "/namespaces" && IMMORTAL.contains(&old.name()) {
        return Err(forbidden(
            request.resource,
            old,
            "this namespace may not be deleted",
        ));
    }
    let hooks = request.cluster.hooks();
    if !hooks.mutating_webhooks.is_empty() && !is_exempt(request) {
        webhook::mutate(
            &hooks.mutating_webhooks,
            request,
            &mut None,
            Some(old),
            None,
            answers,
        )?;
    }
    Ok(())
}

/// Decodes the object again as its kind, with defaults.
fn settled(
    cluster: &dyn Reader,
    resource: &Arc<Resource>,
    mut object: Object,
) -> Result<Object, Status> {
    let options = WriteOptions {
        validation: FieldValidation::Ignore,
        ..WriteOptions::default()
    };
    // In the real server, this error comes from decoding its own output.
    let unreadable = |status: Status| {
        Status::internal(status.message.split_once(": ").map_or("", |(_, why)| why))
    };
    crate::strategy::check_fields(resource, &mut object, &options).map_err(unreadable)?;
    crate::strategy::fill_in(cluster, resource, &mut object);
    Ok(object)
}

/// Whether the built-in plugins also complete updated objects.
pub fn fills_in_updates(resource: &Resource) -> bool {
    resource.table == "/pods"
}

/// Runs the built-in plugins that change objects.
fn fill_in(request: &Request<'_>, object: &mut Object, old: Option<&Object>) -> Result<(), Status> {
    let table = request.resource.table.as_str();
    if table != "/pods" {
        if old.is_none() && request.subresource.is_empty() {
            classes::admit(request.cluster, table, object);
        }
        return Ok(());
    }
    match old {
        // A resize is defaulted, too.
        Some(old) if request.subresource == "resize" && old.deletion_timestamp().is_none() => {
            limits::fill_in(request.cluster, object)
        }
        _ if !request.subresource.is_empty() => {}
        None => {
            limits::fill_in(request.cluster, object);
            account::admit(request.cluster, request.resource, object)?;
            priority::admit(request.cluster, request.resource, object)?;
            tolerations::admit(object);
            runtime::admit(request.cluster, request.resource, object)?;
            topology::admit(request.cluster, object, "/spec/nodeName");
        }
        Some(old) => {
            priority::keep(old, object);
            tolerations::admit(object);
        }
    }
    Ok(())
}

/// Runs the built-in plugins that change a Binding of a pod.
pub fn fill_in_binding(cluster: &dyn Reader, binding: &mut Object) {
    if binding.str_at("/target/kind") == "Node" {
        topology::admit(cluster, binding, "/target/name");
    }
}

/// Policies and webhooks do not apply to themselves, nor to access reviews.
fn is_exempt(request: &Request<'_>) -> bool {
    matches!(
        request.resource.group.as_str(),
        GROUP | "authentication.k8s.io" | "authorization.k8s.io"
    )
}

/// Removes the fields that are set only after mutating admission, so that policies and webhooks do
/// not see them.
fn hide(request: &Request<'_>, object: &mut Object) -> Map<String, Value> {
    let mut hidden = Map::new();
    if request.operation != Operation::Create || !request.subresource.is_empty() {
        return hidden;
    }
    let generated = !object.generate_name().is_empty() && request.name.is_empty();
    let counted = request.resource.has_generation();
    let fields = [
        ("uid", true),
        ("creationTimestamp", true),
        ("generation", counted),
        ("name", generated),
    ];
    for (field, _) in fields.into_iter().filter(|(_, is_hidden)| *is_hidden) {
        hidden.extend(
            object
                .metadata_mut()
                .remove(field)
                .map(|value| (field.to_owned(), value)),
        );
    }
    hidden
}

fn show(object: &mut Object, hidden: Map<String, Value>) {
    let metadata = object.metadata_mut();
    for (field, value) in hidden {
        // A name may have been set in the meantime.
        if field != "name" || !metadata.contains_key("name") {
            metadata.insert(field, value);
        }
    }
}

/// Runs the validating plugins, policies and webhooks; returns warnings.
pub fn check(
    request: &Request<'_>,
    objects: Objects<'_>,
    mut answers: Answers,
) -> Result<Vec<String>, Status> {
    let (cluster, resource) = (request.cluster, request.resource);
    let main = request.subresource.is_empty();
    let resizes = request.subresource == "resize";
    let sized = |old: &Object| {
        old.deletion_timestamp().is_none()
            && (resizes || (main && resource.table == "/persistentvolumeclaims"))
    };
    if let Some(new) = objects.new.filter(|_| objects.old.map_or(main, sized)) {
        limits::check(cluster, resource, new)?;
    }
    account::check(request, objects)?;
    if request.operation != Operation::Connect {
        pod_security::check(request, objects, &mut answers)
            .map_err(|status| status.warned(&answers.warnings))?;
    }
    priority::check(request, objects)?;
    classes::check(request, objects)?;
    if let Some(pod) = objects
        .new
        .filter(|_| main && resource.table == "/pods" && objects.old.is_none())
    {
        runtime::check(cluster, resource, pod, answers.hollow_overhead)?;
    }
    if resizes {
        resize::check(request, objects)?;
    }
    signers::check(request, objects)?;
    let hooks = cluster.hooks();
    if !is_exempt(request) {
        let outcome = policy::validate(&hooks.validating, request, objects, &mut answers);
        let outcome = outcome.and_then(|()| {
            webhook::validate(&hooks.validating_webhooks, request, objects, &mut answers)
        });
        outcome.map_err(|status| status.warned(&answers.warnings))?;
    }
    let counted = main
        || resizes
        || (request.subresource == "status" && resource.table == "/persistentvolumeclaims");
    if let Some(new) = objects.new.filter(|_| counted && resource.namespaced) {
        quota::charge(request, new, objects.old)?;
    }
    Ok(answers.warnings)
}

/// The error for a request that a policy or webhook rejects.
fn refusal(request: &Request<'_>, objects: Objects<'_>, why: &str) -> Status {
    let name = if request.name.is_empty() {
        objects.name()
    } else {
        request.name
    };
    Status::forbidden(
        &request.resource.group,
        &request.resource.resource,
        name,
        why,
    )
}

/// An error with the API server's wording.
pub fn forbidden(resource: &Resource, object: &Object, why: &str) -> Status {
    // An object that is rejected before its name is generated is identified by the prefix of the
    // name.
    let name = [object.name(), object.generate_name()]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or("Unknown");
    Status::forbidden(&resource.group, &resource.resource, name, why)
}

fn spec(object: &mut Object) -> &mut Map<String, Value> {
    map_entry(&mut object.0, "spec")
}

/// The containers of a list in a pod spec.
fn containers<'a>(
    spec: &'a mut Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    spec.get_mut(list)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
}

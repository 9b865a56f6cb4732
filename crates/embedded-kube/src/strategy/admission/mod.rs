//! What a default API server admits: the plugins that fill in and judge a write by other objects.
//!
//! Main functions: [`admit`], before a kind's own rules, and [`check`], after them. Plugins read the registry; only quotas write.
//! What a cluster adds itself, policies and webhooks, comes after what is built in.

mod account;
mod hooks;
mod limits;
mod matching;
mod policy;
mod priority;
mod quota;
mod request;
mod tolerations;
mod usage;

use crate::catalog::Resource;
use crate::status::Status;
use serde_json::{Map, Value};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

pub use hooks::{GROUP, Hooks};
pub use request::{Objects, Operation, Request};

/// What is told to the client besides the outcome.
#[derive(Default)]
pub struct Answers {
    pub warnings: Vec<String>,
}

impl Answers {
    /// The same words are said once.
    fn warn(&mut self, text: String) {
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }
}

/// Fills in what other objects say about this one; `old` is there for updates. Says whether a policy or webhook changed it.
pub fn admit(request: &Request<'_>, object: &mut Object, old: Option<&Object>) -> Result<bool, Status> {
    fill_in(request, object, old)?;
    let hooks = request.registry.hooks();
    if hooks.mutating.is_empty() || is_exempt(request) {
        return Ok(false);
    }
    let hidden = hide(request, object);
    let mut changed = policy::mutate(&hooks.mutating, request, object, old, false)?;
    if changed {
        fill_in(request, object, old)?;
        changed |= policy::mutate(&hooks.mutating, request, object, old, true)?;
    }
    show(object, hidden);
    Ok(changed)
}

/// What the built-in plugins do to an object.
fn fill_in(request: &Request<'_>, object: &mut Object, old: Option<&Object>) -> Result<(), Status> {
    if request.resource.table != "/pods" || !request.subresource.is_empty() {
        return Ok(());
    }
    match old {
        None => {
            limits::fill_in(request.registry, object);
            account::admit(request.registry, request.resource, object)?;
            priority::admit(request.registry, request.resource, object)?;
            tolerations::admit(object);
        }
        Some(old) => {
            priority::keep(old, object);
            tolerations::admit(object);
        }
    }
    Ok(())
}

/// Policies and webhooks do not judge themselves, nor questions about rights.
fn is_exempt(request: &Request<'_>) -> bool {
    matches!(request.resource.group.as_str(), GROUP | "authentication.k8s.io" | "authorization.k8s.io")
}

/// What is decided about a new object only after it has been changed is not shown to who changes it.
fn hide(request: &Request<'_>, object: &mut Object) -> Map<String, Value> {
    let mut hidden = Map::new();
    if request.operation != Operation::Create || !request.subresource.is_empty() {
        return hidden;
    }
    let generated = !object.generate_name().is_empty() && request.name.is_empty();
    let counted = request.resource.has_generation();
    let fields = [("uid", true), ("creationTimestamp", true), ("generation", counted), ("name", generated)];
    for (field, _) in fields.into_iter().filter(|(_, is_hidden)| *is_hidden) {
        hidden.extend(object.metadata_mut().remove(field).map(|value| (field.to_owned(), value)));
    }
    hidden
}

fn show(object: &mut Object, hidden: Map<String, Value>) {
    let metadata = object.metadata_mut();
    for (field, value) in hidden {
        // A name may have been given meanwhile.
        if field != "name" || !metadata.contains_key("name") {
            metadata.insert(field, value);
        }
    }
}

/// Refuses what is in order by itself; gives warnings.
pub fn check(request: &Request<'_>, objects: Objects<'_>) -> Result<Vec<String>, Status> {
    let (registry, resource) = (request.registry, request.resource);
    let main = request.subresource.is_empty();
    if let Some(new) = objects.new.filter(|_| main && (objects.old.is_none() || resource.table == "/persistentvolumeclaims")) {
        limits::check(registry, resource, new)?;
    }
    let mut answers = Answers::default();
    let hooks = registry.hooks();
    if !hooks.validating.is_empty() && !is_exempt(request) {
        policy::validate(&hooks.validating, request, objects, &mut answers)?;
    }
    if let Some(new) = objects.new.filter(|_| main && resource.namespaced) {
        quota::charge(registry, resource, new, objects.old, request.dry_run)?;
    }
    Ok(answers.warnings)
}

/// A request that is refused by a policy or webhook.
fn refusal(request: &Request<'_>, objects: Objects<'_>, why: &str) -> Status {
    let name = if request.name.is_empty() { objects.name() } else { request.name };
    Status::forbidden(&request.resource.group, &request.resource.resource, name, why)
}

/// A refusal in the words of the API server.
fn forbidden(resource: &Resource, object: &Object, why: &str) -> Status {
    let name = if object.name().is_empty() { object.generate_name() } else { object.name() };
    Status::forbidden(&resource.group, &resource.resource, name, why)
}

fn spec(object: &mut Object) -> &mut Map<String, Value> {
    map_entry(&mut object.0, "spec")
}

/// The containers of a list in a pod spec.
fn containers<'a>(spec: &'a mut Map<String, Value>, list: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

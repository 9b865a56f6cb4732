//! MutatingAdmissionPolicies, which change the object of a request before it is validated. Main
//! function: [`mutate`].

use super::run::Run;
use super::{Expression, Mutation, Policy, params};
use crate::admission::hooks::Bound;
use crate::admission::matching::matches;
use crate::admission::request::{Objects, Request};
use crate::admission::{refusal, settled};
use crate::catalog::Resource;
use crate::status::{Cause, Status, patch_refused};
use serde_json::Value;
use std::sync::Arc;
use tiphys_apimachinery::patch::apply::{ApplyOptions, apply_in};
use tiphys_apimachinery::patch::{self, PatchError};
use tiphys_apimachinery::schema::{ListType, MapType, TypeKind, TypeRef};
use tiphys_apimachinery::{Object, object::map_entry};
use tiphys_kube_schema::cel::admission::{misnamed, to_json};

/// The manager name while a policy is applied: no manager owns the fields that a policy sets.
const NOBODY: &str = "mutating-admission-policy";

/// A policy, a binding and one of its parameters.
struct Invocation<'a> {
    policy: &'a Policy,
    binding: &'a Object,
    matched: Arc<Resource>,
    param: Option<Arc<Object>>,
}

/// Why a policy did not change the object: the message, and whether the error is in the policy or
/// in the cluster.
struct Problem {
    message: String,
    reason: &'static str,
}

/// Changes the object; `again` is the second round, for policies that want to see later changes.
/// Returns whether anything changed.
pub fn mutate(
    policies: &[Bound],
    request: &Request<'_>,
    object: &mut Object,
    old: Option<&Object>,
    again: bool,
) -> Result<bool, Status> {
    let before = object.clone();
    let mut problems = Vec::new();
    let wanted = |bound: &&Bound| !again || bound.policy.spec["reinvocationPolicy"] == "IfNeeded";
    let mut invocations = Vec::new();
    for bound in policies.iter().filter(wanted) {
        invocations.extend(invoked(
            bound,
            request,
            Objects {
                new: Some(object),
                old,
            },
            &mut problems,
        ));
    }
    for Invocation {
        policy,
        binding,
        matched,
        param,
    } in invocations
    {
        let mut seen = request.convert(object, &matched)?;
        let seen_old = old.map(|old| request.convert(old, &matched)).transpose()?;
        let mut note = |message: String| {
            if policy.fails() {
                let message = format!(
                    "policy '{}' with binding '{}' denied request: {message}",
                    policy.name,
                    binding.name()
                );
                problems.push(Problem {
                    message,
                    reason: "Invalid",
                });
            }
        };
        let run = |seen: &Object| {
            Run::new(
                policy,
                request,
                Objects {
                    new: Some(seen),
                    old: seen_old.as_ref(),
                },
                &matched,
                param.as_deref(),
            )
        };
        match run(&seen).is_meant() {
            Err(why) => {
                note(why);
                continue;
            }
            Ok(false) => continue,
            Ok(true) => {}
        }
        let typed = request.typed_as(&matched);
        for mutation in &policy.mutations {
            let changed = match mutation {
                Mutation::Patches(expression) => patched(expression, &run(&seen), &seen),
                Mutation::Apply(expression) => applied(expression, &run(&seen), &seen, &typed),
            };
            match changed {
                Ok(next) => seen = settled(request.cluster, &typed, next)?,
                Err(why) => note(why),
            }
        }
        request.convert_back(&matched, &mut seen)?;
        *object = seen;
    }
    let Some(first) = problems.first() else {
        return Ok(*object != before);
    };
    let mut status = refusal(
        request,
        Objects {
            new: Some(object),
            old,
        },
        "admission request denied by policy",
    );
    status.message.clone_from(&first.message);
    if !first.reason.is_empty() {
        status.reason = first.reason;
    }
    let causes = problems.into_iter().map(|p| Cause {
        reason: "",
        message: p.message,
        field: String::new(),
    });
    Err(status.with_causes(causes.collect()))
}

fn invoked<'a>(
    bound: &'a Bound,
    request: &Request<'_>,
    objects: Objects<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<Invocation<'a>> {
    let policy = &bound.policy;
    let mut misconfigured = |why: String, binding: Option<&Object>| {
        let message = match binding {
            Some(b) => format!(
                "policy '{}' with binding '{}' denied request: failed to configure binding: {why}",
                policy.name,
                b.name()
            ),
            None => format!(
                "policy \"{}\" denied request: failed to configure policy: {why}",
                policy.name
            ),
        };
        if policy.fails() {
            problems.push(Problem {
                message,
                reason: "",
            });
        }
    };
    let mut all = Vec::new();
    let matched = match matches(
        request,
        objects,
        &policy.spec["matchConstraints"],
        "resourceRules",
    ) {
        Ok(Some(matched)) => matched,
        Ok(None) => return all,
        Err(why) => {
            misconfigured(why, None);
            return all;
        }
    };
    let kind = match params::kind(request, &policy.spec["paramKind"]) {
        Ok(kind) => kind,
        Err(why) => {
            misconfigured(why, None);
            return all;
        }
    };
    for binding in &bound.bindings {
        let found = match matches(
            request,
            objects,
            binding
                .pointer("/spec/matchResources")
                .unwrap_or(&Value::Null),
            "resourceRules",
        ) {
            Ok(Some(_)) => params::collect(
                request,
                kind.as_ref(),
                binding.pointer("/spec/paramRef").unwrap_or(&Value::Null),
            ),
            Ok(None) => continue,
            Err(why) => Err(why),
        };
        match found {
            Ok(list) => all.extend(list.into_iter().map(|param| Invocation {
                policy,
                binding,
                matched: matched.clone(),
                param,
            })),
            Err(why) => misconfigured(why, Some(binding)),
        }
    }
    all
}

/// Applies a list of `JSONPatch{}`. A failed test leaves the object unchanged.
fn patched(expression: &Expression, run: &Run<'_>, object: &Object) -> Result<Object, String> {
    // A compilation error is reported without a prefix.
    expression.program.as_ref().map_err(Clone::clone)?;
    let value = run
        .evaluate(expression)
        .map_err(super::run::Stopped::text)?;
    let tiphys_kube_schema::cel::value::Value::List(list) = &value else {
        return Err("type mismatch: expression should evaluate to array".to_owned());
    };
    let mut operations = Vec::new();
    for item in &list.items {
        let made = to_json(item).map_err(|e| {
            format!(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {e}"
            )
        })?;
        misnamed_value(item)?;
        let mut operation = serde_json::Map::new();
        for (field, value) in made.as_object().into_iter().flatten() {
            let is_value = field == "value";
            if is_value
                || value
                    .as_str()
                    .is_some_and(|text| !text.is_empty() || field != "from")
            {
                operation.insert(field.clone(), value.clone());
            }
        }
        operations.push(Value::Object(operation));
    }
    match patch::json::apply(&object.clone().into_value(), &Value::Array(operations)) {
        Ok(value) => Object::from_value(value).map_err(|e| e.to_string()),
        Err(PatchError::TestFailed { .. }) => Ok(object.clone()),
        Err(error) => Err(format!("JSON Patch: {}", patch_text(&error))),
    }
}

fn patch_text(error: &PatchError) -> String {
    let text = error.to_string();
    if text.is_empty() {
        patch_refused(error).message
    } else {
        text
    }
}

/// Rejects objects in a `value` whose type does not match their position.
fn misnamed_value(operation: &tiphys_kube_schema::cel::value::Value) -> Result<(), String> {
    use tiphys_kube_schema::cel::value::{Key, Value};
    let Value::Opaque(made) = operation else {
        return Ok(());
    };
    let tiphys_kube_schema::cel::Opaque::Made(_, fields) = &**made else {
        return Ok(());
    };
    let Some(value @ Value::Opaque(inner)) = fields.get(&Key::String("value".into())) else {
        return Ok(());
    };
    let tiphys_kube_schema::cel::Opaque::Made(name, _) = &**inner else {
        return Ok(());
    };
    let problems = misnamed(value, name);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(format!("type mismatch: {}", problems.join("\n")))
    }
}

/// Merges an `Object{}` into the object as server-side apply does.
fn applied(
    expression: &Expression,
    run: &Run<'_>,
    object: &Object,
    resource: &Resource,
) -> Result<Object, String> {
    expression.program.as_ref().map_err(Clone::clone)?;
    let value = run
        .evaluate(expression)
        .map_err(super::run::Stopped::text)?;
    let problems = misnamed(&value, "Object");
    if !problems.is_empty() {
        return Err(format!("type mismatch: {}", problems.join("\n")));
    }
    let Value::Object(mut config) = to_json(&value)? else {
        return Err("invalid return type".to_owned());
    };
    config.insert("apiVersion".into(), resource.api_version().into());
    config.insert("kind".into(), resource.kind.as_str().into());
    let mut atomics = Vec::new();
    if let Some(ty) = resource.ty() {
        find_atomics(
            &Value::Object(config.clone()),
            ty,
            String::new(),
            &mut atomics,
        );
    }
    if !atomics.is_empty() {
        let list = atomics.join(", ");
        return Err(format!(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {list}"
        ));
    }
    map_entry(&mut config, "metadata").remove("managedFields");
    let options = ApplyOptions {
        manager: NOBODY,
        force: true,
        api_version: &resource.api_version(),
        ..ApplyOptions::default()
    };
    let config = Object(config);
    let mut merged =
        apply_in(Some(object), &config, &options, resource.ty(), None).map_err(|e| {
            format!(
                "error applying patch: failed to convert patch object to typed object: {}",
                inner(&e.to_string())
            )
        })?;
    match object.metadata("managedFields") {
        Some(owners) => merged
            .metadata_mut()
            .insert("managedFields".into(), owners.clone()),
        None => merged.metadata_mut().remove("managedFields"),
    };
    Ok(merged)
}

/// The error without the name of the applied object.
fn inner(text: &str) -> &str {
    let rest = text
        .strip_prefix("failed to create typed patch object (")
        .and_then(|rest| rest.split_once("): "));
    rest.map_or(text, |(_, why)| why)
}

/// Finds atomic fields, which would be replaced as a whole without that being stated.
fn find_atomics(value: &Value, ty: TypeRef<'_>, path: String, found: &mut Vec<String>) {
    match (value, ty.kind()) {
        (Value::Object(map), TypeKind::Object | TypeKind::Map) => {
            if ty.map_type() == Some(MapType::Atomic) {
                found.push(path.clone());
            }
            for (key, value) in map {
                if let Some(ty) = ty.named_field(key) {
                    find_atomics(value, ty, format!("{path}.{key}"), found);
                }
            }
        }
        (Value::Array(list), TypeKind::List) => {
            if matches!(ty.list_type(), None | Some(ListType::Atomic)) {
                found.push(path.clone());
            }
            for (i, value) in list.iter().enumerate() {
                if let Some(ty) = ty.items() {
                    find_atomics(value, ty, format!("{path}[{i}]"), found);
                }
            }
        }
        _ => {}
    }
}

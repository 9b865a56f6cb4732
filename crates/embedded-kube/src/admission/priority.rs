//! Sets the priority of a pod from its priority class, or from the default class.

use super::{Objects, Request, forbidden, refusal, spec};
use crate::catalog::Resource;
use crate::reader::Reader;
use crate::status::Status;
use serde_json::Value;
use std::sync::Arc;
use tiphys_apimachinery::{Gvr, Object};

const LOWER: &str = "PreemptLowerPriority";

fn classes() -> Gvr {
    Gvr::new("scheduling.k8s.io", "v1", "priorityclasses")
}

/// The class of pods without one; if there are several defaults, the one with the lowest value.
fn default_class(cluster: &dyn Reader) -> Option<Arc<Object>> {
    let classes = cluster.list(&classes(), None).ok()?;
    let marked = classes
        .into_iter()
        .filter(|c| c.0.get("globalDefault") == Some(&Value::Bool(true)));
    marked.min_by_key(|c| c.i64_at("/value").unwrap_or(0))
}

/// Resolves the class of a new pod.
pub fn admit(cluster: &dyn Reader, resource: &Resource, pod: &mut Object) -> Result<(), Status> {
    let name = pod.str_at("/spec/priorityClassName").to_owned();
    let class = if name.is_empty() {
        default_class(cluster)
    } else {
        let found = cluster.get(&classes(), "", &name);
        let why = format!("no PriorityClass with name {name} was found");
        Some(found.map_err(|_| forbidden(resource, pod, &why))?)
    };
    let value = class.as_ref().and_then(|c| c.i64_at("/value")).unwrap_or(0);
    let policy = class
        .as_ref()
        .map_or(LOWER, |c| c.str_at("/preemptionPolicy"))
        .to_owned();
    if let Some(given) = pod.i64_at("/spec/priority").filter(|given| *given != value) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from \
             the given PriorityClass name"
        );
        return Err(forbidden(resource, pod, &why));
    }
    if let Some(given) = pod
        .pointer("/spec/preemptionPolicy")
        .and_then(Value::as_str)
        .filter(|given| !policy.is_empty() && *given != policy)
    {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed \
             {policy} from the given PriorityClass name"
        );
        return Err(forbidden(resource, pod, &why));
    }
    let fields = spec(pod);
    if let Some(class) = class {
        fields.insert("priorityClassName".into(), class.name().into());
    }
    fields.insert("priority".into(), value.into());
    if !policy.is_empty() {
        fields.insert("preemptionPolicy".into(), policy.into());
    }
    Ok(())
}

/// An update without these fields keeps them.
pub fn keep(old: &Object, pod: &mut Object) {
    for field in ["priority", "preemptionPolicy"] {
        let before = old.pointer(&format!("/spec/{field}")).cloned();
        let fields = spec(pod);
        if let (false, Some(value)) = (fields.contains_key(field), before) {
            fields.insert(field.into(), value);
        }
    }
}

/// Rejects a second default class.
pub fn check(request: &Request<'_>, objects: Objects<'_>) -> Result<(), Status> {
    let Some(new) = objects
        .new
        .filter(|_| request.resource.table == "scheduling.k8s.io/priorityclasses")
    else {
        return Ok(());
    };
    if new.0.get("globalDefault") != Some(&Value::Bool(true)) {
        return Ok(());
    }
    let other = default_class(request.cluster)
        .filter(|class| objects.old.is_none() || class.name() != new.name());
    other.map_or(Ok(()), |class| {
        let why = format!(
            "PriorityClass {} is already marked as default. Only one default can exist",
            class.name()
        );
        Err(refusal(request, objects, &why))
    })
}

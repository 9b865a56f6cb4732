//! Deployment: rolls from one ReplicaSet to the next.
//!
//! Main function: [`reconcile`]. Each step plans one change (a scale or a creation) and the status;
//! that change triggers the next step, so no state is kept between them.

mod progress;
mod revision;
mod rolling;

use super::super::{
    fields::{
        int_or_percent, owned_object, same_meaning, set_metadata_map, set_spec, short_hash,
        spec_bool, spec_i64, status_i64, text,
    },
    kind::Kind,
    plan::{Note, Plan},
};
use super::pods;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::{Object, object::map_entry};

/// The label that distinguishes the pods of different templates.
pub const HASH_LABEL: &str = "pod-template-hash";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// The parts of a Deployment's spec that the steps need, with defaults.
struct Spec<'a> {
    object: &'a Object,
    replicas: i64,
    recreate: bool,
    max_surge: i64,
    max_unavailable: i64,
    paused: bool,
    /// `None`: no deadline.
    deadline: Option<i64>,
    history: usize,
}

impl<'a> Spec<'a> {
    fn read(object: &'a Object) -> Self {
        let replicas = spec_i64(object, "replicas", 1).max(0);
        let recreate = object.str_at("/spec/strategy/type") == "Recreate";
        let rolling = |field: &str| {
            object
                .pointer("/spec/strategy/rollingUpdate")
                .and_then(|r| r.get(field))
        };
        let quarter = Value::from("25%");
        let mut max_surge =
            int_or_percent(rolling("maxSurge").or(Some(&quarter)), replicas, true, 1);
        let mut max_unavailable = int_or_percent(
            rolling("maxUnavailable").or(Some(&quarter)),
            replicas,
            false,
            0,
        );
        if max_surge == 0 && max_unavailable == 0 {
            max_unavailable = 1;
        }
        max_unavailable = max_unavailable.min(replicas);
        if recreate {
            (max_surge, max_unavailable) = (0, 0);
        }
        let deadline = spec_i64(object, "progressDeadlineSeconds", 600);
        let history = usize::try_from(spec_i64(object, "revisionHistoryLimit", 10)).unwrap_or(10);
        let deadline = (deadline != i64::from(i32::MAX)).then_some(deadline);
        Self {
            object,
            replicas,
            recreate,
            max_surge,
            max_unavailable,
            paused: spec_bool(object, "paused"),
            deadline,
            history,
        }
    }

    fn max_total(&self) -> i64 {
        self.replicas + self.max_surge
    }

    fn template(&self) -> &Value {
        self.object
            .pointer("/spec/template")
            .unwrap_or(&Value::Null)
    }
}

/// The ReplicaSets of a Deployment: the one of the current template, and the others by age.
struct Sets {
    new: Option<Arc<Object>>,
    old: Vec<Arc<Object>>,
}

impl Sets {
    fn of(spec: &Spec<'_>, sets: &[Arc<Object>]) -> Self {
        let mut all = sets.to_vec();
        all.sort_by(|a, b| {
            (a.creation_timestamp(), a.name()).cmp(&(b.creation_timestamp(), b.name()))
        });
        let at = all.iter().position(|s| same_template(s, spec.template()));
        let new = at.map(|at| all.remove(at));
        Self { new, old: all }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.old.iter().chain(&self.new)
    }

    fn size(&self) -> i64 {
        self.all().map(|s| size(s)).sum()
    }
}

fn size(set: &Object) -> i64 {
    spec_i64(set, "replicas", 1)
}

fn available(set: &Object) -> i64 {
    status_i64(set, "availableReplicas")
}

/// Whether a ReplicaSet has this template, apart from the hash label.
fn same_template(set: &Object, template: &Value) -> bool {
    let mut own = set
        .pointer("/spec/template")
        .cloned()
        .unwrap_or(Value::Null);
    if let Some(Value::Object(labels)) = own.pointer_mut("/metadata/labels") {
        labels.remove(HASH_LABEL);
    }
    same_meaning(&own, template)
}

/// The next step of a Deployment. `sets` are its ReplicaSets; `pods_of` returns the pods of a
/// ReplicaSet by its uid.
pub fn reconcile(
    object: &Object,
    sets: &[Arc<Object>],
    pods_of: &dyn Fn(&str) -> Vec<Arc<Object>>,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::default();
    let spec = Spec::read(object);
    let sets = Sets::of(&spec, sets);
    if object.deletion_timestamp().is_some() {
        progress::status(&mut plan, &spec, &sets, false, now);
        return plan;
    }
    let revised = revision::sync(&mut plan, &spec, &sets);
    let mut created = false;
    if revised {
        // A ReplicaSet planned in this step is sized in the next one.
    } else if spec.paused || scaling_event(&spec, &sets) {
        rolling::scale_proportionally(&mut plan, &spec, &sets);
    } else if spec.recreate {
        created = recreate(&mut plan, &spec, &sets, pods_of);
    } else if sets.new.is_none() {
        created = create_set(&mut plan, &spec, &sets);
    } else {
        rolling::step(&mut plan, &spec, &sets);
    }
    revision::cleanup(&mut plan, &spec, &sets);
    progress::status(&mut plan, &spec, &sets, created, now);
    plan
}

/// Whether the Deployment's size has changed since its ReplicaSets were sized.
fn scaling_event(spec: &Spec<'_>, sets: &Sets) -> bool {
    let wanted = spec.replicas.to_string();
    sets.all()
        .any(|s| size(s) > 0 && s.annotation(DESIRED).is_some_and(|d| d != wanted))
}

fn recreate(
    plan: &mut Plan,
    spec: &Spec<'_>,
    sets: &Sets,
    pods_of: &dyn Fn(&str) -> Vec<Arc<Object>>,
) -> bool {
    let old: Vec<&Arc<Object>> = sets.old.iter().filter(|s| size(s) > 0).collect();
    if !old.is_empty() {
        for set in old {
            scale_set(plan, spec, set, 0);
        }
        return false;
    }
    if sets
        .old
        .iter()
        .any(|s| pods_of(s.uid()).iter().any(|p| !pods::is_ended(p)))
    {
        return false;
    }
    match &sets.new {
        None => return create_set(plan, spec, sets),
        Some(new) => scale_set(plan, spec, new, spec.replicas),
    }
    false
}

/// Plans a size for a ReplicaSet, with the annotations that record the Deployment's size. Does
/// nothing if all of that is up to date.
fn scale_set(plan: &mut Plan, spec: &Spec<'_>, set: &Object, replicas: i64) {
    let (desired, max) = (spec.replicas.to_string(), spec.max_total().to_string());
    let before = size(set);
    if before == replicas
        && set.annotation(DESIRED) == Some(&desired)
        && set.annotation(MAX) == Some(&max)
    {
        return;
    }
    let mut sized = set.clone();
    sized.set_annotation(DESIRED, &desired);
    sized.set_annotation(MAX, &max);
    set_spec(&mut sized, "replicas", replicas.into());
    let way = if replicas > before { "up" } else { "down" };
    let message = format!(
        "Scaled {way} replica set {} from {before} to {replicas}",
        set.name()
    );
    plan.update(
        sized,
        (before != replicas).then(|| Note::normal("ScalingReplicaSet", message)),
    );
}

fn create_set(plan: &mut Plan, spec: &Spec<'_>, sets: &Sets) -> bool {
    let collisions = status_i64(spec.object, "collisionCount");
    let hash = short_hash(spec.template(), collisions);
    let name = format!("{}-{hash}", spec.object.name());
    let replicas = if spec.recreate {
        spec.replicas
    } else {
        rolling::new_size(spec, sets, 0)
    };
    let mut set = owned_object(Kind::ReplicaSet, spec.object, &name);
    let mut template = spec.template().clone();
    if let Value::Object(map) = &mut template {
        map_entry(map_entry(map, "metadata"), "labels")
            .insert(HASH_LABEL.into(), hash.clone().into());
    }
    set_metadata_map(&mut set, "labels", template.pointer("/metadata/labels"));
    for (key, value) in revision::copied_annotations(spec.object) {
        set.set_annotation(&key, &value);
    }
    set.set_annotation(
        revision::REVISION,
        &(revision::highest(&sets.old) + 1).to_string(),
    );
    set.set_annotation(DESIRED, &spec.replicas.to_string());
    set.set_annotation(MAX, &spec.max_total().to_string());
    let mut selector = spec
        .object
        .pointer("/spec/selector")
        .cloned()
        .unwrap_or_else(|| json!({}));
    if let Value::Object(map) = &mut selector {
        map_entry(map, "matchLabels").insert(HASH_LABEL.into(), hash.into());
    }
    let mut body = json!({"replicas": replicas, "selector": selector, "template": template});
    let min_ready = spec_i64(spec.object, "minReadySeconds", 0);
    if min_ready != 0 {
        body["minReadySeconds"] = min_ready.into();
    }
    set.0.insert("spec".into(), body);
    let message = format!("Scaled up replica set {name} from 0 to {replicas}");
    plan.create(
        set,
        (replicas > 0).then(|| Note::normal("ScalingReplicaSet", message)),
    );
    true
}

/// The name of the next ReplicaSet, for conditions that are written together with its creation.
fn next_set_name(spec: &Spec<'_>) -> String {
    format!(
        "{}-{}",
        spec.object.name(),
        short_hash(spec.template(), status_i64(spec.object, "collisionCount"))
    )
}

fn failure_of(sets: &Sets) -> Option<Value> {
    let of = |s: &Arc<Object>| {
        let list = s.pointer("/status/conditions")?.as_array()?;
        list.iter()
            .find(|c| text(c, "type") == "ReplicaFailure")
            .cloned()
    };
    sets.new.iter().chain(&sets.old).find_map(of)
}

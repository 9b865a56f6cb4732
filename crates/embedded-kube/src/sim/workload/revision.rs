//! ControllerRevisions: the recorded pod templates of StatefulSets and DaemonSets.

use super::super::{
    fields::{owned_object, same_meaning, set_metadata_map, short_hash, spec_i64},
    kind::Kind,
    plan::Plan,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;

/// The label of pods and revisions with the name of the revision.
pub const REVISION_LABEL: &str = "controller-revision-hash";

/// The label of a StatefulSet's revisions.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// The revision of the current template and the earlier ones, oldest first.
pub struct Revisions {
    pub update: Arc<Object>,
    pub old: Vec<Arc<Object>>,
}

impl Revisions {
    /// A revision by its name.
    pub fn named(&self, name: &str) -> Option<&Arc<Object>> {
        self.old
            .iter()
            .chain([&self.update])
            .find(|r| r.name() == name)
    }
}

/// The revision's pod template.
pub fn template(revision: &Object) -> Value {
    let mut template = revision
        .pointer("/data/spec/template")
        .cloned()
        .unwrap_or(Value::Null);
    if let Value::Object(map) = &mut template {
        map.remove("$patch");
    }
    template
}

fn number(revision: &Object) -> i64 {
    revision
        .0
        .get("revision")
        .and_then(Value::as_i64)
        .unwrap_or(0)
}

/// Finds the revision of the current template, planning its creation or renumbering, and the
/// deletion of revisions beyond the limit. `in_use` are revisions that pods still have.
pub fn sync(
    plan: &mut Plan,
    owner: &Object,
    all: &[Arc<Object>],
    in_use: &dyn Fn(&str) -> bool,
) -> Revisions {
    let mut old = all.to_vec();
    old.sort_by(|a, b| (number(a), a.name()).cmp(&(number(b), b.name())));
    let wanted = owner
        .pointer("/spec/template")
        .cloned()
        .unwrap_or(Value::Null);
    let last = old.last().map_or(0, |r| number(r));
    let deleting = owner.deletion_timestamp().is_some();
    let update = match old.iter().position(|r| same_meaning(&template(r), &wanted)) {
        Some(at) => {
            let revision = old.remove(at);
            if number(&revision) < last && !deleting {
                let mut renumbered = Object::clone(&revision);
                renumbered.0.insert("revision".into(), (last + 1).into());
                plan.update(renumbered, None);
            }
            revision
        }
        None => {
            let revision = new_revision(owner, &wanted, last + 1);
            if !deleting {
                plan.create(revision.clone(), None);
            }
            Arc::new(revision)
        }
    };
    let limit = usize::try_from(spec_i64(owner, "revisionHistoryLimit", 10)).unwrap_or(10);
    let unused: Vec<&Arc<Object>> = old.iter().filter(|r| !in_use(r.name())).collect();
    if !deleting && unused.len() > limit {
        for revision in &unused[..unused.len() - limit] {
            plan.delete(revision, None);
        }
    }
    Revisions { update, old }
}

fn new_revision(owner: &Object, wanted: &Value, number: i64) -> Object {
    let hash = short_hash(wanted, 0);
    let mut revision = owned_object(
        Kind::ControllerRevision,
        owner,
        &format!("{}-{hash}", owner.name()),
    );
    set_metadata_map(&mut revision, "labels", wanted.pointer("/metadata/labels"));
    revision.set_label(
        if owner.kind() == "StatefulSet" {
            HASH_LABEL
        } else {
            REVISION_LABEL
        },
        &hash,
    );
    for (key, value) in owner.annotations() {
        if key != "kubectl.kubernetes.io/last-applied-configuration" {
            revision.set_annotation(&key, &value);
        }
    }
    let mut template = wanted.clone();
    template["$patch"] = "replace".into();
    revision
        .0
        .insert("data".into(), json!({"spec": {"template": template}}));
    revision.0.insert("revision".into(), number.into());
    revision
}

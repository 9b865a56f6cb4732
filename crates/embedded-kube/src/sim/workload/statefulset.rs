//! StatefulSet: numbered pods with their own claims, created, replaced and removed in order.

use super::super::{
    fields::{conditions, owner_reference, put_counts, set_metadata_map, spec_i64, text},
    kind::Kind,
    plan::{Note, Plan},
};
use super::{
    pods,
    revision::{self, REVISION_LABEL, Revisions},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_apimachinery::{Object, object::map_entry};

/// The pods and claims of a StatefulSet.
pub struct Members<'a> {
    pub pods: &'a [Arc<Object>],
    pub revisions: &'a [Arc<Object>],
    /// The claim with a given name in the namespace.
    pub claim: &'a dyn Fn(&str) -> Option<Arc<Object>>,
}

struct Spec<'a> {
    set: &'a Object,
    replicas: i64,
    start: i64,
    parallel: bool,
    partition: i64,
    on_delete: bool,
    min_ready: i64,
}

impl<'a> Spec<'a> {
    fn read(set: &'a Object) -> Self {
        Self {
            set,
            replicas: spec_i64(set, "replicas", 1).max(0),
            start: set.i64_at("/spec/ordinals/start").unwrap_or(0),
            parallel: set.str_at("/spec/podManagementPolicy") == "Parallel",
            partition: set
                .i64_at("/spec/updateStrategy/rollingUpdate/partition")
                .unwrap_or(0),
            on_delete: set.str_at("/spec/updateStrategy/type") == "OnDelete",
            min_ready: spec_i64(set, "minReadySeconds", 0),
        }
    }

    fn ordinal(&self, pod: &Object) -> Option<i64> {
        pod.name()
            .strip_prefix(self.set.name())?
            .strip_prefix('-')?
            .parse()
            .ok()
    }
}

/// The next step of a StatefulSet.
pub fn reconcile(set: &Object, members: &Members<'_>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let spec = Spec::read(set);
    let current = set.str_at("/status/currentRevision").to_owned();
    let in_use = |name: &str| {
        name == current
            || members
                .pods
                .iter()
                .any(|p| p.label(REVISION_LABEL) == Some(name))
    };
    let revisions = revision::sync(&mut plan, set, members.revisions, &in_use);
    if set.deletion_timestamp().is_none() {
        let by_ordinal: BTreeMap<i64, &Arc<Object>> = members
            .pods
            .iter()
            .filter_map(|p| Some((spec.ordinal(p)?, p)))
            .collect();
        for (ordinal, pod) in &by_ordinal {
            own_claims(&mut plan, &spec, *ordinal, pod, members);
        }
        manage(&mut plan, &spec, &by_ordinal, &revisions, members, now);
    }
    status(&mut plan, &spec, members.pods, &revisions, &current, now);
    plan
}

/// Sets the owner of a pod's claims, depending on the retention policy: the set if they are deleted
/// with it, the pod if it is beyond the set's size and they are deleted with that.
fn own_claims(plan: &mut Plan, spec: &Spec<'_>, ordinal: i64, pod: &Object, members: &Members<'_>) {
    let policy = |field: &str| {
        text(
            spec.set
                .pointer("/spec/persistentVolumeClaimRetentionPolicy")
                .unwrap_or(&Value::Null),
            field,
        ) == "Delete"
    };
    let (deleted, scaled) = (policy("whenDeleted"), policy("whenScaled"));
    let condemned = !(spec.start..spec.start + spec.replicas).contains(&ordinal);
    let owner = match (scaled && condemned, deleted) {
        (true, _) => Some(pod),
        (false, true) => Some(spec.set),
        (false, false) => None,
    };
    let templates = spec
        .set
        .pointer("/spec/volumeClaimTemplates")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for short in templates.filter_map(|t| t.pointer("/metadata/name")?.as_str()) {
        let Some(claim) = (members.claim)(&format!("{short}-{}", pod.name())) else {
            continue;
        };
        let ours = |uid: &str| uid == spec.set.uid() || uid == pod.uid();
        let mut wanted = Object::clone(&claim);
        let mut list = claim
            .metadata("ownerReferences")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        list.retain(|o| !ours(text(o, "uid")));
        list.extend(owner.map(owner_reference));
        wanted
            .metadata_mut()
            .insert("ownerReferences".into(), list.into());
        if !super::super::fields::same_object(&wanted, &claim) {
            plan.update(wanted, None);
        }
    }
}

fn is_available(spec: &Spec<'_>, pod: &Object, now: Timestamp) -> bool {
    pods::available_at(pod, spec.min_ready).is_some_and(|at| spec.min_ready == 0 || at <= now)
}

/// Creates, removes and replaces pods; in order, one at a time, unless the policy is Parallel.
fn manage(
    plan: &mut Plan,
    spec: &Spec<'_>,
    pods_by: &BTreeMap<i64, &Arc<Object>>,
    revisions: &Revisions,
    members: &Members<'_>,
    now: Timestamp,
) {
    let range = spec.start..spec.start + spec.replicas;
    for ordinal in range.clone() {
        let settled = match pods_by.get(&ordinal) {
            None => {
                create(plan, spec, ordinal, revisions, members);
                false
            }
            Some(pod) if pods::is_ended(pod) => {
                if pod.deletion_timestamp().is_none() {
                    delete(plan, spec, pod);
                }
                false
            }
            Some(pod) => pod.deletion_timestamp().is_none() && is_available(spec, pod, now),
        };
        if !settled && !spec.parallel {
            return;
        }
    }
    for (_, pod) in pods_by
        .iter()
        .rev()
        .filter(|(ordinal, _)| !range.contains(ordinal))
    {
        if pod.deletion_timestamp().is_none() {
            delete(plan, spec, pod);
        }
        if !spec.parallel {
            return;
        }
    }
    if spec.on_delete {
        return;
    }
    for ordinal in range
        .rev()
        .take_while(|o| *o >= spec.start + spec.partition)
    {
        let Some(pod) = pods_by.get(&ordinal) else {
            return;
        };
        if pod.label(REVISION_LABEL) != Some(revisions.update.name())
            && pod.deletion_timestamp().is_none()
        {
            delete(plan, spec, pod);
            return;
        }
        if pod.deletion_timestamp().is_some() || !is_available(spec, pod, now) {
            return;
        }
    }
}

fn delete(plan: &mut Plan, spec: &Spec<'_>, pod: &Object) {
    let message = format!(
        "Delete Pod {} in StatefulSet {} successful",
        pod.name(),
        spec.set.name()
    );
    plan.delete(pod, Some(Note::normal("SuccessfulDelete", message)));
}

fn create(
    plan: &mut Plan,
    spec: &Spec<'_>,
    ordinal: i64,
    revisions: &Revisions,
    members: &Members<'_>,
) {
    let set = spec.set;
    let name = format!("{}-{ordinal}", set.name());
    // Below the partition, a pod is recreated with its current revision.
    let current = revisions.named(set.str_at("/status/currentRevision"));
    let keeps = !spec.on_delete && ordinal < spec.start + spec.partition;
    let revision = current.filter(|_| keeps).unwrap_or(&revisions.update);
    let mut pod = pods::from_template(set, &revision::template(revision), &name);
    pod.metadata_mut()
        .insert("generateName".into(), pods::name_prefix(set.name()).into());
    pod.set_label(REVISION_LABEL, revision.name());
    pod.set_label("statefulset.kubernetes.io/pod-name", &name);
    pod.set_label("apps.kubernetes.io/pod-index", &ordinal.to_string());
    let body = map_entry(&mut pod.0, "spec");
    body.insert("hostname".into(), name.clone().into());
    let service = set.str_at("/spec/serviceName");
    if !service.is_empty() {
        body.insert("subdomain".into(), service.into());
    }
    let claims = set
        .pointer("/spec/volumeClaimTemplates")
        .and_then(Value::as_array);
    for claim in claims.into_iter().flatten() {
        let short = claim
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or("");
        let claim_name = format!("{short}-{name}");
        mount(body, short, &claim_name);
        if (members.claim)(&claim_name).is_none() {
            let message = format!(
                "Create Claim {claim_name} Pod {name} in StatefulSet {} success",
                set.name()
            );
            plan.create(
                new_claim(set, claim, &claim_name),
                Some(Note::normal("SuccessfulCreate", message)),
            );
        }
    }
    let message = format!("Create Pod {name} in StatefulSet {} successful", set.name());
    plan.create(pod, Some(Note::normal("SuccessfulCreate", message)));
}

fn mount(body: &mut Map<String, Value>, volume: &str, claim: &str) {
    let volumes = body.entry("volumes").or_insert_with(|| json!([]));
    if let Some(list) = volumes.as_array_mut() {
        list.retain(|v| text(v, "name") != volume);
        list.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
    }
}

fn new_claim(set: &Object, template: &Value, name: &str) -> Object {
    let mut claim = Object::skeleton(&Kind::PersistentVolumeClaim.gvk(), set.namespace(), name);
    set_metadata_map(&mut claim, "labels", template.pointer("/metadata/labels"));
    set_metadata_map(
        &mut claim,
        "annotations",
        template.pointer("/metadata/annotations"),
    );
    for (key, value) in set
        .pointer("/spec/selector/matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        claim.set_label(key, value.as_str().unwrap_or(""));
    }
    claim.0.insert(
        "spec".into(),
        template.get("spec").cloned().unwrap_or_else(|| json!({})),
    );
    claim
}

fn status(
    plan: &mut Plan,
    spec: &Spec<'_>,
    all: &[Arc<Object>],
    revisions: &Revisions,
    current: &str,
    now: Timestamp,
) {
    let update = revisions.update.name();
    let mut current = if current.is_empty() || revisions.named(current).is_none() {
        update
    } else {
        current
    };
    let counts = pods::count(all.iter(), spec.min_ready, now);
    let of = |name: &str| {
        all.iter()
            .filter(|p| p.deletion_timestamp().is_none() && p.label(REVISION_LABEL) == Some(name))
            .count()
    };
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let updated = number(of(update));
    let replicas = number(all.len());
    if !spec.on_delete
        && updated == spec.replicas
        && counts.ready == replicas
        && replicas == spec.replicas
    {
        current = update;
    }
    let mut status = Map::new();
    status.insert("replicas".into(), replicas.into());
    status.insert("availableReplicas".into(), counts.available.into());
    status.insert("currentRevision".into(), current.into());
    status.insert("updateRevision".into(), update.into());
    status.insert("collisionCount".into(), 0.into());
    put_counts(
        &mut status,
        &[
            ("observedGeneration", spec.set.generation()),
            ("readyReplicas", counts.ready),
            ("currentReplicas", number(of(current))),
            ("updatedReplicas", updated),
        ],
    );
    let list = conditions(spec.set);
    if !list.is_empty() {
        status.insert("conditions".into(), Value::Array(list));
    }
    plan.status(spec.set, Value::Object(status), Vec::new());
    if let Some(at) = counts.next.filter(|at| *at > now) {
        plan.wake_at(at);
    }
}

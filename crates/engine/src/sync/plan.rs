//! Computes the steps of a sync from a comparison and a request.
//!
//! Main type: [`SyncPlan`]: phases, in them waves, in them steps; the same value for controller,
//! CLI, UI and log. It contains what to do and in which order; what is already done is in
//! `progress`, so a plan can be computed again at any time.

use super::{
    hook::{self, DeletePolicy},
    missing, options, order,
    request::SyncRequest,
    step::{Action, Invalid, PruneRule, Refused, Step, SyncPhase},
    wave,
};
use crate::{
    diff,
    types::{Comparison, Entry, KindInfo},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tiphys_apimachinery::{GroupKind, Gvk, Kept, Object, ResourceKey};

/// Whether the project permits an object; the second argument is whether its kind is namespaced.
/// The error is shown to the user.
pub type Permit<'a> = dyn Fn(&Object, bool) -> Result<(), String> + 'a;

/// The steps of one sync in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncPlan {
    pub revision: String,
    pub dry_run: bool,
    pub phases: Vec<PhasePlan>,
    /// What will not happen, or not yet, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<Blocked>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhasePlan {
    pub phase: SyncPhase,
    pub waves: Vec<WavePlan>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WavePlan {
    pub wave: i64,
    /// What must happen first; empty for the first one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub waits_for: String,
    pub steps: Vec<Step>,
}

/// A step that is not executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocked {
    pub phase: SyncPhase,
    pub key: ResourceKey,
    pub reason: String,
}

impl SyncPlan {
    /// All steps in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.phases
            .iter()
            .flat_map(|p| p.waves.iter())
            .flat_map(|w| w.steps.iter())
    }
}

/// Plans a sync whose objects are all permitted.
pub fn plan(comparison: &Comparison, request: &SyncRequest, kinds: &dyn KindInfo) -> SyncPlan {
    plan_with(comparison, request, kinds, &|_, _| Ok(()))
}

/// Plans a sync; an object that the project does not permit makes its step invalid.
pub fn plan_with(
    comparison: &Comparison,
    request: &SyncRequest,
    kinds: &dyn KindInfo,
    permit: &Permit,
) -> SyncPlan {
    let planner = Planner {
        comparison,
        request,
        kinds,
        permit,
        crds: missing::defined(comparison),
    };
    let mut steps = planner.steps();
    mirror_prune_waves(&mut steps);
    move_prunes_last(&mut steps, comparison, request);
    order::sort(&mut steps);
    let mut plan = arrange(steps, request);
    plan.blocked.extend(left_out(comparison, request));
    plan
}

struct Planner<'a> {
    comparison: &'a Comparison,
    request: &'a SyncRequest,
    kinds: &'a dyn KindInfo,
    permit: &'a Permit<'a>,
    /// The kinds that CRDs among the targets define.
    crds: BTreeMap<GroupKind, missing::Defined>,
}

impl Planner<'_> {
    fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = self
            .comparison
            .entries
            .iter()
            .filter_map(|e| self.resource(e))
            .collect();
        if !self.request.skips_hooks() {
            self.hooks(&mut steps);
        }
        steps.extend(self.namespace());
        let_hooks_replace(&mut steps);
        let mut seen = BTreeSet::new();
        steps.retain(|s| seen.insert(s.step_key()));
        for step in &mut steps {
            if let Some(target) = &step.target {
                step.refused = self.refused(target);
            }
            step.invalid = self.invalid(step);
            step.skip_dry_run = !step.is_prune() && self.is_to_come(step);
        }
        steps
    }

    /// Whether the cluster does not have a step's kind yet, or not in this version: discovery does
    /// not know it, or still knows it from a deleted CRD that this sync creates again.
    fn is_to_come(&self, step: &Step) -> bool {
        let gk = &step.gvk.group_kind();
        !self.kinds.serves(&step.gvk)
            || (!step.unchanged && self.crds.get(gk).is_some_and(|kind| kind.is_created))
    }

    /// A resource to be applied, or one to be pruned.
    fn resource(&self, entry: &Entry) -> Option<Step> {
        if !self.request.selects(&entry.key) {
            return None;
        }
        let tree = |kept: &Option<Arc<Kept>>| kept.as_ref().map(|k| k.object());
        let (desired, live) = (tree(&entry.desired), tree(&entry.live));
        let object = desired.as_deref().or(live.as_deref())?;
        if hook::is_hook(object) || hook::is_skip(object) {
            return None;
        }
        let Some(desired) = &desired else {
            return self.prune(entry, object);
        };
        let mut step = self.write(
            self.target(desired, live.as_deref()),
            SyncPhase::Sync,
            Action::Apply,
        );
        if let Some(live) = &live {
            // The scope of a live object is certain.
            step.key.clone_from(&entry.key);
            step.replace |= options::has(live, "Replace=true");
            step.force |= options::has(live, "Force=true");
            step.unchanged = self.request.options.apply_out_of_sync_only && !entry.diff.modified;
        }
        Some(step)
    }

    /// The object to apply: the desired object or, with RespectIgnoreDifferences, one that keeps
    /// the live values of ignored fields.
    fn target(&self, desired: &Object, live: Option<&Object>) -> Object {
        let live = live.filter(|_| self.request.options.respect_ignore_differences);
        let options = diff::Options::from(&*self.comparison.rules);
        live.map_or_else(
            || desired.clone(),
            |live| diff::respecting(desired, live, &options),
        )
    }

    fn prune(&self, entry: &Entry, live: &Object) -> Option<Step> {
        // Without a target, but not extra: copied tracking metadata, or some targets could not be
        // read.
        if !entry.requires_pruning {
            return None;
        }
        // Nor a namespace that this sync would have to create again, empty.
        if self.request.options.create_namespace
            && entry.key == ResourceKey::new("", "Namespace", "", &self.request.dest_namespace)
        {
            return None;
        }
        let value = options::prune_value(live, self.request.options.prune.as_deref());
        let rule = match value {
            _ if !self.request.prune => PruneRule::NotRequested,
            Some("false") => PruneRule::Disabled,
            Some("confirm") if !self.request.prune_confirmed => PruneRule::Unconfirmed,
            _ => PruneRule::Delete,
        };
        let mut step = blank(live, SyncPhase::Sync, Action::Prune(rule));
        step.gvk = live.gvk();
        step.key.clone_from(&entry.key);
        step.result_namespace = live.namespace().to_owned();
        step.uid = live.uid().to_owned();
        step.refused = self.refused(live);
        // A live object of a kind that no longer exists goes away by itself.
        let namespaced = self.kinds.is_namespaced(&step.gvk.group_kind());
        step.invalid = namespaced
            .and_then(|namespaced| step.refused.at(namespaced))
            .map(|why| invalid(why.to_owned()));
        Some(step)
    }

    /// Each hook in each of its phases. Hooks with only `generateName` get unique names.
    fn hooks(&self, steps: &mut Vec<Step>) {
        let named = |object: &Object| !object.name().is_empty();
        let objects: Vec<Arc<Object>> = self
            .comparison
            .hooks
            .iter()
            .map(|object| object.object())
            .collect();
        let (given, generated): (Vec<_>, Vec<_>) = objects.iter().partition(|object| named(object));
        for object in given.into_iter().chain(generated) {
            for phase in hook::phases(object) {
                let mut target = hook::prepare(object, &self.request.operation_id, phase);
                if !named(&target) {
                    let suffix = hook::generated_suffix(
                        &self.request.revision,
                        phase,
                        self.request.started_at,
                    );
                    let has_name = |step: &Step, name: &str| {
                        step.key.name == name && step.gvk.group_kind() == target.gvk().group_kind()
                    };
                    let is_taken = |name: &str| steps.iter().any(|step| has_name(step, name));
                    target.set_name(&hook::generated_name(
                        object.generate_name(),
                        &suffix,
                        is_taken,
                    ));
                }
                steps.push(self.hook(target, phase));
            }
        }
    }

    fn hook(&self, target: Object, phase: SyncPhase) -> Step {
        let policies = hook::delete_policies(&target);
        let mut step = self.write(target, phase, Action::RunHook);
        step.delete_policies = policies;
        step
    }

    /// A step that writes a target: fills in its namespace and reads its options.
    fn write(&self, mut target: Object, phase: SyncPhase, action: Action) -> Step {
        let options = &self.request.options;
        let gk = GroupKind::new(target.group(), target.kind());
        let namespaced = self
            .kinds
            .is_namespaced(&gk)
            .or_else(|| self.crds.get(&gk).map(|kind| kind.crd.namespaced))
            .unwrap_or(true);
        let namespace = if target.namespace().is_empty() {
            self.request.dest_namespace.clone()
        } else {
            target.namespace().to_owned()
        };
        target.set_namespace(if namespaced { &namespace } else { "" });
        let mut step = blank(&target, phase, action);
        step.result_namespace = namespace;
        step.replace = options.replace || options::has(&target, "Replace=true");
        step.force = self.request.force || options::has(&target, "Force=true");
        step.server_side = !options::has(&target, "ServerSideApply=false")
            && (options.server_side_apply || options::has(&target, "ServerSideApply=true"));
        step.validate = options.validate && !options::has(&target, "Validate=false");
        step.images = images(&target);
        step.target = Some(Arc::new(target));
        step
    }

    /// The destination namespace, if it is to be created and no target is that namespace.
    fn namespace(&self) -> Option<Step> {
        let name = self.request.dest_namespace.as_str();
        let desired = || {
            self.comparison
                .entries
                .iter()
                .filter_map(|e| e.desired.as_ref())
        };
        let managed =
            desired().any(|o| o.kind() == "Namespace" && o.group().is_empty() && o.name() == name);
        if !self.request.options.create_namespace || name.is_empty() || managed {
            return None;
        }
        let mut target = Object::skeleton(&Gvk::new("", "v1", "Namespace"), "", name);
        let metadata = self.request.namespace_metadata.as_ref();
        if let Some(metadata) = metadata {
            metadata
                .labels
                .iter()
                .for_each(|(k, v)| target.set_label(k, v));
            metadata
                .annotations
                .iter()
                .for_each(|(k, v)| target.set_annotation(k, v));
            // Other labels and annotations of the namespace are not ours to remove.
            target.set_annotation(options::SYNC_OPTIONS, "ServerSideApply=true");
        }
        let mut step = self.write(
            target,
            SyncPhase::PreSync,
            Action::CreateNamespace {
                always: metadata.is_some(),
            },
        );
        step.result_namespace = String::new();
        Some(step)
    }

    fn invalid(&self, step: &Step) -> Option<Invalid> {
        let gk = step.gvk.group_kind();
        let Some(target) = &step.target else {
            return step.invalid.clone();
        };
        let refused = match self.kinds.is_namespaced(&gk) {
            Some(namespaced) => step.refused.at(namespaced),
            // Only a kind that is certainly missing can be expected to be created by this sync.
            None => match self.kinds.failure(&gk) {
                Some(why) => return Some(missing::undiscovered(step, &why)),
                None => self.refused_already(&step.refused, &gk),
            },
        };
        if let Some(why) = refused {
            return Some(invalid(why.to_owned()));
        }
        if self.kinds.serves(&step.gvk) {
            return None;
        }
        let expected = self.request.options.skip_dry_run_on_missing_resource
            || options::has(target, "SkipDryRunOnMissingResource=true")
            || self
                .crds
                .get(&gk)
                .is_some_and(|kind| kind.crd.serves(&step.gvk.version));
        (!expected).then(|| missing::invalid(step, self.kinds))
    }

    fn refused(&self, object: &Object) -> Refused {
        Refused::ask(|namespaced| (self.permit)(object, namespaced))
    }

    /// The project is also asked about kinds that do not exist yet. If the scope is not known
    /// either, one of the two scopes must be permitted; whoever executes the step refuses it if the
    /// kind turns out to have the other one.
    fn refused_already<'r>(&self, refused: &'r Refused, gk: &GroupKind) -> Option<&'r str> {
        match self.crds.get(gk) {
            Some(kind) => refused.at(kind.crd.namespaced),
            None => refused.at(false).and(refused.at(true)),
        }
    }
}

fn invalid(why: String) -> Invalid {
    Invalid {
        reason: why.clone(),
        message: why,
    }
}

fn blank(object: &Object, phase: SyncPhase, action: Action) -> Step {
    Step {
        id: String::new(),
        phase,
        wave: wave::of(object),
        action,
        gvk: object.gvk(),
        key: object.key(),
        result_namespace: String::new(),
        target: None,
        uid: String::new(),
        replace: false,
        force: false,
        server_side: false,
        validate: true,
        skip_dry_run: false,
        unchanged: false,
        delete_policies: Vec::new(),
        images: images(object),
        invalid: None,
        refused: Refused::default(),
    }
}

/// The images of a workload's containers.
fn images(object: &Object) -> Vec<String> {
    let paths = [
        "/spec/containers",
        "/spec/template/spec/containers",
        "/spec/jobTemplate/spec/template/spec/containers",
    ];
    let containers = paths
        .iter()
        .find_map(|p| object.pointer(p).and_then(Value::as_array));
    let image = |c: &Value| c.get("image").and_then(Value::as_str).map(str::to_owned);
    containers
        .map(|list| list.iter().filter_map(image).collect())
        .unwrap_or_default()
}

/// A resource that became a hook is replaced when the hook is created. A separate prune could run
/// after that and delete the hook; and applying the hook over a finished Job would never run it.
fn let_hooks_replace(steps: &mut Vec<Step>) {
    let pruned: BTreeSet<ResourceKey> = steps
        .iter()
        .filter(|s| s.action == Action::Prune(PruneRule::Delete))
        .map(|s| s.key.clone())
        .collect();
    let mut replaced = BTreeSet::new();
    for hook in steps
        .iter_mut()
        .filter(|s| s.is_hook() && s.phase != SyncPhase::SyncFail)
    {
        if pruned.contains(&hook.key) && !hook.has_policy(DeletePolicy::BeforeHookCreation) {
            hook.delete_policies
                .insert(0, DeletePolicy::BeforeHookCreation);
        }
        if hook.has_policy(DeletePolicy::BeforeHookCreation) {
            replaced.insert(hook.key.clone());
        }
    }
    steps.retain(|s| !s.is_prune() || !replaced.contains(&s.key));
}

/// Objects are pruned in reverse order of creation: the first wave that prunes is swapped with the
/// last, and so on inwards.
fn mirror_prune_waves(steps: &mut [Step]) {
    let waves: BTreeSet<i64> = steps
        .iter()
        .filter(|s| s.is_prune())
        .map(|s| s.wave)
        .collect();
    let mirror: BTreeMap<i64, i64> = waves
        .iter()
        .copied()
        .zip(waves.iter().rev().copied())
        .collect();
    for step in steps.iter_mut().filter(|s| s.is_prune()) {
        step.wave = mirror[&step.wave];
    }
}

/// `PruneLast=true`: one wave after all others of the Sync phase.
fn move_prunes_last(steps: &mut [Step], comparison: &Comparison, request: &SyncRequest) {
    let last = steps
        .iter()
        .filter(|s| s.phase == SyncPhase::Sync)
        .map(|s| s.wave)
        .max()
        .unwrap_or(0)
        .max(0)
        + 1;
    let by_annotation: BTreeSet<&ResourceKey> = comparison
        .entries
        .iter()
        .filter(|e| {
            e.desired.is_none()
                && e.live
                    .as_ref()
                    .is_some_and(|l| options::has(&l.object(), "PruneLast=true"))
        })
        .map(|e| &e.key)
        .collect();
    for step in steps.iter_mut().filter(|s| s.is_prune()) {
        if request.options.prune_last || by_annotation.contains(&step.key) {
            step.wave = last;
        }
    }
}

/// Groups sorted steps into phases and waves.
fn arrange(steps: Vec<Step>, request: &SyncRequest) -> SyncPlan {
    let mut plan = SyncPlan {
        revision: request.revision.clone(),
        dry_run: request.dry_run,
        ..SyncPlan::default()
    };
    let mut previous: Option<(SyncPhase, i64)> = None;
    for mut step in steps {
        // Only now, because sorting may have moved it to another phase.
        step.id = step.step_key().to_string();
        if let Some(reason) = blocked_reason(&step) {
            plan.blocked.push(Blocked {
                phase: step.phase,
                key: step.key.clone(),
                reason,
            });
        }
        let group = step.group();
        if previous != Some(group) {
            if plan.phases.last().map(|p| p.phase) != Some(step.phase) {
                plan.phases.push(PhasePlan {
                    phase: step.phase,
                    waves: Vec::new(),
                });
            }
            let waits_for = match previous {
                _ if step.phase == SyncPhase::SyncFail => "a failure of the sync".to_owned(),
                Some((phase, wave)) => format!("{phase} wave {wave} to be healthy and complete"),
                None => String::new(),
            };
            let waves = &mut plan
                .phases
                .last_mut()
                .expect("a phase was pushed above")
                .waves;
            waves.push(WavePlan {
                wave: step.wave,
                waits_for,
                steps: Vec::new(),
            });
            previous = Some(group);
        }
        let wave = plan
            .phases
            .last_mut()
            .and_then(|p| p.waves.last_mut())
            .expect("a wave was pushed above");
        wave.steps.push(step);
    }
    plan
}

/// Hooks that this sync does not run.
fn left_out(comparison: &Comparison, request: &SyncRequest) -> Vec<Blocked> {
    if !request.skips_hooks() {
        return Vec::new();
    }
    let why = if request.strategy_apply {
        "hooks do not run with the apply strategy"
    } else {
        "hooks do not run in a selective sync"
    };
    let blocked = |hook: &Object| {
        let phase = hook::phases(hook).first().copied()?;
        let mut key = hook.key();
        if key.namespace.is_empty() {
            key.namespace.clone_from(&request.dest_namespace);
        }
        Some(Blocked {
            phase,
            key,
            reason: why.into(),
        })
    };
    comparison
        .hooks
        .iter()
        .filter_map(|hook| blocked(&hook.object()))
        .collect()
}

fn blocked_reason(step: &Step) -> Option<String> {
    if let Some(invalid) = &step.invalid {
        return Some(invalid.reason.clone());
    }
    match step.action {
        Action::Prune(PruneRule::NotRequested) => Some("ignored (requires pruning)".into()),
        Action::Prune(PruneRule::Disabled) => Some("ignored (no prune)".into()),
        Action::Prune(PruneRule::Unconfirmed) => Some("waiting for pruning confirmation".into()),
        _ => None,
    }
}

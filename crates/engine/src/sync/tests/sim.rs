//! A cluster in a map: carries effects out, lets time pass, and can forget everything between two steps.

use crate::{
    sync::{
        ApplyMode, Decision, Effect, Observed, OperationPhase, Outcome, Progress, ResourceResult, SyncPlan, SyncRequest, Write, hook, next,
        plan_with, record,
    },
    types::{CompareRules, Comparison, Diff, Entry, Health, HealthStatus, IgnoreRule, KindInfo, SyncStatus, Tracking},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tiphys_apimachinery::{GroupKind, Object, ResourceKey};

pub const NS: &str = "app-ns";
pub const OPERATION: &str = "op-1";

pub fn object(value: Value) -> Object {
    Object::from_value(value).expect("a map")
}

/// An object of a built-in kind in the destination namespace.
pub fn make(kind: &str, name: &str) -> Object {
    let api_version = match kind {
        "Deployment" | "StatefulSet" => "apps/v1",
        "Job" => "batch/v1",
        "ClusterRole" => "rbac.authorization.k8s.io/v1",
        "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
        "Widget" => "example.com/v1",
        _ => "v1",
    };
    let mut o = object(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}));
    if !cluster_scoped(kind) {
        o.set_namespace(NS);
    }
    o
}

pub fn cluster_scoped(kind: &str) -> bool {
    ["Namespace", "ClusterRole", "CustomResourceDefinition"].contains(&kind)
}

pub fn with(mut object: Object, annotations: &[(&str, &str)]) -> Object {
    for (key, value) in annotations {
        object.set_annotation(key, value);
    }
    object
}

pub fn wave(object: Object, wave: i64) -> Object {
    with(object, &[("argocd.argoproj.io/sync-wave", &wave.to_string())])
}

pub fn options(object: Object, options: &str) -> Object {
    with(object, &[("argocd.argoproj.io/sync-options", options)])
}

/// A Job that is a hook.
pub fn hook_job(name: &str, types: &str, policies: &str) -> Object {
    let o = with(make("Job", name), &[("argocd.argoproj.io/hook", types)]);
    if policies.is_empty() { o } else { with(o, &[("argocd.argoproj.io/hook-delete-policy", policies)]) }
}

/// The CRD of `example.com/Widget`.
pub fn widget_crd() -> Object {
    let mut o = make("CustomResourceDefinition", "widgets.example.com");
    o.0.insert("spec".into(), json!({"group": "example.com", "names": {"kind": "Widget"}, "scope": "Namespaced"}));
    o
}

/// Where a run is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Decided, but nothing done.
    BeforeEffects,
    /// Half of the effects done, nothing recorded.
    MidEffects,
    /// Done, but not recorded.
    AfterEffects,
    /// Recorded and stored, then forgotten.
    AfterRecord,
}

pub struct Sim {
    pub desired: Vec<Object>,
    pub hooks: Vec<Object>,
    pub request: SyncRequest,
    pub world: BTreeMap<ResourceKey, Object>,
    /// Health by name; what comes next is taken each time the sync waits. The last one stays.
    pub health: BTreeMap<String, Vec<HealthStatus>>,
    /// Errors by `<verb> <name>`; `!` in front of the message means "not found".
    pub errors: BTreeMap<String, String>,
    pub unknown_kinds: BTreeSet<String>,
    pub not_permitted: BTreeSet<String>,
    pub modified: BTreeMap<String, bool>,
    /// Objects that stay when they are deleted, until the sync waited this often.
    pub slow_deletions: BTreeMap<String, usize>,
    pub progress: Progress,
    pub stored: Option<(String, String)>,
    pub log: Vec<String>,
    pub writes: Vec<Write>,
    pub messages: Vec<String>,
    pub now: Timestamp,
    pub created_hooks: BTreeMap<String, usize>,
    /// JSON pointers that a comparison ignores.
    pub ignored: Vec<String>,
    /// Names that the cache does not show yet.
    pub unseen: BTreeSet<String>,
    kept: Option<SyncPlan>,
    uids: Cell<u64>,
}

impl KindInfo for Sim {
    fn is_namespaced(&self, gk: &GroupKind) -> Option<bool> {
        let crd_live = || self.world.values().any(|o| o.kind() == "CustomResourceDefinition" && o.str_at("/spec/names/kind") == gk.kind);
        (!self.unknown_kinds.contains(&gk.kind) || crd_live()).then(|| !cluster_scoped(&gk.kind))
    }
}

impl Sim {
    pub fn new(desired: Vec<Object>) -> Self {
        let (hooks, desired): (Vec<Object>, Vec<Object>) = desired.into_iter().partition(hook::is_hook);
        let now: Timestamp = "2024-05-01T10:00:00Z".parse().expect("a timestamp");
        let request = SyncRequest {
            operation_id: OPERATION.into(),
            revision: "abcdef0123456789".into(),
            started_at: now,
            prune: true,
            dest_namespace: NS.into(),
            ..SyncRequest::default()
        };
        Self {
            desired,
            hooks,
            request,
            world: BTreeMap::new(),
            health: BTreeMap::new(),
            errors: BTreeMap::new(),
            unknown_kinds: BTreeSet::new(),
            not_permitted: BTreeSet::new(),
            modified: BTreeMap::new(),
            slow_deletions: BTreeMap::new(),
            progress: Progress::new(OPERATION),
            stored: None,
            log: Vec::new(),
            writes: Vec::new(),
            messages: Vec::new(),
            now,
            created_hooks: BTreeMap::new(),
            ignored: Vec::new(),
            unseen: BTreeSet::new(),
            kept: None,
            uids: Cell::new(0),
        }
    }

    pub fn sync_options(mut self, list: &[&str]) -> Self {
        self.request.options = crate::sync::SyncOptions::parse(list);
        self
    }

    pub fn ignoring(mut self, pointer: &str) -> Self {
        self.ignored.push(pointer.into());
        self
    }

    pub fn error(mut self, effect: &str, message: &str) -> Self {
        self.errors.insert(effect.into(), message.into());
        self
    }

    pub fn healthy(mut self, name: &str, then: &[HealthStatus]) -> Self {
        self.health.insert(name.into(), then.to_vec());
        self
    }

    /// Puts an object into the cluster, as if it had always been there.
    pub fn existing(mut self, object: Object) -> Self {
        self.put(object);
        self
    }

    fn fresh(&self) -> u64 {
        self.uids.set(self.uids.get() + 1);
        self.uids.get()
    }

    pub fn put(&mut self, mut object: Object) -> Object {
        let key = object.key();
        let uid = match self.world.get(&key) {
            Some(old) => old.uid().to_owned(),
            None => format!("uid-{}", self.fresh()),
        };
        let version = self.fresh().to_string();
        object.metadata_mut().insert("uid".into(), uid.into());
        object.metadata_mut().insert("resourceVersion".into(), version.into());
        if object.kind() == "CustomResourceDefinition" {
            object.0.insert("status".into(), json!({"conditions": [{"type": "Established", "status": "True"}]}));
        }
        self.world.insert(key, object.clone());
        object
    }

    pub fn live(&self, kind: &str, name: &str) -> Option<&Object> {
        self.world.values().find(|o| o.kind() == kind && o.name() == name)
    }

    pub fn comparison(&self) -> Comparison {
        let entry = |desired: Option<&Object>, live: Option<&Object>| {
            let o = desired.or(live).expect("one of them is there");
            let key = live.unwrap_or(o).key();
            let modified = self.modified.get(o.name()).copied().unwrap_or(true);
            Entry {
                key,
                gvk: o.gvk(),
                desired: desired.cloned(),
                live: live.cloned().map(Arc::new),
                diff: Diff { modified, ..Diff::default() },
                status: Some(SyncStatus::OutOfSync),
                health: None,
                hook: hook::is_hook(o),
                requires_pruning: desired.is_none(),
                requires_deletion_confirmation: false,
                sync_wave: 0,
            }
        };
        let mut entries: Vec<Entry> = self.desired.iter().map(|d| entry(Some(d), self.world.get(&d.key()))).collect();
        let wanted: BTreeSet<ResourceKey> = self.desired.iter().map(Object::key).collect();
        let untracked = |o: &Object| o.label("untracked").is_some() || o.kind() == "Namespace";
        entries.extend(self.world.iter().filter(|(k, o)| !wanted.contains(k) && !untracked(o)).map(|(_, o)| entry(None, Some(o))));
        let mut rules = CompareRules::new(Tracking::annotation("app"), "argocd", "app", "https://kubernetes.default.svc", NS);
        let any = IgnoreRule { group: "*".into(), kind: "*".into(), json_pointers: self.ignored.clone(), ..IgnoreRule::default() };
        rules.ignore_differences.push(any);
        Comparison {
            entries,
            hooks: self.hooks.clone(),
            delete_hooks: Vec::new(),
            conditions: Vec::new(),
            sync: SyncStatus::OutOfSync,
            health: Health::new(HealthStatus::Healthy, ""),
            unanswered: Vec::new(),
            images: Vec::new(),
            external_urls: Vec::new(),
            rules,
        }
    }

    /// Keeps the plan as it is now, instead of making it anew in every turn.
    pub fn keep_plan(&mut self) {
        self.kept = None;
        self.kept = Some(self.plan());
    }

    pub fn plan(&self) -> SyncPlan {
        if let Some(plan) = &self.kept {
            return plan.clone();
        }
        let permit = |o: &Object, _namespaced: bool| match self.not_permitted.contains(o.name()) {
            true => Err(format!("resource {}:{} is not permitted in project p", o.group(), o.kind())),
            false => Ok(()),
        };
        plan_with(&self.comparison(), &self.request, self, &permit)
    }

    fn health_of(&self, o: &Object) -> Option<Health> {
        let default = ["Deployment", "Job", "Pod", "StatefulSet"].contains(&o.kind()).then_some(HealthStatus::Healthy);
        let status = self.health.get(o.name()).and_then(|h| h.first().copied()).or(default)?;
        Some(Health::new(status, format!("{} is {status}", o.name())))
    }

    pub fn decide(&self) -> Decision {
        self.decide_by(&self.plan())
    }

    fn decide_by(&self, plan: &SyncPlan) -> Decision {
        let live = |key: &ResourceKey| self.world.get(key).filter(|o| !self.unseen.contains(o.name())).cloned().map(Arc::new);
        let health = |o: &Object| self.health_of(o);
        next(plan, Observed { live: &live, health: &health }, &self.progress, &self.request, self.now)
    }

    /// One turn of the caller's loop.
    pub fn turn(&mut self) -> Decision {
        self.turn_cut(None)
    }

    pub fn turn_cut(&mut self, cut: Option<Cut>) -> Decision {
        let plan = self.plan();
        let decision = self.decide_by(&plan);
        self.progress = decision.progress.clone();
        if decision.must_store || decision.effects.is_empty() {
            self.store();
        }
        self.messages.push(format!("{}: {}", decision.phase, decision.message));
        if cut == Some(Cut::BeforeEffects) {
            return decision;
        }
        let many = if cut == Some(Cut::MidEffects) { decision.effects.len().div_ceil(2) } else { decision.effects.len() };
        let outcomes: Vec<Outcome> = (0..many).map(|i| self.execute(i, &decision.effects[i])).collect();
        if matches!(cut, Some(Cut::MidEffects | Cut::AfterEffects)) {
            return decision;
        }
        let health = |o: &Object| self.health_of(o);
        self.progress = record(&plan, decision.progress.clone(), &decision.effects, &outcomes, &health, self.now);
        self.store();
        decision
    }

    fn store(&mut self) {
        let results = serde_json::to_string(&self.progress.to_results()).expect("results are JSON");
        self.stored = Some((results, self.progress.to_annotation()));
    }

    /// Forgets everything that was not stored.
    pub fn restart(&mut self, keep_annotation: bool) {
        let (results, annotation) = self.stored.clone().unwrap_or_else(|| ("[]".into(), String::new()));
        let results: Vec<ResourceResult> = serde_json::from_str(&results).expect("results are JSON");
        self.progress = Progress::from_annotation(results, keep_annotation.then_some(annotation.as_str()), OPERATION);
    }

    /// Lets time pass until the sync has something to do.
    pub fn idle(&mut self, decision: &Decision) {
        let wake = decision.wake_after.expect("a sync without effects says when to ask again");
        self.pass(wake);
    }

    pub fn pass(&mut self, time: Duration) {
        self.now = self.now.checked_add(SignedDuration::try_from(time).expect("a short time")).expect("not the end of time");
        let there: BTreeSet<&str> = self.world.values().map(Object::name).collect();
        for (_, list) in self.health.iter_mut().filter(|(name, list)| list.len() > 1 && there.contains(name.as_str())) {
            list.remove(0);
        }
        self.unseen.clear();
        self.collect();
    }

    /// Removes deleted objects that nothing holds any more.
    fn collect(&mut self) {
        let slow = &mut self.slow_deletions;
        self.world.retain(|_, o| {
            let held = !o.finalizers().is_empty() || slow.get(o.name()).is_some_and(|n| *n > 0);
            if let Some(n) = slow.get_mut(o.name()).filter(|_| o.deletion_timestamp().is_some()) {
                *n = n.saturating_sub(1);
            }
            o.deletion_timestamp().is_none() || held
        });
    }

    /// Runs to the end and gives the last decision.
    pub fn run(&mut self) -> Decision {
        for _ in 0..300 {
            let decision = self.turn();
            if decision.phase.completed() {
                assert!(decision.effects.is_empty(), "a terminal decision has no effects");
                return decision;
            }
            if decision.effects.is_empty() {
                self.idle(&decision);
            }
        }
        panic!("the sync did not end: {:#?}", self.messages);
    }

    /// Runs until it waits, and gives the decision that says for what.
    pub fn run_to_wait(&mut self) -> Decision {
        for _ in 0..300 {
            let decision = self.turn();
            if decision.effects.is_empty() {
                return decision;
            }
        }
        panic!("the sync neither waits nor ends: {:#?}", self.log);
    }

    fn execute(&mut self, index: usize, effect: &Effect) -> Outcome {
        let step = effect.step();
        let line = format!("{} {}", effect.verb(), step.key.name);
        self.log.push(line.clone());
        if let Some(error) = self.errors.get(&line) {
            return match error.strip_prefix('!') {
                Some(message) => {
                    let message = message.to_owned();
                    self.world.remove(&step.key);
                    Outcome::not_found(index, message)
                }
                None => Outcome::failed(index, error.clone()),
            };
        }
        match effect {
            Effect::DryRun(w) => {
                self.writes.push(w.clone());
                Outcome::ok(index, None, format!("{} dry run", w.step.key.name))
            }
            Effect::Apply(w) | Effect::RunHook(w) => self.write(index, w),
            Effect::Prune { uid, .. } | Effect::DeleteHook { uid, .. } => self.delete(index, &step.key, uid),
            Effect::RemoveFinalizer { finalizer, .. } => self.remove_finalizer(index, &step.key, finalizer),
            Effect::MigrateManagers { manager, .. } => {
                let Some(live) = self.world.get_mut(&step.key) else { return Outcome::not_found(index, "not found") };
                if let Some(Value::Array(list)) = live.metadata_mut().get_mut("managedFields") {
                    list.retain(|e| e["manager"] != manager.as_str());
                }
                Outcome::ok(index, Some(live.clone()), "")
            }
            Effect::Read { .. } => match self.world.get(&step.key) {
                Some(live) => Outcome::ok(index, Some(live.clone()), ""),
                None => Outcome::not_found(index, "not found"),
            },
        }
    }

    fn write(&mut self, index: usize, write: &Write) -> Outcome {
        self.writes.push(write.clone());
        let target = write.step.target.as_deref().expect("a step that writes has a target").clone();
        let exists = self.world.contains_key(&target.key());
        if write.mode == ApplyMode::Create && exists {
            return Outcome::failed(index, "already exists");
        }
        if write.step.is_hook() && !exists {
            *self.created_hooks.entry(write.step.step_key().to_string()).or_default() += 1;
        }
        let live = self.put(target);
        let verb = if exists { "configured" } else { "created" };
        Outcome::ok(index, Some(live), format!("{}/{} {verb}", write.step.gvk.kind.to_lowercase(), write.step.key.name))
    }

    fn delete(&mut self, index: usize, key: &ResourceKey, uid: &str) -> Outcome {
        let now = self.now.to_string();
        let version = self.fresh().to_string();
        let Some(live) = self.world.get_mut(key) else { return Outcome::not_found(index, "not found") };
        if !uid.is_empty() && live.uid() != uid {
            return Outcome::failed(index, "the UID in the precondition does not match");
        }
        live.metadata_mut().insert("deletionTimestamp".into(), now.into());
        live.metadata_mut().insert("resourceVersion".into(), version.into());
        if !self.slow_deletions.contains_key(&key.name) {
            self.collect();
        }
        Outcome::ok(index, None, "")
    }

    fn remove_finalizer(&mut self, index: usize, key: &ResourceKey, finalizer: &str) -> Outcome {
        let Some(live) = self.world.get_mut(key) else { return Outcome::not_found(index, "not found") };
        let rest = live.finalizers().into_iter().filter(|f| f != finalizer).collect();
        live.set_finalizers(rest);
        let live = live.clone();
        self.collect();
        Outcome::ok(index, Some(live), "")
    }

    /// `<status> <hookPhase> <message>` of a result, by name; of the last one if there are several.
    pub fn result(&self, name: &str) -> String {
        let Some(r) = self.progress.results.iter().rfind(|r| r.name == name) else { return "none".into() };
        let status = r.status.map_or("-", |s| s.as_str());
        let phase = r.hook_phase.map_or("-", OperationPhase::as_str);
        format!("{status} {phase} {}", r.message)
    }

    /// What was done, without dry runs.
    pub fn wet_log(&self) -> Vec<&str> {
        self.log.iter().map(String::as_str).filter(|l| !l.starts_with("dry-run")).collect()
    }
}

/// `<phase>: <message>`
pub fn says(decision: &Decision) -> String {
    format!("{}: {}", decision.phase, decision.message)
}

//! A cluster in a map: executes effects, advances time, and can lose all state between two steps.

pub use super::objects::{
    NS, cluster_scoped, hook_job, make, object, options, wave, widget_crd, with,
};
use crate::{
    error::EngineError,
    health::Assessed,
    sync::{
        Decision, Effect, Observed, OperationPhase, Outcome, Progress, ResourceResult, SyncPlan,
        SyncRequest, Write, hook, next, plan_with, record,
    },
    types::{
        CompareRules, Comparison, DiffText, Entry, Health, HealthStatus, IgnoreRule, KindInfo,
        SyncStatus, Tracking,
    },
};
use jiff::{SignedDuration, Timestamp};
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tiphys_apimachinery::{GroupKind, Kept, Object, ResourceKey};

pub const OPERATION: &str = "op-1";

pub struct Sim {
    pub desired: Vec<Object>,
    pub hooks: Vec<Object>,
    pub request: SyncRequest,
    pub world: BTreeMap<ResourceKey, Object>,
    /// Health by name; each wait of the sync advances to the next one. The last one stays.
    pub health: BTreeMap<String, Vec<HealthStatus>>,
    /// Names of objects whose health is not said by the script that judges them.
    pub silent: BTreeSet<String>,
    /// The message that comes with the health, by name.
    pub sayings: BTreeMap<String, String>,
    /// Errors by `<verb> <name>`; a message that starts with `!` means "not found".
    pub errors: BTreeMap<String, String>,
    pub unknown_kinds: BTreeSet<String>,
    /// Groups whose discovery failed, and why.
    pub unasked_groups: BTreeMap<String, String>,
    pub not_permitted: BTreeSet<String>,
    /// The only scope that the project permits, by kind: whether it is the namespaced one.
    pub permitted_scopes: BTreeMap<String, bool>,
    pub modified: BTreeMap<String, bool>,
    /// Objects that stay after their deletion until the sync has waited this many times.
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
    /// How often each object was deleted while it was not being deleted yet, by key.
    pub deleted: BTreeMap<String, usize>,
    /// Fields of these objects cannot be changed in place.
    pub immutable: BTreeSet<String>,
    /// Effects of one group are executed from the last to the first: their order must not matter.
    pub backwards: bool,
    /// The process dies after this many further points; `None`: never. There is a point before and
    /// after each write to the cluster or the status.
    pub dies_in: Option<usize>,
    /// How many points were passed.
    pub points: usize,
    kept: Option<SyncPlan>,
    pub(super) uids: Cell<u64>,
}

impl KindInfo for Sim {
    fn is_namespaced(&self, gk: &GroupKind) -> Option<bool> {
        let crd = self.world.values().find(|o| {
            o.kind() == "CustomResourceDefinition" && o.str_at("/spec/names/kind") == gk.kind
        });
        match crd {
            Some(crd) => Some(crd.str_at("/spec/scope") != "Cluster"),
            None => (!self.unknown_kinds.contains(&gk.kind)).then(|| !cluster_scoped(&gk.kind)),
        }
    }

    fn failure(&self, gk: &GroupKind) -> Option<String> {
        self.unasked_groups.get(&gk.group).cloned()
    }
}

impl Sim {
    pub fn new(desired: Vec<Object>) -> Self {
        let (hooks, desired): (Vec<Object>, Vec<Object>) =
            desired.into_iter().partition(hook::is_hook);
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
            silent: BTreeSet::new(),
            sayings: BTreeMap::new(),
            errors: BTreeMap::new(),
            unknown_kinds: BTreeSet::new(),
            unasked_groups: BTreeMap::new(),
            not_permitted: BTreeSet::new(),
            permitted_scopes: BTreeMap::new(),
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
            deleted: BTreeMap::new(),
            immutable: BTreeSet::new(),
            backwards: false,
            dies_in: None,
            points: 0,
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

    pub fn saying(mut self, name: &str, message: &str) -> Self {
        self.sayings.insert(name.into(), message.into());
        self
    }

    /// Adds an object to the cluster, as if it had always existed.
    pub fn existing(mut self, object: Object) -> Self {
        self.put(object);
        self
    }

    pub fn live(&self, kind: &str, name: &str) -> Option<&Object> {
        self.world
            .values()
            .find(|o| o.kind() == kind && o.name() == name)
    }

    pub fn comparison(&self) -> Comparison {
        let kept = |o: &Object| Arc::new(Kept::from(o.clone()));
        let entry = |desired: Option<&Object>, live: Option<&Object>| {
            let o = desired.or(live).expect("one of them is there");
            let key = live.unwrap_or(o).key();
            let modified = self.modified.get(o.name()).copied().unwrap_or(true);
            let (desired, live) = (desired.map(kept), live.map(kept));
            Arc::new(Entry {
                diff: DiffText {
                    modified,
                    ..DiffText::default()
                },
                status: Some(SyncStatus::OutOfSync),
                hook: hook::is_hook(o),
                requires_pruning: desired.is_none(),
                ..Entry::new(key, o.gvk(), desired, live)
            })
        };
        let mut entries: Vec<Arc<Entry>> = self
            .desired
            .iter()
            .map(|d| entry(Some(d), self.world.get(&d.key())))
            .collect();
        let wanted: BTreeSet<ResourceKey> = self.desired.iter().map(Object::key).collect();
        let untracked = |o: &Object| o.label("untracked").is_some() || o.kind() == "Namespace";
        entries.extend(
            self.world
                .iter()
                .filter(|(k, o)| !wanted.contains(k) && !untracked(o))
                .map(|(_, o)| entry(None, Some(o))),
        );
        let mut rules = CompareRules::new(
            Tracking::annotation("app"),
            "argocd",
            "app",
            "https://kubernetes.default.svc",
            NS,
        );
        let any = IgnoreRule {
            group: "*".into(),
            kind: "*".into(),
            json_pointers: self.ignored.clone(),
            ..IgnoreRule::default()
        };
        rules.ignore_differences.push(any);
        Comparison {
            entries,
            hooks: self.hooks.iter().map(kept).collect(),
            delete_hooks: Vec::new(),
            conditions: Vec::new(),
            sync: SyncStatus::OutOfSync,
            health: Health::new(HealthStatus::Healthy, ""),
            unanswered: Vec::new(),
            rules: Arc::new(rules),
            basis: Default::default(),
        }
    }

    /// Keeps the current plan instead of planning again in every turn.
    pub fn keep_plan(&mut self) {
        self.kept = None;
        self.kept = Some(self.plan());
    }

    pub fn plan(&self) -> SyncPlan {
        if let Some(plan) = &self.kept {
            return plan.clone();
        }
        let permit = |o: &Object, namespaced: bool| {
            let permitted = self.permitted_scopes.get(o.kind());
            let other_scope = permitted.is_some_and(|permitted| *permitted != namespaced);
            match other_scope || self.not_permitted.contains(o.name()) {
                true => Err(format!(
                    "resource {}:{} is not permitted in project p",
                    o.group(),
                    o.kind()
                )),
                false => Ok(()),
            }
        };
        plan_with(&self.comparison(), &self.request, self, &permit)
    }

    fn health_of(&self, o: &Object) -> Result<Assessed, EngineError> {
        match self.errors.get(&format!("health {}", o.name())) {
            Some(why) => Err(EngineError::Invalid(why.clone())),
            None if self.silent.contains(o.name()) => Ok(Assessed::Silent),
            None => Ok(self.known_health(o).into()),
        }
    }

    fn known_health(&self, o: &Object) -> Option<Health> {
        let default = ["Deployment", "Job", "Pod", "StatefulSet"]
            .contains(&o.kind())
            .then_some(HealthStatus::Healthy);
        let status = self
            .health
            .get(o.name())
            .and_then(|h| h.first().copied())
            .or(default)?;
        let message = self.sayings.get(o.name()).cloned();
        let message = message.unwrap_or_else(|| format!("{} is {status}", o.name()));
        Some(Health::new(status, message))
    }

    pub fn decide(&self) -> Decision {
        self.decide_by(&self.plan())
    }

    fn decide_by(&self, plan: &SyncPlan) -> Decision {
        let live = |key: &ResourceKey| {
            self.world
                .get(key)
                .filter(|o| !self.unseen.contains(o.name()))
                .cloned()
                .map(Arc::new)
        };
        let health = |o: &Object| self.health_of(o);
        next(
            plan,
            Observed {
                live: &live,
                health: &health,
            },
            &self.progress,
            &self.request,
            self.now,
        )
    }

    /// One iteration of the caller's loop.
    pub fn turn(&mut self) -> Decision {
        self.turn_or_die().expect("nothing was to kill it")
    }

    /// One iteration of the caller's loop, unless the process dies in it.
    pub fn turn_or_die(&mut self) -> Option<Decision> {
        let (plan, decision, outcomes) = self.act()?;
        let health = |o: &Object| self.health_of(o);
        self.progress = record(
            &plan,
            decision.progress.clone(),
            &decision.effects,
            &outcomes,
            &health,
            self.now,
        );
        self.store()?;
        Some(decision)
    }

    /// An iteration whose effects were executed but not recorded.
    pub fn turn_unrecorded(&mut self) {
        let _ = self.act();
    }

    fn act(&mut self) -> Option<(SyncPlan, Decision, Vec<Outcome>)> {
        let plan = self.plan();
        let decision = self.decide_by(&plan);
        self.progress = decision.progress.clone();
        self.messages
            .push(format!("{}: {}", decision.phase, decision.message));
        if decision.must_store || decision.effects.is_empty() {
            self.store()?;
        }
        let mut outcomes = Vec::new();
        for (first, group) in decision.batches() {
            let mut order: Vec<usize> = (0..group.len()).collect();
            if self.backwards {
                order.reverse();
            }
            for i in order {
                outcomes.push(self.execute_or_die(first + i, &group[i])?);
            }
        }
        Some((plan, decision, outcomes))
    }

    fn execute_or_die(&mut self, index: usize, effect: &Effect) -> Option<Outcome> {
        let reads = matches!(effect, Effect::DryRun(_) | Effect::Read { .. });
        if reads {
            return Some(self.execute(index, effect));
        }
        self.survives()?;
        let outcome = self.execute(index, effect);
        self.survives()?;
        Some(outcome)
    }

    fn store(&mut self) -> Option<()> {
        let results = serde_json::to_string(&self.progress.to_results()).expect("results are JSON");
        let new = Some((results, self.progress.to_annotation()));
        if self.stored != new {
            self.survives()?;
            self.stored = new;
            self.survives()?;
        }
        Some(())
    }

    /// Passes one point, or dies there.
    fn survives(&mut self) -> Option<()> {
        self.points += 1;
        if let Some(left) = &mut self.dies_in {
            *left = left.checked_sub(1)?;
        }
        Some(())
    }

    /// Restarts the process without everything that was not stored.
    pub fn restart(&mut self, keep_annotation: bool) {
        self.dies_in = None;
        let (results, annotation) = self
            .stored
            .clone()
            .unwrap_or_else(|| ("[]".into(), String::new()));
        let results: Vec<ResourceResult> =
            serde_json::from_str(&results).expect("results are JSON");
        let annotation = keep_annotation.then_some(annotation.as_str());
        self.progress = Progress::from_annotation(results, annotation, &self.request.operation_id);
    }

    /// Starts the next attempt, as a retry does.
    pub fn retry(&mut self, operation_id: &str) {
        self.request.operation_id = operation_id.into();
        self.progress = Progress::new(operation_id);
        self.stored = None;
    }

    /// Advances time until the sync has something to do.
    pub fn idle(&mut self, decision: &Decision) {
        let wake = decision
            .wake_after
            .expect("a sync without effects says when to ask again");
        self.pass(wake);
    }

    pub fn pass(&mut self, time: Duration) {
        self.now = self
            .now
            .checked_add(SignedDuration::try_from(time).expect("a short time"))
            .expect("not the end of time");
        let there: BTreeSet<&str> = self.world.values().map(Object::name).collect();
        for (_, list) in self
            .health
            .iter_mut()
            .filter(|(name, list)| list.len() > 1 && there.contains(name.as_str()))
        {
            list.remove(0);
        }
        self.unseen.clear();
        self.collect();
    }

    /// Runs to the end and returns the last decision.
    pub fn run(&mut self) -> Decision {
        for _ in 0..300 {
            let decision = self.turn();
            if decision.phase.completed() {
                assert!(
                    decision.effects.is_empty(),
                    "a terminal decision has no effects"
                );
                return decision;
            }
            if decision.effects.is_empty() {
                self.idle(&decision);
            }
        }
        panic!("the sync did not end: {:#?}", self.messages);
    }

    /// Runs until it waits, and returns the decision with the reason.
    pub fn run_to_wait(&mut self) -> Decision {
        for _ in 0..300 {
            let decision = self.turn();
            if decision.effects.is_empty() {
                return decision;
            }
        }
        panic!("the sync neither waits nor ends: {:#?}", self.log);
    }

    /// `<status> <hookPhase> <message>` of the result with this name; of the last one if there are
    /// several.
    pub fn result(&self, name: &str) -> String {
        let Some(r) = self.progress.results.iter().rfind(|r| r.name == name) else {
            return "none".into();
        };
        let status = r.status.map_or("-", |s| s.as_str());
        let phase = r.hook_phase.map_or("-", OperationPhase::as_str);
        format!("{status} {phase} {}", r.message)
    }

    /// The executed effects, without dry runs.
    pub fn wet_log(&self) -> Vec<&str> {
        self.log
            .iter()
            .map(String::as_str)
            .filter(|l| !l.starts_with("dry-run"))
            .collect()
    }
}

/// `<phase>: <message>`
pub fn says(decision: &Decision) -> String {
    format!("{}: {}", decision.phase, decision.message)
}

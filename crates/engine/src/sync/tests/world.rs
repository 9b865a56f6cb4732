//! The API server of the simulation: applies effects to the objects in the map.

use super::sim::Sim;
use crate::{
    sync::{ApplyMode, Effect, Outcome, Step, Write},
    types::KindInfo,
};
use serde_json::{Value, json};
use tiphys_apimachinery::{Object, ResourceKey};

impl Sim {
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
        object
            .metadata_mut()
            .insert("resourceVersion".into(), version.into());
        if object.kind() == "CustomResourceDefinition" {
            object.0.insert(
                "status".into(),
                json!({"conditions": [{"type": "Established", "status": "True"}]}),
            );
        }
        self.world.insert(key, object.clone());
        object
    }

    pub fn execute(&mut self, index: usize, effect: &Effect) -> Outcome {
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
        if let Some(why) = self.refusal(effect) {
            return Outcome::failed(index, why);
        }
        match effect {
            Effect::DryRun(w) => {
                self.writes.push(w.clone());
                Outcome::ok(index, None, format!("{} dry run", w.step.key.name))
            }
            Effect::Apply(w) | Effect::RunHook(w) => self.write(index, w),
            Effect::Prune { uid, .. } | Effect::DeleteHook { uid, .. } => {
                self.delete(index, &step.key, uid)
            }
            Effect::RemoveFinalizer { finalizer, .. } => {
                self.remove_finalizer(index, &step.key, finalizer)
            }
            Effect::MigrateManagers { manager, .. } => {
                let Some(live) = self.world.get_mut(&step.key) else {
                    return Outcome::not_found(index, "not found");
                };
                if let Some(Value::Array(list)) = live.metadata_mut().get_mut("managedFields") {
                    list.retain(|e| e["manager"] != manager.as_str());
                }
                Outcome::ok(index, Some(live.clone()), "")
            }
            Effect::Read { .. } => match self.world.get(&self.served_key(step)) {
                Some(live) => Outcome::ok(index, Some(live.clone()), ""),
                None => Outcome::not_found(index, "not found"),
            },
        }
    }

    /// As the executor does: the scope that counts is that of the request.
    fn refusal(&self, effect: &Effect) -> Option<String> {
        let changes = matches!(
            effect,
            Effect::DryRun(_)
                | Effect::Apply(_)
                | Effect::RunHook(_)
                | Effect::Prune { .. }
                | Effect::MigrateManagers { .. }
        );
        let step = effect.step();
        let namespaced = self.is_namespaced(&step.gvk.group_kind());
        let namespaced = namespaced.filter(|_| changes)?;
        step.refused.at(namespaced).map(str::to_owned)
    }

    /// The key of a step's object in the scope that its kind has now.
    fn served_key(&self, step: &Step) -> ResourceKey {
        match self.is_namespaced(&step.gvk.group_kind()) {
            Some(false) => step.key.without_namespace(),
            _ => step.key.clone(),
        }
    }

    fn write(&mut self, index: usize, write: &Write) -> Outcome {
        self.writes.push(write.clone());
        let mut target = write
            .step
            .target
            .as_deref()
            .expect("a step that writes has a target")
            .clone();
        if self.is_namespaced(&write.step.gvk.group_kind()) == Some(false) {
            target.set_namespace("");
        }
        let exists = self.world.contains_key(&target.key());
        if write.mode == ApplyMode::Create && exists {
            return Outcome::failed(index, "already exists");
        }
        if self.immutable.contains(target.name())
            && self
                .world
                .get(&target.key())
                .is_some_and(|o| o.0.get("data") != target.0.get("data"))
        {
            if !write.force {
                return Outcome::failed(index, "field is immutable");
            }
            self.world.remove(&target.key());
        }
        if write.step.is_hook() && !exists {
            let run = format!("{} {}", self.request.operation_id, write.step.step_key());
            *self.created_hooks.entry(run).or_default() += 1;
        }
        let live = self.put(target);
        let verb = if exists { "configured" } else { "created" };
        Outcome::ok(
            index,
            Some(live),
            format!(
                "{}/{} {verb}",
                write.step.gvk.kind.to_lowercase(),
                write.step.key.name
            ),
        )
    }

    fn delete(&mut self, index: usize, key: &ResourceKey, uid: &str) -> Outcome {
        let now = self.now.to_string();
        let version = self.fresh().to_string();
        let Some(live) = self.world.get_mut(key) else {
            return Outcome::not_found(index, "not found");
        };
        if !uid.is_empty() && live.uid() != uid {
            return Outcome::failed(index, "the UID in the precondition does not match");
        }
        if live.deletion_timestamp().is_none() {
            *self.deleted.entry(key.to_string()).or_default() += 1;
        }
        live.metadata_mut()
            .insert("deletionTimestamp".into(), now.into());
        live.metadata_mut()
            .insert("resourceVersion".into(), version.into());
        if !self.slow_deletions.contains_key(&key.name) {
            self.collect();
        }
        Outcome::ok(index, None, "")
    }

    fn remove_finalizer(&mut self, index: usize, key: &ResourceKey, finalizer: &str) -> Outcome {
        let Some(live) = self.world.get_mut(key) else {
            return Outcome::not_found(index, "not found");
        };
        let rest = live
            .finalizers()
            .into_iter()
            .filter(|f| f != finalizer)
            .collect();
        live.set_finalizers(rest);
        let live = live.clone();
        self.collect();
        Outcome::ok(index, Some(live), "")
    }

    /// Removes deleted objects without finalizers.
    pub fn collect(&mut self) {
        let slow = &mut self.slow_deletions;
        self.world.retain(|_, o| {
            let held = !o.finalizers().is_empty() || slow.get(o.name()).is_some_and(|n| *n > 0);
            if let Some(n) = slow
                .get_mut(o.name())
                .filter(|_| o.deletion_timestamp().is_some())
            {
                *n = n.saturating_sub(1);
            }
            o.deletion_timestamp().is_none() || held
        });
    }
}

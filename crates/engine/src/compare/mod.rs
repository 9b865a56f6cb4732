//! Compares an Application with its cluster: what is in sync, what is not, and what is unhealthy.
//!
//! Main function: [`compare`]. Broken input is reported as conditions in the result. An object is
//! never called extra because something could not be read.

mod judge;
mod memory;
mod pairing;

use crate::{
    diff, health, marks,
    normalize::targets::{self, Target, Targets},
    permit,
    spending::Spending,
    types::{
        Basis, CompareRules, Comparison, Condition, ConditionType, Desired, DryRuns, Entry, Judged,
        KindInfo, NamespaceMetadata, SyncStatus,
    },
};
use judge::Judge;
use memory::Memory;
use pairing::Pair;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_apimachinery::{GroupKind, Gvk, Kept, Object, ResourceKey};

/// Compares the desired with the live objects.
///
/// `live` contains the objects tracked by the Application and those with a desired key. With
/// `previous`, unchanged pairs are reused. Where the rules ask for Server-Side Diff, `dry_runs`
/// contains the API server's answers; missing ones are listed in [`Comparison::unanswered`], to be
/// requested before comparing again.
pub fn compare(
    desired: Desired,
    live: &BTreeMap<ResourceKey, Arc<Kept>>,
    rules: &CompareRules,
    kinds: &dyn KindInfo,
    previous: Option<&Comparison>,
    dry_runs: &DryRuns,
) -> Comparison {
    let spending = Spending::of_objects(live.len().max(desired.objects.len()));
    compare_within(desired, live, rules, kinds, previous, dry_runs, &spending)
}

/// See [`compare`]. `spending`: the budget shared by users' jq expressions and Lua scripts.
fn compare_within(
    desired: Desired,
    live: &BTreeMap<ResourceKey, Arc<Kept>>,
    rules: &CompareRules,
    kinds: &dyn KindInfo,
    previous: Option<&Comparison>,
    dry_runs: &DryRuns,
    spending: &Spending,
) -> Comparison {
    let Desired { objects, errors } = desired;
    let failed = !errors.is_empty();
    let mut conditions = errors;
    // With rules that cannot be applied, ignored fields would show as drift, and self-heal would
    // overwrite them.
    let faulty = diff::check_rules(&rules.ignore_differences).err();
    let comparable = faulty.is_none();
    conditions.extend(faulty.map(|why| {
        let message = format!("Failed to compare desired state to live state: {why}");
        Condition::new(ConditionType::ComparisonError, message)
    }));
    let previous = previous.filter(|p| memory::is_usable(p, rules, kinds, failed));
    let rules = previous.map_or_else(|| Arc::new(rules.clone()), |p| p.rules.clone());
    let targets = targets::prepare(objects, &rules, kinds, previous.map(|p| &p.basis.targets));
    conditions.extend(targets.warnings.iter().cloned());
    let (hooks, delete_hooks) = (targets.hooks(), targets.delete_hooks());
    let namespace = managed_namespace(&targets, &hooks, live, &rules);

    let mut memory = Memory::new(previous, &targets);
    let judge = Judge {
        rules: &rules,
        kinds,
        hooks: &hooks,
        failed,
        comparable,
        dry_runs,
        spending,
    };
    let mut entries: Vec<Arc<Entry>> = Vec::with_capacity(live.len());
    for pair in pairing::pair(
        targets.resources().chain(&namespace).collect(),
        live,
        &rules,
    ) {
        if is_wanted_namespace(&pair, &rules) {
            continue;
        }
        entries.extend(memory.entry(&pair).or_else(|| {
            let pair = permitted(pair, &rules)?;
            Some(
                memory
                    .entry(&pair)
                    .unwrap_or_else(|| Arc::new(judge.entry(&pair))),
            )
        }));
    }
    conditions.extend(entries.iter().flat_map(|e| &e.conditions).cloned());
    let (health, unreadable) = health::aggregate::aggregate(&entries);
    conditions.extend(unreadable);
    let unknown = failed || !comparable || entries.iter().any(|e| e.judged == Judged::Refused);
    let drift = rules.managed_namespace.as_ref().is_some_and(|m| m.changed)
        || entries.iter().any(|e| e.drift);
    let sync = match (unknown, drift) {
        (true, _) => SyncStatus::Unknown,
        (false, true) => SyncStatus::OutOfSync,
        (false, false) => SyncStatus::Synced,
    };
    let unanswered = entries
        .iter()
        .filter(|e| e.judged == Judged::NotYet)
        .map(|e| e.key.clone())
        .collect();
    let scopes = scopes(&targets, &entries, kinds);
    let basis = Basis {
        targets,
        scopes,
        failed,
    };
    Comparison {
        entries,
        hooks,
        delete_hooks,
        conditions,
        sync,
        health,
        unanswered,
        rules,
        basis,
    }
}

/// The pair, without a live object that the project does not permit; None if nothing remains.
fn permitted<'a>(pair: Pair<'a>, rules: &CompareRules) -> Option<Pair<'a>> {
    let live = pair.live.filter(|live| permit::live(rules, live));
    (live.is_some() || pair.target.is_some()).then_some(Pair { live, ..pair })
}

/// The destination namespace of an Application with `CreateNamespace=true` whose Git does not
/// contain it. It may carry the Application's tracking metadata because it was in Git before; that
/// does not make it extra.
fn is_wanted_namespace(pair: &Pair, rules: &CompareRules) -> bool {
    let create = || {
        rules
            .sync_options
            .iter()
            .any(|o| o == "CreateNamespace=true")
    };
    let is_destination =
        |key: &ResourceKey| *key == ResourceKey::new("", "Namespace", "", &rules.dest_namespace);
    pair.target.is_none() && is_destination(pair.key) && create()
}

/// The destination namespace as a desired object, if the Application manages its labels
/// (`managedNamespaceMetadata`) and Git does not contain it. Without this, a namespace with the
/// Application's tracking metadata would be extra and pruned with everything in it.
fn managed_namespace(
    targets: &Targets,
    hooks: &[Arc<Kept>],
    live: &BTreeMap<ResourceKey, Arc<Kept>>,
    rules: &CompareRules,
) -> Option<Target> {
    let NamespaceMetadata {
        labels,
        annotations,
        ..
    } = rules.managed_namespace.as_ref()?;
    let there = live
        .get(&ResourceKey::new(
            "",
            "Namespace",
            "",
            &rules.dest_namespace,
        ))
        .is_some_and(|o| permit::live(rules, o));
    let mut wanted = targets.resources().map(|t| &t.object).chain(hooks);
    if !there || wanted.any(|t| t.kind() == "Namespace" && t.name() == rules.dest_namespace) {
        return None;
    }
    let mut namespace =
        Object::skeleton(&Gvk::new("", "v1", "Namespace"), "", &rules.dest_namespace);
    labels.iter().for_each(|(k, v)| namespace.set_label(k, v));
    annotations
        .iter()
        .for_each(|(k, v)| namespace.set_annotation(k, v));
    namespace.set_annotation(marks::SYNC_OPTIONS, "ServerSideApply=true");
    Some(Target::added(namespace, false))
}

/// The scope of each kind in the comparison. Both lists are ordered by key, so a kind's objects are
/// contiguous.
fn scopes(
    targets: &Targets,
    entries: &[Arc<Entry>],
    kinds: &dyn KindInfo,
) -> Vec<(GroupKind, Option<bool>)> {
    let mut scopes: Vec<(GroupKind, Option<bool>)> = Vec::new();
    for key in targets.keys().chain(entries.iter().map(|e| &e.key)) {
        if scopes
            .last()
            .is_none_or(|(kind, _)| (&kind.group, &kind.kind) != (&key.group, &key.kind))
        {
            let kind = key.group_kind();
            let scope = kinds.is_namespaced(&kind);
            scopes.push((kind, scope));
        }
    }
    scopes
}

#[cfg(test)]
mod tests;

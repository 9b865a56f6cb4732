//! An Application against its cluster: what is in sync, what is not, what is unwell.
//!
//! Main function: [`compare`]. Broken input is part of the answer, as conditions; nothing is ever called extra because something could
//! not be read.

mod pairing;

use crate::{
    diff, health, marks,
    normalize::targets,
    permit, track, tree,
    types::{
        CompareRules, Comparison, Condition, ConditionType, Desired, Diff, DryRuns, Entry, KindInfo, NamespaceMetadata, ServerSideDiff,
        SyncStatus,
    },
};
use pairing::{Live, Pair};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_apimachinery::{Gvk, Object, ResourceKey};

/// Compares what Git wants with what there is.
///
/// `live` has the objects that are marked as the Application's and those that have a desired key. With `previous`, pairs that have not
/// changed since are taken over from it. Where the rules ask for the API server's own opinion, `dry_runs` has it; what is missing there is
/// named in [`Comparison::unanswered`], to be asked before comparing again.
pub fn compare(
    desired: Desired,
    live: &BTreeMap<ResourceKey, Arc<Object>>,
    rules: &CompareRules,
    kinds: &dyn KindInfo,
    previous: Option<&Comparison>,
    dry_runs: &DryRuns,
) -> Comparison {
    let Desired { objects, errors } = desired;
    let failed = !errors.is_empty();
    let mut conditions = errors;
    // With rules that cannot be followed, ignored fields would be called drift, and self-heal would overwrite them.
    let faulty = diff::check_rules(&rules.ignore_differences).err();
    let comparable = faulty.is_none();
    conditions.extend(faulty.map(|why| {
        let message = format!("Failed to compare desired state to live state: {why}");
        Condition::new(ConditionType::ComparisonError, message)
    }));
    let (mut targets, warnings) = targets::prepare(objects, rules, kinds);
    conditions.extend(warnings);
    let live: Live = live.iter().filter(|(_, object)| permit::live(rules, object)).map(|(k, o)| (k.clone(), o.clone())).collect();
    conditions.extend(live.values().filter_map(|object| shared_with(object, rules)));
    targets.extend(managed_namespace(&targets, &live, rules));
    let (targets, hooks, delete_hooks) = split_hooks(targets);

    let memory = Memory::new(previous, rules);
    let judge = Judge { rules, kinds, hooks: &hooks, failed, comparable, memory, dry_runs };
    let mut sync = SyncStatus::Synced;
    let (mut entries, mut unanswered, mut refused) = (Vec::new(), Vec::new(), false);
    for (key, pair) in pairing::pair(targets, live, rules, kinds) {
        let verdict = judge.diff(&key, &pair);
        match &verdict {
            Verdict::Unanswered => unanswered.push(key.clone()),
            Verdict::Refused(why) => {
                refused = true;
                let message = format!("Failed to compare desired state to live state: failed to calculate diff: {why}");
                conditions.push(Condition::new(ConditionType::ComparisonError, message));
            }
            Verdict::Differs(_) => {}
        }
        let (entry, drift) = judge.entry(key, pair, verdict);
        if drift {
            sync = SyncStatus::OutOfSync;
        }
        conditions.extend(judge.missing_namespace(&entry));
        entries.push(entry);
    }
    if rules.managed_namespace.as_ref().is_some_and(|m| m.changed) {
        sync = SyncStatus::OutOfSync;
    }
    if failed || !comparable || refused {
        sync = SyncStatus::Unknown;
    }
    let (health, unreadable) = health::aggregate::aggregate(&mut entries, rules);
    conditions.extend(unreadable);
    let (images, external_urls) = tree::summary_of(entries.iter().filter_map(|e| e.live.as_deref()));
    Comparison { entries, hooks, delete_hooks, conditions, sync, health, unanswered, images, external_urls, rules: rules.clone() }
}

/// A live object that carries another Application's mark.
fn shared_with(live: &Object, rules: &CompareRules) -> Option<Condition> {
    let owner = track::owner(live, &rules.tracking).filter(|owner| *owner != rules.tracking.app_name)?;
    let (kind, name, other) = (live.kind(), live.name(), track::display_name(&owner));
    let this = if rules.app_namespace.is_empty() { rules.app_name.clone() } else { format!("{}/{}", rules.app_namespace, rules.app_name) };
    let message = format!("{kind}/{name} is part of applications {this} and {other}");
    Some(Condition::new(ConditionType::SharedResourceWarning, message))
}

/// The destination namespace as a desired object, when the Application looks after its labels, somebody marked it as part of the
/// Application, and Git does not have it: without this it would be extra, and be pruned with everything in it.
fn managed_namespace(targets: &[Object], live: &Live, rules: &CompareRules) -> Option<Object> {
    let NamespaceMetadata { labels, annotations, .. } = rules.managed_namespace.as_ref()?;
    let key = ResourceKey::new("", "Namespace", "", &rules.dest_namespace);
    if !live.contains_key(&key) || targets.iter().any(|t| t.kind() == "Namespace" && t.name() == rules.dest_namespace) {
        return None;
    }
    let mut namespace = Object::skeleton(&Gvk::new("", "v1", "Namespace"), "", &rules.dest_namespace);
    labels.iter().for_each(|(k, v)| namespace.set_label(k, v));
    annotations.iter().for_each(|(k, v)| namespace.set_annotation(k, v));
    namespace.set_annotation(marks::SYNC_OPTIONS, "ServerSideApply=true");
    Some(namespace)
}

/// Ordinary objects, hooks of a sync, hooks of the deletion. Hooks of unknown types are in none of them.
fn split_hooks(targets: Vec<Object>) -> (Vec<Object>, Vec<Object>, Vec<Object>) {
    let (mut ordinary, mut hooks, mut delete_hooks) = (Vec::new(), Vec::new(), Vec::new());
    for object in targets {
        let on_delete = marks::is_pre_delete_hook(&object) || marks::is_post_delete_hook(&object);
        if on_delete {
            delete_hooks.push(object.clone());
        }
        if (on_delete && !marks::runs_in_sync(&object)) || marks::is_ignored(&object) {
            continue;
        }
        if marks::is_sync_hook(&object) { hooks.push(object) } else { ordinary.push(object) }
    }
    (ordinary, hooks, delete_hooks)
}

/// Results of an earlier comparison with the same rules.
struct Memory<'a>(BTreeMap<&'a ResourceKey, &'a Entry>);

impl<'a> Memory<'a> {
    fn new(previous: Option<&'a Comparison>, rules: &CompareRules) -> Self {
        let usable = previous.filter(|p| p.rules == *rules);
        Self(usable.map(|p| p.entries.iter().map(|e| (&e.key, e)).collect()).unwrap_or_default())
    }

    /// The difference of a pair of which neither side has changed.
    fn diff(&self, key: &ResourceKey, desired: Option<&Object>, live: Option<&Arc<Object>>) -> Option<Diff> {
        // What could not be judged then has no difference to take over.
        let entry = self.0.get(key).filter(|e| e.status != Some(SyncStatus::Unknown))?;
        let same_live = match (&entry.live, live) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                Arc::ptr_eq(a, b)
                    || (!a.resource_version().is_empty() && a.resource_version() == b.resource_version() && a.uid() == b.uid())
            }
            _ => false,
        };
        (same_live && entry.desired.as_ref() == desired).then(|| entry.diff.clone())
    }
}

struct Judge<'a> {
    rules: &'a CompareRules,
    kinds: &'a dyn KindInfo,
    hooks: &'a [Object],
    /// Not all desired objects are known.
    failed: bool,
    /// Differences can be judged.
    comparable: bool,
    memory: Memory<'a>,
    dry_runs: &'a DryRuns,
}

/// What became of looking for a pair's difference.
enum Verdict {
    Differs(Diff),
    /// A dry run has to be made first.
    Unanswered,
    /// The API server refused the dry run, or its answer cannot be used.
    Refused(String),
}

impl Judge<'_> {
    /// The entry of a pair, and whether it makes the Application OutOfSync.
    fn entry(&self, key: ResourceKey, (desired, live): Pair, verdict: Verdict) -> (Entry, bool) {
        let (desired_ref, live_ref) = (desired.as_ref(), live.as_deref());
        let any = live_ref.or(desired_ref).expect("a pair has at least one object");
        let rules = self.rules;
        let own = live_ref.is_none_or(|live| track::is_marked_for_itself(live, desired_ref, &rules.tracking));
        let hook = marks::is_hook(any);
        let (diff, judged) = match verdict {
            Verdict::Differs(diff) => (diff, true),
            Verdict::Unanswered | Verdict::Refused(_) => (Diff::default(), false),
        };
        let extra = desired.is_none();
        let skipped = hook || marks::is_ignored(any) || desired_ref.is_some_and(marks::is_skipped) || !own;
        let differs = diff.modified || extra || live.is_none();
        let drift = !skipped && differs && !(extra && marks::has_option(any, marks::COMPARE_OPTIONS, "IgnoreExtraneous"));
        let mut status = match (skipped, differs) {
            (true, _) => None,
            (false, true) => Some(SyncStatus::OutOfSync),
            (false, false) => Some(SyncStatus::Synced),
        };
        let kind = key.group_kind();
        let namespaced = self.kinds.is_namespaced(&kind).unwrap_or(false);
        // Without all desired objects it is not known whether a live one is extra.
        if (self.failed && extra) || !self.comparable || !judged || !permit::kind(&rules.project, &kind, &key.name, namespaced) {
            status = Some(SyncStatus::Unknown);
        }
        let confirm = |object: Option<&Object>| object.is_some_and(|o| self.needs_confirmation(o));
        let requires_deletion_confirmation = confirm(desired_ref) || confirm(live_ref);
        let entry = Entry {
            gvk: any.gvk(),
            status,
            hook,
            requires_pruning: extra && own && !self.failed,
            requires_deletion_confirmation,
            sync_wave: self.wave(desired_ref, live_ref, hook),
            health: None,
            diff,
            key,
            desired,
            live,
        };
        (entry, drift)
    }

    fn diff(&self, key: &ResourceKey, (desired, live): &Pair) -> Verdict {
        let options = diff::Options::from(self.rules);
        if let Some(diff) = self.memory.diff(key, desired.as_ref(), live.as_ref()) {
            return Verdict::Differs(diff);
        }
        let (Some(desired), Some(live)) = (desired, live.as_deref()) else {
            return Verdict::Differs(diff::diff(desired.as_ref(), live.as_deref(), &options));
        };
        let mut forgiven = None;
        if track::needs_forgiveness(live, &self.rules.tracking) {
            track::forgive_method_change(desired, forgiven.insert(live.clone()), &self.rules.tracking);
        }
        let live = forgiven.as_ref().unwrap_or(live);
        match self.rules.server_side_diff {
            Some(how) if !marks::is_hook(live) => self.asked(key, live, how, &options),
            _ => Verdict::Differs(diff::diff(Some(desired), Some(live), &options)),
        }
    }

    /// The difference to what the API server would make of the live object.
    fn asked(&self, key: &ResourceKey, live: &Object, how: ServerSideDiff, options: &diff::Options<'_>) -> Verdict {
        let difference = match self.dry_runs.get(key) {
            None => return Verdict::Unanswered,
            Some(Ok(predicted)) => diff::server_side(live, predicted, how.include_webhooks, options),
            Some(Err(why)) => Err(format!(
                "error calculating server side diff: error running server side apply in dryrun mode for resource {}/{}: {why}",
                live.kind(),
                live.name()
            )),
        };
        difference.map_or_else(Verdict::Refused, Verdict::Differs)
    }

    fn wave(&self, desired: Option<&Object>, live: Option<&Object>, hook: bool) -> i64 {
        let same = |h: &&Object| live.is_some_and(|l| (h.kind(), h.namespace(), h.name()) == (l.kind(), l.namespace(), l.name()));
        match desired {
            Some(desired) => marks::wave(desired),
            None if hook => self.hooks.iter().find(same).map_or(0, marks::wave),
            None => 0,
        }
    }

    /// The object's own option counts before the Application's.
    fn needs_confirmation(&self, object: &Object) -> bool {
        let of_app = |name: &str| self.rules.sync_options.iter().find_map(|o| o.strip_prefix(name)?.strip_prefix('='));
        let confirm = |name| marks::option_value(object, marks::SYNC_OPTIONS, name).or_else(|| of_app(name)) == Some("confirm");
        confirm("Delete") || confirm("Prune")
    }

    fn missing_namespace(&self, entry: &Entry) -> Option<Condition> {
        let missing = entry.key.namespace.is_empty() && self.kinds.is_namespaced(&entry.key.group_kind()) == Some(true);
        let message = || format!("Namespace for {} {} is missing.", entry.key.name, entry.gvk);
        missing.then(|| Condition::new(ConditionType::InvalidSpecError, message()))
    }
}

#[cfg(test)]
mod tests;

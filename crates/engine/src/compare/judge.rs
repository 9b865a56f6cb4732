//! Compares one pair of objects.
//!
//! Main type: [`Judge`]. It sees the pair and the rules, but no other pair.

use super::pairing::Pair;
use crate::{
    diff, health, marks, permit,
    spending::Spending,
    track, tree,
    types::{
        CompareRules, Condition, ConditionType, Diff, DryRuns, Entry, Judged, KindInfo,
        ServerSideDiff, SyncStatus,
    },
};
use std::sync::Arc;
use tiphys_apimachinery::{Kept, Object, ResourceKey};

pub struct Judge<'a> {
    pub rules: &'a CompareRules,
    pub kinds: &'a dyn KindInfo,
    pub hooks: &'a [Arc<Kept>],
    /// The desired objects are incomplete.
    pub failed: bool,
    /// Differences can be computed.
    pub comparable: bool,
    pub dry_runs: &'a DryRuns,
    pub spending: &'a Spending,
}

/// The result of computing a pair's difference.
enum DiffOutcome {
    Differs(Diff),
    /// A dry run is needed first.
    Unanswered,
    /// The API server refused the dry run, or its answer cannot be used.
    Refused(String),
}

impl Judge<'_> {
    /// The entry of a pair.
    pub fn entry(&self, pair: &Pair<'_>) -> Entry {
        let trees = (
            pair.target.map(|t| t.object.object()),
            pair.live.map(|l| l.object()),
        );
        let (desired, live) = (trees.0.as_deref(), trees.1.as_deref());
        let any = live.or(desired).expect("a pair has at least one object");
        let mut entry = Entry::new(
            pair.key.clone(),
            any.gvk(),
            pair.target.map(|t| t.object.clone()),
            pair.live.cloned(),
        );
        // The hook annotation in Git decides: if an old hook is live in place of a resource, the
        // resource still counts.
        entry.hook = marks::is_hook(desired.unwrap_or(any));
        entry
            .conditions
            .extend(live.and_then(|live| shared_with(live, self.rules)));
        let verdict = self.difference(pair.key, desired, live);
        let verdict = match self.spending.take_refusal() {
            Some(why) => DiffOutcome::Refused(format!(
                "{} {}: {why}",
                pair.key.kind,
                [&*pair.key.namespace, &*pair.key.name]
                    .join("/")
                    .trim_start_matches('/')
            )),
            None => verdict,
        };
        match verdict {
            DiffOutcome::Differs(diff) => entry.diff = diff.into(),
            DiffOutcome::Unanswered => entry.judged = Judged::NotYet,
            DiffOutcome::Refused(why) => {
                entry.judged = Judged::Refused;
                let message = format!(
                    "Failed to compare desired state to live state: failed to calculate diff: {why}"
                );
                entry
                    .conditions
                    .push(Condition::new(ConditionType::ComparisonError, message));
            }
        }
        if pair.target.is_some_and(|t| t.fault.is_some()) {
            entry.judged = Judged::Refused;
        }
        self.judge_sync(&mut entry, desired, live);
        let confirm = |object: Option<&Object>| {
            object.is_some_and(|o| marks::needs_confirmation(o, &self.rules.sync_options))
        };
        entry.requires_deletion_confirmation = confirm(desired) || confirm(live);
        entry.sync_wave = self.wave(desired, live, entry.hook);
        health::aggregate::judge(&mut entry, desired, live, self.rules, self.spending);
        entry.node = match live {
            Some(live) => tree::managed(live, entry.health.as_ref(), &self.rules.customizations),
            None => tree::missing(any),
        };
        entry.conditions.extend(self.missing_namespace(&entry));
        entry
    }

    /// Whether the pair is in sync, and whether it makes the Application OutOfSync.
    fn judge_sync(&self, entry: &mut Entry, desired: Option<&Object>, live: Option<&Object>) {
        let any = live.or(desired).expect("a pair has at least one object");
        let own = live
            .is_none_or(|live| track::is_marked_for_itself(live, desired, &self.rules.tracking));
        let extra = desired.is_none();
        let skipped = entry.hook
            || marks::is_ignored(desired.unwrap_or(any))
            || desired.is_some_and(marks::is_skipped)
            || !own;
        let differs = entry.diff.modified || extra || live.is_none();
        entry.drift = !skipped
            && differs
            && !(extra && marks::has_option(any, marks::COMPARE_OPTIONS, "IgnoreExtraneous"));
        entry.requires_pruning = extra && own && !self.failed;
        let kind = entry.key.group_kind();
        let namespaced = self.kinds.is_namespaced(&kind).unwrap_or(false);
        let permitted = permit::kind(&self.rules.project, &kind, &entry.key.name, namespaced);
        entry.status = match (skipped, differs) {
            // If desired objects are missing, it is not known whether a live object is extra.
            _ if (self.failed && extra)
                || !self.comparable
                || entry.judged != Judged::Yes
                || !permitted =>
            {
                Some(SyncStatus::Unknown)
            }
            (true, _) => None,
            (false, true) => Some(SyncStatus::OutOfSync),
            (false, false) => Some(SyncStatus::Synced),
        };
    }

    fn difference(
        &self,
        key: &ResourceKey,
        desired: Option<&Object>,
        live: Option<&Object>,
    ) -> DiffOutcome {
        let options = diff::Options {
            spending: Some(self.spending),
            ..diff::Options::from(self.rules)
        };
        let (Some(desired), Some(live)) = (desired, live) else {
            return DiffOutcome::Differs(diff::diff(desired, live, &options));
        };
        let mut forgiven = None;
        if track::needs_forgiveness(live, &self.rules.tracking) {
            track::forgive_method_change(
                desired,
                forgiven.insert(live.clone()),
                &self.rules.tracking,
            );
        }
        let live = forgiven.as_ref().unwrap_or(live);
        match self.rules.server_side_diff {
            Some(how) if !marks::is_hook(live) => self.asked(key, (desired, live), how, &options),
            _ => DiffOutcome::Differs(diff::diff(Some(desired), Some(live), &options)),
        }
    }

    /// The difference to the result of the API server's dry run.
    fn asked(
        &self,
        key: &ResourceKey,
        pair: (&Object, &Object),
        how: ServerSideDiff,
        options: &diff::Options<'_>,
    ) -> DiffOutcome {
        let (desired, live) = pair;
        let difference = match self.dry_runs.get(key) {
            None => return DiffOutcome::Unanswered,
            Some(Ok(predicted)) => {
                diff::server_side(desired, live, predicted, how.include_webhooks, options)
            }
            Some(Err(why)) => Err(format!(
                "error calculating server side diff: serverSideDiff error: error running server side apply in dryrun mode for resource {}/{}: {why}",
                live.kind(),
                live.name()
            )),
        };
        difference.map_or_else(DiffOutcome::Refused, DiffOutcome::Differs)
    }

    fn wave(&self, desired: Option<&Object>, live: Option<&Object>, hook: bool) -> i64 {
        let same = |h: &&Arc<Kept>| {
            live.is_some_and(|l| {
                (h.kind(), h.namespace(), h.name()) == (l.kind(), l.namespace(), l.name())
            })
        };
        match desired {
            Some(desired) => marks::wave(desired),
            None if hook => self
                .hooks
                .iter()
                .find(same)
                .map_or(0, |hook| marks::wave(&hook.object())),
            None => 0,
        }
    }

    fn missing_namespace(&self, entry: &Entry) -> Option<Condition> {
        let missing = entry.key.namespace.is_empty()
            && self.kinds.is_namespaced(&entry.key.group_kind()) == Some(true);
        let message = || format!("Namespace for {} {} is missing.", entry.key.name, entry.gvk);
        missing.then(|| Condition::new(ConditionType::InvalidSpecError, message()))
    }
}

/// The condition for a live object that another Application tracks.
fn shared_with(live: &Object, rules: &CompareRules) -> Option<Condition> {
    let owner =
        track::owner(live, &rules.tracking).filter(|owner| *owner != rules.tracking.app_name)?;
    let (kind, name, other) = (live.kind(), live.name(), track::display_name(&owner));
    let this = if rules.app_namespace.is_empty() {
        rules.app_name.clone()
    } else {
        format!("{}/{}", rules.app_namespace, rules.app_name)
    };
    let message = format!("{kind}/{name} is part of applications {this} and {other}");
    Some(Condition::new(
        ConditionType::SharedResourceWarning,
        message,
    ))
}

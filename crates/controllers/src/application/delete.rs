//! The end of an Application: hooks before, its resources if a finalizer says so, the highest wave before the lower ones, hooks after; each
//! stage ends by removing its finalizer.
//!
//! Main function: [`run`]. Level-triggered: each look deletes what may go now and waits for the rest.

use super::{
    compare,
    delete_hooks::{self, When},
    error::Error,
    impersonation,
    pass::{Again, Pass},
    refresh::Reason,
    status,
};
use futures::future::join_all;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tiphys_api::constants::{
    DELETION_APPROVED, POST_DELETE_FINALIZER, PRE_DELETE_FINALIZER, RESOURCES_FINALIZER, RESOURCES_FINALIZER_BACKGROUND,
    RESOURCES_FINALIZER_FOREGROUND,
};
use tiphys_apimachinery::Object;
use tiphys_cluster::{Executor, clusters::LiveCluster};
use tiphys_engine::{
    permit, spec,
    sync::{hook, options, request::deletion_confirmed, wave},
    track,
    types::{CompareRules, Condition, ConditionType},
};

/// Deletions under way at once.
const PARALLEL: usize = 16;
const POLL: Duration = Duration::from_secs(5);
const HOOK_POLL: Duration = Duration::from_secs(1);

const CASCADE: [&str; 3] = [RESOURCES_FINALIZER, RESOURCES_FINALIZER_FOREGROUND, RESOURCES_FINALIZER_BACKGROUND];

/// Takes the deletion as far as it goes now.
pub async fn run(pass: &mut Pass<'_>) -> Result<Again, Error> {
    let Some(stage) = stage(&pass.app.metadata.finalizers) else { return Ok(None) };
    // Only the project knows what the Application may delete.
    if let Err(text) = pass.controller.project_of(&pass.app) {
        return refused(pass, text).await;
    }
    let reachable = spec::destination(&pass.app.spec.destination, &pass.controller.destinations()).is_ok();
    if !reachable {
        // Nobody can ever delete what was there: the Application must not wait for it.
        let of_hooks = |f: &str| f.starts_with(PRE_DELETE_FINALIZER) || f.starts_with(POST_DELETE_FINALIZER);
        remove_finalizers(pass, |f| CASCADE.contains(&f) || of_hooks(f)).await?;
        return Ok(None);
    }
    let done = match stage {
        Stage::Hooks(when) => delete_hooks::execute(pass, when).await,
        Stage::Resources => cascade(pass).await,
        Stage::Cleanup(when) => delete_hooks::cleanup(pass, when).await,
    };
    match done {
        Ok(true) => {
            remove_finalizers(pass, |f| stage.is_held_by(f)).await?;
            Ok(None)
        }
        Ok(false) => Ok(Some((Reason::LOOK, if stage == Stage::Resources { POLL } else { HOOK_POLL }))),
        Err(text) => refused(pass, text).await,
    }
}

/// What a deletion is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Hooks(When),
    Resources,
    Cleanup(When),
}

impl Stage {
    const ORDER: [Self; 5] =
        [Self::Hooks(When::Before), Self::Resources, Self::Hooks(When::After), Self::Cleanup(When::Before), Self::Cleanup(When::After)];

    fn is_held_by(self, finalizer: &str) -> bool {
        match self {
            Self::Hooks(when) => finalizer == when.finalizer(),
            Self::Resources => CASCADE.contains(&finalizer),
            Self::Cleanup(when) => finalizer == when.cleanup_finalizer(),
        }
    }
}

/// The first stage that a finalizer still stands for.
fn stage(finalizers: &[String]) -> Option<Stage> {
    Stage::ORDER.into_iter().find(|stage| finalizers.iter().any(|f| stage.is_held_by(f)))
}

/// Whether a condition says why the deletion does not go on.
pub(super) fn is_told(pass: &Pass<'_>, text: &str) -> bool {
    pass.app.status.conditions.iter().any(|c| c.type_ == "DeletionError" && c.message == text)
}

/// Says why the deletion does not go on.
async fn refused(pass: &mut Pass<'_>, text: String) -> Result<Again, Error> {
    if !is_told(pass, &text) {
        pass.event(true, "StatusRefreshed", format!("Unable to delete application resources: {text}"));
    }
    let condition = Condition::new(ConditionType::DeletionError, text);
    status::set_conditions(&mut pass.app.status, &[condition], &[ConditionType::DeletionError], pass.now);
    pass.store().await?;
    Ok(Some((Reason::LOOK, POLL)))
}

/// Deletes the resources that may go now. True when none are left.
async fn cascade(pass: &mut Pass<'_>) -> Result<bool, String> {
    let cluster = compare::cluster(pass).await?;
    let live = deletable(pass, &cluster).await?;
    if live.is_empty() {
        return Ok(true);
    }
    let executor = impersonation::for_deletion(pass, &cluster)?;
    release_hooks(&executor, &live).await?;
    let since = pass.app.metadata.deletion_timestamp.map_or(pass.now, |t| t.timestamp());
    let approved = deletion_confirmed(pass.app.metadata.annotations.get(DELETION_APPROVED).map(String::as_str), since);
    let app_options = pass.app.spec.sync_policy.as_ref().map(|p| p.sync_options.clone()).unwrap_or_default();
    let confirm = |o: &Object| {
        ["Prune", "Delete"]
            .into_iter()
            .any(|name| options::value(o, name).is_some_and(|v| v == "confirm") || app_options.contains(&format!("{name}=confirm")))
    };
    let highest = live.iter().map(|o| wave::of(o)).max().unwrap_or(0);
    // Some of a wave may be on their way already: whoever was to delete the others was stopped.
    let doomed: Vec<_> = live.iter().filter(|o| wave::of(o) == highest && o.deletion_timestamp().is_none()).cloned().collect();
    if doomed.is_empty() || (!approved && live.iter().any(|o| confirm(o))) {
        return Ok(false);
    }
    let background = pass.app.metadata.finalizers.iter().any(|f| f == RESOURCES_FINALIZER_BACKGROUND);
    let propagation = if background { "Background" } else { "Foreground" };
    for batch in doomed.chunks(PARALLEL) {
        let removals: Vec<_> = batch.iter().map(|object| remove(&executor, object, propagation)).collect();
        join_all(removals).await.into_iter().collect::<Result<Vec<()>, _>>()?;
    }
    let left = deletable(pass, &cluster).await?;
    Ok(left.is_empty())
}

/// A sync that was under way does not go on, so nobody else takes off what it holds its hooks by.
async fn release_hooks(executor: &Executor, live: &[Arc<Object>]) -> Result<(), String> {
    for hook in live.iter().filter(|o| hook::has_finalizer(o)) {
        executor.release(hook, hook::HOOK_FINALIZER).await.map_err(|e| format!("{}: {e}", hook.key()))?;
    }
    Ok(())
}

pub(super) async fn remove(executor: &Executor, object: &Object, propagation: &str) -> Result<(), String> {
    executor.remove(&object.gvk(), &object.key(), object.uid(), propagation).await.map_err(|e| format!("{}: {e}", object.key()))
}

/// The live objects that go with the Application.
async fn deletable(pass: &Pass<'_>, cluster: &LiveCluster) -> Result<Vec<Arc<Object>>, String> {
    let rules = compare::rules(pass)?;
    let app_keeps = rules.sync_options.iter().any(|o| o == "Delete=false");
    let keep = |o: &Object| {
        app_keeps
            || options::has(o, "Delete=false")
            || o.annotation("helm.sh/resource-policy") == Some("keep")
            || (o.group() == "apiextensions.k8s.io" && o.kind() == "CustomResourceDefinition")
            || o.uid() == pass.app.metadata.uid
    };
    Ok(owned(cluster, &rules).await?.into_iter().filter(|o| !keep(o)).collect())
}

/// The live objects that belong to the Application and that its project lets it have.
pub(super) async fn owned(cluster: &LiveCluster, rules: &CompareRules) -> Result<Vec<Arc<Object>>, String> {
    let live = cluster.cache.managed(&rules.tracking.app_name, &[]).await.map_err(|e| e.to_string())?;
    let marked = |o: &Object| track::owner(o, &rules.tracking).is_some_and(|owner| owner == rules.tracking.app_name);
    Ok(live.into_values().filter(|o| permit::live(rules, o)).map(|o| o.object()).filter(|o| marked(o)).collect())
}

async fn remove_finalizers(pass: &mut Pass<'_>, which: impl Fn(&str) -> bool) -> Result<(), Error> {
    let left: Vec<_> = pass.app.metadata.finalizers.iter().filter(|f| !which(f)).cloned().collect();
    if left.len() == pass.app.metadata.finalizers.len() {
        return Ok(());
    }
    let patch = json!({"metadata": {"finalizers": left, "resourceVersion": pass.record.meta.resource_version}});
    pass.controller.records.applications.merge_patch(&pass.key.namespace, &pass.key.name, &patch).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fact_93_the_stages_of_a_deletion_follow_each_other() {
        let mut finalizers: Vec<String> = [
            "post-delete-finalizer.argocd.argoproj.io/cleanup",
            "somebody.else/finalizer",
            "post-delete-finalizer.argocd.argoproj.io",
            "resources-finalizer.argocd.argoproj.io/background",
            "pre-delete-finalizer.argocd.argoproj.io/cleanup",
            "pre-delete-finalizer.argocd.argoproj.io",
        ]
        .map(str::to_owned)
        .into();
        for expected in Stage::ORDER {
            assert_eq!(stage(&finalizers), Some(expected));
            finalizers.retain(|f| !expected.is_held_by(f));
        }
        assert_eq!((stage(&finalizers), finalizers.len()), (None, 1));
    }
}

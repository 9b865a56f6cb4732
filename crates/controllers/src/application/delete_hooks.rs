//! Hooks around the deletion of an Application: PreDelete hooks run before its resources are
//! deleted, PostDelete hooks afterwards.
//!
//! Main functions: [`align`] maintains the finalizers that keep an Application for its hooks,
//! [`execute`] runs them, [`cleanup`] removes them according to their delete policies.
//! Level-triggered: each call does what is possible now and returns whether that was all.

use super::{
    compare,
    context::ReconcileContext,
    deletion::{self, Progress, Stop},
    finalizers::When,
    impersonation, known, prepare,
    refresh::{Level, Refresh},
    requested::RequestedSources,
    sources::{self},
};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{Application, constants::FAILED_HOOKS, operation::SyncOperation};
use tiphys_apimachinery::{Kept, Object, ResourceKey};
use tiphys_cluster::{
    Error, Known, Unreadable, clusters::LiveCluster, scripts::run_scripts_blocking,
};
use tiphys_engine::{
    health,
    sync::{
        Refused,
        hook::{self, DeletePolicy},
    },
    types::{CompareRules, Comparison, HealthStatus},
};

/// Between the phase and the names of its failed hooks.
const SEPARATOR: char = ' ';

/// Creates the missing hooks and checks the state of the others. The error names those that failed.
/// Failed hooks are deleted, so that they run again, only by a reconcile after the failure was
/// reported, because then nothing else records it.
pub async fn execute(ctx: &mut ReconcileContext<'_>, when: When) -> Result<Progress, Stop> {
    let doing = |e: String| Stop::Refused(format!("{}{e}", when.executing()));
    let cluster = compare::cluster(ctx).await?;
    cluster.cache.readable(&known::of(&ctx.app))?;
    let executor = impersonation::for_deletion(ctx, &cluster)?;
    let comparison = desired(ctx, &cluster).await.map_err(doing)?;
    let mut wanted: Vec<Object> = Vec::new();
    for object in comparison
        .delete_hooks
        .iter()
        .map(|o| o.object())
        .filter(|o| when.is(o))
    {
        let taken: Vec<ResourceKey> = wanted.iter().map(Object::key).collect();
        wanted.push(named(ctx, &object, when, &taken));
    }
    let running = live(
        &cluster,
        &comparison.rules,
        when,
        &with_hooks(&ctx.app, &comparison),
    )
    .await?;
    let mut created = false;
    for object in &wanted {
        if running.iter().any(|r| r.key() == object.key()) {
            continue;
        }
        let refused =
            Refused::ask(|namespaced| prepare::permitted(&comparison, object, namespaced));
        match executor.create(object, &refused).await {
            Ok(_) => created = true,
            Err(Error::NotPermitted(why)) => return Err(doing(why)),
            Err(e) if e.is_already_exists() => {
                if is_anothers(&cluster, &comparison.rules, when, object).await? {
                    return Err(doing(format!(
                        "{} exists already, and is not a hook of this Application: delete or rename one of the two",
                        object.key()
                    )));
                }
                // Ours, not seen yet, or gone again: the next reconcile knows.
                created = true;
            }
            Err(e) => return Err(doing(format!("{}: {e}", object.key()))),
        }
    }
    let reported = reported(&ctx.app.metadata.annotations, when);
    let waits = match reported {
        Some(_) => Progress::Retries,
        None => Progress::Waits,
    };
    if created {
        return Ok(waits);
    }
    let mut failed = Vec::new();
    let mut progressing = false;
    for object in &running {
        match health_of(object, &comparison.rules).map_err(doing)? {
            HealthStatus::Degraded => failed.push(object),
            status => progressing |= status == HealthStatus::Progressing,
        }
    }
    if failed.is_empty() {
        return Ok(if progressing { waits } else { Progress::Done });
    }
    let names: Vec<_> = failed
        .iter()
        .map(|o| format!("{}/{}", o.namespace(), o.name()))
        .collect();
    if reported.is_some_and(|reported| reported == joined(&names)) {
        for object in failed {
            deletion::remove(&executor, object, "Background").await?;
        }
    }
    Err(Stop::HooksFailed { when, names })
}

/// The failed hooks that the condition reports, as the annotation beside it keeps them; the texts
/// of conditions are for people. `None`: it reports something else, or nothing.
fn reported(annotations: &BTreeMap<String, String>, when: When) -> Option<&str> {
    let hooks = annotations.get(FAILED_HOOKS)?;
    hooks.strip_prefix(when.name())?.strip_prefix(SEPARATOR)
}

/// The value of this annotation.
pub fn as_reported(when: When, names: &[String]) -> String {
    format!("{}{SEPARATOR}{}", when.name(), joined(names))
}

/// No name contains a comma.
fn joined(names: &[String]) -> String {
    names.join(",")
}

/// Removes the hooks according to their delete policies.
pub async fn cleanup(ctx: &mut ReconcileContext<'_>, when: When) -> Result<Progress, Stop> {
    let doing = |e: String| Stop::Refused(format!("{}{e}", when.cleaning()));
    let cluster = compare::cluster(ctx).await?;
    let executor = impersonation::for_deletion(ctx, &cluster)?;
    let rules = compare::rules(ctx, &cluster)?;
    let hooks = match live(&cluster, &rules, when, &Known::Nothing).await {
        Ok(hooks) => hooks,
        // Some kinds cannot be read: use Git to find out whether there are hooks of them.
        Err(_) => {
            let comparison = desired(ctx, &cluster).await.map_err(doing)?;
            live(&cluster, &rules, when, &with_hooks(&ctx.app, &comparison)).await?
        }
    };
    let mut worst = HealthStatus::Healthy;
    for object in &hooks {
        worst = worst.max(health_of(object, &rules).map_err(doing)?);
    }
    let mut left = false;
    for object in &hooks {
        let doomed = hook::delete_policies(object)
            .into_iter()
            .any(|policy| match policy {
                DeletePolicy::BeforeHookCreation => false,
                DeletePolicy::HookSucceeded => worst == HealthStatus::Healthy,
                DeletePolicy::HookFailed => worst == HealthStatus::Degraded,
            });
        left |= doomed;
        if doomed && object.deletion_timestamp().is_none() {
            deletion::remove(&executor, object, "Background")
                .await
                .map_err(doing)?;
        }
    }
    Ok(if left {
        Progress::Waits
    } else {
        Progress::Done
    })
}

/// The Application's hooks in the cluster.
async fn live(
    cluster: &LiveCluster,
    rules: &CompareRules,
    when: When,
    known: &Known,
) -> Result<Vec<Arc<Object>>, Unreadable> {
    Ok(deletion::owned(cluster, rules, known)
        .await?
        .into_iter()
        .filter(|o| when.is(o))
        .collect())
}

/// Whether an object that has the name of a hook is something else. What it was to do must not count
/// as done: a PreDelete hook may be a backup of what is deleted after it.
async fn is_anothers(
    cluster: &LiveCluster,
    rules: &CompareRules,
    when: When,
    hook: &Object,
) -> Result<bool, Stop> {
    let live = cluster
        .cache
        .get_as(&hook.gvk(), hook.namespace(), hook.name())
        .await;
    let live = live.map_err(|e| Stop::Refused(format!("{}: {e}", hook.key())))?;
    Ok(live.is_some_and(|live| !when.is(&live) || !deletion::is_owned(&live, rules)))
}

/// What the Application may have, including hooks of its deletion.
fn with_hooks(app: &Application, comparison: &Comparison) -> Known {
    match known::of(app) {
        Known::Nothing => Known::Nothing,
        Known::Resources(mut keys) => {
            let namespace = &comparison.rules.dest_namespace;
            let key = |o: &Kept| match o.namespace() {
                "" => ResourceKey::new(o.group(), o.kind(), namespace, o.name()),
                own => ResourceKey::new(o.group(), o.kind(), own, o.name()),
            };
            keys.extend(comparison.delete_hooks.iter().map(|o| key(o)));
            Known::Resources(keys)
        }
    }
}

/// The state of a hook; a kind without health check is complete once it exists.
fn health_of(object: &Object, rules: &CompareRules) -> Result<HealthStatus, String> {
    let health = run_scripts_blocking(&rules.customizations, || {
        health::assess_with(object, &rules.customizations)
    });
    let health =
        health.map_err(|e| format!("failed to get resource health of {}: {e}", object.key()))?;
    Ok(health.map_or(HealthStatus::Healthy, |h| h.status))
}

/// The current manifests in Git. If hooks cannot be read, the deletion does not continue without
/// them.
async fn desired(
    ctx: &mut ReconcileContext<'_>,
    cluster: &LiveCluster,
) -> Result<Arc<Comparison>, String> {
    let wanted = RequestedSources::of(&ctx.app)?;
    let refresh = Refresh {
        level: Level::Latest,
        ..Refresh::default()
    };
    let desired = sources::load(
        ctx,
        cluster,
        &wanted,
        &wanted.revisions(&SyncOperation::default()),
        &refresh,
    )
    .await?;
    // Without them, a process that has just started could not show what is left.
    ctx.memo.remember(&desired);
    let comparison = compare::with_live(ctx, cluster, Some(&desired), &[]).await?;
    match comparison.conditions.iter().find(|c| c.is_error()) {
        Some(problem) => Err(problem.message.clone()),
        None => Ok(comparison),
    }
}

/// A name for a hook that has only `generateName`: the same in every reconcile, so that it is found
/// again, and not one that is taken.
fn named(ctx: &ReconcileContext<'_>, object: &Object, when: When, taken: &[ResourceKey]) -> Object {
    let mut object = object.clone();
    if object.name().is_empty() {
        let since = ctx.app.metadata.deletion_timestamp.map_or(0, |t| t.seconds);
        let suffix = format!("{}-{since}", when.name().to_lowercase());
        let is_taken = |name: &str| {
            taken.contains(&ResourceKey {
                name: name.to_owned(),
                ..object.key()
            })
        };
        let name = hook::generated_name(object.generate_name(), &suffix, is_taken);
        object.metadata_mut().remove("generateName");
        object.metadata_mut().insert("name".into(), name.into());
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_hooks_are_reported_by_phase_and_name() {
        let names = ["n/a".to_owned(), "n/b".to_owned()];
        let text = as_reported(When::Before, &names);
        assert_eq!(text, "PreDelete n/a,n/b");
        let annotations = BTreeMap::from([(FAILED_HOOKS.to_owned(), text)]);
        let known = reported(&annotations, When::Before);
        assert_eq!(known, Some(joined(&names).as_str()));
        assert_ne!(known, Some(joined(&names[..1]).as_str()));
        // Those of one phase say nothing about those of the other.
        assert_eq!(reported(&annotations, When::After), None);
        assert_eq!(reported(&BTreeMap::new(), When::Before), None);
    }
}

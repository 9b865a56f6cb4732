//! Deletes an Application: PreDelete hooks, its resources if a finalizer requires it, from the
//! highest wave to the lowest, then PostDelete hooks. Each stage ends by removing its finalizer.
//!
//! Main function: [`run`]. Level-triggered: each reconcile deletes what can be deleted now and
//! waits for the rest.

use super::{
    compare,
    context::ReconcileContext,
    delete_hooks,
    deletion::{Progress, Stop, is_owned, is_told, owned, remove},
    error::Error,
    finalizers::When,
    impersonation, known,
    next::Next,
    refresh::{self, Cause, Expiry, Level, Reason, Refresh},
    requested::RequestedSources,
    status,
};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use std::{sync::Arc, time::Duration};
use tiphys_api::constants::{
    DELETION_APPROVED, FAILED_HOOKS, GROUP, POST_DELETE_FINALIZER, PRE_DELETE_FINALIZER, REFRESH,
    RESOURCES_FINALIZER, RESOURCES_FINALIZER_BACKGROUND, RESOURCES_FINALIZER_FOREGROUND,
};
use tiphys_apimachinery::{Object, ResourceKey};
use tiphys_cluster::{Executor, clusters::LiveCluster};
use tiphys_engine::{
    marks,
    spec::{self, Presence},
    sync::{hook, request::deletion_confirmed, wave},
    track,
    types::{CompareRules, Condition, ConditionType, SyncStatus},
};

/// Concurrent deletions.
const PARALLEL: usize = 16;
const POLL: Duration = Duration::from_secs(5);
const HOOK_POLL: Duration = Duration::from_secs(1);
/// A deleted object that still exists after this time is reported.
const OVERDUE: SignedDuration = SignedDuration::from_secs(60);
/// How often an object that changes during its deletion is read again.
const CONFLICTS: usize = 5;

const CASCADE: [&str; 3] = [
    RESOURCES_FINALIZER,
    RESOURCES_FINALIZER_FOREGROUND,
    RESOURCES_FINALIZER_BACKGROUND,
];

/// Continues the deletion as far as possible, and handles a refresh.
pub async fn run(ctx: &mut ReconcileContext<'_>) -> Result<Next, Error> {
    let next = advance(ctx).await?;
    if ctx.app.metadata.annotations.contains_key(REFRESH) && !ctx.app.metadata.finalizers.is_empty()
    {
        let never = Expiry {
            soft: SignedDuration::ZERO,
            hard: SignedDuration::ZERO,
        };
        if let Some(refresh) = refresh::needed(&ctx.app, Reason::RECONCILE, never, ctx.now) {
            ctx.refresh(&refresh).await;
            ctx.store().await?;
        }
    }
    Ok(next)
}

async fn advance(ctx: &mut ReconcileContext<'_>) -> Result<Next, Error> {
    let Some(stage) = stage(&ctx.app.metadata.finalizers) else {
        return Ok(Next::Event);
    };
    // Only the project defines what the Application may delete.
    if let Err(text) = project(ctx) {
        return refused(ctx, text.into()).await;
    }
    let settings = ctx.controller.records.settings();
    let found = spec::look_up(&ctx.app.spec.destination, settings.destination_clusters());
    match found {
        Ok(Presence::Known) => {}
        // Its Secret may be there, unseen.
        Ok(Presence::Gone(why)) if ctx.controller.records.problem().is_some() => {
            let text = format!(
                "{why}; the deletion waits because the Secrets of clusters, or other records, \
                 cannot be watched at present"
            );
            return refused(ctx, text.into()).await;
        }
        Ok(Presence::Gone(why)) => {
            // The resources can never be deleted: the Application must not wait for them.
            ctx.event(
                true,
                "ResourceDeleted",
                format!("Application is deleted without its resources, which stay: {why}"),
            );
            let of_hooks = |f: &str| {
                f.starts_with(PRE_DELETE_FINALIZER) || f.starts_with(POST_DELETE_FINALIZER)
            };
            release(ctx, |f| CASCADE.contains(&f) || of_hooks(f)).await?;
            return Ok(Next::Event);
        }
        Err(text) => return refused(ctx, text.into()).await,
    }
    let done = match stage {
        Stage::Hooks(when) => delete_hooks::execute(ctx, when).await,
        Stage::Resources => cascade(ctx).await,
        Stage::Cleanup(when) => delete_hooks::cleanup(ctx, when).await,
    };
    let pause = if stage == Stage::Resources {
        POLL
    } else {
        HOOK_POLL
    };
    match done {
        Ok(Progress::Done) => {
            release(ctx, |f| stage.is_held_by(f)).await?;
            return Ok(Next::Event);
        }
        Ok(Progress::Waits) => {
            show(ctx).await?;
            clear_error(ctx);
            ctx.store().await?;
        }
        Ok(Progress::Retries) => {}
        Ok(Progress::Held(text)) => {
            show(ctx).await?;
            return refused(ctx, text.into()).await;
        }
        Err(why) => return refused(ctx, why).await,
    }
    Ok(Next::after(pause))
}

/// Shows what still exists and what is being deleted, as far as that is known without Git, which a
/// deletion does not wait for.
async fn show(ctx: &mut ReconcileContext<'_>) -> Result<(), Error> {
    let trust = ctx.controller.sources.trust(spec::project_name(&ctx.app));
    let known = RequestedSources::of(&ctx.app).is_ok_and(|wanted| {
        ctx.memo
            .loaded(&wanted, &trust)
            .is_some_and(|loaded| loaded.is_ok())
    });
    if known {
        let refresh = Refresh {
            level: Level::Recent,
            cause: Cause::Deletion,
            ..Refresh::default()
        };
        ctx.refresh(&refresh).await;
        return Ok(());
    }
    // Another process compared it: only what is gone since then can be told.
    let all = known::of(&ctx.app);
    if let Ok(cluster) = compare::cluster(ctx).await
        && cluster.cache.readable(&all).is_ok()
        && cluster.cache.truly_gone(&all).is_ok()
    {
        let is_there = |key: &ResourceKey| cluster.cache.get(key).is_some();
        status::mark_gone(&mut ctx.app, is_there, ctx.now);
    }
    Ok(())
}

/// Whether there is a project that defines what may be deleted. The error says why not, and what to
/// do.
fn project(ctx: &ReconcileContext<'_>) -> Result<(), String> {
    const OR: &str = "or remove the Application's finalizers to leave its resources in the cluster";
    let project = ctx
        .controller
        .project_of(&ctx.app)
        .map_err(|text| format!("{text}; create the project again, {OR}"))?;
    let missing =
        spec::project_condition(&ctx.app, Some(&project), &ctx.controller.records.namespace);
    missing.map_or(Ok(()), |condition| {
        Err(format!(
            "{}; permit its namespace in the project, {OR}",
            condition.message
        ))
    })
}

/// The stage of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Hooks(When),
    Resources,
    Cleanup(When),
}

impl Stage {
    const ORDER: [Self; 5] = [
        Self::Hooks(When::Before),
        Self::Resources,
        Self::Hooks(When::After),
        Self::Cleanup(When::Before),
        Self::Cleanup(When::After),
    ];

    fn is_held_by(self, finalizer: &str) -> bool {
        match self {
            Self::Hooks(when) => finalizer == when.finalizer(),
            Self::Resources => CASCADE.contains(&finalizer),
            Self::Cleanup(when) => finalizer == when.cleanup_finalizer(),
        }
    }
}

/// The first stage whose finalizer is present.
fn stage(finalizers: &[String]) -> Option<Stage> {
    Stage::ORDER
        .into_iter()
        .find(|stage| finalizers.iter().any(|f| stage.is_held_by(f)))
}

/// Reports why the deletion is blocked.
async fn refused(ctx: &mut ReconcileContext<'_>, why: Stop) -> Result<Next, Error> {
    let text = why.to_string();
    if !is_told(ctx, &text) {
        ctx.event(
            true,
            "StatusRefreshed",
            format!("Unable to delete application resources: {text}"),
        );
    }
    if matches!(why, Stop::Unreadable(_))
        && ctx.app.status.sync.status != SyncStatus::Unknown.as_str()
    {
        status::apply_uncompared(&mut ctx.app, ctx.now);
    }
    let failed = match &why {
        Stop::HooksFailed { when, names } => Some(delete_hooks::as_reported(*when, names)),
        _ => None,
    };
    ctx.annotate(FAILED_HOOKS, failed);
    let condition = Condition::new(ConditionType::DeletionError, text);
    status::set_conditions(
        &mut ctx.app.status,
        &[condition],
        &[ConditionType::DeletionError],
        ctx.now,
    );
    ctx.store().await?;
    Ok(Next::after(POLL))
}

/// Deletes the resources whose turn it is.
async fn cascade(ctx: &mut ReconcileContext<'_>) -> Result<Progress, Stop> {
    let cluster = compare::cluster(ctx).await?;
    let live = deletable(ctx, &cluster).await?;
    if live.is_empty() {
        return Ok(Progress::Done);
    }
    let executor = impersonation::for_deletion(ctx, &cluster)?;
    release_hooks(&executor, &live).await?;
    let since = ctx
        .app
        .metadata
        .deletion_timestamp
        .map_or(ctx.now, |t| t.timestamp());
    let approved = deletion_confirmed(
        ctx.app
            .metadata
            .annotations
            .get(DELETION_APPROVED)
            .map(String::as_str),
        since,
    );
    let rules = compare::rules(ctx, &cluster)?;
    let confirm = |o: &Object| marks::needs_confirmation(o, &rules.sync_options);
    if !approved && live.iter().any(|o| confirm(o)) {
        return Ok(Progress::Waits);
    }
    // Some may already be in deletion, if the previous process was stopped in between.
    let doomed: Vec<_> = next_to_go(&live)
        .into_iter()
        .filter(|o| o.deletion_timestamp().is_none())
        .collect();
    if doomed.is_empty() {
        return Ok(held(&live, ctx.now));
    }
    let background = ctx
        .app
        .metadata
        .finalizers
        .iter()
        .any(|f| f == RESOURCES_FINALIZER_BACKGROUND);
    let propagation = if background {
        "Background"
    } else {
        "Foreground"
    };
    let goes =
        |o: &Object| goes_with(o, &rules, &ctx.app.metadata.uid) && (approved || !confirm(o));
    for batch in doomed.chunks(PARALLEL) {
        let removals: Vec<_> = batch
            .iter()
            .map(|object| remove_if(&executor, &cluster, object, propagation, &goes))
            .collect();
        join_all(removals)
            .await
            .into_iter()
            .collect::<Result<Vec<()>, _>>()?;
    }
    let left = deletable(ctx, &cluster).await?;
    Ok(if left.is_empty() {
        Progress::Done
    } else {
        held(&left, ctx.now)
    })
}

/// The objects whose turn it is: the highest wave. A project is deleted after all Applications,
/// which need it for their own deletion.
fn next_to_go(live: &[Arc<Object>]) -> Vec<&Arc<Object>> {
    let is = |o: &Object, kind: &str| o.group() == GROUP && o.kind() == kind;
    let lowest = live
        .iter()
        .filter(|o| is(o, "Application"))
        .map(|o| wave::of(o))
        .min();
    let turn = |o: &Object| match lowest {
        Some(lowest) if is(o, "AppProject") && wave::of(o) >= lowest => (lowest, false),
        _ => (wave::of(o), true),
    };
    let next = live.iter().map(|o| turn(o)).max();
    live.iter().filter(|o| Some(turn(o)) == next).collect()
}

/// What the objects in deletion wait for: an Application that reports why it is blocked, or an
/// object whose deletion is overdue.
fn held(live: &[Arc<Object>], now: Timestamp) -> Progress {
    let leaving = live
        .iter()
        .filter_map(|o| Some((o, o.deletion_timestamp()?.parse::<Timestamp>().ok()?)));
    let mut reasons: Vec<String> = leaving
        .filter_map(|(o, since)| match deletion_error(o) {
            Some(why) => Some(format!("waiting for {} to be deleted: {why}", o.key())),
            None if now.duration_since(since) < OVERDUE => None,
            None if o.finalizers().is_empty() => {
                Some(format!("waiting for {} to be deleted", o.key()))
            }
            None => Some(format!(
                "waiting for {} to be deleted, which is held by {}",
                o.key(),
                o.finalizers().join(", ")
            )),
        })
        .collect();
    reasons.sort();
    if reasons.is_empty() {
        Progress::Waits
    } else {
        Progress::Held(reasons.join("; "))
    }
}

/// The deletion error that an Application reports.
fn deletion_error(object: &Object) -> Option<String> {
    let conditions = object
        .pointer("/status/conditions")
        .filter(|_| object.group() == GROUP)?
        .as_array()?;
    let condition = conditions
        .iter()
        .find(|c| c["type"] == ConditionType::DeletionError.as_str())?;
    condition["message"].as_str().map(str::to_owned)
}

/// A running sync does not continue, so no one else would remove its hooks' finalizers.
async fn release_hooks(executor: &Executor, live: &[Arc<Object>]) -> Result<(), String> {
    for hook in live.iter().filter(|o| hook::has_finalizer(o)) {
        executor
            .release(hook, hook::HOOK_FINALIZER)
            .await
            .map_err(|e| format!("{}: {e}", hook.key()))?;
    }
    Ok(())
}

/// Deletes an object in the state in which it was judged; if it has changed, it is read and judged
/// again.
async fn remove_if(
    executor: &Executor,
    cluster: &LiveCluster,
    object: &Arc<Object>,
    propagation: &str,
    goes: &impl Fn(&Object) -> bool,
) -> Result<(), String> {
    let told = |e: tiphys_cluster::Error| format!("{}: {e}", object.key());
    let mut seen = object.clone();
    for _ in 0..CONFLICTS {
        match executor.remove_as_seen(&seen, propagation).await {
            Err(e) if e.is_conflict() => {}
            result => return result.map_err(told),
        }
        let Some(now) = cluster
            .cache
            .get_as(&seen.gvk(), seen.namespace(), seen.name())
            .await
            .map_err(told)?
        else {
            return Ok(());
        };
        cluster.cache.observe(&now);
        if now.uid() != object.uid() || now.deletion_timestamp().is_some() || !goes(&now) {
            return Ok(());
        }
        seen = Arc::new(now);
    }
    // It keeps changing, and was ours a moment ago.
    remove(executor, &seen, propagation).await
}

/// The live objects that are deleted with the Application.
async fn deletable(
    ctx: &ReconcileContext<'_>,
    cluster: &LiveCluster,
) -> Result<Vec<Arc<Object>>, Stop> {
    let rules = compare::rules(ctx, cluster)?;
    let known = known::of(&ctx.app);
    let live = owned(cluster, &rules, &known).await?;
    cluster.cache.truly_gone(&known)?;
    Ok(live
        .into_iter()
        .filter(|o| goes_with(o, &rules, &ctx.app.metadata.uid))
        .collect())
}

/// Whether an object is deleted with the Application that has this uid: it is managed by the
/// Application, and nothing says to keep it.
fn goes_with(object: &Object, rules: &CompareRules, app_uid: &str) -> bool {
    let is_kept = marks::sync_option(object, &rules.sync_options, "Delete") == Some("false")
        || marks::has_option(object, "helm.sh/resource-policy", "keep")
        || track::is_crd(object)
        || object.uid() == app_uid;
    !is_kept && is_owned(object, rules)
}

/// Removes finalizers, and the condition about the blocked deletion.
async fn release(
    ctx: &mut ReconcileContext<'_>,
    which: impl Fn(&str) -> bool,
) -> Result<(), Error> {
    ctx.app.metadata.finalizers.retain(|f| !which(f));
    clear_error(ctx);
    ctx.store().await
}

/// Removes the condition about the blocked deletion, with the hooks that it is about.
fn clear_error(ctx: &mut ReconcileContext<'_>) {
    ctx.annotate(FAILED_HOOKS, None);
    status::set_conditions(
        &mut ctx.app.status,
        &[],
        &[ConditionType::DeletionError],
        ctx.now,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(kind: &str, name: &str, change: serde_json::Value) -> Arc<Object> {
        let version = if kind.starts_with("App") {
            "argoproj.io/v1alpha1"
        } else {
            "v1"
        };
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "ns"}});
        let object = tiphys_apimachinery::patch::json_merge::apply(&object, &change).expect("maps");
        Arc::new(Object::from_value(object).expect("an object"))
    }

    fn wave(wave: i32) -> serde_json::Value {
        json!({"metadata": {"annotations": {"argocd.argoproj.io/sync-wave": wave.to_string()}}})
    }

    #[test]
    fn c88_the_highest_wave_goes_first_and_a_project_after_the_applications() {
        let turn = |live: &[Arc<Object>]| {
            next_to_go(live)
                .iter()
                .map(|o| o.name().to_owned())
                .collect::<Vec<_>>()
        };
        let maps = [
            object("ConfigMap", "low", wave(-1)),
            object("ConfigMap", "high", wave(2)),
            object("ConfigMap", "peer", wave(2)),
        ];
        assert_eq!(turn(&maps), ["high", "peer"]);
        assert_eq!(turn(&maps[..1]), ["low"]);
        let family = [
            object("AppProject", "project", wave(3)),
            object("Application", "child", wave(0)),
            object("ConfigMap", "map", wave(0)),
            object("AppProject", "other", wave(-1)),
        ];
        assert_eq!(turn(&family), ["child", "map"]);
        assert_eq!(
            turn(&[family[0].clone(), family[2].clone()]),
            ["project"],
            "no Application needs it"
        );
        assert_eq!(
            turn(&[family[0].clone(), family[3].clone(), family[1].clone()]),
            ["child"]
        );
        let peer = object("AppProject", "peer", wave(0));
        assert_eq!(
            turn(&[peer, family[1].clone()]),
            ["child"],
            "also one of the same wave waits for it"
        );
        let mut others = wave(0);
        others["apiVersion"] = json!("app.k8s.io/v1beta1");
        assert_eq!(
            turn(&[family[0].clone(), object("Application", "others", others)]),
            ["project"],
            "an Application of another API needs no project"
        );
    }

    #[test]
    fn what_holds_a_deletion_is_told_at_once_or_when_it_is_overdue() {
        let since = "2026-01-01T00:00:00Z";
        let now: Timestamp = "2026-01-01T00:00:30Z".parse().expect("a time");
        let leaving = |finalizers: &[&str]| json!({"metadata": {"deletionTimestamp": since, "finalizers": finalizers}});
        let slow = [
            object("ConfigMap", "slow", leaving(&["a/b"])),
            object("ConfigMap", "stays", json!({})),
        ];
        assert_eq!(held(&slow, now), Progress::Waits);
        let later = now + SignedDuration::from_secs(30);
        assert_eq!(
            held(&slow, later),
            Progress::Held(
                "waiting for /ConfigMap/ns/slow to be deleted, which is held by a/b".into()
            )
        );
        let silent = [object("ConfigMap", "silent", leaving(&[]))];
        assert_eq!(
            held(&silent, later),
            Progress::Held("waiting for /ConfigMap/ns/silent to be deleted".into())
        );
        let both = [silent[0].clone(), slow[0].clone(), slow[1].clone()];
        assert_eq!(
            held(&both, later),
            Progress::Held(
                "waiting for /ConfigMap/ns/silent to be deleted; \
                 waiting for /ConfigMap/ns/slow to be deleted, which is held by a/b"
                    .into()
            )
        );
        let mut others = leaving(&["a/b"]);
        others["status"]["conditions"] = json!([{"type": "DeletionError", "message": "why"}]);
        assert_eq!(
            held(&[object("Widget", "others", others)], now),
            Progress::Waits,
            "only an Application's condition is known to be about this"
        );
        let mut child = leaving(&["a/b"]);
        child["status"]["conditions"] = json!([{"type": "SyncError", "message": "x"}, {"type": "DeletionError", "message": "why"}]);
        let child = [object("Application", "child", child)];
        assert_eq!(
            held(&child, now),
            Progress::Held(
                "waiting for argoproj.io/Application/ns/child to be deleted: why".into()
            )
        );
    }

    #[test]
    fn c93_the_stages_of_a_deletion_follow_each_other() {
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
        let order = [
            Stage::Hooks(When::Before),
            Stage::Resources,
            Stage::Hooks(When::After),
            Stage::Cleanup(When::Before),
            Stage::Cleanup(When::After),
        ];
        for expected in order {
            assert_eq!(stage(&finalizers), Some(expected));
            finalizers.retain(|f| !expected.is_held_by(f));
        }
        assert_eq!(
            (stage(&finalizers), finalizers),
            (None, vec!["somebody.else/finalizer".to_owned()])
        );
    }
}

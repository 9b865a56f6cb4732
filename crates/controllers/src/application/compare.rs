//! The comparison of one Application: gathers manifests, live objects and rules; the engine does
//! the rest.

use super::{
    context::ReconcileContext,
    error::CompareError,
    impersonation, known,
    memo::{Outage, Unloadable},
    refresh::{Level, Refresh},
    requested::{RenderedSources, RequestedSources, compared},
    sources::{self},
    status, timeouts,
};
use crate::runtime::standing;
use std::{collections::BTreeSet, sync::Arc};
use tiphys_api::{Application, operation::SyncOperation};
use tiphys_apimachinery::{Kept, Object, ResourceKey};
use tiphys_cluster::{Executor, Known, clusters::LiveCluster, scripts::heavy};
use tiphys_engine::{
    compare::compare,
    integrity, spec, track,
    types::{CompareRules, Comparison, Condition, ConditionType, Desired, DryRuns, KindInfo},
};
use tiphys_gocompat::yaml;

/// A comparison and its inputs.
pub struct CompareResult {
    pub comparison: Arc<Comparison>,
    pub facts: status::ComparisonFacts,
    pub cluster: Arc<LiveCluster>,
    /// There are no manifests, but the grace period is not over: the status stays unchanged.
    pub untold: bool,
}

/// Compares as thoroughly as requested. The error is the message of a `ComparisonError`.
pub async fn run(
    ctx: &mut ReconcileContext<'_>,
    refresh: &Refresh,
) -> Result<CompareResult, CompareError> {
    let wanted = RequestedSources::of(&ctx.app)?;
    if refresh.hard {
        // The result of a dry run may change without either side changing, because of a policy or a
        // webhook.
        ctx.memo.comparison = None;
    }
    let cluster = cluster(ctx).await?;
    let local = local_manifests(&ctx.app);
    if !local.is_empty() {
        return with_manifests(ctx, cluster, &local).await;
    }
    let rests = refresh.level < Level::ForceResolve
        && ctx
            .memo
            .untold_outage()
            .is_some_and(|outage| ctx.now < outage.next);
    let trust = ctx.controller.sources.trust(spec::project_name(&ctx.app));
    let remembered = ctx
        .memo
        .loaded(&wanted, &trust)
        .filter(|_| rests || (refresh.level <= Level::Recent && !refresh.hard));
    let (loaded, reconciled) = match remembered {
        Some(loaded) => (loaded, false),
        None if rests => (
            Err("Failed to load target state: the repository was away a moment ago".to_owned()),
            false,
        ),
        None => load(ctx, &cluster, &wanted, refresh).await,
    };
    let untold = loaded.is_err() && ctx.memo.untold_outage().is_some();
    let facts = status::ComparisonFacts {
        reconciled,
        ..facts(ctx)
    };
    let (comparison, facts) = match loaded {
        Ok(desired) => {
            let facts = status::ComparisonFacts {
                revisions: desired.revisions(),
                source_types: desired.types(),
                ..facts
            };
            (with_live(ctx, &cluster, Some(&desired), &[]).await?, facts)
        }
        Err(why) => {
            let before = status::ComparisonFacts::as_before(&ctx.app.status);
            let facts = status::ComparisonFacts {
                revisions: before.revisions,
                source_types: before.source_types,
                ..facts
            };
            let condition = Condition::new(ConditionType::ComparisonError, why);
            (
                with_target(
                    ctx,
                    &cluster,
                    Desired {
                        objects: Vec::new(),
                        errors: vec![condition],
                    },
                    Vec::new(),
                )
                .await?,
                facts,
            )
        }
    };
    Ok(CompareResult {
        comparison,
        facts,
        cluster,
        untold,
    })
}

/// The facts for the status that are the same for every comparison.
fn facts(ctx: &ReconcileContext<'_>) -> status::ComparisonFacts {
    status::ComparisonFacts {
        with_health: ctx
            .controller
            .records
            .settings()
            .param("controller.resource.health.persist")
            == "true",
        controller_namespace: ctx.controller.records.namespace.clone(),
        ..status::ComparisonFacts::default()
    }
}

/// The local manifests of the last operation, if it had any: the Application is compared with them,
/// and not with Git, until another operation. An operation that was refused before it did anything
/// does not count.
fn local_manifests(app: &Application) -> Vec<String> {
    let begun = app
        .status
        .operation_state
        .as_ref()
        .filter(|state| state.phase != "Error");
    let operation = begun.and_then(|state| state.operation.sync.as_ref());
    operation
        .map(|sync| sync.manifests.clone())
        .unwrap_or_default()
}

/// Compares with local manifests. They have no revision, and Git is not needed.
async fn with_manifests(
    ctx: &mut ReconcileContext<'_>,
    cluster: Arc<LiveCluster>,
    manifests: &[String],
) -> Result<CompareResult, CompareError> {
    let facts = status::ComparisonFacts {
        reconciled: true,
        ..facts(ctx)
    };
    let comparison = with_live(ctx, &cluster, None, manifests).await?;
    Ok(CompareResult {
        comparison,
        facts,
        cluster,
        untold: false,
    })
}

/// The manifests from Git. While Git fails, the previous ones are used during the grace period. A
/// process that has just started renders them again, if nobody who is away is needed for it; if it
/// cannot, the previous process's status is kept.
async fn load(
    ctx: &mut ReconcileContext<'_>,
    cluster: &LiveCluster,
    wanted: &RequestedSources,
    refresh: &Refresh,
) -> (Result<RenderedSources, String>, bool) {
    let loaded = sources::load(
        ctx,
        cluster,
        wanted,
        &wanted.revisions(&SyncOperation::default()),
        refresh,
    )
    .await;
    let sources::Unloaded {
        why,
        may_pass: is_retryable,
        ..
    } = match loaded {
        Ok(desired) => {
            ctx.memo.remember(&desired);
            return (Ok(desired), true);
        }
        Err(unloaded) => unloaded,
    };
    let since = ctx.memo.outage.map_or(ctx.now, |known| known.since);
    let patience = since + timeouts::repo_error_grace(&ctx.controller.records.settings());
    let mut outage = Outage::goes_on(ctx.memo.outage, ctx.now, patience);
    let trust = ctx.controller.sources.trust(spec::project_name(&ctx.app));
    // What was true under the former demands of the project must not stand for the present ones.
    let demands_changed = ctx.memo.desired.as_ref().is_some_and(|d| d.trust != trust);
    let may_pass = refresh.level < Level::ForceResolve
        && ctx.memo.unloadable.is_none()
        && ctx.now < patience
        && !demands_changed;
    // Once: what is at these revisions does not change.
    let no_former = ctx.memo.desired.is_none() && !outage.was_restored;
    let restore = is_retryable && may_pass && no_former;
    outage.was_restored |= restore;
    ctx.memo.outage = Some(outage);
    if restore {
        ctx.memo.desired = as_compared_before(ctx, cluster, wanted).await;
    }
    let before = ctx
        .memo
        .desired
        .clone()
        .filter(|d| may_pass && d.wanted == *wanted);
    if before.is_some() || (may_pass && status::is_compared(&ctx.app)) {
        tracing::warn!(
            error = why,
            "Ignoring temporary failed attempt to compare app state against repo"
        );
        return (before.ok_or(why), false);
    }
    ctx.memo.unloadable = Some(Unloadable {
        wanted: wanted.clone(),
        trust,
        why: why.clone(),
    });
    (Err(why), true)
}

/// What the previous process compared with, at the revisions that it wrote into the status: nobody
/// need be asked what these are, and what is at them may be on disk. Where signatures are demanded
/// it is left to the repository: a tag may have been what was signed.
async fn as_compared_before(
    ctx: &ReconcileContext<'_>,
    cluster: &LiveCluster,
    wanted: &RequestedSources,
) -> Option<RenderedSources> {
    let project = ctx.controller.project_of(&ctx.app).ok()?;
    let revisions = compared(&ctx.app, wanted);
    let is_of_all = revisions.len() == wanted.list.len() && !revisions.iter().any(String::is_empty);
    if !is_of_all
        || !status::is_compared(&ctx.app)
        || integrity::has_criteria(&project, wanted.list.iter())
    {
        return None;
    }
    let refresh = Refresh::default();
    // What readers are told is of the present revisions.
    let loaded = sources::load_untold(ctx, cluster, wanted, &revisions, &refresh).await;
    loaded.ok()
}

/// The destination cluster, with its cache ready.
pub async fn cluster(ctx: &ReconcileContext<'_>) -> Result<Arc<LiveCluster>, CompareError> {
    let destination = spec::destination(&ctx.app.spec.destination, &ctx.controller.destinations())?;
    standing(ctx.controller.clusters.get(&destination))
        .await
        .map_err(|e| CompareError::NoLiveState(e.to_string()))
}

/// Compares the cluster with Git, or with local manifests.
pub async fn with_live(
    ctx: &mut ReconcileContext<'_>,
    cluster: &LiveCluster,
    desired: Option<&RenderedSources>,
    local: &[String],
) -> Result<Arc<Comparison>, CompareError> {
    let (target, denied) = match desired.filter(|_| local.is_empty()) {
        Some(desired) => {
            let target = Desired {
                objects: desired.objects(),
                errors: desired.broken(),
            };
            (target, desired.denied())
        }
        None => {
            unsigned_permitted(ctx)?;
            (Desired::from(local_objects(local)?), Vec::new())
        }
    };
    with_target(ctx, cluster, target, denied).await
}

/// Whether local manifests, which nobody signed, may be used.
fn unsigned_permitted(ctx: &ReconcileContext<'_>) -> Result<(), String> {
    let project = ctx.controller.project_of(&ctx.app)?;
    let sources = spec::sources(&ctx.app.spec);
    if integrity::has_criteria(&project, sources.iter().map(AsRef::as_ref)) {
        return Err(integrity::NO_LOCAL_MANIFESTS.to_owned());
    }
    Ok(())
}

/// Compares with the cluster. With errors in the target, the live objects are reported as far as
/// possible without the desired ones. `denied`: why the target may not be synced.
async fn with_target(
    ctx: &mut ReconcileContext<'_>,
    cluster: &LiveCluster,
    desired: Desired,
    denied: Vec<Condition>,
) -> Result<Arc<Comparison>, CompareError> {
    let rules = rules(ctx, cluster)?;
    let kinds = cluster.cache.kinds();
    let mut keys = target_keys(&desired.objects, &rules, &*kinds);
    let namespace = ResourceKey::new("", "Namespace", "", &rules.dest_namespace);
    // A sync that creates the namespace needs it, but it is not a resource of the Application.
    let helper = rules
        .sync_options
        .iter()
        .any(|o| o == "CreateNamespace=true")
        && !keys.contains(&namespace);
    if helper {
        keys.push(namespace.clone());
    }
    let had = known::resources(&ctx.app);
    let mut live = match standing(cluster.cache.managed(
        &rules.tracking.app_name,
        &keys,
        &Known::Resources(had.clone()),
    ))
    .await
    {
        Ok(live) => live,
        Err(unreadable) => {
            ctx.memo.unseen = had.into_iter().chain(keys).collect();
            return Err(CompareError::NoLiveState(unreadable.to_string()));
        }
    };
    if helper
        && live
            .get(&namespace)
            .is_some_and(|o| track::owner(&o.object(), &rules.tracking).is_none())
    {
        live.remove(&namespace);
    }
    let project = spec::project_name(&ctx.app).to_owned();
    let previous = ctx.memo.comparison.as_deref();
    // Only a comparison that may need dry runs is repeated.
    let again = rules.server_side_diff.map(|_| desired.clone());
    let mut comparison = heavy(&project, || {
        compare(desired, &live, &rules, &*kinds, previous, &DryRuns::new())
    })
    .await;
    if let Some(desired) = again.filter(|_| !comparison.unanswered.is_empty()) {
        let answers = standing(ask(&impersonation::for_diff(ctx, cluster)?, &comparison)).await;
        comparison = heavy(&project, || {
            compare(desired, &live, &rules, &*kinds, previous, &answers)
        })
        .await;
    }
    comparison.conditions.extend(denied);
    let comparison = Arc::new(comparison);
    ctx.memo.comparison = Some(comparison.clone());
    ctx.memo.compared_on.clone_from(&cluster.destination.server);
    Ok(comparison)
}

/// Runs the server-side dry runs for the pairs that need one.
async fn ask(executor: &Executor, comparison: &Comparison) -> DryRuns {
    let wanted: BTreeSet<&ResourceKey> = comparison.unanswered.iter().collect();
    let asked = comparison
        .entries
        .iter()
        .filter(|e| wanted.contains(&e.key));
    let pairs: Vec<(&ResourceKey, Arc<Object>)> = asked
        .filter_map(|e| Some((&e.key, e.desired.as_ref()?.object())))
        .collect();
    let objects: Vec<&Object> = pairs.iter().map(|(_, object)| &**object).collect();
    let answers = executor.predict_all(&objects).await;
    pairs
        .into_iter()
        .map(|(key, _)| key.clone())
        .zip(answers)
        .collect()
}

fn local_objects(manifests: &[String]) -> Result<Vec<Object>, String> {
    let parse = |text: &String| -> Result<Object, String> {
        let mut documents =
            yaml::parse_documents(text, &yaml::Limits::default()).map_err(|e| e.to_string())?;
        let value = documents
            .pop()
            .ok_or_else(|| "an empty manifest".to_owned())?
            .value;
        Object::from_value(value).map_err(|e| e.to_string())
    };
    manifests
        .iter()
        .map(parse)
        .collect::<Result<_, _>>()
        .map_err(|e| format!("Failed to load local manifests: {e}"))
}

/// The keys of the targets: at both scopes if the kind is unknown.
fn target_keys(
    objects: &[Arc<Kept>],
    rules: &CompareRules,
    kinds: &dyn KindInfo,
) -> Vec<ResourceKey> {
    let mut keys = Vec::new();
    for object in objects.iter().filter(|o| !o.name().is_empty()) {
        let mut key = ResourceKey::new(
            object.group(),
            object.kind(),
            object.namespace(),
            object.name(),
        );
        let namespaced = kinds.is_namespaced(&key.group_kind());
        if namespaced != Some(true) {
            keys.push(key.without_namespace());
        }
        if namespaced != Some(false) {
            if key.namespace.is_empty() {
                key.namespace.clone_from(&rules.dest_namespace);
            }
            keys.push(key);
        }
    }
    keys
}

/// The rules of this Application's comparison with this cluster.
pub fn rules(
    ctx: &ReconcileContext<'_>,
    cluster: &LiveCluster,
) -> Result<CompareRules, CompareError> {
    let rules = ctx.controller.records.compare_rules(&ctx.app)?;
    same_cluster(&rules, &cluster.destination.server)?;
    Ok(rules)
}

/// The settings may have changed since the cluster was looked up. What the project permits in one
/// cluster says nothing about another.
fn same_cluster(rules: &CompareRules, server: &str) -> Result<(), CompareError> {
    if rules.dest_server == server {
        return Ok(());
    }
    let text = format!(
        "the destination became {} while {server} was read",
        rules.dest_server
    );
    Err(CompareError::NoLiveState(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_engine::types::Tracking;

    #[test]
    fn rules_for_another_cluster_than_the_one_that_is_read_are_an_error_to_try_again() {
        let rules = |server: &str| {
            CompareRules::new(Tracking::annotation("app"), "argocd", "app", server, "web")
        };
        let (first, second) = ("https://first.example", "https://second.example");
        assert_eq!(same_cluster(&rules(first), first), Ok(()));
        let error = same_cluster(&rules(second), first).expect_err("another cluster");
        assert!(matches!(error, CompareError::NoLiveState(_)), "{error}");
    }

    #[test]
    fn c10_local_manifests_that_cannot_be_read_are_told() {
        for broken in ["a: [", "- a\n- list", ""] {
            let error = local_objects(&[broken.to_owned()]).expect_err(broken);
            assert!(
                error.starts_with("Failed to load local manifests: "),
                "{error}"
            );
        }
        let fine =
            local_objects(&["{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}".into()]);
        assert_eq!(fine.expect("an object")[0].name(), "a");
    }
}

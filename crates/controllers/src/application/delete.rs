//! The end of an Application: its resources go first if a finalizer says so, the highest wave before the lower ones, then the finalizer.
//!
//! Main function: [`run`]. Level-triggered: each look deletes what may go now and waits for the rest.

use super::{
    compare,
    error::Error,
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
    sync::{options, request::deletion_confirmed, wave},
    track,
    types::{Condition, ConditionType},
};

/// Deletions under way at once.
const PARALLEL: usize = 16;
const POLL: Duration = Duration::from_secs(5);

const CASCADE: [&str; 3] = [RESOURCES_FINALIZER, RESOURCES_FINALIZER_FOREGROUND, RESOURCES_FINALIZER_BACKGROUND];

/// What is left to do.
enum Rest {
    /// Nothing: the finalizer may go.
    Done,
    /// These are gone soon, or wait for somebody.
    Waiting,
}

/// Takes the deletion as far as it goes now.
pub async fn run(pass: &mut Pass<'_>) -> Result<Again, Error> {
    let finalizers = pass.app.metadata.finalizers.clone();
    let hooks = |f: &&String| f.starts_with(PRE_DELETE_FINALIZER) || f.starts_with(POST_DELETE_FINALIZER);
    let reachable = spec::destination(&pass.app.spec.destination, &pass.controller.destinations()).is_ok();
    if !reachable {
        // Nobody can ever delete what was there: the Application must not wait for it.
        remove_finalizers(pass, |f| CASCADE.contains(&f) || hooks(&&f.to_owned())).await?;
        return Ok(None);
    }
    if let Some(hook) = finalizers.iter().find(hooks) {
        let text = format!("PreDelete and PostDelete hooks are not supported yet; remove the finalizer {hook} to delete without them");
        return refused(pass, text).await;
    }
    if !finalizers.iter().any(|f| CASCADE.contains(&f.as_str())) {
        return Ok(None);
    }
    match cascade(pass).await {
        Ok(Rest::Done) => {
            remove_finalizers(pass, |f| CASCADE.contains(&f)).await?;
            Ok(None)
        }
        Ok(Rest::Waiting) => Ok(Some((Reason::LOOK, POLL))),
        Err(text) => refused(pass, text).await,
    }
}

/// Says why the deletion does not go on.
async fn refused(pass: &mut Pass<'_>, text: String) -> Result<Again, Error> {
    let known = pass.app.status.conditions.iter().any(|c| c.type_ == "DeletionError" && c.message == text);
    if !known {
        pass.event(true, "StatusRefreshed", format!("Unable to delete application resources: {text}"));
    }
    let condition = Condition::new(ConditionType::DeletionError, text);
    status::set_conditions(&mut pass.app.status, &[condition], &[ConditionType::DeletionError], pass.now);
    pass.store().await?;
    Ok(Some((Reason::LOOK, POLL)))
}

async fn cascade(pass: &mut Pass<'_>) -> Result<Rest, String> {
    let cluster = compare::cluster(pass).await?;
    let live = deletable(pass, &cluster).await?;
    if live.is_empty() {
        return Ok(Rest::Done);
    }
    let since = pass.app.metadata.deletion_timestamp.map_or(pass.now, |t| t.timestamp());
    let approved = deletion_confirmed(pass.app.metadata.annotations.get(DELETION_APPROVED).map(String::as_str), since);
    let app_options = pass.app.spec.sync_policy.as_ref().map(|p| p.sync_options.clone()).unwrap_or_default();
    let confirm = |o: &Object| {
        ["Prune", "Delete"]
            .into_iter()
            .any(|name| options::value(o, name).is_some_and(|v| v == "confirm") || app_options.contains(&format!("{name}=confirm")))
    };
    if live.iter().any(|o| o.deletion_timestamp().is_some()) || (!approved && live.iter().any(|o| confirm(o))) {
        return Ok(Rest::Waiting);
    }
    let highest = live.iter().map(|o| wave::of(o)).max().unwrap_or(0);
    let background = pass.app.metadata.finalizers.iter().any(|f| f == RESOURCES_FINALIZER_BACKGROUND);
    let propagation = if background { "Background" } else { "Foreground" };
    let doomed: Vec<_> = live.iter().filter(|o| wave::of(o) == highest).cloned().collect();
    let executor = &cluster.executor;
    for batch in doomed.chunks(PARALLEL) {
        let removals: Vec<_> = batch.iter().map(|object| remove(executor, object, propagation)).collect();
        join_all(removals).await.into_iter().collect::<Result<Vec<()>, _>>()?;
    }
    let left = deletable(pass, &cluster).await?;
    Ok(if left.is_empty() { Rest::Done } else { Rest::Waiting })
}

async fn remove(executor: &Executor, object: &Object, propagation: &str) -> Result<(), String> {
    executor.remove(&object.gvk(), &object.key(), object.uid(), propagation).await.map_err(|e| format!("{}: {e}", object.key()))
}

/// The live objects that go with the Application.
async fn deletable(pass: &Pass<'_>, cluster: &LiveCluster) -> Result<Vec<Arc<Object>>, String> {
    let rules = compare::rules(pass)?;
    let live = cluster.cache.managed(&rules.tracking.app_name, &[]).await.map_err(|e| e.to_string())?;
    let app_keeps = rules.sync_options.iter().any(|o| o == "Delete=false");
    let keep = |o: &Object| {
        app_keeps
            || options::has(o, "Delete=false")
            || o.annotation("helm.sh/resource-policy") == Some("keep")
            || (o.group() == "apiextensions.k8s.io" && o.kind() == "CustomResourceDefinition")
            || o.uid() == pass.app.metadata.uid
    };
    let ours =
        |o: &Object| track::owner(o, &rules.tracking).is_some_and(|owner| owner == rules.tracking.app_name) && permit::live(&rules, o);
    Ok(live.into_values().filter(|o| ours(o) && !keep(o)).collect())
}

async fn remove_finalizers(pass: &mut Pass<'_>, which: impl Fn(&str) -> bool) -> Result<(), Error> {
    let left: Vec<_> = pass.app.metadata.finalizers.iter().filter(|f| !which(f)).cloned().collect();
    if left.len() == pass.app.metadata.finalizers.len() {
        return Ok(());
    }
    let patch = json!({"metadata": {"finalizers": left, "resourceVersion": pass.record.object.resource_version()}});
    pass.controller.records.applications.merge_patch(&pass.key.namespace, &pass.key.name, &patch).await?;
    Ok(())
}

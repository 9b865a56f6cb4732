//! Hooks around the deletion of an Application: those of `PreDelete` run before its resources go, those of `PostDelete` afterwards.
//!
//! Main functions: [`align`] keeps the finalizers that hold an Application back for them, [`execute`] runs them, [`cleanup`] removes what
//! their delete policies say. Level-triggered: each call does what may be done now and tells whether that was all.

use super::{
    compare, delete, impersonation, operation,
    pass::Pass,
    refresh::{Level, Refresh},
    sources::{self, Wanted},
};
use std::sync::Arc;
use tiphys_api::{
    constants::{POST_DELETE_FINALIZER, PRE_DELETE_FINALIZER},
    operation::SyncOperation,
};
use tiphys_apimachinery::Object;
use tiphys_cluster::{clusters::LiveCluster, scripts::aside};
use tiphys_engine::{
    health,
    sync::hook::{self, DeletePolicy},
    types::{CompareRules, Comparison, Condition, HealthStatus, KindInfo},
};

/// When a hook of the deletion runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Before,
    After,
}

impl When {
    pub const ALL: [Self; 2] = [Self::Before, Self::After];

    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "PreDelete",
            Self::After => "PostDelete",
        }
    }

    /// Holds the Application until the hooks have run.
    pub fn finalizer(self) -> &'static str {
        match self {
            Self::Before => PRE_DELETE_FINALIZER,
            Self::After => POST_DELETE_FINALIZER,
        }
    }

    /// Holds the Application until the hooks are removed.
    pub fn cleanup_finalizer(self) -> String {
        format!("{}/cleanup", self.finalizer())
    }

    fn is(self, object: &Object) -> bool {
        match self {
            Self::Before => hook::is_pre_delete(object),
            Self::After => hook::is_post_delete(object),
        }
    }
}

/// Gives an Application the finalizers of the hooks that it has, and takes those of hooks that it has no longer. What could not be read is
/// no reason to take one.
pub fn align(finalizers: &mut Vec<String>, comparison: &Comparison) {
    let complete = !comparison.conditions.iter().any(Condition::is_error);
    for when in When::ALL {
        let wanted = comparison.delete_hooks.iter().any(|o| when.is(&o.object()));
        for name in [when.finalizer().to_owned(), when.cleanup_finalizer()] {
            match finalizers.iter().position(|f| *f == name) {
                None if wanted => finalizers.push(name),
                Some(at) if !wanted && complete => drop(finalizers.remove(at)),
                _ => {}
            }
        }
    }
}

/// Creates the hooks that are not there and looks how the others do. True when all have ended well; the error names those that failed.
/// They are removed, so that they run again, at a look after it was told: once they are gone nobody can tell that they failed.
pub async fn execute(pass: &mut Pass<'_>, when: When) -> Result<bool, String> {
    let doing = |e: String| format!("error executing {} hooks: {e}", when.name());
    let cluster = compare::cluster(pass).await?;
    let executor = impersonation::for_deletion(pass, &cluster)?;
    let comparison = desired(pass, &cluster).await.map_err(doing)?;
    let running = live(&cluster, &comparison.rules, when).await?;
    let mut created = false;
    for object in comparison.delete_hooks.iter().map(|o| o.object()).filter(|o| when.is(o)) {
        let object = named(pass, &object, when);
        if running.iter().any(|r| r.key() == object.key()) {
            continue;
        }
        let namespaced = cluster.cache.kinds().is_namespaced(&object.gvk().group_kind()).unwrap_or(true);
        operation::permitted(&comparison, &object, namespaced).map_err(doing)?;
        match executor.create(&object).await {
            Ok(_) => created = true,
            // Somebody else's object of that name is not ours to wait for.
            Err(e) if e.is_already_exists() => tracing::warn!(hook = %object.key(), "it exists already, skipping"),
            Err(e) => return Err(doing(format!("{}: {e}", object.key()))),
        }
    }
    if created {
        return Ok(false);
    }
    let is = |object: &Object, status| health_of(object, &comparison.rules) == status;
    let failed: Vec<_> = running.iter().filter(|o| is(o, HealthStatus::Degraded)).collect();
    if failed.is_empty() {
        return Ok(!running.iter().any(|o| is(o, HealthStatus::Progressing)));
    }
    let names: Vec<_> = failed.iter().map(|o| format!("{}/{}", o.namespace(), o.name())).collect();
    let text = doing(format!("{} hook(s) failed: {}", when.name(), names.join(", ")));
    if delete::is_told(pass, &text) {
        for object in failed {
            delete::remove(&executor, object, "Background").await?;
        }
    }
    Err(text)
}

/// Removes the hooks whose delete policies say so. True when there are none left to be removed.
pub async fn cleanup(pass: &mut Pass<'_>, when: When) -> Result<bool, String> {
    let cluster = compare::cluster(pass).await?;
    let executor = impersonation::for_deletion(pass, &cluster)?;
    let rules = compare::rules(pass)?;
    let hooks = live(&cluster, &rules, when).await?;
    let worst = hooks.iter().map(|o| health_of(o, &rules)).max().unwrap_or(HealthStatus::Healthy);
    let mut left = false;
    for object in &hooks {
        let doomed = hook::delete_policies(object).into_iter().any(|policy| match policy {
            DeletePolicy::BeforeHookCreation => false,
            DeletePolicy::HookSucceeded => worst == HealthStatus::Healthy,
            DeletePolicy::HookFailed => worst == HealthStatus::Degraded,
        });
        left |= doomed;
        if doomed && object.deletion_timestamp().is_none() {
            delete::remove(&executor, object, "Background").await?;
        }
    }
    Ok(!left)
}

/// The hooks in the cluster that belong to the Application.
async fn live(cluster: &LiveCluster, rules: &CompareRules, when: When) -> Result<Vec<Arc<Object>>, String> {
    Ok(delete::owned(cluster, rules).await?.into_iter().filter(|o| when.is(o)).collect())
}

/// How a hook does; without a check for its kind it has done its work by being there.
fn health_of(object: &Object, rules: &CompareRules) -> HealthStatus {
    let health = aside(&rules.customizations, || health::of_with(object, &rules.customizations));
    health.map_or(HealthStatus::Healthy, |h| h.status)
}

/// What Git wants now. Hooks that cannot be read are no reason to go on without them.
async fn desired(pass: &mut Pass<'_>, cluster: &LiveCluster) -> Result<Arc<Comparison>, String> {
    let wanted = Wanted::of(&pass.app)?;
    let refresh = Refresh { level: Level::Latest, ..Refresh::default() };
    let desired = sources::load(pass, cluster, &wanted, &wanted.revisions(&SyncOperation::default()), &refresh).await?;
    let comparison = compare::with_live(pass, cluster, &desired, &[]).await?;
    match comparison.conditions.iter().find(|c| c.is_error()) {
        Some(problem) => Err(problem.message.clone()),
        None => Ok(comparison),
    }
}

/// A name for a hook that has only the beginning of one: the same at every look, so that it is found again.
fn named(pass: &Pass<'_>, object: &Object, when: When) -> Object {
    let mut object = object.clone();
    if object.name().is_empty() {
        let since = pass.app.metadata.deletion_timestamp.map_or(0, |t| t.seconds);
        let name = format!("{}{}-{since}", object.generate_name(), when.name().to_lowercase());
        object.metadata_mut().remove("generateName");
        object.metadata_mut().insert("name".into(), name.into());
    }
    object
}

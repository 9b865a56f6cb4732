//! The service account to impersonate when writing to an Application's cluster: the one that its
//! project assigns to the destination, if `application.sync.impersonation.enabled` is set. Main
//! functions: [`for_sync`], [`for_diff`] and [`for_deletion`], which differ in what they do if
//! there is none.

use super::context::ReconcileContext;
use crate::metrics::Request;
use std::sync::Arc;
use tiphys_cluster::{Executor, clusters::LiveCluster, records::Impersonation};
use tiphys_engine::spec;

/// Its requests are counted.
fn executor(ctx: &ReconcileContext<'_>, cluster: &LiveCluster) -> Result<Executor, Impersonation> {
    let own = counted(ctx, cluster);
    let Ok(project) = ctx.controller.project_of(&ctx.app) else {
        return Ok(own);
    };
    let user =
        ctx.controller
            .records
            .impersonated(&ctx.app, &project, &cluster.destination.server)?;
    Ok(user.map_or(own.clone(), |user| own.as_user(&user)))
}

fn counted(ctx: &ReconcileContext<'_>, cluster: &LiveCluster) -> Executor {
    let (metrics, app) = (ctx.controller.metrics.clone(), ctx.key.clone());
    let (project, server) = (
        spec::project_name(&ctx.app).to_owned(),
        cluster.destination.server.clone(),
    );
    cluster.executor.witnessed(Arc::new(move |call, code| {
        metrics.requested(&app, &project, &server, Request::of(call, code))
    }))
}

/// The executor of a sync; the error is the operation's message.
pub fn for_sync(ctx: &ReconcileContext<'_>, cluster: &LiveCluster) -> Result<Executor, String> {
    executor(ctx, cluster).map_err(|e| match e {
        Impersonation::Underivable(why) => {
            format!("failed to derive service account to impersonate: {why}")
        }
        missing => missing.to_string(),
    })
}

/// The executor for dry runs: the same as that of a sync.
pub fn for_diff(ctx: &ReconcileContext<'_>, cluster: &LiveCluster) -> Result<Executor, String> {
    executor(ctx, cluster).map_err(|e| match e {
        Impersonation::Underivable(why) => {
            format!("error deriving service account to impersonate: {why}")
        }
        missing => missing.to_string(),
    })
}

/// The executor for deletions: without impersonation if there is no service account, because the
/// Application could otherwise never be deleted.
pub fn for_deletion(ctx: &ReconcileContext<'_>, cluster: &LiveCluster) -> Result<Executor, String> {
    match executor(ctx, cluster) {
        Err(Impersonation::Underivable(why)) => Err(format!(
            "cannot apply impersonation: error deriving service account to impersonate: {why}"
        )),
        Err(Impersonation::Missing { .. }) => Ok(counted(ctx, cluster)),
        Ok(executor) => Ok(executor),
    }
}

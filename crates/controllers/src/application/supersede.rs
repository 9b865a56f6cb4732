//! Whether a newer revision replaces a running sync (`Supersede=true`).
//!
//! Main function: [`newer`]. Only a sync that follows the Application's target revision can be
//! superseded, and only if the manifests differ.

use super::{
    context::ReconcileContext,
    requested::{self},
    rollback, timeouts,
};

/// The revision to sync instead, if the last comparison found one.
pub fn newer(ctx: &ReconcileContext<'_>) -> Option<String> {
    let operation = &ctx.app.status.operation_state.as_ref()?.operation;
    let sync = operation.sync.as_ref()?;
    let settings = ctx.controller.records.settings();
    let wanted = timeouts::supersede(&settings, &sync.sync_options) == Ok(true);
    let follows =
        operation.initiated_by.automated || (sync.revision.is_empty() && sync.revisions.is_empty());
    if !wanted
        || !follows
        || sync.dry_run
        || !sync.manifests.is_empty()
        || rollback::origin(operation).is_some()
    {
        return None;
    }
    let (latest, syncing) = (ctx.memo.desired.as_ref()?, ctx.memo.syncing.as_ref()?);
    let revisions = latest.revisions();
    let other =
        revisions != syncing.revisions && latest.digest() != syncing.digest && latest.is_whole();
    other.then(|| requested::shown(&revisions.one, &revisions.several))
}

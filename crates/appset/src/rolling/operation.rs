//! The operation of an Application, as a rollout sees it. Times have whole seconds, and a sync may
//! end before anything is compared, so what it was for is read from its result.

use super::initiator;
use tiphys_api::Application;
use tiphys_api::meta::Time;

/// What the operation of an Application syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syncs {
    These,
    /// Or nothing.
    Others,
    /// It begins, with what is there then.
    NotSaid,
}

/// Whether the operation is one of these revisions, running or ended.
pub(super) fn syncs(app: &Application, revisions: &[String]) -> Syncs {
    let state = app.status.operation_state.as_ref();
    let runs = state.is_some_and(|state| state.finished_at.is_none());
    if app.operation.is_some() && !runs {
        return Syncs::NotSaid;
    }
    let result = state.and_then(|state| state.sync_result.as_ref());
    let of_result = result.map_or(&[][..], |result| match result.revisions.as_slice() {
        [] if result.revision.is_empty() => &[],
        [] => std::slice::from_ref(&result.revision),
        several => several,
    });
    match of_result {
        [] if runs => Syncs::NotSaid,
        [] => Syncs::Others,
        of_result if of_result == revisions => Syncs::These,
        _ => Syncs::Others,
    }
}

/// Whether the rollout's own sync began in the very second in which the Application became pending,
/// and has ended: times have whole seconds. The sync of an earlier rollout may have begun in the same
/// second, so it must have synced what the Application is compared with.
pub(super) fn was_synced_at_once(app: &Application, since: Option<Time>) -> bool {
    let status = &app.status;
    let Some(state) = &status.operation_state else {
        return false;
    };
    let Some(result) = &state.sync_result else {
        return false;
    };
    let sources = match app.spec.sources.as_slice() {
        [] => app.spec.source.as_ref() == Some(&result.source),
        sources => sources == result.sources,
    };
    since.is_some()
        && state.started_at == since
        && state.finished_at.is_some()
        && state.operation.initiated_by == initiator()
        && sources
        && result.revision == status.sync.revision
        && result.revisions == status.sync.revisions
}

/// Whether a sync of a rollout began in the second in which the Application became pending, has
/// ended, and nothing was compared since: only the comparison says whether it was this rollout's.
pub(super) fn awaits_comparison(app: &Application, since: Option<Time>) -> bool {
    let state = app.status.operation_state.as_ref();
    state.is_some_and(|state| {
        since.is_some()
            && state.started_at == since
            && state.operation.initiated_by == initiator()
            && state.finished_at > app.status.reconciled_at
    })
}

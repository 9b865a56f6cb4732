//! Whether files in the paths of the Application's `manifest-generate-paths` annotation have
//! changed since the last sync.
//!
//! Main function: [`since_last_sync`]. If the answer is unknown it is yes: an unnecessary sync is
//! better than a missing one.

use super::{
    compare,
    context::ReconcileContext,
    memo::PathsQuestion,
    requested::{self, RequestedSources},
    sources::{self, Questions},
};
use crate::runtime::standing;
use tiphys_sources::is_only_referred_to;

/// Whether relevant files have changed between the last sync and the compared revisions.
pub async fn since_last_sync(ctx: &mut ReconcileContext<'_>) -> bool {
    let Some(question) = PathsQuestion::of(ctx) else {
        return true;
    };
    if let Some((_, touched)) = ctx
        .memo
        .touched
        .as_ref()
        .filter(|(known, _)| *known == question)
    {
        return *touched;
    }
    let touched = match Box::pin(question.answer(ctx)).await {
        Ok(touched) => touched,
        Err(why) => {
            tracing::warn!(error = why, "Cannot tell what changed since the last sync");
            return true;
        }
    };
    ctx.memo.touched = Some((question, touched));
    touched
}

impl PathsQuestion {
    /// `None`: not applicable.
    fn of(ctx: &ReconcileContext<'_>) -> Option<Self> {
        let annotation = Some(sources::generate_paths(ctx))
            .filter(|paths| !paths.is_empty())?
            .to_owned();
        let status = &ctx.app.status;
        let (wanted, from) =
            RequestedSources::resumed(status.operation_state.as_ref()?.sync_result.as_ref()?)?;
        let to = requested::compared(&ctx.app, &wanted);
        let same_sources =
            RequestedSources::of(&ctx.app).is_ok_and(|now| now == wanted) && to.len() == from.len();
        same_sources.then_some(Self {
            wanted,
            from,
            to,
            annotation,
        })
    }

    async fn answer(&self, ctx: &ReconcileContext<'_>) -> Result<bool, String> {
        if self.from == self.to {
            return Ok(false);
        }
        let cluster = compare::cluster(ctx).await?;
        let questions = Questions::new(ctx, &cluster, &self.wanted, &self.to)?;
        for (i, source) in self.wanted.list.iter().enumerate() {
            if is_only_referred_to(source) {
                continue;
            }
            let request = questions.source(i, &self.to[i]);
            let before = questions.before(i, &self.from);
            let changed = ctx.controller.sources.changed(&request, &before);
            if standing(Box::pin(changed))
                .await
                .map_err(|e| e.to_string())?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

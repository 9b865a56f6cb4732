//! Whether files in the paths of the Application's `manifest-generate-paths` annotation have
//! changed since the last sync.
//!
//! Main function: [`since_last_sync`]. If the answer is unknown it is yes: an unnecessary sync is
//! better than a missing one.

use super::{
    compare,
    context::ReconcileContext,
    refresh::Refresh,
    repo_server::{Questions, annotated_paths},
    sources::{self, RequestedSources},
};
use crate::runtime::standing;
use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::source::ApplicationSource;
use tiphys_engine::generate_paths;

/// The inputs; the same inputs have the same answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    wanted: RequestedSources,
    /// The revisions of the last sync.
    from: Vec<String>,
    /// The compared revisions.
    to: Vec<String>,
    annotation: String,
}

/// Whether relevant files have changed between the last sync and the compared revisions.
pub async fn since_last_sync(ctx: &mut ReconcileContext<'_>) -> bool {
    let Some(question) = Question::of(ctx) else {
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

impl Question {
    /// `None`: not applicable.
    fn of(ctx: &ReconcileContext<'_>) -> Option<Self> {
        let annotation = Some(annotated_paths(ctx))
            .filter(|paths| !paths.is_empty())?
            .to_owned();
        let status = &ctx.app.status;
        let (wanted, from) =
            RequestedSources::resumed(status.operation_state.as_ref()?.sync_result.as_ref()?)?;
        let to = sources::compared(&ctx.app, &wanted);
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
        let names = sources::ref_names(&self.wanted)?;
        if let Some(server) = &ctx.controller.repo_server {
            let cluster = compare::cluster(ctx).await?;
            let questions = Questions::new(
                ctx,
                &cluster,
                &self.wanted,
                &names,
                (&self.from, &self.to),
                &Refresh::default(),
            )?;
            return standing(Box::pin(questions.any_changed(server, &self.to))).await;
        }
        for (i, source) in self
            .wanted
            .list
            .iter()
            .enumerate()
            .filter(|(_, source)| !is_only_referred_to(source))
        {
            for of in std::iter::once(i)
                .chain(referred(source, &names))
                .filter(|of| self.from[*of] != self.to[*of])
            {
                let access = ctx
                    .controller
                    .access(&self.wanted.list[of].repo_url, &ctx.app.spec.project);
                let paths = generate_paths::whole(&self.annotation, &source.path);
                let is_meant =
                    move |file: &str| generate_paths::touched(&paths, &[file.to_owned()]);
                let changed = ctx.controller.repos.any_changed(
                    &access,
                    &self.from[of],
                    &self.to[of],
                    is_meant,
                );
                if standing(Box::pin(changed))
                    .await
                    .map_err(|e| e.to_string())?
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// The sources whose files it reads.
fn referred(source: &ApplicationSource, names: &BTreeMap<String, usize>) -> BTreeSet<usize> {
    let Some(helm) = &source.helm else {
        return BTreeSet::new();
    };
    let paths = helm
        .value_files
        .iter()
        .chain(helm.file_parameters.iter().map(|p| &p.path));
    let name = |path: &String| {
        names
            .get(path.strip_prefix('$')?.split('/').next()?)
            .copied()
    };
    paths.filter_map(name).collect()
}

/// It renders nothing itself: its changes count for the sources that read it.
pub fn is_only_referred_to(source: &ApplicationSource) -> bool {
    !source.ref_.is_empty() && source.path.is_empty() && source.chart.is_empty()
}

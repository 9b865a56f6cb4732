//! Loads the manifests of an Application: each of its sources is rendered at its revision.
//!
//! Main function: [`load`].

use super::{
    context::ReconcileContext,
    refresh::Refresh,
    requested::{RenderedSources, RequestedSources, compared},
};
use crate::runtime::standing;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    Application, constants, operation::RefTarget, repository::Repository, source::ApplicationSource,
};
use tiphys_cluster::clusters::LiveCluster;
use tiphys_engine::{integrity, spec};
use tiphys_repo::{Manifests, RepoError};
use tiphys_sources::{AppRequest, Before, RefSources, SourceRequest};

/// Why there are no manifests.
pub struct Unloaded {
    pub why: String,
    /// Someone did not answer as they should: this may pass without a change.
    pub may_pass: bool,
    /// Something was asked for and not got: it is not the Application alone that is wrong.
    is_fetched: bool,
}

impl From<String> for Unloaded {
    fn from(why: String) -> Self {
        Self {
            why,
            may_pass: false,
            is_fetched: false,
        }
    }
}

impl From<Unloaded> for String {
    fn from(unloaded: Unloaded) -> Self {
        unloaded.why
    }
}

/// Renders the sources at these revisions. Readers in the process are informed whether waiting may
/// help against errors.
///
/// # Errors
/// There are no manifests at all; errors in single files are part of the result.
pub async fn load(
    ctx: &ReconcileContext<'_>,
    cluster: &LiveCluster,
    wanted: &RequestedSources,
    revisions: &[String],
    refresh: &Refresh,
) -> Result<RenderedSources, Unloaded> {
    let loaded = load_untold(ctx, cluster, wanted, revisions, refresh).await;
    let lasting = match &loaded {
        Ok(loaded) => Some(loaded.manifests.iter().any(|m| !m.errors.is_empty())),
        Err(unloaded) => unloaded.is_fetched.then_some(!unloaded.may_pass),
    };
    if let Some(lasting) = lasting {
        ctx.controller.states.set_lasting(ctx.key, lasting);
    }
    loaded
}

/// The same, of which readers are not informed.
pub async fn load_untold(
    ctx: &ReconcileContext<'_>,
    cluster: &LiveCluster,
    wanted: &RequestedSources,
    revisions: &[String],
    refresh: &Refresh,
) -> Result<RenderedSources, Unloaded> {
    let failed = |e: Unloaded| Unloaded {
        why: format!("Failed to load target state: {}", e.why),
        ..e
    };
    permitted(ctx, wanted).map_err(|e| failed(e.into()))?;
    let manifests = standing(Box::pin(rendered(ctx, cluster, wanted, revisions, refresh)));
    let trust = ctx.controller.sources.trust(spec::project_name(&ctx.app));
    let (manifests, denials) = manifests.await.map_err(failed)?;
    Ok(RenderedSources {
        wanted: wanted.clone(),
        manifests,
        denials,
        trust,
    })
}

/// Whether the project permits the sources. An operation, its recorded result and a history entry
/// have sources of their own.
pub fn permitted(ctx: &ReconcileContext<'_>, wanted: &RequestedSources) -> Result<(), String> {
    let project = ctx.controller.project_of(&ctx.app)?;
    spec::refused_sources(&wanted.list, &project).map_or(Ok(()), Err)
}

async fn rendered(
    ctx: &ReconcileContext<'_>,
    cluster: &LiveCluster,
    wanted: &RequestedSources,
    revisions: &[String],
    refresh: &Refresh,
) -> Result<(Vec<Arc<Manifests>>, Vec<String>), Unloaded> {
    let (sources, all) = (&ctx.controller.sources, wanted.list.len());
    let mut questions = Questions::new(ctx, cluster, wanted, revisions)?;
    let app = Arc::make_mut(&mut questions.app);
    (app.no_cache, app.no_revision_cache) = (refresh.hard, refresh.resolves());
    let before = compared(&ctx.app, wanted);
    let mut pinned = Vec::with_capacity(all);
    for (i, revision) in revisions.iter().enumerate() {
        let request = questions.source(i, revision);
        let before = questions.before(i, &before);
        let revision = sources.pin(&request, &before, refresh.since(ctx.record.seen));
        let failed = |e: RepoError| {
            let (text, may_pass) = (e.to_string(), e.retryable());
            let why = if sources.is_remote() {
                format!(
                    "failed to evaluate revision changes for source {} of {all}: failed to update revision for paths: {text}",
                    i + 1
                )
            } else {
                text
            };
            Unloaded {
                why,
                may_pass,
                is_fetched: true,
            }
        };
        pinned.push(revision.await.map_err(failed)?);
    }
    questions.pin_refs(revisions, &pinned);
    let mut manifests = Vec::with_capacity(all);
    let mut denials = Vec::new();
    for (i, (revision, named)) in pinned.iter().zip(revisions).enumerate() {
        let request = questions.source(i, revision);
        let before = ctx.memo.desired.as_ref().and_then(|d| d.manifests.get(i));
        let rendered = sources.manifests(&request, before.map(Arc::as_ref)).await;
        let failed = |e: RepoError| {
            let why = format!(
                "failed to generate manifest for source {} of {all}: {e}{}",
                i + 1,
                waits(&ctx.app, &e)
            );
            Unloaded {
                why,
                may_pass: e.retryable(),
                is_fetched: true,
            }
        };
        let rendered = rendered.map_err(failed)?;
        let found = sources.integrity(&request, named, &rendered).await;
        if let Some(found) = found.map_err(failed)? {
            let name = (all > 1).then(|| integrity::source_name(&request.source, i, all));
            denials.extend(integrity::fault(&found, name.as_deref()));
        }
        manifests.push(rendered);
    }
    Ok((manifests, denials))
}

/// What is added to the error of a branch that someone else is to fill from the hydrated one.
fn waits(app: &Application, error: &RepoError) -> String {
    let hydrator = app.spec.source_hydrator.as_ref();
    let to = hydrator.and_then(|h| Some((h, h.hydrate_to.as_ref()?)));
    let Some((hydrator, to)) = to.filter(|_| error.lacks_path()) else {
        return String::new();
    };
    format!(
        " - waiting for an external process to update {} from {}",
        hydrator.sync_source.target_branch, to.target_branch
    )
}

/// Builds the requests for the sources of an Application.
pub struct Questions<'a> {
    ctx: &'a ReconcileContext<'a>,
    wanted: &'a RequestedSources,
    refs: RefSources<'a>,
    app: Arc<AppRequest>,
}

impl<'a> Questions<'a> {
    /// `revisions`: the revision to use for each source.
    pub fn new(
        ctx: &'a ReconcileContext<'a>,
        cluster: &LiveCluster,
        wanted: &'a RequestedSources,
        revisions: &[String],
    ) -> Result<Self, String> {
        let refs = RefSources::of(&wanted.list);
        let refs = refs.map_err(|e| format!("failed to get ref sources: {e}"))?;
        let discovery = cluster.cache.discovery();
        let instance = ctx.key.instance(&ctx.controller.records.namespace);
        let app = AppRequest {
            kube_version: discovery.cluster().version().git_version.clone(),
            api_versions: cluster.cache.kinds().api_versions(),
            several: wanted.several,
            ..AppRequest::of(&ctx.app, instance)
        };
        let mut questions = Self {
            ctx,
            wanted,
            refs,
            app: Arc::new(app),
        };
        let refs = questions.refs_at(revisions);
        Arc::make_mut(&mut questions.app).refs = refs;
        Ok(questions)
    }

    /// The request for one of the sources at a revision.
    pub fn source(&self, i: usize, revision: &str) -> SourceRequest {
        let source = &self.wanted.list[i];
        SourceRequest {
            app: self.app.clone(),
            repository: self.repository(source),
            source: source.clone(),
            revision: revision.to_owned(),
        }
    }

    /// The earlier state of a source, when the sources were at these revisions.
    pub fn before(&self, i: usize, revisions: &[String]) -> Before {
        Before {
            revision: revisions.get(i).cloned().unwrap_or_default(),
            refs: self.refs_at(revisions),
        }
    }

    /// Replaces the revisions of referenced sources with the resolved ones.
    fn pin_refs(&mut self, named: &[String], pinned: &[String]) {
        let sources = &self.ctx.controller.sources;
        let revisions: Vec<String> = named
            .iter()
            .zip(pinned)
            .zip(&self.wanted.list)
            .map(|((named, pinned), source)| sources.ref_revision(source, named, pinned))
            .collect();
        let refs = self.refs_at(&revisions);
        Arc::make_mut(&mut self.app).refs = refs;
    }

    fn refs_at(&self, revisions: &[String]) -> BTreeMap<String, RefTarget> {
        self.refs.targets(|i, source| {
            let revision = revisions.get(i).cloned().unwrap_or_default();
            (self.repository(source), revision)
        })
    }

    fn repository(&self, source: &ApplicationSource) -> Repository {
        let sources = &self.ctx.controller.sources;
        sources.repository(&source.repo_url, spec::project_name(&self.ctx.app))
    }
}

/// The annotation that lists the paths that affect the Application.
pub fn generate_paths<'a>(ctx: &'a ReconcileContext<'_>) -> &'a str {
    let annotations = &ctx.app.metadata.annotations;
    annotations
        .get(constants::MANIFEST_GENERATE_PATHS)
        .map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tiphys_repo::{Lacking, RenderError};

    #[test]
    fn only_a_missing_folder_waits_for_whoever_hydrates() {
        let hydrated: Application = serde_json::from_value(json!({"spec": {"sourceHydrator": {
            "syncSource": {"targetBranch": "env/dev", "path": "web"},
            "hydrateTo": {"targetBranch": "env/dev-next"},
        }}}))
        .expect("an Application");
        let remote = |lacks| RepoError::RepoServer {
            message: "rpc error: code = Unknown desc = web: app path does not exist".to_owned(),
            retryable: false,
            lacks,
        };
        let missing: RepoError = RenderError::PathMissing("web".to_owned()).into();
        let told = " - waiting for an external process to update env/dev from env/dev-next";
        for (app, error, expected) in [
            (&hydrated, &missing, told),
            (&hydrated, &remote(Lacking::Path), told),
            (&hydrated, &remote(Lacking::Nothing), ""),
            (&Application::default(), &missing, ""),
        ] {
            assert_eq!(waits(app, error), expected, "{error}");
        }
    }
}

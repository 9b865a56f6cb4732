//! Loads an Application's manifests: renders each of its sources at its revision, and combines the
//! objects.
//!
//! Main types: [`RequestedSources`] and [`RenderedSources`]; main function: [`load`].

use super::{context::ReconcileContext, refresh::Refresh};
use crate::runtime::standing;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    Application, constants,
    operation::{RefTarget, SyncOperation, SyncOperationResult},
    repository::Repository,
    source::ApplicationSource,
};
use tiphys_apimachinery::Kept;
use tiphys_cluster::clusters::LiveCluster;
use tiphys_engine::{
    spec,
    types::{Condition, ConditionType},
};
use tiphys_repo::{Manifests, RepoError};
use tiphys_sources::{AppRequest, Before, SourceRequest};

/// The sources of an Application or of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestedSources {
    pub list: Vec<ApplicationSource>,
    /// They are `spec.sources`, even if there is only one.
    pub several: bool,
}

impl RequestedSources {
    pub fn of(app: &Application) -> Result<Self, String> {
        Self::new(app.spec.source.as_ref(), &app.spec.sources)
            .ok_or_else(|| "spec.source is missing".to_owned())
    }

    /// The sources of the operation, else those of the Application.
    pub fn of_operation(operation: &SyncOperation, app: &Application) -> Result<Self, String> {
        Self::new(operation.source.as_ref(), &operation.sources).map_or_else(|| Self::of(app), Ok)
    }

    /// The sources and revisions recorded by a sync that was started. `None`: it did not get that
    /// far.
    pub fn resumed(result: &SyncOperationResult) -> Option<(Self, Vec<String>)> {
        let one = Some(&result.source).filter(|source| **source != ApplicationSource::default());
        let wanted = Self::new(one, &result.sources)?;
        let revisions = if wanted.several {
            result.revisions.clone()
        } else {
            vec![result.revision.clone()]
        };
        let resolved = revisions.len() == wanted.list.len()
            && revisions.iter().all(|revision| !revision.is_empty());
        resolved.then_some((wanted, revisions))
    }

    fn new(one: Option<&ApplicationSource>, several: &[ApplicationSource]) -> Option<Self> {
        match (several, one) {
            ([], None) => None,
            ([], Some(one)) => Some(Self {
                list: vec![one.clone()],
                several: false,
            }),
            (several, _) => Some(Self {
                list: several.to_vec(),
                several: true,
            }),
        }
    }

    /// The revision of each source: the operation's if it names them, else the source's own.
    pub fn revisions(&self, operation: &SyncOperation) -> Vec<String> {
        let one = std::slice::from_ref(&operation.revision);
        let named = if self.several {
            operation.revisions.as_slice()
        } else {
            one
        };
        let revision = |(i, source): (usize, &ApplicationSource)| {
            named
                .get(i)
                .filter(|r| !r.is_empty())
                .unwrap_or(&source.target_revision)
                .clone()
        };
        self.list.iter().enumerate().map(revision).collect()
    }
}

/// The rendered revisions in the status's form: `revision` for one source, `revisions` for several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revisions {
    pub one: String,
    pub several: Vec<String>,
}

impl Revisions {
    pub fn new(wanted: &RequestedSources, revisions: Vec<String>) -> Self {
        if wanted.several {
            return Self {
                one: String::new(),
                several: revisions,
            };
        }
        Self {
            one: revisions.into_iter().next().unwrap_or_default(),
            several: Vec::new(),
        }
    }
}

/// For display: several revisions are separated by spaces.
pub fn shown(revision: &str, revisions: &[String]) -> String {
    if revisions.is_empty() {
        revision.to_owned()
    } else {
        revisions.join(" ")
    }
}

/// The revisions of the last comparison, one per source.
pub fn compared(app: &Application, wanted: &RequestedSources) -> Vec<String> {
    let sync = &app.status.sync;
    if wanted.several {
        sync.revisions.clone()
    } else {
        vec![sync.revision.clone()]
    }
}

/// The desired state of an Application according to Git.
#[derive(Clone)]
pub struct RenderedSources {
    pub wanted: RequestedSources,
    /// Of each source.
    pub manifests: Vec<Arc<Manifests>>,
}

impl RenderedSources {
    pub fn revisions(&self) -> Revisions {
        Revisions::new(
            &self.wanted,
            self.manifests.iter().map(|m| m.revision.clone()).collect(),
        )
    }

    /// Those of the sources, in order.
    pub fn types(&self) -> Vec<String> {
        self.manifests
            .iter()
            .map(|m| m.source_type.clone())
            .collect()
    }

    /// A digest that is equal for equal objects.
    pub fn digest(&self) -> String {
        self.manifests
            .iter()
            .map(|m| m.digest.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    pub fn objects(&self) -> Vec<Arc<Kept>> {
        self.manifests
            .iter()
            .flat_map(|m| m.objects.iter().cloned())
            .collect()
    }

    pub fn is_whole(&self) -> bool {
        self.manifests.iter().all(|m| m.errors.is_empty())
    }

    /// The errors of the renderers, as one condition each.
    pub fn broken(&self) -> Vec<Condition> {
        let all = self.manifests.len();
        let of_source = |(i, m): (usize, &Arc<Manifests>)| {
            let text = |e: &tiphys_render::ManifestError| {
                format!(
                    "Failed to load target state: failed to generate manifest for source {} of {all}: {e}",
                    i + 1
                )
            };
            m.errors
                .iter()
                .map(|e| Condition::new(ConditionType::ComparisonError, text(e)))
                .collect::<Vec<_>>()
        };
        self.manifests
            .iter()
            .enumerate()
            .flat_map(of_source)
            .collect()
    }
}

/// Renders the sources at these revisions.
///
/// # Errors
/// Why there are no manifests at all; errors in single files are part of the result.
pub async fn load(
    ctx: &ReconcileContext<'_>,
    cluster: &LiveCluster,
    wanted: &RequestedSources,
    revisions: &[String],
    refresh: &Refresh,
) -> Result<RenderedSources, String> {
    let failed = |e: String| format!("Failed to load target state: {e}");
    permitted(ctx, wanted).map_err(failed)?;
    let manifests = standing(Box::pin(rendered(ctx, cluster, wanted, revisions, refresh)));
    Ok(RenderedSources {
        wanted: wanted.clone(),
        manifests: manifests.await.map_err(failed)?,
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
) -> Result<Vec<Arc<Manifests>>, String> {
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
            let text = reported(ctx, &e);
            if !sources.is_remote() {
                return text;
            }
            format!(
                "failed to evaluate revision changes for source {} of {all}: failed to update revision for paths: {text}",
                i + 1
            )
        };
        pinned.push(revision.await.map_err(failed)?);
    }
    questions.pin_refs(revisions, &pinned);
    let mut manifests = Vec::with_capacity(all);
    for (i, revision) in pinned.iter().enumerate() {
        let request = questions.source(i, revision);
        let before = ctx.memo.desired.as_ref().and_then(|d| d.manifests.get(i));
        let rendered = sources.manifests(&request, before.map(Arc::as_ref)).await;
        let failed = |e: RepoError| {
            let text = reported(ctx, &e);
            format!(
                "failed to generate manifest for source {} of {all}: {text}",
                i + 1
            )
        };
        manifests.push(rendered.map_err(failed)?);
    }
    ctx.controller
        .states
        .set_lasting(ctx.key, manifests.iter().any(|m| !m.errors.is_empty()));
    Ok(manifests)
}

/// The text of an error. Readers in the process learn whether waiting may help.
fn reported(ctx: &ReconcileContext<'_>, e: &RepoError) -> String {
    ctx.controller.states.set_lasting(ctx.key, !e.retryable());
    e.to_string()
}

/// What is asked about the sources of an Application.
pub struct Questions<'a> {
    ctx: &'a ReconcileContext<'a>,
    wanted: &'a RequestedSources,
    /// Which source each `ref` names.
    names: BTreeMap<String, usize>,
    app: Arc<AppRequest>,
}

impl<'a> Questions<'a> {
    /// `revisions`: those to use of each source.
    pub fn new(
        ctx: &'a ReconcileContext<'a>,
        cluster: &LiveCluster,
        wanted: &'a RequestedSources,
        revisions: &[String],
    ) -> Result<Self, String> {
        let names = ref_names(wanted).map_err(|e| format!("failed to get ref sources: {e}"))?;
        let discovery = cluster.cache.discovery();
        let app = AppRequest {
            instance: ctx.key.instance(&ctx.controller.records.namespace),
            namespace: ctx.app.spec.destination.namespace.clone(),
            project: spec::project_name(&ctx.app).to_owned(),
            kube_version: discovery.cluster().version().git_version.clone(),
            api_versions: cluster.cache.kinds().api_versions(),
            several: wanted.several,
            generate_paths: generate_paths(ctx).to_owned(),
            ..AppRequest::default()
        };
        let mut questions = Self {
            ctx,
            wanted,
            names,
            app: Arc::new(app),
        };
        let refs = questions.refs_at(revisions);
        Arc::make_mut(&mut questions.app).refs = refs;
        Ok(questions)
    }

    /// One of the sources, at a revision.
    pub fn source(&self, i: usize, revision: &str) -> SourceRequest {
        let source = &self.wanted.list[i];
        SourceRequest {
            app: self.app.clone(),
            repository: self.repository(source),
            source: source.clone(),
            revision: revision.to_owned(),
        }
    }

    /// What a source was when the sources were at these revisions.
    pub fn before(&self, i: usize, revisions: &[String]) -> Before {
        Before {
            revision: revisions.get(i).cloned().unwrap_or_default(),
            refs: self.refs_at(revisions),
        }
    }

    /// From now on what the sources refer to is what was found for it.
    fn pin_refs(&mut self, named: &[String], pinned: &[String]) {
        let sources = &self.ctx.controller.sources;
        let revisions: Vec<String> = named
            .iter()
            .zip(pinned)
            .map(|(named, pinned)| sources.ref_revision(named, pinned))
            .collect();
        let refs = self.refs_at(&revisions);
        Arc::make_mut(&mut self.app).refs = refs;
    }

    fn refs_at(&self, revisions: &[String]) -> BTreeMap<String, RefTarget> {
        let target = |(name, i): (&String, &usize)| {
            let source = &self.wanted.list[*i];
            let target = RefTarget {
                repo: Some(self.repository(source)),
                target_revision: Some(revisions.get(*i).cloned().unwrap_or_default()),
                chart: Some(source.chart.clone()).filter(|chart| !chart.is_empty()),
            };
            (name.clone(), target)
        };
        self.names.iter().map(target).collect()
    }

    fn repository(&self, source: &ApplicationSource) -> Repository {
        let sources = &self.ctx.controller.sources;
        sources.repository(&source.repo_url, &self.ctx.app.spec.project)
    }
}

/// The annotation that names the paths which concern the Application.
pub fn generate_paths<'a>(ctx: &'a ReconcileContext<'_>) -> &'a str {
    let annotations = &ctx.app.metadata.annotations;
    annotations
        .get(constants::MANIFEST_GENERATE_PATHS)
        .map_or("", String::as_str)
}

/// The index of the source for each `ref`.
pub fn ref_names(wanted: &RequestedSources) -> Result<BTreeMap<String, usize>, String> {
    let mut names = BTreeMap::new();
    for (i, source) in wanted
        .list
        .iter()
        .enumerate()
        .filter(|(_, s)| !s.ref_.is_empty())
    {
        let name = &source.ref_;
        if !name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        {
            return Err(format!(
                "sources.ref {name} cannot contain any special characters except '_' and '-'"
            ));
        }
        if names.insert(name.clone(), i).is_some() {
            return Err("invalid sources: multiple sources had the same `ref` key".to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn wanted(spec: &Value) -> RequestedSources {
        let app: Application =
            serde_json::from_value(json!({"spec": spec})).expect("an Application");
        RequestedSources::of(&app).expect("sources")
    }

    #[test]
    fn an_operations_revisions_come_first() {
        let source =
            |revision: &str| json!({"repoURL": "r", "targetRevision": revision, "path": "p"});
        let operation: SyncOperation =
            serde_json::from_value(json!({"revision": "one", "revisions": ["first", ""]}))
                .expect("an operation");
        let single = wanted(&json!({"source": source("a")}));
        assert_eq!(
            (single.several, single.revisions(&operation)),
            (false, vec!["one".to_owned()])
        );
        assert_eq!(single.revisions(&SyncOperation::default()), ["a"]);
        let several =
            wanted(&json!({"source": source("x"), "sources": [source("a"), source("b")]}));
        assert_eq!(
            (several.several, several.revisions(&operation)),
            (true, vec!["first".to_owned(), "b".to_owned()])
        );
        let revisions = Revisions::new(&several, vec!["1".into(), "2".into()]);
        assert_eq!(
            (shown(&revisions.one, &revisions.several), revisions.one),
            ("1 2".to_owned(), String::new())
        );
    }

    #[test]
    fn names_of_sources_are_checked() {
        let named = |a: &str, b: &str| {
            ref_names(&wanted(
                &json!({"sources": [{"ref": a}, {"ref": b}, {"path": "p"}]}),
            ))
        };
        assert_eq!(
            named("a-b_1", "c"),
            Ok(BTreeMap::from([
                ("a-b_1".to_owned(), 0),
                ("c".to_owned(), 1)
            ]))
        );
        assert_eq!(
            named("a", "a"),
            Err("invalid sources: multiple sources had the same `ref` key".to_owned())
        );
        assert_eq!(
            named("a/b", ""),
            Err(
                "sources.ref a/b cannot contain any special characters except '_' and '-'"
                    .to_owned()
            )
        );
    }
}

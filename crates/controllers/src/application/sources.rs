//! Where an Application's manifests come from: each of its sources is rendered at its revision, and
//! the objects are put together.
//!
//! Main types: [`RequestedSources`] and [`RenderedSources`]; main function: [`load`].

use super::{context::ReconcileContext, refresh::Refresh, repo_server::Questions};
use crate::runtime::standing;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    Application,
    operation::{SyncOperation, SyncOperationResult},
    source::ApplicationSource,
};
use tiphys_apimachinery::Kept;
use tiphys_cluster::clusters::LiveCluster;
use tiphys_engine::{
    spec,
    types::{Condition, ConditionType},
};
use tiphys_repo::{
    ClusterFacts, ManifestRequest, Manifests, RefSource, RepoAccess, RepoError, Since, SourceKind,
    check_source,
};

/// The sources of an Application or of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestedSources {
    pub list: Vec<ApplicationSource>,
    /// They are `spec.sources`, if only of one.
    pub several: bool,
}

impl RequestedSources {
    pub fn of(app: &Application) -> Result<Self, String> {
        Self::new(app.spec.source.as_ref(), &app.spec.sources)
            .ok_or_else(|| "spec.source is missing".to_owned())
    }

    /// What the operation names, else what the Application names.
    pub fn of_operation(operation: &SyncOperation, app: &Application) -> Result<Self, String> {
        Self::new(operation.source.as_ref(), &operation.sources).map_or_else(|| Self::of(app), Ok)
    }

    /// What a sync that was begun stands for, and at which revisions. `None`: it has not come so
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

    /// The revision to use of each: those of an operation where it names them, else the sources'
    /// own.
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

/// What was rendered, as the status tells it: `revision` of the one source, `revisions` of several.
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

/// For people: those of several sources with spaces between them.
pub fn shown(revision: &str, revisions: &[String]) -> String {
    if revisions.is_empty() {
        revision.to_owned()
    } else {
        revisions.join(" ")
    }
}

/// Those of the last comparison, of each source.
pub fn compared(app: &Application, wanted: &RequestedSources) -> Vec<String> {
    let sync = &app.status.sync;
    if wanted.several {
        sync.revisions.clone()
    } else {
        vec![sync.revision.clone()]
    }
}

/// What Git says an Application is.
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

    /// The same for the same objects.
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

    /// What the renderers could not use, as one condition each.
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

/// A source whose revision is known.
struct Resolved {
    access: RepoAccess,
    sha: String,
}

/// Renders the sources at these revisions.
///
/// # Errors
/// Why there are no manifests at all; what only a file lacks is part of the result.
pub async fn load(
    ctx: &ReconcileContext<'_>,
    cluster: &LiveCluster,
    wanted: &RequestedSources,
    revisions: &[String],
    refresh: &Refresh,
) -> Result<RenderedSources, String> {
    let failed = |e: String| format!("Failed to load target state: {e}");
    permitted(ctx, wanted).map_err(failed)?;
    let names = ref_names(wanted).map_err(|e| failed(format!("failed to get ref sources: {e}")))?;
    let manifests = match &ctx.controller.repo_server {
        Some(server) => {
            let before = compared(&ctx.app, wanted);
            let questions =
                Questions::new(ctx, cluster, wanted, &names, (&before, revisions), refresh)
                    .map_err(&failed)?;
            standing(Box::pin(questions.ask(server, revisions))).await
        }
        None => {
            standing(Box::pin(rendered(
                ctx, cluster, wanted, names, revisions, refresh,
            )))
            .await
        }
    };
    Ok(RenderedSources {
        wanted: wanted.clone(),
        manifests: manifests.map_err(failed)?,
    })
}

/// Whether the project takes the sources. An operation, what is recorded of it, and a history name
/// sources of their own.
pub fn permitted(ctx: &ReconcileContext<'_>, wanted: &RequestedSources) -> Result<(), String> {
    let project = ctx.controller.project_of(&ctx.app)?;
    spec::refused_sources(&wanted.list, &project).map_or(Ok(()), Err)
}

/// In this process.
async fn rendered(
    ctx: &ReconcileContext<'_>,
    cluster: &LiveCluster,
    wanted: &RequestedSources,
    names: BTreeMap<String, usize>,
    revisions: &[String],
    refresh: &Refresh,
) -> Result<Vec<Arc<Manifests>>, String> {
    let mut resolved = Vec::with_capacity(wanted.list.len());
    for (source, revision) in wanted.list.iter().zip(revisions) {
        resolved.push(
            resolve(ctx, source, revision, refresh.since(ctx.record.seen))
                .await
                .map_err(|e| told(ctx, &e))?,
        );
    }
    let refs: BTreeMap<String, RefSource> = names
        .into_iter()
        .map(|(name, i)| {
            (
                name,
                RefSource {
                    access: resolved[i].access.clone(),
                    sha: resolved[i].sha.clone(),
                },
            )
        })
        .collect();
    let cluster_facts = cluster_facts(ctx, cluster);
    let mut manifests = Vec::with_capacity(resolved.len());
    for (i, (source, Resolved { access, sha })) in wanted.list.iter().zip(resolved).enumerate() {
        let request = ManifestRequest {
            access,
            source: source.clone(),
            sha,
            app_name: ctx.key.instance(&ctx.controller.records.namespace),
            namespace: ctx.app.spec.destination.namespace.clone(),
            project: tiphys_engine::spec::project_name(&ctx.app).to_owned(),
            cluster_facts: cluster_facts.clone(),
            refs: refs.clone(),
            several: wanted.several,
            no_cache: refresh.hard,
        };
        let before = ctx.memo.desired.as_ref().and_then(|d| d.manifests.get(i));
        if let Some(same) =
            before.and_then(|before| ctx.controller.repos.unchanged(&request, before))
        {
            manifests.push(same);
            continue;
        }
        let rendered = ctx.controller.repos.manifests(request).await;
        let failed = |e: RepoError| {
            format!(
                "failed to generate manifest for source {} of {}: {}",
                i + 1,
                wanted.list.len(),
                told(ctx, &e)
            )
        };
        manifests.push(rendered.map_err(failed)?);
    }
    ctx.controller
        .states
        .set_lasting(ctx.key, manifests.iter().any(|m| !m.errors.is_empty()));
    Ok(manifests)
}

/// The text of an error, after readers in the process were told whether waiting may help.
fn told(ctx: &ReconcileContext<'_>, e: &RepoError) -> String {
    ctx.controller.states.set_lasting(ctx.key, !e.retryable());
    e.to_string()
}

async fn resolve(
    ctx: &ReconcileContext<'_>,
    source: &ApplicationSource,
    revision: &str,
    since: Since,
) -> Result<Resolved, RepoError> {
    check_source(source)?;
    let access = ctx
        .controller
        .access(&source.repo_url, &ctx.app.spec.project);
    let resolved = ctx
        .controller
        .repos
        .resolve(&access, revision, since)
        .await?;
    Ok(Resolved {
        access,
        sha: resolved.sha,
    })
}

/// Which source each `ref` names.
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

fn cluster_facts(ctx: &ReconcileContext<'_>, cluster: &LiveCluster) -> ClusterFacts {
    let settings = ctx.controller.records.settings();
    ClusterFacts {
        switched_off: SourceKind::switched_off(|kind| settings.is_source_type_on(kind)),
        kube_version: cluster
            .cache
            .discovery()
            .cluster()
            .version()
            .git_version
            .clone(),
        api_versions: cluster.cache.kinds().api_versions(),
        value_file_schemes: settings.value_file_schemes(),
        kustomize_build_options: settings.kustomize_build_options(),
    }
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

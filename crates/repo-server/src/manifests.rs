//! GenerateManifest: from the request for a source to its objects, with the metadata by which the
//! Application recognises them.
//!
//! Main function: [`Server::generate`].

use crate::{
    access::{Known, others, repository},
    errors::{of_repo, while_doing},
    integrity::Revision,
    server::Server,
    shared::{ResolvedRefs, first, normalized},
    trust::Servers,
};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    access::shown_url,
    operation::RefTarget,
    repository::Repository,
    rpc::repo_server::{ManifestRequest, ManifestResponse},
    source::ApplicationSource,
};
use tiphys_apimachinery::Object;
use tiphys_engine::{
    track,
    types::{Tracking, TrackingMethod},
};
use tiphys_repo::{
    ClusterFacts, KustomizeVersions, ManifestRequest as RenderRequest, Manifests, RefSource,
    RepoAccess, Since, SourceKind,
};
use tiphys_rpc::ApiError;

/// Broken files that an error names.
const MAX_TOLD: usize = 20;

/// How old the answer of a repository may be.
pub(crate) fn since(is_fresh: bool) -> Since {
    if is_fresh {
        Since::now()
    } else {
        Since::Recently
    }
}

/// The source of a request. Its address, as requests may leave it out, is that of the repository.
pub(crate) fn source(
    source: Option<ApplicationSource>,
    repo: &Repository,
) -> Result<ApplicationSource, ApiError> {
    let mut source = source.ok_or_else(|| ApiError::invalid("must pass a valid source"))?;
    if source.repo_url.is_empty() {
        source.repo_url.clone_from(&repo.repo);
    }
    Ok(source)
}

/// The names of the `ref`s that a source reads files of, each once, in its order.
pub(crate) fn referred(source: &ApplicationSource) -> Vec<&str> {
    let helm = source.helm.iter();
    let paths = helm.flat_map(|helm| {
        let files = helm.file_parameters.iter().map(|p| &p.path);
        helm.value_files.iter().chain(files)
    });
    let mut names = Vec::new();
    for path in paths {
        let name = path.split('/').next().filter(|name| name.starts_with('$'));
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

/// The other sources of the Application, as a request tells of them.
pub(crate) struct Refs<'a> {
    pub targets: &'a BTreeMap<String, RefTarget>,
    pub project: &'a str,
    pub since: Since,
}

impl Refs<'_> {
    fn target(&self, name: &str) -> Result<&RefTarget, ApiError> {
        let found = self.targets.get(name);
        found.ok_or_else(|| {
            if self.targets.is_empty() {
                return ApiError::plain(format!(
                    "source referenced {name:?}, but no source has a 'ref' field defined"
                ));
            }
            let known: Vec<&str> = self.targets.keys().map(String::as_str).collect();
            ApiError::plain(format!(
                "source referenced {name:?}, which is not one of the available sources ({})",
                known.join(", ")
            ))
        })
    }
}

impl Server {
    /// The sources that a source reads files of, at their commits, by their names without `$`.
    pub(crate) async fn refs(
        &self,
        source: &ApplicationSource,
        refs: &Refs<'_>,
        servers: &Servers,
    ) -> Result<BTreeMap<String, RefSource>, ApiError> {
        let mut found = BTreeMap::new();
        for name in referred(source) {
            let target = refs.target(name)?;
            if target.chart.as_ref().is_some_and(|chart| !chart.is_empty()) {
                return Err(ApiError::plain(
                    "source has a 'chart' field defined, but Helm charts are not yet not supported for 'ref' sources",
                ));
            }
            let repo = repository(target.repo.clone())?;
            let access = servers.access(&repo, refs.project);
            let of_repository = ApplicationSource {
                repo_url: repo.repo.clone(),
                ..ApplicationSource::default()
            };
            let revision = target.target_revision.as_deref().unwrap_or_default();
            let resolved = self
                .repos
                .resolve_source(&access, &of_repository, revision, refs.since);
            let doing = format!("failed to get git client for repo {}: ", repo.repo);
            let sha = resolved.await.map_err(while_doing(&doing))?.sha;
            let name = name.trim_start_matches('$').to_owned();
            found.insert(name, RefSource { access, sha });
        }
        Ok(found)
    }

    /// Renders a source.
    pub(crate) async fn generate(
        self: Arc<Self>,
        request: ManifestRequest,
    ) -> Result<ManifestResponse, ApiError> {
        let repo = repository(request.repo.clone())?;
        let source = source(request.application_source.clone(), &repo)?;
        let _pending = self.pending.begin(&shown_url(&repo.repo));
        let servers = self.trust.servers().await?;
        let access = servers.access(&repo, &request.project_name);
        let named = first([&request.revision, &source.target_revision]);
        let since = since(request.no_cache || request.no_revision_cache);
        let resolved = self
            .repos
            .resolve_source(&access, &source, named, since)
            .await
            .map_err(of_repo)?;
        let has_content = !source.path.is_empty() || !source.chart.is_empty();
        if request.has_multiple_sources && !has_content && !is_oci(&source) {
            // It only has files for others.
            return Ok(ManifestResponse {
                revision: resolved.sha,
                ..ManifestResponse::default()
            });
        }
        let refs = if request.has_multiple_sources {
            let refs = Refs {
                targets: &request.ref_sources,
                project: &request.project_name,
                since,
            };
            self.refs(&source, &refs, &servers).await?
        } else {
            BTreeMap::new()
        };
        let (name, shared) = match commits(&request.ref_sources, &refs) {
            Some(commits) => {
                let sha = &resolved.sha;
                self.shared_manifests(&request, sha, &commits).await
            }
            None => (None, None),
        };
        if let Some(response) = shared {
            // Another repo-server may have read them with other credentials.
            let of_source = (&access, &source, resolved.sha.as_str());
            if self.may_be_shown(of_source, &refs).await? {
                return Ok(response);
            }
        }
        let render = render_request(&request, (access.clone(), &source), refs, &servers);
        let render = RenderRequest {
            sha: resolved.sha,
            ..render
        };
        let manifests = self.repos.manifests(render).await.map_err(of_repo)?;
        let demanded = (
            request.source_integrity.as_ref(),
            request.verify_signature && is_git(&source),
        );
        let revision = Revision {
            sha: &manifests.revision,
            named,
            tag_prefix: &source.tag_prefix,
        };
        let checked = if is_git(&source) {
            self.check(&access, demanded, revision).await?
        } else {
            None
        };
        // Others are asked only whether they may read the sources.
        let name = name.filter(|_| !manifests.reads_others);
        let response = self.respond(manifests, request).await?;
        self.share_manifests(name, &response).await;
        Ok(ManifestResponse {
            source_integrity_result: checked.map(|answer| answer.result),
            ..response
        })
    }
}

impl Server {
    /// Whether the repositories accept the access, and have these commits as far as it is known
    /// here.
    async fn may_be_shown(
        &self,
        (access, source, sha): (&RepoAccess, &ApplicationSource, &str),
        refs: &BTreeMap<String, RefSource>,
    ) -> Result<bool, ApiError> {
        let accepted = self.repos.accepts(access, source, sha).await;
        if !accepted.map_err(of_repo)? {
            return Ok(false);
        }
        for other in refs.values() {
            let of_repository = ApplicationSource {
                repo_url: other.access.url.clone(),
                ..ApplicationSource::default()
            };
            let accepted = self
                .repos
                .accepts(&other.access, &of_repository, &other.sha);
            if !accepted.await.map_err(of_repo)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The commits of the sources that files are read of, for the name of what is shared. `None`: a
/// repository is read at several commits, of which the name could tell only one.
fn commits(
    targets: &BTreeMap<String, RefTarget>,
    refs: &BTreeMap<String, RefSource>,
) -> Option<ResolvedRefs> {
    let mut commits = ResolvedRefs::new();
    for (name, source) in refs {
        let target = targets.get(&format!("${name}"));
        let Some(repo) = target.and_then(|target| target.repo.as_ref()) else {
            continue;
        };
        let before = commits.insert(normalized(&repo.repo), source.sha.clone());
        if before.is_some_and(|before| before != source.sha) {
            return None;
        }
    }
    Some(commits)
}

pub(crate) fn is_oci(source: &ApplicationSource) -> bool {
    source.repo_url.starts_with("oci://")
}

/// Charts and artifacts have no commits.
pub(crate) fn is_git(source: &ApplicationSource) -> bool {
    source.chart.is_empty() && !is_oci(source)
}

/// What is rendered for a request, still without its commit.
pub(crate) fn render_request(
    request: &ManifestRequest,
    (access, source): (RepoAccess, &ApplicationSource),
    refs: BTreeMap<String, RefSource>,
    servers: &Arc<Servers>,
) -> RenderRequest {
    let known = Known {
        repositories: request.repos.clone(),
        templates: request.helm_repo_creds.clone(),
        project: request.project_name.clone(),
        permitted: request.project_source_repos.clone(),
    };
    let mut versions = request.api_versions.clone();
    versions.sort();
    versions.dedup();
    let is_on = |kind: &str| *request.enabled_source_types.get(kind).unwrap_or(&true);
    let helm = request.helm_options.clone().unwrap_or_default();
    let kustomize = request.kustomize_options.as_ref();
    RenderRequest {
        access,
        source: source.clone(),
        sha: String::new(),
        app_name: request.app_name.clone(),
        namespace: request.namespace.clone(),
        project: request.project_name.clone(),
        cluster_facts: ClusterFacts {
            kube_version: request.kube_version.clone(),
            api_versions: versions.into(),
            value_file_schemes: helm.values_file_schemes,
            kustomize_build_options: kustomize.map_or_else(String::new, |options| {
                tiphys_repo::kustomize_build_options(options, source)
            }),
            switched_off: SourceKind::switched_off(is_on),
        },
        refs,
        several: request.has_multiple_sources,
        no_cache: request.no_cache,
        others: others(known, Arc::clone(servers)),
        no_submodules: false,
        kustomize_versions: kustomize.map(KustomizeVersions::of).unwrap_or_default(),
    }
}

impl Server {
    /// The objects with their tracking metadata, as JSON. Most of the requests are for what has not
    /// changed since the last one: that is not written again.
    pub(crate) async fn respond(
        &self,
        manifests: Arc<Manifests>,
        request: ManifestRequest,
    ) -> Result<ManifestResponse, ApiError> {
        if let Some(broken) = broken(&manifests) {
            return Err(ApiError::plain(broken));
        }
        let written = self.written.clone();
        tiphys_rpc::heavy::run(move || {
            let tracking = tracking(&request);
            let key = [
                manifests.digest.clone(),
                request.namespace.clone(),
                request.app_name,
                request.app_label_key,
                request.tracking_method,
                request.installation_id,
            ];
            let texts = match written.get(&key) {
                Some(texts) => texts,
                None => {
                    let (tracking, namespace) = (tracking.as_ref(), &request.namespace);
                    let objects = manifests.objects.iter();
                    let texts = objects.map(|o| text(&o.object(), tracking, namespace));
                    let texts: Arc<[String]> = texts.collect::<Result<_, _>>()?;
                    written.insert(key, Arc::clone(&texts));
                    texts
                }
            };
            Ok(ManifestResponse {
                manifests: texts.to_vec(),
                revision: manifests.revision.clone(),
                source_type: manifests.source_type.clone(),
                ..ManifestResponse::default()
            })
        })
        .await
    }
}

/// Files that could not be used: without them, nothing may be concluded from the rest.
fn broken(manifests: &Manifests) -> Option<String> {
    let errors = manifests.errors.iter().take(MAX_TOLD);
    let mut told: Vec<String> = errors.map(ToString::to_string).collect();
    if let Some(more) = manifests.errors.len().checked_sub(MAX_TOLD + 1) {
        told.push(format!("and {} more", more + 1));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

/// None: the client adds no metadata of its own, as for details.
fn tracking(request: &ManifestRequest) -> Option<Tracking> {
    if request.app_label_key.is_empty() || request.app_name.is_empty() {
        return None;
    }
    Some(Tracking {
        app_name: request.app_name.clone(),
        method: match request.tracking_method.as_str() {
            "label" => TrackingMethod::Label,
            "annotation+label" => TrackingMethod::AnnotationAndLabel,
            _ => TrackingMethod::Annotation,
        },
        label_key: request.app_label_key.clone(),
        installation_id: request.installation_id.clone(),
    })
}

fn text(object: &Object, tracking: Option<&Tracking>, namespace: &str) -> Result<String, ApiError> {
    let mut object = object.clone();
    if let Some(tracking) = tracking.filter(|_| !track::is_crd(&object)) {
        if let Some(obstacle) = track::obstacle(&object, tracking) {
            let text = format!("failed to set app instance tracking info on manifest: {obstacle}");
            return Err(ApiError::plain(text));
        }
        track::set(&mut object, tracking, namespace);
    }
    serde_json::to_string(&object.0).map_err(|e| ApiError::internal(e.to_string()))
}

//! What a repo-server is asked for an Application's sources, with all that Argo CD's controller sends.
//!
//! Main type: [`Questions`], put together once for all sources of a look.

use super::{lookup, pass::Pass, refresh::Refresh, sources::Wanted};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    AppProject, constants,
    operation::RefTarget,
    repository::{HelmOptions, KustomizeOptions, KustomizeVersion, RepoCreds, Repository},
    rpc::repo_server::{ManifestRequest, UpdateRevisionForPathsRequest},
    source::ApplicationSource,
};
use tiphys_cluster::{clusters::LiveCluster, records::Settings};
use tiphys_engine::{generate_paths, spec, types::TrackingMethod};
use tiphys_repo::{Manifests, RepoServer};

type Refs = BTreeMap<String, RefTarget>;

/// What the questions about an Application's sources have in common.
pub struct Questions<'a> {
    pass: &'a Pass<'a>,
    wanted: &'a Wanted,
    settings: Arc<Settings>,
    project: Arc<AppProject>,
    /// What every request says.
    common: ManifestRequest,
    /// The sources that have a name, at the revisions that were synced.
    synced_refs: Refs,
}

impl<'a> Questions<'a> {
    /// `names`: which source each `ref` names; `revisions`: those to use of each source.
    pub fn new(
        pass: &'a Pass<'a>,
        cluster: &LiveCluster,
        wanted: &'a Wanted,
        names: &BTreeMap<String, usize>,
        revisions: &[String],
        refresh: &Refresh,
    ) -> Result<Self, String> {
        let (controller, app) = (pass.controller, &pass.app);
        let settings = controller.records.settings();
        let project = controller.project_of(app)?;
        let tracking = settings.tracking(&pass.key.instance(&controller.records.namespace));
        let refs_at = |at: &dyn Fn(usize) -> String| -> Refs {
            let target = |(name, i): (&String, &usize)| {
                let source = &wanted.list[*i];
                let repo = lookup::repository(&settings, &source.repo_url, &app.spec.project);
                let chart = Some(source.chart.clone()).filter(|c| !c.is_empty());
                (format!("${name}"), RefTarget { repo: Some(repo), target_revision: Some(at(*i)), chart })
            };
            names.iter().map(target).collect()
        };
        let synced = |i: usize| app.status.sync.revisions.get(i).cloned().unwrap_or_default();
        let common = ManifestRequest {
            no_cache: refresh.hard,
            no_revision_cache: refresh.resolves(),
            app_label_key: tracking.label_key.clone(),
            app_name: tracking.app_name.clone(),
            namespace: app.spec.destination.namespace.clone(),
            kustomize_options: Some(kustomize_options(&settings)),
            kube_version: cluster.cache.discovery().cluster().version().git_version.clone(),
            api_versions: cluster.cache.kinds().api_versions().to_vec(),
            tracking_method: word(tracking.method).to_owned(),
            enabled_source_types: enabled_source_types(&settings),
            helm_options: Some(HelmOptions { values_file_schemes: settings.value_file_schemes() }),
            has_multiple_sources: wanted.several,
            ref_sources: refs_at(&|i| revisions[i].clone()),
            project_source_repos: project.spec.source_repos.clone(),
            project_name: project.metadata.name.clone(),
            annotation_manifest_generate_paths: annotated_paths(pass).to_owned(),
            installation_id: tracking.installation_id.clone(),
            source_integrity: project.spec.source_integrity.clone(),
            verify_signature: project.spec.source_integrity.is_some(),
            ..permitted(&settings, &project)
        };
        let synced_refs = if wanted.several { refs_at(&synced) } else { Refs::new() };
        Ok(Self { pass, wanted, settings, project, common, synced_refs })
    }

    /// The manifests of each source.
    pub async fn ask(&self, server: &RepoServer, revisions: &[String]) -> Result<Vec<Arc<Manifests>>, String> {
        let mut manifests = Vec::with_capacity(revisions.len());
        for (i, revision) in revisions.iter().enumerate() {
            manifests.push(self.one(server, i, revision).await?);
        }
        Ok(manifests)
    }

    async fn one(&self, server: &RepoServer, i: usize, revision: &str) -> Result<Arc<Manifests>, String> {
        let (source, all) = (&self.wanted.list[i], self.wanted.list.len());
        let repo = lookup::repository(&self.settings, &source.repo_url, &self.pass.app.spec.project);
        let revision = match self.comparison(source, i, revision, &repo) {
            None => revision.to_owned(),
            Some(request) => {
                let failed = |e| {
                    format!("failed to evaluate revision changes for source {} of {all}: failed to update revision for paths: {e}", i + 1)
                };
                let answer = server.update_revision(&request).await.map_err(failed)?;
                Some(answer.revision).filter(|r| !r.is_empty()).unwrap_or(request.revision)
            }
        };
        let mut request = ManifestRequest { repo: Some(repo), revision, application_source: Some(source.clone()), ..self.common.clone() };
        if source.repo_url.starts_with("oci://") {
            let (repos, creds) = of_type(&self.settings, &self.project, "oci");
            request.repos.extend(repos);
            request.helm_repo_creds.extend(creds);
        }
        let failed = |e| format!("failed to generate manifest for source {} of {all}: {e}", i + 1);
        server.manifests(&request).await.map_err(failed)
    }

    /// The question whether a new commit concerns the Application at all: where it names the paths that do.
    fn comparison(&self, source: &ApplicationSource, i: usize, revision: &str, repo: &Repository) -> Option<UpdateRevisionForPathsRequest> {
        let sync = &self.pass.app.status.sync;
        let synced = if self.wanted.several { sync.revisions.get(i) } else { Some(&sync.revision) }.filter(|r| !r.is_empty())?;
        let is_ref_only = !source.ref_.is_empty() && source.path.is_empty() && source.chart.is_empty();
        let same = synced == revision && self.common.ref_sources.is_empty();
        if is_ref_only || same || repo.depth != 0 || self.common.annotation_manifest_generate_paths.is_empty() {
            return None;
        }
        let common = self.common.clone();
        Some(UpdateRevisionForPathsRequest {
            repo: Some(repo.clone()),
            application_source: Some(source.clone()),
            synced_revision: synced.clone(),
            revision: revision.to_owned(),
            paths: generate_paths::whole(&common.annotation_manifest_generate_paths, &source.path),
            synced_ref_sources: self.synced_refs.clone(),
            app_label_key: common.app_label_key,
            app_name: common.app_name,
            namespace: common.namespace,
            tracking_method: common.tracking_method,
            ref_sources: common.ref_sources,
            kube_version: common.kube_version,
            api_versions: common.api_versions,
            has_multiple_sources: common.has_multiple_sources,
            no_revision_cache: common.no_revision_cache,
            installation_id: common.installation_id,
            source_integrity: common.source_integrity,
        })
    }
}

fn annotated_paths<'a>(pass: &'a Pass<'_>) -> &'a str {
    pass.app.metadata.annotations.get(constants::MANIFEST_GENERATE_PATHS).map_or("", String::as_str)
}

/// Repositories and templates of Helm that the project may use: charts may depend on charts in them.
fn permitted(settings: &Settings, project: &AppProject) -> ManifestRequest {
    let (repos, helm_repo_creds) = of_type(settings, project, "helm");
    ManifestRequest { repos: repos.into_iter().filter(|r| !r.name.is_empty()).collect(), helm_repo_creds, ..ManifestRequest::default() }
}

fn of_type(settings: &Settings, project: &AppProject, kind: &str) -> (Vec<Repository>, Vec<RepoCreds>) {
    let repos = settings.repositories.iter().map(|r| &r.value).filter(|r| r.type_ == kind && spec::source_permitted(project, &r.repo));
    let creds = settings.repo_creds.iter().map(|c| &c.value).filter(|c| c.type_ == kind && spec::source_permitted(project, &c.url));
    (repos.map(|r| lookup::repository(settings, &r.repo, &r.project)).collect(), creds.cloned().collect())
}

fn word(method: TrackingMethod) -> &'static str {
    match method {
        TrackingMethod::Label => "label",
        TrackingMethod::Annotation => "annotation",
        TrackingMethod::AnnotationAndLabel => "annotation+label",
    }
}

/// `helm.enable`, `kustomize.enable`, `jsonnet.enable`; plugins cannot be switched off.
fn enabled_source_types(settings: &Settings) -> BTreeMap<String, bool> {
    let keys = [("Kustomize", "kustomize.enable"), ("Helm", "helm.enable"), ("Directory", "jsonnet.enable"), ("Plugin", "")];
    keys.iter().map(|(kind, key)| ((*kind).to_owned(), matches!(settings.get(key), "" | "true"))).collect()
}

/// `kustomize.buildOptions`, and the versions of `kustomize.path.V`, `kustomize.version.V` with their `kustomize.buildOptions.V`.
fn kustomize_options(settings: &Settings) -> KustomizeOptions {
    const OPTIONS: &str = "kustomize.buildOptions";
    let text = |key: &str| settings.config.get(key).cloned();
    let version = |(key, path): (&String, &String)| {
        let name = key.strip_prefix("kustomize.path.").or_else(|| key.strip_prefix("kustomize.version."))?;
        let build_options = text(&format!("{OPTIONS}.{name}"));
        Some(KustomizeVersion { name: Some(name.to_owned()), path: Some(path.clone()), build_options })
    };
    KustomizeOptions { build_options: text(OPTIONS), binary_path: None, versions: settings.config.iter().filter_map(version).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(config: &[(&str, &str)]) -> Settings {
        let config = config.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Settings { config, ..Settings::default() }
    }

    #[test]
    fn settings_of_tools_are_sent() {
        let settings = settings(&[
            ("helm.enable", "false"),
            ("kustomize.enable", "true"),
            ("kustomize.buildOptions", "--enable-helm"),
            ("kustomize.path.v5", "/bin/kustomize5"),
            ("kustomize.buildOptions.v5", "--x"),
        ]);
        let enabled = enabled_source_types(&settings);
        assert_eq!(
            enabled.iter().map(|(kind, on)| format!("{kind}={on}")).collect::<Vec<_>>().join(" "),
            "Directory=true Helm=false Kustomize=true Plugin=true"
        );
        let options = kustomize_options(&settings);
        assert_eq!(options.build_options.as_deref(), Some("--enable-helm"));
        let version = &options.versions[0];
        let fields = [&version.name, &version.path, &version.build_options];
        assert_eq!(fields.map(|f| f.as_deref().unwrap_or_default()), ["v5", "/bin/kustomize5", "--x"]);
    }
}

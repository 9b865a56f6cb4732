//! The settings that matter for rendering, in the form of a repo-server request: tools, their
//! options, and the repositories that sources may need.

use super::{FaultyTemplate, RepoSecret, Settings, settings::completed};
use std::{borrow::Cow, collections::BTreeMap};
use tiphys_api::{
    AppProject,
    access::{best_template, nearest_registry, same_repository},
    repository::{HelmOptions, KustomizeOptions, KustomizeVersion, RepoCreds, Repository},
    rpc::repo_server::ManifestRequest,
    source::ApplicationSource,
};
use tiphys_engine::{integrity, spec, types::TrackingMethod};

impl Settings {
    /// The settings of a repository: its own Secret, completed by the best matching credential
    /// template.
    pub fn known_repository(&self, url: &str, project: &str) -> Repository {
        let known = self.repository(url, project);
        completed(known, url, (&self.repo_creds, &self.faulty_creds))
    }

    /// A repository by the name it has in its Secret, as a project may use it.
    pub fn repository_named(&self, name: &str, project: &str) -> Option<Repository> {
        let of = |project: &str| {
            let all = self.repositories.iter().map(|r| &r.value);
            all.into_iter()
                .find(|r| r.name == name && r.project == project)
        };
        let found = of(project).or_else(|| of(""))?;
        Some(self.known_repository(&found.repo, project))
    }

    /// The settings for charts at `oci://…` that another chart needs, under the URL that they have
    /// in the settings: with or without the scheme, or else those of a registry of charts whose
    /// path is above or below.
    pub fn known_registry(&self, url: &str, project: &str) -> Repository {
        let plain = url.strip_prefix("oci://").unwrap_or(url);
        let known = [url, plain]
            .into_iter()
            .find(|url| self.repository(url, project).is_some());
        if let Some(known) = known {
            return self.known_repository(known, project);
        }
        if let Some(near) = self.registry_near(plain, project) {
            return self.known_repository(&near.repo, project);
        }
        let template = [url, plain]
            .into_iter()
            .find(|url| self.credentials(url).is_some() || self.has_faulty_template(url));
        self.known_repository(template.unwrap_or(url), project)
    }

    fn has_faulty_template(&self, url: &str) -> bool {
        best_template(url, &self.faulty_creds, |template| template.url.as_str()).is_some()
    }

    /// The registry with the longest path in common, of those that the project may use.
    fn registry_near(&self, plain: &str, project: &str) -> Option<&Repository> {
        let all = self.repositories.iter().map(|r| &r.value);
        let usable = all.filter(|r| r.project.is_empty() || r.project == project);
        nearest_registry(plain, usable)
    }

    /// The part of a manifest request that is common to an Application's sources. `instance`: its
    /// instance name.
    pub fn manifest_request(&self, project: &AppProject, instance: &str) -> ManifestRequest {
        let tracking = self.tracking(instance);
        let integrity = integrity::effective(project).map(Cow::into_owned);
        // Charts may depend on charts in these.
        let (repos, helm_repo_creds) = self.permitted_repositories(project, "helm");
        ManifestRequest {
            app_label_key: tracking.label_key,
            app_name: tracking.app_name,
            tracking_method: word(tracking.method).to_owned(),
            installation_id: tracking.installation_id,
            kustomize_options: Some(self.kustomize_options()),
            helm_options: Some(HelmOptions {
                values_file_schemes: self.value_file_schemes(),
            }),
            enabled_source_types: self.enabled_source_types(),
            repos: repos
                .into_iter()
                .filter(|r| !r.name.is_empty())
                .chain(self.faulty_templates(project, "helm"))
                .collect(),
            helm_repo_creds,
            project_source_repos: project.spec.source_repos.clone(),
            project_name: project.metadata.name.clone(),
            verify_signature: integrity.is_some(),
            source_integrity: integrity,
            ..ManifestRequest::default()
        }
    }

    /// The request for one source of an Application. `common`: the result of
    /// [`Settings::manifest_request`], with what the caller knows about the Application.
    pub fn source_request(
        &self,
        common: ManifestRequest,
        project: &AppProject,
        source: &ApplicationSource,
        repository: Repository,
        revision: String,
    ) -> ManifestRequest {
        let mut request = ManifestRequest {
            repo: Some(repository),
            revision,
            application_source: Some(source.clone()),
            ..common
        };
        if source.repo_url.starts_with("oci://") {
            let (repos, creds) = self.permitted_repositories(project, "oci");
            request.repos.extend(repos);
            request.repos.extend(self.faulty_templates(project, "oci"));
            request.helm_repo_creds.extend(creds);
        }
        request
    }

    /// A repository or a template that the request for a chart or an artifact would list and whose
    /// Secret cannot be read: its URL, and what is wrong with it. A repo-server of Argo CD would ask
    /// it without its credentials; ours refuses it where it is used. Sources in Git are left to the
    /// repo-server: hardly any of them uses what is listed.
    pub fn permitted_fault(
        &self,
        project: &AppProject,
        source: &ApplicationSource,
    ) -> Option<(String, String)> {
        let is_oci = source.repo_url.starts_with("oci://");
        if source.chart.is_empty() && !is_oci {
            return None;
        }
        let is_faulty = |r: &RepoSecret<Repository>| r.value.fault().is_some();
        if self.faulty_creds.is_empty() && !self.repositories.iter().any(is_faulty) {
            return None;
        }
        let mut kinds = ["helm", "oci"]
            .into_iter()
            .filter(|k| *k == "helm" || is_oci);
        kinds.find_map(|kind| {
            let (repos, _) = self.permitted_repositories(project, kind);
            // Of those of charts only the ones with a name are listed.
            let listed = repos
                .into_iter()
                .filter(|r| kind == "oci" || !r.name.is_empty());
            let mut listed = listed.chain(self.faulty_templates(project, kind));
            listed.find_map(|r| Some((r.repo.clone(), r.fault()?.to_owned())))
        })
    }

    /// The templates of a type whose Secrets cannot be read and that the project may use, as a
    /// request lists them: as repositories, because templates have no field for a fault. By
    /// [`Repository::as_faulty_template`] our repo-server knows them.
    fn faulty_templates(&self, project: &AppProject, kind: &str) -> Vec<Repository> {
        // A good one of the same URL is used instead.
        let is_replaced = |url: &str| {
            let mut good = self.repo_creds.iter().map(|c| &c.value);
            good.any(|c| c.type_ == kind && same_repository(&c.url, url))
        };
        let is_it = |t: &&FaultyTemplate| {
            t.type_.as_deref().is_none_or(|type_| type_ == kind)
                && spec::source_permitted(project, &t.url)
                && !is_replaced(&t.url)
        };
        let found = self.faulty_creds.iter().filter(is_it);
        found
            .map(|t| Repository::as_faulty_template(&t.url, kind, &t.fault))
            .collect()
    }

    /// Repositories and templates of a type (`helm`, `oci`) that the project may use.
    pub fn permitted_repositories(
        &self,
        project: &AppProject,
        kind: &str,
    ) -> (Vec<Repository>, Vec<RepoCreds>) {
        let repos = self
            .repositories
            .iter()
            .map(|r| &r.value)
            .filter(|r| r.type_ == kind && spec::source_permitted(project, &r.repo));
        let creds = self
            .repo_creds
            .iter()
            .map(|c| &c.value)
            .filter(|c| c.type_ == kind && spec::source_permitted(project, &c.url));
        (
            repos
                .map(|r| self.known_repository(&r.repo, &r.project))
                // A fault in the Secret of another project is not this one's.
                .filter(|r| r.fault().is_none() || is_of(r, project))
                .collect(),
            creds.cloned().collect(),
        )
    }

    /// `helm.enable`, `kustomize.enable`, `jsonnet.enable`; plugins cannot be disabled.
    pub fn is_source_type_on(&self, kind: &str) -> bool {
        let key = match kind {
            "Helm" => "helm.enable",
            "Kustomize" => "kustomize.enable",
            "Directory" => "jsonnet.enable",
            _ => return true,
        };
        matches!(self.get(key), "" | "true")
    }

    fn enabled_source_types(&self) -> BTreeMap<String, bool> {
        ["Kustomize", "Helm", "Directory", "Plugin"]
            .into_iter()
            .map(|kind| (kind.to_owned(), self.is_source_type_on(kind)))
            .collect()
    }

    /// `kustomize.buildOptions`, and the versions of `kustomize.path.V`, `kustomize.version.V` with
    /// their `kustomize.buildOptions.V`.
    pub fn kustomize_options(&self) -> KustomizeOptions {
        const OPTIONS: &str = "kustomize.buildOptions";
        let text = |key: &str| self.config.get(key).cloned();
        let version = |(key, path): (&String, &String)| {
            let name = key
                .strip_prefix("kustomize.path.")
                .or_else(|| key.strip_prefix("kustomize.version."))?;
            let build_options = text(&format!("{OPTIONS}.{name}"));
            Some(KustomizeVersion {
                name: Some(name.to_owned()),
                path: Some(path.clone()),
                build_options,
            })
        };
        KustomizeOptions {
            build_options: text(OPTIONS),
            binary_path: None,
            versions: self.config.iter().filter_map(version).collect(),
        }
    }
}

/// Whether a repository is of the project, or of none.
fn is_of(repository: &Repository, project: &AppProject) -> bool {
    repository.project.is_empty() || repository.project == project.metadata.name
}

fn word(method: TrackingMethod) -> &'static str {
    match method {
        TrackingMethod::Label => "label",
        TrackingMethod::Annotation => "annotation",
        TrackingMethod::AnnotationAndLabel => "annotation+label",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_tools_are_sent() {
        let config = [
            ("helm.enable", "false"),
            ("kustomize.enable", "true"),
            ("kustomize.buildOptions", "--enable-helm"),
            ("kustomize.path.v5", "/bin/kustomize5"),
            ("kustomize.buildOptions.v5", "--x"),
        ];
        let config = config
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let request = Settings::of_config(config).manifest_request(&AppProject::default(), "web");
        assert_eq!(
            request
                .enabled_source_types
                .iter()
                .map(|(kind, on)| format!("{kind}={on}"))
                .collect::<Vec<_>>()
                .join(" "),
            "Directory=true Helm=false Kustomize=true Plugin=true"
        );
        let options = request.kustomize_options.expect("there are some");
        assert_eq!(options.build_options.as_deref(), Some("--enable-helm"));
        let version = &options.versions[0];
        let fields = [&version.name, &version.path, &version.build_options];
        assert_eq!(
            fields.map(|f| f.as_deref().unwrap_or_default()),
            ["v5", "/bin/kustomize5", "--x"]
        );
        assert_eq!(
            (request.app_name.as_str(), request.tracking_method.as_str()),
            ("web", "annotation")
        );
    }

    #[test]
    fn a_good_template_of_the_same_url_is_used() {
        for (good, faulty, is_good) in [
            ("https://h.example/a", "https://h.example/a", true),
            ("https://h.example/a/", "https://h.example/a", true),
            ("https://h.example/a/b", "https://h.example/a", true),
            ("https://h.example/a", "https://h.example/a/b", false),
        ] {
            let creds = RepoCreds {
                url: good.to_owned(),
                password: "good".to_owned(),
                ..RepoCreds::default()
            };
            let settings = Settings {
                repo_creds: vec![RepoSecret {
                    secret_name: "s".to_owned(),
                    managed: false,
                    value: creds,
                }],
                faulty_creds: vec![FaultyTemplate {
                    url: faulty.to_owned(),
                    type_: None,
                    fault: "broken".to_owned(),
                }],
                ..Settings::default()
            };
            let found = settings.known_repository("https://h.example/a/b/r", "");
            assert_eq!(found.fault().is_none(), is_good, "{good} {faulty}");
            assert_eq!(found.password == "good", is_good, "{good} {faulty}");
        }
    }

    /// R126.
    #[test]
    fn a_fault_of_what_is_listed_is_told() {
        let repository = |url: &str, name: &str, project: &str, type_: &str| RepoSecret {
            secret_name: "s".to_owned(),
            managed: false,
            value: Repository {
                repo: url.to_owned(),
                name: name.to_owned(),
                project: project.to_owned(),
                type_: type_.to_owned(),
                ..Repository::default()
            }
            .with_fault("broken".to_owned()),
        };
        let template = |url: &str, type_: Option<&str>| FaultyTemplate {
            url: url.to_owned(),
            type_: type_.map(str::to_owned),
            fault: "broken".to_owned(),
        };
        let mut project = AppProject::default();
        project.metadata.name = "team".to_owned();
        project.spec.source_repos = vec!["https://charts.example/*".to_owned()];
        let listed = "https://charts.example/a";
        let registry = "oci://charts.example/a";
        project.spec.source_repos.push(registry.to_owned());
        let of = |repositories: Vec<_>, faulty_creds: Vec<_>| Settings {
            repositories,
            faulty_creds,
            ..Settings::default()
        };
        for (settings, of_chart, in_registry) in [
            (of(vec![], vec![]), false, false),
            (
                of(vec![repository(listed, "a", "", "helm")], vec![]),
                true,
                true,
            ),
            (
                of(vec![repository(listed, "a", "team", "helm")], vec![]),
                true,
                true,
            ),
            (
                of(vec![repository(listed, "a", "other", "helm")], vec![]),
                false,
                false,
            ),
            (
                of(vec![repository(listed, "a", "", "git")], vec![]),
                false,
                false,
            ),
            (
                of(
                    vec![repository("https://other.example/a", "a", "", "helm")],
                    vec![],
                ),
                false,
                false,
            ),
            (
                of(vec![repository(registry, "", "", "oci")], vec![]),
                false,
                true,
            ),
            (of(vec![], vec![template(listed, Some("helm"))]), true, true),
            (of(vec![], vec![template(listed, None)]), true, true),
            (
                of(vec![], vec![template(listed, Some("git"))]),
                false,
                false,
            ),
            (
                of(vec![], vec![template(registry, Some("oci"))]),
                false,
                true,
            ),
        ] {
            let charts = "https://good.example/charts";
            for (url, chart, want) in [
                ("https://git.example/r", "", false),
                (charts, "demo", of_chart),
                (registry, "", in_registry),
            ] {
                let source = ApplicationSource {
                    repo_url: url.to_owned(),
                    chart: chart.to_owned(),
                    ..ApplicationSource::default()
                };
                let request = settings.manifest_request(&project, "app");
                let told = request.repos.iter().any(|r| r.fault() == Some("broken"));
                assert_eq!(told, of_chart, "{:?}", request.repos);
                let found = settings.permitted_fault(&project, &source);
                let repositories = settings.repositories.iter().map(|r| &r.value);
                let known: Vec<_> = repositories.collect();
                let text = format!("{url} {known:?} {:?}", settings.faulty_creds);
                let fault = found.map(|(_, fault)| fault);
                assert_eq!(fault.as_deref(), want.then_some("broken"), "{text}");
            }
        }
    }
}

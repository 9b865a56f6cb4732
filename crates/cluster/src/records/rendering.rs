//! The settings that matter for rendering, in the form of a repo-server request: tools, their
//! options, and the repositories that sources may need.

use super::Settings;
use std::{borrow::Cow, collections::BTreeMap};
use tiphys_api::{
    AppProject,
    access::nearest_registry,
    repository::{HelmOptions, KustomizeOptions, KustomizeVersion, RepoCreds, Repository},
    rpc::repo_server::ManifestRequest,
    source::ApplicationSource,
};
use tiphys_engine::{integrity, spec, types::TrackingMethod};

impl Settings {
    /// The settings of a repository: its own Secret, completed by the best matching credential
    /// template.
    pub fn known_repository(&self, url: &str, project: &str) -> Repository {
        let mut repository = self
            .repository(url, project)
            .cloned()
            .unwrap_or_else(|| Repository {
                repo: url.to_owned(),
                ..Default::default()
            });
        if let Some(creds) = self.credentials(url) {
            repository.inherit(creds);
        }
        repository
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
            .find(|url| self.credentials(url).is_some());
        self.known_repository(template.unwrap_or(url), project)
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
            repos: repos.into_iter().filter(|r| !r.name.is_empty()).collect(),
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
            request.helm_repo_creds.extend(creds);
        }
        request
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
}

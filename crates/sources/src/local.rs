//! Answers requests from Git in this process.

use crate::{Before, SourceRequest, Sources, refs};
use tiphys_api::{operation::RefTarget, repository::Repository};
use tiphys_engine::{generate_paths, spec::source_permitted};
use tiphys_repo::{
    ClusterFacts, KustomizeVersions, ManifestRequest, OtherRepository, Others, Reach, RefSource,
    RepoAccess, RepoError, Since, SourceKind, kustomize_build_options,
};

pub async fn pin(
    sources: &Sources,
    request: &SourceRequest,
    since: Since,
) -> Result<String, RepoError> {
    let access = access(sources, request)?;
    let resolved = sources
        .repos
        .resolve_source(&access, &request.source, &request.revision, since);
    Ok(resolved.await?.sha)
}

/// # Errors
/// It reads files of a chart, which has none to refer to.
pub fn request(sources: &Sources, request: &SourceRequest) -> Result<ManifestRequest, RepoError> {
    let (settings, app) = ((sources.settings)(), &request.app);
    let kustomize = settings.kustomize_options();
    refs::no_charts(request.referred(), &app.refs)?;
    let plain = app
        .refs
        .iter()
        .filter(|(_, target)| !refs::is_chart(target));
    let refs = plain.map(|(name, target)| {
        let source = RefSource {
            access: access_of(sources, target, &app.project)?,
            sha: target.target_revision.clone().unwrap_or_default(),
        };
        Ok::<_, RepoError>((name.clone(), source))
    });
    let refs = refs.collect::<Result<_, RepoError>>()?;
    Ok(ManifestRequest {
        access: access(sources, request)?,
        source: request.source.clone(),
        sha: request.revision.clone(),
        app_name: app.instance.clone(),
        namespace: app.namespace.clone(),
        project: app.project.clone(),
        cluster_facts: ClusterFacts {
            kube_version: app.kube_version.clone(),
            api_versions: app.api_versions.clone(),
            value_file_schemes: settings.value_file_schemes(),
            kustomize_build_options: kustomize_build_options(&kustomize, &request.source),
            switched_off: SourceKind::switched_off(|kind| settings.is_source_type_on(kind)),
        },
        refs,
        several: app.several,
        no_cache: app.no_cache,
        others: others(sources, &app.project),
        no_submodules: !settings.takes_submodules(),
        kustomize_versions: KustomizeVersions::of(&kustomize),
    })
}

/// The repositories that bases and dependencies are in: with the credentials of the settings, if the
/// project permits them; else as anybody may read them.
pub fn others(sources: &Sources, project: &str) -> Others {
    let (sources, project) = (sources.clone(), project.to_owned());
    Others::new(move |wanted| reach(&sources, wanted, &project))
}

fn reach(
    sources: &Sources,
    wanted: OtherRepository<'_>,
    project: &str,
) -> Result<Reach, RepoError> {
    let settings = (sources.settings)();
    let known = match wanted {
        OtherRepository::Url(url) if url.starts_with("oci://") => {
            settings.known_registry(url, project)
        }
        OtherRepository::Url(url) => settings.known_repository(url, project),
        OtherRepository::Named(name) => {
            let named = settings.repository_named(name, project);
            named.ok_or_else(|| RepoError::Unsupported(format!("no repository definition for {name}: add it with the name {name} to the repositories that project {project:?} may use")))?
        }
    };
    let of_project = (sources.project)(project);
    let permitted = of_project.is_some_and(|p| source_permitted(&p, &known.repo));
    // Settings of a registry serve for everything in it.
    let repo = match wanted {
        OtherRepository::Url(url) if url.starts_with("oci://") => url.to_owned(),
        _ => known.repo.clone(),
    };
    let repository = if permitted {
        Repository { repo, ..known }
    } else {
        Repository { repo, ..known }.as_anybody()
    };
    Ok(Reach {
        // Who may not use the settings is not told what is wrong with them either.
        access: sources.access(&repository, project)?,
        permitted,
    })
}

pub async fn changed(
    sources: &Sources,
    request: &SourceRequest,
    before: &Before,
) -> Result<bool, RepoError> {
    if !request.source.chart.is_empty() || request.source.repo_url.starts_with("oci://") {
        // A version is rendered whole: there are no paths to compare.
        return Ok(true);
    }
    let paths = generate_paths::whole(&request.app.generate_paths, &request.source.path);
    let mut compared = vec![(
        access(sources, request)?,
        before.revision.as_str(),
        request.revision.as_str(),
    )];
    for name in request.referred() {
        let both = (before.refs.get(name), request.app.refs.get(name));
        if let (Some(before), Some(now)) = both {
            let access = access_of(sources, now, &request.app.project)?;
            compared.push((access, revision(before), revision(now)));
        }
    }
    for (access, from, to) in compared.into_iter().filter(|(_, from, to)| from != to) {
        let paths = paths.clone();
        let is_meant = move |file: &str| generate_paths::touched(&paths, &[file.to_owned()]);
        if sources
            .repos
            .any_changed(&access, from, to, is_meant)
            .await?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn revision(target: &RefTarget) -> &str {
    target.target_revision.as_deref().unwrap_or_default()
}

/// Uses the address as written in the Application; the Secret's address must lead to the same
/// place.
fn access(sources: &Sources, request: &SourceRequest) -> Result<RepoAccess, RepoError> {
    let repository = Repository {
        repo: request.source.repo_url.clone(),
        ..request.repository.clone()
    };
    sources.access(&repository, &request.app.project)
}

fn access_of(
    sources: &Sources,
    target: &RefTarget,
    project: &str,
) -> Result<RepoAccess, RepoError> {
    let repository = target.repo.clone().unwrap_or_default();
    sources.access(&repository, project)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tiphys_api::AppProject;
    use tiphys_cluster::{Settings, records::RepoSecret};
    use tiphys_repo::Repos;

    /// R126: the settings of a repository count for those who may use it.
    #[tokio::test]
    async fn a_fault_concerns_only_who_may_use_the_settings() {
        let cache = tempfile::tempdir().expect("a folder");
        let faulty = Repository {
            repo: "https://git.invalid/bases".to_owned(),
            ..Repository::default()
        };
        let settings = Arc::new(Settings {
            repositories: vec![RepoSecret {
                secret_name: "s".to_owned(),
                managed: false,
                value: faulty.with_fault("Secret s cannot be read".to_owned()),
            }],
            ..Settings::default()
        });
        let project = |name: &str| {
            let mut project = AppProject::default();
            let permitted = match name {
                "owner" => "https://git.invalid/*",
                _ => "https://git.invalid/apps",
            };
            project.spec.source_repos = vec![permitted.to_owned()];
            Some(Arc::new(project))
        };
        let repos = Repos::new(cache.path().to_owned());
        let sources = Sources::with(repos, None, move || Arc::clone(&settings), project);
        let wanted = OtherRepository::Url("https://git.invalid/bases");
        let refused = reach(&sources, wanted, "owner").expect_err("it is not asked");
        assert_eq!(
            refused.to_string(),
            "failed to get repo \"https://git.invalid/bases\": Secret s cannot be read"
        );
        let other = reach(&sources, wanted, "other").expect("as anybody");
        assert!(!other.permitted);
        assert!(!other.access.has_credentials());
    }
}

//! The repositories of a request: its own, and those that bases and dependencies are in.
//!
//! Main functions: [`repository`] and [`others`].

use crate::trust::Servers;
use std::sync::Arc;
use tiphys_api::{
    AppProject,
    access::{best_template, nearest_registry, same_repository},
    repository::{RepoCreds, Repository},
};
use tiphys_engine::spec::source_permitted;
use tiphys_repo::{OtherRepository, Others, Reach, RepoError};
use tiphys_rpc::ApiError;

/// The repository of a request.
pub(crate) fn repository(repo: Option<Repository>) -> Result<Repository, ApiError> {
    let repo = repo.ok_or_else(|| ApiError::invalid("must pass a valid repo"))?;
    if repo.repo.trim().is_empty() {
        let text = format!("repository URL {:?} is invalid", repo.repo);
        return Err(ApiError::invalid(text));
    }
    Ok(repo)
}

/// What a request tells of other repositories: those that its project may use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub repositories: Vec<Repository>,
    pub templates: Vec<RepoCreds>,
    pub project: String,
    /// `spec.sourceRepos` of the project. Empty: it is not told, as when details are asked for.
    pub permitted: Vec<String>,
}

impl Known {
    /// The settings of a repository, and whether the request lists it: then the project permits it.
    fn by_url(&self, url: &str) -> (Repository, bool) {
        let plain = url.strip_prefix("oci://");
        let found = [Some(url), plain].into_iter().flatten().find_map(|url| {
            let is_it = |r: &&Repository| same_repository(&r.repo, url);
            self.repositories.iter().find(is_it)
        });
        let near = || plain.and_then(|plain| nearest_registry(plain, &self.repositories));
        let listed = found.or_else(near);
        let mut repository = listed.cloned().unwrap_or_default();
        url.clone_into(&mut repository.repo);
        let template = [Some(url), plain]
            .into_iter()
            .flatten()
            .find_map(|url| best_template(url, &self.templates, |creds| &creds.url));
        if let Some(template) = template {
            repository.inherit(template);
        }
        (repository, listed.is_some())
    }

    fn find(&self, wanted: OtherRepository<'_>) -> Result<(Repository, bool), RepoError> {
        match wanted {
            OtherRepository::Url(url) => Ok(self.by_url(url)),
            OtherRepository::Named(name) => {
                let named = self.repositories.iter().find(|r| r.name == name);
                let named = named.ok_or_else(|| {
                    let why = format!("no repository definition for {name}: add it with the name {name} to the repositories that project {:?} may use", self.project);
                    RepoError::Unsupported(why)
                })?;
                Ok(self.by_url(&named.repo))
            }
        }
    }
}

/// Finds the repositories that bases and dependencies are in: with credentials if the project
/// permits them, else as anybody may read them.
pub(crate) fn others(known: Known, servers: Arc<Servers>) -> Others {
    let mut project = AppProject::default();
    project.spec.source_repos.clone_from(&known.permitted);
    Others::new(move |wanted| {
        let (found, is_listed) = known.find(wanted)?;
        let permitted =
            is_listed || known.permitted.is_empty() || source_permitted(&project, &found.repo);
        let found = if permitted { found } else { found.as_anybody() };
        Ok(Reach {
            access: servers.access(&found, &known.project),
            permitted,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(repo: &str, name: &str, password: &str) -> Repository {
        Repository {
            repo: repo.to_owned(),
            name: name.to_owned(),
            password: password.to_owned(),
            ..Repository::default()
        }
    }

    #[test]
    fn a_request_has_to_name_its_repository() {
        let refused = |repo| repository(repo).expect_err("refused");
        assert_eq!(refused(None).message, "must pass a valid repo");
        let blank = refused(Some(Repository::default()));
        assert_eq!(blank.code, tiphys_rpc::Code::InvalidArgument);
    }

    #[test]
    fn credentials_are_found_for_what_they_are_for() {
        let template = RepoCreds {
            url: "https://charts.example.com/team".to_owned(),
            password: "template".to_owned(),
            ..RepoCreds::default()
        };
        let registry = Repository {
            enable_oci: true,
            ..named("registry.example.com/charts", "registry", "oci")
        };
        let known = Known {
            repositories: vec![
                named("https://charts.example.com/own/", "own", "exact"),
                registry,
            ],
            templates: vec![template],
            ..Known::default()
        };
        for (url, password) in [
            ("https://charts.example.com/own", "exact"),
            ("https://charts.example.com/team/a", "template"),
            ("https://charts.example.com/teams", ""),
            ("oci://registry.example.com/charts", "oci"),
            ("oci://registry.example.com/charts/deep", "oci"),
            ("oci://registry.example.com.evil.org/charts", ""),
            ("https://registry.example.com/charts", ""),
        ] {
            let (found, _) = known.find(OtherRepository::Url(url)).expect("found");
            assert_eq!(found.password, password, "{url}");
            assert_eq!(found.repo, url);
        }
        let (found, _) = known.find(OtherRepository::Named("own")).expect("found");
        assert_eq!(found.password, "exact");
        assert!(known.find(OtherRepository::Named("none")).is_err());
    }
}

//! The repositories of a request: its own, and those that bases and dependencies are in.
//!
//! Main functions: [`repository`] and [`others`].

use crate::trust::Servers;
use std::sync::Arc;
use tiphys_api::{
    AppProject,
    access::{best_template, nearest_registry, same_repository, shown_url},
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
        let all = || self.repositories.iter();
        let repositories = || all().filter(|r| !r.is_faulty_template());
        let found = [Some(url), plain].into_iter().flatten().find_map(|url| {
            let is_it = |r: &&Repository| same_repository(&r.repo, url);
            repositories().find(is_it)
        });
        let near = || plain.and_then(|plain| nearest_registry(plain, repositories()));
        let listed = found.or_else(near);
        let mut repository = listed.cloned().unwrap_or_default();
        url.clone_into(&mut repository.repo);
        let faulty = all().filter(|r| r.is_faulty_template());
        let faulty = faulty.map(|r| {
            let fault = r.fault().unwrap_or_default();
            (r.repo.as_str(), Err::<&RepoCreds, &str>(fault))
        });
        let good = self.templates.iter();
        let good = good.map(|creds| (creds.url.as_str(), Ok::<_, &str>(creds)));
        // Of several for the same URL the last one counts: a good one goes on being used.
        let templates = faulty.chain(good);
        let template = [Some(url), plain]
            .into_iter()
            .flatten()
            .find_map(|url| best_template(url, templates.clone(), |(url, _)| *url));
        match template {
            // Nobody logs in there with a template because its own Secret cannot be read.
            _ if repository.fault().is_some() => {}
            Some((_, Ok(creds))) => repository.inherit(creds),
            // Another template is not meant for it.
            Some((_, Err(fault))) if !repository.has_credentials() => {
                repository = repository.with_fault(fault.to_owned());
            }
            _ => {}
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

    /// A repository as the project may ask it, and whether the project permits it.
    fn permitted(
        &self,
        wanted: OtherRepository<'_>,
        project: &AppProject,
    ) -> Result<(Repository, bool), RepoError> {
        let (found, is_listed) = self.find(wanted)?;
        let permitted =
            is_listed || self.permitted.is_empty() || source_permitted(project, &found.repo);
        let found = if permitted { found } else { found.as_anybody() };
        // Without its credentials it would be asked as someone else.
        if let Some(fault) = found.fault() {
            let url = shown_url(&found.repo);
            let why = format!("failed to get repo {url:?}: {fault}");
            return Err(RepoError::Unsupported(why));
        }
        Ok((found, permitted))
    }
}

/// Finds the repositories that bases and dependencies are in: with credentials if the project
/// permits them, else as anybody may read them.
pub(crate) fn others(known: Known, servers: Arc<Servers>) -> Others {
    let mut project = AppProject::default();
    project.spec.source_repos.clone_from(&known.permitted);
    Others::new(move |wanted| {
        let (found, permitted) = known.permitted(wanted, &project)?;
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

    /// R126.
    #[test]
    fn a_repository_with_a_fault_is_not_asked() {
        let faulty = named("https://charts.example.com/own", "own", "");
        let registry = Repository {
            enable_oci: true,
            ..named("registry.example.com/charts", "registry", "")
        };
        let template = RepoCreds {
            url: "https://charts.example.com".to_owned(),
            password: "template".to_owned(),
            ..RepoCreds::default()
        };
        let broken = |repository: Repository| repository.with_fault("broken".to_owned());
        let known = Known {
            repositories: vec![broken(faulty), broken(registry)],
            templates: vec![template],
            ..Known::default()
        };
        let project = AppProject::default();
        for wanted in [
            OtherRepository::Url("https://charts.example.com/own"),
            OtherRepository::Named("own"),
            OtherRepository::Url("oci://registry.example.com/charts/deep"),
        ] {
            let refused = known.permitted(wanted, &project);
            let refused = refused.expect_err("it is not asked").to_string();
            assert!(refused.ends_with(": broken"), "{refused}");
            let (found, _) = known.find(wanted).expect("found");
            assert_eq!(found.password, "");
        }
        let other = OtherRepository::Url("https://charts.example.com/other");
        let (found, _) = known.permitted(other, &project).expect("it has no fault");
        assert_eq!(found.password, "template");
    }

    #[test]
    fn a_template_with_a_fault_refuses_only_what_is_under_it() {
        let template = |url: &str, password: &str| RepoCreds {
            url: url.to_owned(),
            password: password.to_owned(),
            ..RepoCreds::default()
        };
        let faulty = |url: &str| Repository::as_faulty_template(url, "helm", "broken");
        let known = Known {
            repositories: vec![
                faulty("https://charts.example.com/team"),
                faulty("https://charts.example.com/both"),
                named("https://charts.example.com/team/own", "own", "exact"),
                faulty("oci://registry.example.com/charts"),
            ],
            templates: vec![
                template("https://charts.example.com", "template"),
                template("https://charts.example.com/both/", "good"),
            ],
            ..Known::default()
        };
        let project = AppProject::default();
        for (url, password) in [
            ("https://charts.example.com/other", Some("template")),
            ("https://charts.example.com/both/a", Some("good")),
            ("https://charts.example.com/team/own", Some("exact")),
            ("https://charts.example.com/team", None),
            ("https://charts.example.com/team/a", None),
            ("oci://registry.example.com/charts/a", None),
            ("oci://registry.example.com/other", Some("")),
        ] {
            let found = known.permitted(OtherRepository::Url(url), &project);
            match (found, password) {
                (Ok((found, _)), Some(password)) => assert_eq!(found.password, password, "{url}"),
                (Err(refused), None) => {
                    let refused = refused.to_string();
                    assert!(refused.ends_with(": broken"), "{refused}");
                }
                (found, _) => panic!("{url}: {:?}", found.map(|(found, _)| found.repo)),
            }
        }
    }
}

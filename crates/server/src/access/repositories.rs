//! Repositories and their credentials.

use super::{
    Authorized, Create, CredentialUse, Delete, Get, Guard, Reach, Update, Verb, guard::scoped,
    secrets,
};
use crate::{
    ApiError,
    ports::{SecretRecord, StoreResult},
};
use tiphys_api::{
    AppProject, Application, access::same_repository, repository::Repository,
    rpc::repository::RepoQuery, source::ApplicationSource,
};
use tiphys_engine::spec;

/// A stored repository and its Secret.
pub(crate) struct Stored<A> {
    secret: SecretRecord,
    use_: CredentialUse,
    pub repository: Authorized<Repository, A>,
}

impl CredentialUse {
    /// Checks a permission for a repository, which policies know by its project and URL.
    fn grant<A: Verb>(
        self,
        guard: &Guard,
        repository: Repository,
    ) -> Result<Authorized<Repository, A>, ApiError> {
        let named = scoped(&repository.project, &repository.repo);
        guard.ask(self.resource(), A::ACTION, "", &named)?;
        Ok(Authorized::new(repository))
    }

    /// Checks the permission to create a repository.
    pub(crate) fn new_repository(
        self,
        guard: &Guard,
        repository: Repository,
    ) -> Result<Authorized<Repository, Create>, ApiError> {
        self.grant(guard, repository)
    }
}

impl Reach {
    /// The repositories that the caller may see, sorted by project and URL.
    pub(crate) async fn repositories(
        &self,
        guard: &Guard,
        use_: CredentialUse,
    ) -> Result<Vec<Stored<Get>>, ApiError> {
        let all = secrets::records(self.store.as_ref(), use_).await?;
        let seen = |(secret, repository)| {
            let repository = use_.grant(guard, repository).ok()?;
            Some(Stored {
                secret,
                use_,
                repository,
            })
        };
        Ok(all.into_iter().filter_map(seen).collect())
    }

    /// The repositories scoped to the project; no further permission is needed, since they are part
    /// of it.
    pub(crate) async fn repositories_of<A>(
        &self,
        project: &Authorized<AppProject, A>,
    ) -> Result<Vec<Repository>, ApiError> {
        let mut all = secrets::stored(self.store.as_ref()).await?;
        all.retain(|r| r.project == project.metadata.name);
        Ok(all)
    }

    /// The stored repository that a query selects. A missing one is reported like one that the
    /// caller may not see.
    pub(crate) async fn repository(
        &self,
        guard: &Guard,
        use_: CredentialUse,
        q: &RepoQuery,
    ) -> Result<Stored<Get>, ApiError> {
        let mut same = self.repositories(guard, use_).await?;
        same.retain(|stored| same_repository(&stored.repository.repo, &q.repo));
        if same.is_empty() {
            return Err(ApiError::denied());
        }
        if same.len() == 1 && q.app_project.is_empty() {
            return Ok(same.remove(0));
        }
        let not_found = || {
            ApiError::plain(format!(
                "repository not found for url {:?} and project {:?}",
                q.repo, q.app_project
            ))
        };
        same.into_iter()
            .find(|stored| stored.repository.project == q.app_project)
            .ok_or_else(not_found)
    }

    /// The stored repository that is to be changed. Who may change one of that name learns that
    /// there is none.
    pub(crate) async fn repository_to_change(
        &self,
        guard: &Guard,
        use_: CredentialUse,
        q: &RepoQuery,
    ) -> Result<Stored<Update>, ApiError> {
        let named = scoped(&q.app_project, &q.repo);
        guard.ask(use_.resource(), Update::ACTION, "", &named)?;
        let all = secrets::records(self.store.as_ref(), use_).await?;
        let found = all.into_iter().find(|(_, stored)| {
            same_repository(&stored.repo, &q.repo) && stored.project == q.app_project
        });
        let (secret, repository) =
            found.ok_or_else(|| ApiError::not_found(format!("repo '{}' not found", q.repo)))?;
        Ok(Stored {
            secret,
            use_,
            repository: use_.grant(guard, repository)?,
        })
    }

    /// The repository with this URL as the project may use it, with credentials.
    pub(crate) async fn repository_for(
        &self,
        guard: &Guard,
        url: &str,
        project: &str,
    ) -> Result<Authorized<Repository, Get>, ApiError> {
        let found = secrets::repository(self.store.as_ref(), url, project).await?;
        let granted = guard.grant(found)?;
        secrets::usable(&granted)?;
        Ok(granted)
    }

    /// A repository of an Application: a permission for the Application extends to the repositories
    /// that its project may use.
    pub(crate) async fn repository_of<A>(
        &self,
        app: &Authorized<Application, A>,
        url: &str,
    ) -> Result<Authorized<Repository, Get>, ApiError> {
        let project = spec::project_name(app);
        let found = secrets::repository(self.store.as_ref(), url, project).await?;
        secrets::usable(&found)?;
        Ok(Authorized::new(found))
    }

    /// The repository with credentials from a template if it has none of its own.
    pub(crate) async fn with_inherited<A>(
        &self,
        use_: CredentialUse,
        repository: &Authorized<Repository, A>,
    ) -> Result<Authorized<Repository, A>, ApiError> {
        let repository = Repository::clone(repository);
        let complete = secrets::with_inherited(self.store.as_ref(), use_, repository).await?;
        Ok(Authorized::new(complete))
    }

    /// The existing repository with this name; anyone who may create it may replace it, as in Argo
    /// CD.
    pub(crate) async fn existing_repository(
        &self,
        use_: CredentialUse,
        new: &Authorized<Repository, Create>,
    ) -> Result<Option<Stored<Create>>, ApiError> {
        let name = secrets::secret_name(use_, &new.repo, &new.project);
        let all = secrets::records(self.store.as_ref(), use_).await?;
        let same = |(secret, r): &(SecretRecord, Repository)| {
            secret.name == name || (same_repository(&r.repo, &new.repo) && r.project == new.project)
        };
        let found = all.into_iter().find(same);
        Ok(found.map(|(secret, repository)| Stored {
            secret,
            use_,
            repository: Authorized::new(repository),
        }))
    }

    pub(crate) async fn create_repository(
        &self,
        use_: CredentialUse,
        repository: &Authorized<Repository, Create>,
        existing: Option<Stored<Create>>,
    ) -> StoreResult<()> {
        let secret = secrets::secret_of(repository, use_, existing.map(|stored| stored.secret));
        self.store.put_secret(&secret).await
    }

    /// Replaces `old` with `new`, which has the same URL and project.
    pub(crate) async fn update_repository(
        &self,
        old: Stored<Update>,
        new: &Authorized<Repository, Update>,
    ) -> StoreResult<()> {
        let secret = secrets::secret_of(new, old.use_, Some(old.secret));
        self.store.put_secret(&secret).await
    }

    pub(crate) async fn delete_repository(&self, stored: Stored<Delete>) -> StoreResult<()> {
        self.store.delete_secret(&stored.secret.name).await
    }
}

impl<A> Stored<A> {
    /// Checks another permission for the same repository.
    pub(crate) fn also<B: Verb>(self, guard: &Guard) -> Result<Stored<B>, ApiError> {
        Ok(Stored {
            repository: self.use_.grant(guard, self.repository.into_inner())?,
            secret: self.secret,
            use_: self.use_,
        })
    }
}

impl Stored<Update> {
    /// The repository's new version.
    pub(crate) fn replaced_by(
        &self,
        guard: &Guard,
        new: Repository,
    ) -> Result<Authorized<Repository, Update>, ApiError> {
        self.use_.grant(guard, new)
    }
}

impl<A> Authorized<Repository, A> {
    /// Sets the repository type from the source, for repositories where nothing else determines it.
    pub(crate) fn typed_by(self, source: &ApplicationSource) -> Self {
        let kind = match (source.chart.as_str(), source.repo_url.starts_with("oci://")) {
            ("", false) => return self,
            ("", true) => "oci",
            _ => "helm",
        };
        Self::new(Repository {
            type_: kind.into(),
            ..self.into_inner()
        })
    }
}

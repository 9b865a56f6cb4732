//! Credential templates: credentials for all repositories below a URL.

use super::{
    Action, Authorized, Create, Delete, Get, Guard, Reach, Resource, Update, Verb, secrets,
};
use crate::{ApiError, ports::SecretRecord};
use tiphys_api::{
    access::same_repository,
    constants::{MANAGED_BY, MANAGED_BY_VALUE},
    repository::RepoCreds,
};

/// What credentials are for. Policies and Secrets tell these apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CredentialUse {
    Read,
    /// To push hydrated manifests.
    Write,
}

impl CredentialUse {
    pub(super) fn resource(self) -> Resource {
        match self {
            Self::Read => Resource::Repositories,
            Self::Write => Resource::WriteRepositories,
        }
    }

    fn ask<A: Verb>(self, guard: &Guard, url: &str) -> Result<(), ApiError> {
        guard.ask(self.resource(), A::ACTION, "", url)
    }
}

/// A stored template and its Secret.
pub(crate) struct StoredTemplate<A> {
    secret: SecretRecord,
    pub creds: Authorized<RepoCreds, A>,
    /// The Secret cannot be read: these are not all the credentials in it.
    pub is_faulty: bool,
}

impl Reach {
    /// The templates that the caller may see, sorted by URL.
    pub(crate) async fn templates(
        &self,
        guard: &Guard,
        use_: CredentialUse,
    ) -> Result<Vec<Authorized<RepoCreds, Get>>, ApiError> {
        let all = secrets::templates(self.store.as_ref(), use_).await?;
        // Without a URL it applies to nothing, and no call could name it.
        let is_named = |template: &secrets::Template| {
            let is_named = !template.creds.url.is_empty();
            if !is_named {
                let secret = &template.secret.name;
                tracing::warn!(secret, "a credential template without a URL is left out");
            }
            is_named
        };
        let seen = all
            .into_iter()
            .filter(is_named)
            .filter(|template| use_.ask::<Get>(guard, &template.creds.url).is_ok());
        Ok(seen
            .map(|template| Authorized::new(template.creds))
            .collect())
    }

    /// The template stored for this URL. Policies are asked about the URL as it is stored, so that
    /// another spelling gets around none of them; without a template, about the one requested.
    pub(crate) async fn template<A: Verb>(
        &self,
        guard: &Guard,
        use_: CredentialUse,
        url: &str,
    ) -> Result<Option<StoredTemplate<A>>, ApiError> {
        let all = secrets::templates(self.store.as_ref(), use_).await?;
        let same: Vec<_> = all
            .into_iter()
            .filter(|template| same_repository(&template.creds.url, url))
            .collect();
        let exact = same.iter().position(|template| template.creds.url == url);
        let Some(template) = same.into_iter().nth(exact.unwrap_or(0)) else {
            use_.ask::<A>(guard, url)?;
            return Ok(None);
        };
        use_.ask::<A>(guard, &template.creds.url)?;
        Ok(Some(StoredTemplate {
            secret: template.secret,
            creds: Authorized::new(template.creds),
            is_faulty: template.is_faulty,
        }))
    }

    /// Creates a template for which none is stored.
    pub(crate) async fn create_template(
        &self,
        guard: &Guard,
        use_: CredentialUse,
        creds: &RepoCreds,
    ) -> Result<(), ApiError> {
        use_.ask::<Create>(guard, &creds.url)?;
        let secret = secrets::secret_of_template(creds, use_, None);
        // The name is a hash of the URL: what has it is something else, and must not be overwritten.
        match self.store.secret(&secret.name).await {
            Ok(_) => Err(ApiError::new(
                crate::Code::AlreadyExists,
                format!("repository credentials {:?} already exists", creds.url),
            )),
            Err(crate::ports::StoreError::NotFound(_)) => {
                Ok(self.store.put_secret(&secret).await?)
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Replaces the credentials; the new URL is another spelling of the old one.
    pub(crate) async fn update_template(
        &self,
        guard: &Guard,
        use_: CredentialUse,
        old: StoredTemplate<Update>,
        new: &RepoCreds,
    ) -> Result<(), ApiError> {
        guard.ask(use_.resource(), Action::Update, "", &new.url)?;
        let secret = secrets::secret_of_template(new, use_, Some(old.secret));
        Ok(self.store.put_secret(&secret).await?)
    }

    pub(crate) async fn delete_template(
        &self,
        stored: StoredTemplate<Delete>,
    ) -> Result<(), ApiError> {
        let StoredTemplate { secret, .. } = stored;
        // As Argo CD: a Secret that somebody else made stays theirs and is no template any more.
        let is_ours = secret
            .annotations
            .get(MANAGED_BY)
            .is_some_and(|by| by == MANAGED_BY_VALUE);
        let done = if is_ours {
            self.store.delete_secret(&secret.name).await
        } else {
            self.store.release_secret(&secret.name).await
        };
        Ok(done?)
    }
}

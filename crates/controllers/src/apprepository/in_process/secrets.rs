//! The Secrets that an AppRepository names, in its own namespace.

use super::{Controller, InProcessError, object};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use tiphys_api::{AppRepository, app_repository::SecretReference};
use tiphys_catalog::{CatalogError, apprepository::Credentials};

impl Controller {
    pub(super) async fn credentials(
        &self,
        repository: &AppRepository,
    ) -> Result<Credentials, InProcessError> {
        let (meta, auth) = (&repository.metadata, &repository.spec.auth);
        let mut credentials = Credentials::default();
        if let Some(reference) = &auth.header {
            credentials.header = self.secret(&meta.namespace, reference).await?.into();
        }
        if let Some(reference) = &auth.custom_ca {
            credentials.authorities = self.secret(&meta.namespace, reference).await?;
        }
        Ok(credentials)
    }

    async fn secret(
        &self,
        namespace: &str,
        reference: &SecretReference,
    ) -> Result<String, InProcessError> {
        let (name, key) = (
            &reference.secret_key_ref.name,
            &reference.secret_key_ref.key,
        );
        let found = object::get(&self.cluster, &object::secret(namespace, name)).await?;
        let of = |what: &str| {
            InProcessError::Catalog(CatalogError::Invalid(format!(
                "Secret {name:?} of namespace {namespace:?} {what}"
            )))
        };
        let secret = found.ok_or_else(|| of("does not exist"))?;
        let Some(text) = secret["data"][key].as_str() else {
            return Err(of(&format!("has no key {key:?}")));
        };
        let bytes = STANDARD.decode(text).map_err(|_| of("is not base64"))?;
        String::from_utf8(bytes).map_err(|_| of(&format!("has no text under key {key:?}")))
    }
}

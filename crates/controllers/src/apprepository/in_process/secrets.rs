//! The Secrets that an AppRepository names, in its own namespace.

use super::{Controller, InProcessError, object};
use crate::apprepository::Key;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use std::sync::Arc;
use tiphys_api::{AppRepository, app_repository::SecretReference};
use tiphys_catalog::{
    CatalogError, Store,
    apprepository::{Credentials, open},
    sync::CatalogSync,
};
use tiphys_cluster::Cluster;

impl Controller {
    pub(super) async fn credentials(
        &self,
        repository: &AppRepository,
    ) -> Result<Credentials, InProcessError> {
        credentials(&self.cluster, repository).await
    }
}

/// What fetches from an AppRepository with the credentials that it names; `None`: there is none of
/// this name.
///
/// # Errors
/// It, or a Secret that it names, cannot be read.
pub async fn visitor(
    cluster: &Cluster,
    store: Arc<Store>,
    id: &Key,
) -> Result<Option<CatalogSync>, InProcessError> {
    let Some(found) = object::get(cluster, &object::repository(id)).await? else {
        return Ok(None);
    };
    let repository: AppRepository =
        serde_json::from_value(found).map_err(InProcessError::Unreadable)?;
    let credentials = credentials(cluster, &repository).await?;
    Ok(Some(open(&repository, credentials, store)?))
}

/// Asks for a sync of an AppRepository, as its users do.
///
/// # Errors
/// There is none, or it cannot be changed.
pub async fn resync(cluster: &Cluster, id: &Key) -> Result<(), InProcessError> {
    let path = object::repository(id);
    let Some(found) = object::get(cluster, &path).await? else {
        let name = format!("AppRepository {}/{}", id.namespace, id.name);
        return Err(InProcessError::Catalog(CatalogError::NotFound(name)));
    };
    let asked = found["spec"]["resyncRequests"].as_u64().unwrap_or_default();
    let patch = json!({"spec": {"resyncRequests": asked.wrapping_add(1)}});
    object::patch(cluster, &path, &patch).await?;
    Ok(())
}

async fn credentials(
    cluster: &Cluster,
    repository: &AppRepository,
) -> Result<Credentials, InProcessError> {
    let (meta, auth) = (&repository.metadata, &repository.spec.auth);
    let mut credentials = Credentials::default();
    if let Some(reference) = &auth.header {
        credentials.header = secret(cluster, &meta.namespace, reference).await?.into();
    }
    if let Some(reference) = &auth.custom_ca {
        credentials.authorities = secret(cluster, &meta.namespace, reference).await?;
    }
    Ok(credentials)
}

async fn secret(
    cluster: &Cluster,
    namespace: &str,
    reference: &SecretReference,
) -> Result<String, InProcessError> {
    let (name, key) = (
        &reference.secret_key_ref.name,
        &reference.secret_key_ref.key,
    );
    let found = object::get(cluster, &object::secret(namespace, name)).await?;
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

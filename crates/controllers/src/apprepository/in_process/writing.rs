//! Making and removing AppRepositories for users who do not write to the cluster themselves.
//!
//! Main functions: [`create`] and [`delete`].

use super::{InProcessError, object};
use crate::apprepository::Key;
use http::Method;
use serde_json::{Value, json};
use tiphys_catalog::{CatalogError, apprepository::NewRepository};
use tiphys_cluster::Cluster;

/// Makes an AppRepository, with a Secret that goes with it where it has credentials.
///
/// # Errors
/// There is one of this name, or it cannot be written.
pub async fn create(cluster: &Cluster, wanted: &NewRepository) -> Result<(), InProcessError> {
    let objects = wanted.objects()?;
    let id = &wanted.id;
    let exists = || CatalogError::Exists(format!("AppRepository {}/{}", id.namespace, id.name));
    if object::get(cluster, &object::repository(id))
        .await?
        .is_some()
    {
        return Err(exists().into());
    }
    // First: the AppRepository is read as soon as it is there.
    let secret = match &objects.secret {
        Some(secret) => Some(put_secret(cluster, id, secret).await?),
        None => None,
    };
    let path = object::repositories(&id.namespace);
    let made = match object::write(cluster, Method::POST, &path, &objects.repository).await {
        Ok(made) => made,
        Err(e) => {
            if let Some(path) = &secret {
                object::delete(cluster, path, "Background").await?;
            }
            return Err(match e.is_already_exists() {
                true => exists().into(),
                false => e.into(),
            });
        }
    };
    if let Some(path) = secret {
        let owner = json!({
            "apiVersion": made["apiVersion"],
            "kind": made["kind"],
            "name": made["metadata"]["name"],
            "uid": made["metadata"]["uid"],
        });
        let patch = json!({"metadata": {"ownerReferences": [owner]}});
        object::patch(cluster, &path, &patch).await?;
    }
    Ok(())
}

/// Writes the Secret, and returns its path. One that is there belongs to somebody, unless an attempt
/// that died left it.
async fn put_secret(cluster: &Cluster, id: &Key, secret: &Value) -> Result<String, InProcessError> {
    const MARK: &str = "catalog.tiphys.dev/repository";
    let mut secret = secret.clone();
    secret["metadata"]["annotations"] = json!({MARK: id.name});
    let name = secret["metadata"]["name"].as_str().unwrap_or_default();
    let path = object::secret(&id.namespace, name);
    let all = path.rsplit_once('/').map_or(&*path, |(all, _)| all);
    match object::get(cluster, &path).await? {
        None => object::write(cluster, Method::POST, all, &secret).await?,
        Some(found) => {
            let meta = &found["metadata"];
            let owners = meta["ownerReferences"].as_array();
            let is_left = meta["annotations"][MARK] == *id.name
                && owners.is_none_or(|owners| owners.is_empty());
            if !is_left {
                let name = format!("Secret {}/{name}", id.namespace);
                return Err(CatalogError::Exists(name).into());
            }
            secret["metadata"]["resourceVersion"] = meta["resourceVersion"].clone();
            object::write(cluster, Method::PUT, &path, &secret).await?
        }
    };
    Ok(path)
}

/// Removes an AppRepository; what reads it removes its charts.
///
/// # Errors
/// There is none, or it cannot be removed.
pub async fn delete(cluster: &Cluster, id: &Key) -> Result<(), InProcessError> {
    let path = object::repository(id);
    if object::get(cluster, &path).await?.is_none() {
        let name = format!("AppRepository {}/{}", id.namespace, id.name);
        return Err(CatalogError::NotFound(name).into());
    }
    Ok(object::delete(cluster, &path, "Background").await?)
}

//! The Secrets of an AppRepository in another namespace: pods can read only those of their own, so
//! a copy is kept there, under the name that kubeapps gives it.

use super::{Controller, JobsError, belonging::is_of, object};
use http::Method;
use serde_json::{Map, Value, json};
use tiphys_api::{AppRepository, app_repository::SecretKeyRef};
use tiphys_catalog::apprepository::{REPO_NAME, REPO_NAMESPACE, label, secret_copy};

impl Controller {
    /// Copies the keys that its Jobs read.
    pub(super) async fn copy_secrets(&self, repository: &AppRepository) -> Result<(), JobsError> {
        let (meta, auth) = (&repository.metadata, &repository.spec.auth);
        let namespace = &self.options.options.namespace;
        if meta.namespace == *namespace {
            return Ok(());
        }
        let mut data = Map::new();
        for reference in [&auth.header, &auth.custom_ca].into_iter().flatten() {
            let reference = &reference.secret_key_ref;
            let value = self.secret_value(&meta.namespace, reference).await?;
            let before = data.insert(reference.key.clone(), value.clone());
            if before.is_some_and(|before| before != value) {
                return Err(JobsError::Secret(format!(
                    "its Secrets have different values under the same key {:?}",
                    reference.key
                )));
            }
        }
        if data.is_empty() {
            return Ok(());
        }
        let name = secret_copy(&meta.namespace, &meta.name);
        let path = object::secret(namespace, &name);
        let copy = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {
                    REPO_NAME: label(&meta.name),
                    REPO_NAMESPACE: label(&meta.namespace),
                },
            },
            "data": data,
        });
        match object::get(&self.cluster, &path).await? {
            None => {
                let (collection, _) = path.rsplit_once('/').unwrap_or((&path, ""));
                object::write(&self.cluster, Method::POST, collection, &copy).await?;
            }
            Some(found) if is_of(&found, "/metadata", repository) => {
                if found["data"] != copy["data"] {
                    object::write(&self.cluster, Method::PUT, &path, &copy).await?;
                }
            }
            // kubeapps' API made it, and keeps it.
            Some(found) if found["metadata"]["labels"][REPO_NAME].is_null() => {}
            Some(_) => {
                return Err(JobsError::Secret(format!(
                    "Secret {name:?} of namespace {namespace:?} is the copy for another AppRepository"
                )));
            }
        }
        Ok(())
    }

    async fn secret_value(
        &self,
        namespace: &str,
        reference: &SecretKeyRef,
    ) -> Result<Value, JobsError> {
        let (name, key) = (&reference.name, &reference.key);
        let path = object::secret(namespace, name);
        let Some(mut secret) = object::get(&self.cluster, &path).await? else {
            let why = format!("Secret {name:?} of namespace {namespace:?} does not exist");
            return Err(JobsError::Secret(why));
        };
        match secret["data"][key].take() {
            Value::Null => Err(JobsError::Secret(format!(
                "Secret {name:?} of namespace {namespace:?} has no key {key:?}"
            ))),
            value => Ok(value),
        }
    }

    /// Removes the copy.
    pub(super) async fn remove_secret(&self, repository: &AppRepository) -> Result<(), JobsError> {
        let auth = &repository.spec.auth;
        match auth.header.is_some() || auth.custom_ca.is_some() {
            true => self.remove_copy(repository).await,
            false => Ok(()),
        }
    }

    /// Of its credentials, if there is one.
    pub(super) async fn remove_copy(&self, repository: &AppRepository) -> Result<(), JobsError> {
        let meta = &repository.metadata;
        let namespace = &self.options.options.namespace;
        if meta.namespace == *namespace {
            return Ok(());
        }
        let path = object::secret(namespace, &secret_copy(&meta.namespace, &meta.name));
        let found = object::get(&self.cluster, &path).await?;
        if found.is_some_and(|found| is_of(&found, "/metadata", repository)) {
            object::delete(&self.cluster, &path, "Background").await?;
        }
        Ok(())
    }
}

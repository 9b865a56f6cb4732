//! Requests for single objects, and what is read from them.

use super::Key;
use http::Method;
use serde_json::{Value, json};
use tiphys_api::{AppRepository, app_repository};
use tiphys_cluster::{
    Cluster, Error,
    request::{Call, JSON, MERGE_PATCH, encode},
};

/// The path of AppRepositories; an empty namespace means all.
pub(super) fn repositories(namespace: &str) -> String {
    let group = format!(
        "/apis/{}/{}",
        app_repository::GROUP,
        app_repository::VERSION
    );
    if namespace.is_empty() {
        return format!("{group}/{}", app_repository::PLURAL);
    }
    let namespace = encode(namespace);
    format!("{group}/namespaces/{namespace}/{}", app_repository::PLURAL)
}

pub(super) fn repository(key: &Key) -> String {
    format!("{}/{}", repositories(&key.namespace), encode(&key.name))
}

/// The path of CronJobs or Jobs.
pub(super) fn batch(namespace: &str, plural: &str) -> String {
    format!("/apis/batch/v1/namespaces/{}/{plural}", encode(namespace))
}

pub(super) fn secret(namespace: &str, name: &str) -> String {
    let (namespace, name) = (encode(namespace), encode(name));
    format!("/api/v1/namespaces/{namespace}/secrets/{name}")
}

/// The object, unless there is none.
pub(super) async fn get(cluster: &Cluster, path: &str) -> Result<Option<Value>, Error> {
    match cluster.http().json(&Call::get(path)).await {
        Ok(object) => Ok(Some(object)),
        Err(e) if e.is_not_found() => Ok(None),
        Err(e) => Err(e),
    }
}

pub(super) async fn write(
    cluster: &Cluster,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<Value, Error> {
    let call = Call::new(method, path).with_body(JSON, body.to_string());
    cluster.http().json(&call).await
}

pub(super) async fn patch(cluster: &Cluster, path: &str, patch: &Value) -> Result<Value, Error> {
    let call = Call::new(Method::PATCH, path).with_body(MERGE_PATCH, patch.to_string());
    cluster.http().json(&call).await
}

/// Deletes an object and what depends on it; one that is not there is deleted.
pub(super) async fn delete(cluster: &Cluster, path: &str, propagation: &str) -> Result<(), Error> {
    let body =
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation});
    let call = Call::new(Method::DELETE, path).with_body(JSON, body.to_string());
    match cluster.http().send(&call).await {
        Ok(_) => Ok(()),
        Err(e) if e.is_not_found() => Ok(()),
        Err(e) => Err(e),
    }
}

/// Replaces the finalizers of an AppRepository as it was read.
pub(super) async fn set_finalizers(
    cluster: &Cluster,
    repository: &AppRepository,
    finalizers: &[String],
) -> Result<(), Error> {
    let meta = &repository.metadata;
    let path = self::repository(&Key::new(&meta.namespace, &meta.name));
    let finalizers = json!({
        "metadata": {"finalizers": finalizers, "resourceVersion": meta.resource_version},
    });
    patch(cluster, &path, &finalizers).await.map(drop)
}

/// Adds a finalizer that is missing.
pub(super) async fn add_finalizer(
    cluster: &Cluster,
    repository: &AppRepository,
    finalizer: &str,
) -> Result<(), Error> {
    let mut finalizers = repository.metadata.finalizers.clone();
    if finalizers.iter().any(|f| f == finalizer) {
        return Ok(());
    }
    finalizers.push(finalizer.to_owned());
    set_finalizers(cluster, repository, &finalizers).await
}

/// Removes a finalizer.
pub(super) async fn drop_finalizer(
    cluster: &Cluster,
    repository: &AppRepository,
    finalizer: &str,
) -> Result<(), Error> {
    let mut finalizers = repository.metadata.finalizers.clone();
    finalizers.retain(|f| f != finalizer);
    match set_finalizers(cluster, repository, &finalizers).await {
        Err(e) if e.is_not_found() => Ok(()),
        ended => ended,
    }
}

/// Writes the status if it is another one. kubeapps' own definition has no such subresource: then
/// the part of it that the definition knows is written into the object.
pub(super) async fn set_status(
    cluster: &Cluster,
    repository: &AppRepository,
    status: &app_repository::AppRepositoryStatus,
) -> Result<(), Error> {
    if repository.status == *status {
        return Ok(());
    }
    let path = repository_path(repository);
    // What is absent now must go.
    let mut wanted = serde_json::to_value(status).unwrap_or_default();
    let before = serde_json::to_value(&repository.status).unwrap_or_default();
    for field in before.as_object().into_iter().flat_map(|map| map.keys()) {
        if wanted.get(field).is_none() {
            wanted[field] = Value::Null;
        }
    }
    let body = json!({"status": wanted});
    match patch(cluster, &format!("{path}/status"), &body).await {
        Err(e) if e.is_not_found() => match patch(cluster, &path, &body).await {
            Err(e) if e.is_not_found() => Ok(()),
            ended => ended.map(drop),
        },
        ended => ended.map(drop),
    }
}

fn repository_path(repository: &AppRepository) -> String {
    let meta = &repository.metadata;
    self::repository(&Key::new(&meta.namespace, &meta.name))
}

/// The condition of a Job that ended: `Complete` or `Failed`, and its message.
pub(super) fn ended(job: &Value) -> Option<(&str, &str)> {
    let conditions = job["status"]["conditions"].as_array()?;
    conditions.iter().find_map(|condition| {
        let name = condition["type"].as_str()?;
        let is_end = condition["status"] == "True" && matches!(name, "Complete" | "Failed");
        let message = condition["message"].as_str().unwrap_or_default();
        is_end.then_some((name, message))
    })
}

/// A time in an object.
pub(super) fn time(object: &Value, pointer: &str) -> Option<jiff::Timestamp> {
    object.pointer(pointer)?.as_str()?.parse().ok()
}

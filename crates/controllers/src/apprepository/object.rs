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
        Err(e) if says_gone(cluster, &e, path).await => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether an answer says that the object of a path is gone: it names the object, or AppRepositories
/// are not defined any more. Any other "not found", such as one from a proxy, says nothing of it.
async fn says_gone(cluster: &Cluster, error: &Error, path: &str) -> bool {
    if names_absent(error, path) {
        return true;
    }
    let group = format!("/apis/{}/", app_repository::GROUP);
    if !(error.is_not_found() && path.starts_with(&group)) {
        return false;
    }
    let (plural, group) = (app_repository::PLURAL, app_repository::GROUP);
    let definition =
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}");
    let found: Result<Value, Error> = cluster.http().json(&Call::get(&definition)).await;
    found.is_err_and(|e| names_absent(&e, &definition))
}

fn names_absent(error: &Error, path: &str) -> bool {
    let name = path.rsplit('/').next();
    name.is_some_and(|name| error.is_absent(name))
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
        Err(e) if says_gone(cluster, &e, path).await => Ok(()),
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
    let meta = &repository.metadata;
    let path = self::repository(&Key::new(&meta.namespace, &meta.name));
    match set_finalizers(cluster, repository, &finalizers).await {
        Err(e) if says_gone(cluster, &e, &path).await => Ok(()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use kube::client::Body;
    use std::convert::Infallible;

    const SECRET: &str = "/api/v1/namespaces/n/secrets/s";
    const REPOSITORY: &str = "/apis/kubeapps.com/v1alpha1/namespaces/n/apprepositories/s";

    /// A server where every object is answered with this 404, and definitions with the other.
    async fn server(of_objects: Value, of_definitions: Value) -> Cluster {
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path();
            let (code, body) = match path {
                "/version" => {
                    let version = json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0"});
                    (200, version)
                }
                path if path.starts_with("/apis/apiextensions") => (404, of_definitions.clone()),
                _ => (404, of_objects.clone()),
            };
            let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
            *response.status_mut() = http::StatusCode::from_u16(code).expect("a status");
            async move { Ok::<_, Infallible>(response) }
        });
        let cluster = Cluster::connect_in_process(service, "https://fake").await;
        cluster.expect("it answers")
    }

    fn absent(name: &str) -> Value {
        json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound",
            "message": format!("it has no {name}"), "details": {"name": name}})
    }

    /// Otherwise finalizers would go before what they are for, and rows of what is still there.
    #[tokio::test]
    async fn what_is_not_found_is_gone_if_the_answer_names_it() {
        let definition = absent("apprepositories.kubeapps.com");
        let of_a_proxy = json!("404 page not found");
        for (of_objects, of_definitions, secret, repository) in [
            (absent("s"), of_a_proxy.clone(), true, true),
            (absent("other"), of_a_proxy.clone(), false, false),
            (of_a_proxy.clone(), of_a_proxy.clone(), false, false),
            (of_a_proxy, definition, false, true),
        ] {
            let cluster = server(of_objects.clone(), of_definitions).await;
            for (path, gone) in [(SECRET, secret), (REPOSITORY, repository)] {
                let found = get(&cluster, path).await;
                assert_eq!(matches!(found, Ok(None)), gone, "{path}: {of_objects}");
                let deleted = delete(&cluster, path, "Background").await;
                assert_eq!(deleted.is_ok(), gone, "{path}: {of_objects}");
            }
        }
    }
}

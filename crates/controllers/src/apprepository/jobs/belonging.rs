//! Which AppRepository an object belongs to. Pure, but for what is known of AppRepositories.

use super::{Collection, Key, Value};
use tiphys_api::AppRepository;
use tiphys_catalog::apprepository::{REPO_NAME, REPO_NAMESPACE, label};

fn labels<'a>(object: &'a Value, metadata: &str) -> Option<(&'a str, &'a str)> {
    let labels = object.pointer(metadata)?.get("labels")?;
    let of = |name: &str| labels.get(name).and_then(Value::as_str);
    Some((of(REPO_NAMESPACE)?, of(REPO_NAME)?))
}

/// The known AppRepository that the labels below `metadata` name; a long name is cut in a label.
pub(super) fn owner(repositories: &Collection, object: &Value, metadata: &str) -> Option<Key> {
    let (namespace, name) = labels(object, metadata)?;
    let exact = Key::new(namespace, name);
    if repositories.get(&exact).is_some() {
        return Some(exact);
    }
    let fits = |key: &Key, _: &Value| is_labelled(key, namespace, name);
    repositories
        .find(fits)
        .into_iter()
        .next()
        .map(|(key, _)| key)
}

fn is_labelled(key: &Key, namespace: &str, name: &str) -> bool {
    label(&key.namespace) == namespace && label(&key.name) == name
}

/// Whether a CronJob is controlled by the AppRepository or has its labels.
pub(super) fn belongs(cron_job: &Value, repository: &AppRepository) -> bool {
    let meta = &repository.metadata;
    let owners = cron_job["metadata"]["ownerReferences"].as_array();
    let is_controlled = owners.into_iter().flatten().any(|owner| {
        owner["controller"] == true && owner["uid"] == meta.uid.as_str() && !meta.uid.is_empty()
    });
    is_controlled || is_of(cron_job, "/metadata", repository)
}

/// Whether the labels below `metadata` name the AppRepository.
pub(super) fn is_of(object: &Value, metadata: &str, repository: &AppRepository) -> bool {
    let meta = &repository.metadata;
    let key = Key::new(&meta.namespace, &meta.name);
    labels(object, metadata).is_some_and(|(namespace, name)| is_labelled(&key, namespace, name))
}

/// The AppRepository that labels name exactly, as far as labels can.
pub(super) fn named(object: &Value) -> Option<Key> {
    let (namespace, name) = labels(object, "/metadata")?;
    let key = Key::new(namespace, name);
    is_labelled(&key, namespace, name).then_some(key)
}

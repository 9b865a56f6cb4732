//! Writes `status.sourceHydrator`, and answers requests. Main function: [`Hydrator::write`].

use super::Hydrator;
use serde_json::{Value, json};
use tiphys_api::{
    Application,
    constants::{HYDRATE, HYDRATE_TIMESTAMP, REFRESH, REFRESH_TIMESTAMP},
    operation::SourceHydratorStatus,
};
use tiphys_apimachinery::Object;
use tiphys_cluster::{AppKey, Error};

/// The request that an Application had when work on it began: a later one stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    hydrate: Option<String>,
    at: Option<String>,
}

impl Seen {
    pub fn of(app: &Application) -> Self {
        let get = |name: &str| app.metadata.annotations.get(name).cloned();
        Self {
            hydrate: get(HYDRATE),
            at: get(HYDRATE_TIMESTAMP),
        }
    }
}

/// What is to be changed.
pub struct Change {
    pub status: SourceHydratorStatus,
    /// The request is answered.
    pub answers: bool,
    /// The Application is compared again.
    pub refreshes: bool,
}

impl Hydrator {
    /// Changes the status of an Application, if it still exists, and takes its request away. Returns
    /// whether that was stored.
    pub(super) async fn write(
        &self,
        key: &AppKey,
        seen: Seen,
        change: impl Fn(&mut Change) + Send,
    ) -> bool {
        let now = self.now().to_string();
        let write = |object: &mut Object| -> Result<bool, Error> {
            let before = object.0.clone();
            let status = object.0.get("status");
            let status = status
                .and_then(|status| status.get("sourceHydrator"))
                .cloned();
            let status = status.and_then(|status| serde_json::from_value(status).ok());
            let mut changed = Change {
                status: status.unwrap_or_default(),
                answers: true,
                refreshes: false,
            };
            change(&mut changed);
            let status = serde_json::to_value(&changed.status);
            let status = status.map_err(|e| Error::Invalid {
                key: format!("{}/{}", key.namespace, key.name),
                problem: e.to_string(),
            })?;
            set(object, &["status"], "sourceHydrator", status);
            if changed.answers {
                answer(object, &seen);
            }
            if changed.refreshes && object.annotation(REFRESH).is_none() {
                set(
                    object,
                    &["metadata", "annotations"],
                    REFRESH,
                    json!("normal"),
                );
                let name = REFRESH_TIMESTAMP;
                set(object, &["metadata", "annotations"], name, json!(now));
            }
            Ok(object.0 != before)
        };
        let applications = &self.records.applications;
        match applications.modify(&key.namespace, &key.name, write).await {
            Ok(_) => true,
            Err(error) if applications.is_gone(&error, &key.namespace, &key.name) => true,
            Err(error) => {
                tracing::warn!(
                    application = key.name,
                    %error,
                    "the state of a hydration cannot be written"
                );
                false
            }
        }
    }
}

/// Removes the request, unless it is another one by now.
fn answer(object: &mut Object, seen: &Seen) {
    let get = |name: &str| object.annotation(name).map(str::to_owned);
    let now = Seen {
        hydrate: get(HYDRATE),
        at: get(HYDRATE_TIMESTAMP),
    };
    let annotations = object.0.get_mut("metadata");
    let annotations = annotations.and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(Value::Object(annotations)) = annotations.filter(|_| now == *seen) {
        annotations.remove(HYDRATE);
        annotations.remove(HYDRATE_TIMESTAMP);
    }
}

/// Sets a member of a map within maps.
fn set(object: &mut Object, path: &[&str], name: &str, value: Value) {
    let mut map = &mut object.0;
    for step in path {
        let inner = map.entry((*step).to_owned()).or_insert_with(|| json!({}));
        let Value::Object(inner) = inner else {
            return;
        };
        map = inner;
    }
    map.insert(name.to_owned(), value);
}

//! Which changes lead to a question about which Application. Main function: [`follow`].

use super::{Hydrator, Reason};
use crate::runtime::next;
use std::sync::Arc;
use tiphys_api::{
    Application,
    constants::{HYDRATE, HYDRATE_TIMESTAMP, MANIFEST_GENERATE_PATHS, REFRESH},
};
use tiphys_cluster::{AppKey, records::RecordChange};

/// Follows all feeds until one ends.
pub(super) async fn follow(hydrator: Arc<Hydrator>) {
    tokio::select! {
        () = applications(&hydrator) => {}
        () = leases(&hydrator) => {}
    }
}

impl Hydrator {
    fn add_all(&self) {
        for record in self.records.applications.list() {
            let key = AppKey::new(&record.meta.namespace, &record.meta.name);
            self.apps.add(key, Reason::default());
        }
    }
}

async fn applications(hydrator: &Hydrator) {
    let mut changes = hydrator.records.applications.changes();
    hydrator.add_all();
    while let Some(change) = next(&mut changes).await {
        match change {
            Some(change) => {
                if let Some(reason) = concerns(&change) {
                    let meta = &change.record.meta;
                    let key = AppKey::new(&meta.namespace, &meta.name);
                    hydrator.apps.add(key, reason);
                }
            }
            None => hydrator.add_all(),
        }
    }
}

fn concerns(change: &RecordChange<Application>) -> Option<Reason> {
    let now = change.record.value().ok()?;
    let before = change
        .before
        .as_ref()
        .and_then(|before| before.value().ok());
    asks(before.as_deref(), &now)
}

/// Whether an Application that has changed must be asked. What is written here does not concern it:
/// nor does the refresh that follows a hydration.
fn asks(before: Option<&Application>, now: &Application) -> Option<Reason> {
    now.spec.source_hydrator.as_ref()?;
    let annotation = |app: &Application, name: &str| app.metadata.annotations.get(name).cloned();
    let Some(before) = before else {
        return Some(Reason {
            is_fresh: annotation(now, HYDRATE).is_some(),
        });
    };
    let came = |name: &str| {
        let value = annotation(now, name);
        value.is_some() && value != annotation(before, name)
    };
    let is_own = before.status.source_hydrator != now.status.source_hydrator;
    let is_fresh = came(HYDRATE) || came(HYDRATE_TIMESTAMP) || (came(REFRESH) && !is_own);
    let differs = before.spec.source_hydrator != now.spec.source_hydrator
        || before.spec.project != now.spec.project
        || annotation(before, MANIFEST_GENERATE_PATHS) != annotation(now, MANIFEST_GENERATE_PATHS);
    (is_fresh || differs).then_some(Reason { is_fresh })
}

/// Who becomes the one that works looks at everything.
async fn leases(hydrator: &Hydrator) {
    let Some(leases) = &hydrator.leases else {
        return std::future::pending().await;
    };
    let mut changes = leases.changes();
    while changes.changed().await.is_ok() {
        hydrator.add_all();
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tiphys_apimachinery::patch::json_merge;

    #[test]
    fn only_what_may_need_a_commit_asks() {
        let base = json!({
            "metadata": {"name": "web"},
            "spec": {"sourceHydrator": {"drySource": {"repoURL": "r", "path": "p"}}},
        });
        let app = |change: &Value| -> Application {
            let changed = json_merge::apply(&base, change).expect("maps");
            serde_json::from_value(changed).expect("an Application")
        };
        let annotated = |name: &str| json!({"metadata": {"annotations": {name: "normal"}}});
        let own = json!({
            "metadata": {"annotations": {REFRESH: "normal"}},
            "status": {"sourceHydrator": {"currentOperation": {"phase": "Hydrated"}}},
        });
        for (change, expected) in [
            (json!({}), None),
            (json!({"status": {"health": {"status": "Healthy"}}}), None),
            (json!({"spec": {"project": "other"}}), Some(false)),
            (
                json!({"spec": {"sourceHydrator": {"drySource": {"path": "q"}}}}),
                Some(false),
            ),
            (annotated(HYDRATE), Some(true)),
            (annotated(HYDRATE_TIMESTAMP), Some(true)),
            (annotated(REFRESH), Some(true)),
            (annotated(MANIFEST_GENERATE_PATHS), Some(false)),
            (own, None),
            (json!({"spec": {"sourceHydrator": null}}), None),
        ] {
            let found = asks(Some(&app(&json!({}))), &app(&change));
            assert_eq!(found.map(|reason| reason.is_fresh), expected, "{change}");
        }
        assert_eq!(asks(None, &app(&json!({}))), Some(Reason::default()));
        // A request that goes, or stays, is none.
        assert_eq!(
            asks(Some(&app(&annotated(HYDRATE))), &app(&json!({}))),
            None
        );
        let same = app(&annotated(HYDRATE));
        assert_eq!(asks(Some(&same), &same), None);
    }
}

//! Rollback after a timeout (`OnTimeout=rollback`): syncs the last healthy entry of the history.
//!
//! Main function: [`operation`]. Pure. The operation records its origin in its `info`: it is never
//! followed by another rollback, and auto-sync does not sync the abandoned revision again.

use super::requested::shown;
use sha2::{Digest, Sha256};
use tiphys_api::{
    Application,
    application::ApplicationSpec,
    constants::LAST_HEALTHY,
    operation::{Info, Operation, OperationState, SyncOperation, SyncStrategy, SyncStrategyApply},
    source::ApplicationSource,
    status::RevisionHistory,
};

const FROM: &str = "Rolled back from";
const SOURCE: &str = "Rolled back source";
const WHY: &str = "Rolled back because";

/// The id to remember, if everything in the last deployment is Synced and Healthy.
pub fn healthy_entry(app: &Application) -> Option<String> {
    let well = app.operation.is_none()
        && app.status.sync.status == "Synced"
        && app.status.health.status == "Healthy";
    app.status
        .history
        .last()
        .filter(|_| well)
        .map(|entry| entry.id.to_string())
}

/// The rollback of an operation that timed out.
///
/// # Errors
/// If there is nothing to roll back to; the text says why.
pub fn operation(app: &Application, late: &OperationState) -> Result<Operation, String> {
    let sync = late.operation.sync.clone().unwrap_or_default();
    if origin(&late.operation).is_some() {
        return Err("it is a rollback itself".into());
    }
    if sync.dry_run || !sync.resources.is_empty() {
        return Err("only a whole sync is rolled back".into());
    }
    let to = last_healthy(app).ok_or("no entry of the history is known to have been healthy")?;
    let from = late.sync_result.clone().unwrap_or_default();
    if (&from.revision, &from.revisions, &from.source, &from.sources)
        == (&to.revision, &to.revisions, &to.source, &to.sources)
    {
        return Err(format!(
            "{} is what was healthy last",
            shown(&to.revision, &to.revisions)
        ));
    }
    let info = |name: &str, value: &str| Info {
        name: name.into(),
        value: value.into(),
    };
    Ok(Operation {
        sync: Some(SyncOperation {
            revision: to.revision.clone(),
            revisions: to.revisions.clone(),
            source: to.sources.is_empty().then(|| to.source.clone()),
            sources: to.sources.clone(),
            prune: sync.prune,
            sync_options: sync.sync_options,
            // Like a user's rollback: without hooks.
            sync_strategy: Some(SyncStrategy {
                apply: Some(SyncStrategyApply::default()),
                hook: None,
            }),
            ..SyncOperation::default()
        }),
        initiated_by: late.operation.initiated_by.clone(),
        info: vec![
            info(FROM, &shown(&from.revision, &from.revisions)),
            info(SOURCE, &fingerprint(&from.source, &from.sources)),
            info(WHY, &late.message),
        ],
        ..Operation::default()
    })
}

fn last_healthy(app: &Application) -> Option<&RevisionHistory> {
    let id = app
        .metadata
        .annotations
        .get(LAST_HEALTHY)?
        .parse::<i64>()
        .ok()?;
    app.status.history.iter().find(|entry| entry.id == id)
}

/// The revision that a rollback abandoned; `None` for any other operation.
pub fn origin(operation: &Operation) -> Option<&str> {
    told(operation, FROM)
}

/// Why this revision of these sources was abandoned, if the operation is its rollback.
pub fn reason<'a>(
    operation: &'a Operation,
    revision: &str,
    spec: &ApplicationSpec,
) -> Option<&'a str> {
    let left = || fingerprint(&spec.source.clone().unwrap_or_default(), &spec.sources);
    let same = origin(operation)? == revision && told(operation, SOURCE)? == left();
    told(operation, WHY).filter(|_| same)
}

fn told<'a>(operation: &'a Operation, name: &str) -> Option<&'a str> {
    operation
        .info
        .iter()
        .find(|i| i.name == name)
        .map(|i| i.value.as_str())
}

/// A text that is equal for equal sources.
pub(super) fn fingerprint(source: &ApplicationSource, sources: &[ApplicationSource]) -> String {
    let text = if sources.is_empty() {
        serde_json::to_vec(source)
    } else {
        serde_json::to_vec(sources)
    };
    let text = text.expect("a source is strings, numbers and maps of them");
    Sha256::digest(text)
        .iter()
        .take(8)
        .map(|b| format!("{b:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn app(last_healthy: &str, revisions: &[&str]) -> Application {
        let entry = |(id, revision): (usize, &&str)| json!({"id": id, "revision": revision, "source": {"repoURL": "r"}});
        let history: Vec<Value> = revisions.iter().enumerate().map(entry).collect();
        let annotations = json!({(LAST_HEALTHY): last_healthy});
        let app = json!({"metadata": {"name": "a", "annotations": annotations}, "spec": {}, "status": {"history": history}});
        serde_json::from_value(app).expect("an Application")
    }

    fn late(revision: &str) -> OperationState {
        let operation = json!({"sync": {"prune": true, "revision": revision}, "initiatedBy": {"automated": true}});
        let result = json!({"revision": revision, "source": {"repoURL": "r"}});
        serde_json::from_value(
            json!({"operation": operation, "message": "too late", "syncResult": result}),
        )
        .expect("a state")
    }

    #[test]
    fn the_last_healthy_entry_is_synced() {
        let back = operation(&app("1", &["a", "b", "c"]), &late("d")).expect("an operation");
        let sync = back.sync.clone().expect("a sync");
        assert_eq!(
            (
                sync.revision.as_str(),
                sync.prune,
                back.initiated_by.automated
            ),
            ("b", true, true)
        );
        assert!(sync.sync_strategy.is_some_and(|s| s.apply.is_some()));
        let spec = |path: &str| ApplicationSpec {
            source: Some(ApplicationSource {
                repo_url: "r".into(),
                path: path.into(),
                ..ApplicationSource::default()
            }),
            ..ApplicationSpec::default()
        };
        assert_eq!(
            (origin(&back), reason(&back, "d", &spec(""))),
            (Some("d"), Some("too late"))
        );
        assert_eq!(
            (
                reason(&back, "e", &spec("")),
                reason(&back, "d", &spec("p"))
            ),
            (None, None),
            "these may be tried"
        );
    }

    #[test]
    fn it_says_why_there_is_none() {
        let why =
            |app: Application, state: &OperationState| operation(&app, state).expect_err("none");
        assert_eq!(
            why(app("7", &["a"]), &late("d")),
            "no entry of the history is known to have been healthy"
        );
        assert_eq!(
            why(app("", &["a"]), &late("d")),
            "no entry of the history is known to have been healthy"
        );
        assert_eq!(
            why(app("0", &["a"]), &late("a")),
            "a is what was healthy last"
        );
        let mut again = late("d");
        again.operation = operation(&app("0", &["a"]), &late("d")).expect("an operation");
        assert_eq!(why(app("0", &["a"]), &again), "it is a rollback itself");
        let mut partial = late("d");
        partial
            .operation
            .sync
            .as_mut()
            .expect("a sync")
            .resources
            .push(Default::default());
        assert_eq!(
            why(app("0", &["a"]), &partial),
            "only a whole sync is rolled back"
        );
    }

    #[test]
    fn what_is_well_is_remembered() {
        let mut app = app("", &["a", "b"]);
        assert_eq!(healthy_entry(&app), None);
        app.status.sync.status = "Synced".into();
        app.status.health.status = "Healthy".into();
        assert_eq!(healthy_entry(&app).as_deref(), Some("1"));
        app.operation = Some(Box::default());
        assert_eq!(healthy_entry(&app), None);
    }
}

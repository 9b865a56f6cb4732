//! Identifies an operation, also for a process that did not start it.

use sha2::{Digest, Sha256};
use tiphys_api::{
    constants,
    operation::{Operation, OperationState, SyncOperationResult},
};

/// The id of one attempt of an operation of the Application with this `uid`. `started` is in
/// seconds since 1970, `last_sync` the id of the newest history entry.
pub fn id(uid: &str, started: i64, attempt: i64, last_sync: Option<i64>) -> String {
    let mut hash = Sha256::new();
    hash.update(uid);
    hash.update(started.to_le_bytes());
    hash.update(attempt.to_le_bytes());
    hash.update(last_sync.unwrap_or(-1).to_le_bytes());
    hash.finalize()
        .iter()
        .take(8)
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// Whether a process that only knows what is `stored` would sync the same. A dry run writes
/// nothing, and an operation that names revisions and sources completely needs no second record.
pub fn is_remembered(stored: Option<&SyncOperationResult>, state: &OperationState) -> bool {
    let sync = state.operation.sync.clone().unwrap_or_default();
    let result = state.sync_result.clone().unwrap_or_default();
    let is_stored = stored.is_some_and(|stored| {
        (
            &stored.revision,
            &stored.revisions,
            &stored.source,
            &stored.sources,
        ) == (
            &result.revision,
            &result.revisions,
            &result.source,
            &result.sources,
        )
    });
    let is_named = match result.sources.is_empty() {
        true => sync.source.as_ref() == Some(&result.source) && sync.revision == result.revision,
        false => sync.sources == result.sources && sync.revisions == result.revisions,
    };
    is_stored || is_named || sync.dry_run
}

/// Whether the plan is requested in the message of the dry run.
pub fn shows_plan(operation: &Operation) -> bool {
    operation
        .info
        .iter()
        .any(|i| i.name == constants::SHOW_PLAN && i.value == "true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_attempt_of_each_operation_has_an_id_of_its_own() {
        let ids = [
            id("a", 7, 0, None),
            id("b", 7, 0, None),
            id("a", 8, 0, None),
            id("a", 7, 1, None),
            id("a", 7, 0, Some(0)),
            id("a", 7, 0, Some(1)),
        ];
        assert_eq!(
            ids.iter().collect::<std::collections::BTreeSet<_>>().len(),
            ids.len(),
            "{ids:?}"
        );
        assert_eq!(ids[0], id("a", 7, 0, None), "whoever asks");
        assert!(ids.iter().all(|id| id.len() == 16), "{ids:?}");
    }

    #[test]
    fn a_plan_is_shown_to_whoever_asks_for_it() {
        let shows = |name: &str, value: &str| {
            shows_plan(
                &serde_json::from_value(json!({"info": [{"name": name, "value": value}]}))
                    .expect("valid"),
            )
        };
        assert!(shows(constants::SHOW_PLAN, "true"));
        assert!(
            !shows(constants::SHOW_PLAN, "false")
                && !shows("reason", "true")
                && !shows_plan(&Operation::default())
        );
    }

    /// Each line: the stored result, the operation, its current result, and whether a process that
    /// finds the stored state syncs the same.
    #[test]
    fn what_an_operation_stands_for_is_stored_unless_it_says_so_itself() {
        let (git, other) = (
            json!({"repoURL": "https://git/a", "path": "app"}),
            json!({"repoURL": "https://git/a", "path": "other"}),
        );
        let one = json!({"source": git, "revision": "1111"});
        let two = json!({"sources": [git, other], "revisions": ["1111", "2222"]});
        let nothing = json!({});
        let cases = [
            (None, &nothing, &one, false),
            (None, &one, &one, true),
            (Some(&one), &nothing, &one, true),
            (None, &json!({"source": git}), &one, false),
            (None, &json!({"revision": "1111"}), &one, false),
            (
                None,
                &json!({"source": git, "revision": "main"}),
                &one,
                false,
            ),
            (
                None,
                &json!({"source": other, "revision": "1111"}),
                &one,
                false,
            ),
            (None, &json!({"dryRun": true}), &one, true),
            (Some(&nothing), &nothing, &one, false),
            (
                Some(&json!({"source": git, "revision": "main"})),
                &nothing,
                &one,
                false,
            ),
            (
                Some(&json!({"source": other, "revision": "1111"})),
                &nothing,
                &one,
                false,
            ),
            (None, &nothing, &two, false),
            (None, &two, &two, true),
            (Some(&two), &nothing, &two, true),
            (None, &json!({"sources": [git, other]}), &two, false),
            (None, &json!({"revisions": ["1111", "2222"]}), &two, false),
            (
                None,
                &json!({"sources": [git, other], "revisions": ["1111", "main"]}),
                &two,
                false,
            ),
            (
                None,
                &json!({"sources": [other, git], "revisions": ["1111", "2222"]}),
                &two,
                false,
            ),
            (
                Some(&json!({"sources": [git, other], "revisions": ["1111", "main"]})),
                &nothing,
                &two,
                false,
            ),
            (
                Some(&json!({"sources": [git], "revisions": ["1111", "2222"]})),
                &nothing,
                &two,
                false,
            ),
        ];
        for (stored, sync, result, is) in cases {
            let stored =
                stored.map(|stored| serde_json::from_value(stored.clone()).expect("a result"));
            let state =
                serde_json::from_value(json!({"operation": {"sync": sync}, "syncResult": result}))
                    .expect("a state");
            assert_eq!(
                is_remembered(stored.as_ref(), &state),
                is,
                "{stored:?} {sync} {result}"
            );
        }
    }
}

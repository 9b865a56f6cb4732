//! Why an Application is still OutOfSync although its last sync succeeded, as a condition. Argo CD
//! says nothing then.
//!
//! Main functions: [`is_due`] and [`explain`]. Pure. The text names resources, paths and field
//! managers, never values, and is the same as long as the difference is.

use super::auto_sync::{OURS, wrote_another};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_api::{
    Application,
    operation::{ResourceResult, SyncOperation, SyncOperationResult},
};
use tiphys_apimachinery::{Object, ResourceKey};
use tiphys_engine::{
    diff::{self, Reason},
    types::{Comparison, Condition, ConditionType, Entry, SyncStatus},
};

/// At most this many resources are named.
const RESOURCES: usize = 3;
/// At most this many fields of a resource are named.
const FIELDS: usize = 2;
/// The longest path, name or message of others in the text, in characters.
const WORD: usize = 120;
const LEFT_OUT: &str = "the sync was limited to other resources";
const BY_SERVER: &str = "probably by the API server or an admission webhook";

/// Whether there may be something to explain: the last sync succeeded, nothing has changed in Git
/// since, and nothing is running.
pub fn is_due(app: &Application) -> bool {
    app.operation.is_none()
        && app.metadata.deletion_timestamp.is_none()
        && app.status.sync.status == SyncStatus::OutOfSync.as_str()
        && LastSync::of(app).is_some()
}

/// Why this Application is still OutOfSync.
pub fn explain(app: &Application, comparison: &Comparison) -> Option<Condition> {
    let last = LastSync::of(app)?;
    let differing: Vec<&Entry> = comparison
        .entries
        .iter()
        .map(|entry| &**entry)
        .filter(|entry| entry.status == Some(SyncStatus::OutOfSync) && entry.is_drift())
        .collect();
    let text = if differing.is_empty() {
        last.namespace_metadata(app)?
    } else {
        last.resources(&differing)
    };
    Some(Condition::new(
        ConditionType::OutOfSyncWarning,
        format!("The last sync succeeded, but {text}"),
    ))
}

/// A sync that succeeded, of what is compared now.
struct LastSync<'a> {
    sync: &'a SyncOperation,
    result: &'a SyncOperationResult,
    since: Option<Timestamp>,
}

impl<'a> LastSync<'a> {
    fn of(app: &'a Application) -> Option<Self> {
        let state = app.status.operation_state.as_ref()?;
        let (sync, result) = (state.operation.sync.as_ref()?, state.sync_result.as_ref()?);
        let compared = &app.status.sync;
        let same_source =
            !app.spec.sources.is_empty() || Some(&result.source) == app.spec.source.as_ref();
        let same = result.revision == compared.revision
            && result.revisions == compared.revisions
            && same_source
            && result.sources == app.spec.sources;
        (state.phase == "Succeeded" && !sync.dry_run && same).then(|| Self {
            sync,
            result,
            since: state.started_at.map(|at| at.timestamp()),
        })
    }

    fn namespace_metadata(&self, app: &Application) -> Option<String> {
        let policy = app.spec.sync_policy.as_ref();
        let wanted = policy.and_then(|policy| policy.managed_namespace_metadata.as_ref());
        (wanted != self.result.managed_namespace_metadata.as_ref())
            .then(|| "spec.syncPolicy.managedNamespaceMetadata is not what was synced".to_owned())
    }

    fn resources(&self, differing: &[&Entry]) -> String {
        let named: Vec<String> = differing
            .iter()
            .take(RESOURCES)
            .map(|entry| {
                let name = short(&entry.key.name);
                format!("{}/{name}: {}", short(&entry.key.kind), self.reason(entry))
            })
            .collect();
        let differ = match differing.len() {
            1 => "1 resource still differs".to_owned(),
            many => format!("{many} resources still differ"),
        };
        let more = match differing.len().saturating_sub(RESOURCES) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        format!("{differ} from Git: {}{more}", named.join("; "))
    }

    fn reason(&self, entry: &Entry) -> String {
        let result = self.result_of(&entry.key);
        let left_out = result.is_none() && !self.sync.resources.is_empty();
        let Some(live) = entry.live.as_ref().map(|live| live.object()) else {
            let applied = result.is_some_and(|result| result.status == "Synced");
            return match (applied, left_out) {
                (true, _) => "it was applied, and is no longer in the cluster".to_owned(),
                (false, true) => LEFT_OUT.to_owned(),
                (false, false) => "it is not in the cluster".to_owned(),
            };
        };
        if entry.requires_pruning {
            if live.deletion_timestamp().is_some() {
                return "it is not in Git, and is being deleted".to_owned();
            }
            let skipped = result.filter(|result| result.status == "PruneSkipped");
            return match skipped {
                Some(skipped) => format!("it is not in Git, and was {}", short(&skipped.message)),
                None if left_out => format!("it is not in Git, and {LEFT_OUT}"),
                None => "it is not in Git".to_owned(),
            };
        }
        if left_out {
            return LEFT_OUT.to_owned();
        }
        let fields = diff::why(&entry.diff.read(), &live);
        if fields.is_empty() {
            return "it is not as in Git".to_owned();
        }
        let mut named: Vec<String> = fields
            .iter()
            .take(FIELDS)
            .map(|field| told(field, self.writer(&live, &field.path)))
            .collect();
        match fields.len().saturating_sub(FIELDS) {
            0 => {}
            1 => named.push("and 1 more field".to_owned()),
            more => named.push(format!("and {more} more fields")),
        }
        named.join(", ")
    }

    fn result_of(&self, key: &ResourceKey) -> Option<&'a ResourceResult> {
        self.result.resources.iter().find(|result| {
            // Hooks have a type; one may have the name of a resource.
            result.hook_type.is_empty()
                && result.group == key.group
                && result.kind == key.kind
                && result.namespace == key.namespace
                && result.name == key.name
        })
    }

    /// Someone else who has written to this part of the object since the sync began. Who removes a
    /// field leaves no other trace of that.
    fn writer<'b>(&self, live: &'b Object, path: &str) -> Option<&'b str> {
        let entries = live.metadata("managedFields").and_then(Value::as_array)?;
        let part = path.trim_start_matches('.').split(['.', '[']).next()?;
        let part = format!("f:{part}");
        let wrote = |entry: &&Value| {
            let fields = entry.get("fieldsV1").and_then(|fields| fields.get(&part));
            fields.is_some() && wrote_another(entry, self.since)
        };
        entries
            .iter()
            .filter(wrote)
            .filter_map(|entry| entry.get("manager").and_then(Value::as_str))
            .min()
    }
}

/// One field that differs, and who or what is behind it as far as can be known.
fn told(field: &Reason, writer: Option<&str>) -> String {
    // An item of a list without keys is a value.
    let path = field.path.split("[=").next().unwrap_or_default();
    let path = short(path);
    let owners: BTreeSet<&str> = field
        .owners
        .iter()
        .map(|owner| owner.manager.as_str())
        .filter(|manager| !OURS.contains(manager))
        .collect();
    if let Some(owner) = owners.first() {
        return format!("{path} is owned by {}", short(owner));
    }
    if let Some(writer) = writer {
        return format!("{path} differs, and {} has written since", short(writer));
    }
    match (&field.live, &field.desired) {
        (None, Some(_)) => format!("{path} is dropped, {BY_SERVER}"),
        (Some(_), Some(_)) => format!("{path} is changed, {BY_SERVER}"),
        (Some(_), None) => format!("{path} is live, and not in Git"),
        (None, None) => format!("{path} differs"),
    }
}

fn short(text: &str) -> String {
    if text.chars().nth(WORD).is_none() {
        return text.to_owned();
    }
    text.chars().take(WORD).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tiphys_engine::{diff::Owner, types::IgnoreRule};

    fn field(live: Option<Value>, desired: Option<Value>, owners: &[&str]) -> Reason {
        let owner = |name: &&str| Owner {
            manager: (*name).to_owned(),
            operation: "Update".to_owned(),
            time: String::new(),
        };
        Reason {
            path: ".spec.x".to_owned(),
            live,
            desired,
            owners: owners.iter().map(owner).collect(),
            ignore: IgnoreRule::default(),
        }
    }

    #[test]
    fn who_or_what_is_behind_a_field_is_told_as_far_as_it_is_known() {
        let (a, b) = (|| Some(json!("CANARY-1")), || Some(json!("CANARY-2")));
        let cases = [
            (
                field(a(), b(), &["tuner"]),
                None,
                ".spec.x is owned by tuner",
            ),
            (
                field(a(), b(), &[OURS[0], "tuner"]),
                Some("writer"),
                ".spec.x is owned by tuner",
            ),
            (
                field(None, b(), &[]),
                Some("writer"),
                ".spec.x differs, and writer has written since",
            ),
            (
                field(None, b(), &[]),
                None,
                ".spec.x is dropped, probably by the API server or an admission webhook",
            ),
            (
                field(a(), b(), &[OURS[0]]),
                None,
                ".spec.x is changed, probably by the API server or an admission webhook",
            ),
            (
                field(a(), None, &[]),
                None,
                ".spec.x is live, and not in Git",
            ),
        ];
        for (field, writer, expected) in cases {
            assert_eq!(told(&field, writer), expected);
        }
        let item = Reason {
            path: r#".spec.x[="CANARY-3"]"#.to_owned(),
            ..field(a(), None, &[])
        };
        assert_eq!(told(&item, None), ".spec.x is live, and not in Git");
    }

    #[test]
    fn words_of_others_are_bounded() {
        let long = "ä".repeat(WORD);
        assert_eq!(short(&long), long);
        let cut = short(&format!("{long}b"));
        assert_eq!((cut.chars().count(), cut.ends_with("ä…")), (WORD + 1, true));
    }

    fn is_explained(change: &Value) -> bool {
        let base = json!({
            "metadata": {"name": "a"},
            "spec": {"project": "default", "source": {"repoURL": "r"}, "destination": {}},
            "status": {"sync": {"status": "OutOfSync", "revision": "abc"}, "operationState": {"phase": "Succeeded",
                "operation": {"sync": {"revision": "abc"}}, "syncResult": {"revision": "abc", "source": {"repoURL": "r"}}}}
        });
        let app = tiphys_apimachinery::patch::json_merge::apply(&base, change).expect("maps");
        is_due(&serde_json::from_value(app).expect("an Application"))
    }

    #[test]
    fn only_a_sync_of_what_is_compared_that_succeeded_is_explained() {
        assert!(is_explained(&json!({})));
        for change in [
            json!({"status": {"sync": {"status": "Synced"}}}),
            json!({"status": {"sync": {"revision": "def"}}}),
            json!({"status": {"operationState": {"phase": "Failed"}}}),
            json!({"status": {"operationState": {"operation": {"sync": {"dryRun": true}}}}}),
            json!({"spec": {"source": {"repoURL": "other"}}}),
            json!({"operation": {"sync": {"revision": "abc"}}}),
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        ] {
            assert!(!is_explained(&change), "{change}");
        }
    }
}

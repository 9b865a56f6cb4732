//! What was sent already, kept in an annotation of the Application.
//!
//! Main type: [`Ledger`].

use crate::{Destination, triggers::ConditionResult};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use tiphys_gocompat::json;

/// The annotation.
pub const NOTIFIED: &str = "notified.notifications.argoproj.io";

/// Most entries of the annotation.
const MOST: usize = 100;

/// When each notification was sent, in seconds since 1970. The keys are a contract with Argo CD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger(BTreeMap<String, i64>);

/// The key of a notification: `[oncePer:][namespace:]trigger:condition:service:recipient`.
/// Configurations of a namespace of their own have its name in it.
pub(crate) fn key(
    namespace: Option<&str>,
    trigger: &str,
    result: &ConditionResult,
    to: &Destination,
) -> String {
    let mut key = String::new();
    for prefix in [result.once_per.as_deref(), namespace] {
        if let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty()) {
            key.push_str(prefix);
            key.push(':');
        }
    }
    let Destination { service, recipient } = to;
    key.push_str(&format!("{trigger}:{}:{service}:{recipient}", result.key));
    key
}

impl Ledger {
    /// Reads the annotation. A text that is not a ledger counts as an empty one.
    pub fn parse(annotation: &str) -> Self {
        let entries = match serde_json::from_str::<Json>(annotation) {
            Ok(Json::Object(members)) => members
                .into_iter()
                .map(|(key, value)| Some((key, value.as_i64()?)))
                .collect(),
            _ => None,
        };
        Self(entries.unwrap_or_default())
    }

    /// The annotation; `None` for an empty ledger. The oldest of more than 100 entries are left
    /// out.
    pub fn annotation(&self) -> Option<String> {
        let mut kept: Vec<(&String, &i64)> = self.0.iter().collect();
        kept.sort_by_key(|(_, at)| **at);
        let members: serde_json::Map<String, Json> = kept
            .split_off(kept.len().saturating_sub(MOST))
            .into_iter()
            .map(|(key, at)| (key.clone(), (*at).into()))
            .collect();
        (!members.is_empty()).then(|| json::to_string(&members.into()))
    }

    pub fn contains(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Records that a notification was sent.
    pub fn record(&mut self, key: String, at: i64) {
        self.0.insert(key, at);
    }

    /// Forgets a notification, so that it is sent again.
    pub fn forget(&mut self, key: &str) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_are_left_out() {
        let mut ledger = Ledger::default();
        for i in 0..150 {
            ledger.record(format!("k{i:03}"), i);
        }
        let kept = Ledger::parse(&ledger.annotation().expect("entries"));
        assert_eq!(kept.0.len(), 100);
        assert!(kept.contains("k050") && !kept.contains("k049"));
    }

    #[test]
    fn what_is_no_ledger_is_an_empty_one() {
        for text in ["", "garbage", "[]", "{\"a\": \"b\"}", "null"] {
            assert_eq!(Ledger::parse(text), Ledger::default(), "{text}");
        }
        assert_eq!(Ledger::default().annotation(), None);
    }

    #[test]
    fn keys_are_escaped_as_go_writes_them() {
        let mut ledger = Ledger::default();
        ledger.record("<nil>:t".into(), 1);
        let text = ledger.annotation().expect("an entry");
        assert_eq!(text, "{\"\\u003cnil\\u003e:t\":1}");
        assert_eq!(Ledger::parse(&text), ledger);
    }
}

//! Whether an update of a live object matters (`ignoreResourceUpdates`): its states are compared by
//! a fingerprint of the fields that matter, so that its payload need not be kept.

use crate::{
    base::Tracking,
    customize::{UpdateRules, boolean},
    diff::{self, Options},
    track,
};
use std::{
    hash::{DefaultHasher, Hasher},
    io::{self, Write},
};
use tiphys_apimachinery::Object;

/// If true, the rules also apply to an object that no Application tracks.
const IGNORE_RESOURCE_UPDATES: &str = "argocd.argoproj.io/ignore-resource-updates";

impl UpdateRules {
    /// The fingerprint of a live object's state, if its updates can be ignored at all: those of
    /// objects that an Application tracks, of Applications, and of objects with the annotation.
    pub fn fingerprint(&self, live: &Object, tracking: &Tracking) -> Option<u64> {
        let application = live.group() == "argoproj.io" && live.kind() == "Application";
        let says_so = || {
            live.annotation(IGNORE_RESOURCE_UPDATES)
                .is_some_and(|v| boolean(v) == Ok(true))
        };
        let concerned = || application || track::owner(live, tracking).is_some() || says_so();
        if !self.enabled() || !concerned() {
            return None;
        }
        let mut watched = live.clone();
        let (ignore, ignore_status) = self.ignored();
        let options = Options {
            ignore,
            ignore_status,
            ..Options::default()
        };
        diff::remove_ignored(&mut watched, &options);
        for field in ["resourceVersion", "generation", "managedFields"] {
            watched.metadata_mut().remove(field);
        }
        let mut sink = Sink(DefaultHasher::new());
        serde_json::to_writer(&mut sink, &watched).ok()?;
        Some(sink.0.finish())
    }
}

struct Sink(DefaultHasher);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    /// Whether a change of a tracked Deployment is noticed.
    fn seen(config: &[(&str, &str)], change: &Value) -> bool {
        let config: BTreeMap<_, _> = config
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let (customizations, problems) =
            crate::customize::read(&config, || jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(problems, Vec::<String>::new());
        let before = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "prod", "resourceVersion": "1",
            "annotations": {"argocd.argoproj.io/tracking-id": "app:apps/Deployment:prod/web"}}, "spec": {"replicas": 1}});
        let after = tiphys_apimachinery::patch::json_merge::apply(&before, change).expect("maps");
        let of = |v: Value| {
            let object = Object::from_value(v).expect("a map");
            customizations
                .updates()
                .fingerprint(&object, &Tracking::annotation(""))
        };
        let (before, after) = (of(before), of(after));
        before.is_none() || before != after
    }

    #[test]
    fn only_what_is_not_ignored_is_seen() {
        let replicas = json!({"spec": {"replicas": 2}, "metadata": {"resourceVersion": "2", "generation": 2, "managedFields": []}});
        let status = json!({"status": {"replicas": 1}});
        let pointer = "jsonPointers: [/spec/replicas]";
        let updates = (
            "resource.customizations.ignoreResourceUpdates.apps_Deployment",
            pointer,
        );
        let differences = (
            "resource.customizations.ignoreDifferences.apps_Deployment",
            "jqPathExpressions: [.spec.replicas]",
        );
        let whole = (
            "resource.customizations",
            "apps/*:\n  ignoreResourceUpdates: |\n    jsonPointers: [/spec/replicas]\n",
        );
        let not_as_differences = (
            "resource.compareoptions",
            "ignoreDifferencesOnResourceUpdates: false",
        );
        let off = ("resource.ignoreResourceUpdatesEnabled", "false");
        assert!(
            !seen(&[], &json!({"metadata": {"resourceVersion": "2"}})),
            "bookkeeping never counts"
        );
        assert!(seen(&[], &replicas) && !seen(&[updates], &replicas) && !seen(&[whole], &replicas));
        assert!(
            !seen(&[differences], &replicas) && seen(&[differences, not_as_differences], &replicas)
        );
        assert!(seen(&[updates], &json!({"spec": {"paused": true}})));
        assert!(!seen(&[], &status) && seen(&[not_as_differences], &status));
        assert!(!seen(
            &[
                updates,
                ("resource.compareoptions", "ignoreResourceStatusField: none")
            ],
            &replicas
        ));
        assert!(seen(
            &[("resource.compareoptions", "ignoreResourceStatusField: crd")],
            &status
        ));
        assert!(seen(&[updates, off], &replicas), "switched off");
    }

    #[test]
    fn nobodys_objects_take_part_when_they_say_so() {
        let (read, _) = crate::customize::read(&BTreeMap::new(), || jiff::Timestamp::UNIX_EPOCH);
        let rules = read.updates();
        let with = |annotations: Value| {
            Object::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": annotations}}))
                .expect("a map")
        };
        let print = |annotations| {
            rules
                .fingerprint(&with(annotations), &Tracking::annotation(""))
                .is_some()
        };
        assert!(
            !print(json!({}))
                && print(json!({IGNORE_RESOURCE_UPDATES: "true"}))
                && !print(json!({IGNORE_RESOURCE_UPDATES: "yes"}))
        );
    }
}

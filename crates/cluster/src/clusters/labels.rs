//! The version of a cluster as a label of its Secret, for the selectors of ApplicationSets.
//!
//! Main function: [`update`]. A label that cannot be written is only logged.

use crate::{
    connect::{ClusterSecret, Version},
    leases::Fence,
    records::Records,
};
use serde_json::json;

/// The label that asks for it.
const REQUEST: &str = "argocd.argoproj.io/auto-label-cluster-info";
const VERSION: &str = "argocd.argoproj.io/kubernetes-version";

/// Writes the label in the background if the Secret asks for it and has another value. Must be
/// called inside a tokio runtime.
pub(super) fn update(records: &Records, secret: &ClusterSecret, version: &Version) {
    let Some(value) = due(secret, version) else {
        return;
    };
    let (records, name) = (records.clone(), secret.secret_name.clone());
    let write = async move {
        let patch = json!({"metadata": {"labels": {VERSION: value}}});
        let written = records
            .secrets
            .merge_patch(&records.namespace, &name, &patch);
        if let Err(error) = written.await {
            tracing::warn!(secret = name, %error, "the label {VERSION} could not be written");
        }
    };
    match Fence::current() {
        Some(fence) => tokio::spawn(fence.scope(write)),
        None => tokio::spawn(write),
    };
}

/// The value that the label is to get; `None`: it stays as it is.
fn due(secret: &ClusterSecret, version: &Version) -> Option<String> {
    let label = |name: &str| secret.labels.get(name).map(String::as_str);
    let value = version.plain();
    // An API server that does not tell its version to this user has none here.
    let is_due = label(REQUEST) == Some("true")
        && !version.git_version.is_empty()
        && label(VERSION) != Some(&value);
    is_due.then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_asks_for_it_gets_another_label() {
        let version = |git_version: &str| Version {
            git_version: git_version.to_owned(),
            ..Version::default()
        };
        for (labels, known, expected) in [
            (&[][..], "v1.36.3", None),
            (&[(REQUEST, "false")][..], "v1.36.3", None),
            (&[(REQUEST, "true")][..], "", None),
            (&[(REQUEST, "true")][..], "v1.36.3+k3s1", Some("v1.36.3")),
            (
                &[(REQUEST, "true"), (VERSION, "v1.35.0")][..],
                "v1.36.3",
                Some("v1.36.3"),
            ),
            (
                &[(REQUEST, "true"), (VERSION, "v1.36.3")][..],
                "v1.36.3-gke.100",
                None,
            ),
        ] {
            let labels = labels.iter();
            let secret = ClusterSecret {
                labels: labels
                    .map(|(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
                ..ClusterSecret::default()
            };
            let value = due(&secret, &version(known));
            assert_eq!(value.as_deref(), expected, "{known}");
        }
    }
}

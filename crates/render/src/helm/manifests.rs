//! From rendered files to manifests and hooks, in the order in which Helm installs and prints them.
//!
//! Main types: [`Manifest`] and [`Hook`]; main function: [`sort`].

use super::chart::Decoder;
use super::{HelmError, Place, log};
use std::collections::BTreeMap;
use tiphys_gocompat::{template::Deadline, yaml};

/// One document of a rendered file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The path of the template, such as `chart/templates/x.yaml`.
    pub source: String,
    pub text: String,
    pub kind: String,
}

/// A document that is applied around an operation and is not part of the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub source: String,
    pub text: String,
    pub kind: String,
    pub name: String,
    /// `pre-install`, `test` and so on.
    pub events: Vec<&'static str>,
    pub weight: i64,
    pub delete_policies: Vec<String>,
}

/// The order in which kinds are installed. All other kinds come last, by name.
const INSTALL_ORDER: &[&str] = &[
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

const EVENTS: &[&str] = &[
    "pre-install",
    "post-install",
    "pre-delete",
    "post-delete",
    "pre-upgrade",
    "post-upgrade",
    "pre-rollback",
    "post-rollback",
    "test",
];

/// The Go type that Helm decodes `metadata` into; error texts contain it.
const METADATA: &str = "struct { Name string \"json:\\\"name\\\"\"; Annotations map[string]string \"json:\\\"annotations\\\"\" }";

/// The fields of a document in which [`Head`] is found.
const FIELDS: &[&str] = &["apiVersion", "kind", "metadata"];

/// The fields that Helm reads of a document.
#[derive(Default)]
struct Head {
    kind: String,
    name: String,
    annotations: BTreeMap<String, String>,
}

impl Head {
    fn read(source: &str, text: &str, budget: &mut yaml::Limits) -> Result<Self, HelmError> {
        let said = |why: String| format!("YAML parse error on {source}: {why}");
        let unreadable = |e: yaml::YamlError| HelmError::Manifest {
            message: said(e.json_text()),
            place: Box::new(Place {
                source: source.to_owned(),
                text: text.to_owned(),
                made: true,
                line: e.line,
                column: e.column,
            }),
        };
        let document = yaml::parse_entries(text, budget, FIELDS).map_err(unreadable)?;
        let mut head = Self::default();
        Decoder::run("util.SimpleHead", &document, |d, key, value| match key {
            "apiversion" => d.text("apiVersion", value, &mut String::new()),
            "kind" => d.text("kind", value, &mut head.kind),
            "metadata" => {
                d.inner("metadata", METADATA, value, |d, key, value| match key {
                    "name" => d.text("name", value, &mut head.name),
                    "annotations" => d.pairs("annotations", value, |key, value| {
                        head.annotations.insert(key, value);
                    }),
                    _ => {}
                });
            }
            _ => {}
        })
        .map_err(|why| HelmError::template(said(why)))?;
        Ok(head)
    }

    fn listed(&self, annotation: &str) -> Vec<String> {
        let words = self.annotations.get(annotation);
        words.map_or_else(Vec::new, |words| {
            words
                .split(',')
                .map(|word| word.trim().to_lowercase())
                .collect()
        })
    }
}

/// What Helm logs about a hook that it leaves out.
pub(super) const UNKNOWN_HOOKS: &str = "skipping unknown hooks";

/// Splits files, which come sorted by name, and sorts their documents. Hooks for unknown events are
/// left out with a warning. What anchors and aliases of all documents copy counts together.
pub(super) fn sort(
    files: &BTreeMap<String, String>,
    limits: &yaml::Limits,
    deadline: Option<&Deadline>,
    warnings: &mut Vec<String>,
) -> Result<(Vec<Manifest>, Vec<Hook>), HelmError> {
    let (mut manifests, mut hooks) = (Vec::new(), Vec::new());
    let mut budget = *limits;
    for (source, content) in files {
        if source
            .rsplit('/')
            .next()
            .is_some_and(|base| base.starts_with('_'))
        {
            continue;
        }
        for text in split(content) {
            deadline
                .map_or(Ok(()), Deadline::check)
                .map_err(HelmError::Limit)?;
            let head = Head::read(source, text, &mut budget)?;
            let (source, text) = (source.clone(), text.to_owned());
            if let Some(events) = head.annotations.get("helm.sh/hook") {
                let unknown = format!("{UNKNOWN_HOOKS} hookTypes={}", log::text(events));
                match hook(source, text, head) {
                    Some(hook) => hooks.push(hook),
                    None => warnings.push(unknown),
                }
            } else {
                manifests.push(Manifest {
                    source,
                    text,
                    kind: head.kind,
                });
            }
        }
    }
    manifests.sort_by_cached_key(|manifest| rank(&manifest.kind));
    hooks.sort_by_cached_key(|hook| rank(&hook.kind));
    Ok((manifests, hooks))
}

/// A hook; None if its event is unknown.
fn hook(source: String, text: String, head: Head) -> Option<Hook> {
    let event = |word: String| {
        let word = if word == "test-success" {
            "test"
        } else {
            word.as_str()
        };
        EVENTS.iter().find(|event| **event == word).copied()
    };
    let events: Option<Vec<&'static str>> =
        head.listed("helm.sh/hook").into_iter().map(event).collect();
    let weight = head
        .annotations
        .get("helm.sh/hook-weight")
        .and_then(|w| w.parse().ok())
        .unwrap_or_default();
    let delete_policies = head.listed("helm.sh/hook-delete-policy");
    Some(Hook {
        source,
        text,
        events: events?,
        weight,
        delete_policies,
        kind: head.kind,
        name: head.name,
    })
}

fn rank(kind: &str) -> (usize, String) {
    match INSTALL_ORDER.iter().position(|known| *known == kind) {
        Some(at) => (at, String::new()),
        None => (INSTALL_ORDER.len(), kind.to_owned()),
    }
}

/// The documents of a file: the text between lines that begin with `---`, without blank ones.
pub(super) fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text.trim_start());
    // A separator directly after a separator does not count.
    let mut line_start = true;
    let documents = std::iter::from_fn(move || {
        let text = rest?;
        let at = if line_start && text.starts_with("---") {
            Some(0)
        } else {
            text.find("\n---").map(|at| at + 1)
        };
        rest = at.map(|at| text[at + 3..].trim_start_matches([' ', '\t']));
        line_start = false;
        Some(at.map_or(text, |at| &text[..at]))
    });
    documents
        .filter(|document| !document.trim().is_empty())
        .map(str::trim_start)
}

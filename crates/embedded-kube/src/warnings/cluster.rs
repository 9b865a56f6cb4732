//! Warnings about quotas, service accounts, nodes, storage kinds and policies. Main function:
//! [`of`].

use super::formats;
use super::pod::old_label;
use crate::catalog::Resource;
use crate::validation::rules::At;
use tiphys_apimachinery::quantity::Quantity;

const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";
const STATIC: &str = ".static.k8s.io";

/// The warnings for an object, if it is of one of these kinds.
pub fn of(resource: &Resource, at: &At<'_>) -> Vec<String> {
    match resource.table.as_str() {
        "/serviceaccounts" => account(at).into_iter().collect(),
        "/resourcequotas" if at.old.is_none() => quota(&at.get("spec.hard")),
        "/nodes" => node(&at.get("spec")),
        "node.k8s.io/runtimeclasses" => {
            let selector = at.get("scheduling.nodeSelector");
            selector
                .entries()
                .iter()
                .filter_map(|(label, _)| Some(format!("{}: {}", selector.path, old_label(label)?)))
                .collect()
        }
        "storage.k8s.io/storageclasses" => {
            let expressions = at
                .get("allowedTopologies")
                .items()
                .into_iter()
                .flat_map(|term| term.get("matchLabelExpressions").items());
            let keys = expressions.map(|expression| expression.get("key"));
            keys.filter_map(|key| Some(format!("{}: {}", key.path, old_label(key.text())?)))
                .collect()
        }
        "storage.k8s.io/csistoragecapacities" => topology(&at.get("nodeTopology")),
        _ if resource.group == "admissionregistration.k8s.io" => {
            static_name(at.get("metadata.name").text())
                .into_iter()
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Warns about an account that newly restricts the secrets of its pods.
fn account(at: &At<'_>) -> Option<String> {
    let annotations = at.get("metadata.annotations");
    let new = annotations.value.get(MOUNTABLE).is_some()
        && annotations
            .old
            .is_none_or(|old| old.get(MOUNTABLE).is_none());
    let advice =
        "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
    new.then(|| format!("metadata.annotations[{MOUNTABLE}]: {advice}"))
}

/// Warns about requests in a quota that exceed the limits.
fn quota(hard: &At<'_>) -> Vec<String> {
    let amount = |name: &str| {
        hard.value
            .get(name)
            .and_then(|amount| amount.as_str()?.parse::<Quantity>().ok())
    };
    let warning = |resource: &str| {
        let plain = matches!(resource, "cpu" | "memory").then(|| resource.to_owned());
        let name = [Some(format!("requests.{resource}")), plain]
            .into_iter()
            .flatten()
            .find(|name| amount(name).is_some())?;
        let limits = format!("limits.{resource}");
        let (request, limit) = (amount(&name)?, amount(&limits)?);
        (request > limit).then(|| {
            format!("ResourceQuota {name} ({request}) should be less than {limits} ({limit})")
        })
    };
    ["cpu", "memory", "storage", "ephemeral-storage"]
        .into_iter()
        .filter_map(warning)
        .collect()
}

fn node(spec: &At<'_>) -> Vec<String> {
    let said = |given: bool, text: &str| given.then(|| text.to_owned());
    let removed = said(
        !spec.get("configSource").is_null(),
        "spec.configSource: the feature is removed",
    );
    let unused = said(
        !spec.get("externalID").is_empty(),
        "spec.externalID: this field is deprecated, and is unused by Kubernetes",
    );
    let networks = spec
        .get("podCIDRs")
        .items()
        .into_iter()
        .flat_map(|network| formats::cidr_warning(&network.path, network.text()));
    removed.into_iter().chain(unused).chain(networks).collect()
}

fn topology(selector: &At<'_>) -> Vec<String> {
    let keys = selector
        .get("matchExpressions")
        .items()
        .into_iter()
        .map(|expression| expression.get("key"));
    let mut out: Vec<String> = keys
        .filter_map(|key| {
            Some(format!(
                "{}: {} is {}",
                key.path,
                key.text(),
                old_label(key.text())?
            ))
        })
        .collect();
    let labels = selector.get("matchLabels");
    out.extend(
        labels.entries().iter().filter_map(|(label, _)| {
            Some(format!("{}.{label}: {}", labels.path, old_label(label)?))
        }),
    );
    out
}

fn static_name(name: &str) -> Option<String> {
    let reserved =
        "are reserved for static manifest-based configurations and cannot be managed via the API";
    name.ends_with(STATIC)
        .then(|| format!("metadata.name: names ending with {STATIC:?} {reserved}"))
}

//! The order of objects in the output.
//!
//! Main function: [`sort`].

use super::fault::{Res, fail};
use super::ids::{Gvk, ResId};
use super::kustomization::SortOptions;
use super::resmap::ResMap;
use super::tree::Tree;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

const FIRST: &[&str] = &[
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];
const LAST: &[&str] = &[
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// The orders that `sortOptions` can set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Order {
    /// Namespaces and definitions first, webhooks last, the others by kind and name.
    #[default]
    Legacy,
    /// In the order in which they were read.
    None,
}

/// Kinds below zero come before others, kinds above zero after them.
pub(super) fn rank(kind: &str) -> i32 {
    rank_in(kind, FIRST, LAST)
}

fn rank_in<S: AsRef<str>>(kind: &str, first: &[S], last: &[S]) -> i32 {
    let number = |index: usize| i32::try_from(index).unwrap_or(i32::MAX / 2);
    let at = |kinds: &[S]| kinds.iter().rposition(|known| known.as_ref() == kind);
    match (at(last), at(first)) {
        (Some(at), _) => 1 + number(at),
        (None, Some(at)) => number(at) - number(first.len()),
        (None, None) => 0,
    }
}

/// Sorts in the order set in the file, or else in the requested one.
pub(super) fn sort(
    tree: &Tree,
    map: &mut ResMap,
    options: Option<&SortOptions>,
    order: Order,
) -> Res<()> {
    let Some(options) = options else {
        if order == Order::Legacy {
            by_kind(tree, map, FIRST, LAST);
        }
        return Ok(());
    };
    match (options.order.as_str(), &options.legacy_sort_options) {
        ("legacy", None) => by_kind(tree, map, FIRST, LAST),
        ("legacy", Some(own)) => by_kind(tree, map, &own.order_first, &own.order_last),
        ("fifo", None) => {}
        ("fifo", Some(_)) => {
            return fail!(
                "the field 'sortOptions.legacySortOptions' is set but the selected sort order is 'fifo', not 'legacy'"
            );
        }
        _ => return fail!("the field 'sortOptions.order' must be one of [fifo, legacy]"),
    }
    Ok(())
}

fn by_kind<S: AsRef<str>>(tree: &Tree, map: &mut ResMap, first: &[S], last: &[S]) {
    let list = std::mem::take(&mut map.list);
    let mut keyed: Vec<_> = list
        .into_iter()
        .map(|resource| {
            let id = resource.id(tree);
            let rank = rank_in(&id.gvk.kind, first, last);
            ((rank, id.gvk.sort_key(), id_key(&id), id), resource)
        })
        .collect();
    keyed.sort_by(|(left, _), (right, _)| {
        compare(
            &left.3.gvk,
            &right.3.gvk,
            (left.0, right.0),
            (&left.1, &right.1),
        )
        .then_with(|| left.2.cmp(&right.2))
    });
    map.list = keyed.into_iter().map(|(_, resource)| resource).collect();
}

fn compare(left: &Gvk, right: &Gvk, ranks: (i32, i32), keys: (&str, &str)) -> Ordering {
    if left == right {
        return Ordering::Equal;
    }
    let namespaces = left.kind == "Namespace" && right.kind == "Namespace";
    let core = left.group.is_empty() || right.group.is_empty();
    let by_key = keys.0.cmp(keys.1);
    ranks.0.cmp(&ranks.1).then(if namespaces && core {
        by_key.reverse()
    } else {
        by_key
    })
}

fn id_key(id: &ResId) -> String {
    let or = |text: &str, none: &str| if text.is_empty() { none } else { text }.to_owned();
    let (namespace, name) = (or(&id.namespace, "~X"), or(&id.name, "~N"));
    format!("{}|{namespace}|{name}", id.gvk)
}

//! kubectl's label-based pruning: deletes objects that were applied before and left the
//! configuration.

use super::{Applier, DryRun, Failure, gvk_text};
use crate::{
    discovery::{Discovery, Kind},
    request::Call,
};
use serde::Deserialize;
use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};
use tiphys_apimachinery::{Gvk, Object, patch::last_applied};

const PAGE: &str = "500";

/// The kinds that kubectl prunes by default: group, version, kind.
const NAMESPACED: &[(&str, &str, &str)] = &[
    ("", "v1", "ConfigMap"),
    ("", "v1", "Endpoints"),
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "Pod"),
    ("", "v1", "ReplicationController"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("batch", "v1", "Job"),
    ("batch", "v1", "CronJob"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ReplicaSet"),
    ("apps", "v1", "StatefulSet"),
];
const CLUSTER_SCOPED: &[(&str, &str, &str)] =
    &[("", "v1", "Namespace"), ("", "v1", "PersistentVolume")];

/// The namespaces, kinds and labels to prune.
pub struct Scope {
    kinds: Vec<Arc<Kind>>,
    pub namespaces: BTreeSet<String>,
    pub selector: String,
}

impl Scope {
    /// `allowed` is a list of `group/version/kind`; empty = kubectl's default.
    pub async fn new(
        discovery: &Discovery,
        allowed: &[String],
        selector: &str,
    ) -> Result<Self, Failure> {
        let mut kinds = Vec::new();
        for text in allowed {
            let [group, version, kind] = text.split('/').collect::<Vec<_>>()[..] else {
                return Err(Failure::text(format!(
                    "invalid GroupVersionKind format: {text}, please follow <group/version/kind>"
                )));
            };
            let gvk = Gvk::new(if group == "core" { "" } else { group }, version, kind);
            kinds.push(discovery.resolve(&gvk).await?);
        }
        if allowed.is_empty() {
            for (group, version, kind) in NAMESPACED.iter().chain(CLUSTER_SCOPED) {
                // A cluster may not serve a kind; the others are still pruned.
                if let Some(kind) = discovery.kinds().get(&Gvk::new(group, version, kind)) {
                    kinds.push(kind.clone());
                }
            }
        }
        Ok(Self {
            kinds,
            namespaces: BTreeSet::new(),
            selector: selector.to_owned(),
        })
    }
}

#[derive(Deserialize)]
pub(super) struct ObjectList {
    #[serde(default)]
    items: Vec<Object>,
    #[serde(default)]
    metadata: ListMeta,
}

#[derive(Default, Deserialize)]
struct ListMeta {
    #[serde(default, rename = "continue")]
    next: String,
}

impl Applier {
    /// Deletes the objects in the scope that were applied before but not now; calls `pruned` for
    /// each, in order.
    pub async fn prune(
        &self,
        scope: &Scope,
        seen: &HashSet<String>,
        pruned: &mut (dyn FnMut(&Object) + Send),
    ) -> Result<(), Failure> {
        let failed = |what: &str, kind: &Kind, e: Failure| {
            Failure::text(format!(
                "error pruning {what} object {}: {e}",
                gvk_text(kind)
            ))
        };
        for namespace in &scope.namespaces {
            for kind in scope.kinds.iter().filter(|k| k.namespaced) {
                let result = self.prune_kind(kind, namespace, scope, seen, pruned).await;
                result.map_err(|e| failed("namespaced", kind, e))?;
            }
        }
        for kind in scope.kinds.iter().filter(|k| !k.namespaced) {
            self.prune_kind(kind, "", scope, seen, pruned)
                .await
                .map_err(|e| failed("nonNamespaced", kind, e))?;
        }
        Ok(())
    }

    async fn prune_kind(
        &self,
        kind: &Kind,
        namespace: &str,
        scope: &Scope,
        seen: &HashSet<String>,
        pruned: &mut (dyn FnMut(&Object) + Send),
    ) -> Result<(), Failure> {
        for object in self.list(kind, namespace, &scope.selector).await? {
            // An object that was not created by apply is not ours to delete.
            if object.annotation(last_applied::ANNOTATION).is_some() && !seen.contains(object.uid())
            {
                self.prune_one(kind, namespace, &object, pruned).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn prune_one(
        &self,
        kind: &Kind,
        namespace: &str,
        object: &Object,
        pruned: &mut (dyn FnMut(&Object) + Send),
    ) -> Result<(), Failure> {
        if self.settings.dry_run != DryRun::Client {
            self.delete(kind, namespace, object.name()).await?;
        }
        pruned(object);
        Ok(())
    }

    pub(super) async fn list(
        &self,
        kind: &Kind,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<Object>, Failure> {
        let mut found = Vec::new();
        let mut next = String::new();
        loop {
            let call = Call::get(kind.collection_path(namespace))
                .query("labelSelector", selector)
                .query("limit", PAGE);
            let page: ObjectList = self.http.json(&call.query("continue", &next)).await?;
            for mut object in page.items {
                // The items of a list of a built-in kind may omit their kind.
                object
                    .0
                    .entry("apiVersion")
                    .or_insert_with(|| kind.gvk.api_version().into());
                object
                    .0
                    .entry("kind")
                    .or_insert_with(|| kind.gvk.kind.clone().into());
                found.push(object);
            }
            next = page.metadata.next;
            if next.is_empty() {
                return Ok(found);
            }
        }
    }
}

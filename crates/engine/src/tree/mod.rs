//! The resource tree of an Application: its resources, the objects they own, and the information
//! shown for each.
//!
//! Main functions: [`build`] and [`below`] for the tree, [`info::of`] for the information of one
//! object, [`why::lines`] for the reasons why it is not Healthy. It must not know where live objects
//! are kept: an object's children are looked up by its uid.

mod gateway;
pub mod info;
mod network;
pub mod orphans;
mod pod;
pub mod why;

use crate::{
    customize::Customizations,
    health, permit,
    types::{CompareRules, Entry, Health},
};
use info::Info;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tiphys_api::{
    constants,
    resource::{ApplicationTree, ResourceNode, ResourceRef},
    status::ApplicationSummary,
};
use tiphys_apimachinery::{Gvk, Object};

/// Longest chain of owners. Deeper ones do not occur, but cycles could.
const DEPTH_LIMIT: usize = 32;

/// The tree below the entries. `children` returns the nodes of the objects that an object (by uid)
/// owns; their `parent_refs` are set here. Objects that the project does not permit are left out
/// with everything below them.
pub fn build(
    entries: &[Arc<Entry>],
    rules: &CompareRules,
    children: &dyn Fn(&str) -> Vec<ResourceNode>,
) -> ApplicationTree {
    let mut builder = Builder::new(rules, children);
    for entry in entries {
        match entry.live {
            Some(_) => builder.add(entry.node.clone(), None, 0),
            None => builder.nodes.push(entry.node.clone()),
        }
    }
    builder.finish()
}

/// The same below nodes whose resources were not compared.
pub fn below(
    nodes: Vec<ResourceNode>,
    rules: &CompareRules,
    children: &dyn Fn(&str) -> Vec<ResourceNode>,
) -> ApplicationTree {
    let mut builder = Builder::new(rules, children);
    for node in nodes {
        builder.add(node, None, 0);
    }
    builder.finish()
}

/// The node of a live object, with its owners as parents.
pub fn node(live: &Object, customizations: &Customizations) -> ResourceNode {
    node_with(
        live,
        health::of_with(live, customizations).as_ref(),
        info::of(live).as_ref(),
    )
}

/// The node of a resource whose health was computed. Hooks and other resources that do not count
/// towards the health have a node too.
pub fn managed(
    live: &Object,
    judged: Option<&Health>,
    customizations: &Customizations,
) -> ResourceNode {
    let health = judged
        .cloned()
        .or_else(|| health::of_with(live, customizations));
    node_with(live, health.as_ref(), info::of(live).as_ref())
}

fn node_with(live: &Object, health: Option<&Health>, info: Option<&Info>) -> ResourceNode {
    let created = live.creation_timestamp().parse::<jiff::Timestamp>().ok();
    let mut node = node_of(
        reference(live),
        live.resource_version(),
        created,
        health,
        info,
    );
    node.parent_refs = live
        .owner_references()
        .iter()
        .map(|owner| owner_reference(live, owner))
        .collect();
    node
}

/// A node from the summary of an object in the cache.
pub fn node_of(
    resource_ref: ResourceRef,
    resource_version: &str,
    created: Option<jiff::Timestamp>,
    health: Option<&Health>,
    info: Option<&Info>,
) -> ResourceNode {
    let info = info.cloned().unwrap_or_default();
    ResourceNode {
        resource_ref,
        resource_version: resource_version.to_owned(),
        created_at: created.map(Into::into),
        health: health.map(api_health),
        info: info.items,
        networking_info: info.networking,
        images: info.images,
        ..ResourceNode::default()
    }
}

/// Images and external URLs of a tree, sorted and without duplicates.
fn summary(tree: &ApplicationTree) -> (Vec<String>, Vec<String>) {
    let (mut images, mut urls) = (BTreeSet::new(), BTreeSet::new());
    for node in &tree.nodes {
        images.extend(node.images.iter().cloned());
        urls.extend(
            node.networking_info
                .iter()
                .flat_map(|n| n.external_urls.iter().cloned()),
        );
    }
    (images.into_iter().collect(), urls.into_iter().collect())
}

/// What an Application's status says of its tree: images and external URLs, with the links in its own
/// annotations, sorted and without duplicates, and whether it has Applications.
pub fn summary_of(
    tree: &ApplicationTree,
    annotations: &BTreeMap<String, String>,
) -> ApplicationSummary {
    let (images, urls) = summary(tree);
    let links = annotations.iter();
    let links = links.filter(|(key, value)| info::is_link(key, value));
    let links = links.map(|(_, value)| value.clone());
    let external_urls: BTreeSet<String> = urls.into_iter().chain(links).collect();
    let is_app = |node: &ResourceNode| {
        let of = &node.resource_ref;
        of.group == constants::GROUP && of.kind == "Application"
    };
    ApplicationSummary {
        external_urls: external_urls.into_iter().collect(),
        images,
        is_app_of_apps: tree.nodes.iter().any(is_app),
    }
}

/// The reference to an object in the API's form.
pub fn reference(object: &Object) -> ResourceRef {
    let Gvk {
        group,
        version,
        kind,
    } = object.gvk();
    let (namespace, name, uid) = (
        object.namespace().to_owned(),
        object.name().to_owned(),
        object.uid().to_owned(),
    );
    ResourceRef {
        group,
        version,
        kind,
        namespace,
        name,
        uid,
    }
}

/// A health status in the API's form.
pub fn api_health(health: &Health) -> tiphys_api::status::HealthStatus {
    tiphys_api::status::HealthStatus {
        status: health.status.as_str().to_owned(),
        message: health.message.clone(),
        last_transition_time: None,
    }
}

fn owner_reference(object: &Object, owner: &tiphys_apimachinery::OwnerReference) -> ResourceRef {
    let Gvk {
        group,
        version,
        kind,
    } = Gvk::from_api_version(&owner.api_version, &owner.kind);
    ResourceRef {
        group,
        version,
        kind,
        namespace: object.namespace().to_owned(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
    }
}

/// The node of a missing resource.
pub fn missing(desired: &Object) -> ResourceNode {
    let health = tiphys_api::status::HealthStatus {
        status: "Missing".to_owned(),
        ..Default::default()
    };
    ResourceNode {
        resource_ref: reference(desired),
        health: Some(health),
        ..ResourceNode::default()
    }
}

struct Builder<'a> {
    rules: &'a CompareRules,
    children: &'a dyn Fn(&str) -> Vec<ResourceNode>,
    nodes: Vec<ResourceNode>,
    by_uid: BTreeMap<String, usize>,
}

impl<'a> Builder<'a> {
    fn new(rules: &'a CompareRules, children: &'a dyn Fn(&str) -> Vec<ResourceNode>) -> Self {
        Self {
            rules,
            children,
            nodes: Vec::new(),
            by_uid: BTreeMap::new(),
        }
    }

    fn finish(mut self) -> ApplicationTree {
        why::explain(&mut self.nodes);
        ApplicationTree {
            nodes: self.nodes,
            ..ApplicationTree::default()
        }
    }

    fn add(&mut self, mut node: ResourceNode, parent: Option<&ResourceRef>, depth: usize) {
        let this = node.resource_ref.clone();
        if let Some(index) = self.by_uid.get(&this.uid) {
            // A second owner, or a resource that is both managed and owned.
            let known = &mut self.nodes[*index].parent_refs;
            known.extend(
                parent
                    .filter(|p| !known.iter().any(|k| k.uid == p.uid))
                    .cloned(),
            );
            return;
        }
        if depth > DEPTH_LIMIT
            || !permit::resource(
                self.rules,
                &this.group,
                &this.kind,
                &this.namespace,
                &this.name,
            )
        {
            return;
        }
        if let Some(parent) = parent {
            node.parent_refs = vec![parent.clone()];
        }
        if this.uid.is_empty() {
            self.nodes.push(node);
            return;
        }
        self.by_uid.insert(this.uid.clone(), self.nodes.len());
        self.nodes.push(node);
        for child in (self.children)(&this.uid) {
            self.add(child, Some(&this), depth + 1);
        }
    }
}

#[cfg(test)]
mod tests;

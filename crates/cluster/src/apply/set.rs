//! ApplySets (KEP-3659): a parent object records the kinds and namespaces of its members, so that
//! members that left the set are found.
//!
//! Main type: [`ApplySet`]. Labels, annotations and the id are those of the KEP; the tooling name
//! is kubectl's, because both may work on the same sets.

use super::{Applier, DryRun, Failure, Item, gvk_text};
use crate::{
    discovery::{Discovery, Kind},
    request::{APPLY_PATCH, Call},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::Method;
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};
use tiphys_apimachinery::{GroupKind, Object};

const TOOLING: &str = "applyset.kubernetes.io/tooling";
const NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";
const KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
const ID: &str = "applyset.kubernetes.io/id";
const PART_OF: &str = "applyset.kubernetes.io/part-of";
const PARENT_TYPE: &str = "applyset.kubernetes.io/is-parent-type";
const TOOL: &str = "kubectl";
const TOOL_VERSION: &str = "v1.36.3";
const MANAGER: &str = "kubectl-applyset";

/// A set and its parent's state.
pub struct ApplySet {
    kind: Arc<Kind>,
    name: String,
    namespace: String,
    /// The members' kinds and namespaces that the parent had before, and those that it will have.
    before: Members,
    after: Members,
}

#[derive(Default)]
struct Members {
    kinds: BTreeMap<String, Arc<Kind>>,
    namespaces: BTreeSet<String>,
}

impl ApplySet {
    /// `reference` is `[RESOURCE][.GROUP]/NAME`, a Secret without a resource; `namespace` must have
    /// been given on the command line.
    pub async fn new(
        discovery: &Discovery,
        reference: &str,
        namespace: Option<&str>,
    ) -> Result<Self, Failure> {
        let invalid = |problem: String| {
            Failure::text(format!("invalid parent reference {reference:?}: {problem}"))
        };
        let (resource, name) = reference.split_once('/').unwrap_or(("secrets", reference));
        if name.is_empty() {
            return Err(invalid("name cannot be blank".into()));
        }
        let kinds = discovery.kinds();
        let kind = kinds
            .find(resource)
            .ok_or_else(|| invalid(format!("no matches for /, Resource={resource}")))?
            .clone();
        let namespace = if kind.namespaced {
            namespace.unwrap_or_default()
        } else {
            ""
        };
        if kind.namespaced && namespace.is_empty() {
            return Err(Failure::text(
                "namespace is required to use namespace-scoped ApplySet",
            ));
        }
        let set = Self {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            before: Members::default(),
            after: Members::default(),
            kind,
        };
        Ok(set)
    }

    fn is_built_in(&self) -> bool {
        self.kind.gvk.group.is_empty()
            && ["secrets", "configmaps"].contains(&self.kind.resource.as_str())
    }

    /// `applyset-<base64(sha256(name.namespace.kind.group))>-v1`
    pub fn id(&self) -> String {
        let text = format!(
            "{}.{}.{}.{}",
            self.name, self.namespace, self.kind.gvk.kind, self.kind.gvk.group
        );
        let digest = <sha2::Sha256 as sha2::Digest>::digest(text.as_bytes());
        format!("applyset-{}-v1", URL_SAFE_NO_PAD.encode(digest))
    }

    /// Labels an object as a member.
    pub fn label(&self, object: &mut Object) -> Result<(), Failure> {
        if object.label(PART_OF).is_some() {
            return Err(Failure::text(format!(
                "ApplySet label {PART_OF:?} already set in input data"
            )));
        }
        object.set_label(PART_OF, &self.id());
        Ok(())
    }

    fn add(&mut self, item: &Item) {
        self.after
            .kinds
            .insert(group_kind(&item.kind), item.kind.clone());
        if !item.namespace().is_empty() {
            self.after.namespaces.insert(item.namespace().to_owned());
        }
    }

    fn describe(&self) -> String {
        format!(
            "{}.{}/{}",
            self.kind.resource, self.kind.gvk.group, self.name
        )
    }

    fn parent(&self, members: &[&Members]) -> Object {
        let kinds: BTreeSet<&str> = members
            .iter()
            .flat_map(|m| m.kinds.keys().map(String::as_str))
            .collect();
        let namespaces = members
            .iter()
            .flat_map(|m| &m.namespaces)
            .map(String::as_str)
            .filter(|n| *n != self.namespace);
        let namespaces: BTreeSet<&str> = namespaces.collect();
        let join = |set: BTreeSet<&str>| set.into_iter().collect::<Vec<_>>().join(",");
        let mut parent = Object::skeleton(&self.kind.gvk, &self.namespace, &self.name);
        parent.set_annotation(TOOLING, &format!("{TOOL}/{TOOL_VERSION}"));
        parent.set_annotation(KINDS, &join(kinds));
        parent.set_annotation(NAMESPACES, &join(namespaces));
        parent.set_label(ID, &self.id());
        parent
    }

    /// Reads the parent's state; refuses parents that belong to another tool or another set.
    fn read_parent(&mut self, parent: &Object, discovery: &Discovery) -> Result<(), Failure> {
        let what = self.describe();
        let exists = |problem: String| {
            Err(Failure::text(format!(
                "ApplySet parent object {what:?} {problem}"
            )))
        };
        match parent.annotation(TOOLING) {
            None => {
                return exists(format!(
                    "already exists and is missing required annotation {TOOLING:?}"
                ));
            }
            Some(tool) => {
                let tool = tool.rsplit_once('/').map_or(tool, |(name, _)| name);
                if tool != TOOL {
                    return exists(format!(
                        "already exists and is managed by tooling {tool:?} instead of {TOOL:?}"
                    ));
                }
            }
        }
        match parent.label(ID) {
            None => return exists(format!("exists and does not have required label {ID}")),
            Some(id) if id != self.id() => {
                return exists(format!(
                    "exists and has incorrect value for label {ID:?} (got: {id}, want: {})",
                    self.id()
                ));
            }
            Some(_) => {}
        }
        let parsing = |problem: String| {
            Failure::text(format!(
                "parsing ApplySet annotation on {what:?}: {problem}"
            ))
        };
        let Some(kinds) = parent.annotation(KINDS) else {
            return Err(parsing(format!(
                "kubectl requires the {KINDS:?} annotation to be set on all ApplySet parent objects"
            )));
        };
        for text in kinds.split(',').filter(|t| !t.is_empty()) {
            let (kind, group) = text.split_once('.').unwrap_or((text, ""));
            let gk = GroupKind::new(group, kind);
            let kinds = discovery.kinds();
            let kind = kinds.preferred(&gk).ok_or_else(|| {
                parsing(format!("could not find mapping for kind in {KINDS:?} annotation: no matches for kind {kind:?} in group {group:?}"))
            })?;
            self.before.kinds.insert(text.to_owned(), kind.clone());
        }
        let namespaces = parent.annotation(NAMESPACES).unwrap_or_default();
        self.before.namespaces = namespaces
            .split(',')
            .filter(|n| !n.is_empty())
            .map(str::to_owned)
            .collect();
        if self.kind.namespaced {
            self.before.namespaces.insert(self.namespace.clone());
        }
        Ok(())
    }
}

/// `Deployment.apps`, `ConfigMap`.
fn group_kind(kind: &Kind) -> String {
    let gvk = &kind.gvk;
    if gvk.group.is_empty() {
        gvk.kind.clone()
    } else {
        format!("{}.{}", gvk.kind, gvk.group)
    }
}

impl Applier {
    /// Only Secrets, ConfigMaps and kinds whose CRD allows it can be parents.
    pub async fn check_set(&self, set: &ApplySet) -> Result<(), Failure> {
        if set.is_built_in() {
            return Ok(());
        }
        let crds = self
            .discovery
            .kinds()
            .find("customresourcedefinitions.apiextensions.k8s.io")
            .cloned();
        let permitted = match crds {
            Some(crd) => self.list(&crd, "", PARENT_TYPE).await?,
            None => Vec::new(),
        };
        let gvk = &set.kind.gvk;
        if permitted
            .iter()
            .any(|crd| crd.name() == format!("{}.{}", set.kind.resource, gvk.group))
        {
            return Ok(());
        }
        let what = format!(
            "{}/{}, Resource={}",
            gvk.group, gvk.version, set.kind.resource
        );
        Err(Failure::text(format!(
            "resource {what:?} is not permitted as an ApplySet parent"
        )))
    }

    /// Before anything is applied, the parent lists the kinds of both the old and the new members,
    /// so that an interruption loses no member.
    pub async fn begin_set(&self, set: &mut ApplySet, items: &[Item]) -> Result<(), Failure> {
        let path = set.kind.object_path(&set.namespace, &set.name);
        match self
            .http
            .json::<Object>(&Call::get(path))
            .await
            .map_err(Failure::from)
        {
            Ok(parent) => set.read_parent(&parent, &self.discovery)?,
            // Any other "not found" says nothing of it, and its members would be forgotten.
            Err(e) if e.is_absent(&set.name) && set.is_built_in() => {}
            Err(e) if e.is_not_found() && !set.is_built_in() => {
                return Err(Failure::text(
                    "custom resource ApplySet parents cannot be created automatically",
                ));
            }
            Err(e) => {
                return Err(Failure::text(format!(
                    "failed to fetch ApplySet parent object {:?}: {e}",
                    set.describe()
                )));
            }
        }
        items.iter().for_each(|item| set.add(item));
        self.update_parent(set, set.parent(&[&set.before, &set.after]))
            .await
    }

    /// Deletes the members that were not applied now, then removes their kinds from the parent.
    pub async fn finish_set(
        &self,
        set: &ApplySet,
        seen: &HashSet<String>,
        pruned: &mut (dyn FnMut(&Object) + Send),
    ) -> Result<(), Failure> {
        let selector = format!("{PART_OF}={}", set.id());
        let mut leaving = Vec::new();
        for kind in set.before.kinds.values() {
            let everywhere = BTreeSet::from([String::new()]);
            for namespace in if kind.namespaced {
                &set.before.namespaces
            } else {
                &everywhere
            } {
                let members = self.list(kind, namespace, &selector).await;
                let members = members.map_err(|e| {
                    Failure::text(format!(
                        "listing {} objects for pruning: {e}",
                        gvk_text(kind)
                    ))
                })?;
                leaving.extend(
                    members
                        .into_iter()
                        .filter(|m| !seen.contains(m.uid()))
                        .map(|m| (kind, namespace.clone(), m)),
                );
            }
        }
        for (kind, namespace, member) in leaving {
            self.prune_one(kind, &namespace, &member, pruned)
                .await
                .map_err(|e| {
                    let place = if namespace.is_empty() {
                        String::new()
                    } else {
                        format!("{namespace}/")
                    };
                    Failure::text(format!(
                        "pruning {} {place}{}: {e}",
                        group_kind(kind),
                        member.name()
                    ))
                })?;
        }
        let updated = self.update_parent(set, set.parent(&[&set.after])).await;
        updated.map_err(|e| {
            Failure::text(format!(
                "apply and prune succeeded, but ApplySet update failed: {e}"
            ))
        })
    }

    async fn update_parent(&self, set: &ApplySet, parent: Object) -> Result<(), Failure> {
        if self.settings.dry_run == DryRun::Client {
            return Ok(());
        }
        let body = super::bytes(&parent)?;
        let path = set.kind.object_path(&set.namespace, &set.name);
        let send = async |force: &'static str| -> Result<(), Failure> {
            let call = self
                .write(Method::PATCH, path.clone(), MANAGER)
                .query("force", force);
            self.http
                .send(&call.with_body(APPLY_PATCH, body.clone()))
                .await?;
            Ok(())
        };
        let result = match send("false").await {
            Err(e) if e.is("Conflict") => {
                self.warn(&format!(
                    "WARNING: failed to update ApplySet: {e}\nApplySet field manager {MANAGER} should own these fields. Retrying with \
                     conflicts forced."
                ));
                send("true").await
            }
            result => result,
        };
        result.map_err(|e| Failure::text(format!("failed to update ApplySet: {e}")))
    }
}

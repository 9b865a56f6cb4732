//! One object of a build, and the state that kustomize keeps for it.
//!
//! Main type: [`Resource`]. Previous names, prefixes and so on are kept in annotations of the
//! object, as in kustomize: they are visible to patches that read annotations, and are lost when a
//! patch replaces them.

use super::fault::{Res, fail};
use super::ids::{Gvk, ResId};
use super::tree::{Id, Kind, Tag, Tree};
use std::collections::BTreeMap;
use tiphys_apimachinery::{gvk::split_api_version, selector::LabelSelector};
use tiphys_gocompat::yaml::tree::{Style, style_v3};

pub(super) const PREVIOUS_KINDS: &str = "internal.config.kubernetes.io/previousKinds";
pub(super) const PREVIOUS_NAMES: &str = "internal.config.kubernetes.io/previousNames";
pub(super) const PREVIOUS_NAMESPACES: &str = "internal.config.kubernetes.io/previousNamespaces";
pub(super) const PREFIXES: &str = "internal.config.kubernetes.io/prefixes";
pub(super) const SUFFIXES: &str = "internal.config.kubernetes.io/suffixes";
pub(super) const BEHAVIOR: &str = "internal.config.kubernetes.io/generatorBehavior";
pub(super) const NEEDS_HASH: &str = "internal.config.kubernetes.io/needsHashSuffix";
pub(super) const ALLOW_NAME_CHANGE: &str = "internal.config.kubernetes.io/allowNameChange";
pub(super) const ALLOW_KIND_CHANGE: &str = "internal.config.kubernetes.io/allowKindChange";
pub(super) const HELM_GENERATED: &str = "internal.config.kubernetes.io/helm-generated";
pub(super) const ORIGIN: &str = "config.kubernetes.io/origin";
pub(super) const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";
const ENABLED: &str = "enabled";

/// The annotations that exist only during a build.
const BUILD: &[&str] = &[
    PREVIOUS_KINDS,
    PREVIOUS_NAMES,
    PREFIXES,
    SUFFIXES,
    PREVIOUS_NAMESPACES,
    ALLOW_NAME_CHANGE,
    ALLOW_KIND_CHANGE,
    "internal.config.kubernetes.io/refBy",
    BEHAVIOR,
    NEEDS_HASH,
    "internal.config.kubernetes.io/path",
    "internal.config.kubernetes.io/index",
    "internal.config.kubernetes.io/seqindent",
    "internal.config.kubernetes.io/id",
    "internal.config.kubernetes.io/annotations-migration-resource-id",
    "config.kubernetes.io/path",
    "config.kubernetes.io/index",
    "config.k8s.io/id",
    HELM_GENERATED,
];

pub(super) type Texts = BTreeMap<String, String>;

#[derive(Clone, Debug)]
pub(super) struct Resource {
    /// `None` once a patch has deleted the object.
    pub root: Option<Id>,
    /// The vars that read from this object.
    pub vars: Vec<String>,
}

/// An object that has not been deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object(pub Id);

impl Resource {
    pub fn new(root: Id) -> Self {
        Self {
            root: Some(root),
            vars: Vec::new(),
        }
    }

    pub fn is_gone(&self, tree: &Tree) -> bool {
        self.root.is_none_or(|id| tree.is_empty(id))
    }

    pub fn id(&self, tree: &Tree) -> ResId {
        self.root
            .map_or_else(ResId::default, |id| ResId::of(tree, id))
    }

    pub fn object(&self) -> Option<Object> {
        self.root.map(Object)
    }
}

impl Object {
    pub fn id(self, tree: &Tree) -> ResId {
        ResId::of(tree, self.0)
    }

    pub fn gvk(self, tree: &Tree) -> Gvk {
        let api_version = tree.field_text(self.0, "apiVersion");
        Gvk::of_api_version(api_version, tree.field_text(self.0, "kind"))
    }

    fn metadata_map(self, tree: &Tree, field: &str) -> Option<Id> {
        let metadata = tree.field(self.0, "metadata")?;
        if tree.is_empty(metadata) {
            return None;
        }
        tree.field(metadata, field)
    }

    fn texts(self, tree: &Tree, field: &str) -> Texts {
        let map = self.metadata_map(tree, field);
        let entries = map.into_iter().flat_map(|map| tree.entries(map));
        let text = |id| tree.text(id).to_owned();
        entries
            .map(|(key, value)| (text(key), text(value)))
            .collect()
    }

    pub fn annotations(self, tree: &Tree) -> Texts {
        self.texts(tree, "annotations")
    }

    pub fn labels(self, tree: &Tree) -> Texts {
        self.texts(tree, "labels")
    }

    pub fn annotation<'t>(self, tree: &'t Tree, name: &str) -> Option<&'t str> {
        let map = self.metadata_map(tree, "annotations")?;
        tree.field(map, name).map(|id| tree.text(id))
    }

    pub fn set_annotations(self, tree: &mut Tree, texts: &Texts) -> Res<()> {
        self.set_texts(tree, "annotations", texts)
    }

    pub fn set_labels(self, tree: &mut Tree, texts: &Texts) -> Res<()> {
        self.set_texts(tree, "labels", texts)
    }

    fn set_texts(self, tree: &mut Tree, field: &str, texts: &Texts) -> Res<()> {
        let Some(metadata) = tree.lookup_or_create(self.0, &["metadata"], Kind::Map)? else {
            return Ok(());
        };
        tree.clear(metadata, field)?;
        if texts.is_empty() {
            return Ok(());
        }
        let Some(map) = tree.lookup_or_create(metadata, &[field], Kind::Map)? else {
            return Ok(());
        };
        for (name, text) in texts {
            tree.clock.spend(1 + texts.len() / 16)?;
            let value = text_node(tree, text);
            tree.set_field(map, name, Some(value))?;
        }
        Ok(())
    }

    /// Sets one annotation in place.
    pub fn annotate(self, tree: &mut Tree, name: &str, text: &str) -> Res<()> {
        if let Some(metadata) = tree.get(self.0, "metadata")?
            && let Some(map) = tree.get(metadata, "annotations")?
            && tree.at(map).content.is_empty()
        {
            tree.clear(metadata, "annotations")?;
        }
        let value = tree.scalar(text, Tag::Str);
        tree.at_mut(value).style = Style::Single;
        tree.set_at(self.0, &["metadata", "annotations"], name, value)
    }

    pub fn set_label(self, tree: &mut Tree, name: &str, text: &str) -> Res<()> {
        let value = tree.scalar(text, Tag::Str);
        tree.at_mut(value).style = Style::Single;
        tree.set_at(self.0, &["metadata", "labels"], name, value)
    }

    /// The items of an annotation that contains a list.
    pub fn listed(self, tree: &Tree, name: &str) -> Vec<String> {
        let text = self.annotation(tree, name);
        text.map_or_else(Vec::new, |text| {
            text.split(',').map(str::to_owned).collect()
        })
    }

    pub fn append(self, tree: &mut Tree, name: &str, text: &str) -> Res<()> {
        if text.is_empty() {
            return Ok(());
        }
        let text = match self.annotation(tree, name) {
            Some(before) => format!("{before},{text}"),
            None => text.to_owned(),
        };
        self.annotate(tree, name, &text)
    }

    pub fn enable(self, tree: &mut Tree, name: &str) -> Res<()> {
        let mut annotations = self.annotations(tree);
        annotations.insert(name.to_owned(), ENABLED.to_owned());
        self.set_annotations(tree, &annotations)
    }

    pub fn is_enabled(self, tree: &Tree, name: &str) -> bool {
        self.annotation(tree, name) == Some(ENABLED)
    }

    /// A quick check whether the object may have, or may have had, a name.
    pub fn may_be_called(self, tree: &Tree, name: &str) -> bool {
        let metadata = tree.field(self.0, "metadata");
        metadata.is_some_and(|metadata| tree.field_text(metadata, "name") == name)
            || self
                .annotation(tree, PREVIOUS_NAMES)
                .is_some_and(|names| names.contains(name))
    }

    /// Records the object's current id.
    pub fn remember_id(self, tree: &mut Tree) -> Res<()> {
        let id = self.id(tree);
        self.append(tree, PREVIOUS_NAMES, &id.name)?;
        self.append(tree, PREVIOUS_NAMESPACES, id.effective_namespace())?;
        self.append(tree, PREVIOUS_KINDS, &id.gvk.kind)
    }

    /// The object's previous ids, oldest first.
    pub fn previous_ids(self, tree: &Tree) -> Res<Vec<ResId>> {
        if self.annotation(tree, PREVIOUS_NAMES).is_none() {
            return Ok(Vec::new());
        }
        let names = self.listed(tree, PREVIOUS_NAMES);
        tree.clock.spend(1 + names.len())?;
        let split = |name| {
            let text = self.annotation(tree, name).unwrap_or_default();
            text.split(',').map(str::to_owned).collect::<Vec<_>>()
        };
        let (namespaces, kinds) = (split(PREVIOUS_NAMESPACES), split(PREVIOUS_KINDS));
        if names.len() != namespaces.len() || names.len() != kinds.len() {
            return fail!(
                "number of previous names, number of previous namespaces, number of previous kinds not equal"
            );
        }
        let (group, version) = split_api_version(tree.field_text(self.0, "apiVersion"));
        let ids = names.into_iter().zip(namespaces).zip(kinds);
        let id = |((name, namespace), kind): ((String, String), String)| ResId {
            gvk: Gvk::new(group, version, &kind),
            name,
            namespace,
        };
        Ok(ids.map(id).collect())
    }

    pub fn original_id(self, tree: &Tree) -> Res<ResId> {
        let first = self.previous_ids(tree)?.into_iter().next();
        Ok(first.unwrap_or_else(|| self.id(tree)))
    }

    pub fn set_name(self, tree: &mut Tree, name: &str) -> Res<()> {
        let value = tree.scalar(name, Tag::Open);
        tree.set_at(self.0, &["metadata"], "name", value)
    }

    pub fn set_namespace(self, tree: &mut Tree, namespace: &str) -> Res<()> {
        if namespace.is_empty() {
            return match tree.get(self.0, "metadata")? {
                Some(metadata) => tree.clear(metadata, "namespace"),
                None => Ok(()),
            };
        }
        let value = tree.scalar(namespace, Tag::Open);
        tree.set_at(self.0, &["metadata"], "namespace", value)
    }

    pub fn set_kind(self, tree: &mut Tree, kind: &str) -> Res<()> {
        let value = tree.scalar(kind, Tag::Open);
        tree.set_field(self.0, "kind", Some(value))
    }

    pub fn set_api_version(self, tree: &mut Tree, api_version: &str) -> Res<()> {
        let value = tree.scalar(api_version, Tag::Open);
        tree.set_field(self.0, "apiVersion", Some(value))
    }

    pub fn behavior(self, tree: &Tree) -> &str {
        match self.annotation(tree, BEHAVIOR) {
            Some(known @ ("merge" | "replace" | "create")) => known,
            _ => "unspecified",
        }
    }

    /// Merges in names, labels and annotations from the `metadata` of an older object; its own take
    /// precedence.
    pub fn merge_metadata(self, tree: &mut Tree, old: Self) -> Res<()> {
        let mut labels = old.labels(tree);
        labels.extend(self.labels(tree));
        self.set_labels(tree, &labels)?;
        let (before, own) = (old.annotations(tree), self.annotations(tree));
        let hashed = own.contains_key(NEEDS_HASH);
        let mut annotations = before.clone();
        annotations.extend(own);
        for name in BUILD {
            match before.get(*name) {
                Some(text) => annotations.insert((*name).to_owned(), text.clone()),
                None => annotations.remove(*name),
            };
        }
        if !hashed {
            annotations.remove(NEEDS_HASH);
        }
        self.set_annotations(tree, &annotations)?;
        let id = old.id(tree);
        self.set_name(tree, &id.name)?;
        self.set_namespace(tree, &id.namespace)
    }

    pub fn remove_build_annotations(self, tree: &mut Tree) -> Res<()> {
        let mut annotations = self.annotations(tree);
        if annotations.is_empty() {
            return Ok(());
        }
        annotations.retain(|name, _| !BUILD.contains(&name.as_str()));
        self.set_annotations(tree, &annotations)
    }

    pub fn remove_annotation(self, tree: &mut Tree, name: &str) -> Res<()> {
        let mut annotations = self.annotations(tree);
        annotations.remove(name);
        self.set_annotations(tree, &annotations)
    }

    pub fn matches_labels(self, tree: &Tree, selector: &str) -> Res<bool> {
        tree.clock.spend(1 + selector.len() / 16)?;
        matches(selector, || self.labels(tree))
    }

    pub fn matches_annotations(self, tree: &Tree, selector: &str) -> Res<bool> {
        tree.clock.spend(1 + selector.len() / 16)?;
        matches(selector, || self.annotations(tree))
    }
}

fn matches(selector: &str, texts: impl Fn() -> Texts) -> Res<bool> {
    if selector.is_empty() {
        return Ok(true);
    }
    match LabelSelector::parse(selector) {
        Ok(selector) => Ok(selector.matches(&texts())),
        // kustomize doesn't repeat the selector.
        Err(error) => fail!("{}", error.reason),
    }
}

/// A scalar explicitly tagged as a string.
pub(super) fn text_node(tree: &mut Tree, text: &str) -> Id {
    let value = tree.scalar(text, Tag::Str);
    if style_v3(text) == Style::Literal {
        tree.at_mut(value).style = Style::Literal;
    }
    value
}

//! The objects of a build in their order.
//!
//! Main type: [`ResMap`]. Ids are unique; adding an existing one fails, or merges the objects where
//! generators allow it.

use super::fault::{Fault, HIDDEN, Res, fail};
use super::ids::{Key, ResId};
use super::resource::{NEEDS_HASH, ORIGIN, Object, Resource, Texts};
use super::schema::Schema;
use super::selector::Selector;
use super::tree::{Id, Tree};
use std::collections::HashSet;
use std::sync::Arc;
use tiphys_apimachinery::patch::last_applied;

#[derive(Clone, Debug, Default)]
pub(super) struct ResMap {
    pub list: Vec<Resource>,
    /// The ids of all objects, valid as long as objects are only added.
    known: Option<HashSet<Key>>,
}

impl ResMap {
    /// A map of the objects of one text.
    pub fn of(tree: &Tree, roots: Vec<Id>) -> Res<Self> {
        let mut map = Self::default();
        map.append_all(tree, roots.into_iter().map(Resource::new).collect())?;
        Ok(map)
    }

    /// The objects that have not been deleted.
    pub fn objects(&self) -> impl Iterator<Item = (usize, Object)> + '_ {
        let all = self.list.iter().enumerate();
        all.filter_map(|(index, resource)| Some((index, resource.object()?)))
    }

    pub fn append_all(&mut self, tree: &Tree, new: Vec<Resource>) -> Res<()> {
        if new.is_empty() {
            return Ok(());
        }
        let known = self.known.get_or_insert_with(|| {
            let ids = self.list.iter().map(|resource| resource.id(tree).key());
            ids.collect()
        });
        for resource in new {
            tree.clock.spend(1)?;
            let id = resource.id(tree);
            if !known.insert(id.key()) {
                return fail!("may not add resource with an already registered id: {id}");
            }
            self.list.push(resource);
        }
        Ok(())
    }

    /// Must be called after objects were changed or removed.
    pub fn changed(&mut self) {
        self.known = None;
    }

    /// Adds generated objects or merges them into existing ones, as each object specifies.
    pub fn absorb_all(&mut self, tree: &mut Tree, new: Self) -> Res<()> {
        for resource in new.list {
            self.absorb(tree, resource)?;
        }
        Ok(())
    }

    fn absorb(&mut self, tree: &mut Tree, resource: Resource) -> Res<()> {
        let Some(object) = resource.object() else {
            return Ok(());
        };
        self.changed();
        let id = object.id(tree);
        let matches = self.by_any_id(tree, Some(&id.name), |other| id.is_same(other))?;
        let behavior = object.behavior(tree).to_owned();
        let shown = go_syntax(&id);
        match matches.as_slice() {
            [] if behavior == "merge" || behavior == "replace" => {
                fail!("id {shown} does not exist; cannot merge or replace")
            }
            [] => self.append_all(tree, vec![resource]),
            [index] => {
                let old = &self.list[*index];
                let vars = old.vars.clone();
                let Some(old) = old.object() else {
                    return Ok(());
                };
                match behavior.as_str() {
                    "replace" => object.merge_metadata(tree, old)?,
                    "merge" => merge_generated(tree, object, old)?,
                    _ => {
                        return fail!(
                            "id {shown} exists; can not use behavior: '{behavior}', behavior must be merge or replace"
                        );
                    }
                }
                self.list[*index] = Resource { vars, ..resource };
                Ok(())
            }
            _ => fail!("found multiple objects that could accept merge of {id}"),
        }
    }

    /// The objects with a matching current or previous id. `name`: only ids with this name can
    /// match.
    pub fn by_any_id(
        &self,
        tree: &Tree,
        name: Option<&str>,
        matches: impl Fn(&ResId) -> bool,
    ) -> Res<Vec<usize>> {
        let mut found = Vec::new();
        for (index, resource) in self.list.iter().enumerate() {
            tree.clock.spend(1)?;
            let Some(object) = resource.object().filter(|o| !tree.is_empty(o.0)) else {
                continue;
            };
            if name.is_some_and(|name| !object.may_be_called(tree, name)) {
                continue;
            }
            if matches(&object.id(tree)) || object.previous_ids(tree)?.iter().any(&matches) {
                found.push(index);
            }
        }
        Ok(found)
    }

    /// The single object that a patch without a target applies to.
    pub fn patched_by(&self, tree: &Tree, id: &ResId) -> Res<usize> {
        let found = self.by_any_id(tree, Some(&id.name), |other| id.is_same(other))?;
        match found.as_slice() {
            [index] => Ok(*index),
            [] => fail!("no matches for Id {id}; failed to find unique target for patch {id}"),
            _ => fail!("multiple matches for Id {id}; failed to find unique target for patch {id}"),
        }
    }

    pub fn select(&self, tree: &Tree, selector: &Selector) -> Res<Vec<usize>> {
        let compiled = selector.compile()?;
        let mut found = Vec::new();
        for (index, object) in self.objects() {
            // Expressions may take long.
            tree.clock.look()?;
            if !compiled.is_kind(&object.gvk(tree)) {
                continue;
            }
            let (now, first) = (object.id(tree), object.original_id(tree)?);
            let matches = (compiled.is_namespace(first.effective_namespace())
                || compiled.is_namespace(now.effective_namespace()))
                && (compiled.is_name(&first.name) || compiled.is_name(&now.name))
                && object.matches_labels(tree, &selector.label_selector)?
                && object.matches_annotations(tree, &selector.annotation_selector)?;
            if matches {
                found.push(index);
            }
        }
        Ok(found)
    }

    /// Patches some objects with copies of one patch.
    pub fn patch(
        &mut self,
        tree: &mut Tree,
        schema: &Arc<Schema>,
        selected: &[usize],
        patch: Object,
    ) -> Res<()> {
        // Match by id, so that other objects with the same id are patched, too.
        let ids: HashSet<ResId> = selected.iter().map(|at| self.list[*at].id(tree)).collect();
        self.changed();
        let old = std::mem::take(&mut self.list);
        let mut list = Vec::with_capacity(old.len());
        for mut resource in old {
            tree.clock.spend(1)?;
            if ids.contains(&resource.id(tree))
                && let Some(object) = resource.object()
            {
                let copy = Object(tree.copy(patch.0));
                copy.merge_metadata(tree, patch)?;
                let api_version = object.gvk(tree).api_version();
                copy.set_kind(tree, &object.gvk(tree).kind)?;
                copy.set_api_version(tree, &api_version)?;
                let kind = tree.field_text(patch.0, "kind").to_owned();
                copy.set_kind(tree, &kind)?;
                resource.patch(tree, schema, copy)?;
            }
            if !resource.is_gone(tree) {
                list.push(resource);
            }
        }
        self.changed();
        self.append_all(tree, list)?;
        self.changed();
        Ok(())
    }

    pub fn drop_gone(&mut self, tree: &Tree) {
        self.changed();
        self.list.retain(|resource| !resource.is_gone(tree));
    }

    /// Sets the origin of the objects that have none yet.
    pub fn annotate_origin(&self, tree: &mut Tree, origin: &str) -> Res<()> {
        for (_, object) in self.objects() {
            tree.clock.spend(1)?;
            if object.annotation(tree, ORIGIN).is_none() {
                let mut annotations: Texts = object.annotations(tree);
                annotations.insert(ORIGIN.to_owned(), origin.to_owned());
                object.set_annotations(tree, &annotations)?;
            }
        }
        Ok(())
    }
}

impl Resource {
    /// Applies a patch to the object, which may delete it.
    pub fn patch(&mut self, tree: &mut Tree, schema: &Arc<Schema>, patch: Object) -> Res<()> {
        use super::resource::{ALLOW_KIND_CHANGE, ALLOW_NAME_CHANGE};
        let Some(object) = self.object() else {
            return Ok(());
        };
        let id = object.id(tree);
        let rename = patch.is_enabled(tree, ALLOW_NAME_CHANGE);
        let rekind = patch.is_enabled(tree, ALLOW_KIND_CHANGE);
        if rename || rekind {
            object.remember_id(tree)?;
        }
        if super::merge::merge(tree, schema, patch.0, object.0)?.is_none() {
            self.root = None;
            return Ok(());
        }
        if tree.is_empty(object.0) {
            return Ok(());
        }
        if !rekind {
            object.set_kind(tree, &id.gvk.kind)?;
        }
        if !rename {
            object.set_name(tree, &id.name)?;
        }
        object.set_namespace(tree, &id.namespace)
    }
}

fn merge_generated(tree: &mut Tree, object: Object, old: Object) -> Res<()> {
    let origin = old.annotation(tree, ORIGIN).map(str::to_owned);
    object.merge_metadata(tree, old)?;
    for field in ["data", "binaryData"] {
        let mut texts = map_texts(tree, old.0, field);
        texts.extend(map_texts(tree, object.0, field));
        tree.clear(object.0, field)?;
        super::generate::set_data(tree, object.0, field, &texts)?;
    }
    if let Some(origin) = origin {
        let mut annotations = object.annotations(tree);
        annotations.insert(ORIGIN.to_owned(), origin);
        object.set_annotations(tree, &annotations)?;
    }
    Ok(())
}

fn map_texts(tree: &Tree, root: Id, field: &str) -> Texts {
    let map = tree.field(root, field);
    let entries = map.into_iter().flat_map(|map| tree.entries(map));
    let text = |id| {
        if tree.is_null(id) {
            String::new()
        } else {
            tree.text(id).to_owned()
        }
    };
    entries
        .map(|(key, value)| (text(key), text(value)))
        .collect()
}

/// An id formatted as Go prints the struct.
fn go_syntax(id: &ResId) -> String {
    let scoped = id.gvk.is_cluster_scoped();
    format!(
        "resid.ResId{{Gvk:resid.Gvk{{Group:{:?}, Version:{:?}, Kind:{:?}, isClusterScoped:{scoped}}}, Name:{:?}, Namespace:{:?}}}",
        id.gvk.group, id.gvk.version, id.gvk.kind, id.name, id.namespace
    )
}

/// Appends the content hash to the names of generated objects.
pub(super) fn add_hashes(tree: &mut Tree, map: &ResMap) -> Res<()> {
    for (_, object) in map.objects() {
        if object.is_enabled(tree, NEEDS_HASH) {
            let hash = super::generate::hash(tree, object)?;
            object.remember_id(tree)?;
            let name = format!("{}-{hash}", object.id(tree).name);
            object.set_name(tree, &name)?;
        }
    }
    Ok(())
}

/// Converts documents to objects: lists are replaced by their items.
pub(super) fn objects_of(
    tree: &mut Tree,
    roots: Vec<Id>,
    limits: &tiphys_gocompat::yaml::Limits,
) -> Res<Vec<Id>> {
    let mut queue: std::collections::VecDeque<Id> = checked(tree, roots)?.into();
    let mut found = Vec::new();
    while let Some(id) = queue.pop_front() {
        let kind = tree.field_text(id, "kind");
        let items = tree.field(id, "items");
        let Some(items) = items.filter(|_| kind.ends_with("List")) else {
            found.push(id);
            continue;
        };
        if tree.is_null(items) {
            continue;
        }
        let kind = kind.to_owned();
        let list = tree
            .json_value(id)
            .map_err(|error| error.within(format!("trouble expanding list of {kind}")))?;
        let Some(items) = list.get("items").and_then(serde_json::Value::as_array) else {
            return fail!("expected array in {kind}/items, but found something else");
        };
        for item in items {
            let text = tiphys_gocompat::json::to_string(item);
            let roots = super::read::documents(tree, text.as_bytes(), limits)?;
            queue.extend(checked(tree, roots)?);
        }
    }
    tree.check()?;
    Ok(found)
}

/// Drops empty documents and fails on documents that are not objects.
fn checked(tree: &Tree, roots: Vec<Id>) -> Res<Vec<Id>> {
    let mut found = Vec::new();
    for id in roots {
        if tree.is_empty(id) {
            continue;
        }
        check_identity(tree, id)?;
        found.push(id);
    }
    Ok(found)
}

/// Fails unless the object has a kind and, if it is no list, a name.
pub(super) fn check_identity(tree: &Tree, id: Id) -> Res<()> {
    let own = ResId::of(tree, id);
    let metadata = tree.field(id, "metadata").filter(|m| !tree.is_empty(*m));
    let api_version = tree.field(id, "apiVersion");
    if own.gvk.kind.is_empty() && own.name.is_empty() && metadata.is_none() && api_version.is_none()
    {
        return Err(Fault::new("missing Resource metadata"));
    }
    if own.gvk.kind.is_empty() {
        return fail!("missing kind in object {}", shown_meta(tree, id, &own));
    }
    if !own.gvk.kind.ends_with("List") && own.name.is_empty() {
        return fail!(
            "missing metadata.name in object {}",
            shown_meta(tree, id, &own)
        );
    }
    Ok(())
}

/// The metadata as Go prints it. What was last applied may be a whole Secret: it is not shown.
fn shown_meta(tree: &Tree, object: Id, id: &ResId) -> String {
    let shown = |texts: Texts| {
        let texts: Vec<_> = texts.iter().map(|(k, v)| format!("{k}:{v}")).collect();
        texts.join(" ")
    };
    let object = Object(object);
    let mut annotations = object.annotations(tree);
    if let Some(value) = annotations.get_mut(last_applied::ANNOTATION) {
        HIDDEN.clone_into(value);
    }
    format!(
        "{{{{{} {}}} {{{{{} {}}} map[{}] map[{}]}}}}",
        id.gvk.api_version(),
        id.gvk.kind,
        id.name,
        id.namespace,
        shown(object.labels(tree)),
        shown(annotations)
    )
}

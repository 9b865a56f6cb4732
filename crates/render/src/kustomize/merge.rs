//! kustomize's strategic merge patch.
//!
//! Main function: [`merge`]. Elements of the patch come before existing ones. Only lists named in
//! the schema are merged; all others are replaced.

use super::clock::Clock;
use super::fault::{Res, fail};
use super::schema::{Place, Schema};
use super::tree::{DEEPEST, Id, Kind, Tag, Tree, too_deep};
use std::{collections::BTreeSet, sync::Arc};
use tiphys_gocompat::yaml::tree::Style;

type Side = Option<Id>;

/// The result of merging a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merged {
    Gone,
    Node(Id),
    /// A null that is printed.
    KeptNull(Id),
}

impl Merged {
    fn of(node: Option<Id>) -> Self {
        node.map_or(Self::Gone, Self::Node)
    }

    fn id(self) -> Option<Id> {
        match self {
            Self::Gone => None,
            Self::Node(id) | Self::KeptNull(id) => Some(id),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

/// Applies a patch to an object; returns nothing if the patch deletes it. The patch's nodes are
/// consumed.
pub(super) fn merge(tree: &mut Tree, schema: &Arc<Schema>, patch: Id, object: Id) -> Res<Side> {
    let mut walker = Walker {
        tree,
        schema,
        depth: 0,
    };
    let merged = walker.walk(Some(object), Some(patch), None)?;
    walker.tree.check()?;
    Ok(merged.id())
}

struct Walker<'t> {
    tree: &'t mut Tree,
    schema: &'t Arc<Schema>,
    depth: usize,
}

impl Walker<'_> {
    fn walk(&mut self, dest: Option<Id>, patch: Option<Id>, place: Option<Place>) -> Res<Merged> {
        self.tree.clock.spend(1)?;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(too_deep());
        }
        let merged = self.walk_one(dest, patch, place);
        self.depth -= 1;
        merged
    }

    fn walk_one(&mut self, dest: Side, patch: Side, place: Option<Place>) -> Res<Merged> {
        let place = place.or_else(|| self.place_of_kind([dest, patch]));
        let mut kinds = [dest, patch].into_iter().flatten();
        let kind = kinds
            .find(|id| !self.tree.is_null(*id))
            .map(|id| self.tree.kind(id));
        for id in [dest, patch].into_iter().flatten() {
            if let Some(kind) = kind
                && kind != Kind::None
            {
                self.tree.expect(id, kind)?;
            }
        }
        match kind {
            Some(Kind::Scalar) => Ok(Merged::of(patch.or(dest))),
            Some(Kind::List) => match place.as_ref().and_then(Place::merge_keys) {
                Some(keys) => {
                    let items = place.as_ref().and_then(Place::items);
                    self.keyed_list(dest, patch, keys, items.as_ref())
                }
                None => Ok(Merged::of(patch.or(dest))),
            },
            _ => self.map(dest, patch, place.as_ref()),
        }
    }

    fn place_of_kind(&self, nodes: [Option<Id>; 2]) -> Option<Place> {
        nodes.into_iter().flatten().find_map(|id| {
            let api_version = self.tree.field_text(id, "apiVersion");
            let kind = self.tree.field_text(id, "kind");
            if api_version.is_empty() || kind.is_empty() {
                return None;
            }
            self.schema.of_kind(api_version, kind)
        })
    }

    fn map(&mut self, dest: Option<Id>, patch: Option<Id>, place: Option<&Place>) -> Res<Merged> {
        let merged = self.visit_map(dest, patch)?;
        let Some(dest) = merged.id() else {
            return Ok(Merged::Gone);
        };
        if self.tree.is_null(dest) {
            return Ok(merged);
        }
        let mut names = BTreeSet::new();
        for id in [Some(dest), patch].into_iter().flatten() {
            if self.tree.kind(id) == Kind::Map && !self.tree.is_null(id) {
                let keys = self.tree.entries(id).map(|(key, _)| self.tree.text(key));
                names.extend(keys.map(str::to_owned));
            }
        }
        // Each name is searched among all.
        let step = 1 + names.len() / 16;
        for name in names {
            self.tree.clock.spend(step)?;
            let own = self.tree.field(dest, &name);
            let entry = patch.and_then(|patch| self.tree.entry(patch, &name));
            let new = entry.map(|(_, value)| value);
            let place = place.and_then(|place| place.field(&name));
            let value = self.walk(own, new, place)?;
            let keep = matches!(value, Merged::KeptNull(_));
            // "1" in quotes is a text; without them it would be a number, which is no valid key.
            let key_style = match entry {
                Some((key, new)) if value.id() == Some(new) => self.tree.at(key).style,
                _ => Style::Plain,
            };
            self.tree
                .set_field_keeping(dest, &name, value.id(), keep, key_style)?;
        }
        Ok(merged)
    }

    fn visit_map(&mut self, dest: Option<Id>, patch: Option<Id>) -> Res<Merged> {
        let Some(there) = dest.filter(|id| !self.tree.is_null(*id)) else {
            if self.directive(patch).ok() == Some(Directive::Delete) {
                return Ok(Merged::Gone);
            }
            // An explicit null is kept if the patch does not set the field.
            if patch.is_none()
                && let Some(null) = dest
                && !self.tree.text(null).is_empty()
            {
                let text = self.tree.text(null).to_owned();
                return Ok(Merged::KeptNull(self.tree.scalar(text, Tag::Null)));
            }
            return Ok(Merged::of(patch));
        };
        self.choose(there, patch)
    }

    /// Determines what the patch does to an existing node.
    fn choose(&mut self, there: Id, patch: Option<Id>) -> Res<Merged> {
        if patch.is_some_and(|patch| self.tree.is_null(patch)) {
            return Ok(Merged::Gone);
        }
        Ok(match self.directive(patch)? {
            Directive::Delete => Merged::Gone,
            Directive::Replace => Merged::of(patch),
            Directive::Merge => Merged::Node(there),
        })
    }

    /// Reads and removes the `$patch` directive.
    fn directive(&mut self, patch: Option<Id>) -> Res<Directive> {
        const KEY: &str = "$patch";
        let Some(patch) = patch else {
            return Ok(Directive::Merge);
        };
        let tree = &mut *self.tree;
        let (value, of_list) = match tree.kind(patch) {
            Kind::Map => (tree.field(patch, KEY), false),
            Kind::List => {
                let elements = tree.elements(patch).into_iter();
                let element = elements
                    .filter(|id| tree.kind(*id) == Kind::Map)
                    .find(|id| tree.field(*id, KEY).is_some());
                let element = element.filter(|id| tree.at(*id).content.len() <= 2);
                (element.and_then(|id| tree.field(id, KEY)), true)
            }
            _ => {
                return fail!(
                    "no implemented strategic merge patch strategy for '{}' ('{}')",
                    tree.at(patch).tag.name(),
                    tree.shown(patch)
                );
            }
        };
        let Some(value) = value else {
            return Ok(Directive::Merge);
        };
        let text = tree.text(value).to_owned();
        let directive = match text.as_str() {
            "delete" => Directive::Delete,
            "replace" => Directive::Replace,
            "merge" => Directive::Merge,
            _ => return fail!("unknown patch strategy '{text}'"),
        };
        if of_list {
            tree.set_element(patch, None, &[KEY.to_owned()], &[text])?;
        } else {
            tree.clear(patch, KEY)?;
        }
        Ok(directive)
    }

    fn keyed_list(
        &mut self,
        dest: Option<Id>,
        patch: Option<Id>,
        keys: &[String],
        items: Option<&Place>,
    ) -> Res<Merged> {
        let there = dest.filter(|id| !self.tree.is_null(*id));
        let merged = match there {
            None => Merged::of(patch),
            Some(there) => self.choose(there, patch)?,
        };
        let Some(dest) = merged.id() else {
            return Ok(Merged::Gone);
        };
        let sources = [Some(dest), patch];
        let (keys, mut all) = if keys.is_empty() {
            (vec![String::new()], self.primitive_values(sources)?)
        } else {
            (keys.to_vec(), self.key_values(sources, keys)?)
        };
        if keys.len() > 1 {
            complete(&mut all, &self.tree.clock)?;
        }
        let Some(dest) = self.set_elements(sources, &all, &keys, items)? else {
            return Ok(Merged::Gone);
        };
        Ok(Merged::of(Some(dest).filter(|id| !self.tree.is_null(*id))))
    }

    /// The elements' key values, those of the patch first.
    fn key_values(&self, sources: [Option<Id>; 2], keys: &[String]) -> Res<Vec<Vec<String>>> {
        let mut all: Vec<Vec<String>> = Vec::new();
        for source in [sources[1], sources[0]].into_iter().flatten() {
            for element in self.tree.elements(source) {
                self.tree.clock.spend(1 + all.len() / 16)?;
                let text = |key: &String| {
                    let value = self.tree.field(element, key);
                    let value = value.filter(|id| !self.tree.is_empty(*id));
                    value.map_or_else(String::new, |id| self.tree.text(id).to_owned())
                };
                let values: Vec<String> = keys.iter().map(text).collect();
                if !values.is_empty() && !all.contains(&values) {
                    all.push(values);
                }
            }
        }
        Ok(all)
    }

    fn primitive_values(&self, sources: [Option<Id>; 2]) -> Res<Vec<Vec<String>>> {
        let mut all: Vec<Vec<String>> = Vec::new();
        for source in [sources[1], sources[0]].into_iter().flatten() {
            for element in self.tree.elements(source) {
                self.tree.clock.spend(1 + all.len() / 16)?;
                let value = vec![self.tree.text(element).to_owned()];
                if !all.contains(&value) {
                    all.push(value);
                }
            }
        }
        Ok(all)
    }

    fn set_elements(
        &mut self,
        sources: [Option<Id>; 2],
        all: &[Vec<String>],
        keys: &[String],
        items: Option<&Place>,
    ) -> Res<Option<Id>> {
        let Some(dest) = sources[0] else {
            return Ok(None);
        };
        let front = self.tree.empty(Kind::List);
        let mut last_keys = Vec::new();
        for values in all {
            self.tree.clock.spend(1 + all.len() / 16)?;
            let (valid_keys, valid_values) = valid(all, values, keys);
            last_keys.clone_from(&valid_keys);
            let (own_keys, own_values) = valid(
                std::slice::from_ref(&valid_values),
                &valid_values,
                &valid_keys,
            );
            let mut found = [None, None];
            for (found, source) in found.iter_mut().zip(sources) {
                if let Some(source) = source
                    && self.tree.kind(source) == Kind::List
                {
                    let element = self.tree.find_element(source, &own_keys, &own_values);
                    *found = element.ok().flatten();
                }
            }
            let value = self.walk(found[0], found[1], items.cloned())?;
            let value = value.id().filter(|id| !self.tree.is_empty_map(*id));
            let Some(value) = value else {
                if !valid_keys.is_empty() {
                    self.tree
                        .set_element(dest, None, &valid_keys, &valid_values)?;
                    continue;
                }
                continue;
            };
            for (key, text) in valid_keys.iter().zip(&valid_values) {
                if self.tree.field(value, key).is_none() && !text.is_empty() && !key.is_empty() {
                    let text = self.tree.scalar(text.clone(), Tag::Open);
                    self.tree.set_field(value, key, Some(text))?;
                }
            }
            self.tree
                .set_element(front, Some(value), &valid_keys, &valid_values)?;
        }
        if all.is_empty() {
            return Ok(Some(dest));
        }
        self.append(front, dest, &last_keys)?;
        // The field keeps its node but gets a new list.
        Ok(Some(front))
    }

    /// Appends the elements that are only in the second list, in their order.
    fn append(&mut self, to: Id, from: Id, keys: &[String]) -> Res<()> {
        for element in self.tree.elements(from) {
            let count = self.tree.at(to).content.len();
            self.tree.clock.spend(1 + count / 16)?;
            if keys.first().is_none_or(String::is_empty) {
                let text = self.tree.text(element).to_owned();
                self.tree
                    .set_element(to, Some(element), &[String::new()], &[text])?;
                continue;
            }
            let mut values = Vec::new();
            for key in keys {
                match self.tree.get(element, key)? {
                    Some(value) => values.push(self.tree.text(value).to_owned()),
                    None => self.tree.at_mut(to).content.push(element),
                }
            }
            if keys.len() > 1 {
                self.tree.set_element(to, None, keys, &values)?;
            }
            self.tree.set_element(to, Some(element), keys, &values)?;
        }
        Ok(())
    }
}

/// Fills in missing values of composite keys from others that agree in the values both have.
fn complete(all: &mut [Vec<String>], clock: &Clock) -> Res<()> {
    for i in 0..all.len() {
        clock.spend(1 + all.len() / 16)?;
        let first = all[i].clone();
        for j in 0..all.len() {
            if let Some(both) = common(&first, &all[j]) {
                all[i].clone_from(&both);
                all[j] = both;
            }
        }
    }
    Ok(())
}

fn common(left: &[String], right: &[String]) -> Option<Vec<String>> {
    if left.len() != right.len() {
        return None;
    }
    let mut same = false;
    let mut both = Vec::new();
    for (left, right) in left.iter().zip(right) {
        if left == right {
            same = true;
        } else if !left.is_empty() && !right.is_empty() {
            return None;
        }
        both.push(if left.is_empty() { right } else { left }.clone());
    }
    same.then_some(both)
}

/// The keys for which any element has a value, and these values.
fn valid(all: &[Vec<String>], values: &[String], keys: &[String]) -> (Vec<String>, Vec<String>) {
    let used = |index: usize| {
        all.iter()
            .any(|values| values.get(index).is_some_and(|value| !value.is_empty()))
    };
    let used: Vec<bool> = (0..keys.len()).map(used).collect();
    if !used.contains(&true) {
        return (keys.to_vec(), values.to_vec());
    }
    let keys = keys.iter().zip(&used).filter(|(_, used)| **used);
    let values = values.iter().enumerate();
    let values = values.filter(|(index, value)| !value.is_empty() || used[*index]);
    (
        keys.map(|(key, _)| key.clone()).collect(),
        values.map(|(_, value)| value.clone()).collect(),
    )
}

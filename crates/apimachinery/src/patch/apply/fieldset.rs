//! A set of field paths, and its `fieldsV1` form.
//!
//! Main type: [`FieldSet`]. It knows nothing of types or owners.

use super::path::PathElement;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Deepest nesting of a set that is accepted.
const MAX_DEPTH: usize = 120;

/// Paths as a tree: `members` end here, `children` continue. An element may be both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub members: BTreeSet<PathElement>,
    /// Never contains an empty set.
    pub children: BTreeMap<PathElement, FieldSet>,
}

impl FieldSet {
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// Adds a path; the empty path is no field.
    pub fn insert(&mut self, path: &[PathElement]) {
        if let Some((last, parents)) = path.split_last() {
            let mut at = self;
            for step in parents {
                if !at.children.contains_key(step) {
                    at.children.insert(step.clone(), Self::default());
                }
                at = at
                    .children
                    .get_mut(step)
                    .expect("it was inserted on the line before");
            }
            if !at.members.contains(last) {
                at.members.insert(last.clone());
            }
        }
    }

    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.members.contains(last),
            [first, rest @ ..] => self.children.get(first).is_some_and(|c| c.contains(rest)),
        }
    }

    /// Adds all paths of `other`.
    pub fn extend(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        self.members.extend(other.members);
        for (step, set) in other.children {
            self.children.entry(step).or_default().extend(set);
        }
    }

    pub fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.extend(other.clone());
        all
    }

    pub fn intersection(&self, other: &Self) -> Self {
        let members = self.members.intersection(&other.members).cloned().collect();
        let shared = self.children.iter().filter_map(|(step, set)| {
            other
                .children
                .get(step)
                .map(|o| (step, set.intersection(o)))
        });
        Self {
            members,
            children: shared
                .filter(|(_, set)| !set.is_empty())
                .map(|(step, set)| (step.clone(), set))
                .collect(),
        }
    }

    /// The paths that `other` does not contain. A path below one in `other` stays.
    pub fn difference(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.subtract(other);
        rest
    }

    /// [`FieldSet::difference`] in place. Returns whether anything was removed.
    pub fn subtract(&mut self, other: &Self) -> bool {
        let before = self.members.len();
        if !other.members.is_empty() {
            self.members.retain(|m| !other.members.contains(m));
        }
        let mut changed = self.members.len() != before;
        for (step, set) in &other.children {
            if let Some(mine) = self.children.get_mut(step) {
                changed |= mine.subtract(set);
                if mine.is_empty() {
                    self.children.remove(step);
                }
            }
        }
        changed
    }

    /// Removes the paths in `other` and everything below them.
    pub fn subtract_recursively(&mut self, other: &Self) {
        self.members.retain(|m| !other.members.contains(m));
        self.children.retain(|step, set| {
            if other.members.contains(step) {
                return false;
            }
            if let Some(other) = other.children.get(step) {
                set.subtract_recursively(other);
            }
            !set.is_empty()
        });
    }

    /// Every path, shortest first.
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut all = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut all);
        all
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, all: &mut Vec<Vec<PathElement>>) {
        for member in &self.members {
            let mut path = prefix.clone();
            path.push(member.clone());
            all.push(path);
        }
        for (step, set) in &self.children {
            prefix.push(step.clone());
            set.collect_paths(prefix, all);
            prefix.pop();
        }
    }

    /// The `fieldsV1` form.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        for member in &self.members {
            map.insert(member.serialize(), Value::Object(Map::new()));
        }
        for (step, set) in &self.children {
            let mut below = set.to_json();
            if let (true, Value::Object(below)) = (self.members.contains(step), &mut below) {
                below.insert(".".into(), Value::Object(Map::new()));
            }
            map.insert(step.serialize(), below);
        }
        Value::Object(map)
    }

    /// Parses `fieldsV1`; the error names the invalid key.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        Ok(Self::read(value, 0)?.0)
    }

    /// The set below an element, and whether the element itself is a member.
    fn read(value: &Value, depth: usize) -> Result<(Self, bool), String> {
        let map = match value {
            Value::Object(map) => map,
            Value::Null => return Ok((Self::default(), false)),
            other => return Err(format!("fieldsV1: a map is expected, not {other}")),
        };
        if depth > MAX_DEPTH {
            return Err(format!("fieldsV1: nested deeper than {MAX_DEPTH} levels"));
        }
        let mut set = Self::default();
        let mut self_member = false;
        for (key, value) in map {
            if key == "." {
                self_member = true;
                continue;
            }
            // A newer server may define this kind of key.
            if PathElement::is_of_unknown_kind(key) {
                continue;
            }
            let step = PathElement::parse(key)
                .ok_or_else(|| format!("fieldsV1: `{key}` is not a path element"))?;
            let (below, member) = Self::read(value, depth + 1)?;
            if member || below.is_empty() {
                set.members.insert(step.clone());
            }
            if !below.is_empty() {
                set.children.insert(step, below);
            }
        }
        Ok((set, self_member))
    }
}

/// A path in the notation of conflict messages: `.spec.containers[name="web"].image`.
pub fn path_text(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

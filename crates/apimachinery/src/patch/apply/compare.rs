//! Computes which fields a value has, and which differ between two values.

use super::{
    fieldset::FieldSet,
    path::{PathElement, equal_values},
    types::{Form, Ty},
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Fields that were added, changed or removed from one value to the other.
#[derive(Debug, Default)]
pub struct Comparison {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

/// Ignores `metadata.managedFields`, which describes the fields and is not one of them.
pub(super) fn compare(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    ty: Ty<'_>,
) -> Result<Comparison, String> {
    let mut walk = Walk {
        path: Vec::new(),
        found: Comparison::default(),
    };
    walk.maps(Some(old), Some(new), ty)?;
    Ok(walk.found)
}

struct Walk {
    path: Vec<PathElement>,
    found: Comparison,
}

impl Walk {
    fn values(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
        ty: Ty<'_>,
    ) -> Result<(), String> {
        match (old, new) {
            (None, None) => {}
            (Some(old), Some(new)) => self.both(old, new, ty)?,
            (None, Some(new)) => {
                self.below(None, Some(new), ty.form(new), ty)?;
                self.found.added.insert(&self.path);
            }
            (Some(old), None) => {
                self.below(Some(old), None, ty.form(old), ty)?;
                self.found.removed.insert(&self.path);
            }
        }
        Ok(())
    }

    fn both(&mut self, old: &Value, new: &Value, ty: Ty<'_>) -> Result<(), String> {
        if equal_values(old, new) {
            return Ok(());
        }
        let (old_form, new_form) = (ty.form(old), ty.form(new));
        if old_form == new_form && old_form != Form::Leaf {
            if is_empty(old) && is_empty(new) {
                self.found.modified.insert(&self.path);
                return Ok(());
            }
            return self.below(Some(old), Some(new), old_form, ty);
        }
        self.below(Some(old), None, old_form, ty)?;
        self.below(None, Some(new), new_form, ty)?;
        self.found.modified.insert(&self.path);
        Ok(())
    }

    fn below(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
        form: Form,
        ty: Ty<'_>,
    ) -> Result<(), String> {
        match form {
            Form::Leaf => Ok(()),
            Form::Map => self.maps(
                old.and_then(Value::as_object),
                new.and_then(Value::as_object),
                ty,
            ),
            Form::List => {
                let (old, new) = (old.and_then(Value::as_array), new.and_then(Value::as_array));
                self.lists(
                    old.map_or(&[], Vec::as_slice),
                    new.map_or(&[], Vec::as_slice),
                    ty,
                )
            }
        }
    }

    fn maps(
        &mut self,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
        ty: Ty<'_>,
    ) -> Result<(), String> {
        let at_metadata = matches!(&self.path[..], [PathElement::Field(f)] if f == "metadata");
        for (key, value) in old.into_iter().flatten() {
            if !(at_metadata && key == "managedFields") {
                let other = new.map(|m| m.get(key).or_else(|| ty.present_anyway(key)));
                self.field(key, Some(value), other.flatten(), ty)?;
            }
        }
        for (key, value) in new.into_iter().flatten() {
            if !(at_metadata && key == "managedFields") && old.is_none_or(|m| !m.contains_key(key))
            {
                let other = old.and_then(|_| ty.present_anyway(key));
                self.field(key, other, Some(value), ty)?;
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        key: &str,
        old: Option<&Value>,
        new: Option<&Value>,
        ty: Ty<'_>,
    ) -> Result<(), String> {
        if old == new {
            return Ok(());
        }
        self.path.push(PathElement::Field(key.to_owned()));
        let result = self.values(old, new, ty.field(key));
        self.path.pop();
        result
    }

    fn lists(&mut self, old: &[Value], new: &[Value], ty: Ty<'_>) -> Result<(), String> {
        let mut steps: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in old {
            steps
                .entry(self.element(item, ty)?)
                .or_default()
                .0
                .push(item);
        }
        for item in new {
            steps
                .entry(self.element(item, ty)?)
                .or_default()
                .1
                .push(item);
        }
        for (step, (old, new)) in steps {
            self.path.push(step);
            let result = self.elements(&old, &new, ty.items());
            self.path.pop();
            result?;
        }
        Ok(())
    }

    fn element(&self, item: &Value, ty: Ty<'_>) -> Result<PathElement, String> {
        ty.element(item)
            .map_err(|e| format!("{}: {e}", super::fieldset::path_text(&self.path)))
    }

    /// An element that occurs in a list more than once is one leaf.
    fn elements(&mut self, old: &[&Value], new: &[&Value], ty: Ty<'_>) -> Result<(), String> {
        match (old, new) {
            ([] | [_], [] | [_]) => self.values(old.first().copied(), new.first().copied(), ty),
            ([_, _, ..], [_, _, ..]) => {
                if old.len() != new.len()
                    || old
                        .iter()
                        .zip(new)
                        .any(|(old, new)| !equal_values(old, new))
                {
                    self.found.modified.insert(&self.path);
                }
                Ok(())
            }
            ([_, _, ..], _) => {
                self.values(None, new.first().copied(), ty)?;
                self.found.removed.insert(&self.path);
                Ok(())
            }
            (_, _) => {
                self.values(old.first().copied(), None, ty)?;
                self.found.added.insert(&self.path);
                Ok(())
            }
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => value.is_null(),
    }
}

/// All fields of a configuration, as owned by its manager.
pub(super) fn fields_of(value: &Map<String, Value>, ty: Ty<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    for (key, value) in value {
        add_field(&mut set, key, value, ty);
    }
    set
}

fn add_field(set: &mut FieldSet, key: &str, value: &Value, ty: Ty<'_>) {
    let (mut member, below) = fields_below(value, ty.field(key));
    member |=
        value.is_null() || value.as_object().is_some_and(Map::is_empty) || !ty.names_field(key);
    let step = PathElement::Field(key.to_owned());
    if member {
        set.members.insert(step.clone());
    }
    if !below.is_empty() {
        set.children.insert(step, below);
    }
}

/// Whether the value is a field itself, and the fields below it.
fn fields_below(value: &Value, ty: Ty<'_>) -> (bool, FieldSet) {
    let mut set = FieldSet::default();
    match (ty.form(value), value) {
        (Form::Leaf, _) => return (true, set),
        (Form::Map, Value::Object(map)) => map
            .iter()
            .for_each(|(key, value)| add_field(&mut set, key, value, ty)),
        (Form::List, Value::Array(list)) => {
            for item in list {
                let Ok(step) = ty.element(item) else { continue };
                if !set.members.insert(step.clone()) {
                    // A duplicate: the element is one leaf.
                    set.children.remove(&step);
                    continue;
                }
                let below = fields_below(item, ty.items()).1;
                if !below.is_empty() {
                    set.children.insert(step, below);
                }
            }
        }
        _ => {}
    }
    (false, set)
}

/// The set with every named field on the way to a path added as a member.
pub(super) fn with_named_parents(set: &FieldSet, ty: Ty<'_>) -> FieldSet {
    let mut members = set.members.clone();
    let mut children = BTreeMap::new();
    for (step, below) in &set.children {
        if matches!(step, PathElement::Field(name) if ty.names_field(name)) {
            members.insert(step.clone());
        }
        children.insert(step.clone(), with_named_parents(below, ty.step(step)));
    }
    FieldSet { members, children }
}

/// Adapts the set after a schema change made a field atomic: ownership of fields below it becomes
/// ownership of the whole field.
pub(super) fn follow_schema(set: &mut FieldSet, ty: Ty<'_>) {
    let steps: Vec<PathElement> = set.children.keys().cloned().collect();
    for step in steps {
        let below = ty.step(&step);
        if below.is_atomic() {
            set.children.remove(&step);
            set.members.insert(step);
        } else if let (Ty::Known(_), Some(child)) = (below, set.children.get_mut(&step)) {
            follow_schema(child, below);
        }
    }
}

//! Explains what an apply did, change by change, with the reason for each. Main type:
//! [`Explanation`].

use super::Settings;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tiphys_apimachinery::{
    Object,
    patch::{
        apply::{
            fieldset::{FieldSet, path_text},
            path::PathElement,
        },
        three_way::Change,
    },
};

/// Why the object is in its current state.
#[derive(Clone, Debug)]
pub enum Explanation {
    /// The object did not exist.
    Created { object: Object },
    /// It was deleted and recreated, because it could not be patched.
    Recreated { object: Object },
    /// A three-way patch.
    Patch {
        strategic: bool,
        patch: Value,
        changes: Vec<Change>,
    },
    /// Server-side apply: the fields whose ownership or value changed.
    Ownership {
        manager: String,
        created: bool,
        changes: Vec<FieldChange>,
    },
}

/// The change of one field in a server-side apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnershipChange {
    /// The manager now owns it, exclusively.
    Gained,
    /// The manager now owns it together with others.
    Shared,
    /// The manager now owns it, and another manager lost it.
    Taken,
    /// The manager already owned it, with another value.
    Changed,
    /// It left the configuration: another manager keeps it, or it was removed.
    Lost,
    Removed,
}

impl OwnershipChange {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gained => "gained",
            Self::Shared => "shared",
            Self::Taken => "taken over",
            Self::Changed => "changed",
            Self::Lost => "given up",
            Self::Removed => "removed",
        }
    }
}

/// One field of a server-side apply.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// In the notation of conflict messages: `.spec.containers[name="web"].image`.
    pub path: String,
    pub from: Option<Value>,
    pub to: Option<Value>,
    pub effect: OwnershipChange,
    /// Other managers that own it, or owned it.
    pub managers: Vec<String>,
}

impl Explanation {
    /// Compares the object before (if it existed) and after.
    pub(super) fn ownership(before: Option<&Object>, after: &Object, settings: &Settings) -> Self {
        let manager = settings.manager.clone();
        let changes = ownership_changes(&manager, before, after);
        Self::Ownership {
            manager,
            created: before.is_none(),
            changes,
        }
    }
}

fn ownership_changes(manager: &str, before: Option<&Object>, after: &Object) -> Vec<FieldChange> {
    let (old, new) = (Owners::of(before), Owners::of(Some(after)));
    let is_ours = |who: &Who| who.manager == manager && who.applies;
    let (ours_before, ours_after) = (old.fields(is_ours), new.fields(is_ours));
    let mut changes = Vec::new();
    for path in leaves(&ours_after.union(&ours_before)) {
        let (from, to) = (
            before.and_then(|b| value_at(&b.0, &path)),
            value_at(&after.0, &path),
        );
        let others_after = new.others(&path, is_ours);
        let robbed: Vec<String> = old
            .others(&path, is_ours)
            .difference(&others_after)
            .cloned()
            .collect();
        let (effect, managers) = match (ours_before.contains(&path), ours_after.contains(&path)) {
            (true, true) if from == to => continue,
            (true, true) => (OwnershipChange::Changed, robbed),
            (false, true) if !robbed.is_empty() => (OwnershipChange::Taken, robbed),
            (false, true) if !others_after.is_empty() => {
                (OwnershipChange::Shared, others_after.into_iter().collect())
            }
            (false, true) => (OwnershipChange::Gained, Vec::new()),
            _ if to.is_some() => (OwnershipChange::Lost, others_after.into_iter().collect()),
            _ => (OwnershipChange::Removed, Vec::new()),
        };
        changes.push(FieldChange {
            path: path_text(&path),
            from,
            to,
            effect,
            managers,
        });
    }
    changes
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Who {
    manager: String,
    applies: bool,
}

/// The fields that each manager owns, without those of subresources.
struct Owners(BTreeMap<Who, FieldSet>);

impl Owners {
    fn of(object: Option<&Object>) -> Self {
        let mut owners: BTreeMap<Who, FieldSet> = BTreeMap::new();
        let entries = object
            .and_then(|o| o.metadata("managedFields"))
            .and_then(Value::as_array);
        for entry in entries.into_iter().flatten() {
            let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
            if let Ok(fields) = FieldSet::from_json(entry.get("fieldsV1").unwrap_or(&Value::Null)) {
                let who = Who {
                    manager: text("manager").to_owned(),
                    applies: text("operation") == "Apply",
                };
                owners.entry(who).or_default().extend(fields);
            }
        }
        Self(owners)
    }

    fn fields(&self, is: impl Fn(&Who) -> bool) -> FieldSet {
        let mut all = FieldSet::default();
        self.0
            .iter()
            .filter(|(who, _)| is(who))
            .for_each(|(_, fields)| all.extend(fields.clone()));
        all
    }

    fn others(&self, path: &[PathElement], is_ours: impl Fn(&Who) -> bool) -> BTreeSet<String> {
        let owners = self
            .0
            .iter()
            .filter(|(who, fields)| !is_ours(who) && fields.contains(path));
        owners.map(|(who, _)| who.manager.clone()).collect()
    }
}

/// The paths without a longer path below them.
fn leaves(set: &FieldSet) -> Vec<Vec<PathElement>> {
    fn walk(set: &FieldSet, path: &mut Vec<PathElement>, found: &mut Vec<Vec<PathElement>>) {
        for step in set
            .members
            .iter()
            .filter(|step| !set.children.contains_key(step))
        {
            found.push(path.iter().chain([step]).cloned().collect());
        }
        for (step, below) in &set.children {
            path.push(step.clone());
            walk(below, path, found);
            path.pop();
        }
    }
    let mut found = Vec::new();
    walk(set, &mut Vec::new(), &mut found);
    found.sort_by_cached_key(|path| path_text(path));
    found
}

fn value_at(object: &serde_json::Map<String, Value>, path: &[PathElement]) -> Option<Value> {
    let (PathElement::Field(first), rest) = path.split_first()? else {
        return None;
    };
    rest.iter()
        .try_fold(object.get(first)?, |at, step| step.find(at))
        .cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(data: &Value, owners: &[(&str, &str, Value)]) -> Object {
        let entries: Vec<Value> = owners
            .iter()
            .map(|(manager, operation, fields)| json!({"manager": manager, "operation": operation, "fieldsV1": {"f:data": fields}}))
            .collect();
        Object::from_value(
            json!({"metadata": {"name": "a", "managedFields": entries}, "data": data}),
        )
        .expect("a map")
    }

    #[test]
    fn ownership_is_told_field_by_field() {
        let field = json!({});
        let before = object(
            &json!({"same": "1", "changed": "1", "lost": "1", "gone": "1", "theirs": "1"}),
            &[
                (
                    "me",
                    "Apply",
                    json!({"f:same": field, "f:changed": field, "f:lost": field, "f:gone": field}),
                ),
                (
                    "other",
                    "Update",
                    json!({"f:lost": field, "f:theirs": field, "f:shared": field}),
                ),
            ],
        );
        let after = object(
            &json!({"same": "1", "changed": "2", "lost": "1", "theirs": "2", "new": "1", "shared": "1"}),
            &[
                (
                    "me",
                    "Apply",
                    json!({"f:same": field, "f:changed": field, "f:theirs": field, "f:new": field, "f:shared": field}),
                ),
                (
                    "other",
                    "Update",
                    json!({"f:lost": field, "f:shared": field}),
                ),
            ],
        );
        let told: Vec<(String, OwnershipChange, Vec<String>)> =
            ownership_changes("me", Some(&before), &after)
                .into_iter()
                .map(|c| (c.path, c.effect, c.managers))
                .collect();
        let other = || vec!["other".to_owned()];
        assert_eq!(
            told,
            [
                (".data.changed".to_owned(), OwnershipChange::Changed, vec![]),
                (".data.gone".to_owned(), OwnershipChange::Removed, vec![]),
                (".data.lost".to_owned(), OwnershipChange::Lost, other()),
                (".data.new".to_owned(), OwnershipChange::Gained, vec![]),
                (".data.shared".to_owned(), OwnershipChange::Shared, other()),
                (".data.theirs".to_owned(), OwnershipChange::Taken, other()),
            ]
        );
    }
}

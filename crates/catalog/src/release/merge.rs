//! The three-way merge of a chart's values: the defaults of the version that is installed, what its
//! user entered, and the defaults of the next version. Pure.
//!
//! Main function: [`merge`]. What the user left at the old default takes the new one; what the user
//! changed stays. So a merge only ever leaves out values that the user entered: those that say
//! nothing about the next version. A list counts as one value.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub type Values = Map<String, Value>;

/// Whose value counts where the user and the chart both changed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prefer {
    /// The user's.
    #[default]
    Ours,
    /// The new default.
    Theirs,
}

/// A value that the user and the chart changed, each in another way. `None`: there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conflict {
    pub path: String,
    pub old: Option<Value>,
    pub ours: Value,
    pub theirs: Option<Value>,
}

/// What a merge gives. Paths have dots between their keys, and `\.` for a dot in a key.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Merged {
    /// What differs from the new defaults.
    pub values: Values,
    pub conflicts: Vec<Conflict>,
    /// Changed by the user and kept, although the new defaults do not have them.
    pub removed_in_chart: Vec<String>,
    /// Entered by the user and kept; no defaults have them.
    pub unknown_to_chart: Vec<String>,
    /// New defaults that count now.
    pub taken_from_new: Vec<String>,
    /// Old defaults that the new version does not have.
    pub gone: Vec<String>,
    /// What of the user's values is left out, as lists of keys.
    #[serde(skip)]
    pub dropped: Vec<Vec<String>>,
}

/// Merges. The arguments come from parsers that limit how deep values are.
pub fn merge(old: &Values, ours: &Values, theirs: &Values, prefer: Prefer) -> Merged {
    let mut run = Run {
        prefer,
        path: Vec::new(),
        merged: Merged::default(),
    };
    let values = run.table(Some(old), ours, Some(theirs));
    run.defaults(old, Some(ours), theirs);
    run.merged.values = values.unwrap_or_default();
    run.merged
}

struct Run {
    prefer: Prefer,
    path: Vec<String>,
    merged: Merged,
}

impl Run {
    fn path(&self) -> String {
        joined(&self.path)
    }

    fn within<T>(&mut self, key: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(key.to_owned());
        let done = work(self);
        self.path.pop();
        done
    }

    /// What stays of the user's values; `None`: nothing.
    fn table(
        &mut self,
        old: Option<&Values>,
        ours: &Values,
        theirs: Option<&Values>,
    ) -> Option<Values> {
        let mut kept = Values::new();
        for (key, value) in ours {
            let of = |values: Option<&Values>| values.and_then(|values| values.get(key)).cloned();
            let (old, theirs) = (of(old), of(theirs));
            let value = self.within(key, |run| run.value(old.as_ref(), value, theirs.as_ref()));
            if let Some(value) = value {
                kept.insert(key.clone(), value);
            }
        }
        (!kept.is_empty()).then_some(kept)
    }

    fn value(
        &mut self,
        old: Option<&Value>,
        ours: &Value,
        theirs: Option<&Value>,
    ) -> Option<Value> {
        let dropped = self.merged.dropped.len();
        let kept = match (table_or_none(old), ours.as_object(), table_or_none(theirs)) {
            (Some(before), Some(mine), Some(after)) if !mine.is_empty() => {
                self.table(before, mine, after).map(Value::Object)
            }
            _ => self.leaf(old, ours, theirs).then(|| ours.clone()),
        };
        if kept.is_none() {
            // A table of which nothing is left goes as a whole.
            self.merged.dropped.truncate(dropped);
            self.merged.dropped.push(self.path.clone());
        }
        kept
    }

    /// Whether the user's value stays.
    fn leaf(&mut self, old: Option<&Value>, ours: &Value, theirs: Option<&Value>) -> bool {
        let is = |other: Option<&Value>| other.is_some_and(|other| same(ours, other));
        if is(theirs) || is(old) {
            return false;
        }
        let is_changed = match (old, theirs) {
            (Some(old), Some(theirs)) => !same(old, theirs),
            (None, None) => false,
            _ => true,
        };
        match (old, theirs) {
            (None, None) => self.merged.unknown_to_chart.push(self.path()),
            (Some(_), None) => self.merged.removed_in_chart.push(self.path()),
            _ if is_changed => {
                let conflict = Conflict {
                    path: self.path(),
                    old: old.cloned(),
                    ours: ours.clone(),
                    theirs: theirs.cloned(),
                };
                self.merged.conflicts.push(conflict);
                return self.prefer == Prefer::Ours;
            }
            _ => {}
        }
        true
    }

    /// What changes because of defaults that the user did not touch.
    fn defaults(&mut self, old: &Values, ours: Option<&Values>, theirs: &Values) {
        for (key, value) in theirs {
            self.within(key, |run| {
                let mine = ours.and_then(|ours| ours.get(key));
                run.default(old.get(key), mine, value);
            });
        }
        for (key, value) in old {
            let mine = ours.and_then(|ours| ours.get(key));
            if !theirs.contains_key(key) && mine.is_none_or(|mine| same(mine, value)) {
                self.within(key, |run| run.merged.gone.push(run.path()));
            }
        }
    }

    fn default(&mut self, old: Option<&Value>, mine: Option<&Value>, theirs: &Value) {
        let nothing = Values::new();
        let mine = mine.filter(|mine| old.is_none_or(|old| !same(mine, old)));
        if let (Some(before), Some(after)) = (table_or_none(old), theirs.as_object())
            && !after.is_empty()
            && mine.is_none_or(Value::is_object)
        {
            let mine = mine.and_then(Value::as_object);
            return self.defaults(before.unwrap_or(&nothing), mine, after);
        }
        let is_new = old.is_none_or(|old| !same(old, theirs));
        let is_ours = mine.is_some_and(|mine| !same(mine, theirs));
        if is_new && (!is_ours || self.prefer == Prefer::Theirs) {
            self.merged.taken_from_new.push(self.path());
        }
    }
}

/// A table, or none where there is nothing; `None`: it is something else.
#[expect(clippy::option_option, reason = "absent is not the same as no table")]
fn table_or_none(value: Option<&Value>) -> Option<Option<&Values>> {
    match value {
        None => Some(None),
        Some(value) => value.as_object().map(Some),
    }
}

/// Whether two values mean the same: 1 is 1.0.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// A path as text.
pub fn joined(path: &[String]) -> String {
    let keys: Vec<String> = path.iter().map(|key| key.replace('.', "\\.")).collect();
    keys.join(".")
}

/// Lays values over others, as Helm does with several files: tables are merged, all else replaces.
pub fn overlay(below: &mut Values, above: &Values) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => overlay(below, above),
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Whether values have something at a path of [`joined`].
pub fn has(values: &Values, path: &str) -> bool {
    values.iter().any(|(key, value)| {
        let key = key.replace('.', "\\.");
        match path.strip_prefix(&key) {
            None => false,
            Some("") => true,
            Some(rest) => rest.strip_prefix('.').is_some_and(|rest| match value {
                Value::Object(inner) => has(inner, rest),
                _ => true,
            }),
        }
    })
}

#[cfg(test)]
mod tests;

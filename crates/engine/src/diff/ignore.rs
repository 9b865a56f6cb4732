//! Ignored differences: by path, or because another manager owns the field.
//!
//! Main functions: [`remove_ignored`], [`trusted_managers`] and [`check`].

use super::{Options, jq::Paths, managers};
use crate::{
    base::{IgnoreRule, IgnoreStatus},
    pattern::glob,
};
use serde_json::Value;
use tiphys_apimachinery::Object;

/// Removes the fields that JSON pointers and jq expressions select from an object.
pub fn remove_ignored(object: &mut Object, options: &Options<'_>) {
    let ignore_status = match options.ignore_status {
        IgnoreStatus::All => true,
        IgnoreStatus::Crd => crate::track::is_crd(object),
        IgnoreStatus::None => false,
    };
    if ignore_status {
        object.0.remove("status");
    }
    let rules: Vec<&IgnoreRule> = matching(object, options).collect();
    if rules.is_empty() {
        return;
    }
    let mut value = Value::Object(std::mem::take(&mut object.0));
    for pointer in rules.iter().flat_map(|rule| &rule.json_pointers) {
        remove(&mut value, pointer);
    }
    for expression in rules.iter().flat_map(|rule| &rule.jq_path_expressions) {
        // As in Argo CD, an expression that fails on this object leaves it unchanged; one that
        // cannot be parsed was refused by `check`.
        if let Ok(paths) = Paths::parse(expression) {
            let _ = paths.delete_from(&mut value, expression, options.spending);
        }
    }
    *object = Object::from_value(value).unwrap_or_default();
}

/// The first expression that cannot be used, and why.
pub fn check(rules: &[IgnoreRule]) -> Result<(), String> {
    let expressions = rules.iter().flat_map(|rule| &rule.jq_path_expressions);
    let faulty = expressions
        .map(|e| (e, Paths::parse(e)))
        .find_map(|(e, parsed)| Some((e, parsed.err()?)));
    match faulty {
        Some((expression, error)) => Err(format!(
            "ignoreDifferences: jqPathExpressions {expression:?}: {error}; or name the fields in jsonPointers"
        )),
        None => Ok(()),
    }
}

fn matching<'a>(object: &Object, options: &Options<'a>) -> impl Iterator<Item = &'a IgnoreRule> {
    let (group, kind) = (object.group().to_owned(), object.kind().to_owned());
    let (name, namespace) = (object.name().to_owned(), object.namespace().to_owned());
    options.ignore.iter().filter(move |rule| {
        glob(&rule.group, &group)
            && glob(&rule.kind, &kind)
            && (rule.name.is_empty() || rule.name == name)
            && (rule.namespace.is_empty() || rule.namespace == namespace)
    })
}

/// Removes the field that a JSON pointer selects, if it exists. The document itself cannot be
/// removed.
fn remove(document: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return;
    };
    let last = last.replace("~1", "/").replace("~0", "~");
    match document.pointer_mut(parent) {
        Some(Value::Object(map)) => drop(map.remove(&last)),
        Some(Value::Array(list)) => {
            if let Ok(index) = last.parse::<usize>()
                && index < list.len()
            {
                list.remove(index);
            }
        }
        _ => {}
    }
}

/// Removes a field from both objects if a trusted manager owns it and its value differs from the
/// desired one.
pub fn trusted_managers(desired: &mut Object, live: &mut Object, options: &Options<'_>) {
    let managers: Vec<&String> = matching(desired, options)
        .flat_map(|rule| &rule.managed_fields_managers)
        .collect();
    if !managers.is_empty() {
        managers::hand_over(desired, live, &managers);
    }
}

//! What kustomize says when a built-in plugin refuses its configuration.
//!
//! Main function: [`trouble`]. kustomize hands the fields of a kustomization to its plugins as YAML
//! and prints that YAML before the reason.

use super::fault::{Fault, HIDDEN, hidden};
use super::kustomization::{HelmChart, HelmGlobals, Patch};
use serde::Serialize;
use serde_json::Value;

/// A longer configuration is cut, so that the reason behind it is not.
const LONGEST: usize = 4 << 10;

/// Prefixes the reason with the configuration.
pub(super) fn trouble(plugin: &str, config: &Value, fault: Fault) -> Fault {
    if fault.is_final() {
        return fault;
    }
    let mut text = text(config);
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push_str("…\n");
    }
    fault.within(format!(
        "trouble configuring builtin {plugin} with config: `\n{text}`"
    ))
}

/// The fields that are set.
pub(super) fn fields(of: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(of).unwrap_or_default();
    leave_out_zeros(&mut value);
    value
}

/// The configuration of a chart, without its values.
pub(super) fn chart_fields(globals: &HelmGlobals, chart: &HelmChart) -> Value {
    let inline = HelmChart {
        values_inline: serde_json::Map::new(),
        ..chart.clone()
    };
    let mut all = serde_json::Map::new();
    for part in [fields(globals), fields(&inline)] {
        if let Value::Object(part) = part {
            all.extend(part);
        }
    }
    if !chart.values_inline.is_empty() {
        all.insert("valuesInline".to_owned(), HIDDEN.into());
    }
    Value::Object(all)
}

/// The fields of a patch, without its text.
pub(super) fn patch_fields(patch: &Patch) -> Value {
    fields(&Patch {
        patch: hidden(&patch.patch).to_owned(),
        ..patch.clone()
    })
}

/// An entry of `patchesStrategicMerge`: a path, or [`HIDDEN`] for the text of a patch.
pub(super) fn shown_entry(entry: &str) -> &str {
    let is_text = entry.contains(['\n', '{']) || entry.contains(": ");
    if is_text { HIDDEN } else { entry }
}

pub(super) fn text(config: &Value) -> String {
    tiphys_gocompat::yaml::to_string(config)
}

/// Go leaves out zero values; a struct that is there stays, even if nothing in it is set.
fn leave_out_zeros(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            entries.retain(|_, value| match value {
                Value::Null => false,
                Value::Bool(is) => *is,
                Value::Number(number) => number.as_i64() != Some(0),
                Value::String(text) => !text.is_empty(),
                Value::Array(items) => !items.is_empty(),
                Value::Object(entries) => !entries.is_empty(),
            });
            entries.values_mut().for_each(leave_out_zeros);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_zeros),
        _ => {}
    }
}

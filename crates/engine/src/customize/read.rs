//! Reads the customizations from argocd-cm. Main function: [`read`].

use super::{Customization, Customizations, UpdateRules, updates::COMPARE_OPTIONS};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::collections::BTreeMap;
use tiphys_api::resource::KnownTypeField;
use tiphys_gocompat::yaml;
use tiphys_lua::Clock;

const KEY: &str = "resource.customizations";

/// The entry of a kind in `resource.customizations`.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    #[serde(rename = "health.lua")]
    health: Option<String>,
    #[serde(rename = "health.lua.useOpenLibs")]
    open_libs: Option<bool>,
    actions: Option<String>,
    /// YAML in YAML.
    #[serde(rename = "ignoreDifferences")]
    ignore_differences: Option<String>,
    /// YAML in YAML.
    #[serde(rename = "ignoreResourceUpdates")]
    ignore_resource_updates: Option<String>,
    #[serde(rename = "knownTypeFields")]
    known_type_fields: Option<Vec<KnownTypeField>>,
}

/// Reads the customizations from argocd-cm. A key that cannot be parsed is reported as a problem;
/// the rest applies.
pub fn read(config: &BTreeMap<String, String>, clock: Clock) -> (Customizations, Vec<String>) {
    let mut reader = Reader {
        kinds: BTreeMap::new(),
        problems: Vec::new(),
    };
    if let Some(text) = config.get(KEY) {
        reader.whole(text);
    }
    for (key, text) in config {
        if let Some((what, kind)) = key
            .strip_prefix(KEY)
            .and_then(|rest| rest.strip_prefix('.')?.split_once('.'))
            && let Err(why) = reader.split(what, kind, text)
        {
            reader.problem(key, &why);
        }
    }
    let (updates, compare_options) = UpdateRules::read(config, &reader.kinds);
    if let Err(why) = compare_options {
        reader.problem(COMPARE_OPTIONS, &why);
    }
    (
        Customizations {
            kinds: reader.kinds,
            updates,
            clock,
        },
        reader.problems,
    )
}

struct Reader {
    kinds: BTreeMap<String, Customization>,
    problems: Vec<String>,
}

impl Reader {
    fn problem(&mut self, key: &str, why: &str) {
        self.problems.push(format!("argocd-cm: {key}: {why}"));
    }

    fn whole(&mut self, text: &str) {
        let kinds: BTreeMap<String, Value> = match parsed(text) {
            Ok(kinds) => kinds,
            Err(why) => return self.problem(KEY, &why),
        };
        for (kind, value) in kinds {
            match serde_json::from_value::<Option<Raw>>(value)
                .map_err(|e| e.to_string())
                .and_then(|raw| customization(raw.unwrap_or_default()))
            {
                Ok(customization) => drop(self.kinds.insert(kind, customization)),
                Err(why) => self.problem(&format!("{KEY}: {kind}"), &why),
            }
        }
    }

    /// `resource.customizations.<what>.<group_Kind>`.
    fn split(&mut self, what: &str, kind: &str, text: &str) -> Result<(), String> {
        let kind = match kind.split('_').collect::<Vec<_>>()[..] {
            ["all"] => "*/*".to_owned(),
            [kind] if !kind.is_empty() => kind.to_owned(),
            [group, kind] => format!("{group}/{kind}"),
            _ => return Err(format!("the kind must be group_Kind or Kind, not {kind:?}")),
        };
        let customization = self.kinds.entry(kind).or_default();
        match what {
            "health" => text.clone_into(&mut customization.health),
            "useOpenLibs" => customization.open_libs = boolean(text)?,
            "actions" => text.clone_into(&mut customization.actions),
            "ignoreDifferences" => customization.ignore_differences = parsed(text)?,
            "knownTypeFields" => customization.known_type_fields = parsed(text)?,
            "ignoreResourceUpdates" => customization.ignore_resource_updates = parsed(text)?,
            other => return Err(format!("resource customization type {other} not supported")),
        }
        Ok(())
    }
}

fn customization(raw: Raw) -> Result<Customization, String> {
    Ok(Customization {
        health: raw.health.unwrap_or_default(),
        open_libs: raw.open_libs.unwrap_or_default(),
        actions: raw.actions.unwrap_or_default(),
        ignore_differences: parsed(&raw.ignore_differences.unwrap_or_default())?,
        ignore_resource_updates: parsed(&raw.ignore_resource_updates.unwrap_or_default())?,
        known_type_fields: raw.known_type_fields.unwrap_or_default(),
    })
}

/// Parses a boolean as Go does.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false")),
    }
}

/// Parses YAML into a type; an empty text gives its default.
pub fn parsed<T: DeserializeOwned + Default>(text: &str) -> Result<T, String> {
    let mut documents =
        yaml::parse_documents(text, &yaml::Limits::default()).map_err(|e| e.to_string())?;
    let value = if documents.is_empty() {
        Value::Null
    } else {
        documents.swap_remove(0).value
    };
    if value.is_null() {
        return Ok(T::default());
    }
    serde_json::from_value(value).map_err(|e| e.to_string())
}

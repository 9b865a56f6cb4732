//! argocd-cm. Main type: [`Config`], its texts, and the parsed values that every comparison needs.

use super::settings::Texts;
use serde_json::Value;
use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};
use tiphys_engine::types::{ExclusionRule, IgnoreStatus};
use tiphys_gocompat::yaml;

/// The texts. They never change, so parsed values stay valid.
#[derive(Clone, Default)]
pub struct Config {
    texts: Texts,
    parsed: OnceLock<Parsed>,
}

#[derive(Clone)]
struct Parsed {
    exclusions: Result<Arc<[ExclusionRule]>, String>,
    inclusions: Result<Arc<[ExclusionRule]>, String>,
    ignore_aggregated_roles: bool,
    ignore_status: IgnoreStatus,
}

impl From<Texts> for Config {
    fn from(texts: Texts) -> Self {
        Self {
            texts,
            parsed: OnceLock::new(),
        }
    }
}

impl Deref for Config {
    type Target = Texts;

    fn deref(&self) -> &Texts {
        &self.texts
    }
}

impl Config {
    fn parsed(&self) -> &Parsed {
        self.parsed.get_or_init(|| {
            let list = |key, absent: fn() -> Vec<ExclusionRule>| {
                self.get(key)
                    .map_or_else(|| Ok(absent()), |text| rules(key, text))
            };
            let options = self
                .get("resource.compareoptions")
                .and_then(|text| yaml_of(text).ok())
                .unwrap_or_default();
            Parsed {
                exclusions: list("resource.exclusions", crate::cache::default_exclusions)
                    .map(Into::into),
                inclusions: list("resource.inclusions", Vec::new).map(Into::into),
                ignore_aggregated_roles: options
                    .get("ignoreAggregatedRoles")
                    .and_then(Value::as_bool)
                    .unwrap_or_default(),
                ignore_status: IgnoreStatus::of_option(options.get("ignoreResourceStatusField")),
            }
        })
    }

    /// `resource.exclusions`; Argo CD's shipped default if the key is absent.
    pub fn exclusions(&self) -> Result<Arc<[ExclusionRule]>, String> {
        self.parsed().exclusions.clone()
    }

    /// `resource.inclusions`.
    pub fn inclusions(&self) -> Result<Arc<[ExclusionRule]>, String> {
        self.parsed().inclusions.clone()
    }

    /// Whether the rules of aggregated roles are ignored in comparisons
    /// (`resource.compareoptions`).
    pub fn ignore_aggregated_roles(&self) -> bool {
        self.parsed().ignore_aggregated_roles
    }

    /// `resource.compareoptions`: `ignoreResourceStatusField`.
    pub fn ignore_status(&self) -> IgnoreStatus {
        self.parsed().ignore_status
    }
}

fn yaml_of(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let mut documents =
        yaml::parse_documents(text, &yaml::Limits::default()).map_err(|e| e.to_string())?;
    Ok(if documents.is_empty() {
        Value::Null
    } else {
        documents.swap_remove(0).value
    })
}

fn rules(key: &str, text: &str) -> Result<Vec<ExclusionRule>, String> {
    let value = yaml_of(text).map_err(|e| format!("argocd-cm: {key}: {e}"))?;
    if value.is_null() {
        return Ok(Vec::new());
    }
    serde_json::from_value(value).map_err(|e| {
        format!("argocd-cm: {key}: {e}; it must be a list of apiGroups, kinds and clusters")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusions_are_read_from_yaml_and_default_to_the_shipped_ones() {
        let exclusions = |text: &str| {
            Config::from(Texts::from([(
                "resource.exclusions".to_owned(),
                text.to_owned(),
            )]))
            .exclusions()
        };
        assert!(
            Config::default()
                .exclusions()
                .expect("shipped")
                .iter()
                .any(|r| r.kinds.contains(&"EndpointSlice".to_owned()))
        );
        assert_eq!(
            exclusions("- apiGroups: ['*']\n  kinds: [Foo]\n").expect("valid")[0].kinds,
            ["Foo"]
        );
        assert!(
            exclusions("- a: [")
                .expect_err("broken")
                .starts_with("argocd-cm: resource.exclusions: ")
        );
    }
}

//! Which updates of live objects Applications ignore (`ignoreResourceUpdates`).
//!
//! Main type: [`UpdateRules`]; what they mean for an object is in `crate::updates`.

use super::{Customization, parsed, read::boolean};
use crate::{
    base::{IgnoreRule, IgnoreStatus},
    pattern::glob,
};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tiphys_apimachinery::Object;

/// The fields that are ignored when an object is updated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateRules {
    enabled: bool,
    ignore: Vec<IgnoreRule>,
    ignore_status: IgnoreStatus,
}

pub(super) const COMPARE_OPTIONS: &str = "resource.compareoptions";

/// The settings in `resource.compareoptions`.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CompareOptions {
    /// Used elsewhere; read here so that a wrong one is reported with the others, which stay valid.
    ignore_aggregated_roles: Option<Value>,
    ignore_resource_status_field: Option<Value>,
    ignore_differences_on_resource_updates: Option<bool>,
}

impl UpdateRules {
    /// Reads argocd-cm, given its customizations, and says why `resource.compareoptions` cannot be
    /// read. Differences that are ignored are ignored in updates too, unless
    /// `ignoreDifferencesOnResourceUpdates` is false.
    pub(super) fn read(
        config: &BTreeMap<String, String>,
        kinds: &BTreeMap<String, Customization>,
    ) -> (Self, Result<(), String>) {
        let text = |key: &str| config.get(key).map_or("", String::as_str);
        let enabled = text("resource.ignoreResourceUpdatesEnabled");
        let read = parsed::<CompareOptions>(text(COMPARE_OPTIONS));
        let (options, outcome) = match read {
            Ok(options) => {
                let is_good = options
                    .ignore_aggregated_roles
                    .as_ref()
                    .is_none_or(Value::is_boolean);
                let wrong = || "ignoreAggregatedRoles is neither true nor false".to_owned();
                (options, is_good.then_some(()).ok_or_else(wrong))
            }
            Err(why) => (CompareOptions::default(), Err(why)),
        };
        let as_differences = options
            .ignore_differences_on_resource_updates
            .unwrap_or(true);
        let status = options.ignore_resource_status_field.as_ref();
        let of_kind = |(key, c): (&String, &Customization)| {
            let differences = as_differences.then_some(&c.ignore_differences);
            let rules = [Some(&c.ignore_resource_updates), differences]
                .into_iter()
                .flatten();
            rules
                .filter_map(|o| super::ignore_rule(key, o))
                .collect::<Vec<_>>()
        };
        let rules = Self {
            enabled: enabled.is_empty() || boolean(enabled).unwrap_or(false),
            ignore: kinds.iter().flat_map(of_kind).collect(),
            ignore_status: if as_differences {
                IgnoreStatus::of_option(status)
            } else {
                IgnoreStatus::None
            },
        };
        (rules, outcome)
    }

    /// The rules, and which part of the status they ignore.
    pub fn ignored(&self) -> (&[IgnoreRule], IgnoreStatus) {
        (&self.ignore, self.ignore_status)
    }

    /// Whether updates are ignored at all (`resource.ignoreResourceUpdatesEnabled`).
    pub(crate) fn enabled(&self) -> bool {
        self.enabled
    }

    pub(super) fn run_on(&self, object: &Object) -> bool {
        let is_for = |rule: &IgnoreRule| {
            glob(&rule.group, object.group()) && glob(&rule.kind, object.kind())
        };
        self.enabled
            && self
                .ignore
                .iter()
                .any(|rule| !rule.jq_path_expressions.is_empty() && is_for(rule))
    }
}

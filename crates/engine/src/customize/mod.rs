//! Resource customizations in argocd-cm: `resource.customizations` and its split keys.
//!
//! Main type: [`Customizations`]. A user's customization takes precedence over the built-in rules,
//! and an exact kind over a wildcard.

mod read;
mod updates;

use crate::{
    base::{Health, HealthStatus, IgnoreRule},
    pattern::glob,
    spending::Spending,
};
use serde_json::Value;
use std::collections::BTreeMap;
use tiphys_api::resource::{KnownTypeField, OverrideIgnoreDiff};
use tiphys_apimachinery::Object;
use tiphys_lua::{Clock, Limit, Limits, LuaError, Returned, Run};

pub use read::read;
pub(crate) use read::{boolean, parsed};
pub use updates::UpdateRules;

/// The customization of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Customization {
    /// Lua script; empty if health is not customized.
    pub health: String,
    pub open_libs: bool,
    /// YAML with scripts; empty if actions are not customized.
    pub actions: String,
    pub ignore_differences: OverrideIgnoreDiff,
    /// Fields that are ignored when an object is updated.
    pub ignore_resource_updates: OverrideIgnoreDiff,
    pub known_type_fields: Vec<KnownTypeField>,
}

/// All customizations.
#[derive(Clone)]
pub struct Customizations {
    /// Keyed by `group/Kind`, or just the kind for the core group; either part may contain
    /// wildcards.
    kinds: BTreeMap<String, Customization>,
    updates: UpdateRules,
    clock: Clock,
}

impl Default for Customizations {
    fn default() -> Self {
        Self {
            kinds: BTreeMap::new(),
            updates: UpdateRules::default(),
            clock: || jiff::Timestamp::UNIX_EPOCH,
        }
    }
}

impl PartialEq for Customizations {
    fn eq(&self, other: &Self) -> bool {
        self.kinds == other.kinds
    }
}

impl std::fmt::Debug for Customizations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(&self.kinds).finish()
    }
}

/// `group/Kind`, or just the kind for the core group.
pub fn key(object: &Object) -> String {
    match object.group() {
        "" => object.kind().to_owned(),
        group => format!("{group}/{}", object.kind()),
    }
}

impl Customizations {
    /// The customization for exactly this kind.
    pub fn exact(&self, object: &Object) -> Option<&Customization> {
        self.kinds.get(&key(object))
    }

    pub fn kinds(&self) -> impl Iterator<Item = (&String, &Customization)> {
        self.kinds.iter()
    }

    fn health_script(&self, object: &Object) -> Option<&Customization> {
        let key = key(object);
        let has_script = |c: &&Customization| !c.health.is_empty();
        let exact = self.kinds.get(&key).filter(has_script);
        exact.or_else(|| {
            self.kinds
                .iter()
                .find(|(pattern, c)| has_script(c) && glob(pattern, &key))
                .map(|(_, c)| c)
        })
    }

    /// Whether there is any health script.
    pub fn has_health_scripts(&self) -> bool {
        self.kinds.values().any(|c| !c.health.is_empty())
    }

    /// Whether a user's program runs on this object when it changes: a health script, or a jq
    /// expression that selects ignored fields.
    pub fn run_on(&self, object: &Object) -> bool {
        self.judges_health(object) || self.updates.run_on(object)
    }

    /// Whether a user's script computes the health of this object.
    pub fn judges_health(&self, object: &Object) -> bool {
        self.health_script(object).is_some()
    }

    /// The health of a live object by the user's script. `None`: no script applies; `Some(None)`:
    /// the script returned no health.
    pub fn health(
        &self,
        object: &Object,
        spending: Option<&Spending>,
    ) -> Option<Result<Option<Health>, LuaError>> {
        let customization = self.health_script(object)?;
        let run = Run {
            script: &customization.health,
            open_libs: customization.open_libs,
            object: &Value::Object(object.0.clone()),
            parameters: &[],
        };
        let all = Limits::new(self.clock);
        let steps = spending.map_or(all.steps, |s| s.grant(all.steps));
        let (returned, used) = tiphys_lua::run_counted(&run, &Limits { steps, ..all });
        if let Some(spending) = spending {
            spending.spend(used);
            if matches!(returned, Err(LuaError::Limit(Limit::Steps))) && steps < all.steps {
                let text = spending.refuse(|| format!("health script of {}", key(object)));
                // The refusal is reported here; differences are judged independently.
                spending.take_refusal();
                return Some(Err(LuaError::Script(text)));
            }
        }
        Some(returned.and_then(health_of))
    }

    /// Runs a script on an object.
    pub fn run(
        &self,
        script: &str,
        open_libs: bool,
        object: &Object,
        parameters: &[(String, String)],
    ) -> Result<Returned, LuaError> {
        let run = Run {
            script,
            open_libs,
            object: &Value::Object(object.0.clone()),
            parameters,
        };
        tiphys_lua::run(&run, &Limits::new(self.clock))
    }

    /// The `ignoreDifferences` rules of all kinds that have some.
    pub fn ignore_rules(&self) -> Vec<IgnoreRule> {
        self.kinds
            .iter()
            .filter_map(|(key, c)| ignore_rule(key, &c.ignore_differences))
            .collect()
    }

    /// Rules for updates of live objects that are ignored.
    pub fn updates(&self) -> &UpdateRules {
        &self.updates
    }
}

/// The customization of a kind as a rule, if it ignores anything.
fn ignore_rule(key: &str, said: &OverrideIgnoreDiff) -> Option<IgnoreRule> {
    if said.json_pointers.is_empty()
        && said.jq_path_expressions.is_empty()
        && said.managed_fields_managers.is_empty()
    {
        return None;
    }
    let (group, kind) = key.split_once('/').unwrap_or(("", key));
    Some(IgnoreRule {
        group: group.to_owned(),
        kind: kind.to_owned(),
        json_pointers: said.json_pointers.clone(),
        jq_path_expressions: said.jq_path_expressions.clone(),
        managed_fields_managers: said.managed_fields_managers.clone(),
        ..IgnoreRule::default()
    })
}

/// A script that returns nothing, or fields of the wrong type, returns no health.
fn health_of(returned: Returned) -> Result<Option<Health>, LuaError> {
    let fields = match returned {
        Returned::Nil => return Ok(None),
        Returned::Table(Value::Object(fields)) => fields,
        Returned::Table(_) => return Ok(None),
        other => {
            return Err(LuaError::Script(format!(
                "expect table output from Lua script, not {other}"
            )));
        }
    };
    let field = |name: &str| match fields
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
    {
        Some((_, Value::String(text))) => Some(text.clone()),
        None => Some(String::new()),
        Some(_) => None,
    };
    let (Some(status), Some(message)) = (field("status"), field("message")) else {
        return Ok(None);
    };
    Ok(Some(match HealthStatus::parse(&status) {
        Some(status) => Health::new(status, message),
        None => Health::new(
            HealthStatus::Unknown,
            "Lua returned an invalid health status",
        ),
    }))
}

#[cfg(test)]
mod tests;

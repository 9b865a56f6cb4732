//! What users say about kinds in argocd-cm: `resource.customizations` and its split keys.
//!
//! Main type: [`Customizations`]. A user's word comes before what is built in, an exact kind before
//! a wildcard.

mod read;
mod updates;

use crate::{
    pattern::glob,
    spending::Spending,
    types::{Health, HealthStatus, IgnoreRule},
};
use serde_json::Value;
use std::collections::BTreeMap;
use tiphys_api::resource::{KnownTypeField, OverrideIgnoreDiff};
use tiphys_apimachinery::Object;
use tiphys_lua::{Clock, Limit, Limits, LuaError, Returned, Run};

pub(crate) use read::parsed;
pub use read::read;
pub use updates::UpdateRules;

/// What is said about one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Customization {
    /// Lua; empty when nothing is said about health.
    pub health: String,
    pub open_libs: bool,
    /// YAML with scripts; empty when nothing is said about actions.
    pub actions: String,
    pub ignore_differences: OverrideIgnoreDiff,
    /// What does not count in an update.
    pub ignore_resource_updates: OverrideIgnoreDiff,
    pub known_type_fields: Vec<KnownTypeField>,
}

/// All customizations.
#[derive(Clone)]
pub struct Customizations {
    /// By `group/Kind`, or the kind alone for the core group; either can have wildcards.
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

/// `group/Kind`, or the kind alone for the core group.
pub fn key(object: &Object) -> String {
    match object.group() {
        "" => object.kind().to_owned(),
        group => format!("{group}/{}", object.kind()),
    }
}

impl Customizations {
    /// What is said about exactly this kind.
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

    /// Whether users have scripts for health at all.
    pub fn has_health_scripts(&self) -> bool {
        self.kinds.values().any(|c| !c.health.is_empty())
    }

    /// Whether users' programs run on this object when it changes: a script for its health, or a jq
    /// expression of what does not matter.
    pub fn run_on(&self, object: &Object) -> bool {
        self.judges_health(object) || self.updates.run_on(object)
    }

    /// Whether a user's script decides about the health of this object.
    pub fn judges_health(&self, object: &Object) -> bool {
        self.health_script(object).is_some()
    }

    /// The health of a live object by the user's script: `None` when no script is for it,
    /// `Some(None)` when the script has nothing to say.
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
                // It is told here; differences are judged by themselves.
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

    /// Differences that do not count, for each kind that says so.
    pub fn ignore_rules(&self) -> Vec<IgnoreRule> {
        self.kinds
            .iter()
            .filter_map(|(key, c)| ignore_rule(key, &c.ignore_differences))
            .collect()
    }

    /// Which updates of live objects do not matter.
    pub fn updates(&self) -> &UpdateRules {
        &self.updates
    }
}

/// What is said of a kind as a rule, if anything is.
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

/// A script that returns nothing, or fields of other types, has nothing to say.
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

//! Actions that users define in argocd-cm, as Lua. Main type: [`Scripted`].

use super::{ActionError, Impact, Operation, Parameter};
use crate::customize::{Customizations, parsed};
use serde_json::{Map, Value};
use tiphys_api::resource::{ResourceAction, ResourceActions};
use tiphys_apimachinery::Object;
use tiphys_lua::{LuaError, Returned};

/// The actions defined for one kind.
pub struct Scripted(ResourceActions);

/// The actions that users define for the object's kind. Wildcard entries cannot define actions.
pub fn of(live: &Object, customizations: &Customizations) -> Result<Option<Scripted>, ActionError> {
    let Some(customization) = customizations.exact(live).filter(|c| !c.actions.is_empty()) else {
        return Ok(None);
    };
    parsed(&customization.actions)
        .map(|actions| Some(Scripted(actions)))
        .map_err(ActionError::Refused)
}

impl Scripted {
    /// Whether the built-in actions remain available.
    pub fn with_built_in(&self) -> bool {
        self.0.merge_builtin_actions
    }

    pub fn script(&self, action: &str) -> Option<&str> {
        self.0
            .definitions
            .iter()
            .find(|d| d.name == action)
            .map(|d| d.action_lua.as_str())
    }

    pub fn discover(
        &self,
        live: &Object,
        customizations: &Customizations,
    ) -> Result<Vec<ResourceAction>, ActionError> {
        let fields =
            match table(customizations.run(&self.0.action_discovery_lua, false, live, &[])?)? {
                Value::Object(fields) => fields,
                Value::Array(items) if items.is_empty() => return Ok(Vec::new()),
                _ => {
                    return Err(ActionError::Refused(
                        "error unmarshaling action table: it must have the actions by name".into(),
                    ));
                }
            };
        fields.into_iter().map(described).collect()
    }
}

/// An action as a script describes it. An empty Lua table may be an empty map or an empty list.
fn described((name, value): (String, Value)) -> Result<ResourceAction, ActionError> {
    let mut action = match value {
        Value::Array(_) => ResourceAction::default(),
        value => serde_json::from_value(value).map_err(|e| {
            ActionError::Refused(format!("error unmarshaling resource action: {e}"))
        })?,
    };
    if action.name.is_empty() {
        action.name = name;
    }
    Ok(action)
}

fn table(returned: Returned) -> Result<Value, ActionError> {
    match returned {
        Returned::Table(value) => Ok(value),
        other => Err(
            LuaError::Script(format!("expect table output from Lua script, not {other}")).into(),
        ),
    }
}

/// Runs an action's script. It returns the changed object, or a list of impacts.
pub fn run(
    live: &Object,
    script: &str,
    parameters: &[Parameter],
    customizations: &Customizations,
) -> Result<Vec<Impact>, ActionError> {
    match table(customizations.run(script, false, live, parameters)?)? {
        Value::Array(items) => items.into_iter().map(|item| impact(item, live)).collect(),
        object => Ok(vec![Impact {
            operation: Operation::Patch,
            object: cleaned(object, live)?,
        }]),
    }
}

fn impact(mut item: Value, live: &Object) -> Result<Impact, ActionError> {
    let object = item
        .get_mut("resource")
        .map(Value::take)
        .unwrap_or_default();
    match item["operation"].as_str() {
        Some("patch") => Ok(Impact {
            operation: Operation::Patch,
            object: cleaned(object, live)?,
        }),
        Some("create") => Ok(Impact {
            operation: Operation::Create,
            object: as_object(object)?,
        }),
        _ => Err(ActionError::Refused(format!(
            "unsupported operation: {}",
            item["operation"]
        ))),
    }
}

fn as_object(value: Value) -> Result<Object, ActionError> {
    Object::from_value(value).map_err(|e| ActionError::Refused(e.to_string()))
}

/// Lua cannot distinguish an empty map from an empty list: an empty map of the live object is
/// restored.
fn cleaned(mut object: Value, live: &Object) -> Result<Object, ActionError> {
    clean(&mut object, &Value::Object(live.0.clone()));
    as_object(object)
}

fn clean(new: &mut Value, old: &Value) {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            for (key, value) in new {
                if let Some(old) = old.get(key) {
                    clean(value, old);
                }
            }
        }
        (Value::Array(new), Value::Array(old)) => new
            .iter_mut()
            .zip(old)
            .for_each(|(new, old)| clean(new, old)),
        (new @ Value::Array(_), Value::Object(_)) if new.as_array().is_some_and(Vec::is_empty) => {
            *new = Value::Object(Map::new())
        }
        _ => {}
    }
}

//! Resource actions: what a user can do to one live object, such as restarting or resuming it.
//!
//! Main functions: [`discover`] and [`run`]. Actions that users define in argocd-cm take
//! precedence; the rest is built in, one file per family of kinds. An action is a function from the
//! live object to the objects to patch or create; nothing is written here.

mod apps;
mod argo;
mod batch;
mod databases;
mod edit;
mod flux;
mod numaproj;
mod others;
mod scripted;

use crate::customize::Customizations;
use edit::Edit;
use jiff::Timestamp;
use serde_json::Value;
use tiphys_api::resource::{ResourceAction, ResourceActionParam};
use tiphys_apimachinery::Object;
use tiphys_lua::LuaError;

/// The operation on the object of an [`Impact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Patch the live object to this state.
    Patch,
    /// Create this object.
    Create,
}

impl Operation {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::Create => "create",
        }
    }
}

/// One object that an action patches or creates.
#[derive(Clone, Debug, PartialEq)]
pub struct Impact {
    pub operation: Operation,
    pub object: Object,
}

/// Why an action does not exist or cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    #[error("built-in script does not exist")]
    Unknown,
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Lua(#[from] LuaError),
}

/// Name and value.
pub type Parameter = (String, String);

/// `None`: no such action.
type Ran = Option<Result<Vec<Impact>, ActionError>>;

/// One run of a built-in action.
struct Call<'a> {
    action: &'a str,
    live: &'a Object,
    parameters: &'a [Parameter],
    now: Timestamp,
}

/// The built-in actions of a kind.
struct Kind {
    discover: fn(&Value) -> Vec<ResourceAction>,
    run: fn(&Call<'_>) -> Ran,
}

/// The actions of a live object, including those that are currently disabled.
pub fn discover(
    live: &Object,
    customizations: &Customizations,
) -> Result<Vec<ResourceAction>, ActionError> {
    let scripted = scripted::of(live, customizations)?;
    let mut actions = match &scripted {
        Some(scripted) => scripted.discover(live, customizations)?,
        None => Vec::new(),
    };
    if scripted.is_none_or(|s| s.with_built_in())
        && let Some(kind) = built_in(live)
    {
        let named = (kind.discover)(&Value::Object(live.0.clone()));
        for action in named {
            if actions.iter().all(|a| a.name != action.name) {
                actions.push(action);
            }
        }
    }
    Ok(actions)
}

/// The patches and creations of an action. It does not check whether the action is currently
/// disabled; [`discover`] does.
pub fn run(
    live: &Object,
    action: &str,
    parameters: &[Parameter],
    customizations: &Customizations,
    now: Timestamp,
) -> Result<Vec<Impact>, ActionError> {
    if let Some(scripted) = scripted::of(live, customizations)?
        && let Some(script) = scripted.script(action)
    {
        return scripted::run(live, script, parameters, customizations);
    }
    let kind = built_in(live).ok_or(ActionError::Unknown)?;
    (kind.run)(&Call {
        action,
        live,
        parameters,
        now,
    })
    .unwrap_or(Err(ActionError::Unknown))
}

fn built_in(live: &Object) -> Option<Kind> {
    let (group, kind) = (live.group(), live.kind());
    Some(match group {
        "apps" => apps::kind(kind)?,
        "argoproj.io" | "promoter.argoproj.io" => argo::kind(group, kind)?,
        "batch" => batch::kind(kind)?,
        "k8s.mariadb.com" | "postgresql.cnpg.io" | "psmdb.percona.com" => {
            databases::kind(group, kind)?
        }
        "numaflow.numaproj.io" | "numaplane.numaproj.io" => numaproj::kind(group, kind)?,
        "core.strimzi.io" | "external-secrets.io" | "keda.sh" => others::kind(group, kind)?,
        _ => flux::kind(group, kind)?,
    })
}

impl Call<'_> {
    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    fn time(&self, format: &str) -> String {
        self.now.strftime(format).to_string()
    }

    /// The time in seconds, as in `2024-01-31T12:00:00Z`.
    fn timestamp(&self) -> String {
        self.time("%Y-%m-%dT%H:%M:%SZ")
    }

    /// A patch of the object.
    fn patch(&self, change: impl FnOnce(&mut Edit)) -> Ran {
        self.try_patch(|edit| {
            change(edit);
            Ok(())
        })
    }

    fn try_patch(&self, change: impl FnOnce(&mut Edit) -> Result<(), ActionError>) -> Ran {
        let mut edit = Edit::new(self.live);
        Some(change(&mut edit).map(|()| {
            vec![Impact {
                operation: Operation::Patch,
                object: edit.done(),
            }]
        }))
    }

    fn create(&self, object: Value) -> Ran {
        let object = Object::from_value(object).map_err(|e| ActionError::Refused(e.to_string()));
        Some(object.map(|object| {
            vec![Impact {
                operation: Operation::Create,
                object,
            }]
        }))
    }

    /// A new object in the same namespace, owned by the live one; `fields` are the rest of its
    /// metadata.
    fn owned(
        &self,
        name: String,
        mut fields: serde_json::Map<String, Value>,
        controller: bool,
    ) -> Value {
        let live = self.live;
        let mut owner = serde_json::json!({"apiVersion": live.api_version(), "kind": live.kind(), "name": live.name()});
        if !live.uid().is_empty() {
            owner["uid"] = live.uid().into();
        }
        if controller {
            owner["blockOwnerDeletion"] = true.into();
            owner["controller"] = true.into();
        }
        fields.insert("name".into(), name.into());
        fields.insert("namespace".into(), live.namespace().into());
        fields.insert("ownerReferences".into(), Value::Array(vec![owner]));
        Value::Object(fields)
    }
}

/// An enabled action with nothing but a name.
fn action(name: &str) -> ResourceAction {
    ResourceAction {
        name: name.to_owned(),
        ..ResourceAction::default()
    }
}

/// Builder methods for the remaining fields of an action.
trait Described {
    fn disabled(self, disabled: bool) -> Self;
    fn icon(self, class: &str) -> Self;
    fn called(self, name: &str) -> Self;
    fn with_parameter(self, name: &str) -> Self;
}

impl Described for ResourceAction {
    fn disabled(self, disabled: bool) -> Self {
        Self { disabled, ..self }
    }

    fn icon(self, class: &str) -> Self {
        Self {
            icon_class: class.to_owned(),
            ..self
        }
    }

    fn called(self, name: &str) -> Self {
        Self {
            display_name: name.to_owned(),
            ..self
        }
    }

    fn with_parameter(mut self, name: &str) -> Self {
        self.params.push(ResourceActionParam {
            name: name.to_owned(),
        });
        self
    }
}

#[cfg(test)]
mod tests;

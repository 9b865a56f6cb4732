//! An event of a watch of Applications. [`changed`] and [`part`] are what a watch that sends only
//! changes is made of.

use super::Application;
use schemars::JsonSchema;
use serde::{
    Deserialize, Serialize, Serializer,
    ser::{Error as _, SerializeMap as _},
};
use serde_json::{Map, Value};

/// The event whose Application is whole, whatever the watch sends otherwise.
pub const ADDED: &str = "ADDED";
/// What names an Application. It is in every event.
const IDENTITY: [&str; 3] = ["metadata.name", "metadata.namespace", "metadata.uid"];

#[derive(Clone, PartialEq, prost::Message, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationWatchEvent {
    #[prost(string, tag = "1")]
    #[serde(rename = "type", deserialize_with = "crate::null_default")]
    pub type_: String,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub application: Application,
    /// Ours: only where the watch asks for changes.
    #[prost(message, optional, tag = "1000")]
    pub delta: Option<ApplicationDelta>,
}

/// What an event of a watch says that sends only changes.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationDelta {
    /// With this another watch goes on after the event; empty where it cannot.
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub resume: String,
    /// The paths of which the Application of the event has the values now. Those that it does not
    /// have are unset.
    #[prost(string, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub changed: Vec<String>,
}

/// Required fields have defaults in JSON, which would look like changes.
impl Serialize for ApplicationWatchEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut event = serializer.serialize_map(None)?;
        event.serialize_entry("type", &self.type_)?;
        match &self.delta {
            Some(delta) if self.type_ != ADDED => {
                let part = part(&self.application, &delta.changed).map_err(S::Error::custom)?;
                event.serialize_entry("application", &part)?;
            }
            _ => event.serialize_entry("application", &self.application)?,
        }
        if let Some(delta) = &self.delta {
            event.serialize_entry("delta", delta)?;
        }
        event.end()
    }
}

/// The paths, of one or two names, at which two states of an Application differ.
pub fn changed(
    before: &Application,
    after: &Application,
) -> Result<Vec<String>, serde_json::Error> {
    let mut paths = Vec::new();
    compare("metadata", &before.metadata, &after.metadata, &mut paths)?;
    compare("spec", &before.spec, &after.spec, &mut paths)?;
    compare("status", &before.status, &after.status, &mut paths)?;
    if before.operation != after.operation {
        paths.push("operation".to_owned());
    }
    Ok(paths)
}

fn compare<T: PartialEq + Serialize>(
    name: &str,
    before: &T,
    after: &T,
    paths: &mut Vec<String>,
) -> Result<(), serde_json::Error> {
    if before == after {
        return Ok(());
    }
    let (before, after) = (fields(before)?, fields(after)?);
    let differ = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(*value));
    let unset = before.keys().filter(|key| !after.contains_key(*key));
    let names = differ.map(|(key, _)| key).chain(unset);
    paths.extend(names.map(|key| format!("{name}.{key}")));
    Ok(())
}

fn fields<T: Serialize>(value: &T) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::to_value(value)? {
        Value::Object(fields) => Ok(fields),
        other => Err(serde_json::Error::custom(format!("not an object: {other}"))),
    }
}

/// What names the Application, and its values at these paths.
pub fn part(app: &Application, paths: &[String]) -> Result<Value, serde_json::Error> {
    let mut whole = fields(app)?;
    let mut part = Map::new();
    for path in IDENTITY.into_iter().chain(paths.iter().map(String::as_str)) {
        let Some((top, name)) = path.split_once('.') else {
            part.extend(whole.remove(path).map(|value| (path.to_owned(), value)));
            continue;
        };
        let below = whole.get_mut(top).and_then(Value::as_object_mut);
        let Some(value) = below.and_then(|fields| fields.remove(name)) else {
            continue;
        };
        let fields = part.entry(top).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(fields) = fields {
            fields.insert(name.to_owned(), value);
        }
    }
    Ok(Value::Object(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn app(value: Value) -> Application {
        serde_json::from_value(value).expect("an Application")
    }

    #[test]
    fn only_what_differs_is_in_an_event() {
        let values = json!({"image": {"tag": null}});
        let helm = |values: &Value| json!({"repoURL": "u", "helm": {"valuesObject": values}});
        let before = app(json!({
            "metadata": {"name": "a", "namespace": "n", "labels": {"team": "a"}},
            "spec": {"project": "p", "source": helm(&json!({}))},
            "operation": {"retry": {}},
        }));
        let after = app(json!({
            "metadata": {"name": "a", "namespace": "n"},
            "spec": {"project": "p", "source": helm(&values)},
        }));
        let changed = changed(&before, &after).expect("JSON");
        assert_eq!(changed, ["metadata.labels", "spec.source", "operation"]);
        let event = ApplicationWatchEvent {
            type_: "MODIFIED".into(),
            application: after.clone(),
            delta: Some(ApplicationDelta {
                resume: "r".into(),
                changed: changed.clone(),
            }),
        };
        let event = serde_json::to_value(&event).expect("JSON");
        assert_eq!(
            event,
            json!({
                "type": "MODIFIED",
                "application": {
                    "metadata": {"name": "a", "namespace": "n"},
                    "spec": {"source": helm(&values)},
                },
                "delta": {"resume": "r", "changed": changed},
            })
        );
        assert!(super::changed(&after, &after).expect("JSON").is_empty());
    }

    #[test]
    fn without_a_delta_an_event_is_as_it_always_was() {
        let app = app(json!({"metadata": {"name": "a"}}));
        let event = ApplicationWatchEvent {
            type_: "MODIFIED".into(),
            application: app.clone(),
            delta: None,
        };
        let event = serde_json::to_value(&event).expect("JSON");
        assert_eq!(event, json!({"type": "MODIFIED", "application": app}));
    }
}

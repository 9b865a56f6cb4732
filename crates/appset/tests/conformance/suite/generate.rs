//! Kind `generate`: a whole set. Main function: [`run`].

use super::world::World;
use super::{Verdict, same};
use serde_json::{Value, json};
use tiphys_api::{Application, ApplicationSet};

pub fn run(case: &Value) -> Verdict {
    let mut document = case["appset"].clone();
    if document["metadata"]["namespace"].is_null() {
        document["metadata"]["namespace"] = json!("argocd");
    }
    let set = match serde_json::from_value::<ApplicationSet>(document) {
        Ok(set) => set,
        Err(_) if !case["decode_error"].is_null() => return Ok(()),
        Err(e) => return Err(format!("it does not decode: {e}")),
    };
    if !case["decode_error"].is_null() {
        return Err(format!("it decodes, without {}", case["decode_error"]));
    }
    let world = World::new(case);
    let generated = world.generate(&set);
    let expected = &case["expected"];
    match (&generated.failure, expected["reason"].as_str()) {
        (None, None) => {}
        (Some(_), Some("panic")) => return Ok(()),
        (Some(failure), Some(reason)) if failure.reason.as_str() == reason => {}
        (ours, _) => {
            return Err(format!(
                "the failure {ours:?} instead of {} {}",
                expected["reason"], expected["error"]
            ));
        }
    }
    let mut ours: Vec<Value> = generated.applications.iter().map(recorded).collect();
    let mut theirs = expected["applications"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if expected["order"] == "any" || is_unordered(case) {
        ours.sort_by_key(Value::to_string);
        theirs.sort_by_key(Value::to_string);
    }
    same("applications", &ours.into(), &theirs.into())?;
    if let Value::Array(requests) = &expected["plugin_requests"] {
        let mut ours = world.requests.take();
        ours.sort_by_key(Value::to_string);
        let mut theirs = requests.clone();
        theirs.sort_by_key(Value::to_string);
        same("plugin_requests", &ours.into(), &theirs.into())?;
    }
    Ok(())
}

/// Whether the recorded order may be by chance: clusters and merged sets come from Go's maps.
fn is_unordered(case: &Value) -> bool {
    let generators = case["appset"]["spec"]["generators"].to_string();
    generators.contains("\"clusters\"") || generators.contains("\"merge\"")
}

/// An Application as it is recorded: without its type.
fn recorded(app: &Application) -> Value {
    let mut json = shown(app);
    if let Some(fields) = json.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    json
}

/// An Application without its status.
pub fn shown(app: &Application) -> Value {
    let mut json = serde_json::to_value(app).unwrap_or_default();
    if let Some(fields) = json.as_object_mut() {
        fields.remove("status");
    }
    json
}

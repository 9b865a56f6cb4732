//! The implementations of the calls, one module per service. Handlers take the shared state, the
//! caller and the request message.

pub mod account;
pub mod application;
pub mod application_set;
pub mod catalog;
pub mod certificate;
pub mod cluster;
mod concealed;
pub mod gpgkey;
pub mod kubeapps;
pub mod links;
pub mod notification;
pub mod project;
pub mod project_tokens;
pub mod repocreds;
pub mod repository;
pub mod session;
pub mod settings;
pub mod version;

use crate::ApiError;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What is stored is not what the caller wants to create. The fields that differ are named as in
/// Argo CD's message, with a capital letter; their values are not.
fn different(what: &str, existing: &impl Serialize, asked: &impl Serialize) -> ApiError {
    let (existing, asked) = (fields(existing), fields(asked));
    let names: BTreeSet<&String> = existing.keys().chain(asked.keys()).collect();
    let differing: Vec<String> = names
        .into_iter()
        .filter(|name| existing.get(*name) != asked.get(*name))
        .map(|name| name[..1].to_ascii_uppercase() + &name[1..])
        .collect();
    ApiError::invalid(format!(
        "existing {what} spec is different; use upsert flag to force update; difference in keys \
         {:?}",
        differing.join(",")
    ))
}

fn fields(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_differs_is_named_without_its_value() {
        let error = different(
            "project",
            &json!({"sourceRepos": ["a"], "description": "d"}),
            &json!({"sourceRepos": ["a"], "destinations": [{"server": "s"}]}),
        );
        let message = "existing project spec is different; use upsert flag to force update; \
                       difference in keys \"Description,Destinations\"";
        assert_eq!(error.message, message);
    }
}

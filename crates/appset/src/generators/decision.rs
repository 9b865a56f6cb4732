//! Clusters that the status of another resource names. Main function: [`params`].

use super::Context;
use super::clusters::{LOCAL_NAME, LOCAL_SERVER};
use crate::error::{GenerateError, Place};
use crate::need::{Answer, Decisions, Need, unexpected};
use crate::params::Params;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use tiphys_api::application_set::generators::DuckTypeGenerator;

pub fn params(
    generator: &DuckTypeGenerator,
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let clusters = match context.facts.ask(Need::Clusters)? {
        Answer::Clusters(clusters) => clusters,
        _ => return Err(unexpected()),
    };
    let mut servers: BTreeMap<&str, &str> = clusters
        .iter()
        .map(|cluster| (cluster.name.as_str(), cluster.server.as_str()))
        .collect();
    if !clusters
        .iter()
        .any(|cluster| cluster.server == LOCAL_SERVER)
    {
        servers.insert(LOCAL_NAME, LOCAL_SERVER);
    }
    let config = match context
        .facts
        .ask(Need::ConfigMap(generator.config_map_ref.clone()))
        .at("error reading configMapRef")?
    {
        Answer::ConfigMap(config) => config,
        _ => return Err(unexpected()),
    };
    let setting = |key: &str| config.get(key).map(String::as_str).unwrap_or_default();
    let objects = match context
        .facts
        .ask(Need::Decisions(asked(generator, &setting)?))
        .at("failed to get dynamic resources")?
    {
        Answer::Decisions(objects) => objects,
        _ => return Err(unexpected()),
    };
    if objects.is_empty() {
        return Err(GenerateError::content("no clusterDecisionResources found"));
    }
    let list_key = match setting("statusListKey") {
        "" => "clusters",
        key => key,
    };
    let match_key = setting("matchKey");
    if match_key.is_empty() {
        // As in Argo CD and its recorded cases: no cluster is chosen, which deletes the
        // Applications of the set.
        return Ok(Vec::new());
    }
    let mut sets = Vec::new();
    for entry in entries(objects, list_key)? {
        let Some(wanted) = entry.get(match_key).map(printed) else {
            continue;
        };
        let Some((name, server)) = servers.get_key_value(wanted.as_str()) else {
            continue;
        };
        let mut params = Params::from([
            ("name".into(), (*name).into()),
            ("server".into(), (*server).into()),
        ]);
        params.extend(entry.iter().map(|(k, v)| (k.clone(), printed(v).into())));
        context.set_values(&mut params, generator.values.clone());
        sets.push(params);
    }
    Ok(sets)
}

fn asked<'s>(
    generator: &DuckTypeGenerator,
    setting: &impl Fn(&str) -> &'s str,
) -> Result<Decisions, GenerateError> {
    let (kind, version) = (setting("kind"), setting("apiVersion").split_once('/'));
    let (Some((group, version)), false) = (version.filter(|v| !v.0.is_empty()), kind.is_empty())
    else {
        return Err(GenerateError::spec(
            "there is a problem with the apiVersion, kind or resourceName provided",
        ));
    };
    let selector = &generator.label_selector;
    let selects = !selector.match_labels.is_empty() || !selector.match_expressions.is_empty();
    if generator.name.is_empty() != selects {
        return Err(GenerateError::spec(
            "there is a problem with the definition of the ClusterDecisionResource generator",
        ));
    }
    Ok(Decisions {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: kind.to_owned(),
        name: generator.name.clone(),
        selector: serde_json::to_string(selector).unwrap_or_default(),
    })
}

/// The maps in the lists of all statuses. An object without a status decides nothing yet, as in
/// Argo CD; a status without the list, or with something else in its place, is an error, since
/// nothing is known then.
fn entries<'o>(
    objects: &'o [Json],
    list_key: &str,
) -> Result<Vec<&'o serde_json::Map<String, Json>>, GenerateError> {
    let mut entries = Vec::new();
    for object in objects {
        let status = match object.get("status") {
            None | Some(Json::Null) => continue,
            Some(Json::Object(status)) if status.is_empty() => continue,
            Some(status) => status,
        };
        let Some(Json::Array(items)) = status.get(list_key) else {
            return Err(GenerateError::content(format!(
                "status.{list_key} is not a list"
            )));
        };
        for item in items {
            entries.push(item.as_object().ok_or_else(|| {
                GenerateError::content(format!("an entry of status.{list_key} is no map"))
            })?);
        }
    }
    Ok(entries)
}

/// As Go prints a value of an object, whose numbers keep their kind.
fn printed(value: &Json) -> String {
    match value {
        Json::Number(number) if number.is_i64() => number.to_string(),
        other => crate::params::Param::from_json(other).printed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_status_with_the_list_says_that_there_are_no_clusters() {
        let found = |object: Json| entries(&[object], "clusters").map(|entries| entries.len());
        for (object, expected) in [
            (json!({}), 0),
            (json!({"status": null}), 0),
            (json!({"status": {}}), 0),
            (json!({"status": {"clusters": []}}), 0),
            (json!({"status": {"clusters": [{"clusterName": "a"}]}}), 1),
        ] {
            assert_eq!(found(object.clone()).ok(), Some(expected), "{object}");
        }
        for object in [
            json!({"status": {"conditions": []}}),
            json!({"status": {"clusters": null}}),
            json!({"status": {"clusters": "a"}}),
            json!({"status": {"clusters": [1]}}),
            json!({"status": "ready"}),
        ] {
            assert!(found(object.clone()).is_err(), "{object}");
        }
    }
}

//! The clusters that are known. Main function: [`params`].

use super::Context;
use crate::error::{GenerateError, Place};
use crate::names::normalize;
use crate::need::{Answer, ClusterSecret, Need, unexpected};
use crate::params::{Param, Params};
use std::collections::BTreeMap;
use tiphys_api::application_set::generators::ClusterGenerator;
use tiphys_api::constants::SECRET_TYPE_LABEL;
use tiphys_apimachinery::selector::LabelSelector;

/// The name and the address of the cluster that the controller runs in.
pub(crate) const LOCAL_NAME: &str = "in-cluster";
pub(crate) const LOCAL_SERVER: &str = "https://kubernetes.default.svc";

pub fn params(
    generator: &ClusterGenerator,
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let mut selector = generator.selector.clone();
    let selects = !selector.match_labels.is_empty() || !selector.match_expressions.is_empty();
    // Argo CD puts the value that all clusters have in the place of any other.
    selector.match_labels.remove(SECRET_TYPE_LABEL);
    let selector = serde_json::to_value(&selector).unwrap_or_default();
    let selector = LabelSelector::from_json(&selector).map_err(|e| {
        GenerateError::spec(format!(
            "error getting cluster secrets: error converting label selector: {e}"
        ))
    })?;
    let secrets = match context.facts.ask(Need::Clusters)? {
        Answer::Clusters(secrets) => secrets,
        _ => return Err(unexpected()),
    };
    let chosen: BTreeMap<&str, &ClusterSecret> = secrets
        .iter()
        .filter(|secret| selector.matches(&secret.labels))
        .map(|secret| (secret.name.as_str(), secret))
        .collect();
    let with_local = !selects && chosen.values().all(|secret| secret.server != LOCAL_SERVER);
    let mut sets = Vec::with_capacity(chosen.len() + 1);
    for secret in chosen.into_values() {
        let mut params = basic(
            &secret.name,
            &secret.server,
            secret.project.as_deref().unwrap_or_default(),
        );
        add_metadata(&mut params, secret, context.is_go());
        context
            .add_values(&mut params, &generator.values)
            .at("error appending templated values for cluster")?;
        sets.push(params);
    }
    if with_local {
        let mut params = basic(LOCAL_NAME, LOCAL_SERVER, "");
        context
            .add_values(&mut params, &generator.values)
            .at("error appending templated values for local cluster")?;
        sets.push(params);
    }
    if generator.flat_list {
        let list = Param::List(sets.into_iter().map(Param::Map).collect());
        return Ok(vec![Params::from([("clusters".into(), list)])]);
    }
    Ok(sets)
}

fn basic(name: &str, server: &str, project: &str) -> Params {
    Params::from([
        ("name".into(), name.into()),
        ("nameNormalized".into(), normalize(name).into()),
        ("server".into(), server.into()),
        ("project".into(), project.into()),
    ])
}

fn add_metadata(params: &mut Params, secret: &ClusterSecret, go: bool) {
    let parts = [
        ("annotations", &secret.annotations),
        ("labels", &secret.labels),
    ];
    if go {
        let metadata = parts
            .into_iter()
            .filter(|(_, map)| !map.is_empty())
            .map(|(part, map)| (part.to_owned(), Param::StringMap(map.clone())))
            .collect();
        params.insert("metadata".into(), Param::Map(metadata));
        return;
    }
    for (part, map) in parts {
        for (key, value) in map {
            params.insert(format!("metadata.{part}.{key}"), value.as_str().into());
        }
    }
}

//! Parameters that a plugin answers with over HTTP. Main function: [`params`]; main type:
//! [`Endpoint`].

use super::Context;
use crate::error::{GenerateError, Place};
use crate::need::{Answer, Need, unexpected};
use crate::params::{Param, Params, flat_params, params_of};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use tiphys_api::application_set::generators::PluginGenerator;

/// What the server appends to the address of a plugin.
pub const PATH: &str = "api/v1/getparams.execute";
/// The Secret that a reference without a Secret's name means.
const DEFAULT_SECRET: &str = "argocd-secret";
const DEFAULT_TIMEOUT: u64 = 30;

/// Where a plugin listens, from its ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub base_url: String,
    /// The Secret and the key of the token.
    pub secret: String,
    pub key: String,
    /// In seconds.
    pub timeout: u64,
}

impl Endpoint {
    /// Reads the data of a ConfigMap.
    pub fn of(data: &BTreeMap<String, String>) -> Result<Self, GenerateError> {
        let place = "error fetching ConfigMap";
        let text = |key: &str| {
            data.get(key)
                .filter(|text| !text.is_empty())
                .ok_or_else(|| {
                    GenerateError::spec(format!("{key} not found in ConfigMap")).at(place)
                })
        };
        let base_url = text("baseUrl")?.clone();
        let Some(reference) = text("token")?.strip_prefix('$') else {
            return Err(GenerateError::spec(
                "error fetching Secret token: token does not reference a secret key starting \
                 with '$'",
            ));
        };
        let (secret, key) = reference
            .split_once(':')
            .map(|(secret, key)| (secret, key.split(':').next().unwrap_or_default()))
            .unwrap_or((DEFAULT_SECRET, reference));
        let timeout = match data.get("requestTimeout") {
            Some(text) => text.parse().map_err(|_| {
                GenerateError::spec(format!(
                    "error set requestTimeout: {text:?} is not a number of seconds"
                ))
            })?,
            None => 0,
        };
        Ok(Self {
            base_url,
            secret: secret.to_owned(),
            key: key.to_owned(),
            timeout: if timeout == 0 {
                DEFAULT_TIMEOUT
            } else {
                timeout
            },
        })
    }
}

pub fn params(
    generator: &PluginGenerator,
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let config_map = generator.config_map_ref.name.clone();
    let place = "error getting plugin from generator";
    match context.facts.ask(Need::ConfigMap(config_map.clone())) {
        Ok(Answer::ConfigMap(data)) => Endpoint::of(data).map(drop).at(place)?,
        Ok(_) => return Err(unexpected()),
        Err(error) => return Err(error.at("error fetching ConfigMap").at(place)),
    }
    let body = json!({
        "applicationSetName": context.set.metadata.name,
        "input": generator.input,
    });
    let need = Need::Plugin {
        config_map,
        body: body.to_string(),
    };
    let answer = match context.facts.ask(need).at("error listing params")? {
        Answer::Plugin(answer) => answer,
        _ => return Err(unexpected()),
    };
    let inputs: BTreeMap<_, _> = generator
        .input
        .parameters
        .iter()
        .map(|(key, json)| (key.clone(), json.raw.clone()))
        .collect();
    let input = Params::from([("parameters".into(), Param::RawMap(inputs))]);
    let of_generator = Params::from([("input".into(), Param::Map(input))]);
    let mut sets = Vec::new();
    for object in parameters(answer)? {
        let mut params = match context.is_go() {
            true => object,
            false => flat_params(&object),
        };
        params.insert("generator".into(), Param::Map(of_generator.clone()));
        context.add_values(&mut params, &generator.values)?;
        sets.push(params);
    }
    Ok(sets)
}

/// `output.parameters`, which may be absent.
fn parameters(answer: &[u8]) -> Result<Vec<Params>, GenerateError> {
    let wrong = |why: &str| {
        GenerateError::content(format!("error listing params: the plugin's answer {why}"))
    };
    if answer.len() > crate::CONTENT.bytes {
        return Err(wrong("is too large"));
    }
    let json: Json = serde_json::from_slice(answer).map_err(|_| wrong("is not JSON"))?;
    let member = |json: &Json, key: &str| match json {
        Json::Null => Ok(Json::Null),
        Json::Object(map) => Ok(map.get(key).cloned().unwrap_or_default()),
        _ => Err(wrong("has a wrong form")),
    };
    match member(&member(&json, "output")?, "parameters")? {
        Json::Null => Ok(Vec::new()),
        Json::Array(items) => items
            .iter()
            .map(|item| match item {
                Json::Object(map) => Ok(params_of(map)),
                Json::Null => Ok(Params::new()),
                _ => Err(wrong("has parameters that are no map")),
            })
            .collect(),
        _ => Err(wrong("has parameters that are no list")),
    }
}

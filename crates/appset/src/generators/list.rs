//! Elements written in the specification. Main function: [`params`].

use super::Context;
use crate::error::GenerateError;
use crate::params::{Params, params_of};
use serde_json::{Map, Value as Json};
use tiphys_api::application_set::generators::ListGenerator;
use tiphys_gocompat::yaml::{self, Duplicates};

pub fn params(
    generator: &ListGenerator,
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let mut sets = Vec::with_capacity(generator.elements.len());
    for (index, element) in generator.elements.iter().enumerate() {
        let set = match element.value() {
            Json::Object(map) if context.is_go() => params_of(&map),
            Json::Object(map) => texts(&map).map_err(|e| e.at(format!("list element {index}")))?,
            Json::Null => Params::new(),
            _ => {
                return Err(GenerateError::content(format!(
                    "error unmarshling list element {index}: it is not a map"
                )));
            }
        };
        sets.push(set);
    }
    if !generator.elements_yaml.is_empty() {
        sets.extend(elements_yaml(&generator.elements_yaml)?);
    }
    Ok(sets)
}

/// The parameters of fasttemplate, which are texts.
fn texts(element: &Map<String, Json>) -> Result<Params, GenerateError> {
    let text = |key: &str, value: &Json| match value {
        Json::String(text) => Ok(text.as_str().into()),
        _ => Err(GenerateError::content(format!(
            "error parsing value as string: {key}"
        ))),
    };
    let mut params = Params::new();
    for (key, value) in element {
        match value {
            _ if key != "values" => {
                params.insert(key.clone(), text(key, value)?);
            }
            Json::Object(values) => {
                for (key, value) in values {
                    params.insert(format!("values.{key}"), text(key, value)?);
                }
            }
            _ => return Err(GenerateError::content("error parsing values map")),
        }
    }
    Ok(params)
}

fn elements_yaml(text: &str) -> Result<Vec<Params>, GenerateError> {
    let wrong = |why: String| {
        GenerateError::content(format!("error unmarshling decoded ElementsYaml {why}"))
    };
    let document = yaml::parse_document(text, &crate::CONTENT, Duplicates::LastWins)
        .map_err(|e| wrong(e.to_string()))?;
    let items = match document {
        Json::Array(items) => items,
        Json::Null => Vec::new(),
        _ => return Err(wrong("it is not a list of maps".into())),
    };
    items
        .iter()
        .map(|item| match item {
            Json::Object(map) => Ok(params_of(map)),
            Json::Null => Ok(Params::new()),
            _ => Err(wrong("it is not a list of maps".into())),
        })
        .collect()
}

//! values.schema.json of a chart and its subcharts, with Helm's messages.
//!
//! Main function: [`check`]. Nothing is fetched: a reference to another document is an error, and
//! as in Helm a `urn:` reference allows everything.

use super::{Values, cost, report};
use crate::helm::chart::Chart;
use crate::helm::{HelmError, Limits, log};
use jsonschema::{PatternOptions, Retrieve, Uri};
use serde_json::{Number, Value};
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// Checks the values of every chart that has a schema. Returns Helm's warnings.
pub fn check(chart: &Chart, values: &Values, limits: &Limits) -> Result<Vec<String>, HelmError> {
    let (mut messages, mut warnings) = (String::new(), Vec::new());
    chart_messages(chart, values, limits, &mut messages, &mut warnings)?;
    if messages.is_empty() {
        return Ok(warnings);
    }
    Err(HelmError::chart(format!(
        "values don't meet the specifications of the schema(s) in the following chart(s):\n{messages}"
    )))
}

fn chart_messages(
    chart: &Chart,
    values: &Values,
    limits: &Limits,
    out: &mut String,
    warnings: &mut Vec<String>,
) -> Result<(), HelmError> {
    if let Some(schema) = &chart.schema {
        let message = one(schema, values, limits, warnings)
            .map_err(|e| e.within(&format!("values.schema.json of {}", chart.name())))?;
        if let Some(message) = message {
            out.push_str(&format!("{}:\n{message}", chart.name()));
        }
    }
    for dependency in &chart.dependencies {
        match values.get(dependency.name()) {
            None | Some(Value::Null) => {}
            Some(Value::Object(values)) => {
                chart_messages(dependency, values, limits, out, warnings)?
            }
            Some(other) => {
                let (name, kind) = (dependency.name(), go_type(other));
                out.push_str(&format!(
                    "{name}:\ninvalid type for values: expected object (map), got {kind}\n"
                ));
            }
        }
    }
    Ok(())
}

/// Helm's message about the values, if they do not match.
pub fn one(
    schema: &[u8],
    values: &Values,
    limits: &Limits,
    warnings: &mut Vec<String>,
) -> Result<Option<String>, HelmError> {
    let schema: Value = match serde_json::from_slice(schema) {
        Ok(schema) => schema,
        Err(_) if schema.is_empty() => return Ok(Some("EOF".to_owned())),
        Err(e) if e.is_eof() => return Ok(Some("unexpected EOF".to_owned())),
        Err(e) => return Ok(Some(e.to_string())),
    };
    let values = whole_numbers(&Value::Object(values.clone()));
    if !cost::affordable(&schema, &values, limits.nodes) {
        return Err(HelmError::over("checking the values", limits.nodes));
    }
    let unresolved = Arc::new(Mutex::new(BTreeSet::new()));
    let options = jsonschema::options()
        .with_retriever(Offline(unresolved.clone()))
        .with_pattern_options(PatternOptions::regex());
    let built = options.build(&schema);
    for urn in &*unresolved.lock().unwrap_or_else(PoisonError::into_inner) {
        let warning = format!("{} urn={}", log::UNRESOLVED_URN, log::text(urn));
        // Each warning is reported once.
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    let validator = match built {
        Ok(validator) => validator,
        Err(e) => {
            return Ok(Some(format!(
                "\"file:///values.schema.json#\" is not valid against metaschema: {e}"
            )));
        }
    };
    let messages = report::lines(
        &validator.iter_errors(&values).collect::<Vec<_>>(),
        &schema,
        &values,
    );
    Ok((!messages.is_empty()).then_some(messages))
}

/// Collects references that cannot be resolved offline.
struct Offline(Arc<Mutex<BTreeSet<String>>>);

impl Retrieve for Offline {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        if uri.as_str().starts_with("urn:") {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(uri.as_str().to_owned());
            return Ok(Value::Bool(true));
        }
        Err(format!("failing loading \"{uri}\": schemas are not fetched").into())
    }
}

/// Floats without a fraction as integers, which drafts before 6 need.
fn whole_numbers(value: &Value) -> Value {
    match value {
        Value::Number(n) => {
            let whole = n
                .as_f64()
                .filter(|f| n.is_f64() && f.fract() == 0.0 && f.abs() < 9e15);
            Value::Number(whole.map_or_else(|| n.clone(), |f| Number::from(f as i64)))
        }
        Value::Array(items) => items.iter().map(whole_numbers).collect(),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), whole_numbers(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

//! values.schema.json of a chart and its subcharts, with Helm's messages.
//!
//! Main function: [`check`]. Nothing is fetched: a reference to another document is an error, and
//! as in Helm a `urn:` reference allows everything.

use super::{Values, cost, formats, report};
use crate::helm::chart::Chart;
use crate::helm::{HelmError, Limits, log};
use jsonschema::{PatternOptions, Retrieve, Uri, ValidationError, ValidationOptions};
use serde_json::{Map, Number, Value, json};
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
    let built = options(Offline::new(unresolved.clone())).build(&schema);
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

/// How schemas are read: patterns in linear time, and the formats that Helm knows.
fn options<'a>(offline: Offline) -> ValidationOptions<'a> {
    let options = jsonschema::options()
        .with_retriever(offline)
        .with_pattern_options(PatternOptions::regex())
        // To Helm they are annotations.
        .without_content_encoding_support("base64")
        .without_content_media_type_support("application/json");
    formats::NAMES.iter().fold(options, |options, name| {
        options.with_format(*name, |text: &str| formats::refused(name, text).is_none())
    })
}

/// What of a value is held against a schema again.
pub(super) enum Below {
    Items,
    /// These items alone.
    Indices(Vec<usize>),
    Members(Vec<String>),
}

/// Holds what is below `place` against the schema at `pointer`; what is wrong is told with full
/// places. With it comes how many segments of each error's path lead to that schema.
pub(super) fn held_again(
    schema: &Value,
    pointer: &str,
    values: &Value,
    place: &str,
    below: Below,
) -> Option<(Vec<ValidationError<'static>>, usize)> {
    const WHOLE: &str = "whole:/schema";
    let id = schema.get("$id").or_else(|| schema.get("id"));
    let whole = id
        .and_then(Value::as_str)
        .map_or(WHOLE, |id| id.trim_end_matches('#'));
    let dialect = schema.get("$schema");
    let tuples = match dialect.and_then(Value::as_str) {
        Some(dialect) if !dialect.contains("2020-12") => "items",
        _ => "prefixItems",
    };
    let fragment: String = pointer.bytes().map(escaped).collect();
    let target = json!({"$ref": format!("{whole}#{fragment}")});
    let (mut lead, own) = match below {
        Below::Items => (json!({"items": target}), 2),
        Below::Indices(indices) => {
            let last = indices.iter().max().map_or(0, |last| last + 1);
            let mut list = vec![json!({}); last];
            indices.iter().for_each(|i| list[*i] = target.clone());
            (json!({tuples: list}), 3)
        }
        Below::Members(names) => {
            let members: Map<_, _> = names.into_iter().map(|n| (n, target.clone())).collect();
            (json!({"properties": members}), 3)
        }
    };
    let steps = steps(values, place)?;
    let from = 2 * steps.len() + own;
    for step in steps.into_iter().rev() {
        lead = match step {
            Step::Key(key) => json!({"properties": {key: lead}}),
            Step::Index(index) => {
                let mut list = vec![json!({}); index];
                list.push(lead);
                json!({tuples: list})
            }
        };
    }
    if let (Some(dialect), Some(lead)) = (dialect, lead.as_object_mut()) {
        lead.insert("$schema".to_owned(), dialect.clone());
    }
    let offline = Offline {
        whole: Some((whole.to_owned(), schema.clone())),
        ..Offline::new(Arc::default())
    };
    let validator = options(offline).build(&lead).ok()?;
    let errors = validator.iter_errors(values).map(ValidationError::to_owned);
    Some((errors.collect(), from))
}

enum Step {
    Key(String),
    Index(usize),
}

/// How a place is reached.
fn steps(values: &Value, place: &str) -> Option<Vec<Step>> {
    let mut value = values;
    let segments = place.split('/').skip(1);
    segments
        .map(|segment| {
            let key = segment.replace("~1", "/").replace("~0", "~");
            let step = match value {
                Value::Array(_) => Step::Index(key.parse().ok()?),
                _ => Step::Key(key),
            };
            value = match &step {
                Step::Key(key) => value.get(key)?,
                Step::Index(index) => value.get(index)?,
            };
            Some(step)
        })
        .collect()
}

/// A byte of a fragment.
fn escaped(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"/-_.~$".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

/// What schemas may refer to besides themselves.
struct Offline {
    /// The names that stand for nothing here.
    unresolved: Arc<Mutex<BTreeSet<String>>>,
    /// The chart's schema by its address, where another schema refers to it.
    whole: Option<(String, Value)>,
}

impl Offline {
    fn new(unresolved: Arc<Mutex<BTreeSet<String>>>) -> Self {
        Self {
            unresolved,
            whole: None,
        }
    }
}

impl Retrieve for Offline {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        if let Some((address, schema)) = &self.whole
            && address == uri.as_str()
        {
            return Ok(schema.clone());
        }
        if uri.as_str().starts_with("urn:") {
            self.unresolved
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

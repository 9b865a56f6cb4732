//! Query parameters. Main type: [`Query`]. A value that cannot be used is refused with the words of the API server.

use super::route::decode;
use crate::registry::{DeleteOptions, FieldValidation, Propagation};
use crate::status::{Cause, Status};
use serde_json::Value;

/// The parameters of a request, in order.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    pub fn parse(text: &str) -> Self {
        let pair = |p: &str| {
            let (key, value) = p.split_once('=').unwrap_or((p, ""));
            (decode(&key.replace('+', " ")), decode(&value.replace('+', " ")))
        };
        Self(text.split('&').filter(|p| !p.is_empty()).map(pair).collect())
    }

    /// The first value, if it is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|v| !v.is_empty())
    }

    /// Go's reading of a boolean parameter: anything but these words is true.
    pub fn flag(&self, name: &str) -> bool {
        let value = self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        value.is_some_and(|v| !matches!(v.to_ascii_lowercase().as_str(), "false" | "0" | "f"))
    }

    pub fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax")))
    }

    /// Only `All` is known.
    pub fn dry_run(&self) -> Result<bool, Status> {
        dry_run(self.0.iter().filter(|(key, value)| key == "dryRun" && !value.is_empty()).map(|(_, value)| value.as_str()))
    }

    pub fn validation(&self) -> Result<FieldValidation, Status> {
        match self.get("fieldValidation") {
            None | Some("Warn") => Ok(FieldValidation::Warn),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some(other) => {
                let cause = Cause::not_supported("fieldValidation", &other.into(), &["", "Ignore", "Strict", "Warn"]);
                Err(Status::invalid("meta.k8s.io", "CreateOptions", "", vec![cause]))
            }
        }
    }

    /// Delete options from the query, overlaid by those of the body.
    pub fn delete_options(&self, body: Option<&Value>) -> Result<DeleteOptions, Status> {
        let mut options = DeleteOptions { dry_run: self.dry_run()?, ..DeleteOptions::default() };
        options.grace_period_seconds = self.number("gracePeriodSeconds")?;
        options.propagation = self.get("propagationPolicy").map(propagation).transpose()?;
        if self.get("orphanDependents").is_some() && options.propagation.is_none() {
            options.propagation = Some(if self.flag("orphanDependents") { Propagation::Orphan } else { Propagation::Background });
        }
        let Some(body) = body else { return Ok(options) };
        if let Some(policy) = body["propagationPolicy"].as_str() {
            options.propagation = Some(propagation(policy)?);
        } else if let Some(orphan) = body["orphanDependents"].as_bool() {
            options.propagation = Some(if orphan { Propagation::Orphan } else { Propagation::Background });
        }
        if let Some(grace) = body["gracePeriodSeconds"].as_i64() {
            options.grace_period_seconds = Some(grace);
        }
        let precondition = |field: &str| body.pointer("/preconditions")?.get(field)?.as_str().map(str::to_owned);
        options.uid = precondition("uid");
        options.resource_version = precondition("resourceVersion");
        if let Some(list) = body["dryRun"].as_array() {
            options.dry_run |= dry_run(list.iter().filter_map(Value::as_str))?;
        }
        Ok(options)
    }
}

fn dry_run<'a>(values: impl Iterator<Item = &'a str>) -> Result<bool, Status> {
    let mut found = false;
    for value in values {
        if value != "All" {
            let cause = Cause::not_supported("dryRun", &value.into(), &["All"]);
            return Err(Status::invalid("meta.k8s.io", "CreateOptions", "", vec![cause]));
        }
        found = true;
    }
    Ok(found)
}

fn propagation(word: &str) -> Result<Propagation, Status> {
    match word {
        "Orphan" => Ok(Propagation::Orphan),
        "Background" => Ok(Propagation::Background),
        "Foreground" => Ok(Propagation::Foreground),
        other => {
            let cause = Cause::not_supported("propagationPolicy", &other.into(), &["Foreground", "Background", "Orphan", "nil"]);
            Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", vec![cause]))
        }
    }
}

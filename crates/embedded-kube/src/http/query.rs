//! Query parameters. Main type: [`Query`]. A value that cannot be used is refused with the words of the API server.

use super::route::decode;
use crate::registry::{DeleteOptions, FieldValidation, Propagation, Sender};
use crate::status::{Cause, Status};
use serde_json::Value;
use tiphys_gocompat::text::is_print;

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

    /// All values, in their order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
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

    /// Only `All` is known; what else was said is refused by [`Query::write_problems`].
    pub fn dry_run(&self) -> bool {
        self.dry_run_values().iter().any(|v| v == "All")
    }

    fn dry_run_values(&self) -> Vec<Value> {
        self.0.iter().filter(|(key, _)| key == "dryRun").map(|(_, value)| value.as_str().into()).collect()
    }

    pub fn validation(&self) -> FieldValidation {
        match self.get("fieldValidation") {
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            _ => FieldValidation::Warn,
        }
    }

    /// What is wrong with the options of a create, update or patch.
    pub fn write_problems(&self) -> Vec<Cause> {
        let mut causes = Vec::new();
        if let Some(manager) = self.get("fieldManager") {
            if manager.len() > 128 {
                let message = "Too long: may not be more than 128 bytes".to_owned();
                causes.push(Cause { reason: "FieldValueTooLong", message, field: "fieldManager".into() });
            }
            for (at, c) in manager.char_indices().filter(|(_, c)| !is_print(*c)) {
                let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
                causes.push(Cause::invalid("fieldManager", &manager.into(), &detail));
            }
        }
        causes.extend(dry_run_problem(&self.dry_run_values()));
        if let Some(other) = self.get("fieldValidation").filter(|v| !matches!(*v, "Ignore" | "Strict" | "Warn")) {
            causes.push(Cause::not_supported("fieldValidation", &other.into(), &["", "Ignore", "Strict", "Warn"]));
        }
        causes
    }

    /// What is wrong with the options of a list.
    pub fn list_problems(&self) -> Vec<Cause> {
        let mut causes = Vec::new();
        let mut forbid = |field: &str, detail: &str| causes.push(Cause::forbidden(field, detail));
        let mut unknown = None;
        if let Some(matching) = self.get("resourceVersionMatch") {
            if self.get("resourceVersion").is_none() {
                forbid("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if self.get("continue").is_some() {
                forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
            }
            if !matches!(matching, "Exact" | "NotOlderThan") {
                unknown = Some(Cause::not_supported("resourceVersionMatch", &matching.into(), &["Exact", "NotOlderThan", ""]));
            }
            if matching == "Exact" && self.get("resourceVersion") == Some("0") {
                forbid("resourceVersionMatch", "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
        }
        if self.get("sendInitialEvents").is_some() {
            forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
        }
        causes.extend(unknown);
        causes
    }

    /// What is wrong with the options of a watch.
    pub fn watch_problems(&self) -> Vec<Cause> {
        let mut causes = Vec::new();
        let matching = self.get("resourceVersionMatch");
        let initial = self.get("sendInitialEvents").is_some();
        if initial && matching != Some("NotOlderThan") {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(Cause::forbidden("resourceVersionMatch", detail));
        }
        let Some(matching) = matching else { return causes };
        if !initial {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            causes.push(Cause::forbidden("resourceVersionMatch", detail));
        }
        if matching != "NotOlderThan" {
            causes.push(Cause::not_supported("resourceVersionMatch", &matching.into(), &["NotOlderThan"]));
        }
        if self.get("continue").is_some() {
            causes.push(Cause::forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"));
        }
        causes
    }

    /// Delete options: those of the body, or those of the query when there is none.
    pub fn delete_options(&self, body: Option<&Value>) -> Result<DeleteOptions, Status> {
        let text = |name: &str| body.map_or_else(|| self.get(name).map(str::to_owned), |b| b[name].as_str().map(str::to_owned));
        let dry_run = body.map_or_else(|| self.dry_run_values(), |b| b["dryRun"].as_array().cloned().unwrap_or_default());
        let orphan = match body {
            Some(body) => body["orphanDependents"].as_bool(),
            None => self.get("orphanDependents").map(|_| self.flag("orphanDependents")),
        };
        let policy = text("propagationPolicy");
        let mut causes = Vec::new();
        if let (Some(policy), Some(_)) = (&policy, orphan) {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            causes.push(Cause::invalid("propagationPolicy", &policy.as_str().into(), detail));
        }
        let propagation = match policy.as_deref() {
            None => orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                causes.push(Cause::not_supported("propagationPolicy", &other.into(), &["Foreground", "Background", "Orphan", "nil"]));
                None
            }
        };
        causes.extend(dry_run_problem(&dry_run));
        if !causes.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", causes));
        }
        let precondition = |field: &str| body?.pointer("/preconditions")?.get(field)?.as_str().map(str::to_owned);
        Ok(DeleteOptions {
            dry_run: dry_run.iter().any(|v| v == "All"),
            grace_period_seconds: body.map_or_else(|| self.number("gracePeriodSeconds"), |b| Ok(b["gracePeriodSeconds"].as_i64()))?,
            propagation,
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            sender: Sender::default(),
            of_many: false,
        })
    }
}

/// Every value must be `All`.
fn dry_run_problem(values: &[Value]) -> Option<Cause> {
    let known = values.iter().all(|v| v == "All");
    (!known).then(|| Cause::not_supported("dryRun", &Value::Array(values.to_vec()), &["All"]))
}

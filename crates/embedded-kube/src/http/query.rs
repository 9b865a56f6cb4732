//! The query parameters of lists, watches and writes. An invalid value is rejected with the message
//! of the API server.

use super::delete_options::dry_run_problem;
use crate::base::FieldValidation;
use crate::route::Query;
use crate::status::{Cause, Status};
use crate::validation::meta::manager_problems;
use crate::validation::rules::At;
use serde_json::Value;
use tiphys_gocompat::duration;

impl Query {
    /// The timeout is the client's business, but it must be a valid duration.
    pub fn check_timeout(&self) -> Result<(), Status> {
        let wrong = |error| {
            Status::bad_request(format!(
                "invalid timeout specified in the request URL - {error}"
            ))
        };
        self.get("timeout").map_or(Ok(()), |text| {
            duration::parse(text).map(drop).map_err(wrong)
        })
    }

    /// Only `All` is supported; [`Query::write_problems`] rejects other values.
    pub fn dry_run(&self) -> bool {
        self.dry_run_values().iter().any(|v| v == "All")
    }

    fn dry_run_values(&self) -> Vec<Value> {
        self.all("dryRun").into_iter().map(Value::from).collect()
    }

    pub fn validation(&self) -> FieldValidation {
        match self.get("fieldValidation") {
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            _ => FieldValidation::Warn,
        }
    }

    /// Validates the options of a create, update or patch.
    pub fn write_problems(&self) -> Vec<Cause> {
        let mut causes = Vec::new();
        if let Some(manager) = self.get("fieldManager") {
            manager_problems(&At::new(&manager.into(), "fieldManager"), &mut causes);
        }
        causes.extend(dry_run_problem(&self.dry_run_values()));
        if let Some(other) = self
            .get("fieldValidation")
            .filter(|v| !matches!(*v, "Ignore" | "Strict" | "Warn"))
        {
            causes.push(Cause::not_supported(
                "fieldValidation",
                &other.into(),
                &["", "Ignore", "Strict", "Warn"],
            ));
        }
        causes
    }

    /// Validates the options of a list.
    pub fn list_problems(&self) -> Vec<Cause> {
        let mut causes = Vec::new();
        let mut forbid = |field: &str, detail: &str| causes.push(Cause::forbidden(field, detail));
        let mut unknown = None;
        if let Some(matching) = self.get("resourceVersionMatch") {
            if self.get("resourceVersion").is_none() {
                forbid(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                );
            }
            if self.get("continue").is_some() {
                forbid(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden when continue is provided",
                );
            }
            if !matches!(matching, "Exact" | "NotOlderThan") {
                unknown = Some(Cause::not_supported(
                    "resourceVersionMatch",
                    &matching.into(),
                    &["Exact", "NotOlderThan", ""],
                ));
            }
            if matching == "Exact" && self.get("resourceVersion") == Some("0") {
                forbid(
                    "resourceVersionMatch",
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                );
            }
        }
        if self.has("sendInitialEvents") {
            forbid(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            );
        }
        causes.extend(unknown);
        causes
    }

    /// Validates the options of a watch.
    pub fn watch_problems(&self) -> Vec<Cause> {
        let mut causes = Vec::new();
        let matching = self.get("resourceVersionMatch");
        let initial = self.has("sendInitialEvents");
        if initial && matching != Some("NotOlderThan") {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(Cause::forbidden("resourceVersionMatch", detail));
        }
        // A watch without a revision and without options gets the existing objects first.
        let from_now = !initial
            && matching.is_none()
            && matches!(self.get("resourceVersion"), None | Some("0"));
        let matching = if from_now {
            Some("NotOlderThan")
        } else {
            matching
        };
        let initial = initial || from_now;
        let Some(matching) = matching else {
            return causes;
        };
        if !initial {
            let detail =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            causes.push(Cause::forbidden("resourceVersionMatch", detail));
        }
        if matching != "NotOlderThan" {
            causes.push(Cause::not_supported(
                "resourceVersionMatch",
                &matching.into(),
                &["NotOlderThan"],
            ));
        }
        if self.get("continue").is_some() {
            causes.push(Cause::forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        causes
    }
}

//! Fields selected by jq expressions: `.webhooks[].clientConfig.caBundle`, `.spec.containers[] |
//! select(.name == "a") | .image`.
//!
//! Main type: [`Paths`]. As in Argo CD, an expression is wrapped in `del(…)`, and it may use all of
//! jq. Anyone who may edit an Application may write these expressions, so every run has limits
//! ([`tiphys_gocompat::jq`]).

use crate::spending::Spending;
use serde_json::Value;
use std::fmt;
use tiphys_gocompat::jq::{JqError, Limits, Program};

/// Longest expression that is accepted.
const MAX_LENGTH: usize = 4096;

/// Why an expression cannot be used, or not on this document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathsError(String);

impl fmt::Display for PathsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<JqError> for PathsError {
    fn from(error: JqError) -> Self {
        Self(error.to_string())
    }
}

/// A parsed expression that selects fields.
#[derive(Clone, Debug)]
pub struct Paths(Program);

impl Paths {
    /// Parses an expression.
    pub fn parse(text: &str) -> Result<Self, PathsError> {
        if text.len() > MAX_LENGTH {
            return Err(PathsError(format!(
                "an expression may have {MAX_LENGTH} characters"
            )));
        }
        match Program::parse(&format!("del({text})")) {
            Ok(program) => Ok(Self(program)),
            // The error of the expression without `del(…)` is easier to understand.
            Err(whole) => Err(Program::parse(text).err().unwrap_or(whole).into()),
        }
    }

    /// Removes the selected fields. If the expression fails on this document, nothing is removed.
    /// `text` is the expression, named in the refusal if the comparison's budget does not suffice.
    pub fn delete_from(
        &self,
        document: &mut Value,
        text: &str,
        spending: Option<&Spending>,
    ) -> Result<(), PathsError> {
        let all = Limits {
            outputs: 2,
            ..Limits::default()
        };
        let steps = spending.map_or(all.steps, |s| s.grant(all.steps));
        let mut results = self.0.run(document, Limits { steps, ..all });
        let first = results.next();
        let second = results.next();
        let left = results.steps_left();
        let stopped = [&first, &second]
            .into_iter()
            .any(|r| matches!(r, Some(Err(e)) if e.is_limit()));
        if let Some(spending) = spending {
            spending.spend(steps - left);
            if stopped && steps < all.steps {
                return Err(PathsError(
                    spending.refuse(|| format!("jqPathExpressions {text:?}")),
                ));
            }
        }
        let rest = first.unwrap_or_else(|| Ok(document.clone()))?;
        if second.is_some() {
            return Err(PathsError("it gives more than one result".into()));
        }
        *document = rest;
        Ok(())
    }
}

#[cfg(test)]
mod tests;

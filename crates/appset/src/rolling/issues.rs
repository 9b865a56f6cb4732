//! What is wrong with the steps of a rollout. Main type: [`Issues`].

use crate::condition::Condition;
use std::collections::BTreeMap;

/// Steps are counted from 0 here and from 1 in messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issues {
    /// A step and an operator that is not supported.
    pub operators: Vec<(usize, String)>,
    /// Applications in several steps.
    pub duplicates: BTreeMap<String, Vec<usize>>,
    pub empty_steps: Vec<usize>,
    /// A step and its `maxUpdate`, which is neither a number nor a percentage.
    pub max_updates: Vec<(usize, String)>,
}

impl Issues {
    pub(super) fn unknown_operator(&mut self, step: usize, operator: &str) {
        let issue = (step, operator.to_owned());
        if !self.operators.contains(&issue) {
            self.operators.push(issue);
        }
    }

    pub(super) fn invalid_max_update(&mut self, step: usize, value: &str) {
        if self.max_updates.iter().all(|(other, _)| *other != step) {
            self.max_updates.push((step, value.to_owned()));
        }
    }

    pub(super) fn condition(&self) -> Condition {
        match self.message() {
            Some(message) => Condition::new(
                "InvalidRolloutConfig",
                true,
                "ApplicationSetInvalidRolloutConfig",
                &message,
            ),
            None => Condition::new(
                "InvalidRolloutConfig",
                false,
                "ApplicationSetValidRolloutConfig",
                "Rolling Sync Configured correctly",
            ),
        }
    }

    /// The most important kind of issue, with all its places.
    pub fn message(&self) -> Option<String> {
        let places = |list: &[(usize, String)]| {
            let steps: Vec<String> = list.iter().map(|(s, _)| (s + 1).to_string()).collect();
            let values: Vec<&str> = list.iter().map(|(_, v)| v.as_str()).collect();
            (steps.join(", "), values.join(", "))
        };
        if !self.operators.is_empty() {
            let (steps, operators) = places(&self.operators);
            let (step, have) = match self.operators.len() {
                1 => ("Step", "has"),
                _ => ("Steps", "have"),
            };
            return Some(format!(
                "{step} {steps} {have} invalid matchExpression operators: {operators}. Supported \
                 Operators are 'In' and 'NotIn'"
            ));
        }
        if !self.duplicates.is_empty() {
            return Some(self.duplicate_message());
        }
        if !self.max_updates.is_empty() {
            let (steps, values) = places(&self.max_updates);
            return Some(match self.max_updates.len() {
                1 => format!("Step {steps} has an invalid maxUpdate value: {values}"),
                _ => format!("Steps {steps} have invalid maxUpdate values: [{values}]"),
            });
        }
        if !self.empty_steps.is_empty() {
            let steps: Vec<String> = self
                .empty_steps
                .iter()
                .map(|s| (s + 1).to_string())
                .collect();
            return Some(format!(
                "Steps [{}] have no applications matching their criteria",
                steps.join(" ")
            ));
        }
        None
    }

    fn duplicate_message(&self) -> String {
        let names: Vec<&str> = self.duplicates.keys().map(String::as_str).collect();
        let steps: Vec<String> = self
            .duplicates
            .values()
            .map(|steps| {
                let steps: Vec<String> = steps.iter().map(|s| (s + 1).to_string()).collect();
                steps.join("-")
            })
            .collect();
        match names.len() {
            1 => format!(
                "Application '{}' is selected by multiple steps: ({})",
                names[0],
                steps.join(", ")
            ),
            _ => format!(
                "Applications '{}' are selected by multiple steps: [({})]",
                names.join("', '"),
                steps.join("), (")
            ),
        }
    }
}

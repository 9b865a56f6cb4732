//! The selector after a generator, which keeps parameter sets. Main type: [`Selector`].
//!
//! Unlike a selector of labels it accepts values that are no label values.

use crate::error::GenerateError;
use std::collections::BTreeMap;
use tiphys_api::meta::LabelSelector;
use tiphys_apimachinery::selector::is_qualified_name;

/// All requirements must hold; none selects everything.
#[derive(Debug)]
pub(crate) struct Selector(Vec<Requirement>);

#[derive(Debug)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Selector {
    pub fn new(selector: &LabelSelector) -> Result<Self, GenerateError> {
        let mut requirements = Vec::new();
        for (key, value) in &selector.match_labels {
            requirements.push(Requirement::new(key, Operator::In, vec![value.clone()])?);
        }
        for expression in &selector.match_expressions {
            let operator = match expression.operator.as_str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    return Err(GenerateError::spec(format!(
                        "{other:?} is not a valid label selector operator"
                    )));
                }
            };
            let values = expression.values.clone();
            requirements.push(Requirement::new(&expression.key, operator, values)?);
        }
        Ok(Self(requirements))
    }

    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|r| r.holds(labels.get(&r.key)))
    }
}

impl Requirement {
    fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, GenerateError> {
        if !is_qualified_name(key) {
            return Err(GenerateError::spec(format!(
                "key: Invalid value: {key:?}: it is not a label's name"
            )));
        }
        let takes_values = matches!(operator, Operator::In | Operator::NotIn);
        if takes_values == values.is_empty() {
            return Err(GenerateError::spec(match takes_values {
                true => format!(
                    "values of {key}: for 'in', 'notin' operators, values set can't be empty"
                ),
                false => format!(
                    "values of {key}: values set must be empty for exists and does not exist"
                ),
            }));
        }
        Ok(Self {
            key: key.to_owned(),
            operator,
            values,
        })
    }

    fn holds(&self, label: Option<&String>) -> bool {
        match self.operator {
            Operator::In => label.is_some_and(|l| self.values.contains(l)),
            Operator::NotIn => label.is_none_or(|l| !self.values.contains(l)),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
        }
    }
}

//! Evaluates the expressions of a policy for one request and one parameter, within a cost budget.
//! Main type: [`Run`].

use super::{Expression, Policy};
use crate::admission::request::{Objects, Request};
use crate::catalog::Resource;
use serde_json::Value as Json;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use tiphys_kube_schema::cel::value::{Map, Value};
use tiphys_kube_schema::cel::{EvalError, Evaluated, declare};

/// The cost limit of one expression, and of a whole policy.
const CALL_LIMIT: u64 = 1_000_000;
const BUDGET: i64 = 10_000_000;
const CONDITIONS_BUDGET: i64 = BUDGET / 4;

const NO_MORE: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Why a policy was not evaluated to the end.
pub enum Stopped {
    /// This expression failed.
    Failed(String),
    /// The budget is used up.
    Budget,
}

impl Stopped {
    pub fn text(self) -> String {
        match self {
            Self::Failed(text) => text,
            Self::Budget => NO_MORE.to_owned(),
        }
    }
}

/// The values visible to expressions.
pub struct Run<'a> {
    policy: &'a Policy,
    request: &'a Request<'a>,
    object: Value,
    old: Value,
    params: Value,
    asked: Value,
    namespace: Value,
    /// Variables that have been evaluated.
    known: RefCell<HashMap<String, Evaluated>>,
    spent: Cell<u64>,
    budget: Cell<i64>,
}

fn dynamic(object: Option<&tiphys_apimachinery::Object>) -> Value {
    object.map_or(Value::Null, |o| {
        declare::dynamic(&Json::Object(o.0.clone()))
    })
}

impl<'a> Run<'a> {
    /// The objects have the version of `matched`.
    pub fn new(
        policy: &'a Policy,
        request: &'a Request<'a>,
        objects: Objects<'_>,
        matched: &Resource,
        params: Option<&tiphys_apimachinery::Object>,
    ) -> Self {
        let asked = declare::dynamic(&Json::Object(request.to_json(matched)));
        Self {
            policy,
            request,
            object: dynamic(objects.new),
            old: dynamic(objects.old),
            params: dynamic(params),
            asked,
            namespace: request
                .namespace_object()
                .map_or_else(nothing, |ns| exposed(&ns)),
            known: RefCell::default(),
            spent: Cell::new(0),
            budget: Cell::new(BUDGET),
        }
    }

    fn variable(&self, name: &str) -> Option<Evaluated> {
        Some(Ok(match name {
            "object" => self.object.clone(),
            "oldObject" => self.old.clone(),
            "params" => self.params.clone(),
            "request" => self.asked.clone(),
            "namespaceObject" => self.namespace.clone(),
            "authorizer" => self.request.judge().authorizer(),
            "authorizer.requestResource" => {
                self.request.judge().of_request(self.request.question())
            }
            _ => return self.named(name.strip_prefix("variables.")?),
        }))
    }

    /// A variable of the policy, evaluated once.
    fn named(&self, name: &str) -> Option<Evaluated> {
        if let Some(known) = self.known.borrow().get(name) {
            return Some(known.clone());
        }
        let (_, expression) = self.policy.variables.iter().find(|(n, _)| n == name)?;
        let found = match &expression.program {
            Err(error) => Err(EvalError::Failed(format!(
                "composited variable \"{name}\" fails to compile: {error}"
            ))),
            Ok(program) => {
                let (result, cost) = program.run(&|name| self.variable(name), CALL_LIMIT);
                self.spent.set(self.spent.get().saturating_add(cost));
                result.map_err(|e| {
                    EvalError::Failed(format!(
                        "composited variable \"{name}\" fails to evaluate: {}",
                        e.text()
                    ))
                })
            }
        };
        self.known
            .borrow_mut()
            .insert(name.to_owned(), found.clone());
        Some(found)
    }

    pub fn evaluate(&self, expression: &Expression) -> Result<Value, Stopped> {
        let program = expression
            .program
            .as_ref()
            .map_err(|e| Stopped::Failed(format!("compilation error: {e}")))?;
        self.spent.set(0);
        let (result, cost) = program.run(&|name| self.variable(name), CALL_LIMIT);
        let cost = cost.saturating_add(self.spent.get());
        let left = self
            .budget
            .get()
            .saturating_sub(i64::try_from(cost).unwrap_or(i64::MAX));
        self.budget.set(left);
        if left < 0 {
            return Err(Stopped::Budget);
        }
        result.map_err(|e| {
            Stopped::Failed(format!(
                "expression '{}' resulted in error: {}",
                expression.source,
                e.text()
            ))
        })
    }

    /// Whether the match conditions of the policy apply to the request; or why they cannot be
    /// evaluated.
    pub fn is_meant(&self) -> Result<bool, String> {
        self.budget.set(CONDITIONS_BUDGET);
        let namespace_hidden = Run {
            namespace: nothing(),
            ..self.fresh()
        };
        let mut errors = Vec::new();
        for condition in &self.policy.conditions {
            match namespace_hidden.evaluate(condition) {
                Ok(Value::Bool(false)) => return Ok(false),
                Ok(_) => {}
                Err(Stopped::Budget) if self.policy.fails() => return Err(NO_MORE.to_owned()),
                Err(Stopped::Budget) => return Ok(false),
                Err(Stopped::Failed(text)) => errors.push(text),
            }
        }
        self.budget.set(BUDGET);
        match errors.as_slice() {
            [] => Ok(true),
            _ if !self.policy.fails() => Ok(false),
            [one] => Err(one.clone()),
            _ => Err(format!("[{}]", errors.join(", "))),
        }
    }

    /// The same input with nothing evaluated.
    fn fresh(&self) -> Run<'a> {
        Run {
            policy: self.policy,
            request: self.request,
            object: self.object.clone(),
            old: self.old.clone(),
            params: self.params.clone(),
            asked: self.asked.clone(),
            namespace: self.namespace.clone(),
            known: RefCell::default(),
            spent: Cell::new(0),
            budget: Cell::new(self.budget.get()),
        }
    }
}

/// A namespace that does not exist has no fields.
fn nothing() -> Value {
    Value::map(Map::new())
}

/// The fields of a namespace that expressions see.
fn exposed(namespace: &tiphys_apimachinery::Object) -> Value {
    let mut map = namespace.0.clone();
    map.retain(|field, _| matches!(field.as_str(), "metadata" | "spec" | "status"));
    if let Some(metadata) = map.get_mut("metadata").and_then(Json::as_object_mut) {
        metadata.remove("managedFields");
        metadata.remove("ownerReferences");
    }
    declare::dynamic(&Json::Object(map))
}

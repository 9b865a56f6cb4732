//! Admission policies: CEL expressions that validate or change a request. Main types: [`Policy`],
//! the compiled policy, and [`Run`], which evaluates it.

mod mutating;
mod params;
mod run;
mod validating;

pub use mutating::mutate;
pub use run::Run;
pub use validating::validate;

use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::cel::Program;
use tiphys_kube_schema::cel::admission::{Returns, Scope};

/// An expression with its source; if it does not compile, it fails when it is evaluated.
pub struct Expression {
    pub source: String,
    pub program: Result<Program, String>,
}

impl Expression {
    fn new(scope: &Scope, source: &str, returns: Returns) -> Self {
        Self {
            source: source.to_owned(),
            program: scope.compile(source, returns),
        }
    }
}

pub struct Validation {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: String,
}

pub enum Mutation {
    Patches(Expression),
    Apply(Expression),
}

/// A validating or mutating policy.
pub struct Policy {
    pub name: String,
    pub spec: Value,
    variables: Vec<(String, Expression)>,
    conditions: Vec<Expression>,
    validations: Vec<Validation>,
    annotations: Vec<Expression>,
    mutations: Vec<Mutation>,
}

fn items<'v>(spec: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    spec[field].as_array().into_iter().flatten()
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or("")
}

impl Policy {
    pub fn compile(policy: &Object) -> Self {
        let spec = policy.0.get("spec").cloned().unwrap_or_default();
        let mut scope = Scope {
            params: spec["paramKind"].is_object(),
            authorizer: true,
            composes: true,
            ..Scope::default()
        };
        let mut variables = Vec::new();
        for variable in items(&spec, "variables") {
            let expression =
                Expression::new(&scope, text(variable, "expression"), Returns::Anything);
            scope.define(
                text(variable, "name"),
                expression.program.as_ref().ok().map(|p| &p.ty),
            );
            variables.push((text(variable, "name").to_owned(), expression));
        }
        let conditions = items(&spec, "matchConditions")
            .map(|c| Expression::new(&scope, text(c, "expression"), Returns::Bool))
            .collect();
        let messages = Scope {
            authorizer: false,
            ..scope.clone()
        };
        let validation = |v: &Value| Validation {
            expression: Expression::new(&scope, text(v, "expression"), Returns::Bool),
            message: text(v, "message").trim().to_owned(),
            message_expression: Some(text(v, "messageExpression"))
                .filter(|source| !source.is_empty())
                .map(|source| Expression::new(&messages, source, Returns::Text)),
            reason: text(v, "reason").to_owned(),
        };
        let validations = items(&spec, "validations").map(validation).collect();
        let annotation =
            |a: &Value| Expression::new(&scope, text(a, "valueExpression"), Returns::TextOrNull);
        let annotations = items(&spec, "auditAnnotations").map(annotation).collect();
        let patching = Scope {
            patches: true,
            ..scope.clone()
        };
        let mutation = |m: &Value| match text(m, "patchType") {
            "JSONPatch" => Mutation::Patches(Expression::new(
                &patching,
                text(&m["jsonPatch"], "expression"),
                Returns::Patches,
            )),
            _ => Mutation::Apply(Expression::new(
                &patching,
                text(&m["applyConfiguration"], "expression"),
                Returns::Object,
            )),
        };
        let mutations = items(&spec, "mutations").map(mutation).collect();
        Self {
            name: policy.name().to_owned(),
            variables,
            conditions,
            validations,
            annotations,
            mutations,
            spec,
        }
    }

    /// Whether a failure of the policy itself rejects the request.
    pub fn fails(&self) -> bool {
        self.spec["failurePolicy"] != "Ignore"
    }
}

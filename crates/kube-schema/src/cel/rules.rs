//! `x-kubernetes-validations`: rules compiled once with a schema, and evaluated for objects.
//!
//! Main types: [`Compiled`] (a schema's rules, ready to run), [`Definitions`] (the checks when a
//! definition is written).

use super::estimate::{self, Sizes};
use super::types::Type;
use super::value::Value;
use super::{COST_TEXT, Env, EvalError, Program, Vars, declare};
use crate::gofmt;
use crate::structural::problem::Problem;
use crate::structural::validate::{is_unchanged, old_item};
use crate::structural::{Node, Rule, internal, path};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The cost limit of one expression.
const CALL_LIMIT: u64 = 1_000_000;
/// The cost limit of all rules of an object together.
const OBJECT_BUDGET: i64 = 10_000_000;
const MESSAGE_LIMIT: usize = 5 * 1024;

/// The remaining budget of an object; below zero, no further rules run.
pub struct Budget(i64);

impl Default for Budget {
    fn default() -> Self {
        Self(OBJECT_BUDGET)
    }
}

/// The results of rules: errors, and those reduced to warnings because the value is unchanged.
#[derive(Default)]
pub struct Found {
    pub problems: Vec<Problem>,
    pub warnings: Vec<String>,
}

/// A rule at one level of the schema.
#[derive(Debug)]
struct Compiling {
    program: Result<Program, String>,
    message: Option<Program>,
    uses_old: bool,
    field_path: String,
}

/// The rules of a schema. It has the shape of the schema, without the levels that have no rules.
#[derive(Debug, Default)]
pub struct Compiled {
    rules: Vec<(Rule, Compiling)>,
    root: bool,
    properties: BTreeMap<String, Compiled>,
    additional: Option<Box<Compiled>>,
    items: Option<Box<Compiled>>,
}

fn env(ty: &Type, optional_old: bool) -> Env {
    let old = if optional_old {
        Type::optional(ty.clone())
    } else {
        ty.clone()
    };
    Env {
        vars: [("self".to_owned(), ty.clone()), ("oldSelf".to_owned(), old)].into(),
        patches: false,
    }
}

/// `self`'s type in messages.
const SELF: &str = "selfType";

impl Compiling {
    fn new(rule: &Rule, ty: &Type, node: &Node) -> Self {
        let env = env(ty, rule.optional_old_self == Some(true));
        let program = Program::compile(&env, &rule.rule);
        let uses_old = program.as_ref().is_ok_and(|p| p.uses("oldSelf"));
        let message = (!rule.message_expression.is_empty())
            .then(|| Program::compile(&env, &rule.message_expression).ok())
            .flatten();
        let field_path = path::shown(&rule.field_path, node).unwrap_or_default();
        Self {
            program,
            message,
            uses_old,
            field_path,
        }
    }
}

/// A value in an object, its previous value, and whether an unchanged value may stay invalid.
#[derive(Clone, Copy)]
struct Here<'a> {
    value: &'a Json,
    old: Option<&'a Json>,
    /// For rules without `oldSelf`: the value to compare with, here or above.
    unchanged: bool,
    ratchet: bool,
}

impl Compiled {
    pub fn new(node: &Node, root: bool) -> Self {
        let ty = declare::of_schema(node, root, SELF);
        Self {
            root,
            rules: node
                .rules
                .iter()
                .filter(|r| !r.rule.trim().is_empty())
                .filter_map(|r| Some((r.clone(), Compiling::new(r, ty.as_ref()?, node))))
                .collect(),
            properties: node
                .properties
                .iter()
                .filter(|(_, p)| p.has_rules)
                .map(|(name, p)| (name.clone(), Self::new(p, p.embedded)))
                .collect(),
            additional: node
                .additional
                .schema()
                .filter(|a| a.has_rules)
                .map(|a| Box::new(Self::new(a, a.embedded))),
            items: node
                .items
                .as_deref()
                .filter(|i| i.has_rules)
                .map(|i| Box::new(Self::new(i, i.embedded))),
        }
    }

    /// Runs every rule; `old` is set for updates. With `ratchet`, an error in an unchanged value is
    /// a warning.
    pub fn check_with(
        &self,
        node: &Node,
        path: &str,
        value: &Json,
        old: Option<&Json>,
        ratchet: bool,
        budget: &mut Budget,
    ) -> Found {
        let mut found = Found::default();
        let spot = Here {
            value,
            old,
            unchanged: false,
            ratchet,
        };
        self.walk(node, path, spot, budget, &mut found);
        found
    }

    fn walk(
        &self,
        node: &Node,
        path: &str,
        spot: Here<'_>,
        budget: &mut Budget,
        found: &mut Found,
    ) {
        if spot.value.is_null() || budget.0 < 0 {
            return;
        }
        let unchanged = spot.ratchet
            && spot
                .old
                .map_or(spot.unchanged, |old| is_unchanged(node, old, spot.value));
        self.run(node, path, Here { unchanged, ..spot }, budget, found);
        match spot.value {
            Json::Object(map) => {
                for (key, value) in map {
                    let (rules, of, at) = match (
                        self.properties.get(key),
                        node.properties.get(key),
                        node.additional.schema(),
                    ) {
                        (Some(rules), Some(of), _) => (
                            rules,
                            of,
                            if path.is_empty() {
                                key.clone()
                            } else {
                                format!("{path}.{key}")
                            },
                        ),
                        (None, None, Some(of)) => match &self.additional {
                            Some(rules) => (&**rules, of, format!("{path}[{key}]")),
                            None => continue,
                        },
                        _ => continue,
                    };
                    let old = spot.old.and_then(|o| o.get(key)).filter(|o| !o.is_null());
                    rules.walk(
                        of,
                        &at,
                        Here {
                            value,
                            old,
                            unchanged,
                            ..spot
                        },
                        budget,
                        found,
                    );
                }
            }
            Json::Array(list) => {
                let (Some(rules), Some(of)) = (&self.items, node.items.as_deref()) else {
                    return;
                };
                for (i, value) in list.iter().enumerate() {
                    let old = old_item(node, spot.old, value);
                    rules.walk(
                        of,
                        &format!("{path}[{i}]"),
                        Here {
                            value,
                            old,
                            unchanged,
                            ..spot
                        },
                        budget,
                        found,
                    );
                }
            }
            _ => {}
        }
    }

    fn run(&self, node: &Node, path: &str, spot: Here<'_>, budget: &mut Budget, found: &mut Found) {
        if self.rules.is_empty() || budget.0 < 0 {
            return;
        }
        // Go prints an empty path this way.
        let path = if path.is_empty() { "<nil>" } else { path };
        let kind = Json::from(node.kind.as_str());
        let this = declare::value(spot.value, node, self.root);
        let before = spot.old.map(|old| declare::value(old, node, self.root));
        let with_old = self.rules.iter().any(|(_, compiled)| compiled.uses_old);
        // Message expressions see the old value itself, even if the rule sees it as optional.
        let of_messages = |name: &str| match name {
            "self" => Some(Ok(this.clone())),
            "oldSelf" if with_old => before.clone().map(Ok),
            _ => None,
        };
        const NO_MORE: &str = "validation failed due to running out of cost budget, no further validation rules will be run";
        for (rule, compiled) in &self.rules {
            if budget.0 <= 0 {
                found.problems.push(Problem::invalid(path, &kind, NO_MORE));
                budget.0 = -1;
                return;
            }
            let optional = rule.optional_old_self == Some(true);
            let program = match &compiled.program {
                Ok(program) => program,
                Err(error) => {
                    found.problems.push(Problem::invalid(
                        path,
                        &kind,
                        &format!("rule compile error: compilation failed: {error}"),
                    ));
                    continue;
                }
            };
            if compiled.uses_old && before.is_none() && !optional {
                continue;
            }
            let vars = |name: &str| match name {
                "self" => Some(Ok(this.clone())),
                "oldSelf" if optional => Some(Ok(Value::Optional(before.clone().map(Box::new)))),
                "oldSelf" => before.clone().map(Ok),
                _ => None,
            };
            let (result, cost) = program.run(&vars, CALL_LIMIT);
            budget.0 -= i64::try_from(cost).unwrap_or(i64::MAX);
            if budget.0 < 0 {
                found.problems.push(Problem::invalid(path, &kind, NO_MORE));
                return;
            }
            match result {
                Ok(Value::Bool(true)) => {}
                Ok(_) => self.report(
                    path,
                    (rule, compiled, node),
                    spot,
                    &of_messages,
                    budget,
                    found,
                ),
                Err(error) => {
                    found
                        .problems
                        .push(Problem::invalid(path, &kind, &failure(&error, rule)));
                    if error == EvalError::Cost {
                        budget.0 = -1;
                        return;
                    }
                }
            }
        }
    }

    fn report(
        &self,
        path: &str,
        (rule, compiled, node): (&Rule, &Compiling, &Node),
        spot: Here<'_>,
        vars: Vars<'_>,
        budget: &mut Budget,
        found: &mut Found,
    ) {
        let path = match compiled.field_path.as_str() {
            "" => path.to_owned(),
            tail if path == "<nil>" => tail.to_owned(),
            tail => format!("{path}.{tail}"),
        };
        let mut detail = default_message(rule);
        if let Some(message) = &compiled.message {
            let (result, cost) = message.run(vars, CALL_LIMIT);
            budget.0 -= i64::try_from(cost).unwrap_or(i64::MAX);
            let out_of_budget = budget.0 < 0 || matches!(result, Err(EvalError::Cost));
            if out_of_budget {
                let why = if budget.0 < 0 {
                    "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
                        .to_owned()
                } else {
                    format!(
                        "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                        gofmt::quoted(&rule.message_expression)
                    )
                };
                found
                    .problems
                    .push(Problem::invalid(&path, &node.kind.as_str().into(), &why));
                budget.0 = -1;
                return;
            }
            if let Ok(Value::String(text)) = result {
                let text = text.trim();
                if !text.is_empty() && text.len() <= MESSAGE_LIMIT && !text.contains('\n') {
                    detail = text.to_owned();
                }
            }
        }
        let plain = matches!(node.kind.as_str(), "object" | "array");
        let problem = match rule.reason.as_deref() {
            Some("FieldValueForbidden") => Problem::forbidden(&path, &detail),
            Some("FieldValueRequired") => Problem::required(&path, &detail),
            Some("FieldValueDuplicate") if plain => Problem::duplicate_bare(&path),
            Some("FieldValueDuplicate") => Problem::duplicate(&path, spot.value),
            _ if plain => Problem::invalid_bare(&path, &detail),
            _ => Problem::invalid(&path, spot.value, &detail),
        };
        if !compiled.uses_old && spot.unchanged {
            found.warnings.push(problem.line());
        } else {
            found.problems.push(problem);
        }
    }
}

fn rule_text(rule: &Rule) -> &str {
    if rule.message.is_empty() {
        rule.rule.trim()
    } else {
        rule.message.trim()
    }
}

fn default_message(rule: &Rule) -> String {
    if rule.message.is_empty() {
        format!("failed rule: {}", rule_text(rule))
    } else {
        rule.message.trim().to_owned()
    }
}

fn failure(error: &EvalError, rule: &Rule) -> String {
    match error {
        EvalError::Cost => {
            format!(
                "'{COST_TEXT}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                rule_text(rule)
            )
        }
        EvalError::Failed(text) if text.starts_with("no such overload") => format!(
            "'{text}': call arguments did not match a supported operator, function or macro signature for rule: {}",
            rule_text(rule)
        ),
        EvalError::Failed(text) => format!("{text} evaluating rule: {}", rule_text(rule)),
    }
}

/// A level in the schema of a definition, and how often its data may occur.
#[derive(Clone, Copy)]
pub struct Spot {
    root: bool,
    /// None: unlimited.
    times: Option<u64>,
}

fn elements(schema: &Json, key: &str) -> Option<u64> {
    schema
        .get(key)
        .and_then(Json::as_i64)
        .map(|n| u64::try_from(n).unwrap_or(0))
}

impl Spot {
    pub fn root() -> Self {
        Self {
            root: true,
            times: Some(1),
        }
    }

    fn below(self, schema: &Json) -> Self {
        let factor = match schema.get("type").and_then(Json::as_str) {
            Some("object")
                if schema
                    .get("additionalProperties")
                    .is_some_and(|a| !a.is_null()) =>
            {
                elements(schema, "maxProperties")
            }
            Some("array") => elements(schema, "maxItems"),
            _ => Some(1),
        };
        let times = match (self.times, factor) {
            (Some(a), Some(b)) => Some(a.saturating_mul(b)),
            _ => None,
        };
        Self { root: false, times }
    }

    pub fn property(&self, schema: &Json, _name: &str) -> Self {
        self.below(schema)
    }

    pub fn additional(&self, schema: &Json) -> Self {
        self.below(schema)
    }

    pub fn items(&self, schema: &Json) -> Self {
        self.below(schema)
    }
}

/// The limit of a rule's estimated cost, and of all rules of a definition together.
const RULE_LIMIT: u64 = 10_000_000;
const TOTAL_LIMIT: u64 = 100_000_000;

/// Compiles the rules of a definition and adds up their estimated cost.
pub struct Definitions<'n> {
    _root: &'n Node,
    total: u64,
    expensive: Vec<(u64, String)>,
}

fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where \
         arrays, maps, and strings are declared)"
    )
}

impl<'n> Definitions<'n> {
    pub fn new(root: &'n Node) -> Self {
        Self {
            _root: root,
            total: 0,
            expensive: Vec::new(),
        }
    }

    fn observe(&mut self, path: String, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost >= TOTAL_LIMIT / 100 {
            self.expensive.push((cost, path));
            self.expensive
                .sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.expensive.truncate(4);
        }
    }

    /// Checks the rules at one level. `lost` is the level above at which values cannot be
    /// correlated across updates.
    pub fn check(
        &mut self,
        schema: &Json,
        spot: &Spot,
        path: &str,
        lost: Option<&str>,
    ) -> Vec<Problem> {
        let node = Node::read(schema);
        let root = spot.root || node.embedded;
        let Some(ty) = declare::of_schema(&node, root, SELF) else {
            let why = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            return vec![Problem::internal(
                &format!("{path}.x-kubernetes-validations"),
                why,
            )];
        };
        let sizes = Sizes::new(&node, root);
        let mut problems = Vec::new();
        for (i, rule) in node.rules.iter().enumerate() {
            let at = |key: &str| format!("{path}.x-kubernetes-validations[{i}].{key}");
            if rule.rule.trim().is_empty() {
                continue;
            }
            let env = env(&ty, rule.optional_old_self == Some(true));
            let shown = internal::rule(&schema["x-kubernetes-validations"][i]);
            let mut bad = |key: &str, detail: String| {
                let text = format!("Invalid value: {shown}: {detail}");
                problems.push(Problem {
                    reason: "FieldValueInvalid",
                    path: at(key),
                    text,
                });
            };
            let program = match Program::compile(&env, &rule.rule) {
                Err(error) => {
                    bad("rule", format!("compilation failed: {error}"));
                    None
                }
                Ok(program) if program.ty != Type::Bool => {
                    bad("rule", "cel expression must evaluate to a bool".into());
                    None
                }
                Ok(program) => Some(program),
            };
            if let Some(program) = &program {
                let times = spot.times.unwrap_or_else(|| sizes.occurrences());
                let cost = estimate::cost(program, &sizes).saturating_mul(times);
                if cost > RULE_LIMIT {
                    problems.push(Problem::forbidden(
                        &at("rule"),
                        &too_expensive("estimated rule cost", cost, RULE_LIMIT),
                    ));
                }
                self.observe(at("rule"), cost);
                problems.extend(self.message(rule, &env, &sizes, &at("messageExpression"), &shown));
            }
            if program.is_some_and(|p| p.uses("oldSelf")) {
                if let Some(lost) = lost {
                    let detail = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {lost}"
                    );
                    problems.push(Problem::invalid(
                        &at("rule"),
                        &rule.rule.as_str().into(),
                        &detail,
                    ));
                }
            } else if let Some(optional) = rule.optional_old_self {
                let detail = "may not be set if oldSelf is not used in rule";
                problems.push(Problem::invalid(
                    &at("optionalOldSelf"),
                    &optional.into(),
                    detail,
                ));
            }
        }
        problems
    }

    fn message(
        &mut self,
        rule: &Rule,
        env: &Env,
        sizes: &Sizes<'_>,
        at: &str,
        shown: &str,
    ) -> Option<Problem> {
        if rule.message_expression.is_empty() {
            return None;
        }
        let bad = |detail: String| {
            Some(Problem {
                reason: "FieldValueInvalid",
                path: at.to_owned(),
                text: format!("Invalid value: {shown}: {detail}"),
            })
        };
        let program = match Program::compile(env, &rule.message_expression) {
            Err(error) => return bad(format!("messageExpression compilation failed: {error}")),
            Ok(program) if program.ty != Type::String => {
                return bad("messageExpression must evaluate to a string".into());
            }
            Ok(program) => program,
        };
        let cost = estimate::cost(&program, sizes);
        self.observe(at.to_owned(), cost);
        (cost > RULE_LIMIT).then(|| {
            Problem::forbidden(
                at,
                &too_expensive("estimated messageExpression cost", cost, RULE_LIMIT),
            )
        })
    }

    /// The errors about all rules together.
    pub fn total(&self, path: &str) -> Vec<Problem> {
        if self.total <= TOTAL_LIMIT {
            return Vec::new();
        }
        let part = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let whole = too_expensive(
            "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
            self.total,
            TOTAL_LIMIT,
        );
        let each = self
            .expensive
            .iter()
            .map(|(_, at)| Problem::forbidden(at, part));
        each.chain([Problem::forbidden(path, &whole)]).collect()
    }
}

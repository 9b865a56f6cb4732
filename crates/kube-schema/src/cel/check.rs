//! Determines the types of an expression and finds type errors. Main function: [`check`].

use super::ast::{Expr, Field, Fold, Kind, Literal};
use super::functions::{self, Overload};
use super::lexer::Issue;
use super::types::{Mapping, Type};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The variables that an expression may use.
#[derive(Clone, Debug, Default)]
pub struct Env {
    pub vars: BTreeMap<String, Type>,
    /// Whether the types of patches are available: `Object{}`, `JSONPatch{}` and related ones.
    pub patches: bool,
}

struct Checker<'e> {
    env: &'e Env,
    scopes: Vec<(String, Type)>,
    mapping: Mapping,
    issues: Vec<Issue>,
    fresh: usize,
    /// Inside the arguments of `format`, whose elements may have different types.
    mixed: usize,
}

/// The maximum number of reported issues.
const MAX_ISSUES: usize = 100;

/// The type of the expression. Names such as `sets.contains` are resolved to functions.
pub fn check(env: &Env, expr: &mut Expr) -> Result<Type, Vec<Issue>> {
    let mut checker = Checker {
        env,
        scopes: Vec::new(),
        mapping: Mapping::default(),
        issues: Vec::new(),
        fresh: 0,
        mixed: 0,
    };
    let ty = checker.expr(expr);
    let ty = checker.mapping.apply(&ty, true);
    super::literals::check(expr, &mut checker.issues);
    if checker.issues.is_empty() {
        return Ok(ty);
    }
    checker.issues.sort_by_key(|i| i.at);
    checker.issues.truncate(MAX_ISSUES);
    Err(checker.issues)
}

fn named_type(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "type" => Type::of_type(Type::Dyn),
        "dyn" => Type::Dyn,
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        "net.IP" => Type::Opaque("net.IP"),
        "net.CIDR" => Type::Opaque("net.CIDR"),
        "kubernetes.Quantity" => Type::Opaque("kubernetes.Quantity"),
        "kubernetes.Semver" => Type::Opaque("kubernetes.Semver"),
        "kubernetes.URL" => Type::Opaque("kubernetes.URL"),
        _ => return None,
    })
}

impl Checker<'_> {
    fn issue(&mut self, at: usize, message: String) {
        self.issues.push(Issue { at, message });
    }

    fn new_var(&mut self) -> Type {
        self.fresh += 1;
        Type::Var(Arc::from(format!("_var{}", self.fresh - 1)))
    }

    fn lookup(&self, name: &str) -> Option<Type> {
        let scoped = self
            .scopes
            .iter()
            .rev()
            .find(|(n, _)| n == name)
            .map(|(_, ty)| ty.clone());
        scoped
            .or_else(|| self.env.vars.get(name).cloned())
            .or_else(|| named_type(name).map(Type::of_type))
    }

    fn expr(&mut self, expr: &mut Expr) -> Type {
        let at = expr.at;
        match &mut expr.kind {
            Kind::Literal(literal) => of_literal(literal),
            Kind::Ident(name) => match self.lookup(name) {
                Some(ty) => ty,
                None => {
                    let message = format!("undeclared reference to '{name}' (in container '')");
                    self.issue(at, message);
                    Type::Error
                }
            },
            Kind::Select { .. } => self.select(expr),
            Kind::Call { .. } => self.call(expr),
            Kind::List(items) => {
                let mut joined = None;
                for (item, optional) in items {
                    let ty = self.element(item, *optional);
                    joined = Some(self.join(item.at, joined, ty));
                }
                Type::list(joined.unwrap_or_else(|| self.new_var()))
            }
            Kind::Map(entries) => {
                let (mut keys, mut values) = (None, None);
                for (key, value, optional) in entries {
                    let ty = self.expr(key);
                    keys = Some(self.join(key.at, keys, ty));
                    let ty = self.element(value, *optional);
                    values = Some(self.join(value.at, values, ty));
                }
                let key = keys.unwrap_or_else(|| self.new_var());
                Type::map(key, values.unwrap_or_else(|| self.new_var()))
            }
            Kind::Struct(name, fields) => {
                let found = super::admission::constructed(name).filter(|_| self.env.patches);
                let Some(Type::Object(object)) = &found else {
                    // The inner expressions are not checked.
                    let message = format!("undeclared reference to '{name}' (in container '')");
                    self.issue(at, message);
                    return Type::Error;
                };
                for Field {
                    name,
                    at,
                    value,
                    optional,
                } in fields
                {
                    let ty = self.element(value, *optional);
                    match object.fields.get(name) {
                        Some(wanted) if !self.mapping.assign(wanted, &ty) => {
                            let ty = self.mapping.apply(&ty, true);
                            self.issue(*at, format!("expected type of field '{name}' is '{wanted}' but provided type is '{ty}'"));
                        }
                        None if !object.open => {
                            let ty = self.mapping.apply(&ty, true);
                            self.issue(*at, format!("expected type of field '{name}' is '' but provided type is '{ty}'"));
                        }
                        _ => {}
                    }
                }
                found.unwrap_or(Type::Error)
            }
            Kind::Fold(fold) => self.fold(fold),
        }
    }

    fn element(&mut self, item: &mut Expr, optional: bool) -> Type {
        let ty = self.expr(item);
        if !optional {
            return ty;
        }
        let (inner, is_optional) = ty.unwrapped();
        if !is_optional && !matches!(inner, Type::Dyn) {
            self.issue(
                item.at,
                format!(
                    "expected type '{}' but found '{inner}'",
                    Type::optional(inner.clone())
                ),
            );
        }
        inner.clone()
    }

    /// The elements of a literal have one common type.
    fn join(&mut self, at: usize, so_far: Option<Type>, next: Type) -> Type {
        let Some(so_far) = so_far else { return next };
        if self.mapping.assign(&so_far, &next) {
            return self.mapping.more_general(&so_far, &next);
        }
        let (want, found) = (
            self.mapping.apply(&so_far, true),
            self.mapping.apply(&next, true),
        );
        if self.mixed == 0 {
            self.issue(at, format!("expected type '{want}' but found '{found}'"));
        }
        Type::Dyn
    }

    fn select(&mut self, expr: &mut Expr) -> Type {
        let at = expr.at;
        // Some variables have a dot in their name.
        if let Some(name) = expr
            .qualified()
            .filter(|name| self.env.vars.contains_key(name))
            && let Some(ty) = self.env.vars.get(&name).cloned()
        {
            expr.kind = Kind::Ident(name);
            return ty;
        }
        // `google.protobuf.Timestamp` is one name.
        if let Some(name) = expr.qualified()
            && let Some(ty) = named_type(&name)
            && !self.is_var(name.split('.').next().unwrap_or(""))
        {
            expr.kind = Kind::Ident(name);
            return Type::of_type(ty);
        }
        let Kind::Select {
            operand,
            field,
            optional,
            test,
        } = &mut expr.kind
        else {
            return Type::Error;
        };
        let (field, optional, test) = (field.clone(), *optional, *test);
        let operand = self.expr(operand);
        let operand = self.mapping.apply(&operand, false);
        let (target, was_optional) = operand.unwrapped();
        let found = match target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => match object
                .fields
                .get(&field)
                .or_else(|| object.fields.get(&format!("__{field}__")))
            {
                Some(ty) => ty.clone(),
                None if object.open => Type::Dyn,
                None => {
                    self.issue(at, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Var(_) => {
                self.mapping.assign(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                self.issue(
                    at,
                    format!("type '{other}' does not support field selection"),
                );
                Type::Dyn
            }
        };
        if test {
            return Type::Bool;
        }
        if (was_optional || optional) && !matches!(found, Type::Optional(_)) {
            Type::optional(found)
        } else {
            found
        }
    }

    fn is_var(&self, name: &str) -> bool {
        self.scopes.iter().any(|(n, _)| n == name) || self.env.vars.contains_key(name)
    }

    fn call(&mut self, expr: &mut Expr) -> Type {
        let at = expr.at;
        let Kind::Call {
            function,
            target,
            args,
        } = &mut expr.kind
        else {
            return Type::Error;
        };
        let mut types: Vec<Type> = Vec::new();
        if let Some(inner) = target {
            let qualified = inner
                .qualified()
                .filter(|name| !self.is_var(name.split('.').next().unwrap_or("")));
            if let Some(whole) = qualified
                .map(|name| format!("{name}.{function}"))
                .filter(|n| self.find(n).is_some())
            {
                *function = whole;
                *target = None;
            }
        }
        let mixed = usize::from(function == "format");
        self.mixed += mixed;
        for arg in args.iter_mut() {
            types.push(self.expr(arg));
        }
        self.mixed -= mixed;
        if target.is_none() {
            let name = function.clone();
            let Some(overloads) = self.find(&name) else {
                self.issue(
                    at,
                    format!("undeclared reference to '{name}' (in container '')"),
                );
                return Type::Error;
            };
            if matches!(name.as_str(), "_&&_" | "_||_") {
                return self.logical(args, &types);
            }
            return self.resolve(at, &name, overloads, types, false);
        }
        let name = function.clone();
        if let Some(inner) = target {
            let ty = self.expr(inner);
            types.insert(0, ty);
        }
        let Some(overloads) = functions::find(&name) else {
            self.issue(
                at,
                format!("undeclared reference to '{name}' (in container '')"),
            );
            return Type::Error;
        };
        self.resolve(at, &name, overloads, types, true)
    }

    /// The overloads of a function, if it is available here.
    fn find(&self, name: &str) -> Option<&'static [Overload]> {
        functions::find(name).filter(|_| self.env.patches || name != "jsonpatch.escapeKey")
    }

    fn logical(&mut self, args: &[Expr], types: &[Type]) -> Type {
        let mut ok = true;
        for (arg, ty) in args.iter().zip(types) {
            if !self.mapping.assign(ty, &Type::Bool) {
                let found = self.mapping.apply(ty, true);
                self.issue(arg.at, format!("expected type 'bool' but found '{found}'"));
                ok = false;
            }
        }
        if ok { Type::Bool } else { Type::Error }
    }

    fn resolve(
        &mut self,
        at: usize,
        name: &str,
        overloads: &[Overload],
        types: Vec<Type>,
        method: bool,
    ) -> Type {
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|o| o.method == method) {
            let (args, of) = self.instantiate(overload);
            if self.mapping.assign_all(&types, &args) {
                let of = self.mapping.apply(&of, false);
                result = Some(match result {
                    None => of,
                    Some(known) if known == of || known == Type::Dyn => known,
                    Some(_) => Type::Dyn,
                });
            }
        }
        if let Some(result) = result {
            return result;
        }
        let shown: Vec<String> = types
            .iter()
            .map(|t| self.mapping.apply(t, true).to_string())
            .collect();
        let signature = match (method, shown.split_first()) {
            (true, Some((target, args))) => format!("{target}.({})", args.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        self.issue(
            at,
            format!("found no matching overload for '{name}' applied to '{signature}'"),
        );
        Type::Error
    }

    /// The overload with fresh type variables.
    fn instantiate(&mut self, overload: &Overload) -> (Vec<Type>, Type) {
        let mut fresh: HashMap<Arc<str>, Type> = HashMap::new();
        let args = overload
            .args
            .iter()
            .map(|a| self.renamed(a, &mut fresh))
            .collect();
        (args, self.renamed(&overload.result, &mut fresh))
    }

    fn renamed(&mut self, ty: &Type, fresh: &mut HashMap<Arc<str>, Type>) -> Type {
        match ty {
            Type::Var(name) => match fresh.get(name) {
                Some(var) => var.clone(),
                None => {
                    let var = self.new_var();
                    fresh.insert(name.clone(), var.clone());
                    var
                }
            },
            Type::List(of) => Type::list(self.renamed(of, fresh)),
            Type::Map(key, value) => {
                Type::map(self.renamed(key, fresh), self.renamed(value, fresh))
            }
            Type::Optional(of) => Type::optional(self.renamed(of, fresh)),
            Type::Kind(of) => Type::of_type(self.renamed(of, fresh)),
            other => other.clone(),
        }
    }

    fn fold(&mut self, fold: &mut Fold) -> Type {
        let range = self.expr(&mut fold.range);
        let accu = self.expr(&mut fold.init);
        let range = self.mapping.apply(&range, false);
        let (first, second) = match &range {
            Type::List(of) if fold.second.is_some() => (Type::Int, (**of).clone()),
            Type::List(of) => ((**of).clone(), Type::Dyn),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Var(_) | Type::Dyn | Type::Error => {
                self.mapping.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.issue(fold.range.at, message);
                (Type::Error, Type::Error)
            }
        };
        self.scopes.push((fold.accu.clone(), accu.clone()));
        let depth = self.scopes.len();
        self.scopes.push((fold.var.clone(), first));
        if let Some(name) = &fold.second {
            self.scopes.push((name.clone(), second));
        }
        let condition = self.expr(&mut fold.condition);
        self.expect(fold.condition.at, &condition, &Type::Bool);
        let step = self.expr(&mut fold.step);
        self.expect(fold.step.at, &step, &accu);
        self.scopes.truncate(depth);
        let result = self.expr(&mut fold.result);
        self.scopes.truncate(depth - 1);
        self.mapping.apply(&result, false)
    }

    fn expect(&mut self, at: usize, found: &Type, wanted: &Type) {
        if !self.mapping.assign(found, wanted) {
            let (wanted, found) = (
                self.mapping.apply(wanted, true),
                self.mapping.apply(found, true),
            );
            self.issue(at, format!("expected type '{wanted}' but found '{found}'"));
        }
    }
}

fn of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) | Literal::Whole(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

//! The arguments of calls.

use super::super::builtins::Builtin;
use super::super::error::ExprError;
use super::super::methods::Method;
use super::super::node::{Expr, Node};
use super::super::types::{Kind, Ty};
use super::super::value::Param;
use super::signatures::{Rule, Signature, rule};
use super::{Checked, Checker, fails};

impl Checker {
    pub(super) fn call(&mut self, callee: &mut Expr, args: &mut [Expr], at: usize) -> Checked {
        if matches!(&callee.node, Node::Ident(name) if name == "$env") {
            return fails(callee, "$env is not callable");
        }
        let ty = self.visit(callee)?;
        match ty {
            Ty::Nil => fails(callee, "cannot call nil as function"),
            Ty::Method(method) => self.method(method, args, at),
            // Nothing is checked in the arguments of an unknown function.
            Ty::Unknown | Ty::Any | Ty::Func => Ok(Ty::Unknown),
            other => Err(ExprError::compile(at, format!("{other} is not callable"))),
        }
    }

    fn method(&mut self, method: &'static Method, args: &mut [Expr], at: usize) -> Checked {
        let params: Vec<Ty> = method.params.iter().map(|p| of_param(*p)).collect();
        self.arguments(&format!("{method:?}"), &params, args, at)?;
        Ok(method.result.clone())
    }

    /// A call of a builtin function without a predicate.
    pub(super) fn builtin(&mut self, function: Builtin, args: &mut [Expr], at: usize) -> Checked {
        if function == Builtin::Get {
            return self.get(args, at);
        }
        match rule(function) {
            Rule::Signatures(signatures) => self.overloaded(function, signatures, args, at),
            Rule::Own(validate) => {
                let mut types = Vec::with_capacity(args.len());
                for arg in args {
                    types.push(self.visit(arg)?);
                }
                validate(function, &types).map_err(|message| ExprError::compile(at, message))
            }
        }
    }

    fn overloaded(
        &mut self,
        function: Builtin,
        signatures: &[Signature],
        args: &mut [Expr],
        at: usize,
    ) -> Checked {
        let mut last = None;
        for signature in signatures {
            let params: Vec<Ty> = signature.params.iter().map(|p| p.ty()).collect();
            match self.arguments(function.name(), &params, args, at) {
                Ok(()) => return Ok(signature.result.ty()),
                Err(error) => last = Some(error),
            }
        }
        let message = format!("no matching overload for {}", function.name());
        Err(last.unwrap_or_else(|| ExprError::compile(at, message)))
    }

    fn arguments(
        &mut self,
        name: &str,
        params: &[Ty],
        args: &mut [Expr],
        at: usize,
    ) -> Checked<()> {
        if args.len() != params.len() {
            let which = if args.len() > params.len() {
                "too many"
            } else {
                "not enough"
            };
            let message = format!("{which} arguments to call {name}");
            return Err(ExprError::compile(at, message));
        }
        for (arg, param) in args.iter_mut().zip(params) {
            let ty = self.visit(arg)?;
            let numbers = ty.is_integer() && param.is_number();
            if numbers || ty.is_unknown() {
                continue;
            }
            if ty.is_nil() {
                if matches!(param.kind(), Kind::Interface | Kind::Pointer) {
                    continue;
                }
                return fails(
                    arg,
                    format!("cannot use nil as argument (type {param}) to call {name}"),
                );
            }
            if !ty.is_assignable_to(param) {
                return fails(
                    arg,
                    format!("cannot use {ty} as argument (type {param}) to call {name} "),
                );
            }
        }
        Ok(())
    }

    fn get(&mut self, args: &mut [Expr], at: usize) -> Checked {
        let [of, property] = args else {
            let message = format!(
                "invalid number of arguments (expected 2, got {})",
                args.len()
            );
            return Err(ExprError::compile(at, message));
        };
        let (base, key) = (self.visit(of)?, self.visit(property)?);
        if base.is_unknown() {
            return Ok(Ty::Unknown);
        }
        match base.kind() {
            Kind::Slice if key.is_integer() || key.is_unknown() => Ok(base.element()),
            Kind::Slice => fails(property, format!("non-integer slice index {key}")),
            Kind::Map if key.is_assignable_to(&base.key()) || key.is_unknown() => {
                Ok(base.element())
            }
            Kind::Map => fails(
                property,
                format!("cannot use {key} to get an element from {base}"),
            ),
            _ => fails(of, format!("type {base} does not support indexing")),
        }
    }
}

fn of_param(param: Param) -> Ty {
    match param {
        Param::Any => Ty::Any,
        Param::Str => Ty::Str,
        Param::Int => Ty::Int,
        Param::Time => Ty::Time,
        Param::Duration => Ty::Duration,
        Param::Location => Ty::Location,
        Param::Strings => Ty::Strings,
    }
}

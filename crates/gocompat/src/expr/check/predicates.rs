//! The types of functions with a predicate.

use super::super::builtins::Builtin;
use super::super::node::BuiltinCall;
use super::super::types::Ty;
use super::super::value::MapKind;
use super::{Checked, Checker, Scope, fails};

impl Checker {
    pub(super) fn predicate_call(&mut self, call: &mut BuiltinCall) -> Checked {
        let function = call.function;
        let name = function.name();
        let [list, rest @ ..] = call.args.as_mut_slice() else {
            return Ok(Ty::Unknown);
        };
        let ty = self.visit(list)?;
        if !ty.is_array() && !ty.is_unknown() {
            return fails(list, format!("builtin {name} takes only array (got {ty})"));
        }
        let Some((predicate, rest)) = rest.split_first_mut() else {
            return Ok(match function {
                Builtin::Count => Ty::Int,
                _ => ty.element(),
            });
        };
        self.scopes.push(Scope {
            list: ty.clone(),
            index: matches!(function, Builtin::Map | Builtin::Reduce),
            acc: function == Builtin::Reduce,
        });
        let out = self.visit(predicate)?;
        self.scopes.pop();
        if let Some(last) = rest.first_mut() {
            let extra = self.visit(last)?;
            if function == Builtin::SortBy && !extra.is_string() && !extra.is_unknown() {
                return fails(
                    last,
                    format!("sortBy order argument must be a string (got {extra})"),
                );
            }
        }
        if out.is_nil() {
            return fails(
                predicate,
                "predicate should has one input and one output param",
            );
        }
        let wants_bool = !matches!(
            function,
            Builtin::Map | Builtin::Sum | Builtin::GroupBy | Builtin::SortBy | Builtin::Reduce
        );
        if wants_bool && !out.is_bool() && !out.is_unknown() {
            return fails(
                predicate,
                format!("predicate should return boolean (got {out})"),
            );
        }
        Ok(result(function, &ty, out))
    }
}

fn result(function: Builtin, list: &Ty, out: Ty) -> Ty {
    match function {
        Builtin::Filter if list.is_unknown() => Ty::list(Ty::Any),
        Builtin::Filter => Ty::list(list.element()),
        Builtin::Map => Ty::list(out),
        Builtin::Count | Builtin::FindIndex | Builtin::FindLastIndex => Ty::Int,
        Builtin::Sum if out.is_unknown() => Ty::Any,
        Builtin::Sum | Builtin::Reduce => out,
        Builtin::Find | Builtin::FindLast => list.element(),
        Builtin::GroupBy => Ty::Map(MapKind::Groups),
        Builtin::SortBy => list.clone(),
        _ => Ty::Bool,
    }
}

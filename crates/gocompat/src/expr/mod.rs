//! expr-lang, as expressions of notifications' triggers use it: compiled without a declared
//! environment, so that types are known from literals, operators and builtin functions only.
//!
//! Main type: [`Program`]. A program is parsed, checked ([`check`]) and rewritten ([`optimize`])
//! once, and can then be run with any environment. Programs are untrusted: their size, nesting,
//! steps, elements and bytes are limited.

mod access;
mod builtins;
mod check;
mod convert;
mod error;
mod eval;
mod lexer;
mod methods;
mod node;
mod operators;
mod optimize;
mod parser;
mod predicates;
mod print;
mod types;
mod unescape;
mod value;

pub use convert::{from_template, to_template};
pub use error::{ExprError, Phase};
pub use eval::{Clock, Limits};
pub use print::display;
pub use value::{Func, IntKind, Key, List, ListKind, Map, MapKind, Param, Struct, Value};

use node::Expr;

/// Longest program that is accepted, in bytes.
const MAX_LENGTH: usize = 64 << 10;

/// A program that can be run.
#[derive(Debug)]
pub struct Program(Expr);

impl Program {
    /// # Errors
    /// With [`Phase::Compile`]: a mistake of syntax, an operator that does not fit its operands'
    /// known types, or a program beyond the limits.
    pub fn compile(code: &str) -> Result<Self, ExprError> {
        if code.len() > MAX_LENGTH {
            return Err(ExprError::compile(
                0,
                format!("an expression may have {MAX_LENGTH} bytes"),
            )
            .placed(code));
        }
        let compiled = parser::parse(code).and_then(|mut tree| {
            check::check(&mut tree)?;
            optimize::optimize(&mut tree)?;
            Ok(tree)
        });
        compiled.map(Self).map_err(|error| error.placed(code))
    }

    /// The value for an environment, a map of names.
    ///
    /// # Errors
    /// With [`Phase::Run`]: an operation that its operands do not have, or a limit.
    pub fn run(&self, env: &Value, clock: &Clock, limits: Limits) -> Result<Value, ExprError> {
        eval::run(&self.0, env, clock, limits)
    }
}

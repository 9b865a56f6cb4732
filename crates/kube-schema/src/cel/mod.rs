//! The expression language of validation rules and admission policies (CEL): parsed, checked, and
//! evaluated within a budget.
//!
//! Main types: [`Env`] (the variables and their types), [`Program`]. It knows schemas ([`declare`],
//! [`rules`]), but no registry. It does not use a library, because the available ones have no type
//! check, no budget and different error messages from Kubernetes.

pub mod admission;
mod ast;
pub mod authz;
mod check;
pub mod declare;
pub mod devices;
pub mod estimate;
mod eval;
mod functions;
mod kinds;
mod lexer;
mod library;
mod lists;
mod literals;
mod macros;
mod parser;
pub mod rules;
mod strings;
#[cfg(test)]
mod tests;
mod time;
pub mod types;
pub mod value;

use ast::Expr;
pub use check::Env;
pub use eval::{COST_TEXT, EvalError, Evaluated, Vars};
pub use kinds::Opaque;
use lexer::Issue;
use types::Type;
use value::Value;

/// An expression that has been checked.
#[derive(Debug)]
pub struct Program {
    expr: Expr,
    pub ty: Type,
}

impl Program {
    /// Errors have the real library's wording.
    pub fn compile(env: &Env, source: &str) -> Result<Self, String> {
        let chars: Vec<char> = source.chars().collect();
        let mut expr = parser::parse(&chars).map_err(|issues| shown(&issues, source))?;
        let ty = check::check(env, &mut expr).map_err(|issues| shown(&issues, source))?;
        Ok(Self { expr, ty })
    }

    /// Whether the expression uses a variable.
    pub fn uses(&self, variable: &str) -> bool {
        let mut found = false;
        self.expr
            .visit(&mut |e| found |= e.as_ident() == Some(variable));
        found
    }

    /// The value and its cost.
    pub fn run(&self, vars: Vars<'_>, limit: u64) -> (Result<Value, EvalError>, u64) {
        let mut evaluator = eval::Evaluator::new(vars, limit);
        let result = evaluator.eval(&self.expr);
        (result, evaluator.cost)
    }
}

/// `ERROR: <input>:1:6: …`, the line, and an arrow below it.
fn shown(issues: &[Issue], source: &str) -> String {
    if source.is_empty() {
        // The error has no position.
        return issues
            .iter()
            .map(|issue| format!("ERROR: <input>:1:0: {}", issue.message))
            .collect::<Vec<_>>()
            .join("\n");
    }
    let lines: Vec<&str> = source.split('\n').collect();
    let mut parts = Vec::new();
    for issue in issues {
        let (mut line, mut column) = (0, issue.at);
        while line + 1 < lines.len() && column > lines[line].chars().count() {
            column -= lines[line].chars().count() + 1;
            line += 1;
        }
        let snippet = lines.get(line).unwrap_or(&"").replace('\t', " ");
        let wide = |c: char| c.len_utf8() > 1;
        let dots: String = snippet
            .chars()
            .take(column)
            .map(|c| if wide(c) { '\u{ff0e}' } else { '.' })
            .collect();
        let arrow = if snippet.chars().nth(column).is_some_and(wide) {
            '\u{ff3e}'
        } else {
            '^'
        };
        parts.push(format!(
            "ERROR: <input>:{}:{}: {}\n | {snippet}\n | {dots}{arrow}",
            line + 1,
            column + 1,
            issue.message
        ));
    }
    parts.join("\n")
}

//! Checks constant arguments that can be checked before evaluation: patterns, durations, times.
//! Main function: [`check`].

use super::ast::{Expr, Kind, Literal};
use super::lexer::Issue;
use super::time;
use crate::go_regex;

pub fn check(expr: &Expr, issues: &mut Vec<Issue>) {
    expr.visit(&mut |e| {
        let Kind::Call {
            function,
            target,
            args,
        } = &e.kind
        else {
            return;
        };
        let mut all = target.iter().map(|t| &**t).chain(args);
        let pick = match function.as_str() {
            "duration" | "timestamp" => all.next(),
            "matches" => all.nth(1),
            _ => return,
        };
        let Some(Expr {
            at,
            kind: Kind::Literal(literal),
        }) = pick
        else {
            return;
        };
        if let (Literal::Int(seconds), "timestamp") = (literal, function.as_str())
            && !time::YEARS.contains(seconds)
        {
            issues.push(Issue {
                at: *at,
                message: "invalid timestamp argument".to_owned(),
            });
        }
        let Literal::String(text) = literal else {
            return;
        };
        let why = match function.as_str() {
            "duration" => time::parse_duration(text)
                .is_none()
                .then(|| "invalid duration argument".to_owned()),
            "timestamp" => time::parse_timestamp(text)
                .is_none()
                .then(|| "invalid timestamp argument".to_owned()),
            _ => go_regex::error(text).map(|_| "invalid matches argument".to_owned()),
        };
        if let Some(message) = why {
            issues.push(Issue { at: *at, message });
        }
    });
}

//! Expressions compared with what expr-lang gives (../shared/cases/expr.jsonl), and hostile ones.
#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

mod differences;
mod limits;
mod replay;

use serde_json::Value;

/// Cases that may not get fewer.
const LEAST: usize = 2017;

#[test]
fn as_expr_lang_runs_them() {
    let Some(file) = tiphys_testkit::shared("cases/expr.jsonl") else {
        return;
    };
    let lines = std::fs::read_to_string(file).expect("the cases");
    let mut lines = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a case is JSON"));
    let env = replay::environment(&lines.next().expect("the environment"));
    let (mut count, mut wrong) = (0, Vec::new());
    for case in lines {
        count += 1;
        wrong.extend(replay::differs(&case, &env));
    }
    assert!(
        count - wrong.len() >= LEAST,
        "{} of {count} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

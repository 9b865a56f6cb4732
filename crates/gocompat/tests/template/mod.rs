//! Templates against what Go's text/template made of them (tests/baseline/template.jsonl, by
//! tests/baseline/generate/template), and what hostile ones get. `cargo xtask baseline template`
//! compares as many more as one likes.

mod limits;
mod replay;
mod world;

#[test]
fn as_go_executes_them() {
    let (count, classes) = replay::replay(include_str!("../baseline/template.jsonl"));
    let wrong: Vec<String> = classes.into_values().flatten().collect();
    assert!(
        wrong.is_empty(),
        "{} of {count} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

//! Templates compared with the results of Go's text/template (tests/baseline/template.jsonl, by
//! tests/baseline/generate/template), and hostile ones. `cargo xtask baseline template` compares
//! any number of further ones.

mod limits;
mod output;
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

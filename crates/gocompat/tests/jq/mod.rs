//! jq programs against what gojq made of them (tests/baseline/jq.jsonl, by
//! tests/baseline/generate/jq), and what hostile ones get. `cargo xtask parity jq` compares as many
//! more as one likes.

mod limits;
mod replay;

#[test]
fn as_gojq_runs_them() {
    let (count, wrong) = replay::replay(include_str!("../baseline/jq.jsonl"));
    assert!(count > 1000, "{count}");
    assert!(
        wrong.is_empty(),
        "{} of {count} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

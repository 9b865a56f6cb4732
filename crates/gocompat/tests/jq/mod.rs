//! jq programs compared with gojq's results (tests/baseline/jq.jsonl, by
//! tests/baseline/generate/jq), and hostile ones. `cargo xtask parity jq` compares any number of
//! further ones.

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

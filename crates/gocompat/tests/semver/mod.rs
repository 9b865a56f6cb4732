//! Versions and constraints compared with the results of Masterminds/semver
//! (tests/baseline/semver.jsonl, by tests/baseline/generate/semver). `cargo xtask parity semver`
//! compares any number of further ones.

mod replay;

#[test]
fn as_masterminds_reads_and_checks_them() {
    let (count, wrong) = replay::replay(include_str!("../baseline/semver.jsonl"));
    let wrong: Vec<&str> = wrong.iter().map(|(_, told)| told.as_str()).collect();
    assert!(count > 2500, "{count}");
    assert!(
        wrong.is_empty(),
        "{} of {count} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

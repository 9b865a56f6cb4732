//! YAML documents and values compared with the results of sigs.k8s.io/yaml
//! (tests/baseline/yaml.jsonl, by tests/baseline/generate/yaml). `cargo xtask parity yaml` compares
//! any number of further ones.

mod replay;

#[test]
fn as_sigs_yaml_reads_and_prints_them() {
    let (count, wrong) = replay::replay(include_str!("../baseline/yaml.jsonl"));
    let shown = |(case, difference): &(serde_json::Value, replay::Difference)| {
        format!(
            "{}: {case}\n    Go {}\n  ours {}",
            difference.class, difference.theirs, difference.ours
        )
    };
    let wrong: Vec<String> = wrong.iter().map(shown).collect();
    assert!(
        wrong.is_empty(),
        "{} of {count} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

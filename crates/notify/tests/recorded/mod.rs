//! What Argo CD's notifications give (../shared/cases/notify.jsonl), compared with ours.

mod case;
mod compare;
mod transport;

use case::Case;
use std::collections::BTreeMap;

/// Cases of each kind that may not get fewer: all but one, where theirs depends on the order of a
/// map.
const LEAST: [(&str, usize); 6] = [
    ("config", 13),
    ("trigger", 106),
    ("template", 62),
    ("destinations", 39),
    ("send", 68),
    ("controller", 22),
];

#[test]
fn as_the_notifications_controller_does() {
    let Some(file) = tiphys_testkit::shared("cases/notify.jsonl") else {
        return;
    };
    let lines = std::fs::read_to_string(file).expect("the cases");
    let mut lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a case is JSON"));
    let fixtures: serde_json::Value = lines.next().expect("the first line has the fixtures");
    let mut passed: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in lines {
        let case = Case::new(&line, &fixtures["fixtures"]);
        let kind = line["kind"].as_str().unwrap_or_default().to_owned();
        match compare::differs(&case) {
            None => *passed.entry(kind).or_default() += 1,
            Some(_) if line["expected"]["unstable"] == true => {}
            Some(why) => wrong.push(format!("{}: {why}", line["id"])),
        }
    }
    let fewer: Vec<_> = LEAST
        .iter()
        .filter(|(kind, least)| passed.get(*kind).copied().unwrap_or_default() < *least)
        .collect();
    assert!(
        fewer.is_empty(),
        "{passed:?}; fewer than {fewer:?}:\n{}",
        wrong.join("\n")
    );
}

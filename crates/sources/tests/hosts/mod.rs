//! Hosts of Git: recorded conversations, and hosts on the loopback interface.

mod answers;
mod codecommit;
mod recorded;
mod server;
mod table;
mod unusual;

use recorded::Recorded;
use serde_json::Value;

#[test]
fn recorded_conversations() {
    let Some(file) = tiphys_testkit::shared("cases/appset.jsonl") else {
        return;
    };
    let content = std::fs::read_to_string(&file).expect("the cases");
    let mut lines = content
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let fixtures = lines.next().expect("the fixtures");
    let (recorded, mut passed, mut wrong) = (Recorded::new(), 0, Vec::new());
    for mut case in lines.filter(recorded::is_one) {
        if let Some(name) = case["exchanges"].as_str() {
            case["exchanges"] = fixtures["fixtures"][name].clone();
        }
        match recorded.run(&case) {
            Ok(()) => passed += 1,
            Err(why) => wrong.push(format!("{}: {why}", case["id"])),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(passed, 60);
}

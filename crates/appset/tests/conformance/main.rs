//! The recorded cases of ApplicationSets (`../shared/cases/appset.jsonl`): what Argo CD's
//! controller generated and did.

#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

mod deleted_sets;
mod deletions;
mod rendering;
mod reports;
mod reports_of_params;
mod rolling;
mod suite;

use std::collections::BTreeMap;

/// The least number of cases that pass; it only rises.
const LEAST: usize = 1304;

#[test]
fn recorded_cases() {
    let Some(file) = tiphys_testkit::shared("cases/appset.jsonl") else {
        return;
    };
    let text = std::fs::read_to_string(&file).expect("the cases");
    let show = std::env::var("APPSET_SHOW").unwrap_or_default();
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let fixtures = lines.next().expect("the fixtures");
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut passed = 0;
    for case in lines {
        let case = suite::expanded(case, &fixtures);
        let mut verdict = suite::run(&case);
        let id = case["id"].as_str().unwrap_or_default();
        if let Some(reason) = suite::on_purpose(id) {
            assert!(verdict.is_err(), "{id} is as recorded by now: {reason}");
            verdict = Ok(());
        }
        let kind = case["kind"].as_str().unwrap_or_default();
        let feature = case["feature"].as_str().unwrap_or_default();
        for name in [kind.to_owned(), format!("{kind} {feature}")] {
            let count = counts.entry(name).or_default();
            count.0 += usize::from(verdict.is_ok());
            count.1 += 1;
        }
        passed += usize::from(verdict.is_ok());
        if let Err(why) = verdict
            && !show.is_empty()
            && id.contains(&show)
        {
            println!("{}: {why}", case["id"]);
        }
    }
    for (name, (passed, total)) in &counts {
        println!("{name}: {passed}/{total}");
    }
    println!("passed {passed}");
    assert!(passed >= LEAST, "{passed} cases pass, {LEAST} did before");
}

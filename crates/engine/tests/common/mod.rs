//! Reading the recorded cases that lie beside the repository.
#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

use serde_json::Value;
use std::path::PathBuf;

/// The cases of a suite, one JSON document a line; `None`, said aloud, when this checkout has no recorded cases.
pub fn cases(file: &str) -> Option<Vec<Value>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases").join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("SKIPPED: no recorded cases at ../shared/cases/{file}");
        return None;
    };
    Some(text.lines().filter(|l| !l.trim().is_empty()).map(|l| serde_json::from_str(l).expect("a case is JSON")).collect())
}

/// Prints what failed and how many passed, and fails the test when it is fewer than `minimum`.
pub fn report(suite: &str, failures: &[String], total: usize, minimum: usize) {
    for failure in failures {
        println!("  {failure}");
    }
    println!("{suite} {}/{total}", total - failures.len());
    assert!(total - failures.len() >= minimum, "{suite}: fewer than {minimum} of {total} pass");
}

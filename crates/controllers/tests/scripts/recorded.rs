//! What Argo CD itself makes of scripts: `NAME.argocd` beside `NAME.txt` is the same script with the transcript of a genuine controller, and its
//! first line says which version that was. Where ours differs on purpose, `NAME.differences` holds the difference, and begins with the reason.
//!
//! Recorded with `TIPHYS_SCRIPTS_CONTROLLER=external TIPHYS_SCRIPTS_VERSION=v3.6.0 TIPHYS_TRANSCRIPTS=overwrite` and the test `real`, on a control
//! plane on which only that controller runs, for the namespace `tiphys-scripts`, with `controller.resource.health.persist`.

use crate::{chosen, script::Script};
use similar::TextDiff;

/// How the first line of a recording begins.
const FIRST: &str = "# Recorded from Argo CD ";

/// Writes the recording of a script.
///
/// # Panics
/// When it is not said which version played it, or the file cannot be written.
pub fn write(script: &Script, played: &Script) {
    let version = std::env::var("TIPHYS_SCRIPTS_VERSION").expect("TIPHYS_SCRIPTS_VERSION says which version is recorded");
    let path = script.beside("argocd");
    std::fs::write(&path, format!("{FIRST}{version}\n{}", played.text())).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// What is wrong with a script beside its recording and the differences that are known, if anything.
fn problem(script: &str, recording: &str, known: &str) -> Option<String> {
    let (first, recorded) = recording.split_once('\n').unwrap_or((recording, ""));
    if !first.starts_with(FIRST) {
        return Some(format!("its recording does not begin with `{FIRST}`"));
    }
    let found = TextDiff::from_lines(recorded, script).unified_diff().context_radius(1).to_string();
    let (reason, known): (Vec<&str>, Vec<&str>) = known.lines().partition(|line| line.starts_with('#'));
    if !known.is_empty() && reason.is_empty() {
        return Some("its differences are given without a reason".to_owned());
    }
    let known = known.join("\n");
    (found.trim() != known.trim()).then(|| format!("-: {}, +: ours; known:\n{known}\nfound:\n{found}", first.trim_start_matches("# ")))
}

#[test]
fn scripts_come_to_what_argo_cd_made_of_them() {
    let read = |script: &Script, ending| std::fs::read_to_string(script.beside(ending)).ok();
    let recordings = chosen().into_iter().filter_map(|script| Some((read(&script, "argocd")?, script)));
    let (mut number, mut wrong) = (0, Vec::new());
    for (recording, script) in recordings {
        number += 1;
        let problem = problem(&script.text(), &recording, &read(&script, "differences").unwrap_or_default());
        wrong.extend(problem.map(|problem| format!("== {}: {problem}", script.name)));
    }
    println!("{number} recordings of Argo CD");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_difference_needs_a_reason() {
    let script = "sync\n| operation Succeeded\n";
    let recording = format!("{FIRST}v3.6.0\n{script}");
    assert_eq!(problem(script, &recording, ""), None);
    let other = recording.replace("Succeeded", "Failed");
    let found = problem(script, &other, "").expect("they differ");
    assert!(found.contains("-| operation Failed\n+| operation Succeeded"), "{found}");
    let known = found.split_once("found:\n").expect("it is shown").1;
    assert!(problem(script, &other, known).expect("no reason").contains("without a reason"));
    assert_eq!(problem(script, &other, &format!("# It is better.\n{known}")), None);
    assert!(problem(script, &recording, &format!("# It is better.\n{known}")).is_some(), "a difference that is gone is reported");
    assert!(problem(script, script, "").is_some(), "the version is missing");
}

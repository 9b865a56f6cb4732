//! Argo CD's own results for scripts: `NAME.argocd` next to `NAME.txt` is the same script with the
//! transcript of upstream Argo CD's controller, and its first line contains the version. Where ours
//! differs on purpose, `NAME.differences` contains the difference, and begins with the reason
//! (`#`). With `TIPHYS_TRANSCRIPTS=overwrite`, the test updates the differences that have a reason.
//!
//! Recorded with `TIPHYS_SCRIPTS_CONTROLLER=external TIPHYS_SCRIPTS_VERSION=v3.6.0
//! TIPHYS_TRANSCRIPTS=overwrite` and the test `real`, on a control plane where only that controller
//! runs, for the namespace `tiphys-scripts`, with `controller.resource.health.persist`.

use crate::scripts::{chosen, script::Script};
use regex::Regex;
use similar::TextDiff;

/// The beginning of a recording's first line.
const FIRST: &str = "# Recorded from Argo CD ";

/// Writes the recording of a script.
///
/// # Panics
/// If the version is not given, or the file cannot be written.
pub fn write(script: &Script, played: &Script) {
    let version = std::env::var("TIPHYS_SCRIPTS_VERSION")
        .expect("TIPHYS_SCRIPTS_VERSION says which version is recorded");
    let path = script.beside("argocd");
    std::fs::write(&path, format!("{FIRST}{version}\n{}", played.text()))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// A transcript without what is irrelevant for a controller: the order of details, because Argo CD
/// applies concurrently; the health of hooks, which its status omits and its API reads from the
/// tree; the widths of columns.
fn comparable(transcript: &str) -> String {
    let hook =
        Regex::new(r"^(\|   \S+ +\S+ +)\S+( +(?:.*, )?hook\b).*").expect("the rule is valid");
    let columns = Regex::new("  +").expect("the rule is valid");
    let (mut lines, mut details): (Vec<String>, usize) = (Vec::new(), 0);
    for line in transcript.lines() {
        let line = hook.replace(line, "$1-$2");
        if line.starts_with("|   ") {
            details += 1;
        } else {
            let from = lines.len() - details;
            lines[from..].sort();
            details = 0;
        }
        let (mark, words) = line.split_at(line.len() - line.trim_start_matches(['|', ' ']).len());
        lines.push(format!("{mark}{}\n", columns.replace_all(words, "  ")));
    }
    let from = lines.len() - details;
    lines[from..].sort();
    lines.concat()
}

/// Whether two transcripts of a step are equivalent.
pub fn are_alike(one: &[String], other: &[String]) -> bool {
    let text = |lines: &[String]| {
        comparable(
            &lines
                .iter()
                .map(|line| format!("| {line}\n"))
                .collect::<String>(),
        )
    };
    text(one) == text(other)
}

/// The difference between a recording and a script.
fn difference(recording: &str, script: &str) -> String {
    let recorded = recording
        .split_once('\n')
        .map_or("", |(_, recorded)| recorded);
    TextDiff::from_lines(&comparable(recorded), &comparable(script))
        .unified_diff()
        .context_radius(1)
        .to_string()
}

/// The reason at the beginning of a file of differences, and the differences.
fn parts(known: &str) -> (String, String) {
    let (reason, known): (Vec<&str>, Vec<&str>) =
        known.lines().partition(|line| line.starts_with('#'));
    (reason.join("\n"), known.join("\n"))
}

/// What is wrong with a script, given its recording and the known differences, if anything.
fn problem(script: &str, recording: &str, known: &str) -> Option<String> {
    let first = recording.lines().next().unwrap_or_default();
    if !first.starts_with(FIRST) {
        return Some(format!("its recording does not begin with `{FIRST}`"));
    }
    let (reason, known) = parts(known);
    if !known.is_empty() && reason.is_empty() {
        return Some("its differences are given without a reason".to_owned());
    }
    let found = difference(recording, script);
    (found.trim() != known.trim()).then(|| {
        format!(
            "-: {}, +: ours; known:\n{known}\nfound:\n{found}",
            first.trim_start_matches("# ")
        )
    })
}

#[test]
fn scripts_come_to_what_argo_cd_made_of_them() {
    let read = |script: &Script, ending| {
        std::fs::read_to_string(script.beside(ending)).unwrap_or_default()
    };
    let overwrite = std::env::var("TIPHYS_TRANSCRIPTS").as_deref() == Ok("overwrite");
    let (mut number, mut alike, mut wrong) = (0, 0, Vec::new());
    for script in chosen() {
        let (recording, known, text) = (
            read(&script, "argocd"),
            read(&script, "differences"),
            script.text(),
        );
        if recording.is_empty() {
            assert!(
                known.is_empty(),
                "{}: it has differences to nothing",
                script.name
            );
            continue;
        }
        number += 1;
        alike += usize::from(known.is_empty());
        let (reason, _) = parts(&known);
        if overwrite && !reason.is_empty() {
            let found = difference(&recording, &text);
            std::fs::write(script.beside("differences"), format!("{reason}\n{found}"))
                .expect("differences can be written");
            continue;
        }
        wrong.extend(
            problem(&text, &recording, &known)
                .map(|problem| format!("== {}: {problem}", script.name)),
        );
    }
    println!("{number} recordings of Argo CD, {alike} of them the same as ours");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        number > 100
            || std::env::var_os("TIPHYS_SCRIPT").is_some()
            || std::env::var_os("TIPHYS_SCRIPTS").is_some(),
        "they are all there"
    );
}

#[test]
fn a_difference_needs_a_reason() {
    let script = "sync\n| operation Succeeded\n";
    let recording = format!("{FIRST}v3.6.0\n{script}");
    assert_eq!(problem(script, &recording, ""), None);
    let other = recording.replace("Succeeded", "Failed");
    let found = problem(script, &other, "").expect("they differ");
    assert!(
        found.contains("-| operation Failed\n+| operation Succeeded"),
        "{found}"
    );
    let known = found.split_once("found:\n").expect("it is shown").1;
    assert!(
        problem(script, &other, known)
            .expect("no reason")
            .contains("without a reason")
    );
    assert_eq!(
        problem(script, &other, &format!("# It is better.\n{known}")),
        None
    );
    assert!(
        problem(script, &recording, &format!("# It is better.\n{known}")).is_some(),
        "a difference that is gone is reported"
    );
    assert!(
        problem(script, script, "").is_some(),
        "the version is missing"
    );
}

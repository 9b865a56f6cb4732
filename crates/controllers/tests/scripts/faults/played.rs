//! The result of a script. Main type: [`Played`].

use crate::scripts::{
    ground::Ground,
    play,
    script::Script,
    transcript::Section,
    wire::{Plan, Wire, Write},
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::sleep;

/// The columns of an operation's table that do not depend on interruptions: all except the
/// messages.
const COLUMNS: usize = 4;
/// How long nothing may be written at the end.
const QUIET: Duration = Duration::from_secs(30);

/// A script played to its end.
pub struct Played {
    /// By title, after each step.
    pub states: Vec<BTreeMap<String, Vec<String>>>,
    /// The step's text, for reports.
    steps: Vec<String>,
    pub writes: Vec<Write>,
    pub events: usize,
    /// Changes after the end.
    pub restless: Vec<String>,
    pub repeated_hooks: Vec<String>,
    pub faults: BTreeMap<&'static str, usize>,
    /// It was not played to its end.
    pub panic: Option<String>,
}

impl Played {
    /// Plays a script in its own cluster and virtual time.
    pub fn of(script: &Script, plan: Plan) -> Self {
        let wire = Wire::new(plan);
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let ground = Ground::embedded(&wire).await;
                let states = play::states(&ground, script).await;
                sleep(QUIET).await;
                let before = wire.writes().len();
                sleep(QUIET).await;
                // The periodic comparison may ask the API server for dry runs.
                let restless = wire
                    .writes()
                    .split_off(before)
                    .into_iter()
                    .filter(|w| !w.is_dry_run)
                    .map(|w| w.what)
                    .collect();
                ground.close().await;
                (states, restless)
            })
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        let panic = outcome.as_ref().err().map(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|t| (*t).to_owned()))
                .unwrap_or_default()
        });
        let (states, restless) = outcome.unwrap_or_default();
        Self {
            states: states.into_iter().map(by_title).collect(),
            steps: script.steps.iter().map(|s| s.text.clone()).collect(),
            writes: wire.writes(),
            events: wire.events(),
            restless,
            repeated_hooks: wire.repeated_hooks(),
            faults: wire.faults(),
            panic,
        }
    }

    /// The deleted objects, without the parts of names that differ from run to run.
    pub fn deletions(&self) -> BTreeSet<String> {
        let plain = |what: &str| {
            what.split('-')
                .map(|part| {
                    if part.len() > 4 && part.contains(|c: char| c.is_ascii_digit()) {
                        "*"
                    } else {
                        part
                    }
                })
                .collect::<Vec<_>>()
                .join("-")
        };
        self.writes
            .iter()
            .filter(|w| w.what.starts_with("DELETE ") && w.code != 404)
            .map(|w| plain(&w.what))
            .collect()
    }

    /// What differs from the reference after some step in the sections whose titles are `meant`;
    /// messages of operations aside.
    pub fn differences(&self, reference: &Self, meant: fn(&str) -> bool) -> Vec<String> {
        let steps = self.states.iter().zip(&reference.states).zip(&self.steps);
        // A difference after one step may also be there after the next ones.
        let first = steps
            .map(|((now, then), step)| (step, differences(now, then, meant)))
            .find(|(_, lines)| !lines.is_empty());
        first
            .map(|(step, lines)| [vec![format!("after `{step}`:")], lines].concat())
            .unwrap_or_default()
    }
}

fn by_title(sections: Vec<Section>) -> BTreeMap<String, Vec<String>> {
    let shorter = |(title, lines): Section| {
        let lines = match lines.first() {
            Some(_) if title.ends_with("operation") => without_messages(&lines),
            // For an Application in deletion, only a process that compared it before knows the
            // health of its resources.
            Some(first) if first.ends_with("being deleted") => {
                lines.iter().map(|line| cells(line, 2)).collect()
            }
            _ => lines,
        };
        (title, lines)
    };
    sections.into_iter().map(shorter).collect()
}

/// The first cells of a row.
fn cells(row: &str, number: usize) -> String {
    row.split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .take(number)
        .collect::<Vec<_>>()
        .join("  ")
}

fn without_messages(lines: &[String]) -> Vec<String> {
    let row = |line: &String| match line.starts_with("  ") {
        true => cells(line, COLUMNS),
        false => line.split(": ").next().unwrap_or_default().to_owned(),
    };
    // A message may have several lines; results are in the order in which they became known.
    let (first, rest) = lines
        .split_first()
        .map_or((None, lines), |(first, rest)| (Some(first), rest));
    let mut rows: Vec<String> = rest
        .iter()
        .filter(|line| line.starts_with("  "))
        .map(row)
        .collect();
    rows.sort();
    first.map(row).into_iter().chain(rows).collect()
}

/// A process that dies before it could record what it applied does not always apply it again, if a
/// hook of a later wave or the live object shows that it was done. The results then lack it.
fn may_be_lost(row: &&String) -> bool {
    row.starts_with("Sync  ") && (row.contains("  Synced  ") || row.contains("  Pruned  "))
}

fn differences(
    now: &BTreeMap<String, Vec<String>>,
    then: &BTreeMap<String, Vec<String>>,
    meant: fn(&str) -> bool,
) -> Vec<String> {
    let titles = now.keys().chain(then.keys()).filter(|title| meant(title));
    let titles: BTreeSet<&String> = titles.collect();
    let text = |lines: Vec<&String>| {
        lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    let pair = |title: &String| {
        let (then, now): (Vec<_>, Vec<_>) = (
            then.get(title).into_iter().flatten().collect(),
            now.get(title).into_iter().flatten().collect(),
        );
        let then = match title.ends_with("operation") {
            true => then
                .into_iter()
                .filter(|row| now.contains(row) || !may_be_lost(row))
                .collect(),
            false => then,
        };
        (text(then), text(now))
    };
    let otherwise = titles
        .into_iter()
        .map(pair)
        .filter(|(then, now)| then != now);
    otherwise
        .map(|(then, now)| {
            similar::TextDiff::from_lines(&then, &now)
                .unified_diff()
                .context_radius(3)
                .to_string()
        })
        .collect()
}

//! Ops `can_sync`, `window_matches` and `window_validate`: sync windows.

use super::{Answers, list, never, text, typed};
use crate::conformance::Difference;
use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_api::{Application, project::SyncWindow};
use tiphys_engine::sync::window::{Windows, check};
use tiphys_gocompat::cron;

fn windows(case: &Value) -> Result<Vec<SyncWindow>, String> {
    list(case, "windows").map(typed).collect()
}

fn time(question: &Value, key: &str) -> Result<Option<Timestamp>, String> {
    let time = question[key].as_str().map(str::parse);
    time.transpose()
        .map_err(|e: jiff::Error| format!("{key}: {e}"))
}

pub const OFFSET: &str =
    "a time zone has the offset of the moment in question; in Argo CD, of the machine's clock";

/// Whether a window's time zone has another offset at the other time.
fn shifts(windows: &[SyncWindow], at: Timestamp, other: Timestamp) -> bool {
    let zones = windows.iter().filter_map(|w| cron::time_zone(&w.time_zone));
    zones
        .into_iter()
        .any(|zone| zone.to_offset(at) != zone.to_offset(other))
}

pub fn can_sync(case: &Value) -> Result<(), Difference> {
    let all = windows(case)?;
    let windows = Windows(all.iter().collect());
    let mut answers = Answers::default();
    for question in list(case, "questions") {
        let now = time(question, "now")?.ok_or_else(|| "no time".to_owned())?;
        let (manual, started) = (
            question["manual"] == true,
            time(question, "operation_start")?,
        );
        let expected = match question["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(question["can_sync"] == true),
        };
        let got = windows.can_sync(manual, started, now);
        let shown = format!("{now} manual: {manual} started: {started:?}");
        let reason = || started.is_some_and(|started| shifts(&all, started, now));
        answers.note(&shown, expected, got, || reason().then_some(OFFSET));
        let Some(active) = question["active"].as_array() else {
            continue;
        };
        let positions = |open: Vec<&SyncWindow>| -> Vec<usize> {
            let is_open = |w: &SyncWindow| open.iter().any(|o| std::ptr::eq(*o, w));
            (0..all.len()).filter(|i| is_open(&all[*i])).collect()
        };
        let expected = active
            .iter()
            .filter_map(|i| usize::try_from(i.as_u64()?).ok());
        let got = windows.active(now).map(positions);
        answers.note(format!("{now} active"), Ok(expected.collect()), got, never);
    }
    answers.verdict()
}

pub fn matches(case: &Value) -> Result<(), Difference> {
    let windows = windows(case)?;
    let app = &case["app"];
    let app: Application = typed(&json!({
        "metadata": {"name": app["name"]},
        "spec": {"destination": app["destination"]},
    }))?;
    let mut answers = Answers::default();
    let got = !Windows::of(&windows, &app).0.is_empty();
    answers.note("matches", case["matches"] == true, got, never);
    answers.verdict()
}

pub fn validate(case: &Value) -> Result<(), Difference> {
    let window: SyncWindow = typed(&case["window"])?;
    let mut answers = Answers::default();
    let got = check(&window).err().unwrap_or_default();
    answers.note("the error", text(case, "error"), got, never);
    answers.verdict()
}

//! Suite `kubeapps/controller`: which objects kubeapps' controller wrote.
//!
//! Main function: [`runner`]. Every scenario runs on an embedded API server of its own, without
//! other controllers; Jobs are marked as complete when they are made. Compared are the writes of
//! CronJobs, Jobs and Events, and what is stored after each step. Where kubeapps is wrong, the
//! stored objects are held against what [`right`] says about every scenario.

mod right;
mod stored;
mod wire;
mod world;

use super::super::{Difference, Runner, first_difference};
use serde_json::Value;
use std::time::{Duration, Instant};
use tiphys_catalog::apprepository::Options;
use world::World;

/// How long a step may take until everything is as recorded.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it must stay so.
const QUIET: Duration = Duration::from_millis(60);

/// The runner for scenarios.
pub fn runner() -> anyhow::Result<Runner> {
    let runtime = tokio::runtime::Runtime::new()?;
    Ok(Box::new(move |case| {
        runtime.block_on(run(case))?;
        // It has what the model wants.
        match intended(case["id"].as_str().unwrap_or_default()) {
            Some(reason) => Err(Difference::Intended(reason.to_owned())),
            None => Ok(()),
        }
    }))
}

/// Why we do something else than kubeapps, where nobody called that a bug of it.
fn intended(id: &str) -> Option<&'static str> {
    match id {
        "names-delete-long" => Some("a name that is too long for a label is cut, not refused"),
        "flags-ttl-negative" => Some("a time that the API server refuses counts as none"),
        _ => None,
    }
}

async fn run(case: &Value) -> Result<(), String> {
    let flags: Vec<String> = texts(&case["flags"]);
    let url = case["env"]["OCI_CATALOG_URL"].as_str().unwrap_or_default();
    let options = match Options::parse(&flags, url) {
        Ok(options) => options,
        Err(e) => return refused(case, &e.to_string()),
    };
    let mut world = World::start(case, options).await?;
    let ended = steps(case, &mut world).await;
    world.end().await;
    ended
}

/// The program ends with an error where kubeapps' does nothing for ever.
fn refused(case: &Value, why: &str) -> Result<(), String> {
    let steps = case["steps"].as_array().ok_or("no steps")?;
    let does_nothing = steps
        .iter()
        .all(|step| step["writes"].as_array().is_none_or(Vec::is_empty));
    let is_wanted = case["right"] == "refused at start";
    let panics = steps
        .iter()
        .any(|step| step["log"].to_string().contains("panic:"));
    if does_nothing || is_wanted || panics {
        return Ok(());
    }
    Err(format!("refused at start: {why}"))
}

async fn steps(case: &Value, world: &mut World) -> Result<(), String> {
    let id = case["id"].as_str().unwrap_or_default();
    let is_bug = !case["bug"].is_null() || intended(id).is_some();
    let mut before = Value::Null;
    let mut model = right::Model::default();
    for (number, step) in case["steps"]
        .as_array()
        .ok_or("no steps")?
        .iter()
        .enumerate()
    {
        let at = |why: String| format!("step {number}: {why}");
        let answers = world.act(&step["action"]).await.map_err(at)?;
        let wanted = step.get("api_refused").cloned().unwrap_or_default();
        if wanted != answers {
            return Err(at(first_difference(&wanted, &answers, "api_refused")));
        }
        let state = match &step["state"] {
            Value::String(same) if same == "same" => &before,
            state => state,
        };
        model.act(&step["action"], &answers);
        let began = Instant::now();
        let mut good_since = None;
        loop {
            let found = world.stored().await.map_err(at)?;
            let verdict = if is_bug {
                model.check(world, &found)
            } else {
                stored::same_writes(case, step, &world.writes())
                    .and_then(|()| stored::same_state(state, &found))
            };
            match verdict {
                Ok(()) if good_since.is_some_and(|since: Instant| since.elapsed() > QUIET) => break,
                Ok(()) => {
                    good_since.get_or_insert_with(Instant::now);
                }
                Err(why) if began.elapsed() > PATIENCE => return Err(at(why)),
                Err(_) => good_since = None,
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        model.remember(&world.take_writes());
        before = state.clone();
    }
    Ok(())
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|text| text.as_str().map(str::to_owned))
        .collect()
}

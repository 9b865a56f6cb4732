//! Units of rollouts and of comparing Applications. Main function: [`run`].

use super::generate::shown;
use super::{Verdict, same};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::application_set::{ApplicationSetApplicationStatus, ApplicationSetStatus};
use tiphys_api::meta::Time;
use tiphys_api::{Application, ApplicationSet};
use tiphys_appset::reconcile::{Ignored, specs_equivalent};
use tiphys_appset::rolling::{Issues, Steps, Wanted, advance, may_sync, observe, start_syncs};

const NOW: Time = Time {
    seconds: 4_000_000_000,
    nanos: 0,
};

/// Recorded cases that ours differs from on purpose, by the reason.
pub const ON_PURPOSE: [(&str, &[&str]); 4] = [
    (
        "a matrix may have more than two generators",
        &["appset/matrix/0002"],
    ),
    (
        "a step is not done by the states of other sources (report 09)",
        &[
            "appset/rolling/0007",
            "appset/rolling/0008",
            "appset/rolling/0021",
            "appset/rolling/0022",
            "appset/rolling/0023",
            "appset/rolling/0029",
            "appset/rolling/0031",
            "appset/rolling/0035",
            "appset/rolling/0036",
            "appset/rolling/0042",
            "appset/rolling/0044",
            "appset/rolling/0046",
            "appset/rolling/0048",
            "appset/rolling/0070",
            "appset/rolling/0072",
            "appset/rolling/0076",
            "appset/rolling/0077",
            "appset/rolling/0082",
            "appset/rolling/0084",
            "appset/rolling/0085",
            "appset/rolling/0087",
            "appset/rolling/0090",
            "appset/rolling/0097",
            "appset/rolling/0106",
            "appset/rolling/0108",
            "appset/rolling/0112",
        ],
    ),
    (
        "what was synced since it is pending is not synced once more (report 09)",
        &[
            "appset/rolling/0009",
            "appset/rolling/0012",
            "appset/rolling/0028",
            "appset/rolling/0055",
            "appset/rolling/0071",
            "appset/rolling/0086",
        ],
    ),
    (
        "what was changed in the cluster is synced again (report 10)",
        &[
            "appset/rolling/0030",
            "appset/rolling/0075",
            "appset/rolling/0109",
            "appset/unit-update_status/0023",
        ],
    ),
];

/// Why a case differs on purpose.
pub fn on_purpose(id: &str) -> Option<&'static str> {
    let mut all = ON_PURPOSE.iter();
    let found = all.find(|(_, ids)| ids.contains(&id));
    found.map(|(reason, _)| *reason)
}

pub fn run(case: &Value) -> Verdict {
    match case["op"].as_str().unwrap_or_default() {
        "ignore_differences" => ignore_differences(case),
        "specs_equivalent" => equivalent(case),
        "steps" => steps(case),
        "apps_to_sync" => apps_to_sync(case),
        "update_status" => update_status(case),
        "update_progress" => update_progress(case),
        _ => sync_desired(case),
    }
}

fn read<T: serde::de::DeserializeOwned + Default>(value: &Value) -> Result<T, String> {
    match value {
        Value::Null => Ok(T::default()),
        value => serde_json::from_value(value.clone()).map_err(|e| e.to_string()),
    }
}

fn set(case: &Value) -> Result<ApplicationSet, String> {
    let of = &case["appset"];
    let mut set = ApplicationSet::default();
    set.metadata.name = super::world::text(&of["name"]);
    set.spec.strategy = match &of["strategy"] {
        Value::Null => None,
        strategy => Some(read(strategy)?),
    };
    set.spec.ignore_application_differences = read(&of["ignoreApplicationDifferences"])?;
    set.status = read::<ApplicationSetStatus>(&of["status"])?;
    Ok(set)
}

fn ignore_differences(case: &Value) -> Verdict {
    let live: Application = read(&case["live"])?;
    let generated: Application = read(&case["generated"])?;
    let ignored = Ignored::new(&read::<Vec<_>>(&case["ignore"])?);
    let (live, generated) = match (ignored.strip(&live), ignored.strip(&generated)) {
        (Ok(live), Ok(generated)) => (live, generated),
        _ if case["error"].is_string() => return Ok(()),
        (Err(e), _) | (_, Err(e)) => return Err(e),
    };
    let json = shown;
    let plain = |mut value: Value| {
        if let Some(fields) = value.as_object_mut() {
            fields.remove("status");
        }
        value
    };
    same(
        "result_live",
        &json(&live),
        &plain(case["result_live"].clone()),
    )?;
    let theirs = plain(case["result_generated"].clone());
    same("result_generated", &json(&generated), &theirs)
}

fn equivalent(case: &Value) -> Verdict {
    let live: Application = read(&case["live"])?;
    let generated: Application = read(&case["generated"])?;
    let ignored = Ignored::new(&read::<Vec<_>>(&case["ignore"])?);
    match specs_equivalent(&live, &generated, &ignored) {
        Ok(ours) => same("result", &ours.into(), &case["result"]),
        Err(_) if case["error"].is_string() => Ok(()),
        Err(e) => Err(e),
    }
}

fn steps(case: &Value) -> Verdict {
    let apps: Vec<Application> = read(&case["applications"])?;
    let ours = Steps::of(&set(case)?, &apps);
    same("steps", &json!(ours.names), &case["steps"])?;
    same("step_of", &json!(ours.step_of), &case["step_of"])?;
    let message = case["issues_message"].as_str().filter(|m| !m.is_empty());
    match (ours.issues.message(), message) {
        (ours, Some(theirs)) if ours.as_deref() == Some(theirs) => {}
        (_, None) => {}
        (ours, theirs) => return Err(format!("{ours:?} instead of {theirs:?}")),
    }
    let issues = &case["issues"];
    let empty = issues["EmptySteps"].as_array().cloned().unwrap_or_default();
    same("EmptySteps", &json!(ours.issues.empty_steps), &empty.into())
}

fn names(value: &Value) -> BTreeSet<String> {
    let entries = value.as_object().into_iter().flatten();
    entries
        .filter(|(_, allowed)| **allowed == true)
        .map(|(name, _)| name.clone())
        .collect()
}

fn apps_to_sync(case: &Value) -> Verdict {
    let apps: Vec<Application> = read(&case["applications"])?;
    let apps: Vec<&Application> = apps.iter().collect();
    let steps: Vec<Vec<String>> = read(&case["steps"])?;
    let ours = may_sync(&steps, &set(case)?.status.application_status, &apps);
    same("result", &json!(ours), &json!(names(&case["result"])))
}

/// Statuses with empty lists for null and without times, which are not recorded.
fn statuses(mut list: Value) -> Value {
    for status in list.as_array_mut().into_iter().flatten() {
        if status["targetRevisions"].is_null() {
            status["targetRevisions"] = json!([]);
        }
        if let Some(fields) = status.as_object_mut() {
            fields.remove("lastTransitionTime");
        }
    }
    list
}

fn compare(ours: &[ApplicationSetApplicationStatus], case: &Value) -> Verdict {
    let ours = serde_json::to_value(ours).unwrap_or_default();
    let theirs = match &case["result"] {
        Value::Null => json!([]),
        list => list.clone(),
    };
    same("result", &statuses(ours), &statuses(theirs))
}

fn update_status(case: &Value) -> Verdict {
    let set = set(case)?;
    let ignored = Ignored::new(&set.spec.ignore_application_differences);
    let apps: Vec<Application> = read(&case["applications"])?;
    let apps: Vec<&Application> = apps.iter().collect();
    let desired: Vec<Application> = read(&case["desired"])?;
    let step_of: BTreeMap<String, usize> = read(&case["step_of"])?;
    let before = &set.status.application_status;
    let wanted = Wanted {
        applications: &desired,
        ignored: &ignored,
        may_update: true,
    };
    compare(&observe(before, &apps, wanted, &step_of, NOW), case)
}

fn update_progress(case: &Value) -> Verdict {
    let set = set(case)?;
    let step_of: BTreeMap<String, usize> = read(&case["step_of"])?;
    let allowed = names(&case["apps_to_sync"]);
    let mut issues = Issues::default();
    let before = &set.status.application_status;
    compare(
        &advance(&set, before, &allowed, &step_of, &mut issues, NOW),
        case,
    )
}

fn sync_desired(case: &Value) -> Verdict {
    let set = set(case)?;
    let mut desired: Vec<Application> = read(&case["desired"])?;
    let allowed = names(&case["apps_to_sync"]);
    start_syncs(&set.status.application_status, &allowed, &mut desired);
    let ours: Vec<Value> = desired.iter().map(shown).collect();
    same("result", &ours.into(), &case["result"])
}

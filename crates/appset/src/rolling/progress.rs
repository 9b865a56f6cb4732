//! The status of each Application of a rollout.
//!
//! Main functions: [`observe`], what Applications have become, and [`advance`], which may start.

use super::issues::Issues;
use super::operation::{self, Syncs};
use super::{HEALTHY, PENDING, Steps, disable_automated, steps_of};
use crate::ignored::{Ignored, specs_equivalent};
use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::Application;
use tiphys_api::application_set::{
    ApplicationSet, ApplicationSetApplicationStatus, ApplicationSetRolloutStep,
};
use tiphys_api::meta::{IntOrString, Time};
use tiphys_api::status::ComparedTo;

const WAITING: &str = "Waiting";
const PROGRESSING: &str = "Progressing";
const SYNCED: &str = "Synced";
const OUT_OF_SYNC: &str = "OutOfSync";

/// What existing Applications are compared with.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub applications: &'a [Application],
    pub ignored: &'a Ignored,
    /// Whether existing Applications become as they are wanted.
    pub may_update: bool,
}

/// The new statuses of the existing Applications, in their order.
pub fn observe(
    before: &[ApplicationSetApplicationStatus],
    existing: &[&Application],
    wanted: Wanted<'_>,
    step_of: &BTreeMap<String, usize>,
    now: Time,
) -> Vec<ApplicationSetApplicationStatus> {
    existing
        .iter()
        .map(|app| {
            let name = &app.metadata.name;
            let current = before.iter().find(|s| s.application == *name).cloned();
            let current = current.unwrap_or_else(|| ApplicationSetApplicationStatus {
                application: name.clone(),
                last_transition_time: Some(now),
                message: "No Application status found, defaulting status to Waiting".into(),
                status: WAITING.into(),
                step: Steps::shown(step_of, name),
                target_revisions: revisions(app),
            });
            let mut desired = wanted.applications.iter();
            let desired = desired.find(|app| app.metadata.name == *name);
            // A difference that the policy never writes is no change to wait for.
            let desired = desired.filter(|&desired| {
                let mut desired = desired.clone();
                disable_automated(&mut desired);
                // What cannot be compared leaves the status as it is.
                wanted.may_update
                    && !specs_equivalent(app, &desired, wanted.ignored).unwrap_or(true)
            });
            let seen = Seen {
                app,
                is_stale: is_of_other_sources(app, desired),
                may_update: wanted.may_update,
            };
            let mut next = current.clone();
            next.step = Steps::shown(step_of, name);
            let changed = desired.is_some();
            if let Some((status, message)) = next_status(&mut next, &current, seen, changed) {
                next.status = status.into();
                next.message = message.into();
                next.last_transition_time = Some(now);
            }
            next
        })
        .collect()
}

/// An existing Application.
#[derive(Clone, Copy)]
struct Seen<'a> {
    app: &'a Application,
    /// Its sync status and health were judged by sources that it does not have any more, or not for
    /// long: they say nothing about whether a step is done.
    is_stale: bool,
    /// Whether the rollout may start its sync.
    may_update: bool,
}

/// Whether the state is that of other sources than those that the Application has, or is about to
/// have (`desired`).
pub(super) fn is_of_other_sources(app: &Application, desired: Option<&Application>) -> bool {
    let now = &app.spec;
    let is_changing = desired.is_some_and(|desired| {
        let desired = &desired.spec;
        desired.source != now.source
            || desired.sources != now.sources
            || desired.source_hydrator != now.source_hydrator
    });
    // Before the first comparison there are none. Those of the hydrator are elsewhere.
    let compared = &app.status.sync.compared_to;
    let is_compared = **compared != ComparedTo::default() && now.source_hydrator.is_none();
    is_changing || is_compared && !compared.is_of(now)
}

/// The status that an Application changes to, and why.
fn next_status(
    next: &mut ApplicationSetApplicationStatus,
    current: &ApplicationSetApplicationStatus,
    Seen {
        app,
        is_stale,
        may_update,
    }: Seen<'_>,
    spec_changed: bool,
) -> Option<(&'static str, &'static str)> {
    let revisions = revisions(app);
    let revisions_changed = current.target_revisions != revisions;
    // A busy controller compares a new Application late: what is being synced then, or was, is no
    // news.
    let is_first = current.target_revisions.is_empty()
        && [PENDING, PROGRESSING].contains(&current.status.as_str());
    let revisions_changed = revisions_changed
        && match is_first.then(|| operation::syncs(app, &revisions)) {
            Some(Syncs::These) => {
                next.target_revisions.clone_from(&revisions);
                false
            }
            Some(Syncs::NotSaid) => false,
            Some(Syncs::Others) | None => true,
        };
    let synced = app.status.sync.status == SYNCED && !is_stale;
    let healthy = app.status.health.status == HEALTHY;
    let mut change = None;
    if revisions_changed || spec_changed {
        next.target_revisions = revisions;
        change = Some((
            WAITING,
            match (revisions_changed, spec_changed) {
                (true, true) => {
                    "Application has pending changes (revision and spec differ), setting status \
                     to Waiting"
                }
                (true, false) => "Application has pending changes, setting status to Waiting",
                _ => "Application has pending changes (spec differs), setting status to Waiting",
            },
        ));
    }
    let status = change.map_or(current.status.as_str(), |(status, _)| status);
    match status {
        WAITING if synced && healthy => Some((
            HEALTHY,
            "Application resource has synced, updating status to Healthy",
        )),
        WAITING if synced => Some((
            PROGRESSING,
            "Application resource has synced, updating status to Progressing",
        )),
        PENDING => started(current, app),
        PROGRESSING if synced && healthy => Some((
            HEALTHY,
            "Application resource became Healthy, updating status from Progressing to Healthy",
        )),
        // Somebody changed the cluster. The rollout syncs it, because nothing else may.
        HEALTHY if may_update && app.status.sync.status == OUT_OF_SYNC => Some((
            WAITING,
            "Application is out of sync, setting status to Waiting",
        )),
        _ => change,
    }
}

/// Whether a pending Application has begun, judged only by what was written after it became so.
fn started(
    current: &ApplicationSetApplicationStatus,
    app: &Application,
) -> Option<(&'static str, &'static str)> {
    let since = current.last_transition_time;
    let status = &app.status;
    let at_once = operation::was_synced_at_once(app, since);
    let is_old = since.is_none() || status.reconciled_at <= since;
    if !at_once && status.reconciled_at.is_some() && is_old {
        return None;
    }
    let operation = status.operation_state.as_ref();
    if let Some(operation) = operation.filter(|o| at_once || o.started_at > since) {
        return Some((
            PROGRESSING,
            match operation.phase.as_str() {
                "Succeeded" => {
                    "Application resource completed a sync successfully, updating status from \
                     Pending to Progressing"
                }
                "Failed" | "Error" => {
                    "Application resource completed a sync, updating status from Pending to \
                     Progressing"
                }
                _ => {
                    "Application resource became Progressing, updating status from Pending to \
                     Progressing"
                }
            },
        ));
    }
    let failed = status
        .conditions
        .iter()
        .any(|c| matches!(c.type_.as_str(), "InvalidSpecError" | "UnknownError"));
    failed.then_some((
        PROGRESSING,
        "Application resource has error and cannot sync, updating status to Progressing",
    ))
}

fn revisions(app: &Application) -> Vec<String> {
    let sync = &app.status.sync;
    match (sync.revisions.is_empty(), sync.revision.is_empty()) {
        (false, _) => sync.revisions.clone(),
        (true, false) => vec![sync.revision.clone()],
        (true, true) => Vec::new(),
    }
}

/// Makes waiting Applications pending, as far as `maxUpdate` of their steps permits.
pub fn advance(
    set: &ApplicationSet,
    statuses: &[ApplicationSetApplicationStatus],
    allowed: &BTreeSet<String>,
    step_of: &BTreeMap<String, usize>,
    issues: &mut Issues,
    now: Time,
) -> Vec<ApplicationSetApplicationStatus> {
    let steps = steps_of(set);
    // An Application in no step counts with the first one.
    let step = |name: &str| step_of.get(name).copied().unwrap_or_default();
    let mut updating = vec![0_i64; steps.len()];
    let mut total = vec![0_i64; steps.len()];
    for status in statuses {
        let step = step(&status.application);
        if let (Some(total), Some(updating)) = (total.get_mut(step), updating.get_mut(step)) {
            *total += 1;
            *updating += i64::from(matches!(status.status.as_str(), PENDING | PROGRESSING));
        }
    }
    let mut advanced = Vec::with_capacity(statuses.len());
    for status in statuses {
        let mut status = status.clone();
        let index = step(&status.application);
        let Some(of_step) = steps.get(index) else {
            continue;
        };
        let most = at_once(of_step, total[index], index, issues);
        let below = most.is_none_or(|most| updating[index] < most);
        if status.status == WAITING && below && allowed.contains(&status.application) {
            status.last_transition_time = Some(now);
            status.status = PENDING.into();
            status.message = "Application moved to Pending status, watching for the Application \
                              resource to start Progressing"
                .into();
            updating[index] += 1;
        }
        advanced.push(status);
    }
    advanced
}

/// How many of the Applications of a step, of which there are `total`, are synced at a time; `None`:
/// all. A limit that cannot be read is an issue of the step with this index, and stands for one.
pub fn at_once(
    step: &ApplicationSetRolloutStep,
    total: i64,
    index: usize,
    issues: &mut Issues,
) -> Option<i64> {
    let max = step.max_update.as_ref()?;
    Some(most(max, total).unwrap_or_else(|| {
        issues.invalid_max_update(index, &max.str_val);
        1
    }))
}

/// The number that `maxUpdate` stands for; `None` if it is neither a number nor a percentage.
fn most(max: &IntOrString, total: i64) -> Option<i64> {
    if max.kind == 0 {
        return Some(max.int_val.into());
    }
    let percent: i64 = max.str_val.strip_suffix('%')?.parse().ok()?;
    let most = percent.checked_mul(total)?.div_euclid(100);
    Some(match max.str_val.as_str() {
        "0%" => most,
        _ => most.max(1),
    })
}

/// What is stored: the new statuses by name, unless nothing that shows has changed.
pub fn stored(
    before: &[ApplicationSetApplicationStatus],
    mut new: Vec<ApplicationSetApplicationStatus>,
) -> Vec<ApplicationSetApplicationStatus> {
    let same = before.len() == new.len()
        && new.iter().all(|new| {
            before.iter().any(|old| {
                old.application == new.application
                    && old.status == new.status
                    && old.step == new.step
                    && old.message == new.message
            })
        });
    if same {
        return before.to_vec();
    }
    new.sort_by(|a, b| a.application.cmp(&b.application));
    new
}

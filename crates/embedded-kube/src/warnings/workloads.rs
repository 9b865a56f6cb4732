//! Warnings about pods and the kinds that create them. Main function: [`of`].

use super::pod;
use crate::catalog::Resource;
use crate::validation::rules::At;

const POD_NAMES: &str = "Pod names and hostnames";
const TIME_ZONE: &str = "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                         https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";
const HISTORY: &str = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";

/// The warnings about an object. Updates cause warnings only if the spec has changed.
pub fn of(resource: &Resource, at: &At<'_>) -> Vec<String> {
    let is_new = at.old.is_none();
    let name = || {
        if is_new {
            pod::of_name(at.get("metadata.name").text(), POD_NAMES)
        } else {
            None
        }
    };
    let spec = at.get("spec");
    let changed = is_new || spec.is_changed();
    let template = |at: &At<'_>| {
        if changed {
            pod::of_template(at)
        } else {
            Vec::new()
        }
    };
    match resource.table.as_str() {
        "/pods" if is_new => pod::of_pod(at),
        "/podtemplates" if is_new || at.get("template").is_changed() => {
            pod::of_template(&at.get("template"))
        }
        "/replicationcontrollers" if !is_new => {
            // The API server checks the old template.
            let old = spec.get("template");
            let old = At::new(old.old.unwrap_or(old.value), old.path);
            if changed {
                pod::of_template(&old)
            } else {
                Vec::new()
            }
        }
        "/replicationcontrollers" | "apps/replicasets" => name()
            .into_iter()
            .chain(template(&spec.get("template")))
            .collect(),
        "apps/deployments" => {
            let noted = at.get("metadata.annotations").is_changed();
            let found = if noted && !changed {
                pod::of_template(&spec.get("template"))
            } else {
                template(&spec.get("template"))
            };
            name().into_iter().chain(found).collect()
        }
        "apps/daemonsets" if is_new || spec.get("template").is_changed() => {
            pod::of_template(&spec.get("template"))
        }
        "apps/statefulsets" => {
            let mut out = template(&spec.get("template"));
            for claim in spec.get("volumeClaimTemplates").items() {
                let path = if is_new {
                    claim.path.clone()
                } else {
                    format!("{}.Spec", claim.path)
                };
                pod::of_claim(&At::new(claim.get("spec").value, path), &mut out);
            }
            out.extend(
                spec.get("revisionHistoryLimit")
                    .int()
                    .is_some_and(|n| n < 0)
                    .then(|| HISTORY.to_owned()),
            );
            out
        }
        "batch/jobs" => name()
            .into_iter()
            .chain(if changed { of_job(&spec) } else { Vec::new() })
            .collect(),
        "batch/cronjobs" => {
            let job = if changed {
                of_job(&spec.get("jobTemplate.spec"))
            } else {
                Vec::new()
            };
            let zone = (!is_new && spec.get("schedule").text().contains("TZ"))
                .then(|| TIME_ZONE.to_owned());
            name().into_iter().chain(job).chain(zone).collect()
        }
        _ => Vec::new(),
    }
}

fn of_job(spec: &At<'_>) -> Vec<String> {
    let above = |field: &str, limit: i64| spec.get(field).int().is_some_and(|n| n > limit);
    let mut out = Vec::new();
    if spec.get("completionMode").text() == "Indexed"
        && above("completions", 100_000)
        && above("parallelism", 10_000)
    {
        out.push(format!(
            "{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be \
             able to track completedIndexes when a big number of indexes fail",
            spec.path
        ));
    }
    out.extend(pod::of_template(&spec.get("template")));
    out
}

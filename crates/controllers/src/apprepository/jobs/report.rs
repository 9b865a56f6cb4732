//! The status of an AppRepository, from its Jobs. Main function: [`facts`], which is pure.

use super::{
    super::status::{Facts, Phase},
    Controller, JobsError, Value,
    belonging::is_of,
    object, termination,
};
use jiff::{Timestamp, tz::TimeZone};
use tiphys_api::AppRepository;
use tiphys_catalog::apprepository::{cleanup_prefix, schedule};
use tiphys_gocompat::cron;

impl Controller {
    pub(super) async fn report(
        &self,
        repository: &AppRepository,
        failure: Option<&JobsError>,
    ) -> Result<(), JobsError> {
        let jobs = self
            .jobs
            .find(|_, job| is_of(job, "/spec/template/metadata", repository));
        let jobs: Vec<&Value> = jobs.iter().map(|(_, job)| &**job).collect();
        let failed = newest(repository, &jobs)
            .filter(|job| object::ended(job).is_some_and(|(end, _)| end != "Complete"));
        let said = match failed {
            Some(job) => termination::message(&self.cluster, job).await,
            None => String::new(),
        };
        let mut facts = facts(repository, &jobs, &said);
        let crontab = schedule(&repository.spec.interval, &self.options.options.crontab).crontab;
        let now = Timestamp::now();
        let schedule = cron::Schedule::parse(&crontab).ok();
        facts.next_at = schedule.and_then(|schedule| schedule.next(now, &TimeZone::UTC));
        if let Some(e) = failure {
            facts.phase = Phase::Failed {
                reason: e.reason(),
                message: e.to_string(),
            };
        }
        let status = facts.status(&repository.status, now);
        object::set_status(&self.cluster, repository, &status).await?;
        Ok(())
    }
}

/// Jobs that read the repository.
fn syncs<'j>(
    repository: &AppRepository,
    jobs: &[&'j Value],
) -> impl Iterator<Item = &'j Value> + use<'j> {
    let meta = &repository.metadata;
    let cleanup = cleanup_prefix(&meta.namespace, &meta.name);
    let jobs: Vec<&Value> = jobs.to_vec();
    let is_sync = move |job: &&Value| job["metadata"]["generateName"] != cleanup.as_str();
    jobs.into_iter().filter(is_sync)
}

fn created(job: &Value) -> Option<Timestamp> {
    object::time(job, "/metadata/creationTimestamp")
}

fn newest<'j>(repository: &AppRepository, jobs: &[&'j Value]) -> Option<&'j Value> {
    syncs(repository, jobs).max_by_key(|job| (created(job), job["metadata"]["name"].as_str()))
}

/// What the Jobs that are still there say; `said`: and the pods of the newest one, if it failed.
fn facts(repository: &AppRepository, jobs: &[&Value], said: &str) -> Facts {
    let meta = &repository.metadata;
    let newest = newest(repository, jobs);
    let completed = syncs(repository, jobs).filter_map(|job| match object::ended(job) {
        Some(("Complete", _)) => object::time(job, "/status/completionTime"),
        _ => None,
    });
    let phase = newest.map_or(Phase::Unknown, |job| match object::ended(job) {
        None => Phase::Running,
        Some(("Complete", _)) => Phase::Succeeded,
        Some((_, message)) => Phase::Failed {
            reason: "JobFailed",
            message: [
                &format!(
                    "Job {}",
                    job["metadata"]["name"].as_str().unwrap_or_default()
                ),
                message,
                said,
            ]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(": "),
        },
    });
    Facts {
        generation: meta.generation,
        resync_requests: repository.spec.resync_requests,
        phase,
        succeeded_at: completed.max(),
        attempted_at: newest.and_then(created),
        ..Facts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(name: &str, at: &str, end: Option<&str>) -> Value {
        let mut job = json!({
            "metadata": {"name": name, "creationTimestamp": at},
            "status": {"conditions": []},
        });
        if let Some(end) = end {
            job["status"]["completionTime"] = at.into();
            job["status"]["conditions"] =
                json!([{"type": end, "status": "True", "message": "no more attempts"}]);
        }
        job
    }

    #[test]
    fn the_newest_job_counts() {
        let repository = AppRepository::default();
        let old = job("a", "2026-01-01T00:00:00Z", Some("Complete"));
        let mut cleanup = job("z", "2026-01-09T00:00:00Z", None);
        cleanup["metadata"]["generateName"] = cleanup_prefix("", "").into();
        let phase = |jobs: &[&Value]| facts(&repository, jobs, "");
        assert_eq!(phase(&[&cleanup]).phase, Phase::Unknown);
        assert_eq!(phase(&[&old, &cleanup]).phase, Phase::Succeeded);
        let running = job("b", "2026-01-02T00:00:00Z", None);
        assert_eq!(phase(&[&running, &old]).phase, Phase::Running);
        let failed = job("c", "2026-01-03T00:00:00Z", Some("Failed"));
        let found = phase(&[&failed, &running, &old]);
        let message = "Job c: no more attempts".to_owned();
        let reason = "JobFailed";
        assert_eq!(found.phase, Phase::Failed { reason, message });
        let found_out = facts(&repository, &[&failed, &running, &old], "no such host").phase;
        let message = "Job c: no more attempts: no such host".to_owned();
        assert_eq!(found_out, Phase::Failed { reason, message });
        assert_eq!(
            found.succeeded_at,
            object::time(&old, "/status/completionTime")
        );
    }
}

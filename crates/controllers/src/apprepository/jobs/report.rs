//! The status of an AppRepository, from its Jobs. Main function: [`facts`], which is pure.

use super::{
    super::status::{Facts, Phase},
    Controller, JobsError, Key, Reason, Value,
    belonging::is_of,
    object, termination,
};
use jiff::{Timestamp, tz::TimeZone};
use std::time::Duration;
use tiphys_api::AppRepository;
use tiphys_catalog::apprepository::{cleanup_prefix, schedule};
use tiphys_gocompat::cron;

/// How often the pods of a Job are looked at while it tries.
const ATTEMPTS: Duration = Duration::from_secs(10);

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
        let unfinished = newest(repository, &jobs).filter(|job| !is_complete(job));
        let said = match unfinished {
            Some(job) => termination::message(&self.cluster, job).await,
            None => String::new(),
        };
        let mut facts = facts(repository, &jobs, &said);
        if matches!(facts.phase, Phase::Running { .. }) {
            // Another attempt does not change the Job, and its pods go before it has failed.
            let meta = &repository.metadata;
            let key = Key::new(&meta.namespace, &meta.name);
            self.queue.add_after(key, Reason::PODS, ATTEMPTS);
        }
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

fn is_complete(job: &Value) -> bool {
    object::ended(job).is_some_and(|(end, _)| end == "Complete")
}

/// What failed in the newest Job: what its pods say, or what they said when the status was written.
fn failure(repository: &AppRepository, job: &Value, message: &str, said: &str) -> String {
    let begin = format!(
        "Job {}",
        job["metadata"]["name"].as_str().unwrap_or_default()
    );
    let before = repository.status.last_error.strip_prefix(&*begin);
    let before = before
        .and_then(|rest| rest.strip_prefix(": "))
        .unwrap_or_default();
    let before = match before.strip_prefix(message) {
        Some(rest) if !message.is_empty() => rest.strip_prefix(": ").unwrap_or_default(),
        _ => before,
    };
    let said = if said.is_empty() { before } else { said };
    let parts = [&*begin, message, said].into_iter();
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}

/// What the Jobs that are still there say, and what the pods of the newest one do.
fn facts(repository: &AppRepository, jobs: &[&Value], said: &str) -> Facts {
    let meta = &repository.metadata;
    let newest = newest(repository, jobs);
    let completed = syncs(repository, jobs).filter_map(|job| match object::ended(job) {
        Some(("Complete", _)) => object::time(job, "/status/completionTime"),
        _ => None,
    });
    let phase = newest.map_or(Phase::Unknown, |job| match object::ended(job) {
        None if said.is_empty() => Phase::Running {
            failed: String::new(),
        },
        None => Phase::Running {
            failed: failure(repository, job, "", said),
        },
        Some(("Complete", _)) => Phase::Succeeded,
        Some((_, message)) => Phase::Failed {
            reason: "JobFailed",
            message: failure(repository, job, message, said),
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
        let reads = Phase::Running {
            failed: String::new(),
        };
        assert_eq!(phase(&[&running, &old]).phase, reads);
        let failed = job("c", "2026-01-03T00:00:00Z", Some("Failed"));
        let found = phase(&[&failed, &running, &old]);
        let message = "Job c: no more attempts".to_owned();
        let reason = "JobFailed";
        assert_eq!(found.phase, Phase::Failed { reason, message });
        assert_eq!(
            found.succeeded_at,
            object::time(&old, "/status/completionTime")
        );
    }
    /// The pods of a Job are there while it tries, and gone when it has failed.
    #[test]
    fn what_pods_said_stays() {
        let mut repository = AppRepository::default();
        let (at, later) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let tries = job("a", at, None);
        let failed = job("a", at, Some("Failed"));
        let now = Timestamp::now();
        let mut told = |jobs: &[&Value], said: &str| {
            repository.status = facts(&repository, jobs, said).status(&repository.status, now);
            repository.status.last_error.clone()
        };
        assert_eq!(told(&[&tries], ""), "");
        assert_eq!(told(&[&tries], "no such host"), "Job a: no such host");
        assert_eq!(told(&[&tries], ""), "Job a: no such host");
        let all = "Job a: no more attempts: no such host";
        assert_eq!(told(&[&failed], ""), all);
        // However often it is looked at.
        assert_eq!(told(&[&failed], ""), all);
        assert_eq!(told(&[&failed], "404"), "Job a: no more attempts: 404");
        let mut silent = failed.clone();
        silent["status"]["conditions"][0]["message"] = "".into();
        assert_eq!(told(&[&tries], "404"), "Job a: 404");
        assert_eq!(told(&[&silent], ""), "Job a: 404");
        assert_eq!(told(&[&failed], ""), "Job a: no more attempts: 404");
        // It is of that Job only.
        let next = job("b", later, Some("Failed"));
        assert_eq!(told(&[&failed, &next], ""), "Job b: no more attempts");
        let good = job("c", "2026-01-03T00:00:00Z", Some("Complete"));
        assert_eq!(told(&[&failed, &next, &good], ""), "");
    }
}

//! An AppRepository that is deleted: no more syncs, then a Job that removes its rows, and only then
//! the finalizer goes.

use super::{
    Controller, JobsError, Key, Reason,
    belonging::{belongs, is_of, named},
    object,
};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    sync::{MutexGuard, PoisonError},
    time::Duration,
};
use tiphys_api::AppRepository;
use tiphys_catalog::apprepository::{FINALIZER, Wanted, cron_job_name};
use tiphys_cluster::request::Call;

/// How often a Job that waits for something is looked at besides its changes.
const LOOK: Duration = Duration::from_secs(15);

/// The Jobs of an AppRepository that is deleted.
struct Jobs {
    /// Syncs that have not ended.
    running: Vec<Value>,
    /// Those that remove the rows, since it was deleted.
    cleanups: Vec<Value>,
}

impl Controller {
    pub(super) async fn clean_up(&self, repository: &AppRepository) -> Result<(), JobsError> {
        if !repository
            .metadata
            .finalizers
            .iter()
            .any(|f| f == FINALIZER)
        {
            return Ok(());
        }
        let wanted = Wanted::of(repository, &self.options.options);
        if self.remove(repository, &wanted).await? {
            self.remove_secret(repository).await?;
            let meta = &repository.metadata;
            let key = Key::new(&meta.namespace, &meta.name);
            // Before it goes, which is heard of elsewhere.
            self.finished().insert(key.clone());
            let dropped = object::drop_finalizer(&self.cluster, repository, FINALIZER).await;
            if dropped.is_err() {
                self.finished().remove(&key);
            }
            dropped?;
            self.events.forget(&repository.metadata.uid);
            return Ok(());
        }
        let meta = &repository.metadata;
        let key = Key::new(&meta.namespace, &meta.name);
        self.queue.add_after(key, Reason::default(), LOOK);
        Ok(())
    }

    /// The next step; whether all are done.
    async fn remove(&self, repository: &AppRepository, wanted: &Wanted) -> Result<bool, JobsError> {
        self.remove_cron_job(repository).await?;
        let jobs = self.jobs_of(repository, wanted).await?;
        let is_late = self.is_late(repository);
        if !jobs.running.is_empty() && !is_late {
            // A sync that is still writing would bring rows back.
            for job in jobs.running.iter().filter(|job| !is_deleted(job)) {
                self.remove_job(job).await?;
            }
            return Ok(false);
        }
        let ends: Vec<Option<&str>> = jobs
            .cleanups
            .iter()
            .map(|job| object::ended(job).map(|(end, _)| end))
            .collect();
        if ends.contains(&Some("Complete")) {
            return Ok(true);
        }
        if is_late {
            let message = "its rows could not be removed in time and stay in the database";
            self.events
                .warning(repository, "CleanupFailed", message)
                .await;
            return Ok(true);
        }
        // A Job tries several times itself before it is failed.
        if !ends.contains(&None) {
            let path = object::batch(&self.options.options.namespace, "jobs");
            object::write(&self.cluster, Method::POST, &path, &wanted.cleanup_job).await?;
        }
        Ok(false)
    }

    fn is_late(&self, repository: &AppRepository) -> bool {
        let since = repository.metadata.deletion_timestamp;
        let waited = since.map(|since| Timestamp::now().duration_since(since.timestamp()));
        waited.is_some_and(|waited| waited.unsigned_abs() > self.options.cleanup_patience)
    }

    async fn remove_cron_job(&self, repository: &AppRepository) -> Result<(), JobsError> {
        let meta = &repository.metadata;
        let collection = object::batch(&self.options.options.namespace, "cronjobs");
        let name = cron_job_name(&meta.namespace, &meta.name);
        let path = format!("{collection}/{name}");
        let found = object::get(&self.cluster, &path).await?;
        if found.is_some_and(|found| belongs(&found, repository) && !is_deleted(&found)) {
            object::delete(&self.cluster, &path, "Background").await?;
        }
        Ok(())
    }

    async fn remove_job(&self, job: &Value) -> Result<(), JobsError> {
        let collection = object::batch(&self.options.options.namespace, "jobs");
        let name = job["metadata"]["name"].as_str().unwrap_or_default();
        // It is gone when its pods are.
        object::delete(&self.cluster, &format!("{collection}/{name}"), "Foreground").await?;
        Ok(())
    }

    async fn jobs_of(
        &self,
        repository: &AppRepository,
        wanted: &Wanted,
    ) -> Result<Jobs, JobsError> {
        let path = object::batch(&self.options.options.namespace, "jobs");
        let mut list: Value = self.cluster.http().json(&Call::get(path)).await?;
        let all = match list["items"].take() {
            Value::Array(all) => all,
            _ => Vec::new(),
        };
        let prefix = &wanted.cleanup_job["metadata"]["generateName"];
        let since = repository.metadata.deletion_timestamp;
        let since = since.map(|since| since.timestamp()).unwrap_or_default();
        let ours = all
            .into_iter()
            .filter(|job| is_of(job, "/spec/template/metadata", repository));
        let (cleanups, syncs): (Vec<Value>, Vec<Value>) =
            ours.partition(|job| job["metadata"]["generateName"] == *prefix);
        let created = |job: &Value| object::time(job, "/metadata/creationTimestamp");
        Ok(Jobs {
            running: syncs
                .into_iter()
                .filter(|job| object::ended(job).is_none())
                .collect(),
            // Others are of one with the same name that was there before.
            cleanups: cleanups
                .into_iter()
                .filter(|job| created(job).is_some_and(|at| at >= since) && !is_deleted(job))
                .collect(),
        })
    }

    /// Looks at the AppRepositories of CronJobs that have none: they went while nobody looked.
    pub(super) fn sweep(&self) {
        for (at, cron_job) in self.cron_jobs.find(|_, _| true) {
            let Some(key) = named(&cron_job) else {
                continue;
            };
            let is_watched = self.options.options.all_namespaces
                || key.namespace == self.options.options.namespace;
            let is_ours = at.name == cron_job_name(&key.namespace, &key.name);
            if is_watched && is_ours && !is_deleted(&cron_job) {
                self.queue.add(key, Reason::GONE);
            }
        }
    }

    pub(super) fn finished(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the CronJob and the rows of an AppRepository that went without this controller:
    /// somebody took the finalizer off, or it had none yet.
    pub(super) async fn clean_up_after(
        &self,
        key: &Key,
        reason: &mut Reason,
    ) -> Result<(), JobsError> {
        let gone = json!({"metadata": {"namespace": key.namespace, "name": key.name}});
        let gone: AppRepository = serde_json::from_value(gone).map_err(JobsError::Unreadable)?;
        self.remove_cron_job(&gone).await?;
        let wanted = Wanted::of(&gone, &self.options.options);
        let jobs = self.jobs_of(&gone, &wanted).await?;
        if !jobs.running.is_empty() {
            for job in jobs.running.iter().filter(|job| !is_deleted(job)) {
                self.remove_job(job).await?;
            }
            self.queue.add_after(key.clone(), *reason, LOOK);
            return Ok(());
        }
        // One that was begun before it went does what is wanted.
        if jobs.cleanups.iter().all(|job| object::ended(job).is_some()) {
            let path = object::batch(&self.options.options.namespace, "jobs");
            object::write(&self.cluster, Method::POST, &path, &wanted.cleanup_job).await?;
        }
        self.remove_copy(&gone).await?;
        reason.gone = false;
        Ok(())
    }
}

fn is_deleted(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"] != Value::Null
}

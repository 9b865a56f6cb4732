//! One reconcile of an AppRepository: its finalizer, Secrets, CronJob and Job.

use super::{Controller, JobsError, Key, Reason, belonging::belongs, object};
use http::Method;
use serde_json::Value;
use tiphys_api::AppRepository;
use tiphys_catalog::apprepository::{FINALIZER, Wanted};

/// kubeapps' Event.
const SYNCED: (&str, &str) = ("Synced", "AppRepository synced successfully");

impl Controller {
    pub(super) async fn reconcile(&self, key: &Key, reason: &mut Reason) -> Result<(), JobsError> {
        let found = object::get(&self.cluster, &object::repository(key)).await?;
        if reason.gone && self.finished().remove(key) {
            reason.gone = false;
        }
        let Some(found) = found else {
            return match reason.gone {
                true => self.clean_up_after(key, reason).await,
                false => Ok(()),
            };
        };
        // Another one with its name has its rows.
        reason.gone = false;
        let repository: AppRepository =
            serde_json::from_value(found).map_err(JobsError::Unreadable)?;
        if repository.metadata.deletion_timestamp.is_some() {
            let cleaned = self.clean_up(&repository).await;
            return self.told(&repository, cleaned).await;
        }
        let ended = match reason.only_pods {
            true => Ok(()),
            false => self.ensure(&repository, reason).await,
        };
        let failure = ended.as_ref().err();
        self.report(&repository, failure).await?;
        self.told(&repository, ended).await
    }

    /// Tells a failure to whoever looks at the AppRepository.
    async fn told(
        &self,
        repository: &AppRepository,
        ended: Result<(), JobsError>,
    ) -> Result<(), JobsError> {
        if let Err(e) = &ended {
            let is_race = matches!(e, JobsError::Cluster(e) if e.is_conflict());
            if !is_race {
                let message = e.to_string();
                self.events.warning(repository, e.reason(), &message).await;
            }
        }
        ended
    }

    async fn ensure(
        &self,
        repository: &AppRepository,
        reason: &mut Reason,
    ) -> Result<(), JobsError> {
        // First, so that there are never rows that nobody would remove.
        object::add_finalizer(&self.cluster, repository, FINALIZER).await?;
        let wanted = Wanted::of(repository, &self.options.options);
        let secrets = self.copy_secrets(repository).await;
        self.ensure_jobs(repository, &wanted, reason).await?;
        secrets
    }

    async fn ensure_jobs(
        &self,
        repository: &AppRepository,
        wanted: &Wanted,
        reason: &mut Reason,
    ) -> Result<(), JobsError> {
        let namespace = &self.options.options.namespace;
        let collection = object::batch(namespace, "cronjobs");
        let name = text(&wanted.cron_job, "name");
        let path = format!("{collection}/{name}");
        let body = &wanted.cron_job;
        match object::get(&self.cluster, &path).await? {
            None => {
                object::write(&self.cluster, Method::POST, &collection, body).await?;
                reason.sync = true;
            }
            Some(found) if !belongs(&found, repository) => {
                return Err(JobsError::Exists(name.to_owned()));
            }
            Some(found) if found["metadata"]["deletionTimestamp"] != Value::Null => {
                return Err(JobsError::Terminating(name.to_owned()));
            }
            Some(_) if reason.sync => {
                object::write(&self.cluster, Method::PUT, &path, body).await?;
            }
            Some(_) => return Ok(()),
        }
        let jobs = object::batch(namespace, "jobs");
        object::write(&self.cluster, Method::POST, &jobs, &wanted.sync_job).await?;
        reason.sync = false;
        if let Some(warning) = &wanted.warning {
            self.events
                .warning(repository, "InvalidInterval", warning)
                .await;
        }
        if repository.metadata.namespace == *namespace {
            self.events.normal(repository, SYNCED.0, SYNCED.1).await;
        }
        Ok(())
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

//! Reading a repository that is due: with its lease, in its turn, told in its status.

use super::{
    super::status::{Facts, Phase},
    Controller, ELSEWHERE, InProcessError, Key, Memo, due, object,
};
use crate::runtime::standing;
use jiff::Timestamp;
use serde_json::Value;
use std::time::{Duration, Instant};
use tiphys_api::{AppRepository, app_repository::AppRepositoryProblem};
use tiphys_catalog::{
    CatalogError,
    apprepository::{open, pause, schedule},
    lease,
    store::Problem,
    sync::{CatalogSync, SyncReport},
};
use tokio_util::sync::CancellationToken;

/// The longest sync.
const LONGEST: Duration = Duration::from_secs(3600);

/// Problems with charts that the status says.
const PROBLEMS: i64 = 10;

/// How a sync ended.
enum Ended {
    Done(SyncReport),
    Failed(CatalogError),
    /// It reads what is no longer wanted, or the process stops.
    Outdated,
    /// Another process has the lease now.
    Elsewhere,
}

impl Controller {
    pub(super) async fn read(
        &self,
        key: &Key,
        repository: &AppRepository,
        spec: &Value,
    ) -> Result<Option<Duration>, InProcessError> {
        let now = (self.options.clock)();
        let memo = self.memo(key, |memo| memo.clone());
        if let Some(wait) = due::wait(repository, spec, &memo, now) {
            return Ok(Some(wait));
        }
        let stop = CancellationToken::new();
        self.memo(key, |memo| memo.running = Some(stop.clone()));
        let turn = self.hosts.turn(&repository.spec.url);
        let turn = tokio::select! {
            turn = standing(turn) => turn,
            // It is in the queue again.
            () = stop.cancelled() => return Ok(Some(Duration::ZERO)),
        };
        if !self.claim(key).await? {
            return Ok(Some(ELSEWHERE));
        }
        if let Some(wait) = self.read_elsewhere(key, spec, &memo).await? {
            self.release(key).await?;
            return Ok(Some(wait));
        }
        self.tell_running(repository, now).await?;
        let began = Instant::now();
        let ended = self.sync(key, repository, &stop).await;
        self.count(key, &ended, began.elapsed());
        drop(turn);
        self.memo(key, |memo| memo.running = None);
        let told = self.tell(key, (repository, spec), ended).await;
        self.release(key).await?;
        told
    }

    /// When to look again, if another process did the work while this one waited for its turn.
    async fn read_elsewhere(
        &self,
        key: &Key,
        spec: &Value,
        memo: &Memo,
    ) -> Result<Option<Duration>, InProcessError> {
        let found = object::get(&self.cluster, &object::repository(key)).await?;
        let Some(found) = found.filter(|found| found["spec"] == *spec) else {
            // It is in the queue again.
            return Ok(Some(Duration::ZERO));
        };
        let current: AppRepository =
            serde_json::from_value(found).map_err(InProcessError::Unreadable)?;
        Ok(due::wait(&current, spec, memo, (self.options.clock)()))
    }

    async fn sync(&self, key: &Key, repository: &AppRepository, stop: &CancellationToken) -> Ended {
        let sync = match self.open(key, repository).await {
            Ok(sync) => sync,
            Err(e) => return Ended::Failed(e),
        };
        let at_work = sync.at_work();
        let ended = {
            let run = standing(tokio::time::timeout(LONGEST, sync.run()));
            tokio::select! {
                ended = run => match ended {
                    Ok(Ok(report)) => Ended::Done(report),
                    Ok(Err(e)) => Ended::Failed(e),
                    Err(_) => Ended::Failed(CatalogError::Internal(format!(
                        "it was not read within {} s", LONGEST.as_secs()
                    ))),
                },
                () = stop.cancelled() => Ended::Outdated,
                () = lease::renew(&self.options.store, key, &self.options.holder) => Ended::Elsewhere,
            }
        };
        drop(sync);
        // Whoever comes next must not meet a thread that still writes.
        lease::idle(&at_work).await;
        ended
    }

    fn count(&self, key: &Key, ended: &Ended, took: Duration) {
        let report = match ended {
            Ended::Done(report) => Some(report),
            Ended::Failed(_) => None,
            Ended::Outdated | Ended::Elsewhere => return,
        };
        self.options.metrics.synced(key, report, took);
    }

    async fn open(
        &self,
        key: &Key,
        repository: &AppRepository,
    ) -> Result<CatalogSync, CatalogError> {
        let id = key.clone();
        let known = self.with_store(move |store| store.repo(&id)).await;
        if let Ok(Some(known)) = known
            && !known.spec.is_empty()
        {
            let why = "a repository of this namespace and name was added on the command line";
            return Err(CatalogError::Invalid(why.to_owned()));
        }
        let credentials = match self.credentials(repository).await {
            Ok(credentials) => credentials,
            Err(InProcessError::Catalog(e)) => return Err(e),
            Err(e) => return Err(CatalogError::Internal(e.to_string())),
        };
        open(repository, credentials, self.options.store.clone())
    }

    async fn tell_running(
        &self,
        repository: &AppRepository,
        now: Timestamp,
    ) -> Result<(), InProcessError> {
        let facts = Facts {
            generation: repository.metadata.generation,
            resync_requests: repository.spec.resync_requests,
            phase: Phase::Running {
                failed: String::new(),
            },
            attempted_at: Some(now),
            ..Facts::default()
        };
        let status = facts.status(&repository.status, now);
        object::set_status(&self.cluster, repository, &status).await?;
        Ok(())
    }

    /// Writes what came of a sync; returns when the next one is due.
    async fn tell(
        &self,
        key: &Key,
        (repository, spec): (&AppRepository, &Value),
        ended: Ended,
    ) -> Result<Option<Duration>, InProcessError> {
        let now = (self.options.clock)();
        let phase = match &ended {
            Ended::Outdated => return Ok(Some(Duration::ZERO)),
            Ended::Elsewhere => return Ok(Some(ELSEWHERE)),
            Ended::Done(_) => Phase::Succeeded,
            Ended::Failed(e) => Phase::Failed {
                reason: "SyncFailed",
                message: e.to_string(),
            },
        };
        let wish = match &ended {
            Ended::Failed(e) => e.retry_after().map(Duration::from_secs),
            _ => None,
        };
        let interval = &repository.spec.interval;
        let usual = pause(interval, &self.options.crontab, now).unwrap_or(LONGEST);
        let share = rand::random_range(0.0..=self.options.jitter);
        let pause = self.memo(key, |memo| {
            memo.failures = match phase {
                Phase::Succeeded => 0,
                _ => memo.failures.saturating_add(1),
            };
            let pause = due::pause(usual, share, memo.failures, wish);
            memo.spec = Some(spec.clone());
            memo.next_at = now.checked_add(pause).ok();
            pause
        });
        self.tell_events(repository, &ended).await;
        self.tell_status(key, repository, phase, now, pause).await?;
        Ok(Some(pause))
    }

    async fn tell_events(&self, repository: &AppRepository, ended: &Ended) {
        let warning = schedule(&repository.spec.interval, &self.options.crontab).warning;
        if let Some(warning) = warning {
            let reason = "InvalidInterval";
            self.events.warning(repository, reason, &warning).await;
        }
        match ended {
            Ended::Done(report) if !report.unchanged => {
                let (charts, skipped) = (report.charts, report.skipped);
                let message = format!("{charts} charts read, {skipped} entries skipped");
                self.events.normal(repository, "Synced", &message).await;
            }
            Ended::Failed(e) => {
                let message = e.to_string();
                let reason = "SyncFailed";
                self.events.warning(repository, reason, &message).await;
            }
            _ => {}
        }
    }

    async fn tell_status(
        &self,
        key: &Key,
        repository: &AppRepository,
        phase: Phase,
        now: Timestamp,
        pause: Duration,
    ) -> Result<(), InProcessError> {
        let id = key.clone();
        // A database that does not answer must not keep the failure from being told.
        let read = self.with_store(move |store| {
            let problems = store.some_problems(&id, PROBLEMS)?;
            Ok(store.repo(&id)?.map(|rows| (rows, problems)))
        });
        let rows = match (read.await, &phase) {
            (Err(_), Phase::Failed { .. }) => None,
            (rows, _) => rows?,
        };
        // As it is now: the sync took its time.
        let Some(found) = object::get(&self.cluster, &object::repository(key)).await? else {
            return Ok(());
        };
        let current: AppRepository =
            serde_json::from_value(found).map_err(InProcessError::Unreadable)?;
        let facts = Facts {
            generation: repository.metadata.generation,
            resync_requests: repository.spec.resync_requests,
            charts: rows.as_ref().map(|(rows, _)| rows.charts),
            versions: rows.as_ref().map(|(rows, _)| rows.versions),
            skipped: rows.as_ref().map(|(rows, _)| rows.skipped),
            problems: rows.map(|(_, problems)| problems.into_iter().map(shown).collect()),
            succeeded_at: (phase == Phase::Succeeded).then_some(now),
            attempted_at: None,
            next_at: now.checked_add(pause).ok(),
            phase,
        };
        let status = facts.status(&current.status, now);
        object::set_status(&self.cluster, &current, &status).await?;
        Ok(())
    }
}

fn shown(problem: Problem) -> AppRepositoryProblem {
    AppRepositoryProblem {
        chart: problem.path(),
        version: problem.version,
        kind: problem.kind.word().to_owned(),
        reason: problem.reason,
    }
}

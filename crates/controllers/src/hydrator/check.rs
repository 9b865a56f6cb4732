//! Asks one Application whether its branch must be written. Main function: [`Hydrator::check`].

use super::{
    Hydrator, Reason, Request,
    group::GroupKey,
    need::{Need, need, requested},
    status,
};
use crate::{application::timeouts, runtime::Turn};
use std::time::Duration;
use tiphys_api::{Application, constants, source::SourceHydrator};
use tiphys_cluster::AppKey;
use tiphys_engine::spec;
use tiphys_repo::{RepoError, Since};
use tiphys_sources::{AppRequest, Before, SourceRequest};

/// How long a question without an answer rests.
const PAUSE: Duration = Duration::from_secs(30);

impl Hydrator {
    pub(super) async fn check(&self, key: &AppKey, reason: Reason) {
        let known = self.known(key);
        let hydrator = known
            .as_ref()
            .and_then(|app| app.spec.source_hydrator.as_deref());
        let (Turn::Ours(held), Some(app), Some(hydrator)) = (self.turn(), &known, hydrator) else {
            self.unwritten().remove(key);
            return;
        };
        let work = self.ask(key, app, hydrator, reason);
        let again = held.scope(work).await;
        self.apps.visit_after(key, Reason::default(), again);
    }

    /// An Application that is looked after, if it can be read.
    pub(super) fn known(&self, key: &AppKey) -> Option<Application> {
        let record = self.records.applications.get(&key.namespace, &key.name)?;
        let app = record.value().ok()?;
        let skipped = app.metadata.annotations.get(constants::SKIP_RECONCILE);
        let is_ours = self.records.permits(&key.namespace)
            && app.metadata.deletion_timestamp.is_none()
            && skipped.is_none_or(|value| value != "true");
        is_ours.then(|| Application::clone(&app))
    }

    /// Returns when to ask again.
    async fn ask(
        &self,
        key: &AppKey,
        app: &Application,
        hydrator: &SourceHydrator,
        reason: Reason,
    ) -> Option<Duration> {
        let group = GroupKey::of(hydrator);
        let is_hard = requested(app) == Some("hard");
        let hydrate = |why: &str| {
            tracing::info!(application = key.name, reason = why, "Hydrating app");
            self.groups.add(group.clone(), Request { is_hard });
            None
        };
        let poll = self.poll();
        match need(app, self.now()) {
            Need::Nothing => None,
            Need::Running if self.running().contains(&group) => None,
            Need::Running => hydrate("hydration was interrupted"),
            Need::Hydration(why) => hydrate(why),
            Need::Later(why, rest) => {
                tracing::debug!(application = key.name, reason = why, "Skipping hydration");
                self.answered(key, app, None).await;
                rest.try_into().ok()
            }
            Need::IfChanged { since, again } => {
                let is_fresh = reason.is_fresh || requested(app).is_some();
                let rest = again.and_then(|again| again.try_into().ok());
                let pause = [rest, poll].into_iter().flatten().min();
                match self.changed(key, app, hydrator, (&since, is_fresh)).await {
                    Ok((true, _)) => hydrate("new revision may have changes"),
                    Ok((false, revision)) => {
                        let moved = Some(revision).filter(|revision| *revision != since);
                        self.answered(key, app, moved).await;
                        pause
                    }
                    Err(error) => {
                        tracing::warn!(
                            application = key.name,
                            %error,
                            "cannot determine if hydration is needed"
                        );
                        self.answered(key, app, None).await;
                        Some(pause.map_or(PAUSE, |pause| pause.min(PAUSE)))
                    }
                }
            }
        }
    }

    /// How often each revision is looked up; `None`: only when someone asks.
    fn poll(&self) -> Option<Duration> {
        let soft = timeouts::soft(&self.records.settings(), rand::random());
        (!soft.is_zero()).then(|| soft.try_into().ok()).flatten()
    }

    /// Nothing is to be done for a request. `revision`: what was compared.
    async fn answered(&self, key: &AppKey, app: &Application, revision: Option<String>) {
        if requested(app).is_none() && revision.is_none() {
            return;
        }
        let seen = status::Seen::of(app);
        self.write(key, seen, |change| {
            if let Some(revision) = &revision {
                change
                    .status
                    .last_compared_dry_revision
                    .clone_from(revision);
            }
        })
        .await;
    }

    /// Whether the revision of the dry source is another one than `since` in what matters, and what
    /// it is now.
    async fn changed(
        &self,
        key: &AppKey,
        app: &Application,
        hydrator: &SourceHydrator,
        (since, is_fresh): (&str, bool),
    ) -> Result<(bool, String), RepoError> {
        let mut request = self.request(key, app, hydrator);
        let paths = app
            .metadata
            .annotations
            .get(constants::MANIFEST_GENERATE_PATHS);
        let resolved = self.resolve(&request, is_fresh).await?;
        if resolved == since {
            return Ok((false, resolved));
        }
        if paths.is_none_or(String::is_empty) {
            return Ok((true, resolved));
        }
        request.revision.clone_from(&resolved);
        let before = Before {
            revision: since.to_owned(),
            ..Before::default()
        };
        let changed = self.sources.changed(&request, &before).await?;
        Ok((changed, resolved))
    }

    /// The commit of a request.
    pub(super) async fn resolve(
        &self,
        request: &SourceRequest,
        is_fresh: bool,
    ) -> Result<String, RepoError> {
        let since = match is_fresh {
            true => Since::now(),
            false => Since::Recently,
        };
        let (source, revision) = (&request.source, &request.revision);
        let resolved = self
            .sources
            .resolve(&request.repository, source, revision, since);
        Ok(resolved.await?.sha)
    }

    /// The request for an Application's dry source, at the revision that it names. It says nothing
    /// of the destination cluster.
    pub(super) fn request(
        &self,
        key: &AppKey,
        app: &Application,
        hydrator: &SourceHydrator,
    ) -> SourceRequest {
        let project = spec::project_name(app);
        let source = spec::dry_source(hydrator);
        let request = AppRequest::of(app, key.instance(&self.records.namespace));
        SourceRequest {
            app: request.into(),
            repository: self.sources.repository(&source.repo_url, project),
            revision: source.target_revision.clone(),
            source,
        }
    }
}

//! Renders: fetches what one needs until nothing is missing, and runs it.

use super::{Inner, Repos};
use crate::{
    RepoAccess, RepoError,
    chart::ChartName,
    git::{Commit, Torn},
    ground::{Since, blocking},
    lfs::Objects,
    manifests::{Commits, ManifestRequest, Manifests},
    needs::{self, Fetched, Got},
    oci, revision,
    streamed::STREAMED,
    submodules::Submodules,
    url::locate,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tiphys_render::{Details, RenderError, SourceRef};
use tracing::Instrument as _;

/// The Git LFS objects of the sources of one render, with the access to their repositories.
#[derive(Default)]
struct Pointed(Vec<(Arc<Objects>, RepoAccess)>);

impl Pointed {
    /// The commit, with the files that its pointers stand for if the repository has them.
    fn in_commit(&mut self, (store, id): Commit, access: &RepoAccess) -> Commit {
        if !access.lfs {
            return (store, id);
        }
        let objects = Arc::new(Objects::new(access));
        let store = store.with_lfs(Arc::clone(&objects));
        self.0.push((objects, access.clone()));
        (store, id)
    }
}

impl Inner {
    fn manifests(
        &self,
        commits: &Commits,
        request: &ManifestRequest,
    ) -> Result<Arc<Manifests>, RepoError> {
        let (budget, limit) = (&self.options.budget, self.options.render_timeout);
        let made = self.renderer.manifests(commits, request, budget, limit);
        made.map(Arc::new)
    }
}

impl Repos {
    /// The objects of a source. Cached by what was read, not by the commit.
    pub async fn manifests(&self, request: ManifestRequest) -> Result<Arc<Manifests>, RepoError> {
        let span = tracing::trace_span!(
            "GenerateManifest",
            revision = request.sha,
            path = request.source.path
        );
        self.render(request, Inner::manifests)
            .instrument(span)
            .await
    }

    /// The same, of files that are not those of the source.
    pub(crate) async fn manifests_of(
        &self,
        files: Commit,
        request: ManifestRequest,
    ) -> Result<Arc<Manifests>, RepoError> {
        let request = Arc::new(request);
        self.render_whole(files, request, Inner::manifests).await
    }

    /// The details and settable parameters of a source.
    pub async fn details(&self, request: ManifestRequest) -> Result<Details, RepoError> {
        self.render(request, |inner, commits, request| {
            let (budget, limit) = (&inner.options.budget, inner.options.render_timeout);
            inner.renderer.details(commits, request, budget, limit)
        })
        .await
    }

    /// Fetches the commits of a request and runs `work` on them, again and again until everything
    /// that it needs has been fetched.
    async fn render<T: Send + 'static>(
        &self,
        request: ManifestRequest,
        work: fn(&Inner, &Commits, &ManifestRequest) -> Result<T, RepoError>,
    ) -> Result<T, RepoError> {
        let request = Arc::new(request);
        let own = self.own(&request).await?;
        let torn = Torn::default();
        let rendered = self.render_from(own, Arc::clone(&request), work, &torn);
        let outcome = rendered.await;
        if torn.get().is_none() {
            return outcome;
        }
        // What is torn is fetched anew when it is asked for; once is enough.
        let own = self.own(&request).await?;
        self.render_whole(own, request, work).await
    }

    /// The same of these files, if nothing that it reads is torn.
    async fn render_whole<T: Send + 'static>(
        &self,
        own: Commit,
        request: Arc<ManifestRequest>,
        work: fn(&Inner, &Commits, &ManifestRequest) -> Result<T, RepoError>,
    ) -> Result<T, RepoError> {
        let torn = Torn::default();
        let outcome = self.render_from(own, request, work, &torn).await;
        match (torn.get(), outcome) {
            // A file that cannot be read may have counted as one that is not there.
            (Some(e), Ok(_) | Err(RepoError::Render(_))) => Err(e.clone()),
            (_, outcome) => outcome,
        }
    }

    /// `torn` is told of what is torn in any repository that it reads.
    async fn render_from<T: Send + 'static>(
        &self,
        own: Commit,
        request: Arc<ManifestRequest>,
        work: fn(&Inner, &Commits, &ManifestRequest) -> Result<T, RepoError>,
        torn: &Torn,
    ) -> Result<T, RepoError> {
        let mut refs = BTreeMap::new();
        let mut pointed = Pointed::default();
        let is_git = request.chart().is_none() && !request.is_oci();
        let own = if is_git && request.sha != STREAMED {
            pointed.in_commit(own, &request.access)
        } else {
            own
        };
        for (name, source) in request.refs.iter().filter(|_| request.refers()) {
            let commit = if oci::is_source(&source.access.url) {
                let since = since(&request);
                let files = self.inner.oci.files(&source.access, &source.sha, since);
                files.await?
            } else {
                let commit = self.whole(&source.access, &source.sha, &request).await?;
                pointed.in_commit(commit, &source.access)
            };
            refs.insert(name.clone(), watched(commit, torn));
        }
        let mut commits = Arc::new(Commits {
            own: watched(own, torn),
            refs,
            fetched: Fetched::default(),
            plugins: self.inner.plugins.state(),
            spent: Duration::ZERO,
            waited: Mutex::default(),
            may_foresee: !request.no_cache,
        });
        loop {
            // Not held while something is fetched: a slow host must not keep others from rendering.
            let common = &self.inner.common;
            let waiting = common.contacts.waiting();
            let permit = common.shares.render(&request.project).await;
            drop(waiting);
            let permit = permit.map_err(|e| RepoError::Internal(e.to_string()))?;
            let (inner, of, what) = (
                Arc::clone(&self.inner),
                Arc::clone(&commits),
                Arc::clone(&request),
            );
            let worked = blocking(move || {
                // The work goes on even if the caller stops waiting.
                let _until_done = permit;
                // Until here it has waited for a thread.
                let begun = Instant::now();
                let outcome = work(&inner, &of, &what);
                Ok((outcome, of.spent_since(begun)))
            });
            let (outcome, spent) = worked.await?;
            let mut may_foresee = commits.may_foresee;
            let fetched = if self.fetch_pointed(&pointed).await? {
                commits.fetched.clone()
            } else {
                let Err(RepoError::Render(RenderError::Need(needed))) = outcome else {
                    return outcome;
                };
                match self.fetch_needs(&request, &commits, needed, torn).await {
                    // What an earlier render needed may not be needed now: it must not count.
                    Err(RepoError::Render(RenderError::OverBudget { .. })) if may_foresee => {
                        may_foresee = false;
                        Fetched::default()
                    }
                    fetched => fetched?,
                }
            };
            commits = Arc::new(Commits {
                fetched,
                spent,
                waited: Mutex::default(),
                may_foresee,
                plugins: commits.plugins,
                own: commits.own.clone(),
                refs: commits.refs.clone(),
            });
        }
    }

    /// Downloads what Git LFS pointers that were read stand for. False: none were.
    async fn fetch_pointed(&self, pointed: &Pointed) -> Result<bool, RepoError> {
        let mut is_any = false;
        for (objects, access) in &pointed.0 {
            if objects.is_any_missing() {
                let (_, own) = locate(access, self.inner.options.allow_local)?;
                let own = self.inner.tokens.signed_in(&own).await?;
                let key = access.fingerprint();
                is_any |= self.inner.lfs.complete(objects, key, &own).await?;
            }
        }
        Ok(is_any)
    }

    /// The files of the source itself.
    async fn own(&self, request: &ManifestRequest) -> Result<Commit, RepoError> {
        let since = since(request);
        if request.is_oci() {
            let files = self.inner.oci.files(&request.access, &request.sha, since);
            return files.await;
        }
        let Some(chart) = request.chart() else {
            return self.whole(&request.access, &request.sha, request).await;
        };
        self.inner.charts.files(chart, &request.sha, since).await
    }

    /// Fetches what is needed, and adds it to what was fetched before.
    async fn fetch_needs(
        &self,
        request: &ManifestRequest,
        commits: &Commits,
        needed: Vec<SourceRef>,
        torn: &Torn,
    ) -> Result<Fetched, RepoError> {
        let before = &commits.fetched;
        let needed = before.next(needed)?;
        let since = since(request);
        let fetch = async |needed: &SourceRef| match needed {
            SourceRef::Plugin(question) => {
                let answer = self.inner.plugins.ask(question, &commits.own, request);
                answer.await.map(Got::Answer)
            }
            other => {
                let files = self.fetch(request, other, since).await;
                files.map(|commit| Got::Files(Box::new(watched(commit, torn))))
            }
        };
        let found = futures::future::join_all(needed.iter().map(fetch)).await;
        Ok(before.with(needed.into_iter().zip(found)))
    }

    pub(crate) async fn fetch(
        &self,
        request: &ManifestRequest,
        needed: &SourceRef,
        since: Since,
    ) -> Result<Commit, RepoError> {
        match needed {
            SourceRef::Git {
                url,
                revision,
                submodules,
            } => {
                let reach = needs::repository(url, request)?;
                let commit = self.base_at(&reach.access, revision, since).await;
                let commit = commit
                    .map_err(|e| needs::unless_permitted(e, &reach, &request.project, false))?;
                if *submodules {
                    self.with_submodules(commit, &reach.access, request).await
                } else {
                    Ok(commit)
                }
            }
            SourceRef::Chart {
                repository,
                name,
                version,
            } => {
                let reach = needs::chart_repository(repository, request)?;
                let chart = ChartName {
                    access: &reach.access,
                    name,
                    pass_credentials: false,
                };
                let files = self.inner.charts.files(chart, version, since).await;
                files.map_err(|e| needs::unless_permitted(e, &reach, &request.project, true))
            }
            SourceRef::File { url } => {
                let access = needs::web(url, request)?;
                self.inner.web.get(&access, url, since).await
            }
            SourceRef::Plugin(_) => Err(RepoError::Internal(format!("{needed} has no files"))),
        }
    }

    /// The commit of a remote base. `git fetch`, with which Kustomize gets it, knows refs and whole
    /// SHAs only.
    async fn base_at(
        &self,
        access: &RepoAccess,
        revision: &str,
        since: Since,
    ) -> Result<Commit, RepoError> {
        let resolved = self.resolve(access, revision, since).await?;
        if !revision::is_full_sha(&resolved.sha) {
            let reason = format!(
                "couldn't find remote ref {revision}, and a commit is named by its whole SHA here"
            );
            let revision = revision.to_owned();
            return Err(RepoError::NoTag { revision, reason });
        }
        self.commit(&self.entry(access)?, &resolved.sha).await
    }

    /// None if they are switched off.
    pub(crate) fn submodules(&self, request: &ManifestRequest) -> Option<&Submodules> {
        let inner = &self.inner;
        let is_on = inner.options.submodules && !request.no_submodules;
        is_on.then_some(&inner.submodules)
    }

    /// The commit with its submodules.
    pub(crate) async fn whole(
        &self,
        access: &RepoAccess,
        sha: &str,
        request: &ManifestRequest,
    ) -> Result<Commit, RepoError> {
        let commit = self.commit(&self.entry(access)?, sha).await?;
        self.with_submodules(commit, access, request).await
    }
}

/// The commit, for a render that is told of what is torn.
fn watched((store, id): Commit, torn: &Torn) -> Commit {
    (store.watched(torn), id)
}

/// How recent what a render reads must be.
pub(crate) fn since(request: &ManifestRequest) -> Since {
    if request.no_cache {
        Since::now()
    } else {
        Since::Recently
    }
}

//! Hydrates one group. Main function: [`Hydrator::hydrate`].

use super::{
    Hydrator, Request,
    group::{Faults, GroupKey, Member, faults, of_others},
    need::{FAILED, HYDRATED, HYDRATING},
    status::{Change, Seen},
    templates,
};
use futures::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, join_all},
    stream,
};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};
use tiphys_api::{
    AppProject, Application,
    access::without_passwords,
    constants::TRACKING_ID,
    meta::Time,
    operation::{HydrateOperation, SuccessfulHydrateOperation},
    rpc::commit::{CommitHydratedManifestsRequest, HydratedManifestDetails, PathDetails},
};
use tiphys_cluster::AppKey;
use tiphys_engine::{integrity, spec, types::TrackingMethod};
use tiphys_repo::{Manifests, commit_message};
use tiphys_sources::SourceRequest;

/// Statuses that are written at once.
const WRITES: usize = 16;

/// What became of a group.
struct Outcome {
    /// Empty: it is not known.
    dry_sha: String,
    /// The commit, or what is wrong with which members.
    hydrated: Result<String, Faults>,
}

impl Outcome {
    /// The same is wrong with all of them.
    fn failed(dry_sha: &str, members: &[Member], fault: &str) -> Self {
        let faults = members.iter().map(|m| (m.name(), fault.to_owned()));
        Self {
            dry_sha: dry_sha.to_owned(),
            hydrated: Err(faults.collect()),
        }
    }
}

/// The project of all members. Empty: they are of several, and only credentials of none are used.
fn only_project(members: &[Member]) -> String {
    let name = |member: &Member| spec::project_name(&member.app).to_owned();
    let projects: BTreeSet<String> = members.iter().map(name).collect();
    let one = (projects.len() == 1).then(|| projects.into_iter().next());
    one.flatten().unwrap_or_default()
}

/// Whether each of them was stored, in their order.
async fn at_once(writes: Vec<BoxFuture<'_, bool>>) -> Vec<bool> {
    stream::iter(writes).buffered(WRITES).collect().await
}

impl Hydrator {
    /// Renders and commits all Applications of a group, or none of them. Returns those that were
    /// looked at, and whether what became of them was stored.
    pub(super) async fn hydrate(&self, key: &GroupKey, request: Request) -> Vec<(AppKey, bool)> {
        let members = self.members(key);
        if members.is_empty() {
            return Vec::new();
        }
        let seen: Vec<Seen> = members.iter().map(|m| Seen::of(&m.app)).collect();
        self.begin(&members).boxed().await;
        let outcome = self.outcome(&members, request).boxed().await;
        match &outcome.hydrated {
            Ok(sha) => tracing::info!(
                branch = key.branch,
                dry = outcome.dry_sha,
                sha,
                applications = members.len(),
                "Successfully hydrated apps"
            ),
            Err(faults) => {
                for (application, fault) in faults {
                    tracing::error!(application, "failed to hydrate app: {fault}");
                }
            }
        }
        let stored = self.end(&members, &seen, &outcome).boxed().await;
        let keys = members.into_iter().map(|member| member.key);
        keys.zip(stored).collect()
    }

    fn members(&self, key: &GroupKey) -> Vec<Member> {
        let records = self.records.applications.list();
        let keys = records
            .iter()
            .map(|r| AppKey::new(&r.meta.namespace, &r.meta.name));
        let mut members: Vec<Member> = keys
            .filter_map(|key| {
                let app = self.known(&key)?;
                let hydrator = app.spec.source_hydrator.as_deref()?.clone();
                Some(Member { key, app, hydrator })
            })
            .filter(|member| GroupKey::of(&member.hydrator) == *key)
            .collect();
        members.sort_by_key(Member::name);
        members
    }

    async fn begin(&self, members: &[Member]) {
        let now: Time = self.now().into();
        let begin = move |member: &Member, change: &mut Change| {
            change.answers = false;
            let current = change.status.current_operation.as_deref();
            if current.is_some_and(|operation| operation.phase == HYDRATING) {
                return;
            }
            change.status.current_operation = Some(Box::new(HydrateOperation {
                started_at: Some(now),
                phase: HYDRATING.to_owned(),
                source_hydrator: member.hydrator.clone(),
                ..HydrateOperation::default()
            }));
        };
        let mut writes: Vec<BoxFuture<'_, bool>> = Vec::with_capacity(members.len());
        for member in members {
            let change = move |change: &mut Change| begin(member, change);
            writes.push(Box::pin(self.write(&member.key, Seen::default(), change)));
        }
        at_once(writes).await;
    }

    async fn end(&self, members: &[Member], seen: &[Seen], outcome: &Outcome) -> Vec<bool> {
        let now: Time = self.now().into();
        let end = move |member: &Member, change: &mut Change| {
            let status = &mut change.status;
            let mut operation = status.current_operation.take().unwrap_or_default();
            operation.source_hydrator = member.hydrator.clone();
            operation.finished_at = Some(now);
            operation.message.clear();
            if !outcome.dry_sha.is_empty() {
                operation.dry_sha.clone_from(&outcome.dry_sha);
                status
                    .last_compared_dry_revision
                    .clone_from(&outcome.dry_sha);
            }
            match &outcome.hydrated {
                Ok(sha) => {
                    HYDRATED.clone_into(&mut operation.phase);
                    operation.hydrated_sha.clone_from(sha);
                    let done = SuccessfulHydrateOperation {
                        dry_sha: outcome.dry_sha.clone(),
                        hydrated_sha: sha.clone(),
                        source_hydrator: member.hydrator.clone(),
                    };
                    status.last_successful_operation = Some(Box::new(done));
                    change.refreshes = true;
                }
                Err(faults) => {
                    FAILED.clone_into(&mut operation.phase);
                    let fault = faults.get(&member.name()).cloned();
                    let fault = fault.unwrap_or_else(|| of_others(faults));
                    let message = format!("Failed to hydrate: {fault}");
                    operation.message = without_passwords(&message);
                }
            }
            change.status.current_operation = Some(operation);
        };
        let mut writes: Vec<BoxFuture<'_, bool>> = Vec::with_capacity(members.len());
        for (member, seen) in members.iter().zip(seen) {
            let change = move |change: &mut Change| end(member, change);
            writes.push(Box::pin(self.write(&member.key, seen.clone(), change)));
        }
        at_once(writes).await
    }

    async fn outcome(&self, members: &[Member], request: Request) -> Outcome {
        let found = faults(members, |app| self.project(app));
        if !found.is_empty() {
            return Outcome {
                dry_sha: String::new(),
                hydrated: Err(found),
            };
        }
        let Some(first) = members.first() else {
            return Outcome::failed("", members, "there is no application");
        };
        let asked = self.request(&first.key, &first.app, &first.hydrator);
        let dry_sha = match self.resolve(&asked, true).boxed().await {
            Ok(sha) => sha,
            Err(e) => {
                let fault = format!("failed to get manifests: {e}");
                return Outcome::failed("", members, &fault);
            }
        };
        let mut renders: Vec<BoxFuture<'_, Result<PathDetails, String>>> = Vec::new();
        for member in members {
            renders.push(Box::pin(self.folder(member, &dry_sha, request)));
        }
        let mut paths = Vec::new();
        let mut faults = Faults::new();
        for (member, rendered) in members.iter().zip(join_all(renders).await) {
            match rendered {
                Ok(details) => paths.push(details),
                Err(fault) => {
                    let fault = format!("failed to get manifests: {fault}");
                    faults.insert(member.name(), fault);
                }
            }
        }
        if !faults.is_empty() {
            return Outcome {
                dry_sha,
                hydrated: Err(faults),
            };
        }
        match self.commit(members, &asked, &dry_sha, paths).boxed().await {
            Ok(sha) => Outcome {
                dry_sha,
                hydrated: Ok(sha),
            },
            Err(fault) => Outcome::failed(&dry_sha, members, &fault),
        }
    }

    fn project(&self, app: &Application) -> Result<Arc<AppProject>, String> {
        let name = spec::project_name(app);
        let project = self.records.project(name);
        let namespace = &self.records.namespace;
        match spec::project_condition(app, project.as_deref(), namespace) {
            Some(condition) => Err(condition.message),
            None => project.ok_or_else(|| format!("appproject.argoproj.io {name:?} not found")),
        }
    }

    /// What a member's folder gets. A file that cannot be rendered is an error: it must not be
    /// pruned.
    async fn folder(
        &self,
        member: &Member,
        dry_sha: &str,
        request: Request,
    ) -> Result<PathDetails, String> {
        let failed = |e: String| {
            format!(
                "failed to get repo objects for app {:?}: failed to get repo objects: failed to generate manifest for source 1 of 1: {e}",
                member.name()
            )
        };
        let mut asked = self.request(&member.key, &member.app, &member.hydrator);
        let named = std::mem::replace(&mut asked.revision, dry_sha.to_owned());
        Arc::make_mut(&mut asked.app).no_cache = request.is_hard;
        let rendered = self.sources.manifests(&asked, None).await;
        let rendered = rendered.map_err(|e| failed(e.to_string()))?;
        if !rendered.errors.is_empty() {
            let errors: Vec<String> = rendered.errors.iter().map(ToString::to_string).collect();
            return Err(failed(errors.join("; ")));
        }
        self.insist_on_signature(member, (&asked, &named), &rendered)
            .await?;
        let manifests = rendered.objects.iter().map(|object| {
            let mut object = object.object().0.clone();
            if self.sources.is_remote() {
                self.untrack(&mut object, &asked);
            }
            HydratedManifestDetails {
                manifest_json: Value::Object(object).to_string(),
            }
        });
        Ok(PathDetails {
            path: member.hydrator.sync_source.path.clone(),
            manifests: manifests.collect(),
            commands: Vec::new(),
        })
    }

    async fn insist_on_signature(
        &self,
        member: &Member,
        (asked, named): (&SourceRequest, &str),
        rendered: &Manifests,
    ) -> Result<(), String> {
        let failed = |e: String| {
            format!(
                "source integrity verification failed for app {:?} dry revision {:?}: {e}",
                member.name(),
                rendered.revision
            )
        };
        let found = self.sources.integrity(asked, named, rendered).await;
        let found = found.map_err(|e| failed(e.to_string()))?;
        match found.and_then(|found| integrity::fault(&found, None)) {
            Some(fault) => Err(failed(fault)),
            None => Ok(()),
        }
    }

    /// Removes what a repo-server adds to say whose an object is: the sync adds it again.
    fn untrack(&self, object: &mut serde_json::Map<String, Value>, asked: &SourceRequest) {
        let tracking = self.records.settings().tracking(&asked.app.instance);
        let mut remove = |part: &str, name: &str| {
            let metadata = object.get_mut("metadata");
            let part = metadata.and_then(|metadata| metadata.get_mut(part));
            if let Some(Value::Object(part)) = part {
                part.remove(name);
            }
        };
        if tracking.method != TrackingMethod::Annotation {
            remove("labels", &tracking.label_key);
        }
        remove("annotations", TRACKING_ID);
    }

    async fn commit(
        &self,
        members: &[Member],
        asked: &SourceRequest,
        dry_sha: &str,
        paths: Vec<PathDetails>,
    ) -> Result<String, String> {
        let metadata = self
            .sources
            .metadata(&asked.repository, dry_sha)
            .boxed()
            .await;
        let metadata = metadata
            .map_err(|e| format!("failed to get revision metadata for {dry_sha:?}: {e}"))?;
        let project = only_project(members);
        let Some(first) = members.first() else {
            return Err("there is no application".to_owned());
        };
        let (to, settings) = (first.to(), self.records.settings());
        let dry = (asked.source.repo_url.as_str(), dry_sha);
        let message = commit_message(templates::message(&settings), dry, Some(&metadata))
            .map_err(|e| format!("failed to get hydrator commit templated message: {e}"))?;
        let request = CommitHydratedManifestsRequest {
            repo: Some(self.sources.write_repository(&to.repo_url, &project)),
            sync_branch: first.hydrator.sync_source.target_branch.clone(),
            target_branch: to.target_revision,
            dry_sha: dry_sha.to_owned(),
            commit_message: message,
            paths,
            dry_commit_metadata: Some(metadata),
            author_name: settings.get("commit.author.name").to_owned(),
            author_email: settings.get("commit.author.email").to_owned(),
            readme_message: templates::readme(&settings).to_owned(),
        };
        let now = self.now().as_second();
        let commit = self.sources.commit_hydrated(request, &project, now).boxed();
        commit
            .await
            .map_err(|e| format!("failed to commit hydrated manifests: {e}"))
    }
}

//! Get, sync windows, links and revisions, and what a query selects.

use super::{named::found, validate, with_health};
use crate::{
    ApiError, Code,
    access::{Authorized, Get, Guard, find, look_up},
    index::version,
    services::links,
    state::State,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{borrow::Cow, sync::Arc};
use tiphys_api::{
    Application,
    constants::{HYDRATE, HYDRATE_TIMESTAMP, REFRESH, REFRESH_TIMESTAMP},
    project::SyncWindow,
    repository::{ChartDetails, OCIMetadata, RevisionMetadata},
    rpc::application::{
        ApplicationQuery, ApplicationSyncWindow, ApplicationSyncWindowsQuery,
        ApplicationSyncWindowsResponse, LinksResponse, ListAppLinksRequest, RevisionMetadataQuery,
    },
    source::ApplicationSource,
};
use tiphys_apimachinery::selector::{LabelOperator, LabelSelector};
use tiphys_engine::{spec, sync::window::Windows};

/// Selects the Applications of a query, by the older `project` or else by `projects`.
pub(super) struct Filter {
    selector: LabelSelector,
    name: String,
    namespace: String,
    projects: Vec<String>,
    pub(super) repo: String,
}

impl Filter {
    /// `doing` is what a selector that cannot be read is an error of.
    pub(super) fn new(q: &ApplicationQuery, doing: &str) -> Result<Self, ApiError> {
        let selector = LabelSelector::parse(q.selector.as_deref().unwrap_or_default())
            .map_err(|e| ApiError::plain(format!("{doing}: {}", e.reason)))?;
        Ok(Self {
            selector,
            name: q.name.clone().unwrap_or_default(),
            namespace: q.app_namespace.clone().unwrap_or_default(),
            projects: projects(q),
            repo: q.repo.clone().unwrap_or_default(),
        })
    }

    pub(super) fn matches(&self, app: &Application) -> bool {
        let m = &app.metadata;
        (self.name.is_empty() || m.name == self.name)
            && (self.namespace.is_empty() || m.namespace == self.namespace)
            && (self.projects.is_empty()
                || self.projects.iter().any(|p| p == spec::project_name(app)))
            && (self.repo.is_empty()
                || spec::sources(&app.spec)
                    .iter()
                    .any(|s| s.repo_url == self.repo))
            && self.selector.matches(&m.labels)
    }

    /// Labels that all have that are selected.
    pub(super) fn labels(&self) -> Vec<(&str, &str)> {
        let mut labels = Vec::new();
        for requirement in &self.selector.requirements {
            let is_value = matches!(
                requirement.operator,
                LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::In
            );
            if let [value] = requirement.values.as_slice()
                && is_value
            {
                labels.push((requirement.key.as_str(), value.as_str()));
            }
        }
        labels
    }
}

fn projects(q: &ApplicationQuery) -> Vec<String> {
    if q.project.is_empty() {
        q.projects.clone()
    } else {
        q.project.clone()
    }
}

pub async fn get(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationQuery,
) -> Result<Application, ApiError> {
    let projects = projects(&q);
    if projects.len() > 1 {
        return Err(ApiError::invalid(
            "multiple projects specified - the get endpoint accepts either zero or one project",
        ));
    }
    let (namespace, name) = (
        q.app_namespace.as_deref(),
        q.name.as_deref().unwrap_or_default(),
    );
    let project = projects.first().map(String::as_str);
    let Some(kind) = q.refresh.as_deref() else {
        let (app, _) = look_up(&state.reach, &guard, namespace, name, project).await?;
        return Ok(with_health(&state, app).await);
    };
    let (app, _) = find::<Get>(&state.reach, &guard, namespace, name, project).await?;
    let kind = if kind == "hard" { "hard" } else { "normal" };
    let refreshed = refresh(&state, &app, kind).await?;
    Ok(with_health(&state, refreshed).await)
}

/// The patch that requests a comparison, and of a hydrator to look at what it renders. The
/// timestamps distinguish one request from the next for Argo CD.
pub(crate) fn refresh_request(kind: &str) -> Value {
    let now = Timestamp::now().to_string();
    json!({"metadata": {"annotations": {
        REFRESH: kind,
        REFRESH_TIMESTAMP: now,
        HYDRATE: kind,
        HYDRATE_TIMESTAMP: now,
    }}})
}

/// Requests a comparison and waits until it is done: the controller then removes the annotation.
pub(super) async fn refresh<A>(
    state: &State,
    app: &Authorized<Application, A>,
    kind: &str,
) -> Result<Authorized<Application, A>, ApiError> {
    let mut changes = state.reach.changes_of(app);
    let asked = state
        .reach
        .request_refresh(app, &refresh_request(kind))
        .await
        .map_err(|e| ApiError::from(e).context("error refreshing the app"))?;
    let done = |app: &Application| {
        version(app) > version(&asked) && !app.metadata.annotations.contains_key(REFRESH)
    };
    let wait = async {
        while let Some(app) = changes.next().await {
            if done(&app) {
                return Ok(app.owned());
            }
        }
        Err(ApiError::new(
            Code::Unavailable,
            "the server is shutting down",
        ))
    };
    let late = |_| {
        ApiError::new(
            Code::DeadlineExceeded,
            "application refresh deadline exceeded",
        )
    };
    tokio::time::timeout(state.options.refresh_timeout, wait)
        .await
        .map_err(late)?
}

/// The project's sync windows that apply to the Application, those that are active, and whether a
/// user may sync now.
pub async fn windows(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationSyncWindowsQuery,
) -> Result<ApplicationSyncWindowsResponse, ApiError> {
    let (app, project) = found::<Get>(&state, &guard, &q).await?;
    let (windows, now) = (
        Windows::of(&project.spec.sync_windows, &app),
        Timestamp::now(),
    );
    let shown = |list: &[&SyncWindow]| -> Vec<ApplicationSyncWindow> {
        let window = |w: &&SyncWindow| ApplicationSyncWindow {
            kind: w.kind.clone(),
            schedule: w.schedule.clone(),
            duration: w.duration.clone(),
            manual_sync: w.manual_sync,
        };
        list.iter().map(window).collect()
    };
    // A window that cannot be parsed blocks the sync, but hides neither the other windows nor the
    // Application.
    let can_sync = windows.can_sync(true, None, now).unwrap_or(false);
    let active = windows.readable(now);
    Ok(ApplicationSyncWindowsResponse {
        active_windows: shown(&active),
        assigned_windows: shown(&windows.0),
        can_sync,
    })
}

pub async fn links(
    state: Arc<State>,
    guard: Guard,
    q: ListAppLinksRequest,
) -> Result<LinksResponse, ApiError> {
    let (app, project) = found::<Get>(&state, &guard, &q).await?;
    let cluster = state.reach.live(&app).destination().ok();
    let known = links::known(Some(&app), Some(&project), cluster, None);
    links::of(
        state.settings.fresh().await?.as_ref(),
        "application.links",
        known,
    )
    .await
}

pub async fn revision_metadata(
    state: Arc<State>,
    guard: Guard,
    q: RevisionMetadataQuery,
) -> Result<RevisionMetadata, ApiError> {
    let (app, project) = found::<Get>(&state, &guard, &q).await?;
    let source = source_of(&app, q.source_index, q.version_id)
        .map_err(|e| e.context("error getting app source by source index and version ID"))?;
    validate::permitted(&project, &source.repo_url)?;
    if !is_commit(&q.revision) {
        let revision = &q.revision;
        return Err(ApiError::plain(format!(
            "revision {revision} must be resolved"
        )));
    }
    let repository = state.reach.repository_of(&app, &source.repo_url).await?;
    let sources = state.reach.sources(&repository);
    let metadata = sources.metadata(&q.revision, &project).await;
    metadata.map_err(|e| ApiError::plain(e.message))
}

/// Whether it is a SHA, or the beginning of one.
fn is_commit(revision: &str) -> bool {
    revision.len() >= 7 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

pub async fn chart_details(
    state: Arc<State>,
    guard: Guard,
    q: RevisionMetadataQuery,
) -> Result<ChartDetails, ApiError> {
    let (app, project) = found::<Get>(&state, &guard, &q).await?;
    let source = source_of(&app, q.source_index, q.version_id)
        .map_err(|e| e.context("error getting app source by source index and version ID"))?;
    if source.chart.is_empty() {
        return Err(ApiError::plain(format!(
            "no chart found for application: {}",
            q.name
        )));
    }
    validate::permitted(&project, &source.repo_url)?;
    let repository = state.reach.repository_of(&app, &source.repo_url).await?;
    let sources = state.reach.sources(&repository);
    sources.chart_details(&source, &q.revision).await
}

pub async fn oci_metadata(
    state: Arc<State>,
    guard: Guard,
    q: RevisionMetadataQuery,
) -> Result<OCIMetadata, ApiError> {
    let (app, project) = found::<Get>(&state, &guard, &q).await?;
    let source = source_of(&app, q.source_index, q.version_id)
        .map_err(|e| e.context("error getting app source by source index and version ID"))?;
    if !source.repo_url.starts_with("oci://") {
        return Err(ApiError::invalid(format!(
            "no OCI source found for application: {}",
            q.name
        )));
    }
    validate::permitted(&project, &source.repo_url)?;
    let repository = state.reach.repository_of(&app, &source.repo_url).await?;
    let sources = state.reach.sources(&repository);
    sources.oci_metadata(&q.revision).await
}

/// The source selected by an index and a version in the history.
fn source_of(
    app: &Application,
    index: Option<i32>,
    id: Option<i32>,
) -> Result<ApplicationSource, ApiError> {
    let sources: Vec<Cow<'_, ApplicationSource>> = match id {
        None => spec::sources(&app.spec),
        Some(id) => {
            let known = app.status.history.iter().find(|h| h.id == i64::from(id));
            let known = known.ok_or_else(|| {
                ApiError::plain(format!(
                    "error getting source by version ID: revision history not found for version \
                     ID {id}"
                ))
            })?;
            if known.sources.is_empty() {
                vec![Cow::Borrowed(&known.source)]
            } else {
                known.sources.iter().map(Cow::Borrowed).collect()
            }
        }
    };
    let at = usize::try_from(index.unwrap_or(0)).unwrap_or(usize::MAX);
    let absent = || match sources.len() {
        1 => ApiError::plain(format!(
            "source index {at} not found because there is only 1 source"
        )),
        n => ApiError::plain(format!(
            "source index {at} not found because there are only {n} sources"
        )),
    };
    sources
        .get(at)
        .map(|s| s.clone().into_owned())
        .ok_or_else(absent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_that_all_selected_must_have() {
        let expected: [(&str, &[(&str, &str)]); 4] = [
            ("", &[]),
            ("a=1,b==2", &[("a", "1"), ("b", "2")]),
            ("a in (1),b in (2,3)", &[("a", "1")]),
            ("a!=1,b notin (2),c,!d,e>5,f<6", &[]),
        ];
        for (selector, labels) in expected {
            let query = ApplicationQuery {
                selector: Some(selector.to_owned()),
                ..ApplicationQuery::default()
            };
            let filter = Filter::new(&query, "").expect("a selector");
            assert_eq!(filter.labels(), labels, "{selector}");
        }
    }
}

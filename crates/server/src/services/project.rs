//! project.ProjectService.

use super::{application::audit, different, repository};
use crate::{
    ApiError, Code,
    access::{Action, Authorized, Delete, Get, Guard, Resource, Update, find_project as find},
    auth::Caller,
    ports::{EventRecord, StoreError},
    state::State,
};
use jiff::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tiphys_api::{
    AppProject, Application,
    project::AppProjectList,
    rpc::{
        events::EventList,
        project::{
            DetailedProjectsResponse, EmptyResponse, GlobalProjectsResponse,
            ListProjectLinksRequest, ProjectCreateRequest, ProjectQuery, ProjectUpdateRequest,
            SyncWindowsQuery, SyncWindowsResponse,
        },
    },
};
use tiphys_engine::{
    permit, spec,
    sync::window::{self, Windows},
};
use tiphys_gocompat::{cron, glob::Glob};

pub const DEFAULT: &str = "default";
/// A service account name must not contain pattern characters.
const NOT_IN_A_SERVICE_ACCOUNT: [char; 8] = ['!', '*', '[', ']', '{', '}', '\\', '/'];

pub async fn list(
    state: Arc<State>,
    guard: Guard,
    _: ProjectQuery,
) -> Result<AppProjectList, ApiError> {
    let (seen, version) = state.reach.projects(&guard).await?;
    let mut items: Vec<AppProject> = seen.into_iter().map(Authorized::into_inner).collect();
    items.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let mut list = AppProjectList {
        items,
        ..Default::default()
    };
    list.metadata.resource_version = version;
    Ok(list)
}

pub async fn get(state: Arc<State>, guard: Guard, q: ProjectQuery) -> Result<AppProject, ApiError> {
    let mut project = find::<Get>(&state.reach, &guard, &q.name)
        .await?
        .into_inner();
    // Clients look for the tokens of a role in the spec, where they once were stored.
    tiphys_rbac::normalize_tokens(&mut project);
    Ok(project)
}

pub async fn detailed(
    state: Arc<State>,
    guard: Guard,
    q: ProjectQuery,
) -> Result<DetailedProjectsResponse, ApiError> {
    let found = find::<Get>(&state.reach, &guard, &q.name).await;
    let project = found.map_err(|e| match e.code {
        Code::NotFound => ApiError::not_found(format!(
            "error getting app project {:?}: appproject.argoproj.io {:?} not found",
            q.name, q.name
        )),
        _ => e,
    })?;
    let repositories = state.reach.repositories_of(&project).await?;
    Ok(DetailedProjectsResponse {
        global_projects: state.reach.global_projects(&project),
        repositories: repositories
            .into_iter()
            .map(repository::sanitized)
            .collect(),
        clusters: state.reach.clusters_of(&project).await?,
        project: Some(project.into_inner()),
    })
}

/// The global projects that also apply to this one.
pub async fn globals(
    state: Arc<State>,
    guard: Guard,
    q: ProjectQuery,
) -> Result<GlobalProjectsResponse, ApiError> {
    let project = find::<Get>(&state.reach, &guard, &q.name).await?;
    Ok(GlobalProjectsResponse {
        items: state.reach.global_projects(&project),
    })
}

/// The sync windows that are active now.
pub async fn windows(
    state: Arc<State>,
    guard: Guard,
    q: SyncWindowsQuery,
) -> Result<SyncWindowsResponse, ApiError> {
    let project = find::<Get>(&state.reach, &guard, &q.name).await?;
    let project = state.reach.effective_project(project.into_inner());
    let open = Windows(project.spec.sync_windows.iter().collect()).readable(Timestamp::now());
    Ok(SyncWindowsResponse {
        windows: open.into_iter().cloned().collect(),
    })
}

pub async fn links(
    state: Arc<State>,
    guard: Guard,
    q: ListProjectLinksRequest,
) -> Result<tiphys_api::rpc::application::LinksResponse, ApiError> {
    let project = find::<Get>(&state.reach, &guard, &q.name).await?;
    let known = super::links::known(None, Some(&project), None, None);
    super::links::of(
        state.settings.fresh().await?.as_ref(),
        "project.links",
        known,
    )
    .await
}

pub async fn events(
    state: Arc<State>,
    guard: Guard,
    q: ProjectQuery,
) -> Result<EventList, ApiError> {
    let project = find::<Get>(&state.reach, &guard, &q.name).await?;
    let m = &project.metadata;
    let selector = format!(
        "involvedObject.name={},involvedObject.namespace={},involvedObject.uid={}",
        m.name, m.namespace, m.uid
    );
    Ok(state.reach.events_of_project(&project, &selector).await?)
}

pub async fn create(
    state: Arc<State>,
    guard: Guard,
    q: ProjectCreateRequest,
) -> Result<AppProject, ApiError> {
    let mut project = q
        .project
        .ok_or_else(|| ApiError::invalid("missing payload 'project' in request"))?;
    name_zones(&mut project);
    let project = guard.create(project)?;
    validate(&project).map_err(|e| e.context("error validating project"))?;
    in_our_namespace(&state, &project)?;
    if project.metadata.name.is_empty() {
        let why = "AppProject.argoproj.io \"\" is invalid: metadata.name: Required value: \
                   name or generateName is required";
        return Err(ApiError::invalid(why));
    }
    let created = match state.reach.create_project(&project).await {
        Err(StoreError::AlreadyExists(_)) => {
            let existing = state.reach.existing_project(&project).await?;
            if existing.spec == project.spec {
                return Ok(existing);
            }
            if !q.upsert {
                return Err(different("project", &existing.spec, &project.spec));
            }
            let mut updated = AppProject {
                spec: project.into_inner().spec,
                ..existing
            };
            tiphys_rbac::normalize_tokens(&mut updated);
            let updated = guard.update_project(updated)?;
            state.reach.update_project(&updated).await?
        }
        other => other?,
    };
    record(
        &state,
        guard.caller(),
        &created,
        "ResourceCreated",
        "created project",
    )
    .await;
    Ok(created)
}

pub async fn update(
    state: Arc<State>,
    guard: Guard,
    q: ProjectUpdateRequest,
) -> Result<AppProject, ApiError> {
    let mut project = q
        .project
        .ok_or_else(|| ApiError::invalid("missing payload 'project' in request"))?;
    tiphys_rbac::normalize_tokens(&mut project);
    name_zones(&mut project);
    let project = guard.update_project(project)?;
    validate(&project)?;
    if project.metadata.name.is_empty() {
        return Err(ApiError::invalid("metadata.name: a project needs a name"));
    }
    in_our_namespace(&state, &project)?;
    let before = state.reach.existing_project(&project).await?;
    ask_for_changes(&guard, &before, &project)?;
    still_permitted(&state, &before, &project).await?;
    let updated = state.reach.update_project(&project).await?;
    record(
        &state,
        guard.caller(),
        &updated,
        "ResourceUpdated",
        "updated project",
    )
    .await;
    Ok(updated)
}

pub async fn delete(
    state: Arc<State>,
    guard: Guard,
    q: ProjectQuery,
) -> Result<EmptyResponse, ApiError> {
    if q.name == DEFAULT {
        return Err(ApiError::invalid(format!(
            "name '{}' is reserved and cannot be deleted",
            q.name
        )));
    }
    let project = find::<Delete>(&state.reach, &guard, &q.name).await?;
    // Those of other namespaces do not count, as in Argo CD.
    let is_ours = |app: &Application| app.metadata.namespace == state.options.namespace;
    let users = state
        .reach
        .count_apps(|app| is_ours(app) && spec::project_name(app) == q.name);
    if users > 0 {
        return Err(ApiError::invalid(format!(
            "project is referenced by {users} applications"
        )));
    }
    state.reach.delete_project(&project).await?;
    record(
        &state,
        guard.caller(),
        &project,
        "ResourceDeleted",
        "deleted project",
    )
    .await;
    Ok(EmptyResponse {})
}

/// Projects are in the namespace of the control plane.
fn in_our_namespace(state: &State, project: &AppProject) -> Result<(), ApiError> {
    let namespace = project.metadata.namespace.as_str();
    if namespace.is_empty() || namespace == state.options.namespace {
        return Ok(());
    }
    Err(ApiError::precondition(
        "the namespace of the provided object does not match the namespace sent on the request",
    ))
}

/// A window without a time zone, or with one that nobody knows, is in UTC.
fn name_zones(project: &mut AppProject) {
    for window in &mut project.spec.sync_windows {
        if window.time_zone.is_empty() || cron::time_zone(&window.time_zone).is_none() {
            "UTC".clone_into(&mut window.time_zone);
        }
    }
}

/// A caller who changes a project's destinations must be allowed to update those clusters; likewise
/// for repositories. A change of the permitted kinds affects every destination.
fn ask_for_changes(guard: &Guard, before: &AppProject, after: &AppProject) -> Result<(), ApiError> {
    let (old, new) = (&before.spec, &after.spec);
    let servers = |project: &AppProject| -> BTreeSet<String> {
        let destinations = project.spec.destinations.iter();
        destinations.map(|d| d.server.clone()).collect()
    };
    let (had, has) = (servers(before), servers(after));
    // What is new first: that is what a refusal names.
    for server in has.difference(&had).chain(had.difference(&has)) {
        guard.ask(Resource::Clusters, Action::Update, "", server)?;
    }
    let repos = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
    let (had_repos, has_repos) = (repos(&old.source_repos), repos(&new.source_repos));
    let new_repos = has_repos.difference(&had_repos);
    for url in new_repos.chain(had_repos.difference(&has_repos)) {
        guard.ask(Resource::Repositories, Action::Update, "", url)?;
    }
    let same_kinds = old.cluster_resource_whitelist == new.cluster_resource_whitelist
        && old.cluster_resource_blacklist == new.cluster_resource_blacklist
        && old.namespace_resource_whitelist == new.namespace_resource_whitelist
        && old.namespace_resource_blacklist == new.namespace_resource_blacklist;
    if !same_kinds {
        for server in &has {
            guard.ask(Resource::Clusters, Action::Update, "", server)?;
        }
    }
    Ok(())
}

/// Checks that everything the project's Applications use stays permitted.
async fn still_permitted(
    state: &State,
    before: &AppProject,
    after: &Authorized<AppProject, Update>,
) -> Result<(), ApiError> {
    let clusters = state.reach.destinations(after).await?;
    let all = |project: &AppProject| state.reach.effective_project(project.clone());
    let (before, after) = (all(before), all(after));
    let (old, new) = (spec::project_rules(&before), spec::project_rules(&after));
    let uses_it = |app: &Application| spec::project_name(app) == after.metadata.name;
    let lost_source =
        |url: &str| spec::source_permitted(&before, url) && !spec::source_permitted(&after, url);
    let sources = state.reach.count_apps(|app| {
        let mut sources = spec::sources(&app.spec).into_iter();
        uses_it(app) && sources.any(|s| lost_source(&s.repo_url))
    });
    let lost_destination = |app: &Application| {
        let d = &app.spec.destination;
        // A destination without a known cluster was not permitted before either.
        let Ok(cluster) = spec::destination(d, &clusters) else {
            return false;
        };
        let permitted =
            |rules| permit::destination(rules, &cluster.server, &cluster.name, &d.namespace);
        permitted(&old) && !permitted(&new)
    };
    let destinations = state
        .reach
        .count_apps(|app| uses_it(app) && lost_destination(app));
    let mut parts = Vec::new();
    if sources > 0 {
        parts.push(format!("{sources} applications source became invalid"));
    }
    if destinations > 0 {
        parts.push(format!(
            "{destinations} applications destination became invalid"
        ));
    }
    if parts.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid(format!(
            "as a result of project update {}",
            parts.join(" and ")
        )))
    }
}

fn validate(project: &AppProject) -> Result<(), ApiError> {
    if let Some((twice, message)) = tiphys_rbac::role_fault(project) {
        let code = if twice {
            Code::AlreadyExists
        } else {
            Code::InvalidArgument
        };
        return Err(ApiError::new(code, message));
    }
    let mut seen = BTreeSet::new();
    for d in &project.spec.destinations {
        for (field, value) in [
            ("name", &d.name),
            ("server", &d.server),
            ("namespace", &d.namespace),
        ] {
            if value == "!*" {
                return Err(ApiError::invalid(format!(
                    "{field} has an invalid format, '!*'"
                )));
            }
        }
        let place = if d.server.is_empty() {
            &d.name
        } else {
            &d.server
        };
        let key = format!("{place}/{}", d.namespace);
        if seen.contains(&key) {
            return Err(ApiError::invalid(format!(
                "destination '{key}' already added"
            )));
        }
        seen.insert(key);
    }
    let mut seen = BTreeSet::new();
    for account in &project.spec.destination_service_accounts {
        for (field, value) in [
            ("server", &account.server),
            ("namespace", &account.namespace),
        ] {
            if value.contains('!') || Glob::new(value, &[]).is_err() {
                return Err(ApiError::invalid(format!(
                    "{field} has an invalid format, '{value}'"
                )));
            }
        }
        let name = &account.default_service_account;
        if name.trim_matches(' ').is_empty() || name.contains(NOT_IN_A_SERVICE_ACCOUNT) {
            return Err(ApiError::invalid(format!(
                "defaultServiceAccount has an invalid format, '{name}'"
            )));
        }
        let key = format!("{}/{}", account.server, account.namespace);
        if !seen.insert(key.clone()) {
            return Err(ApiError::invalid(format!(
                "destinationServiceAccount '{key}' already added"
            )));
        }
    }
    let duplicate = |list: &[String], what: &str| {
        let mut seen = BTreeSet::new();
        match list.iter().find(|item| !seen.insert(item.as_str())) {
            Some(item) => Err(ApiError::invalid(format!("{what} '{item}' already added"))),
            None => Ok(()),
        }
    };
    duplicate(&project.spec.source_namespaces, "source namespace")?;
    if project.spec.source_repos.iter().any(|r| r == "!*") {
        return Err(ApiError::invalid(
            "source repository has an invalid format, '!*'",
        ));
    }
    duplicate(&project.spec.source_repos, "source repository")?;
    for (at, w) in project.spec.sync_windows.iter().enumerate() {
        window::check(w).map_err(|e| ApiError::plain(e.to_string()))?;
        let (kind, schedule, duration) = (&w.kind, &w.schedule, &w.duration);
        if w.applications.is_empty() && w.namespaces.is_empty() && w.clusters.is_empty() {
            let text = format!(
                "window '{kind}':'{schedule}':'{duration}' requires one of application, cluster or namespace"
            );
            return Err(ApiError::new(Code::OutOfRange, text));
        }
        if project.spec.sync_windows[..at].contains(w) {
            let text = format!(
                "sync window with kind '{kind}', schedule '{schedule}', and duration '{duration}' already exists"
            );
            return Err(ApiError::new(Code::AlreadyExists, text));
        }
    }
    Ok(())
}

pub(super) async fn record(
    state: &State,
    caller: &Caller,
    project: &AppProject,
    reason: &'static str,
    action: &str,
) {
    let m = &project.metadata;
    let user = audit::user(caller);
    let event = EventRecord {
        api_kind: "AppProject",
        name: m.name.clone(),
        namespace: m.namespace.clone(),
        uid: m.uid.clone(),
        resource_version: m.resource_version.clone(),
        reason,
        message: format!("{user} {action}"),
        annotations: BTreeMap::new(),
    };
    audit::record(state, event).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn project(spec: serde_json::Value) -> AppProject {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).expect("a project")
    }

    #[test]
    fn windows_are_in_a_known_zone() {
        let window = |zone: &str| json!({"kind": "deny", "timeZone": zone});
        let zones = ["", "Mars/Base", "Europe/Berlin"].map(window);
        let mut p = project(json!({"syncWindows": zones}));
        name_zones(&mut p);
        let zones: Vec<&str> = p
            .spec
            .sync_windows
            .iter()
            .map(|w| w.time_zone.as_str())
            .collect();
        assert_eq!(zones, ["UTC", "UTC", "Europe/Berlin"]);
    }

    #[test]
    fn tokens_are_listed_in_the_spec_too() {
        let token = |id: &str, iat: i64| json!({"id": id, "iat": iat});
        let mut p = project(json!({"roles": [
            {"name": "dev", "jwtTokens": [token("old", 1)]}, {"name": "none"}]}));
        p.status.jwt_tokens_by_role =
            serde_json::from_value(json!({"dev": {"items": [token("old", 1), token("new", 2)]}}))
                .expect("tokens");
        tiphys_rbac::normalize_tokens(&mut p);
        let ids = |role: usize| -> Vec<&str> {
            let tokens = p.spec.roles[role].jwt_tokens.iter();
            tokens.map(|t| t.id.as_str()).collect()
        };
        assert_eq!((ids(0), ids(1)), (vec!["new", "old"], Vec::new()));
    }

    #[test]
    fn bad_projects_are_refused_with_the_field() {
        for (spec, want) in [
            (
                json!({"destinations": [{"server": "s", "namespace": "n"}, {"server": "s", "namespace": "n"}]}),
                "destination 's/n' already added",
            ),
            (
                json!({"destinations": [{"server": "!*", "namespace": "n"}]}),
                "server has an invalid format, '!*'",
            ),
            (
                json!({"destinationServiceAccounts": [{"server": "s", "namespace": "n", "defaultServiceAccount": "a"},
                    {"server": "s", "namespace": "n", "defaultServiceAccount": "b"}]}),
                "destinationServiceAccount 's/n' already added",
            ),
            (
                json!({"destinationServiceAccounts": [{"server": "!abc", "namespace": "n", "defaultServiceAccount": "a"}]}),
                "server has an invalid format, '!abc'",
            ),
            (
                json!({"destinationServiceAccounts": [{"server": "s", "namespace": "a!", "defaultServiceAccount": "a"}]}),
                "namespace has an invalid format, 'a!'",
            ),
            (
                json!({"destinationServiceAccounts": [{"server": "[[ech*", "namespace": "n", "defaultServiceAccount": "a"}]}),
                "server has an invalid format, '[[ech*'",
            ),
            (
                json!({"destinationServiceAccounts": [{"server": "s", "namespace": "[[ech*", "defaultServiceAccount": "a"}]}),
                "namespace has an invalid format, '[[ech*'",
            ),
            (
                json!({"destinationServiceAccounts": [{"server": "s", "namespace": "n", "defaultServiceAccount": "  "}]}),
                "defaultServiceAccount has an invalid format, '  '",
            ),
            (
                json!({"destinationServiceAccounts": [{"server": "s", "namespace": "n", "defaultServiceAccount": "a\\b"}]}),
                "defaultServiceAccount has an invalid format, 'a\\b'",
            ),
            (
                json!({"sourceRepos": ["a", "a"]}),
                "source repository 'a' already added",
            ),
            (
                json!({"sourceNamespaces": ["x", "x"]}),
                "source namespace 'x' already added",
            ),
            (
                json!({"syncWindows": [{"kind": "deny", "schedule": "* * *", "duration": "1h"}]}),
                "cannot parse schedule '* * *': expected exactly 5 fields, found 3: [* * *]",
            ),
            (
                json!({"syncWindows": [{"kind": "deny", "schedule": "* * * * *", "duration": "1h"}]}),
                "window 'deny':'* * * * *':'1h' requires one of application, cluster or namespace",
            ),
        ] {
            let project: AppProject =
                serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec}))
                    .expect("a project");
            assert_eq!(validate(&project).expect_err("it is bad").message, want);
        }
    }
}

//! applicationset.ApplicationSetService.

use super::{application::audit, concealed};
use crate::{
    ApiError, Code,
    access::{Authorized, Create, Get, Guard, find_deleted_set, find_set, set_to_delete},
    auth::Caller,
    ports::{EventRecord, SetEvent, StoreError},
    state::State,
};
use futures::{StreamExt as _, stream::BoxStream};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tiphys_api::{
    ApplicationSet,
    application_set::{ApplicationSetList, ApplicationSetTree, ApplicationSetWatchEvent},
    constants,
    resource::{ResourceNode, ResourceRef},
    rpc::{
        application_set::{
            ApplicationSetCreateRequest, ApplicationSetDeleteRequest,
            ApplicationSetGenerateRequest, ApplicationSetGenerateResponse, ApplicationSetGetQuery,
            ApplicationSetListQuery, ApplicationSetResponse, ApplicationSetTreeQuery,
            ApplicationSetWatchQuery,
        },
        events::EventList,
    },
    status::ResourceStatus,
};
use tiphys_apimachinery::selector::LabelSelector;

const KIND: &str = "ApplicationSet";

pub async fn get(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationSetGetQuery,
) -> Result<ApplicationSet, ApiError> {
    let (namespace, name) = (&q.appset_namespace, &q.name);
    let set = match q.deleted {
        true => find_deleted_set::<Get>(&state.reach, &guard, namespace, name).await?,
        false => find_set::<Get>(&state.reach, &guard, namespace, name).await?,
    };
    Ok(set.into_inner())
}

/// What a list or a watch is restricted to.
struct Filter {
    selector: LabelSelector,
    projects: Vec<String>,
    namespace: String,
    name: String,
}

impl Filter {
    /// `doing` is what a selector that cannot be read is an error of.
    fn new(
        selector: &str,
        projects: Vec<String>,
        namespace: String,
        doing: &str,
    ) -> Result<Self, ApiError> {
        let selector = LabelSelector::parse(selector)
            .map_err(|e| ApiError::plain(format!("{doing}: {}", e.reason)))?;
        Ok(Self {
            selector,
            projects,
            namespace,
            name: String::new(),
        })
    }

    fn matches(&self, set: &ApplicationSet) -> bool {
        let (m, project) = (&set.metadata, &set.spec.template.spec.project);
        (self.projects.is_empty() || self.projects.contains(project))
            && (self.namespace.is_empty() || m.namespace == self.namespace)
            && (self.name.is_empty() || m.name == self.name)
            && self.selector.matches(&m.labels)
    }
}

pub async fn list(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationSetListQuery,
) -> Result<ApplicationSetList, ApiError> {
    let doing = "error parsing the selector";
    let filter = Filter::new(&q.selector, q.projects, q.appset_namespace, doing)?;
    let (seen, resource_version) = state.reach.sets(&guard);
    let mut items: Vec<ApplicationSet> = seen
        .into_iter()
        .filter(|set| filter.matches(set))
        .map(|set| set.owned().into_inner())
        .collect();
    items.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let mut list = ApplicationSetList {
        items,
        ..ApplicationSetList::default()
    };
    list.metadata.resource_version = resource_version;
    Ok(list)
}

pub async fn watch(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationSetWatchQuery,
) -> Result<BoxStream<'static, Result<ApplicationSetWatchEvent, ApiError>>, ApiError> {
    let doing = "error parsing labels with selectors";
    let mut filter = Filter::new(&q.selector, q.projects, q.app_set_namespace, doing)?;
    filter.name = q.name;
    let least: u64 = q.resource_version.parse().unwrap_or(0);
    let events = state.reach.set_events(&guard);
    let first = match filter.name.as_str() {
        "" => Vec::new(),
        _ => state.reach.sets(&guard).0,
    };
    let first = first.into_iter().map(|set| {
        let event = SetEvent {
            change: "ADDED",
            set: set.owned().into_inner().into(),
        };
        (event, set)
    });
    let first: Vec<_> = first.collect();
    let wanted = move |(event, set): (SetEvent, Authorized<Arc<ApplicationSet>, Get>)| {
        let version = set.metadata.resource_version.parse().unwrap_or(u64::MAX);
        let shown = (version >= least && filter.matches(&set)).then(|| {
            Ok(ApplicationSetWatchEvent {
                type_: event.change.to_owned(),
                application_set: set.owned().into_inner(),
            })
        });
        futures::future::ready(shown)
    };
    Ok(futures::stream::iter(first)
        .chain(events)
        .filter_map(wanted)
        .boxed())
}

/// Checks a set that is to be created or generated, and the permission for it.
async fn checked(
    state: &State,
    guard: &Guard,
    set: Option<ApplicationSet>,
) -> Result<Authorized<ApplicationSet, Create>, ApiError> {
    let mut set = set.ok_or_else(|| {
        ApiError::plain("error creating ApplicationSets: ApplicationSets is nil in request")
    })?;
    validate(&set).map_err(|e| e.context("error validating ApplicationSets"))?;
    let namespace = state.namespace_or_ours(&set.metadata.namespace).to_owned();
    if !state.reach.permits(&namespace) {
        return Err(ApiError::new(
            Code::PermissionDenied,
            format!("namespace '{namespace}' is not permitted"),
        ));
    }
    set.metadata.namespace = namespace;
    let name = set.metadata.name.clone();
    let set = guard.create(set).map_err(|e| {
        e.context(&format!(
            "error checking create permissions for ApplicationSets {name} "
        ))
    })?;
    let project = &set.spec.template.spec.project;
    if state.reach.project_of_set(&set).is_none() {
        return Err(ApiError::invalid(format!(
            "ApplicationSet references project {project} which does not exist"
        )));
    }
    Ok(set)
}

fn validate(set: &ApplicationSet) -> Result<(), ApiError> {
    if set.spec.template.spec.project.contains("{{") {
        return Err(ApiError::plain(
            "the Argo CD API does not currently support creating ApplicationSets with templated `project` fields",
        ));
    }
    if !set.spec.generators.iter().all(tiphys_appset::has_generator) {
        return Err(ApiError::invalid(format!(
            "ApplicationSet {} contains unrecognized generators",
            set.metadata.name
        )));
    }
    Ok(())
}

pub async fn generate(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationSetGenerateRequest,
) -> Result<ApplicationSetGenerateResponse, ApiError> {
    let stated = q.application_set.as_ref();
    let stated = stated.map(|set| set.metadata.namespace.clone());
    let stated = stated.unwrap_or_default();
    let set = checked(&state, &guard, q.application_set).await?;
    let mut applications = state.reach.generated(&set).await?;
    for app in &mut applications {
        // As Argo CD answers: they have the set's namespace as it was sent, which may be none.
        app.metadata.namespace.clone_from(&stated);
    }
    Ok(ApplicationSetGenerateResponse { applications })
}

pub async fn create(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationSetCreateRequest,
) -> Result<ApplicationSet, ApiError> {
    let wanted = match (q.restore, q.applicationset) {
        (true, Some(set)) => {
            let m = &set.metadata;
            let (namespace, name) = (&m.namespace, &m.name);
            let kept = find_deleted_set::<Create>(&state.reach, &guard, namespace, name).await?;
            Some(kept.into_inner())
        }
        (_, wanted) => wanted,
    };
    let stated_namespace = wanted.as_ref().map(|set| set.metadata.namespace.clone());
    let set = checked(&state, &guard, wanted).await?;
    let set = with_passwords(&state, &guard, set).await?;
    if set.spec.generators.is_empty() {
        // Such a set deletes every Application that it had.
        return Err(ApiError::invalid(format!(
            "error creating ApplicationSet: ApplicationSet.argoproj.io {:?} is invalid: \
             spec.generators: Required value",
            set.metadata.name
        )));
    }
    if q.dry_run {
        let apps = state.reach.generated(&set).await?;
        let names: BTreeSet<String> = apps.iter().map(|app| app.metadata.name.clone()).collect();
        let mut set = set.into_inner();
        // Nothing was written: the set is answered as it was sent.
        set.metadata.namespace = stated_namespace.unwrap_or_default();
        let resources = names.into_iter().map(|name| ResourceStatus {
            name,
            health: Some(Default::default()),
            ..ResourceStatus::default()
        });
        set.status.resources = resources.collect();
        return Ok(set);
    }
    let known = &q.resource_version;
    if q.upsert && !q.restore && !known.is_empty() {
        // Only what exists has a version: nothing is created.
        return replace(&state, &guard, &set, Existing::Of(known)).await;
    }
    let created = match state.reach.create_set(&set).await {
        Ok(created) => created,
        Err(StoreError::AlreadyExists(_)) => {
            let existing = match q.upsert {
                true => Existing::Any,
                false => Existing::Same,
            };
            return replace(&state, &guard, &set, existing).await;
        }
        Err(e) => return Err(ApiError::from(e).context("error creating ApplicationSet")),
    };
    let action = "created ApplicationSet";
    record(
        &state,
        guard.caller(),
        &created,
        audit::RESOURCE_CREATED,
        action,
    )
    .await;
    Ok(created)
}

/// What was shown of an existing set is sent back with the stored passwords. Only who may change
/// that set has them used.
async fn with_passwords(
    state: &State,
    guard: &Guard,
    set: Authorized<ApplicationSet, Create>,
) -> Result<Authorized<ApplicationSet, Create>, ApiError> {
    if !concealed::is_in_set(&set)? {
        return Ok(set);
    }
    let existing = match state.reach.existing_set(&set).await {
        Ok(existing) => Some(guard.update_set(existing)?),
        Err(StoreError::NotFound(_)) => None,
        Err(e) => return Err(e.into()),
    };
    let existing = existing.map(Authorized::into_inner);
    let complete = concealed::of_set(set.into_inner(), existing).await?;
    checked(state, guard, Some(complete)).await
}

/// The existing set that a sent one may replace.
#[derive(Clone, Copy, PartialEq)]
enum Existing<'a> {
    /// None that differs.
    Same,
    Any,
    /// The one of this version.
    Of(&'a str),
}

/// The set exists: it is the same, or it is replaced.
async fn replace(
    state: &State,
    guard: &Guard,
    new: &Authorized<ApplicationSet, Create>,
    replaced: Existing<'_>,
) -> Result<ApplicationSet, ApiError> {
    let existing = state.reach.existing_set(new).await?;
    let (old, wanted) = (&existing.metadata, &new.metadata);
    if matches!(replaced, Existing::Of(version) if version != old.resource_version) {
        return Err(ApiError::new(
            Code::Aborted,
            format!("ApplicationSet '{}' was changed meanwhile", wanted.name),
        ));
    }
    if existing.spec == new.spec
        && old.labels == wanted.labels
        && old.annotations == wanted.annotations
        && old.finalizers == wanted.finalizers
    {
        return Ok(existing);
    }
    if replaced == Existing::Same {
        return Err(ApiError::invalid(
            "existing ApplicationSet spec is different, use upsert flag to force update",
        ));
    }
    // Of the existing one too: it may be of another project.
    guard.update_set(existing.clone())?;
    let mut updated = existing;
    updated.spec = new.spec.clone();
    updated.metadata.labels.extend(wanted.labels.clone());
    updated
        .metadata
        .annotations
        .extend(wanted.annotations.clone());
    updated.metadata.finalizers.clone_from(&wanted.finalizers);
    let updated = guard.update_set(updated)?;
    let updated = state
        .reach
        .update_set(&updated)
        .await
        .map_err(|e| ApiError::from(e).context("error updating ApplicationSets"))?;
    let action = "updated ApplicationSets spec";
    record(
        state,
        guard.caller(),
        &updated,
        audit::RESOURCE_UPDATED,
        action,
    )
    .await;
    Ok(updated)
}

pub async fn delete(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationSetDeleteRequest,
) -> Result<ApplicationSetResponse, ApiError> {
    let set = set_to_delete(&state.reach, &guard, &q.appset_namespace, &q.name).await?;
    state
        .reach
        .delete_set(&set)
        .await
        .map_err(|e| ApiError::from(e).context("error deleting ApplicationSets"))?;
    let action = "deleted ApplicationSets";
    record(
        &state,
        guard.caller(),
        &set,
        audit::RESOURCE_DELETED,
        action,
    )
    .await;
    Ok(ApplicationSetResponse::default())
}

pub async fn resource_tree(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationSetTreeQuery,
) -> Result<ApplicationSetTree, ApiError> {
    let set = find_set::<Get>(&state.reach, &guard, &q.appset_namespace, &q.name).await?;
    let parent = ResourceRef {
        group: constants::GROUP.to_owned(),
        version: constants::VERSION.to_owned(),
        kind: KIND.to_owned(),
        namespace: set.metadata.namespace.clone(),
        name: set.metadata.name.clone(),
        uid: set.metadata.uid.clone(),
    };
    let mut nodes: Vec<ResourceNode> = set
        .status
        .resources
        .iter()
        .map(|app| ResourceNode {
            resource_ref: ResourceRef {
                group: constants::GROUP.to_owned(),
                version: constants::VERSION.to_owned(),
                kind: "Application".to_owned(),
                namespace: set.metadata.namespace.clone(),
                name: app.name.clone(),
                uid: String::new(),
            },
            parent_refs: vec![parent.clone()],
            health: app.health.clone(),
            ..ResourceNode::default()
        })
        .collect();
    nodes.sort_by(|a, b| a.resource_ref.name.cmp(&b.resource_ref.name));
    Ok(ApplicationSetTree { nodes })
}

pub async fn events(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationSetGetQuery,
) -> Result<EventList, ApiError> {
    let set = find_set::<Get>(&state.reach, &guard, &q.appset_namespace, &q.name).await?;
    let m = &set.metadata;
    let selector = format!(
        "involvedObject.name={},involvedObject.namespace={},involvedObject.uid={}",
        m.name, m.namespace, m.uid
    );
    Ok(state.reach.events_of_set(&set, &selector).await?)
}

async fn record(
    state: &State,
    caller: &Caller,
    set: &ApplicationSet,
    reason: &'static str,
    action: &str,
) {
    let m = &set.metadata;
    let user = audit::user(caller);
    let event = EventRecord {
        api_kind: KIND,
        name: m.name.clone(),
        namespace: m.namespace.clone(),
        uid: m.uid.clone(),
        resource_version: m.resource_version.clone(),
        reason,
        message: format!("{user} {action}"),
        annotations: BTreeMap::from([("user".to_owned(), user.to_owned())]),
    };
    audit::record(state, event).await;
}

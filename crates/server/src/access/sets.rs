//! ApplicationSets: finding, listing, watching and writing them.

use super::{
    Authorized, Create, Delete, Get, Guard, Reach, Resource, UNNAMED, Update, Verb, Writes,
};
use crate::{
    ApiError, Code,
    access::guard::{Named, app_name},
    ports::{SetEvent, StoreError, StoreResult},
};
use futures::{StreamExt as _, stream::BoxStream};
use std::sync::Arc;
use tiphys_api::{AppProject, Application, ApplicationSet, rpc::events::EventList};

impl Named for ApplicationSet {
    const RESOURCE: Resource = Resource::ApplicationSets;

    fn name(&self, ours: &str) -> String {
        let (m, spec) = (&self.metadata, &self.spec.template.spec);
        // Not `default` for an empty one: the set's controller would not accept it either.
        app_name(&spec.project, &m.namespace, &m.name, ours)
    }
}

/// Reads the set and checks the permission `A`.
pub(crate) async fn find_set<A: Verb>(
    reach: &Reach,
    guard: &Guard,
    namespace: &str,
    name: &str,
) -> Result<Authorized<ApplicationSet, A>, ApiError> {
    let namespace = reach.namespace_or_ours(namespace);
    if !reach.permits(namespace) {
        return Err(ApiError::plain(format!(
            "namespace '{namespace}' is not permitted"
        )));
    }
    match reach.sets.get(namespace, name).await {
        Ok(set) => guard.grant(set),
        // As in Argo CD: who creates a set asks for it first, and expects this.
        Err(StoreError::NotFound(why)) => Err(ApiError::not_found(format!(
            "error getting ApplicationSet: {why}"
        ))),
        Err(e) => Err(e.into()),
    }
}

/// The same for a set that is to be deleted, in the words for that. There is none where none may be.
pub(crate) async fn set_to_delete(
    reach: &Reach,
    guard: &Guard,
    namespace: &str,
    name: &str,
) -> Result<Authorized<ApplicationSet, Delete>, ApiError> {
    let namespace = reach.namespace_or_ours(namespace);
    let missing = || {
        ApiError::not_found(format!(
            "error getting ApplicationSets: applicationsets.argoproj.io {name:?} not found"
        ))
    };
    if name.is_empty() {
        let why = format!("error getting ApplicationSets: {UNNAMED}");
        return Err(ApiError::plain(why));
    }
    if !reach.permits(namespace) {
        return Err(missing());
    }
    match find_set(reach, guard, namespace, name).await {
        Err(e) if e.code == Code::NotFound => Err(missing()),
        found => found,
    }
}

/// The last set of this name that was deleted and is still kept, if the caller has the permission
/// `A` for it.
pub(crate) async fn find_deleted_set<A: Verb>(
    reach: &Reach,
    guard: &Guard,
    namespace: &str,
    name: &str,
) -> Result<Authorized<ApplicationSet, A>, ApiError> {
    let namespace = reach.namespace_or_ours(namespace);
    if !reach.permits(namespace) {
        return Err(ApiError::plain(format!(
            "namespace '{namespace}' is not permitted"
        )));
    }
    match reach.sets.deleted(namespace, name).await {
        Ok(set) => guard.grant(set),
        Err(StoreError::NotFound(why)) => Err(ApiError::not_found(why)),
        Err(e) => Err(e.into()),
    }
}

impl Reach {
    /// The sets that the caller may see, and the version up to which they are known.
    pub(crate) fn sets(
        &self,
        guard: &Guard,
    ) -> (Vec<Authorized<Arc<ApplicationSet>, Get>>, String) {
        let (all, mut version) = self.sets.list();
        if version.is_empty() || version == "0" {
            // Where several namespaces are watched there is no version of all of them.
            let versions = all.iter().map(|set| set.metadata.resource_version.parse());
            let newest: Option<u64> = versions.filter_map(Result::ok).max();
            version = newest.unwrap_or_default().to_string();
        }
        let seen = all
            .into_iter()
            .filter(|set| self.permits(&set.metadata.namespace))
            .filter_map(|set| guard.grant(set).ok());
        (seen.collect(), version)
    }

    /// Changes of the sets that the caller may see, from now on.
    pub(crate) fn set_events(
        &self,
        guard: &Guard,
    ) -> BoxStream<'static, (SetEvent, Authorized<Arc<ApplicationSet>, Get>)> {
        let (guard, store) = (guard.clone(), self.store.clone());
        let seen = move |event: SetEvent| {
            // As in lists: there are none where none may be.
            let granted = store
                .permits(&event.set.metadata.namespace)
                .then(|| guard.grant(event.set.clone()).ok())
                .flatten();
            futures::future::ready(granted.map(|set| (event, set)))
        };
        self.sets.watch().filter_map(seen).boxed()
    }

    /// The existing set with this name; anyone who may write it may compare with it.
    pub(crate) async fn existing_set<A: Writes>(
        &self,
        new: &Authorized<ApplicationSet, A>,
    ) -> StoreResult<ApplicationSet> {
        let m = &new.metadata;
        self.sets.get(&m.namespace, &m.name).await
    }

    pub(crate) async fn create_set(
        &self,
        set: &Authorized<ApplicationSet, Create>,
    ) -> StoreResult<ApplicationSet> {
        self.sets.create(set).await
    }

    pub(crate) async fn update_set(
        &self,
        set: &Authorized<ApplicationSet, Update>,
    ) -> StoreResult<ApplicationSet> {
        self.sets.update(set).await
    }

    pub(crate) async fn delete_set(
        &self,
        set: &Authorized<ApplicationSet, Delete>,
    ) -> StoreResult<()> {
        let m = &set.metadata;
        self.sets.delete(&m.namespace, &m.name).await
    }

    /// The project of a set's template, if it exists.
    pub(crate) fn project_of_set(
        &self,
        set: &Authorized<ApplicationSet, Create>,
    ) -> Option<Arc<AppProject>> {
        self.store.project(&set.spec.template.spec.project)
    }

    /// The Applications of a set that the caller could create: its generators read what the set's
    /// project may read.
    pub(crate) async fn generated(
        &self,
        set: &Authorized<ApplicationSet, Create>,
    ) -> Result<Vec<Application>, ApiError> {
        self.sets.generate(set).await
    }

    pub(crate) async fn events_of_set<A>(
        &self,
        set: &Authorized<ApplicationSet, A>,
        selector: &str,
    ) -> StoreResult<EventList> {
        self.store.events(&set.metadata.namespace, selector).await
    }
}

impl Guard {
    /// The new version of the set of that name.
    pub(crate) fn update_set(
        &self,
        new: ApplicationSet,
    ) -> Result<Authorized<ApplicationSet, Update>, ApiError> {
        self.grant(new)
    }
}

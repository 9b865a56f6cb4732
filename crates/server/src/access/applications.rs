//! Applications: finding, listing, watching and writing them.

use super::{
    Action, Ask, Authorized, Create, Delete, Get, Guard, OpenShell, Reach, Resource, Verb, Writes,
    guard::{app_name, scoped},
};
use crate::{
    ApiError,
    index::{AppEvent, Change, Index, Listed, Page, Part},
    ports::{StoreError, StoreResult},
};
use serde_json::Value;
use std::{marker::PhantomData, sync::Arc};
use tiphys_api::{AppProject, Application, rpc::events::EventList, source::ApplicationSource};
use tiphys_engine::spec;
use tokio::sync::broadcast::{self, error::RecvError};

/// Reads the Application and its project, and checks the permission `A`.
///
/// Without a project in the request, a missing Application is reported as forbidden. With one, it
/// is reported as not found if the caller may do `A` with an Application of that name in that
/// project.
pub(crate) async fn find<A: Verb>(
    reach: &Reach,
    guard: &Guard,
    namespace: Option<&str>,
    name: &str,
    project: Option<&str>,
) -> Result<(Authorized<Application, A>, AppProject), ApiError> {
    find_to(reach, guard, "", (namespace, name), project).await
}

/// An Application that a stream is about. Whatever the stream shows must be permitted at that time.
pub(crate) struct Followed {
    reach: Arc<Reach>,
    pub guard: Guard,
    namespace: Option<String>,
    name: String,
    project: Option<String>,
}

impl Followed {
    pub fn new(
        reach: Arc<Reach>,
        guard: Guard,
        namespace: Option<String>,
        name: String,
        project: Option<String>,
    ) -> Self {
        Self {
            reach,
            guard,
            namespace,
            name,
            project,
        }
    }

    /// The Application as it is now, if the caller may still see it.
    pub async fn find(&self) -> Result<(Authorized<Application, Get>, AppProject), ApiError> {
        let (namespace, project) = (self.namespace.as_deref(), self.project.as_deref());
        find(&self.reach, &self.guard, namespace, &self.name, project).await
    }

    /// The same from memory, for a stream that asks with each message.
    pub async fn again(&self) -> Result<(Authorized<Application, Get>, AppProject), ApiError> {
        let reach = &self.reach;
        reach.ready().await;
        let namespace = self.namespace.as_deref().unwrap_or_default();
        let namespace = reach.namespace_or_ours(namespace);
        let app = reach.index.get(namespace, &self.name);
        let app = app.ok_or_else(ApiError::denied)?;
        let app: Authorized<Application, Get> = self
            .guard
            .grant(Application::clone(&app))
            .map_err(|_| ApiError::denied())?;
        let project = self.project.as_deref().unwrap_or_default();
        if !project.is_empty() && spec::project_name(&app) != project {
            return Err(ApiError::denied());
        }
        let project = reach.project_of(&app).await?;
        Ok((app, project))
    }
}

/// The Application as it is in memory, for who only looks at it: what another program wrote may be
/// there a moment later, as with Argo CD's server.
pub(crate) async fn look_up(
    reach: &Reach,
    guard: &Guard,
    namespace: Option<&str>,
    name: &str,
    project: Option<&str>,
) -> Result<(Authorized<Application, Get>, AppProject), ApiError> {
    let asked = Asked::new::<Get>(reach, guard, "", (namespace, name), project)?;
    reach.ready().await;
    let known = match reach.store.problem() {
        None => reach.index.get(asked.namespace, name),
        Some(_) => None,
    };
    let app = match known {
        Some(app) => Application::clone(&app),
        None => asked.read().await?,
    };
    asked.granted(app).await
}

/// Like `find`, for an action followed by a path.
pub(crate) async fn find_to<A: Verb>(
    reach: &Reach,
    guard: &Guard,
    path: &str,
    place: (Option<&str>, &str),
    project: Option<&str>,
) -> Result<(Authorized<Application, A>, AppProject), ApiError> {
    let asked = Asked::new::<A>(reach, guard, path, place, project)?;
    let app = asked.read().await?;
    asked.granted(app).await
}

/// An Application that somebody asks for by its name, which may be permitted so far.
struct Asked<'a> {
    reach: &'a Reach,
    guard: &'a Guard,
    path: &'a str,
    namespace: &'a str,
    name: &'a str,
    /// Empty: any.
    project: &'a str,
}

impl<'a> Asked<'a> {
    fn new<A: Verb>(
        reach: &'a Reach,
        guard: &'a Guard,
        path: &'a str,
        (namespace, name): (Option<&'a str>, &'a str),
        project: Option<&'a str>,
    ) -> Result<Self, ApiError> {
        let asked = Self {
            reach,
            guard,
            path,
            namespace: reach.namespace_or_ours(namespace.unwrap_or_default()),
            name,
            project: project.unwrap_or_default(),
        };
        if !asked.project.is_empty() {
            let object = app_name(asked.project, asked.namespace, name, &reach.namespace);
            guard
                .ask(Resource::Applications, A::ACTION, path, &object)
                .map_err(|_| ApiError::denied())?;
        }
        if !reach.permits(asked.namespace) {
            return Err(ApiError::denied());
        }
        if name.is_empty() {
            return Err(asked.absent());
        }
        Ok(asked)
    }

    async fn read(&self) -> Result<Application, ApiError> {
        match self.reach.store.get_app(self.namespace, self.name).await {
            Ok(app) => Ok(app),
            Err(StoreError::NotFound(_)) => Err(self.absent()),
            Err(e) => Err(e.into()),
        }
    }

    async fn granted<A: Verb>(
        &self,
        app: Application,
    ) -> Result<(Authorized<Application, A>, AppProject), ApiError> {
        let app: Authorized<Application, A> = self
            .guard
            .grant_path(self.path, app)
            .map_err(|_| self.absent())?;
        if !self.project.is_empty() && spec::project_name(&app) != self.project {
            return Err(self.absent());
        }
        let project = self.reach.project_of(&app).await?;
        Ok((app, project))
    }

    /// Who does not name the project is not told whether there is one.
    fn absent(&self) -> ApiError {
        let name = self.name;
        match self.project {
            "" => ApiError::denied(),
            _ => ApiError::not_found(format!("applications.argoproj.io {name:?} not found")),
        }
    }
}

/// The Application for which repository details are requested, if it exists: in that project, and
/// with that source now or in its history, of which `version` is the one asked for. If it does not
/// exist, the caller must be allowed to create it.
pub(crate) async fn app_in_project(
    reach: &Reach,
    guard: &Guard,
    (name, project): (&str, &str),
    source: &ApplicationSource,
    (index, version): (i32, i32),
) -> Result<Option<Authorized<Application, Get>>, ApiError> {
    let object = scoped(project, name);
    guard.ask(Resource::Applications, Action::Get, "", &object)?;
    // The name may be qualified: `namespace/name`.
    let (namespace, name) = name.split_once('/').unwrap_or((&reach.namespace, name));
    let found = match reach.permits(namespace) {
        true => match reach.store.get_app(namespace, name).await {
            Err(StoreError::NotFound(_)) => None,
            // Not the same as one that does not exist: that needs no more than the right to create.
            found => Some(found?),
        },
        false => None,
    };
    let Some(app) = found else {
        guard.ask(Resource::Applications, Action::Create, "", &object)?;
        return Ok(None);
    };
    // Whoever may see an Application could read any repository otherwise.
    if app.spec.project != project || !has_had(&app, source, index, version) {
        return Err(ApiError::denied());
    }
    Ok(Some(Authorized::new(app)))
}

/// Whether a source is one of the Application, or was one: those of its history have the revision
/// that was synced.
fn has_had(app: &Application, source: &ApplicationSource, index: i32, version: i32) -> bool {
    if let Some(hydrator) = &app.spec.source_hydrator {
        return *source == spec::dry_source(hydrator) || *source == spec::sync_source(hydrator);
    }
    if spec::sources(&app.spec).iter().any(|own| **own == *source) {
        return true;
    }
    let deployed = |own: &ApplicationSource, revision: &str| {
        let mut own = own.clone();
        revision.clone_into(&mut own.target_revision);
        own == *source
    };
    app.status.history.iter().any(|entry| {
        if entry.sources.is_empty() {
            return deployed(&entry.source, &entry.revision);
        }
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        let own = entry.sources.get(at).zip(entry.revisions.get(at));
        entry.id == i64::from(version) && own.is_some_and(|(own, sha)| deployed(own, sha))
    })
}

/// The Application (namespace and name) that a page names together with its project, for callers
/// who may see it and have another permission, `also`, for `object`, or else for the Application.
/// `None`: it is in another project.
///
/// # Errors
/// The permissions are those of the name, so that a refusal tells nothing of what is there.
pub(crate) async fn app_of_page(
    reach: &Reach,
    guard: &Guard,
    (namespace, name): (&str, &str),
    project: &str,
    (also, object): (Ask, Option<&str>),
) -> Result<Option<Authorized<Application, Get>>, ApiError> {
    let named = app_name(project, namespace, name, &reach.namespace);
    guard.ask(Resource::Applications, Action::Get, "", &named)?;
    guard.ask(also.0, also.1, "", object.unwrap_or(&named))?;
    if !reach.permits(namespace) {
        return Err(ApiError::denied());
    }
    let app = reach.store.get_app(namespace, name).await?;
    Ok((spec::project_name(&app) == project).then(|| Authorized::new(app)))
}

/// The same for the shells of its containers.
pub(crate) async fn app_of_terminal(
    reach: &Reach,
    guard: &Guard,
    at: (&str, &str),
    project: &str,
) -> Result<Option<Authorized<Application, OpenShell>>, ApiError> {
    let exec = (Ask(Resource::Exec, Action::Create), None);
    let app = app_of_page(reach, guard, at, project, exec).await?;
    Ok(app.map(|app| Authorized::new(app.into_inner())))
}

/// Checks that the caller may create or change an Application of this name, which may be qualified.
pub(crate) fn may_write(guard: &Guard, name: &str, project: &str) -> Result<(), ApiError> {
    let object = format!("{project}/{name}");
    let asked = |action| guard.ask(Resource::Applications, action, "", &object);
    asked(Action::Create)
        .or_else(|_| asked(Action::Update))
        .map_err(|_| ApiError::denied())
}

/// A change of an Application that the caller may see.
#[derive(Clone)]
pub(crate) struct Seen {
    pub change: Change,
    pub app: Authorized<Arc<Application>, Get>,
}

/// Changes of the Applications that the caller may see.
pub(crate) struct SeenEvents {
    guard: Guard,
    events: broadcast::Receiver<AppEvent>,
}

impl SeenEvents {
    /// Waits for the next change.
    pub async fn recv(&mut self) -> Result<Seen, RecvError> {
        loop {
            let AppEvent { change, app, .. } = self.events.recv().await?;
            if let Ok(app) = self.guard.grant(app) {
                return Ok(Seen { change, app });
            }
        }
    }
}

/// Changes of one Application.
pub(crate) struct ChangesOf<'a, A> {
    index: &'a Index,
    action: PhantomData<A>,
    events: broadcast::Receiver<AppEvent>,
    namespace: &'a str,
    name: &'a str,
}

impl<A> ChangesOf<'_, A> {
    /// The next state of the Application, possibly unchanged; `None` when the server shuts down.
    pub async fn next(&mut self) -> Option<Authorized<Arc<Application>, A>> {
        loop {
            let seen = match self.events.recv().await {
                Ok(event) => Some(event.app),
                // Some events were dropped: return the current state of the Application.
                Err(RecvError::Lagged(_)) => self.index.get(self.namespace, self.name),
                Err(RecvError::Closed) => return None,
            };
            let is_it = |app: &Arc<Application>| {
                app.metadata.name == self.name && app.metadata.namespace == self.namespace
            };
            if let Some(app) = seen.filter(is_it) {
                return Some(Authorized::new(app));
            }
        }
    }
}

impl<A> Authorized<Application, A> {
    /// The Application with its spec normalised.
    pub(crate) fn normalized(self) -> Self {
        let mut app = self.into_inner();
        spec::normalize(&mut app.spec);
        Self::new(app)
    }
}

impl Reach {
    /// Follows the Applications forever.
    pub async fn follow(&self) {
        self.index.follow(self.store.as_ref()).await;
    }

    /// Returns once the Applications have been listed.
    pub async fn ready(&self) {
        self.index.ready().await;
    }

    /// The Applications that are wanted and that the caller may see, sorted by namespace and name,
    /// and the resource version of the list. What is not wanted is not asked for: a permission
    /// costs more than a selector.
    pub(crate) fn apps(
        &self,
        guard: &Guard,
        wanted: impl Fn(&Application) -> bool,
    ) -> (Vec<Authorized<Arc<Application>, Get>>, u64) {
        let (apps, version) = self.index.all();
        let apps = apps.into_iter().filter(|app| wanted(app));
        let mut apps: Vec<Authorized<Arc<Application>, Get>> = guard.grant_apps(apps);
        apps.sort_by(|a, b| {
            let (a, b) = (&a.metadata, &b.metadata);
            (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name))
        });
        (apps, version)
    }

    /// A part of the list of those that are wanted, which have these labels, and that the caller
    /// may see, sorted by name and namespace, to be sent.
    pub(crate) fn listed_apps(
        &self,
        guard: &Guard,
        part: &Part,
        labels: &[(&str, &str)],
        wanted: impl Fn(&Application) -> bool,
    ) -> Page<Authorized<Listed, Get>> {
        let mut permitted = guard.chooser::<Get>();
        let page = self
            .index
            .page(part, labels, |app| wanted(app) && permitted(app));
        Page {
            items: page.items.into_iter().map(Authorized::new).collect(),
            left: page.left,
            version: page.version,
        }
    }

    /// What the caller may see of the changes after a version, as far as they are remembered.
    pub(crate) fn apps_since(&self, guard: &Guard, version: u64) -> Vec<Seen> {
        let events = self.index.since(version).into_iter();
        let seen = events.filter_map(|(change, app)| {
            let app = guard.grant(app).ok()?;
            Some(Seen { change, app })
        });
        seen.collect()
    }

    pub(crate) fn app_events(&self, guard: &Guard) -> SeenEvents {
        SeenEvents {
            guard: guard.clone(),
            events: self.index.subscribe(),
        }
    }

    /// The number of Applications for which `is` holds. It needs no permission, because a number
    /// reveals none of them.
    pub(crate) fn count_apps(&self, is: impl Fn(&Application) -> bool) -> usize {
        self.index.all().0.iter().filter(|app| is(app)).count()
    }

    /// Changes from now on.
    pub(crate) fn changes_of<'a, A>(
        &'a self,
        app: &'a Authorized<Application, A>,
    ) -> ChangesOf<'a, A> {
        ChangesOf {
            index: &self.index,
            action: PhantomData,
            events: self.index.subscribe(),
            namespace: &app.metadata.namespace,
            name: &app.metadata.name,
        }
    }

    /// Reads the Application again. It may have moved to another project in the meantime, so the
    /// permission is checked again.
    pub(crate) async fn again<A: Verb>(
        &self,
        guard: &Guard,
        app: &Authorized<Application, A>,
    ) -> Result<Authorized<Application, A>, ApiError> {
        let m = &app.metadata;
        let read = self.store.get_app(&m.namespace, &m.name).await?;
        if spec::project_name(&read) == spec::project_name(app) {
            return Ok(Authorized::new(read));
        }
        guard.grant(read)
    }

    /// The existing Application with this name; anyone who may create it may compare with it.
    pub(crate) async fn existing_app(
        &self,
        new: &Authorized<Application, Create>,
    ) -> StoreResult<Authorized<Application, Create>> {
        let m = &new.metadata;
        let found = self.store.get_app(&m.namespace, &m.name).await?;
        Ok(Authorized::new(found))
    }

    /// Replaces `current` with `new`. To move it to another project, the caller must be allowed to
    /// create it there.
    pub(crate) fn in_place_of<A: Writes>(
        &self,
        guard: &Guard,
        current: &Authorized<Application, A>,
        mut new: Application,
    ) -> Result<Authorized<Application, A>, ApiError> {
        // An update cannot change which Application it applies to.
        let m = &current.metadata;
        new.metadata.name.clone_from(&m.name);
        new.metadata.namespace.clone_from(&m.namespace);
        if spec::project_name(&new) != spec::project_name(current) {
            guard.grant::<_, Create>(new.clone())?;
        }
        Ok(Authorized::new(new))
    }

    pub(crate) async fn create_app(
        &self,
        app: &Authorized<Application, Create>,
    ) -> StoreResult<Authorized<Application, Create>> {
        self.wrote(self.store.create_app(app).await)
    }

    /// Changes `from`, parts of `current`, to `to`, unless `current` has changed in the meantime.
    pub(crate) async fn change_app<A: Writes>(
        &self,
        current: &Authorized<Application, A>,
        from: &Value,
        to: &Value,
    ) -> StoreResult<Authorized<Application, A>> {
        self.wrote(self.store.change_app(current, from, to).await)
    }

    /// Applies a JSON merge patch.
    pub(crate) async fn patch_app<A: Writes>(
        &self,
        app: &Authorized<Application, A>,
        patch: &Value,
    ) -> StoreResult<Authorized<Application, A>> {
        let m = &app.metadata;
        self.wrote(self.store.patch_app(&m.namespace, &m.name, patch).await)
    }

    /// Asks the controller to compare again; anyone who may see the Application may do this.
    pub(crate) async fn request_refresh<A>(
        &self,
        app: &Authorized<Application, A>,
        request: &Value,
    ) -> StoreResult<Authorized<Application, A>> {
        let m = &app.metadata;
        let asked = self.store.patch_app(&m.namespace, &m.name, request).await?;
        Ok(Authorized::new(asked))
    }

    pub(crate) async fn delete_app(
        &self,
        app: &Authorized<Application, Delete>,
    ) -> StoreResult<()> {
        let m = &app.metadata;
        self.store.delete_app(&m.namespace, &m.name).await
    }

    /// Events about the Application in the control plane's cluster.
    pub(crate) async fn events_of_app<A>(
        &self,
        app: &Authorized<Application, A>,
        selector: &str,
    ) -> StoreResult<EventList> {
        self.store.events(&app.metadata.namespace, selector).await
    }

    /// Updates the index, so that readers see the write immediately.
    fn wrote<A>(
        &self,
        written: StoreResult<Application>,
    ) -> StoreResult<Authorized<Application, A>> {
        let app = written?;
        self.index.wrote(&app);
        Ok(Authorized::new(app))
    }
}

//! The caller of a row, limited to the permissions that the row names, and the result of a
//! permission check.
//!
//! Main types: [`Guard`], [`Authorized`].

use super::{Access, Action, Ask, Create, Enforcer, Get, Question, ReadLogs, Resource, Verb};
use crate::{
    ApiError,
    audit::{self, Asked},
    auth::{Caller, Claims},
    policy::refusal,
};
use std::{marker::PhantomData, ops::Deref, sync::Arc};
use tiphys_api::{AppProject, Application, cluster::Cluster, repository::Repository};
use tiphys_engine::spec;

/// An object that the caller may do `A` with, in the state in which the permission was checked.
pub(crate) struct Authorized<T, A> {
    object: T,
    action: PhantomData<A>,
}

impl<T, A> Deref for Authorized<T, A> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

// Not derived: the action need not be `Clone`.
impl<T: Clone, A> Clone for Authorized<T, A> {
    fn clone(&self) -> Self {
        Self::new(self.object.clone())
    }
}

impl<T, A> Authorized<T, A> {
    /// Only for the modules of `access`, which must have checked the permission.
    pub(super) fn new(object: T) -> Self {
        Self {
            object,
            action: PhantomData,
        }
    }

    /// Returns the object without the proof, to show it.
    pub(crate) fn into_inner(self) -> T {
        self.object
    }
}

impl<T: Clone, A> Authorized<Arc<T>, A> {
    pub(crate) fn owned(&self) -> Authorized<T, A> {
        Authorized::new(T::clone(&self.object))
    }
}

/// An object that policies refer to by name.
pub(crate) trait Named {
    const RESOURCE: Resource;

    /// `ours` is the control plane's namespace.
    fn name(&self, ours: &str) -> String;
}

impl Named for Application {
    const RESOURCE: Resource = Resource::Applications;

    fn name(&self, ours: &str) -> String {
        let m = &self.metadata;
        app_name(spec::project_name(self), &m.namespace, &m.name, ours)
    }
}

impl Named for AppProject {
    const RESOURCE: Resource = Resource::Projects;

    fn name(&self, _: &str) -> String {
        self.metadata.name.clone()
    }
}

impl Named for Cluster {
    const RESOURCE: Resource = Resource::Clusters;

    fn name(&self, _: &str) -> String {
        scoped(&self.project, &self.server)
    }
}

impl Named for Repository {
    const RESOURCE: Resource = Resource::Repositories;

    fn name(&self, _: &str) -> String {
        scoped(&self.project, &self.repo)
    }
}

impl<T: Named> Named for Arc<T> {
    const RESOURCE: Resource = T::RESOURCE;

    fn name(&self, ours: &str) -> String {
        T::name(self, ours)
    }
}

/// `project/name`, with the namespace between them when it is not the control plane's.
pub(super) fn app_name(project: &str, namespace: &str, name: &str, ours: &str) -> String {
    if namespace.is_empty() || namespace == ours {
        format!("{project}/{name}")
    } else {
        format!("{project}/{namespace}/{name}")
    }
}

/// A cluster or repository, which may belong to a project.
pub(super) fn scoped(project: &str, name: &str) -> String {
    if project.is_empty() {
        name.to_owned()
    } else {
        format!("{project}/{name}")
    }
}

/// Asks the enforcer for one caller of one row.
#[derive(Clone)]
pub(crate) struct Guard {
    caller: Caller,
    access: Access,
    enforcer: Arc<dyn Enforcer>,
    /// The control plane's namespace.
    namespace: Arc<str>,
}

impl Guard {
    pub fn new(
        caller: Caller,
        access: Access,
        enforcer: Arc<dyn Enforcer>,
        namespace: Arc<str>,
    ) -> Self {
        Self {
            caller,
            access,
            enforcer,
            namespace,
        }
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The groups by which policies know the caller.
    pub(super) fn groups(&self) -> Vec<String> {
        let claims = self.caller.claims.as_ref();
        let groups = claims.map(|claims| self.enforcer.groups(claims));
        groups.unwrap_or_default()
    }

    /// Another number after the policy has changed.
    pub fn policy_revision(&self) -> u64 {
        self.enforcer.revision()
    }

    /// Whether the action is permitted. A permission that the row does not name is refused: the row
    /// is wrong then, and a wrong row must not give access to more than it declares.
    fn permits(&self, ask: Ask, question: Question<'_>) -> bool {
        if !self.access.names(ask) {
            tracing::error!("a call asked for {ask}, which its row does not name");
            return false;
        }
        let claims = self.caller.claims.as_ref();
        let permitted = self.enforcer.permits(claims, question);
        // Lists leave out what may not be seen: that is no refusal.
        if !matches!(self.access, Access::Lists(_)) {
            audit::asked(ask, permitted, || Asked {
                resource: question.resource.word().to_owned(),
                action: question.action.to_owned(),
                object: question.object.to_owned(),
                permitted,
                rule: self.enforcer.rule(claims, question),
            });
        }
        permitted
    }

    /// Checks a permission by object name; the error names what was refused.
    pub(crate) fn ask(
        &self,
        resource: Resource,
        action: Action,
        path: &str,
        object: &str,
    ) -> Result<(), ApiError> {
        let question = Question {
            resource,
            action: &action.text(path),
            object,
        };
        if self.permits(Ask(resource, action), question) {
            Ok(())
        } else {
            Err(refusal(self.caller.claims.as_ref(), question))
        }
    }

    /// Checks a permission for an object. Only for the modules of `access`: the object must be the
    /// one stored under its name, or one that does not exist yet.
    pub(super) fn grant<T: Named, A: Verb>(&self, object: T) -> Result<Authorized<T, A>, ApiError> {
        self.grant_path("", object)
    }

    /// Whether the caller may do `A` with each of many Applications.
    pub(super) fn chooser<A: Verb>(&self) -> impl FnMut(&Application) -> bool {
        let ask = Ask(Resource::Applications, A::ACTION);
        // Other rows may have to record each question.
        let is_list = matches!(self.access, Access::Lists(one) if one == ask);
        let claims = self.caller.claims.as_ref();
        let mut selection = is_list.then(|| self.enforcer.selection(claims, ask));
        move |app: &Application| {
            let name = || app.name(&self.namespace);
            match &mut selection {
                Some(selection) => selection.permits(spec::project_name(app), &name),
                None => self.ask(ask.0, ask.1, "", &name()).is_ok(),
            }
        }
    }

    /// Those of many Applications that the caller may do `A` with. Only for the modules of
    /// `access`, as for [`Self::grant`].
    pub(super) fn grant_apps<T: AsRef<Application>, A: Verb>(
        &self,
        apps: impl Iterator<Item = T>,
    ) -> Vec<Authorized<T, A>> {
        let mut permitted = self.chooser::<A>();
        apps.filter(|app| permitted(app.as_ref()))
            .map(Authorized::new)
            .collect()
    }

    pub(super) fn grant_path<T: Named, A: Verb>(
        &self,
        path: &str,
        object: T,
    ) -> Result<Authorized<T, A>, ApiError> {
        let name = object.name(&self.namespace);
        self.ask(T::RESOURCE, A::ACTION, path, &name)?;
        Ok(Authorized::new(object))
    }

    /// Checks the permission to create an object.
    pub(crate) fn create<T: Named>(&self, object: T) -> Result<Authorized<T, Create>, ApiError> {
        self.grant(object)
    }

    /// Checks the permission to change an Application of this project and name, before it is looked
    /// for: the error names what the caller named.
    pub(crate) fn update_named(&self, app: &Application) -> Result<(), ApiError> {
        let object = app.name(&self.namespace);
        self.ask(Resource::Applications, Action::Update, "", &object)
    }

    /// Checks another permission for the same object.
    pub(crate) fn also<B: Verb, A, T: Named + Clone>(
        &self,
        object: &Authorized<T, A>,
    ) -> Result<Authorized<T, B>, ApiError> {
        self.grant(object.object.clone())
    }

    /// Checks the permission to read pod logs, which are a separate resource in RBAC.
    pub(crate) fn logs(
        &self,
        app: &Authorized<Application, Get>,
    ) -> Result<Authorized<Application, ReadLogs>, ApiError> {
        let name = app.object.name(&self.namespace);
        self.ask(Resource::Logs, Action::Get, "", &name)?;
        Ok(Authorized::new(app.object.clone()))
    }

    /// Callers need no permission for their own account.
    pub(crate) fn ask_account(&self, action: Action, name: &str) -> Result<(), ApiError> {
        let is_local = self.caller.claims.as_ref().is_some_and(Claims::is_local);
        if is_local && self.caller.username() == name {
            return Ok(());
        }
        self.ask(Resource::Accounts, action, "", name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Yes;

    impl Enforcer for Yes {
        fn permits(&self, _: Option<&crate::auth::Claims>, _: Question<'_>) -> bool {
            true
        }
    }

    #[test]
    fn a_row_cannot_ask_for_what_it_does_not_name() {
        let caller = Caller {
            claims: None,
            source: [127, 0, 0, 1].into(),
        };
        let access = Access::Asks {
            always: &[Ask(Resource::Applications, Action::Get)],
            sometimes: &[Ask(Resource::Applications, Action::Create)],
        };
        let guard = Guard::new(caller, access, Arc::new(Yes), "argocd".into());
        let asked = |action| guard.ask(Resource::Applications, action, "", "p/a").is_ok();
        assert!(asked(Action::Get) && asked(Action::Create));
        assert!(!asked(Action::Delete));
    }

    #[test]
    fn names_are_argo_cds() {
        assert_eq!(app_name("p", "argocd", "a", "argocd"), "p/a");
        assert_eq!(app_name("p", "", "a", "argocd"), "p/a");
        assert_eq!(app_name("p", "n", "a", "argocd"), "p/n/a");
        assert_eq!(scoped("", "https://c"), "https://c");
        assert_eq!(scoped("p", "https://c"), "p/https://c");
    }
}

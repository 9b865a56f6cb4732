//! The installation's policy: argocd-rbac-cm and the roles of projects.
//!
//! Main type: [`PolicyEnforcer`].

use super::{Ask, Enforcer, ObjectSelection, Question};
use crate::{auth::Claims, ports::Store};
use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};
use tiphys_api::AppProject;
use tiphys_rbac::{Finding, Projects, Rbac, Request, Selection, Settings, place};

/// Decides by the policy that was loaded last. One that cannot be loaded changes nothing: Argo CD
/// stops answering then. Before the first one has been loaded everything is refused.
pub struct PolicyEnforcer {
    store: Arc<dyn Store>,
    loaded: RwLock<Loaded>,
}

#[derive(Default)]
struct Loaded {
    data: Option<BTreeMap<String, String>>,
    rbac: Option<Arc<Rbac>>,
    revision: u64,
}

impl PolicyEnforcer {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            loaded: RwLock::default(),
        }
    }

    fn rbac(&self) -> Option<Arc<Rbac>> {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        loaded.rbac.clone()
    }
}

impl Enforcer for PolicyEnforcer {
    fn permits(&self, claims: Option<&Claims>, question: Question<'_>) -> bool {
        let Some(rbac) = self.rbac() else {
            return false;
        };
        let request = Request {
            resource: question.resource.word(),
            action: question.action,
            object: question.object,
        };
        let claims = claims.map(Claims::for_policies);
        rbac.permits(&Stored(&*self.store), claims.as_deref(), request)
    }

    fn selection<'a>(
        &'a self,
        claims: Option<&'a Claims>,
        Ask(resource, action): Ask,
    ) -> Box<dyn ObjectSelection + 'a> {
        let selection = self.rbac().map(|rbac| {
            let claims = claims.map(Claims::for_policies);
            let (resource, action) = (resource.word(), action.text(""));
            Selection::new(rbac, Stored(&*self.store), claims, resource, &action)
        });
        Box::new(Selected(selection))
    }

    fn rule(&self, claims: Option<&Claims>, question: Question<'_>) -> Option<String> {
        let request = Request {
            resource: question.resource.word(),
            action: question.action,
            object: question.object,
        };
        let claims = claims.map(Claims::for_policies);
        self.rbac()?
            .rule(&Stored(&*self.store), claims.as_deref(), request)
    }

    fn groups(&self, claims: &Claims) -> Vec<String> {
        let scopes = self.rbac().map(|rbac| rbac.settings().scopes.clone());
        let claims = claims.for_policies();
        let groups = tiphys_rbac::groups(&claims, &scopes.unwrap_or_default());
        groups.into_iter().map(str::to_owned).collect()
    }

    fn revision(&self) -> u64 {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        loaded.revision
    }

    fn update(&self, data: &BTreeMap<String, String>) {
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        if loaded.data.as_ref() == Some(data) {
            return;
        }
        loaded.data = Some(data.clone());
        let settings = match Settings::new(data) {
            Ok(settings) => settings,
            Err(error) => {
                tracing::error!(%error, "argocd-rbac-cm cannot be used; the policy before it stays in force");
                return;
            }
        };
        let findings = tiphys_rbac::check(&settings).unwrap_or_default();
        match Rbac::new(true, settings) {
            Ok(rbac) => {
                loaded.rbac = Some(Arc::new(rbac));
                loaded.revision += 1;
                warn_of(&findings, data);
            }
            Err(fault) => {
                let (key, line) = place(data, fault.number);
                tracing::error!(
                    key,
                    line,
                    text = fault.line,
                    error = %fault,
                    "the policy of argocd-rbac-cm cannot be used; the one before it stays in force"
                );
            }
        }
    }
}

/// A policy that does not do what it seems to is otherwise noticed by those whom it locks out.
fn warn_of(findings: &[Finding], data: &BTreeMap<String, String>) {
    for Finding { number, problem } in findings {
        let at = number.map(|number| place(data, number));
        let (key, line) = at.unzip();
        tracing::warn!(key, line, "argocd-rbac-cm: {problem}");
    }
}

/// `None`: no policy has been loaded.
struct Selected<'a>(Option<Selection<Stored<'a>>>);

impl ObjectSelection for Selected<'_> {
    fn permits(&mut self, project: &str, object: &dyn Fn() -> String) -> bool {
        let selection = self.0.as_mut();
        selection.is_some_and(|selection| selection.permits(project, object))
    }
}

struct Stored<'a>(&'a dyn Store);

impl Projects for Stored<'_> {
    fn project(&self, name: &str) -> Option<Arc<AppProject>> {
        self.0.project(name)
    }
}

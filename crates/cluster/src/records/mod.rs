//! Our own records in the control plane's cluster: Applications, projects, settings, Events.
//!
//! Main type: [`Records`]. Everything is watched into memory; writes go to the server and come back at once.

mod events;
mod settings;
mod store;

pub use events::{Event, EventTarget, Events};
pub use settings::{RepoSecret, SecretText, Settings, is_in_cluster};
pub use store::{Record, RecordChange, Store};

use crate::{connect::Cluster, discovery::Kind, error::Error};
use std::sync::Arc;
use tiphys_api::{AppProject, Application, constants};
use tiphys_apimachinery::Gvk;
use tokio::sync::watch;

/// Who owns the fields that these writes set.
pub(crate) const FIELD_MANAGER: &str = constants::FIELD_MANAGER;

/// An object that is read by its fields alone.
pub type Untyped = serde_json::Value;

/// Where the records are.
#[derive(Clone, Debug)]
pub struct RecordsOptions {
    /// The control plane's namespace, usually `argocd`.
    pub namespace: String,
    /// Namespaces with Applications beside it (`application.namespaces`, without globs); `*` means all.
    pub application_namespaces: Vec<String>,
}

impl RecordsOptions {
    pub fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), application_namespaces: Vec::new() }
    }
}

/// All records. Cheap to clone; the watches end with the last clone.
#[derive(Clone)]
pub struct Records {
    pub cluster: Cluster,
    pub namespace: String,
    pub applications: Store<Application>,
    pub projects: Store<AppProject>,
    pub config_maps: Store<Untyped>,
    pub secrets: Store<Untyped>,
    settings: watch::Receiver<Arc<Settings>>,
}

impl Records {
    /// Starts following. Must be called inside a tokio runtime. The CRDs must be there (or come; they are waited for).
    pub fn start(cluster: Cluster, options: RecordsOptions) -> Self {
        let here = vec![options.namespace.clone()];
        let globs = options.application_namespaces.iter().any(|n| n.contains('*') || n.starts_with('/'));
        let mut application_namespaces = if globs { Vec::new() } else { [here.clone(), options.application_namespaces].concat() };
        application_namespaces.sort();
        application_namespaces.dedup();
        let applications = Store::start(
            cluster.clone(),
            kind(constants::GROUP, constants::VERSION, "Application", "applications"),
            &application_namespaces,
            "",
        );
        let projects = Store::start(cluster.clone(), kind(constants::GROUP, constants::VERSION, "AppProject", "appprojects"), &here, "");
        let config_maps = Store::start(cluster.clone(), kind("", "v1", "ConfigMap", "configmaps"), &here, "");
        let secrets = Store::start(cluster.clone(), kind("", "v1", "Secret", "secrets"), &here, "");
        let settings = settings::follow(&config_maps, &secrets);
        Self { cluster, namespace: options.namespace, applications, projects, config_maps, secrets, settings }
    }

    /// Waits until everything was read once, or says what cannot be.
    pub async fn wait_ready(&self) -> Result<(), Error> {
        tokio::try_join!(
            self.applications.wait_ready(),
            self.projects.wait_ready(),
            self.config_maps.wait_ready(),
            self.secrets.wait_ready()
        )?;
        let mut settings = self.settings.clone();
        // It ends only when the stores do, and they are held here.
        let _ = settings.wait_for(|s| s.complete).await;
        Ok(())
    }

    /// The settings as they are now.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.borrow().clone()
    }

    /// The settings and every change of them.
    pub fn watch_settings(&self) -> watch::Receiver<Arc<Settings>> {
        self.settings.clone()
    }

    /// Writes Events under a component's name, `argocd-server` or `argocd-application-controller`.
    pub fn events(&self, component: &str) -> Events {
        Events::new(self.cluster.clone(), component, &self.namespace)
    }
}

/// A kind that is known without asking.
fn kind(group: &str, version: &str, kind: &str, resource: &str) -> Kind {
    Kind {
        gvk: Gvk::new(group, version, kind),
        resource: resource.to_owned(),
        singular: kind.to_lowercase(),
        namespaced: true,
        verbs: Vec::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        subresources: Vec::new(),
    }
}

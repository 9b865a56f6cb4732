//! Our own records in the control plane's cluster: Applications, projects, settings, Events.
//!
//! Main type: [`Records`]. All records are kept in memory by watches; after a write, the server's
//! response is stored immediately.

mod clusters;
mod config;
mod events;
mod feed;
mod lean;
mod projects;
mod record;
mod rendering;
mod reread;
mod rules;
mod secrets;
mod settings;
mod store;
#[cfg(test)]
mod testing;

pub use config::Config;
pub use events::{Event, EventTarget, Events};
pub use lean::{Lean, Meta};
pub use projects::Impersonation;
pub use record::{Readable, Record, RecordChange};
pub use settings::{
    FaultyTemplate, RepoSecret, SecretText, Settings, SettingsOverrides, secret_data,
};
pub use store::Store;

use crate::{connect::Cluster, discovery::Kind, error::Error};
use std::{collections::BTreeSet, sync::Arc};
use tiphys_api::{AppProject, Application, ApplicationSet, constants};
use tiphys_apimachinery::{Gvk, Object};
use tiphys_engine::permit;
use tiphys_gocompat::patterns;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The field manager of these writes.
pub(crate) const FIELD_MANAGER: &str = constants::FIELD_MANAGER;

impl Readable for Application {
    fn bare(mut self) -> Self {
        (self.api_version, self.kind) = Default::default();
        self
    }

    fn reread(lean_before: &Lean, before: &Self, lean: &Lean) -> Option<Self> {
        reread::application(lean_before, before, lean)
    }
}

impl Readable for AppProject {
    fn bare(mut self) -> Self {
        (self.api_version, self.kind) = Default::default();
        self
    }
}

impl Readable for ApplicationSet {
    fn bare(mut self) -> Self {
        (self.api_version, self.kind) = Default::default();
        self
    }
}

/// Read by its fields alone.
impl Readable for Object {}

/// Where the records are.
#[derive(Clone, Debug)]
pub struct RecordsOptions {
    /// The control plane's namespace, usually `argocd`.
    pub namespace: String,
    /// Patterns of other namespaces that may contain Applications, as [`patterns`] parses them;
    /// `None`: use the current value of `application.namespaces` in argocd-cmd-params-cm.
    pub application_namespaces: Option<Vec<String>>,
    /// Values that override argocd-cm and argocd-cmd-params-cm.
    pub overrides: SettingsOverrides,
}

impl RecordsOptions {
    pub fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            application_namespaces: None,
            overrides: SettingsOverrides::default(),
        }
    }
}

/// The namespaces that may contain Applications: the control plane's, and those that match the
/// patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Permitted {
    own: String,
    others: Vec<String>,
}

impl Permitted {
    fn permits(&self, namespace: &str) -> bool {
        namespace == self.own
            || permit::listed(&self.others, |pattern| patterns::fits(pattern, namespace))
    }

    /// The namespaces to watch, or all of them if a pattern has wildcards.
    fn places(&self) -> Vec<String> {
        let is_name = |pattern: &String| {
            pattern
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        if !self.others.iter().all(is_name) {
            return Vec::new();
        }
        let places: BTreeSet<String> = self.others.iter().chain([&self.own]).cloned().collect();
        places.into_iter().collect()
    }
}

/// All records. Cheap to clone; the watches end with the last clone.
#[derive(Clone)]
pub struct Records {
    pub cluster: Cluster,
    pub namespace: String,
    pub applications: Store<Application>,
    pub projects: Store<AppProject>,
    pub config_maps: Store<Object>,
    pub secrets: Store<Object>,
    settings: watch::Receiver<Arc<Settings>>,
    ask_settings: mpsc::UnboundedSender<oneshot::Sender<()>>,
    /// `None` until it is known.
    permitted: watch::Receiver<Option<Arc<Permitted>>>,
    _guard: Arc<DropGuard>,
}

impl Records {
    /// Starts watching. Must be called inside a tokio runtime. Waits for missing CRDs.
    pub fn start(cluster: Cluster, options: RecordsOptions) -> Self {
        let here = vec![options.namespace.clone()];
        let applications = Store::start(
            cluster.clone(),
            kind(
                constants::GROUP,
                constants::VERSION,
                "Application",
                "applications",
            ),
            &here,
            true,
        );
        let projects = Store::start(
            cluster.clone(),
            kind(
                constants::GROUP,
                constants::VERSION,
                "AppProject",
                "appprojects",
            ),
            &here,
            false,
        );
        let config_maps = Store::start(
            cluster.clone(),
            kind("", "v1", "ConfigMap", "configmaps"),
            &here,
            false,
        );
        let secrets = Store::start(
            cluster.clone(),
            kind("", "v1", "Secret", "secrets"),
            &here,
            false,
        );
        let (ask_settings, asked) = mpsc::unbounded_channel();
        let settings = settings::follow(&config_maps, &secrets, options.overrides.clone(), asked);
        let stop = CancellationToken::new();
        let permitted = permit(&options, &applications, &settings, stop.clone());
        let guard = Arc::new(stop.drop_guard());
        Self {
            cluster,
            namespace: options.namespace,
            applications,
            projects,
            config_maps,
            secrets,
            settings,
            ask_settings,
            permitted,
            _guard: guard,
        }
    }

    /// Starts watching the ApplicationSets of the control plane's namespace and of those that the
    /// patterns name; of all, if a pattern has wildcards, see [`Self::lists`]. Not every
    /// installation has them, so they are watched only for those who need them.
    pub fn application_sets(&self, patterns: &[String]) -> Store<ApplicationSet> {
        let places = self.permitted_by(patterns).places();
        let kind = kind(
            constants::GROUP,
            constants::VERSION,
            "ApplicationSet",
            "applicationsets",
        );
        Store::start(self.cluster.clone(), kind, &places, false)
    }

    /// Starts watching the ConfigMaps of one name, and the Secrets of another, in the namespaces that
    /// may contain Applications now, for what they configure themselves. Must be called inside a
    /// tokio runtime, when the records are ready.
    pub fn named_in_namespaces(
        &self,
        config_map: &str,
        secret: &str,
    ) -> (Store<Object>, Store<Object>) {
        let permitted = self.permitted.borrow().clone();
        let places = permitted.map_or_else(
            || vec![self.namespace.clone()],
            |permitted| permitted.places(),
        );
        let start = |name: &str, plural: &str, of: &str| {
            Store::named(
                self.cluster.clone(),
                kind("", "v1", name, plural),
                &places,
                of,
            )
        };
        (
            start("ConfigMap", "configmaps", config_map),
            start("Secret", "secrets", secret),
        )
    }

    /// Waits until everything was read once, or returns why it cannot be read.
    pub async fn wait_ready(&self) -> Result<(), Error> {
        tokio::try_join!(
            self.projects.wait_ready(),
            self.config_maps.wait_ready(),
            self.secrets.wait_ready()
        )?;
        let (mut settings, mut permitted) = (self.settings.clone(), self.permitted.clone());
        // They end only with the stores, which are held here.
        let _ = settings.wait_for(|s| s.complete).await;
        let _ = permitted.wait_for(Option::is_some).await;
        self.applications.wait_ready().await
    }

    /// Why the records may be out of date; None while all watches work.
    pub fn problem(&self) -> Option<String> {
        let others = || {
            self.projects
                .problem()
                .or_else(|| self.config_maps.problem())
                .or_else(|| self.secrets.problem())
        };
        self.applications.problem().or_else(others)
    }

    /// Whether a namespace is the control plane's, or listed by patterns.
    pub fn lists(&self, patterns: &[String], namespace: &str) -> bool {
        self.permitted_by(patterns).permits(namespace)
    }

    fn permitted_by(&self, patterns: &[String]) -> Permitted {
        Permitted {
            own: self.namespace.clone(),
            others: patterns.to_vec(),
        }
    }

    /// Whether Applications may be in other namespaces than the control plane's.
    pub fn permits_others(&self) -> bool {
        let permitted = self.permitted.borrow();
        permitted.as_ref().is_some_and(|p| !p.others.is_empty())
    }

    /// Whether a namespace may contain Applications.
    pub fn permits(&self, namespace: &str) -> bool {
        namespace == self.namespace
            || self
                .permitted
                .borrow()
                .as_ref()
                .is_some_and(|p| p.permits(namespace))
    }

    /// The settings as they are now.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.borrow().clone()
    }

    /// Waits until the settings contain what was written to their ConfigMaps and Secrets through
    /// these stores, so that who has written them, a repository say, can count on it at once.
    /// Returns immediately while they cannot be read at all.
    pub async fn settle(&self) {
        let (done, read) = oneshot::channel();
        if self.settings.borrow().complete && self.ask_settings.send(done).is_ok() {
            // It is dropped unanswered only when the runtime ends.
            let _ = read.await;
        }
    }

    /// The settings and every change of them.
    pub fn watch_settings(&self) -> watch::Receiver<Arc<Settings>> {
        self.settings.clone()
    }

    /// Writes Events under a component's name, `argocd-server` or `argocd-application-controller`.
    pub fn events(&self, component: &str) -> Events {
        Events::new(self.clone(), component)
    }
}

/// Makes the store watch the namespaces that may contain Applications, now and whenever the
/// settings change.
fn permit(
    options: &RecordsOptions,
    applications: &Store<Application>,
    settings: &watch::Receiver<Arc<Settings>>,
    stop: CancellationToken,
) -> watch::Receiver<Option<Arc<Permitted>>> {
    let (sender, receiver) = watch::channel(None);
    let (own, fixed) = (
        options.namespace.clone(),
        options.application_namespaces.clone(),
    );
    let (applications, mut settings) = (applications.clone(), settings.clone());
    let follow = async move {
        let mut followed = Arc::new(Permitted {
            own: own.clone(),
            others: Vec::new(),
        });
        loop {
            let now = settings.borrow_and_update().clone();
            if let Some(others) = fixed
                .clone()
                .or_else(|| now.complete.then(|| now.application_namespaces()))
            {
                let permitted = Arc::new(Permitted {
                    own: own.clone(),
                    others,
                });
                if permitted != followed {
                    let rule = permitted.clone();
                    applications.follow(
                        &permitted.places(),
                        Arc::new(move |namespace| rule.permits(namespace)),
                    );
                    followed = permitted.clone();
                }
                sender.send_replace(Some(permitted));
            }
            if settings.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::spawn(async move { stop.run_until_cancelled(follow).await });
    receiver
}

/// A kind that is known without discovery.
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

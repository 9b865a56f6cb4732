//! The API's external dependencies, as traits: the records in Kubernetes ([`Store`]), the clusters
//! that applications run in ([`Live`]) and their sources ([`Sources`]). `adapters` implements them;
//! tests use fakes.

use crate::{ApiError, Code};
use async_trait::async_trait;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde_json::Value;
use std::{collections::BTreeMap, fs::File, sync::Arc};
use tiphys_api::{
    AppProject, Application, ApplicationSet,
    cluster::ClusterInfo,
    repository::{ChartDetails, OCIMetadata, Repository, RevisionMetadata},
    resource::{ApplicationTree, ResourceDiff},
    rpc::application::LogEntry,
    rpc::events::EventList,
    rpc::repository::{HelmChart, RepoAppDetailsResponse},
    source::ApplicationSource,
};
use tiphys_apimachinery::Object;
use tiphys_appset::Followed;
use tiphys_catalog::{
    CatalogError, RepoId, apprepository::NewRepository, model::RepoRef, sync::CatalogSync,
};
pub use tiphys_cluster::streams::{Ended, Shell};
use tiphys_engine::{spec::Destination, types::Diff};

/// An error of the store.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    AlreadyExists(String),
    /// The record has changed since it was read.
    #[error("{0}")]
    Conflict(String),
    /// The record is invalid.
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Forbidden(String),
    #[error("{0}")]
    Unavailable(String),
}

impl From<StoreError> for ApiError {
    fn from(e: StoreError) -> Self {
        let code = match e {
            StoreError::NotFound(_) => Code::NotFound,
            StoreError::AlreadyExists(_) => Code::AlreadyExists,
            StoreError::Conflict(_) => Code::Aborted,
            StoreError::Invalid(_) => Code::InvalidArgument,
            StoreError::Forbidden(_) => Code::PermissionDenied,
            StoreError::Unavailable(_) => Code::Unavailable,
        };
        Self::of_other(code, e.to_string())
    }
}

pub type StoreResult<T> = Result<T, StoreError>;

/// A change of the Applications.
#[derive(Clone, Debug)]
pub enum StoreEvent {
    /// All Applications, after a list.
    Reset {
        items: Vec<Arc<Application>>,
        resource_version: String,
    },
    Changed(Arc<Application>),
    Deleted(Arc<Application>),
}

/// A Secret with its values decoded.
#[derive(Clone, Default)]
pub struct SecretRecord {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub data: BTreeMap<String, Vec<u8>>,
}

/// The decoded values of a Secret, by their keys.
pub type SecretData = BTreeMap<String, Vec<u8>>;

impl SecretRecord {
    /// A value as text; empty when absent.
    pub fn text(&self, key: &str) -> String {
        self.data
            .get(key)
            .map(|v| String::from_utf8_lossy(v).into_owned())
            .unwrap_or_default()
    }
}

/// A ConfigMap as the API server has it now.
#[derive(Clone, Debug, Default)]
pub struct ConfigMapRecord {
    pub data: BTreeMap<String, String>,
    /// Its resourceVersion; empty if it does not exist.
    pub version: String,
}

/// An event to record about an Application or project.
pub struct EventRecord {
    pub api_kind: &'static str,
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub resource_version: String,
    pub reason: &'static str,
    pub message: String,
    pub annotations: BTreeMap<String, String>,
}

impl EventRecord {
    /// The kind of an event that is about no object of Argo CD.
    pub const CONFIG_MAP: &'static str = "ConfigMap";
}

/// The records in Kubernetes. Secrets, ConfigMaps and projects are those in the control plane's
/// namespace.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Whether Applications are allowed in a namespace.
    fn permits(&self, namespace: &str) -> bool;
    /// Whether Applications may be in other namespaces than the control plane's.
    fn permits_others(&self) -> bool {
        false
    }
    /// Why what is in memory may be out of date; `None` while everything can be followed.
    fn problem(&self) -> Option<String> {
        None
    }
    /// The versions of what [`Self::config_map`] and [`Self::secret`] answer for these names: while
    /// they are the same, so are the answers. `None`: that is not known.
    fn versions(&self, _config_maps: &[&str], _secrets: &[&str]) -> Option<Vec<String>> {
        None
    }
    async fn get_app(&self, namespace: &str, name: &str) -> StoreResult<Application>;
    async fn create_app(&self, app: &Application) -> StoreResult<Application>;
    /// Applies a JSON merge patch. If it has a `metadata.resourceVersion`, it is only applied if
    /// that is still the current version.
    async fn patch_app(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> StoreResult<Application>;
    /// Changes `from`, parts of `current`, to `to`, unless `current` has changed in the meantime.
    /// Nulls in maps are stored, which a merge patch cannot do.
    async fn change_app(
        &self,
        current: &Application,
        from: &Value,
        to: &Value,
    ) -> StoreResult<Application>;
    async fn delete_app(&self, namespace: &str, name: &str) -> StoreResult<()>;
    /// Lists, then watches, forever; lists again after a failure.
    fn watch_apps(&self) -> BoxStream<'static, StoreEvent>;

    /// From memory; `None`: there is none.
    fn project(&self, name: &str) -> Option<Arc<AppProject>>;
    async fn list_projects(&self) -> StoreResult<Vec<AppProject>>;
    async fn get_project(&self, name: &str) -> StoreResult<AppProject>;
    /// The project merged with global projects and with what is scoped to it.
    fn effective_project(&self, project: AppProject) -> AppProject;
    /// The global projects that also apply to this one.
    fn global_projects(&self, project: &AppProject) -> Vec<AppProject>;
    async fn create_project(&self, project: &AppProject) -> StoreResult<AppProject>;
    async fn update_project(&self, project: &AppProject) -> StoreResult<AppProject>;
    async fn delete_project(&self, name: &str) -> StoreResult<()>;

    /// The ConfigMap's data; empty if it does not exist.
    async fn config_map(&self, name: &str) -> StoreResult<BTreeMap<String, String>>;
    /// The ConfigMap as the API server has it now, to change it.
    async fn read_config_map(&self, name: &str) -> StoreResult<ConfigMapRecord>;
    /// Sets values in a ConfigMap, or removes them (`None`); the others are kept. A missing
    /// ConfigMap is created. Fails with [`StoreError::Conflict`] if it has changed since `version`.
    async fn set_in_config_map(
        &self,
        name: &str,
        version: &str,
        values: &BTreeMap<String, Option<String>>,
    ) -> StoreResult<()>;
    async fn secret(&self, name: &str) -> StoreResult<SecretRecord>;
    /// The Secrets whose label `argocd.argoproj.io/secret-type` has this value.
    async fn secrets_of_type(&self, secret_type: &str) -> StoreResult<Vec<SecretRecord>>;
    async fn put_secret(&self, secret: &SecretRecord) -> StoreResult<()>;
    /// Sets these values in an existing Secret; the others are kept.
    async fn set_in_secret(
        &self,
        name: &str,
        values: &BTreeMap<String, Vec<u8>>,
    ) -> StoreResult<()>;
    /// The values of a Secret as the API server has it now, to change it, and its resourceVersion,
    /// which is empty if it does not exist.
    async fn read_secret(&self, name: &str) -> StoreResult<(SecretData, String)>;
    /// Sets values in a Secret, or removes them (`None`); the others are kept. A missing Secret is
    /// created. Fails with [`StoreError::Conflict`] if it has changed since `version`.
    async fn change_secret(
        &self,
        name: &str,
        version: &str,
        values: &BTreeMap<String, Option<Vec<u8>>>,
    ) -> StoreResult<()>;
    async fn delete_secret(&self, name: &str) -> StoreResult<()>;
    /// Takes the label `argocd.argoproj.io/secret-type` off a Secret, which stays.
    async fn release_secret(&self, name: &str) -> StoreResult<()>;

    async fn record_event(&self, event: EventRecord) -> StoreResult<()>;
    async fn events(&self, namespace: &str, field_selector: &str) -> StoreResult<EventList>;
}

/// A change of an ApplicationSet.
#[derive(Clone, Debug)]
pub struct SetEvent {
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub change: &'static str,
    pub set: Arc<ApplicationSet>,
}

/// The ApplicationSets in Kubernetes, and what they generate.
#[async_trait]
pub trait Sets: Send + Sync + 'static {
    /// All of them, and the resourceVersion up to which they are known.
    fn list(&self) -> (Vec<Arc<ApplicationSet>>, String);
    async fn get(&self, namespace: &str, name: &str) -> StoreResult<ApplicationSet>;
    /// The last set of this name that was deleted and is still kept.
    async fn deleted(&self, namespace: &str, name: &str) -> StoreResult<ApplicationSet>;
    async fn create(&self, set: &ApplicationSet) -> StoreResult<ApplicationSet>;
    /// Replaces it, if it is still in the version of `set`.
    async fn update(&self, set: &ApplicationSet) -> StoreResult<ApplicationSet>;
    async fn delete(&self, namespace: &str, name: &str) -> StoreResult<()>;
    /// Changes from now on.
    fn watch(&self) -> BoxStream<'static, SetEvent>;
    /// Requests that its generators are asked again.
    async fn refresh(&self, namespace: &str, name: &str) -> StoreResult<()>;
    /// Whether one of its generators is what `is_it` says, with the parameters of others filled in.
    async fn follows(&self, set: &ApplicationSet, is_it: IsFollowed) -> bool;
    /// The Applications of a set that need not exist.
    async fn generate(&self, set: &ApplicationSet) -> Result<Vec<Application>, ApiError>;
}

/// Tells whether a generator of a set follows something.
pub type IsFollowed = Arc<dyn Fn(Followed<'_>) -> bool + Send + Sync>;

/// Identifies a live object.
#[derive(Clone, Debug, Default)]
pub struct LiveRef {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

/// How to delete a live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Foreground,
    Background,
    /// Background, without a grace period.
    Force,
    Orphan,
}

/// Selects log lines.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    pub container: String,
    pub follow: bool,
    pub previous: bool,
    pub since_seconds: Option<i64>,
    pub since_time: Option<Timestamp>,
    pub tail_lines: Option<i64>,
}

/// The clusters that applications run in, as the controller and the live caches know them. `app` is
/// an Application.
/// What is compared: if both are there, they have the same name.
#[derive(Clone, Debug, Default)]
pub struct DiffPair {
    pub target: Option<Object>,
    pub live: Option<Object>,
}

#[async_trait]
pub trait Live: Send + Sync + 'static {
    /// The state last published by the controller; `None` before its first comparison.
    async fn managed_resources(
        &self,
        app: &Application,
    ) -> Result<Option<Arc<Vec<ResourceDiff>>>, ApiError>;
    async fn tree(&self, app: &Application) -> Result<Option<Arc<ApplicationTree>>, ApiError>;
    /// The tree now and after each change; an error is the last item.
    fn watch_tree(
        &self,
        app: &Application,
    ) -> BoxStream<'static, Result<Arc<ApplicationTree>, ApiError>>;
    async fn get(&self, app: &Application, object: &LiveRef) -> Result<Value, ApiError>;
    /// Whether objects of this kind are in namespaces.
    ///
    /// # Errors
    /// The cluster does not have the kind ([`Code::NotFound`]), or does not answer.
    async fn is_namespaced(&self, app: &Application, object: &LiveRef) -> Result<bool, ApiError>;
    async fn delete(
        &self,
        app: &Application,
        object: &LiveRef,
        how: Propagation,
    ) -> Result<(), ApiError>;
    /// Applies a patch of a Kubernetes patch type such as `application/merge-patch+json`.
    async fn patch(
        &self,
        app: &Application,
        object: &LiveRef,
        patch: &str,
        patch_type: &str,
    ) -> Result<Value, ApiError>;
    /// Applies a merge patch to the status subresource; false if the kind has none.
    async fn patch_status(
        &self,
        app: &Application,
        object: &LiveRef,
        patch: &Value,
    ) -> Result<bool, ApiError>;
    /// Creates an object; with `dry_run`, only checks whether it could be created.
    async fn create(
        &self,
        app: &Application,
        object: &Value,
        dry_run: bool,
    ) -> Result<(), ApiError>;
    /// The difference of each target to its live object, which the API server predicts by a dry run,
    /// and of a target or a live object alone. In the order of the pairs.
    async fn server_side_diff(
        &self,
        app: &Application,
        pairs: Vec<DiffPair>,
    ) -> Result<Vec<Diff>, ApiError>;
    async fn events(
        &self,
        app: &Application,
        namespace: &str,
        field_selector: &str,
    ) -> Result<EventList, ApiError>;
    /// Lines of one pod; an entry's `content` is one line.
    async fn logs(
        &self,
        app: &Application,
        pod: &LiveRef,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Result<LogEntry, ApiError>>, ApiError>;
    /// Runs a command on a terminal in a container of a pod.
    async fn shell(
        &self,
        app: &Application,
        pod: &LiveRef,
        container: &str,
        command: &str,
    ) -> Result<Shell, ApiError>;
    async fn facts(&self, app: &Application) -> Result<ClusterVersions, ApiError>;
    /// The cluster that the Application is deployed to, referenced by server or by name.
    ///
    /// # Errors
    /// Fails if the destination is not a known cluster.
    fn destination(&self, app: &Application) -> Result<Destination, ApiError>;
    /// The clusters available as destinations.
    fn destinations(&self) -> Vec<Destination>;
    /// What the controller knows of the cluster with this address; `None`: it has no part in it.
    async fn info(&self, server: &str) -> Option<ClusterInfo>;
    /// Connects to the cluster that this Secret describes, and returns its version: `v1.36.3`.
    async fn probe(&self, cluster: &SecretRecord) -> Result<String, ApiError>;
    /// Makes another token of the service account whose token this is, in the cluster that the
    /// Secret describes.
    async fn renew_token(&self, cluster: &SecretRecord, token: &str) -> Result<NewToken, ApiError>;
    /// Withdraws a token that `new` has replaced.
    async fn retire_token(
        &self,
        cluster: &SecretRecord,
        token: &str,
        new: &NewToken,
    ) -> Result<(), ApiError>;
}

/// A service account's new token.
pub struct NewToken {
    /// The Secret that holds it, in the account's cluster.
    pub secret: String,
    pub token: String,
}

/// What to render.
pub use tiphys_sources::SourceRequest as RenderRequest;

/// The cluster's versions, as passed to templates.
#[derive(Clone, Debug, Default)]
pub struct ClusterVersions {
    pub kube_version: String,
    pub api_versions: Arc<[String]>,
}

/// The rendered objects.
#[derive(Clone, Debug, Default)]
pub struct RenderedManifests {
    pub revision: String,
    pub source_type: String,
    pub objects: Vec<Value>,
    /// Messages about files that could not be read.
    pub errors: Vec<String>,
}

/// Why a source could not be rendered.
#[derive(Clone, Debug)]
pub enum NotRendered {
    /// A glob of values files matches nothing. That may change without a change of the
    /// Application.
    AwaitsValues(ApiError),
    Failed(ApiError),
}

impl From<NotRendered> for ApiError {
    fn from(why: NotRendered) -> Self {
        match why {
            NotRendered::AwaitsValues(e) | NotRendered::Failed(e) => e,
        }
    }
}

/// Access to Git. Error messages are written for the user.
#[async_trait]
pub trait Sources: Send + Sync + 'static {
    /// The commit or chart version of a source at this revision, and how to show it: `HEAD (sha)`,
    /// or the SHA itself. Contacts the remote.
    async fn resolve(
        &self,
        repository: &Repository,
        source: &ApplicationSource,
        revision: &str,
    ) -> Result<(String, String), ApiError>;
    async fn render(&self, request: RenderRequest) -> Result<RenderedManifests, NotRendered>;
    /// The same of the files of an archive (tar, packed with gzip), with its SHA-256.
    async fn render_files(
        &self,
        request: RenderRequest,
        files: (File, &str),
    ) -> Result<RenderedManifests, ApiError>;
    /// The parameters that can be set in a source.
    async fn details(&self, request: RenderRequest) -> Result<RepoAppDetailsResponse, ApiError>;
    /// The folders at this revision that a tool renders, with its name; the project's demands on
    /// signatures apply.
    async fn tools(
        &self,
        repository: &Repository,
        revision: &str,
        project: &str,
    ) -> Result<BTreeMap<String, String>, ApiError>;
    /// The names of the plugins that render.
    async fn plugins(&self) -> Result<Vec<String>, ApiError>;
    async fn test(&self, repository: &Repository) -> Result<(), ApiError>;
    /// Branches and tags.
    async fn refs(&self, repository: &Repository) -> Result<(Vec<String>, Vec<String>), ApiError>;
    /// Of a commit, with what the project demands of its signature.
    async fn metadata(
        &self,
        repository: &Repository,
        revision: &str,
        project: &AppProject,
    ) -> Result<RevisionMetadata, ApiError>;
    /// What a chart says about itself.
    async fn chart_details(
        &self,
        repository: &Repository,
        source: &ApplicationSource,
        version: &str,
    ) -> Result<ChartDetails, ApiError>;
    /// The charts of a repository, with their versions.
    async fn charts(&self, repository: &Repository) -> Result<Vec<HelmChart>, ApiError>;
    /// The tags of a repository in a registry.
    async fn oci_tags(&self, repository: &Repository) -> Result<Vec<String>, ApiError>;
    /// What the author of an artifact says about it.
    async fn oci_metadata(
        &self,
        repository: &Repository,
        revision: &str,
    ) -> Result<OCIMetadata, ApiError>;
}

/// Ended sessions, as replicas and other servers of the installation share them.
#[async_trait]
pub trait SharedSessions: Send + Sync + 'static {
    /// Whether the token with this id was logged out somewhere. From memory.
    fn is_revoked(&self, id: &str) -> bool;
    /// Tells the others that the token with this id has ended; they may forget it after `seconds`.
    ///
    /// # Errors
    /// Why they could not be told.
    async fn revoke(&self, id: &str, seconds: i64) -> Result<(), ApiError>;
}

/// The chart catalogue.
#[async_trait]
pub trait Catalog: Send + Sync + 'static {
    /// What is known of charts. Its functions block. `None`: this installation has none.
    fn store(&self) -> Option<Arc<tiphys_catalog::Store>>;

    /// Why there is no store yet, where there will be one.
    fn waits(&self) -> Option<String> {
        None
    }

    /// What fetches archives of a repository, with its credentials. `of` is how its charts call it.
    async fn visitor(&self, repository: &RepoId, of: &RepoRef)
    -> Result<CatalogSync, CatalogError>;

    /// Makes a repository.
    async fn create(&self, wanted: &NewRepository) -> Result<(), CatalogError>;

    /// Removes a repository, and what is known of its charts.
    async fn delete(&self, repository: &RepoId) -> Result<(), CatalogError>;

    /// Asks for a sync of a repository.
    async fn resync(&self, repository: &RepoId) -> Result<(), CatalogError>;
}

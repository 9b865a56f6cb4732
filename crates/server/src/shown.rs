//! Removes secrets from replies. Every reply passes through [`Shown::conceal`] before it is
//! encoded, in either encoding: a message type that is not listed here cannot be a reply. Handlers
//! that encode their replies themselves do it for each part.
//!
//! Main trait: [`Shown`]. Objects of clusters are masked where they are read
//! (`services::application::live::shown`), and errors where they are created
//! ([`ApiError`](crate::ApiError)); this module covers the URLs and messages in our own records.

use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_api::{
    AppProject, Application, ApplicationSet,
    access::{hide_password, hide_passwords, without_passwords},
    application::{ApplicationList, ApplicationSpec, ApplicationWatchEvent},
    application_set::{ApplicationSetList, ApplicationSetTree, ApplicationSetWatchEvent},
    cluster::{Cluster, ClusterList, ConnectionState},
    meta::ObjectMeta,
    operation::{Operation, SyncOperation},
    project::AppProjectList,
    repository::{
        ChartDetails, OCIMetadata, RepoCreds, RepoCredsList, Repository, RepositoryCertificateList,
        RepositoryList, RevisionMetadata,
    },
    resource::ApplicationTree,
    rpc::{
        account, application as app, application_set as set, catalog, cluster, events::EventList,
        gpgkey, kubeapps, notification, project, repocreds, repository as repo, session, settings,
        version,
    },
    source::{ApplicationSource, SourceHydrator},
};
use tiphys_apimachinery::Object;
use tiphys_engine::diff;

/// A reply.
pub trait Shown {
    /// Removes secrets from the reply.
    fn conceal(&mut self) {}
}

macro_rules! without_secrets {
    ($($type:ty),* $(,)?) => {$(impl Shown for $type {})*};
}

without_secrets!(
    AppProject,
    AppProjectList,
    ApplicationSetTree,
    ApplicationTree,
    ChartDetails,
    OCIMetadata,
    RepositoryCertificateList,
    RevisionMetadata,
    account::Account,
    account::AccountsList,
    account::CanIResponse,
    account::CreateTokenResponse,
    account::EmptyResponse,
    account::UpdatePasswordResponse,
    catalog::ChartRepositoryList,
    catalog::ChartResponse,
    catalog::EmptyResponse,
    catalog::SearchResponse,
    catalog::UpdateList,
    kubeapps::DetailResponse,
    kubeapps::InstalledDetailResponse,
    kubeapps::InstalledResponse,
    kubeapps::PluginsResponse,
    kubeapps::RepositoriesResponse,
    kubeapps::RepositoryResponse,
    kubeapps::ResourceRefsResponse,
    kubeapps::SummariesResponse,
    kubeapps::VersionsResponse,
    cluster::ClusterResponse,
    app::ApplicationResourceResponse,
    app::ApplicationResponse,
    app::ApplicationSyncWindowsResponse,
    app::LinksResponse,
    app::LogEntry,
    notification::NamedList,
    app::ApplicationServerSideDiffResponse,
    app::ManagedResourcesResponse,
    app::OperationTerminateResponse,
    app::ResourceActionsListResponse,
    gpgkey::GnuPGPublicKey,
    gpgkey::GnuPGPublicKeyCreateResponse,
    gpgkey::GnuPGPublicKeyList,
    gpgkey::GnuPGPublicKeyResponse,
    project::EmptyResponse,
    project::GlobalProjectsResponse,
    project::ProjectTokenResponse,
    project::SyncWindowsResponse,
    repocreds::RepoCredsResponse,
    repo::HelmChartsResponse,
    repo::ManifestResponse,
    repo::Refs,
    repo::RepoAppDetailsResponse,
    repo::RepoAppsResponse,
    repo::RepoResponse,
    session::GetUserInfoResponse,
    session::SessionResponse,
    settings::Settings,
    set::ApplicationSetResponse,
    settings::SettingsPluginsResponse,
    version::VersionMessage,
);

fn hide(url: &mut String) {
    if let Some(hidden) = hide_password(url) {
        *url = hidden;
    }
}

fn tell(message: &mut String) {
    if message.contains(['@', '?']) {
        *message = without_passwords(message);
    }
}

/// Hides passwords in a text that clients may send back: the mark tells that one is meant.
fn mark(text: &mut String) {
    if text.contains(['@', '?']) {
        *text = hide_passwords(text);
    }
}

impl Shown for ConnectionState {
    fn conceal(&mut self) {
        tell(&mut self.message);
    }
}

impl Shown for EventList {
    fn conceal(&mut self) {
        self.items
            .iter_mut()
            .for_each(|event| tell(&mut event.message));
    }
}

impl Shown for Repository {
    fn conceal(&mut self) {
        hide(&mut self.repo);
        hide(&mut self.proxy);
        self.connection_state.conceal();
    }
}

impl Shown for RepoCreds {
    fn conceal(&mut self) {
        hide(&mut self.url);
        hide(&mut self.proxy);
    }
}

impl Shown for RepoCredsList {
    fn conceal(&mut self) {
        self.items.iter_mut().for_each(Shown::conceal);
    }
}

impl Shown for RepositoryList {
    fn conceal(&mut self) {
        self.items.iter_mut().for_each(Shown::conceal);
    }
}

impl Shown for Cluster {
    fn conceal(&mut self) {
        hide(&mut self.server);
        hide(&mut self.name);
        self.connection_state.conceal();
        self.info.connection_state.conceal();
    }
}

impl Shown for ClusterList {
    fn conceal(&mut self) {
        self.items.iter_mut().for_each(Shown::conceal);
    }
}

impl Shown for project::DetailedProjectsResponse {
    fn conceal(&mut self) {
        self.repositories.iter_mut().for_each(Shown::conceal);
        self.clusters.iter_mut().for_each(Shown::conceal);
    }
}

impl Shown for ApplicationSpec {
    fn conceal(&mut self) {
        self.source
            .iter_mut()
            .chain(&mut self.sources)
            .for_each(Shown::conceal);
        if let Some(hydrator) = &mut self.source_hydrator {
            hydrator.conceal();
        }
        hide(&mut self.destination.server);
    }
}

impl Shown for ApplicationSource {
    fn conceal(&mut self) {
        self.urls_mut().for_each(hide);
    }
}

fn has_login(source: &ApplicationSource) -> bool {
    source.urls().any(|url| url.contains(['@', '?']))
}

/// Whether an annotation may have a URL with a login, such as that of the last manifest that was
/// applied.
fn annotations_have_login(metadata: &ObjectMeta) -> bool {
    let mut texts = metadata.annotations.values();
    texts.any(|text| text.contains("://") && text.contains(['@', '?']))
}

impl Shown for SourceHydrator {
    fn conceal(&mut self) {
        hide(&mut self.dry_source.repo_url);
        hide(&mut self.sync_source.repo_url);
    }
}

impl Shown for ApplicationWatchEvent {
    fn conceal(&mut self) {
        self.application.conceal();
    }
}

impl Shown for ApplicationList {
    fn conceal(&mut self) {
        self.items.iter_mut().for_each(Shown::conceal);
    }
}

impl Shown for Application {
    fn conceal(&mut self) {
        if annotations_have_login(&self.metadata) {
            self.metadata.annotations.values_mut().for_each(mark);
        }
        // Parts are shared with the index; most contain no secrets and stay shared.
        if spec_has_login(&self.spec) {
            self.spec.conceal();
        }
        if let Some(operation) = &mut self.operation {
            conceal_operation(operation);
        }
        if !status_may_hold_secrets(&self.status) {
            return;
        }
        let status = &mut *self.status;
        let hydrator = &mut status.source_hydrator;
        if let Some(operation) = &mut hydrator.current_operation {
            operation.source_hydrator.conceal();
            tell(&mut operation.message);
        }
        if let Some(operation) = &mut hydrator.last_successful_operation {
            operation.source_hydrator.conceal();
        }
        let compared = &mut *status.sync.compared_to;
        compared.source.conceal();
        compared.sources.iter_mut().for_each(Shown::conceal);
        for entry in &mut status.history {
            entry.source.conceal();
            entry.sources.iter_mut().for_each(Shown::conceal);
        }
        status
            .conditions
            .iter_mut()
            .for_each(|condition| tell(&mut condition.message));
        if let Some(state) = &mut status.operation_state {
            let state = &mut **state;
            tell(&mut state.message);
            conceal_operation(&mut state.operation);
            if let Some(result) = &mut state.sync_result {
                result.source.conceal();
                result.sources.iter_mut().for_each(Shown::conceal);
                result
                    .resources
                    .iter_mut()
                    .for_each(|resource| tell(&mut resource.message));
            }
        }
    }
}

/// Any text of a set may be a URL, such as one in an element of a list.
impl Shown for ApplicationSet {
    fn conceal(&mut self) {
        let Ok(mut spec) = serde_json::to_value(&self.spec) else {
            return;
        };
        if conceal_texts(&mut spec)
            && let Ok(spec) = serde_json::from_value(spec)
        {
            self.spec = spec;
        }
        if annotations_have_login(&self.metadata) {
            self.metadata.annotations.values_mut().for_each(mark);
        }
        let conditions = &mut self.status.conditions;
        conditions
            .iter_mut()
            .for_each(|condition| tell(&mut condition.message));
        tell(&mut self.status.health.message);
    }
}

/// Whether something was concealed.
fn conceal_texts(json: &mut Value) -> bool {
    match json {
        Value::String(text) if text.contains(['@', '?']) => {
            let before = text.clone();
            mark(text);
            *text != before
        }
        Value::Array(items) => {
            let concealed: Vec<bool> = items.iter_mut().map(conceal_texts).collect();
            concealed.contains(&true)
        }
        Value::Object(members) => {
            let concealed: Vec<bool> = members.values_mut().map(conceal_texts).collect();
            concealed.contains(&true)
        }
        _ => false,
    }
}

impl Shown for ApplicationSetList {
    fn conceal(&mut self) {
        self.items.iter_mut().for_each(Shown::conceal);
    }
}

impl Shown for ApplicationSetWatchEvent {
    fn conceal(&mut self) {
        self.application_set.conceal();
    }
}

impl Shown for set::ApplicationSetGenerateResponse {
    fn conceal(&mut self) {
        self.applications.iter_mut().for_each(Shown::conceal);
    }
}

fn spec_has_login(spec: &ApplicationSpec) -> bool {
    let dry = spec.source_hydrator.iter().map(|h| &h.dry_source.repo_url);
    let sync = spec.source_hydrator.iter().map(|h| &h.sync_source.repo_url);
    let mut urls = dry.chain(sync).chain([&spec.destination.server]);
    urls.any(|url| url.contains(['@', '?']))
        || spec.source.iter().chain(&spec.sources).any(has_login)
}

fn status_may_hold_secrets(status: &tiphys_api::status::ApplicationStatus) -> bool {
    let login = has_login;
    let may_tell = |message: &str| message.contains(['@', '?']);
    let state = status.operation_state.as_ref();
    let sync = state.and_then(|s| s.operation.sync.as_ref());
    let result = state.and_then(|s| s.sync_result.as_ref());
    let compared = &status.sync.compared_to;
    let in_history = status
        .history
        .iter()
        .any(|h| login(&h.source) || h.sources.iter().any(login));
    let hydrated = &status.source_hydrator;
    in_history
        || hydrated.current_operation.is_some()
        || hydrated.last_successful_operation.is_some()
        || login(&compared.source)
        || compared.sources.iter().any(login)
        || status.conditions.iter().any(|c| may_tell(&c.message))
        || state.is_some_and(|s| may_tell(&s.message))
        || sync.is_some_and(|s| {
            !s.manifests.is_empty() || s.source.iter().chain(&s.sources).any(login)
        })
        || result.is_some_and(|r| {
            login(&r.source)
                || r.sources.iter().any(login)
                || r.resources.iter().any(|r| may_tell(&r.message))
        })
}

fn conceal_operation(operation: &mut Operation) {
    if let Some(SyncOperation {
        source,
        sources,
        manifests,
        ..
    }) = &mut operation.sync
    {
        source.iter_mut().chain(sources).for_each(Shown::conceal);
        manifests.iter_mut().for_each(conceal_manifest);
    }
}

/// Masks a manifest that a user supplied in place of those in Git.
fn conceal_manifest(manifest: &mut String) {
    match serde_json::from_str::<Object>(manifest) {
        Ok(mut object) => {
            diff::shown(&mut object, &BTreeSet::new());
            *manifest = Value::Object(object.0).to_string();
        }
        // Its content is unknown, so mask all of it.
        Err(_) => "++++++++".clone_into(manifest),
    }
}

impl Shown for catalog::InstallResponse {
    fn conceal(&mut self) {
        self.application.conceal();
    }
}

impl Shown for catalog::RollbackResponse {
    fn conceal(&mut self) {
        self.application.conceal();
    }
}

impl Shown for catalog::UpgradeResponse {
    fn conceal(&mut self) {
        self.application.conceal();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SECRET: &str = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"a":"CANARY"}}"#;

    fn shown<T: Shown + serde::de::DeserializeOwned + serde::Serialize>(value: Value) -> String {
        let mut value: T = serde_json::from_value(value).expect("a message");
        value.conceal();
        serde_json::to_string(&value).expect("JSON")
    }

    #[test]
    fn no_reply_has_a_password() {
        let source = json!({"repoURL": "https://u:CANARY@h/r.git", "path": "p"});
        let scp = json!({"repoURL": "u:CANARY@h:r.git", "path": "p"});
        let operation = json!({"sync": {"source": source, "sources": [scp], "manifests": [SECRET, "kind: Secret\nstringData: {a: CANARY}"]}});
        let told = "cannot reach https://u:CANARY@h/r.git or u:CANARY@h:r";
        let app = json!({
            "metadata": {"name": "a"}, "operation": operation,
            "spec": {"source": source, "sources": [scp], "destination": {"server": "https://u:CANARY@h"}},
            "status": {
                "sync": {"comparedTo": {"source": source, "sources": [scp]}},
                "history": [{"source": source, "sources": [scp]}],
                "conditions": [{"type": "ComparisonError", "message": told}],
                "operationState": {"operation": operation, "message": told, "phase": "Error",
                    "syncResult": {"source": source, "sources": [scp], "resources": [{"message": told}]}}
            }
        });
        let repository = json!({"repo": "https://u:CANARY@h/r.git", "proxy": "http://p:CANARY@proxy:3128", "connectionState": {"message": told}});
        let cluster = json!({"server": "https://u:CANARY@h", "name": "https://u:CANARY@h", "connectionState": {"message": told}, "info": {"connectionState": {"message": told}}});
        let texts = [
            shown::<Application>(app.clone()),
            shown::<ApplicationList>(json!({"items": [app]})),
            shown::<ApplicationWatchEvent>(json!({"type": "ADDED", "application": app})),
            shown::<ApplicationSpec>(app["spec"].clone()),
            shown::<ApplicationSet>(
                json!({"spec": {"template": {"spec": app["spec"]}, "generators": [
                {"git": source}, {"list": {"elements": [{"url": source["repoURL"]}]}},
            ]}, "status": {"conditions": [{"type": "ErrorOccurred", "message": told}]}}),
            ),
            shown::<Repository>(repository.clone()),
            shown::<RepositoryList>(json!({"items": [repository]})),
            shown::<RepoCreds>(json!({"url": "https://u:CANARY@h"})),
            shown::<RepoCredsList>(
                json!({"items": [{"url": "https://u:CANARY@h", "proxy": "http://p:CANARY@proxy"}]}),
            ),
            shown::<Cluster>(cluster.clone()),
            shown::<ClusterList>(json!({"items": [cluster]})),
            shown::<project::DetailedProjectsResponse>(
                json!({"repositories": [repository], "clusters": [cluster]}),
            ),
        ];
        for text in texts {
            assert!(!text.contains("CANARY"), "{text}");
        }
        let error = crate::ApiError::plain(told);
        assert!(
            !format!(
                "{error} {} {}",
                error.json(),
                error.clone().context("doing")
            )
            .contains("CANARY")
        );
    }

    #[test]
    fn what_has_no_password_stays_as_it_is() {
        let app = json!({"metadata": {"name": "a"}, "spec": {"source": {"repoURL": "git@h:r.git", "path": "p"}, "destination": {}}});
        let before: Application = serde_json::from_value(app.clone()).expect("an Application");
        let mut after = before.clone();
        after.conceal();
        assert_eq!(before, after);
    }
}

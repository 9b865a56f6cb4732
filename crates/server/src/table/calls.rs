//! The rows: all RPCs of Argo CD's public services, with their REST bindings.

use super::{missing, public, stream, unary};
use crate::{
    server::State,
    services::{account, application, cluster, project, repository, session, settings, version},
};
use tiphys_rpc::{Call, table::Session};

pub fn all() -> Vec<Call<State>> {
    let parts = [
        small(),
        applications(),
        running_applications(),
        application_sets(),
        projects(),
        repositories(),
        credentials(),
        clusters(),
        trust(),
    ];
    parts.into_iter().flatten().collect()
}

fn small() -> Vec<Call<State>> {
    vec![
        public(unary(
            "version.VersionService/Version",
            &["GET /api/version"],
            version::version,
        )),
        public(unary(
            "session.SessionService/GetUserInfo",
            &["GET /api/v1/session/userinfo"],
            session::user_info,
        )),
        public(unary(
            "session.SessionService/Create",
            &["POST /api/v1/session *"],
            session::create,
        ))
        .with_session(Session::Begins),
        public(unary(
            "session.SessionService/Delete",
            &["DELETE /api/v1/session"],
            session::delete,
        ))
        .with_session(Session::Ends),
        public(unary(
            "cluster.SettingsService/Get",
            &["GET /api/v1/settings"],
            settings::get,
        )),
        unary(
            "cluster.SettingsService/GetPlugins",
            &["GET /api/v1/settings/plugins"],
            settings::plugins,
        ),
        unary(
            "account.AccountService/CanI",
            &["GET /api/v1/account/can-i/{resource}/{action}/{subresource=**}"],
            account::can_i,
        ),
        unary(
            "account.AccountService/UpdatePassword",
            &["PUT /api/v1/account/password *"],
            account::update_password,
        ),
        unary(
            "account.AccountService/ListAccounts",
            &["GET /api/v1/account"],
            account::list,
        ),
        unary(
            "account.AccountService/GetAccount",
            &["GET /api/v1/account/{name}"],
            account::get,
        ),
        missing(
            "account.AccountService/CreateToken",
            &["POST /api/v1/account/{name}/token *"],
        ),
        missing(
            "account.AccountService/DeleteToken",
            &["DELETE /api/v1/account/{name}/token/{id}"],
        ),
    ]
}

fn applications() -> Vec<Call<State>> {
    vec![
        unary(
            "application.ApplicationService/List",
            &["GET /api/v1/applications"],
            application::read::list,
        ),
        unary(
            "application.ApplicationService/ListResourceEvents",
            &["GET /api/v1/applications/{name}/events"],
            application::live::events,
        ),
        stream(
            "application.ApplicationService/Watch",
            &["GET /api/v1/stream/applications"],
            application::watch::watch,
        ),
        unary(
            "application.ApplicationService/Create",
            &["POST /api/v1/applications application"],
            application::write::create,
        ),
        unary(
            "application.ApplicationService/Get",
            &["GET /api/v1/applications/{name}"],
            application::read::get,
        ),
        unary(
            "application.ApplicationService/GetApplicationSyncWindows",
            &["GET /api/v1/applications/{name}/syncwindows"],
            application::read::windows,
        ),
        unary(
            "application.ApplicationService/RevisionMetadata",
            &["GET /api/v1/applications/{name}/revisions/{revision}/metadata"],
            application::read::revision_metadata,
        ),
        missing(
            "application.ApplicationService/RevisionChartDetails",
            &["GET /api/v1/applications/{name}/revisions/{revision}/chartdetails"],
        ),
        missing(
            "application.ApplicationService/GetOCIMetadata",
            &["GET /api/v1/applications/{name}/revisions/{revision}/ocimetadata"],
        ),
        unary(
            "application.ApplicationService/GetManifests",
            &["GET /api/v1/applications/{name}/manifests"],
            application::manifests::get,
        ),
        missing(
            "application.ApplicationService/GetManifestsWithFiles",
            &["POST /api/v1/applications/manifestsWithFiles *"],
        ),
        unary(
            "application.ApplicationService/Update",
            &["PUT /api/v1/applications/{application.metadata.name} application"],
            application::write::update,
        ),
        unary(
            "application.ApplicationService/UpdateSpec",
            &["PUT /api/v1/applications/{name}/spec spec"],
            application::write::update_spec,
        ),
        unary(
            "application.ApplicationService/Patch",
            &["PATCH /api/v1/applications/{name} *"],
            application::write::patch,
        ),
        unary(
            "application.ApplicationService/Delete",
            &["DELETE /api/v1/applications/{name}"],
            application::delete::delete,
        ),
        unary(
            "application.ApplicationService/Sync",
            &["POST /api/v1/applications/{name}/sync *"],
            application::sync::sync,
        ),
    ]
}

/// What runs of an Application: its resources, and operations that are under way.
fn running_applications() -> Vec<Call<State>> {
    vec![
        unary(
            "application.ApplicationService/ManagedResources",
            &["GET /api/v1/applications/{applicationName}/managed-resources"],
            application::live::managed_resources,
        ),
        missing(
            "application.ApplicationService/ServerSideDiff",
            &["GET /api/v1/applications/{appName}/server-side-diff"],
        ),
        unary(
            "application.ApplicationService/ResourceTree",
            &["GET /api/v1/applications/{applicationName}/resource-tree"],
            application::live::resource_tree,
        ),
        stream(
            "application.ApplicationService/WatchResourceTree",
            &["GET /api/v1/stream/applications/{applicationName}/resource-tree"],
            application::live::watch_resource_tree,
        ),
        unary(
            "application.ApplicationService/Rollback",
            &["POST /api/v1/applications/{name}/rollback *"],
            application::sync::rollback,
        ),
        unary(
            "application.ApplicationService/TerminateOperation",
            &["DELETE /api/v1/applications/{name}/operation"],
            application::sync::terminate,
        ),
        unary(
            "application.ApplicationService/GetResource",
            &["GET /api/v1/applications/{name}/resource"],
            application::live::get_resource,
        ),
        unary(
            "application.ApplicationService/PatchResource",
            &["POST /api/v1/applications/{name}/resource patch"],
            application::live::patch_resource,
        ),
        unary(
            "application.ApplicationService/ListResourceActions",
            &["GET /api/v1/applications/{name}/resource/actions"],
            application::actions::list,
        ),
        unary(
            "application.ApplicationService/RunResourceAction",
            &["POST /api/v1/applications/{name}/resource/actions action"],
            application::actions::run,
        ),
        unary(
            "application.ApplicationService/RunResourceActionV2",
            &["POST /api/v1/applications/{name}/resource/actions/v2 *"],
            application::actions::run_v2,
        ),
        unary(
            "application.ApplicationService/DeleteResource",
            &["DELETE /api/v1/applications/{name}/resource"],
            application::live::delete_resource,
        ),
        stream(
            "application.ApplicationService/PodLogs",
            &[
                "GET /api/v1/applications/{name}/pods/{podName}/logs",
                "GET /api/v1/applications/{name}/logs",
            ],
            application::logs::pod_logs,
        ),
        unary(
            "application.ApplicationService/ListLinks",
            &["GET /api/v1/applications/{name}/links"],
            application::read::links,
        ),
        unary(
            "application.ApplicationService/ListResourceLinks",
            &["GET /api/v1/applications/{name}/resource/links"],
            application::live::resource_links,
        ),
    ]
}

fn application_sets() -> Vec<Call<State>> {
    vec![
        missing(
            "applicationset.ApplicationSetService/Get",
            &["GET /api/v1/applicationsets/{name}"],
        ),
        missing(
            "applicationset.ApplicationSetService/Generate",
            &["POST /api/v1/applicationsets/generate *"],
        ),
        missing(
            "applicationset.ApplicationSetService/List",
            &["GET /api/v1/applicationsets"],
        ),
        missing(
            "applicationset.ApplicationSetService/Create",
            &["POST /api/v1/applicationsets applicationset"],
        ),
        missing(
            "applicationset.ApplicationSetService/Delete",
            &["DELETE /api/v1/applicationsets/{name}"],
        ),
        missing(
            "applicationset.ApplicationSetService/ResourceTree",
            &["GET /api/v1/applicationsets/{name}/resource-tree"],
        ),
        missing(
            "applicationset.ApplicationSetService/ListResourceEvents",
            &["GET /api/v1/applicationsets/{name}/events"],
        ),
        missing(
            "applicationset.ApplicationSetService/Watch",
            &["GET /api/v1/stream/applicationsets"],
        ),
        missing(
            "notification.NotificationService/ListTriggers",
            &["GET /api/v1/notifications/triggers"],
        ),
        missing(
            "notification.NotificationService/ListServices",
            &["GET /api/v1/notifications/services"],
        ),
        missing(
            "notification.NotificationService/ListTemplates",
            &["GET /api/v1/notifications/templates"],
        ),
    ]
}

fn projects() -> Vec<Call<State>> {
    vec![
        missing(
            "project.ProjectService/CreateToken",
            &["POST /api/v1/projects/{project}/roles/{role}/token *"],
        ),
        missing(
            "project.ProjectService/DeleteToken",
            &["DELETE /api/v1/projects/{project}/roles/{role}/token/{iat}"],
        ),
        unary(
            "project.ProjectService/Create",
            &["POST /api/v1/projects *"],
            project::create,
        ),
        unary(
            "project.ProjectService/List",
            &["GET /api/v1/projects"],
            project::list,
        ),
        unary(
            "project.ProjectService/GetDetailedProject",
            &["GET /api/v1/projects/{name}/detailed"],
            project::detailed,
        ),
        unary(
            "project.ProjectService/Get",
            &["GET /api/v1/projects/{name}"],
            project::get,
        ),
        unary(
            "project.ProjectService/GetGlobalProjects",
            &["GET /api/v1/projects/{name}/globalprojects"],
            project::globals,
        ),
        unary(
            "project.ProjectService/Update",
            &["PUT /api/v1/projects/{project.metadata.name} *"],
            project::update,
        ),
        unary(
            "project.ProjectService/Delete",
            &["DELETE /api/v1/projects/{name}"],
            project::delete,
        ),
        unary(
            "project.ProjectService/ListEvents",
            &["GET /api/v1/projects/{name}/events"],
            project::events,
        ),
        unary(
            "project.ProjectService/GetSyncWindowsState",
            &["GET /api/v1/projects/{name}/syncwindows"],
            project::windows,
        ),
        unary(
            "project.ProjectService/ListLinks",
            &["GET /api/v1/projects/{name}/links"],
            project::links,
        ),
    ]
}

fn repositories() -> Vec<Call<State>> {
    vec![
        unary(
            "repository.RepositoryService/List",
            &["GET /api/v1/repositories"],
            repository::list,
        ),
        unary(
            "repository.RepositoryService/Get",
            &["GET /api/v1/repositories/{repo}"],
            repository::get,
        ),
        missing(
            "repository.RepositoryService/GetWrite",
            &["GET /api/v1/write-repositories/{repo}"],
        ),
        unary(
            "repository.RepositoryService/ListRepositories",
            &["GET /api/v1/repositories"],
            repository::list,
        ),
        missing(
            "repository.RepositoryService/ListWriteRepositories",
            &["GET /api/v1/write-repositories"],
        ),
        unary(
            "repository.RepositoryService/ListRefs",
            &["GET /api/v1/repositories/{repo}/refs"],
            repository::refs,
        ),
        missing(
            "repository.RepositoryService/ListOCITags",
            &["GET /api/v1/repositories/{repo}/oci-tags"],
        ),
        missing(
            "repository.RepositoryService/ListApps",
            &["GET /api/v1/repositories/{repo}/apps"],
        ),
        unary(
            "repository.RepositoryService/GetAppDetails",
            &["POST /api/v1/repositories/{source.repoURL}/appdetails *"],
            repository::app_details,
        ),
        missing(
            "repository.RepositoryService/GetHelmCharts",
            &["GET /api/v1/repositories/{repo}/helmcharts"],
        ),
        unary(
            "repository.RepositoryService/Create",
            &["POST /api/v1/repositories repo"],
            repository::create,
        ),
        unary(
            "repository.RepositoryService/CreateRepository",
            &["POST /api/v1/repositories repo"],
            repository::create,
        ),
        missing(
            "repository.RepositoryService/CreateWriteRepository",
            &["POST /api/v1/write-repositories repo"],
        ),
        unary(
            "repository.RepositoryService/Update",
            &["PUT /api/v1/repositories/{repo.repo} repo"],
            repository::update,
        ),
        unary(
            "repository.RepositoryService/UpdateRepository",
            &["PUT /api/v1/repositories/{repo.repo} repo"],
            repository::update,
        ),
        missing(
            "repository.RepositoryService/UpdateWriteRepository",
            &["PUT /api/v1/write-repositories/{repo.repo} repo"],
        ),
        unary(
            "repository.RepositoryService/Delete",
            &["DELETE /api/v1/repositories/{repo}"],
            repository::delete,
        ),
        unary(
            "repository.RepositoryService/DeleteRepository",
            &["DELETE /api/v1/repositories/{repo}"],
            repository::delete,
        ),
        missing(
            "repository.RepositoryService/DeleteWriteRepository",
            &["DELETE /api/v1/write-repositories/{repo}"],
        ),
        unary(
            "repository.RepositoryService/ValidateAccess",
            &["POST /api/v1/repositories/{repo}/validate repo"],
            repository::validate_access,
        ),
        missing(
            "repository.RepositoryService/ValidateWriteAccess",
            &["POST /api/v1/write-repositories/{repo}/validate repo"],
        ),
    ]
}

fn credentials() -> Vec<Call<State>> {
    vec![
        missing(
            "repocreds.RepoCredsService/ListRepositoryCredentials",
            &["GET /api/v1/repocreds"],
        ),
        missing(
            "repocreds.RepoCredsService/ListWriteRepositoryCredentials",
            &["GET /api/v1/write-repocreds"],
        ),
        missing(
            "repocreds.RepoCredsService/CreateRepositoryCredentials",
            &["POST /api/v1/repocreds creds"],
        ),
        missing(
            "repocreds.RepoCredsService/CreateWriteRepositoryCredentials",
            &["POST /api/v1/write-repocreds creds"],
        ),
        missing(
            "repocreds.RepoCredsService/UpdateRepositoryCredentials",
            &["PUT /api/v1/repocreds/{creds.url} creds"],
        ),
        missing(
            "repocreds.RepoCredsService/UpdateWriteRepositoryCredentials",
            &["PUT /api/v1/write-repocreds/{creds.url} creds"],
        ),
        missing(
            "repocreds.RepoCredsService/DeleteRepositoryCredentials",
            &["DELETE /api/v1/repocreds/{url}"],
        ),
        missing(
            "repocreds.RepoCredsService/DeleteWriteRepositoryCredentials",
            &["DELETE /api/v1/write-repocreds/{url}"],
        ),
    ]
}

fn clusters() -> Vec<Call<State>> {
    vec![
        unary(
            "cluster.ClusterService/List",
            &["GET /api/v1/clusters"],
            cluster::list,
        ),
        missing(
            "cluster.ClusterService/Create",
            &["POST /api/v1/clusters cluster"],
        ),
        unary(
            "cluster.ClusterService/Get",
            &["GET /api/v1/clusters/{id.value}"],
            cluster::get,
        ),
        missing(
            "cluster.ClusterService/Update",
            &["PUT /api/v1/clusters/{id.value} cluster"],
        ),
        missing(
            "cluster.ClusterService/Delete",
            &["DELETE /api/v1/clusters/{id.value}"],
        ),
        missing(
            "cluster.ClusterService/RotateAuth",
            &["POST /api/v1/clusters/{id.value}/rotate-auth"],
        ),
        missing(
            "cluster.ClusterService/InvalidateCache",
            &["POST /api/v1/clusters/{id.value}/invalidate-cache"],
        ),
    ]
}

fn trust() -> Vec<Call<State>> {
    vec![
        missing(
            "certificate.CertificateService/ListCertificates",
            &["GET /api/v1/certificates"],
        ),
        missing(
            "certificate.CertificateService/CreateCertificate",
            &["POST /api/v1/certificates certificates"],
        ),
        missing(
            "certificate.CertificateService/DeleteCertificate",
            &["DELETE /api/v1/certificates"],
        ),
        missing("gpgkey.GPGKeyService/List", &["GET /api/v1/gpgkeys"]),
        missing("gpgkey.GPGKeyService/Get", &["GET /api/v1/gpgkeys/{keyID}"]),
        missing(
            "gpgkey.GPGKeyService/Create",
            &["POST /api/v1/gpgkeys publickey"],
        ),
        missing("gpgkey.GPGKeyService/Delete", &["DELETE /api/v1/gpgkeys"]),
    ]
}

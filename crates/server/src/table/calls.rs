//! The rows: all RPCs of Argo CD's public services, with their REST bindings and the permissions
//! that Argo CD requires, in its order. Rows without a handler list the permissions for a future
//! implementation.

use super::{charts, client_stream, encoded, hydrating, public, signed_in, stream, unary};
use crate::{
    access::{
        Access,
        Action::*,
        Ask,
        CredentialUse::{Read, Write},
        Resource::*,
    },
    services::{
        account, application, application_set, certificate, cluster, gpgkey, notification, project,
        project_tokens, repocreds, repository, session, settings, version,
    },
    state::State,
};
use tiphys_rpc::{Call, table::Session};

pub fn all() -> Vec<Call<State>> {
    let parts = [
        small(),
        applications(),
        changing_applications(),
        running_applications(),
        resources_of_applications(),
        application_sets(),
        projects(),
        repositories(),
        changing_repositories(),
        credentials(),
        clusters(),
        trust(),
        charts::charts(),
        charts::kubeapps_core(),
    ];
    parts.into_iter().flatten().collect()
}

pub(super) const fn needs(always: &'static [Ask]) -> Access {
    Access::Asks {
        always,
        sometimes: &[],
    }
}

/// `sometimes` are the permissions that only some requests need.
pub(super) const fn needs_maybe(always: &'static [Ask], sometimes: &'static [Ask]) -> Access {
    Access::Asks { always, sometimes }
}

fn small() -> Vec<Call<State>> {
    vec![
        public(
            "version.VersionService/Version",
            &["GET /api/version"],
            version::version,
        ),
        public(
            "session.SessionService/GetUserInfo",
            &["GET /api/v1/session/userinfo"],
            session::user_info,
        ),
        public(
            "session.SessionService/Create",
            &["POST /api/v1/session *"],
            session::create,
        )
        .with_session(Session::Begins),
        public(
            "session.SessionService/Delete",
            &["DELETE /api/v1/session"],
            session::delete,
        )
        .with_session(Session::Ends),
        public(
            "cluster.SettingsService/Get",
            &["GET /api/v1/settings"],
            settings::get,
        ),
        signed_in(
            "cluster.SettingsService/GetPlugins",
            &["GET /api/v1/settings/plugins"],
            settings::plugins,
        ),
        signed_in(
            "account.AccountService/CanI",
            &["GET /api/v1/account/can-i/{resource}/{action}/{subresource=**}"],
            account::can_i,
        )
        .with_decoded_paths(),
        unary(
            "account.AccountService/UpdatePassword",
            &["PUT /api/v1/account/password *"],
            needs_maybe(&[], &[Ask(Accounts, Update)]),
            account::update_password,
        ),
        unary(
            "account.AccountService/ListAccounts",
            &["GET /api/v1/account"],
            Access::Lists(Ask(Accounts, Get)),
            account::list,
        ),
        unary(
            "account.AccountService/GetAccount",
            &["GET /api/v1/account/{name}"],
            needs_maybe(&[], &[Ask(Accounts, Get)]),
            account::get,
        ),
        unary(
            "account.AccountService/CreateToken",
            &["POST /api/v1/account/{name}/token *"],
            needs_maybe(&[], &[Ask(Accounts, Update)]),
            account::create_token,
        ),
        unary(
            "account.AccountService/DeleteToken",
            &["DELETE /api/v1/account/{name}/token/{id}"],
            needs_maybe(&[], &[Ask(Accounts, Update)]),
            account::delete_token,
        ),
    ]
}

fn applications() -> Vec<Call<State>> {
    vec![
        encoded(
            "application.ApplicationService/List",
            &["GET /api/v1/applications"],
            Access::Lists(Ask(Applications, Get)),
            application::list::list,
        ),
        unary(
            "application.ApplicationService/ListResourceEvents",
            &["GET /api/v1/applications/{name}/events"],
            needs(&[Ask(Applications, Get)]),
            application::live::events,
        )
        .requiring(&[(1, "name")]),
        stream(
            "application.ApplicationService/Watch",
            &["GET /api/v1/stream/applications"],
            Access::Lists(Ask(Applications, Get)),
            application::watch::watch,
        ),
        unary(
            "application.ApplicationService/Create",
            &["POST /api/v1/applications application"],
            needs_maybe(&[Ask(Applications, Create)], &[Ask(Applications, Update)]),
            application::write::create,
        )
        .requiring(&[(1, "application")]),
        unary(
            "application.ApplicationService/Get",
            &["GET /api/v1/applications/{name}"],
            needs(&[Ask(Applications, Get)]),
            application::read::get,
        ),
        unary(
            "application.ApplicationService/GetApplicationSyncWindows",
            &["GET /api/v1/applications/{name}/syncwindows"],
            needs(&[Ask(Applications, Get)]),
            application::read::windows,
        )
        .requiring(&[(1, "name")]),
        unary(
            "application.ApplicationService/RevisionMetadata",
            &["GET /api/v1/applications/{name}/revisions/{revision}/metadata"],
            needs(&[Ask(Applications, Get)]),
            application::read::revision_metadata,
        )
        .requiring(&[(1, "name"), (2, "revision")]),
        unary(
            "application.ApplicationService/RevisionChartDetails",
            &["GET /api/v1/applications/{name}/revisions/{revision}/chartdetails"],
            needs(&[Ask(Applications, Get)]),
            application::read::chart_details,
        )
        .requiring(&[(1, "name"), (2, "revision")]),
        unary(
            "application.ApplicationService/GetOCIMetadata",
            &["GET /api/v1/applications/{name}/revisions/{revision}/ocimetadata"],
            needs(&[Ask(Applications, Get)]),
            application::read::oci_metadata,
        )
        .requiring(&[(1, "name"), (2, "revision")]),
        unary(
            "application.ApplicationService/GetManifests",
            &["GET /api/v1/applications/{name}/manifests"],
            needs(&[Ask(Applications, Get)]),
            application::manifests::get,
        )
        .requiring(&[(1, "name")]),
        client_stream(
            "application.ApplicationService/GetManifestsWithFiles",
            &["POST /api/v1/applications/manifestsWithFiles *"],
            needs(&[Ask(Applications, Get)]),
            application::files::manifests,
        ),
    ]
}

/// Calls that change an existing Application or start an operation.
fn changing_applications() -> Vec<Call<State>> {
    vec![
        unary(
            "application.ApplicationService/Update",
            &["PUT /api/v1/applications/{application.metadata.name} application"],
            needs_maybe(&[Ask(Applications, Update)], &[Ask(Applications, Create)]),
            application::write::update,
        )
        .requiring(&[(1, "application")]),
        unary(
            "application.ApplicationService/UpdateSpec",
            &["PUT /api/v1/applications/{name}/spec spec"],
            needs_maybe(&[Ask(Applications, Update)], &[Ask(Applications, Create)]),
            application::write::update_spec,
        )
        .requiring(&[(1, "name"), (2, "spec")]),
        unary(
            "application.ApplicationService/Patch",
            &["PATCH /api/v1/applications/{name} *"],
            needs_maybe(
                &[Ask(Applications, Get), Ask(Applications, Update)],
                &[Ask(Applications, Create)],
            ),
            application::write::patch,
        )
        .requiring(&[(1, "name"), (2, "patch"), (3, "patchType")]),
        unary(
            "application.ApplicationService/Delete",
            &["DELETE /api/v1/applications/{name}"],
            needs(&[Ask(Applications, Get), Ask(Applications, Delete)]),
            application::delete::delete,
        )
        .requiring(&[(1, "name")]),
        unary(
            "application.ApplicationService/Sync",
            &["POST /api/v1/applications/{name}/sync *"],
            needs_maybe(
                &[Ask(Applications, Get), Ask(Applications, Sync)],
                &[Ask(Applications, Override)],
            ),
            application::sync::sync,
        )
        .requiring(&[(1, "name")]),
    ]
}

/// Calls about the running parts of an Application: its resources, and operations in progress.
fn running_applications() -> Vec<Call<State>> {
    vec![
        unary(
            "application.ApplicationService/ManagedResources",
            &["GET /api/v1/applications/{applicationName}/managed-resources"],
            needs(&[Ask(Applications, Get)]),
            application::live::managed_resources,
        )
        .requiring(&[(1, "applicationName")]),
        unary(
            "application.ApplicationService/ServerSideDiff",
            &["GET /api/v1/applications/{appName}/server-side-diff"],
            needs(&[Ask(Applications, Get)]),
            application::server_side_diff::server_side_diff,
        )
        .requiring(&[(1, "appName")]),
        unary(
            "application.ApplicationService/ResourceTree",
            &["GET /api/v1/applications/{applicationName}/resource-tree"],
            needs(&[Ask(Applications, Get)]),
            application::live::resource_tree,
        )
        .requiring(&[(1, "applicationName")]),
        stream(
            "application.ApplicationService/WatchResourceTree",
            &["GET /api/v1/stream/applications/{applicationName}/resource-tree"],
            needs(&[Ask(Applications, Get)]),
            application::live::watch_resource_tree,
        )
        .requiring(&[(1, "applicationName")]),
        unary(
            "application.ApplicationService/Rollback",
            &["POST /api/v1/applications/{name}/rollback *"],
            needs_maybe(&[Ask(Applications, Sync)], &[Ask(Applications, Rollback)]),
            application::sync::rollback,
        )
        .requiring(&[(1, "name"), (2, "id")]),
        unary(
            "application.ApplicationService/TerminateOperation",
            &["DELETE /api/v1/applications/{name}/operation"],
            needs(&[Ask(Applications, Sync)]),
            application::sync::terminate,
        )
        .requiring(&[(1, "name")]),
        unary(
            "application.ApplicationService/GetResource",
            &["GET /api/v1/applications/{name}/resource"],
            needs(&[Ask(Applications, Get)]),
            application::live::get_resource,
        )
        .requiring(&[
            (1, "name"),
            (3, "resourceName"),
            (4, "version"),
            (6, "kind"),
        ]),
    ]
}

/// Calls for the objects of Applications.
fn resources_of_applications() -> Vec<Call<State>> {
    vec![
        unary(
            "application.ApplicationService/PatchResource",
            &["POST /api/v1/applications/{name}/resource patch"],
            needs(&[Ask(Applications, UpdateResource)]),
            application::live::patch_resource,
        )
        .requiring(&[
            (1, "name"),
            (3, "resourceName"),
            (4, "version"),
            (6, "kind"),
            (7, "patch"),
            (8, "patchType"),
        ]),
        unary(
            "application.ApplicationService/ListResourceActions",
            &["GET /api/v1/applications/{name}/resource/actions"],
            needs(&[Ask(Applications, Get)]),
            application::actions::list,
        )
        .requiring(&[
            (1, "name"),
            (3, "resourceName"),
            (4, "version"),
            (6, "kind"),
        ]),
        unary(
            "application.ApplicationService/RunResourceAction",
            &["POST /api/v1/applications/{name}/resource/actions action"],
            needs(&[Ask(Applications, RunAction)]),
            application::actions::run,
        )
        .requiring(&[
            (1, "name"),
            (3, "resourceName"),
            (4, "version"),
            (6, "kind"),
            (7, "action"),
        ]),
        unary(
            "application.ApplicationService/RunResourceActionV2",
            &["POST /api/v1/applications/{name}/resource/actions/v2 *"],
            needs(&[Ask(Applications, RunAction)]),
            application::actions::run_v2,
        )
        .requiring(&[
            (1, "name"),
            (3, "resourceName"),
            (4, "version"),
            (6, "kind"),
            (7, "action"),
        ]),
        unary(
            "application.ApplicationService/DeleteResource",
            &["DELETE /api/v1/applications/{name}/resource"],
            needs(&[Ask(Applications, DeleteResource)]),
            application::live::delete_resource,
        )
        .requiring(&[
            (1, "name"),
            (3, "resourceName"),
            (4, "version"),
            (6, "kind"),
        ]),
        stream(
            "application.ApplicationService/PodLogs",
            &[
                "GET /api/v1/applications/{name}/pods/{podName}/logs",
                "GET /api/v1/applications/{name}/logs",
            ],
            needs(&[Ask(Applications, Get), Ask(Logs, Get)]),
            application::logs::pod_logs,
        )
        .requiring(&[(1, "name")]),
        unary(
            "application.ApplicationService/ListLinks",
            &["GET /api/v1/applications/{name}/links"],
            needs(&[Ask(Applications, Get)]),
            application::read::links,
        )
        .requiring(&[(1, "name")]),
        unary(
            "application.ApplicationService/ListResourceLinks",
            &["GET /api/v1/applications/{name}/resource/links"],
            needs(&[Ask(Applications, Get)]),
            application::live::resource_links,
        )
        .requiring(&[
            (1, "name"),
            (3, "resourceName"),
            (4, "version"),
            (6, "kind"),
        ]),
    ]
}

fn application_sets() -> Vec<Call<State>> {
    vec![
        unary(
            "applicationset.ApplicationSetService/Get",
            &["GET /api/v1/applicationsets/{name}"],
            needs(&[Ask(ApplicationSets, Get)]),
            application_set::get,
        ),
        unary(
            "applicationset.ApplicationSetService/Generate",
            &["POST /api/v1/applicationsets/generate *"],
            needs(&[Ask(ApplicationSets, Create)]),
            application_set::generate,
        ),
        unary(
            "applicationset.ApplicationSetService/List",
            &["GET /api/v1/applicationsets"],
            Access::Lists(Ask(ApplicationSets, Get)),
            application_set::list,
        ),
        unary(
            "applicationset.ApplicationSetService/Create",
            &["POST /api/v1/applicationsets applicationset"],
            needs_maybe(
                &[Ask(ApplicationSets, Create)],
                &[Ask(ApplicationSets, Update)],
            ),
            application_set::create,
        ),
        unary(
            "applicationset.ApplicationSetService/Delete",
            &["DELETE /api/v1/applicationsets/{name}"],
            needs(&[Ask(ApplicationSets, Delete)]),
            application_set::delete,
        ),
        unary(
            "applicationset.ApplicationSetService/ResourceTree",
            &["GET /api/v1/applicationsets/{name}/resource-tree"],
            needs(&[Ask(ApplicationSets, Get)]),
            application_set::resource_tree,
        ),
        unary(
            "applicationset.ApplicationSetService/ListResourceEvents",
            &["GET /api/v1/applicationsets/{name}/events"],
            needs(&[Ask(ApplicationSets, Get)]),
            application_set::events,
        ),
        stream(
            "applicationset.ApplicationSetService/Watch",
            &["GET /api/v1/stream/applicationsets"],
            Access::Lists(Ask(ApplicationSets, Get)),
            application_set::watch,
        ),
        signed_in(
            "notification.NotificationService/ListTriggers",
            &["GET /api/v1/notifications/triggers"],
            notification::triggers,
        ),
        signed_in(
            "notification.NotificationService/ListServices",
            &["GET /api/v1/notifications/services"],
            notification::services,
        ),
        signed_in(
            "notification.NotificationService/ListTemplates",
            &["GET /api/v1/notifications/templates"],
            notification::templates,
        ),
    ]
}

fn projects() -> Vec<Call<State>> {
    vec![
        unary(
            "project.ProjectService/CreateToken",
            &["POST /api/v1/projects/{project}/roles/{role}/token *"],
            needs_maybe(&[], &[Ask(Projects, Update)]),
            project_tokens::create,
        ),
        unary(
            "project.ProjectService/DeleteToken",
            &["DELETE /api/v1/projects/{project}/roles/{role}/token/{iat}"],
            needs_maybe(&[], &[Ask(Projects, Update)]),
            project_tokens::delete,
        ),
        unary(
            "project.ProjectService/Create",
            &["POST /api/v1/projects *"],
            needs_maybe(&[Ask(Projects, Create)], &[Ask(Projects, Update)]),
            project::create,
        ),
        unary(
            "project.ProjectService/List",
            &["GET /api/v1/projects"],
            Access::Lists(Ask(Projects, Get)),
            project::list,
        ),
        unary(
            "project.ProjectService/GetDetailedProject",
            &["GET /api/v1/projects/{name}/detailed"],
            needs(&[Ask(Projects, Get)]),
            project::detailed,
        ),
        unary(
            "project.ProjectService/Get",
            &["GET /api/v1/projects/{name}"],
            needs(&[Ask(Projects, Get)]),
            project::get,
        ),
        unary(
            "project.ProjectService/GetGlobalProjects",
            &["GET /api/v1/projects/{name}/globalprojects"],
            needs(&[Ask(Projects, Get)]),
            project::globals,
        ),
        unary(
            "project.ProjectService/Update",
            &["PUT /api/v1/projects/{project.metadata.name} *"],
            needs_maybe(
                &[Ask(Projects, Update)],
                &[Ask(Clusters, Update), Ask(Repositories, Update)],
            ),
            project::update,
        ),
        unary(
            "project.ProjectService/Delete",
            &["DELETE /api/v1/projects/{name}"],
            needs(&[Ask(Projects, Delete)]),
            project::delete,
        ),
        unary(
            "project.ProjectService/ListEvents",
            &["GET /api/v1/projects/{name}/events"],
            needs(&[Ask(Projects, Get)]),
            project::events,
        ),
        unary(
            "project.ProjectService/GetSyncWindowsState",
            &["GET /api/v1/projects/{name}/syncwindows"],
            needs(&[Ask(Projects, Get)]),
            project::windows,
        ),
        unary(
            "project.ProjectService/ListLinks",
            &["GET /api/v1/projects/{name}/links"],
            needs(&[Ask(Projects, Get)]),
            project::links,
        ),
    ]
}

fn repositories() -> Vec<Call<State>> {
    vec![
        unary(
            "repository.RepositoryService/List",
            &["GET /api/v1/repositories"],
            Access::Lists(Ask(Repositories, Get)),
            |state, guard, q| repository::list(Read, state, guard, q),
        ),
        unary(
            "repository.RepositoryService/Get",
            &["GET /api/v1/repositories/{repo}"],
            needs(&[Ask(Repositories, Get)]),
            |state, guard, q| repository::get(Read, state, guard, q),
        ),
        hydrating(
            "repository.RepositoryService/GetWrite",
            &["GET /api/v1/write-repositories/{repo}"],
            needs(&[Ask(WriteRepositories, Get)]),
            |state, guard, q| repository::get(Write, state, guard, q),
        ),
        unary(
            "repository.RepositoryService/ListRepositories",
            &["GET /api/v1/repositories"],
            Access::Lists(Ask(Repositories, Get)),
            |state, guard, q| repository::list(Read, state, guard, q),
        ),
        hydrating(
            "repository.RepositoryService/ListWriteRepositories",
            &["GET /api/v1/write-repositories"],
            Access::Lists(Ask(WriteRepositories, Get)),
            |state, guard, q| repository::list(Write, state, guard, q),
        ),
        unary(
            "repository.RepositoryService/ListRefs",
            &["GET /api/v1/repositories/{repo}/refs"],
            needs(&[Ask(Repositories, Get)]),
            repository::refs,
        ),
        unary(
            "repository.RepositoryService/ListOCITags",
            &["GET /api/v1/repositories/{repo}/oci-tags"],
            needs(&[Ask(Repositories, Get)]),
            repository::oci_tags,
        ),
        unary(
            "repository.RepositoryService/ListApps",
            &["GET /api/v1/repositories/{repo}/apps"],
            needs_maybe(
                &[Ask(Repositories, Get)],
                &[Ask(Applications, Create), Ask(Applications, Update)],
            ),
            repository::apps,
        ),
        unary(
            "repository.RepositoryService/GetAppDetails",
            &["POST /api/v1/repositories/{source.repoURL}/appdetails *"],
            needs_maybe(
                &[Ask(Repositories, Get), Ask(Applications, Get)],
                &[Ask(Applications, Create)],
            ),
            repository::app_details,
        ),
        unary(
            "repository.RepositoryService/GetHelmCharts",
            &["GET /api/v1/repositories/{repo}/helmcharts"],
            needs(&[Ask(Repositories, Get)]),
            repository::charts,
        ),
    ]
}

/// Calls that change repositories, and calls for repositories that do not exist yet.
fn changing_repositories() -> Vec<Call<State>> {
    vec![
        unary(
            "repository.RepositoryService/Create",
            &["POST /api/v1/repositories repo"],
            needs_maybe(&[Ask(Repositories, Create)], &[Ask(Repositories, Update)]),
            |state, guard, q| repository::create(Read, state, guard, q),
        ),
        unary(
            "repository.RepositoryService/CreateRepository",
            &["POST /api/v1/repositories repo"],
            needs_maybe(&[Ask(Repositories, Create)], &[Ask(Repositories, Update)]),
            |state, guard, q| repository::create(Read, state, guard, q),
        ),
        hydrating(
            "repository.RepositoryService/CreateWriteRepository",
            &["POST /api/v1/write-repositories repo"],
            needs_maybe(
                &[Ask(WriteRepositories, Create)],
                &[Ask(WriteRepositories, Update)],
            ),
            |state, guard, q| repository::create(Write, state, guard, q),
        ),
        unary(
            "repository.RepositoryService/Update",
            &["PUT /api/v1/repositories/{repo.repo} repo"],
            needs(&[Ask(Repositories, Update)]),
            |state, guard, q| repository::update(Read, state, guard, q),
        ),
        unary(
            "repository.RepositoryService/UpdateRepository",
            &["PUT /api/v1/repositories/{repo.repo} repo"],
            needs(&[Ask(Repositories, Update)]),
            |state, guard, q| repository::update(Read, state, guard, q),
        ),
        hydrating(
            "repository.RepositoryService/UpdateWriteRepository",
            &["PUT /api/v1/write-repositories/{repo.repo} repo"],
            needs(&[Ask(WriteRepositories, Update)]),
            |state, guard, q| repository::update(Write, state, guard, q),
        ),
        unary(
            "repository.RepositoryService/Delete",
            &["DELETE /api/v1/repositories/{repo}"],
            needs(&[Ask(Repositories, Get), Ask(Repositories, Delete)]),
            |state, guard, q| repository::delete(Read, state, guard, q),
        ),
        unary(
            "repository.RepositoryService/DeleteRepository",
            &["DELETE /api/v1/repositories/{repo}"],
            needs(&[Ask(Repositories, Get), Ask(Repositories, Delete)]),
            |state, guard, q| repository::delete(Read, state, guard, q),
        ),
        hydrating(
            "repository.RepositoryService/DeleteWriteRepository",
            &["DELETE /api/v1/write-repositories/{repo}"],
            needs(&[Ask(WriteRepositories, Get), Ask(WriteRepositories, Delete)]),
            |state, guard, q| repository::delete(Write, state, guard, q),
        ),
        unary(
            "repository.RepositoryService/ValidateAccess",
            &["POST /api/v1/repositories/{repo}/validate repo"],
            needs(&[Ask(Repositories, Create)]),
            |state, guard, q| repository::validate_access(Read, state, guard, q),
        ),
        hydrating(
            "repository.RepositoryService/ValidateWriteAccess",
            &["POST /api/v1/write-repositories/{repo}/validate repo"],
            needs(&[Ask(WriteRepositories, Create)]),
            |state, guard, q| repository::validate_access(Write, state, guard, q),
        ),
    ]
}

fn credentials() -> Vec<Call<State>> {
    vec![
        unary(
            "repocreds.RepoCredsService/ListRepositoryCredentials",
            &["GET /api/v1/repocreds"],
            Access::Lists(Ask(Repositories, Get)),
            |state, guard, q| repocreds::list(Read, state, guard, q),
        ),
        unary(
            "repocreds.RepoCredsService/ListWriteRepositoryCredentials",
            &["GET /api/v1/write-repocreds"],
            Access::Lists(Ask(WriteRepositories, Get)),
            |state, guard, q| repocreds::list(Write, state, guard, q),
        ),
        unary(
            "repocreds.RepoCredsService/CreateRepositoryCredentials",
            &["POST /api/v1/repocreds creds"],
            needs_maybe(&[Ask(Repositories, Create)], &[Ask(Repositories, Update)]),
            |state, guard, q| repocreds::create(Read, state, guard, q),
        ),
        unary(
            "repocreds.RepoCredsService/CreateWriteRepositoryCredentials",
            &["POST /api/v1/write-repocreds creds"],
            needs_maybe(
                &[Ask(WriteRepositories, Create)],
                &[Ask(WriteRepositories, Update)],
            ),
            |state, guard, q| repocreds::create(Write, state, guard, q),
        ),
        unary(
            "repocreds.RepoCredsService/UpdateRepositoryCredentials",
            &["PUT /api/v1/repocreds/{creds.url} creds"],
            needs(&[Ask(Repositories, Update)]),
            |state, guard, q| repocreds::update(Read, state, guard, q),
        ),
        unary(
            "repocreds.RepoCredsService/UpdateWriteRepositoryCredentials",
            &["PUT /api/v1/write-repocreds/{creds.url} creds"],
            needs(&[Ask(WriteRepositories, Update)]),
            |state, guard, q| repocreds::update(Write, state, guard, q),
        ),
        unary(
            "repocreds.RepoCredsService/DeleteRepositoryCredentials",
            &["DELETE /api/v1/repocreds/{url}"],
            needs(&[Ask(Repositories, Delete)]),
            |state, guard, q| repocreds::delete(Read, state, guard, q),
        ),
        unary(
            "repocreds.RepoCredsService/DeleteWriteRepositoryCredentials",
            &["DELETE /api/v1/write-repocreds/{url}"],
            needs(&[Ask(WriteRepositories, Delete)]),
            |state, guard, q| repocreds::delete(Write, state, guard, q),
        ),
    ]
}

fn clusters() -> Vec<Call<State>> {
    vec![
        unary(
            "cluster.ClusterService/List",
            &["GET /api/v1/clusters"],
            Access::Lists(Ask(Clusters, Get)),
            cluster::list,
        ),
        unary(
            "cluster.ClusterService/Create",
            &["POST /api/v1/clusters cluster"],
            needs_maybe(&[Ask(Clusters, Create)], &[Ask(Clusters, Update)]),
            cluster::create,
        ),
        unary(
            "cluster.ClusterService/Get",
            &["GET /api/v1/clusters/{id.value}"],
            needs(&[Ask(Clusters, Get)]),
            cluster::get,
        ),
        unary(
            "cluster.ClusterService/Update",
            &["PUT /api/v1/clusters/{id.value} cluster"],
            needs(&[Ask(Clusters, Update)]),
            cluster::update,
        ),
        unary(
            "cluster.ClusterService/Delete",
            &["DELETE /api/v1/clusters/{id.value}"],
            needs(&[Ask(Clusters, Delete)]),
            cluster::delete,
        ),
        unary(
            "cluster.ClusterService/RotateAuth",
            &["POST /api/v1/clusters/{id.value}/rotate-auth"],
            needs(&[Ask(Clusters, Update)]),
            cluster::rotate_auth,
        ),
        unary(
            "cluster.ClusterService/InvalidateCache",
            &["POST /api/v1/clusters/{id.value}/invalidate-cache"],
            needs(&[Ask(Clusters, Update)]),
            cluster::invalidate_cache,
        ),
    ]
}

fn trust() -> Vec<Call<State>> {
    vec![
        unary(
            "certificate.CertificateService/ListCertificates",
            &["GET /api/v1/certificates"],
            needs(&[Ask(Certificates, Get)]),
            certificate::list,
        ),
        unary(
            "certificate.CertificateService/CreateCertificate",
            &["POST /api/v1/certificates certificates"],
            needs_maybe(&[Ask(Certificates, Create)], &[Ask(Certificates, Update)]),
            certificate::create,
        ),
        unary(
            "certificate.CertificateService/DeleteCertificate",
            &["DELETE /api/v1/certificates"],
            needs(&[Ask(Certificates, Delete)]),
            certificate::delete,
        ),
        unary(
            "gpgkey.GPGKeyService/List",
            &["GET /api/v1/gpgkeys"],
            needs(&[Ask(GpgKeys, Get)]),
            gpgkey::list,
        ),
        unary(
            "gpgkey.GPGKeyService/Get",
            &["GET /api/v1/gpgkeys/{keyID}"],
            needs(&[Ask(GpgKeys, Get)]),
            gpgkey::get,
        ),
        unary(
            "gpgkey.GPGKeyService/Create",
            &["POST /api/v1/gpgkeys publickey"],
            needs(&[Ask(GpgKeys, Create)]),
            gpgkey::create,
        ),
        unary(
            "gpgkey.GPGKeyService/Delete",
            &["DELETE /api/v1/gpgkeys"],
            needs(&[Ask(GpgKeys, Delete)]),
            gpgkey::delete,
        ),
    ]
}

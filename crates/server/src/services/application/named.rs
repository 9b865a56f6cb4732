//! The Application that a request names. Main function: [`found`].

use crate::{
    ApiError,
    access::{Authorized, Guard, Verb, find},
    state::State,
};
use tiphys_api::{
    AppProject, Application,
    rpc::application::{
        ApplicationDeleteRequest, ApplicationManifestQuery, ApplicationManifestQueryWithFiles,
        ApplicationPatchRequest, ApplicationResourceEventsQuery, ApplicationRollbackRequest,
        ApplicationServerSideDiffQuery, ApplicationSyncRequest, ApplicationSyncWindowsQuery,
        ApplicationUpdateSpecRequest, ListAppLinksRequest, OperationTerminateRequest,
        ResourcesQuery, RevisionMetadataQuery,
    },
};

/// A request about one Application.
pub(super) trait Names {
    /// Its namespace, its name, and its project.
    fn place(&self) -> (Option<&str>, &str, Option<&str>);
}

/// Reads the Application and its project, and checks the permission `A`: see [`find`].
pub(super) async fn found<A: Verb>(
    state: &State,
    guard: &Guard,
    request: &impl Names,
) -> Result<(Authorized<Application, A>, AppProject), ApiError> {
    let (namespace, name, project) = request.place();
    find(&state.reach, guard, namespace, name, project).await
}

/// Messages, with the fields that have the namespace and the name.
macro_rules! names {
    ($($message:ident: $namespace:ident, $name:ident;)*) => {$(
        impl Names for $message {
            fn place(&self) -> (Option<&str>, &str, Option<&str>) {
                (self.$namespace.as_deref(), &self.$name, self.project.as_deref())
            }
        }
    )*};
}

names! {
    ApplicationDeleteRequest: app_namespace, name;
    ApplicationManifestQuery: app_namespace, name;
    ApplicationManifestQueryWithFiles: app_namespace, name;
    ApplicationPatchRequest: app_namespace, name;
    ApplicationResourceEventsQuery: app_namespace, name;
    ApplicationRollbackRequest: app_namespace, name;
    ApplicationServerSideDiffQuery: app_namespace, app_name;
    ApplicationSyncRequest: app_namespace, name;
    ApplicationSyncWindowsQuery: app_namespace, name;
    ApplicationUpdateSpecRequest: app_namespace, name;
    ListAppLinksRequest: namespace, name;
    OperationTerminateRequest: app_namespace, name;
    ResourcesQuery: app_namespace, application_name;
    RevisionMetadataQuery: app_namespace, name;
}

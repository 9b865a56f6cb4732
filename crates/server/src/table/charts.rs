//! The rows of the chart catalogue, and of the part of kubeapps' API that its dashboard reads.

use super::{
    calls::{needs, needs_maybe},
    signed_in, unary,
};
use crate::{
    access::{Access, Action::*, Ask, Resource::*},
    services::{catalog, kubeapps},
    state::State,
};
use tiphys_rpc::Call;

/// The chart catalogue, which Argo CD does not have. A repository of it is a repository of Argo CD
/// to policies, by its URL. What is installed is written with the calls of Applications.
pub fn charts() -> Vec<Call<State>> {
    const SEE: Ask = Ask(Repositories, Get);
    vec![
        unary(
            "catalog.CatalogService/Search",
            &["GET /api/v1/catalog/charts"],
            Access::Lists(SEE),
            catalog::search,
        ),
        unary(
            "catalog.CatalogService/Get",
            &["GET /api/v1/catalog/charts/{namespace}/{repository}/{path}"],
            needs(&[SEE]),
            catalog::get,
        ),
        unary(
            "catalog.CatalogService/ListRepositories",
            &["GET /api/v1/catalog/repositories"],
            Access::Lists(SEE),
            catalog::repositories,
        ),
        unary(
            "catalog.CatalogService/AddRepository",
            &["POST /api/v1/catalog/repositories *"],
            needs(&[Ask(Repositories, Create)]),
            catalog::add,
        ),
        unary(
            "catalog.CatalogService/RemoveRepository",
            &["DELETE /api/v1/catalog/repositories/{namespace}/{name}"],
            needs(&[Ask(Repositories, Delete)]),
            catalog::remove,
        ),
        unary(
            "catalog.CatalogService/SyncRepository",
            &["POST /api/v1/catalog/repositories/{namespace}/{name}/sync *"],
            needs(&[Ask(Repositories, Update)]),
            catalog::sync,
        ),
        unary(
            "catalog.CatalogService/PreviewInstall",
            &["POST /api/v1/catalog/install *"],
            needs_maybe(&[SEE, Ask(Applications, Create)], &[Ask(Applications, Get)]),
            catalog::release::install,
        ),
        unary(
            "catalog.CatalogService/ListUpdates",
            &["GET /api/v1/catalog/updates"],
            Access::Lists(Ask(Applications, Get)),
            catalog::release::updates,
        ),
        unary(
            "catalog.CatalogService/PreviewUpgrade",
            &["POST /api/v1/catalog/upgrade *"],
            needs(&[Ask(Applications, Get)]),
            catalog::release::upgrade,
        ),
        unary(
            "catalog.CatalogService/PreviewRollback",
            &["POST /api/v1/catalog/rollback *"],
            needs(&[Ask(Applications, Get)]),
            catalog::release::rollback,
        ),
    ]
}

/// A package as paths of the core, and of the plugin for Helm, name it.
macro_rules! below {
    ($what:literal, $field:literal, $rest:literal) => {
        &[
            concat!(
                "GET /core/packages/v1alpha1/",
                $what,
                "/plugin/{",
                $field,
                ".plugin.name}/{",
                $field,
                ".plugin.version}/c/{",
                $field,
                ".context.cluster}/ns/{",
                $field,
                ".context.namespace}/{",
                $field,
                ".identifier=**}",
                $rest
            ),
            concat!(
                "GET /plugins/helm/packages/v1alpha1/",
                $what,
                "/c/{",
                $field,
                ".context.cluster}/ns/{",
                $field,
                ".context.namespace}/{",
                $field,
                ".identifier=**}",
                $rest
            ),
        ]
    };
}

/// What kubeapps' dashboard reads, by the names and paths of kubeapps.
pub fn kubeapps_core() -> Vec<Call<State>> {
    const SEE: Ask = Ask(Repositories, Get);
    const PACKAGES: &str = "kubeappsapis.core.packages.v1alpha1.PackagesService";
    const REPOSITORIES: &str = "kubeappsapis.core.packages.v1alpha1.RepositoriesService";
    let rpc = |service: &str, name: &str| format!("{service}/{name}");
    vec![
        unary(
            &rpc(PACKAGES, "GetAvailablePackageSummaries"),
            &[
                "GET /core/packages/v1alpha1/availablepackages",
                "GET /plugins/helm/packages/v1alpha1/availablepackages",
            ],
            Access::Lists(SEE),
            kubeapps::summaries,
        ),
        // Before the next, whose paths these match, too.
        unary(
            &rpc(PACKAGES, "GetAvailablePackageVersions"),
            below!("availablepackages", "available_package_ref", "/versions"),
            needs(&[SEE]),
            kubeapps::versions,
        ),
        unary(
            &rpc(PACKAGES, "GetAvailablePackageDetail"),
            below!("availablepackages", "available_package_ref", ""),
            needs(&[SEE]),
            kubeapps::detail,
        ),
        unary(
            &rpc(PACKAGES, "GetInstalledPackageSummaries"),
            &[
                "GET /core/packages/v1alpha1/installedpackages",
                "GET /plugins/helm/packages/v1alpha1/installedpackages",
            ],
            Access::Lists(Ask(Applications, Get)),
            kubeapps::installed,
        ),
        // Before the next, whose paths these match, too.
        unary(
            &rpc(PACKAGES, "GetInstalledPackageResourceRefs"),
            below!(
                "installedpackages",
                "installed_package_ref",
                "/resourcerefs"
            ),
            needs(&[Ask(Applications, Get)]),
            kubeapps::installed_resources,
        ),
        unary(
            &rpc(PACKAGES, "GetInstalledPackageDetail"),
            below!("installedpackages", "installed_package_ref", ""),
            needs(&[Ask(Applications, Get)]),
            kubeapps::installed_detail,
        ),
        unary(
            &rpc(REPOSITORIES, "GetPackageRepositorySummaries"),
            &[
                "GET /core/packages/v1alpha1/repositories",
                "GET /plugins/helm/packages/v1alpha1/repositories",
            ],
            Access::Lists(SEE),
            kubeapps::repositories,
        ),
        unary(
            &rpc(REPOSITORIES, "GetPackageRepositoryDetail"),
            below!("repositories", "package_repo_ref", ""),
            needs(&[SEE]),
            kubeapps::repository,
        ),
        signed_in(
            "kubeappsapis.core.plugins.v1alpha1.PluginsService/GetConfiguredPlugins",
            &["GET /core/plugins/v1alpha1/configured-plugins"],
            kubeapps::plugins,
        ),
    ]
}

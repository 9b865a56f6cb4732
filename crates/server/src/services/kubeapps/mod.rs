//! The reading part of kubeapps' core packages API, for its dashboard and scripts: what there is and
//! what it is. Everything belongs to the plugin `helm.packages`.

mod installed;
mod versions;

pub use installed::{installed, installed_detail, installed_resources};

use super::catalog::release::version_of as shown_version;
use crate::{
    ApiError, Code,
    access::{Guard, read_charts, refused},
    auth::Caller,
    state::State,
};
use std::sync::Arc;
use tiphys_api::rpc::kubeapps::{
    Context, DetailResponse, Maintainer, PackageAppVersion, PackageDetail, PackageRequest,
    PackageSummary, Plugin, PluginsRequest, PluginsResponse, Reference, RepositoriesRequest,
    RepositoriesResponse, RepositoryDetail, RepositoryRequest, RepositoryResponse,
    RepositoryStatus, RepositorySummary, SummariesRequest, SummariesResponse, VersionsResponse,
};
use tiphys_catalog::{
    RepoId,
    model::ChartVersion,
    search::{Found, Query},
    store::RepoStatus,
};

/// The name that kubeapps has for the cluster that it runs in.
const CLUSTER: &str = "default";

fn plugin() -> Plugin {
    Plugin {
        name: "helm.packages".to_owned(),
        version: "v1alpha1".to_owned(),
    }
}

fn reference(namespace: &str, identifier: &str) -> Reference {
    Reference {
        context: Some(Context {
            cluster: CLUSTER.to_owned(),
            namespace: namespace.to_owned(),
        }),
        identifier: identifier.to_owned(),
        plugin: Some(plugin()),
    }
}

/// The namespaces whose repositories are seen from one: itself and that of the control plane, whose
/// repositories are for all. None is named: all of them.
fn namespaces(state: &State, context: Option<&Context>) -> Vec<String> {
    let asked = context.map_or("", |context| &*context.namespace);
    match asked {
        "" => Vec::new(),
        one => vec![one.to_owned(), state.options.namespace.clone()],
    }
}

/// Never an address that a browser would have to follow.
fn icon_url(png: &str) -> String {
    match png {
        "" => String::new(),
        png => format!("data:image/png;base64,{png}"),
    }
}

pub async fn summaries(
    state: Arc<State>,
    guard: Guard,
    q: SummariesRequest,
) -> Result<SummariesResponse, ApiError> {
    let filter = q.filter_options.unwrap_or_default();
    if !filter.pkg_version.is_empty() || !filter.app_version.is_empty() {
        let why = "packages are not filtered by version";
        return Err(ApiError::new(Code::Unimplemented, why));
    }
    let page = q.pagination_options.unwrap_or_default();
    let all = Query {
        namespaces: namespaces(&state, q.context.as_ref()),
        size: 1,
        ..Query::default()
    };
    let after = match &*page.page_token {
        "" => None,
        token => Some(token.parse().map_err(refused)?),
    };
    let query = Query {
        text: filter.query,
        repositories: filter.repositories,
        categories: filter.categories,
        after,
        size: usize::try_from(page.page_size).unwrap_or_default(),
        ..all.clone()
    };
    let (found, icons) = state.reach.search_charts(&guard, query).await?;
    let (all, _) = state.reach.search_charts(&guard, all).await?;
    let categories = all.facets.categories.into_keys();
    let packages = found.charts.into_iter().zip(icons);
    Ok(SummariesResponse {
        available_package_summaries: packages
            .map(|(chart, icon)| summary(chart, &icon))
            .collect(),
        next_page_token: found
            .next
            .map(|token| token.to_string())
            .unwrap_or_default(),
        categories: categories.filter(|category| !category.is_empty()).collect(),
    })
}

fn summary(found: Found, icon: &str) -> PackageSummary {
    let categories = match &*found.category {
        "" => Vec::new(),
        _ => vec![found.category],
    };
    PackageSummary {
        available_package_ref: Some(reference(&found.namespace, &found.id)),
        latest_version: Some(PackageAppVersion {
            pkg_version: found.version,
            app_version: found.app_version,
        }),
        icon_url: icon_url(icon),
        display_name: found.name.clone(),
        name: found.name,
        short_description: found.description,
        categories,
    }
}

/// Repository and path of a package.
fn place(reference: Option<Reference>) -> Result<(RepoId, String), ApiError> {
    let reference = reference.unwrap_or_default();
    let namespace = reference.context.unwrap_or_default().namespace;
    let (repository, path) = reference.identifier.split_once('/').ok_or_else(|| {
        let identifier = &reference.identifier;
        ApiError::invalid(format!("{identifier:?} is not REPOSITORY/NAME"))
    })?;
    Ok((RepoId::new(namespace, repository), path.replace("%2F", "/")))
}

fn version_of(version: &ChartVersion) -> PackageAppVersion {
    PackageAppVersion {
        pkg_version: version.version.clone(),
        app_version: version.app_version.clone(),
    }
}

pub async fn detail(
    state: Arc<State>,
    guard: Guard,
    q: PackageRequest,
) -> Result<DetailResponse, ApiError> {
    let (id, path) = place(q.available_package_ref)?;
    let known = state.reach.chart(&guard, &id, &path).await?;
    let chart = known.origin.chart.clone();
    let shown = shown_version(&known.origin, &q.pkg_version)?;
    let version = version_of(shown);
    let (store, of, chart_id) = (
        Arc::clone(&known.store),
        shown.version.clone(),
        chart.id.clone(),
    );
    let files = read_charts(move || store.files(&id, &chart_id, &of)).await?;
    let files = files.unwrap_or_default();
    let people = chart.maintainers.unwrap_or_default().into_iter();
    let detail = PackageDetail {
        available_package_ref: Some(reference(&known.origin.repo.namespace, &chart.id)),
        display_name: chart.name.clone(),
        name: chart.name,
        version: Some(version),
        repo_url: chart.repo.url,
        home_url: chart.home,
        icon_url: icon_url(chart.raw_icon.as_deref().unwrap_or_default()),
        short_description: chart.description.clone(),
        long_description: chart.description,
        readme: files.readme,
        default_values: files.values,
        values_schema: files.schema,
        source_urls: chart.sources.unwrap_or_default(),
        maintainers: people
            .map(|person| Maintainer {
                name: person.name,
                email: person.email,
            })
            .collect(),
        categories: Some(chart.category)
            .filter(|of| !of.is_empty())
            .into_iter()
            .collect(),
        additional_default_values: files.additional_values,
    };
    Ok(DetailResponse {
        available_package_detail: Some(detail),
    })
}

pub async fn versions(
    state: Arc<State>,
    guard: Guard,
    q: PackageRequest,
) -> Result<VersionsResponse, ApiError> {
    let (id, path) = place(q.available_package_ref)?;
    let known = state.reach.chart(&guard, &id, &path).await?;
    let all = &known.origin.chart.versions;
    Ok(VersionsResponse {
        package_app_versions: versions::newest(all).into_iter().map(version_of).collect(),
    })
}

pub async fn repositories(
    state: Arc<State>,
    guard: Guard,
    q: RepositoriesRequest,
) -> Result<RepositoriesResponse, ApiError> {
    let namespaces = namespaces(&state, q.context.as_ref());
    let mut seen = state.reach.chart_repositories(&guard).await?;
    seen.retain(|repo| namespaces.is_empty() || namespaces.contains(&repo.id.namespace));
    let global = &state.options.namespace;
    let summary = |repo| {
        let detail = of_repository(repo, global);
        RepositorySummary {
            package_repo_ref: detail.package_repo_ref,
            name: detail.name,
            description: detail.description,
            namespace_scoped: detail.namespace_scoped,
            type_: detail.type_,
            url: detail.url,
            status: detail.status,
        }
    };
    Ok(RepositoriesResponse {
        package_repository_summaries: seen.into_iter().map(summary).collect(),
    })
}

/// What the caller may not see looks like what is not there.
pub async fn repository(
    state: Arc<State>,
    guard: Guard,
    q: RepositoryRequest,
) -> Result<RepositoryResponse, ApiError> {
    let wanted = q.package_repo_ref.unwrap_or_default();
    let id = RepoId::new(
        wanted.context.unwrap_or_default().namespace,
        wanted.identifier,
    );
    let seen = state.reach.chart_repositories(&guard).await?;
    let found = seen.into_iter().find(|repo| repo.id == id);
    let found = found.ok_or_else(ApiError::denied)?;
    Ok(RepositoryResponse {
        detail: Some(of_repository(found, &state.options.namespace)),
    })
}

fn of_repository(repo: RepoStatus, global: &str) -> RepositoryDetail {
    let (ready, reason) = match (&repo.error, repo.succeeded_at) {
        (Some(_), _) => (false, 2),
        (None, None) => (false, 3),
        (None, Some(_)) => (true, 1),
    };
    RepositoryDetail {
        package_repo_ref: Some(reference(&repo.id.namespace, &repo.id.name)),
        namespace_scoped: repo.id.namespace != global,
        name: repo.id.name,
        description: String::new(),
        type_: if repo.is_registry { "oci" } else { "helm" }.to_owned(),
        url: repo.url,
        status: Some(RepositoryStatus {
            ready,
            reason,
            user_reason: repo.error.unwrap_or_default(),
        }),
    }
}

pub async fn plugins(
    _: Arc<State>,
    _: Caller,
    _: PluginsRequest,
) -> Result<PluginsResponse, ApiError> {
    Ok(PluginsResponse {
        plugins: vec![plugin()],
    })
}

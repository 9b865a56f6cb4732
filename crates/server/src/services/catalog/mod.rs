//! catalog.CatalogService: what the chart catalogue has, and what comes of a chart.

mod changes;
pub mod release;

use crate::{
    ApiError,
    access::{Guard, read_charts, refused},
    state::State,
};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    access::shown_url,
    rpc::catalog::{
        AddRequest, ChartProblem, ChartRepository, ChartRepositoryList, ChartRequest,
        ChartResponse, ChartSummary, ChartVersion, EmptyResponse, Facet, ListRequest, Maintainer,
        SearchRequest, SearchResponse, SyncRequest, ValuesFile,
    },
};
use tiphys_catalog::{
    RepoId,
    apprepository::NewRepository,
    model::{self, Chart},
    search::{Found, Query},
    store::{Problem, ProblemKind},
};

/// Problems of a chart that are told.
const PROBLEMS: usize = 10;

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

pub async fn search(
    state: Arc<State>,
    guard: Guard,
    q: SearchRequest,
) -> Result<SearchResponse, ApiError> {
    let after = match &*q.page_token {
        "" => None,
        token => Some(token.parse().map_err(refused)?),
    };
    let query = Query {
        text: q.query,
        namespaces: q.namespaces,
        repositories: q.repositories,
        names: q.names,
        categories: q.categories,
        keywords: q.keywords,
        after,
        size: usize::try_from(q.page_size).unwrap_or_default(),
        ..Query::default()
    };
    let (page, icons) = state.reach.search_charts(&guard, query).await?;
    let facet = |values: BTreeMap<String, u64>| {
        let values = values.into_iter().filter(|(value, _)| !value.is_empty());
        let mut values: Vec<Facet> = values
            .map(|(value, number)| Facet {
                value,
                count: i32::try_from(number).unwrap_or(i32::MAX),
            })
            .collect();
        values.sort_by_key(|facet| std::cmp::Reverse(facet.count));
        values
    };
    let found = page.charts.into_iter().zip(icons);
    Ok(SearchResponse {
        items: found.map(|(chart, icon)| summary(chart, icon)).collect(),
        total: count(page.total),
        repositories: facet(page.facets.repositories),
        categories: facet(page.facets.categories),
        keywords: facet(page.facets.keywords),
        next_page_token: page.next.map(|token| token.to_string()).unwrap_or_default(),
    })
}

fn summary(found: Found, icon: String) -> ChartSummary {
    let chart = Chart {
        id: found.id,
        ..Chart::default()
    };
    ChartSummary {
        path: chart.path(),
        namespace: found.namespace,
        repository: found.repository,
        name: found.name,
        version: found.version,
        app_version: found.app_version,
        description: found.description,
        category: found.category,
        keywords: found.keywords,
        deprecated: found.deprecated,
        versions: i32::try_from(found.versions).unwrap_or(i32::MAX),
        icon,
    }
}

fn version(version: &model::ChartVersion) -> ChartVersion {
    ChartVersion {
        version: version.version.clone(),
        app_version: version.app_version.clone(),
        created: version.created.clone(),
        digest: version.digest.clone(),
        urls: version.urls.iter().flatten().map(|url| told(url)).collect(),
    }
}

/// The address of an archive for those who may see its chart: what it would be fetched with is not
/// for them.
fn told(url: &str) -> String {
    // The rest of a relative address is a file's name, whatever letters it has.
    match url.contains("://") || url.contains('?') {
        true => shown_url(url),
        false => url.to_owned(),
    }
}

fn person(person: model::Maintainer) -> Maintainer {
    Maintainer {
        name: person.name,
        email: person.email,
        url: person.url,
    }
}

pub async fn get(
    state: Arc<State>,
    guard: Guard,
    q: ChartRequest,
) -> Result<ChartResponse, ApiError> {
    let id = RepoId::new(&q.namespace, &q.repository);
    let known = state.reach.chart(&guard, &id, &q.path).await?;
    let shown = release::version_of(&known.origin, &q.version)?.clone();
    let (store, id) = (Arc::clone(&known.store), known.origin.chart.id.clone());
    let (repo, of) = (known.origin.repo.clone(), shown.version.clone());
    let read = read_charts(move || {
        let files = store.files(&repo, &id, &of)?;
        let problems = store.problems_of(&repo, &id)?;
        Ok((files, problems, store.is_deprecated(&repo, &id)?))
    });
    let (files, mut problems, deprecated) = read.await?;
    let missing = match &files {
        Some(_) => String::new(),
        None => why_missing(&problems, &shown.version),
    };
    // That is told by `missing`, of the version that is shown.
    problems.retain(|problem| problem.kind != ProblemKind::Files);
    problems.sort_by_key(|problem| problem.version != shown.version);
    problems.truncate(PROBLEMS);
    let files = files.unwrap_or_default();
    let Chart {
        name,
        repo,
        description,
        home,
        keywords,
        maintainers,
        sources,
        raw_icon,
        category,
        versions,
        ..
    } = known.origin.chart.clone();
    let newest = versions.first().cloned().unwrap_or_default();
    let people = maintainers.unwrap_or_default();
    let additional = files.additional_values.into_iter();
    Ok(ChartResponse {
        chart: ChartSummary {
            namespace: q.namespace,
            repository: q.repository,
            path: known.origin.chart.path(),
            name,
            version: newest.version,
            app_version: newest.app_version,
            description,
            category,
            keywords: keywords.unwrap_or_default(),
            deprecated,
            versions: count(versions.len()),
            icon: raw_icon.unwrap_or_default(),
        },
        repo_url: repo.url,
        home,
        sources: sources.unwrap_or_default(),
        maintainers: people.iter().map(|person| person.name.clone()).collect(),
        versions: versions.iter().map(version).collect(),
        shown: version(&shown),
        readme: files.readme,
        values: files.values,
        schema: files.schema,
        additional_values: additional
            .map(|(name, content)| ValuesFile { name, content })
            .collect(),
        missing,
        problems: problems.into_iter().map(problem).collect(),
        people: people.into_iter().map(person).collect(),
    })
}

/// Why there are no files of a version.
fn why_missing(problems: &[Problem], version: &str) -> String {
    let mut of_version = problems.iter().filter(|p| p.version == version);
    let failed = of_version.find(|p| matches!(p.kind, ProblemKind::Files | ProblemKind::Skipped));
    failed
        .map_or("they were not read yet", |p| &p.reason)
        .to_owned()
}

fn problem(problem: Problem) -> ChartProblem {
    ChartProblem {
        chart: problem.path(),
        version: problem.version,
        kind: problem.kind.word().to_owned(),
        reason: problem.reason,
    }
}

pub async fn repositories(
    state: Arc<State>,
    guard: Guard,
    _: ListRequest,
) -> Result<ChartRepositoryList, ApiError> {
    let seen = state.reach.chart_repositories_with_problems(&guard);
    let seen = seen.await?.into_iter();
    let items = seen.map(|(repo, problems)| ChartRepository {
        problems: problems.into_iter().map(problem).collect(),
        namespace: repo.id.namespace,
        name: repo.id.name,
        url: repo.url,
        charts: repo.charts,
        versions: repo.versions,
        skipped: repo.skipped,
        synced_at: repo.succeeded_at.unwrap_or_default(),
        error: repo.error.unwrap_or_default(),
    });
    Ok(ChartRepositoryList {
        items: items.collect(),
    })
}

pub async fn add(
    state: Arc<State>,
    guard: Guard,
    q: AddRequest,
) -> Result<EmptyResponse, ApiError> {
    let is_registry = match &*q.type_ {
        "" => q.url.starts_with("oci://"),
        "helm" => false,
        "oci" => true,
        other => {
            return Err(ApiError::invalid(format!(
                "type: {other:?} is not helm or oci"
            )));
        }
    };
    let wanted = NewRepository {
        id: RepoId::new(&state.options.namespace, &q.name),
        url: q.url,
        is_registry,
        oci_repositories: q.oci_repositories,
        interval: q.interval,
        username: q.username,
        password: q.password.into(),
    };
    state.reach.add_charts(&guard, &wanted).await?;
    Ok(EmptyResponse {})
}

/// The Applications that came from its charts stay.
pub async fn remove(
    state: Arc<State>,
    guard: Guard,
    q: SyncRequest,
) -> Result<EmptyResponse, ApiError> {
    let id = RepoId::new(q.namespace, q.name);
    state.reach.remove_charts(&guard, &id).await?;
    Ok(EmptyResponse {})
}

pub async fn sync(
    state: Arc<State>,
    guard: Guard,
    q: SyncRequest,
) -> Result<EmptyResponse, ApiError> {
    let id = RepoId::new(q.namespace, q.name);
    state.reach.resync_charts(&guard, &id).await?;
    Ok(EmptyResponse {})
}

//! The catalogue of a server. Main type: [`Server`], which turns the server's answers into what a
//! database of this machine says, so that both are printed alike.

use super::{
    called, failed, meant,
    read::{NOT_YET, Shown},
};
use crate::{
    client::{Client, ConnectArgs, Failure},
    commands,
};
use std::collections::BTreeMap;
use tiphys_api::rpc::catalog::{
    self as rpc, ChartRepository, ChartRepositoryList, ChartRequest, ChartResponse, ChartSummary,
    EmptyResponse, Facet, ListRequest, SearchRequest, SearchResponse,
};
use tiphys_catalog::{
    RepoId,
    model::{Chart, ChartFiles, ChartVersion, Maintainer, RepoRef},
    search::{Facets, Found, Page, Token},
    store::RepoStatus,
};
use tonic::{Code, Status};

const SEARCH: &str = "/catalog.CatalogService/Search";
const GET: &str = "/catalog.CatalogService/Get";
const LIST: &str = "/catalog.CatalogService/ListRepositories";

/// The largest page: one name has few charts.
const ALL: i32 = 500;

const NO_CATALOGUE: &str = "`tiphys control-plane` and `tiphys server` have a chart catalogue with \
     --catalog-database-url or --catalog-file; --local asks that of this machine";
const UNREACHED: &str = "is the server running, and its address right? `tiphys context` shows \
     which one is asked; --local asks the catalogue of this machine";

/// The server that the user is logged in to, or names.
pub(super) struct Server(Client);

impl Server {
    pub async fn connect(args: &ConnectArgs) -> Result<Self, Failure> {
        let connected = commands::connect(args).await;
        // Where there is advice, no server was found.
        let advised = connected.map_err(|e| match e.hint {
            "" => e,
            _ => e.with_hint(UNREACHED),
        });
        Ok(Self(advised?))
    }

    pub async fn ask<Q, R>(&self, path: &'static str, request: Q) -> Result<R, Failure>
    where
        Q: prost::Message + Clone + 'static,
        R: prost::Message + Default + 'static,
    {
        self.0.unary(path, request).await.map_err(refused)
    }

    /// The same of a call that only does something.
    pub async fn tell<Q>(&self, path: &'static str, request: Q) -> Result<(), Failure>
    where
        Q: prost::Message + Clone + 'static,
    {
        let EmptyResponse {} = self.ask(path, request).await?;
        Ok(())
    }

    pub async fn search(&self, request: SearchRequest) -> Result<Page, Failure> {
        page(self.ask(SEARCH, request).await?)
    }

    pub fn client(&self) -> &Client {
        &self.0
    }

    /// The chart that a name means, with one of its versions.
    pub async fn shown(&self, name: &str, version: Option<&str>) -> Result<Shown, Failure> {
        let request = self.place(name, version).await?;
        let id = RepoId::new(&request.namespace, &request.repository);
        Ok(shown(id, self.ask(GET, request).await?))
    }

    /// Where that is, as calls name it.
    pub async fn place(&self, name: &str, version: Option<&str>) -> Result<ChartRequest, Failure> {
        let chart = name.rsplit_once('/').map_or(name, |(_, chart)| chart);
        let request = SearchRequest {
            names: vec![chart.to_owned()],
            page_size: ALL,
            ..SearchRequest::default()
        };
        let answer: SearchResponse = self.ask(SEARCH, request).await?;
        let found = answer.items.into_iter().map(|chart| {
            let id = RepoId::new(&chart.namespace, &chart.repository);
            (id, chart.path)
        });
        let (id, path) = meant(name, found.collect())?;
        Ok(ChartRequest {
            namespace: id.namespace,
            repository: id.name,
            path,
            version: version.unwrap_or_default().to_owned(),
        })
    }

    /// The repositories that the user may see.
    pub async fn repositories(&self) -> Result<Vec<ChartRepository>, Failure> {
        let list: ChartRepositoryList = self.ask(LIST, ListRequest {}).await?;
        Ok(list.items)
    }

    /// Those that are listed under these names.
    pub async fn listed(&self, names: &[String]) -> Result<Vec<ChartRepository>, Failure> {
        listed(&self.repositories().await?, names)
    }

    /// Those with these names; all of them if none is named.
    pub async fn named(&self, names: &[String]) -> Result<Vec<ChartRepository>, Failure> {
        chosen(self.repositories().await?, names)
    }
}

/// The call failed; a user at a terminal hears what else can be done.
fn refused(status: Status) -> Failure {
    let code = status.code();
    let failure = Failure::from(status);
    let hint = match code {
        Code::Unimplemented => NO_CATALOGUE,
        // A server that answered itself has no advice.
        Code::Unavailable if !failure.hint.is_empty() => UNREACHED,
        _ => failure.hint,
    };
    failure.with_hint(hint)
}

pub(super) fn id(repository: &ChartRepository) -> RepoId {
    RepoId::new(&repository.namespace, &repository.name)
}

/// Those with these names. One without its namespace will do, where only one has it: what is added
/// here gets the namespace of the control plane, which the user need not know.
fn chosen(all: Vec<ChartRepository>, names: &[String]) -> Result<Vec<ChartRepository>, Failure> {
    if names.is_empty() {
        return Ok(all);
    }
    let one = |name: &String| {
        let exact = all
            .iter()
            .find(|repository| called(&id(repository)) == *name);
        if let Some(exact) = exact {
            return Ok(exact.clone());
        }
        let mut same = all.iter().filter(|repository| repository.name == *name);
        match (same.next(), same.next()) {
            (Some(only), None) => Ok(only.clone()),
            (Some(_), Some(_)) => Err(Failure::error(format!(
                "the server has several repositories {name:?}: name one with its namespace, as \
                 `catalog repos list` does"
            ))),
            (None, _) => Err(unknown(name)),
        }
    };
    names.iter().map(one).collect()
}

fn unknown(name: &str) -> Failure {
    Failure::error(format!(
        "the server has no repository {name:?}; `catalog repos list` shows those that you may see"
    ))
}

/// Those that are listed under these names. What is removed is not guessed: another namespace may
/// just not be visible.
fn listed(all: &[ChartRepository], names: &[String]) -> Result<Vec<ChartRepository>, Failure> {
    let one = |name: &String| {
        let mut listed = all.iter();
        if let Some(found) = listed.find(|repository| called(&id(repository)) == *name) {
            return Ok(found.clone());
        }
        let same = all.iter().filter(|repository| repository.name == *name);
        let same: Vec<String> = same.map(|repository| called(&id(repository))).collect();
        Err(match same.is_empty() {
            true => unknown(name),
            false => Failure::error(format!(
                "no repository is listed as {name:?}, but {}: name what is removed with its \
                 namespace",
                same.join(", ")
            )),
        })
    };
    names.iter().map(one).collect()
}

pub(super) fn status(repository: ChartRepository) -> RepoStatus {
    RepoStatus {
        id: id(&repository),
        url: repository.url,
        succeeded_at: Some(repository.synced_at).filter(|at| *at != 0),
        error: Some(repository.error).filter(|error| !error.is_empty()),
        skipped: repository.skipped,
        charts: repository.charts,
        versions: repository.versions,
        ..RepoStatus::default()
    }
}

fn page(answer: SearchResponse) -> Result<Page, Failure> {
    let next = match &*answer.next_page_token {
        "" => None,
        token => Some(token.parse::<Token>().map_err(failed)?),
    };
    let mut categories = counts(answer.categories);
    // How many have none is not told, and each of the others has one.
    let known: u64 = categories.values().sum();
    let total = u64::try_from(answer.total).unwrap_or_default();
    if total > known {
        categories.insert(String::new(), total - known);
    }
    Ok(Page {
        charts: answer.items.into_iter().map(found).collect(),
        total: usize::try_from(answer.total).unwrap_or_default(),
        facets: Facets {
            repositories: counts(answer.repositories),
            categories,
            keywords: counts(answer.keywords),
        },
        next,
    })
}

fn counts(facets: Vec<Facet>) -> BTreeMap<String, u64> {
    let facets = facets.into_iter();
    facets
        .map(|facet| (facet.value, u64::try_from(facet.count).unwrap_or_default()))
        .collect()
}

/// The id of a chart in the database.
fn chart_id(repository: &str, path: &str) -> String {
    format!("{repository}/{}", path.replace('/', "%2F"))
}

fn found(chart: ChartSummary) -> Found {
    Found {
        id: chart_id(&chart.repository, &chart.path),
        namespace: chart.namespace,
        repository: chart.repository,
        name: chart.name,
        version: chart.version,
        app_version: chart.app_version,
        description: chart.description,
        category: chart.category,
        keywords: chart.keywords,
        deprecated: chart.deprecated,
        versions: chart.versions.into(),
    }
}

/// A list that an index leaves out is `None` in the database.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn version(version: rpc::ChartVersion) -> ChartVersion {
    ChartVersion {
        version: version.version,
        app_version: version.app_version,
        created: version.created,
        digest: version.digest,
        urls: some(version.urls),
        ..ChartVersion::default()
    }
}

fn person(person: rpc::Maintainer) -> Maintainer {
    Maintainer {
        name: person.name,
        email: person.email,
        url: person.url,
    }
}

fn shown(id: RepoId, answer: ChartResponse) -> Shown {
    let of_version = |problem: &rpc::ChartProblem| problem.version == answer.shown.version;
    let problems = answer.problems.iter().filter(|problem| of_version(problem));
    let mut reasons: Vec<String> = problems.map(|problem| problem.reason.clone()).collect();
    let missing = answer.missing;
    // Why there are no files is told apart from the rest; that nobody looked yet is no problem.
    if !matches!(&*missing, "" | NOT_YET) && !reasons.contains(&missing) {
        reasons.insert(0, missing.clone());
    }
    let additional = answer.additional_values.into_iter();
    let files = ChartFiles {
        readme: answer.readme,
        values: answer.values,
        schema: answer.schema,
        additional_values: additional.map(|file| (file.name, file.content)).collect(),
        ..ChartFiles::default()
    };
    let summary = answer.chart;
    let people = answer.people.into_iter().map(person);
    let versions = answer.versions.into_iter().map(version);
    Shown {
        chart: Chart {
            id: chart_id(&id.name, &summary.path),
            name: summary.name,
            repo: RepoRef {
                url: answer.repo_url,
                ..RepoRef::default()
            },
            description: summary.description,
            home: answer.home,
            keywords: some(summary.keywords),
            maintainers: Some(people.collect()),
            sources: some(answer.sources),
            category: summary.category,
            versions: versions.collect(),
            ..Chart::default()
        },
        id,
        version: version(answer.shown),
        files: match missing.is_empty() {
            true => Ok(files),
            false => Err(missing),
        },
        deprecated: summary.deprecated,
        reasons,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(namespace: &str, name: &str) -> ChartRepository {
        ChartRepository {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..ChartRepository::default()
        }
    }

    #[test]
    fn repositories_are_named_as_they_are_listed_or_shorter() {
        let all = vec![
            repository("argocd", "one"),
            repository("default", "two"),
            repository("team", "two"),
            repository("a", "three"),
            repository("b", "three"),
        ];
        let of = |names: &[&str]| -> Result<Vec<String>, String> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let found = chosen(all.clone(), &names).map_err(|e| e.message)?;
            Ok(found.iter().map(|found| called(&id(found))).collect())
        };
        assert_eq!(of(&["one"]).expect("it is there"), ["argocd/one"]);
        let two = of(&["two", "team/two"]);
        assert_eq!(two.expect("both are there"), ["two", "team/two"]);
        assert_eq!(of(&[]).expect("all").len(), 5);
        let several = of(&["three"]).expect_err("two have the name");
        assert!(several.contains("several repositories"), "{several}");
        let none = of(&["one", "four"]).expect_err("none has the name");
        assert!(none.contains("no repository \"four\""), "{none}");
    }

    #[test]
    fn what_is_removed_is_named_as_it_is_listed() {
        let all = [
            repository("argocd", "one"),
            repository("default", "two"),
            repository("team", "two"),
            repository("a", "three"),
            repository("b", "three"),
        ];
        let of = |name: &str| -> Result<Vec<String>, String> {
            let found = listed(&all, &[name.to_owned()]).map_err(|e| e.message)?;
            let full = |repo: &ChartRepository| format!("{}/{}", repo.namespace, repo.name);
            Ok(found.iter().map(full).collect())
        };
        for (name, expected) in [
            ("argocd/one", "argocd/one"),
            ("two", "default/two"),
            ("team/two", "team/two"),
        ] {
            assert_eq!(of(name).expect(name), [expected]);
        }
        for (name, reason) in [
            ("one", "but argocd/one: name"),
            ("three", "but a/three, b/three: name"),
            ("four", "no repository \"four\""),
            ("b/two", "no repository \"b/two\""),
        ] {
            let refused = of(name).expect_err(name);
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn charts_without_a_category_are_counted() {
        let facet = |value: &str, count| Facet {
            value: value.to_owned(),
            count,
        };
        let answer = SearchResponse {
            total: 5,
            categories: vec![facet("A", 2), facet("B", 1)],
            ..SearchResponse::default()
        };
        let page = page(answer).expect("a page");
        let categories: Vec<_> = page.facets.categories.into_iter().collect();
        let wanted: [(&str, u64); 3] = [("", 2), ("A", 2), ("B", 1)];
        assert_eq!(
            categories,
            wanted.map(|(value, count)| (value.to_owned(), count))
        );
    }

    #[test]
    fn why_there_are_no_files_is_one_of_the_problems() {
        let of = |missing: &str| {
            let answer = ChartResponse {
                missing: missing.to_owned(),
                shown: rpc::ChartVersion {
                    version: "1.0.0".to_owned(),
                    ..rpc::ChartVersion::default()
                },
                problems: ["1.0.0", "0.9.0"]
                    .map(|version| rpc::ChartProblem {
                        version: version.to_owned(),
                        reason: format!("{version} is twice there"),
                        ..rpc::ChartProblem::default()
                    })
                    .into(),
                ..ChartResponse::default()
            };
            let shown = shown(RepoId::new("n", "r"), answer);
            (shown.files.is_ok(), shown.reasons.join("; "))
        };
        let twice = "1.0.0 is twice there";
        assert_eq!(of(""), (true, twice.to_owned()));
        assert_eq!(of(NOT_YET), (false, twice.to_owned()));
        assert_eq!(of(twice), (false, twice.to_owned()));
        assert_eq!(of("404"), (false, format!("404; {twice}")));
    }
}

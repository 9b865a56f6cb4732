//! `catalog search`: charts by words and properties.

use super::{Catalogue, called, failed};
use crate::{
    client::Failure,
    output::{
        self,
        sort::{Field, SortBy},
        table,
    },
};
use tiphys_api::rpc::catalog::SearchRequest;
use tiphys_catalog::{
    RepoId, Store,
    search::{Found, Page, Query},
};

/// Search the charts of the catalogue
///
/// A chart is found if every word is in its name, keywords, description or maintainers. Charts
/// whose name matches best come first, deprecated ones last.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  # Of the server that you are logged in to, else of this machine
  tiphys catalog search prometheus
  tiphys catalog search --facets
  tiphys catalog search database --sort-by name

  # Of another server
  tiphys catalog search database --keyword sql -o wide --server cd.example.com

  # Of this machine, although you are logged in
  tiphys catalog search database --repo bitnami --local")]
pub struct Search {
    /// Words; without any, all charts are listed
    words: Vec<String>,
    /// Only repositories of these namespaces of a cluster
    #[arg(long, short, value_name = "NAME")]
    namespace: Vec<String>,
    /// Only charts of these repositories
    #[arg(long, value_name = "NAME")]
    repo: Vec<String>,
    /// Only charts of these categories
    #[arg(long)]
    category: Vec<String>,
    /// Only charts with one of these keywords
    #[arg(long)]
    keyword: Vec<String>,
    /// Charts on a page, up to 500
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Continue after the page that ended with this token
    #[arg(long, value_name = "TOKEN")]
    after: Option<String>,
    /// Count the charts by repository, category and keyword instead of listing them
    #[arg(long)]
    facets: bool,
    /// Output format. One of: json|yaml|wide|name
    #[arg(
        long,
        short,
        default_value = "",
        hide_default_value = true,
        value_name = "FORMAT"
    )]
    output: String,
    #[command(flatten)]
    sort_by: SortBy,
}

impl Search {
    pub(super) async fn run(self, of: &Catalogue) -> Result<(), Failure> {
        let mut page = match of {
            Catalogue::Here(store) => self.here(store)?,
            Catalogue::Of(server) => server.search(self.request()).await?,
        };
        self.sort_by.sort(&mut page.charts, FIELDS)?;
        output::print(&match self.output.as_str() {
            "json" | "yaml" => output::document(&page, &self.output)?,
            "name" => page.charts.iter().map(|chart| name(chart) + "\n").collect(),
            "wide" | "" if self.facets => counts(&page),
            "wide" | "" => rows(&page.charts, self.output == "wide"),
            other => return Err(output::unknown_format(other)),
        });
        let is_table = matches!(self.output.as_str(), "" | "wide") && !self.facets;
        if let Some(next) = page.next.filter(|_| is_table) {
            let (shown, total) = (page.charts.len(), page.total);
            eprintln!("{shown} of {total} charts; the next page: --after {next}");
        }
        Ok(())
    }

    /// What the database of this machine finds.
    fn here(&self, store: &Store) -> Result<Page, Failure> {
        let after = self.after.as_deref().map(str::parse).transpose();
        let page = store.search(&Query {
            text: self.words.join(" "),
            namespaces: self.namespace.clone(),
            repositories: self.repo.clone(),
            categories: self.category.clone(),
            keywords: self.keyword.clone(),
            after: after.map_err(failed)?,
            size: self.limit,
            ..Query::default()
        });
        page.map_err(failed)
    }

    /// The same for a server.
    fn request(&self) -> SearchRequest {
        SearchRequest {
            query: self.words.join(" "),
            namespaces: self.namespace.clone(),
            repositories: self.repo.clone(),
            categories: self.category.clone(),
            keywords: self.keyword.clone(),
            page_token: self.after.clone().unwrap_or_default(),
            page_size: i32::try_from(self.limit).unwrap_or(i32::MAX),
            ..SearchRequest::default()
        }
    }
}

/// The charts of a page: which ones these are, the search decides.
const FIELDS: &[Field<Found>] = &[
    ("name", |chart| name(chart).into()),
    ("version", |chart| chart.version.as_str().into()),
    ("appversion", |chart| chart.app_version.as_str().into()),
    ("versions", |chart| chart.versions.into()),
    ("category", |chart| chart.category.as_str().into()),
    ("deprecated", |chart| chart.deprecated.into()),
    ("description", |chart| chart.description.as_str().into()),
];

fn name(chart: &Found) -> String {
    let id = RepoId::new(&chart.namespace, &chart.repository);
    format!("{}/{}", called(&id), chart.name)
}

fn rows(charts: &[Found], wide: bool) -> String {
    let row = |chart: &Found| {
        let mut text = chart.description.replace(['\n', '\t'], " ");
        if chart.deprecated {
            text = format!("DEPRECATED: {text}");
        }
        let mut row = vec![
            name(chart),
            chart.version.clone(),
            chart.app_version.clone(),
        ];
        if wide {
            row.push(chart.versions.to_string());
            row.push(chart.category.clone());
            row.push(chart.keywords.join(","));
        }
        row.push(text);
        row
    };
    let mut header = vec!["NAME", "VERSION", "APP VERSION"];
    if wide {
        header.extend(["VERSIONS", "CATEGORY", "KEYWORDS"]);
    }
    header.push("DESCRIPTION");
    table::table(&header, charts.iter().map(row))
}

fn counts(page: &Page) -> String {
    let facets = [
        ("repository", &page.facets.repositories),
        ("category", &page.facets.categories),
        ("keyword", &page.facets.keywords),
    ];
    let rows = facets.into_iter().flat_map(|(facet, values)| {
        let values = values.iter().filter(|(value, _)| !value.is_empty());
        values.map(move |(value, charts)| vec![facet.to_owned(), value.clone(), charts.to_string()])
    });
    table::table(&["FACET", "VALUE", "CHARTS"], rows)
}

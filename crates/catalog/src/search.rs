//! What a search shows, and in which order.
//!
//! Main types: [`Query`] and [`Page`]. Every word of a query must be found somewhere in a chart.
//! How well it was found decides the order, not how often; so a page can begin after a known chart.

use crate::{
    CatalogError, RepoId, Store,
    folding::folded,
    store::{Row, Sql, Value},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

/// Words of a query that count.
const WORDS: usize = 16;
/// Charts on a page, if the query does not say.
const PAGE: usize = 50;
const LARGEST_PAGE: usize = 500;

/// What is searched for. Empty lists and texts permit everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pub text: String,
    /// The repositories that may be seen at all; `None`: all of them.
    pub only: Option<Vec<RepoId>>,
    /// Only repositories of these namespaces.
    pub namespaces: Vec<String>,
    /// Only charts of these repositories.
    pub repositories: Vec<String>,
    /// Only charts with exactly one of these names.
    pub names: Vec<String>,
    pub categories: Vec<String>,
    /// Charts with any of these.
    pub keywords: Vec<String>,
    /// Where the last page ended.
    pub after: Option<Token>,
    /// Charts on a page; 0 means 50.
    pub size: usize,
}

/// The place of a chart in the order of results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    deprecated: bool,
    rank: u8,
    name: String,
    namespace: String,
    repository: String,
}

/// What a [`Token`] says, of a chart that was found: deprecated, rank, name, namespace, repository.
type Place<'r> = (bool, u8, &'r str, &'r str, &'r str);

impl Token {
    fn place(&self) -> Place<'_> {
        (
            self.deprecated,
            self.rank,
            &self.name,
            &self.namespace,
            &self.repository,
        )
    }
}

impl From<Place<'_>> for Token {
    fn from((deprecated, rank, name, namespace, repository): Place<'_>) -> Self {
        Self {
            deprecated,
            rank,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            repository: repository.to_owned(),
        }
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = serde_json::to_string(self).map_err(|_| std::fmt::Error)?;
        f.write_str(&URL_SAFE_NO_PAD.encode(text))
    }
}

impl std::str::FromStr for Token {
    type Err = CatalogError;

    fn from_str(text: &str) -> Result<Self, CatalogError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let token = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        token.ok_or_else(|| CatalogError::Invalid("the page token is none of ours".to_owned()))
    }
}

/// A chart as a list shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    pub namespace: String,
    pub repository: String,
    pub id: String,
    pub name: String,
    pub version: String,
    pub app_version: String,
    pub description: String,
    pub category: String,
    pub keywords: Vec<String>,
    pub deprecated: bool,
    pub versions: i64,
}

/// Charts by value of a property.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Facets {
    pub repositories: BTreeMap<String, u64>,
    pub categories: BTreeMap<String, u64>,
    pub keywords: BTreeMap<String, u64>,
}

/// One page of results, and numbers for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Page {
    pub charts: Vec<Found>,
    pub total: usize,
    pub facets: Facets,
    /// Where the next page begins; `None`: this is the last one.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub next: Option<Token>,
}

fn as_text<S: serde::Serializer>(token: &Option<Token>, out: S) -> Result<S::Ok, S::Error> {
    token.as_ref().map(ToString::to_string).serialize(out)
}

/// What decides the order and the numbers.
const COLUMNS: &str =
    "t.repo_namespace, t.repo_name, t.chart_id, t.name, t.category, t.keywords, t.deprecated";
/// The same, where it matters how well a word was found.
const RANKED: &str = "t.folded_name, t.folded_keywords";
/// What only charts of the page are read for.
const SHOWN: &str =
    "repo_namespace, repo_name, chart_id, version, app_version, description, versions";

impl Store {
    /// # Errors
    /// The database fails.
    pub fn search(&self, query: &Query) -> Result<Page, CatalogError> {
        let text = folded(&query.text);
        let words: Vec<&str> = text.split_whitespace().take(WORDS).collect();
        self.read(|sql| {
            let find = match sql.dialect() {
                crate::store::Dialect::Sqlite => "instr",
                crate::store::Dialect::Postgres => "strpos",
            };
            let (mut wanted, mut values) = (String::new(), Vec::new());
            for word in &words {
                let mut place = || {
                    values.push(Value::from(*word));
                    values.len()
                };
                wanted.push_str(&format!(
                    " AND ({find}(t.folded_name, ${}) > 0 OR {find}(t.folded_keywords, ${}) > 0
                    OR {find}(t.folded_text, ${}) > 0)",
                    place(),
                    place(),
                    place()
                ));
            }
            for (column, permitted) in [
                ("t.repo_namespace", &query.namespaces),
                ("t.repo_name", &query.repositories),
                ("t.name", &query.names),
                ("t.category", &query.categories),
            ] {
                if permitted.is_empty() {
                    continue;
                }
                let mut place = |value: &String| {
                    values.push(Value::from(value));
                    format!("{column} = ${}", values.len())
                };
                let any: Vec<String> = permitted.iter().map(&mut place).collect();
                wanted.push_str(&format!(" AND ({})", any.join(" OR ")));
            }
            if let Some(only) = &query.only {
                let mut place = |id: &RepoId| {
                    values.push(Value::from(&id.namespace));
                    values.push(Value::from(&id.name));
                    let last = values.len();
                    format!(
                        "(t.repo_namespace = ${} AND t.repo_name = ${last})",
                        last - 1
                    )
                };
                let any: Vec<String> = only.iter().map(&mut place).collect();
                if any.is_empty() {
                    return Ok(Page::default());
                }
                wanted.push_str(&format!(" AND ({})", any.join(" OR ")));
            }
            let ranked = if words.is_empty() { "" } else { RANKED };
            let comma = if words.is_empty() { "" } else { ", " };
            // A join takes SQLite twice as long.
            let statement = format!(
                "SELECT {COLUMNS}{comma}{ranked} FROM tiphys_charts t
                WHERE EXISTS (SELECT 1 FROM charts c WHERE c.repo_namespace = t.repo_namespace
                    AND c.repo_name = t.repo_name AND c.chart_id = t.chart_id){wanted}"
            );
            let rows = sql.query(&statement, &values)?;
            let mut page = page(&rows, &words, query);
            describe(sql, &mut page.charts)?;
            Ok(page)
        })
    }
}

/// Reads what is shown of charts.
fn describe(sql: &mut dyn Sql, charts: &mut [Found]) -> Result<(), CatalogError> {
    if charts.is_empty() {
        return Ok(());
    }
    let places = |n: usize| format!("(${}, ${}, ${})", 3 * n + 1, 3 * n + 2, 3 * n + 3);
    let all: Vec<String> = (0..charts.len()).map(places).collect();
    let keys = charts
        .iter()
        .flat_map(|c| [&c.namespace, &c.repository, &c.id]);
    let values: Vec<Value> = keys.map(Value::from).collect();
    let statement = format!(
        "SELECT {SHOWN} FROM (VALUES {}) wanted JOIN tiphys_charts t
        ON t.repo_namespace = wanted.column1 AND t.repo_name = wanted.column2
            AND t.chart_id = wanted.column3",
        all.join(", ")
    );
    let rows = sql.query(&statement, &values)?;
    let by_key: HashMap<[&str; 3], &Row> = rows
        .iter()
        .map(|row| ([row.text(0), row.text(1), row.text(2)], row))
        .collect();
    for chart in charts {
        let key = [&*chart.namespace, &*chart.repository, &*chart.id];
        let Some(row) = by_key.get(&key) else {
            continue;
        };
        let text = |column| row.text(column).to_owned();
        (chart.version, chart.app_version, chart.description) = (text(3), text(4), text(5));
        chart.versions = row.int(6);
    }
    Ok(())
}

/// A text of a JSON list, copied only if it has escapes.
#[derive(Deserialize)]
struct Word<'r>(#[serde(borrow)] Cow<'r, str>);

/// Charts by value of a property.
type Counts<'r> = HashMap<Cow<'r, str>, u64>;

fn named(counts: Counts<'_>) -> BTreeMap<String, u64> {
    let counts = counts.into_iter();
    counts
        .map(|(name, count)| (name.into_owned(), count))
        .collect()
}

/// Everything is counted, and little of it shown: only that is copied.
fn page(rows: &[Row], words: &[&str], query: &Query) -> Page {
    let (mut repositories, mut categories) = (Counts::new(), Counts::new());
    let mut keywords = Counts::new();
    let mut found: Vec<(Place<'_>, &Row, Vec<Word<'_>>)> = Vec::with_capacity(rows.len());
    for row in rows {
        let its_own: Vec<Word<'_>> = serde_json::from_str(row.text(5)).unwrap_or_default();
        let is_wanted = |word: &Word<'_>| query.keywords.iter().any(|wanted| *wanted == word.0);
        if !query.keywords.is_empty() && !its_own.iter().any(is_wanted) {
            continue;
        }
        *repositories.entry(row.text(1).into()).or_default() += 1;
        *categories.entry(row.text(4).into()).or_default() += 1;
        for Word(keyword) in &its_own {
            *keywords.entry(keyword.clone()).or_default() += 1;
        }
        let rank = rank(row.text(7), row.text(8), words);
        let place = (row.int(6) != 0, rank, row.text(3), row.text(0), row.text(1));
        found.push((place, row, its_own));
    }
    found.sort_unstable_by_key(|(place, ..)| *place);
    let total = found.len();
    let size = match query.size {
        0 => PAGE,
        size => size.min(LARGEST_PAGE),
    };
    let start = query.after.as_ref().map_or(0, |after| {
        found.partition_point(|(place, ..)| *place <= after.place())
    });
    let rest = found.len().saturating_sub(start);
    let next = (rest > size).then(|| Token::from(found[start + size - 1].0));
    let shown = found.into_iter().skip(start).take(size);
    let charts = shown.map(|((deprecated, _, name, ..), row, keywords)| Found {
        namespace: row.text(0).to_owned(),
        repository: row.text(1).to_owned(),
        id: row.text(2).to_owned(),
        name: name.to_owned(),
        category: row.text(4).to_owned(),
        keywords: keywords
            .into_iter()
            .map(|Word(word)| word.into_owned())
            .collect(),
        deprecated,
        ..Found::default()
    });
    Page {
        charts: charts.collect(),
        total,
        facets: Facets {
            repositories: named(repositories),
            categories: named(categories),
            keywords: named(keywords),
        },
        next,
    }
}

/// How well a chart was found; 0 is best. The word that was found worst counts.
fn rank(name: &str, keywords: &str, words: &[&str]) -> u8 {
    let of = |word: &&str| {
        if name == *word {
            0
        } else if name.starts_with(word) {
            1
        } else if name.split('-').any(|part| part == *word) {
            2
        } else if name.contains(word) {
            3
        } else if keywords.lines().any(|keyword| keyword == *word) {
            4
        } else if keywords.contains(word) {
            5
        } else {
            6
        }
    };
    words.iter().map(of).max().unwrap_or_default()
}

#[cfg(test)]
mod tests;

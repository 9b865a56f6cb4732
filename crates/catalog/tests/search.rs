//! The same searches on SQLite and on a real PostgreSQL.

use crate::{
    postgres::{on, open},
    world::World,
};
use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};
use tiphys_catalog::{
    RepoId, Store,
    search::{Facets, Page, Query},
};
use tiphys_testkit::postgres::Postgres;

/// A chart as its index writes it.
struct Listed {
    name: &'static str,
    description: &'static str,
    category: &'static str,
    keywords: &'static [&'static str],
    maintainer: &'static str,
    /// The newest first.
    versions: &'static [&'static str],
    deprecated: bool,
}

const fn chart(name: &'static str, description: &'static str) -> Listed {
    Listed {
        name,
        description,
        category: "",
        keywords: &[],
        maintainer: "",
        versions: &["1.0.0"],
        deprecated: false,
    }
}

/// Two repositories in a namespace, and one in another.
fn repositories() -> [(RepoId, Vec<Listed>); 3] {
    let first = vec![
        Listed {
            category: "Database",
            keywords: &["db", "it's \"quoted\""],
            maintainer: "José Peña",
            versions: &["2.10.0", "2.9.0", "1.0.0"],
            ..chart("redis", "A fast store, 100% in memory")
        },
        Listed {
            category: "Database",
            keywords: &["db"],
            ..chart("redis-cluster", "Größe zählt; 日本語の説明 🚢")
        },
        Listed {
            deprecated: true,
            category: "Database",
            keywords: &["db", "old"],
            ..chart("redis-old", "redis as it was")
        },
        Listed {
            category: "Web's \"best\"",
            ..chart("o'brien", r"Robert'); DROP TABLE charts;-- $1 \ _x_")
        },
    ];
    let second = vec![
        Listed {
            category: "Network",
            keywords: &["web", "proxy"],
            ..chart("nginx", "Serves what redis stores")
        },
        chart("null", "with a \\0 in it"),
    ];
    let other = vec![Listed {
        category: "Database",
        keywords: &["db"],
        ..chart("redis", "The same name elsewhere")
    }];
    [
        (RepoId::new("team", "main"), first),
        (RepoId::new("team", "it's"), second),
        (RepoId::new("other", "main"), other),
    ]
}

fn index(charts: &[Listed]) -> String {
    let mut text = "apiVersion: v1\nentries:\n".to_owned();
    for chart in charts {
        let quoted = |text: &str| serde_json::to_string(text).expect("JSON");
        let _ = writeln!(text, "  {}:", quoted(chart.name));
        for version in chart.versions {
            // A text of JSON is one of YAML; the backslash with a zero is meant as an escape.
            let description = quoted(chart.description).replace(r"\\0", r"\0");
            let keywords = serde_json::to_string(chart.keywords).expect("JSON");
            let _ = writeln!(
                text,
                "  - {{name: {}, version: {version}, appVersion: \"{version}-app\", \
                description: {description}, keywords: {keywords}, deprecated: {}, \
                maintainers: [{{name: {}}}], annotations: {{category: {}}}}}",
                quoted(chart.name),
                chart.deprecated,
                quoted(chart.maintainer),
                quoted(chart.category),
            );
        }
    }
    text
}

/// A store with all of them.
async fn filled(store: Arc<Store>) -> Arc<Store> {
    for (id, charts) in repositories() {
        let mut world = World::new();
        world.store = Arc::clone(&store);
        world.repository.id = id;
        world
            .server
            .serve("/charts/index.yaml", index(&charts).as_str());
        let report = world.sync().await.expect("synced");
        assert_eq!((report.charts, report.skipped), (charts.len(), 0));
    }
    store
}

fn text(words: &str) -> Query {
    Query {
        text: words.to_owned(),
        ..Query::default()
    }
}

fn list(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

fn counts(values: &[(&str, u64)]) -> BTreeMap<String, u64> {
    let pairs = values
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count));
    pairs.collect()
}

/// Every chart in the order in which a search for nothing shows it.
const ALL: [&str; 7] = [
    "team/it's nginx",
    "team/it's null",
    "team/main o'brien",
    "other/main redis",
    "team/main redis",
    "team/main redis-cluster",
    "team/main redis-old (deprecated)",
];

/// Queries, and the charts that each must find, in order.
fn cases() -> Vec<(Query, Vec<&'static str>)> {
    let only = |ids: &[(&str, &str)]| Query {
        only: Some(
            ids.iter()
                .map(|(of, name)| RepoId::new(*of, *name))
                .collect(),
        ),
        ..Query::default()
    };
    let [nginx, null, brien, elsewhere, redis, cluster, old] = ALL;
    vec![
        (text(""), ALL.to_vec()),
        (text(" \t\n"), ALL.to_vec()),
        // How well it was found; of the same name by namespace; those that are deprecated last.
        (text("redis"), vec![elsewhere, redis, cluster, nginx, old]),
        (text("REDIS stores"), vec![nginx]),
        (text("100%"), vec![redis]),
        (text("%"), vec![redis]),
        (text("_"), vec![brien]),
        (text("_x_"), vec![brien]),
        (text(r"\"), vec![brien]),
        (text("'"), vec![brien, redis]),
        (text("it's"), vec![redis]),
        (text("\"quoted\""), vec![redis]),
        (text("robert');"), vec![brien]),
        (text("'); DROP TABLE charts;--"), vec![brien]),
        (text("$1"), vec![brien]),
        (text("$2"), vec![]),
        (text("?1"), vec![]),
        (text("größe"), vec![cluster]),
        (text("GROSSE"), vec![]),
        (text("Grosse"), vec![]),
        (text("gröss"), vec![]),
        (text("zahlt"), vec![cluster]),
        (text("日本"), vec![cluster]),
        (text("🚢"), vec![cluster]),
        (text("jose PENA"), vec![redis]),
        (text("no-such-word"), vec![]),
        // What neither database can look for is what the catalogue shows in its place.
        (text("a\0b"), vec![]),
        (text("\0"), vec![null]),
        (text("\u{fffd}"), vec![null]),
        (
            Query {
                categories: list(&["Database"]),
                ..text("")
            },
            vec![elsewhere, redis, cluster, old],
        ),
        (
            Query {
                categories: list(&["Web's \"best\"", "Network"]),
                ..text("")
            },
            vec![nginx, brien],
        ),
        (
            Query {
                categories: list(&["database", "\0", "%"]),
                ..text("")
            },
            vec![],
        ),
        (
            Query {
                keywords: list(&["it's \"quoted\"", "proxy"]),
                ..text("")
            },
            vec![nginx, redis],
        ),
        (
            Query {
                repositories: list(&["it's"]),
                ..text("")
            },
            vec![nginx, null],
        ),
        (
            Query {
                namespaces: list(&["team"]),
                repositories: list(&["main"]),
                keywords: list(&["db"]),
                ..text("redis")
            },
            vec![redis, cluster, old],
        ),
        (
            Query {
                namespaces: list(&["nobody"]),
                ..text("")
            },
            vec![],
        ),
        (only(&[]), vec![]),
        (
            only(&[("other", "main"), ("team", "it's")]),
            vec![nginx, null, elsewhere],
        ),
        (only(&[("other", "it's")]), vec![]),
    ]
}

async fn search(store: &Arc<Store>, query: &Query) -> Page {
    let (asked, shown) = (query.clone(), format!("{query:?}"));
    let page = on(store, move |store| store.search(&asked)).await;
    page.unwrap_or_else(|e| panic!("{shown}: {e}"))
}

fn shown(page: &Page) -> Vec<String> {
    let line = |chart: &tiphys_catalog::search::Found| {
        let mark = if chart.deprecated {
            " (deprecated)"
        } else {
            ""
        };
        format!(
            "{}/{} {}{mark}",
            chart.namespace, chart.repository, chart.name
        )
    };
    page.charts.iter().map(line).collect()
}

/// Each case at once, and page by page of every size.
async fn check(store: &Arc<Store>) -> Vec<Page> {
    let mut pages = Vec::new();
    for (query, wanted) in cases() {
        let page = search(store, &query).await;
        assert_eq!(shown(&page), wanted, "{query:?}");
        assert_eq!((page.total, &page.next), (wanted.len(), &None), "{query:?}");
        for size in 1..=wanted.len() {
            let (mut query, mut all, mut asked) = (
                Query {
                    size,
                    ..query.clone()
                },
                vec![],
                0,
            );
            loop {
                let part = search(store, &query).await;
                assert_eq!((part.total, &part.facets), (page.total, &page.facets));
                all.extend(part.charts);
                asked += 1;
                // As a client sends it back.
                let next = part.next.map(|next| next.to_string().parse());
                match next.transpose().expect("a token") {
                    None => break,
                    after => query.after = after,
                }
            }
            assert_eq!(all, page.charts, "{query:?}");
            // The last page is known as the last also where it is full.
            assert_eq!(asked, wanted.len().div_ceil(size), "{query:?}");
        }
        pages.push(page);
    }
    pages
}

async fn details(store: &Arc<Store>) {
    let page = search(store, &text("redis")).await;
    let facets = Facets {
        repositories: counts(&[("it's", 1), ("main", 4)]),
        categories: counts(&[("Database", 4), ("Network", 1)]),
        keywords: counts(&[
            ("db", 4),
            ("it's \"quoted\"", 1),
            ("old", 1),
            ("proxy", 1),
            ("web", 1),
        ]),
    };
    assert_eq!(page.facets, facets);
    let redis = &page.charts[1];
    assert_eq!(redis.id, "main/redis");
    assert_eq!(
        (&*redis.version, &*redis.app_version),
        ("2.10.0", "2.10.0-app")
    );
    assert_eq!(redis.versions, 3);
    assert_eq!(redis.description, "A fast store, 100% in memory");
    assert_eq!(redis.keywords, ["db", "it's \"quoted\""]);
    // Behind the end there is nothing, and still the numbers of all.
    let last = search(
        store,
        &Query {
            size: 4,
            ..text("redis")
        },
    )
    .await
    .next;
    let mut behind = Query {
        after: last,
        ..text("redis")
    };
    let end = search(store, &behind).await;
    assert_eq!(shown(&end), ["team/main redis-old (deprecated)"]);
    behind.text = "nginx".to_owned();
    let end = search(store, &behind).await;
    assert_eq!((end.charts.len(), end.total, end.next), (0, 1, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_find_the_same_in_both_databases() {
    let sqlite = Arc::new(Store::in_memory().expect("a database"));
    let sqlite = filled(sqlite).await;
    let pages = check(&sqlite).await;
    details(&sqlite).await;
    let Some(postgres) = Postgres::start_or_skip() else {
        return;
    };
    let store = filled(open(&postgres, &postgres.database()).await).await;
    assert_eq!(check(&store).await, pages);
    details(&store).await;
}

/// A page of the largest size has three parameters for every chart.
#[tokio::test(flavor = "multi_thread")]
async fn the_largest_page_is_read_by_its_keys() {
    const CHARTS: usize = 620;
    let mut text = "apiVersion: v1\nentries:\n".to_owned();
    for number in 0..CHARTS {
        let _ = writeln!(
            text,
            "  c{number:03}:\n  - {{name: c{number:03}, version: 1.0.0, description: d{number}}}"
        );
    }
    let mut stores = vec![Arc::new(Store::in_memory().expect("a database"))];
    let postgres = Postgres::start_or_skip();
    if let Some(postgres) = &postgres {
        stores.push(open(postgres, &postgres.database()).await);
    }
    for store in stores {
        let mut world = World::new();
        world.store = Arc::clone(&store);
        world.server.serve("/charts/index.yaml", text.as_str());
        world.sync().await.expect("synced");
        let mut query = Query {
            size: 1_000,
            ..Query::default()
        };
        let mut all = Vec::new();
        for (size, is_last) in [(500, false), (CHARTS - 500, true)] {
            let page = search(&store, &query).await;
            assert_eq!((page.charts.len(), page.next.is_none()), (size, is_last));
            all.extend(page.charts.into_iter().map(|chart| chart.description));
            query.after = page.next;
        }
        let wanted: Vec<String> = (0..CHARTS).map(|number| format!("d{number}")).collect();
        assert_eq!(all, wanted);
    }
}

//! Tests of the order and the numbers of results.

use super::*;
use crate::{RepoId, model::Chart, store::StoredSection};

fn stored(charts: &[(&str, &str, &[&str], bool)]) -> Store {
    let store = Store::in_memory().expect("a database");
    for (name, description, keywords, deprecated) in charts {
        let chart = Chart {
            id: format!("r/{name}"),
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            keywords: Some(keywords.iter().map(|k| (*k).to_owned()).collect()),
            category: "C".to_owned(),
            ..Chart::default()
        };
        let stored = StoredSection {
            chart: Some(chart),
            key: (*name).to_owned(),
            sha: "x".to_owned(),
            deprecated: *deprecated,
            notes: Vec::new(),
        };
        store
            .put_sections(&RepoId::new("n", "r"), &[stored], 1)
            .expect("stored");
    }
    store
}

fn names(store: &Store, query: &Query) -> Vec<String> {
    let page = store.search(query).expect("a page");
    page.charts.into_iter().map(|chart| chart.name).collect()
}

#[test]
fn pages_follow_each_other() {
    let charts: Vec<String> = (0..25).map(|n| format!("chart-{n:02}")).collect();
    let charts: Vec<(&str, &str, &[&str], bool)> = charts
        .iter()
        .map(|name| (name.as_str(), "", &[] as &[&str], false))
        .collect();
    let store = stored(&charts);
    let mut query = Query {
        size: 10,
        ..Query::default()
    };
    let mut all = Vec::new();
    loop {
        let page = store.search(&query).expect("a page");
        assert_eq!(page.total, 25);
        all.extend(page.charts.into_iter().map(|chart| chart.name));
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    let wanted: Vec<&str> = charts.iter().map(|chart| chart.0).collect();
    assert_eq!(all, wanted);
}

#[test]
fn facets_count_what_was_found() {
    let store = stored(&[
        ("redis", "a store", &["db", "cache"], false),
        ("mysql", "a store", &["db"], false),
        ("nginx", "a server", &["web"], false),
    ]);
    let query = |text: &str, keywords: &[&str]| Query {
        text: text.to_owned(),
        keywords: keywords.iter().map(|k| (*k).to_owned()).collect(),
        ..Query::default()
    };
    let page = store.search(&query("store", &[])).expect("a page");
    assert_eq!(
        page.facets.keywords,
        BTreeMap::from([("cache".to_owned(), 1), ("db".to_owned(), 2)])
    );
    assert_eq!(
        page.facets.repositories,
        BTreeMap::from([("r".to_owned(), 2)])
    );
    assert_eq!(names(&store, &query("", &["cache"])), ["redis"]);
    let other = Query {
        repositories: vec!["other".to_owned()],
        ..Query::default()
    };
    assert_eq!(names(&store, &other), [""; 0]);
}

#[test]
fn deprecated_charts_come_last_and_accents_do_not_matter() {
    let store = stored(&[
        ("solr", "old", &[], true),
        ("acme", "Café solr", &[], false),
    ]);
    let of = |text: &str| {
        names(
            &store,
            &Query {
                text: text.to_owned(),
                ..Query::default()
            },
        )
    };
    assert_eq!(of("solr"), ["acme", "solr"]);
    assert_eq!(of("CAFE"), ["acme"]);
    assert_eq!(of("café solr"), ["acme"]);
}

#[test]
fn whole_names_find_nothing_else() {
    let store = stored(&[
        ("web", "pages", &[], false),
        ("web-app", "web", &["web"], false),
        ("cache", "of web", &[], true),
    ]);
    let of = |wanted: &[&str]| Query {
        names: wanted.iter().map(|name| (*name).to_owned()).collect(),
        ..Query::default()
    };
    assert_eq!(names(&store, &of(&["web"])), ["web"]);
    assert_eq!(names(&store, &of(&["cache", "web"])), ["web", "cache"]);
    assert_eq!(names(&store, &of(&["WEB"])), [""; 0]);
}

//! Searches in the catalogue that was just read.

use anyhow::ensure;
use std::{path::Path, time::Instant};
use tiphys_catalog::{Store, search::Query};

/// How often each query is asked.
const ROUNDS: usize = 25;
/// What is searched for: everything, what most charts have, what few have, and what one has.
const QUERIES: [&str; 5] = ["", "chart", "synthetic k7", "number 17", "chart-0042"];

/// One query; times in milliseconds.
pub struct Found {
    pub query: &'static str,
    pub versions: usize,
    pub charts: usize,
    pub median: f64,
    pub worst: f64,
}

pub fn measure(folder: &Path, versions: usize) -> anyhow::Result<Vec<Found>> {
    let store = Store::sqlite(&folder.join("catalog.db"))?;
    let ask = |query: &'static str| {
        let asked = Query {
            text: query.to_owned(),
            ..Query::default()
        };
        let (mut times, mut charts) = (Vec::new(), 0);
        for _ in 0..ROUNDS {
            let start = Instant::now();
            charts = store.search(&asked)?.total;
            times.push(start.elapsed().as_secs_f64() * 1_000.0);
        }
        ensure!(charts > 0, "{query:?} finds nothing");
        times.sort_by(f64::total_cmp);
        Ok(Found {
            query,
            versions,
            charts,
            median: times[ROUNDS / 2],
            worst: times[ROUNDS - 1],
        })
    };
    QUERIES.into_iter().map(ask).collect()
}

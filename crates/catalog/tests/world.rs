//! A repository on loopback and the catalogue that reads it.

use sha2::{Digest as _, Sha256};
use std::{sync::Arc, time::Duration};
use tiphys_catalog::{
    CatalogError, RepoId, Repository, Store,
    search::Query,
    sync::{CatalogSync, SyncReport},
};
use tiphys_repo::{ChartRemote, RemoteOptions, RepoAccess};
use tiphys_testkit::charts::{Answer, FileServer, index, plain_chart};

pub fn sha(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

pub struct World {
    pub server: FileServer,
    pub store: Arc<Store>,
    pub repository: Repository,
    pub access: RepoAccess,
    /// Of one request.
    pub timeout: Duration,
}

impl World {
    pub fn new() -> Self {
        let server = FileServer::start();
        let url = format!("{}/charts", server.url());
        Self {
            store: Arc::new(Store::in_memory().expect("a database")),
            repository: Repository {
                id: RepoId::new("team", "r"),
                url: url.clone(),
                ..Repository::default()
            },
            access: RepoAccess::public(url),
            timeout: Duration::from_secs(30),
            server,
        }
    }

    pub async fn sync(&self) -> Result<SyncReport, CatalogError> {
        let options = RemoteOptions {
            pass_credentials: false,
            agent: String::new(),
            timeout: self.timeout,
        };
        let remote = ChartRemote::new(self.access.clone(), options);
        CatalogSync::new(Arc::clone(&self.store), remote, self.repository.clone())
            .run()
            .await
    }

    /// What was asked for since the last time, sorted.
    pub fn asked(&self) -> Vec<String> {
        let mut paths = self.server.paths();
        paths.sort();
        paths
    }

    pub fn readme(&self, chart: &str, version: &str) -> Option<String> {
        let files = self
            .store
            .files(&self.repository.id, &format!("r/{chart}"), version);
        files.expect("the database").map(|files| files.readme)
    }

    pub fn charts(&self) -> Vec<String> {
        let page = self.store.search(&Query::default()).expect("the database");
        page.charts.into_iter().map(|chart| chart.name).collect()
    }
}

/// Charts with a README, served below /charts, and their index.
pub fn serve(world: &World, charts: &[(&str, &str)]) {
    let packed: Vec<(String, Vec<u8>)> = charts
        .iter()
        .map(|(name, version)| {
            let readme = format!("# {name} {version}\n");
            let chart = plain_chart(name, version, &[("README.md", &readme)]);
            (format!("{name}/{version}.tgz"), chart)
        })
        .collect();
    for (path, chart) in &packed {
        world
            .server
            .serve(&format!("/charts/{path}"), chart.clone());
    }
    let digests: Vec<String> = packed.iter().map(|(_, chart)| sha(chart)).collect();
    let entries: Vec<(&str, &str, &str, &str)> = charts
        .iter()
        .zip(&packed)
        .zip(&digests)
        .map(|(((name, version), (path, _)), digest)| (*name, *version, &**path, &**digest))
        .collect();
    world
        .server
        .serve("/charts/index.yaml", index(&entries).as_str());
}

/// The chart alpha with an icon, whose host says what version of it that is; `number` makes another
/// index of it.
pub fn serve_with_icon(world: &World, icon: &str, version: &str, number: usize) {
    let content = plain_chart("alpha", "1.0.0", &[]);
    let digest = sha(&content);
    let text = index(&[("alpha", "1.0.0", "alpha.tgz", &digest)]);
    let address = format!("{}/alpha.svg", world.server.url());
    let named = "    name: alpha\n";
    assert!(text.contains(named), "{text}");
    let text = text.replace(named, &format!("    icon: {address}\n{named}"));
    let headers = vec![
        format!("ETag: \"{version}\""),
        "Content-Type: image/svg+xml".to_owned(),
    ];
    let picture = Answer {
        headers,
        ..Answer::from(icon)
    };
    world.server.serve("/alpha.svg", picture);
    world.server.serve("/charts/alpha.tgz", content);
    let text = format!("# {number}\n{text}");
    world.server.serve("/charts/index.yaml", text.as_str());
}

/// A picture.
pub const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 8 8\">\
    <rect width=\"8\" height=\"4\" fill=\"#ff0000\"/></svg>";

//! `kill -9` while AppRepositories are read, read again and deleted, at moments determined by a
//! seed: no chart is lost, and none is left over.
//!
//! `TIPHYS_KILLS` sets the number of seeds (4 by default; the full run uses 200), `TIPHYS_SEED` the
//! first one.

use crate::scenarios::world::program;
use serde_json::{Value, json};
use std::{collections::BTreeSet, thread, time::Duration};
use tempfile::TempDir;
use tiphys_testkit::{
    Api, Options, PATIENCE, Rng, Tiphys,
    charts::{FileServer, index, plain_chart},
    eventually, first_seed, namespaced, output_of,
};

const REPOSITORIES: [&str; 3] = ["one", "two", "three"];
const CHARTS: usize = 12;
/// The longest time from a change to the kill.
const LONGEST_MS: u64 = 400;

/// Publishes each chart with versions up to `1.LAST.0`.
fn publish(server: &FileServer, last: usize) {
    for repository in REPOSITORIES {
        let mut entries = Vec::new();
        for chart in 0..CHARTS {
            for minor in 0..=last {
                let (name, version) = (format!("{repository}-{chart}"), format!("1.{minor}.0"));
                let readme = format!("{name} {version}");
                let archive = plain_chart(&name, &version, &[("README.md", &readme)]);
                let file = format!("{name}-{version}.tgz");
                server.serve(&format!("/{repository}/{file}"), archive);
                entries.push((name, version, file));
            }
        }
        let entries: Vec<_> = entries
            .iter()
            .map(|(name, version, file)| (name.as_str(), version.as_str(), file.as_str(), ""))
            .collect();
        let path = format!("/{repository}/index.yaml");
        server.serve(&path, index(&entries).as_str());
    }
}

struct Lane {
    data: TempDir,
    path: String,
    rng: Rng,
}

impl Lane {
    fn start(&self) -> (Tiphys, Api) {
        Tiphys::ready(&Options {
            program: program(),
            data: Some(self.data.path().to_owned()),
            ..Options::default()
        })
    }

    /// Changes something, kills the program a moment later, and starts it again.
    fn disturbed(
        &mut self,
        (tiphys, kube): (Tiphys, Api),
        change: impl FnOnce(&Api, &str),
    ) -> (Tiphys, Api) {
        change(&kube, &self.path);
        let moment = self.rng.below(LONGEST_MS);
        thread::sleep(Duration::from_millis(moment));
        tiphys.kill();
        self.start()
    }

    fn catalog(&self, words: &[&str]) -> String {
        let data = self.data.path().display().to_string();
        let words = [&["catalog"], words, &["--data", &data]].concat();
        let ended = output_of(&program(), &words);
        assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
        ended.stdout
    }

    /// Waits until everything is read, and looks at all of it.
    fn check(&self, kube: &Api, last: usize) {
        for name in REPOSITORIES {
            eventually(PATIENCE, &format!("{name} is read"), || {
                let found = kube.find(&format!("{}/{name}", self.path));
                let status = found.ok_or("it is not there")?["status"].clone();
                let all = CHARTS * (last + 1);
                match status["status"] == "Ready" && status["versions"] == all {
                    true => Ok(()),
                    false => Err(status.to_string()),
                }
            });
        }
        let found = self.catalog(&["search", "--limit", "500", "-o", "name"]);
        let found: BTreeSet<&str> = found.lines().collect();
        assert_eq!(found.len(), REPOSITORIES.len() * CHARTS);
        for name in REPOSITORIES {
            for chart in [0, CHARTS - 1] {
                let (of, version) = (format!("{name}-{chart}"), format!("1.{last}.0"));
                let readme = self.catalog(&["show", &of, "--version", &version, "--readme"]);
                assert_eq!(readme, format!("{of} {version}"));
            }
        }
    }
}

fn round(seed: u64) {
    let server = FileServer::start();
    publish(&server, 0);
    let mut lane = Lane {
        data: TempDir::new().expect("a folder"),
        path: namespaced("kubeapps.com/v1alpha1", "team-a", "apprepositories"),
        rng: Rng::new(seed),
    };
    let running = lane.start();
    running.1.namespace("team-a");
    let url = server.url();
    let running = lane.disturbed(running, |kube, path| {
        for name in REPOSITORIES {
            let object = json!({
                "apiVersion": "kubeapps.com/v1alpha1", "kind": "AppRepository",
                "metadata": {"name": name},
                "spec": {"type": "helm", "url": format!("{url}/{name}"), "interval": "24h"},
            });
            kube.create(path, &object);
        }
    });
    lane.check(&running.1, 0);
    publish(&server, 2);
    let running = lane.disturbed(running, |kube, path| {
        for name in REPOSITORIES {
            let patch = json!({"spec": {"resyncRequests": 1}});
            kube.patch(&format!("{path}/{name}"), &patch);
        }
    });
    lane.check(&running.1, 2);
    // Deleted while they are read once more.
    publish(&server, 3);
    let (tiphys, kube) = lane.disturbed(running, |kube, path| {
        for name in REPOSITORIES {
            let patch = json!({"spec": {"resyncRequests": 2}});
            kube.patch(&format!("{path}/{name}"), &patch);
        }
        for name in REPOSITORIES {
            kube.delete(&format!("{path}/{name}"));
        }
    });
    eventually(PATIENCE, "the AppRepositories are gone", || {
        match kube.list(&lane.path).as_slice() {
            [] => Ok(()),
            left => Err(format!("{left:?}")),
        }
    });
    let repositories = lane.catalog(&["repos", "list", "-o", "json"]);
    let repositories: Value = serde_json::from_str(&repositories).expect("a list");
    assert_eq!(repositories, json!([]), "nothing is left over");
    assert_eq!(lane.catalog(&["search", "-o", "name"]), "");
    tiphys.kill();
}

#[test]
fn no_chart_is_lost_or_left_over() {
    let kills = std::env::var("TIPHYS_KILLS").map_or(Ok(4), |kills| kills.parse::<u64>());
    let first = first_seed();
    for seed in (0..kills.expect("a number")).map(|n| first.wrapping_add(n)) {
        println!("TIPHYS_SEED={seed}");
        round(seed);
    }
}

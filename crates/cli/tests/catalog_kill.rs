//! `kill -9` while AppRepositories are read, read again and deleted, at moments determined by a
//! seed: no chart is lost, and none is left over. In SQLite it is `up` that is killed, in PostgreSQL
//! the asset-syncer.
//!
//! `TIPHYS_KILLS` sets the number of seeds of each (4 by default), each with three moments; `make
//! test-kills` has 204 of them. `TIPHYS_SEED` is the first one.

use crate::scenarios::world::program;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    process::{Command, Stdio},
    thread,
    time::Duration,
};
use tempfile::TempDir;
use tiphys_testkit::{
    Api, Options, PATIENCE, Rng, Tiphys,
    charts::{FileServer, index, plain_chart},
    eventually, first_seed, namespaced, output_of,
    postgres::{Postgres, USER},
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

/// The asset-syncer of one repository in a PostgreSQL.
struct Syncer<'a> {
    postgres: &'a Postgres,
    database: String,
    url: String,
    rng: Rng,
}

impl Syncer<'_> {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.arg("asset-syncer").args(words);
        command.args([
            &format!("--database-url=127.0.0.1:{}", self.postgres.port()),
            &format!("--database-user={USER}"),
            &format!("--database-name={}", self.database),
            "--namespace=team-a",
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Kills it a moment after its start, and lets it work to the end then.
    fn disturbed(&mut self, words: &[&str]) {
        let killed = self.command(words).stderr(Stdio::null()).spawn();
        let mut killed = killed.expect("it starts");
        let moment = self.rng.below(LONGEST_MS);
        thread::sleep(Duration::from_millis(moment));
        // It may have ended by itself.
        let _ = killed.kill();
        killed.wait().expect("it ends");
        // As if the time of its lease were over.
        self.postgres.psql(
            &self.database,
            "DO $$ BEGIN IF to_regclass('tiphys_leases') IS NOT NULL THEN
                UPDATE tiphys_leases SET until = 0; END IF; END $$",
        );
        let ended = self.command(words).stderr(Stdio::piped()).output();
        let ended = ended.expect("it runs");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{words:?}: {said}");
    }

    fn sync(&mut self) {
        let url = self.url.clone();
        self.disturbed(&["sync", "one", &url, "helm"]);
    }

    fn count(&self, from: &str) -> usize {
        let sql = format!("SELECT count(*) FROM {from}");
        let count = self.postgres.psql(&self.database, &sql);
        count.trim().parse().expect("a number")
    }

    /// Everything that is published is there once, and nothing else.
    fn check(&self, last: usize) {
        assert_eq!(self.count("charts"), CHARTS);
        let versions = "charts, jsonb_array_elements(info->'chartVersions')";
        assert_eq!(self.count(versions), CHARTS * (last + 1));
        let complete = "files WHERE info->>'Readme' LIKE 'one-% 1._.0'";
        assert_eq!(self.count(complete), CHARTS * (last + 1));
        assert_eq!(self.count("files"), CHARTS * (last + 1));
    }
}

fn round_of_postgres(seed: u64, postgres: &Postgres) {
    let server = FileServer::start();
    let mut syncer = Syncer {
        postgres,
        database: postgres.database(),
        url: format!("{}/one", server.url()),
        rng: Rng::new(seed),
    };
    for last in [0, 2] {
        publish(&server, last);
        syncer.sync();
        syncer.check(last);
    }
    syncer.disturbed(&["delete", "one"]);
    for table in ["repos", "charts", "files"] {
        assert_eq!(syncer.count(table), 0, "{table}");
    }
    let ours = syncer.postgres.psql(
        &syncer.database,
        "SELECT tablename FROM pg_tables WHERE tablename LIKE 'tiphys_%' AND
            tablename NOT IN ('tiphys_schema', 'tiphys_kept')",
    );
    for table in ours.split_whitespace() {
        assert_eq!(syncer.count(table), 0, "{table}");
    }
}

/// The seeds of a run.
fn seeds() -> impl Iterator<Item = u64> {
    let kills = std::env::var("TIPHYS_KILLS").map_or(Ok(4), |kills| kills.parse::<u64>());
    let first = first_seed();
    (0..kills.expect("a number")).map(move |n| first.wrapping_add(n))
}

#[test]
fn no_chart_is_lost_or_left_over() {
    for seed in seeds() {
        println!("TIPHYS_SEED={seed}");
        round(seed);
    }
}

#[test]
fn no_chart_of_postgres_is_lost_or_left_over() {
    let Some(postgres) = Postgres::start_or_skip() else {
        return;
    };
    for seed in seeds() {
        println!("TIPHYS_SEED={seed}");
        round_of_postgres(seed, &postgres);
    }
}

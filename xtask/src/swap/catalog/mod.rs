//! `cargo xtask swap catalog`: kubeapps' asset-syncer and ours take turns in the same databases.
//! What one of them left, the other one must go on with, and leave as it is.
//!
//! Main function: [`run`]. There are two databases. Whatever the genuine program does in one, ours
//! does in the other, and then they change places.

mod charts;
mod rows;

use crate::swap::{
    roles::Maker::{self, Genuine, Ours},
    state::Shown,
};
use anyhow::{Context as _, anyhow, ensure};
use charts::Repository;
use clap::builder::TypedValueParser as _;
use rows::{Ids, count, definitions, different, left_over, pictures, rows, without};
use sha2::{Digest as _, Sha256};
use std::{collections::BTreeSet, fmt, path::PathBuf, process::Command};
use tiphys_testkit::{
    charts::{Answer, FileServer},
    postgres::{Postgres, USER},
};

/// What `cargo xtask swap catalog` takes.
#[derive(clap::Args)]
pub struct Args {
    /// kubeapps' asset-syncer
    #[arg(long, value_name = "PROGRAM")]
    genuine: PathBuf,
    /// Ours
    #[arg(long, value_name = "FILE", default_value = "target/debug/tiphys")]
    program: PathBuf,
    /// How many charts the repository has
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(100..=9_999).map(|n| n as usize))]
    charts: usize,
}

/// The repository that changes, and a small one in another namespace, which has the same name.
const NAME: &str = "charts";
const NAMESPACE: &str = "team";
const OTHER: &str = "other";
/// Its charts.
const FEW: usize = 20;
/// Lines of differences that are printed of one step.
const LINES: usize = 100;

impl fmt::Display for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Genuine => "the genuine program",
            Ours => "ours",
        })
    }
}

/// The programs, one for each database.
type Makers = [Maker; 2];

struct World {
    postgres: Postgres,
    server: FileServer,
    genuine: PathBuf,
    ours: PathBuf,
    charts: usize,
    /// What is served now.
    published: Repository,
    notes: usize,
    databases: [String; 2],
    /// Archives that were not read into a database yet.
    unread: [BTreeSet<String>; 2],
    steps: usize,
    /// How many differences there are.
    found: usize,
}

/// # Errors
/// If something differs, or a program fails.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let postgres = Postgres::start();
    let postgres = postgres.context("there is no PostgreSQL here (POSTGRES_BIN names a folder)")?;
    let mut world = World {
        databases: [postgres.database(), postgres.database()],
        postgres,
        server: FileServer::start(),
        genuine: args.genuine.clone(),
        ours: args.program.clone(),
        charts: args.charts,
        published: Repository::default(),
        notes: 0,
        unread: [BTreeSet::new(), BTreeSet::new()],
        steps: 0,
        found: 0,
    };
    world.all()?;
    println!("not compared, or by its meaning:");
    for reason in rows::REASONS {
        println!("  {reason}");
    }
    match world.found {
        0 => Ok(()),
        found => Err(anyhow!("{found} differences")),
    }
}

impl World {
    fn all(&mut self) -> anyhow::Result<()> {
        self.publish_other()?;
        self.publish(0)?;
        for (place, maker) in [Genuine, Ours].into_iter().enumerate() {
            self.sync_other(place, maker)?;
        }
        self.both([Genuine, Ours], "a first sync")?;
        self.nothing([Ours, Genuine], "the next sync, by the other program")?;
        self.nothing([Genuine, Ours], "and back")?;
        for makers in [[Ours, Genuine], [Genuine, Ours]] {
            self.publish(0)?;
            self.nothing(makers, "the index is another one with the same entries")?;
            self.nothing(swapped(makers), "the next sync, by the other program")?;
        }
        self.pictures_come_back()?;
        for (change, makers) in [(1, [Ours, Genuine]), (2, [Genuine, Ours])] {
            self.publish(change)?;
            self.both(makers, &format!("change {change} of the index"))?;
            self.nothing(swapped(makers), "the next sync, by the other program")?;
            self.nothing(makers, "and back")?;
        }
        self.deleted([Ours, Genuine])?;
        self.deleted([Genuine, Ours])?;
        self.invalidated([Genuine, Ours])?;
        self.invalidated([Ours, Genuine])
    }

    /// Serves the repository after so many changes; its index is always another one.
    fn publish(&mut self, change: usize) -> anyhow::Result<()> {
        self.notes += 1;
        let address = self.address(NAMESPACE);
        let new = Repository::new(&address, self.charts, change, self.notes)?;
        let old = std::mem::take(&mut self.published);
        let gone = old.archives.keys().chain(old.icons.keys());
        gone.for_each(|path| self.server.remove(&path_of(NAMESPACE, path)));
        for (path, archive) in &new.archives {
            if old.archives.get(path) != Some(archive) {
                for unread in &mut self.unread {
                    unread.insert(path.clone());
                }
            }
        }
        self.serve(NAMESPACE, &new);
        self.published = new;
        Ok(())
    }

    fn publish_other(&self) -> anyhow::Result<()> {
        let repository = Repository::new(&self.address(OTHER), FEW, 0, 0)?;
        self.serve(OTHER, &repository);
        Ok(())
    }

    fn serve(&self, namespace: &str, repository: &Repository) {
        for (path, archive) in &repository.archives {
            self.server
                .serve(&path_of(namespace, path), archive.clone());
        }
        for (path, icon) in &repository.icons {
            self.server.serve(&path_of(namespace, path), icon.clone());
        }
        let index = path_of(namespace, "index.yaml");
        self.server.serve(&index, repository.index.as_str());
    }

    fn address(&self, namespace: &str) -> String {
        format!("{}/{namespace}", self.server.url())
    }

    /// Runs a command of one program on one database.
    fn command(
        &self,
        (place, maker): (usize, Maker),
        namespace: &str,
        words: &[&str],
    ) -> anyhow::Result<()> {
        let mut command = match maker {
            Genuine => Command::new(&self.genuine),
            Ours => Command::new(&self.ours),
        };
        command
            .args((maker == Ours).then_some("asset-syncer"))
            .args(words)
            .arg(format!("--database-url=127.0.0.1:{}", self.postgres.port()))
            .arg(format!("--database-user={USER}"))
            .arg(format!("--database-name={}", self.databases[place]))
            .arg(format!("--namespace={namespace}"))
            .env("DB_PASSWORD", "none")
            .env("TZ", "UTC");
        let output = command.output();
        let output = output.with_context(|| format!("cannot start {command:?}"))?;
        let error = String::from_utf8_lossy(&output.stderr);
        let end: Vec<&str> = error.lines().rev().take(10).collect();
        ensure!(
            output.status.success(),
            "{command:?} ends with {}: {}",
            output.status,
            end.into_iter().rev().collect::<Vec<_>>().join("\n")
        );
        Ok(())
    }

    /// Syncs; returns what is wrong with how that was done.
    fn sync(&mut self, place: usize, maker: Maker) -> anyhow::Result<Vec<String>> {
        self.server.received();
        let url = self.address(NAMESPACE);
        self.command((place, maker), NAMESPACE, &["sync", NAME, &url, "helm"])?;
        let unread = std::mem::take(&mut self.unread[place]);
        let begin = path_of(NAMESPACE, "");
        let mut asked: Vec<String> = self.server.paths();
        asked.sort();
        asked.dedup();
        let archives = asked
            .iter()
            .filter_map(|path| path.strip_prefix(&begin))
            .filter(|path| path.starts_with("archives/"));
        let missing = &self.published.missing;
        let needless = archives.filter(|path| !unread.contains(*path) && !missing.contains(*path));
        let mut wrong: Vec<String> = needless
            .map(|path| format!("{maker} reads {path}, of which it has the files"))
            .collect();
        let checksum = checksum(&self.published);
        let stored = self.postgres.psql(
            &self.databases[place],
            &format!(
                "SELECT checksum FROM repos WHERE namespace = '{NAMESPACE}' AND name = '{NAME}'"
            ),
        );
        if stored.trim() != checksum {
            let stored = stored.trim();
            wrong.push(format!(
                "{maker} stores the checksum {stored:?} of {checksum}"
            ));
        }
        if maker == Ours {
            let left = left_over(&self.rows(place)?);
            wrong.extend(left.into_iter().map(|row| format!("ours leaves {row}")));
        }
        Ok(wrong)
    }

    fn sync_other(&self, place: usize, maker: Maker) -> anyhow::Result<()> {
        let url = self.address(OTHER);
        self.command((place, maker), OTHER, &["sync", NAME, &url, "helm"])
    }

    fn rows(&self, place: usize) -> anyhow::Result<Shown> {
        rows(&self.postgres, &self.databases[place])
    }

    /// Both programs do the same, and leave the same.
    fn both(&mut self, makers: Makers, what: &str) -> anyhow::Result<()> {
        let mut wrong = Vec::new();
        for (place, maker) in makers.into_iter().enumerate() {
            wrong.extend(self.sync(place, maker)?);
        }
        let (one, other) = (self.rows(0)?, self.rows(1)?);
        wrong.extend(different(&one, &other, Ids::Any));
        let [first, second] = makers;
        self.report(
            &format!("{what}: {first} in one database, {second} in the other"),
            &other,
            &wrong,
        );
        Ok(())
    }

    /// Each program syncs what is there already, and changes nothing but the index's checksum.
    fn nothing(&mut self, makers: Makers, what: &str) -> anyhow::Result<()> {
        for (place, maker) in makers.into_iter().enumerate() {
            let mut before = self.rows(place)?;
            let mut wrong = self.sync(place, maker)?;
            let row = before.get_mut(&format!("repos {NAMESPACE} {NAME}"));
            row.context("the repository has no row")?["checksum"] =
                checksum(&self.published).into();
            let after = self.rows(place)?;
            wrong.extend(different(&before, &after, Ids::Same));
            self.report(
                &format!("{what}: {maker} changes nothing in database {place}"),
                &after,
                &wrong,
            );
        }
        Ok(())
    }

    /// Pictures whose host failed for a while are there again, whoever reads the next index.
    fn pictures_come_back(&mut self) -> anyhow::Result<()> {
        self.publish(0)?;
        let away = Answer {
            status: 503,
            ..Answer::default()
        };
        for path in self.published.icons.keys() {
            self.server.serve(&path_of(NAMESPACE, path), away.clone());
        }
        // Ours would keep the pictures.
        self.both([Genuine, Genuine], "the host of pictures fails")?;
        let lost = pictures(&without(&self.rows(0)?, OTHER, NAME));
        ensure!(lost == 0, "{lost} pictures are there all the same");
        self.publish(0)?;
        self.both([Ours, Genuine], "and works again")?;
        let there = pictures(&without(&self.rows(1)?, OTHER, NAME));
        ensure!(there > 0, "the genuine program reads no picture again");
        Ok(())
    }

    /// Each program deletes the repository, of which nothing is left; then the other one reads it.
    fn deleted(&mut self, makers: Makers) -> anyhow::Result<()> {
        let complete = self.rows(0)?;
        for (place, maker) in makers.into_iter().enumerate() {
            let wanted = without(&self.rows(place)?, NAMESPACE, NAME);
            self.command((place, maker), NAMESPACE, &["delete", NAME])?;
            let after = self.rows(place)?;
            let wrong = different(&wanted, &after, Ids::Same);
            let what = format!("{maker} deletes the repository from database {place}");
            self.report(&what, &after, &wrong);
        }
        self.read_again(swapped(makers), &complete)
    }

    /// Each program forgets everything; then the other one reads it.
    fn invalidated(&mut self, makers: Makers) -> anyhow::Result<()> {
        let complete = self.rows(0)?;
        for (place, maker) in makers.into_iter().enumerate() {
            let wanted = definitions(&self.rows(place)?);
            self.command((place, maker), NAMESPACE, &["invalidate-cache"])?;
            let after = self.rows(place)?;
            let wrong = different(&wanted, &after, Ids::Same);
            let what = format!("{maker} invalidates the cache of database {place}");
            self.report(&what, &after, &wrong);
        }
        for (place, maker) in swapped(makers).into_iter().enumerate() {
            self.sync_other(place, maker)?;
        }
        self.read_again(swapped(makers), &complete)
    }

    fn read_again(&mut self, makers: Makers, complete: &Shown) -> anyhow::Result<()> {
        let all: BTreeSet<String> = self.published.archives.keys().cloned().collect();
        self.unread = [all.clone(), all];
        self.both(makers, "it is read again")?;
        let after = self.rows(0)?;
        let wrong = different(complete, &after, Ids::Any);
        self.report("everything is as it was before", &after, &wrong);
        Ok(())
    }

    fn report(&mut self, what: &str, shown: &Shown, wrong: &[String]) {
        self.steps += 1;
        self.found += wrong.len();
        let [charts, files] = ["charts", "files"].map(|table| count(shown, table));
        println!(
            "{:2}. {what}: {charts} charts, {files} files, {} differences",
            self.steps,
            wrong.len()
        );
        for line in wrong.iter().take(LINES) {
            println!("      {line}");
        }
        if let Some(more) = wrong.len().checked_sub(LINES + 1) {
            println!("      and {} more", more + 1);
        }
    }
}

fn swapped([one, other]: Makers) -> Makers {
    [other, one]
}

fn path_of(namespace: &str, path: &str) -> String {
    format!("/{namespace}/{path}")
}

/// What both programs store of an index.
fn checksum(repository: &Repository) -> String {
    format!("{:x}", Sha256::digest(&repository.index))
}

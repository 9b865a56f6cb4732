//! The chart catalogue: a large generated repository on loopback is read for the first time,
//! unchanged, and with one version more; then it is searched. Syncs are measured inside a process
//! that goes on, as the control plane makes them, and as programs, as Jobs start them. Another
//! asset-syncer can be measured in the same run, on the same PostgreSQL.
//!
//! Main function: [`run`].

mod charts;
pub mod inside;
mod search;
mod server;

use super::{CatalogArgs, Output, process, subject::times};
use anyhow::{Context, ensure};
use charts::Charts;
use inside::Inside;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use server::Server;
use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tiphys_testkit::postgres::{Postgres, USER};

/// The repository that is measured, and one that is there for the search only.
const MEASURED: &str = "measured";
const MORE: &str = "more";
const NAMESPACE: &str = "bench";
/// How often the memory of a program is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// The resources of one run of a program. Not those of the database.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Used {
    seconds: f64,
    cpu: f64,
    /// At its peak.
    mebibytes: f64,
    /// What the process had before.
    before: f64,
}

/// Runs of an unchanged repository whose average counts: of a program, and inside a process.
const PROGRAMS: u32 = 10;
const INSIDE: u32 = 100;

/// The three runs of one program.
struct Figures {
    subject: String,
    first: Used,
    unchanged: Used,
    changed: Used,
}

pub fn run(root: &Path, args: &CatalogArgs) -> anyhow::Result<()> {
    let program = super::program(root, args.program.as_deref())?;
    let all = args.charts * args.versions;
    let more = args.searched.saturating_sub(all).div_ceil(args.versions);
    let measured = Charts::new(0, args.charts, args.versions);
    let bytes = measured.index.len();
    let server = Server::start(vec![
        (MEASURED, measured),
        (MORE, Charts::new(args.charts, more, args.versions)),
    ])?;
    eprintln!("{all} versions in an index of {bytes} bytes");
    let folder = tempfile::tempdir()?;
    let data = folder.path().display().to_string();
    let local = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["catalog", "--data", &data]).args(words);
        command
    };
    for name in [MEASURED, MORE] {
        once(local(&["repos", "add", name, &server.url(name)]))?;
    }
    let file = folder.path().join("inside.db").display().to_string();
    let mut figures = vec![
        inside("tiphys in process, SQLite", &server, &file)?,
        three("tiphys, SQLite", &server, || local(&["sync", MEASURED]))?,
    ];
    let postgres = Postgres::start();
    match &postgres {
        None => eprintln!("no PostgreSQL is here: only SQLite is measured"),
        Some(postgres) => {
            let (port, name) = (postgres.port(), postgres.database());
            let url = format!("postgres://{USER}:none@127.0.0.1:{port}/{name}?sslmode=disable");
            figures.push(inside("tiphys in process, PostgreSQL", &server, &url)?);
            let others = args.asset_syncer.iter();
            let others = others.map(|other| (other.as_path(), "asset-syncer", false));
            let ours = (program.as_path(), "tiphys, PostgreSQL", true);
            for (program, subject, is_ours) in std::iter::once(ours).chain(others) {
                let database = postgres.database();
                let of = |repository: &str| {
                    syncer(
                        program,
                        is_ours,
                        postgres.port(),
                        &database,
                        repository,
                        &server,
                    )
                };
                // Its tables, which the genuine program makes in a run of their own.
                once(command(
                    program,
                    is_ours,
                    &["invalidate-cache"],
                    postgres.port(),
                    &database,
                ))?;
                figures.push(three(subject, &server, || of(MEASURED))?);
                let rows = postgres.psql(&database, "SELECT count(*) FROM files");
                ensure!(
                    rows.trim() == (all + 1).to_string(),
                    "{subject} has {rows} files"
                );
            }
        }
    }
    once(local(&["sync", MORE]))?;
    let found = search::measure(folder.path(), (args.charts + more) * args.versions)?;
    show(args.output, &figures, &found);
    Ok(())
}

/// A command of kubeapps' asset-syncer, of ours or of another program.
fn command(program: &Path, is_ours: bool, words: &[&str], port: u16, database: &str) -> Command {
    let mut command = Command::new(program);
    command
        .args(is_ours.then_some("asset-syncer"))
        .args(words)
        .arg(format!("--database-url=127.0.0.1:{port}"))
        .arg(format!("--database-user={USER}"))
        .arg(format!("--database-name={database}"))
        .arg(format!("--namespace={NAMESPACE}"))
        .env("DB_PASSWORD", "none");
    command
}

fn syncer(
    program: &Path,
    is_ours: bool,
    port: u16,
    database: &str,
    repository: &str,
    server: &Server,
) -> Command {
    let url = server.url(repository);
    command(
        program,
        is_ours,
        &["sync", repository, &url, "helm"],
        port,
        database,
    )
}

fn three(subject: &str, server: &Server, command: impl Fn() -> Command) -> anyhow::Result<Figures> {
    server.change(MEASURED, false)?;
    eprintln!("{subject}: first sync");
    let first = once(command())?;
    let unchanged = average(PROGRAMS, || once(command()))?;
    server.change(MEASURED, true)?;
    eprintln!("{subject}: one version more");
    let changed = once(command())?;
    Ok(Figures {
        subject: subject.to_owned(),
        first,
        unchanged,
        changed,
    })
}

/// The same inside one process.
fn inside(subject: &str, server: &Server, database: &str) -> anyhow::Result<Figures> {
    server.change(MEASURED, false)?;
    eprintln!("{subject}: first sync");
    let mut syncs = Inside::start(database, &server.url(MEASURED))?;
    let first = syncs.syncs(1)?;
    let unchanged = syncs.syncs(INSIDE)?;
    server.change(MEASURED, true)?;
    eprintln!("{subject}: one version more");
    let changed = syncs.syncs(1)?;
    Ok(Figures {
        subject: subject.to_owned(),
        first,
        unchanged,
        changed,
    })
}

/// The times of one run, and the largest peak.
fn average(runs: u32, run: impl Fn() -> anyhow::Result<Used>) -> anyhow::Result<Used> {
    let mut all = Used::default();
    for _ in 0..runs {
        let used = run()?;
        all.seconds += used.seconds / f64::from(runs);
        all.cpu += used.cpu / f64::from(runs);
        all.mebibytes = all.mebibytes.max(used.mebibytes);
    }
    Ok(all)
}

/// Runs a program to its end.
fn once(mut command: Command) -> anyhow::Result<Used> {
    let before = process::children_cpu_seconds()?;
    let start = Instant::now();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let mut mebibytes: f64 = 0.0;
    let status = loop {
        // It may just have ended.
        mebibytes = process::peak_mebibytes(child.id())
            .unwrap_or_default()
            .max(mebibytes);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(LOOK);
    };
    ensure!(status.success(), "{command:?} ends with {status}");
    Ok(Used {
        seconds: start.elapsed().as_secs_f64(),
        cpu: process::children_cpu_seconds()? - before,
        mebibytes,
        before: 0.0,
    })
}

impl Figures {
    fn runs(&self) -> [(&'static str, Used); 3] {
        [
            ("first", self.first),
            ("unchanged", self.unchanged),
            ("one version more", self.changed),
        ]
    }
}

fn show(output: Output, figures: &[Figures], found: &[search::Found]) {
    if output == Output::Json {
        let used = |used: Used| json!({"seconds": used.seconds, "cpu_s": used.cpu, "peak_mib": used.mebibytes, "before_mib": used.before});
        let syncs: Vec<Value> = figures
            .iter()
            .map(|f| json!({"subject": f.subject, "first": used(f.first), "unchanged": used(f.unchanged), "changed": used(f.changed)}))
            .collect();
        let searches: Vec<Value> = found
            .iter()
            .map(|f| json!({"query": f.query, "versions": f.versions, "charts": f.charts, "median_ms": f.median, "worst_ms": f.worst}))
            .collect();
        println!("{}", json!({"syncs": syncs, "searches": searches}));
        return;
    }
    let other = figures.iter().find(|f| f.subject == "asset-syncer");
    for figures in figures {
        println!("{}", figures.subject);
        let others = other.map(Figures::runs);
        for (number, (run, used)) in figures.runs().into_iter().enumerate() {
            let beside = others.filter(|_| !figures.subject.starts_with("asset"));
            let beside = beside.map(|others| {
                let other = others[number].1;
                format!(
                    "   asset-syncer takes {} as long, {} the CPU, {} the memory",
                    times(used.seconds, other.seconds),
                    times(used.cpu, other.cpu),
                    times(used.mebibytes, other.mebibytes)
                )
            });
            println!(
                "  {run:17} {:9.4} s {:9.4} CPU-s {:7.1} MiB (before {:.1}){}",
                used.seconds,
                used.cpu,
                used.mebibytes,
                used.before,
                beside.unwrap_or_default()
            );
        }
    }
    for found in found {
        println!(
            "search {:?} in {} versions: {} charts, {:.2} ms, {:.2} at worst",
            found.query, found.versions, found.charts, found.median, found.worst
        );
    }
}

//! Syncs inside a process that goes on, as the control plane makes them: what starting a program
//! costs is not part of them.
//!
//! Main type: [`Inside`], the other end of [`serve`], which is this program once more, so that what
//! the bench itself holds isn't measured.

use super::{Used, process};
use crate::bench::CatalogSyncsArgs;
use anyhow::{Context as _, ensure};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
    time::Instant,
};
use tiphys_catalog::{RepoId, RepoSpec, Store, store::PostgresOptions};

/// The other process.
pub(super) struct Inside {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Inside {
    /// `database`: a file of SQLite, or the URL of a PostgreSQL.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(database: &str, url: &str) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bench", "catalog-syncs", database, url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = child.stdin.take().context("no way in")?;
        let answers = child.stdout.take().context("no way out")?;
        Ok(Self {
            child,
            orders,
            answers: BufReader::new(answers),
        })
    }

    /// Syncs so many times, one after the other; what one takes on average.
    ///
    /// # Errors
    /// A sync failed.
    pub(super) fn syncs(&mut self, times: u32) -> anyhow::Result<Used> {
        writeln!(self.orders, "{times}")?;
        self.orders.flush()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        ensure!(!answer.is_empty(), "the process with the syncs is gone");
        Ok(serde_json::from_str(&answer)?)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Syncs as often as the lines of the standard input say.
pub fn serve(args: &CatalogSyncsArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let database = args.database.clone();
    let opened = runtime.spawn(async move {
        tokio::task::spawn_blocking(move || match database.contains("://") {
            true => Store::postgres(PostgresOptions::default().at(&database)?),
            false => Store::sqlite(database.as_ref()),
        })
        .await
    });
    let store = Arc::new(runtime.block_on(opened)???);
    let id = RepoId::new(super::NAMESPACE, super::MEASURED);
    let spec = RepoSpec {
        url: args.url.clone(),
        ..RepoSpec::default()
    };
    let (of_store, of_id, text) = (Arc::clone(&store), id.clone(), spec.text()?);
    let kept = move || {
        of_store.put_spec(&of_id, &spec.url, &text)?;
        of_store.repo(&of_id)
    };
    let status = runtime.block_on(runtime.spawn_blocking(kept))??;
    let status = status.context("the repository is not there")?;
    for line in std::io::stdin().lines() {
        let times: u32 = line?.trim().parse()?;
        let id = std::process::id();
        process::forget_peak(id)?;
        let (began, before) = (Instant::now(), process::cpu_seconds(id)?);
        let resident = process::resident_mebibytes(id)?;
        for _ in 0..times {
            let sync = RepoSpec::sync(Arc::clone(&store), &status)?;
            let run = async move { sync.run().await };
            runtime.block_on(runtime.spawn(run))??;
        }
        let used = Used {
            seconds: began.elapsed().as_secs_f64() / f64::from(times),
            cpu: (process::cpu_seconds(id)? - before) / f64::from(times),
            mebibytes: process::peak_mebibytes(id)?,
            before: resident,
        };
        println!("{}", serde_json::to_string(&used)?);
    }
    Ok(())
}

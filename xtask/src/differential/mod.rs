//! `cargo xtask differential`: plays random scripts on a real API server and on the embedded one,
//! and reports differences.

mod embedded;
mod report;

use anyhow::{Context, anyhow};
use clap::Args;
use embedded::Embedded;
use report::Report;
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tiphys_testkit::differential::{
    Difference, Remote, Reply, Script, differences,
    endings::level,
    generate::{self, Wanted},
    normalise, play,
    play::{Patience, install},
    rules, shrink,
};

#[derive(Args)]
pub struct DifferentialArgs {
    /// The real API server, better one without controllers
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// How many scripts
    #[arg(long, value_name = "N", default_value_t = 200)]
    scripts: u64,
    /// The seed of the first script; the others count on from there
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Only these resources, by plural name
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Only these areas: pods, kinds, crd, http
    #[arg(long, value_name = "AREA", value_delimiter = ',')]
    area: Vec<String>,
    /// Run all scripts although some differ in unexplained ways (otherwise the run ends after 200
    /// of them)
    #[arg(long)]
    keep_going: bool,
    /// Make the example of each group smaller
    #[arg(long)]
    shrink: bool,
    /// Write the examples, made smaller (or the script as it is), with the real server's answers to
    /// a folder
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = "crates/embedded-kube/tests/regressions")]
    save: Option<PathBuf>,
    /// Scripts that run at the same time
    #[arg(long, value_name = "N", default_value_t = 6)]
    jobs: usize,
    /// How many groups to print
    #[arg(long, value_name = "N", default_value_t = 60)]
    show: usize,
    /// Print an example of every kind and verb, not one of each cause
    #[arg(long)]
    each: bool,
    /// Play this script (a JSON file, as a regression case or alone) instead of random ones
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Print the script of the seed and end
    #[arg(long)]
    print: bool,
}

/// How often a script may be played to shrink it.
const SHRINK_BUDGET: usize = 40;

/// Both servers and the options of the run.
pub struct Bench {
    real: Remote,
    ours: Remote,
    /// Distinguishes the namespaces of this run from those of others.
    rules: Vec<rules::Rule>,
    run: u32,
    count: AtomicU64,
}

/// A script, the differences, and the real server's responses.
pub struct Outcome {
    pub script: Script,
    pub differences: Vec<Difference>,
    pub expected: Vec<Reply>,
}

impl Bench {
    /// Plays a script on both.
    fn outcome(&self, script: &Script) -> anyhow::Result<Outcome> {
        self.outcome_within(script, Patience::default())
    }

    fn outcome_within(&self, script: &Script, patience: Patience) -> anyhow::Result<Outcome> {
        let mut outcome = self.once(script, patience)?;
        // Some differences may be a matter of timing: events, a cache that lags behind, and quoted
        // managers, which are ordered by time in seconds. They count only if they remain with more
        // time.
        let late = |d: &Difference| {
            let of_times = [&d.expected, &d.found]
                .iter()
                .all(|text| text.contains("managedFields\\"));
            let query = &script.steps[d.step].query;
            let not_older = query.contains("resourceVersion=") && !query.contains("Exact");
            d.at.starts_with("event") || not_older || of_times
        };
        for (more, events) in [(700, 4), (2_000, 10)] {
            if !outcome.differences.iter().any(|d| !d.explained && late(d)) {
                break;
            }
            let patience = Patience {
                quiet: Duration::from_millis(more),
                events: Duration::from_secs(events),
                ..patience
            };
            outcome = self.once(script, patience)?;
        }
        Ok(outcome)
    }

    fn once(&self, script: &Script, patience: Patience) -> anyhow::Result<Outcome> {
        let namespace = format!(
            "diff-{:05x}-{:05}",
            self.run,
            self.count.fetch_add(1, Ordering::Relaxed)
        );
        let failed = |side: &str, e: tiphys_testkit::TransportError| {
            anyhow!("{side}: {}: {}", script.about, e.0)
        };
        let mut found = play(&self.ours, script, &namespace, None, patience)
            .map_err(|e| failed("embedded", e))?;
        let mut expected = play(&self.real, script, &namespace, Some(&found), patience)
            .map_err(|e| failed("real", e))?;
        level(script, &mut expected.replies, &mut found.replies);
        let (expected, found) = (normalise(script, &expected), normalise(script, &found));
        Ok(Outcome {
            script: script.clone(),
            differences: differences(script, &self.rules, &expected, &found),
            expected,
        })
    }
}

/// Runs it and prints the groups; an error if a difference is not explained.
///
/// # Errors
/// If a server does not respond, or there is a difference that no rule explains.
pub fn run(root: &Path, args: &DifferentialArgs) -> anyhow::Result<()> {
    let wanted = Wanted {
        kinds: args.kinds.clone(),
        areas: args.area.clone(),
    };
    if args.print {
        println!(
            "{}",
            serde_json::to_string_pretty(&generate::script(args.seed, &wanted))?
        );
        return Ok(());
    }
    let embedded = Embedded::start()?;
    let run = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)?
        .subsec_nanos()
        % 0xf_ffff;
    let real = Remote::kubeconfig(&args.kubeconfig).map_err(|e| anyhow!(e))?;
    let bench = Bench {
        real,
        ours: embedded.remote()?,
        rules: rules::committed(),
        run,
        count: AtomicU64::new(0),
    };
    for (name, server) in [("real", &bench.real), ("embedded", &bench.ours)] {
        install(server)
            .map_err(|e| anyhow!(e))
            .with_context(|| format!("the {name} server"))?;
    }
    let scripts: Box<dyn Fn(u64) -> Script + Sync> = match &args.script {
        Some(file) => {
            let script = read_script(file)?;
            Box::new(move |_| script.clone())
        }
        None => Box::new(move |n| generate::script(n, &wanted)),
    };
    let total = if args.script.is_some() {
        1
    } else {
        args.scripts
    };
    let started = Instant::now();
    let report = play_all(&bench, args, total, scripts.as_ref())?;
    report.print(args.show, args.each, started.elapsed());
    if let (Some(file), Some(folder)) = (&args.script, &args.save) {
        return report::keep(&root.join(folder), file, bench.outcome(&scripts(0))?);
    }
    if args.shrink || args.save.is_some() {
        let small = shrink_all(&bench, args.jobs, &report.examples());
        report::print_examples(&small);
        if let Some(folder) = &args.save {
            report::save(&root.join(folder), &small)?;
        }
    }
    anyhow::ensure!(
        report.unexplained() == 0,
        "{} differences are not explained",
        report.unexplained()
    );
    Ok(())
}

fn play_all(
    bench: &Bench,
    args: &DifferentialArgs,
    total: u64,
    scripts: &(dyn Fn(u64) -> Script + Sync),
) -> anyhow::Result<Report> {
    let report = Mutex::new(Report::default());
    let next = AtomicU64::new(0);
    let lock = || {
        report
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    };
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= total || (!args.keep_going && lock().unexplained() >= 200) {
                        return;
                    }
                    let script = scripts(args.seed + n);
                    let outcome = bench.outcome(&script);
                    lock().add(outcome);
                }
            });
        }
    });
    Ok(report
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Shrinks several concurrently; scripts that no longer differ are dropped.
fn shrink_all(bench: &Bench, jobs: usize, examples: &[&Outcome]) -> Vec<Outcome> {
    let (next, small) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(example) = examples.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(outcome) = smaller(bench, example) {
                        small
                            .lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner)
                            .push(outcome);
                    }
                }
            });
        }
    });
    small
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The smallest script that still shows the same difference.
fn smaller(bench: &Bench, example: &Outcome) -> Option<Outcome> {
    let first = example.differences.iter().find(|d| !d.explained)?;
    let mut script = example.script.clone();
    // Steps after the difference did not cause it.
    script.steps.truncate(first.step + 1);
    let differs = |o: &Outcome| o.differences.iter().any(|d| d.signature == first.signature);
    let mut best = bench.outcome(&script).ok().filter(differs)?;
    // A smaller script may wait for something that no longer happens.
    let patience = Patience {
        until: Duration::from_secs(1),
        ..Patience::default()
    };
    let mut asks =
        |script: &Script| match bench.outcome_within(script, patience).ok().filter(differs) {
            Some(outcome) => {
                best = outcome;
                true
            }
            None => false,
        };
    shrink::shrink(&script, SHRINK_BUDGET, &mut asks);
    best.differences.retain(|d| d.signature == first.signature);
    Some(best)
}

/// A script, alone or in a regression case.
fn read_script(file: &Path) -> anyhow::Result<Script> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let mut value: Value = serde_json::from_str(&text)?;
    if let Some(script) = value.get_mut("script") {
        value = script.take();
    }
    Ok(serde_json::from_value(value)?)
}

//! Scenario scripts of syncing: text in, transcript out. One file is one scenario; the grammar is
//! in README.md beside this file.
//!
//! What runs is the true controller ([`application::run`]) with its live cache, the engine, the
//! cluster crate's executor and a Git repository of its own; a script changes Git, the Application
//! or the cluster from outside, and the transcript is read from the API server. Two grounds:
//!
//! - `embedded`: the embedded API server with its simulated cluster, in one thread whose time is
//!   tokio's paused time. Nothing waits: when nobody has anything to do, the time jumps to the next
//!   moment at which somebody has. A step is over when nothing was written for a while.
//! - `real`: a real control plane (`KUBECONFIG`, `TIPHYS_TEST_REAL=1`), where time passes by itself
//!   and a step is over when the transcript is the expected one. Scripts share one controller there
//!   and run side by side; those that change its settings or kill it have controllers of their own,
//!   each with a namespace of its own.
//!
//! The transcript is the same file for both. Not covered: the API of our own server (steps write
//! what its calls write), several clusters, and what lies between two rests, such as the messages
//! of a wave that is healthy at once.
//!
//! With `TIPHYS_SCRIPTS_CONTROLLER=external`, `real` starts no controller but records what the one
//! that runs there does; see [`recorded`].
//!
//! `TIPHYS_SCRIPT=part` picks scripts by name, `TIPHYS_SCRIPTS=folder` takes those of another
//! folder; `TIPHYS_TRANSCRIPTS=overwrite` writes the transcripts again (embedded).

mod faults;
mod ground;
mod notation;
mod play;
mod recorded;
mod repository;
mod script;
mod steps;
mod transcript;
mod wire;

use ground::{Ground, NAMESPACE};
use script::Script;
use similar::TextDiff;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};
use wire::Wire;

/// Scripts under way at once on the real control plane.
const SIDE_BY_SIDE: usize = 12;
/// The same while another controller is recorded, which mostly means waiting until it is still.
const SIDE_BY_SIDE_RECORDED: usize = 40;
/// Control planes there for scripts that need one to themselves.
const LANES: usize = 4;

/// Where the scripts lie: here, or in `TIPHYS_SCRIPTS`, which is understood from the root of the
/// workspace.
fn folder() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::env::var_os("TIPHYS_SCRIPTS").map_or_else(
        || here.join("tests/scripts"),
        |given| here.join("../..").join(given),
    )
}

/// The scripts whose name contains `TIPHYS_SCRIPT`, or all; by name.
fn chosen() -> Vec<Script> {
    let folder = folder();
    let wanted = std::env::var("TIPHYS_SCRIPT").unwrap_or_default();
    let files = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|e| e.expect("an entry").path());
    let is_wanted = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "txt") && Script::name_of(path).contains(&wanted)
    };
    let mut files: Vec<PathBuf> = files.filter(is_wanted).collect();
    files.sort();
    files.iter().map(|path| Script::read(path)).collect()
}

/// What a script came to, and what is wrong with that.
struct Outcome {
    name: String,
    report: Option<String>,
    seconds: f64,
}

fn outcome(script: &Script, began: Instant, played: &Script) -> Outcome {
    let (want, got) = (script.text(), played.text());
    let report = (want != got).then(|| {
        TextDiff::from_lines(&want, &got)
            .unified_diff()
            .context_radius(6)
            .to_string()
    });
    Outcome {
        name: script.name.clone(),
        report,
        seconds: began.elapsed().as_secs_f64(),
    }
}

/// Says how it went; panics when something did not come out as expected.
fn conclude(mut outcomes: Vec<Outcome>, began: Instant) {
    outcomes.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let slowest: Vec<String> = outcomes
        .iter()
        .take(3)
        .map(|o| format!("{} {:.1} s", o.name, o.seconds))
        .collect();
    println!(
        "{} scripts in {:.1} s; longest: {}",
        outcomes.len(),
        began.elapsed().as_secs_f64(),
        slowest.join(", ")
    );
    outcomes.sort_by(|a, b| a.name.cmp(&b.name));
    let wrong: Vec<String> = outcomes
        .iter()
        .filter_map(|o| Some(format!("== {}\n{}", o.name, o.report.as_ref()?)))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} came out otherwise (-: expected, +: now):\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn embedded() {
    let (scripts, began) = (chosen(), Instant::now());
    assert!(!scripts.is_empty(), "no script of that name");
    let overwrite = std::env::var("TIPHYS_TRANSCRIPTS").as_deref() == Ok("overwrite");
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let began = Instant::now();
            let played = in_its_own_time(script);
            if overwrite {
                played.write();
            } else {
                outcomes
                    .lock()
                    .expect("no panic")
                    .push(outcome(script, began, &played));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    conclude(outcomes.into_inner().expect("no panic"), began);
}

/// Plays a script in a cluster and a time of its own.
fn in_its_own_time(script: &Script) -> Script {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let ground = Ground::embedded(&Wire::default()).await;
        let played = play::run(&ground, script, "x0y0").await;
        ground.close().await;
        played
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn real() {
    if std::env::var("TIPHYS_TEST_REAL").as_deref() != Ok("1") {
        return tiphys_testkit::skip("real", "it needs a real control plane: make test-real");
    }
    let began = Instant::now();
    let is_external = std::env::var("TIPHYS_SCRIPTS_CONTROLLER").as_deref() == Ok("external");
    let mut scripts: Vec<Arc<Script>> = chosen()
        .into_iter()
        .filter(|s| !s.is_for_embedded_only())
        .map(Arc::new)
        .collect();
    // A controller that is not ours is not killed.
    scripts.retain(|s| !(is_external && s.kills()));
    let (alone, together): (Vec<_>, Vec<_>) = scripts
        .into_iter()
        .partition(|script| script.changes_settings() || script.kills());
    // Ends with a letter, so that no name is a part of another's.
    let run = std::process::id() % 10_000;
    let shared = Arc::new(Ground::real(NAMESPACE).await);
    let room = Arc::new(tokio::sync::Semaphore::new(if is_external {
        SIDE_BY_SIDE_RECORDED
    } else {
        SIDE_BY_SIDE
    }));
    let mut tasks = tokio::task::JoinSet::new();
    for (number, script) in together.into_iter().enumerate() {
        let (ground, room) = (shared.clone(), room.clone());
        tasks.spawn(async move {
            let _one = room.acquire_owned().await.expect("it stays open");
            vec![really(&ground, &script, &format!("r{run}x{number}z")).await]
        });
    }
    let mut outcomes = Vec::new();
    if is_external {
        // The genuine controller looks after one namespace.
        outcomes.extend(tasks.join_all().await.into_iter().flatten());
        tasks = tokio::task::JoinSet::new();
    }
    let waiting = Arc::new(Mutex::new(alone.into_iter().enumerate()));
    for lane in 0..if is_external { 1 } else { LANES } {
        let (waiting, shared) = (waiting.clone(), shared.clone());
        tasks.spawn(async move {
            let own = format!("{NAMESPACE}-{lane}");
            let ground = if is_external {
                shared
            } else {
                Arc::new(Ground::real(&own).await)
            };
            let (next, mut outcomes) = (|| waiting.lock().expect("no panic").next(), Vec::new());
            while let Some((number, script)) = next() {
                outcomes.push(really(&ground, &script, &format!("s{run}x{number}z")).await);
            }
            outcomes
        });
    }
    outcomes.extend(tasks.join_all().await.into_iter().flatten());
    // One attempt: what comes out otherwise now and then is a finding.
    conclude(outcomes, began);
}

async fn really(ground: &Ground, script: &Script, id: &str) -> Outcome {
    let began = Instant::now();
    let played = play::run(ground, script, id).await;
    if ground.is_external && std::env::var("TIPHYS_TRANSCRIPTS").as_deref() == Ok("overwrite") {
        recorded::write(script, &played);
        return outcome(script, began, script);
    }
    outcome(script, began, &played)
}

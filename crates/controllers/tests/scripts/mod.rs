//! Scenario scripts of syncing: text in, transcript out. One file is one scenario; the grammar is
//! in README.md beside this file.
//!
//! The real controller ([`application::run`]) runs with its live cache, the engine, the cluster
//! crate's executor and its own Git repository; a script changes Git, the Application or the
//! cluster from outside, and the transcript is read from the API server. There are two
//! environments:
//!
//! - `embedded`: the embedded API server with its simulated cluster, in one thread with tokio's
//!   paused time. Nothing really waits: when all tasks are idle, the time jumps to the next timer.
//!   A step is over when nothing was written for a while.
//! - `real`: a real control plane (`KUBECONFIG`, `TIPHYS_TEST_REAL=1`), where time passes by itself
//!   and a step is over when the transcript is the expected one. Scripts share one controller there
//!   and run concurrently; those that change its settings or kill it have controllers of their own,
//!   each with its own namespace.
//!
//! The transcript is the same file for both. Not covered: the API of our own server (steps write
//! what its calls write), several clusters, and states between two steps, such as the messages of a
//! wave that becomes healthy immediately.
//!
//! With `TIPHYS_SCRIPTS_CONTROLLER=external`, `real` starts no controller but records what the one
//! running there does; see [`recorded`].
//!
//! `TIPHYS_SCRIPT=part` selects scripts by name, `TIPHYS_SCRIPTS=folder` uses those of another
//! folder; `TIPHYS_TRANSCRIPTS=overwrite` writes the transcripts again (embedded).

mod charts;
mod faults;
mod ground;
mod notation;
mod play;
mod plugins;
mod recorded;
mod repository;
mod script;
mod steps;
mod transcript;
pub mod wire;

use ground::{Ground, NAMESPACE};
use script::Script;
use similar::TextDiff;
use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};
use wire::Wire;

/// Concurrent scripts on the real control plane.
const SIDE_BY_SIDE: usize = 12;
/// The same while another controller is recorded, which mostly waits until it is idle.
const SIDE_BY_SIDE_RECORDED: usize = 40;
/// Control planes for scripts that need one of their own.
const LANES: usize = 4;

/// The scripts' folder: this one, or `TIPHYS_SCRIPTS`, relative to the root of the workspace.
fn folder() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::env::var_os("TIPHYS_SCRIPTS").map_or_else(
        || here.join("tests/scripts"),
        |given| here.join("../..").join(given),
    )
}

/// The scripts whose name contains `TIPHYS_SCRIPT`, or all, sorted by name.
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

/// The result of a script, and what is wrong with it.
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

/// Reports the results; panics if one is not as expected.
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

/// `TIPHYS_SCRIPTS`: others' scripts are played and compared, with the files next to them.
#[test]
fn a_folder_from_outside() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n";
    std::fs::create_dir(folder.path().join("files")).expect("a folder");
    std::fs::write(folder.path().join("files/one.yaml"), manifest).expect("a file");
    let run = |state: &str| {
        let script = format!(
            "commit\n  from files NAME=one\n\napp\n| application OutOfSync at commit 1, {state}\n|   ConfigMap/one  OutOfSync  Missing\n"
        );
        std::fs::write(folder.path().join("outside.txt"), script).expect("a file");
        let run = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "scripts::embedded"])
            .env("TIPHYS_SCRIPTS", folder.path())
            .env_remove("TIPHYS_SCRIPT")
            .env_remove("TIPHYS_TRANSCRIPTS")
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        (run.status.success(), said)
    };
    let (right, said) = run("Missing");
    assert!(right, "{said}");
    let (wrong, said) = run("Healthy");
    assert!(!wrong && said.contains("outside"), "{said}");
}

/// Plays a script in its own cluster and virtual time.
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
    // Ends with a letter, so that no name is part of another one.
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
        // Upstream Argo CD's controller reconciles one namespace.
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
    // One attempt: a result that sometimes differs is a finding.
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

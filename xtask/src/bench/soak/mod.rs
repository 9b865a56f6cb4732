//! The soak: a fleet under fault injection for half an hour. Connections to the API server break,
//! objects drift, Git changes and is unavailable at times. Memory and descriptors must not grow, no
//! operation may get stuck, and in the end everything matches Git.

mod proxy;

use super::{SoakArgs, fleet, process};
use anyhow::{Context, ensure};
use proxy::Proxy;
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tiphys_testkit::{Api, ControlPlane, Options, Repo, Rng, Tiphys, apps_path, namespaced};

/// The interval between two operations from outside, and between two faults on the wire.
const DEED: Duration = Duration::from_millis(500);
const HARM_MS: (u64, u64) = (1000, 6000);
/// How long Git is unavailable, once per this many operations.
const OUTAGE: Duration = Duration::from_secs(5);
const OUTAGES: u64 = 240;
const SAMPLE: Duration = Duration::from_secs(60);
/// An operation that runs longer is stuck: failed steps are retried forever, at most every 20
/// seconds.
const STUCK: i64 = 300;
/// How long recovery may take after the fault injection ends.
const RECOVERY: Duration = Duration::from_secs(180);
/// How much memory and descriptors may grow from the second third to the last.
const MEMORY: f64 = 1.10;
const DESCRIPTORS: usize = 16;

/// A snapshot of the state.
#[derive(Debug)]
struct Sample {
    seconds: u64,
    mebibytes: f64,
    descriptors: usize,
    threads: usize,
    cpu_seconds: f64,
    not_well: usize,
    running: usize,
    /// The age of the longest running operation, in seconds.
    oldest: i64,
}

pub fn run(root: &Path, args: &SoakArgs) -> anyhow::Result<()> {
    let program = super::program(root, args.program.as_deref())?;
    let control_plane = args.kubeconfig.is_none().then(|| ControlPlane::start(root));
    let direct = args
        .kubeconfig
        .clone()
        .or_else(|| control_plane.as_ref().map(|c| c.kubeconfig.clone()))
        .context("one of the two")?;
    let folder = TempDir::new()?;
    let (proxy, kubeconfig) = proxied(&direct, folder.path())?;
    let repo = fleet::repository(args.apps);
    let (tiphys, _) = Tiphys::ready(&Options {
        program,
        ephemeral: true,
        kubeconfig: Some(kubeconfig),
        ..Options::default()
    });
    let kube = Api::kubeconfig(&direct).map_err(anyhow::Error::msg)?;
    kube.namespace(fleet::NAMESPACE);
    let retry =
        json!({"limit": -1, "backoff": {"duration": "2s", "factor": 2, "maxDuration": "20s"}});
    let url = repo.url();
    fleet::each_of(args.apps, |number| {
        fleet::create(&kube, number, &url, &retry)
    })?;
    fleet::all_well(&kube, args.apps, RECOVERY)?;
    println!(
        "{} Applications are well; {} minutes of fire, seed {}",
        args.apps, args.minutes, args.seed
    );
    let (over, deeds) = (AtomicBool::new(false), AtomicUsize::new(0));
    let samples = thread::scope(|scope| {
        scope.spawn(|| inject(&proxy, args.seed, &over));
        scope.spawn(|| outside(&kube, &repo, args, &over, &deeds));
        let samples = watch(&kube, &tiphys, args);
        over.store(true, Ordering::Relaxed);
        samples
    })?;
    println!(
        "{} faults injected on the wire, {} operations from outside",
        proxy.faults(),
        deeds.into_inner()
    );
    let began = Instant::now();
    fleet::all_well(&kube, args.apps, RECOVERY)?;
    println!(
        "all well {:.0} s after the fire",
        began.elapsed().as_secs_f64()
    );
    tiphys.interrupt();
    judge(&samples)
}

/// A proxy in front of the cluster, and a kubeconfig that uses it.
fn proxied(direct: &Path, folder: &Path) -> anyhow::Result<(Proxy, std::path::PathBuf)> {
    let text = fs::read_to_string(direct)?;
    let (_, rest) = text
        .split_once("https://127.0.0.1:")
        .context("a control plane on loopback is needed")?;
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let proxy = Proxy::start(format!("127.0.0.1:{port}"))?;
    let path = folder.join("kubeconfig");
    fs::write(
        &path,
        text.replace(
            &format!("127.0.0.1:{port}"),
            &format!("127.0.0.1:{}", proxy.port()),
        ),
    )?;
    Ok((proxy, path))
}

fn inject(proxy: &Proxy, seed: u64, over: &AtomicBool) {
    let mut rng = Rng::new(seed);
    while !over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(
            HARM_MS.0 + rng.below(HARM_MS.1 - HARM_MS.0),
        ));
        proxy.harm_once(&mut rng);
    }
}

/// Operations by others: change, delete, commit.
fn outside(kube: &Api, repo: &Repo, args: &SoakArgs, over: &AtomicBool, deeds: &AtomicUsize) {
    let mut rng = Rng::new(args.seed + 1);
    let maps = namespaced("v1", fleet::NAMESPACE, "configmaps");
    let bare = repo.url().trim_start_matches("file://").to_owned();
    while !over.load(Ordering::Relaxed) {
        thread::sleep(DEED);
        let number = usize::try_from(rng.below(args.apps as u64)).unwrap_or(0);
        // An object that does not exist at the moment cannot be changed, which is fine.
        match rng.below(4) {
            0 => drop(kube.merge(
                &format!("{maps}/cm-{number:04}"),
                &json!({"data": {"settings": "drift"}}),
            )),
            1 => drop(kube.send("DELETE", &format!("{maps}/cm-{number:04}"), "", None)),
            2 => {
                let text = fleet::config_map(number).replace(
                    "settings.0 = ",
                    &format!("settings.0 = {}", rng.below(1_000_000)),
                );
                repo.commit(&[(&format!("fleet/app-{number:04}/cm.yaml"), &text)], &[]);
                let refresh =
                    json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
                drop(kube.merge(&format!("{}/fleet-{number:04}", apps_path()), &refresh));
            }
            _ if rng.below(OUTAGES / 4) == 0 => {
                let away = format!("{bare}.away");
                if fs::rename(&bare, &away).is_ok() {
                    thread::sleep(OUTAGE);
                    fs::rename(&away, &bare).expect("nobody else moves it");
                }
            }
            _ => {}
        }
        deeds.fetch_add(1, Ordering::Relaxed);
    }
}

fn watch(kube: &Api, tiphys: &Tiphys, args: &SoakArgs) -> anyhow::Result<Vec<Sample>> {
    let (began, mut samples) = (Instant::now(), Vec::new());
    println!("   min    MiB    fds  threads  CPU-s  not well  running  oldest");
    while began.elapsed() < Duration::from_secs(args.minutes * 60) {
        thread::sleep(SAMPLE);
        let sample = sample(kube, tiphys.id(), began)?;
        println!(
            "{:6} {:6.1} {:6} {:8} {:6.1} {:9} {:8} {:5} s",
            sample.seconds / 60,
            sample.mebibytes,
            sample.descriptors,
            sample.threads,
            sample.cpu_seconds,
            sample.not_well,
            sample.running,
            sample.oldest
        );
        samples.push(sample);
    }
    Ok(samples)
}

fn sample(kube: &Api, id: u32, began: Instant) -> anyhow::Result<Sample> {
    let apps = fleet::items(kube, &apps_path())?;
    let now = jiff::Timestamp::now();
    let age = |app: &&Value| {
        let started = app
            .pointer("/status/operationState/startedAt")
            .and_then(Value::as_str)?
            .parse::<jiff::Timestamp>()
            .ok()?;
        Some(now.duration_since(started).as_secs())
    };
    let running: Vec<&Value> = apps
        .iter()
        .filter(|a| a.get("operation").is_some())
        .collect();
    Ok(Sample {
        seconds: began.elapsed().as_secs(),
        mebibytes: process::resident_mebibytes(id)?,
        descriptors: process::descriptors(id)?,
        threads: process::threads(id)?,
        cpu_seconds: process::cpu_seconds(id)?,
        not_well: apps.iter().filter(|a| !fleet::is_well(a)).count(),
        running: running.len(),
        oldest: running.iter().filter_map(age).max().unwrap_or(0),
    })
}

fn judge(samples: &[Sample]) -> anyhow::Result<()> {
    let oldest = samples.iter().map(|s| s.oldest).max().unwrap_or(0);
    ensure!(oldest < STUCK, "an operation ran for {oldest} s");
    let third = samples.len() / 3;
    if third < 2 {
        println!("too short to tell whether memory and descriptors are flat");
        return Ok(());
    }
    let (second, last) = (&samples[third..2 * third], &samples[2 * third..]);
    let mean = |samples: &[Sample]| {
        samples.iter().map(|s| s.mebibytes).sum::<f64>()
            / f64::from(u32::try_from(samples.len()).unwrap_or(1))
    };
    let most = |samples: &[Sample]| samples.iter().map(|s| s.descriptors).max().unwrap_or(0);
    let (memory, descriptors) = ((mean(second), mean(last)), (most(second), most(last)));
    println!(
        "memory {:.1} MiB in the second third, {:.1} in the last; descriptors {} and {}",
        memory.0, memory.1, descriptors.0, descriptors.1
    );
    ensure!(memory.1 <= memory.0 * MEMORY, "memory grows");
    ensure!(
        descriptors.1 <= descriptors.0 + DESCRIPTORS,
        "descriptors leak"
    );
    Ok(())
}

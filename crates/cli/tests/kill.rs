//! `kill -9` during a sync, at moments determined by a seed: whatever was in progress is resumed
//! and ends as if nothing had happened.
//!
//! `TIPHYS_KILLS` sets the number of seeds (8 by default; the full run uses 200), `TIPHYS_SEED` the
//! first one (derived from the commit by default), `TIPHYS_BIN` another binary.

use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};
use tempfile::TempDir;
use tiphys_testkit::{
    Api, Options, PATIENCE, Repo, Rng, Tiphys, apps_path, eventually, namespaced,
};

const NAMESPACE: &str = "under-fire";
const LEDGER: &str = "ledger";
const APP: &str = "victim";
/// Control planes tested concurrently: most of a round is waiting for simulated Jobs.
const LANES: usize = 4;
/// The longest time from the request for a sync to the kill.
const LONGEST_MS: u64 = 1500;
/// Objects that no commit changes, so there is no reason to write them.
const STABLE: usize = 5;

fn env_number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| {
        v.parse()
            .unwrap_or_else(|_| panic!("{name}={v} is no number"))
    })
}

fn text(value: &Value, pointer: &str) -> String {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn config_map(name: &str, wave: i64, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations:\n    argocd.argoproj.io/sync-wave: \"{wave}\"\ndata:\n  value: \"{value}\"\n"
    )
}

/// A Job that runs as a hook. One that is never deleted shows by its number how often it ran, one
/// with a fixed name by its uids.
fn hook(name: &str, phase: &str, policy: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  {name}\n  annotations:\n    argocd.argoproj.io/hook: {phase}\n    argocd.argoproj.io/hook-delete-policy: {policy}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - {{name: c, image: registry.example.org/hook:v1, command: [\"true\"]}}\n"
    )
}

/// Statistics over all lanes.
#[derive(Default)]
struct Totals {
    kills: AtomicU64,
    /// Restarts that found a running operation.
    resumed: AtomicU64,
    writes: AtomicU64,
    hooks: AtomicU64,
    syncs: AtomicU64,
}

/// One control plane under test.
struct Lane<'a> {
    totals: &'a Totals,
    options: Options,
    data: &'a TempDir,
    repo: Repo,
    round: u64,
    /// Creations that the API server acknowledged.
    acknowledged: Vec<String>,
    /// Uids of the objects that must stay, by name.
    uids: BTreeMap<String, String>,
    /// Commits that were awaited, and all of them.
    awaited: Vec<String>,
    commits: Vec<String>,
    /// Every hook seen: name and operation to uids.
    seen: &'a Mutex<BTreeMap<(String, String), BTreeSet<String>>>,
}

#[test]
fn embedded() {
    run(LANES, None);
}

/// Only the controller is killed here: the API server is another process, and there is one cluster
/// for one lane.
#[test]
fn real() {
    if std::env::var("TIPHYS_TEST_REAL").as_deref() != Ok("1") {
        return tiphys_testkit::skip("real", "it needs a real control plane: make test-real");
    }
    run(
        1,
        Some(PathBuf::from(
            std::env::var_os("KUBECONFIG").expect("KUBECONFIG names the cluster"),
        )),
    );
}

fn run(lanes: usize, kubeconfig: Option<PathBuf>) {
    let (seeds, first) = (env_number("TIPHYS_KILLS", 8), tiphys_testkit::first_seed());
    let totals = Totals::default();
    thread::scope(|scope| {
        for lane in 0..lanes {
            let (totals, kubeconfig) = (&totals, kubeconfig.clone());
            scope.spawn(move || {
                run_lane(
                    totals,
                    kubeconfig,
                    (first..first + seeds).skip(lane).step_by(lanes),
                )
            });
        }
    });
    let count = |n: &AtomicU64| n.load(Ordering::Relaxed);
    println!(
        "kill: seeds {first} to {}, {} kills, {} operations found under way, {} syncs awaited, {} hooks each run once, {} acknowledged writes all there",
        first + seeds - 1,
        count(&totals.kills),
        count(&totals.resumed),
        count(&totals.syncs),
        count(&totals.hooks),
        count(&totals.writes)
    );
}

fn run_lane(totals: &Totals, kubeconfig: Option<PathBuf>, seeds: impl Iterator<Item = u64>) {
    let data = TempDir::new().expect("a folder");
    let seen = Mutex::default();
    let program = std::env::var_os("TIPHYS_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_tiphys").into(), PathBuf::from);
    let options = Options {
        program,
        data: Some(data.path().to_owned()),
        kubeconfig,
        ..Options::default()
    };
    let mut files: Vec<_> = (0..STABLE)
        .map(|i| {
            (
                format!("app/stable-{i}.yaml"),
                config_map(
                    &format!("stable-{i}"),
                    i64::try_from(i).expect("small") - 1,
                    "1",
                ),
            )
        })
        .collect();
    files.push((
        "app/before.yaml".to_owned(),
        hook("generateName: before-", "PreSync", "HookFailed"),
    ));
    files.push((
        "app/after.yaml".to_owned(),
        hook("name: after", "PostSync", "BeforeHookCreation"),
    ));
    files.push(("app/only-0.yaml".to_owned(), config_map("only-0", 1, "0")));
    let repo = Repo::with(
        &files
            .iter()
            .map(|(n, t)| (n.as_str(), t.as_str()))
            .collect::<Vec<_>>(),
    );
    let commits = vec![repo.head()];
    let mut lane = Lane {
        totals,
        options,
        data: &data,
        repo,
        round: 0,
        acknowledged: Vec::new(),
        uids: BTreeMap::new(),
        awaited: Vec::new(),
        commits,
        seen: &seen,
    };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (lane, done) = (&mut lane, &done);
        let kubeconfig = lane
            .options
            .kubeconfig
            .clone()
            .unwrap_or_else(|| data.path().join("kubeconfig"));
        scope.spawn(|| record_hooks(kubeconfig, &seen, done));
        // The recorder must end even if the lane panics.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let (mut tiphys, kube) = Tiphys::ready(&lane.options);
            kube.namespace(LEDGER);
            kube.create(&apps_path(), &application(&lane.repo.url()));
            lane.await_and_check(&kube, "the first sync");
            for seed in seeds {
                tiphys = lane.fire(seed, tiphys);
            }
            let kube = tiphys.wait_ready();
            lane.await_and_check(&kube, "the end");
            kube.delete(&format!("{}/{APP}", apps_path()));
        }));
        done.store(true, Ordering::Relaxed);
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

fn application(repo: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": APP},
        "spec": {
            "project": "default", "source": {"repoURL": repo, "path": "app", "targetRevision": "HEAD"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": NAMESPACE},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"]}
        }
    })
}

/// Records every hook it sees until told to stop. A killed process is polled again at its next
/// address.
fn record_hooks(
    kubeconfig: PathBuf,
    seen: &Mutex<BTreeMap<(String, String), BTreeSet<String>>>,
    done: &AtomicBool,
) {
    let path = namespaced("batch/v1", NAMESPACE, "jobs");
    let mut api: Option<Api> = None;
    while !done.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(50));
        let Some(known) = api.take().or_else(|| Api::kubeconfig(&kubeconfig).ok()) else {
            continue;
        };
        let Ok(answer) = known.get(&path) else {
            continue;
        };
        api = Some(known);
        write_down(&answer.body, seen);
    }
}

fn write_down(jobs: &Value, seen: &Mutex<BTreeMap<(String, String), BTreeSet<String>>>) {
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    for job in jobs["items"].as_array().into_iter().flatten() {
        let operation = text(job, "/metadata/annotations/tiphys.dev~1operation-id");
        seen.entry((text(job, "/metadata/name"), operation))
            .or_default()
            .insert(text(job, "/metadata/uid"));
    }
}

impl Lane<'_> {
    /// One seed: a commit, a refresh, a kill (sometimes another one during the recovery), and
    /// checks of the result.
    fn fire(&mut self, seed: u64, mut tiphys: Tiphys) -> Tiphys {
        let mut rng = Rng::new(seed);
        let kube = tiphys.wait_ready();
        self.commit();
        let refresh =
            json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
        kube.patch(&format!("{}/{APP}", apps_path()), &refresh);
        let moment = Duration::from_millis(rng.below(LONGEST_MS));
        self.write_until_killed(&kube, seed, tiphys, moment);
        let again = rng.below(4) == 0;
        if again {
            let in_recovery = Tiphys::start(&self.options);
            thread::sleep(Duration::from_millis(rng.below(LONGEST_MS)));
            in_recovery.kill();
            self.totals.kills.fetch_add(1, Ordering::Relaxed);
        }
        let (tiphys, kube) = Tiphys::ready(&self.options);
        if kube
            .find(&format!("{}/{APP}", apps_path()))
            .is_some_and(|app| app.get("operation").is_some())
        {
            self.totals.resumed.fetch_add(1, Ordering::Relaxed);
        }
        // Sometimes the next commit comes before this one is done.
        if rng.below(5) != 0 {
            let what = format!(
                "seed {seed}, killed after {moment:?}{}",
                if again {
                    " and once more in the recovery"
                } else {
                    ""
                }
            );
            self.await_and_check(&kube, &what);
        }
        tiphys
    }

    /// Changes, adds and removes objects.
    fn commit(&mut self) {
        self.round += 1;
        let (now, before) = (self.round, self.round - 1);
        let value = now.to_string();
        let files = [
            ("app/round.yaml".to_owned(), config_map("round", 0, &value)),
            ("app/late.yaml".to_owned(), config_map("late", 2, &value)),
            (
                format!("app/only-{now}.yaml"),
                config_map(&format!("only-{now}"), 1, &value),
            ),
        ];
        let files: Vec<_> = files
            .iter()
            .map(|(n, t)| (n.as_str(), t.as_str()))
            .collect();
        self.commits.push(
            self.repo
                .commit(&files, &[&format!("app/only-{before}.yaml")]),
        );
    }

    /// Creates objects one after the other while the process is killed, and records those that were
    /// acknowledged.
    fn write_until_killed(&mut self, kube: &Api, seed: u64, tiphys: Tiphys, moment: Duration) {
        let path = namespaced("v1", LEDGER, "configmaps");
        let killed = thread::spawn(move || {
            thread::sleep(moment);
            tiphys.kill();
        });
        // A real API server keeps responding.
        for number in (0..).take_while(|_| !killed.is_finished()) {
            let name = format!("w-{seed}-{number}");
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"name": name}});
            match kube.post(&path, &object) {
                Ok(answer) if answer.status == 201 => self.acknowledged.push(name),
                Ok(answer) => panic!("seed {seed}: a write got {} {}", answer.status, answer.body),
                Err(_) => break,
            }
            thread::sleep(Duration::from_millis(10));
        }
        killed.join().expect("it only kills");
        self.totals.kills.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until the cluster matches Git, then looks for traces of the kill.
    fn await_and_check(&mut self, kube: &Api, what: &str) {
        let sha = self.repo.head();
        let app = format!("{}/{APP}", apps_path());
        let app = eventually(
            PATIENCE,
            &format!("{what}: Synced to {sha} and Healthy"),
            || {
                let app = kube.get(&app).map_err(|e| e.0)?.body;
                let at = |pointer| text(&app, pointer);
                let well = at("/status/sync/status") == "Synced"
                    && at("/status/sync/revision") == sha
                    && at("/status/health/status") == "Healthy"
                    && at("/status/operationState/phase") == "Succeeded"
                    && at("/status/operationState/syncResult/revision") == sha
                    && app.get("operation").is_none();
                if well {
                    Ok(app)
                } else {
                    Err(app["status"].to_string())
                }
            },
        );
        assert_eq!(
            app.pointer("/status/operationState/retryCount"),
            None,
            "{what}: a kill is no failure: {}",
            app["status"]["operationState"]
        );
        self.awaited.push(sha);
        self.check_objects(kube, what);
        self.check_hooks(kube, what);
        self.check_writes(kube, what);
    }

    fn check_objects(&mut self, kube: &Api, what: &str) {
        let objects = kube.list(&namespaced("v1", NAMESPACE, "configmaps"));
        let found: BTreeMap<_, _> = objects
            .iter()
            .filter(|o| text(o, "/metadata/name") != "kube-root-ca.crt")
            .map(|o| (text(o, "/metadata/name"), o))
            .collect();
        let mut wanted: BTreeMap<String, String> = (0..STABLE)
            .map(|i| (format!("stable-{i}"), "1".to_owned()))
            .collect();
        wanted.insert(format!("only-{}", self.round), self.round.to_string());
        if self.round > 0 {
            wanted.extend(["round", "late"].map(|name| (name.to_owned(), self.round.to_string())));
        }
        let values: BTreeMap<_, _> = found
            .iter()
            .map(|(name, o)| (name.clone(), text(o, "/data/value")))
            .collect();
        assert_eq!(values, wanted, "{what}: the cluster is not what Git says");
        for (name, object) in found.iter().filter(|(name, _)| !name.starts_with("only-")) {
            let uid = text(object, "/metadata/uid");
            let before = self.uids.entry(name.clone()).or_insert_with(|| uid.clone());
            assert_eq!(*before, uid, "{what}: {name} was deleted and made again");
        }
    }

    fn check_hooks(&self, kube: &Api, what: &str) {
        let jobs = json!({"items": kube.list(&namespaced("batch/v1", NAMESPACE, "jobs"))});
        write_down(&jobs, self.seen);
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for ((name, operation), uids) in seen.iter() {
            assert_eq!(
                uids.len(),
                1,
                "{what}: hook {name} of operation {operation} ran as {uids:?}"
            );
        }
        // Generated names contain the short revision.
        let of = |sha: &String| {
            seen.keys()
                .filter(|(name, _)| name.starts_with(&format!("before-{}", &sha[..7])))
                .collect::<Vec<_>>()
        };
        for sha in &self.commits {
            let (ran, awaited) = (of(sha), self.awaited.contains(sha));
            assert!(
                ran.len() == 1 || (ran.is_empty() && !awaited),
                "{what}: the PreSync hook of {sha} ran as {ran:?}"
            );
        }
        let last = of(self.commits.last().expect("the first commit"))
            .first()
            .map(|(_, operation)| operation.clone());
        let after = jobs["items"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|j| j["metadata"]["name"] == "after");
        let after = after.map(|j| text(j, "/metadata/annotations/tiphys.dev~1operation-id"));
        assert_eq!(
            after, last,
            "{what}: the PostSync hook is that of the last operation"
        );
    }

    fn check_writes(&self, kube: &Api, what: &str) {
        let there: BTreeSet<_> = kube
            .list(&namespaced("v1", LEDGER, "configmaps"))
            .iter()
            .map(|o| text(o, "/data/name"))
            .collect();
        let lost: Vec<_> = self
            .acknowledged
            .iter()
            .filter(|name| !there.contains(*name))
            .collect();
        assert!(lost.is_empty(), "{what}: acknowledged and lost: {lost:?}");
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        let hooks = self.seen.lock().map_or(0, |seen| seen.len());
        self.totals
            .hooks
            .fetch_add(u64::try_from(hooks).unwrap_or_default(), Ordering::Relaxed);
        self.totals.writes.fetch_add(
            u64::try_from(self.acknowledged.len()).unwrap_or_default(),
            Ordering::Relaxed,
        );
        self.totals.syncs.fetch_add(
            u64::try_from(self.awaited.len()).unwrap_or_default(),
            Ordering::Relaxed,
        );
        if thread::panicking() {
            eprintln!("the data folder was {}", self.data.path().display());
        }
    }
}

//! Seeded faults of sets: a host of Git or a repository that fails in many ways or lists less than
//! there is, clusters that come and go, events of pushes that come too early, twice or while others
//! are answered, and a controller that dies at a write. No Application is deleted that a complete
//! answer wants, nor any by a policy that deletes nothing, and when all is well there are exactly
//! those that are wanted.
//!
//! Ten seeds, other ones for each commit; `TIPHYS_FAULTS=N` plays N, `all` plays 20,000,
//! `TIPHYS_SEED=S` begins there. `make test-seeds` plays all of them.

mod source;

use super::{
    applicationsets::{APPS, PATIENCE, Plane, SECRETS, SETS, template, text},
    scripts::wire::{Moment, Wire},
};
use http::Method;
use serde_json::{Value, json};
use source::{FAILURES, KINDS, Mode, Source, Truth};
use std::{collections::BTreeSet, time::Duration};
use tiphys_cluster::request::{Call, MERGE_PATCH};
use tiphys_controllers::applicationset::ControllerSettings;
use tiphys_testkit::{Rng, first_seed};
use tokio::time::{Instant, sleep};

const FEW: u64 = 10;
const ALL: u64 = 20_000;
/// Seeds on one API server: what is written is remembered.
const TOGETHER: u64 = 50;
const STEPS: usize = 6;
const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";
const REFRESH_TIMESTAMP: &str = "argocd.argoproj.io/application-set-refresh-timestamp";

/// What a set may do, and whether its Applications have a finalizer.
#[derive(Clone, Copy, Debug)]
struct Manner {
    policy: &'static str,
    preserves: bool,
}

impl Manner {
    fn draw(rng: &mut Rng) -> Self {
        let policy = match rng.below(5) {
            0 => "create-only",
            1 => "create-update",
            2 => "create-delete",
            _ => "sync",
        };
        Self {
            policy,
            preserves: rng.below(2) == 0,
        }
    }

    fn deletes(self) -> bool {
        ["sync", "create-delete"].contains(&self.policy)
    }
}

fn spec(seed: u64, source: &Source, manner: Manner) -> Value {
    let (first, item) = source.kind.generator(&source.url());
    let clusters = json!({"clusters": {"selector": {"matchLabels": {"seed": seed.to_string()}}}});
    json!({
        "goTemplate": true,
        "syncPolicy": {
            "preserveResourcesOnDeletion": manner.preserves, "applicationsSync": manner.policy,
        },
        "generators": [{"matrix": {"generators": [first, clusters]}}],
        "template": template(
            &format!("s{seed}-{item}-{{{{.name}}}}"), "https://example.com/r", "x",
        ),
    })
}

/// A set, what it is generated from, and its clusters.
struct Play<'p> {
    plane: &'p Plane,
    wire: &'p Wire,
    seed: u64,
    source: Source,
    manner: Manner,
    rng: Rng,
    /// What was done, for a failure.
    told: Vec<String>,
    /// Events of pushes so far.
    events: u64,
    /// What there was when a reconcile had ended.
    seen: BTreeSet<String>,
}

impl<'p> Play<'p> {
    async fn start(plane: &'p Plane, wire: &'p Wire, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let kind = usize::try_from(seed % 5).expect("small");
        let (source, manner) = (Source::start(KINDS[kind]).await, Manner::draw(&mut rng));
        let told = vec![format!("{:?}, {manner:?}", source.kind)];
        Self {
            plane,
            wire,
            seed,
            source,
            manner,
            rng,
            told,
            events: 0,
            seen: BTreeSet::new(),
        }
    }

    fn path(&self) -> String {
        format!("{SETS}/s{}", self.seed)
    }

    fn mode(&mut self) -> Mode {
        match self.rng.below(4) {
            0 => Mode::Well,
            // A commit is whole.
            1 if self.source.kind.is_git() => Mode::Well,
            1 => Mode::Torn,
            _ => {
                let index = usize::try_from(self.rng.below(9)).expect("small");
                FAILURES[index]
            }
        }
    }

    /// Some elements come or go, and clusters; the source fails or does not; the controller dies at
    /// one of its next writes, or does not.
    async fn change(&mut self, is_last: bool) {
        let mut truth = self.source.truth();
        truth.mode = self.mode();
        if is_last {
            // In the end all is well.
            truth.mode = Mode::Well;
        }
        // Before clusters change, so that a reconcile in between fails, too. That all is well is
        // said last, together with what there is then.
        if truth.fails() {
            self.source.fail(truth.mode);
        }
        for _ in 0..=self.rng.below(2) {
            toggle(&mut truth.items, 1 + self.rng.below(5));
        }
        if truth.clusters.is_empty() || self.rng.below(3) == 0 {
            let cluster = 1 + self.rng.below(3);
            toggle(&mut truth.clusters, cluster);
            let name = format!("s{}-c{cluster}", self.seed);
            if truth.clusters.contains(&cluster) {
                self.plane
                    .create(SECRETS, &self.cluster(&name, cluster))
                    .await;
            } else {
                self.plane.delete(&format!("{SECRETS}/{name}")).await;
            }
        }
        let dies = self.rng.below(3) == 0;
        if dies {
            let at = self.wire.writes().len() + usize::try_from(self.rng.below(6)).expect("small");
            let moment = match self.rng.below(2) {
                0 => Moment::Before,
                _ => Moment::After,
            };
            self.wire.plan(|plan| plan.deaths.push((at, moment)));
        }
        self.told
            .push(format!("{truth:?}{}", if dies { ", dies" } else { "" }));
        self.source.tell(truth);
    }

    fn cluster(&self, name: &str, cluster: u64) -> Value {
        let labels = json!({
            "argocd.argoproj.io/secret-type": "cluster", "seed": self.seed.to_string(),
        });
        let server = format!("https://{}.{cluster}.example.com", self.seed);
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels},
            "stringData": {"name": format!("c{cluster}"), "server": server, "config": "{}"},
        })
    }

    /// The set's Applications, and whether some of them are being deleted. Those get no finalizer
    /// more, as if the controller of Applications had deleted their resources.
    async fn applications(&self) -> (BTreeSet<String>, bool) {
        let own = format!("s{}-", self.seed);
        let (mut names, mut are_leaving) = (BTreeSet::new(), false);
        for app in self.plane.apps().await {
            let name = text(&app["metadata"]["name"]);
            if !name.starts_with(&own) {
                continue;
            }
            if !app["metadata"]["deletionTimestamp"].is_null() {
                are_leaving = true;
                let patch = json!({"metadata": {"finalizers": null}});
                let call = Call::new(Method::PATCH, format!("{APPS}/{name}"));
                let call = call.with_body(MERGE_PATCH, patch.to_string());
                if let Err(error) = self.plane.send(call).await {
                    assert!(error.is_not_found(), "{error}");
                }
            }
            names.insert(name);
        }
        (names, are_leaving)
    }

    /// Whether there is what is wanted, or what was there where nothing is deleted.
    fn is_wanted(&self, truth: &Truth, names: &BTreeSet<String>) -> bool {
        let wanted = truth.wanted(self.seed);
        match self.manner.deletes() {
            true => *names == wanted,
            false => names.is_superset(&wanted) && names.is_superset(&self.seen),
        }
    }

    /// An event of a push, as a webhook passes it on.
    async fn event(&mut self) {
        self.events += 1;
        let at = self.events.to_string();
        let annotations = json!({REFRESH: "true", REFRESH_TIMESTAMP: at});
        let patch = json!({"metadata": {"annotations": annotations}});
        self.plane.patch(&self.path(), patch).await;
    }

    /// Events that nobody waits for: they come before what they are about can be read, or once more
    /// afterwards, and the reconciles for them run while something else changes.
    async fn stray_events(&mut self) {
        let count = self.rng.below(3);
        for _ in 0..count {
            self.event().await;
        }
        if count > 0 {
            self.told.push(format!("{count} stray events"));
        }
    }

    /// Asks for a reconcile, and returns when one has come to its end since.
    async fn reconciled(&mut self) {
        self.event().await;
        let began = Instant::now();
        loop {
            let set = self.plane.get(&self.path()).await;
            let is_done = set["metadata"]["annotations"][REFRESH].is_null();
            let conditions = set["status"]["conditions"].as_array().cloned();
            let failed = conditions.into_iter().flatten().any(|condition| {
                condition["type"] == "ErrorOccurred" && condition["status"] == "True"
            });
            let truth = self.source.truth();
            let (names, are_leaving) = self.applications().await;
            let is_wanted = match truth.mode {
                Mode::Well => !failed && self.is_wanted(&truth, &names),
                // What is new may be what the list lacks.
                Mode::Torn => !failed,
                _ => failed,
            };
            if is_done && is_wanted && !are_leaving {
                self.seen = names;
                return;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "TIPHYS_SEED={} TIPHYS_FAULTS=1: {names:?} and {}, after {:#?}",
                self.seed,
                set["status"],
                self.told
            );
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Plays the steps, and returns what was wrong.
    async fn run(mut self) -> Vec<String> {
        let set = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {
                "name": format!("s{}", self.seed),
                "annotations": {"tiphys.dev/delete-limit": "0"},
            },
            "spec": spec(self.seed, &self.source, self.manner),
        });
        self.plane.create(SETS, &set).await;
        let mut wrong = Vec::new();
        for step in 0..=STEPS {
            let (before, writes) = (self.applications().await.0, self.wire.writes().len());
            // What a list lacked may come at any time, by the next list.
            let may_grow = self.source.truth().mode == Mode::Torn;
            self.stray_events().await;
            self.change(step == STEPS).await;
            self.reconciled().await;
            let (truth, after) = (self.source.truth(), self.seen.clone());
            let is_same = after == before || (may_grow && after.is_superset(&before));
            if truth.fails() && !is_same {
                wrong.push(format!("{before:?} became {after:?}"));
            }
            wrong.extend(self.wrong_deletions(&truth, writes));
        }
        // A complete answer that has none: all are deleted, if any may be.
        let mut none = self.source.truth();
        none.items.clear();
        self.source.tell(none);
        self.reconciled().await;
        self.plane.delete(&self.path()).await;
        let told = |what: String| {
            let (seed, steps) = (self.seed, &self.told);
            format!("TIPHYS_SEED={seed} TIPHYS_FAULTS=1: {what}, after {steps:#?}")
        };
        wrong.into_iter().map(told).collect()
    }

    /// Deletions since a write that nothing justifies.
    fn wrong_deletions(&self, truth: &Truth, since: usize) -> Vec<String> {
        let (own, wanted) = (format!("s{}-", self.seed), truth.wanted(self.seed));
        let may_none = truth.fails() || !self.manner.deletes();
        let mut wrong = Vec::new();
        for write in self.wire.writes().iter().skip(since) {
            let name = write.what.strip_prefix("DELETE ");
            let name = name.and_then(|path| path.strip_prefix(APPS)?.strip_prefix('/'));
            if name
                .is_some_and(|name| name.starts_with(&own) && (may_none || wanted.contains(name)))
            {
                wrong.push(format!("{} {}", write.what, write.code));
            }
        }
        wrong
    }
}

fn toggle(set: &mut BTreeSet<u64>, item: u64) {
    if !set.remove(&item) {
        set.insert(item);
    }
}

/// A number of the environment.
pub fn number(name: &str) -> Option<u64> {
    match std::env::var(name).ok()?.as_str() {
        "all" => Some(ALL),
        text => Some(
            text.parse()
                .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        ),
    }
}

/// The seeds to play, in parts that one API server is enough for.
pub fn parts(few: u64) -> Vec<std::ops::Range<u64>> {
    let first = number("TIPHYS_SEED").unwrap_or_else(first_seed);
    let end = first + number("TIPHYS_FAULTS").unwrap_or(few);
    let size = usize::try_from(TOGETHER).expect("small");
    let starts = (first..end).step_by(size);
    starts
        .map(|start| start..end.min(start + TOGETHER))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_delete_nothing_that_is_wanted() {
    let mut wrong = Vec::new();
    for part in parts(FEW) {
        let wire = Wire::default();
        let plane = Plane::behind(&wire, ControllerSettings::default()).await;
        let began = Instant::now();
        for seed in part.clone() {
            wrong.extend(Play::start(&plane, &wire, seed).await.run().await);
        }
        println!(
            "seeds {part:?} in {:.0} s, {} failures so far: {:?}",
            began.elapsed().as_secs_f64(),
            wrong.len(),
            wire.faults()
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

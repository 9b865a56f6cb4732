//! Seeded faults of sets: a host of Git that fails in many ways or lists less than there is,
//! clusters that come and go, and a controller that dies at a write. No Application is deleted that a
//! complete answer wants, and when all is well there are exactly those that are wanted.
//!
//! Eight seeds, other ones for each commit; `TIPHYS_FAULTS=N` plays N, `TIPHYS_SEED=S` begins there.

use super::{
    applicationset_hosts::server::{Asked, Reply, Server},
    applicationsets::{APPS, PATIENCE, Plane, SECRETS, SETS, template},
    scripts::wire::{Moment, Wire},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use tiphys_testkit::{Rng, first_seed};
use tokio::time::{Instant, sleep};

const FEW: u64 = 8;
const STEPS: usize = 6;
const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";
/// Pull requests of a page.
const PAGE: usize = 2;

/// How a host answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Well,
    Status(u16),
    Html,
    /// JSON that is no list.
    Object,
    /// Half a list.
    Cut,
    /// The last of several pages fails; one page fails where there is no other.
    LastPage,
    /// Every other list lacks an element: it moved to the page before, which was asked already.
    Torn,
}

const FAILURES: [Mode; 9] = [
    Mode::Status(500),
    Mode::Status(502),
    Mode::Status(404),
    Mode::Status(403),
    Mode::Status(401),
    Mode::Html,
    Mode::Object,
    Mode::Cut,
    Mode::LastPage,
];

/// What there is: pull requests at the host, and clusters.
#[derive(Clone, Debug)]
struct Truth {
    pulls: BTreeSet<u64>,
    clusters: BTreeSet<u64>,
    mode: Mode,
}

impl Truth {
    /// Whether the host says that something is wrong.
    fn fails(&self) -> bool {
        ![Mode::Well, Mode::Torn].contains(&self.mode)
    }

    /// The Applications that are wanted, by name.
    fn wanted(&self, seed: u64) -> BTreeSet<String> {
        let of = |pull: &u64| {
            let clusters = self.clusters.iter();
            let names = clusters.map(|cluster| format!("s{seed}-{pull}-c{cluster}"));
            names.collect::<Vec<_>>()
        };
        self.pulls.iter().flat_map(of).collect()
    }

    /// `listed`: how many lists were asked for, and what the last one is of.
    fn answer(&self, own: &str, asked: &Asked, listed: &mut (usize, Vec<u64>)) -> Reply {
        let page: usize = asked
            .query
            .get("page")
            .map_or(Ok(1), |page| page.parse())
            .expect("a page");
        if page == 1 {
            *listed = (listed.0 + 1, self.pulls.iter().copied().collect());
            if self.mode == Mode::Torn && listed.0 % 2 == 1 && listed.1.len() > PAGE {
                listed.1.remove(PAGE);
            }
        }
        let pulls = &listed.1;
        let chunk = pulls.chunks(PAGE).nth(page - 1).unwrap_or_default();
        let is_last = page * PAGE >= pulls.len();
        let list = chunk.iter().map(|number| {
            json!({
                "number": number, "title": "t", "user": {"login": "ann"}, "labels": [],
                "head": {"ref": "topic", "sha": "0123456789abcdef"}, "base": {"ref": "main", "sha": "d"},
            })
        });
        let list = Value::from_iter(list).to_string();
        match self.mode {
            Mode::Status(status) => return Reply::new(status, json!({"message": "no"})),
            Mode::Html => return Reply::new(200, "<html></html>"),
            Mode::Object => return Reply::new(200, "{}"),
            Mode::Cut => {
                return Reply {
                    cut: Some(list.len() / 2),
                    ..Reply::new(200, list)
                };
            }
            Mode::LastPage if is_last => return Reply::new(503, "{}"),
            Mode::LastPage | Mode::Torn | Mode::Well => {}
        }
        let reply = Reply::new(200, list);
        if is_last {
            return reply;
        }
        let next = format!("<{own}{}?page={}>; rel=\"next\"", asked.path, page + 1);
        reply.header("link", next)
    }
}

fn spec(seed: u64, api: &str) -> Value {
    let pulls = json!({"pullRequest": {"github": {"owner": "acme", "repo": "shop", "api": api}}});
    let clusters = json!({"clusters": {"selector": {"matchLabels": {"seed": seed.to_string()}}}});
    json!({
        "goTemplate": true,
        // Else each Application would wait for a controller to delete its resources.
        "syncPolicy": {"preserveResourcesOnDeletion": true},
        "generators": [{"matrix": {"generators": [pulls, clusters]}}],
        "template": template(
            &format!("s{seed}-{{{{.number}}}}-{{{{.name}}}}"), "https://example.com/r", "x",
        ),
    })
}

/// A set, its host and its clusters.
struct Play<'p> {
    plane: &'p Plane,
    wire: &'p Wire,
    seed: u64,
    truth: Arc<Mutex<Truth>>,
    rng: Rng,
    /// What was done, for a failure.
    told: Vec<String>,
    host: Server,
}

impl<'p> Play<'p> {
    async fn start(plane: &'p Plane, wire: &'p Wire, seed: u64) -> Self {
        let truth = Arc::new(Mutex::new(Truth {
            pulls: BTreeSet::new(),
            clusters: BTreeSet::new(),
            mode: Mode::Well,
        }));
        let now = Arc::clone(&truth);
        let listed = Mutex::new((0, Vec::new()));
        let host = Server::start(move |own, asked| {
            let truth = now.lock().expect("no panic").clone();
            truth.answer(own, asked, &mut listed.lock().expect("no panic"))
        })
        .await;
        Self {
            plane,
            wire,
            seed,
            truth,
            rng: Rng::new(seed),
            told: Vec::new(),
            host,
        }
    }

    fn truth(&self) -> Truth {
        self.truth.lock().expect("no panic").clone()
    }

    fn path(&self) -> String {
        format!("{SETS}/s{}", self.seed)
    }

    /// Some pull requests are opened or closed, and clusters come and go; the host fails or does
    /// not; the controller dies at one of its next writes, or does not.
    async fn change(&mut self) {
        let mut truth = self.truth();
        truth.mode = match self.rng.below(4) {
            0 => Mode::Well,
            1 => Mode::Torn,
            _ => {
                let index = usize::try_from(self.rng.below(9)).expect("small");
                FAILURES[index]
            }
        };
        // Before clusters change, so that a reconcile in between fails, too. That all is well is
        // said last, together with what there is then.
        if truth.fails() {
            self.truth.lock().expect("no panic").mode = truth.mode;
        }
        for _ in 0..=self.rng.below(2) {
            toggle(&mut truth.pulls, 1 + self.rng.below(5));
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
        *self.truth.lock().expect("no panic") = truth;
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

    async fn names(&self) -> BTreeSet<String> {
        let own = format!("s{}-", self.seed);
        let names = self.plane.names().await.into_iter();
        names.filter(|name| name.starts_with(&own)).collect()
    }

    /// Asks for a reconcile, and returns when one has come to its end since.
    async fn reconciled(&mut self) {
        let patch = json!({"metadata": {"annotations": {REFRESH: "true"}}});
        self.plane.patch(&self.path(), patch).await;
        let began = Instant::now();
        loop {
            let set = self.plane.get(&self.path()).await;
            let is_done = set["metadata"]["annotations"][REFRESH].is_null();
            let conditions = set["status"]["conditions"].as_array().cloned();
            let failed = conditions.into_iter().flatten().any(|condition| {
                condition["type"] == "ErrorOccurred" && condition["status"] == "True"
            });
            let truth = self.truth();
            let is_wanted = match truth.mode {
                Mode::Well => !failed && self.names().await == truth.wanted(self.seed),
                // What is new may be what the list lacks.
                Mode::Torn => !failed,
                _ => failed,
            };
            if is_done && is_wanted {
                return;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "TIPHYS_SEED={} TIPHYS_FAULTS=1: {:?} and {}, after {:#?}",
                self.seed,
                self.names().await,
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
            "spec": spec(self.seed, &self.host.url),
        });
        self.plane.create(SETS, &set).await;
        let mut wrong = Vec::new();
        for step in 0..=STEPS {
            let (before, writes) = (self.names().await, self.wire.writes().len());
            // What a list lacked may come at any time, by the next list.
            let may_grow = self.truth().mode == Mode::Torn;
            self.change().await;
            if step == STEPS {
                // In the end all is well.
                self.truth.lock().expect("no panic").mode = Mode::Well;
            }
            self.reconciled().await;
            let (truth, after) = (self.truth(), self.names().await);
            let wanted = truth.wanted(self.seed);
            let is_same = after == before || (may_grow && after.is_superset(&before));
            if truth.fails() && !is_same {
                wrong.push(format!("{before:?} became {after:?}"));
            }
            for write in self.wire.writes().iter().skip(writes) {
                let name = write.what.strip_prefix("DELETE ");
                let name = name.and_then(|path| path.strip_prefix(APPS)?.strip_prefix('/'));
                let is_wrong = name.is_some_and(|name| {
                    let own = name.starts_with(&format!("s{}-", self.seed));
                    own && (truth.fails() || wanted.contains(name))
                });
                if is_wrong {
                    wrong.push(format!("{} {}", write.what, write.code));
                }
            }
        }
        // A complete answer that has none: all are deleted.
        self.truth.lock().expect("no panic").pulls.clear();
        self.reconciled().await;
        self.plane.delete(&self.path()).await;
        let told = |what: String| {
            let (seed, steps) = (self.seed, &self.told);
            format!("TIPHYS_SEED={seed} TIPHYS_FAULTS=1: {what}, after {steps:#?}")
        };
        wrong.into_iter().map(told).collect()
    }
}

fn toggle(set: &mut BTreeSet<u64>, item: u64) {
    if !set.remove(&item) {
        set.insert(item);
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_delete_nothing_that_is_wanted() {
    let wire = Wire::default();
    let plane = Plane::behind(&wire).await;
    let first = number("TIPHYS_SEED").unwrap_or_else(first_seed);
    let count = number("TIPHYS_FAULTS").unwrap_or(FEW);
    let began = Instant::now();
    let mut wrong = Vec::new();
    for seed in first..first + count {
        wrong.extend(Play::start(&plane, &wire, seed).await.run().await);
    }
    println!(
        "{count} seeds from {first} in {:.0} s: {:?}",
        began.elapsed().as_secs_f64(),
        wire.faults()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

//! Seeded faults of the hydrator: pushes that the repository refuses, requests that come twice or
//! while others are answered, commits while one is hydrated, and a process that dies at a write, such
//! as between its push and its status. What is in the branch is of one dry commit, each is there once
//! and in their order, and when all is well it is the last one.
//!
//! Four seeds, other ones for each commit; `TIPHYS_FAULTS=N` plays N, `all` plays 20,000,
//! `TIPHYS_SEED=S` begins there. `make test-seeds` plays all of them.

use super::{
    applicationset_seeds::parts,
    hydrator::{HYDRATE, PATIENCE, Plane, config_map},
    scripts::wire::{Moment, Wire},
};
use std::{fs, os::unix::fs::PermissionsExt, time::Duration};
use tiphys_testkit::Rng;
use tokio::time::{Instant, sleep};

const FEW: u64 = 4;
const STEPS: usize = 5;
const NAMES: [&str; 2] = ["web", "api"];
/// In the repository: how many pushes to the branch are still refused.
const REFUSALS: &str = "refusals";
const HOOK: &str = "#!/bin/sh
[ \"$1\" = refs/heads/env/dev ] || exit 0
left=$(cat refusals 2>/dev/null || echo 0)
[ \"$left\" -gt 0 ] || exit 0
echo $((left - 1)) > refusals
exit 1
";

/// The value of each Application in a commit.
type Values = [u64; 2];

/// One seed.
struct Play<'p> {
    plane: &'p Plane,
    wire: &'p Wire,
    rng: Rng,
    /// Those of the dry commits, in their order, each once.
    dry: Vec<Values>,
    /// What was done, for a failure.
    told: Vec<String>,
}

impl Play<'_> {
    fn last(&self) -> Values {
        *self.dry.last().expect("there is a first one")
    }

    /// A dry commit that changes one Application, both or none.
    fn commit(&mut self) -> String {
        let which = self.rng.below(4);
        let changes = [[0, 2].contains(&which), [1, 2].contains(&which)];
        let mut values = self.last();
        let mut files = Vec::new();
        for ((name, value), _) in NAMES
            .iter()
            .zip(&mut values)
            .zip(changes)
            .filter(|(_, changes)| *changes)
        {
            *value += 1;
            let text = config_map(name, &value.to_string());
            files.push((format!("src/{name}/cm.yaml"), text));
        }
        if files.is_empty() {
            files.push(("README.md".to_owned(), self.told.len().to_string()));
        } else {
            self.dry.push(values);
        }
        self.told.push(format!("commit {values:?}"));
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        self.plane.repo.commit(&files, &[])
    }

    /// A request, as after an event of a push.
    async fn request(&mut self) {
        let name = NAMES[usize::try_from(self.rng.below(2)).expect("small")];
        let kind = match self.rng.below(3) {
            0 => "hard",
            _ => "normal",
        };
        self.told.push(format!("{kind} request of {name}"));
        self.plane.ask(name, kind).await;
    }

    async fn step(&mut self) {
        let refusals = self.rng.below(3).to_string();
        fs::write(self.plane.repo.bare().join(REFUSALS), &refusals).expect("a file");
        self.told.push(format!("{refusals} pushes are refused"));
        if self.rng.below(2) == 0 {
            let at = self.wire.writes().len() + usize::try_from(self.rng.below(5)).expect("small");
            let moment = match self.rng.below(2) {
                0 => Moment::Before,
                _ => Moment::After,
            };
            self.wire.plan(|plan| plan.deaths.push((at, moment)));
            self.told.push(format!("dies {moment:?} a write"));
        }
        let mut sha = self.commit();
        for _ in 0..=self.rng.below(2) {
            self.request().await;
            if self.rng.below(3) == 0 {
                sha = self.commit();
            }
        }
        self.settled(&sha).await;
    }

    /// Returns when the Applications were hydrated from this dry commit; asks until they are.
    async fn settled(&self, dry: &str) {
        let began = Instant::now();
        loop {
            let (mut is_done, mut states) = (true, Vec::new());
            for name in NAMES {
                let app = self.plane.get(name).await;
                let operation = &app["status"]["sourceHydrator"]["currentOperation"];
                let is_it = operation["phase"] == "Hydrated" && operation["drySHA"] == *dry;
                let is_asked = app["metadata"]["annotations"].get(HYDRATE).is_some();
                if !is_it && !is_asked {
                    self.plane.ask(name, "normal").await;
                }
                is_done &= is_it && !is_asked;
                states.push(operation.clone());
            }
            if is_done {
                return;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{states:?}, after {:#?}",
                self.told
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// What a hydrated commit has of the Applications.
    fn hydrated(&self, commit: &str) -> Values {
        NAMES.map(|name| {
            let manifest = format!("{commit}:apps/{name}/manifest.yaml");
            let text = self.plane.git(&["show", &manifest]);
            let value = text
                .split_once("v: \"")
                .and_then(|(_, rest)| rest.split_once('"'));
            let (value, _) = value.unwrap_or_else(|| panic!("{text}"));
            value.parse().expect("a number")
        })
    }

    /// What is wrong with the branch since a commit.
    async fn wrong(&self, since: &str) -> Vec<String> {
        let log = format!("{since}..env/dev");
        let log = self.plane.git(&["rev-list", "--reverse", &log]);
        let (mut wrong, mut last) = (Vec::new(), 0);
        for commit in log.lines() {
            let values = self.hydrated(commit);
            match self.dry.iter().position(|dry| *dry == values) {
                None => wrong.push(format!("{values:?} is of no dry commit")),
                Some(index) if index <= last => {
                    wrong.push(format!("{values:?} comes again, or too late"));
                }
                Some(index) => last = index,
            }
        }
        let head = self.plane.head();
        if self.hydrated(&head) != self.last() {
            wrong.push(format!("{:?} was not hydrated", self.last()));
        }
        for name in NAMES {
            let app = self.plane.get(name).await;
            let state = &app["status"]["sourceHydrator"];
            if state["lastSuccessfulOperation"]["hydratedSHA"] != *head {
                wrong.push(format!("{name} does not know {head}: {state}"));
            }
        }
        wrong
    }
}

/// The repository refuses as many pushes as a file says.
fn refuse(plane: &Plane) {
    let hooks = plane.repo.bare().join("hooks");
    fs::create_dir_all(&hooks).expect("a folder");
    let hook = hooks.join("update");
    fs::write(&hook, HOOK).expect("a file");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a mode");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_hydrate_nothing_twice_and_forget_nothing() {
    let mut wrong = Vec::new();
    for part in parts(FEW) {
        let wire = Wire::default();
        let plane = Plane::behind(&wire).await;
        refuse(&plane);
        for name in NAMES {
            let (from, to) = (format!("src/{name}"), format!("apps/{name}"));
            plane.app(name, (&plane.url(), &from, &to)).await;
        }
        let (began, mut last) = (Instant::now(), [1, 1]);
        for seed in part.clone() {
            let mut play = Play {
                plane: &plane,
                wire: &wire,
                rng: Rng::new(seed),
                dry: vec![last],
                told: Vec::new(),
            };
            play.settled(&plane.git(&["rev-parse", "main"])).await;
            let since = plane.head();
            for _ in 0..STEPS {
                play.step().await;
            }
            let found = play.wrong(&since).await;
            let told = |what: String| {
                let steps = &play.told;
                format!("TIPHYS_SEED={seed} TIPHYS_FAULTS=1: {what}, after {steps:#?}")
            };
            wrong.extend(found.into_iter().map(told));
            last = play.last();
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

//! A rollout of a set in steps, with the controller of sets and that of Applications together.

use crate::scenarios::world::{World, config_map, text};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    thread::sleep,
    time::{Duration, Instant},
};
use tiphys_testkit::{Repo, apps_path, namespaced};

/// Applications of each step, and how many of them may change at a time.
type Steps = [(&'static str, usize, Option<usize>); 3];
const HUNDREDS: Steps = [
    ("canary", 10, None),
    ("some", 90, Some(30)),
    ("rest", 200, None),
];
/// On a real cluster, which takes longer for each.
const FEWER: Steps = [
    ("canary", 5, None),
    ("some", 20, Some(6)),
    ("rest", 35, None),
];
/// How long a rollout may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

struct Rollout<'w> {
    world: &'w World,
    repo: Repo,
    sets: String,
    steps: Steps,
}

impl Rollout<'_> {
    fn set(&self, version: &str) -> Value {
        let elements: Vec<Value> = self
            .steps
            .iter()
            .flat_map(|(step, count, _)| {
                (0..*count).map(move |n| json!({"name": format!("{step}-{n}"), "step": step}))
            })
            .collect();
        let steps: Vec<Value> = self
            .steps
            .iter()
            .map(|(step, _, most)| {
                let mut one = json!({"matchExpressions": [
                    {"key": "step", "operator": "In", "values": [step]},
                ]});
                if let Some(most) = most {
                    one["maxUpdate"] = json!(most);
                }
                one
            })
            .collect();
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": "rollout", "namespace": "argocd"},
            "spec": {
                "goTemplate": true,
                "generators": [{"list": {"elements": elements}}],
                "strategy": {"type": "RollingSync", "rollingSync": {"steps": steps}},
                "template": {
                    "metadata": {"name": "{{.name}}", "labels": {"step": "{{.step}}"}},
                    "spec": {
                        "project": "default",
                        "source": {
                            "repoURL": self.repo.url(), "path": "base", "targetRevision": "HEAD",
                            "kustomize": {
                                "namePrefix": "{{.name}}-",
                                "commonAnnotations": {"version": version},
                            },
                        },
                        "destination": {
                            "server": "https://kubernetes.default.svc",
                            "namespace": self.world.namespace,
                        },
                        "syncPolicy": {"syncOptions": ["CreateNamespace=true"]},
                    },
                },
            },
        })
    }

    /// Watches until each Application was synced this many times, and is well.
    fn watch(&self, syncs: usize) -> Vec<Value> {
        let all: usize = self.steps.iter().map(|(_, count, _)| count).sum();
        let began = Instant::now();
        loop {
            self.check_most();
            let apps = self.world.kube.list(&apps_path());
            let apps: Vec<Value> = apps
                .into_iter()
                .filter(|app| !app["metadata"]["labels"]["step"].is_null())
                .collect();
            let is_done = |app: &&Value| {
                let history = app["status"]["history"].as_array().map_or(0, Vec::len);
                history >= syncs
                    && text(app, "/status/sync/status") == "Synced"
                    && text(app, "/status/health/status") == "Healthy"
                    && text(app, "/status/operationState/phase") == "Succeeded"
            };
            let done = apps.iter().filter(is_done).count();
            if done == all {
                return apps;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{done} of {all} are well: {}",
                self.statuses().join(" ")
            );
            sleep(Duration::from_millis(50));
        }
    }

    fn application_statuses(&self) -> Vec<Value> {
        let set = self.world.kube.find(&format!("{}/rollout", self.sets));
        let status = set.and_then(|mut set| {
            set["status"]["applicationStatus"]
                .as_array_mut()
                .map(std::mem::take)
        });
        status.unwrap_or_default()
    }

    /// No step changes more at a time than it may, and none begins before the one before is done.
    fn check_most(&self) {
        let mut changing: BTreeMap<String, usize> = BTreeMap::new();
        let mut left: BTreeSet<String> = BTreeSet::new();
        for app in self.application_statuses() {
            let step = text(&app, "/step");
            match text(&app, "/status").as_str() {
                "Pending" | "Progressing" => {
                    left.insert(step.clone());
                    *changing.entry(step).or_default() += 1;
                }
                "Waiting" => {
                    left.insert(step);
                }
                _ => {}
            }
        }
        for (step, count) in &changing {
            let index: usize = step.parse().expect("a number");
            let most = self.steps[index - 1].2.unwrap_or(usize::MAX);
            assert!(*count <= most, "step {step} changes {count} at a time");
            let earlier = left.iter().find(|other| *other < step);
            assert_eq!(earlier, None, "step {step} began before");
        }
    }

    fn statuses(&self) -> Vec<String> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for app in self.application_statuses() {
            let of = format!("{}:{}", text(&app, "/step"), text(&app, "/status"));
            *counts.entry(of).or_default() += 1;
        }
        counts
            .into_iter()
            .map(|(of, count)| format!("{of}={count}"))
            .collect()
    }
}

/// Each Application was synced once for a change, and the steps followed each other.
fn check_order(apps: &[Value], syncs: usize, steps: &Steps) {
    let mut spans: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for app in apps {
        let history = app["status"]["history"].as_array().expect("a history");
        let name = &app["metadata"]["name"];
        assert_eq!(history.len(), syncs, "{name}: {history:#?}");
        let step = app["metadata"]["labels"]["step"].as_str().expect("a label");
        let last = &history[syncs - 1];
        let (began, ended) = (text(last, "/deployStartedAt"), text(last, "/deployedAt"));
        let span = spans
            .entry(step)
            .or_insert_with(|| (began.clone(), ended.clone()));
        // Times of one form are in the order of their texts.
        span.0 = span.0.clone().min(began);
        span.1 = span.1.clone().max(ended);
    }
    for pair in steps.windows(2) {
        let (before, after) = (&spans[pair[0].0], &spans[pair[1].0]);
        assert!(before.1 <= after.0, "{before:?} before {after:?}");
    }
}

/// 300 Applications: they are created, and then changed, step by step.
pub fn a_set_of_hundreds_is_rolled_out_in_steps(world: &mut World) {
    let params = format!(
        "{}/argocd-cmd-params-cm",
        namespaced("v1", "argocd", "configmaps")
    );
    let switch = |value: Value| {
        let key = "applicationsetcontroller.enable.progressive.syncs";
        world.kube.patch(&params, &json!({"data": {key: value}}));
    };
    switch(json!("true"));
    let rollout = Rollout {
        world,
        repo: Repo::with(&[
            ("base/kustomization.yaml", "resources: [c.yaml]\n"),
            ("base/c.yaml", &config_map("c", "1")),
        ]),
        sets: namespaced("argoproj.io/v1alpha1", "argocd", "applicationsets"),
        steps: if world.is_real() { FEWER } else { HUNDREDS },
    };
    world.kube.create(&rollout.sets, &rollout.set("1"));
    check_order(&rollout.watch(1), 1, &rollout.steps);

    let spec = json!({"spec": {"template": rollout.set("2")["spec"]["template"]}});
    world
        .kube
        .patch(&format!("{}/rollout", rollout.sets), &spec);
    check_order(&rollout.watch(2), 2, &rollout.steps);
    let maps = world.list("configmaps");
    let new = maps
        .iter()
        .filter(|map| text(map, "/metadata/annotations/version") == "2");
    assert_eq!(
        new.count(),
        rollout
            .steps
            .iter()
            .map(|(_, count, _)| count)
            .sum::<usize>()
    );
    world.kube.delete(&format!("{}/rollout", rollout.sets));
    switch(Value::Null);
}

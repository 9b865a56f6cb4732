//! Generates scripts from a seed: plausible operations on valid objects, some of them damaged. Main
//! function: [`script`].

mod definitions;
mod mutate;
mod operations;
mod parts;
mod patches;
mod requests;
pub mod samples;
mod yaml;

use super::script::{Script, Step};
use crate::Rng;
use mutate::{chance, mutate, pick};
use samples::Kind;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Which scripts to generate.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Plural names; empty: all.
    pub kinds: Vec<String>,
    /// `pods`, `kinds`, `crd` or `http`; empty: all.
    pub areas: Vec<String>,
}

impl Wanted {
    fn allows(&self, kind: &Kind) -> bool {
        let area = self.areas.is_empty()
            || self.areas.iter().any(|a| {
                a == kind.area
                    || (a == "http"
                        && matches!(
                            kind.kind.as_str(),
                            "ConfigMap"
                                | "Lease"
                                | "Widget"
                                | "Deployment"
                                | "Namespace"
                                | "Gadget"
                        ))
            });
        area && (self.kinds.is_empty() || self.kinds.contains(&kind.plural))
    }
}

/// The script of a seed.
pub fn script(seed: u64, wanted: &Wanted) -> Script {
    let kinds: Vec<Kind> = samples::all()
        .into_iter()
        .filter(|k| wanted.allows(k))
        .collect();
    if kinds.is_empty() {
        return Script::default();
    }
    let mut rng = Rng::new(seed);
    for _ in 0..3 {
        rng.next_u64();
    }
    let number = 1 + rng.below(3);
    let chosen: Vec<Kind> = (0..number)
        .map(|_| pick(&mut rng, &kinds).clone())
        .collect();
    let http = wanted.areas.iter().any(|a| a == "http");
    let stories = wanted.kinds.is_empty() && kinds.iter().any(|k| k.area == "crd");
    let mut generator = Generator {
        rng,
        kinds: chosen,
        objects: Vec::new(),
        generated: BTreeSet::new(),
        watches: Vec::new(),
        steps: Vec::new(),
        http,
        stories,
    };
    generator.run();
    Script {
        about: format!("seed {seed}"),
        steps: generator.steps,
    }
}

/// An object that a step probably created.
#[derive(Clone, Debug)]
struct Made {
    kind: Kind,
    name: String,
    step: usize,
    sample: Map<String, Value>,
}

struct Generator {
    rng: Rng,
    kinds: Vec<Kind>,
    objects: Vec<Made>,
    /// Collections that contain an object with a generated name; two of them could be in any order.
    generated: BTreeSet<String>,
    watches: Vec<usize>,
    steps: Vec<Step>,
    /// More steps about the protocol and fewer about objects.
    http: bool,
    /// Scripts may create kinds of their own.
    stories: bool,
}

impl Generator {
    fn run(&mut self) {
        let needs_account = self.kinds.iter().any(|k| k.area == "pods");
        if needs_account && chance(&mut self.rng, 95) {
            let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
            self.push(Step {
                method: "POST".into(),
                path: "/api/v1/namespaces/${ns}/serviceaccounts".into(),
                body: Some(account),
                ..Step::default()
            });
        }
        let story = self.stories && self.chance(if self.http { 4 } else { 15 });
        let length = 4 + usize::try_from(self.rng.below(18)).unwrap_or_default();
        while self.steps.len() < length {
            self.operation();
            if story && self.steps.len() >= length / 2 {
                self.story();
                break;
            }
        }
        for watch in std::mem::take(&mut self.watches) {
            self.push(Step {
                watch: Some(super::script::Watch::Drain(watch)),
                ..Step::default()
            });
        }
    }

    fn push(&mut self, mut step: Step) -> usize {
        let written = matches!(step.method.as_str(), "POST" | "PUT")
            && step.content_type.is_empty()
            && step.until.is_none();
        // Cluster-scoped objects that a script leaves behind are found through its JSON.
        if written
            && (step.method == "PUT" || step.path.contains("/namespaces/"))
            && self.stories
            && self.chance(5)
        {
            step.text = step
                .body
                .take()
                .map(|body| yaml::text(&mut self.rng, &body));
            step.content_type = "application/yaml".into();
        }
        self.steps.push(step);
        self.steps.len() - 1
    }

    fn chance(&mut self, percent: u64) -> bool {
        chance(&mut self.rng, percent)
    }

    fn kind(&mut self) -> Kind {
        pick(&mut self.rng, &self.kinds).clone()
    }

    /// An object that should exist or, sometimes, one that does not.
    fn target(&mut self) -> Option<Made> {
        if self.objects.is_empty() || self.chance(3) {
            let kind = self.kind();
            let name = self.name(&kind);
            let sample = pick(&mut self.rng, &kind.samples).clone();
            return self.chance(30).then_some(Made {
                kind,
                name,
                step: 0,
                sample,
            });
        }
        Some(pick(&mut self.rng, &self.objects).clone())
    }

    fn name(&mut self, kind: &Kind) -> String {
        if let Some(name) = &kind.name {
            return name.clone();
        }
        let base = *pick(&mut self.rng, &["a", "b", "c"]);
        if kind.cluster {
            format!("${{ns}}-{base}")
        } else {
            base.to_owned()
        }
    }

    /// A whole object of a kind, sometimes damaged.
    fn object(&mut self, kind: &Kind, name: &str) -> (Value, Map<String, Value>) {
        let sample = pick(&mut self.rng, &kind.samples).clone();
        let mut object = Value::Object(sample.clone());
        object["apiVersion"] = kind.api_version.clone().into();
        object["kind"] = kind.kind.clone().into();
        object["metadata"] = self.metadata(kind, name);
        let damages = match self.rng.below(10) {
            0..5 => 0,
            5..9 => 1,
            _ => 1 + self.rng.below(3),
        };
        for _ in 0..damages {
            let donor = pick(&mut self.rng, &kind.samples).clone();
            mutate(&mut self.rng, &mut object, &donor);
        }
        (object, sample)
    }

    fn metadata(&mut self, kind: &Kind, name: &str) -> Value {
        let tier = *pick(&mut self.rng, &["web", "db"]);
        let mut metadata = json!({"name": name, "labels": {"script": "${ns}", "tier": tier}});
        if !kind.cluster && self.chance(20) {
            metadata["namespace"] = "${ns}".into();
        }
        if self.chance(20) {
            metadata["annotations"] = json!({"example.com/note": "n", "x": ""});
        }
        if self.chance(8) {
            metadata["finalizers"] = json!(["example.com/hold"]);
        }
        if self.chance(5) {
            metadata["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "11111111-2222-4333-8444-555555555555", "controller": true}]);
        }
        if self.chance(4) {
            let field = *pick(
                &mut self.rng,
                &[
                    "uid",
                    "creationTimestamp",
                    "generation",
                    "resourceVersion",
                    "selfLink",
                    "deletionTimestamp",
                    "managedFields",
                ],
            );
            metadata[field] = pick(
                &mut self.rng,
                &[
                    json!("1"),
                    json!(3),
                    json!("2024-01-01T00:00:00Z"),
                    json!([]),
                    Value::Null,
                ],
            )
            .clone();
        }
        metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_script_and_others_give_others() {
        let wanted = Wanted::default();
        assert_eq!(script(7, &wanted), script(7, &wanted));
        assert_ne!(script(7, &wanted), script(8, &wanted));
        let lengths: Vec<usize> = (0..200).map(|n| script(n, &wanted).steps.len()).collect();
        assert!(lengths.iter().all(|l| (4..=70).contains(l)), "{lengths:?}");
    }
}

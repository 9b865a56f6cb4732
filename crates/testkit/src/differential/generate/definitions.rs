//! Custom kinds that are created, changed and deleted inside a script, with objects before and
//! after. Main function: `story`; the fields of such a kind are in `samples/fields.json`.

use super::super::script::Step;
use super::mutate::pick;
use super::samples::Kind;
use super::{Generator, chance};
use crate::Rng;
use serde::Deserialize;
use serde_json::{Map, Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "${ns}.example.com";

/// A field: possible schemas, and values that match some of them.
#[derive(Deserialize)]
struct Field {
    name: String,
    forms: Vec<Value>,
    values: Vec<Value>,
}

fn fields() -> Vec<Field> {
    serde_json::from_str(include_str!("../samples/fields.json"))
        .expect("the committed fields are JSON")
}

/// A version, with the schema of each of its fields.
#[derive(Clone)]
struct Version {
    name: &'static str,
    served: bool,
    forms: Vec<(usize, usize)>,
}

/// The current state of the script's own kind.
struct Definition {
    cluster: bool,
    status: bool,
    scale: bool,
    columns: bool,
    versions: Vec<Version>,
    storage: usize,
    /// Counts the changes; a field with that name shows when a server has adopted the last one.
    change: usize,
}

impl Definition {
    fn invent(rng: &mut Rng) -> Self {
        let all = fields();
        let number = 2 + rng.below(4);
        let forms: Vec<(usize, usize)> = (0..number)
            .map(|_| {
                let field = usize::try_from(rng.below(all.len() as u64)).unwrap_or_default();
                (
                    field,
                    usize::try_from(rng.below(all[field].forms.len() as u64)).unwrap_or_default(),
                )
            })
            .collect();
        let mut versions = vec![Version {
            name: "v1",
            served: true,
            forms,
        }];
        if chance(rng, 35) {
            versions.push(Self::variant(&versions[0], "v1beta1", rng));
        }
        let storage = usize::try_from(rng.below(versions.len() as u64)).unwrap_or_default();
        let (status, scale) = (chance(rng, 50), chance(rng, 15));
        Self {
            cluster: chance(rng, 25),
            status,
            scale,
            columns: chance(rng, 30),
            versions,
            storage,
            change: 0,
        }
    }

    /// Another version in which some fields have other schemas, or are missing.
    fn variant(of: &Version, name: &'static str, rng: &mut Rng) -> Version {
        let all = fields();
        let mut forms = of.forms.clone();
        for (field, form) in &mut forms {
            if chance(rng, 40) {
                *form =
                    usize::try_from(rng.below(all[*field].forms.len() as u64)).unwrap_or_default();
            }
        }
        if chance(rng, 30) && forms.len() > 1 {
            forms.pop();
        } else if chance(rng, 30) {
            forms.push((
                usize::try_from(rng.below(all.len() as u64)).unwrap_or_default(),
                0,
            ));
        }
        Version {
            name,
            served: true,
            forms,
        }
    }

    fn versions(&self) -> Value {
        let all = fields();
        let one = |(index, version): (usize, &Version)| {
            let properties: Map<String, Value> = version
                .forms
                .iter()
                .map(|(field, form)| (all[*field].name.clone(), all[*field].forms[*form].clone()))
                .collect();
            let mut spec = json!({"type": "object", "properties": properties});
            let mut status = json!({"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}}});
            if self.scale {
                spec["properties"]["replicas"] = json!({"type": "integer"});
            } else if index == 1 {
                status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            }
            let root = json!({"spec": spec, "status": status, self.mark(): {"type": "string"}});
            let mut out = json!({
                "name": version.name, "served": version.served, "storage": index == self.storage,
                "schema": {"openAPIV3Schema": {"type": "object", "description": "d", "properties": root}},
            });
            let subresources = &mut out["subresources"];
            if self.status {
                subresources["status"] = json!({});
            }
            if self.scale {
                subresources["scale"] = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
            }
            if subresources.is_null() {
                out.as_object_mut().map(|o| o.remove("subresources"));
            }
            if self.columns {
                out["additionalPrinterColumns"] = json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Tags", "type": "string", "jsonPath": ".spec.tags[*]", "priority": 1}]);
            }
            out
        };
        self.versions.iter().enumerate().map(one).collect()
    }

    fn mark(&self) -> String {
        format!("change{}", self.change)
    }

    fn object(&self) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("gizmos.{GROUP}"), "labels": {"script": "${ns}"}},
            "spec": {
                "group": GROUP, "scope": if self.cluster { "Cluster" } else { "Namespaced" }, "versions": self.versions(),
                "names": {"plural": "gizmos", "singular": "gizmo", "kind": "Gizmo", "shortNames": ["gz"]},
            },
        })
    }

    fn kind(&self, version: &Version, rng: &mut Rng) -> Kind {
        let all = fields();
        let sample = |rng: &mut Rng| {
            let some: Vec<&(usize, usize)> =
                version.forms.iter().filter(|_| chance(rng, 70)).collect();
            let spec: Map<String, Value> = some
                .iter()
                .map(|(field, _)| {
                    (
                        all[*field].name.clone(),
                        pick(rng, &all[*field].values).clone(),
                    )
                })
                .collect();
            let mut sample = Map::new();
            sample.insert("spec".into(), spec.into());
            if chance(rng, 20) {
                sample.insert("status".into(), json!({"phase": "p"}));
            }
            sample
        };
        let mut subresources = Vec::new();
        subresources.extend(self.status.then(|| "status".to_owned()));
        subresources.extend(self.scale.then(|| "scale".to_owned()));
        Kind {
            kind: "Gizmo".into(),
            api_version: format!("{GROUP}/{}", version.name),
            plural: "gizmos".into(),
            cluster: self.cluster,
            subresources,
            name: None,
            dry_run: false,
            samples: (0..3).map(|_| sample(rng)).collect(),
            area: "crd",
        }
    }

    /// Changes something; returns the patch of the CRD.
    fn change(&mut self, rng: &mut Rng) -> Value {
        self.change += 1;
        match rng.below(10) {
            0..5 => {
                let at = usize::try_from(rng.below(self.versions.len() as u64)).unwrap_or_default();
                let (name, served) = (self.versions[at].name, self.versions[at].served);
                self.versions[at] = Version {
                    served,
                    ..Self::variant(&self.versions[at], name, rng)
                };
            }
            5 | 6 if self.versions.len() < 3 && self.versions.iter().all(|v| v.name != "v2") => {
                let new = Self::variant(&self.versions[0], "v2", rng);
                self.versions.push(new);
                if chance(rng, 50) {
                    self.storage = self.versions.len() - 1;
                }
            }
            // A version in which objects may be stored stays, so only others are removed.
            7 if self.versions.len() > 1
                && self.storage != 1
                && self.versions[1].name == "v1beta1" =>
            {
                self.versions[1].served = !self.versions[1].served;
            }
            8 => self.status = !self.status,
            _ => self.columns = !self.columns,
        }
        json!({"spec": {"versions": self.versions()}})
    }
}

impl Generator {
    /// From the first CRD to the last change.
    pub(super) fn story(&mut self) {
        let mut definition = Definition::invent(&mut self.rng);
        self.push(Step {
            method: "POST".into(),
            path: DEFINITIONS.into(),
            body: Some(definition.object()),
            ..Step::default()
        });
        self.settled(&definition);
        self.push(Step {
            method: "GET".into(),
            path: format!("{DEFINITIONS}/gizmos.{GROUP}"),
            ..Step::default()
        });
        for path in [format!("/apis/{GROUP}"), format!("/apis/{GROUP}/v1")] {
            if self.chance(15) {
                self.push(Step {
                    method: "GET".into(),
                    path,
                    until: Some(200),
                    ..Step::default()
                });
            }
        }
        self.live(&definition);
        for _ in 0..self.rng.below(3) {
            let patch = definition.change(&mut self.rng);
            let path = format!("{DEFINITIONS}/gizmos.{GROUP}");
            let content_type = "application/merge-patch+json".to_owned();
            self.push(Step {
                method: "PATCH".into(),
                path,
                content_type,
                body: Some(patch),
                ..Step::default()
            });
            self.settled(&definition);
            self.live(&definition);
        }
        if self.chance(20) {
            self.push(Step {
                method: "DELETE".into(),
                path: format!("{DEFINITIONS}/gizmos.{GROUP}"),
                ..Step::default()
            });
            let path = definition
                .kind(&definition.versions[0], &mut self.rng)
                .collection();
            self.push(Step {
                method: "GET".into(),
                path,
                until: Some(404),
                ..Step::default()
            });
        }
    }

    /// Waits until every version is served according to the current CRD.
    fn settled(&mut self, definition: &Definition) {
        for version in &definition.versions {
            let kind = definition.kind(version, &mut self.rng);
            let path = kind.collection();
            if !version.served {
                self.push(Step {
                    method: "GET".into(),
                    path,
                    until: Some(404),
                    ..Step::default()
                });
                continue;
            }
            let object = json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "${ns}-probe"}, definition.mark(): "x"});
            let query = "dryRun=All&fieldValidation=Strict".to_owned();
            self.push(Step {
                method: "POST".into(),
                path: path.clone(),
                query,
                body: Some(object),
                until: Some(201),
                ..Step::default()
            });
            // A real server has a cache, which is rebuilt.
            let query =
                "resourceVersion=0&limit=1&labelSelector=script%3D${ns},none%3Dnone".to_owned();
            self.push(Step {
                method: "GET".into(),
                path,
                query,
                until: Some(200),
                ..Step::default()
            });
        }
    }

    /// Some operations on objects of the kind.
    fn live(&mut self, definition: &Definition) {
        let served: Vec<&Version> = definition.versions.iter().filter(|v| v.served).collect();
        self.kinds = served
            .iter()
            .map(|version| definition.kind(version, &mut self.rng))
            .collect();
        // Objects of another version exist in this one, too.
        let known: Vec<_> = self
            .objects
            .iter()
            .filter(|made| made.kind.kind == "Gizmo")
            .cloned()
            .collect();
        self.objects = known
            .into_iter()
            .filter_map(|made| {
                Some(super::Made {
                    kind: self
                        .kinds
                        .iter()
                        .find(|k| k.api_version == made.kind.api_version)?
                        .clone(),
                    ..made
                })
            })
            .collect();
        let end = self.steps.len() + 3 + usize::try_from(self.rng.below(8)).unwrap_or_default();
        while self.steps.len() < end {
            self.operation();
        }
    }
}

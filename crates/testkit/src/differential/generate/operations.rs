//! The operations on objects in a script.

use super::super::script::{Step, Watch};
use super::{Generator, Made, mutate::mutate, mutate::pick, samples::Kind};
use serde_json::{Value, json};

/// Query parameters.
#[derive(Default)]
pub struct Parameters(Vec<String>);

impl Parameters {
    pub fn add(&mut self, parameter: impl Into<String>) {
        self.0.push(parameter.into());
    }

    pub fn text(self) -> String {
        self.0.join("&")
    }
}

impl Generator {
    pub(super) fn operation(&mut self) {
        if self.objects.is_empty() && self.chance(60) {
            self.create();
            return;
        }
        let roll = if self.http && self.chance(40) {
            90 + self.rng.below(10)
        } else {
            self.rng.below(100)
        };
        match roll {
            0..24 => self.create(),
            24..34 => self.get(),
            34..45 => self.list(),
            45..56 => self.update(),
            56..74 => self.patch(),
            74..80 => self.status(),
            80..82 => self.scale(),
            82..83 => self.part(),
            83..88 => self.delete(),
            88..90 => self.delete_collection(),
            90..94 => self.watch(),
            94..97 => self.odd(),
            _ => self.document(),
        }
    }

    /// The common parameters of writes.
    pub(super) fn write_parameters(&mut self, kind: &Kind) -> Parameters {
        let mut out = Parameters::default();
        if kind.dry_run || self.chance(7) {
            out.add("dryRun=All");
        } else if self.chance(1) {
            out.add("dryRun=Some");
        }
        match self.rng.below(12) {
            0 => out.add("fieldValidation=Strict"),
            1 => out.add("fieldValidation=Ignore"),
            2 => out.add("fieldValidation=Warn"),
            3 if self.chance(10) => out.add("fieldValidation=Loose"),
            _ => {}
        }
        if self.chance(25) {
            out.add(format!(
                "fieldManager={}",
                pick(&mut self.rng, &["m1", "m2", "kubectl"])
            ));
        }
        if self.chance(3) {
            out.add("pretty=true");
        }
        out
    }

    fn accept(&mut self) -> String {
        match self.rng.below(25) {
            0 => "application/json;as=Table;v=v1;g=meta.k8s.io,application/json".to_owned(),
            1 => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
                .to_owned(),
            2 if self.chance(30) => "application/json;as=Table;v=v1;g=meta.k8s.io".to_owned(),
            2 if self.chance(30) => {
                "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json".to_owned()
            }
            3 if self.chance(20) => (*pick(
                &mut self.rng,
                &[
                    "text/html",
                    "*/*",
                    "application/*",
                    "application/json;q=0.5",
                    "application/json;as=Bogus;v=v1;g=meta.k8s.io",
                ],
            ))
            .to_owned(),
            _ => String::new(),
        }
    }

    fn create(&mut self) {
        let kind = self.kind();
        let name = self.name(&kind);
        let (mut object, sample) = self.object(&kind, &name);
        let query = self.write_parameters(&kind).text();
        let mut known = true;
        if kind.name.is_none() && self.chance(6) && self.generated.insert(kind.everywhere()) {
            known = false;
            let prefix = if kind.cluster { "${ns}-gen-" } else { "gen-" };
            object["metadata"]["generateName"] = prefix.into();
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("name");
            }
        } else if kind.name.is_none() && self.chance(3) {
            known = false;
            let bad = *pick(
                &mut self.rng,
                &["Bad_Name", "a..b", "", "-x", "ok.dotted", "a/b"],
            );
            // Other scripts see cluster-scoped objects, too.
            let name = if kind.cluster && !bad.is_empty() {
                format!("${{ns}}-{bad}")
            } else {
                bad.to_owned()
            };
            object["metadata"]["name"] = name.into();
        }
        let accept = self.accept();
        let step = self.push(Step {
            method: "POST".into(),
            path: kind.collection(),
            query: query.clone(),
            accept,
            body: Some(object),
            ..Step::default()
        });
        if known && !query.contains("dryRun") {
            self.objects.push(Made {
                kind,
                name,
                step,
                sample,
            });
        }
    }

    fn get(&mut self) {
        let Some(made) = self.target() else { return };
        let mut query = Parameters::default();
        if self.chance(5) {
            query.add("pretty=true");
        }
        if self.chance(10) {
            query.add(*pick(
                &mut self.rng,
                &[
                    "resourceVersion=0",
                    "resourceVersion=1",
                    "resourceVersion=x",
                ],
            ));
        }
        let accept = self.accept();
        self.push(Step {
            method: "GET".into(),
            path: path_of(&made),
            query: query.text(),
            accept,
            ..Step::default()
        });
    }

    fn update(&mut self) {
        let Some(made) = self.target() else { return };
        let (mut object, _) = self.object(&made.kind, &made.name);
        // Most updates change little.
        if self.chance(60) {
            let metadata = object["metadata"].clone();
            object = Value::Object(made.sample.clone());
            object["apiVersion"] = made.kind.api_version.clone().into();
            object["kind"] = made.kind.kind.clone().into();
            object["metadata"] = metadata;
            if self.chance(60) {
                mutate(&mut self.rng, &mut object, &made.sample.clone());
            }
        }
        match self.rng.below(10) {
            0..4 => {
                object["metadata"]["resourceVersion"] =
                    format!("${{{}.metadata.resourceVersion}}", made.step).into()
            }
            4 => object["metadata"]["uid"] = format!("${{{}.metadata.uid}}", made.step).into(),
            5 if self.chance(15) => object["metadata"]["name"] = "other".into(),
            6 if self.chance(15) => object["kind"] = "Wrong".into(),
            _ => {}
        }
        let query = self.write_parameters(&made.kind).text();
        let accept = self.accept();
        self.push(Step {
            method: "PUT".into(),
            path: path_of(&made),
            query,
            accept,
            body: Some(object),
            ..Step::default()
        });
    }

    fn status(&mut self) {
        let Some(made) = self.target() else { return };
        if !made.kind.subresources.iter().any(|s| s == "status") {
            return;
        }
        let path = format!("{}/status", path_of(&made));
        let query = self.write_parameters(&made.kind).text();
        let condition = json!({"type": "Ready", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2024-01-01T00:00:00Z"});
        let status = pick(
            &mut self.rng,
            &[
                json!({"conditions": [condition]}),
                json!({"replicas": 2, "readyReplicas": 1, "observedGeneration": 1}),
                json!({"phase": "Running"}),
                json!({"active": 1, "bogus": true}),
                json!({"replicas": -1}),
                json!({}),
            ],
        )
        .clone();
        if self.chance(15) {
            self.push(Step {
                method: "GET".into(),
                path,
                ..Step::default()
            });
        } else if self.chance(50) {
            let (body, content_type) = (
                Some(json!({"status": status, "metadata": {"labels": {"s": "1"}}})),
                "application/merge-patch+json".to_owned(),
            );
            self.push(Step {
                method: "PATCH".into(),
                path,
                query,
                content_type,
                body,
                ..Step::default()
            });
        } else {
            let mut object = Value::Object(made.sample.clone());
            object["apiVersion"] = made.kind.api_version.clone().into();
            object["kind"] = made.kind.kind.clone().into();
            object["metadata"] = self.metadata(&made.kind, &made.name);
            object["status"] = status;
            self.push(Step {
                method: "PUT".into(),
                path,
                query,
                body: Some(object),
                ..Step::default()
            });
        }
    }

    fn scale(&mut self) {
        let Some(made) = self.target() else { return };
        if !made.kind.subresources.iter().any(|s| s == "scale") && !self.chance(10) {
            return;
        }
        let path = format!("{}/scale", path_of(&made));
        let replicas = pick(&mut self.rng, &[json!(3), json!(0), json!(-1), json!("x")]).clone();
        let query = self.write_parameters(&made.kind).text();
        match self.rng.below(3) {
            0 => drop(self.push(Step {
                method: "GET".into(),
                path,
                ..Step::default()
            })),
            1 => {
                let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": made.name, "namespace": "${ns}"}, "spec": {"replicas": replicas}});
                self.push(Step {
                    method: "PUT".into(),
                    path,
                    query,
                    body: Some(body),
                    ..Step::default()
                });
            }
            _ => {
                let (body, content_type) = (
                    Some(json!({"spec": {"replicas": replicas}})),
                    "application/merge-patch+json".to_owned(),
                );
                self.push(Step {
                    method: "PATCH".into(),
                    path,
                    query,
                    content_type,
                    body,
                    ..Step::default()
                });
            }
        }
    }

    fn delete(&mut self) {
        let Some(made) = self.target() else { return };
        let mut query = Parameters::default();
        if made.kind.dry_run || self.chance(8) {
            query.add("dryRun=All");
        }
        if self.chance(20) {
            query.add(*pick(
                &mut self.rng,
                &[
                    "propagationPolicy=Foreground",
                    "propagationPolicy=Orphan",
                    "propagationPolicy=Background",
                    "propagationPolicy=Bogus",
                    "gracePeriodSeconds=0",
                    "gracePeriodSeconds=3",
                    "gracePeriodSeconds=-1",
                    "orphanDependents=true",
                ],
            ));
        }
        let body = self.chance(30).then(|| self.delete_options(made.step));
        self.push(Step {
            method: "DELETE".into(),
            path: path_of(&made),
            query: query.text(),
            body,
            ..Step::default()
        });
    }

    fn delete_options(&mut self, step: usize) -> Value {
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        match self.rng.below(8) {
            0 => options["preconditions"] = json!({"uid": format!("${{{step}.metadata.uid}}")}),
            1 => options["preconditions"] = json!({"uid": "11111111-2222-4333-8444-555555555555"}),
            2 => {
                options["preconditions"] =
                    json!({"resourceVersion": format!("${{{step}.metadata.resourceVersion}}")})
            }
            3 => {
                options["gracePeriodSeconds"] =
                    pick(&mut self.rng, &[json!(0), json!(7), json!(-5)]).clone()
            }
            4 => {
                options["propagationPolicy"] = (*pick(
                    &mut self.rng,
                    &["Foreground", "Orphan", "Background", "Bogus"],
                ))
                .into()
            }
            5 => {
                options["dryRun"] = pick(&mut self.rng, &[json!(["All"]), json!(["Some"])]).clone()
            }
            6 => {
                options["orphanDependents"] = true.into();
                options["propagationPolicy"] = "Background".into();
            }
            _ => {}
        }
        options
    }

    fn delete_collection(&mut self) {
        let kind = self.kind();
        if kind.dry_run {
            return;
        }
        let mut query = Parameters::default();
        if kind.cluster || self.chance(50) {
            query.add(if self.chance(50) {
                "labelSelector=script%3D${ns}"
            } else {
                "labelSelector=tier%3Dweb,script%3D${ns}"
            });
        }
        if self.chance(10) {
            query.add("dryRun=All");
        }
        let body = self.chance(15).then(|| self.delete_options(0));
        self.push(Step {
            method: "DELETE".into(),
            path: kind.collection(),
            query: query.text(),
            body,
            ..Step::default()
        });
    }

    fn list(&mut self) {
        let kind = self.kind();
        let mut query = Parameters::default();
        let everywhere = !kind.cluster && self.chance(12);
        let path = if everywhere {
            kind.everywhere()
        } else {
            kind.collection()
        };
        if kind.cluster || everywhere {
            query.add("labelSelector=script%3D${ns}");
        } else if self.chance(30) {
            query.add(*pick(
                &mut self.rng,
                &[
                    "labelSelector=tier%3Dweb",
                    "labelSelector=tier+in+(web,db),!missing",
                    "labelSelector=tier!%3Dweb",
                    "labelSelector=tier",
                    "labelSelector=a+b",
                    "labelSelector=tier%3D%3Ddb",
                    "labelSelector=Bad_!%3Dx",
                    "labelSelector=x%3Dbad%20value",
                ],
            ));
        }
        if self.chance(15) {
            query.add(*pick(
                &mut self.rng,
                &[
                    "fieldSelector=metadata.name%3Da",
                    "fieldSelector=metadata.name!%3Da",
                    "fieldSelector=metadata.namespace%3D${ns}",
                    "fieldSelector=spec.bogus%3Dx",
                    "fieldSelector=status.phase%3DRunning",
                    "fieldSelector=nonsense",
                    "fieldSelector=type%3DOpaque",
                    "fieldSelector=spec.color%3Dred",
                ],
            ));
        }
        if self.chance(12) {
            query.add(*pick(
                &mut self.rng,
                &[
                    "resourceVersion=0",
                    "resourceVersion=0&resourceVersionMatch=NotOlderThan",
                    "resourceVersionMatch=Exact",
                    "resourceVersionMatch=NotOlderThan",
                    "resourceVersion=0&resourceVersionMatch=Exact",
                    "resourceVersion=1&resourceVersionMatch=Bogus",
                    "resourceVersion=x",
                ],
            ));
        }
        // The remaining count of a list depends on what others store in the same collection.
        let pages = !kind.cluster && !everywhere && self.chance(15);
        if pages {
            query.add(*pick(
                &mut self.rng,
                &["limit=1", "limit=2", "limit=x", "limit=-1", "limit=500"],
            ));
        }
        let accept = self.accept();
        let query = query.text();
        let step = self.push(Step {
            method: "GET".into(),
            path: path.clone(),
            query: query.clone(),
            accept: accept.clone(),
            ..Step::default()
        });
        if pages && self.chance(70) {
            let query = format!("{query}&continue=${{{step}.metadata.continue}}");
            self.push(Step {
                method: "GET".into(),
                path,
                query,
                accept,
                ..Step::default()
            });
        }
    }

    fn watch(&mut self) {
        if self.watches.len() >= 2 {
            return;
        }
        let kind = self.kind();
        let mut selector = Parameters::default();
        if kind.cluster || self.chance(20) {
            selector.add("labelSelector=script%3D${ns}");
        } else if self.chance(20) {
            selector.add(*pick(
                &mut self.rng,
                &[
                    "labelSelector=tier%3Dweb",
                    "fieldSelector=metadata.name%3Da",
                    "fieldSelector=metadata.name%3Da&labelSelector=tier%3Ddb",
                ],
            ));
        }
        let selector = selector.text();
        let list = self.push(Step {
            method: "GET".into(),
            path: kind.collection(),
            query: selector.clone(),
            ..Step::default()
        });
        let from = match self.rng.below(10) {
            0..6 => format!("resourceVersion=${{{list}.metadata.resourceVersion}}"),
            6 => "resourceVersion=0".to_owned(),
            7 => {
                "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
                    .to_owned()
            }
            8 => (*pick(
                &mut self.rng,
                &[
                    "sendInitialEvents=true",
                    "resourceVersion=x",
                    "resourceVersionMatch=NotOlderThan",
                    "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0",
                ],
            ))
            .to_owned(),
            _ => String::new(),
        };
        let query = [("watch=true&timeoutSeconds=90".to_owned()), from, selector]
            .into_iter()
            .filter(|p| !p.is_empty())
            .collect::<Vec<_>>()
            .join("&");
        let accept = self.accept();
        let step = self.push(Step {
            path: kind.collection(),
            query,
            accept,
            watch: Some(Watch::Start),
            ..Step::default()
        });
        self.watches.push(step);
    }
}

/// The path of an object.
pub fn path_of(made: &Made) -> String {
    format!("{}/{}", made.kind.collection(), made.name)
}

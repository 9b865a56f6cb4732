//! Patches of all four kinds.

use super::super::script::Step;
use super::mutate::{self, Step as Part, Way, mutate, pick, ways};
use super::operations::path_of;
use super::{Generator, Made};
use serde_json::{Map, Value, json};

impl Generator {
    pub(super) fn patch(&mut self) {
        let Some(made) = self.target() else { return };
        let mut parameters = self.write_parameters(&made.kind);
        let how = self.rng.below(10);
        let (content_type, body) = match how {
            0..2 => ("application/json-patch+json", self.json_patch(&made)),
            2..4 => ("application/merge-patch+json", self.partial(&made)),
            4..6 => (
                "application/strategic-merge-patch+json",
                self.strategic(&made),
            ),
            _ => {
                if self.chance(25) {
                    parameters.add("force=true");
                }
                ("application/apply-patch+yaml", self.applied(&made))
            }
        };
        let mut query = parameters.text();
        if how >= 6 && !query.contains("fieldManager=") && !self.chance(4) {
            let manager = *pick(&mut self.rng, &["m1", "m2", "m3"]);
            query = if query.is_empty() {
                format!("fieldManager={manager}")
            } else {
                format!("{query}&fieldManager={manager}")
            };
        } else if how < 6 && self.chance(1) {
            query = format!("{query}&force=true")
                .trim_start_matches('&')
                .to_owned();
        }
        let content_type = if self.chance(1) {
            "application/bogus-patch".to_owned()
        } else {
            content_type.to_owned()
        };
        self.push(Step {
            method: "PATCH".into(),
            path: path_of(&made),
            query,
            content_type,
            body: Some(body),
            ..Step::default()
        });
    }

    /// One place of a changed object, with its enclosing maps.
    fn partial(&mut self, made: &Made) -> Value {
        let (object, way, value) = self.changed_place(made);
        if way.is_empty() {
            return json!({"metadata": {"labels": {"patched": "yes"}, "annotations": {"x": null}}});
        }
        let _ = object;
        let mut out = if self.chance(15) { Value::Null } else { value };
        for part in way.iter().rev() {
            out = match part {
                Part::Key(key) => json!({key.as_str(): out}),
                Part::Index(_) => json!([out]),
            };
        }
        if self.chance(8) {
            out["metadata"] =
                json!({"resourceVersion": format!("${{{}.metadata.resourceVersion}}", made.step)});
        }
        out
    }

    fn changed_place(&mut self, made: &Made) -> (Value, Way, Value) {
        let mut object = Value::Object(made.sample.clone());
        let donor: Map<String, Value> = pick(&mut self.rng, &made.kind.samples).clone();
        for _ in 0..=self.rng.below(2) {
            mutate(&mut self.rng, &mut object, &donor);
        }
        let ways: Vec<Way> = ways(&object);
        if ways.is_empty() || self.chance(10) {
            return (object, Vec::new(), Value::Null);
        }
        let way = pick(&mut self.rng, &ways).clone();
        let value = mutate::at(&mut object, &way)
            .map(|v| v.clone())
            .unwrap_or_default();
        (object, way, value)
    }

    fn strategic(&mut self, made: &Made) -> Value {
        let mut patch = self.partial(made);
        if self.chance(20) {
            let ways: Vec<Way> = ways(&patch);
            let way = if ways.is_empty() {
                Vec::new()
            } else {
                pick(&mut self.rng, &ways).clone()
            };
            match mutate::at(&mut patch, &way) {
                Some(Value::Object(map)) => {
                    let directive = *pick(&mut self.rng, &["replace", "delete", "merge", "bogus"]);
                    map.insert("$patch".into(), directive.into());
                }
                Some(Value::Array(list)) => list.push(json!({"$patch": "replace"})),
                _ => {}
            }
        }
        patch
    }

    fn json_patch(&mut self, made: &Made) -> Value {
        let mut operations = Vec::new();
        for _ in 0..=self.rng.below(2) {
            let (_, way, value) = self.changed_place(made);
            let pointer = if way.is_empty() {
                "/metadata/labels/patched".to_owned()
            } else {
                pointer(&way)
            };
            let value = if way.is_empty() { json!("yes") } else { value };
            operations.push(match self.rng.below(9) {
                0..3 => json!({"op": "replace", "path": pointer, "value": value}),
                3..5 => json!({"op": "add", "path": pointer, "value": value}),
                5..7 => json!({"op": "remove", "path": pointer}),
                7 => json!({"op": "test", "path": pointer, "value": value}),
                _ => pick(
                    &mut self.rng,
                    &[
                        json!({"op": "copy", "from": "/metadata/name", "path": "/metadata/labels/copied"}),
                        json!({"op": "move", "from": "/metadata/labels/tier", "path": "/metadata/labels/moved"}),
                        json!({"op": "bogus", "path": "/spec"}),
                        json!({"op": "replace", "path": "/metadata/name", "value": "renamed"}),
                        json!({"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/more"}),
                        json!({"op": "remove", "path": "/metadata/finalizers"}),
                        json!({"path": "/spec"}),
                    ],
                )
                .clone(),
            });
        }
        Value::Array(operations)
    }

    fn applied(&mut self, made: &Made) -> Value {
        let (mut object, _) = self.object(&made.kind, &made.name);
        if self.chance(50) {
            // Only a part of the object, as another manager would apply.
            let part = self.partial(made);
            let metadata = object["metadata"].clone();
            object = if part.is_object() { part } else { json!({}) };
            object["apiVersion"] = made.kind.api_version.clone().into();
            object["kind"] = made.kind.kind.clone().into();
            object["metadata"] = metadata;
        }
        match self.rng.below(40) {
            0 => drop(object.as_object_mut().map(|o| o.remove("apiVersion"))),
            1 => drop(object.as_object_mut().map(|o| o.remove("kind"))),
            2 => object["metadata"]["name"] = "other".into(),
            3 => object["metadata"]["managedFields"] = json!([]),
            4 => {
                object["metadata"]["resourceVersion"] =
                    format!("${{{}.metadata.resourceVersion}}", made.step).into()
            }
            _ => {}
        }
        object
    }
}

fn pointer(way: &Way) -> String {
    let word = |part: &Part| match part {
        Part::Key(key) => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
        Part::Index(index) => format!("/{index}"),
    };
    way.iter().map(word).collect()
}

//! The lists that a strategic merge patch merges, and their keys.
//!
//! Main types: [`Schema`] and [`Place`], a cheap handle on one type. kustomize uses the schema of
//! Kubernetes 1.21, whatever the cluster's version; `data/merge_keys.txt` contains the part of it
//! that leads to merged lists. A type starts with `=name`, followed by a tab and group/version/kind
//! for each kind of that type; the lines below are its fields: `[` is a list of, `{` a map of,
//! `@name` a type. A second tab and the keys mark a merged list; without keys, it is merged by its
//! elements' values. `~` and `^` abbreviate names. A user's own document replaces the whole schema.

use super::fault::{Res, fail};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

const TEXT: &str = include_str!("data/merge_keys.txt");
/// Maximum number of chained type references; more must be a cycle.
const MOST_REFERENCES: usize = 64;

#[derive(Clone, Debug, Default)]
pub(super) struct Schema {
    types: Vec<Type>,
    by_name: HashMap<String, usize>,
    by_kind: HashMap<(String, String), usize>,
}

#[derive(Clone, Debug, Default)]
struct Type {
    refers_to: Option<String>,
    fields: BTreeMap<String, usize>,
    /// The type of fields without a fixed name.
    rest: Option<usize>,
    items: Option<usize>,
    merge: Option<Vec<String>>,
}

/// A type in a schema.
#[derive(Clone, Debug)]
pub(super) struct Place {
    schema: Arc<Schema>,
    at: usize,
}

/// The initial schema of every build.
pub(super) fn builtin() -> Arc<Schema> {
    static SCHEMA: OnceLock<Arc<Schema>> = OnceLock::new();
    SCHEMA.get_or_init(|| Arc::new(parse(TEXT))).clone()
}

fn parse(text: &str) -> Schema {
    let mut schema = Schema::default();
    let mut open = 0;
    for line in text.lines() {
        let mut columns = line.split('\t');
        let first = columns.next().unwrap_or_default();
        if let Some(name) = first.strip_prefix('=') {
            open = schema.add(Type::default());
            schema.by_name.insert(spelled_out(name), open);
            for kind in columns {
                let Some((group_version, kind)) = kind.rsplit_once('/') else {
                    continue;
                };
                let group_version = group_version.strip_prefix('/').unwrap_or(group_version);
                let kind = (group_version.to_owned(), kind.to_owned());
                schema.by_kind.insert(kind, open);
            }
            continue;
        }
        let of = columns.next().unwrap_or_default();
        let merge = columns.next().map(|keys| {
            let keys = keys.split(',').filter(|key| !key.is_empty());
            keys.map(str::to_owned).collect()
        });
        let field = schema.parse_type(of, merge);
        schema.types[open].fields.insert(first.to_owned(), field);
    }
    schema
}

impl Schema {
    fn add(&mut self, new: Type) -> usize {
        self.types.push(new);
        self.types.len() - 1
    }

    fn parse_type(&mut self, text: &str, merge: Option<Vec<String>>) -> usize {
        let mut new = Type {
            merge,
            ..Type::default()
        };
        if let Some(name) = text.strip_prefix('@') {
            new.refers_to = Some(spelled_out(name));
        } else if let Some(inner) = text.strip_prefix('[') {
            new.items = Some(self.parse_type(inner, None));
        } else if let Some(inner) = text.strip_prefix('{') {
            new.rest = Some(self.parse_type(inner, None));
        }
        self.add(new)
    }

    /// Reads the `definitions` of an OpenAPI v2 document, adding to the known types.
    pub fn from_openapi(document: &Value, known: Self) -> Res<Self> {
        let mut schema = known;
        let Some(definitions) = document.get("definitions").and_then(Value::as_object) else {
            return Ok(schema);
        };
        for (name, definition) in definitions {
            let at = schema.add_definition(definition, 0)?;
            schema.by_name.insert(name.clone(), at);
            let kinds = definition.get("x-kubernetes-group-version-kind");
            for kind in kinds.and_then(Value::as_array).into_iter().flatten() {
                let part = |name| kind.get(name).and_then(Value::as_str).unwrap_or_default();
                let api_version = match part("group") {
                    "" => part("version").to_owned(),
                    group => format!("{group}/{}", part("version")),
                };
                let kind = (api_version, part("kind").to_owned());
                schema.by_kind.insert(kind, at);
            }
        }
        Ok(schema)
    }

    fn add_definition(&mut self, definition: &Value, depth: usize) -> Res<usize> {
        if depth > 100 {
            return fail!("invalid schema file: it is nested too deeply");
        }
        let mut new = Type::default();
        let reference = definition.get("$ref").and_then(Value::as_str);
        new.refers_to = reference.map(|name| {
            let name = name.rsplit('/').next().unwrap_or_default();
            name.to_owned()
        });
        let fields = definition.get("properties").and_then(Value::as_object);
        for (name, field) in fields.into_iter().flatten() {
            let field = self.add_definition(field, depth + 1)?;
            new.fields.insert(name.clone(), field);
        }
        if let Some(rest) = definition.get("additionalProperties")
            && rest.is_object()
        {
            new.rest = Some(self.add_definition(rest, depth + 1)?);
        }
        if let Some(items) = definition.get("items")
            && definition.get("type").and_then(Value::as_str) == Some("array")
        {
            new.items = Some(self.add_definition(items, depth + 1)?);
        }
        new.merge = merge_of(definition);
        Ok(self.add(new))
    }

    /// The type of a kind.
    pub fn of_kind(self: &Arc<Self>, api_version: &str, kind: &str) -> Option<Place> {
        let kind = (api_version.to_owned(), kind.to_owned());
        let at = *self.by_kind.get(&kind)?;
        Some(Place {
            schema: self.clone(),
            at,
        })
    }
}

/// The full name of a built-in type.
fn spelled_out(name: &str) -> String {
    if let Some(rest) = name.strip_prefix('~') {
        return format!("io.k8s.api.{rest}");
    }
    match name.strip_prefix('^') {
        Some(rest) => format!("io.k8s.apimachinery.pkg.apis.meta.v1.{rest}"),
        None => name.to_owned(),
    }
}

fn merge_of(definition: &Value) -> Option<Vec<String>> {
    let text = |name| definition.get(name).and_then(Value::as_str);
    let strategy = text("x-kubernetes-patch-strategy")?;
    strategy.split(',').find(|word| *word == "merge")?;
    let keys = definition.get("x-kubernetes-list-map-keys");
    if let Some(keys) = keys.and_then(Value::as_array) {
        let keys = keys.iter().filter_map(Value::as_str);
        return Some(keys.map(str::to_owned).collect());
    }
    let key = text("x-kubernetes-patch-merge-key");
    Some(key.map(str::to_owned).into_iter().collect())
}

impl Place {
    fn own(&self) -> &Type {
        &self.schema.types[self.at]
    }

    fn to(&self, mut at: usize) -> Option<Self> {
        for _ in 0..MOST_REFERENCES {
            let Some(name) = &self.schema.types[at].refers_to else {
                return Some(Self {
                    schema: self.schema.clone(),
                    at,
                });
            };
            at = *self.schema.by_name.get(name)?;
        }
        None
    }

    pub fn field(&self, name: &str) -> Option<Self> {
        let own = self.own();
        let field = own.fields.get(name).copied().or(own.rest)?;
        self.to(field)
    }

    pub fn items(&self) -> Option<Self> {
        self.to(self.own().items?)
    }

    /// The merge keys of a list, if it is merged.
    pub fn merge_keys(&self) -> Option<&[String]> {
        self.own().merge.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::builtin;

    #[test]
    fn lists_are_merged_by_the_keys_of_1_21() {
        let pods = builtin().of_kind("apps/v1", "Deployment");
        let pod = ["spec", "template", "spec"]
            .iter()
            .try_fold(pods.expect("right"), |place, name| place.field(name))
            .expect("right");
        let containers = pod.field("containers").expect("right");
        assert_eq!(containers.merge_keys().expect("right"), ["name"]);
        let ports = containers
            .items()
            .expect("right")
            .field("ports")
            .expect("right");
        assert_eq!(
            ports.merge_keys().expect("right"),
            ["containerPort", "protocol"]
        );
        assert!(builtin().of_kind("v1", "Pod").is_some());
        assert!(
            builtin()
                .of_kind("autoscaling/v2", "HorizontalPodAutoscaler")
                .is_none()
        );
    }
}

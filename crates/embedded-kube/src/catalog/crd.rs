//! Custom resources: the entries that a CustomResourceDefinition adds to the catalog.
//!
//! Main type: [`Custom`]. Definitions are validated when they are written; parts that are invalid
//! nevertheless are skipped.

use super::{Resource, Subresource};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::schema::{self, Schema};
use tiphys_kube_schema::cel::rules::Compiled;
use tiphys_kube_schema::structural::Node;

/// One version of a custom resource.
#[derive(Debug)]
pub struct Custom {
    /// For merging: the types of lists and maps. None if the schema cannot be parsed.
    pub schema: Option<Schema>,
    /// For validation, pruning and defaults.
    pub node: Option<Node>,
    /// None when there are no rules.
    pub rules: Option<Compiled>,
    /// `openAPIV3Schema` as written.
    pub raw: Value,
    /// Its SHA-256, once it has been requested.
    pub digest: OnceLock<[u8; 32]>,
    pub columns: Vec<Column>,
    pub scale: Option<ScalePaths>,
    /// JSON paths that field selectors may use.
    pub selectable_fields: Vec<String>,
    /// Set for deprecated versions: the warning.
    pub deprecation: Option<String>,
    /// The conversion webhook; without one, conversion only changes `apiVersion`.
    pub conversion: Option<Arc<Conversion>>,
    /// Objects may have been written with an earlier definition.
    pub changed: bool,
    /// The definition and its objects are being deleted.
    pub terminating: bool,
}

/// A webhook for conversions.
#[derive(Debug)]
pub struct Conversion {
    /// `clientConfig` as written.
    pub config: Value,
    /// Of `ConversionReview`.
    pub versions: Vec<String>,
}

/// An additional printer column.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    pub json_path: String,
}

/// The paths of the scale subresource, as JSON paths such as `.spec.replicas`.
#[derive(Clone, Debug)]
pub struct ScalePaths {
    pub spec: String,
    pub status: String,
    pub selector: Option<String>,
}

impl Custom {
    /// A hash of the schema. It is cached, because serializing a large schema for every comparison
    /// is expensive.
    pub fn digest(&self) -> &[u8; 32] {
        self.digest
            .get_or_init(|| Sha256::digest(self.raw.to_string()).into())
    }
}

fn words(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array);
    list.map(|l| {
        l.iter()
            .filter_map(|w| w.as_str().map(str::to_owned))
            .collect()
    })
    .unwrap_or_default()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or("").to_owned()
}

/// The condition of a definition whose objects are being deleted with it.
pub const TERMINATING: &str = "Terminating";

/// A condition of a definition's status.
pub fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"]
        .as_array()?
        .iter()
        .find(|c| c["type"] == kind)
}

/// Whether names are accepted and the definition is served.
pub fn is_established(object: &Object) -> bool {
    is_true(object, "Established")
}

/// Whether the definition and its objects are being deleted.
pub fn is_terminating(object: &Object) -> bool {
    is_true(object, TERMINATING)
}

fn is_true(object: &Object, kind: &str) -> bool {
    let status = object.0.get("status").unwrap_or(&Value::Null);
    condition(status, kind).is_some_and(|c| c["status"] == "True")
}

/// The resources of a definition, one for each served version, the best version first.
pub fn resources(definition: &Object) -> Vec<Resource> {
    let spec = definition.0.get("spec").unwrap_or(&Value::Null);
    let accepted = definition
        .pointer("/status/acceptedNames")
        .filter(|n| n["plural"].as_str().is_some_and(|p| !p.is_empty()));
    let names = accepted.unwrap_or(&spec["names"]);
    // A definition whose names were not accepted is not served; definitions in older stores have
    // conditions, too.
    if !is_established(definition) {
        return Vec::new();
    }
    let versions = spec["versions"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let storage = versions
        .iter()
        .find(|v| v["storage"] == true)
        .map(|v| text(v, "name"))
        .unwrap_or_default();
    let mut served: Vec<&Value> = versions.iter().filter(|v| v["served"] == true).collect();
    served.sort_by_key(|v| std::cmp::Reverse(version_priority(v["name"].as_str().unwrap_or(""))));
    let conversion = (spec["conversion"]["strategy"] == "Webhook").then(|| {
        let webhook = &spec["conversion"]["webhook"];
        Arc::new(Conversion {
            config: webhook["clientConfig"].clone(),
            versions: words(webhook.get("conversionReviewVersions")),
        })
    });
    let terminating = is_terminating(definition);
    let kind = text(names, "kind");
    let read = |version: &Value| {
        let made = custom(
            version,
            deprecation(spec, &kind, version),
            conversion.clone(),
        );
        Arc::new(Custom {
            changed: definition.generation() > 1,
            terminating,
            ..made
        })
    };
    let customs: Arc<BTreeMap<String, Arc<Custom>>> = Arc::new(
        versions
            .iter()
            .map(|v| (text(v, "name"), read(v)))
            .collect(),
    );
    let one = |version: &Value| {
        let custom = customs.get(version["name"].as_str().unwrap_or("")).cloned();
        Resource {
            custom,
            customs: customs.clone(),
            ..resource(spec, names, version, &storage)
        }
    };
    let unserved: Arc<[Resource]> = versions
        .iter()
        .filter(|v| v["served"] != true)
        .map(one)
        .collect();
    served
        .into_iter()
        .map(|version| Resource {
            unserved: unserved.clone(),
            ..one(version)
        })
        .collect()
}

fn resource(spec: &Value, names: &Value, version: &Value, storage: &str) -> Resource {
    let kind = text(names, "kind");
    let or = |value: String, default: String| if value.is_empty() { default } else { value };
    let group = text(spec, "group");
    let name = text(version, "name");
    let plural = text(names, "plural");
    let verbs = [
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "create",
        "update",
        "watch",
    ];
    Resource {
        table: format!("{group}/{plural}"),
        subresources: subresources(version, &group, &name, &kind),
        singular: or(text(names, "singular"), kind.to_lowercase()),
        list_kind: or(text(names, "listKind"), format!("{kind}List")),
        namespaced: spec["scope"] == "Namespaced",
        verbs: verbs.into_iter().map(str::to_owned).collect(),
        short_names: words(names.get("shortNames")),
        categories: words(names.get("categories")),
        storage_group: group.clone(),
        storage_version: storage.to_owned(),
        custom: None,
        customs: Arc::default(),
        unserved: Arc::default(),
        generation: true,
        version: name,
        resource: plural,
        group,
        kind,
    }
}

fn subresources(version: &Value, group: &str, name: &str, kind: &str) -> Vec<Subresource> {
    let sub = |word: &str, group: &str, version: &str, kind: &str| Subresource {
        name: word.to_owned(),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        verbs: ["get", "patch", "update"].map(str::to_owned).to_vec(),
    };
    let mut list = Vec::new();
    if version.pointer("/subresources/status").is_some() {
        list.push(sub("status", group, name, kind));
    }
    if version.pointer("/subresources/scale").is_some() {
        list.push(sub("scale", "autoscaling", "v1", "Scale"));
    }
    list
}

/// The warning of a deprecated version: its own, or one that names the best version to use instead.
fn deprecation(spec: &Value, kind: &str, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(own) = version["deprecationWarning"].as_str() {
        return Some(own.to_owned());
    }
    let (group, name) = (text(spec, "group"), text(version, "name"));
    let versions = spec["versions"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let current = versions
        .iter()
        .filter(|v| v["served"] == true && v["deprecated"] != true)
        .map(|v| text(v, "name"));
    let better = current
        .filter(|v| version_priority(v) > version_priority(&name))
        .max_by_key(|v| version_priority(v));
    let instead = better
        .map(|v| format!("; use {group}/{v} {kind}"))
        .unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{instead}"))
}

fn custom(
    version: &Value,
    deprecation: Option<String>,
    conversion: Option<Arc<Conversion>>,
) -> Custom {
    let raw = version
        .pointer("/schema/openAPIV3Schema")
        .cloned()
        .unwrap_or(Value::Null);
    let schema = schema::crd::from_structural(&raw)
        .inspect_err(|error| tracing::warn!(%error, "the schema of a CustomResourceDefinition cannot be used"))
        .ok();
    let scale = version.pointer("/subresources/scale").map(|s| ScalePaths {
        spec: text(s, "specReplicasPath"),
        status: text(s, "statusReplicasPath"),
        selector: s["labelSelectorPath"].as_str().map(str::to_owned),
    });
    let column = |c: &Value| Column {
        name: text(c, "name"),
        kind: text(c, "type"),
        format: text(c, "format"),
        description: text(c, "description"),
        priority: c["priority"].as_i64().unwrap_or(0),
        json_path: text(c, "jsonPath"),
    };
    let columns = version["additionalPrinterColumns"]
        .as_array()
        .map(|list| list.iter().map(column).collect());
    let selectable = version["selectableFields"]
        .as_array()
        .map(|list| list.iter().map(|f| text(f, "jsonPath")).collect());
    let node = raw.is_object().then(|| Node::read(&raw));
    let rules = node
        .as_ref()
        .filter(|n| n.has_rules)
        .map(|n| Compiled::new(n, true));
    Custom {
        schema,
        node,
        rules,
        deprecation,
        conversion,
        changed: false,
        terminating: false,
        raw,
        digest: OnceLock::new(),
        columns: columns.unwrap_or_default(),
        scale,
        selectable_fields: selectable.unwrap_or_default(),
    }
}

/// Kubernetes' order of versions: stable before beta before alpha, newer before older, anything
/// else last.
pub fn version_priority(version: &str) -> (u8, u32, u32, std::cmp::Reverse<String>) {
    let unknown = (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else {
        return unknown;
    };
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let Ok(major) = rest[..digits].parse::<u32>() else {
        return unknown;
    };
    let (stage, minor) = match &rest[digits..] {
        "" => (3, 0),
        tail => match (tail.strip_prefix("beta"), tail.strip_prefix("alpha")) {
            (Some(n), _) => (2, n.parse().unwrap_or(0)),
            (_, Some(n)) => (1, n.parse().unwrap_or(0)),
            _ => return unknown,
        },
    };
    (stage, major, minor, std::cmp::Reverse(String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_stability_then_age() {
        let mut versions = vec!["v1beta1", "foo", "v2", "v1alpha2", "v10", "v1", "v1beta2"];
        versions.sort_by_key(|v| std::cmp::Reverse(version_priority(v)));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha2", "foo"]
        );
    }
}

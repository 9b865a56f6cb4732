//! Chart.yaml: its fields and their validation.
//!
//! Main type: [`Metadata`].

use super::decode::Decoder;
use crate::helm::Limits;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tiphys_gocompat::semver::Version;
use tiphys_gocompat::text::{is_print, is_space, quote};
use tiphys_gocompat::yaml::{self, Duplicates};

/// Chart.yaml, with the dependencies from requirements.yaml.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    pub name: String,
    pub home: String,
    pub sources: Vec<String>,
    pub version: String,
    pub description: String,
    pub keywords: Vec<String>,
    pub maintainers: Vec<Maintainer>,
    pub icon: String,
    pub api_version: String,
    pub condition: String,
    pub tags: String,
    pub app_version: String,
    pub deprecated: bool,
    pub annotations: BTreeMap<String, String>,
    /// Constraint on the Kubernetes version.
    pub kube_version: String,
    /// None if the field is missing, which is not the same as an empty list: only with a list does
    /// Helm evaluate the subcharts' conditions.
    pub dependencies: Option<Vec<Dependency>>,
    /// `type`: application, library or empty.
    pub kind: String,
    /// Whether a list contains a `null`.
    null_maintainer: bool,
    null_dependency: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintainer {
    pub name: String,
    pub email: String,
    pub url: String,
}

/// A dependency on another chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependency {
    pub name: String,
    /// Version or version constraint.
    pub version: String,
    pub repository: String,
    /// Paths of values, separated by commas. The first one that is a boolean decides.
    pub condition: String,
    pub tags: Vec<String>,
    pub enabled: bool,
    pub import_values: Vec<Value>,
    pub alias: String,
}

/// The field names of Chart.yaml, of maintainers and of dependencies, in lower case.
const FIELDS: [&str; 17] = [
    "name",
    "home",
    "sources",
    "version",
    "description",
    "keywords",
    "maintainers",
    "icon",
    "apiversion",
    "condition",
    "tags",
    "appversion",
    "deprecated",
    "annotations",
    "kubeversion",
    "dependencies",
    "type",
];
const MAINTAINER_FIELDS: [&str; 3] = ["name", "email", "url"];
const DEPENDENCY_FIELDS: [&str; 8] = [
    "name",
    "version",
    "repository",
    "condition",
    "tags",
    "enabled",
    "import-values",
    "alias",
];

impl Metadata {
    /// Parses Chart.yaml without validating it; also returns the document.
    pub(in crate::helm) fn parse(text: &[u8], limits: &Limits) -> Result<(Self, Value), String> {
        let document = document(text, limits)?;
        let mut metadata = Self::default();
        metadata.decode(&document)?;
        Ok((metadata, document))
    }

    /// Refuses duplicate and unknown keys.
    pub(in crate::helm) fn check_strictly(text: &[u8], limits: &Limits) -> Result<(), String> {
        let parsed = yaml::parse_document(text, &limits.yaml, Duplicates::Refuse);
        let document = parsed.map_err(|e| e.json_text())?;
        let unknown = unknown_field(&document);
        unknown.map_or(Ok(()), |key| {
            Err(format!(
                "error unmarshaling JSON: while decoding JSON: json: unknown field {}",
                quote(key)
            ))
        })
    }

    pub(in crate::helm) fn has_null_maintainer(&self) -> bool {
        self.null_maintainer
    }

    /// Overwrites the fields that the document sets.
    pub(super) fn decode(&mut self, document: &Value) -> Result<(), String> {
        Decoder::run("v2.Metadata", document, |d, key, value| match key {
            "name" => d.text("name", value, &mut self.name),
            "home" => d.text("home", value, &mut self.home),
            "sources" => d.texts("sources", value, &mut self.sources),
            "version" => d.text("version", value, &mut self.version),
            "description" => d.text("description", value, &mut self.description),
            "keywords" => d.texts("keywords", value, &mut self.keywords),
            "maintainers" => self.decode_maintainers(d, value),
            "icon" => d.text("icon", value, &mut self.icon),
            "apiversion" => d.text("apiVersion", value, &mut self.api_version),
            "condition" => d.text("condition", value, &mut self.condition),
            "tags" => d.text("tags", value, &mut self.tags),
            "appversion" => d.text("appVersion", value, &mut self.app_version),
            "deprecated" => d.flag("deprecated", value, &mut self.deprecated),
            "annotations" => d.pairs("annotations", value, |k, v| {
                self.annotations.insert(k, v);
            }),
            "kubeversion" => d.text("kubeVersion", value, &mut self.kube_version),
            "dependencies" => {
                let (list, null) = decode_dependencies(d, value);
                self.dependencies = (!value.is_null()).then_some(list);
                self.null_dependency = null;
            }
            "type" => d.text("type", value, &mut self.kind),
            _ => {}
        })
    }

    fn decode_maintainers(&mut self, d: &mut Decoder, value: &Value) {
        self.maintainers.clear();
        self.null_maintainer = false;
        for item in d.list("maintainers", value, "[]*v2.Maintainer") {
            let mut maintainer = Maintainer::default();
            let there = d.inner(
                "maintainers",
                "v2.Maintainer",
                item,
                |d, key, value| match key {
                    "name" => d.text("name", value, &mut maintainer.name),
                    "email" => d.text("email", value, &mut maintainer.email),
                    "url" => d.text("url", value, &mut maintainer.url),
                    _ => {}
                },
            );
            self.null_maintainer |= !there;
            self.maintainers.push(maintainer);
        }
    }

    /// Sanitizes the texts and validates the fields.
    pub(super) fn validate(&mut self) -> Result<(), String> {
        let texts = [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
        ];
        texts
            .into_iter()
            .chain([&mut self.app_version, &mut self.kube_version])
            .for_each(sanitize);
        self.sources
            .iter_mut()
            .chain(&mut self.keywords)
            .for_each(sanitize);
        if let Some(message) = self.fault() {
            return Err(format!("validation: {message}"));
        }
        for maintainer in &mut self.maintainers {
            [
                &mut maintainer.name,
                &mut maintainer.email,
                &mut maintainer.url,
            ]
            .into_iter()
            .for_each(sanitize);
        }
        let mut names = std::collections::BTreeSet::new();
        for dependency in self.dependencies.iter_mut().flatten() {
            dependency
                .validate()
                .map_err(|message| format!("validation: {message}"))?;
            let key = if dependency.alias.is_empty() {
                &dependency.name
            } else {
                &dependency.alias
            };
            if !names.insert(key) {
                return Err(format!(
                    "validation: more than one dependency with name or alias {}",
                    quote(key)
                ));
            }
        }
        Ok(())
    }

    fn fault(&self) -> Option<String> {
        let base = self
            .name
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default();
        match () {
            () if self.api_version.is_empty() => {
                Some("chart.metadata.apiVersion is required".into())
            }
            () if self.name.is_empty() => Some("chart.metadata.name is required".into()),
            () if self.name == "." || self.name == ".." => Some(format!(
                "chart.metadata.name {} is not allowed",
                quote(&self.name)
            )),
            () if base != self.name => Some(format!(
                "chart.metadata.name {} is invalid",
                quote(&self.name)
            )),
            () if self.version.is_empty() => Some("chart.metadata.version is required".into()),
            () if Version::parse(&self.version).is_err() => Some(format!(
                "chart.metadata.version {} is invalid",
                quote(&self.version)
            )),
            () if !matches!(self.kind.as_str(), "" | "application" | "library") => {
                Some("chart.metadata.type must be application or library".into())
            }
            () if self.null_maintainer => {
                Some("maintainers must not contain empty or null nodes".into())
            }
            () if self.null_dependency => {
                Some("dependencies must not contain empty or null nodes".into())
            }
            () => None,
        }
    }

    /// `.Chart` as templates see it: keyed by the names of Go's fields.
    pub fn to_value(&self) -> Value {
        let texts = self.texts().map(|(name, text)| (name, Value::from(text)));
        let others = [
            ("Deprecated", json!(self.deprecated)),
            ("Annotations", json!(self.annotations)),
        ];
        let fields = texts.into_iter().chain(self.lists()).chain(others);
        Value::Object(
            fields
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    /// The fields that are texts, by the names of Go's fields.
    pub fn texts(&self) -> [(&'static str, &str); 11] {
        [
            ("Name", self.name.as_str()),
            ("Home", self.home.as_str()),
            ("Version", self.version.as_str()),
            ("Description", self.description.as_str()),
            ("Icon", self.icon.as_str()),
            ("APIVersion", self.api_version.as_str()),
            ("Condition", self.condition.as_str()),
            ("Tags", self.tags.as_str()),
            ("AppVersion", self.app_version.as_str()),
            ("KubeVersion", self.kube_version.as_str()),
            ("Type", self.kind.as_str()),
        ]
    }

    /// The fields that are lists, by the names of Go's fields.
    pub fn lists(&self) -> [(&'static str, Value); 4] {
        let maintainers: Vec<Value> = self
            .maintainers
            .iter()
            .map(|m| json!({"Name": m.name, "Email": m.email, "URL": m.url}))
            .collect();
        let dependencies: Vec<Value> = self
            .dependencies
            .iter()
            .flatten()
            .map(Dependency::to_value)
            .collect();
        [
            ("Sources", json!(self.sources)),
            ("Keywords", json!(self.keywords)),
            ("Maintainers", maintainers.into()),
            ("Dependencies", dependencies.into()),
        ]
    }
}

fn document(text: &[u8], limits: &Limits) -> Result<Value, String> {
    yaml::parse_document(text, &limits.yaml, Duplicates::LastWins).map_err(|e| e.json_text())
}

/// The first key, in order, that is no known field.
fn unknown_field(document: &Value) -> Option<&str> {
    let known = |fields: &[&str], key: &str| fields.contains(&key.to_ascii_lowercase().as_str());
    document.as_object()?.iter().find_map(|(key, value)| {
        let fields: &[&str] = match key.to_ascii_lowercase().as_str() {
            "maintainers" => &MAINTAINER_FIELDS,
            "dependencies" => &DEPENDENCY_FIELDS,
            _ => return (!known(&FIELDS, key)).then_some(key.as_str()),
        };
        let items = value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_object);
        items
            .flat_map(|item| item.keys())
            .find(|key| !known(fields, key))
            .map(String::as_str)
    })
}

/// The dependencies, and whether one of them is `null`.
fn decode_dependencies(d: &mut Decoder, value: &Value) -> (Vec<Dependency>, bool) {
    let mut null = false;
    let items = d.list("dependencies", value, "[]*v2.Dependency").iter();
    let list = items.map(|item| {
        let mut out = Dependency::default();
        null |= !d.inner(
            "dependencies",
            "v2.Dependency",
            item,
            |d, key, value| match key {
                "name" => d.text("name", value, &mut out.name),
                "version" => d.text("version", value, &mut out.version),
                "repository" => d.text("repository", value, &mut out.repository),
                "condition" => d.text("condition", value, &mut out.condition),
                "tags" => d.texts("tags", value, &mut out.tags),
                "enabled" => d.flag("enabled", value, &mut out.enabled),
                "import-values" => {
                    out.import_values = d.list("import-values", value, "[]interface {}").to_vec()
                }
                "alias" => d.text("alias", value, &mut out.alias),
                _ => {}
            },
        );
        out
    });
    (list.collect(), null)
}

/// The versions that a lock file pins.
/// Chart.lock: the versions that were chosen for the dependencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lock {
    pub dependencies: Vec<Dependency>,
    /// Of the dependencies in Chart.yaml and of these.
    pub digest: String,
}

pub(super) fn decode_lock(document: &Value) -> Result<Lock, String> {
    let mut lock = Lock::default();
    Decoder::run("v2.Lock", document, |d, key, value| match key {
        "digest" => d.text("digest", value, &mut lock.digest),
        "dependencies" => lock.dependencies = decode_dependencies(d, value).0,
        _ => {}
    })?;
    Ok(lock)
}

impl Dependency {
    fn validate(&mut self) -> Result<(), String> {
        [
            &mut self.name,
            &mut self.version,
            &mut self.repository,
            &mut self.condition,
        ]
        .into_iter()
        .for_each(sanitize);
        self.tags.iter_mut().for_each(sanitize);
        if self
            .alias
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        {
            return Ok(());
        }
        Err(format!(
            "dependency {} has disallowed characters in the alias",
            quote(&self.name)
        ))
    }

    fn to_value(&self) -> Value {
        json!({
            "Name": self.name, "Version": self.version, "Repository": self.repository, "Condition": self.condition, "Tags": self.tags,
            "Enabled": self.enabled, "ImportValues": self.import_values, "Alias": self.alias,
        })
    }
}

/// Replaces every kind of space by a plain one and removes unprintable characters.
fn sanitize(text: &mut String) {
    if text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return;
    }
    let clean = text
        .chars()
        .filter(|c| is_space(*c) || is_print(*c))
        .map(|c| if is_space(c) { ' ' } else { c });
    *text = clean.collect();
}

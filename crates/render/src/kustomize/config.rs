//! The fields of objects to which each kind of change applies.
//!
//! Main type: [`Config`]: the built-in tables (`data/field_specs.txt`), the files in a
//! kustomization's `configurations`, and the definitions in its `crds`.

use super::clock::Clock;
use super::fault::{Fault, Res, fail};
use super::ids::Gvk;
use super::names::{Unknown, normal};
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use tiphys_gocompat::yaml::{Duplicates, Limits, parse_document};

const TABLE: &str = include_str!("data/field_specs.txt");

/// A path in objects of a kind; empty parts of the kind match anything.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct FieldSpec {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub path: String,
    pub create: bool,
}

impl FieldSpec {
    pub fn created(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            create: true,
            ..Self::default()
        }
    }

    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }
}

/// Fields that contain the name of an object of a kind.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct BackReference {
    pub group: String,
    pub version: String,
    pub kind: String,
    #[serde(rename = "fieldSpecs")]
    pub referrers: Vec<FieldSpec>,
}

impl BackReference {
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Config {
    pub name_prefix: Vec<FieldSpec>,
    pub name_suffix: Vec<FieldSpec>,
    pub namespace: Vec<FieldSpec>,
    pub common_labels: Vec<FieldSpec>,
    pub labels: Vec<FieldSpec>,
    pub template_labels: Vec<FieldSpec>,
    pub common_annotations: Vec<FieldSpec>,
    pub name_reference: Vec<BackReference>,
    pub var_reference: Vec<FieldSpec>,
    pub images: Vec<FieldSpec>,
    pub replicas: Vec<FieldSpec>,
}

impl Config {
    /// The built-in tables.
    pub fn builtin() -> Arc<Self> {
        static CONFIG: OnceLock<Arc<Config>> = OnceLock::new();
        CONFIG.get_or_init(|| Arc::new(parse_table(TABLE))).clone()
    }

    pub fn from_yaml(text: &[u8], limits: &Limits) -> Res<Self> {
        let value = parse_document(text, limits, Duplicates::Refuse)
            .map_err(|error| Fault::new(error.json_text()))?;
        if value.is_null() {
            return Ok(Self::default());
        }
        let value = normal(value, "Config", Unknown::Refused).map_err(|name| {
            let text = format!("json: unknown field {name:?}");
            Fault::new(format!(
                "error unmarshaling JSON: while decoding JSON: {text}"
            ))
        })?;
        let config: Result<Self, _> = serde_json::from_value(value);
        let mut config = config.map_err(|error| {
            let text = format!("error unmarshaling JSON: while decoding JSON: json: {error}");
            Fault::new(text)
        })?;
        config.sort();
        Ok(config)
    }

    /// Merges both. Most kustomizations have only the built-in tables.
    pub fn together(own: Arc<Self>, other: &Arc<Self>, clock: &Clock) -> Res<Arc<Self>> {
        if Arc::ptr_eq(&own, other) || **other == Self::default() {
            return Ok(own);
        }
        // A test makes sure that merging them into nothing changes nothing.
        if *own == Self::default() && Arc::ptr_eq(other, &Self::builtin()) {
            return Ok(other.clone());
        }
        Ok(Arc::new(Self::clone(&own).merge(other, clock)?))
    }

    pub fn merge(mut self, other: &Self, clock: &Clock) -> Res<Self> {
        let named = |name: &str| format!("failed to merge {name} fieldSpec");
        for (name, own, new) in [
            ("NamePrefix", &mut self.name_prefix, &other.name_prefix),
            ("NameSuffix", &mut self.name_suffix, &other.name_suffix),
            ("NameSpace", &mut self.namespace, &other.namespace),
            (
                "CommonAnnotations",
                &mut self.common_annotations,
                &other.common_annotations,
            ),
            (
                "CommonLabels",
                &mut self.common_labels,
                &other.common_labels,
            ),
            ("Labels", &mut self.labels, &other.labels),
            (
                "TemplateLabels",
                &mut self.template_labels,
                &other.template_labels,
            ),
            (
                "VarReference",
                &mut self.var_reference,
                &other.var_reference,
            ),
            ("Images", &mut self.images, &other.images),
            ("Replicas", &mut self.replicas, &other.replicas),
        ] {
            merge_specs(own, new, clock).map_err(|fault| fault.within(named(name)))?;
        }
        for new in &other.name_reference {
            self.add_reference(new, clock)
                .map_err(|fault| fault.within(named("NameReference")))?;
        }
        self.sort();
        Ok(self)
    }

    pub fn add_reference(&mut self, new: &BackReference, clock: &Clock) -> Res<()> {
        clock.spend(1 + self.name_reference.len() / 16)?;
        let mut found = false;
        for own in &mut self.name_reference {
            if own.gvk() == new.gvk() {
                merge_specs(&mut own.referrers, &new.referrers, clock)?;
                found = true;
            }
        }
        if !found {
            self.name_reference.push(new.clone());
        }
        Ok(())
    }

    fn sort(&mut self) {
        for specs in [
            &mut self.name_prefix,
            &mut self.name_suffix,
            &mut self.namespace,
            &mut self.common_labels,
            &mut self.labels,
            &mut self.template_labels,
            &mut self.common_annotations,
            &mut self.var_reference,
            &mut self.images,
            &mut self.replicas,
        ] {
            specs.sort_by_cached_key(|spec| order(&spec.gvk()));
        }
        self.name_reference
            .sort_by_cached_key(|reference| order(&reference.gvk()));
    }
}

/// Adds the specs that are missing.
pub(super) fn merge_specs(own: &mut Vec<FieldSpec>, new: &[FieldSpec], clock: &Clock) -> Res<()> {
    for new in new {
        clock.spend(1 + own.len() / 16)?;
        let same = own
            .iter()
            .find(|own| own.path == new.path && own.gvk().is_selected(&new.gvk()));
        match same {
            Some(same) if same.create != new.create => return fail!("conflicting fieldspecs"),
            Some(_) => {}
            None => own.push(new.clone()),
        }
    }
    Ok(())
}

/// The sort key: well-known kinds come first or last, the others by group, version and kind.
fn order(gvk: &Gvk) -> (i32, String) {
    (super::sort::rank(&gvk.kind), gvk.sort_key())
}

/// Reads the table: `#list` (or `>group version kind` under `#nameReference`) starts a list; each
/// line has a path, `+` if the field is created when missing, and the kinds it applies to; `.`
/// matches any group or version.
fn parse_table(text: &str) -> Config {
    let mut config = Config::default();
    let mut list = "";
    let or = |word: Option<&str>| {
        word.filter(|word| *word != ".")
            .unwrap_or_default()
            .to_owned()
    };
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('#') {
            list = name;
            continue;
        }
        if let Some(kind) = line.strip_prefix('>') {
            let mut words = kind.split(' ');
            let (group, version) = (or(words.next()), or(words.next()));
            config.name_reference.push(BackReference {
                group,
                version,
                kind: or(words.next()),
                referrers: Vec::new(),
            });
            continue;
        }
        let (create, line) = match line.strip_prefix('+') {
            Some(line) => (true, line),
            None => (false, line),
        };
        let (path, kinds) = line.split_once('\t').unwrap_or((line, ". . ."));
        for kind in kinds.split(", ") {
            let mut words = kind.split(' ');
            let (group, version) = (or(words.next()), or(words.next()));
            let spec = FieldSpec {
                group,
                version,
                kind: or(words.next()),
                path: path.to_owned(),
                create,
            };
            let specs = match list {
                "namePrefix" => &mut config.name_prefix,
                "nameSuffix" => &mut config.name_suffix,
                "namespace" => &mut config.namespace,
                "commonLabels" => &mut config.common_labels,
                "templateLabels" => &mut config.template_labels,
                "commonAnnotations" => &mut config.common_annotations,
                "varReference" => &mut config.var_reference,
                "images" => &mut config.images,
                "replicas" => &mut config.replicas,
                _ => match config.name_reference.last_mut() {
                    Some(open) => &mut open.referrers,
                    None => continue,
                },
            };
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        }
    }
    config.sort();
    config
}

/// Reads references, labels and names from the OpenAPI definitions of custom resources.
pub(super) fn of_crds(text: &[u8], limits: &Limits, clock: &Clock) -> Res<Config> {
    let definitions = parse_document(text, limits, Duplicates::LastWins)
        .map_err(|error| Fault::new(error.json_text()))?;
    let mut config = Config::default();
    for (name, definition) in definitions.as_object().into_iter().flatten() {
        let fields = definition.pointer("/Schema/properties");
        let has = |name| fields.is_some_and(|fields| fields.get(name).is_some());
        if has("kind") && has("apiVersion") && has("metadata") {
            let kind = name.rsplit('.').next().unwrap_or_default();
            let of = Definitions {
                kind,
                all: &definitions,
                clock,
            };
            of.add_fields(&mut config, name, &mut Vec::new())?;
        }
    }
    config.sort();
    Ok(config)
}

/// The definitions of a file, for the fields of one kind.
struct Definitions<'d> {
    kind: &'d str,
    all: &'d Value,
    clock: &'d Clock,
}

impl Definitions<'_> {
    /// Adds the fields of a definition, which is at this path. Several paths may lead to one, so
    /// there may be many more paths than definitions.
    fn add_fields(&self, config: &mut Config, name: &str, path: &mut Vec<String>) -> Res<()> {
        let (kind, clock) = (self.kind, self.clock);
        if path.len() > 50 {
            return fail!("the definitions of {kind} refer to each other without an end");
        }
        let definition = self.all.get(name);
        let fields = definition.and_then(|d| d.pointer("/Schema/properties"));
        for (name, field) in fields.and_then(Value::as_object).into_iter().flatten() {
            clock.spend(1)?;
            path.push(name.clone());
            let spec = |more: Option<&str>| FieldSpec {
                kind: kind.to_owned(),
                path: match more {
                    Some(more) => format!("{}/{more}", path.join("/")),
                    None => path.join("/"),
                },
                ..FieldSpec::default()
            };
            let text = |name: &str| field.get(name).and_then(Value::as_str);
            if text("x-kubernetes-annotation").is_some() {
                merge_specs(&mut config.common_annotations, &[spec(None)], clock)?;
            }
            if text("x-kubernetes-label-selector").is_some() {
                merge_specs(&mut config.common_labels, &[spec(None)], clock)?;
            }
            if text("x-kubernetes-identity").is_some() {
                merge_specs(&mut config.name_prefix, &[spec(None)], clock)?;
            }
            if let Some(version) = text("x-kubernetes-object-ref-api-version")
                && let Some(kind) = text("x-kubernetes-object-ref-kind")
            {
                let key = text("x-kubernetes-object-ref-name-key").unwrap_or("name");
                let reference = BackReference {
                    group: String::new(),
                    version: version.to_owned(),
                    kind: kind.to_owned(),
                    referrers: vec![spec(Some(key))],
                };
                config.add_reference(&reference, clock)?;
            }
            if let Some(reference) = text("$ref") {
                self.add_fields(config, reference, path)?;
            }
            path.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_have_nothing_twice() {
        let alone = Config::default()
            .merge(&Config::builtin(), &Clock::default())
            .expect("right");
        assert_eq!(alone, *Config::builtin());
        assert_eq!(alone.replicas.len(), 4);
        assert!(alone.name_reference.len() > 15);
    }

    #[test]
    fn a_general_spec_stands_behind_special_ones_and_is_lost_in_front_of_them() {
        let special = FieldSpec {
            kind: "Thing".to_owned(),
            path: "metadata/name".to_owned(),
            ..FieldSpec::default()
        };
        let own = Config {
            name_prefix: vec![special],
            ..Config::default()
        };
        let both = Config::clone(&Config::builtin())
            .merge(&own, &Clock::default())
            .expect("right");
        assert_eq!(both.name_prefix.len(), 2);
        let again = Config::default()
            .merge(&both, &Clock::default())
            .expect("right");
        assert_eq!(again.name_prefix.len(), 1);
    }
}

//! The file `kustomization.yaml`.
//!
//! Main type: [`Kustomization`]. Unknown fields are refused; field names are case-insensitive and
//! null counts as absent, as in Go's JSON decoder.

use super::config::FieldSpec;
use super::fault::{Fault, Res, fail};
use super::names::{Unknown, normal};
use super::replacement::Replacement;
use super::resource::Texts;
use super::selector::Selector;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tiphys_gocompat::yaml::{Duplicates, Limits, parse_document};

pub(super) const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
pub(super) const KIND: &str = "Kustomization";
pub(super) const COMPONENT: &str = "Component";

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Kustomization {
    pub api_version: String,
    pub kind: String,
    pub openapi: BTreeMap<String, String>,
    pub name_prefix: String,
    pub name_suffix: String,
    pub namespace: String,
    pub common_labels: Texts,
    pub labels: Vec<Labels>,
    pub common_annotations: Texts,
    pub patches_strategic_merge: Vec<String>,
    pub patches_json6902: Vec<Patch>,
    pub patches: Vec<Patch>,
    pub images: Vec<Image>,
    image_tags: Vec<Image>,
    pub replacements: Vec<Replacement>,
    pub replicas: Vec<Replica>,
    pub vars: Vec<Var>,
    pub sort_options: Option<SortOptions>,
    pub resources: Vec<String>,
    pub components: Vec<String>,
    pub crds: Vec<String>,
    bases: Vec<String>,
    pub config_map_generator: Vec<GeneratorArgs>,
    pub secret_generator: Vec<GeneratorArgs>,
    pub helm_globals: Option<HelmGlobals>,
    pub helm_charts: Vec<HelmChart>,
    helm_chart_inflation_generator: Vec<OldHelmChart>,
    pub generator_options: Option<GeneratorOptions>,
    pub configurations: Vec<String>,
    pub generators: Vec<String>,
    pub transformers: Vec<String>,
    pub validators: Vec<String>,
    pub build_metadata: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Labels {
    pub pairs: Texts,
    pub include_selectors: bool,
    pub include_templates: bool,
    /// Added after 5.8.1, which refuses it.
    pub include_volume_claim_templates: bool,
    pub fields: Vec<FieldSpec>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Patch {
    pub path: String,
    pub patch: String,
    pub target: Option<Selector>,
    pub options: Option<PatchOptions>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PatchOptions {
    pub allow_name_change: bool,
    pub allow_kind_change: bool,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Image {
    pub name: String,
    pub new_name: String,
    pub tag_suffix: String,
    pub new_tag: String,
    pub digest: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Replica {
    pub name: String,
    pub count: i64,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Var {
    pub name: String,
    pub objref: VarTarget,
    pub fieldref: VarField,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct VarTarget {
    pub api_version: String,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct VarField {
    pub field_path: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SortOptions {
    pub order: String,
    pub legacy_sort_options: Option<LegacySortOptions>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LegacySortOptions {
    pub order_first: Vec<String>,
    pub order_last: Vec<String>,
}

/// Arguments of both generators; only Secrets have a type.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct GeneratorArgs {
    pub namespace: String,
    pub name: String,
    pub behavior: String,
    pub literals: Vec<String>,
    pub files: Vec<String>,
    pub envs: Vec<String>,
    env: String,
    pub options: Option<GeneratorOptions>,
    pub r#type: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct GeneratorOptions {
    pub labels: Texts,
    pub annotations: Texts,
    pub disable_name_suffix_hash: bool,
    pub immutable: bool,
}

impl GeneratorOptions {
    /// Merges the file's options into those of one generator, which take precedence, except that
    /// flags set by the file cannot be unset.
    pub fn over(own: Option<Self>, global: Option<&Self>) -> Option<Self> {
        let Some(global) = global else {
            return own;
        };
        let mut own = own.unwrap_or_default();
        for (own, global) in [
            (&mut own.labels, &global.labels),
            (&mut own.annotations, &global.annotations),
        ] {
            for (name, text) in global {
                own.entry(name.clone()).or_insert_with(|| text.clone());
            }
        }
        own.disable_name_suffix_hash |= global.disable_name_suffix_hash;
        own.immutable |= global.immutable;
        Some(own)
    }
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct HelmGlobals {
    pub chart_home: String,
    pub config_home: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct HelmChart {
    pub name: String,
    pub version: String,
    pub repo: String,
    pub release_name: String,
    pub namespace: String,
    pub additional_values_files: Vec<String>,
    pub values_file: String,
    pub values_inline: Map<String, Value>,
    pub values_merge: String,
    #[serde(rename = "includeCRDs")]
    pub include_crds: bool,
    pub skip_hooks: bool,
    pub api_versions: Vec<String>,
    pub kube_version: String,
    pub name_template: String,
    pub skip_tests: bool,
    pub debug: bool,
    pub devel: bool,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
struct OldHelmChart {
    chart_name: String,
    chart_version: String,
    chart_repo_url: String,
    chart_home: String,
    chart_repo_name: String,
    helm_bin: String,
    helm_home: String,
    values: String,
    values_local: Map<String, Value>,
    values_merge: String,
    release_name: String,
    release_namespace: String,
    extra_args: Vec<String>,
}

impl Kustomization {
    /// The fields of a file, with their names in normal spelling.
    pub fn fields(text: &[u8], limits: &Limits) -> Res<Map<String, Value>> {
        match Self::read(text, limits)? {
            (_, Value::Object(fields)) => Ok(fields),
            _ => Ok(Map::new()),
        }
    }

    pub fn parse(text: &[u8], limits: &Limits) -> Res<Self> {
        let (mut own, value) = Self::read(text, limits)?;
        own.fix();
        if says_nothing(&value) {
            return fail!("kustomization.yaml is empty");
        }
        Ok(own)
    }

    /// The files and folders that are read whenever it is built, as they are written. Some may be
    /// URLs, or patches in place of a path.
    pub fn paths(&self) -> Vec<String> {
        let of_key = |source: &String| match source.split_once('=') {
            Some((_, path)) => path.to_owned(),
            None => source.clone(),
        };
        let plugins = [&self.generators, &self.transformers, &self.validators];
        let lists = [
            &self.resources,
            &self.components,
            &self.crds,
            &self.configurations,
            &self.patches_strategic_merge,
        ];
        let mut paths: Vec<String> = lists
            .into_iter()
            .chain(plugins)
            .flatten()
            .cloned()
            .collect();
        let patches = self.patches.iter().chain(&self.patches_json6902);
        paths.extend(patches.map(|patch| patch.path.clone()));
        paths.extend(self.replacements.iter().map(|own| own.path.clone()));
        let generators = self.config_map_generator.iter();
        for generator in generators.chain(&self.secret_generator) {
            paths.extend(generator.envs.iter().cloned());
            paths.extend(generator.files.iter().map(of_key));
        }
        paths.extend(self.openapi.get("path").cloned());
        paths
    }

    fn read(text: &[u8], limits: &Limits) -> Res<(Self, Value)> {
        let invalid = |text: String| Fault::new(format!("invalid Kustomization: {text}"));
        let value = parse_document(text, limits, Duplicates::LastWins).map_err(|error| {
            let text = error.json_text();
            let text = text
                .strip_prefix("error converting YAML to JSON: ")
                .unwrap_or(&text);
            invalid(text.to_owned())
        })?;
        if !value.is_object() && !value.is_null() {
            let kind = tiphys_gocompat::json::kind(&value);
            return Err(invalid(format!(
                "json: cannot unmarshal {kind} into Go value of type types.Kustomization"
            )));
        }
        if let Some(problem) = super::mistyped::first(&value) {
            return Err(invalid(problem));
        }
        let value = normal(value, "Kustomization", Unknown::Refused)
            .map_err(|name| invalid(format!("json: unknown field {name:?}")))?;
        if value.is_null() {
            return Ok((Self::default(), value));
        }
        match serde_json::from_value(value.clone()) {
            Ok(read) => Ok((read, value)),
            Err(error) => Err(invalid(format!("json: {error}"))),
        }
    }

    /// Converts deprecated fields to their replacements.
    fn fix(&mut self) {
        if self.kind.is_empty() {
            KIND.clone_into(&mut self.kind);
        }
        if self.api_version.is_empty() {
            self.api_version = self.wanted_api_version().to_owned();
        }
        self.resources.append(&mut self.bases);
        self.images.append(&mut self.image_tags);
        let generators = self.config_map_generator.iter_mut();
        for generator in generators.chain(&mut self.secret_generator) {
            if !generator.env.is_empty() {
                generator.envs.push(std::mem::take(&mut generator.env));
            }
        }
        let mut globals = HelmGlobals::default();
        for old in self.helm_chart_inflation_generator.drain(..) {
            if !old.chart_home.is_empty() {
                globals.chart_home = old.chart_home;
            }
            if !old.helm_home.is_empty() {
                globals.config_home = old.helm_home;
            }
            self.helm_charts.push(HelmChart {
                name: old.chart_name,
                version: old.chart_version,
                repo: old.chart_repo_url,
                values_file: old.values,
                values_inline: old.values_local,
                values_merge: old.values_merge,
                release_name: old.release_name,
                ..HelmChart::default()
            });
        }
        if self.helm_globals.is_none() && globals != HelmGlobals::default() {
            self.helm_globals = Some(globals);
        }
    }

    fn wanted_api_version(&self) -> &'static str {
        if self.kind == COMPONENT {
            "kustomize.config.k8s.io/v1alpha1"
        } else {
            "kustomize.config.k8s.io/v1beta1"
        }
    }

    /// Returns the problems with the kind and its version.
    pub fn check_kind(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.kind != KIND && self.kind != COMPONENT {
            wrong.push(format!("kind should be {KIND} or {COMPONENT}"));
        }
        let wanted = self.wanted_api_version();
        if self.api_version != wanted {
            wrong.push(format!("apiVersion for {} should be {wanted}", self.kind));
        }
        wrong
    }
}

/// Whether nothing but the kind is set.
fn says_nothing(value: &Value) -> bool {
    let entries = value.as_object().into_iter().flatten();
    let mut entries = entries.filter(|(name, _)| *name != "apiVersion" && *name != "kind");
    entries.all(|(name, value)| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => {
            let old = ["bases", "imageTags", "helmChartInflationGenerator"];
            items.is_empty() && old.contains(&name.as_str())
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Kustomization, String> {
        Kustomization::parse(text.as_bytes(), &Limits::default()).map_err(|fault| fault.text)
    }

    #[test]
    fn fields_are_read_as_go_reads_them() {
        let read =
            parse("NAMEPREFIX: a\nnamespace: null\nbases: [b]\nresources: [r]\n").expect("right");
        assert_eq!((read.name_prefix.as_str(), read.kind.as_str()), ("a", KIND));
        assert_eq!(read.resources, ["r", "b"]);
        for (text, want) in [
            (
                "foo: 1\n",
                "invalid Kustomization: json: unknown field \"foo\"",
            ),
            ("kind: Kustomization\n", "kustomization.yaml is empty"),
            ("bases: []\n", "kustomization.yaml is empty"),
        ] {
            assert_eq!(parse(text).expect_err("refused"), want);
        }
        assert!(parse("resources: []\n").is_ok());
        assert!(parse("namePrefix: yes\n").is_err());
        assert!(
            parse("commonLabels: {Name: x, kind: z}\n")
                .expect("right")
                .common_labels
                .contains_key("Name")
        );
    }
}

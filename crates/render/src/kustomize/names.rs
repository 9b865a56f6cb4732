//! Field names in a kustomization and its parts.
//!
//! Main function: [`normal`]. Go's decoder matches field names in any case and ignores null; some
//! files may have unknown fields, others may not.

use serde_json::{Map, Value};

/// How to treat unknown fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    Refused,
    LeftOut,
}

/// Each type with its fields; after a colon, the type of the field: `Texts` is a map of
/// user-defined names to strings, `Any` is left as it is.
const TYPES: &[(&str, &str)] = &[
    (
        "Kustomization",
        "apiVersion kind metadata:Metadata openapi:Texts namePrefix nameSuffix namespace \
        commonLabels:Texts labels:Labels commonAnnotations:Texts patchesStrategicMerge \
        patchesJson6902:Patch patches:Patch images:Image imageTags:Image \
        replacements:Replacement replicas:Replica vars:Var sortOptions:SortOptions resources \
        components crds bases configMapGenerator:ConfigMapArgs secretGenerator:SecretArgs \
        helmGlobals:HelmGlobals helmCharts:HelmChart \
        helmChartInflationGenerator:HelmChartArgs generatorOptions:GeneratorOptions \
        configurations generators transformers validators buildMetadata",
    ),
    ("Metadata", "name namespace labels:Texts annotations:Texts"),
    (
        "Labels",
        "pairs:Texts includeSelectors includeTemplates includeVolumeClaimTemplates \
        fields:FieldSpec",
    ),
    ("Patch", "path patch target:Selector options:PatchOptions"),
    ("PatchOptions", "allowNameChange allowKindChange"),
    (
        "Selector",
        "group version kind name namespace annotationSelector labelSelector",
    ),
    ("Image", "name newName tagSuffix newTag digest"),
    (
        "Replacement",
        "path source:Source targets:Target sourceValue",
    ),
    (
        "Source",
        "group version kind name namespace fieldPath options:FieldOptions",
    ),
    (
        "Target",
        "select:Selector reject:Selector fieldPaths options:FieldOptions",
    ),
    ("FieldOptions", "delimiter index encoding create"),
    ("Replica", "name count"),
    ("Var", "name objref:VarTarget fieldref:VarField"),
    ("VarTarget", "apiVersion group version kind name namespace"),
    ("VarField", "fieldPath"),
    ("SortOptions", "order legacySortOptions:LegacySortOptions"),
    ("LegacySortOptions", "orderFirst orderLast"),
    (
        "ConfigMapArgs",
        "namespace name behavior literals files envs env options:GeneratorOptions",
    ),
    (
        "SecretArgs",
        "namespace name behavior literals files envs env options:GeneratorOptions type",
    ),
    (
        "GeneratorOptions",
        "labels:Texts annotations:Texts disableNameSuffixHash immutable",
    ),
    ("HelmGlobals", "chartHome configHome"),
    (
        "HelmChart",
        "name version repo releaseName namespace additionalValuesFiles valuesFile \
        valuesInline:Any valuesMerge includeCRDs skipHooks apiVersions kubeVersion nameTemplate \
        skipTests debug devel",
    ),
    (
        "HelmChartArgs",
        "chartName chartVersion chartRepoUrl chartHome chartRepoName helmBin helmHome values \
        valuesLocal:Any valuesMerge releaseName releaseNamespace extraArgs",
    ),
    ("FieldSpec", "group version kind path create"),
    ("BackReference", "group version kind fieldSpecs:FieldSpec"),
    (
        "Config",
        "namePrefix:FieldSpec nameSuffix:FieldSpec namespace:FieldSpec commonLabels:FieldSpec \
        labels:FieldSpec templateLabels:FieldSpec commonAnnotations:FieldSpec \
        nameReference:BackReference varReference:FieldSpec images:FieldSpec replicas:FieldSpec",
    ),
    (
        "Plugin",
        "apiVersion kind metadata:Metadata labels:Texts annotations:Texts prefix suffix \
        fieldSpecs:FieldSpec unsetOnly setRoleBindingSubjects imageTag:Image replica:Replica path \
        jsonOp target:Selector paths patches replacements:Replacement value \
        targets:ValueTarget targetFilePath cloud serviceAccount:Texts kubernetesService:Texts",
    ),
    (
        "ValueTarget",
        "selector:Selector fieldPath filePathPosition",
    ),
];

/// Normalises the spelling of names and removes nulls.
///
/// # Errors
/// The name of a field that is refused.
pub(super) fn normal(value: Value, of: &str, unknown: Unknown) -> Result<Value, String> {
    match (value, of) {
        (value, "Any") => Ok(value),
        (Value::Object(entries), "Texts") => {
            let text = |(name, value): (String, Value)| match value {
                Value::Null => (name, Value::String(String::new())),
                value => (name, value),
            };
            Ok(Value::Object(entries.into_iter().map(text).collect()))
        }
        (Value::Object(entries), of) => {
            let fields = TYPES.iter().find(|(name, _)| *name == of);
            let Some((_, fields)) = fields else {
                return Ok(Value::Object(entries));
            };
            let mut out = Map::new();
            for (name, value) in entries {
                let Some((name, of)) = field(fields, &name) else {
                    match unknown {
                        Unknown::Refused => return Err(name),
                        Unknown::LeftOut => continue,
                    }
                };
                if !value.is_null() {
                    out.insert(name.to_owned(), normal(value, of, unknown)?);
                }
            }
            Ok(Value::Object(out))
        }
        (Value::Array(items), of) => {
            let items = items.into_iter().map(|item| match item {
                Value::Null if of.is_empty() => Ok(Value::String(String::new())),
                Value::Null => Ok(Value::Object(Map::new())),
                item => normal(item, of, unknown),
            });
            Ok(Value::Array(items.collect::<Result<_, _>>()?))
        }
        (other, _) => Ok(other),
    }
}

/// The field with this name in its normal spelling, and its type.
fn field<'f>(fields: &'f str, name: &str) -> Option<(&'f str, &'f str)> {
    let mut fields = fields
        .split_whitespace()
        .map(|field| field.split_once(':').unwrap_or((field, "")));
    fields.find(|(known, _)| known.eq_ignore_ascii_case(name))
}

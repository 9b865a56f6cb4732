//! Wrong types in a kustomization, in the words of Go's JSON decoder.
//!
//! Main function: [`first`]. `newTag: 1.0` is by far the most frequent mistake of this kind; the
//! message names the field.

use serde_json::Value;

/// Each struct with its fields and their Go types. A dot separates an embedded struct from its
/// field; `map` is a map of strings, `any` a map of anything. What is no struct is a string.
const STRUCTS: &[(&str, &str)] = &[
    (
        "Kustomization",
        "TypeMeta.kind:string TypeMeta.apiVersion:string metadata:ObjectMeta openapi:map \
        namePrefix:string nameSuffix:string namespace:string commonLabels:map labels:[]Label \
        commonAnnotations:map patchesStrategicMerge:[]PatchStrategicMerge \
        patchesJson6902:[]Patch patches:[]Patch images:[]Image imageTags:[]Image \
        replacements:[]ReplacementField replicas:[]Replica vars:[]Var sortOptions:SortOptions \
        resources:[]string components:[]string crds:[]string bases:[]string \
        configMapGenerator:[]ConfigMapArgs secretGenerator:[]SecretArgs helmGlobals:HelmGlobals \
        helmCharts:[]HelmChart helmChartInflationGenerator:[]HelmChartArgs \
        generatorOptions:GeneratorOptions configurations:[]string generators:[]string \
        transformers:[]string validators:[]string buildMetadata:[]string",
    ),
    (
        "ObjectMeta",
        "name:string namespace:string labels:map annotations:map",
    ),
    (
        "Label",
        "pairs:map includeSelectors:bool includeTemplates:bool includeVolumeClaimTemplates:bool \
        fields:[]FieldSpec",
    ),
    (
        "FieldSpec",
        "Gvk.group:string Gvk.version:string Gvk.kind:string path:string create:bool",
    ),
    (
        "Patch",
        "path:string patch:string target:Selector options:PatchArgs",
    ),
    ("PatchArgs", "allowNameChange:bool allowKindChange:bool"),
    (
        "Selector",
        "ResId.Gvk.group:string ResId.Gvk.version:string ResId.Gvk.kind:string ResId.name:string \
        ResId.namespace:string annotationSelector:string labelSelector:string",
    ),
    (
        "Image",
        "name:string newName:string tagSuffix:string newTag:string digest:string",
    ),
    (
        "ReplacementField",
        "Replacement.source:SourceSelector Replacement.targets:[]*TargetSelector \
        Replacement.sourceValue:string path:string",
    ),
    (
        "SourceSelector",
        "ResId.Gvk.group:string ResId.Gvk.version:string ResId.Gvk.kind:string ResId.name:string \
        ResId.namespace:string fieldPath:string options:FieldOptions",
    ),
    (
        "TargetSelector",
        "select:Selector reject:[]*Selector fieldPaths:[]string options:FieldOptions",
    ),
    (
        "FieldOptions",
        "delimiter:string index:int encoding:string create:bool",
    ),
    ("Replica", "name:string count:int64"),
    ("Var", "name:string objref:Target fieldref:FieldSelector"),
    (
        "Target",
        "apiVersion:string Gvk.group:string Gvk.version:string Gvk.kind:string name:string \
        namespace:string",
    ),
    ("FieldSelector", "fieldPath:string"),
    (
        "SortOptions",
        "order:SortOrder legacySortOptions:LegacySortOptions",
    ),
    (
        "LegacySortOptions",
        "orderFirst:[]string orderLast:[]string",
    ),
    (
        "ConfigMapArgs",
        "GeneratorArgs.namespace:string GeneratorArgs.name:string GeneratorArgs.behavior:string \
        GeneratorArgs.KvPairSources.literals:[]string GeneratorArgs.KvPairSources.files:[]string \
        GeneratorArgs.KvPairSources.envs:[]string GeneratorArgs.KvPairSources.env:string \
        GeneratorArgs.options:GeneratorOptions",
    ),
    (
        "SecretArgs",
        "GeneratorArgs.namespace:string GeneratorArgs.name:string GeneratorArgs.behavior:string \
        GeneratorArgs.KvPairSources.literals:[]string GeneratorArgs.KvPairSources.files:[]string \
        GeneratorArgs.KvPairSources.envs:[]string GeneratorArgs.KvPairSources.env:string \
        GeneratorArgs.options:GeneratorOptions type:string",
    ),
    (
        "GeneratorOptions",
        "labels:map annotations:map disableNameSuffixHash:bool immutable:bool",
    ),
    ("HelmGlobals", "chartHome:string configHome:string"),
    (
        "HelmChart",
        "name:string version:string repo:string releaseName:string namespace:string \
        additionalValuesFiles:[]string valuesFile:string valuesInline:any valuesMerge:string \
        includeCRDs:bool skipHooks:bool apiVersions:[]string kubeVersion:string \
        nameTemplate:string skipTests:bool debug:bool devel:bool",
    ),
    (
        "HelmChartArgs",
        "chartName:string chartVersion:string chartRepoUrl:string chartHome:string \
        chartRepoName:string helmBin:string helmHome:string values:string valuesLocal:any \
        valuesMerge:string releaseName:string releaseNamespace:string extraArgs:[]string",
    ),
];

/// The first wrong type or unknown field of a kustomization.
pub(super) fn first(kustomization: &Value) -> Option<String> {
    let of = "Kustomization";
    let (_, fields) = STRUCTS.iter().find(|(name, _)| *name == of)?;
    in_struct(kustomization, of, fields, "")
}

/// The fields in the order in which Go's decoder comes to them: kustomize sorts them before.
fn in_struct(value: &Value, name: &str, fields: &str, path: &str) -> Option<String> {
    let mut entries: Vec<_> = value.as_object()?.iter().collect();
    entries.sort_by_key(|(name, _)| *name);
    entries.into_iter().find_map(|(key, value)| {
        let known = fields.split_whitespace().find_map(|field| {
            let (field, of) = field.split_once(':')?;
            let own = field.rsplit('.').next()?;
            own.eq_ignore_ascii_case(key).then_some((field, of))
        });
        match known {
            None => Some(format!("json: unknown field {key:?}")),
            Some((field, of)) if path.is_empty() => in_field(value, of, name, field),
            Some((field, of)) => in_field(value, of, name, &format!("{path}.{field}")),
        }
    })
}

/// What is wrong with the value of a field of the struct, or with one of its elements.
fn in_field(value: &Value, of: &str, owner: &str, path: &str) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let of = of.trim_start_matches('*');
    let wrong = |is_right: bool| {
        (!is_right).then(|| {
            let (found, wanted) = (shown(value, of), go_type(of));
            format!(
                "json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}"
            )
        })
    };
    if let Some(item) = of.strip_prefix("[]") {
        return match value.as_array() {
            Some(items) => items
                .iter()
                .find_map(|value| in_field(value, item, owner, path)),
            None => wrong(false),
        };
    }
    match of {
        "bool" => wrong(value.is_boolean()),
        "int" | "int64" => wrong(value.is_i64()),
        "any" => wrong(value.is_object()),
        "map" => match value.as_object() {
            Some(entries) => {
                let mut entries: Vec<_> = entries.iter().collect();
                entries.sort_by_key(|(name, _)| *name);
                let mut values = entries.into_iter();
                values.find_map(|(_, value)| in_field(value, "string", owner, path))
            }
            None => wrong(false),
        },
        _ => match STRUCTS.iter().find(|(name, _)| *name == of) {
            Some((name, fields)) if value.is_object() => in_struct(value, name, fields, path),
            Some(_) => wrong(false),
            None => wrong(value.is_string()),
        },
    }
}

fn shown(value: &Value, of: &str) -> String {
    match value {
        Value::Number(number) if matches!(of, "int" | "int64") => format!("number {number}"),
        _ => tiphys_gocompat::json::kind(value).to_owned(),
    }
}

fn go_type(of: &str) -> String {
    let (list, item) = match of.strip_prefix("[]") {
        Some(item) => ("[]", item),
        None => ("", of),
    };
    let (pointer, item) = match item.strip_prefix('*') {
        Some(item) => ("*", item),
        None => ("", item),
    };
    let name = match item {
        "string" | "bool" | "int" | "int64" => item.to_owned(),
        "map" => "map[string]string".to_owned(),
        "any" => "map[string]interface {}".to_owned(),
        name => format!("types.{name}"),
    };
    format!("{list}{pointer}{name}")
}

#[cfg(test)]
mod tests {
    use super::first;
    use tiphys_gocompat::yaml::{Duplicates, Limits, parse_document};

    /// Each line is a kustomization, and what kustomize 5.8.1 says to it.
    const REAL: &str = "\
namespace: 5 => cannot unmarshal number into Go struct field Kustomization.namespace of type string
images: [{name: a, newTag: 1.0}] => cannot unmarshal number into Go struct field Image.images.newTag of type string
images: {name: a} => cannot unmarshal object into Go struct field Kustomization.images of type []types.Image
images: [foo] => cannot unmarshal string into Go struct field Kustomization.images of type types.Image
commonLabels: {a: true} => cannot unmarshal bool into Go struct field Kustomization.commonLabels of type string
commonLabels: [a] => cannot unmarshal array into Go struct field Kustomization.commonLabels of type map[string]string
labels: [{pairs: {a: 1}}] => cannot unmarshal number into Go struct field Label.labels.pairs of type string
labels: {a: b} => cannot unmarshal object into Go struct field Kustomization.labels of type []types.Label
resources: foo => cannot unmarshal string into Go struct field Kustomization.resources of type []string
replicas: [{name: a, count: '3'}] => cannot unmarshal string into Go struct field Replica.replicas.count of type int64
replicas: [{name: a, count: 1.5}] => cannot unmarshal number 1.5 into Go struct field Replica.replicas.count of type int64
configMapGenerator: [{name: a, literals: {a: b}}] => cannot unmarshal object into Go struct field ConfigMapArgs.configMapGenerator.GeneratorArgs.KvPairSources.literals of type []string
configMapGenerator: [{name: a, options: {labels: {a: 1}}}] => cannot unmarshal number into Go struct field GeneratorOptions.configMapGenerator.GeneratorArgs.options.labels of type string
patches: [foo.yaml] => cannot unmarshal string into Go struct field Kustomization.patches of type types.Patch
patches: [{target: {kind: 5}}] => cannot unmarshal number into Go struct field Selector.patches.target.ResId.Gvk.kind of type string
patches: [{target: foo}] => cannot unmarshal string into Go struct field Patch.patches.target of type types.Selector
patchesStrategicMerge: [{a: b}] => cannot unmarshal object into Go struct field Kustomization.patchesStrategicMerge of type types.PatchStrategicMerge
replacements: [{source: {fieldPath: 5}}] => cannot unmarshal number into Go struct field SourceSelector.replacements.Replacement.source.fieldPath of type string
replacements: [{targets: {select: {}}}] => cannot unmarshal object into Go struct field ReplacementField.replacements.Replacement.targets of type []*types.TargetSelector
helmCharts: [{name: a, valuesInline: foo}] => cannot unmarshal string into Go struct field HelmChart.helmCharts.valuesInline of type map[string]interface {}
sortOptions: {order: 5} => cannot unmarshal number into Go struct field SortOptions.sortOptions.order of type types.SortOrder
metadata: foo => cannot unmarshal string into Go struct field Kustomization.metadata of type types.ObjectMeta
apiVersion: 1 => cannot unmarshal number into Go struct field Kustomization.TypeMeta.apiVersion of type string
images: [{name: a, tag: b}] => unknown field \"tag\"
";

    #[test]
    fn wrong_types_are_named_as_kustomize_names_them() {
        for line in REAL.lines() {
            let (text, want) = line.split_once(" => ").expect("both parts");
            let limits = Limits::default();
            let value = parse_document(text.as_bytes(), &limits, Duplicates::LastWins);
            let found = first(&value.expect("YAML"));
            assert_eq!(found, Some(format!("json: {want}")), "{text}");
        }
    }

    #[test]
    fn what_is_right_is_not_refused() {
        let text = "Resources: [a]\nlabels: [{pairs: {a: null}}, null]\nreplicas: [{count: 3.0}]\n\
                    helmCharts: [{valuesInline: {a: [1]}}]\nmetadata: {name: x}\n";
        let value = parse_document(text.as_bytes(), &Limits::default(), Duplicates::LastWins);
        assert_eq!(first(&value.expect("YAML")), None);
    }
}

//! Validates a definition: names, versions, columns, subresources, conversion. Schemas are
//! validated in [`super::schema`].
//!
//! Main function: [`check`]. Settings that all versions share are checked once, as a field of the
//! spec itself, because the real server stores them there.

use super::{conversion, schema, visit};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use tiphys_kube_schema::structural::problem::Problem;
use tiphys_kube_schema::structural::{Node, internal};
use tiphys_kube_schema::{formats, gofmt, gotypes};

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] = &[
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
const MAX_SELECTABLE: usize = 8;
const VERSION: &str = "apiextensions/v1.CustomResourceDefinitionVersion";
/// What versions may share, and where the real server keeps it then.
const SHARED: [(&str, &str); 4] = [
    ("schema", "validation"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

pub type Problems = Vec<Problem>;

pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The spec with what all versions share taken out of them.
pub fn hoisted(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let bare: Vec<Value> = list(&spec, "versions").iter().map(without_empty).collect();
    for (inner, outer) in SHARED {
        let Some(first) = list(&spec, "versions").first() else {
            return spec;
        };
        if bare
            .iter()
            .any(|version| version.get(inner) != bare[0].get(inner))
        {
            continue;
        }
        let first = first.get(inner).cloned().unwrap_or(Value::Null);
        if let Some(map) = spec.as_object_mut() {
            map.insert(outer.to_owned(), first);
        }
        for version in spec
            .get_mut("versions")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Some(map) = version.as_object_mut() {
                map.remove(inner);
            }
        }
    }
    spec
}

/// A version as it is compared with others.
fn without_empty(version: &Value) -> Value {
    let mut version = version.clone();
    if let (Some(map), Some(of)) = (version.as_object_mut(), gotypes::find(VERSION)) {
        gotypes::drop_empty(map, of);
    }
    version
}

/// Everything that is wrong with `spec`; `any_bundle`: the authorities of its webhook need not be
/// readable.
pub fn check(spec: &Value, any_bundle: bool) -> Problems {
    let spec = &hoisted(spec);
    let mut problems = Vec::new();
    group_and_scope(spec, &mut problems);
    let versions = list(spec, "versions");
    if spec
        .pointer("/validation/openAPIV3Schema")
        .is_none_or(Value::is_null)
    {
        for (i, version) in versions.iter().enumerate() {
            if version
                .pointer("/schema/openAPIV3Schema")
                .is_none_or(Value::is_null)
            {
                problems.push(Problem::required(
                    &format!("spec.versions[{i}].schema.openAPIV3Schema"),
                    "",
                ));
            }
        }
    }
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) && visit::has_defaults(spec) {
        problems.push(Problem::invalid(
            "spec.preserveUnknownFields",
            &true.into(),
            "must be false in order to use defaults in the schema",
        ));
    }
    let per_version = versions
        .iter()
        .any(|v| v.get("subresources").is_some_and(|s| !s.is_null()));
    for (i, version) in versions.iter().enumerate() {
        let errors = formats::dns1035_label(text(version, "name"));
        if !errors.is_empty() {
            let field = format!("spec.versions[{i}].name");
            problems.push(Problem::invalid(
                &field,
                &text(version, "name").into(),
                &errors.join(","),
            ));
        }
        let subresources = if per_version {
            version.get("subresources")
        } else {
            spec.get("subresources")
        };
        one_version(
            version,
            &format!("spec.versions[{i}]"),
            has_status(subresources),
            &mut problems,
        );
    }
    flags(spec, versions, &mut problems);
    names(spec, &mut problems);
    check_names(&spec["names"], "spec.names", &mut problems);
    let any_status = has_status(spec.get("subresources"))
        || versions.iter().any(|v| has_status(v.get("subresources")));
    schema::check(
        spec.get("validation"),
        "spec.validation",
        any_status,
        &mut problems,
    );
    subresources(spec.get("subresources"), "spec.subresources", &mut problems);
    columns(spec, "spec", &mut problems);
    selectable(
        spec,
        "spec",
        spec.pointer("/validation/openAPIV3Schema"),
        &mut problems,
    );
    conversion::check(spec, any_bundle, &mut problems);
    problems
}

fn has_status(subresources: Option<&Value>) -> bool {
    subresources
        .and_then(|s| s.get("status"))
        .is_some_and(|s| !s.is_null())
}

fn group_and_scope(spec: &Value, problems: &mut Problems) {
    let group = text(spec, "group");
    let errors = formats::dns_subdomain(group);
    if group.is_empty() {
        problems.push(Problem::required("spec.group", ""));
    } else if !errors.is_empty() {
        problems.push(Problem::invalid(
            "spec.group",
            &group.into(),
            &errors.join(","),
        ));
    } else if !group.contains('.') {
        problems.push(Problem::invalid(
            "spec.group",
            &group.into(),
            "should be a domain with at least one dot",
        ));
    }
    one_of(
        "spec.scope",
        text(spec, "scope"),
        &["Cluster", "Namespaced"],
        problems,
    );
}

pub fn one_of(field: &str, value: &str, accepted: &[&str], problems: &mut Problems) {
    if value.is_empty() {
        problems.push(Problem::required(field, ""));
    } else if !accepted.contains(&value) {
        problems.push(Problem::not_supported(
            field,
            &value.into(),
            &accepted.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>(),
        ));
    }
}

fn one_version(version: &Value, path: &str, status: bool, problems: &mut Problems) {
    if let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) {
        let mut bad = |detail: &str| {
            problems.push(Problem::invalid(
                &format!("{path}.deprecationWarning"),
                &warning.into(),
                detail,
            ))
        };
        if version.get("deprecated") != Some(&Value::Bool(true)) {
            bad("can only be set for deprecated versions");
        } else {
            if warning.len() > 256 {
                bad("must be <= 256 characters long");
            }
            if warning.is_empty() {
                bad("must not be an empty string");
            }
            if let Some((at, _)) = warning
                .char_indices()
                .find(|(_, c)| c.is_control() || (c.is_whitespace() && *c != ' '))
            {
                bad(&format!(
                    "must only contain printable UTF-8 characters; non-printable character found at index {at}"
                ));
            }
        }
    }
    schema::check(
        version.get("schema"),
        &format!("{path}.schema"),
        status,
        problems,
    );
    subresources(
        version.get("subresources"),
        &format!("{path}.subresources"),
        problems,
    );
    columns(version, path, problems);
    selectable(
        version,
        path,
        version.pointer("/schema/openAPIV3Schema"),
        problems,
    );
}

/// One storage version, no name twice.
fn flags(spec: &Value, versions: &[Value], problems: &mut Problems) {
    let names: BTreeSet<&str> = versions.iter().map(|v| text(v, "name")).collect();
    let mut bad = |detail: &str| {
        let shown = internal::versions(spec.get("versions").unwrap_or(&Value::Null));
        problems.push(Problem {
            reason: "FieldValueInvalid",
            path: "spec.versions".into(),
            text: format!("Invalid value: {shown}: {detail}"),
        });
    };
    if names.len() != versions.len() {
        bad("must contain unique version names");
    }
    if versions.iter().filter(|v| v["storage"] == true).count() != 1 {
        bad("must have exactly one version marked as storage version");
    }
    if let Some(first) = versions
        .first()
        .map(|v| text(v, "name"))
        .filter(|n| !n.is_empty())
    {
        let errors = formats::dns1035_label(first);
        if !errors.is_empty() {
            problems.push(Problem::invalid(
                "spec.version",
                &first.into(),
                &errors.join(","),
            ));
        }
    }
}

fn names(spec: &Value, problems: &mut Problems) {
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(&spec["names"], key).is_empty() {
            problems.push(Problem::required(&format!("spec.names.{key}"), ""));
        }
    }
}

/// The forms of names, in the spec or as accepted.
pub fn check_names(names: &Value, path: &str, problems: &mut Problems) {
    let mut label = |field: String, value: &str, prefix: &str| {
        let errors = formats::dns1035_label(&if prefix.is_empty() {
            value.to_owned()
        } else {
            value.to_lowercase()
        });
        if !errors.is_empty() {
            problems.push(Problem::invalid(
                &field,
                &value.into(),
                &format!("{prefix}{}", errors.join(",")),
            ));
        }
    };
    const MIXED: &str = "may have mixed case, but should otherwise match: ";
    for (key, prefix) in [
        ("plural", ""),
        ("singular", ""),
        ("kind", MIXED),
        ("listKind", MIXED),
    ] {
        let value = text(names, key);
        if !value.is_empty() {
            label(format!("{path}.{key}"), value, prefix);
        }
    }
    for (i, name) in list(names, "shortNames").iter().enumerate() {
        label(
            format!("{path}.shortNames[{i}]"),
            name.as_str().unwrap_or(""),
            "",
        );
    }
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    if !kind.is_empty() && kind == list_kind {
        problems.push(Problem::invalid(
            &format!("{path}.listKind"),
            &list_kind.into(),
            "kind and listKind may not be the same",
        ));
    }
    for (i, name) in list(names, "categories").iter().enumerate() {
        let errors = formats::dns1035_label(name.as_str().unwrap_or(""));
        if !errors.is_empty() {
            problems.push(Problem::invalid(
                &format!("{path}.categories[{i}]"),
                name,
                &errors.join(","),
            ));
        }
    }
}

/// Says whether the path is good so far.
fn simple_path(path: &str, field: &str, problems: &mut Problems) -> bool {
    if path.starts_with('.') {
        return true;
    }
    problems.push(Problem::invalid(
        field,
        &path.into(),
        "must be a simple json path starting with .",
    ));
    false
}

fn subresources(subresources: Option<&Value>, path: &str, problems: &mut Problems) {
    let Some(scale) = subresources
        .and_then(|s| s.get("scale"))
        .filter(|s| !s.is_null())
    else {
        return;
    };
    for (key, start, detail) in [
        (
            "specReplicasPath",
            ".spec.",
            "should be a json path under .spec",
        ),
        (
            "statusReplicasPath",
            ".status.",
            "should be a json path under .status",
        ),
    ] {
        let field = format!("{path}.scale.{key}");
        let value = text(scale, key);
        if value.is_empty() {
            problems.push(Problem::required(&field, ""));
        } else if simple_path(value, &field, problems) && !value.starts_with(start) {
            problems.push(Problem::invalid(&field, &value.into(), detail));
        }
    }
    let value = text(scale, "labelSelectorPath");
    let field = format!("{path}.scale.labelSelectorPath");
    if !value.is_empty()
        && simple_path(value, &field, problems)
        && !value.starts_with(".spec.")
        && !value.starts_with(".status.")
    {
        problems.push(Problem::invalid(
            &field,
            &value.into(),
            "should be a json path under either .spec or .status",
        ));
    }
}

fn columns(of: &Value, path: &str, problems: &mut Problems) {
    for (i, column) in list(of, "additionalPrinterColumns").iter().enumerate() {
        let at = |key: &str| format!("{path}.additionalPrinterColumns[{i}].{key}");
        let (name, kind, format, json_path) = (
            text(column, "name"),
            text(column, "type"),
            text(column, "format"),
            text(column, "jsonPath"),
        );
        if name.is_empty() {
            problems.push(Problem::required(&at("name"), ""));
        }
        let wanted = format!("must be one of {}", COLUMN_TYPES.join(","));
        if kind.is_empty() {
            problems.push(Problem::required(&at("type"), &wanted));
        } else if !COLUMN_TYPES.contains(&kind) {
            problems.push(Problem::invalid(&at("type"), &kind.into(), &wanted));
        }
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            problems.push(Problem::invalid(&at("format"), &format.into(), &detail));
        }
        if json_path.is_empty() {
            problems.push(Problem::required(&at("JSONPath"), ""));
        } else {
            simple_path(json_path, &at("JSONPath"), problems);
        }
    }
}

fn selectable(of: &Value, path: &str, schema: Option<&Value>, problems: &mut Problems) {
    let fields = list(of, "selectableFields");
    let Some(schema) = schema.filter(|s| s.is_object()) else {
        if !fields.is_empty() {
            let detail = match path {
                "spec" => "may only be set when validations.schema is included",
                _ => "may only be set when `version.schema.openAPIV3Schema` is not included",
            };
            problems.push(Problem::invalid(
                &format!("{path}.selectableFields"),
                &"".into(),
                detail,
            ));
        }
        return;
    };
    let node = Node::read(schema);
    let mut seen = BTreeSet::new();
    for (i, field) in fields.iter().enumerate() {
        let at = format!("{path}.selectableFields[{i}].jsonPath");
        let json_path = text(field, "jsonPath");
        if json_path.is_empty() {
            problems.push(Problem::required(&at, ""));
            continue;
        }
        let mut bad =
            |detail: &str| problems.push(Problem::invalid(&at, &json_path.into(), detail));
        match tiphys_kube_schema::structural::path::resolve(json_path, &node, false) {
            Err(error) => bad(&format!("is an invalid path: {error}")),
            Ok((resolved, found)) => {
                if resolved.split(['.', '[']).next() == Some("metadata") {
                    bad("must not point to fields in metadata");
                }
                if !matches!(found.kind.as_str(), "string" | "boolean" | "integer") {
                    bad(
                        "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
                    );
                }
                if !seen.insert(resolved) {
                    problems.push(Problem::duplicate(&at, &json_path.into()));
                }
            }
        }
    }
    if seen.len() > MAX_SELECTABLE {
        problems.push(Problem::too_many(
            &format!("{path}.selectableFields"),
            seen.len() as i64,
            MAX_SELECTABLE as i64,
        ));
    }
}

/// What is wrong with the versions that objects may be stored in.
pub fn stored_versions(stored: &[Value], spec: &Value, problems: &mut Problems) {
    const FIELD: &str = "status.storedVersions";
    if stored.is_empty() {
        problems.push(Problem::invalid(
            FIELD,
            &Value::Null,
            "must have at least one stored version",
        ));
        return;
    }
    // By name, the last place of each; a version that comes twice is found once.
    let mut left: Vec<(usize, &str)> = stored
        .iter()
        .map(|name| name.as_str().unwrap_or(""))
        .enumerate()
        .collect();
    let places = left.clone();
    left.retain(|(i, name)| {
        !places
            .iter()
            .any(|(later, other)| later > i && other == name)
    });
    for version in list(spec, "versions") {
        let name = text(version, "name");
        let before = left.len();
        left.retain(|(_, stored)| *stored != name);
        if version["storage"] == true && left.len() == before {
            let detail = format!("must have the storage version {name}");
            problems.push(Problem::invalid(FIELD, &stored.to_vec().into(), &detail));
        }
    }
    for (i, name) in left {
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage \
             migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        problems.push(Problem::invalid(
            &format!("{FIELD}[{i}]"),
            &name.into(),
            &detail,
        ));
    }
}

const APPROVAL: &str = "api-approved.kubernetes.io";

/// Groups of the Kubernetes project need a link to the approval of the API.
pub fn approval(
    group: &str,
    annotations: Option<&Map<String, Value>>,
    old: Option<Option<&Map<String, Value>>>,
    problems: &mut Problems,
) {
    let protected = |suffix: &str| group == suffix || group.ends_with(&format!(".{suffix}"));
    if !protected("k8s.io") && !protected("kubernetes.io") {
        return;
    }
    let value = |map: Option<&Map<String, Value>>| {
        map.and_then(|m| m.get(APPROVAL))
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    let state = |text: &str| match text {
        "" => 0,
        t if t.starts_with("unapproved") => 1,
        t if t.contains("://") => 2,
        _ => 3,
    };
    let now = value(annotations);
    if old.is_some_and(|old| state(&value(old)) == state(&now)) {
        return;
    }
    let field = format!("metadata.annotations[{APPROVAL}]");
    match state(&now) {
        0 => {
            let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
                          https://github.com/kubernetes/enhancements/pull/1111";
            problems.push(Problem::required(&field, detail));
        }
        3 => {
            let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111";
            problems.push(Problem {
                reason: "FieldValueInvalid",
                path: field,
                text: format!("Invalid value: {}: {detail}", gofmt::quoted(&now)),
            });
        }
        _ => {}
    }
}

//! `cargo xtask crds --compare DIR`: our CRDs beside those of Argo CD, without their descriptions.
//!
//! Main function: [`run`]. Each difference is either one of [`INTENDED`], with its reason, or an
//! error.

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};
use tiphys_gocompat::yaml;

/// The differences that are meant, by the end of their path and who has the field.
const INTENDED: [Intended; 5] = [
    Intended {
        ends: &[
            "template/properties",
            "template/required",
            "template/x-kubernetes-preserve-unknown-fields",
        ],
        below: "/generators/",
        reason: "templates of generators are open: two dozen copies of an Application's spec would \
                 make the definition too large for a client-side `kubectl apply`; the controller \
                 checks them",
    },
    Intended {
        ends: &["values/x-kubernetes-list-type"],
        below: "/matchExpressions/",
        reason: LIST_TYPE,
    },
    Intended {
        ends: &["matchExpressions/x-kubernetes-list-type"],
        below: "/properties/",
        reason: LIST_TYPE,
    },
    Intended {
        ends: &[
            "selector/x-kubernetes-map-type",
            "labelSelector/x-kubernetes-map-type",
        ],
        below: "/generators/",
        reason: "a selector is not atomic: only two owners of its fields by server-side apply \
                 notice that",
    },
    Intended {
        ends: &["/subresources"],
        below: "/spec/versions/",
        reason: "no subresources are written as an empty map, which means the same",
    },
];

const LIST_TYPE: &str = "a list is atomic unless its type says otherwise, so it is not said";

struct Intended {
    ends: &'static [&'static str],
    below: &'static str,
    reason: &'static str,
}

/// A field in which two definitions differ. `None`: one of them does not have it.
#[derive(Debug, PartialEq)]
struct Difference {
    path: String,
    ours: Option<Value>,
    theirs: Option<Value>,
}

impl Difference {
    /// Why it is meant, if it is. A value that both have and that differs never is.
    fn reason(&self) -> Option<&'static str> {
        let alone = match (&self.ours, &self.theirs) {
            (Some(_), Some(_)) => return None,
            (ours, theirs) => ours.as_ref().or(theirs.as_ref())?,
        };
        let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
        let fits = |intended: &&Intended| {
            self.path.contains(intended.below)
                && intended.ends.iter().any(|end| self.path.ends_with(end))
                && (!self.path.ends_with("/subresources") || is_empty(alone))
        };
        INTENDED.iter().find(fits).map(|intended| intended.reason)
    }

    fn line(&self) -> String {
        let shown = |value: &Option<Value>| match value {
            None => "nothing".to_owned(),
            Some(value) => value.to_string().chars().take(120).collect(),
        };
        let (ours, theirs) = (shown(&self.ours), shown(&self.theirs));
        format!("{}: ours {ours}, theirs {theirs}", self.path)
    }
}

/// Compares the definitions `ours` with those of the same names in the YAML files of a folder.
///
/// # Errors
/// If the folder has none of them, or there are differences that are not meant.
pub fn run(ours: &[String], folder: &Path) -> anyhow::Result<()> {
    let genuine = definitions(folder)?;
    let (mut compared, mut unexpected) = (0, 0);
    for text in ours {
        for ours in parsed(text)? {
            let name = name(&ours);
            let Some(theirs) = genuine.get(&name) else {
                println!("{name}: not in {}", folder.display());
                continue;
            };
            compared += 1;
            let found = differences(&ours, theirs);
            unexpected += report(&name, &found);
        }
    }
    ensure!(
        compared > 0,
        "{} has no definition of ours",
        folder.display()
    );
    if unexpected > 0 {
        bail!("{unexpected} differences that are not meant: see xtask/src/crds/compare.rs");
    }
    Ok(())
}

/// Prints the differences of one definition; the number of those that are not meant.
fn report(name: &str, found: &[Difference]) -> usize {
    let mut meant: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unexpected = 0;
    for difference in found {
        if let Some(reason) = difference.reason() {
            *meant.entry(reason).or_default() += 1;
        } else {
            unexpected += 1;
            println!("{name}: {}", difference.line());
        }
    }
    for (reason, times) in meant {
        println!("{name}: {times} times: {reason}");
    }
    if found.is_empty() {
        println!("{name}: no differences");
    }
    unexpected
}

/// The definitions in the YAML files of a folder, by their names.
fn definitions(folder: &Path) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut found = BTreeMap::new();
    let files = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for file in files {
        let path = file?.path();
        let is_yaml = path.extension().is_some_and(|e| e == "yaml" || e == "yml");
        if is_yaml && path.is_file() {
            let text = fs::read_to_string(&path)?;
            let documents = parsed(&text).with_context(|| path.display().to_string())?;
            found.extend(documents.into_iter().map(|crd| (name(&crd), crd)));
        }
    }
    Ok(found)
}

/// The definitions of a text, without descriptions.
fn parsed(text: &str) -> anyhow::Result<Vec<Value>> {
    let documents = yaml::parse_documents(text, &yaml::Limits::default())?;
    let values = documents.into_iter().map(|document| document.value);
    let crds = values.filter(|value| value["kind"] == "CustomResourceDefinition");
    Ok(crds
        .map(|mut crd| {
            drop_descriptions(&mut crd);
            crd
        })
        .collect())
}

fn name(crd: &Value) -> String {
    let name = crd["metadata"]["name"].as_str();
    name.unwrap_or_default().to_owned()
}

/// A property can be named `description` too: that is a schema, and stays.
fn drop_descriptions(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| key != "description" || !value.is_string());
            map.values_mut().for_each(drop_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_descriptions),
        _ => {}
    }
}

fn differences(ours: &Value, theirs: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    collect("", Some(ours), Some(theirs), &mut found);
    found
}

fn collect(path: &str, ours: Option<&Value>, theirs: Option<&Value>, found: &mut Vec<Difference>) {
    match (ours, theirs) {
        (Some(Value::Object(ours)), Some(Value::Object(theirs))) => {
            let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
            for key in keys {
                let path = format!("{path}/{key}");
                collect(&path, ours.get(key), theirs.get(key), found);
            }
        }
        // In these lists of a schema the order says nothing.
        (Some(Value::Array(ours)), Some(Value::Array(theirs)))
            if path.ends_with("/required") || path.ends_with("/enum") =>
        {
            let sorted = |items: &[Value]| {
                let mut items: Vec<String> = items.iter().map(Value::to_string).collect();
                items.sort();
                items
            };
            if sorted(ours) != sorted(theirs) {
                found.push(difference(
                    path,
                    Some(&ours.clone().into()),
                    Some(&theirs.clone().into()),
                ));
            }
        }
        (Some(Value::Array(ours)), Some(Value::Array(theirs))) => {
            for i in 0..ours.len().max(theirs.len()) {
                let path = format!("{path}/{i}");
                collect(&path, ours.get(i), theirs.get(i), found);
            }
        }
        (ours, theirs) if ours != theirs => found.push(difference(path, ours, theirs)),
        _ => {}
    }
}

fn difference(path: &str, ours: Option<&Value>, theirs: Option<&Value>) -> Difference {
    Difference {
        path: path.to_owned(),
        ours: ours.cloned(),
        theirs: theirs.cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(schema: &str, more: &str) -> String {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
             metadata: {{name: widgets.example.com}}\n\
             spec: {{versions: [{{name: v1, schema: {{openAPIV3Schema: {schema}}}{more}}}]}}\n"
        )
    }

    fn compared(ours: &str, theirs: &str) -> Vec<(String, bool)> {
        let (ours, theirs) = (parsed(ours).expect("YAML"), parsed(theirs).expect("YAML"));
        differences(&ours[0], &theirs[0])
            .iter()
            .map(|found| (found.path.clone(), found.reason().is_some()))
            .collect()
    }

    #[test]
    fn descriptions_and_the_order_of_required_fields_do_not_count() {
        let ours = crd(
            "{required: [b, a], properties: {description: {type: string}}}",
            "",
        );
        let theirs = crd(
            "{description: A widget., required: [a, b], \
             properties: {description: {type: string, description: What it is.}}}",
            "",
        );
        let found = compared(&ours, &theirs);
        assert!(found.is_empty(), "{found:?}");
        let number = crd(
            "{required: [a, c], properties: {description: {type: integer}}}",
            "",
        );
        let schema = "/spec/versions/0/schema/openAPIV3Schema";
        assert_eq!(
            compared(&ours, &number),
            [
                (format!("{schema}/properties/description/type"), false),
                (format!("{schema}/required"), false),
            ]
        );
    }

    #[test]
    fn what_is_meant_has_a_reason() {
        let template = |template: &str| {
            crd(
                &format!(
                    "{{properties: {{generators: {{items: {{properties: {{template: {template}}}}}}}}}}}"
                ),
                "",
            )
        };
        let open = template("{type: object, x-kubernetes-preserve-unknown-fields: true}");
        let whole =
            template("{type: object, required: [spec], properties: {spec: {type: object}}}");
        let found = compared(&open, &whole);
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|(_, meant)| *meant), "{found:?}");
        let other = template("{type: string}");
        assert!(compared(&open, &other).iter().any(|(_, meant)| !meant));
        let plain = crd("{}", "");
        for (ours, meant) in [("{}", true), ("{status: {}}", false)] {
            let found = compared(&crd("{}", &format!(", subresources: {ours}")), &plain);
            let path = "/spec/versions/0/subresources".to_owned();
            assert_eq!(found, [(path, meant)]);
        }
    }

    #[test]
    fn a_folder_without_our_definitions_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let ours = [crd("{type: object}", "")];
        let refused = run(&ours, folder.path()).expect_err("nothing to compare");
        assert!(refused.to_string().ends_with("has no definition of ours"));
        let file = folder.path().join("widgets.yaml");
        fs::write(&file, crd("{type: object}", "")).expect("written");
        run(&ours, folder.path()).expect("no differences");
        fs::write(&file, crd("{type: string}", "")).expect("written");
        let refused = run(&ours, folder.path()).expect_err("another type");
        assert!(
            refused.to_string().starts_with("1 differences"),
            "{refused}"
        );
    }
}

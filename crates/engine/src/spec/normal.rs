//! The normal form of a spec: with the project filled in and empty fields removed. Argo CD's
//! controller and server write it back.
//!
//! Main functions: [`normalize`], and [`normalize_document`] for a spec with unknown fields.

use serde_json::Value;
use tiphys_api::{
    application::{ApplicationSpec, SyncPolicy},
    source::ApplicationSource,
};

const PROJECT: &str = "default";

/// Normalizes a spec. Returns whether that changed it.
pub fn normalize(spec: &mut ApplicationSpec) -> bool {
    if is_normal(spec) {
        return false;
    }
    if spec.project.is_empty() {
        PROJECT.clone_into(&mut spec.project);
    }
    spec.sync_policy
        .take_if(|policy| *policy == SyncPolicy::default());
    let several = !spec.sources.is_empty();
    for source in spec
        .sources
        .iter_mut()
        .chain(spec.source.as_mut().filter(|_| !several))
    {
        source
            .kustomize
            .take_if(|kustomize| **kustomize == Default::default());
        source.helm.take_if(|helm| **helm == Default::default());
        source
            .directory
            .take_if(|directory| **directory == Default::default());
    }
    true
}

/// Whether a spec is in its normal form.
pub fn is_normal(spec: &ApplicationSpec) -> bool {
    // With several sources, `source` is not used.
    let one = spec.source.as_ref().filter(|_| spec.sources.is_empty());
    let empty_policy = spec
        .sync_policy
        .as_ref()
        .is_some_and(|policy| *policy == SyncPolicy::default());
    !spec.project.is_empty()
        && !empty_policy
        && spec
            .sources
            .iter()
            .chain(one)
            .all(|source| empty_parts(source).is_empty())
}

/// Like [`normalize`], for a stored spec; a document that cannot be parsed is left unchanged.
pub fn normalize_document(document: &mut Value) -> bool {
    let Ok(mut spec) = serde_json::from_value::<ApplicationSpec>(document.clone()) else {
        return false;
    };
    let empty: Vec<Vec<&str>> = spec.sources.iter().map(empty_parts).collect();
    let empty_of_one = spec
        .source
        .as_ref()
        .filter(|_| spec.sources.is_empty())
        .map(empty_parts)
        .unwrap_or_default();
    let had_policy = spec.sync_policy.is_some();
    if !normalize(&mut spec) || !document.is_object() {
        return false;
    }
    document["project"] = spec.project.into();
    if had_policy && spec.sync_policy.is_none() {
        remove(document, &["syncPolicy"]);
    }
    if let Some(source) = document.get_mut("source") {
        remove(source, &empty_of_one);
    }
    let sources = document.get_mut("sources").and_then(Value::as_array_mut);
    sources
        .into_iter()
        .flatten()
        .zip(&empty)
        .for_each(|(source, empty)| remove(source, empty));
    true
}

/// The fields of a source that are present but empty.
fn empty_parts(source: &ApplicationSource) -> Vec<&'static str> {
    let kustomize = source
        .kustomize
        .as_ref()
        .is_some_and(|part| **part == Default::default());
    let helm = source
        .helm
        .as_ref()
        .is_some_and(|part| **part == Default::default());
    let directory = source
        .directory
        .as_ref()
        .is_some_and(|part| **part == Default::default());
    [
        ("kustomize", kustomize),
        ("helm", helm),
        ("directory", directory),
    ]
    .into_iter()
    .filter_map(|(name, is)| is.then_some(name))
    .collect()
}

fn remove(from: &mut Value, names: &[&str]) {
    if let Value::Object(map) = from {
        names.iter().for_each(|name| drop(map.remove(*name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Specs (without `destination`), and their normal forms.
    fn table() -> Vec<(Value, Value)> {
        let source = |parts: Value| {
            let mut source = json!({"repoURL": "r"});
            parts
                .as_object()
                .into_iter()
                .flatten()
                .for_each(|(name, part)| source[name] = part.clone());
            source
        };
        let full = json!({"helm": {"values": "a: 1"}, "kustomize": {"namePrefix": "a-"}, "directory": {"recurse": true}, "plugin": {}});
        let empty = json!({"helm": {"valueFiles": []}, "kustomize": {}, "directory": {"recurse": false, "jsonnet": {}}, "plugin": {}, "new": 1});
        let rest = json!({"plugin": {}, "new": 1});
        vec![
            (json!({}), json!({"project": "default"})),
            (
                json!({"project": "", "new": {}}),
                json!({"project": "default", "new": {}}),
            ),
            (
                json!({"project": "p", "syncPolicy": {}}),
                json!({"project": "p"}),
            ),
            (
                json!({"project": "p", "syncPolicy": {"syncOptions": []}}),
                json!({"project": "p"}),
            ),
            (
                json!({"project": "p", "syncPolicy": {"automated": {}}}),
                json!({"project": "p", "syncPolicy": {"automated": {}}}),
            ),
            (
                json!({"project": "p", "source": source(full.clone())}),
                json!({"project": "p", "source": source(full.clone())}),
            ),
            (
                json!({"project": "p", "source": source(empty.clone())}),
                json!({"project": "p", "source": source(rest.clone())}),
            ),
            (
                json!({"project": "p", "source": source(empty.clone()), "sources": [source(full.clone()), source(empty.clone())]}),
                json!({"project": "p", "source": source(empty), "sources": [source(full), source(rest)]}),
            ),
        ]
    }

    #[test]
    fn the_normal_form_leaves_out_what_says_nothing_and_keeps_what_is_not_known() {
        let read = |value: &Value| {
            serde_json::from_value::<ApplicationSpec>(value.clone()).expect("a specification")
        };
        for (from, to) in table() {
            let (mut document, mut spec) = (from.clone(), read(&from));
            assert_eq!(
                (normalize_document(&mut document), normalize(&mut spec)),
                (from != to, from != to),
                "{from}"
            );
            assert_eq!(document, to, "{from}");
            assert_eq!(spec, read(&to), "{from}");
            assert!(
                is_normal(&spec) && !normalize_document(&mut document),
                "once is enough: {from}"
            );
        }
        let mut unreadable = json!({"project": 1, "syncPolicy": {}});
        assert!(
            !normalize_document(&mut unreadable)
                && unreadable == json!({"project": 1, "syncPolicy": {}})
        );
    }
}

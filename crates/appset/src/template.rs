//! Templates of Applications: of the set and of its generators, rendered and patched.
//!
//! Main functions: [`merged`], [`application`] and [`patched`].

use crate::error::{GenerateError, Place};
use crate::field_names::spelled;
use crate::params::Params;
use crate::render::Renderer;
use serde_json::{Map, Value as Json};
use std::fmt;
use std::sync::LazyLock;
use tiphys_api::Application;
use tiphys_api::application_set::{ApplicationSetSyncPolicy, ApplicationSetTemplate};
use tiphys_apimachinery::patch::strategic;
use tiphys_apimachinery::schema::{Schema, crd};
use tiphys_gocompat::yaml::{self, Duplicates};

/// Deletes the resources of an Application with it.
pub const RESOURCES_FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

/// How deep templates may be nested.
const DEPTH: usize = 200;

/// The template of a generator over that of the set: what it has wins, lists whole. The result is
/// the JSON of an Application.
pub(crate) fn merged(
    own: &ApplicationSetTemplate,
    set: &ApplicationSetTemplate,
) -> Result<Json, GenerateError> {
    let json = |template: &ApplicationSetTemplate| {
        serde_json::to_value(template).map_err(|e| GenerateError::content(e.to_string()))
    };
    let mut template = json(own)?;
    fill(&mut template, &json(set)?, 0);
    Ok(template)
}

fn fill(into: &mut Json, from: &Json, depth: usize) {
    if is_zero(into) {
        into.clone_from(from);
        return;
    }
    if let (Json::Object(into), Json::Object(from), true) = (into, from, depth < DEPTH) {
        for (key, value) in from {
            match into.get_mut(key) {
                // Values are opaque: one wins as a whole.
                Some(old) if key == "valuesObject" && !old.is_null() => {}
                Some(old) => fill(old, value, depth + 1),
                None => {
                    into.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

fn is_zero(json: &Json) -> bool {
    match json {
        Json::Null => true,
        Json::Bool(value) => !value,
        Json::Number(number) => number.as_f64() == Some(0.0),
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(_) => false,
    }
}

/// Renders a template; without parameters it stays as it is.
pub fn application(
    template: &Json,
    params: &Params,
    renderer: &Renderer<'_>,
    policy: Option<&ApplicationSetSyncPolicy>,
) -> Result<Application, GenerateError> {
    let decode = |json: Json| {
        serde_json::from_value::<Application>(json)
            .map_err(|e| GenerateError::content(e.to_string()))
    };
    if params.is_empty() {
        renderer.charge(memory(template))?;
        return decode(template.clone());
    }
    let mut app = match renderer.with(params).read::<Application>(template) {
        Some(app) => app,
        None => decode(renderer.with(params).json(template)?)?,
    };
    let preserved = policy.is_some_and(|policy| policy.preserve_resources_on_deletion);
    if !preserved && app.metadata.finalizers.is_empty() {
        app.metadata.finalizers = vec![RESOURCES_FINALIZER.to_owned()];
    }
    Ok(app)
}

/// The memory of a document, about.
fn memory(json: &Json) -> usize {
    let content = match json {
        Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(memory).sum(),
        Json::Object(members) => members
            .iter()
            .map(|(key, value)| key.len() + memory(value))
            .sum(),
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
    };
    size_of::<Json>() + content
}

/// Renders `templatePatch` and applies it. The project cannot be patched.
pub(crate) fn patched(
    app: Application,
    patch: &str,
    params: &Params,
    renderer: &Renderer<'_>,
) -> Result<Application, GenerateError> {
    // The text and what it says go; what they add to the Application stays.
    let mut copied = 0;
    let patched = renderer.passing(|| {
        let text = renderer
            .with(params)
            .text(patch)
            .at("error replacing values in templatePatch")?;
        match parsed(&text, &mut copied)? {
            Some(patch) => {
                renderer.charge(memory(&patch))?;
                apply(app, patch)
            }
            None => Ok((app, 0)),
        }
    });
    // Copies go, too, but each of 100,000 patches takes the time to make them.
    let counted = renderer.charge(copied);
    let (app, added) = patched?;
    counted?;
    renderer.charge(added)?;
    Ok(app)
}

/// Applies the text of a patch, YAML or JSON. Names of fields may be in any case.
pub fn apply_patch(app: Application, text: &str) -> Result<Application, GenerateError> {
    match parsed(text, &mut 0)? {
        Some(patch) => apply(app, patch).map(|(app, _)| app),
        None => Ok(app),
    }
}

fn invalid(why: impl fmt::Display) -> GenerateError {
    GenerateError::content(format!("invalid templatePatch: {why}"))
}

/// The patch that a text is; `None`: it changes nothing. What aliases copy is added to `copied`.
fn parsed(text: &str, copied: &mut usize) -> Result<Option<Json>, GenerateError> {
    // Argo CD takes what begins like JSON for JSON, whatever YAML would make of it.
    let patch = match text.trim_start().starts_with('{') {
        true => serde_json::from_str::<Json>(text).map_err(invalid)?,
        false => crate::document(text, copied).map_err(invalid)?,
    };
    match patch {
        Json::Null => Ok(None),
        Json::Object(_) => Ok(Some(patch)),
        _ => Err(invalid("it is not a map")),
    }
}

/// The Application with a patch, and how much more memory it takes.
fn apply(app: Application, patch: Json) -> Result<(Application, usize), GenerateError> {
    let root = SCHEMA
        .as_ref()
        .and_then(Schema::root)
        .ok_or_else(|| invalid("the schema is missing"))?;
    serde_json::from_value::<Application>(spelled(without_nulls(&patch), root)).map_err(invalid)?;
    let project = app.spec.project.clone();
    let original = serde_json::to_value(&app).map_err(invalid)?;
    let before = memory(&original);
    // A field in another case is one that the original lacks, and is found when the result is read.
    let document = strategic::apply_owned(original, patch, root)
        .map_err(|e| GenerateError::content(format!("error while applying templatePatch: {e}")))?;
    let added = memory(&document).saturating_sub(before);
    let mut app: Application = serde_json::from_value(spelled(document, root)).map_err(invalid)?;
    app.spec.project = project;
    Ok((app, added))
}

/// Without the members that remove something, for checking the types of the others.
fn without_nulls(json: &Json) -> Json {
    match json {
        Json::Object(members) => Json::Object(
            members
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key.clone(), without_nulls(value)))
                .collect::<Map<_, _>>(),
        ),
        other => other.clone(),
    }
}

/// How the fields of an Application are merged: the schema of its definition.
static SCHEMA: LazyLock<Option<Schema>> = LazyLock::new(|| {
    let text = include_str!("../../../deploy/crds/application-crd.yaml");
    let crd = yaml::parse_document(text, &yaml::Limits::default(), Duplicates::LastWins).ok()?;
    crd::from_structural(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]).ok()
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{
        MOST_MADE,
        tests::{left, sources},
    };

    /// 20 KB of values in each: what is made on the way and goes would not fit with them.
    #[test]
    fn ten_thousand_applications_with_a_thousand_values_each_fit() {
        const APPLICATIONS: usize = 10_000;
        let values = (0..1_000).map(|n| (format!("key{n:04}"), Json::from(format!("{n:07}"))));
        let values: Json = Json::Object(values.collect());
        assert_eq!(values.to_string().len(), 20_001);
        let with_values = serde_json::json!({"spec": {"source": {"helm": {
            "valuesObject": values,
        }}}});
        let mut template = app();
        template["spec"]["source"]["helm"] = with_values["spec"]["source"]["helm"].clone();
        let labels = r#"{"metadata": {"labels": {"a": "b"}}}"#.to_owned();
        for (template, patch) in [(template, labels), (app(), with_values.to_string())] {
            let mut sources = sources();
            let renderer = Renderer::new(true, &[], &mut sources);
            let params = Params::from([("a".to_owned(), "b".into())]);
            let made = application(&template, &params, &renderer, None)
                .and_then(|app| patched(app, &patch, &params, &renderer));
            made.expect("an Application");
            let one = MOST_MADE - left(&renderer);
            assert!(one > 20_000, "what stays is counted: {one}");
            assert!(one * APPLICATIONS < MOST_MADE, "{one}");
        }
    }

    #[test]
    fn numbers_of_templates_and_patches_count_as_memory() {
        let numbers = serde_json::json!({"spec": {"source": {"helm": {"valuesObject": {
            "a": vec![0; 100],
        }}}}});
        let target: Application = serde_json::from_value(app()).expect("an Application");
        let mut template = app();
        template["spec"]["source"]["helm"] = numbers["spec"]["source"]["helm"].clone();
        // Their texts alone take less than a thousand bytes.
        for (left, is_enough) in [(10_000, true), (1_000, false)] {
            let (mut first, mut second) = (sources(), sources());
            let (params, patch) = (Params::new(), numbers.to_string());
            let renderer = Renderer::new(true, &[], &mut first);
            renderer.charge(MOST_MADE - left).expect("most of it");
            let made = application(&template, &params, &renderer, None);
            assert_eq!(made.is_ok(), is_enough, "{left}");
            let renderer = Renderer::new(true, &[], &mut second);
            renderer.charge(MOST_MADE - left).expect("most of it");
            let made = patched(target.clone(), &patch, &params, &renderer);
            assert_eq!(made.is_ok(), is_enough, "{left}");
        }
    }

    #[test]
    fn copies_of_aliases_count_although_they_go() {
        let target: Application = serde_json::from_value(app()).expect("an Application");
        let of = |aliases: usize, rest: &str| {
            let (text, aliases) = ("x".repeat(1_000), ", *a ".repeat(aliases));
            let values = format!("{{a: &a {text}, b: [a {aliases}]}}");
            let patch = format!("spec: {{source: {{helm: {{valuesObject: {values}}}}}}}\n{rest}\n");
            let mut sources = sources();
            let renderer = Renderer::new(true, &[], &mut sources);
            let params = Params::from([("a".to_owned(), "b".into())]);
            let made = patched(target.clone(), &patch, &params, &renderer);
            (made.is_ok(), MOST_MADE - left(&renderer))
        };
        // A patch that is refused leaves nothing but the time that it took.
        let (is_ok, copied) = of(20, "operation: 1");
        assert!(!is_ok && copied >= 20_000, "{copied}");
        let (is_ok, without) = of(0, "operation: 1");
        assert!(!is_ok && without < 2_500, "{without}");
        // What stays is counted beside the copies.
        let (is_ok, both) = of(20, "metadata: {}");
        assert!(is_ok && both >= 2 * 20_000, "{both}");
    }

    #[test]
    fn the_schema_of_applications_is_read() {
        assert!(SCHEMA.is_some());
    }

    #[test]
    fn a_patch_is_json_or_yaml_however_it_is_indented() {
        for text in [
            "{\n\t\"metadata\": {\n\t\t\"labels\": {\"a\": \"b\"}\n\t}\n}\n",
            "\n\t{\"metadata\": {\"labels\": {\"a\": \"b\"}}}",
            "metadata:\n  labels:\n    a: b\n",
            "# a comment\n{metadata: {labels: {a: b}}}",
        ] {
            let patched = apply_patch(Application::default(), text).expect(text);
            assert_eq!(patched.metadata.labels["a"], "b", "{text}");
        }
        for text in [
            "metadata:\n\tlabels: {}\n",
            // YAML, but not the JSON that they begin like.
            "{metadata: {labels: {a: b}}}",
            "{'metadata': {}}",
            "{\"metadata\": {\"labels\": {\"a\": \"b\"},}}",
            "{\"metadata\": {}}\n# a comment",
            "{\"metadata\": {}}\n---\n{}",
            "{\"metadata\": {}} x",
            "{\"spec\": {\"source\": {\"helm\": {\"valuesObject\": {\"a\": 1e400}}}}}",
        ] {
            apply_patch(Application::default(), text).expect_err(text);
        }
    }

    /// An Application with what the patches of these tests meet.
    fn app() -> Json {
        serde_json::json!({
            "metadata": {"name": "a"},
            "spec": {
                "project": "default",
                "source": {"repoURL": "https://a.test/r", "path": "p", "targetRevision": "HEAD"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "x"},
            },
        })
    }

    /// What the genuine controller makes of these patches: the path of a value, and the value.
    #[test]
    fn names_of_fields_may_be_in_any_case() {
        use serde_json::json;
        let app: Application = serde_json::from_value(app()).expect("an Application");
        for (patch, path, wanted) in [
            (
                "METADATA: {LABELS: {a: b}}",
                "/metadata/labels",
                json!({"a": "b"}),
            ),
            (
                "metadata: {Labels: {a: b, A: c}}",
                "/metadata/labels",
                json!({"A": "c", "a": "b"}),
            ),
            // What the template has is read last.
            ("spec: {Source: {path: q}}", "/spec/source/path", json!("p")),
            (
                "spec: {Source: {chart: c}}",
                "/spec/source/chart",
                json!("c"),
            ),
            ("spec: {source: {Path: q}}", "/spec/source/path", json!("p")),
            (
                "spec: {source: {targetrevision: v1}}",
                "/spec/source/targetRevision",
                json!("v1"),
            ),
            (
                "spec: {\u{17f}ource: {path: q}}",
                "/spec/source/path",
                json!("q"),
            ),
            (
                "spec: {sourcE: {ref: a}, SOURCE: {ref: b}}",
                "/spec/source/ref",
                json!("a"),
            ),
            (
                "spec: {syncPolicy: {Automated: {Prune: true, selfheal: true}}}",
                "/spec/syncPolicy/automated",
                json!({"prune": true, "selfHeal": true}),
            ),
            (
                "spec: {source: {helm: {parameters: [{Name: a, VALUE: b}]}}}",
                "/spec/source/helm/parameters",
                json!([{"name": "a", "value": "b"}]),
            ),
            (
                "spec: {source: {helm: {ValuesObject: {A: 1, a: 2}}}}",
                "/spec/source/helm/valuesObject",
                json!({"A": 1, "a": 2}),
            ),
            (
                "spec: {destination: {server: null, Name: e}}",
                "/spec/destination/name",
                json!("e"),
            ),
            ("Spec: {Project: other}", "/spec/project", json!("default")),
            (
                "Operation: {sync: {revision: r}}",
                "/operation/sync/revision",
                json!("r"),
            ),
        ] {
            let patched = apply_patch(app.clone(), patch).expect(patch);
            let patched = serde_json::to_value(&patched).expect("JSON");
            assert_eq!(patched.pointer(path), Some(&wanted), "{patch}");
        }
        for patch in [
            "Spec: 1",
            "spec: {Source: 1}",
            "spec: {Project: [1]}",
            "spec: {syncPolicy: {retry: {Limit: x}}}",
            "Metadata: {labels: {a: 1}}",
        ] {
            apply_patch(app.clone(), patch).expect_err(patch);
        }
    }

    /// A member that is there twice is read twice, and nothing of the first is lost that the
    /// second lacks; opaque values are read whole.
    #[test]
    fn spellings_are_read_one_over_the_other() {
        let root = SCHEMA.as_ref().and_then(Schema::root).expect("a root");
        let document = serde_json::json!({"spec": {
            "Source": {"path": "a", "ref": "r", "helm": {"valuesObject": {"a": 1}}},
            "source": {"path": "b", "helm": {"valuesObject": {"b": 2}}},
        }});
        let wanted = serde_json::json!({"spec": {"source": {
            "path": "b", "ref": "r", "helm": {"valuesObject": {"b": 2}},
        }}});
        assert_eq!(spelled(document, root), wanted);
    }
}

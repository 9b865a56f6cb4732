//! The target for kustomizations: a few files, rendered in process as for an Application, within the
//! usual budget.
//!
//! Main function: [`run`]; what is nested is [`NESTED`].

use super::{
    helm,
    nested::{Nested, nest},
    targets::holds,
};
use serde_json::{Map, Value, json};
use std::{fmt::Write as _, sync::Arc};
use tiphys_api::source::ApplicationSource;
use tiphys_gocompat::{sprig, yaml};
use tiphys_render::{
    AppFacts, Budget, Charts, MemoryFiles, RenderError, RenderParams, Rendered, SourceSet, prepare,
    render,
};

/// An object without fields of its own.
const OBJECT: &str = "kind: X\nmetadata: {name: x}\n";
const COMPONENT: &str = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";

/// The same chance and time at every render.
struct Fixed;

impl Charts for Fixed {
    fn sources(&self) -> Arc<dyn Fn() -> sprig::Sources + Send + Sync> {
        Arc::new(helm::sources)
    }
}

/// `{path: content, ...}`, where a content that is no text stands for itself in YAML. The folder is
/// `app`, and what is under `spec` is the Application's `spec.source.kustomize`.
pub fn run(input: &[u8]) -> Result<(), String> {
    let Ok(Value::Object(mut parts)) = serde_json::from_slice::<Value>(input) else {
        return Ok(());
    };
    let own = parts.remove("spec").unwrap_or_else(|| json!({}));
    let file = |(path, content): (String, Value)| {
        let text = match content {
            Value::String(text) => text,
            other => yaml::to_string(&other),
        };
        (path, text.into_bytes())
    };
    let files = MemoryFiles(parts.into_iter().map(file).collect());
    let params = RenderParams {
        source: source(own),
        app: AppFacts {
            name: "shop".to_owned(),
            revision: "0123456789012345678901234567890123456789".to_owned(),
            ..AppFacts::default()
        },
        ..RenderParams::default()
    };
    // Enough for what inputs have; a worker has half a gigabyte and a minute.
    let budget = Budget {
        kustomize_bytes: 16 << 20,
        ..Budget::default()
    };
    let rendered = built(&files, &params, &budget);
    // Results are remembered by what was read, so nothing else may decide them.
    holds(
        built(&files, &params, &budget) == rendered,
        "the same files have the same result",
    )?;
    match rendered {
        Ok(rendered) => holds(
            rendered.objects.len() <= budget.objects,
            "the objects are within the budget",
        ),
        Err(error) => holds(!error.to_string().is_empty(), "an error says something"),
    }
}

/// A source with these options, or without any if they cannot be read.
fn source(kustomize: Value) -> ApplicationSource {
    let read = |kustomize: Value| {
        let source =
            json!({"repoURL": "https://example.com/r", "path": "app", "kustomize": kustomize});
        serde_json::from_value::<ApplicationSource>(source)
    };
    read(kustomize)
        .or_else(|_| read(json!({})))
        .unwrap_or_default()
}

fn built(
    files: &MemoryFiles,
    params: &RenderParams,
    budget: &Budget,
) -> Result<Rendered, RenderError> {
    let sources = SourceSet::new(files);
    render(&sources, &prepare(&sources, params)?, &Fixed, budget)
}

/// An input with these files.
fn files(parts: &[(&str, &str)]) -> String {
    let parts = parts
        .iter()
        .map(|(path, text)| ((*path).to_owned(), Value::from(*text)));
    Value::Object(parts.collect::<Map<_, _>>()).to_string()
}

/// An input whose one object a kustomization changes.
fn changed(kustomization: &str, object: &str, patch: &str) -> String {
    files(&[
        (
            "app/kustomization.yaml",
            &format!("resources: [a.yaml]\n{kustomization}"),
        ),
        ("app/a.yaml", object),
        ("app/p.yaml", patch),
    ])
}

/// Kustomizations, each of which names the next one.
fn chain(levels: usize, head: &str, field: &str) -> String {
    let levels = levels.min(2_000);
    let mut parts = Map::new();
    let mut add = |folder: String, text: String| {
        parts.insert(format!("{folder}/kustomization.yaml"), text.into());
    };
    add("app".to_owned(), format!("{field}: [../l0]\n"));
    for level in 0..levels {
        let text = format!("{head}{field}: [../l{}]\n", level + 1);
        add(format!("l{level}"), text);
    }
    add(format!("l{levels}"), format!("{head}namePrefix: x-\n"));
    Value::Object(parts).to_string()
}

/// JSON patches, each of which adds a level to what the one before it added.
fn deeper(levels: usize) -> String {
    let add = |level: usize| {
        let path = "/a".repeat(level);
        format!("- {{op: add, path: {path}, value: {{}}}}\n")
    };
    let patch: String = (1..levels.min(1_000)).map(add).collect();
    changed(
        "patches: [{path: p.yaml, target: {kind: X}}]\n",
        OBJECT,
        &patch,
    )
}

/// The same replacement many times over; each works on what the one before it left.
fn replaced(times: usize, replacement: &str, object: &str) -> String {
    let mut text = "replacements:\n".to_owned();
    for _ in 0..times.min(40) {
        // Writing to a String does not fail.
        let _ = writeln!(text, "- {replacement}");
    }
    changed(&text, object, "")
}

pub const NESTED: &[Nested] = &[
    |n| files(&[("app/kustomization.yaml", &nest("[", "1", "]", n))]),
    |n| changed("", &format!("{OBJECT}a: {}", nest("{a: ", "1", "}", n)), ""),
    |n| {
        let deep = format!("{OBJECT}a: {}", nest("{a: ", "1", "}", n));
        changed("patches: [{path: p.yaml}]\n", &deep, &deep)
    },
    deeper,
    |n| {
        let schema = nest("{\"properties\":{\"a\":", "{}", "}}", n);
        let schema = format!("{{\"definitions\":{{\"x\":{schema}}}}}");
        changed("openapi: {path: p.yaml}\n", OBJECT, &schema)
    },
    |n| {
        let path = ".a".repeat(n);
        let replacement = format!(
            "{{source: {{kind: X}}, targets: [{{select: {{kind: X}}, fieldPaths: [spec{path}], options: {{create: true}}}}]}}"
        );
        replaced(1, &replacement, OBJECT)
    },
    |n| chain(n, "", "resources"),
    |n| chain(n, COMPONENT, "components"),
    // Folders that name each other.
    |_| {
        files(&[
            ("app/kustomization.yaml", "resources: [../b]\n"),
            ("b/kustomization.yaml", "resources: [../app]\n"),
        ])
    },
    // A map that each replacement puts twice into itself.
    |n| {
        replaced(
            n,
            "{source: {kind: X, fieldPath: spec}, targets: [{select: {kind: X}, fieldPaths: [spec.a, spec.b], options: {create: true}}]}",
            &format!("{OBJECT}spec: {{a: {{}}, b: {{}}}}\n"),
        )
    },
    // A text that each replacement appends to itself.
    |n| {
        replaced(
            n,
            "{source: {kind: X, fieldPath: spec.a}, targets: [{select: {kind: X}, fieldPaths: [spec.a], options: {delimiter: ',', index: 1000}}]}",
            &format!("{OBJECT}spec: {{a: x}}\n"),
        )
    },
];

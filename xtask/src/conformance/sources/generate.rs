//! Op `generate`: the manifests of a source.

use super::{Answers, list, never, text, texts, typed};
use crate::conformance::{Difference, first_difference, kustomize::NoChance};
use serde_json::Value;
use std::collections::BTreeMap;
use tiphys_api::source::ApplicationSource;
use tiphys_engine::{
    track,
    types::{Tracking, TrackingMethod},
};
use tiphys_gocompat::yaml;
use tiphys_render::{
    AppFacts, Budget, ClusterFacts, MemoryFiles, Prepared, RenderParams, Rendered, SourceFiles,
    SourceSet, Tool, kustomize, prepare, render,
};

pub const NO_NAME: &str = "an object whose name is no text is an error in the manifests, with its line; \
     Argo CD leaves it to the API server";

/// Objects and the source's type count; of errors, that there is one. Of kustomizations, so does
/// what Argo CD's edits made of the file.
pub fn run(case: &Value) -> Result<(), Difference> {
    let files = files(case);
    let refs = others(case);
    let sources = SourceSet {
        refs: refs
            .iter()
            .map(|(name, files)| (name.clone(), files as &dyn SourceFiles))
            .collect(),
        several: !refs.is_empty(),
        ..SourceSet::new(&files)
    };
    let params = params(case)?;
    let prepared = prepare(&sources, &params);
    let rendered = prepared.as_ref().map_err(Clone::clone).and_then(|p| {
        let rendered = render(&sources, p, &NoChance, &Budget::default())?;
        Ok((p, rendered))
    });
    let failed = match &rendered {
        Ok((_, rendered)) => rendered.errors.first().map(ToString::to_string),
        Err(e) => Some(e.to_string()),
    };
    match (failed, case["error"].as_str()) {
        // What we cannot render must not pass for what nobody can.
        (Some(failed), Some(_)) if failed.ends_with("not supported yet") => {
            return Err(failed.into());
        }
        (Some(_), Some(_)) => return Ok(()),
        (Some(failed), None) if failed.ends_with("`metadata.name` must be a string") => {
            return Err(Difference::Intended(NO_NAME.to_owned()));
        }
        (Some(failed), None) => return Err(failed.into()),
        (None, Some(error)) => return Err(format!("expected the error {error}").into()),
        (None, None) => {}
    }
    let (prepared, rendered) = rendered.map_err(|e| e.to_string())?;
    let mut answers = Answers::default();
    let kind = rendered.kind.as_str().to_owned();
    answers.note("type", text(case, "source_type"), kind, never);
    let edited = edited(case, &files, prepared)?;
    answers.note("edited kustomization", None, edited, never);
    answers.note("manifests", None, manifests(case, rendered), never);
    answers.verdict()
}

fn params(case: &Value) -> Result<RenderParams, String> {
    let mut schemes = texts(case, "values_file_schemes");
    if schemes.is_empty() {
        schemes = vec!["https".to_owned()];
    }
    Ok(RenderParams {
        source: ApplicationSource {
            repo_url: text(case, "repo_url"),
            path: text(case, "path"),
            ..typed(&case["source"])?
        },
        folder: None,
        app: AppFacts {
            name: text(case, "app_name"),
            namespace: text(case, "namespace"),
            project: text(case, "project"),
            revision: text(case, "revision"),
        },
        cluster_facts: ClusterFacts {
            kube_version: text(case, "kube_version"),
            api_versions: texts(case, "api_versions").into(),
            value_file_schemes: schemes,
            kustomize_build_options: text(case, "kustomize_build_options"),
            ..ClusterFacts::default()
        },
    })
}

/// The files of the repository. A link is a copy of the file that it leads to, and one that leads
/// nowhere is no file.
fn files(case: &Value) -> MemoryFiles {
    let mut files = memory(&case["files"]);
    for (link, target) in case["symlinks"].as_object().into_iter().flatten() {
        let folder = link.rsplit_once('/').map_or("", |(folder, _)| folder);
        let target = format!("{folder}/{}", target.as_str().unwrap_or_default());
        if let Some(content) = files.0.get(&target).cloned() {
            files.0.insert(link.clone(), content);
        }
    }
    files
}

fn memory(files: &Value) -> MemoryFiles {
    let files = files.as_object().into_iter().flatten();
    MemoryFiles::new(files.filter_map(|(path, text)| Some((path.as_str(), text.as_str()?))))
}

fn others(case: &Value) -> BTreeMap<String, MemoryFiles> {
    let others = case["ref_sources"].as_object().into_iter().flatten();
    others
        .map(|(name, files)| (name.clone(), memory(files)))
        .collect()
}

/// What is wrong with the edited kustomization.
fn edited(
    case: &Value,
    files: &MemoryFiles,
    prepared: &Prepared,
) -> Result<Option<String>, String> {
    let (Tool::Kustomize(options), Some(expected)) = (&prepared.tool, case["edited"].as_str())
    else {
        return Ok(None);
    };
    let limits = yaml::Limits::default();
    let got = kustomize::edit::edit(files, &prepared.folder, &options.edits, &limits)
        .map_err(|e| e.to_string())?
        .unwrap_or_default();
    let parsed = |text: &str| {
        let documents = yaml::parse_documents(text, &limits).map_err(|e| e.to_string())?;
        let all = documents.into_iter().map(|d| d.value);
        Ok::<_, String>(Value::Array(all.collect()))
    };
    let (expected, got) = (parsed(expected)?, parsed(&got)?);
    Ok((expected != got).then(|| first_difference(&expected, &got, "")))
}

/// What is wrong with the objects.
fn manifests(case: &Value, rendered: Rendered) -> Option<String> {
    let tracking = Tracking {
        app_name: text(case, "app_name"),
        method: match text(case, "tracking_method").as_str() {
            "label" => TrackingMethod::Label,
            "annotation+label" => TrackingMethod::AnnotationAndLabel,
            _ => TrackingMethod::Annotation,
        },
        label_key: text(case, "app_label_key"),
        installation_id: text(case, "installation_id"),
    };
    let got = rendered.objects.into_iter().map(|mut object| {
        if !tracking.label_key.is_empty() {
            track::set(&mut object, &tracking, &text(case, "namespace"));
        }
        object.into_value()
    });
    let got: Vec<Value> = got.collect();
    let expected: Vec<Value> = list(case, "manifests").cloned().collect();
    if expected.len() != got.len() {
        let names = |objects: &[Value]| -> String {
            let shown = objects
                .iter()
                .map(|o| format!("{} {}", o["kind"], o["metadata"]["name"]));
            shown.collect::<Vec<_>>().join(", ")
        };
        return Some(format!(
            "expected {}, got {}",
            names(&expected),
            names(&got)
        ));
    }
    let (expected, got) = (
        with_floats(Value::Array(expected)),
        with_floats(Value::Array(got)),
    );
    (expected != got).then(|| first_difference(&expected, &got, ""))
}

/// Large numbers as Go and our tree agree on them: 1.2e19 and 12000000000000000000 are one number.
fn with_floats(value: Value) -> Value {
    match value {
        Value::Number(n) if n.as_i64().is_none() => n.as_f64().into(),
        Value::Array(items) => items.into_iter().map(with_floats).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (key, with_floats(value)))
            .collect(),
        other => other,
    }
}

//! Suite `sources`: of the manifest generation (`generate`), plain directories with Jsonnet among
//! their files. The other cases of the suite count as failed.

use super::{Verdict, kustomize::NoChance, same, text};
use serde_json::Value;
use tiphys_api::source::ApplicationSource;
use tiphys_render::{
    AppFacts, Budget, MemoryFiles, RenderParams, SourceSet, Tool, prepare, render,
};

/// Objects count, in their order; of errors, that there is one.
pub fn run(case: &Value) -> Verdict {
    let files = case["files"].as_object();
    let files = files.into_iter().flatten();
    let files = MemoryFiles::new(
        files.filter_map(|(path, content)| Some((path.as_str(), content.as_str()?))),
    );
    let has_program = files.0.keys().any(|path| path.ends_with(".jsonnet"));
    if text(case, "op") != "generate" || !has_program {
        return Err("nothing can run this case yet".into());
    }
    let got = objects(case, &files);
    match (got, case.get("manifests")) {
        (Ok(got), Some(want)) => same(want, &got),
        (Ok(_), None) => Err(format!("expected the error {}", text(case, "error"))),
        (Err(error), Some(_)) => Err(error),
        (Err(_), None) => Ok(()),
    }
}

fn objects(case: &Value, files: &MemoryFiles) -> Result<Value, String> {
    let mut source: ApplicationSource =
        serde_json::from_value(case["source"].clone()).map_err(|error| error.to_string())?;
    source.path = text(case, "path");
    source.repo_url = text(case, "repo_url");
    let params = RenderParams {
        source,
        app: AppFacts {
            name: text(case, "app_name"),
            namespace: text(case, "namespace"),
            project: text(case, "project"),
            revision: text(case, "revision"),
        },
        ..RenderParams::default()
    };
    let sources = SourceSet::new(files);
    let prepared = prepare(&sources, &params).map_err(|error| error.to_string())?;
    if !matches!(prepared.tool, Tool::Directory(_)) {
        return Err("it is no plain directory".into());
    }
    let rendered = render(&sources, &prepared, &NoChance, &Budget::default())
        .map_err(|error| error.to_string())?;
    match rendered.errors.first() {
        Some(error) => Err(error.to_string()),
        None => Ok(rendered
            .objects
            .into_iter()
            .map(|object| Value::Object(object.0))
            .collect()),
    }
}

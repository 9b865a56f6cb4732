//! Suite `kustomize`: kustomize's own tests of whole builds.

use super::{Verdict, text};
use base64::Engine as _;
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_render::{
    Budget, Charts, MemoryFiles, SourceSet,
    helm::Sources,
    kustomize::{BuildOptions, build},
};

/// No case has a chart.
pub struct NoChance;

impl Charts for NoChance {
    fn sources(&self) -> Arc<dyn Fn() -> Sources + Send + Sync> {
        Arc::new(|| Sources {
            random: Box::new(|bytes| bytes.fill(0)),
            now: jiff::Timestamp::UNIX_EPOCH,
            zone: || jiff::tz::TimeZone::UTC,
        })
    }
}

/// The bytes of what is printed count; of errors, that there is one.
pub fn run(case: &Value) -> Verdict {
    let files = files(case)?;
    let flags = case["flags"].as_array().into_iter().flatten();
    let flags: Vec<&str> = flags.filter_map(Value::as_str).collect();
    let options = match BuildOptions::from_flags(flags) {
        Ok(options) => options,
        // A flag that is refused is an error as well.
        Err(_) if case["expected_yaml"].is_null() => return Ok(()),
        Err(refused) => return Err(refused),
    };
    let target = text(case, "target");
    let folder = target.trim_start_matches("./").trim_matches('/');
    let folder = if folder == "." { "" } else { folder };
    let sources = SourceSet::new(&files);
    let built = build(&sources, folder, &options, &NoChance, &Budget::default());
    let got = built.and_then(|built| built.yaml());
    match (got, case["expected_yaml"].as_str()) {
        (Ok(got), Some(want)) if got == want => Ok(()),
        (Ok(got), Some(want)) => Err(first_line_that_differs(want, &got)),
        (Ok(_), None) => Err(format!("expected the error {}", text(case, "error"))),
        (Err(error), Some(_)) => Err(error.to_string()),
        (Err(_), None) => Ok(()),
    }
}

fn files(case: &Value) -> Result<MemoryFiles, String> {
    let mut files = BTreeMap::new();
    for (path, content) in case["files"].as_object().into_iter().flatten() {
        let content = content.as_str().unwrap_or_default().as_bytes().to_vec();
        files.insert(path.trim_start_matches('/').to_owned(), content);
    }
    for (path, content) in case["files_b64"].as_object().into_iter().flatten() {
        let content = content.as_str().unwrap_or_default();
        let content = base64::engine::general_purpose::STANDARD.decode(content);
        let content = content.map_err(|error| error.to_string())?;
        files.insert(path.trim_start_matches('/').to_owned(), content);
    }
    Ok(MemoryFiles(files))
}

fn first_line_that_differs(want: &str, got: &str) -> String {
    let (mut wanted, mut gotten) = (want.lines(), got.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (wanted.next(), gotten.next()) {
            (None, None) => return "only the ends of lines differ".to_owned(),
            (want, got) if want != got => {
                return format!("line {number}: expected {want:?}, got {got:?}");
            }
            _ => {}
        }
    }
}

//! Whole renders compared with the real helm (tests/baseline/renders.jsonl, made by
//! tests/baseline/generate/renders).

use serde_json::Value;
use std::sync::Arc;
use tiphys_render::MemoryFiles;
use tiphys_render::helm::chart::Chart;
use tiphys_render::helm::values::{Settings, user_values};
use tiphys_render::helm::{
    HelmError, KubeVersion, Limits, ParsedChart, PrintOptions, RenderOptions, Sources,
};

fn sources() -> Sources {
    Sources {
        random: Box::new(|bytes| bytes.fill(1)),
        now: jiff::Timestamp::UNIX_EPOCH,
        zone: || jiff::tz::TimeZone::UTC,
    }
}

/// The parsed command line of a case.
struct Line {
    options: RenderOptions,
    print: PrintOptions,
    settings: Settings,
}

fn line(args: &[String]) -> Result<Line, HelmError> {
    let mut line = Line {
        options: RenderOptions::new(Arc::new(sources)),
        print: PrintOptions::default(),
        settings: Settings::default(),
    };
    let mut words = args.iter();
    line.options.release.name = words.next().expect("a name").clone();
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value").clone();
        match word.as_str() {
            "--no-hooks" => line.print.no_hooks = true,
            "--skip-tests" => line.print.skip_tests = true,
            "--include-crds" => line.print.include_crds = true,
            "--skip-schema-validation" => line.options.skip_schema_validation = true,
            "--is-upgrade" => line.options.release.is_upgrade = true,
            "--show-only" | "-s" => line.print.show_only.push(value()),
            "--namespace" => line.options.release.namespace = value(),
            "--api-versions" => line
                .options
                .capabilities
                .api_versions
                .extend(value().split(',').map(str::to_owned)),
            "--set" => line.settings.set.push(value()),
            "--set-string" => line.settings.set_string.push(value()),
            "--set-json" => line.settings.set_json.push(value()),
            "--kube-version" => {
                let text = value();
                let version = KubeVersion::parse(&text);
                line.options.capabilities.kube_version = version
                    .map_err(|e| HelmError::Chart(format!("invalid kube version '{text}': {e}")))?;
            }
            other => panic!("unknown argument {other}"),
        }
    }
    Ok(line)
}

fn rendered(case: &Value) -> Result<String, HelmError> {
    let limits = Limits::default();
    let args: Vec<String> = serde_json::from_value(case["args"].clone()).expect("arguments");
    let line = line(&args)?;
    let user = user_values(&line.settings, &|_| Ok(String::new()), &limits)?;
    let files = case["files"].as_object().expect("files").iter();
    let files = files.map(|(name, text)| {
        (
            name.clone(),
            text.as_str().expect("text").as_bytes().to_vec(),
        )
    });
    let chart =
        ParsedChart::new(Chart::from_folder(&MemoryFiles(files.collect()), "", &limits)?.chart);
    let first = chart.render(&user, &line.options, &limits)?;
    assert_eq!(
        chart.render(&user, &line.options, &limits)?,
        first,
        "a second render differs"
    );
    first.print(&line.print)
}

#[test]
fn charts_are_rendered_as_helm_does() {
    let cases: Vec<Value> = include_str!("baseline/renders.jsonl")
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).expect("a baseline line"))
        .collect();
    assert!(cases.len() > 300);
    let mut wrong = Vec::new();
    for case in &cases {
        let (ours, want) = match (rendered(case), case["output"].as_str()) {
            (Ok(text), Some(want)) => (text, want.to_owned()),
            (Err(e), None) => (
                e.to_string(),
                case["error"].as_str().expect("an error").to_owned(),
            ),
            (Ok(text), None) => (text, format!("error {}", case["error"])),
            (Err(e), Some(want)) => (format!("error {e}"), want.to_owned()),
        };
        let name = case["name"].as_str().expect("a name");
        if ours != want {
            wrong.push(format!("{name}\n--- ours\n{ours}\n--- helm\n{want}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

//! Suite `helm_unit`: Helm's own unit tests of `--set` lines, template functions and renders.

use super::{Verdict, same, text};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_gocompat::strvals::{Form, Limits, apply};
use tiphys_render::helm::{self, LooseTemplate, RenderOptions, Sources, render_templates};

pub fn run(case: &Value) -> Verdict {
    match case["kind"].as_str() {
        Some("helm_strvals") => set_line(case),
        Some("helm_func") => function(case),
        Some("helm_render") => render(case),
        other => Err(format!("no such kind: {other:?}")),
    }
}

fn set_line(case: &Value) -> Verdict {
    let form = match text(case, "fn").as_str() {
        "Parse" | "ParseInto" => Form::Set,
        "ParseString" | "ParseIntoString" => Form::Text,
        "ParseLiteral" | "ParseLiteralInto" => Form::Literal,
        other => return Err(format!("no such function: {other}")),
    };
    let mut values: Map<String, Value> = case["dest"].as_object().cloned().unwrap_or_default();
    let result = apply(form, &text(case, "input"), &mut values, &Limits::default());
    match (result, case["error"].as_str()) {
        (Ok(()), None) => same(&case["expected"], &Value::Object(values)),
        (Err(e), Some(want)) if e.to_string() == want => Ok(()),
        (got, want) => Err(format!("expected {want:?}, got {got:?}")),
    }
}

/// These cases depend neither on randomness nor on the time.
fn options() -> RenderOptions {
    RenderOptions::new(Arc::new(|| Sources {
        random: Box::new(|bytes| bytes.fill(0)),
        now: jiff::Timestamp::UNIX_EPOCH,
        zone: || jiff::tz::TimeZone::UTC,
    }))
}

/// The template gets all of `vars` as its dot. A `time.Duration` is stored in the cases as
/// nanoseconds, and is converted back.
fn function(case: &Value) -> Verdict {
    let duration = case["vars"]
        .as_i64()
        .filter(|nanos| text(case, "tpl").starts_with("{{ duration") && nanos % 500_000_000 == 0);
    let dot = duration.map_or_else(
        || ".vars".to_owned(),
        |nanos| format!("(durationTruncateTo \"{nanos}ns\" 0)"),
    );
    let text = format!(
        "{{{{ template \"test\" {dot} }}}}{{{{ define \"test\" }}}}{}{{{{ end }}}}",
        text(case, "tpl")
    );
    let dot = Map::from_iter([("vars".to_owned(), case["vars"].clone())]);
    let template = LooseTemplate {
        name: "case".into(),
        text,
        base_path: String::new(),
        dot,
    };
    let rendered = render_templates(&[template], &options(), &helm::Limits::default().templates)
        .map_err(|e| e.to_string())?;
    same(&case["expected"], &json!(rendered["case"]))
}

fn render(case: &Value) -> Verdict {
    let templates = case["templates"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, template)| LooseTemplate {
            name: name.clone(),
            text: text(template, "tpl"),
            base_path: text(template, "base_path"),
            dot: template["values"].as_object().cloned().unwrap_or_default(),
        });
    let options = RenderOptions {
        strict: case["strict"] == true,
        lint: case["lint"] == true,
        ..options()
    };
    let rendered = render_templates(
        &templates.collect::<Vec<_>>(),
        &options,
        &helm::Limits::default().templates,
    );
    match (rendered, case["error"].as_str()) {
        (Ok(rendered), None) => same(&case["expected"], &json!(rendered)),
        (Err(e), Some(want)) if e.to_string() == want => Ok(()),
        (got, want) => Err(format!("expected {want:?}, got {got:?}")),
    }
}

//! Targets for the content of Helm charts: archives, `--set` lines, YAML, and templates with
//! values.

use super::targets::holds;
use serde_json::Value;
use std::{io::Write, sync::Arc};
use tiphys_gocompat::{
    strvals::{self, Form},
    template, yaml,
};
use tiphys_render::{
    MemoryFiles,
    helm::{
        Limits, ParsedChart, PrintOptions, RenderOptions, Sources,
        chart::Chart,
        values::{Settings, user_values},
    },
};

/// Limits of a fuzzed chart.
pub fn limits() -> Limits {
    let templates = template::Limits {
        steps: 100_000,
        output: 1 << 20,
        memory: 8 << 20,
    };
    Limits {
        bytes: 8 << 20,
        file_bytes: 1 << 20,
        files: 500,
        nodes: 200_000,
        templates,
        ..Limits::default()
    }
}

/// Several `--set` lines, one of each form, merged into each other's values.
pub fn run_strvals(input: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(input);
    let mut values = serde_json::Map::new();
    let read = |name: &str| Ok(name.to_owned());
    for form in [
        Form::Set,
        Form::Text,
        Form::Json,
        Form::Literal,
        Form::File(&read),
    ] {
        for line in text.split('\u{1f}') {
            // An error is a valid result.
            let _ = strvals::apply(form, line, &mut values, &strvals::Limits::default());
        }
    }
    let size = Value::Object(values).to_string().len();
    holds(size < 64 << 20, "a few lines make no endless values")
}

/// Parses YAML, prints it, and parses it again.
pub fn run_yaml(input: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(input).replace('\u{1f}', "\n");
    let documents = match yaml::parse_documents(&text, &yaml::Limits::default()) {
        Ok(documents) => documents,
        Err(e) => {
            return holds(
                !e.to_string().is_empty() && !e.go_text().is_empty(),
                "an error says something",
            );
        }
    };
    for document in documents {
        let printed = yaml::to_string(&document.value);
        let again = yaml::parse_documents(&printed, &yaml::Limits::default());
        let again = again.map_err(|e| format!("what was printed cannot be read: {e}"))?;
        let same = again.first().map_or(document.value.is_null(), |again| {
            alike(&again.value, &document.value)
        });
        holds(same, "YAML is read as it was printed")?;
    }
    Ok(())
}

/// Equality, with numbers compared by value.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| alike(a, b)))
        }
        _ => a == b,
    }
}

/// `[template, helpers, values, user's values]`: a chart with a subchart, rendered and printed with
/// a small budget.
pub fn run_chart(input: &[u8]) -> Result<(), String> {
    let Ok(Value::Array(parts)) = serde_json::from_slice::<Value>(input) else {
        return Ok(());
    };
    let text = |index: usize| match parts.get(index) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => yaml::to_string(other),
        None => String::new(),
    };
    let (template, helpers, values) = (text(0), text(1), text(2));
    let about = "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [{name: b, version: '*', condition: b.on, import-values: [x]}]\n";
    let files = MemoryFiles::new([
        ("Chart.yaml", about),
        ("values.yaml", values.as_str()),
        ("templates/a.yaml", template.as_str()),
        ("templates/_h.tpl", helpers.as_str()),
        (
            "charts/b/Chart.yaml",
            "apiVersion: v2\nname: b\nversion: 1.0.0\n",
        ),
        ("charts/b/values.yaml", "exports: {x: {y: 1}}\n"),
        ("charts/b/templates/b.yaml", template.as_str()),
    ]);
    let limits = limits();
    let Ok(loaded) = Chart::from_folder(&files, "", &limits) else {
        return Ok(());
    };
    let settings = Settings {
        files: vec![("values".to_owned(), text(3).into_bytes())],
        ..Settings::default()
    };
    let Ok(user) = user_values(&settings, &|_| Ok(String::new()), &limits) else {
        return Ok(());
    };
    let chart = ParsedChart::new(loaded.chart);
    if let Ok(rendered) = chart.render(&user, &RenderOptions::new(Arc::new(sources)), &limits) {
        let printed = rendered.print(&PrintOptions {
            include_crds: true,
            ..PrintOptions::default()
        });
        holds(
            printed.is_ok_and(|text| text.len() < 16 << 20),
            "what was rendered can be printed",
        )?;
    }
    Ok(())
}

/// Deterministic, so that a failure can be repeated.
pub fn sources() -> Sources {
    Sources {
        random: Box::new(|bytes| bytes.fill(7)),
        now: jiff::Timestamp::UNIX_EPOCH,
        zone: || jiff::tz::TimeZone::UTC,
    }
}

/// `[[name, kind of entry, size or null, content], ...]` packed accordingly, or bytes unchanged.
fn tar_of(input: &[u8]) -> Vec<u8> {
    match serde_json::from_slice::<Value>(input) {
        Ok(Value::Array(entries)) => entries.iter().flat_map(packed).chain([0; 1024]).collect(),
        _ => input.to_vec(),
    }
}

/// The archive as a layer of an OCI artifact, packed or not.
pub fn run_layer(input: &[u8]) -> Result<(), String> {
    tiphys_repo::read_layer(&tar_of(input))?;
    tiphys_repo::read_layer(input)
}

/// An archive, compressed and sometimes truncated.
pub fn run_archive(input: &[u8]) -> Result<(), String> {
    let tar = tar_of(input);
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let zipped = zip
        .write_all(&tar)
        .and_then(|()| zip.finish())
        .map_err(|e| e.to_string())?;
    let cut = zipped.len()
        - input
            .first()
            .map_or(0, |byte| usize::from(*byte) % 9)
            .min(zipped.len());
    for bytes in [&zipped[..], &zipped[..cut], input] {
        if let Ok(loaded) = Chart::from_archive(bytes, &limits()) {
            let safe = loaded.chart.files.iter().all(|file| {
                !file.name.starts_with('/') && !file.name.split('/').any(|part| part == "..")
            });
            holds(safe, "names stay inside the chart")?;
        }
    }
    Ok(())
}

/// One entry of an archive, whose size may be wrong.
fn packed(entry: &Value) -> Vec<u8> {
    let text = |index: usize| {
        entry
            .get(index)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .as_bytes()
    };
    let content = text(3);
    let size = entry
        .get(2)
        .and_then(Value::as_u64)
        .unwrap_or(content.len() as u64);
    let mut header = vec![0u8; 512];
    let name = &text(0)[..text(0).len().min(100)];
    header[..name.len()].copy_from_slice(name);
    header[124..135].copy_from_slice(format!("{:011o}", size & 0o77_777_777_777).as_bytes());
    header[156] = text(1).first().copied().unwrap_or(b'0');
    header[257..263].copy_from_slice(b"ustar\0");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header.extend_from_slice(content);
    header.resize(header.len().next_multiple_of(512), 0);
    header
}

//! Charts and values compared with the results of Helm's library (tests/baseline, made by
//! tests/baseline/generate/charts).

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use tiphys_render::MemoryFiles;
use tiphys_render::helm::chart::{Chart, File};
use tiphys_render::helm::{HelmError, Limits, values};

fn baseline(text: &str) -> Vec<Value> {
    text.lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).expect("a baseline line is JSON"))
        .collect()
}

fn memory(files: &Value) -> MemoryFiles {
    let files = files.as_object().expect("files").iter();
    MemoryFiles(
        files
            .map(|(name, text)| {
                (
                    name.clone(),
                    text.as_str().expect("text").as_bytes().to_vec(),
                )
            })
            .collect(),
    )
}

/// A chart in the generator's format.
fn dump(chart: &Chart) -> Value {
    let names = |files: &[File]| files.iter().map(|f| f.name.clone()).collect::<Vec<_>>();
    let mut dependencies: Vec<&Chart> = chart.dependencies.iter().collect();
    dependencies.sort_by_key(|d| d.name());
    json!({
        "chart": chart.metadata.to_value(), "templates": names(&chart.templates), "files": names(&chart.files), "values": *chart.values,
        "schema": chart.schema.is_some(), "dependencies": dependencies.into_iter().map(dump).collect::<Vec<_>>(),
    })
}

/// Equality, with numbers compared by value and `null` annotations like none. `locked` is not in
/// our dump.
fn equal(ours: &Value, want: &Value) -> bool {
    match (ours, want) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| equal(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.keys().all(|k| y.contains_key(k))
                && y.iter()
                    .all(|(k, y)| k == "locked" || x.get(k).is_some_and(|x| equal(x, y)))
        }
        (Value::Object(x), Value::Null) | (Value::Null, Value::Object(x)) => x.is_empty(),
        (Value::Array(x), Value::Null) | (Value::Null, Value::Array(x)) => x.is_empty(),
        _ => ours == want,
    }
}

/// The differences of a case, each with the name of the part.
fn compare(
    part: &str,
    ours: &Result<Value, HelmError>,
    want: &Value,
    error: &Value,
) -> Option<String> {
    let same = match (ours, error.as_str()) {
        (Ok(ours), None) => equal(ours, want),
        (Err(ours), Some(error)) => ours.to_string() == error,
        _ => false,
    };
    (!same).then(|| {
        format!(
            "{part}: got {}\n   want {want} {error}",
            ours.as_ref()
                .map_or_else(|e| format!("error {e}"), ToString::to_string)
        )
    })
}

/// Charts that both refuse, with different messages about the schema or about a keyword.
const OTHER_WORDS: &[(&str, &str)] = &[
    (
        "schema: bad keyword",
        "what is wrong with a schema is told in one line",
    ),
    (
        "schema: bad ref",
        "what is wrong with a schema is told in one line",
    ),
    (
        "schema: bad pattern",
        "what is wrong with a schema is told in one line",
    ),
    ("schema: an unknown draft", "Helm tries to fetch it"),
    (
        "schema: items false",
        "Helm counts from the end of prefixItems",
    ),
];

fn run(case: &Value) -> Option<String> {
    let limits = Limits::default();
    let user: Map<String, Value> = case["user"].as_object().cloned().unwrap_or_default();
    let loaded = Chart::from_folder(&memory(&case["files"]), "", &limits);
    let (mut chart, mut warnings) = match loaded {
        Ok(loaded) => (loaded.chart, loaded.warnings),
        Err(e) => return compare("loaded", &Err(e), &case["loaded"], &case["error"]),
    };
    compare("loaded", &Ok(dump(&chart)), &case["loaded"], &case["error"]).map_or_else(
        || {
            let prepared = values::prepare(&mut chart, &user, &limits, &mut warnings);
            let prepared = prepared.map(|()| dump(&chart));
            if let Some(wrong) = compare(
                "processed",
                &prepared,
                &case["processed"],
                &case["processError"],
            ) {
                return Some(wrong);
            }
            prepared.ok()?;
            let combined = values::coalesce(&chart, &user, &limits).and_then(|(values, more)| {
                warnings.extend(more);
                values::check_schemas(&chart, &values, &limits)?;
                Ok(Value::Object(values))
            });
            let name = case["name"].as_str().unwrap_or_default();
            if OTHER_WORDS.iter().any(|(other, _)| *other == name) {
                let told = combined
                    .as_ref()
                    .err()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                let same = told == case["valuesError"].as_str().unwrap_or_default();
                return (same || !told.starts_with("values don't meet"))
                    .then(|| format!("other words: {told}"));
            }
            if let Some(wrong) = compare("final", &combined, &case["final"], &case["valuesError"]) {
                return Some(wrong);
            }
            warnings.sort();
            compare(
                "warnings",
                &Ok(json!(warnings)),
                &case["warnings"],
                &Value::Null,
            )
        },
        Some,
    )
}

#[test]
fn charts_and_values_are_as_helm_makes_them() {
    let cases = baseline(include_str!("baseline/charts.jsonl"));
    assert!(cases.len() > 200);
    let mut wrong = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().expect("name");
        if let Some(why) = run(case).filter(|_| case["unstable"] != true) {
            wrong.push(format!("{name}\n  {why}"));
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

#[test]
fn archives_are_read_as_helm_does() {
    let mut wrong = Vec::new();
    for case in baseline(include_str!("baseline/archives.jsonl")) {
        let bytes = STANDARD
            .decode(case["tgz"].as_str().expect("tgz"))
            .expect("base64");
        let loaded =
            Chart::from_archive(&bytes, &Limits::default()).map(|loaded| dump(&loaded.chart));
        if let Some(why) = compare("loaded", &loaded, &case["loaded"], &case["error"]) {
            wrong.push(format!("{}\n  {why}", case["name"]));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn helmignore_is_obeyed_as_in_helm() {
    let mut cases = baseline(include_str!("baseline/folders.jsonl")).into_iter();
    let about = cases.next().expect("the files");
    let names = about["names"].as_array().expect("names");
    let mut wrong = Vec::new();
    for case in cases {
        let ignore = case["ignore"].as_str().expect("ignore");
        let content = |name: &str| {
            about["texts"][name]
                .as_str()
                .unwrap_or_default()
                .as_bytes()
                .to_vec()
        };
        let mut files = MemoryFiles(
            names
                .iter()
                .map(|n| n.as_str().expect("name"))
                .map(|n| (format!("top/{n}"), content(n)))
                .collect(),
        );
        files
            .0
            .insert("top/.helmignore".to_owned(), ignore.as_bytes().to_vec());
        let loaded =
            Chart::from_folder(&files, "top", &Limits::default()).map(|loaded| dump(&loaded.chart));
        if let Some(why) = compare("loaded", &loaded, &case["loaded"], &case["error"]) {
            wrong.push(format!("{ignore:?}\n  {why}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// A hand-made archive of empty or zeroed files.
fn pack(entries: &[(&str, u8, u64)]) -> Vec<u8> {
    use std::io::Write;
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for (name, flag, size) in entries {
        let mut header = [0u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        header[156] = *flag;
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        zip.write_all(&header).expect("memory");
        let padded = size.next_multiple_of(512);
        for _ in 0..padded / 512 {
            zip.write_all(&[0; 512]).expect("memory");
        }
    }
    zip.finish().expect("memory")
}

#[test]
fn hostile_archives_are_refused() {
    let limits = Limits {
        bytes: 1 << 20,
        file_bytes: 1 << 19,
        files: 1000,
        ..Limits::default()
    };
    let refused = |entries: &[(&str, u8, u64)]| {
        let error = Chart::from_archive(&pack(entries), &limits).expect_err("a hostile archive");
        error.to_string()
    };
    assert_eq!(
        refused(&[("a/link", b'2', 0)]),
        "chart contains \"a/link\", which is a link or no regular file"
    );
    assert_eq!(
        refused(&[("a/link", b'1', 0)]),
        "chart contains \"a/link\", which is a link or no regular file"
    );
    assert_eq!(
        refused(&vec![("a/x", b'0', 0); 2000]),
        "the number of files of the chart exceeds the limit of 1000"
    );
    assert_eq!(
        refused(&[("a/x", b'0', 1 << 19); 3]),
        "decompressed chart is larger than the maximum size 1048576"
    );
    // A folder has no data, whatever size its header names: they are read as the end.
    assert_eq!(
        refused(&[("a/", b'5', 2 << 20)]),
        "no files in chart archive"
    );
    assert_eq!(
        refused(&[("a/x", b'x', (1 << 20) + 1)]),
        "archive/tar: invalid tar header"
    );
    let mut cut = pack(&[("a/Chart.yaml", b'0', 5000)]);
    cut.truncate(cut.len() - 12);
    assert!(Chart::from_archive(&cut, &Limits::default()).is_err());
}

#[test]
fn hostile_values_are_refused() {
    let files = |chart: &str, values: &str| {
        let sub = (
            "charts/b/Chart.yaml",
            "apiVersion: v2\nname: b\nversion: 1.0.0\n",
        );
        MemoryFiles::new([("Chart.yaml", chart), sub, ("charts/b/values.yaml", values)])
    };
    let head = "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies:\n- name: b\n  version: 1.0.0\n  import-values:\n";
    // values that would contain themselves
    let cycle = format!("{head}  - {{child: t, parent: x}}\n  - {{child: t, parent: x.y}}\n");
    let mut chart = Chart::from_folder(&files(&cycle, "t: {v: 1}\n"), "", &Limits::default())
        .expect("a chart")
        .chart;
    let limits = Limits::default();
    let error =
        values::prepare(&mut chart, &Map::new(), &limits, &mut Vec::new()).expect_err("a cycle");
    assert_eq!(
        error.to_string(),
        "the depth of the values exceeds the limit of 1000"
    );
    // one large table in many places
    let many: String = (0..2000)
        .map(|i| format!("  - {{child: t, parent: x{i}}}\n"))
        .collect();
    let large: String = std::iter::once("t:\n".to_owned())
        .chain((0..2000).map(|i| format!("  k{i}: 1\n")))
        .collect();
    let limits = Limits {
        nodes: 1_000_000,
        ..Limits::default()
    };
    let mut chart = Chart::from_folder(&files(&(head.to_owned() + &many), &large), "", &limits)
        .expect("a chart")
        .chart;
    assert!(values::prepare(&mut chart, &Map::new(), &limits, &mut Vec::new()).is_err());
}

#[test]
fn what_a_chart_lacks_is_named() {
    let chart = "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies:\n- {name: b, version: ^1, repository: https://x}\n- {name: c, version: '2'}\n";
    let lock = "dependencies:\n- {name: b, version: 1.2.3, repository: https://x}\n";
    let sub = (
        "charts/c/Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 2.0.0\n",
    );
    let files = MemoryFiles::new([("Chart.yaml", chart), ("Chart.lock", lock), sub]);
    let loaded = Chart::from_folder(&files, "", &Limits::default()).expect("a chart");
    let missing = values::missing_dependencies(&loaded.chart);
    assert_eq!(missing.len(), 1);
    assert_eq!(
        (
            missing[0].name.as_str(),
            missing[0].version.as_str(),
            missing[0].locked.as_deref()
        ),
        ("b", "^1", Some("1.2.3"))
    );
}

#[test]
fn settings_are_applied_in_helms_order() {
    let settings = values::Settings {
        files: vec![
            ("v.yaml".into(), b"a: {x: 1, w: 2}\nb: 1\n".to_vec()),
            ("w.yaml".into(), b"a: {x: null}\n---\nc: 1\n".to_vec()),
        ],
        set_json: vec!["{\"a\": {\"z\": [1]}}".into(), "d={\"e\":null}".into()],
        set: vec!["b=2,f=3".into()],
        set_string: vec!["f=4".into()],
        set_file: vec!["g=name".into()],
        set_literal: vec!["h=x,y=z".into()],
    };
    let values = values::user_values(
        &settings,
        &|name| Ok(format!("<{name}>")),
        &Limits::default(),
    )
    .expect("values");
    let want = json!({"a": {"x": null, "w": 2.0, "z": [1.0]}, "b": 2, "c": 1.0, "d": {"e": null}, "f": "4", "g": "<name>", "h": "x,y=z"});
    assert_eq!(Value::Object(values), want);
    let broken = values::Settings {
        set: vec!["a".into()],
        ..Default::default()
    };
    let error = values::user_values(&broken, &|_| Ok(String::new()), &Limits::default())
        .expect_err("a broken line");
    assert_eq!(
        error.to_string(),
        "failed parsing --set data: key \"a\" has no value"
    );
}

#[test]
fn hostile_schemas_are_refused() {
    // each definition references the next one twice
    let next = |i: usize| json!({"$ref": format!("#/$defs/d{}", i + 1)});
    let mut doubling: Map<String, Value> = (0..60)
        .map(|i| (format!("d{i}"), json!({"allOf": [next(i), next(i)]})))
        .collect();
    doubling.insert("d60".to_owned(), json!({"type": "object"}));
    let chain: Map<String, Value> = (0..5000).map(|i| (format!("d{i}"), next(i))).collect();
    let all = json!({"properties": {"a": {"$ref": "#"}}});
    for (schema, refused) in [
        (json!({"$ref": "#/$defs/d0", "$defs": doubling}), true),
        (json!({"$ref": "#/$defs/d0", "$defs": chain}), true),
        (json!({"allOf": [all, all]}), true),
        (json!({"$ref": "#"}), false),
        (json!({"allOf": [{"$ref": "#"}]}), false),
    ] {
        let nested = format!("{}1{}", "{\"a\":".repeat(60), "}".repeat(60));
        let text = schema.to_string();
        let about = "apiVersion: v2\nname: a\nversion: 1.0.0\n";
        let files = MemoryFiles::new([
            ("Chart.yaml", about),
            ("values.yaml", &nested),
            ("values.schema.json", &text),
        ]);
        let chart = Chart::from_folder(&files, "", &Limits::default())
            .expect("a chart")
            .chart;
        let result = values::check_schemas(
            &chart,
            &chart.values,
            &Limits {
                nodes: 1_000_000,
                ..Limits::default()
            },
        );
        let over = result
            .as_ref()
            .is_err_and(|e| matches!(e, HelmError::OverBudget { .. }));
        assert_eq!(over, refused, "{result:?}");
    }
}

//! Report 09: what a schema refers to is never fetched, neither by a sync nor before an install.

use crate::{
    reports::{json, report},
    world::{World, sha},
};
use std::sync::Arc;
use tiphys_api::source::ApplicationSource;
use tiphys_catalog::release::{Facts, Manifests, schema};
use tiphys_render::helm::{
    Limits, ParsedChart, RenderOptions, Sources, chart::Chart, values::Values,
};
use tiphys_testkit::charts::{index, plain_chart};

fn sources() -> Sources {
    Sources {
        random: Box::new(|bytes| bytes.fill(7)),
        now: "2026-01-01T00:00:00Z".parse().expect("a time"),
        zone: || jiff::tz::TimeZone::UTC,
    }
}

/// Whether it can be installed with so many replicas; else why not.
fn installable(archive: &[u8], replicas: u64) -> Result<(), String> {
    let limits = Limits::default();
    let chart = Chart::from_archive(archive, &limits)
        .expect("a chart")
        .chart;
    let mut values = Values::new();
    values.insert("replicas".to_owned(), replicas.into());
    let options = RenderOptions::new(Arc::new(sources));
    let rendered = ParsedChart::new(chart).render(&values, &options, &limits);
    rendered.map(|_| ()).map_err(|e| e.to_string())
}

/// What the catalogue says before an install with so many replicas.
fn previewed(archive: &[u8], replicas: u64) -> Result<Vec<String>, String> {
    let source: ApplicationSource = serde_json::from_value(serde_json::json!({
        "chart": "a", "targetRevision": "1.0.0", "helm": {"valuesObject": {"replicas": replicas}},
    }))
    .expect("a source");
    let facts = Facts {
        name: "a".to_owned(),
        ..Facts::default()
    };
    let rendered = Manifests::render(archive, &source, &facts);
    rendered
        .map(|(_, unknown)| unknown)
        .map_err(|e| e.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn references_of_schemas() {
    let Some(folder) = report("09-schema-references") else {
        return;
    };
    for (name, none, one) in [
        ("internal.json", "minimum: got 0, want 1", ""),
        ("recursive.json", "minimum: got 0, want 1", ""),
        // As Helm without a network says it.
        ("remote.json", "failing loading", "failing loading"),
        (
            "relative.json",
            "retrieving it failed",
            "retrieving it failed",
        ),
    ] {
        let world = World::new();
        // What a fetch of it would find.
        let written = crate::reports::text(&folder, name);
        let here = format!("{}/", world.server.url());
        let text = written.replace("https://schemas.example.test/", &here);
        let archive = plain_chart("a", "1.0.0", &[("values.schema.json", &text)]);
        world.server.serve("/int.json", r#"{"type": "integer"}"#);
        world.server.serve("/charts/a.tgz", archive.clone());
        let entries = [("a", "1.0.0", "a.tgz", &*sha(&archive))];
        world
            .server
            .serve("/charts/index.yaml", index(&entries).as_str());
        world.sync().await.expect("synced");
        let files = world.store.files(&world.repository.id, "r/a", "1.0.0");
        let files = files.expect("the database").expect("files");
        assert_eq!(files.schema, text, "{name}");
        for (replicas, why) in [(0, none), (1, one)] {
            let done = tokio::task::spawn_blocking({
                let archive = archive.clone();
                move || installable(&archive, replicas)
            });
            let refused = done.await.expect("a thread").err().unwrap_or_default();
            assert_eq!(refused.is_empty(), why.is_empty(), "{name}: {refused}");
            assert!(refused.contains(why), "{name}: {refused}");
        }
        assert_eq!(
            world.asked(),
            ["/charts/a.tgz", "/charts/index.yaml"],
            "{name}"
        );
        let expected = json(&folder, "expected.json");
        for replicas in [0, 1] {
            let archive = archive.clone();
            let done = tokio::task::spawn_blocking(move || previewed(&archive, replicas));
            let previewed = done.await.expect("a thread");
            let wanted = expected[name][format!("replicas {replicas}")].as_str();
            match (wanted.unwrap_or("ok"), previewed) {
                ("ok", Ok(notes)) => assert!(notes.is_empty() || !none.contains("minimum")),
                ("not checked, note", Ok(notes)) => {
                    let [reference] = &*notes else {
                        panic!("{name}: {notes:?}");
                    };
                    let note = schema::note(reference);
                    assert!(note.starts_with("schema not available: "), "{note}");
                    assert!(text.contains(reference), "{note}");
                }
                (refused, Err(why)) if refused.starts_with("refused") => {
                    let detail = refused
                        .trim_start_matches("refused")
                        .trim_start_matches(": ");
                    assert!(why.contains(detail), "{name}: {why}");
                }
                (wanted, found) => panic!("{name} {replicas}: {wanted}: {found:?}"),
            }
        }
        assert_eq!(world.asked(), [""; 0], "{name}");
    }
}

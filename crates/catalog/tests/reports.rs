//! What people reported about such catalogues (`../shared/cases/reports/catalogue`), with the right
//! answers.

use crate::world::World;
use serde_json::Value;
use std::sync::Arc;
use std::{collections::BTreeMap, path::PathBuf};
use tiphys_catalog::{RepoId, RepoSpec, Store, search::Query, store::ProblemKind};
use tiphys_testkit::{
    charts::{Answer, plain_chart},
    registry::{HELM_LAYER, Registry},
};

/// The folder of a report; `None`: the cases are not here, and the test is skipped.
pub fn report(name: &str) -> Option<PathBuf> {
    tiphys_testkit::shared(&format!("cases/reports/catalogue/{name}"))
}

pub fn text(folder: &std::path::Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).expect(name)
}

pub fn json(folder: &std::path::Path, name: &str) -> Value {
    serde_json::from_str(&text(folder, name)).expect(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_entry() {
    let Some(folder) = report("01-one-bad-entry") else {
        return;
    };
    let world = World::new();
    world
        .server
        .serve("/charts/index.yaml", text(&folder, "index.yaml").as_str());
    let report = world.sync().await.expect("synced");
    let expected = json(&folder, "expected.json");
    let id = &world.repository.id;
    let shown: BTreeMap<String, Vec<String>> = world
        .charts()
        .into_iter()
        .map(|name| {
            let chart = world
                .store
                .chart(id, &format!("r/{name}"))
                .expect("the database");
            let versions = chart.expect("a chart").versions.into_iter();
            (name, versions.map(|version| version.version).collect())
        })
        .collect();
    assert_eq!(
        serde_json::to_value(shown).expect("JSON"),
        expected["charts"]
    );
    let problems = world.store.problems(id).expect("the database");
    let skipped: Vec<(String, String, String)> = problems
        .iter()
        .filter(|problem| problem.kind == ProblemKind::Skipped)
        .map(|problem| {
            let chart = problem.chart_id.trim_start_matches("r/").to_owned();
            (chart, problem.version.clone(), problem.reason.clone())
        })
        .collect();
    let wanted = expected["skipped"].as_array().expect("a list");
    for entry in wanted {
        let field = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let entry = (field("chart"), field("version"), field("reason"));
        let is_named = |found: &(String, String, String)| {
            (&found.0, &found.1) == (&entry.0, &entry.1) && found.2.contains(&entry.2)
        };
        let named = skipped.iter().any(is_named);
        assert!(named, "{entry:?} not in {skipped:?}");
    }
    assert_eq!(
        usize::try_from(report.skipped).expect("a number"),
        wanted.len()
    );
    let address = problems
        .iter()
        .find(|p| p.chart_id == "r/no-address")
        .expect("a problem");
    assert!(
        address.reason.ends_with("has no downloadable URLs"),
        "{}",
        address.reason
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn search_order() {
    let Some(folder) = report("06-search-order") else {
        return;
    };
    let charts = json(&folder, "charts.json");
    let mut index = String::from("apiVersion: v1\nentries:\n");
    for chart in charts.as_array().expect("a list") {
        let mut entry = chart.clone();
        entry["version"] = "1.0.0".into();
        let name = chart["name"].as_str().expect("a name");
        index.push_str(&format!("  {name}:\n  - {entry}\n"));
    }
    let world = World::new();
    world.server.serve("/charts/index.yaml", index.as_str());
    world.sync().await.expect("synced");
    for case in json(&folder, "queries.json").as_array().expect("a list") {
        let query = Query {
            text: case["q"].as_str().expect("a query").to_owned(),
            ..Query::default()
        };
        let page = world.store.search(&query).expect("the database");
        let names: Vec<String> = page.charts.into_iter().map(|chart| chart.name).collect();
        assert_eq!(
            serde_json::to_value(names).expect("JSON"),
            case["names"],
            "{query:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn icons() {
    let Some(folder) = report("03-icons") else {
        return;
    };
    let world = World::new();
    let host = world.server.url();
    let index = text(&folder, "index.yaml").replace("https://charts.example.test", &host);
    world.server.serve("/charts/index.yaml", index.as_str());
    world.server.serve("/page.html", "<html></html>");
    let picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";
    world.server.serve("/charts/img/e.png", picture.to_vec());
    for letter in [
        "a-svg-data",
        "b-percent",
        "c-none",
        "d-missing",
        "e-relative",
        "f-html",
        "g-script",
        "h-file",
        "i-local",
    ] {
        world.server.serve(
            &format!("/charts/charts/{letter}.tgz"),
            plain_chart(letter, "1.0.0", &[]),
        );
    }
    let report = world.sync().await.expect("synced");
    assert_eq!((report.charts, report.files), (9, 9));
    let id = &world.repository.id;
    let problems = world.store.problems(id).expect("the database");
    for (name, drawn, reason) in [
        ("a-svg-data", true, ""),
        ("b-percent", true, ""),
        ("c-none", false, ""),
        ("d-missing", false, "404"),
        ("e-relative", true, ""),
        ("f-html", false, "cannot be read"),
        ("g-script", false, "text/html is no picture"),
        ("h-file", false, "neither http nor https"),
        ("i-local", false, "link-local"),
    ] {
        let chart = world
            .store
            .chart(id, &format!("r/{name}"))
            .expect("the database");
        assert_eq!(chart.expect("a chart").raw_icon.is_some(), drawn, "{name}");
        let problem = problems.iter().find(|p| p.chart_id == format!("r/{name}"));
        let found = problem.map_or("", |problem| problem.reason.as_str());
        assert!(
            found.contains(reason) && found.is_empty() == reason.is_empty(),
            "{name}: {found}"
        );
    }
    // What failed is not asked for with each sync of an unchanged index.
    world.asked();
    world.sync().await.expect("synced");
    assert_eq!(world.asked(), ["/charts/index.yaml"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_and_digests() {
    let Some(folder) = report("12-huge-and-duplicates") else {
        return;
    };
    let world = World::new();
    let mut index = text(&folder, "index.yaml");
    for (file, chart) in [
        (
            "pump-a.tgz",
            plain_chart("pump", "1.2.0", &[("values.yaml", "pump-a.tgz\n")]),
        ),
        (
            "pump-b.tgz",
            plain_chart("pump", "1.2.0", &[("values.yaml", "pump-b.tgz\n")]),
        ),
        (
            "gasket.tgz",
            plain_chart("gasket", "2.0.0", &[("values.yaml", "gasket.tgz\n")]),
        ),
        ("seal-0.9.4.tgz", plain_chart("seal", "0.9.4", &[])),
        (
            "seal-0.9.3.tgz",
            plain_chart("seal", "0.9.3", &[("values.yaml", "seal-0.9.3.tgz\n")]),
        ),
        ("valve-0.1.0.tgz", plain_chart("valve", "0.1.0", &[])),
    ] {
        index = index.replace(&format!("@sha256({file})"), &crate::world::sha(&chart));
        world.server.serve(&format!("/charts/{file}"), chart);
    }
    world.server.serve("/charts/index.yaml", index.as_str());
    world.sync().await.expect("synced");
    let id = &world.repository.id;
    let values = |chart: &str, version: &str| {
        let files = world.store.files(id, &format!("r/{chart}"), version);
        files.expect("the database").map(|files| files.values)
    };
    assert_eq!(values("pump", "1.2.0").as_deref(), Some("pump-a.tgz\n"));
    assert_eq!(values("gasket", "2.0.0").as_deref(), Some("gasket.tgz\n"));
    assert_eq!(values("seal", "0.9.3").as_deref(), Some("seal-0.9.3.tgz\n"));
    assert_eq!(values("seal", "0.9.4"), None);
    assert!(values("valve", "0.1.0").is_some());
    let problems = world.store.problems(id).expect("the database");
    let found: Vec<(&str, ProblemKind)> = problems
        .iter()
        .map(|p| (p.chart_id.as_str(), p.kind))
        .collect();
    assert_eq!(
        found,
        [
            ("r/pump", ProblemKind::Ambiguous),
            ("r/seal", ProblemKind::Files)
        ]
    );
    let digest = crate::world::sha(&plain_chart("seal", "0.9.4", &[]));
    world.server.serve(
        "/charts/index.yaml",
        index.replace(&"0".repeat(64), &digest).as_str(),
    );
    world.asked();
    world.sync().await.expect("synced");
    assert_eq!(
        world.asked(),
        ["/charts/index.yaml", "/charts/seal-0.9.4.tgz"]
    );
    world.sync().await.expect("synced");
    assert_eq!(world.asked(), ["/charts/index.yaml"]);
    a_replaced_archive_is_seen(&world).await;
}

/// The rest of report 12: no digest says that an archive was replaced; its ETag does.
async fn a_replaced_archive_is_seen(world: &World) {
    let valve = |content: &str, etag: &str| Answer {
        headers: vec![format!("ETag: \"{etag}\"")],
        ..Answer::from(plain_chart("valve", "0.1.0", &[("values.yaml", content)]))
    };
    let path = "/charts/valve-0.1.0.tgz";
    let id = &world.repository.id;
    let values = || {
        let files = world.store.files(id, "r/valve", "0.1.0");
        files.expect("the database").expect("files").values
    };
    // What has no ETag has no name to ask by: it is read again when the catalogue is new.
    world.store.invalidate().expect("the database");
    world.server.serve(path, valve("one", "1"));
    world.asked();
    world.sync().await.expect("synced");
    // What was just read is not asked for again.
    assert_eq!(
        world.asked().iter().filter(|asked| *asked == path).count(),
        1
    );
    assert_eq!(values(), "one");
    for (answer, wanted, replaced) in [
        (valve("two", "2"), "two", 1),
        // The same under another name, and what is no chart.
        (valve("two", "3"), "two", 0),
        (Answer::from("<html>"), "two", 0),
        (
            Answer {
                status: 404,
                ..Answer::default()
            },
            "two",
            0,
        ),
        (valve("three", "4"), "three", 1),
    ] {
        world.server.serve(path, answer);
        world.asked();
        let report = world.sync().await.expect("synced");
        assert_eq!((values().as_str(), report.replaced), (wanted, replaced));
        assert!(world.asked().contains(&path.to_owned()));
    }
    // One that is as it was is asked for by its name, and not sent.
    world.server.serve(
        path,
        Answer {
            status: 304,
            ..Answer::default()
        },
    );
    let report = world.sync().await.expect("synced");
    assert_eq!((values().as_str(), report.replaced), ("three", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_with_a_v() {
    let Some(folder) = report("04-oci-v-tags") else {
        return;
    };
    let registry = Registry::start();
    let tags = json(&folder, "tags.json");
    let tags: Vec<&str> = tags["tags"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let expected = json(&folder, "expected.json");
    for tag in &tags {
        let entries = expected.as_array().expect("a list");
        let entry = entries
            .iter()
            .find(|entry| entry["tag"] == **tag)
            .expect("the tag");
        let version = entry["version"].as_str().expect("a version");
        let chart = plain_chart("karpenter", version, &[("README.md", tag)]);
        registry.push("acme/karpenter", tag, HELM_LAYER, &chart);
    }
    registry.tags("acme/karpenter", &tags);
    let store = Arc::new(Store::in_memory().expect("a database"));
    let id = RepoId::new("default", "acme");
    let spec = RepoSpec {
        url: format!(
            "{}/acme",
            registry.server.url().replace("http://", "oci://")
        ),
        oci_repositories: vec!["karpenter".to_owned()],
        plain_http: true,
        ..RepoSpec::default()
    };
    store
        .put_spec(&id, &spec.url, &spec.text().expect("a spec"))
        .expect("stored");
    let sync = || {
        let status = store.repos().expect("the database").remove(0);
        RepoSpec::sync(Arc::clone(&store), &status).expect("a sync")
    };
    let report = sync().run().await.expect("synced");
    assert_eq!((report.files, report.failed_files), (5, 0));
    let chart = store
        .chart(&id, "acme/karpenter")
        .expect("the database")
        .expect("a chart");
    let shown: Vec<Value> = chart
        .versions
        .iter()
        .map(|v| v.version.clone().into())
        .collect();
    let wanted: Vec<Value> = expected
        .as_array()
        .expect("a list")
        .iter()
        .map(|e| e["version"].clone())
        .collect();
    assert_eq!(shown, wanted);
    let files = store
        .files(&id, "acme/karpenter", "0.27.0")
        .expect("the database");
    assert_eq!(files.expect("files").readme, "0.27.0");
    registry.server.paths();
    let report = sync().run().await.expect("synced");
    assert_eq!((report.files, report.charts), (0, 1));
    // The tags are asked for, nothing is pulled.
    let asked = registry.server.paths();
    let is_look =
        |path: &String| path.contains("/tags/list") || tags.iter().any(|t| path.ends_with(t));
    assert!(asked.iter().all(is_look), "{asked:?}");
}

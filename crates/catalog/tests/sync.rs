//! Reading repositories into the catalogue, against a server on loopback.

use crate::world::{SVG, World, serve, serve_with_icon, sha};
use tiphys_catalog::{CatalogError, Filter, Form, store::ProblemKind};
use tiphys_testkit::charts::{Answer, FileServer, index, plain_chart};

#[tokio::test(flavor = "multi_thread")]
async fn only_what_changed_is_read() {
    let world = World::new();
    serve(
        &world,
        &[("alpha", "1.0.0"), ("alpha", "1.1.0"), ("beta", "0.1.0")],
    );
    let report = world.sync().await.expect("synced");
    assert_eq!(
        (report.changed, report.files, report.failed_files),
        (2, 3, 0)
    );
    assert_eq!(world.charts(), ["alpha", "beta"]);
    assert_eq!(
        world.readme("alpha", "1.1.0").as_deref(),
        Some("# alpha 1.1.0\n")
    );

    world.asked();
    let report = world.sync().await.expect("synced");
    assert!(report.unchanged);
    assert_eq!(world.asked(), ["/charts/index.yaml"]);

    serve(
        &world,
        &[
            ("alpha", "1.0.0"),
            ("alpha", "1.1.0"),
            ("beta", "0.1.0"),
            ("beta", "0.2.0"),
        ],
    );
    world.asked();
    let report = world.sync().await.expect("synced");
    assert_eq!((report.changed, report.files), (1, 1));
    assert_eq!(
        world.asked(),
        ["/charts/beta/0.2.0.tgz", "/charts/index.yaml"]
    );

    serve(&world, &[("alpha", "1.1.0")]);
    let report = world.sync().await.expect("synced");
    assert_eq!((report.changed, report.removed), (1, 1));
    assert_eq!(world.readme("alpha", "1.0.0"), None, "its version is gone");
    assert_eq!(world.readme("beta", "0.1.0"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_removed_by_what_is_no_complete_index() {
    let world = World::new();
    serve(&world, &[("alpha", "1.0.0")]);
    world.sync().await.expect("synced");
    for (bad, is_error) in [
        (Answer::from("<html>down</html>"), true),
        (
            Answer::from("apiVersion: v1\nentries:\n  alpha:\n  - {name: [\n"),
            true,
        ),
        (
            Answer {
                status: 503,
                ..Answer::default()
            },
            true,
        ),
        (Answer::from("apiVersion: v1\nentries: {}\n"), false),
    ] {
        world.server.serve("/charts/index.yaml", bad);
        assert_eq!(world.sync().await.is_err(), is_error);
        assert_eq!(world.charts(), ["alpha"]);
        let repos = world.store.repos().expect("the database");
        assert_eq!(repos[0].error.is_some(), is_error);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_tried_after_the_rest() {
    let world = World::new();
    let bad = "/charts/alpha/1.1.0.tgz";
    let gone = || Answer {
        status: 404,
        ..Answer::default()
    };
    let (first, second) = (
        [("alpha", "1.0.0"), ("alpha", "1.1.0"), ("beta", "0.1.0")],
        [
            ("alpha", "1.2.0"),
            ("alpha", "1.1.0"),
            ("alpha", "1.0.0"),
            ("beta", "0.2.0"),
        ],
    );
    serve(&world, &first);
    world.server.serve(bad, gone());
    let report = world.sync().await.expect("synced");
    assert_eq!((report.files, report.failed_files), (2, 1));

    serve(&world, &second);
    world.server.serve(bad, gone());
    world.server.paths();
    let report = world.sync().await.expect("synced");
    assert_eq!((report.files, report.failed_files), (2, 1));
    let asked = world.server.paths();
    assert_eq!(asked.last().map(String::as_str), Some(bad), "{asked:?}");
    assert_eq!(asked.iter().filter(|path| *path == bad).count(), 1);

    // What is not listed any more is not remembered either.
    serve(&world, &[("alpha", "1.2.0"), ("beta", "0.2.0")]);
    world.sync().await.expect("synced");
    let problems = world.store.problems(&world.repository.id);
    assert!(problems.expect("the database").is_empty());
}

/// Report 12: what is said of entries is what the index says now.
#[tokio::test(flavor = "multi_thread")]
async fn reasons_go_with_the_entries_that_they_are_about() {
    let world = World::new();
    serve(&world, &[("pump", "1.0.0"), ("lost", "1.0.0")]);
    let good = |name: &str| {
        format!("  {name}:\n  - {{name: {name}, version: 1.0.0, urls: [{name}/1.0.0.tgz]}}\n")
    };
    let bad = |name: &str, version: &str| format!("  - {{name: {name}, version: {version}}}\n");
    let begin = "apiVersion: v1\nentries:\n";
    let (pump, lost) = (good("pump"), good("lost"));
    let junk = format!("  junk:\n{}", bad("junk", "main"));
    let found = || {
        let problems = world.store.problems(&world.repository.id);
        let problems = problems.expect("the database").into_iter();
        let found = problems.map(|p| format!("{} {}: {}", p.path(), p.version, p.kind.word()));
        found.collect::<Vec<_>>()
    };
    for (index, reasons, charts) in [
        (
            format!("{begin}{pump}{}{lost}{junk}", bad("pump", "latest")),
            &["junk main: skipped", "pump latest: skipped"][..],
            &["lost", "pump"][..],
        ),
        (
            format!("{begin}{pump}  lost:\n{}{junk}", bad("lost", "gone")),
            &["junk main: skipped", "lost gone: skipped"],
            &["pump"],
        ),
        (
            format!("{begin}{pump}  lost:\n{}", bad("lost", "other")),
            &["lost other: skipped"],
            &["pump"],
        ),
        (format!("{begin}{pump}{lost}"), &[], &["lost", "pump"]),
    ] {
        world.server.serve("/charts/index.yaml", index.as_str());
        let report = world.sync().await.expect("synced");
        assert_eq!(found(), reasons, "{index}");
        assert_eq!(report.skipped, reasons.len() as i64, "{index}");
        assert_eq!(world.charts(), charts);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_file_is_tried_again_alone() {
    let world = World::new();
    serve(&world, &[("alpha", "1.0.0"), ("beta", "0.1.0")]);
    world.server.remove("/charts/beta/0.1.0.tgz");
    let report = world.sync().await.expect("synced");
    assert_eq!((report.files, report.failed_files), (1, 1));
    let problems = world
        .store
        .problems(&world.repository.id)
        .expect("the database");
    assert_eq!((problems.len(), problems[0].kind), (1, ProblemKind::Files));
    assert!(
        problems[0].reason.ends_with("404 Not Found"),
        "{}",
        problems[0].reason
    );

    serve(&world, &[("alpha", "1.0.0"), ("beta", "0.1.0")]);
    world.asked();
    let report = world.sync().await.expect("synced");
    assert!(report.unchanged);
    assert_eq!(
        world.asked(),
        ["/charts/beta/0.1.0.tgz", "/charts/index.yaml"]
    );
    assert_eq!(
        world.readme("beta", "0.1.0").as_deref(),
        Some("# beta 0.1.0\n")
    );
    assert_eq!(
        world
            .store
            .problems(&world.repository.id)
            .expect("the database"),
        []
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_the_index_does_not_mean_gives_nothing() {
    let world = World::new();
    let chart = plain_chart("a", "1.0.0", &[("README.md", "other")]);
    world.server.serve("/charts/a.tgz", chart.clone());
    let (wrong, right) = ("ab".repeat(32), format!("sha256:{}", sha(&chart)));
    world.server.serve(
        "/charts/index.yaml",
        index(&[
            ("a", "1.0.0", "a.tgz", &wrong),
            ("b", "1.0.0", "a.tgz", &right),
            ("c", "1.0.0", "a.tgz", ""),
        ])
        .as_str(),
    );
    world.sync().await.expect("synced");
    assert_eq!(world.readme("a", "1.0.0"), None);
    assert_eq!(world.readme("b", "1.0.0").as_deref(), Some("other"));
    assert_eq!(world.readme("c", "1.0.0").as_deref(), Some("other"));
    let problems = world
        .store
        .problems(&world.repository.id)
        .expect("the database");
    let wanted = format!(
        "digest differs: the index says {wrong}, the file has {}",
        sha(&chart)
    );
    assert_eq!(problems[0].reason, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_whose_ids_are_the_same_text_have_their_own_files() {
    let world = World::new();
    serve(&world, &[("foo", "1.0.0-2.0.0"), ("foo-1.0.0", "2.0.0")]);
    world.sync().await.expect("synced");
    assert_eq!(
        world.readme("foo", "1.0.0-2.0.0").as_deref(),
        Some("# foo 1.0.0-2.0.0\n")
    );
    assert_eq!(
        world.readme("foo-1.0.0", "2.0.0").as_deref(),
        Some("# foo-1.0.0 2.0.0\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_filter_counts_although_the_index_is_the_same() {
    let mut world = World::new();
    serve(&world, &[("alpha", "1.0.0"), ("beta", "0.1.0")]);
    world.sync().await.expect("synced");
    world.repository.filter = Filter {
        jq: ".name == $name".to_owned(),
        variables: [("$name".to_owned(), "be\"ta\\(1)".to_owned())].into(),
    };
    world.sync().await.expect("synced");
    assert_eq!(world.charts(), [""; 0]);
    world.repository.filter =
        Filter::parse(r#"{"jq": ".name == $n", "variables": {"$n": "beta"}}"#).expect("a filter");
    let report = world.sync().await.expect("synced");
    assert!(!report.unchanged);
    assert_eq!(world.charts(), ["beta"]);
    world.repository.filter = Filter::parse(r#"{"jq": "1"}"#).expect("a filter");
    assert!(matches!(world.sync().await, Err(CatalogError::Filter(_))));
    assert_eq!(
        world.charts(),
        ["beta"],
        "nothing is lost by a filter that fails"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_stay_at_their_place() {
    let mut world = World::new();
    let other = FileServer::start();
    let chart = plain_chart("a", "1.0.0", &[]);
    other.serve("/a.tgz", chart.clone());
    world.server.serve("/charts/a.tgz", chart);
    let away = format!("{}/a.tgz", other.url());
    world.server.serve(
        "/charts/index.yaml",
        index(&[("a", "1.0.0", "a.tgz", ""), ("b", "1.0.0", &away, "")]).as_str(),
    );
    world.access.authorization = "Custom secret".into();
    world.sync().await.expect("synced");
    let sent = |server: &FileServer| {
        let received = server.received().into_iter();
        received.map(|r| r.authorization).collect::<Vec<String>>()
    };
    assert_eq!(sent(&world.server), ["Custom secret"; 2]);
    assert_eq!(sent(&other), [""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn kubeapps_leaves_deprecated_charts_out_and_we_mark_them() {
    let mut world = World::new();
    let text = "apiVersion: v1\nentries:\n  old:\n  - {name: old, version: 1.0.0, deprecated: true}\n  new:\n  - {name: new, version: 1.0.0}\n";
    world.server.serve("/charts/index.yaml", text);
    world.sync().await.expect("synced");
    assert_eq!(world.charts(), ["new", "old"]);
    world.repository.form = Form::Kubeapps;
    world.sync().await.expect("synced");
    assert_eq!(world.charts(), ["new"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_icon_that_was_broken_for_a_while_comes_back() {
    let mut world = World::new();
    // All icons are looked at with each new index.
    world.repository.form = Form::Kubeapps;
    for (number, (icon, version, is_drawn)) in
        [(SVG, "a", true), ("<svg", "b", false), (SVG, "a", true)]
            .into_iter()
            .enumerate()
    {
        serve_with_icon(&world, icon, version, number);
        world.sync().await.expect("synced");
        let chart = world.store.chart(&world.repository.id, "r/alpha");
        let chart = chart.expect("the database").expect("a chart");
        assert_eq!(chart.raw_icon.is_some(), is_drawn, "index {number}");
    }
}

//! Tags of registries that are replaced, and tags that stand for the same chart.

use serde_json::json;
use std::sync::Arc;
use tiphys_api::source::ApplicationSource;
use tiphys_catalog::{
    RepoId, RepoSpec, Store,
    model::Chart,
    release::{
        Facts, Origin,
        install::Install,
        upgrade::{Wanted, plan},
    },
    search::Query,
    store::ProblemKind,
    sync::SyncReport,
};
use tiphys_testkit::{
    charts::{Answer, package, plain_chart},
    docker_registry::{DockerRegistry, NAME, PASSWORD},
    registry::{HELM_CONFIG, HELM_LAYER, Registry, manifest},
};

const PLACE: &str = "acme/web";

struct Catalogue {
    registry: Registry,
    store: Arc<Store>,
    id: RepoId,
}

impl Catalogue {
    fn new() -> Self {
        let (registry, id) = (Registry::start(), RepoId::new("default", "acme"));
        let store = Arc::new(Store::in_memory().expect("a database"));
        let spec = RepoSpec {
            url: format!("oci://{}/acme", registry.host()),
            oci_repositories: vec!["web".to_owned()],
            plain_http: true,
            ..RepoSpec::default()
        };
        let text = spec.text().expect("a spec");
        store.put_spec(&id, &spec.url, &text).expect("stored");
        Self {
            registry,
            store,
            id,
        }
    }

    /// Returns the digest.
    fn push(&self, tag: &str, version: &str, readme: &str) -> String {
        let chart = plain_chart("web", version, &[("README.md", readme)]);
        self.registry.push(PLACE, tag, HELM_LAYER, &chart)
    }

    /// Returns what was asked for, too.
    async fn sync(&self) -> (SyncReport, Vec<String>) {
        self.registry.server.paths();
        let status = self.store.repos().expect("the database").remove(0);
        let sync = RepoSpec::sync(Arc::clone(&self.store), &status).expect("a sync");
        let report = sync.run().await.expect("synced");
        (report, self.registry.server.paths())
    }

    fn chart(&self) -> Chart {
        let chart = self.store.chart(&self.id, "acme/web");
        chart.expect("the database").expect("a chart")
    }

    /// Version, digest, and the tag to pull.
    fn versions(&self) -> Vec<(String, String, String)> {
        let chart = self.chart();
        let versions = chart.versions.into_iter().map(|version| {
            let url = version.urls.unwrap_or_default().remove(0);
            let (_, tag) = url.rsplit_once(':').expect("a tag");
            (version.version, version.digest, tag.to_owned())
        });
        versions.collect()
    }

    fn readme(&self, version: &str) -> String {
        let files = self.store.files(&self.id, "acme/web", version);
        files.expect("the database").expect("files").readme
    }

    fn problems(&self) -> Vec<(String, ProblemKind)> {
        let problems = self.store.problems(&self.id).expect("the database");
        problems.into_iter().map(|p| (p.version, p.kind)).collect()
    }
}

fn blobs(asked: &[String]) -> usize {
    asked.iter().filter(|path| path.contains("/blobs/")).count()
}

fn version(version: &str, digest: &str, tag: &str) -> (String, String, String) {
    (version.to_owned(), digest.to_owned(), tag.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_tag_is_read_again() {
    let of = Catalogue::new();
    of.registry.tags(PLACE, &["1.0.0"]);
    of.push("1.0.0", "1.0.0", "first");
    let (report, _) = of.sync().await;
    assert_eq!((report.files, report.replaced), (1, 0));
    let (report, asked) = of.sync().await;
    assert_eq!((report.files, report.replaced), (0, 0));
    assert_eq!(blobs(&asked), 0);

    let digest = of.push("1.0.0", "1.0.0", "second");
    let (report, _) = of.sync().await;
    assert_eq!((report.files, report.replaced), (1, 1));
    assert_eq!(of.versions(), [version("1.0.0", &digest, "1.0.0")]);
    assert_eq!(of.readme("1.0.0"), "second");

    // Its version is another one now: the one before is gone.
    let digest = of.push("1.0.0", "1.0.1", "third");
    let (report, _) = of.sync().await;
    assert_eq!((report.files, report.replaced), (1, 1));
    assert_eq!(of.versions(), [version("1.0.1", &digest, "1.0.0")]);
    assert_eq!(of.readme("1.0.1"), "third");

    // What cannot be read takes nothing away, and is tried again.
    let absent = manifest(
        HELM_CONFIG,
        &[(HELM_LAYER, b"nowhere")],
        &serde_json::json!({}),
    );
    of.registry.push_manifest(PLACE, "1.0.0", &absent);
    for _ in 0..2 {
        let (report, _) = of.sync().await;
        assert_eq!((report.files, report.failed_files), (0, 1));
        assert_eq!(of.versions(), [version("1.0.1", &digest, "1.0.0")]);
        assert_eq!(of.problems(), [("1.0.0".to_owned(), ProblemKind::Skipped)]);
    }
    let digest = of.push("1.0.0", "1.0.1", "fourth");
    of.sync().await;
    assert_eq!(of.versions(), [version("1.0.1", &digest, "1.0.0")]);
    assert_eq!(of.problems(), []);
}

/// An error is never an empty registry.
#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_lists_no_tags_was_not_read() {
    let of = Catalogue::new();
    let list = format!("/v2/{PLACE}/tags/list?n=1000");
    let refused = Answer {
        status: 401,
        ..Answer::default()
    };
    of.registry.server.serve(&list, refused.clone());
    let sync = || {
        let status = of.store.repos().expect("the database").remove(0);
        RepoSpec::sync(Arc::clone(&of.store), &status).expect("a sync")
    };
    let error = sync().run().await.expect_err("it lists nothing");
    assert!(
        error.to_string().contains("refused the credentials"),
        "{error}"
    );

    // What was read before stays.
    of.registry.tags(PLACE, &["1.0.0"]);
    let digest = of.push("1.0.0", "1.0.0", "first");
    of.sync().await;
    of.registry.server.serve(&list, refused);
    assert!(sync().run().await.is_err());
    assert_eq!(of.versions(), [version("1.0.0", &digest, "1.0.0")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_digest_is_downloaded_once() {
    let of = Catalogue::new();
    of.registry.tags(PLACE, &["2.0.0", "v2.0.0", "1.0.0"]);
    let two = of.push("2.0.0", "2.0.0", "two");
    of.push("v2.0.0", "2.0.0", "two");
    let one = of.push("1.0.0", "1.0.0", "one");
    let (report, asked) = of.sync().await;
    assert_eq!((report.files, report.failed_files), (2, 0));
    assert_eq!(blobs(&asked), 2);
    let all = |tag| [version("2.0.0", &two, tag), version("1.0.0", &one, "1.0.0")];
    assert_eq!(of.versions(), all("2.0.0"));

    // One more name of a chart that is known.
    of.registry
        .tags(PLACE, &["2.0.0", "v2.0.0", "1.0.0", "v1.0.0"]);
    of.push("v1.0.0", "1.0.0", "one");
    let (report, asked) = of.sync().await;
    assert_eq!((report.files, report.failed_files), (0, 0));
    assert_eq!(blobs(&asked), 0);

    // The name that was pulled is gone: the other one leads to the same chart.
    of.registry.tags(PLACE, &["v2.0.0", "1.0.0", "v1.0.0"]);
    let (_, asked) = of.sync().await;
    assert_eq!(blobs(&asked), 0);
    assert_eq!(of.versions(), all("v2.0.0"));
    assert_eq!(of.problems(), []);

    // Two names with different charts of one version: the first counts, and the conflict is told.
    of.push("v1.0.0", "1.0.0", "other");
    of.sync().await;
    assert_eq!(of.versions(), all("v2.0.0"));
    assert_eq!(of.readme("1.0.0"), "one");
    let conflict = [("1.0.0".to_owned(), ProblemKind::Ambiguous)];
    assert_eq!(of.problems(), conflict);
    let (report, asked) = of.sync().await;
    assert_eq!((report.replaced, blobs(&asked)), (0, 0));
    assert_eq!(of.problems(), conflict);
}

#[tokio::test(flavor = "multi_thread")]
async fn few_tags_are_asked_for_again_in_turn() {
    let of = Catalogue::new();
    let tags: Vec<String> = (0..30).map(|n| format!("1.{n}.0")).collect();
    let names: Vec<&str> = tags.iter().map(String::as_str).collect();
    of.registry.tags(PLACE, &names);
    for tag in &tags {
        of.push(tag, tag, tag);
    }
    let (report, _) = of.sync().await;
    assert_eq!(report.files, 30);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..2 {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        let (_, asked) = of.sync().await;
        let looks: Vec<String> = asked
            .into_iter()
            .filter(|path| path.contains("/manifests/"))
            .collect();
        assert_eq!(looks.len(), 20);
        seen.extend(looks);
    }
    assert_eq!(seen.len(), 30);
}

/// A tag need not be what the chart in it calls its version, nor a repository what the chart calls
/// itself. Sources say what can be pulled.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_says_the_tag() {
    let catalogue = Catalogue::new();
    let tags = [
        ("v1.0.0", "1.0.0"),
        ("v1.1.0", "1.1.0"),
        ("1.2.0-alpine", "1.2.0"),
        ("1.3.0_b", "1.3.0+b"),
        ("2.0.0", "2.0.0"),
    ];
    for (tag, version) in tags {
        let chart = plain_chart("shop", version, &[("values.yaml", "a: 1\n")]);
        catalogue.registry.push(PLACE, tag, HELM_LAYER, &chart);
    }
    catalogue.registry.tags(PLACE, &tags.map(|(tag, _)| tag));
    catalogue.sync().await;
    let store = Arc::clone(&catalogue.store);
    let status = store.repos().expect("the database").remove(0);
    let source = |tag: &str| -> ApplicationSource {
        let repo_url = format!("{}/acme", catalogue.registry.host());
        let source = json!({"repoURL": repo_url, "chart": "web", "targetRevision": tag});
        serde_json::from_value(source).expect("a source")
    };
    let origin = Origin::of(&store, &source("v1.0.0")).expect("the database");
    let origin = origin.expect("it is found by its address");
    assert_eq!(origin.chart.name, "shop");
    let repo = &origin.chart.repo;
    let visitor = || RepoSpec::visitor(Arc::clone(&store), &status, repo).expect("a visitor");

    for (tag, version) in tags {
        let revision = tag.replace('_', "+");
        let known = origin.installed(&revision).expect("a version");
        assert_eq!(known.version, version);
        let install = Install::default();
        let preview = install.preview(&visitor(), &origin, ("acme", known)).await;
        let app = preview.expect("it renders").application;
        let written = app.spec.source.as_ref().expect("a source");
        assert_eq!(written.target_revision, revision);
        assert_eq!(written.chart, "web");
        let noted =
            |key: &str| app.metadata.annotations[&format!("catalog.tiphys.dev/{key}")].clone();
        assert_eq!([noted("chart"), noted("version")], ["web", &revision]);

        let newest = (version != "2.0.0").then_some("2.0.0");
        assert_eq!(origin.newer(&revision).as_deref(), newest, "{revision}");
        let wanted = Wanted {
            source: source("v1.0.0"),
            installed: "v1.0.0".to_owned(),
            version: Some(version.to_owned()),
            facts: Facts {
                name: "web".to_owned(),
                namespace: "web".to_owned(),
                ..Facts::default()
            },
            ..Wanted::default()
        };
        let plan = plan(Arc::clone(&store), &visitor(), &origin, wanted).await;
        let plan = plan.expect("a plan");
        assert_eq!(plan.source.target_revision, revision);
        assert_eq!([&*plan.from, &*plan.to], ["1.0.0", version]);
        assert!(plan.before.is_some(), "{:?}", plan.notes);
    }
}

/// What the newest version says of the chart holds, also when nothing new is read.
#[tokio::test(flavor = "multi_thread")]
async fn deprecated_charts_are_marked() {
    let catalogue = Catalogue::new();
    let push = |version: &str, deprecated: bool| {
        let about =
            format!("apiVersion: v2\nname: web\nversion: {version}\ndeprecated: {deprecated}\n");
        let chart = package("web", &[("Chart.yaml", &about)]);
        catalogue.registry.push(PLACE, version, HELM_LAYER, &chart);
    };
    let is = || {
        let is = catalogue.store.is_deprecated(&catalogue.id, "acme/web");
        is.expect("the database")
    };
    for (tags, newest_is) in [
        (&["1.0.0"][..], false),
        (&["1.0.0", "1.1.0"][..], true),
        (&["1.0.0", "1.1.0"][..], true),
        (&["1.0.0", "1.1.0", "0.9.0"][..], true),
        (&["1.0.0", "1.1.0", "0.9.0", "2.0.0"][..], false),
    ] {
        if let Some(tag) = tags.last() {
            push(tag, newest_is || *tag == "0.9.0");
        }
        catalogue.registry.tags(PLACE, tags);
        catalogue.sync().await;
        assert_eq!(is(), newest_is, "{tags:?}");
    }
}

/// Debian's docker-registry, which wants a password, makes pages of tags and lists no charts but by
/// their names.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_registry() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(registry) = DockerRegistry::start_or_skip(folder.path()) else {
        return;
    };
    let chart = |name: &str, version: &str, readme: &str| {
        plain_chart(name, version, &[("README.md", readme)])
    };
    for version in ["1.0.0", "1.1.0+b2"] {
        let tag = version.replace('+', "_");
        let web = chart("web", version, &format!("web {version}"));
        registry.push("acme/web", &tag, HELM_LAYER, &web).await;
    }
    let db = chart("db", "0.1.0", "db");
    registry.push("acme/db", "0.1.0", HELM_LAYER, &db).await;

    let store = Arc::new(Store::in_memory().expect("a database"));
    let id = RepoId::new("default", "acme");
    let sync = async |password: &str| {
        let spec = RepoSpec {
            url: format!("oci://{}/acme", registry.host()),
            oci_repositories: vec!["web".to_owned(), "db".to_owned()],
            plain_http: true,
            username: NAME.to_owned(),
            password: password.to_owned(),
            ..RepoSpec::default()
        };
        let text = spec.text().expect("a spec");
        store.put_spec(&id, &spec.url, &text).expect("stored");
        let status = store.repos().expect("the database").remove(0);
        let sync = RepoSpec::sync(Arc::clone(&store), &status).expect("a sync");
        sync.run().await
    };
    let listed = || {
        let page = store.search(&Query::default()).expect("the database");
        let chart = |name: String| {
            let chart = store.chart(&id, &format!("acme/{name}"));
            let versions = chart.expect("the database").expect("a chart").versions;
            let versions: Vec<String> = versions.into_iter().map(|v| v.version).collect();
            (name, versions)
        };
        let charts = page.charts.into_iter();
        charts.map(|found| chart(found.name)).collect::<Vec<_>>()
    };
    let of = |name: &str, versions: &[&str]| {
        let versions = versions.iter().map(|v| (*v).to_owned());
        (name.to_owned(), versions.collect::<Vec<_>>())
    };
    let report = sync(PASSWORD).await.expect("synced");
    assert_eq!(
        (report.charts, report.files, report.failed_files),
        (2, 3, 0)
    );
    let all = [of("db", &["0.1.0"]), of("web", &["1.1.0+b2", "1.0.0"])];
    assert_eq!(listed(), all);
    let files = store.files(&id, "acme/web", "1.1.0+b2");
    let files = files.expect("the database").expect("files");
    assert_eq!(files.readme, "web 1.1.0+b2");

    let refused = sync("wrong").await.expect_err("a wrong password");
    let wanted = "refused the credentials";
    assert!(refused.to_string().contains(wanted), "{refused}");
    assert_eq!(
        listed(),
        all,
        "nothing is removed by a registry that was not read"
    );

    // A tag that names another chart now, and one more.
    let again = chart("web", "1.0.0", "web again");
    registry.push("acme/web", "1.0.0", HELM_LAYER, &again).await;
    let more = chart("web", "2.0.0", "web 2");
    registry.push("acme/web", "2.0.0", HELM_LAYER, &more).await;
    let report = sync(PASSWORD).await.expect("synced");
    assert_eq!((report.files, report.replaced), (2, 1));
    assert_eq!(listed()[1], of("web", &["2.0.0", "1.1.0+b2", "1.0.0"]));
    let files = store.files(&id, "acme/web", "1.0.0");
    assert_eq!(
        files.expect("the database").expect("files").readme,
        "web again"
    );
}

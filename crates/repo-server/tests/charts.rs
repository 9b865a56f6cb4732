//! Charts of repositories, and what registries have.

use crate::world::{World, repo, request};
use serde_json::json;
use std::path::Path;
use tiphys_api::{
    repository::{ChartDetails, OCIMetadata, RepoCreds, Repository},
    rpc::repo_server::{
        HelmChart, HelmChartsRequest, HelmChartsResponse, ListRefsRequest, ManifestRequest,
        ManifestResponse, Refs, RepoServerRevisionChartDetailsRequest, ResolveRevisionRequest,
        ResolveRevisionResponse, TestRepositoryRequest, TestRepositoryResponse,
    },
    source::ApplicationSource,
};
use tiphys_testkit::{
    archive::{TarEntry, tar},
    charts::{Answer, FileServer, basic, index, plain_chart},
    registry::{HELM_LAYER, Registry, TAR_LAYER, manifest},
};

/// A repository of charts with two versions of `web`.
fn charts() -> FileServer {
    let server = FileServer::start();
    let listed = [
        ("web", "1.1.0", "web-1.1.0.tgz", ""),
        ("web", "1.0.0", "web-1.0.0.tgz", ""),
        ("other", "2.0.0", "other-2.0.0.tgz", ""),
    ];
    server.serve("/index.yaml", index(&listed).into_bytes());
    for (name, version, file, _) in listed {
        server.serve(&format!("/{file}"), plain_chart(name, version, &[]));
    }
    server
}

fn of_chart(url: &str, chart: &str, revision: &str) -> ManifestRequest {
    ManifestRequest {
        repo: repo(url),
        revision: revision.to_owned(),
        application_source: Some(ApplicationSource {
            repo_url: url.to_owned(),
            chart: chart.to_owned(),
            ..ApplicationSource::default()
        }),
        ..request(Path::new(url), "")
    }
}

async fn generate(world: &World, asked: &ManifestRequest) -> ManifestResponse {
    let found = world.ask("GenerateManifest", asked).await;
    found.expect("manifests")
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_of_a_repository() {
    let (world, server) = (World::plain().await, charts());
    let url = server.url();
    let found = generate(&world, &of_chart(&url, "web", "1.*")).await;
    assert_eq!(
        (found.revision.as_str(), found.source_type.as_str()),
        ("1.1.0", "Helm")
    );
    assert!(
        found.manifests[0].contains(r#""name":"web-web""#),
        "{found:?}"
    );

    let asked = HelmChartsRequest { repo: repo(&url) };
    let listed: HelmChartsResponse = world.ask("GetHelmCharts", &asked).await.expect("charts");
    let chart = |name: &str, versions: &[&str]| HelmChart {
        name: name.to_owned(),
        versions: versions.iter().map(|v| (*v).to_owned()).collect(),
    };
    let mut items = listed.items;
    items.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(
        items,
        [
            chart("other", &["2.0.0"]),
            chart("web", &["1.1.0", "1.0.0"])
        ]
    );

    let asked = RepoServerRevisionChartDetailsRequest {
        repo: repo(&url),
        name: "web".to_owned(),
        revision: "1.0.0".to_owned(),
    };
    let details: ChartDetails = world
        .ask("GetRevisionChartDetails", &asked)
        .await
        .expect("details");
    assert_eq!(details.description, "The web chart");
    assert_eq!(details.maintainers, ["Ann <ann@example.com>"]);

    let typed = TestRepositoryRequest {
        repo: repo(&url).map(|r| Repository {
            type_: "helm".to_owned(),
            ..r
        }),
    };
    let tested: Result<TestRepositoryResponse, _> = world.ask("TestRepository", &typed).await;
    assert!(tested.is_ok(), "{tested:?}");
    server.remove("/index.yaml");
    let tested: Result<TestRepositoryResponse, _> = world.ask("TestRepository", &typed).await;
    let (status, message) = tested.expect_err("no index");
    assert_eq!(status, "2");
    assert!(
        message.starts_with("error testing repository connectivity: "),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn dependencies_get_the_credentials_of_the_request() {
    let (world, server) = (World::plain().await, charts());
    let chart = plain_chart("dep", "1.0.0", &[]);
    let (user, password) = ("ann", "hunter2");
    let only_with = |body: Vec<u8>| Answer {
        only_with: Some((basic(user, password), "Basic realm=\"x\"".to_owned())),
        ..Answer::from(body)
    };
    let listed = index(&[("dep", "1.0.0", "dep-1.0.0.tgz", "")]);
    server.serve("/private/index.yaml", only_with(listed.into_bytes()));
    server.serve("/private/dep-1.0.0.tgz", only_with(chart));
    let url = format!("{}/private", server.url());
    let own = format!(
        "apiVersion: v2\nname: own\nversion: 1.0.0\ndependencies: [{{name: dep, version: 1.0.0, repository: '{url}'}}]\n"
    );
    let (path, _) = world.repository("r", &[("own/Chart.yaml", &own)]);
    let known = Repository {
        username: user.to_owned(),
        password: password.to_owned(),
        name: "private".to_owned(),
        type_: "helm".to_owned(),
        ..repo(&url).expect("one")
    };
    let template = RepoCreds {
        url: server.url(),
        username: user.to_owned(),
        password: password.to_owned(),
        ..RepoCreds::default()
    };
    let plain = request(&path, "own");
    let listed = ManifestRequest {
        repos: vec![known],
        ..plain.clone()
    };
    let below = ManifestRequest {
        helm_repo_creds: vec![template.clone()],
        no_cache: true,
        ..plain.clone()
    };
    for asked in [listed, below.clone()] {
        let found = generate(&world, &asked).await;
        assert_eq!(found.manifests.len(), 1);
    }
    let elsewhere = ManifestRequest {
        project_source_repos: vec!["https://other.example.com/*".to_owned()],
        ..below
    };
    let refused: Result<ManifestResponse, _> = world.ask("GenerateManifest", &elsewhere).await;
    let (_, message) = refused.expect_err("not permitted");
    assert!(
        message.contains("not permitted in project 'default'"),
        "{message}"
    );
    assert!(!message.contains(password), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_of_a_registry() {
    let (world, registry) = (World::plain().await, Registry::start());
    let layer = tar(&[TarEntry::file(
        "app/a.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    )]);
    registry.push_blob("team/app", &layer);
    let annotations = json!({
        "org.opencontainers.image.version": "1.0.0",
        "org.opencontainers.image.authors": "Ann",
    });
    let config = "application/vnd.oci.empty.v1+json";
    let text = manifest(config, &[(TAR_LAYER, &layer)], &annotations);
    let digest = registry.push_manifest("team/app", "1.0.0", &text);
    registry.tags("team/app", &["1.0.0"]);
    let url = format!("oci://{}/team/app", registry.host());
    let plain_http = |url: &str| {
        repo(url).map(|r| Repository {
            insecure_oci_force_http: true,
            ..r
        })
    };
    let asked = ManifestRequest {
        repo: plain_http(&url),
        revision: "1.0.0".to_owned(),
        ..request(Path::new(&url), "app")
    };
    let found = generate(&world, &asked).await;
    assert_eq!(
        (found.revision.as_str(), found.manifests.len()),
        (digest.as_str(), 1)
    );

    let of_repository = ListRefsRequest {
        repo: plain_http(&url),
    };
    let tags: Refs = world
        .ask("ListOCITags", &of_repository)
        .await
        .expect("tags");
    assert_eq!(tags.tags, ["1.0.0"]);
    let named = RepoServerRevisionChartDetailsRequest {
        repo: plain_http(&url),
        name: String::new(),
        revision: digest.clone(),
    };
    let told: OCIMetadata = world.ask("GetOCIMetadata", &named).await.expect("metadata");
    assert_eq!(
        (told.version.as_str(), told.authors.as_str()),
        ("1.0.0", "Ann")
    );
    let mut app = tiphys_api::Application::default();
    app.spec.source = asked.application_source.clone();
    let asked = ResolveRevisionRequest {
        repo: plain_http(&url),
        app: Some(app),
        ambiguous_revision: "1.0.0".to_owned(),
        source_index: 0,
        no_revision_cache: false,
    };
    let found: ResolveRevisionResponse = world.ask("ResolveRevision", &asked).await.expect("one");
    assert_eq!(found.ambiguous_revision, format!("1.0.0 ({digest})"));

    // A chart of the registry.
    let chart = plain_chart("web", "1.0.0", &[]);
    registry.push("charts/web", "1.0.0", HELM_LAYER, &chart);
    registry.tags("charts/web", &["1.0.0"]);
    let charts = format!("{}/charts", registry.host());
    let asked = ManifestRequest {
        repo: plain_http(&charts).map(|r| Repository {
            enable_oci: true,
            ..r
        }),
        ..of_chart(&charts, "web", "1.0.0")
    };
    let found = generate(&world, &asked).await;
    assert_eq!(
        (found.revision.as_str(), found.source_type.as_str()),
        ("1.0.0", "Helm")
    );
}

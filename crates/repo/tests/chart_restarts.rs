//! What a process that is started again knows of chart repositories and registries.

use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tiphys_api::source::ApplicationSource;
use tiphys_repo::{
    DiskCache, ManifestRequest, RepoAccess, RepoError, RepoOptions, Repos, Secret, Since,
};
use tiphys_testkit::{
    charts::{Answer, FileServer, index, plain_chart},
    registry::{HELM_LAYER, Registry, TAR_LAYER},
};

const INDEX: &str = "/index.yaml";

/// A process that has just begun.
fn started(folder: &Path) -> Repos {
    let cache = DiskCache::open(&folder.join("rendered"), 1 << 20);
    let options = RepoOptions {
        disk_cache: Some(cache.expect("opened")),
        ..RepoOptions::default()
    };
    Repos::with_options(folder, options)
}

fn source(access: &RepoAccess, chart: &str) -> ApplicationSource {
    ApplicationSource {
        repo_url: access.url.clone(),
        chart: chart.to_owned(),
        ..ApplicationSource::default()
    }
}

async fn resolved(
    repos: &Repos,
    access: &RepoAccess,
    (chart, revision): (&str, &str),
    since: Since,
) -> Result<String, RepoError> {
    let source = source(access, chart);
    let found = repos.resolve_source(access, &source, revision, since).await;
    found.map(|found| found.sha)
}

fn failing(status: u16) -> Answer {
    Answer {
        status,
        ..Answer::default()
    }
}

/// The answer with this version of the chart, and an ETag.
fn listing(version: &str, etag: u8) -> Answer {
    let text = index(&[("demo", version, "demo.tgz", "")]);
    tagged(&text, etag)
}

fn tagged(text: &str, etag: u8) -> Answer {
    Answer {
        headers: vec![format!("ETag: \"{etag}\"")],
        ..Answer::from(text)
    }
}

const RANGE: (&str, &str) = ("demo", "1.x");

#[tokio::test]
async fn an_unchanged_index_is_not_sent_again_after_a_restart() {
    let (folder, server) = (TempDir::new().expect("a folder"), FileServer::start());
    let access = RepoAccess::public(server.url());
    let after_a_restart = async || {
        let repos = started(folder.path());
        resolved(&repos, &access, RANGE, Since::Recently).await
    };
    server.serve(INDEX, listing("1.0.0", 1));
    assert_eq!(after_a_restart().await.expect("asked"), "1.0.0");
    server.paths();
    // The server says 304 to those who have it.
    server.serve(INDEX, tagged("not an index", 1));
    for _ in 0..2 {
        assert_eq!(after_a_restart().await.expect("known"), "1.0.0");
        assert_eq!(server.paths(), [INDEX]);
    }
    // One without a memory has it sent, and leaves another file in the folder. It is not believed.
    let forgetful = Repos::new(folder.path());
    let broken = resolved(&forgetful, &access, RANGE, Since::Recently).await;
    broken.expect_err("it is no index");
    after_a_restart().await.expect_err("it was sent");
    server.serve(INDEX, listing("1.1.0", 2));
    assert_eq!(after_a_restart().await.expect("another"), "1.1.0");
}

#[tokio::test]
async fn a_range_means_the_same_in_an_outage_after_a_restart() {
    let (folder, server) = (TempDir::new().expect("a folder"), FileServer::start());
    let access = RepoAccess::public(server.url());
    let other = RepoAccess {
        username: "ann".to_owned(),
        password: Secret::new("hunter2"),
        ..access.clone()
    };
    let of = async |access: &RepoAccess, since: Since| {
        let repos = started(folder.path());
        resolved(&repos, access, RANGE, since).await
    };
    server.serve(INDEX, listing("1.0.0", 1));
    let found = of(&access, Since::Recently).await;
    assert_eq!(found.expect("asked"), "1.0.0");
    server.serve(INDEX, failing(503));
    server.paths();

    let repos = started(folder.path());
    for _ in 0..3 {
        let found = resolved(&repos, &access, RANGE, Since::Recently).await;
        assert_eq!(found.expect("as it was"), "1.0.0");
    }
    assert_eq!(server.paths(), [INDEX], "it is asked once");
    let forgetful = Repos::new(folder.path());
    for error in [
        resolved(&repos, &access, RANGE, Since::now()).await,
        of(&access, Since::now()).await,
        of(&other, Since::Recently).await,
        resolved(&forgetful, &access, RANGE, Since::Recently).await,
    ] {
        let error = error.expect_err("nobody knows");
        let is_away = matches!(error, RepoError::Status { status: 503, .. });
        assert!(is_away, "{error}");
    }

    // An answer is believed, and from then on an outage has nothing to hide.
    for (status, answer) in [(404, failing(404)), (503, failing(503))] {
        server.serve(INDEX, answer);
        let error = of(&access, Since::Recently).await.expect_err("no index");
        let is_it = matches!(error, RepoError::Status { status: s, .. } if s == status);
        assert!(is_it, "{error}");
    }
    server.serve(INDEX, listing("1.1.0", 2));
    let found = of(&access, Since::Recently).await;
    assert_eq!(found.expect("it is back"), "1.1.0");
}

#[tokio::test]
async fn a_chart_is_there_in_an_outage_after_a_restart() {
    let (folder, server) = (TempDir::new().expect("a folder"), FileServer::start());
    let access = RepoAccess::public(server.url());
    let request = ManifestRequest {
        source: source(&access, "demo"),
        access: access.clone(),
        sha: "1.0.0".to_owned(),
        app_name: "shop".to_owned(),
        ..ManifestRequest::default()
    };
    // Without a digest in the index, by which the archive would be known.
    server.serve(INDEX, listing("1.0.0", 1));
    server.serve("/demo.tgz", plain_chart("demo", "1.0.0", &[]));
    let first = started(folder.path()).manifests(request.clone()).await;
    let first = first.expect("rendered");

    server.serve("/demo.tgz", failing(503));
    let restarted = started(folder.path());
    let again = restarted.manifests(request.clone()).await;
    assert_eq!(again.expect("it was here").digest, first.digest);
    // Who wants the chart that is there now is told that it is not.
    let hard = ManifestRequest {
        no_cache: true,
        ..request.clone()
    };
    let error = started(folder.path()).manifests(hard).await;
    let error = error.map(|_| ()).expect_err("nobody knows");
    let is_away = matches!(error, RepoError::Status { status: 503, .. });
    assert!(is_away, "{error}");
    // The index goes, too.
    server.serve(INDEX, failing(503));
    for no_cache in [false, true] {
        let request = ManifestRequest {
            no_cache,
            ..request.clone()
        };
        let again = started(folder.path()).manifests(request).await;
        match again {
            Ok(again) => {
                assert!(!no_cache, "nobody knows");
                assert_eq!(again.digest, first.digest);
            }
            Err(e) => assert!(no_cache, "it was here: {e}"),
        }
    }
    // The index names another archive of this version by its digest, which is not the one that was
    // downloaded.
    let digest = "0".repeat(64);
    let other = index(&[("demo", "1.0.0", "demo.tgz", &digest)]);
    server.serve(INDEX, tagged(&other, 2));
    let error = started(folder.path()).manifests(request).await;
    let error = error.map(|_| ()).expect_err("it is not here");
    let is_away = matches!(error, RepoError::Status { status: 503, .. });
    assert!(is_away, "{error}");
}

fn demo(access: &RepoAccess) -> ManifestRequest {
    ManifestRequest {
        source: source(access, "demo"),
        access: access.clone(),
        sha: "1.0.0".to_owned(),
        app_name: "shop".to_owned(),
        ..ManifestRequest::default()
    }
}

async fn refused(repos: &Repos, request: &ManifestRequest, why: &str) {
    let made = repos.manifests(request.clone()).await;
    made.map(|_| ()).expect_err(why);
}

#[tokio::test]
async fn a_refusal_outlives_a_restart() {
    let (folder, server) = (TempDir::new().expect("a folder"), FileServer::start());
    let request = demo(&RepoAccess::public(server.url()));
    server.serve(INDEX, listing("1.0.0", 1));
    server.serve("/demo.tgz", plain_chart("demo", "1.0.0", &[]));
    let first = started(folder.path()).manifests(request.clone()).await;
    first.expect("rendered");
    server.serve(INDEX, failing(401));
    refused(&started(folder.path()), &request, "it is refused").await;
    // From then on an outage has nothing to hide.
    server.serve(INDEX, failing(503));
    refused(&started(folder.path()), &request, "it was refused").await;
}

/// Also for those charts that nobody asked for while the repository refused the credentials.
#[tokio::test]
async fn a_refusal_of_an_index_counts_for_all_its_charts_after_a_restart() {
    let (folder, server) = (TempDir::new().expect("a folder"), FileServer::start());
    let request = demo(&RepoAccess::public(server.url()));
    let other = ManifestRequest {
        source: source(&request.access, "other"),
        ..request.clone()
    };
    let text = index(&[
        ("demo", "1.0.0", "demo.tgz", ""),
        ("other", "1.0.0", "other.tgz", ""),
    ]);
    server.serve(INDEX, tagged(&text, 1));
    for chart in ["demo", "other"] {
        let path = format!("/{chart}.tgz");
        server.serve(&path, plain_chart(chart, "1.0.0", &[]));
    }
    let render = async |request: &ManifestRequest, why: &str| {
        let made = started(folder.path()).manifests(request.clone()).await;
        made.map(|_| ()).expect(why);
    };
    render(&request, "rendered").await;
    render(&other, "rendered").await;
    server.serve(INDEX, failing(503));
    render(&other, "an outage says nothing").await;
    server.serve(INDEX, failing(401));
    refused(&started(folder.path()), &request, "it is refused").await;
    server.serve(INDEX, failing(503));
    for _ in 0..2 {
        refused(&started(folder.path()), &other, "the index was refused").await;
    }
    // The refusal ends with the next answer, for later processes, too.
    server.serve(INDEX, tagged(&text, 1));
    render(&other, "accepted again").await;
    for path in [INDEX, "/other.tgz"] {
        server.serve(path, failing(503));
    }
    render(&other, "it was accepted last").await;
    // What is lost says nothing, and a refusal may have been the last answer.
    let accepted = folder.path().join("accepted");
    std::fs::remove_dir_all(accepted).expect("it is there");
    refused(&started(folder.path()), &other, "nobody knows").await;
}

#[tokio::test]
async fn a_refusal_of_a_registry_counts_for_all_tags_after_a_restart() {
    let (folder, registry) = (TempDir::new().expect("a folder"), Registry::start());
    for version in ["1.0.0", "1.1.0"] {
        let chart = plain_chart("demo", version, &[]);
        registry.push("team/demo", version, HELM_LAYER, &chart);
    }
    let request = demo(&RepoAccess {
        plain_http: true,
        ..RepoAccess::public(format!("{}/team", registry.host()))
    });
    let other = ManifestRequest {
        sha: "1.1.0".to_owned(),
        ..request.clone()
    };
    for request in [&request, &other] {
        let made = started(folder.path()).manifests(request.clone()).await;
        made.map(|_| ()).expect("rendered");
    }
    let path = |version: &str| format!("/v2/team/demo/manifests/{version}");
    registry.server.serve(&path("1.1.0"), failing(503));
    let made = started(folder.path()).manifests(other.clone()).await;
    made.map(|_| ()).expect("an outage says nothing");
    registry.server.serve(&path("1.0.0"), failing(403));
    refused(&started(folder.path()), &request, "it is refused").await;
    let why = "the registry refused the credentials";
    refused(&started(folder.path()), &other, why).await;
}

#[tokio::test]
async fn what_a_registry_does_not_have_any_more_is_not_served() {
    let (folder, registry) = (TempDir::new().expect("a folder"), Registry::start());
    let chart = plain_chart("demo", "1.0.0", &[]);
    registry.push("team/demo", "1.0.0", HELM_LAYER, &chart);
    let request = demo(&RepoAccess {
        plain_http: true,
        ..RepoAccess::public(format!("{}/team", registry.host()))
    });
    let hard = ManifestRequest {
        no_cache: true,
        ..request.clone()
    };
    let repos = started(folder.path());
    repos.manifests(request.clone()).await.expect("rendered");
    let path = "/v2/team/demo/manifests/1.0.0";
    registry.server.serve(path, failing(404));
    refused(&repos, &hard, "it is gone").await;
    refused(&repos, &request, "that was told").await;
    registry.server.serve(path, failing(503));
    refused(&started(folder.path()), &request, "it was gone").await;
}

/// The files of the objects that are kept below a folder.
fn objects_below(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_object = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        path.is_file() && name.is_some_and(|name| name.len() == 38)
    };
    let mut found: Vec<_> = entries(folder)
        .flat_map(|entry| entries(&entry.path()))
        .map(|entry| entry.path())
        .filter(is_object)
        .collect();
    found.sort();
    found
}

/// As a machine leaves it that lost its power.
#[tokio::test]
async fn a_torn_object_of_a_chart_is_downloaded_anew() {
    let server = FileServer::start();
    let access = RepoAccess::public(server.url());
    let request = ManifestRequest {
        source: source(&access, "demo"),
        access,
        sha: "1.0.0".to_owned(),
        app_name: "shop".to_owned(),
        ..ManifestRequest::default()
    };
    let text = index(&[("demo", "1.0.0", "demo.tgz", "of-it")]);
    server.serve(INDEX, text.as_str());
    server.serve("/demo.tgz", plain_chart("demo", "1.0.0", &[]));
    let (mut torn, mut all) = (0, 1);
    while torn < all {
        let folder = TempDir::new().expect("a folder");
        let started = || Repos::new(folder.path());
        let first = started().manifests(request.clone()).await;
        let first = first.expect("rendered");
        let objects = objects_below(&folder.path().join("unpacked/1/objects"));
        all = objects.len();
        let object = objects.get(torn).expect("always as many");
        let content = std::fs::read(object).expect("an object");
        // Another file: objects cannot be written to.
        std::fs::remove_file(object).expect("removed");
        std::fs::write(object, &content[..content.len() / 2]).expect("written");
        let again = started().manifests(request.clone()).await;
        let again = again.expect("it is downloaded anew");
        assert_eq!(again.digest, first.digest, "{}", object.display());
        torn += 1;
    }
    assert!(torn >= 4, "a commit, a tree and two files at least: {torn}");
}

#[tokio::test]
async fn tags_mean_the_same_in_an_outage_after_a_restart() {
    let (folder, registry) = (TempDir::new().expect("a folder"), Registry::start());
    let access = |url: String| RepoAccess {
        plain_http: true,
        ..RepoAccess::public(url)
    };
    let (charts, artifact) = (
        access(format!("{}/team", registry.host())),
        access(format!("oci://{}/team/app", registry.host())),
    );
    let publish = || {
        registry.push("team/demo", "1.1.0", HELM_LAYER, b"a chart");
        registry.tags("team/demo", &["1.0.0", "1.1.0"]);
        registry.push("team/app", "main", TAR_LAYER, b"files")
    };
    let fail = |status| {
        for path in [
            "/v2/team/demo/tags/list?n=1000",
            "/v2/team/app/manifests/main",
        ] {
            registry.server.serve(path, failing(status));
        }
    };
    let both = async |since: Since| {
        let repos = started(folder.path());
        let version = resolved(&repos, &charts, RANGE, since).await;
        let digest = resolved(&repos, &artifact, ("", "main"), since).await;
        (version, digest)
    };
    let digest = publish();
    let expect = |(version, found): (Result<String, RepoError>, Result<String, RepoError>)| {
        assert_eq!(version.expect("a version"), "1.1.0");
        assert_eq!(found.expect("a digest"), digest);
    };
    expect(both(Since::Recently).await);

    fail(503);
    expect(both(Since::Recently).await);
    let (version, found) = both(Since::now()).await;
    for error in [version, found] {
        let error = error.expect_err("nobody knows");
        let is_away = matches!(error, RepoError::Status { status: 503, .. });
        assert!(is_away, "{error}");
    }

    // An answer is believed, and from then on an outage has nothing to hide.
    for status in [404, 503] {
        fail(status);
        let (version, found) = both(Since::Recently).await;
        for error in [version, found] {
            let error = error.expect_err("there is none");
            let is_away = matches!(error, RepoError::Status { status: 503, .. });
            assert_eq!(is_away, status == 503, "{error}");
        }
    }
    publish();
    expect(both(Since::Recently).await);
}

//! Charts of HTTP repositories: versions, addresses, credentials, caching, and the dependencies of
//! charts.

use std::{path::Path, sync::Arc};
use tiphys_api::source::ApplicationSource;
use tiphys_repo::{
    ErrorKind, ManifestRequest, Manifests, OtherRepository, Others, Reach, RepoAccess, RepoError,
    RepoOptions, Repos, Secret, Since, SourceLimits,
};
use tiphys_testkit::charts::{Answer, FileServer, basic, index, package, plain_chart};
use tiphys_testkit::registry::{HELM_LAYER, Registry};

const USER: Option<(&str, &str)> = Some(("ann", "hunter2"));

fn source(chart: &str) -> ApplicationSource {
    ApplicationSource {
        repo_url: "https://example.com/charts".to_owned(),
        chart: chart.to_owned(),
        ..ApplicationSource::default()
    }
}

fn access(url: &str) -> RepoAccess {
    RepoAccess::public(url)
}

fn signed(url: &str) -> RepoAccess {
    RepoAccess {
        username: "ann".to_owned(),
        password: Secret::new("hunter2"),
        ..RepoAccess::public(url)
    }
}

fn request(access: RepoAccess, chart: &str, version: &str) -> ManifestRequest {
    ManifestRequest {
        access,
        source: source(chart),
        sha: version.to_owned(),
        app_name: "shop".to_owned(),
        ..ManifestRequest::default()
    }
}

async fn resolved(repos: &Repos, url: &str, chart: &str, revision: &str) -> Result<String, String> {
    let (access, source) = (access(url), source(chart));
    let found = repos.resolve_source(&access, &source, revision, Since::now());
    found.await.map(|r| r.sha).map_err(|e| e.to_string())
}

/// The data of the first object.
fn field(manifests: &Manifests, name: &str) -> String {
    let first = manifests.objects.first().expect("an object");
    first.object().str_at(&format!("/data/{name}")).to_owned()
}

/// Serves versions of the chart `demo` below a folder. Each: version, and more files.
fn serve_demo(server: &FileServer, folder: &str, versions: &[&str]) {
    let mut entries = Vec::new();
    for version in versions {
        let (name, digest) = (format!("demo-{version}.tgz"), format!("of-{version}"));
        server.serve(
            &format!("{folder}/{name}"),
            plain_chart("demo", version, &[]),
        );
        entries.push(((*version).to_owned(), name, digest));
    }
    let entries: Vec<_> = entries
        .iter()
        .map(|(version, name, digest)| ("demo", version.as_str(), name.as_str(), digest.as_str()))
        .collect();
    server.serve(&format!("{folder}/index.yaml"), index(&entries).as_str());
}

struct Here {
    dir: tempfile::TempDir,
    repos: Repos,
    server: FileServer,
}

impl Here {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        Self {
            repos: Repos::new(dir.path().join("cache")),
            server: FileServer::start(),
            dir,
        }
    }

    fn url(&self, folder: &str) -> String {
        format!("{}{folder}", self.server.url())
    }

    async fn render(&self, request: ManifestRequest) -> Result<Arc<Manifests>, RepoError> {
        self.repos.manifests(request).await
    }

    /// A Git repository with one chart in its root.
    fn git(&self, name: &str, files: &[(&str, &str)]) -> (RepoAccess, String) {
        let path = self.dir.path().join(name);
        let sha = Repos::init_example(&path, files.iter().copied()).expect("a repository");
        (access(path.to_str().expect("UTF-8")), sha)
    }
}

#[tokio::test]
async fn a_chart_is_found_by_version_or_range() {
    let here = Here::new();
    let versions = [
        "0.5.0",
        "0.5.1",
        "1.2.2",
        "1.2.3",
        "1.3.0-rc.1",
        "2.0.0+build.7",
        "v3.0.0",
    ];
    serve_demo(&here.server, "/pk", &versions);
    let url = here.url("/pk");
    for (revision, version, rendered) in [
        ("0.5", "0.5", "0.5.1"),
        ("0.5.*", "0.5.1", "0.5.1"),
        ("^1", "1.2.3", "1.2.3"),
        ("*", "v3.0.0", "v3.0.0"),
        ("1.3.x-0", "1.3.0-rc.1", "1.3.0-rc.1"),
        ("2.0.0", "2.0.0", "2.0.0+build.7"),
        ("3.0.0", "3.0.0", "v3.0.0"),
        ("v1.2.3", "v1.2.3", "1.2.3"),
    ] {
        let found = resolved(&here.repos, &url, "demo", revision).await;
        assert_eq!(found.as_deref(), Ok(version), "{revision}");
        let made = here.render(request(access(&url), "demo", version)).await;
        let made = made.expect(revision);
        assert_eq!(field(&made, "version"), rendered, "{revision}");
        assert_eq!(
            (made.revision.as_str(), made.source_type.as_str()),
            (version, "Helm")
        );
    }
    for (chart, revision, error) in [
        (
            "demo",
            "1.3.*",
            "version matching constraint not found in 7 tags".to_owned(),
        ),
        (
            "demo",
            "latest",
            "failed to determine semver constraint: improper constraint: \"latest\"".to_owned(),
        ),
        (
            "other",
            "1.x",
            format!("chart 'other' not found in index of {url}"),
        ),
    ] {
        let refused = resolved(&here.repos, &url, chart, revision).await;
        assert_eq!(refused, Err(error), "{chart} {revision}");
    }
    let absent = here.render(request(access(&url), "demo", "99.0.0")).await;
    let absent = absent.expect_err("there is no such version");
    assert_eq!(
        absent.to_string(),
        format!("chart \"demo\" version \"99.0.0\" not found in {url} repository")
    );
    assert_eq!(absent.kind(), ErrorKind::User);
}

#[tokio::test]
async fn what_is_there_already_is_not_downloaded_again() {
    let here = Here::new();
    serve_demo(&here.server, "/pk", &["1.0.0", "1.1.0"]);
    let url = here.url("/pk");
    let first = here.render(request(access(&url), "demo", "1.0.0")).await;
    let first = first.expect("it can be rendered");
    assert_eq!(
        here.server.paths(),
        ["/pk/index.yaml", "/pk/demo-1.0.0.tgz"]
    );

    // In this process.
    let again = request(access(&url), "demo", "1.0.0");
    let same = here
        .repos
        .unchanged(&again, &first)
        .expect("it is in memory");
    assert!(Arc::ptr_eq(&same.objects, &first.objects));
    here.render(again).await.expect("it can be rendered");
    here.render(request(access(&url), "demo", "1.1.0"))
        .await
        .expect("it can be rendered");
    assert_eq!(
        here.server.paths(),
        ["/pk/demo-1.1.0.tgz"],
        "the index is new enough"
    );

    // In another one: the index is asked for, the archive is not; without a server, neither.
    let restarted = Repos::new(here.dir.path().join("cache"));
    let made = restarted
        .manifests(request(access(&url), "demo", "1.0.0"))
        .await;
    assert_eq!(
        field(&made.expect("it can be rendered"), "version"),
        "1.0.0"
    );
    assert_eq!(here.server.paths(), ["/pk/index.yaml"]);
    here.server.serve(
        "/pk/index.yaml",
        Answer {
            status: 503,
            ..Answer::default()
        },
    );
    let restarted = Repos::new(here.dir.path().join("cache"));
    let made = restarted
        .manifests(request(access(&url), "demo", "1.0.0"))
        .await;
    assert_eq!(field(&made.expect("it is kept"), "version"), "1.0.0");
    let unknown = restarted
        .manifests(request(access(&url), "demo", "1.2.0"))
        .await;
    let unknown = unknown.expect_err("it was never here");
    assert_eq!(
        unknown.to_string(),
        format!("failed to fetch {url}/index.yaml: 503 Service Unavailable")
    );
    assert!(unknown.retryable());
    let other = restarted
        .manifests(request(signed(&url), "demo", "1.0.0"))
        .await;
    other.expect_err("what others downloaded is not shown to whom the server has not let in");
}

#[tokio::test]
async fn a_hard_refresh_sees_a_version_that_was_replaced() {
    let here = Here::new();
    serve_demo(&here.server, "/pk", &["1.0.0"]);
    let url = here.url("/pk");
    let made = here.render(request(access(&url), "demo", "1.0.0")).await;
    assert_eq!(field(&made.expect("rendered"), "colour"), "red");
    let other = plain_chart("demo", "1.0.0", &[("values.yaml", "colour: blue\n")]);
    here.server.serve("/pk/demo-1.0.0.tgz", other);
    let replaced = index(&[("demo", "1.0.0", "demo-1.0.0.tgz", "another")]);
    here.server.serve("/pk/index.yaml", replaced.as_str());
    let made = here.render(request(access(&url), "demo", "1.0.0")).await;
    assert_eq!(field(&made.expect("rendered"), "colour"), "red");
    let hard = ManifestRequest {
        no_cache: true,
        ..request(access(&url), "demo", "1.0.0")
    };
    assert_eq!(
        field(&here.render(hard).await.expect("rendered"), "colour"),
        "blue"
    );
    let made = here.render(request(access(&url), "demo", "1.0.0")).await;
    assert_eq!(field(&made.expect("rendered"), "colour"), "blue");
}

#[tokio::test]
async fn an_index_that_did_not_change_is_not_sent_again() {
    let here = Here::new();
    let tagged = |text: &str| Answer {
        headers: vec!["ETag: \"1\"".to_owned()],
        ..Answer::from(text)
    };
    let text = index(&[("demo", "1.0.0", "a.tgz", "")]);
    here.server.serve("/index.yaml", tagged(&text));
    let url = here.url("");
    for _ in 0..2 {
        let found = resolved(&here.repos, &url, "demo", "1.x").await;
        assert_eq!(found.as_deref(), Ok("1.0.0"));
    }
    // The server would say 304 for this, too.
    here.server.serve("/index.yaml", tagged("not an index"));
    let found = resolved(&here.repos, &url, "demo", "1.x").await;
    assert_eq!(found.as_deref(), Ok("1.0.0"));
    assert_eq!(here.server.paths().len(), 3);
}

#[tokio::test]
async fn addresses_of_archives_may_be_relative() {
    let here = Here::new();
    let other = FileServer::start();
    let elsewhere = format!("{}/pk/demo.tgz", other.url());
    for (repository, written, asked) in [
        ("/rel/a", "demo.tgz", "/rel/a/demo.tgz"),
        ("/rel/a/", "demo.tgz", "/rel/a/demo.tgz"),
        ("/rel/b", "sub/demo.tgz", "/rel/b/sub/demo.tgz"),
        ("/rel/c", "/pk/demo.tgz", "/pk/demo.tgz"),
        ("/rel/d", "../../pk/demo.tgz", "/pk/demo.tgz"),
        ("/rel/e", elsewhere.as_str(), ""),
    ] {
        let folder = repository.trim_end_matches('/');
        let text = index(&[("demo", "1.2.3", written, repository)]);
        here.server
            .serve(&format!("{folder}/index.yaml"), text.as_str());
        let archive = plain_chart("demo", "1.2.3", &[]);
        let server = if asked.is_empty() {
            &other
        } else {
            &here.server
        };
        let at = if asked.is_empty() {
            "/pk/demo.tgz"
        } else {
            asked
        };
        server.serve(at, archive);
        let made = here
            .render(request(access(&here.url(repository)), "demo", "1.2.3"))
            .await;
        made.expect(repository);
        assert!(server.paths().iter().any(|path| path == at), "{repository}");
    }
    // Of two addresses only the first is tried.
    here.server.serve(
        "/rel/f/index.yaml",
        "apiVersion: v1\nentries:\n  demo:\n  - version: 1.2.3\n    urls: [missing.tgz, /pk/demo.tgz]\n",
    );
    let url = here.url("/rel/f");
    let failed = here.render(request(access(&url), "demo", "1.2.3")).await;
    assert_eq!(
        failed.expect_err("it is missing").to_string(),
        format!("failed to fetch {url}/missing.tgz: 404 Not Found")
    );
}

/// As the indexes of those who moved their charts into a registry do.
#[tokio::test]
async fn an_index_may_name_charts_in_a_registry() {
    let (here, registry) = (Here::new(), Registry::start());
    let archive = plain_chart("demo", "1.2.3+build", &[]);
    registry.push("acme/demo", "1.2.3_build", HELM_LAYER, &archive);
    let at = |tag: &str| format!("oci://{}/acme/demo:{tag}", registry.host());
    let (there, missing) = (at("1.2.3_build"), at("9.0.0"));
    let text = index(&[
        ("demo", "1.2.3+build", there.as_str(), "of-index"),
        ("demo", "9.0.0", missing.as_str(), ""),
    ]);
    here.server.serve("/moved/index.yaml", text.as_str());
    let url = here.url("/moved");
    let made = here
        .render(request(signed(&url), "demo", "1.2.3+build"))
        .await;
    assert!(!made.expect("rendered").objects.is_empty());
    let received = registry.server.received();
    assert!(
        received
            .iter()
            .all(|request| request.authorization.is_empty())
    );
    let failed = here.render(request(access(&url), "demo", "9.0.0")).await;
    let error = failed.expect_err("it is missing").to_string();
    assert!(error.contains("demo") && error.contains("9.0.0"), "{error}");
}

#[tokio::test]
async fn a_hard_refresh_asks_the_registry_that_an_index_names() {
    let (here, registry) = (Here::new(), Registry::start());
    let push = |colour: &str| {
        let values = format!("colour: {colour}\n");
        let archive = plain_chart("demo", "1.0.0", &[("values.yaml", values.as_str())]);
        registry.push("acme/demo", "1.0.0", HELM_LAYER, &archive);
    };
    push("red");
    let at = format!("oci://{}/acme/demo:1.0.0", registry.host());
    let text = index(&[("demo", "1.0.0", at.as_str(), "")]);
    here.server.serve("/moved/index.yaml", text.as_str());
    let soft = request(access(&here.url("/moved")), "demo", "1.0.0");
    let hard = ManifestRequest {
        no_cache: true,
        ..soft.clone()
    };
    let made = here.render(soft.clone()).await.expect("rendered");
    assert_eq!(field(&made, "colour"), "red");
    push("blue");
    let made = here.render(soft.clone()).await.expect("rendered");
    assert_eq!(field(&made, "colour"), "red", "from memory");
    let made = here.render(hard).await.expect("rendered");
    assert_eq!(field(&made, "colour"), "blue");
    let made = here.render(soft).await.expect("rendered");
    assert_eq!(field(&made, "colour"), "blue");
}

#[tokio::test]
async fn a_refusal_counts_for_charts_that_are_here_already() {
    for status in [401, 403, 404] {
        let here = Here::new();
        let answers = |status| {
            let answer = Answer {
                status,
                ..Answer::default()
            };
            here.server.serve("/pk/index.yaml", answer);
        };
        serve_demo(&here.server, "/pk", &["1.0.0"]);
        let asked = request(signed(&here.url("/pk")), "demo", "1.0.0");
        let access = asked.access.clone();
        let first = here.render(asked.clone()).await.expect("rendered");
        answers(503);
        here.repos.charts(&access).await.expect_err("away");
        let again = here.render(asked.clone()).await;
        again.expect("an outage says nothing");
        assert!(here.repos.unchanged(&asked, &first).is_some());

        answers(status);
        here.repos.charts(&access).await.expect_err("refused");
        assert!(here.repos.unchanged(&asked, &first).is_none());
        let refused = here.render(asked.clone()).await.map(|_| ());
        refused.expect_err("it is refused");
        // From then on an outage has nothing to hide.
        answers(503);
        here.repos.charts(&access).await.expect_err("away");
        let refused = here.render(asked.clone()).await.map(|_| ());
        refused.expect_err("it was refused");

        serve_demo(&here.server, "/pk", &["1.0.0"]);
        here.render(asked.clone()).await.expect("accepted again");
        assert!(here.repos.unchanged(&asked, &first).is_some(), "{status}");
    }
}

#[tokio::test]
async fn credentials_go_to_the_repository_and_nowhere_else() {
    let here = Here::new();
    let other = FileServer::start();
    let own = |body: &[u8]| Answer {
        only_for: USER,
        ..Answer::from(body.to_vec())
    };
    let elsewhere = format!("{}/b.tgz", other.url());
    let text = index(&[
        ("demo", "1.0.0", "a.tgz", "a"),
        ("demo", "1.1.0", &elsewhere, "b"),
        ("demo", "1.2.0", "moved.tgz", "c"),
    ]);
    here.server.serve("/index.yaml", own(text.as_bytes()));
    here.server
        .serve("/a.tgz", own(&plain_chart("demo", "1.0.0", &[])));
    let moved = Answer {
        status: 302,
        headers: vec![format!("Location: {}/c.tgz", other.url())],
        ..Answer::default()
    };
    here.server.serve("/moved.tgz", moved);
    other.serve("/b.tgz", plain_chart("demo", "1.1.0", &[]));
    other.serve("/c.tgz", plain_chart("demo", "1.2.0", &[]));
    let url = here.url("");
    for version in ["1.0.0", "1.1.0", "1.2.0"] {
        here.render(request(signed(&url), "demo", version))
            .await
            .expect(version);
    }
    let sent = |server: &FileServer| {
        let all = server.received().into_iter();
        all.map(|r| (r.path, !r.authorization.is_empty()))
            .collect::<Vec<_>>()
    };
    let expected = |path: &str, has: bool| (path.to_owned(), has);
    assert_eq!(
        sent(&here.server),
        [
            expected("/index.yaml", true),
            expected("/a.tgz", true),
            expected("/moved.tgz", true),
        ]
    );
    assert_eq!(
        sent(&other),
        [expected("/b.tgz", false), expected("/c.tgz", false)]
    );

    let mut passed = request(signed(&url), "demo", "1.1.0");
    passed.no_cache = true;
    passed.source.helm = Some(Box::new(tiphys_api::source::ApplicationSourceHelm {
        pass_credentials: true,
        ..Default::default()
    }));
    let restarted = Repos::new(here.dir.path().join("other"));
    restarted
        .manifests(passed)
        .await
        .expect("it can be rendered");
    let received = other.received();
    assert_eq!(received[0].authorization, basic("ann", "hunter2"));

    other.serve("/b.tgz", own(&plain_chart("demo", "1.1.0", &[])));
    let again = Repos::new(here.dir.path().join("again"));
    let refused = again
        .manifests(request(signed(&url), "demo", "1.1.0"))
        .await;
    assert_eq!(
        refused
            .expect_err("the password is of another server")
            .to_string(),
        format!(
            "authentication required: repository {elsewhere} refused the credentials (it is not on \
             the server of the chart repository, whose credentials go nowhere else unless \
             helm.passCredentials is set)"
        )
    );

    let refused = here.render(request(access(&url), "demo", "1.0.0")).await;
    assert_eq!(
        refused.expect_err("it has no password").to_string(),
        format!("authentication required: repository {url}/index.yaml refused the credentials")
    );
}

#[tokio::test]
async fn invalid_entries_are_skipped() {
    let here = Here::new();
    here.server.serve(
        "/index.yaml",
        "apiVersion: v1\nentries:\n  demo:\n  - version: canary\n    urls: [none.tgz]\n  - name: demo\n  -\n  \
         - version: 1.2.2\n    urls: [demo.tgz]\n  other:\n",
    );
    here.server
        .serve("/demo.tgz", plain_chart("demo", "1.2.2", &[]));
    let url = here.url("");
    let found = resolved(&here.repos, &url, "demo", "1.x").await;
    assert_eq!(found.as_deref(), Ok("1.2.2"));
    let made = here.render(request(access(&url), "demo", "1.2.2")).await;
    assert_eq!(field(&made.expect("rendered"), "version"), "1.2.2");
    let none = resolved(&here.repos, &url, "other", "1.x").await;
    assert_eq!(
        none,
        Err("version matching constraint not found in 0 tags".to_owned())
    );
    let charts = here
        .repos
        .charts(&access(&url))
        .await
        .expect("they can be listed");
    assert_eq!(
        charts,
        [
            ("demo".to_owned(), vec!["1.2.2".to_owned()]),
            ("other".to_owned(), Vec::new()),
        ]
    );
}

#[tokio::test]
async fn what_is_no_chart_or_no_index_is_an_error() {
    let here = Here::new();
    here.server.serve("/a/index.yaml", "<html>not here</html>");
    here.server.serve(
        "/b/index.yaml",
        index(&[("demo", "1.0.0", "a.tgz", "")]).as_str(),
    );
    here.server.serve("/b/a.tgz", "not an archive");
    let (a, b) = (here.url("/a"), here.url("/b"));
    let broken = resolved(&here.repos, &a, "demo", "1.x").await;
    assert_eq!(
        broken,
        Err(format!(
            "repository {a} is broken: its index.yaml cannot be read: it is not a map"
        ))
    );
    let broken = here.render(request(access(&b), "demo", "1.0.0")).await;
    let broken = broken.expect_err("it is not an archive");
    assert!(
        broken
            .to_string()
            .starts_with(&format!("repository {b}/a.tgz is broken: ")),
        "{broken}"
    );
    let gone = here.repos.test_charts(&access(&here.url("/c"))).await;
    assert_eq!(
        gone.expect_err("nothing is there").to_string(),
        format!(
            "failed to fetch {}/index.yaml: 404 Not Found",
            here.url("/c")
        )
    );
}

#[tokio::test]
async fn a_chart_says_what_it_is() {
    let here = Here::new();
    serve_demo(&here.server, "/pk", &["1.0.0"]);
    let url = here.url("/pk");
    let details = here
        .repos
        .chart_details(&access(&url), &source("demo"), "1.0.0")
        .await;
    let details = details.expect("it has details");
    assert_eq!(
        (details.description.as_str(), details.home.as_str()),
        ("The demo chart", "https://example.com/demo")
    );
    assert_eq!(details.maintainers, ["Ann <ann@example.com>"]);
}

const TOP: &str = "apiVersion: v2\nname: top\nversion: 0.1.0\ndependencies:\n";

fn of_git(access: RepoAccess, sha: String) -> ManifestRequest {
    ManifestRequest {
        access,
        source: ApplicationSource {
            path: ".".to_owned(),
            ..ApplicationSource::default()
        },
        sha,
        app_name: "shop".to_owned(),
        ..ManifestRequest::default()
    }
}

fn names(manifests: &Manifests) -> Vec<String> {
    let name = |kept: &Arc<tiphys_apimachinery::Kept>| {
        let object = kept.object();
        format!("{} {}", object.name(), object.str_at("/data/version"))
    };
    manifests.objects.iter().map(name).collect()
}

#[tokio::test]
async fn dependencies_are_fetched_from_their_repositories() {
    let here = Here::new();
    serve_demo(&here.server, "/pk", &["0.1.4", "0.1.9", "0.2.0"]);
    let inner = plain_chart("inner", "1.0.0", &[]);
    here.server.serve("/other/inner.tgz", inner);
    here.server.serve(
        "/other/index.yaml",
        index(&[("inner", "1.0.0", "inner.tgz", "")]).as_str(),
    );
    let (a, b) = (here.url("/pk"), here.url("/other"));
    let chart = format!(
        "{TOP}- {{name: demo, version: 0.1.x, repository: {a}, alias: one}}\n\
         - {{name: demo, version: 0.2.0, repository: {a}, condition: two.enabled, alias: two}}\n\
         - {{name: inner, version: 1.0.0, repository: {b}}}\n\
         - {{name: local, version: 0.1.0, repository: 'file://libs/local'}}\n"
    );
    let local = "apiVersion: v2\nname: local\nversion: 0.1.0\n";
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: local\ndata:\n  version: {{ .Chart.Version }}\n";
    let files = [
        ("Chart.yaml", chart.as_str()),
        ("values.yaml", "two:\n  enabled: false\n"),
        ("libs/local/Chart.yaml", local),
        ("libs/local/templates/a.yaml", template),
    ];
    let (access, sha) = here.git("top", &files);
    let made = here
        .render(of_git(access.clone(), sha.clone()))
        .await
        .expect("rendered");
    let mut all = names(&made);
    all.sort();
    assert_eq!(all, ["local 0.1.0", "shop-inner 1.0.0", "shop-one 0.1.9"]);
    assert_eq!(
        here.server.paths().len(),
        5,
        "two indexes and three archives"
    );
    let again = here.render(of_git(access, sha)).await.expect("rendered");
    assert!(Arc::ptr_eq(&again.objects, &made.objects));
    assert_eq!(here.server.paths(), Vec::<String>::new());

    let chart = format!("{TOP}- {{name: demo, version: 3.x, repository: {a}}}\n");
    let (access, sha) = here.git("absent", &[("Chart.yaml", chart.as_str())]);
    let failed = here
        .render(of_git(access, sha))
        .await
        .expect_err("no such version");
    assert_eq!(
        failed.to_string(),
        format!("chart \"demo\" version \"3.x\" not found in {a} repository")
    );
}

#[tokio::test]
async fn a_chart_of_a_repository_may_have_dependencies_too() {
    let here = Here::new();
    serve_demo(&here.server, "/pk", &["0.1.4"]);
    let chart = format!(
        "{TOP}- {{name: demo, version: 0.1.x, repository: {}}}\n",
        here.url("/pk")
    );
    let archive = package("top", &[("Chart.yaml", chart.as_str())]);
    here.server.serve("/top.tgz", archive);
    here.server.serve(
        "/index.yaml",
        index(&[("top", "0.1.0", "top.tgz", "")]).as_str(),
    );
    let made = here
        .render(request(access(&here.url("")), "top", "0.1.0"))
        .await;
    assert_eq!(names(&made.expect("rendered")), ["shop-demo 0.1.4"]);
}

#[tokio::test]
async fn dependencies_get_credentials_only_where_the_project_permits_them() {
    let here = Here::new();
    let own = |body: &[u8]| Answer {
        only_for: USER,
        ..Answer::from(body.to_vec())
    };
    here.server.serve(
        "/index.yaml",
        own(index(&[("demo", "1.0.0", "a.tgz", "")]).as_bytes()),
    );
    here.server
        .serve("/a.tgz", own(&plain_chart("demo", "1.0.0", &[])));
    let url = here.url("");
    let by_url = format!("{TOP}- {{name: demo, version: 1.0.0, repository: {url}}}\n");
    let by_name = format!("{TOP}- {{name: demo, version: 1.0.0, repository: '@charts'}}\n");
    for (permitted, chart, folder) in [
        (true, &by_url, "a"),
        (true, &by_name, "b"),
        (false, &by_url, "c"),
    ] {
        let (access, sha) = here.git(folder, &[("Chart.yaml", chart.as_str())]);
        let known = url.clone();
        let others = Others::new(move |wanted| {
            assert!(matches!(
                wanted,
                OtherRepository::Url(_) | OtherRepository::Named("charts")
            ));
            let access = if permitted {
                signed(&known)
            } else {
                RepoAccess::public(&known)
            };
            Ok(Reach { access, permitted })
        });
        let request = ManifestRequest {
            others,
            project: "shop".to_owned(),
            ..of_git(access, sha)
        };
        let made = here.render(request).await;
        if permitted {
            assert_eq!(names(&made.expect(folder)), ["shop-demo 1.0.0"]);
        } else {
            assert_eq!(
                made.expect_err("it needs a password").to_string(),
                format!(
                    "helm repos {url} are not permitted in project 'shop' and asked without credentials: \
                     authentication required: repository {url}/index.yaml refused the credentials"
                )
            );
        }
    }
}

#[tokio::test]
async fn a_repository_cannot_name_files_of_this_machine() {
    let here = Here::new();
    let path: &Path = here.dir.path();
    for repository in [
        format!("file://{}", path.display()),
        "file://../../etc".to_owned(),
        "ftp://h/charts".to_owned(),
    ] {
        let chart = format!("{TOP}- {{name: demo, version: 1.0.0, repository: '{repository}'}}\n");
        let name = format!("r{}", repository.len());
        let (access, sha) = here.git(&name, &[("Chart.yaml", chart.as_str())]);
        let refused = here
            .render(of_git(access, sha))
            .await
            .expect_err(&repository);
        let kind = refused.kind();
        assert!(
            matches!(kind, ErrorKind::User | ErrorKind::Config),
            "{refused}"
        );
    }
    assert_eq!(here.server.paths(), Vec::<String>::new());
}

#[tokio::test]
async fn values_and_files_of_the_web_are_fetched_without_credentials() {
    let here = Here::new();
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  colour: {{ .Values.colour }}\n  motd: {{ .Values.motd | quote }}\n";
    let values = format!("{}/values.yaml?ref=1", here.server.url());
    let motd = format!("{}/motd.txt", here.server.url());
    here.server.serve("/values.yaml?ref=1", "colour: green\n");
    here.server.serve("/motd.txt", "hello");
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("templates/a.yaml", template),
    ];
    let (access, sha) = here.git("chart", &files);
    let mut request = of_git(access, sha);
    request.access.password = Secret::new("hunter2");
    request.cluster_facts.value_file_schemes = vec!["http".to_owned()];
    request.source.helm = Some(Box::new(tiphys_api::source::ApplicationSourceHelm {
        value_files: vec![values.clone()],
        file_parameters: vec![tiphys_api::source::HelmFileParameter {
            name: "motd".to_owned(),
            path: motd,
        }],
        ..Default::default()
    }));
    let made = here.render(request.clone()).await.expect("rendered");
    assert_eq!(
        (field(&made, "colour"), field(&made, "motd")),
        ("green".to_owned(), "hello".to_owned())
    );
    let received = here.server.received();
    assert_eq!(received.len(), 2, "{received:?}");
    assert!(received.iter().all(|r| r.authorization.is_empty()));

    here.server.serve("/values.yaml?ref=1", "colour: blue\n");
    let same = here.render(request.clone()).await.expect("rendered");
    assert!(
        Arc::ptr_eq(&same.objects, &made.objects),
        "it is new enough"
    );
    let hard = ManifestRequest {
        no_cache: true,
        ..request.clone()
    };
    assert_eq!(
        field(&here.render(hard).await.expect("rendered"), "colour"),
        "blue"
    );
    assert_eq!(
        field(
            &here.render(request.clone()).await.expect("rendered"),
            "colour"
        ),
        "blue"
    );

    request.cluster_facts.value_file_schemes = vec!["https".to_owned()];
    let refused = here.render(request).await.expect_err("http is not allowed");
    assert_eq!(
        refused.to_string(),
        "error resolving helm value files: error resolving value file path: the URL scheme 'http' is not allowed"
    );
}

#[tokio::test]
async fn kustomizations_use_files_of_the_web_and_charts_of_repositories() {
    let here = Here::new();
    serve_demo(&here.server, "/pk", &["1.0.0"]);
    let base = here.server.url();
    here.server.serve(
        "/crd.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: of-the-web\n",
    );
    let kustomization = format!(
        "resources:\n- {base}/crd.yaml\nhelmCharts:\n- name: demo\n  repo: {base}/pk\n  version: 1.0.0\n  releaseName: shop\n"
    );
    let (access, sha) = here.git("overlay", &[("kustomization.yaml", kustomization.as_str())]);
    let mut request = of_git(access, sha);
    request.cluster_facts.kustomize_build_options = "--enable-helm".to_owned();
    let made = here.render(request.clone()).await.expect("rendered");
    assert_eq!(names(&made), ["of-the-web ", "shop-demo 1.0.0"]);
    assert_eq!(made.source_type, "Kustomize");
    here.server.remove("/crd.yaml");
    let hard = ManifestRequest {
        no_cache: true,
        ..request
    };
    let gone = here.render(hard).await.expect_err("it is gone");
    assert_eq!(
        gone.to_string(),
        format!("failed to fetch {base}/crd.yaml: 404 Not Found")
    );
}

#[tokio::test]
async fn an_index_has_the_size_that_is_allowed() {
    let here = Here::new();
    serve_demo(&here.server, "/pk", &["1.0.0", "1.1.0"]);
    let url = here.url("/pk");
    assert_eq!(
        resolved(&here.repos, &url, "demo", "1.x").await,
        Ok("1.1.0".to_owned())
    );
    let narrow = Repos::with_options(
        here.dir.path().join("narrow"),
        RepoOptions {
            sources: SourceLimits {
                index_bytes: 100,
                ..SourceLimits::default()
            },
            ..RepoOptions::default()
        },
    );
    assert_eq!(
        resolved(&narrow, &url, "demo", "1.x").await,
        Err(format!(
            "repository {url}/index.yaml is refused: it has more than 100 bytes"
        ))
    );
    let left = std::fs::read_dir(here.dir.path().join("narrow/indexes")).expect("a folder");
    assert_eq!(left.count(), 0, "nothing is left of what was received");
}

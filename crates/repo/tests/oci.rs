//! Charts and sources of OCI registries: tags, digests, tokens, caching, and registries that mean
//! harm.

use serde_json::json;
use std::{fmt::Write as _, sync::Arc};
use tiphys_api::source::ApplicationSource;
use tiphys_repo::{
    ErrorKind, ManifestRequest, Manifests, RefSource, RepoAccess, RepoError, RepoOptions, Repos,
    Secret, Since,
};
use tiphys_testkit::{
    archive::{TarEntry, gzip, tar},
    charts::{Answer, FileServer, basic, package, plain_chart},
    registry::{
        HELM_CONFIG, HELM_LAYER, Registry, TAR_GZIP_LAYER, TAR_LAYER, TOKEN, digest as digest_of,
        manifest,
    },
};

const PLAIN: &str = "application/vnd.oci.empty.v1+json";
pub const CONFIG_MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  v: one\n";

/// What a directory source is made of: a ConfigMap in `app/`.
pub fn layer(value: &str) -> Vec<u8> {
    let text = CONFIG_MAP.replace("one", value);
    tar(&[TarEntry::file("app/a.yaml", &text)])
}

/// The access to a URL over http.
pub fn access(url: &str) -> RepoAccess {
    RepoAccess {
        plain_http: true,
        ..RepoAccess::public(url)
    }
}

fn signed(url: &str) -> RepoAccess {
    RepoAccess {
        username: "ann".to_owned(),
        password: Secret::new("hunter2"),
        ..access(url)
    }
}

pub fn chart_request(access: RepoAccess, chart: &str, version: &str) -> ManifestRequest {
    ManifestRequest {
        source: ApplicationSource {
            repo_url: access.url.clone(),
            chart: chart.to_owned(),
            ..ApplicationSource::default()
        },
        access,
        sha: version.to_owned(),
        app_name: "shop".to_owned(),
        ..ManifestRequest::default()
    }
}

pub fn request(access: RepoAccess, path: &str, digest: &str) -> ManifestRequest {
    let mut request = chart_request(access, "", digest);
    path.clone_into(&mut request.source.path);
    request
}

pub fn field(manifests: &Manifests, name: &str) -> String {
    let first = manifests.objects.first().expect("an object");
    first.object().str_at(&format!("/data/{name}")).to_owned()
}

pub struct Here {
    pub dir: tempfile::TempDir,
    pub repos: Repos,
}

impl Here {
    pub fn new() -> Self {
        Self::with(RepoOptions::default())
    }

    pub fn with(options: RepoOptions) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let repos = Repos::with_options(dir.path().join("cache"), options);
        Self { dir, repos }
    }

    pub async fn resolved(
        &self,
        access: &RepoAccess,
        chart: &str,
        revision: &str,
    ) -> Result<String, RepoError> {
        let source = chart_request(access.clone(), chart, "").source;
        let found = self
            .repos
            .resolve_source(access, &source, revision, Since::now());
        found.await.map(|r| r.sha)
    }

    pub async fn render(&self, request: ManifestRequest) -> Result<Arc<Manifests>, RepoError> {
        self.repos.manifests(request).await
    }

    /// The error of the artifact that a tag names.
    async fn failure(&self, access: RepoAccess, tag: &str) -> RepoError {
        match self.resolved(&access, "", tag).await {
            Ok(digest) => {
                let made = self.render(request(access, "app", &digest)).await;
                made.expect_err("it is refused")
            }
            Err(e) => e,
        }
    }
}

pub fn sent(server: &FileServer) -> Vec<(String, String)> {
    let all = server.received().into_iter();
    all.map(|r| (format!("{} {}", r.method, r.path), r.authorization))
        .collect()
}

fn names(sent: &[(String, String)]) -> Vec<&str> {
    sent.iter().map(|(request, _)| request.as_str()).collect()
}

#[tokio::test]
async fn a_charts_tags_have_an_underscore_for_a_plus() {
    let (here, registry) = (Here::new(), Registry::start());
    for (tag, version) in [
        ("1.2.2_b1", "1.2.2+b1"),
        ("1.2.3-rc1_abc", "1.2.3-rc1+abc"),
        ("1.2.3", "1.2.3"),
    ] {
        let chart = plain_chart("demo", version, &[]);
        registry.push("charts/demo", tag, HELM_LAYER, &chart);
    }
    let listed = ["1.2.2_b1", "1.2.3-rc1_abc", "1.2.3", "latest"];
    registry.tags("charts/demo", &listed);
    let access = access(&format!("{}/charts", registry.host()));
    for (revision, version) in [
        ("*", "1.2.3"),
        ("", "1.2.3"),
        (">=1.0.0-0", "1.2.3"),
        ("<1.2.3", "1.2.2+b1"),
        ("1.2.2+b1", "1.2.2+b1"),
        ("1.2.3-rc1+abc", "1.2.3-rc1+abc"),
    ] {
        let found = here.resolved(&access, "demo", revision).await;
        let found = found.expect(revision);
        assert_eq!(found, version, "{revision}");
        let made = here
            .render(chart_request(access.clone(), "demo", &found))
            .await;
        let made = made.expect(revision);
        assert_eq!(field(&made, "version"), version, "{revision}");
        assert_eq!(
            (made.revision.as_str(), made.source_type.as_str()),
            (version, "Helm")
        );
    }
    for (revision, error) in [
        ("2.x", "version matching constraint not found in 4 tags"),
        (
            "1.2.2_b1",
            "failed to determine semver constraint: improper constraint: \"1.2.2_b1\"",
        ),
        (
            "latest",
            "failed to determine semver constraint: improper constraint: \"latest\"",
        ),
    ] {
        let refused = here.resolved(&access, "demo", revision).await;
        assert_eq!(
            refused.expect_err(revision).to_string(),
            error,
            "{revision}"
        );
    }
    let absent = here
        .render(chart_request(access.clone(), "demo", "1.2.2"))
        .await;
    let absent = absent.expect_err("that tag is another version");
    let url = &access.url;
    assert_eq!(
        absent.to_string(),
        format!("chart \"demo\" version \"1.2.2\" not found in {url} repository")
    );
    assert_eq!(absent.kind(), ErrorKind::User);

    let source = chart_request(access.clone(), "demo", "").source;
    let details = here.repos.chart_details(&access, &source, "1.2.2+b1").await;
    assert_eq!(details.expect("a chart").description, "The demo chart");
    let list = here
        .repos
        .charts(&access)
        .await
        .expect_err("there is no list");
    assert_eq!(
        list.to_string(),
        format!("{url}: a registry does not list the charts in it")
    );
}

#[tokio::test]
async fn dependencies_are_fetched_from_registries() {
    let (here, registry) = (Here::new(), Registry::start());
    let sub = plain_chart(
        "sub",
        "0.2.0_b1",
        &[(
            "Chart.yaml",
            "apiVersion: v2\nname: sub\nversion: 0.2.0+b1\n",
        )],
    );
    registry.push("libs/sub", "0.2.0_b1", HELM_LAYER, &sub);
    registry.tags("libs/sub", &["0.1.0", "0.2.0_b1"]);
    let chart = format!(
        "apiVersion: v2\nname: top\nversion: 1.0.0\ndependencies:\n- name: sub\n  version: 0.2.x\n  repository: oci://{}/libs\n",
        registry.host()
    );
    let top = package("top", &[("Chart.yaml", &chart)]);
    registry.push("charts/top", "1.0.0", HELM_LAYER, &top);
    let access = access(&format!("{}/charts", registry.host()));
    // Over http, as the source's own registry is: it is the same one.
    let own = RepoAccess {
        username: "ann".to_owned(),
        ..access.clone()
    };
    let made = here.render(chart_request(own, "top", "1.0.0")).await;
    assert_eq!(
        field(&made.expect("it has its dependency"), "version"),
        "0.2.0+b1"
    );
}

#[tokio::test]
async fn an_artifact_is_found_by_tag_digest_or_range() {
    let (here, registry) = (Here::new(), Registry::start());
    let push = |tag: &str, value: &str| registry.push("team/app", tag, TAR_LAYER, &layer(value));
    let (first, second) = (push("1.0.0", "first"), push("1.1.0_b1", "second"));
    let main = push("main", "main");
    registry.tags("team/app", &["1.0.0", "1.1.0_b1", "main", "2.x"]);
    let app = access(&format!("oci://{}/team/app", registry.host()));
    for (revision, found) in [
        ("main", &main),
        ("1.0.0", &first),
        ("1.x", &second),
        ("1.1.0_b1", &second),
        ("1.1.0+b1", &second),
        ("<1.1", &first),
        (first.as_str(), &first),
    ] {
        let digest = here.resolved(&app, "", revision).await.expect(revision);
        assert_eq!(digest, *found, "{revision}");
    }
    let at = format!("{}/team/app", registry.host());
    for (revision, error) in [
        (
            "other",
            format!("cannot get digest for revision other: {at}:other: not found"),
        ),
        (
            "1.0.1",
            format!("cannot get digest for revision 1.0.1: {at}:1.0.1: not found"),
        ),
        (
            "a/b",
            format!("cannot get digest for revision a/b: {at}:a/b: invalid reference"),
        ),
        (
            ">2",
            "no version for constraints: version matching constraint not found in 4 tags"
                .to_owned(),
        ),
    ] {
        let e = here.resolved(&app, "", revision).await.expect_err(revision);
        assert_eq!(
            (e.to_string(), e.kind()),
            (error, ErrorKind::User),
            "{revision}"
        );
    }
    let tags = here.repos.oci_tags(&app).await.expect("tags");
    assert_eq!(tags, ["1.0.0", "1.1.0+b1", "main", "2.x"]);

    let made = here.render(request(app.clone(), "app", &second)).await;
    let made = made.expect("it can be rendered");
    assert_eq!(field(&made, "v"), "second");
    assert_eq!(
        (made.revision.as_str(), made.source_type.as_str()),
        (second.as_str(), "Directory")
    );
    // Several sources: one without a path is rendered, and one can have values for another.
    let several = ManifestRequest {
        several: true,
        ..request(app.clone(), "", &main)
    };
    here.render(several).await.expect("its root has no objects");
    let values = tar(&[TarEntry::file("prod/values.yaml", "colour: blue\n")]);
    let values = registry.push("team/values", "1", TAR_LAYER, &values);
    let chart = plain_chart("demo", "1.0.0", &[]);
    registry.push("team/demo", "1.0.0", HELM_LAYER, &chart);
    let mut referring = chart_request(
        access(&format!("{}/team", registry.host())),
        "demo",
        "1.0.0",
    );
    referring.several = true;
    referring.source.helm = Some(Box::new(tiphys_api::source::ApplicationSourceHelm {
        value_files: vec!["$values/prod/values.yaml".to_owned()],
        ..Default::default()
    }));
    let from = RefSource {
        access: access(&format!("oci://{}/team/values", registry.host())),
        sha: values,
    };
    referring.refs.insert("values".to_owned(), from);
    let made = here.render(referring).await.expect("it has its values");
    assert_eq!(field(&made, "colour"), "blue");
}

#[tokio::test]
async fn a_chart_can_be_the_content_of_an_artifact() {
    let (here, registry) = (Here::new(), Registry::start());
    let chart = plain_chart("demo", "1.2.3", &[]);
    let digest = registry.push("charts/demo", "1.2.3", HELM_LAYER, &chart);
    let packed = gzip(&layer("packed"));
    let plain = registry.push("team/app", "1", TAR_GZIP_LAYER, &packed);
    let demo = access(&format!("oci://{}/charts/demo", registry.host()));
    let made = here
        .render(request(demo, ".", &digest))
        .await
        .expect("a chart");
    assert_eq!(
        (field(&made, "version").as_str(), made.source_type.as_str()),
        ("1.2.3", "Helm")
    );
    let app = access(&format!("oci://{}/team/app", registry.host()));
    let made = here
        .render(request(app.clone(), "app", &plain))
        .await
        .expect("a folder");
    assert_eq!(field(&made, "v"), "packed");

    let about = json!({"org.opencontainers.image.authors": "Ann", "org.opencontainers.image.source": "https://example.com", "org.opencontainers.image.created": "2026-01-01T00:00:00Z"});
    let noted = registry.push_manifest(
        "team/app",
        "2",
        &manifest(PLAIN, &[(TAR_LAYER, b"x")], &about),
    );
    let said = here
        .repos
        .oci_metadata(&app, &noted)
        .await
        .expect("a manifest");
    assert_eq!(
        (
            said.authors.as_str(),
            said.source_url.as_str(),
            said.created_at.as_str(),
            said.version.as_str()
        ),
        ("Ann", "https://example.com", "2026-01-01T00:00:00Z", "")
    );
}

#[tokio::test]
async fn what_is_there_already_is_not_downloaded_again() {
    let (here, registry) = (Here::new(), Registry::start());
    let digest = registry.push("team/app", "main", TAR_LAYER, &layer("one"));
    let blob = digest_of(&layer("one"));
    let access = access(&format!("oci://{}/team/app", registry.host()));
    let recently = |repos: Repos| {
        let (access, source) = (access.clone(), request(access.clone(), "", "").source);
        async move {
            let found = repos.resolve_source(&access, &source, "main", Since::Recently);
            found.await.expect("a digest").sha
        }
    };
    let both = futures::future::join_all((0..5).map(|_| recently(here.repos.clone()))).await;
    assert_eq!(both, vec![digest.clone(); 5]);
    let first = request(access.clone(), "app", &digest);
    let made = futures::future::join_all((0..5).map(|_| here.render(first.clone()))).await;
    let made = made.into_iter().next().expect("five").expect("rendered");
    let asked = sent(&registry.server);
    let expected = [
        "HEAD /v2/team/app/manifests/main".to_owned(),
        format!("GET /v2/team/app/manifests/{digest}"),
        format!("GET /v2/team/app/blobs/{blob}"),
    ];
    assert_eq!(names(&asked), expected);
    let same = here
        .repos
        .unchanged(&first, &made)
        .expect("it is in memory");
    assert!(Arc::ptr_eq(&same.objects, &made.objects));

    // In another process nothing is asked: what a digest names does not change.
    let restarted = Repos::new(here.dir.path().join("cache"));
    let again = restarted.manifests(first.clone()).await.expect("rendered");
    assert_eq!(field(&again, "v"), "one");
    assert_eq!(sent(&registry.server), []);
    let other = signed(&access.url);
    here.render(request(other, "app", &digest))
        .await
        .expect("rendered");
    assert_eq!(
        sent(&registry.server).len(),
        2,
        "what others may read says nothing about these credentials"
    );

    // A tag that moved is seen by a look-up that must be new.
    let moved = registry.push("team/app", "main", TAR_LAYER, &layer("two"));
    assert_eq!(recently(here.repos.clone()).await, digest);
    assert_eq!(
        here.resolved(&access, "", "main").await.expect("a digest"),
        moved
    );
    let made = here
        .render(request(access.clone(), "app", &moved))
        .await
        .expect("rendered");
    assert_eq!(
        (field(&made, "v").as_str(), made.revision.as_str()),
        ("two", moved.as_str())
    );
}

/// Serves tokens to a user, or to everybody.
fn serve_tokens(server: &FileServer, path: &str, only_for: Option<(&'static str, &'static str)>) {
    let answer = Answer {
        only_for,
        ..Answer::from(
            json!({"token": TOKEN, "expires_in": 300})
                .to_string()
                .as_str(),
        )
    };
    server.serve(path, answer);
}

const QUERY: &str = "service=fake&scope=repository%3Ateam%2Fapp%3Apull";

#[tokio::test]
async fn a_token_is_asked_for_with_the_credentials() {
    let (here, registry) = (Here::new(), Registry::with_tokens("/token"));
    let token = format!("/token?{QUERY}");
    serve_tokens(&registry.server, &token, Some(("ann", "hunter2")));
    registry.push("team/app", "main", TAR_LAYER, &layer("one"));
    let url = format!("oci://{}/team/app", registry.host());
    let digest = here
        .resolved(&signed(&url), "", "main")
        .await
        .expect("a digest");
    here.render(request(signed(&url), "app", &digest))
        .await
        .expect("rendered");
    let asked = sent(&registry.server);
    let tag = "HEAD /v2/team/app/manifests/main";
    let of_token = format!("GET {token}");
    assert_eq!(names(&asked)[..3], [tag, of_token.as_str(), tag]);
    assert_eq!(asked.len(), 5, "the token is used again");
    assert_eq!(
        (asked[0].1.as_str(), asked[1].1.as_str()),
        ("", basic("ann", "hunter2").as_str())
    );
    // The password itself is for nobody else.
    assert!(
        asked[2..]
            .iter()
            .all(|(_, sign)| *sign == format!("Bearer {TOKEN}")),
        "{asked:?}"
    );

    let refused = here
        .resolved(&access(&url), "", "main")
        .await
        .expect_err("no password");
    let at = url.replace("oci://", "");
    assert_eq!(
        refused.to_string(),
        format!("authentication required: repository {at} refused the credentials")
    );
    let with_token = RepoAccess {
        bearer_token: Secret::new(TOKEN),
        ..access(&url)
    };
    here.resolved(&with_token, "", "main")
        .await
        .expect("it has a token itself");
}

#[tokio::test]
async fn a_token_service_of_another_domain_does_not_get_the_credentials() {
    let (here, other) = (Here::new(), FileServer::start());
    // Another name for the same machine.
    let realm = format!("{}/token", other.url().replace("127.0.0.1", "localhost"));
    let registry = Registry::with_tokens(&realm);
    registry.push("team/app", "main", TAR_LAYER, &layer("one"));
    let url = format!("oci://{}/team/app", registry.host());
    let token = format!("/token?{QUERY}");
    serve_tokens(&other, &token, Some(("ann", "hunter2")));
    let refused = here
        .resolved(&signed(&url), "", "main")
        .await
        .expect_err("no token");
    assert_eq!(
        refused.to_string(),
        format!(
            "authentication required: repository {}/team/app refused the credentials (its token service is in another domain, which is not sent the credentials)",
            registry.host()
        )
    );
    // What everybody may read is read.
    serve_tokens(&other, &token, None);
    here.resolved(&signed(&url), "", "main")
        .await
        .expect("everybody gets a token");
    let asked = sent(&other);
    assert_eq!(names(&asked), vec![format!("GET {token}"); 2]);
    assert!(asked.iter().all(|(_, sign)| sign.is_empty()), "{asked:?}");
}

#[tokio::test]
async fn a_password_is_only_for_the_registry() {
    let (here, other) = (Here::new(), FileServer::start());
    let registry = Registry::start();
    let content = layer("one");
    let own = |body: &[u8]| Answer {
        only_with: Some((basic("ann", "hunter2"), "Basic realm=\"x\"".to_owned())),
        ..Answer::from(body.to_vec())
    };
    let text = manifest(PLAIN, &[(TAR_LAYER, &content)], &json!({}));
    let digest = digest_of(&text);
    registry
        .server
        .serve(&format!("/v2/team/app/manifests/{digest}"), own(&text));
    // Content is often on another server. This one would like to have credentials, too.
    let blob = format!("/v2/team/app/blobs/{}", digest_of(&content));
    let user = other.url().replace("http://", "http://eve:secret@");
    let moved = Answer {
        status: 307,
        headers: vec![format!("Location: {user}/content?signature=x")],
        ..own(b"")
    };
    registry.server.serve(&blob, moved);
    other.serve("/content?signature=x", content);
    let url = format!("oci://{}/team/app", registry.host());
    let made = here.render(request(signed(&url), "app", &digest)).await;
    assert_eq!(field(&made.expect("rendered"), "v"), "one");
    assert_eq!(
        sent(&other),
        [("GET /content?signature=x".to_owned(), String::new())]
    );
    let asked = sent(&registry.server);
    assert_eq!(
        (asked[0].1.as_str(), asked[1].1.as_str()),
        ("", basic("ann", "hunter2").as_str())
    );

    let greedy = Answer {
        only_with: Some((basic("ann", "hunter2"), "Basic realm=\"x\"".to_owned())),
        ..Answer::default()
    };
    other.serve("/content?signature=x", greedy);
    let fresh = Repos::new(here.dir.path().join("other"));
    let refused = fresh.manifests(request(signed(&url), "app", &digest)).await;
    refused.expect_err("it gets none");
    assert_eq!(
        sent(&other),
        [("GET /content?signature=x".to_owned(), String::new())]
    );

    let wrong = RepoAccess {
        password: Secret::new("wrong"),
        ..signed(&url)
    };
    let refused = here
        .render(request(wrong, "app", &digest))
        .await
        .expect_err("wrong");
    assert!(matches!(refused, RepoError::AuthFailed { .. }), "{refused}");
}

#[tokio::test]
async fn a_list_of_tags_has_an_end() {
    let (here, registry) = (Here::new(), Registry::start());
    let page = |tags: &[&str], next: &str| Answer {
        headers: vec![format!("Link: <{next}>; rel=\"next\"")],
        ..registry.answer(json!({"tags": tags}).to_string().as_bytes())
    };
    let list = "/v2/team/app/tags/list";
    registry.server.serve(
        &format!("{list}?n=1000"),
        page(&["1", "2"], &format!("{list}?n=2&last=2")),
    );
    // Wherever the next page is said to be, it is asked for here.
    let elsewhere = "http://169.254.169.254/latest?n=2&last=4";
    registry
        .server
        .serve(&format!("{list}?n=2&last=2"), page(&["3", "4"], elsewhere));
    registry.server.serve(
        &format!("{list}?n=2&last=4"),
        registry.answer(br#"{"tags":["5"]}"#),
    );
    let app = access(&format!("oci://{}/team/app", registry.host()));
    assert_eq!(
        here.repos.oci_tags(&app).await.expect("tags"),
        ["1", "2", "3", "4", "5"]
    );

    // A registry may leave out what is not for us, and offer a last page that is the same again.
    let list = "/v2/team/gaps/tags/list";
    for (query, tag, next) in [
        ("n=1000", Some("1"), "n=a"),
        ("n=a", None, "n=b"),
        ("n=b", Some("2"), "n=c"),
        ("n=c", None, "n=c"),
    ] {
        let answer = page(tag.as_slice(), &format!("{list}?{next}"));
        registry.server.serve(&format!("{list}?{query}"), answer);
    }
    let gaps = access(&format!("oci://{}/team/gaps", registry.host()));
    let tags = here.repos.oci_tags(&gaps).await.expect("tags");
    assert_eq!(tags, ["1", "2"]);

    // One that leads back, and one that has ever more, until nobody waits any longer.
    let list = "/v2/team/round/tags/list";
    for (query, next) in [("n=1000", "n=a"), ("n=a", "n=b"), ("n=b", "n=a")] {
        let answer = page(&["1"], &format!("{list}?{next}"));
        registry.server.serve(&format!("{list}?{query}"), answer);
    }
    let at = format!("{}/team/round", registry.host());
    let round = access(&format!("oci://{at}"));
    let refused = here
        .repos
        .oci_tags(&round)
        .await
        .expect_err("it is a circle");
    assert_eq!(
        refused.to_string(),
        format!("repository {at} is broken: its list of tags leads back to itself")
    );
    let list = "/v2/team/endless/tags/list";
    let first = page(&["1"], &format!("{list}?n=0"));
    registry.server.serve(&format!("{list}?n=1000"), first);
    for number in 0..999 {
        let answer = page(&["1"], &format!("{list}?n={}", number + 1));
        registry.server.serve(&format!("{list}?n={number}"), answer);
    }
    let endless = access(&format!("oci://{}/team/endless", registry.host()));
    let refused = here
        .repos
        .oci_tags(&endless)
        .await
        .expect_err("it does not end");
    let is_expected = matches!(
        refused,
        RepoError::OverLimit { .. } | RepoError::Timeout { .. }
    );
    assert!(is_expected, "{refused}");
    let none = access(&format!("oci://{}/team/none", registry.host()));
    let absent = here.repos.oci_tags(&none).await.expect_err("there is none");
    assert_eq!(
        absent.to_string(),
        format!("repository not found: {}/team/none", registry.host())
    );
}

#[tokio::test]
async fn a_registry_that_asks_for_it_is_asked_again() {
    let (here, registry) = (Here::new(), Registry::start());
    let later = |seconds: u32| Answer {
        status: 429,
        headers: vec![format!("Retry-After: {seconds}")],
        ..Answer::default()
    };
    let list = "/v2/team/app/tags/list?n=1000";
    let app = access(&format!("oci://{}/team/app", registry.host()));
    registry.server.serve(list, later(1));
    let asked = here.repos.oci_tags(&app);
    let answered = async {
        while registry.server.paths().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        registry.tags("team/app", &["1.0.0"]);
    };
    let (tags, ()) = tokio::join!(asked, answered);
    assert_eq!(tags.expect("a little later"), ["1.0.0"]);

    // Not for ever, and nobody waits as long as some want.
    for (seconds, times) in [(0, 4), (3_600, 1)] {
        registry.server.serve(list, later(seconds));
        registry.server.paths();
        let refused = here.repos.oci_tags(&app).await.expect_err("later");
        assert!(refused.retryable(), "{refused}");
        assert_eq!(registry.server.paths().len(), times, "{seconds}");
    }
}

#[tokio::test]
async fn artifacts_that_are_none_are_refused() {
    let (here, registry) = (Here::new(), Registry::start());
    let access = access(&format!("oci://{}/team/app", registry.host()));
    let good = layer("one");
    let of = |config: &str, layers: &[(&str, &[u8])]| manifest(config, layers, &json!({}));
    let other = "application/vnd.docker.image.rootfs.diff.tar.gzip";
    let bomb = gzip(&tar(&[TarEntry::claiming("app/large.yaml", 1_000_000_001)]));
    let manifests: Vec<(&str, Vec<u8>, &str)> = vec![
        ("eleven", of(PLAIN, &[(TAR_LAYER, good.as_slice()); 11]), "expected no more than 10 oci layers, got 11"),
        ("two", of(PLAIN, &[(TAR_LAYER, good.as_slice()); 2]), "expected only a single oci content layer, got 2"),
        ("none", of(PLAIN, &[]), "expected only a single oci content layer, got 0"),
        ("index", br#"{"manifests":[{"digest":"x"}]}"#.to_vec(), "expected only a single oci content layer, got 0"),
        ("type", of(PLAIN, &[(other, &good)]), "oci layer media type application/vnd.docker.image.rootfs.diff.tar.gzip is not in the list of allowed media types"),
        ("chart", of(HELM_CONFIG, &[(TAR_LAYER, &good)]), "expected only a single oci content layer, got 0"),
        ("text", b"<html>".to_vec(), "error decoding oci manifest for digest"),
        ("digest", br#"{"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:../../x","size":1}]}"#.to_vec(), "has no sha256 digest"),
        ("out", of(PLAIN, &[(TAR_LAYER, &tar(&[TarEntry::file("../../x", "x")]))]), "illegal filepath in archive: ../../x"),
        ("link", of(PLAIN, &[(TAR_LAYER, &tar(&[TarEntry::symlink("app", "/../etc")]))]), "illegal filepath in symlink: app"),
        ("folders", of(HELM_CONFIG, &[(HELM_LAYER, &gzip(&tar(&[TarEntry::file("a/x", ""), TarEntry::file("b/x", "")])))]), "expected 1 directory, found 2"),
        ("bomb", of(PLAIN, &[(TAR_GZIP_LAYER, &bomb)]), "it unpacks to more than 1000000000 bytes (raise the limit with --oci-manifest-max-extracted-size)"),
        ("no gzip", of(PLAIN, &[(TAR_GZIP_LAYER, &good)]), "error while iterating on tar reader: gzip: "),
    ];
    for content in [
        tar(&[TarEntry::file("../../x", "x")]),
        tar(&[TarEntry::symlink("app", "/../etc")]),
        gzip(&tar(&[
            TarEntry::file("a/x", ""),
            TarEntry::file("b/x", ""),
        ])),
        bomb.clone(),
        good.clone(),
    ] {
        registry.push_blob("team/app", &content);
    }
    for (tag, text, error) in manifests {
        let digest = registry.push_manifest("team/app", "it", &text);
        let refused = here.render(request(access.clone(), "app", &digest)).await;
        let refused = refused.expect_err(tag);
        assert!(refused.to_string().contains(error), "{tag}: {refused}");
        assert!(!refused.retryable(), "{tag}");
    }
}

#[tokio::test]
async fn a_registry_is_not_believed() {
    let (here, registry) = (Here::new(), Registry::start());
    let app = access(&format!("oci://{}/team/app", registry.host()));
    let at = format!("{}/team/app", registry.host());
    let (good, evil) = (layer("good"), layer("evil"));
    let text = manifest(PLAIN, &[(TAR_LAYER, &good)], &json!({}));
    let digest = registry.push_manifest("team/app", "main", &text);
    let (by_digest, blob) = (format!("/v2/team/app/manifests/{digest}"), digest_of(&good));
    let blob_path = format!("/v2/team/app/blobs/{blob}");
    let redirect = |to: &str| Answer {
        status: 302,
        headers: vec![format!("Location: {to}")],
        ..Answer::default()
    };
    let mut wrong = String::new();
    let _ = write!(wrong, "{{\"layers\":[],\"x\":\"{}\"}}", "y".repeat(5 << 20));
    for (path, answer, error) in [
        (
            by_digest.as_str(),
            Answer::from(evil.clone()),
            format!(
                "repository {at} is broken: what it sends as the manifest {digest} has the digest {}",
                digest_of(&evil)
            ),
        ),
        (
            &by_digest,
            Answer::from(wrong.into_bytes()),
            format!("repository {at} is refused: it has more than 4194304 bytes"),
        ),
        (
            &by_digest,
            redirect("ftp://127.0.0.1/x"),
            format!("repository {at} is broken: it redirects to where nothing may be fetched"),
        ),
        (
            &by_digest,
            redirect("file:///etc/passwd"),
            format!("repository {at} is broken: it redirects to where nothing may be fetched"),
        ),
        (
            &by_digest,
            redirect(&by_digest),
            format!("repository {at} is broken: it redirects more than 5 times"),
        ),
        (
            &by_digest,
            Answer {
                status: 429,
                ..Answer::default()
            },
            format!("failed to fetch {at}: 429 Too Many Requests"),
        ),
        (
            &blob_path,
            Answer::from(evil.clone()),
            format!(
                "repository {at} is broken: what it sends as the layer {blob} has the digest {}",
                digest_of(&evil)
            ),
        ),
        (
            &blob_path,
            Answer::from([good.clone(), vec![0]].concat()),
            format!(
                "repository {at} is refused: it has more than {} bytes",
                good.len()
            ),
        ),
        (
            &blob_path,
            Answer {
                status: 404,
                ..Answer::default()
            },
            format!("repository not found: {at}"),
        ),
    ] {
        registry.push_manifest("team/app", "main", &text);
        registry.push_blob("team/app", &good);
        registry.server.serve(path, answer);
        let dir = tempfile::tempdir().expect("a folder");
        let here = Here {
            repos: Repos::new(dir.path()),
            dir,
        };
        let failed = here.failure(app.clone(), "main").await;
        assert_eq!(failed.to_string(), error, "{path}");
    }
    // A tag's digest is only a name: what it names is checked.
    registry.push_manifest("team/app", "main", &text);
    registry.push_blob("team/app", &good);
    let lie = Answer {
        headers: vec![format!("Docker-Content-Digest: {}", "sha256:../x")],
        ..Answer::from(text.clone())
    };
    registry.server.serve("/v2/team/app/manifests/main", lie);
    let found = here
        .resolved(&app, "", "main")
        .await
        .expect("it is computed");
    assert_eq!(found, digest);
}

#[tokio::test]
async fn a_token_service_that_is_none_is_named() {
    let (here, good) = (Here::new(), layer("good"));
    for (realm, error) in [
        (
            "ftp://127.0.0.1/t",
            "its token service is not asked: it is neither https nor of a registry over http",
        ),
        ("nowhere", "its token service has no valid address"),
        ("/v2/", "failed to fetch a token for"),
        ("/html", "its token service answers without a token"),
    ] {
        let registry = Registry::with_tokens(realm);
        registry.server.serve(&format!("/html?{QUERY}"), "<html>");
        registry.push("team/app", "main", TAR_LAYER, &good);
        let access = access(&format!("oci://{}/team/app", registry.host()));
        let failed = here.failure(access, "main").await;
        assert!(failed.to_string().contains(error), "{realm}: {failed}");
    }
}

#[tokio::test]
async fn registries_are_tested() {
    let here = Here::new();
    let open = Registry::start();
    open.server.serve("/v2/", open.answer(b"{}"));
    let url = |registry: &Registry| format!("{}/charts", registry.host());
    here.repos
        .test_registry(&access(&url(&open)))
        .await
        .expect("it answers");

    let closed = Registry::with_tokens("/token");
    closed.server.serve("/v2/", closed.answer(b"{}"));
    let token = "/token?service=fake";
    serve_tokens(&closed.server, token, Some(("ann", "hunter2")));
    here.repos
        .test_registry(&signed(&url(&closed)))
        .await
        .expect("the password is right");
    here.repos
        .test_registry(&access(&url(&closed)))
        .await
        .expect("it is there");
    let wrong = RepoAccess {
        password: Secret::new("wrong"),
        ..signed(&url(&closed))
    };
    let refused = here
        .repos
        .test_registry(&wrong)
        .await
        .expect_err("the password is wrong");
    assert!(matches!(refused, RepoError::AuthFailed { .. }), "{refused}");
    let nothing = access("127.0.0.1:1/charts");
    let failed = here
        .repos
        .test_registry(&nothing)
        .await
        .expect_err("nobody is there");
    assert!(failed.retryable(), "{failed}");
    // A registry speaks https, unless the settings say otherwise.
    let secure = RepoAccess::public(url(&open));
    here.repos
        .test_registry(&secure)
        .await
        .expect_err("it does not speak https");
}

//! The same against a real registry, `docker-registry` of Debian: with a password, and with pages of
//! tags as it makes them.

use reqwest::{Client, Method, StatusCode};
use serde_json::json;
use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tiphys_api::source::ApplicationSource;
use tiphys_repo::{ManifestRequest, RepoAccess, RepoError, Repos, Secret, Since};
use tiphys_testkit::{
    archive::{TarEntry, gzip, tar},
    charts::plain_chart,
    registry::{HELM_CONFIG, HELM_LAYER, TAR_GZIP_LAYER, digest, manifest},
};

/// `ann:hunter2`, as `htpasswd -B` writes it.
const USERS: &str = "ann:$2y$05$abcdefghijklmnopqrstuuoXuKqgZXLiJqzfmMXDDhSFPIvxV7t8.\n";

struct Registry {
    process: Child,
    host: String,
    client: Client,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> String {
    std::env::var("DOCKER_REGISTRY").unwrap_or_else(|_| "docker-registry".to_owned())
}

impl Registry {
    async fn start(dir: &Path) -> Self {
        let host = format!("127.0.0.1:{}", tiphys_testkit::free_port());
        let (users, config) = (dir.join("users"), dir.join("config.yml"));
        std::fs::write(&users, USERS).expect("a file");
        let text = json!({
            "version": "0.1",
            "log": {"level": "error"},
            "storage": {"filesystem": {"rootdirectory": dir.join("storage")}},
            "http": {"addr": host},
            "auth": {"htpasswd": {"realm": "test", "path": users}},
        });
        std::fs::write(&config, text.to_string()).expect("a file");
        let process = Command::new(program())
            .arg("serve")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the registry starts");
        let registry = Self {
            process,
            host,
            client: Client::new(),
        };
        for _ in 0..100 {
            if registry.send(Method::GET, "", "", Vec::new()).await.is_ok() {
                return registry;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the registry does not answer");
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Vec<u8>,
    ) -> reqwest::Result<reqwest::Response> {
        let url = if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("http://{}/v2/{path}", self.host)
        };
        let request = self.client.request(method, url);
        let request = request.basic_auth("ann", Some("hunter2"));
        request.header("Content-Type", kind).body(body).send().await
    }

    async fn push_blob(&self, repository: &str, content: &[u8]) {
        let begun = self
            .send(
                Method::POST,
                &format!("{repository}/blobs/uploads/"),
                "",
                Vec::new(),
            )
            .await
            .expect("an upload begins");
        let location = begun.headers()["location"].to_str().expect("a URL");
        let mark = if location.contains('?') { '&' } else { '?' };
        let url = format!("{location}{mark}digest={}", digest(content));
        let put = self.send(
            Method::PUT,
            &url,
            "application/octet-stream",
            content.to_vec(),
        );
        assert_eq!(put.await.expect("an answer").status(), StatusCode::CREATED);
    }

    async fn push(&self, repository: &str, tag: &str, kind: &str, layer: &[u8]) -> String {
        let config = match kind {
            HELM_LAYER => HELM_CONFIG,
            _ => "application/vnd.oci.empty.v1+json",
        };
        self.push_blob(repository, b"{}").await;
        self.push_blob(repository, layer).await;
        let text = manifest(config, &[(kind, layer)], &json!({}));
        let digest = digest(&text);
        let path = format!("{repository}/manifests/{tag}");
        let put = self.send(
            Method::PUT,
            &path,
            "application/vnd.oci.image.manifest.v1+json",
            text,
        );
        assert_eq!(put.await.expect("an answer").status(), StatusCode::CREATED);
        digest
    }
}

fn request(access: &RepoAccess, chart: &str, path: &str, sha: &str) -> ManifestRequest {
    ManifestRequest {
        source: ApplicationSource {
            repo_url: access.url.clone(),
            chart: chart.to_owned(),
            path: path.to_owned(),
            ..ApplicationSource::default()
        },
        access: access.clone(),
        sha: sha.to_owned(),
        app_name: "shop".to_owned(),
        ..ManifestRequest::default()
    }
}

#[tokio::test]
async fn charts_and_artifacts_of_a_real_registry() {
    let found = Command::new(program()).arg("--version").output();
    if found.is_err() {
        return tiphys_testkit::skip(
            "docker-registry",
            "there is no docker-registry here (DOCKER_REGISTRY names one)",
        );
    }
    let dir = tempfile::tempdir().expect("a folder");
    let registry = Registry::start(dir.path()).await;
    let repos = Repos::new(dir.path().join("cache"));
    let access = |url: &str| RepoAccess {
        username: "ann".to_owned(),
        password: Secret::new("hunter2"),
        plain_http: true,
        ..RepoAccess::public(url)
    };
    for version in ["1.2.2+b1", "1.2.3"] {
        let chart = plain_chart("demo", version, &[]);
        let tag = version.replace('+', "_");
        registry.push("charts/demo", &tag, HELM_LAYER, &chart).await;
    }
    let charts = access(&format!("{}/charts", registry.host));
    repos.test_registry(&charts).await.expect("it answers");
    for (revision, version) in [("*", "1.2.3"), ("<1.2.3", "1.2.2+b1")] {
        let source = request(&charts, "demo", "", "").source;
        let found = repos.resolve_source(&charts, &source, revision, Since::now());
        assert_eq!(found.await.expect(revision).sha, version);
        let made = repos.manifests(request(&charts, "demo", "", version)).await;
        let made = made.expect(revision);
        let object = made.objects[0].object();
        assert_eq!(object.str_at("/data/version"), version);
    }

    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
    let layer = gzip(&tar(&[TarEntry::file("app/a.yaml", text)]));
    let digest = registry
        .push("team/app", "main", TAR_GZIP_LAYER, &layer)
        .await;
    let app = access(&format!("oci://{}/team/app", registry.host));
    let source = request(&app, "", "app", "").source;
    let found = repos.resolve_source(&app, &source, "main", Since::now());
    assert_eq!(found.await.expect("a digest").sha, digest);
    let made = repos.manifests(request(&app, "", "app", &digest)).await;
    assert_eq!(made.expect("rendered").objects.len(), 1);
    let found = repos.resolve_source(&app, &source, "other", Since::now());
    let absent = found.await.expect_err("there is no such tag");
    assert!(
        absent.to_string().ends_with("team/app:other: not found"),
        "{absent}"
    );

    // More than its largest page of 1000.
    let text = manifest(HELM_CONFIG, &[(TAR_GZIP_LAYER, &layer)], &json!({}));
    for number in 0..1005 {
        let path = format!("team/app/manifests/0.0.{number}");
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let put = registry.send(Method::PUT, &path, kind, text.clone()).await;
        assert_eq!(put.expect("an answer").status(), StatusCode::CREATED);
    }
    let tags = repos.oci_tags(&app).await.expect("tags");
    assert_eq!(tags.len(), 1006);

    let wrong = RepoAccess {
        password: Secret::new("wrong"),
        ..app.clone()
    };
    for access in [
        wrong,
        RepoAccess {
            username: String::new(),
            password: Secret::default(),
            ..app
        },
    ] {
        let source = request(&access, "", "app", "").source;
        let refused = repos
            .resolve_source(&access, &source, "main", Since::now())
            .await;
        assert!(
            matches!(refused, Err(RepoError::AuthFailed { .. })),
            "{refused:?}"
        );
    }
}

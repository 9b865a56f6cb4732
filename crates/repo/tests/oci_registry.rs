//! The same against a real registry, `docker-registry` of Debian: with a password, and with pages of
//! tags as it makes them.

use reqwest::{Method, StatusCode};
use serde_json::json;
use tiphys_api::source::ApplicationSource;
use tiphys_repo::{ManifestRequest, RepoAccess, RepoError, Repos, Secret, Since};
use tiphys_testkit::{
    archive::{TarEntry, gzip, tar},
    charts::plain_chart,
    docker_registry::{DockerRegistry, NAME, PASSWORD},
    registry::{HELM_CONFIG, HELM_LAYER, TAR_GZIP_LAYER, manifest},
};

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
    let dir = tempfile::tempdir().expect("a folder");
    let Some(registry) = DockerRegistry::start_or_skip(dir.path()) else {
        return;
    };
    let repos = Repos::new(dir.path().join("cache"));
    let access = |url: &str| RepoAccess {
        username: NAME.to_owned(),
        password: Secret::new(PASSWORD),
        plain_http: true,
        ..RepoAccess::public(url)
    };
    for version in ["1.2.2+b1", "1.2.3"] {
        let chart = plain_chart("demo", version, &[]);
        let tag = version.replace('+', "_");
        registry.push("charts/demo", &tag, HELM_LAYER, &chart).await;
    }
    let charts = access(&format!("{}/charts", registry.host()));
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
    let app = access(&format!("oci://{}/team/app", registry.host()));
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

//! Registries that list their repositories in an API of their own.

use std::time::Duration;
use tiphys_repo::{OciRemote, RemoteOptions, RepoAccess};
use tiphys_testkit::charts::{Answer, FileServer, basic};

const PAGE: usize = 100;

fn remote(url: &str) -> OciRemote {
    let options = RemoteOptions {
        pass_credentials: false,
        agent: String::new(),
        timeout: Duration::from_secs(30),
    };
    let access = RepoAccess {
        username: "ann".to_owned(),
        password: "hunter2".into(),
        ..RepoAccess::public(url)
    };
    OciRemote::new(access, &options).expect("a registry")
}

fn named(names: &[String]) -> serde_json::Value {
    let found = names.iter().map(|name| serde_json::json!({"name": name}));
    found.collect()
}

#[tokio::test]
async fn pages_of_docker_hub() {
    let server = FileServer::start();
    let base = server.url();
    let path = "/v2/namespaces/acme/repositories/";
    let first = format!("{path}?page_size={PAGE}&ordering=name&content_types=helm");
    let second = format!("{path}?page=2");
    let page = |name: &str, next: &str| {
        let results = named(&[name.to_owned()]);
        serde_json::json!({"results": results, "next": next}).to_string()
    };
    let more = format!("{base}{second}");
    server.serve(&first, page("web", &more).as_str());
    server.serve(&second, page("api", "").as_str());
    let hub = remote("oci://registry-1.docker.io/acme").with_hub(&base);
    assert_eq!(hub.listed().await.expect("a list"), ["web", "api"]);
    let asked = server.received();
    assert_eq!(asked.len(), 2);
    // The credentials are the registry's, which is on another host.
    assert!(asked.iter().all(|request| request.authorization.is_empty()));
    server.serve(
        &second,
        page("api", "https://elsewhere.example/v2/").as_str(),
    );
    let refused = hub.listed().await.expect_err("refused").to_string();
    assert!(refused.contains("on another host"), "{refused}");
}

#[tokio::test]
async fn charts_of_a_project_of_harbor() {
    let server = FileServer::start();
    let only = |body: String| Answer {
        only_for: Some(("ann", "hunter2")),
        ..body.as_str().into()
    };
    let api = "/api/v2.0/projects/acme/repositories";
    // Two pages: images elsewhere, and below the path two charts and an image.
    let mut names: Vec<String> = (0..PAGE).map(|n| format!("acme/image-{n}")).collect();
    names[3] = "acme/charts/web".to_owned();
    let more = ["deep/api", "image"].map(|name| format!("acme/charts/{name}"));
    for (number, names) in [(1, &names[..]), (2, &more)] {
        let path = format!("{api}?page={number}&page_size={PAGE}");
        server.serve(&path, only(named(names).to_string()));
    }
    for (name, found) in [
        ("charts%252Fweb", "[{}]"),
        ("charts%252Fdeep%252Fapi", "[{}]"),
        ("charts%252Fimage", "[]"),
    ] {
        let path = format!("{api}/{name}/artifacts?q=type%3DCHART&page=1&page_size=1");
        server.serve(&path, only(found.to_owned()));
    }
    let listed = remote(&format!("{}/acme/charts", server.url()))
        .listed()
        .await;
    assert_eq!(listed.expect("a list"), ["web", "deep/api"]);
    let asked = server.received();
    let asked: Vec<_> = asked
        .iter()
        .filter(|r| r.path.starts_with("/api/"))
        .collect();
    assert_eq!(asked.len(), 5);
    assert!(
        asked
            .iter()
            .all(|r| r.authorization == basic("ann", "hunter2"))
    );
}

#[tokio::test]
async fn a_registry_without_a_list_says_so() {
    let server = FileServer::start();
    let listed = remote(&format!("{}/acme", server.url())).listed().await;
    let refused = listed.expect_err("there is no list").to_string();
    assert!(refused.contains("not found"), "{refused}");
}

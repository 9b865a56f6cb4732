//! `/api/webhook`: which ApplicationSets are refreshed.

use super::common::World;
use super::webhook::post;
use serde_json::{Value, json};
use std::{fs, time::Duration};
use tiphys_api::{ApplicationSet, constants::APPLICATION_SET_REFRESH};
use tiphys_gocompat::yaml;
use tiphys_server::ports::Sets as _;

async fn create(world: &World, name: &str, generator: Value) {
    let set = json!({
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"goTemplate": true, "generators": [generator], "template": {}},
    });
    let set: ApplicationSet = serde_json::from_value(set).expect("an ApplicationSet");
    world.sets.create(&set).await.expect("created");
}

/// Every event concerns this set, which is looked at last.
async fn create_last(world: &World) {
    create(
        world,
        "zz",
        json!({"plugin": {"configMapRef": {"name": "plug"}}}),
    )
    .await;
}

/// Waits for the last set, and returns the others that were refreshed.
async fn refreshed(world: &World) -> Vec<String> {
    for _ in 0..500 {
        let all = world.sets.list().0;
        let asked = all.iter().filter(|set| {
            let annotations = &set.metadata.annotations;
            annotations
                .get(APPLICATION_SET_REFRESH)
                .is_some_and(|value| value == "true")
        });
        let mut names: Vec<String> = asked.map(|set| set.metadata.name.clone()).collect();
        if names.last().is_some_and(|name| name == "zz") {
            names.pop();
            for set in all {
                let mut set = (*set).clone();
                set.metadata.annotations.clear();
                world.sets.update(&set).await.expect("updated");
            }
            return names;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nothing was refreshed");
}

#[tokio::test]
async fn a_push_refreshes_the_sets_of_the_report() {
    let Some(folder) = tiphys_testkit::shared("cases/reports/sets/19-push-webhook") else {
        return;
    };
    let sets = fs::read_to_string(folder.join("sets.yaml")).expect("the sets");
    let world = World::start().await;
    let limits = yaml::Limits::default();
    let documents = yaml::parse_documents(&sets, &limits);
    for document in documents.expect("YAML") {
        let set: ApplicationSet = serde_json::from_value(document.value).expect("a set");
        world.sets.create(&set).await.expect("created");
    }
    create_last(&world).await;
    let expected = fs::read_to_string(folder.join("expected.yaml")).expect("the answers");
    let expected = yaml::parse_document(expected, &limits, yaml::Duplicates::LastWins);
    let expected = expected.expect("YAML");
    for event in ["main", "feature", "tag"] {
        let file = folder.join(format!("payload-{event}.json"));
        let payload = fs::read_to_string(file).expect("a payload");
        let payload: Value = serde_json::from_str(&payload).expect("JSON");
        let headers = [("X-GitHub-Event", "push")];
        let answer = post(&world, &headers, &payload).await;
        assert_eq!(answer, (200, String::new()), "{event}");
        assert_eq!(json!(refreshed(&world).await), expected[event], "{event}");
    }
    let unknown = post(&world, &[], &json!({})).await;
    assert_eq!(unknown, (400, "Unknown webhook event\n".to_owned()));
}

/// A host, and the headers and content of what it sends.
type Event = (&'static str, Vec<(&'static str, &'static str)>, Value);

/// What a host sends about a pull request, with its action.
fn events(action: &str) -> [Event; 4] {
    let merge_request = json!({
        "object_kind": "merge_request", "event_name": "merge_request",
        "object_attributes": {"action": action, "target_project_id": 7},
        "project": {
            "web_url": "https://gitlab.example/acme/shop", "path_with_namespace": "acme/shop",
        },
    });
    [
        (
            "github",
            vec![("X-GitHub-Event", "pull_request")],
            json!({
                "action": action, "number": 1,
                "repository": {
                    "name": "Shop", "owner": {"login": "Acme"},
                    "url": "https://api.github.com/repos/Acme/Shop",
                },
            }),
        ),
        (
            "gitlab",
            vec![("X-Gitlab-Event", "Merge Request Hook")],
            merge_request.clone(),
        ),
        (
            "gitlab",
            vec![("X-Gitlab-Event", "System Hook")],
            merge_request,
        ),
        (
            "azure",
            vec![("X-Vss-Activityid", "a")],
            json!({
                "eventType": action,
                "resource": {"repository": {"name": "shop", "project": {"name": "acme"}}},
            }),
        ),
    ]
}

#[tokio::test]
async fn a_pull_request_refreshes_the_sets_that_list_it() {
    let world = World::start().await;
    let github = |owner: &str, api: &str| json!({"pullRequest": {"github": {"owner": owner, "repo": "shop", "api": api}}});
    let gitlab = |project: &str, api: &str| json!({"pullRequest": {"gitlab": {"project": project, "api": api}}});
    let azure = |project: &str| {
        json!({"pullRequest": {"azuredevops": {
            "organization": "o", "project": project, "repo": "shop",
        }}})
    };
    let pushed =
        json!({"git": {"repoURL": "https://api.github.com/acme/shop", "revision": "HEAD"}});
    for (name, generator) in [
        ("azure", azure("acme")),
        ("azure-other", azure("other")),
        ("git", pushed),
        ("github", github("acme", "")),
        (
            "github-elsewhere",
            github("acme", "https://git.example/api/v3"),
        ),
        ("github-other", github("other", "")),
        ("gitlab-number", gitlab("7", "https://gitlab.example:8443/")),
        ("gitlab-path", gitlab("acme/shop", "https://GitLab.example")),
        ("gitlab-public", gitlab("7", "")),
        (
            "matrix",
            json!({"matrix": {"generators": [
                {"list": {"elements": [{"owner": "nobody"}, {"owner": "acme"}]}},
                github("{{.owner}}", ""),
            ]}}),
        ),
    ] {
        create(&world, name, generator).await;
    }
    create_last(&world).await;
    for (host, action, expected) in [
        ("github", "synchronize", vec!["github", "matrix"]),
        ("gitlab", "update", vec!["gitlab-number", "gitlab-path"]),
        ("azure", "git.pullrequest.merged", vec!["azure"]),
    ] {
        for (name, headers, payload) in events(action) {
            if name == host {
                let answer = post(&world, &headers, &payload).await;
                assert_eq!(answer, (200, String::new()), "{name} {headers:?}");
                assert_eq!(refreshed(&world).await, expected, "{name} {headers:?}");
            }
        }
    }
    // What changes nothing that a generator sees.
    for (name, headers, payload) in events("assigned") {
        let status = post(&world, &headers, &payload).await.0;
        let expected = if name == "azure" { 400 } else { 200 };
        assert_eq!(status, expected, "{name} {headers:?}");
    }
    // One that does comes after them, and brings no more.
    let (_, headers, payload) = &events("opened")[0];
    assert_eq!(post(&world, headers, payload).await.0, 200);
    assert_eq!(refreshed(&world).await, ["github", "matrix"]);
}

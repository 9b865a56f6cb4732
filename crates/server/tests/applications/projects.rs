//! What projects and their repositories permit.

use super::{APPS, WATCH, create};
use crate::common::{World, app};
use futures::StreamExt as _;
use http::Method;
use serde_json::{Value, json};
use tiphys_api::{application::ApplicationWatchEvent, rpc::application::ApplicationQuery};
use tiphys_server::ports::Store as _;

#[tokio::test]
async fn repositories_and_projects() {
    let world = World::start().await;
    let repo = json!({"repo": "https://example.org/r.git", "username": "u", "password": "secret"});
    let (status, created) = world
        .rest(Method::POST, "/api/v1/repositories", Some(repo))
        .await;
    assert_eq!(
        (status, created["repo"].as_str()),
        (200, Some("https://example.org/r.git"))
    );
    let (_, list) = world.rest(Method::GET, "/api/v1/repositories", None).await;
    assert!(!list.to_string().contains("secret"), "{list}");
    assert_eq!(list["items"][0]["connectionState"]["status"], "Successful");
    let (_, refs) = world
        .rest(
            Method::GET,
            "/api/v1/repositories/https%3A%2F%2Fexample.org%2Fr.git/refs",
            None,
        )
        .await;
    assert_eq!(refs["branches"], json!(["main"]));
    let unreachable = json!({"repo": "https://unreachable.example/r"});
    assert_eq!(
        world
            .rest(Method::POST, "/api/v1/repositories", Some(unreachable))
            .await
            .0,
        500
    );
    assert_eq!(
        world
            .rest(
                Method::DELETE,
                "/api/v1/repositories/https%3A%2F%2Fexample.org%2Fr.git",
                None
            )
            .await
            .0,
        200
    );
    let project = json!({"project": {"metadata": {"name": "p"}, "spec": {"sourceRepos": ["*"]}}});
    assert_eq!(
        world
            .rest(Method::POST, "/api/v1/projects", Some(project))
            .await
            .0,
        200
    );
    assert_eq!(
        world
            .rest(Method::DELETE, "/api/v1/projects/default", None)
            .await
            .0,
        400
    );
    assert_eq!(
        world
            .rest(Method::DELETE, "/api/v1/projects/p", None)
            .await
            .0,
        200
    );
    let (_, clusters) = world.rest(Method::GET, "/api/v1/clusters", None).await;
    assert_eq!(clusters["items"][0]["name"], "in-cluster");
}

/// Namespace and name of each.
fn names(list: Value) -> Vec<String> {
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items
        .iter()
        .map(|a| {
            format!("{}/{}", a["metadata"]["namespace"], a["metadata"]["name"]).replace('"', "")
        })
        .collect()
}

#[tokio::test]
async fn c80_applications_in_permitted_namespaces_are_served_like_our_own() {
    let world = World::start().await;
    let mut elsewhere = app("a");
    elsewhere["metadata"]["namespace"] = "team".into();
    let refused = world
        .rest(Method::POST, APPS, Some(elsewhere.clone()))
        .await;
    let why = "app is not allowed in project \"default\", or the project does not exist";
    assert_eq!((refused.0, refused.1["error"].as_str()), (400, Some(why)));

    world
        .store
        .permitted
        .lock()
        .expect("not poisoned")
        .push("team".into());
    let (status, body) = world
        .rest(Method::POST, APPS, Some(elsewhere.clone()))
        .await;
    let foreign = "app is not allowed in project \"default\", or the project does not exist";
    assert_eq!(
        (status, body["error"].as_str()),
        (400, Some(foreign)),
        "the project does not take Applications from there"
    );
    let mut project = world
        .store
        .get_project("default")
        .await
        .expect("it is there");
    project.spec.source_namespaces = vec!["other".into(), "/^te/".into()];
    world.store.update_project(&project).await.expect("stored");
    let (status, created) = world.rest(Method::POST, APPS, Some(elsewhere)).await;
    assert_eq!(
        (status, created["metadata"]["namespace"].as_str()),
        (200, Some("team")),
        "{created}"
    );

    create(&world, "b").await;
    assert_eq!(
        world.rest(Method::GET, &format!("{APPS}/a"), None).await.0,
        403,
        "there is none of that name in our namespace"
    );
    let at = |call: &str| format!("{APPS}/a{call}?appNamespace=team");
    assert_eq!(
        world.rest(Method::GET, &at(""), None).await.1["metadata"]["name"],
        "a"
    );
    assert_eq!(
        names(world.rest(Method::GET, APPS, None).await.1),
        ["team/a", "argocd/b"]
    );
    assert_eq!(
        names(
            world
                .rest(Method::GET, &format!("{APPS}?appNamespace=team"), None)
                .await
                .1
        ),
        ["team/a"]
    );
    let query = ApplicationQuery {
        name: Some("a".into()),
        app_namespace: Some("team".into()),
        ..Default::default()
    };
    let mut watch: tonic::Streaming<ApplicationWatchEvent> = world.grpc_stream(WATCH, query).await;
    let seen = watch.next().await.expect("an event").expect("no error");
    assert_eq!(seen.application.metadata.namespace, "team");
    let (status, synced) = world
        .rest(
            Method::POST,
            &format!("{APPS}/a/sync"),
            Some(json!({"appNamespace": "team"})),
        )
        .await;
    assert_eq!(
        (
            status,
            synced["operation"]["initiatedBy"]["username"].as_str()
        ),
        (200, Some("admin")),
        "{synced}"
    );
    let (_, rendered) = world.rest(Method::GET, &at("/manifests"), None).await;
    assert!(rendered.to_string().contains("team_a"), "{rendered}");
    assert_eq!(world.rest(Method::DELETE, &at(""), None).await.0, 200);
    assert_eq!(
        names(world.rest(Method::GET, APPS, None).await.1),
        ["argocd/b"]
    );
}

#[tokio::test]
async fn what_a_global_project_permits_is_permitted() {
    let world = World::start().await;
    let project =
        |name: &str, spec: Value| json!({"project": {"metadata": {"name": name}, "spec": spec}});
    let narrow = project("p", json!({"sourceRepos": ["https://example.org/*"]}));
    assert_eq!(
        world
            .rest(Method::POST, "/api/v1/projects", Some(narrow))
            .await
            .0,
        200
    );
    let mut wanted = app("a");
    wanted["spec"]["project"] = "p".into();
    assert_eq!(
        world.rest(Method::POST, APPS, Some(wanted.clone())).await.0,
        400,
        "it has no destinations"
    );
    let wide = project(
        "global",
        json!({"destinations": [{"server": "*", "namespace": "*"}]}),
    );
    assert_eq!(
        world
            .rest(Method::POST, "/api/v1/projects", Some(wide))
            .await
            .0,
        200
    );
    let (status, created) = world.rest(Method::POST, APPS, Some(wanted)).await;
    assert_eq!(status, 200, "{created}");
    let (_, globals) = world
        .rest(Method::GET, "/api/v1/projects/p/globalprojects", None)
        .await;
    assert_eq!(globals["items"][0]["metadata"]["name"], "global");
    let (_, detailed) = world
        .rest(Method::GET, "/api/v1/projects/p/detailed", None)
        .await;
    assert_eq!(
        detailed["globalProjects"][0]["metadata"]["name"], "global",
        "{detailed}"
    );
}

#[tokio::test]
async fn refs_follow_the_same_rules_everywhere() {
    let world = World::start().await;
    let twice = "invalid sources: multiple sources had the same `ref` key";
    let special = "sources.ref a/b cannot contain any special characters except '_' and '-'";
    for (name, refs, fault) in [
        ("fine", ["a", "b"], None),
        ("none", ["", ""], None),
        ("twice", ["a", "a"], Some(twice)),
        ("special", ["a/b", ""], Some(special)),
    ] {
        let mut wanted = app(name);
        let source = wanted["spec"]["source"].clone();
        let named = |name: &str| {
            let mut source = source.clone();
            source["ref"] = name.into();
            source
        };
        wanted["spec"]["sources"] = refs.into_iter().map(named).collect();
        wanted["spec"]
            .as_object_mut()
            .expect("a spec")
            .remove("source");
        let first = wanted["spec"]["sources"][0].clone();
        let at = |path: &str| format!("{APPS}{path}");
        let create = world.rest(Method::POST, APPS, Some(wanted.clone())).await;
        let unchecked = at("?validate=false");
        if fault.is_some() {
            let (status, stored) = world.rest(Method::POST, &unchecked, Some(wanted)).await;
            assert_eq!(status, 200, "{stored}");
        }
        let manifests = at(&format!("/{name}/manifests"));
        let details = json!({"source": first, "appName": name, "appProject": "default"});
        let path = "/api/v1/repositories/https%3A%2F%2Fexample.org%2Fr.git/appdetails";
        for ((status, body), doing) in [
            (create, "error getting ref sources: "),
            (
                world.rest(Method::GET, &manifests, None).await,
                "error generating manifests: failed to get ref sources: ",
            ),
            (
                world.rest(Method::POST, path, Some(details)).await,
                "failed to get ref sources: ",
            ),
        ] {
            let Some(fault) = fault else {
                assert_eq!(status, 200, "{name}: {body}");
                continue;
            };
            let text = body["error"].as_str().unwrap_or_default();
            assert!(
                status != 200 && text.ends_with(&format!("{doing}{fault}")),
                "{name}: {body}"
            );
        }
    }
}

/// Such a project can be stored with kubectl.
#[tokio::test]
async fn a_broken_sync_window_stops_syncs_and_nothing_else() {
    let world = World::start().await;
    create(&world, "other").await;
    let mut project = world
        .store
        .get_project("default")
        .await
        .expect("it is there");
    project.metadata.name = "p".into();
    let broken = json!({"kind": "allow", "schedule": "0 24 * * *", "duration": "1h", "applications": ["*"], "manualSync": true});
    let good =
        json!({"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]});
    project.spec.sync_windows = serde_json::from_value(json!([broken, good])).expect("two windows");
    world.store.update_project(&project).await.expect("stored");
    let mut wanted = app("a");
    wanted["spec"]["project"] = "p".into();
    let (status, created) = world.rest(Method::POST, APPS, Some(wanted)).await;
    assert_eq!(status, 200, "{created}");

    let get = |path: &str| {
        let (world, path) = (&world, format!("{APPS}{path}"));
        async move { world.rest(Method::GET, &path, None).await }
    };
    let (status, shown) = get("/a").await;
    assert_eq!((status, &shown["spec"]["project"]), (200, &json!("p")));
    let (_, all) = get("").await;
    assert_eq!(names(all), ["argocd/a", "argocd/other"]);
    let (status, windows) = get("/a/syncwindows").await;
    assert_eq!(status, 200, "{windows}");
    assert_eq!(windows["canSync"], false, "{windows}");
    let schedules = |list: &str| -> Vec<Value> {
        let list = windows[list].as_array().cloned().unwrap_or_default();
        list.iter()
            .map(|window| window["schedule"].clone())
            .collect()
    };
    assert_eq!(schedules("assignedWindows"), ["0 24 * * *", "* * * * *"]);
    assert_eq!(schedules("activeWindows"), ["* * * * *"]);
    let of_project = "/api/v1/projects/p/syncwindows";
    let (status, state) = world.rest(Method::GET, of_project, None).await;
    assert_eq!(status, 200, "{state}");
    assert_eq!(state["windows"][0]["schedule"], "* * * * *", "{state}");

    let sync = |name: &str| {
        let (world, path) = (&world, format!("{APPS}/{name}/sync"));
        async move { world.rest(Method::POST, &path, Some(json!({}))).await }
    };
    let (status, refused) = sync("a").await;
    let why = refused["error"].as_str().unwrap_or_default();
    assert_eq!(status, 403, "{refused}");
    assert!(
        why.starts_with("cannot sync: invalid sync window: ") && why.contains("'0 24 * * *'"),
        "{why}"
    );
    let (status, started) = sync("other").await;
    assert_eq!(status, 200, "{started}");
    assert_eq!(get("/other/syncwindows").await.1["canSync"], true);
}

#[tokio::test]
async fn of_both_names_of_the_projects_in_a_query_the_older_counts() {
    let world = World::start().await;
    create(&world, "one").await;
    for (query, count) in [
        ("projects=default", 1),
        ("project=default&projects=other", 1),
        ("project=other&projects=default", 0),
    ] {
        let path = format!("{APPS}?{query}");
        let (_, list) = world.rest(Method::GET, &path, None).await;
        let items = list["items"].as_array().map(Vec::len);
        assert_eq!(items, Some(count), "{query}: {list}");
    }
}

#[tokio::test]
async fn a_patch_to_another_type_is_refused_in_gos_words() {
    let world = World::start().await;
    create(&world, "one").await;
    let patch = json!({"patchType": "merge", "patch": r#"{"spec":{"project":5}}"#});
    let path = format!("{APPS}/one");
    let (status, answer) = world.rest(Method::PATCH, &path, Some(patch)).await;
    assert_eq!(status, 500, "{answer}");
    assert_eq!(
        answer["error"],
        "error unmarshaling patched app: json: cannot unmarshal number into Go struct field \
         ApplicationSpec.spec.project of type string"
    );
}

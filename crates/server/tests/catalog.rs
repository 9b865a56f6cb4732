//! catalog.CatalogService over REST.

use crate::common::{World, app};
use http::Method;
use serde_json::{Value, json};
use tiphys_catalog::RepoId;

const CHARTS: &str = "/api/v1/catalog/charts";

async fn get(world: &World, path: &str) -> Value {
    let (status, body) = world.rest(Method::GET, path, None).await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

async fn post(world: &World, path: &str, body: Value) -> (u16, Value) {
    world.rest(Method::POST, path, Some(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_are_found_and_shown() {
    let world = World::start().await;
    let (status, body) = world.rest(Method::GET, CHARTS, None).await;
    assert_eq!(status, 501, "no catalogue yet: {body}");
    let said = body["message"].as_str().expect("a text");
    for flag in ["--catalog,", "--catalog-database-url", "--catalog-file"] {
        assert!(said.contains(flag), "{flag}: {said}");
    }
    let url = world.catalog.fill().await;
    let found = get(&world, &format!("{CHARTS}?query=WEB&repositories=r")).await;
    let chart = &found["items"][0];
    assert_eq!(
        (&found["total"], &chart["version"]),
        (&json!(1), &json!("1.1.0"))
    );
    assert_eq!(found["repositories"], json!([{"value": "r", "count": 1}]));
    for (query, wanted) in [
        ("query=100%25", 0),
        ("names=web&namespaces=team", 1),
        ("names=we", 0),
        ("namespaces=other", 0),
    ] {
        let found = get(&world, &format!("{CHARTS}?{query}")).await;
        assert_eq!(found["total"], wanted, "{query}: {found}");
    }
    let (status, _) = world
        .rest(Method::GET, &format!("{CHARTS}?pageToken=x"), None)
        .await;
    assert_eq!(status, 400);

    let newest = get(&world, &format!("{CHARTS}/team/r/web")).await;
    assert_eq!(newest["readme"], "# web 1.1.0\n");
    assert_eq!(newest["values"], "colour: green\n");
    assert_eq!(newest["versions"].as_array().map(Vec::len), Some(2));
    assert_eq!(newest["versions"][0]["urls"], json!(["web-1.1.0.tgz"]));
    assert_eq!(newest["repoUrl"], url.as_str());
    let old = get(&world, &format!("{CHARTS}/team/r/web?version=1.0.0")).await;
    assert_eq!(old["readme"], "# web 1.0.0\n");
    for (path, wanted) in [
        ("team/r/other", 404),
        ("team/r/web?version=9.0.0", 404),
        // As what one may not see.
        ("team/other/web", 403),
    ] {
        let path = format!("{CHARTS}/{path}");
        let (status, body) = world.rest(Method::GET, &path, None).await;
        assert_eq!(status, wanted, "{path}: {body}");
    }
    let repositories = get(&world, "/api/v1/catalog/repositories").await;
    assert_eq!(repositories["items"][0]["charts"], 1, "{repositories}");
    let (status, _) = post(
        &world,
        "/api/v1/catalog/repositories/team/r/sync",
        json!({}),
    )
    .await;
    assert_eq!(status, 200);
    let resynced = world.catalog.resynced.lock().expect("not poisoned").clone();
    assert_eq!(resynced, [RepoId::new("team", "r")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_are_added_and_removed() {
    let world = World::start().await;
    world.catalog.fill().await;
    let repositories = "/api/v1/catalog/repositories";
    let add = json!({"name": "new", "url": "oci://r.example.com/team", "username": "u",
        "password": "hunter2", "ociRepositories": ["web"]});
    let (status, said) = post(&world, repositories, add).await;
    assert_eq!(status, 200, "{said}");
    let made = world.catalog.made.lock().expect("not poisoned").remove(0);
    assert_eq!(made.id, RepoId::new("argocd", "new"));
    assert!(made.is_registry);
    assert_eq!(made.password.expose(), "hunter2");
    for (bad, begin) in [
        (json!({"name": "No", "url": "https://x"}), "name: "),
        (json!({"name": "a", "url": "ftp://x"}), "url: "),
        (
            json!({"name": "a", "url": "https://x", "type": "git"}),
            "type: ",
        ),
    ] {
        let (status, said) = post(&world, repositories, bad).await;
        assert_eq!(status, 400, "{said}");
        let message = said["message"].as_str().expect("a text");
        assert!(message.starts_with(begin), "{message}");
    }
    assert!(world.catalog.made.lock().expect("not poisoned").is_empty());
    for (name, code) in [("team/r", 200), ("team/other", 403)] {
        let path = format!("{repositories}/{name}");
        let (status, said) = world.rest(Method::DELETE, &path, None).await;
        assert_eq!(status, code, "{said}");
    }
    let deleted = world.catalog.deleted.lock().expect("not poisoned").clone();
    assert_eq!(deleted, [RepoId::new("team", "r")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_previewed_can_be_written() {
    let world = World::start().await;
    let url = world.catalog.fill().await;
    let chart = json!({"namespace": "team", "repository": "r", "path": "web", "version": "1.0.0"});
    let install = "/api/v1/catalog/install";
    let request = json!({"chart": chart, "name": "shop", "values": "colour: blue\n"});
    let (status, preview) = post(&world, install, request).await;
    assert_eq!(status, 200, "{preview}");
    let manifests = preview["manifests"].as_str().expect("a text");
    assert!(manifests.contains("colour: blue") && manifests.contains("name: shop-web"));
    let application = &preview["application"];
    let annotation = &application["metadata"]["annotations"]["catalog.tiphys.dev/repository"];
    assert_eq!(annotation, "team/r");
    assert_eq!(application["spec"]["source"]["repoURL"], url.as_str());
    let (status, why) = post(&world, install, json!({"chart": chart, "values": "["})).await;
    assert_eq!(status, 400, "{why}");
    // The fake of the sources has no charts.
    let path = "/api/v1/applications?validate=false";
    let created = post(&world, path, application.clone()).await;
    assert_eq!(created.0, 200, "{}", created.1);

    let mut updates = Value::Null;
    for _ in 0..1000 {
        updates = get(&world, "/api/v1/catalog/updates").await;
        if updates["items"][0].is_object() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(updates["items"][0]["newest"], "1.1.0", "{updates}");
    let upgrade = "/api/v1/catalog/upgrade";
    let (status, plan) = post(&world, upgrade, json!({"name": "shop"})).await;
    assert_eq!(status, 200, "{plan}");
    let conflict = json!([{
        "path": "colour", "old": "\"red\"", "ours": "\"blue\"", "theirs": "\"green\"",
        "decided": false,
    }]);
    assert_eq!(plan["conflicts"], conflict);
    assert_eq!(
        (&plan["from"], &plan["to"]),
        (&json!("1.0.0"), &json!("1.1.0"))
    );
    let difference = plan["difference"].as_str().expect("a text");
    assert!(difference.contains("+  version: 1.1.0"), "{difference}");
    let manifests = plan["manifests"].as_str().expect("a text");
    assert!(
        manifests.contains("version: 1.1.0") && manifests.contains("name: shop-web"),
        "{manifests}"
    );
    let theirs = json!({"name": "shop", "prefer": "theirs"});
    let (_, plan) = post(&world, upgrade, theirs).await;
    let difference = plan["difference"].as_str().expect("a text");
    assert!(difference.contains("+  colour: green"), "{difference}");
    let path = "/api/v1/applications/shop";
    let update = format!("{path}?validate=false");
    let written = world
        .rest(Method::PUT, &update, Some(plan["application"].clone()))
        .await;
    assert_eq!(written.0, 200, "{}", written.1);
    let now = get(&world, path).await;
    assert_eq!(now["spec"]["source"]["targetRevision"], "1.1.0");
    assert!(
        now["spec"]["source"]["helm"]["valuesObject"].is_null(),
        "{now}"
    );
    for (request, wanted) in [
        (json!({"name": "shop", "prefer": "mine"}), 400),
        (json!({"name": "shop", "version": "7.0.0"}), 404),
        (json!({"name": "none"}), 403),
    ] {
        let (status, body) = post(&world, upgrade, request.clone()).await;
        assert_eq!(status, wanted, "{request}: {body}");
    }
    // An Application that is no chart.
    let git = serde_json::from_value(app("git")).expect("an Application");
    tiphys_server::ports::Store::create_app(&*world.store, &git)
        .await
        .expect("stored");
    let (status, body) = post(&world, upgrade, json!({"name": "git"})).await;
    assert_eq!(status, 400, "{body}");
}

/// What was looked at is written, or nothing: also when the change comes while it is written.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_never_overwrites_others() {
    let world = World::start().await;
    world.catalog.fill().await;
    let chart = json!({"namespace": "team", "repository": "r", "path": "web", "version": "1.0.0"});
    let request = json!({"chart": chart, "name": "shop", "values": "colour: blue\n"});
    let (_, preview) = post(&world, "/api/v1/catalog/install", request).await;
    let created = "/api/v1/applications?validate=false";
    let (status, created) = post(&world, created, preview["application"].clone()).await;
    assert_eq!(status, 200, "{created}");
    let path = "/api/v1/applications/shop";
    let write = async |app: &Value, version: &Value| {
        let version = version.as_str().expect("a version");
        let path = format!("{path}?validate=false&resourceVersion={version}");
        world.rest(Method::PUT, &path, Some(app.clone())).await
    };
    let known = created["metadata"]["resourceVersion"].clone();
    // Someone else is between the look and the write.
    let mut others = created.clone();
    others["metadata"]["labels"] = json!({"team": "x"});
    let (status, others) = write(&others, &known).await;
    assert_eq!(status, 200, "{others}");
    let mut ours = created.clone();
    ours["spec"]["source"]["targetRevision"] = "1.1.0".into();
    let refused = json!("application 'shop' was changed meanwhile");
    let (status, why) = write(&ours, &known).await;
    assert_eq!((status, &why["message"]), (409, &refused));
    // The store says so when memory did not know yet.
    let now = others["metadata"]["resourceVersion"].clone();
    *world.store.conflicts.lock().expect("not poisoned") = 1;
    let (status, why) = write(&ours, &now).await;
    assert_eq!(status, 409, "{why}");
    let message = why["message"].as_str().expect("a text");
    assert!(message.ends_with("was changed meanwhile"), "{message}");
    let app = get(&world, path).await;
    assert_eq!(app["metadata"]["labels"], json!({"team": "x"}));
    assert_eq!(app["spec"]["source"]["targetRevision"], "1.0.0");
    let (status, written) = write(&ours, &now).await;
    assert_eq!(status, 200, "{written}");
    assert_eq!(written["spec"]["source"]["targetRevision"], "1.1.0");
    // Those that ask for no version write over whatever there is, as ever.
    *world.store.conflicts.lock().expect("not poisoned") = 3;
    let unasked = format!("{path}?validate=false");
    let (status, written) = world.rest(Method::PUT, &unasked, Some(others)).await;
    assert_eq!(status, 200, "{written}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_asks_the_project_before_it_fetches() {
    let world = World::start().await;
    world.catalog.fill().await;
    let project = json!({"project": {"metadata": {"name": "narrow"}, "spec": {
        "sourceRepos": ["https://other.example/*"],
        "destinations": [{"server": "*", "namespace": "*"}],
    }}});
    let made = post(&world, "/api/v1/projects", project).await;
    assert_eq!(made.0, 200, "{}", made.1);
    let chart = json!({"namespace": "team", "repository": "r", "path": "web", "version": "1.0.0"});
    world.catalog.asked();
    for (project, why) in [
        ("narrow", "is not permitted in project 'narrow'"),
        ("none", "not allowed in project"),
    ] {
        let request = json!({"chart": chart, "name": "shop", "project": project});
        let (status, body) = post(&world, "/api/v1/catalog/install", request).await;
        assert_eq!(status, 400, "{body}");
        assert!(body.to_string().contains(why), "{body}");
        assert_eq!(
            world.catalog.asked(),
            [""; 0],
            "nothing is fetched for {project}"
        );
    }
}

/// What is in the cluster is compared with, as far as the project permits it.
#[tokio::test(flavor = "multi_thread")]
async fn an_install_says_what_it_would_change() {
    let world = World::start().await;
    world.catalog.fill().await;
    let project = json!({"project": {"metadata": {"name": "narrow"}, "spec": {
        "sourceRepos": ["*"],
        "destinations": [{"server": "*", "namespace": "*"}],
        "namespaceResourceBlacklist": [{"group": "", "kind": "ConfigMap"}],
    }}});
    let made = post(&world, "/api/v1/projects", project).await;
    assert_eq!(made.0, 200, "{}", made.1);
    let chart = json!({"namespace": "team", "repository": "r", "path": "web", "version": "1.0.0"});
    let install = async |project: &str, compare: bool| {
        let request =
            json!({"chart": chart, "name": "shop", "project": project, "compare": compare});
        let (status, preview) = post(&world, "/api/v1/catalog/install", request).await;
        assert_eq!(status, 200, "{preview}");
        let difference = preview["difference"].as_str().unwrap_or_default();
        (
            difference.to_owned(),
            preview["compared"] == true,
            preview["notes"].to_string(),
        )
    };
    assert_eq!(
        install("default", false).await,
        (String::new(), false, "[]".to_owned())
    );
    let (difference, compared, notes) = install("default", true).await;
    let added = "=== ConfigMap shop/shop-web (added)\n";
    assert!(difference.starts_with(added), "{difference}");
    assert!(difference.contains("+  version: 1.0.0"), "{difference}");
    assert!(compared && notes == "[]", "{notes}");

    let there = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "shop-web", "namespace": "shop", "uid": "only-the-server",
            "annotations": {
                "argocd.argoproj.io/tracking-id": "other:/ConfigMap:shop/shop-web",
            },
        },
        "data": {"colour": "red", "version": "0.9.0"},
    });
    {
        let mut objects = world.live.objects.lock().expect("not poisoned");
        objects.insert("shop-web".to_owned(), there);
    }
    let (difference, compared, notes) = install("default", true).await;
    for part in [
        "=== ConfigMap shop/shop-web (changed)\n",
        "-  version: 0.9.0\n",
        "+  version: 1.0.0\n",
    ] {
        assert!(difference.contains(part), "{part}: {difference}");
    }
    assert!(!difference.contains("only-the-server"), "{difference}");
    let taken = "ConfigMap shop/shop-web belongs to Application 'other'";
    assert!(compared && notes.contains(taken), "{notes}");

    // Of an object without a name, and of a kind that is not known, nothing is read.
    {
        let mut objects = world.live.objects.lock().expect("not poisoned");
        let mut secret = objects["shop-web"].clone();
        secret["data"] = json!({"colour": "CANARY"});
        objects.insert(String::new(), secret.clone());
        objects.insert("shop-web".to_owned(), secret);
    }
    let request = json!({
        "chart": chart, "name": "shop", "project": "narrow", "compare": true,
        "values": "unnamed: true\n",
    });
    let (status, preview) = post(&world, "/api/v1/catalog/install", request).await;
    assert_eq!(status, 200, "{preview}");
    let difference = preview["difference"].as_str().expect("a text");
    assert!(difference.contains("generateName: test-"), "{difference}");
    assert!(!difference.contains("CANARY"), "{difference}");
    let notes = preview["notes"].to_string();
    for note in [
        "Pod shop/: only the cluster gives it a name",
        "shop-web: the cluster does not have the kind yet",
    ] {
        assert!(notes.contains(note), "{note}: {notes}");
    }

    let (difference, _, notes) = install("narrow", true).await;
    assert_eq!(difference, "");
    let refused = "ConfigMap shop/shop-web is not permitted in project 'narrow'";
    assert!(notes.contains(refused), "{notes}");
    assert!(!notes.contains("other"), "nothing was read: {notes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_back_is_previewed() {
    let world = World::start().await;
    world.catalog.fill().await;
    let chart = json!({"namespace": "team", "repository": "r", "path": "web", "version": "1.1.0"});
    let request = json!({"chart": chart, "name": "shop", "values": "colour: blue\n"});
    let (status, preview) = post(&world, "/api/v1/catalog/install", request).await;
    assert_eq!(status, 200, "{preview}");
    let path = "/api/v1/applications?validate=false";
    let (status, created) = post(&world, path, preview["application"].clone()).await;
    assert_eq!(status, 200, "{created}");
    let rollback = "/api/v1/catalog/rollback";
    let (status, never) = post(&world, rollback, json!({"name": "shop"})).await;
    assert_eq!(status, 400, "{never}");
    assert!(never.to_string().contains("never had another version"));

    let mut before = created["spec"]["source"].clone();
    before["targetRevision"] = "1.x".into();
    let history = json!({"status": {"history": [{"revision": "1.0.0", "source": before}]}});
    world.store.control("shop", &history);
    let (status, plan) = post(&world, rollback, json!({"name": "shop"})).await;
    assert_eq!(status, 200, "{plan}");
    assert_eq!(
        (&plan["from"], &plan["to"]),
        (&json!("1.1.0"), &json!("1.0.0"))
    );
    let difference = plan["difference"].as_str().expect("a text");
    assert!(plan["compared"] == true, "{plan}");
    assert!(difference.contains("+  version: 1.0.0"), "{difference}");
    assert!(!difference.contains("colour: red"), "{difference}");
    let application = &plan["application"];
    assert_eq!(application["spec"]["source"]["targetRevision"], "1.0.0");
    let annotations = &application["metadata"]["annotations"];
    for (key, wanted) in [("version", "1.0.0"), ("repository", "team/r")] {
        let key = format!("catalog.tiphys.dev/{key}");
        assert_eq!(annotations[&key], wanted, "{annotations}");
    }
    for (request, wanted) in [
        (json!({"name": "shop", "version": "7.0.0"}), 400),
        (json!({"name": "none"}), 403),
    ] {
        let (status, body) = post(&world, rollback, request.clone()).await;
        assert_eq!(status, wanted, "{request}: {body}");
    }
}

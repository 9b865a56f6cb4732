//! What kubeapps' dashboard and its scripts read, over REST and gRPC.

use crate::common::{World, app};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tiphys_server::ports::Store as _;

const CORE: &str = "/core/packages/v1alpha1";
const HELM: &str = "/plugins/helm/packages/v1alpha1";

async fn get(world: &World, path: &str) -> Value {
    let (status, body) = world.rest(Method::GET, path, None).await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

fn reference(identifier: &str) -> Value {
    json!({
        "context": {"cluster": "default", "namespace": "team"},
        "identifier": identifier,
        "plugin": {"name": "helm.packages", "version": "v1alpha1"},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_are_listed_and_shown() {
    let world = World::start().await;
    let url = world.catalog.fill().await;
    let plugins = get(&world, "/core/plugins/v1alpha1/configured-plugins").await;
    assert_eq!(plugins["plugins"], json!([reference("")["plugin"]]));
    for base in [CORE, HELM] {
        for (query, count) in [
            ("", 1),
            ("?context.cluster=default&context.namespace=team", 1),
            ("?context.namespace=elsewhere", 0),
            ("?filterOptions.query=WEB&paginationOptions.pageSize=10", 1),
            ("?filter_options.query=none", 0),
            (
                "?filterOptions.repositories=r&filterOptions.repositories=x",
                1,
            ),
            ("?filterOptions.repositories=x", 0),
        ] {
            let found = get(&world, &format!("{base}/availablepackages{query}")).await;
            let packages = found["availablePackageSummaries"].as_array();
            assert_eq!(packages.map_or(0, Vec::len), count, "{query}: {found}");
        }
        let all = get(&world, &format!("{base}/availablepackages")).await;
        let package = &all["availablePackageSummaries"][0];
        assert_eq!(package["availablePackageRef"], reference("r/web"));
        assert_eq!(package["latestVersion"]["pkgVersion"], "1.1.0");
    }
    let core = format!("{CORE}/availablepackages/plugin/helm.packages/v1alpha1/c/default/ns/team");
    let helm = format!("{HELM}/availablepackages/c/default/ns/team");
    for base in [core, helm] {
        for identifier in ["r/web", "r%2Fweb"] {
            let path = format!("{base}/{identifier}");
            let newest = &get(&world, &path).await["availablePackageDetail"];
            assert_eq!(newest["availablePackageRef"], reference("r/web"), "{path}");
            assert_eq!(newest["readme"], "# web 1.1.0\n");
            assert_eq!(newest["defaultValues"], "colour: green\n");
            assert_eq!(newest["repoUrl"], url.as_str());
            let old = &get(&world, &format!("{path}?pkgVersion=1.0.0")).await;
            let old = &old["availablePackageDetail"];
            assert_eq!(old["version"]["pkgVersion"], "1.0.0");
            assert_eq!(old["readme"], "# web 1.0.0\n");
            let versions = &get(&world, &format!("{path}/versions")).await;
            let versions = versions["packageAppVersions"].as_array().cloned();
            let versions = versions.unwrap_or_default();
            let versions: Vec<&Value> = versions.iter().map(|v| &v["pkgVersion"]).collect();
            assert_eq!(versions, ["1.1.0", "1.0.0"]);
        }
        // A chart of that name, not the versions of a chart without one.
        for (rest, wanted) in [
            ("r%2Fversions", 404),
            ("r/none", 404),
            ("r/web?pkgVersion=9.0.0", 404),
            ("web", 400),
            ("other/web", 403),
        ] {
            let path = format!("{base}/{rest}");
            let (status, body) = world.rest(Method::GET, &path, None).await;
            assert_eq!(status, wanted, "{path}: {body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_say_how_they_are() {
    let world = World::start().await;
    let url = world.catalog.fill().await;
    let ready = json!({"ready": true, "reason": "STATUS_REASON_SUCCESS", "userReason": ""});
    let core = format!("{CORE}/repositories/plugin/helm.packages/v1alpha1/c/default/ns/team/r");
    let helm = format!("{HELM}/repositories/c/default/ns/team/r");
    for (base, one) in [(CORE, core), (HELM, helm)] {
        let all = get(&world, &format!("{base}/repositories")).await;
        let all = &all["packageRepositorySummaries"];
        let one = get(&world, &one).await;
        for found in [&all[0], &one["detail"]] {
            assert_eq!(found["packageRepoRef"], reference("r"));
            assert_eq!(
                (&found["name"], &found["type"]),
                (&json!("r"), &json!("helm"))
            );
            assert_eq!(found["url"], url.as_str());
            assert_eq!(found["namespaceScoped"], true);
            let mut status = found["status"].clone();
            status["userReason"] = json!(status["userReason"].as_str().unwrap_or_default());
            assert_eq!(status, ready);
        }
        let path = format!("{base}/repositories?context.namespace=other");
        let none = get(&world, &path).await;
        assert!(none["packageRepositorySummaries"][0].is_null(), "{none}");
    }
    let path = format!("{HELM}/repositories/c/default/ns/team/none");
    let (status, _) = world.rest(Method::GET, &path, None).await;
    assert_eq!(status, 403, "as what one may not see");
}

/// Stores an Application that is healthy or not.
async fn store(world: &World, name: &str, source: Value, (namespace, health): (&str, &str)) {
    let mut app = app(name);
    app["spec"]["source"] = source;
    app["spec"]["destination"]["namespace"] = namespace.into();
    app["spec"]["source"]["helm"] = json!({"parameters": [
        {"name": "replicas", "value": "3", "forceString": true},
    ]});
    app["status"] = json!({
        "sync": {"status": "Synced"}, "health": {"status": health},
        "resources": [
            {"group": "apps", "version": "v1", "kind": "Deployment", "name": "web", "namespace": "a"},
            {"version": "v1", "kind": "Service", "name": "web", "namespace": "a"},
        ],
    });
    let app = serde_json::from_value(app).expect("an Application");
    world.store.create_app(&app).await.expect("stored");
}

/// The names of the packages that a list has.
fn names(list: &Value) -> Vec<&str> {
    let packages = list["installedPackageSummaries"].as_array();
    let packages = packages.into_iter().flatten();
    packages
        .map(|package| package["name"].as_str().unwrap_or_default())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn applications_of_charts_are_installed_packages() {
    let world = World::start().await;
    let url = world.catalog.fill().await;
    let chart = |name: &str, version: &str| json!({"repoURL": url, "chart": name, "targetRevision": version});
    store(&world, "one", chart("web", "1.0.0"), ("a", "Healthy")).await;
    store(&world, "two", chart("web", "1.1.0"), ("b", "Degraded")).await;
    store(&world, "other", chart("absent", "2.0.0"), ("b", "Missing")).await;
    let git = json!({"repoURL": "https://example.org/r.git", "path": "p"});
    store(&world, "git", git, ("a", "Healthy")).await;
    let path = format!("{CORE}/installedpackages");
    let mut all = Value::Null;
    for _ in 0..1000 {
        all = get(&world, &path).await;
        if names(&all).len() == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(names(&all), ["one", "other", "two"]);
    let [one, other, two] = [0_usize, 1, 2].map(|at| &all["installedPackageSummaries"][at]);
    let mut place = reference("one");
    place["context"]["namespace"] = "a".into();
    assert_eq!(one["installedPackageRef"], place);
    assert_eq!(one["currentVersion"]["pkgVersion"], "1.0.0");
    for (package, latest, ready, reason) in [
        (one, json!("1.1.0"), true, "INSTALLED"),
        (two, json!("1.1.0"), false, "FAILED"),
        (other, Value::Null, false, "PENDING"),
    ] {
        assert_eq!(package["latestVersion"]["pkgVersion"], latest, "{package}");
        let status = &package["status"];
        assert_eq!(status["ready"], ready, "{package}");
        assert_eq!(status["reason"], format!("STATUS_REASON_{reason}"));
    }
    for base in [CORE, HELM] {
        for (query, wanted) in [
            ("context.namespace=b", "other two"),
            ("context.cluster=default&context.namespace=a", "one"),
            ("context.cluster=elsewhere", ""),
            ("paginationOptions.pageSize=2", "one other"),
            ("paginationOptions.pageToken=argocd%2Fother", "two"),
        ] {
            let list = get(&world, &format!("{base}/installedpackages?{query}")).await;
            assert_eq!(names(&list).join(" "), wanted, "{query}");
            let next = list["nextPageToken"].as_str().unwrap_or_default();
            let more = query.contains("pageSize");
            assert_eq!(next, if more { "argocd/other" } else { "" }, "{query}");
        }
    }
    let core = format!("{CORE}/installedpackages/plugin/helm.packages/v1alpha1/c/default/ns");
    let helm = format!("{HELM}/installedpackages/c/default/ns");
    for base in [core, helm] {
        let detail = &get(&world, &format!("{base}/a/one")).await["installedPackageDetail"];
        for field in [
            "installedPackageRef",
            "currentVersion",
            "latestVersion",
            "status",
            "name",
        ] {
            assert_eq!(detail[field], one[field], "{field}");
        }
        assert_eq!(detail["availablePackageRef"], reference("r/web"));
        assert_eq!(detail["valuesApplied"], r#"{"replicas":"3"}"#);
        // One whose chart is in no repository.
        let absent = &get(&world, &format!("{base}/b/other")).await["installedPackageDetail"];
        assert_eq!(absent["currentVersion"]["pkgVersion"], "2.0.0", "{absent}");
        assert_eq!(absent["availablePackageRef"], Value::Null);
        let found = get(&world, &format!("{base}/a/one/resourcerefs")).await;
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "a",
        });
        assert_eq!(found["resourceRefs"][0], deployment, "{found}");
        assert_eq!(found["resourceRefs"][1]["apiVersion"], "v1", "{found}");
        assert_eq!(found["context"], place["context"]);
        // Of another place, not of a chart, and not there.
        for other in ["b/one", "a/git", "a/none"] {
            for rest in ["", "/resourcerefs"] {
                let path = format!("{base}/{other}{rest}");
                let (status, body) = world.rest(Method::GET, &path, None).await;
                assert_eq!(status, 403, "{path}: {body}");
            }
        }
    }
    let wrong = format!("{path}?paginationOptions.pageToken=x");
    let (status, body) = world.rest(Method::GET, &wrong, None).await;
    assert_eq!(status, 400, "{body}");
}

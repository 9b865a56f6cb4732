//! Sets whose generators ask hosts of Git and plugins: with which credentials, and that only a
//! complete answer creates or deletes anything.

#[allow(dead_code)]
#[path = "../../sources/tests/hosts/server.rs"]
pub mod server;

use super::applicationsets::{APPS, PATIENCE, Plane, SECRETS, SETS, template};
use serde_json::{Value, json};
use server::{Reply, Server};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tiphys_cluster::request::Call;
use tiphys_controllers::applicationset::ControllerSettings;
use tiphys_sources::HostSettings;
use tokio::time::{Instant, sleep};

const CONFIG_MAPS: &str = "/api/v1/namespaces/argocd/configmaps";

fn hosts(settings: HostSettings) -> ControllerSettings {
    ControllerSettings {
        hosts: settings,
        ..ControllerSettings::default()
    }
}

fn secret(name: &str, labels: Value, data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels},
        "stringData": data,
    })
}

/// The open pull requests of a GitHub repository, or what is answered in their place.
fn pulls(numbers: &[u64]) -> Reply {
    let pull = |number: &u64| {
        json!({
            "number": number, "title": "t", "user": {"login": "ann"},
            "head": {"ref": format!("topic/{number}"), "sha": "0123456789abcdef"},
            "base": {"ref": "main", "sha": "def"}, "labels": [{"name": "preview"}],
        })
    };
    Reply::new(200, Value::from_iter(numbers.iter().map(pull)))
}

fn of_pulls(api: &str) -> Value {
    json!({
        "goTemplate": true,
        "generators": [{"pullRequest": {
            "requeueAfterSeconds": 1,
            "github": {
                "owner": "acme", "repo": "shop", "api": api, "labels": ["preview"],
                "tokenRef": {"secretName": "host", "key": "token"},
            },
        }}],
        "syncPolicy": {"preserveResourcesOnDeletion": true},
        "template": template("pr-{{.number}}-{{.branch_slug}}", "https://example.com/r", "x"),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_complete_answer_of_a_host_deletes() {
    let plane = Plane::start(ControllerSettings::default()).await;
    let reply = Arc::new(Mutex::new(pulls(&[1, 2])));
    let now = Arc::clone(&reply);
    let host = Server::start(move |_, _| now.lock().expect("no panic").clone()).await;
    let say = |next: Reply| *reply.lock().expect("no panic") = next;
    plane.set("previews", of_pulls(&host.url)).await;
    let message = plane.condition("previews", "ErrorOccurred", "True").await;
    assert!(
        message.contains("error fetching secret argocd/host"),
        "{message}"
    );
    assert!(host.asked().is_empty(), "nobody is asked without the token");

    // The Secret needs no label; the set looks again when it is told to, or by time.
    plane
        .create(
            SECRETS,
            &secret("host", json!({}), json!({"token": "t0ken\n"})),
        )
        .await;
    refresh(&plane, "previews").await;
    plane.has(&["pr-1-topic-1", "pr-2-topic-2"]).await;
    let asked = host.asked();
    assert_eq!(asked[0].path, "/api/v3/repos/acme/shop/pulls");
    assert_eq!(asked[0].header("authorization"), "Bearer t0ken");

    for wrong in [
        Reply::new(200, "<html></html>").header("content-type", "text/html"),
        Reply::new(500, "{}"),
        Reply::new(404, json!({"message": "Not Found"})),
        Reply::new(200, "{}"),
        Reply {
            cut: Some(0),
            ..Reply::new(200, "[")
        },
    ] {
        say(wrong);
        let before = host.asked().len();
        refresh(&plane, "previews").await;
        plane.condition("previews", "ErrorOccurred", "True").await;
        waits(|| host.asked().len() > before).await;
        assert_eq!(plane.names().await, ["pr-1-topic-1", "pr-2-topic-2"]);
        say(pulls(&[1, 2]));
        refresh(&plane, "previews").await;
        plane.condition("previews", "ErrorOccurred", "False").await;
    }

    // One is closed, and then all; the set looks again by itself.
    say(pulls(&[2]));
    plane.has(&["pr-2-topic-2"]).await;
    say(pulls(&[]));
    plane.has(&[]).await;
    let set = plane
        .send(Call::get(format!("{SETS}/previews")))
        .await
        .expect("the set");
    assert!(!set.to_string().contains("t0ken"), "{set}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_deleted_if_the_host_fails_the_second_time() {
    let plane = Plane::start(ControllerSettings::default()).await;
    let answers = Arc::new(Mutex::new(Answers::once(pulls(&[1, 2]))));
    let now = Arc::clone(&answers);
    let host = Server::start(move |_, _| now.lock().expect("no panic").next()).await;
    let say = |first, second| answers.lock().expect("no panic").say(first, second);
    plane
        .create(SECRETS, &secret("host", json!({}), json!({"token": "t"})))
        .await;
    let mut set = of_pulls(&host.url);
    // Only a refresh asks.
    set["generators"][0]["pullRequest"]["requeueAfterSeconds"] = json!(1800);
    plane.set("previews", set).await;
    let both = ["pr-1-topic-1", "pr-2-topic-2"];
    plane.has(&both).await;

    say(pulls(&[2]), Some(Reply::new(500, "{}")));
    refresh(&plane, "previews").await;
    let message = plane.condition("previews", "ErrorOccurred", "True").await;
    assert!(
        message.starts_with("nothing is deleted before its generators answered twice")
            && message.contains("500"),
        "{message}"
    );
    assert_eq!(plane.names().await, both);

    // Lists that differ are no failure.
    say(pulls(&[2]), Some(pulls(&[1, 2])));
    refresh(&plane, "previews").await;
    plane.condition("previews", "ErrorOccurred", "False").await;
    assert_eq!(plane.names().await, both);

    say(pulls(&[2]), None);
    refresh(&plane, "previews").await;
    plane.has(&both[1..]).await;
}

/// What a host says to one look at it: a set that would delete asks twice. A set may look more
/// often than it is told to (after an error, for one), so each look gets the same two answers,
/// and what is said next begins with the next look.
struct Answers {
    first: Reply,
    /// None: one answer is a whole look.
    second: Option<Reply>,
    coming: Option<(Reply, Option<Reply>)>,
    is_second: bool,
}

impl Answers {
    fn once(reply: Reply) -> Answers {
        Answers {
            first: reply,
            second: None,
            coming: None,
            is_second: false,
        }
    }

    fn say(&mut self, first: Reply, second: Option<Reply>) {
        self.coming = Some((first, second));
    }

    fn next(&mut self) -> Reply {
        if let (true, Some(second)) = (self.is_second, &self.second) {
            self.is_second = false;
            return second.clone();
        }
        if let Some((first, second)) = self.coming.take() {
            (self.first, self.second) = (first, second);
        }
        self.is_second = self.second.is_some();
        self.first.clone()
    }
}

/// What was generated before says nothing about now, whatever has led to a reconcile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_of_an_application_leads_to_what_the_host_answers_then() {
    let plane = Plane::start(ControllerSettings::default()).await;
    let reply = Arc::new(Mutex::new(pulls(&[1])));
    let now = Arc::clone(&reply);
    let host = Server::start(move |_, _| now.lock().expect("no panic").clone()).await;
    plane
        .create(SECRETS, &secret("host", json!({}), json!({"token": "t"})))
        .await;
    let mut set = of_pulls(&host.url);
    set["generators"][0]["pullRequest"]["requeueAfterSeconds"] = json!(1800);
    plane.set("previews", set).await;
    plane.has(&["pr-1-topic-1"]).await;
    plane
        .condition("previews", "ResourcesUpToDate", "True")
        .await;
    *reply.lock().expect("no panic") = pulls(&[1, 2]);
    let patch = json!({"status": {"health": {"status": "Degraded"}}});
    plane.patch(&format!("{APPS}/pr-1-topic-1"), patch).await;
    plane.has(&["pr-1-topic-1", "pr-2-topic-2"]).await;
}

/// Asks for a refresh, after an earlier one was answered: the two would be one.
async fn refresh(plane: &Plane, set: &str) {
    const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";
    let path = format!("{SETS}/{set}");
    let began = Instant::now();
    loop {
        let found = plane.send(Call::get(&path)).await.expect("the set");
        if found["metadata"]["annotations"][REFRESH].is_null() {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "the refresh is not answered");
        sleep(Duration::from_millis(20)).await;
    }
    let patch = json!({"metadata": {"annotations": {REFRESH: "true"}}});
    plane.patch(&path, patch).await;
}

async fn waits(until: impl Fn() -> bool) {
    let began = Instant::now();
    while !until() {
        assert!(began.elapsed() < PATIENCE, "it does not come");
        sleep(Duration::from_millis(20)).await;
    }
}

fn of_group(api: &str) -> Value {
    json!({
        "goTemplate": true,
        "generators": [{"scmProvider": {
            "gitlab": {
                "group": "acme", "api": api, "allBranches": true,
                "tokenRef": {"secretName": "host", "key": "token"},
            },
            "filters": [{"repositoryMatch": "^web", "pathsExist": ["deploy"]}],
        }}],
        "template": template(
            "{{.repository}}-{{.branch}}", "{{.url}}", "deploy",
        ),
    })
}

fn group(_: &str, asked: &server::Asked) -> Reply {
    let project = |id: u64, path: &str| {
        json!({
            "id": id, "path": path, "namespace": {"full_path": "acme"}, "default_branch": "main",
            "ssh_url_to_repo": format!("git@h:acme/{path}.git"),
        })
    };
    let branch = |name: &str| json!({"name": name, "commit": {"id": "0123456789abcdef"}});
    match asked.path.as_str() {
        "/api/v4/groups/acme/projects" => Reply::new(
            200,
            json!([project(1, "web"), project(2, "db"), project(3, "webhook")]),
        ),
        "/api/v4/projects/1/repository/branches" => {
            Reply::new(200, json!([branch("main"), branch("next")]))
        }
        "/api/v4/projects/2/repository/branches" | "/api/v4/projects/3/repository/branches" => {
            Reply::new(200, json!([branch("main")]))
        }
        "/api/v4/projects/1/repository/tree" => Reply::new(200, json!([{"name": "a.yaml"}])),
        _ => Reply::new(404, json!({"message": "404 Tree Not Found"})),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repositories_of_a_group_by_name_and_path() {
    let strict = HostSettings {
        is_strict: Some(true),
        ..HostSettings::default()
    };
    let plane = Plane::start(hosts(strict)).await;
    let host = Server::start(group).await;
    plane
        .create(
            SECRETS,
            &secret("host", json!({}), json!({"token": "t0ken"})),
        )
        .await;
    plane.set("group", of_group(&host.url)).await;
    let message = plane.condition("group", "ErrorOccurred", "True").await;
    assert!(
        message.contains(
            "secret argocd/host is not a valid SCM creds secret: secret must have label \
             \"argocd.argoproj.io/secret-type\"=\"scm-creds\""
        ),
        "{message}"
    );
    assert!(host.asked().is_empty());
    let label = json!({"metadata": {"labels": {"argocd.argoproj.io/secret-type": "scm-creds"}}});
    plane.patch(&format!("{SECRETS}/host"), label).await;
    refresh(&plane, "group").await;
    plane.has(&["web-main", "web-next"]).await;
    plane
        .field("web-next", "/spec/source/repoURL", "git@h:acme/web.git")
        .await;
    for asked in host.asked() {
        assert_eq!(asked.header("private-token"), "t0ken", "{}", asked.path);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_that_are_not_permitted_are_not_asked() {
    let host = Server::start(group).await;
    let others = Some(vec!["https://git.example.com/".to_owned()]);
    for (settings, expected) in [
        (
            HostSettings {
                is_enabled: Some(false),
                ..HostSettings::default()
            },
            "scm providers are disabled",
        ),
        (
            HostSettings {
                allowed: others,
                ..HostSettings::default()
            },
            "must use one of the following: https://git.example.com/",
        ),
    ] {
        let plane = Plane::start(hosts(settings)).await;
        plane
            .create(SECRETS, &secret("host", json!({}), json!({"token": "t"})))
            .await;
        plane.set("group", of_group(&host.url)).await;
        plane.set("previews", of_pulls(&host.url)).await;
        for set in ["group", "previews"] {
            let message = plane.condition(set, "ErrorOccurred", "True").await;
            assert!(message.contains(expected), "{message}");
        }
    }
    assert!(host.asked().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_of_another_namespace_does_not_ask_as_the_controller() {
    let listed = HostSettings {
        allowed: Some(vec!["https://git.example.com/".to_owned()]),
        ..HostSettings::default()
    };
    let plane = Plane::start_in(hosts(listed), &["team"]).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    plane.create("/api/v1/namespaces", &namespace).await;
    let sets = SETS.replace("/argocd/", "/team/");
    let set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "aws"},
        "spec": {
            "generators": [{"scmProvider": {"awsCodeCommit": {"region": "eu-west-1"}}}],
            "template": template("{{repository}}", "{{url}}", "x"),
        },
    });
    plane.create(&sets, &set).await;
    let began = Instant::now();
    loop {
        let set = plane.get(&format!("{sets}/aws")).await;
        if set["status"].to_string().contains(
            "AWS CodeCommit is asked as who the controller is at AWS, which is for sets of the \
             control plane's namespace only",
        ) {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{}", set["status"]);
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_gets_what_the_set_says() {
    let plane = Plane::start(ControllerSettings::default()).await;
    let host = Server::start(|_, asked| match asked.header("authorization") {
        "Bearer pl4gin" => Reply::new(200, json!({"output": {"parameters": [{"name": "a"}]}})),
        _ => Reply::new(401, "{}"),
    })
    .await;
    let data =
        json!({"baseUrl": format!("{}/", host.url), "token": "$plugin:key", "requestTimeout": "5"});
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plugin"}, "data": data,
    });
    plane.create(CONFIG_MAPS, &map).await;
    plane
        .create(
            SECRETS,
            &secret("plugin", json!({}), json!({"key": "pl4gin"})),
        )
        .await;
    let spec = json!({
        "generators": [{"plugin": {
            "configMapRef": {"name": "plugin"},
            "input": {"parameters": {"k": "v"}},
            "values": {"x": "y"},
        }}],
        "template": template("{{name}}-{{values.x}}", "https://example.com/r", "x"),
    });
    plane.set("plugged", spec).await;
    plane.has(&["a-y"]).await;
    let asked = host.asked();
    assert_eq!(asked[0].path, "/api/v1/getparams.execute");
    let body: Value = serde_json::from_str(&asked[0].body).expect("JSON");
    let input = json!({"parameters": {"k": "v"}});
    assert_eq!(
        body,
        json!({"applicationSetName": "plugged", "input": input})
    );

    // A key that is not there is said, and nothing is deleted.
    let other = json!({"stringData": {"other": "x"}, "data": {"key": null}});
    plane.patch(&format!("{SECRETS}/plugin"), other).await;
    refresh(&plane, "plugged").await;
    let message = plane.condition("plugged", "ErrorOccurred", "True").await;
    assert!(
        message.contains("key \"key\" in secret plugin not found"),
        "{message}"
    );
    assert_eq!(plane.names().await, ["a-y"]);
}

/// Report 22: each answer of a host is an error with another text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_whose_text_changes_asks_no_sooner() {
    let plane = Plane::start(ControllerSettings::default()).await;
    // How often the host has refused; `None`: it answers.
    let refused = Arc::new(Mutex::new(None::<u64>));
    let state = Arc::clone(&refused);
    let host = Server::start(move |_, _| {
        let mut state = state.lock().expect("no panic");
        let Some(count) = state.as_mut() else {
            return pulls(&[1]);
        };
        *count += 1;
        let said = format!("API rate limit exceeded. Request ID ID-{count}.");
        // Without the headers of a rate limit: with them nobody is asked for a time anyway.
        Reply::new(403, json!({"message": said}))
            .header("X-GitHub-Request-Id", format!("ID-{count}"))
    })
    .await;
    let say = |next: Option<u64>| *refused.lock().expect("no panic") = next;
    plane
        .create(
            SECRETS,
            &secret("host", json!({}), json!({"token": "t0ken"})),
        )
        .await;
    let mut set = of_pulls(&host.url);
    set["generators"][0]["pullRequest"]["requeueAfterSeconds"] = json!(3600);
    plane.set("previews", set).await;
    plane.has(&["pr-1-topic-1"]).await;
    // What the creation of the Application leads to comes before.
    let mut asked = 0;
    while host.asked().len() > asked {
        asked = host.asked().len();
        sleep(Duration::from_secs(1)).await;
    }

    say(Some(0));
    for round in 1..=2 {
        refresh(&plane, "previews").await;
        let newest = format!("Request ID ID-{round}.");
        let began = Instant::now();
        loop {
            let message = plane.condition("previews", "ErrorOccurred", "True").await;
            if message.contains(&newest) {
                break;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{newest} is not told: {message}"
            );
            sleep(Duration::from_millis(20)).await;
        }
        // Neither the status that was written nor a pause after a failure wakes the set: the first
        // such pause is half a second.
        let asked = host.asked().len();
        sleep(Duration::from_millis(1500)).await;
        assert_eq!(host.asked().len(), asked);
        let message = plane.condition("previews", "ErrorOccurred", "True").await;
        assert!(message.contains(&newest), "{message}");
        assert_eq!(plane.names().await, ["pr-1-topic-1"]);
    }

    say(None);
    refresh(&plane, "previews").await;
    plane.condition("previews", "ErrorOccurred", "False").await;
    assert_eq!(plane.names().await, ["pr-1-topic-1"]);
}

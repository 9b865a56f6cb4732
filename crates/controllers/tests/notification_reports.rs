//! What people reported about notifications (`../shared/cases/reports/sets`), played as a whole on
//! an API server, with the right answers.

#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

use crate::notifications::{APPS, CONFIG, Ground, Hook, NOTIFIED, PATIENCE, QUIET};
use http::Method;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tiphys_cluster::request::JSON;
use tiphys_gocompat::yaml;
use tokio::time::{Instant, sleep};

/// `None`: the cases are not here, and the test is skipped.
fn case(name: &str) -> Option<PathBuf> {
    tiphys_testkit::shared(&format!("cases/reports/sets/{name}"))
}

/// A document of a case, with addresses of ours in place of its own.
fn read(case: &Path, file: &str, url: &str) -> Value {
    let text = fs::read_to_string(case.join(file)).expect(file);
    let text = text.replace("https://sink.example.test", url);
    let text = text.replace("https://ci.example.test", url);
    yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::LastWins).expect(file)
}

/// An Application that was synced to a revision and is Healthy.
async fn deployed(ground: &Ground, subscriptions: Value, revision: &str) {
    let app = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "annotations": subscriptions},
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://git.example.test/a/b", "path": "."},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        },
        "status": state(revision),
    });
    ground.send(Method::POST, APPS, JSON, &app).await;
}

fn state(revision: &str) -> Value {
    json!({
        "health": {"status": "Healthy"},
        "sync": {"status": "Synced", "revision": revision},
        // A state from before the operation ended tells nothing.
        "reconciledAt": "2026-01-01T00:00:02Z",
        "operationState": {
            "phase": "Succeeded", "operation": {}, "startedAt": "2026-01-01T00:00:00Z",
            "finishedAt": "2026-01-01T00:00:01Z",
            "syncResult": {"revision": revision, "source": {"repoURL": "https://git.example.test/a/b"}},
        },
    })
}

/// The keys of what was told.
async fn keys(ground: &Ground) -> Vec<String> {
    let told = ground.notified("web").await;
    let told: Value = serde_json::from_str(told.as_str().unwrap_or("{}")).expect(NOTIFIED);
    told.as_object().expect("a map").keys().cloned().collect()
}

/// Report 33: two states between which nothing was seen are one state, but for `oncePer`.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_was_not_seen_to_end_goes_on() {
    let Some(case) = case("33-missed-running") else {
        return;
    };
    let (ground, hook) = (Ground::new().await, Hook::default());
    let url = hook.clone().start().await;
    let config = read(&case, "configmap.yaml", &url);
    ground.send(Method::POST, CONFIG, JSON, &config).await;
    let expected = read(&case, "expected.yaml", &url);
    let run = ground.start().await;
    let subscriptions = json!({
        "notifications.argoproj.io/subscribe.plain.sink": "",
        "notifications.argoproj.io/subscribe.per-rev.sink": "",
    });
    deployed(&ground, subscriptions, "r1").await;
    let count = |state: &str| {
        let count = expected[state]["requests"].as_u64().expect(state);
        usize::try_from(count).expect("few")
    };
    let first = r#"{"app":"web","rev":"r1"}"#;
    let mut wanted = vec![first; count("state_r1")];
    hook.wait_for(&wanted).await;
    ground.patch("web", json!({"status": state("r2")})).await;
    let second = expected["state_r2"]["body"].as_str().expect("a body");
    wanted.extend(vec![second; count("state_r2")]);
    hook.wait_for(&wanted).await;
    sleep(QUIET).await;
    assert_eq!(hook.got(), wanted);
    let after = expected["keys_after"].as_array().expect("keys");
    let after: Vec<&str> = after.iter().filter_map(Value::as_str).collect();
    let began = Instant::now();
    while keys(&ground).await != after {
        assert!(began.elapsed() < PATIENCE, "{:?}", keys(&ground).await);
        sleep(Duration::from_millis(20)).await;
    }
    run.end().await;
    ground.shutdown().await;
}

/// Report 37: `$name` alone stands for a secret, in texts, after the YAML was read. Of what does not
/// load, the rest still tells (docs/guide/notifications.md): the reference is silent altogether.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_with_a_dollar_stands_for_a_secret() {
    let Some(case) = case("37-webhook-secret-syntax") else {
        return;
    };
    let (ground, hook) = (Ground::new().await, Hook::default());
    let url = hook.clone().start().await;
    let secret = read(&case, "secret.yaml", &url);
    let secrets = "/api/v1/namespaces/argocd/secrets";
    ground.send(Method::POST, secrets, JSON, &secret).await;
    let mut broken = read(&case, "broken.yaml", &url);
    let well = Hook::default();
    let service = format!("url: {}", well.clone().start().await);
    broken["data"]["service.webhook.well"] = service.into();
    broken["data"]["template.t"] =
        "message: ok\nwebhook: {well: {method: POST, body: fine}}".into();
    ground.send(Method::POST, CONFIG, JSON, &broken).await;
    let run = ground.start().await;
    let subscriptions = json!({
        "notifications.argoproj.io/subscribe.on-deployed.ci": "",
        "notifications.argoproj.io/subscribe.on-deployed.well": "",
    });
    deployed(&ground, subscriptions, "r1").await;
    well.wait_for(&["fine"]).await;
    assert_eq!(hook.got(), [""; 0], "it does not load");
    let told = keys(&ground).await;
    assert!(told.iter().all(|key| key.ends_with(":well:")), "{told:?}");

    // No restart is needed.
    let good = read(&case, "good.yaml", &url);
    let path = format!("{CONFIG}/argocd-notifications-cm");
    ground.send(Method::PUT, &path, JSON, &good).await;
    hook.wait_for(&["ok"]).await;
    let head = hook.heads().remove(0);
    let header = |name: &str| {
        let of = |line: &str| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then(|| value.to_owned())
        };
        head.lines().find_map(of).unwrap_or_default()
    };
    for (name, value) in [
        ("Authorization", "token s3cr3t/x"),
        ("X-Unknown", "Bearer $no-such-key"),
        ("X-Literal", "{{ .secrets.ci-token }}"),
        ("X-Two", "s3cr3t:s3cr3t"),
        ("X-Tricky", r#"a"b: c"#),
    ] {
        assert_eq!(header(name), value, "{head}");
    }
    run.end().await;
    ground.shutdown().await;
}

//! Charts of a repository that wants a password.

use crate::scenarios::world::{World, text};
use serde_json::{Value, json};
use tiphys_testkit::{
    PATIENCE, Repo,
    charts::{Answer, FileServer, index, plain_chart},
    eventually, namespaced,
};

fn own(body: impl Into<Answer>) -> Answer {
    Answer {
        only_for: Some(("ann", "hunter2")),
        ..body.into()
    }
}

/// Publishes these versions of the chart `web`; each has its own colour.
fn publish(server: &FileServer, versions: &[(&str, &str)]) {
    let entries: Vec<_> = versions
        .iter()
        .map(|(version, colour)| {
            let values = format!("colour: {colour}\n");
            let archive = plain_chart("web", version, &[("values.yaml", &values)]);
            let file = format!("web-{version}.tgz");
            server.serve(&format!("/charts/{file}"), own(archive));
            (*version, file)
        })
        .collect();
    let entries: Vec<_> = entries
        .iter()
        .map(|(version, file)| ("web", *version, file.as_str(), ""))
        .collect();
    server.serve("/charts/index.yaml", own(index(&entries).as_str()));
}

pub fn a_chart_of_a_private_repository_follows_its_versions(world: &mut World) {
    let server = FileServer::start();
    publish(&server, &[("1.0.0", "red")]);
    let url = format!("{}/charts", server.url());
    let values = Repo::with(&[("prod.yaml", "colour: green\n")]);
    let secrets = namespaced("v1", "argocd", "secrets");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "charts", "labels": {"argocd.argoproj.io/secret-type": "repository"}},
        "stringData": {"type": "helm", "name": "charts", "url": url, "username": "ann", "password": "hunter2"}
    });
    world.kube.create(&secrets, &secret);

    let automated = json!({"prune": true});
    let mut ranged = world.application("ranged", &url, "", &automated);
    ranged["spec"]["source"] = json!({"repoURL": url, "chart": "web", "targetRevision": "1.x"});
    let mut valued = world.application("valued", &url, "", &automated);
    valued["spec"]["source"] = Value::Null;
    valued["spec"]["sources"] = json!([
        {"repoURL": url, "chart": "web", "targetRevision": "1.0.0", "helm": {"valueFiles": ["$values/prod.yaml"]}},
        {"repoURL": values.url(), "targetRevision": "HEAD", "ref": "values"},
    ]);
    for app in [&ranged, &valued] {
        world.kube.create(&tiphys_testkit::apps_path(), app);
    }
    let colour = |name: &str, wanted: &str| {
        eventually(PATIENCE, name, || {
            match world.value(&format!("{name}-web"), "colour") {
                Some(colour) if colour == wanted => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
    };
    world.until_well("ranged", "1.0.0");
    colour("ranged", "red");
    colour("valued", "green");

    publish(
        &server,
        &[("1.0.0", "red"), ("1.1.0", "blue"), ("2.0.0", "black")],
    );
    world.refresh("ranged");
    let app = world.until_well("ranged", "1.1.0");
    colour("ranged", "blue");
    let history = app.pointer("/status/history").and_then(Value::as_array);
    let versions: Vec<String> = history
        .into_iter()
        .flatten()
        .map(|entry| text(entry, "/revision"))
        .collect();
    assert_eq!(versions, ["1.0.0", "1.1.0"]);

    let shown = format!("{app}{}{}", world.tiphys.stdout(), world.tiphys.stderr());
    assert!(!shown.contains("hunter2"), "{shown}");
    // On a real cluster the password was shown in the first scenario.
    if let Some(rest) = world.tiphys.login() {
        let details = rest.get("/api/v1/applications/ranged/revisions/1.1.0/chartdetails");
        let details = details.expect("an answer").body;
        assert_eq!(text(&details, "/description"), "The web chart");
        let encoded = url.replace(':', "%3A").replace('/', "%2F");
        let repository = format!("/api/v1/repositories/{encoded}");
        let found = rest.get(&repository).expect("an answer").body;
        assert_eq!(
            text(&found, "/connectionState/status"),
            "Successful",
            "{found}"
        );
        let charts = rest
            .get(&format!("{repository}/helmcharts"))
            .expect("an answer")
            .body;
        assert_eq!(
            charts["items"],
            json!([{"name": "web", "versions": ["1.0.0", "1.1.0", "2.0.0"]}])
        );
    }
    world.kube.delete(&format!("{secrets}/charts"));
}

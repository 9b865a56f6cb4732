//! A control plane that is started again while the servers of its sources answer nothing but
//! errors: it goes on with what it has on disk, and says what is wrong.

use crate::scenarios::world::{World, config_map, text};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tiphys_testkit::{
    PATIENCE, Repo, apps_path,
    charts::{Answer, FileServer, index, plain_chart},
    eventually,
    git_server::{Server, Setup},
};

const AWAY: &str = "503 Service Unavailable";

/// A Git server and a chart repository.
struct Servers {
    repo: Repo,
    git: Server,
    instead: Arc<Mutex<Option<&'static str>>>,
    charts: FileServer,
}

impl Servers {
    fn start() -> Self {
        let repo = Repo::with(&[("app/cm.yaml", config_map("settings", "one").as_str())]);
        let bare = repo.bare();
        let root = bare.parent().expect("it is in a folder");
        let instead = Arc::default();
        let setup = Setup {
            instead: Arc::clone(&instead),
            ..Setup::default()
        };
        let git = Server::start(root, setup);
        let charts = FileServer::start();
        Self {
            repo,
            git,
            instead,
            charts,
        }
    }

    fn git_url(&self) -> String {
        self.git.url("/repo.git")
    }

    /// The chart `web` has this version and no other.
    fn publish(&self, version: &str, colour: &str) {
        let values = format!("colour: {colour}\n");
        let archive = plain_chart("web", version, &[("values.yaml", &values)]);
        let file = format!("web-{version}.tgz");
        self.charts.serve(&format!("/{file}"), archive);
        let listed = index(&[("web", version, file.as_str(), "")]);
        self.charts.serve("/index.yaml", listed.as_str());
        *self.instead.lock().expect("nobody failed") = None;
    }

    fn go_away(&self) {
        *self.instead.lock().expect("nobody failed") = Some(AWAY);
        for path in ["/index.yaml", "/web-1.0.0.tgz"] {
            let answer = Answer {
                status: 503,
                ..Answer::default()
            };
            self.charts.serve(path, answer);
        }
    }
}

/// The message of the condition that says why there is no comparison.
fn failure(app: &Value) -> Option<String> {
    let conditions = app.pointer("/status/conditions")?.as_array()?;
    let failed = conditions
        .iter()
        .find(|condition| text(condition, "/type") == "ComparisonError")?;
    Some(text(failed, "/message"))
}

fn resources(app: &Value) -> Vec<String> {
    let all = app.pointer("/status/resources").and_then(Value::as_array);
    let all = all.into_iter().flatten();
    all.map(|resource| text(resource, "/name")).collect()
}

/// The ConfigMap of each Application, what is changed in it, and what Git or the chart says.
const MAPS: [(&str, &str, &str, &str); 2] = [
    ("files", "settings", "value", "one"),
    ("chart", "chart-web", "colour", "red"),
];

#[track_caller]
fn has(world: &World, map: &str, key: &str, wanted: &str) {
    eventually(PATIENCE, map, || match world.value(map, key) {
        Some(value) if value == wanted => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

#[test]
fn a_control_plane_that_starts_in_an_outage_goes_on() {
    let (data, servers) = (TempDir::new().expect("a folder"), Servers::start());
    servers.publish("1.0.0", "red");
    let start = || World::in_folder("outage", data.path());
    let world = start();
    let automated = json!({"prune": true, "selfHeal": true});
    world.deploy("files", &servers.git_url(), "app", &automated);
    let mut chart = world.application("chart", &servers.charts.url(), "", &automated);
    chart["spec"]["source"] =
        json!({"repoURL": servers.charts.url(), "chart": "web", "targetRevision": "1.x"});
    world.kube.create(&apps_path(), &chart);
    world.until_well("files", &servers.repo.head());
    world.until_well("chart", "1.0.0");
    drop(world);

    servers.go_away();
    let world = start();
    for (app, map, key, wanted) in MAPS {
        has(&world, map, key, wanted);
        world.patch("configmaps", map, &json!({"data": {key: "by hand"}}));
        has(&world, map, key, wanted);
        // Until here the status may be the one of before.
        world.until(app, "compared", |app| {
            resources(app) == [map] && text(app, "/status/sync/status") == "Synced"
        });
    }

    // Who asks what is there now is told that nobody knows.
    for (app, map, _, _) in MAPS {
        world.refresh(app);
        let told = world.until(app, "told of the outage", |app| failure(app).is_some());
        let why = failure(&told).expect("it is told");
        assert!(why.contains("503"), "{why}");
        assert_eq!(resources(&told), [map], "{told}");
    }

    servers.publish("1.1.0", "blue");
    let changed = config_map("settings", "two");
    let head = servers
        .repo
        .commit(&[("app/cm.yaml", changed.as_str())], &[]);
    for (app, revision) in [("files", head.as_str()), ("chart", "1.1.0")] {
        world.refresh(app);
        let well = world.until_well(app, revision);
        assert_eq!(failure(&well), None, "{well}");
    }
    has(&world, "settings", "value", "two");
    has(&world, "chart-web", "colour", "blue");
}

//! Plugins beside the server.

use crate::world::{World, request};
use std::{sync::Arc, time::Duration};
use tiphys_api::rpc::{
    plugin::Nothing,
    repo_server::{
        ManifestResponse, PluginList, RepoAppDetailsResponse, RepoServerAppDetailsQuery,
    },
};
use tiphys_cmp::{Config, ReceiveLimits, Server, ServerOptions};

const PLUGIN: &str = r#"apiVersion: argoproj.io/v1alpha1
kind: ConfigManagementPlugin
metadata: {name: maker}
spec:
  generate:
    command: [sh, -c]
    args: ['echo "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"$ARGOCD_APP_NAME\"}}"']
  discover: {fileName: Makefile}
  parameters: {static: [{name: colour, string: red}]}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn plugins_are_listed_and_asked() {
    let world = World::plain().await;
    let none: Result<PluginList, _> = world.ask("ListPlugins", &Nothing {}).await;
    assert!(none.is_ok_and(|list| list.items.is_empty()));
    let dir = world.dir.path();
    for folder in ["sockets", "config"] {
        std::fs::create_dir(dir.join(folder)).expect("made");
    }
    std::fs::write(dir.join("config/plugin.yaml"), PLUGIN).expect("written");
    let options = ServerOptions {
        config: Config::read(&dir.join("config")).expect("a plugin.yaml"),
        sockets: dir.join("sockets"),
        work: dir.join("work"),
        limits: ReceiveLimits::default(),
        max_message: 1 << 20,
    };
    let server = Arc::new(Server::new(options).expect("a server"));
    let socket = server.socket();
    let serving = tokio::spawn(server.serve(std::future::pending()));
    while tokio::net::UnixStream::connect(&socket).await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let list: PluginList = world.ask("ListPlugins", &Nothing {}).await.expect("a list");
    let names: Vec<&str> = list.items.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["maker"]);

    let (path, _) = world.repository("r", &[("app/Makefile", "all:\n")]);
    let asked = request(&path, "app");
    let made: ManifestResponse = world.ask("GenerateManifest", &asked).await.expect("made");
    assert_eq!(made.source_type, "Plugin");
    assert!(made.manifests[0].contains(r#""name":"web""#), "{made:?}");
    let query = RepoServerAppDetailsQuery {
        repo: asked.repo.clone(),
        source: asked.application_source.clone(),
        ..RepoServerAppDetailsQuery::default()
    };
    let told: RepoAppDetailsResponse = world.ask("GetAppDetails", &query).await.expect("told");
    let parameters = told.plugin.expect("it is one").parameters_announcement;
    assert_eq!(parameters[0].name, "colour");
    serving.abort();
}

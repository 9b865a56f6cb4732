//! What people reported about the command line (`../shared/cases/reports/users`), with the right
//! answers, against a server that answers as little as it can.

#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

mod contexts;
mod root_path;

use crate::scenarios::world::program;
use axum::{Router, http::HeaderMap, http::Uri};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Arc, Mutex},
};
use tempfile::TempDir;
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

/// `None`: the cases are not here, and the test is skipped.
fn case(name: &str) -> Option<PathBuf> {
    tiphys_testkit::shared(&format!("cases/reports/users/{name}"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn run(words: &[&str], variables: &[(&str, &str)]) -> Output {
    let home = TempDir::new().expect("a folder");
    let mut command = Command::new(program());
    command
        .args(words)
        .env("HOME", home.path())
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("ARGOCD_AUTH_TOKEN")
        .env_remove("ARGOCD_OPTS")
        .envs(variables.iter().copied());
    command.output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What everybody gets who signs in: its claims are `{"iss":"argocd","sub":"admin"}`.
const TOKEN: &str = "e30.eyJpc3MiOiJhcmdvY2QiLCJzdWIiOiJhZG1pbiJ9.c2ln";

/// A request: content type, path, and the token that came along.
type Asked = (String, String, Option<String>);

/// A server that gives a token to everybody who asks.
struct StandIn {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    _runtime: tokio::runtime::Runtime,
}

impl StandIn {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let hear = Arc::clone(&asked);
        let router = Router::new().fallback(move |uri: Uri, headers: HeaderMap| {
            let header = |name: &str| headers.get(name).map(|v| text(v.as_bytes()));
            let kind = header("content-type").unwrap_or_default();
            let token = header("token").or_else(|| {
                let bearer = header("authorization")?;
                bearer.strip_prefix("Bearer ").map(str::to_owned)
            });
            let heard = (kind.clone(), uri.path().to_owned(), token);
            hear.lock().expect("no panic").push(heard);
            // SessionResponse in a frame; of gRPC-web the trailers follow.
            let length = u8::try_from(TOKEN.len()).expect("it is short");
            let mut body = vec![0, 0, 0, 0, length + 2, 10, length];
            body.extend(TOKEN.as_bytes());
            if kind.contains("grpc-web") {
                body.extend([128, 0, 0, 0, 15]);
                body.extend(b"grpc-status: 0\n");
            }
            async move {
                (
                    [("content-type", kind), ("grpc-status", "0".to_owned())],
                    body,
                )
            }
        });
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self {
            address,
            asked,
            _runtime: runtime,
        }
    }

    fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().expect("no panic"))
    }
}

fn document(text: &str) -> Value {
    yaml::parse_document(text, &Limits::default(), Duplicates::LastWins).expect("YAML")
}

/// Report 08: what a file says, of all its keys; no cluster is needed.
#[test]
fn policies() {
    let Some(case) = case("08-policy-in-several-keys") else {
        return;
    };
    let rows: Vec<Value> = serde_json::from_str(&read(&case.join("cli.json"))).expect("JSON");
    assert!(!rows.is_empty());
    let file = case.join("argocd-rbac-cm.yaml");
    let file = file.to_str().expect("a plain path");
    for row in rows {
        let words = row["args"].as_str().expect("words").split(' ');
        let words = words.map(|word| match word {
            "argocd-rbac-cm.yaml" => file,
            word => word,
        });
        let output = run(&words.collect::<Vec<_>>(), &[]);
        let code = output.status.code();
        assert_eq!(code.map(i64::from), row["exit"].as_i64(), "{row}");
        assert_eq!(text(&output.stdout).trim(), row["stdout"], "{row}");
    }
}

/// White space around tokens, wherever they come from.
#[test]
fn tokens() {
    let Some(case) = case("19-token-with-newline") else {
        return;
    };
    let rows: Vec<Value> = serde_json::from_str(&read(&case.join("tokens.json"))).expect("JSON");
    assert_eq!(rows.len(), 6);
    let server = StandIn::start();
    let folder = TempDir::new().expect("a folder");
    let config = folder.path().join("config");
    let at = config.to_str().expect("UTF-8").to_owned();
    for web in [true, false] {
        for row in &rows {
            let (source, value) = (&row["source"], row["value"].as_str().expect("a text"));
            let what = format!("{row}, gRPC-web: {web}");
            let _ = fs::remove_file(&config);
            let mut words = vec!["account", "get-user-info", "--plaintext"];
            words.extend(web.then_some("--grpc-web"));
            let mut variables = Vec::new();
            words.extend(["--config", &at]);
            match source.as_str().expect("a text") {
                "--auth-token" => {
                    words.extend(["--auth-token", value, "--server", &server.address])
                }
                "ARGOCD_AUTH_TOKEN" => {
                    variables.push(("ARGOCD_AUTH_TOKEN", value));
                    words.extend(["--server", &server.address]);
                }
                "config file" => {
                    let address = &server.address;
                    let content = serde_json::json!({
                        "contexts": [{"name": "c", "server": address, "user": "c"}],
                        "current-context": "c",
                        "servers": [{"server": address, "plain-text": true}],
                        "users": [{"name": "c", "auth-token": value}],
                    });
                    fs::write(&config, content.to_string()).expect("a file");
                    let mode = fs::Permissions::from_mode(0o600);
                    fs::set_permissions(&config, mode).expect("its mode");
                }
                other => panic!("{other} is unknown"),
            }
            let output = run(&words, &variables);
            let asked = server.asked();
            let sent: Vec<_> = asked.iter().map(|(_, _, token)| token.as_deref()).collect();
            if let Some(wanted) = row["sent"].as_str() {
                assert!(!sent.is_empty(), "{what}: {output:?}");
                assert!(
                    sent.iter().all(|sent| *sent == Some(wanted)),
                    "{what}: {sent:?}"
                );
            } else if row["why"] == "as if unset" {
                assert!(sent.iter().all(Option::is_none), "{what}: {sent:?}");
            } else {
                assert!(
                    !output.status.success() && sent.is_empty(),
                    "{what}: {output:?}"
                );
                let err = text(&output.stderr);
                assert!(err.contains("ARGOCD_AUTH_TOKEN"), "{what}: {err}");
                assert!(!err.contains("aaa"), "the token is shown: {err}");
            }
        }
    }
}

/// Parameters as they are stored; `repo::reports::users_18` renders them.
#[test]
fn parameters() {
    let Some(case) = case("18-parameters-with-commas") else {
        return;
    };
    let mut words: Vec<String> =
        "admin app generate-spec params --repo https://git.example.test/a --path chart \
        --dest-namespace a --dest-server https://kubernetes.default.svc -o json"
            .split_whitespace()
            .map(str::to_owned)
            .collect();
    let commands = read(&case.join("commands.sh"));
    for command in commands.lines() {
        let set = command
            .strip_prefix("argocd app set params ")
            .expect("a command");
        let (flag, value) = set.split_once(' ').expect("a flag");
        words.extend([flag.to_owned(), value.trim_matches('\'').to_owned()]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = run(&words, &[]);
    assert!(output.status.success(), "{output:?}");
    let app = document(&text(&output.stdout));
    let parameters = app["spec"]["source"]["helm"]["parameters"].as_array();
    let mut stored: Vec<[String; 2]> = parameters
        .expect("parameters")
        .iter()
        .map(|p| ["name", "value"].map(|key| p[key].as_str().expect("a text").to_owned()))
        .collect();
    stored.sort();
    let wanted = [
        [r"annotations.sidecar\.example\.test/inject", "false"],
        ["names", r"Consumer1\, Consumer2\, Consumer3"],
        ["schedule", r"0 6\,18 * * *"],
        ["text", "k=v=w"],
    ];
    assert_eq!(stored, wanted.map(|pair| pair.map(str::to_owned)));
}

//! What passes through a kubelet: a server behind `--port-forward`, and a shell in a container. The
//! kubelet of the tests' control plane runs commands on this machine and leads one port to it.

use crate::scenarios::world::{World, program, text};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::{
    fs,
    io::copy,
    net::{Shutdown, TcpListener, TcpStream},
    thread,
    time::Duration,
};
use tiphys_testkit::{Ended, PATIENCE, Repo, eventually, namespaced, output_of};
use tokio_tungstenite::{
    client_async,
    tungstenite::{Message, client::IntoClientRequest as _},
};

/// A server's name in a container, as the tests' control plane makes it Ready.
const IMAGE: &str = "example.test/web:1";

/// The port of this machine to which port 8080 of every pod leads.
fn forwarded(world: &World) -> u16 {
    let kubeconfig = fs::read_to_string(world.kubeconfig()).expect("a kubeconfig");
    let port = kubeconfig.split("https://127.0.0.1:").nth(1).map(|rest| {
        let digits = rest.chars().take_while(char::is_ascii_digit);
        digits.collect::<String>().parse::<u16>()
    });
    let port = port.expect("the API server's address");
    port.expect("a port") + 2003
}

/// Passes connections of a port on to an address, until the process ends.
fn relay(port: u16, address: String) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(&address) else {
                return;
            };
            for (from, to) in [(&stream, &server), (&server, &stream)] {
                let mut from = from.try_clone().expect("a socket");
                let mut to = to.try_clone().expect("a socket");
                thread::spawn(move || {
                    let _ = copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
}

/// The first password of `admin`.
pub fn password(world: &World) -> String {
    let path = namespaced("v1", "argocd", "secrets") + "/argocd-initial-admin-secret";
    let secret = world.kube.find(&path).expect("the first password");
    let password = BASE64_STANDARD.decode(text(&secret, "/data/password"));
    String::from_utf8(password.expect("base64")).expect("text")
}

/// Waits for a pod that is Ready.
fn ready(world: &World, name: &str) {
    eventually(PATIENCE, "the pod is ready", || {
        let pod = world.find("pods", name).ok_or("there is none")?;
        let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
        let is_ready = |c: &Value| c["type"] == "Ready" && c["status"] == "True";
        let is_ready = conditions.is_some_and(|all| all.iter().any(is_ready));
        is_ready.then_some(()).ok_or(pod["status"].to_string())
    });
}

pub fn a_server_is_reached_through_its_pod(world: &mut World) {
    let address = world.tiphys.url.trim_start_matches("http://").to_owned();
    relay(forwarded(world), address);
    world.kube.namespace(&world.namespace);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "server", "labels": {"app.kubernetes.io/name": "argocd-server"}},
        "spec": {"containers": [{"name": "server", "image": IMAGE}]},
    });
    let pods = namespaced("v1", &world.namespace, "pods");
    world.kube.create(&pods, &pod);
    ready(world, "server");
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config").display().to_string();
    let run = |namespace: &str, words: &[&str]| -> Ended {
        let way = ["--port-forward", "--port-forward-namespace", namespace];
        let file = ["--config", &config];
        output_of(&program(), &[words, &way, &file].concat())
    };
    let password = password(world);
    let who = ["--username", "admin", "--password", &password];
    let login = [&["login", "--plaintext"][..], &who].concat();
    let ended = run(&world.namespace, &login);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.ends_with("Context 'port-forward' updated\n"),
        "{ended:?}"
    );
    // Each command has a connection of its own, and several requests.
    let ended = run(&world.namespace, &["account", "get-user-info"]);
    assert!(ended.stdout.contains("Username: admin"), "{ended:?}");
    let ended = run("default", &["account", "get-user-info"]);
    assert_ne!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains(
            "cannot find ready pod with selector: app.kubernetes.io/name=argocd-server or app.kubernetes.io/name=tiphys"
        ),
        "{ended:?}"
    );
    let named = ["account", "get-user-info", "--server-name", "other"];
    let ended = run(&world.namespace, &named);
    assert!(
        ended
            .stderr
            .contains("cannot find ready pod with selector: app.kubernetes.io/name=other"),
        "{ended:?}"
    );
}

pub fn a_shell_runs_in_a_container(world: &mut World) {
    let manifest = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  containers:\n  - {{name: main, image: \"{IMAGE}\"}}\n"
    );
    let repo = Repo::with(&[("app/pod.yaml", manifest.as_str())]);
    world.deploy("web", &repo.url(), "app", &json!({}));
    world.until_well("web", &repo.head());
    let settings = namespaced("v1", "argocd", "configmaps") + "/argocd-cm";
    let shells = json!({"exec.enabled": "true", "exec.shells": "there-is-no-such-shell,sh"});
    world.kube.patch(&settings, &json!({"data": shells}));
    let (address, password) = (
        world.tiphys.url.trim_start_matches("http://").to_owned(),
        password(world),
    );
    let session = tiphys_testkit::Api::plain(&world.tiphys.url).post(
        "/api/v1/session",
        &json!({"username": "admin", "password": password}),
    );
    let session = session.unwrap_or_else(|e| panic!("login: {}", e.0));
    let token = text(&session.body, "/token");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let said = runtime.block_on(async {
        let query = format!(
            "pod=web&container=main&appName=web&projectName=default&appNamespace=argocd&namespace={}",
            world.namespace
        );
        let uri = format!("ws://{address}/terminal?{query}");
        let mut request = uri.into_client_request().expect("a request");
        let cookie = format!("argocd.token={token}").parse().expect("a cookie");
        request.headers_mut().insert("cookie", cookie);
        let mut opened = None;
        for _ in 0..50 {
            let stream = tokio::net::TcpStream::connect(&address).await;
            match client_async(request.clone(), stream.expect("connected")).await {
                Ok((socket, _)) => {
                    opened = Some(socket);
                    break;
                }
                // The setting is on its way.
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
        let mut socket = opened.expect("a terminal");
        let typed = json!({"operation": "stdin", "data": "echo $((40 + 2))-in-a-shell\n"});
        let size = json!({"operation": "resize", "cols": 120, "rows": 40});
        for message in [size, typed] {
            let sent = socket.send(Message::text(message.to_string())).await;
            sent.expect("sent");
        }
        let (mut said, mut is_over) = (String::new(), false);
        let whole = async {
            while let Some(Ok(message)) = socket.next().await {
                if let Message::Text(message) = message {
                    let message: Value = serde_json::from_str(&message).expect("JSON");
                    said.push_str(message["data"].as_str().unwrap_or_default());
                }
                // Not at once: what is printed just before a command ends may be lost on the way.
                if said.contains("42-in-a-shell") && !is_over {
                    is_over = true;
                    let exit = json!({"operation": "stdin", "data": "exit\n"});
                    let sent = socket.send(Message::text(exit.to_string())).await;
                    sent.expect("sent");
                }
            }
        };
        let ended = tokio::time::timeout(PATIENCE, whole).await;
        assert!(ended.is_ok(), "the shell ended and the terminal did not: {said}");
        said
    });
    let off = json!({"exec.enabled": null, "exec.shells": null});
    world.kube.patch(&settings, &json!({"data": off}));
    assert!(said.contains("42-in-a-shell"), "{said}");
}

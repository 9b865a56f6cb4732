//! The client's commands and a server that is not ours: what is sent to it, and when.

use crate::scenarios::world::program;
use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, Uri},
    response::IntoResponse,
};
use prost::Message;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener},
    process::{Command, Output},
    sync::{Arc, Mutex, mpsc},
    thread,
};
use tempfile::TempDir;
use tiphys_api::{
    Application,
    application::ApplicationList,
    rpc::application::{ApplicationQuery, ApplicationSyncRequest},
};
use tiphys_testkit::PATIENCE;
use tokio::{sync::Barrier, task::spawn_blocking, time::timeout};

/// Of every request.
const AGENT: &str = concat!("tiphys/", env!("CARGO_PKG_VERSION"));
/// The kind of a gRPC-web message.
const WEB: &str = "application/grpc-web+proto";
const PROXIES: [&str; 8] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// Runs a command without anything of the user who runs the test.
fn run(server: &str, words: &[&str], variable: Option<(&str, &str)>) -> Output {
    let home = TempDir::new().expect("a folder");
    let mut command = Command::new(program());
    command
        .args(words)
        .args(["--server", server, "--plaintext", "--auth-token", "t"])
        .env("HOME", home.path())
        .env_remove("XDG_CONFIG_HOME");
    for name in PROXIES {
        command.env_remove(name);
    }
    command.envs(variable);
    command.output().expect("it runs")
}

/// Serves until the test ends; the address.
async fn serve(router: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_have_the_programs_user_agent() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = heard.clone();
    let router = Router::new().fallback(move |headers: HeaderMap| {
        let header = |name: &str| headers[name].to_str().expect("text").to_owned();
        let said = (header("content-type"), header("user-agent"));
        hear.lock().expect("no panic").push(said);
        let kind = ("content-type", header("content-type"));
        async move { ([kind, ("grpc-status", "12".to_owned())], ()) }
    });
    let address = serve(router).await.to_string();
    for (more, kind) in [(&["--grpc-web"][..], WEB), (&[], "application/grpc")] {
        let (address, words) = (address.clone(), [&["app", "list"][..], more].concat());
        let ended = spawn_blocking(move || run(&address, &words, None)).await;
        let ended = ended.expect("it ends");
        assert!(!ended.status.success(), "{ended:?}");
        let heard = std::mem::take(&mut *heard.lock().expect("no panic"));
        assert!(!heard.is_empty(), "{ended:?}");
        for (of, agent) in heard {
            assert_eq!(of, kind);
            // The transport may add its own.
            assert_eq!(agent.split(' ').next(), Some(AGENT), "{agent}");
        }
    }
}

/// What a proxy is asked for, in the tunnel, too: the first lines.
fn proxied(variable: &str) -> [String; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = format!("http://{}", listener.local_addr().expect("bound"));
    let (heard, told) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut lines = BufReader::new(stream.try_clone().expect("a handle")).lines();
        let asked = ["200 OK", "404 Not Found"].map(|answer| {
            let mut head = lines.by_ref().map(|line| line.expect("text"));
            let first = head.next().expect("a request");
            head.find(String::is_empty).expect("the end of the head");
            write!(stream, "HTTP/1.1 {answer}\r\n\r\n").expect("sent");
            first
        });
        heard.send(asked)
    });
    let words = ["app", "list", "--grpc-web"];
    let ended = run("cd.example.test:80", &words, Some((variable, &proxy)));
    assert!(!ended.status.success(), "{ended:?}");
    let asked = told.recv_timeout(PATIENCE);
    asked.unwrap_or_else(|e| panic!("the proxy was not used: {e}: {ended:?}"))
}

#[test]
fn the_proxy_for_everything_is_used() {
    for variable in ["ALL_PROXY", "all_proxy", "HTTP_PROXY"] {
        let asked = proxied(variable);
        let list = "POST /application.ApplicationService/List HTTP/1.1";
        assert_eq!(
            asked,
            ["CONNECT cd.example.test:80 HTTP/1.1", list],
            "{variable}"
        );
    }
}

/// The message of a gRPC-web request.
fn message<Q: Message + Default>(body: &Bytes) -> Q {
    Q::decode(&body[5..]).expect("a message")
}

/// A gRPC-web answer with one message, or with a status.
fn answer(message: Result<Vec<u8>, &str>) -> impl IntoResponse + use<> {
    let frame = |flags: u8, content: &[u8]| {
        let length = u32::try_from(content.len()).expect("a short one");
        [&[flags][..], &length.to_be_bytes(), content].concat()
    };
    let (mut body, status) = match message {
        Ok(message) => (frame(0, &message), "grpc-status:0\r\n".to_owned()),
        Err(why) => (
            Vec::new(),
            format!("grpc-status:4\r\ngrpc-message:{why}\r\n"),
        ),
    };
    body.extend(frame(0x80, status.as_bytes()));
    ([("content-type", WEB)], body)
}

/// As many syncs as there are Applications have been requested before the first is answered.
#[tokio::test(flavor = "multi_thread")]
async fn selected_applications_are_synced_at_the_same_time() {
    const APPS: usize = 12;
    let all = Arc::new(Barrier::new(APPS));
    let app = |name: String| {
        let mut app = Application::default();
        app.metadata.name = name;
        app.metadata.namespace = "argocd".to_owned();
        app
    };
    let synced = Arc::new(Mutex::new(Vec::new()));
    let requested = synced.clone();
    let router = Router::new().fallback(move |uri: Uri, body: Bytes| {
        let (all, requested) = (all.clone(), requested.clone());
        async move {
            match uri.path() {
                "/application.ApplicationService/List" => {
                    let query: ApplicationQuery = message(&body);
                    assert_eq!(query.selector.as_deref(), Some("team=a"));
                    let list = ApplicationList {
                        items: (0..APPS).map(|n| app(format!("app-{n:02}"))).collect(),
                        ..ApplicationList::default()
                    };
                    answer(Ok(list.encode_to_vec()))
                }
                "/application.ApplicationService/Get" => {
                    let query: ApplicationQuery = message(&body);
                    answer(Ok(app(query.name.expect("a name")).encode_to_vec()))
                }
                "/application.ApplicationService/Sync" => {
                    let request: ApplicationSyncRequest = message(&body);
                    let name = request.name;
                    requested.lock().expect("no panic").push(name.clone());
                    match timeout(PATIENCE, all.wait()).await {
                        Ok(_) => answer(Ok(app(name).encode_to_vec())),
                        Err(_) => answer(Err("the others were not requested")),
                    }
                }
                other => answer(Err(other)),
            }
        }
    });
    let address = serve(router).await.to_string();
    let words = ["app", "sync", "-l", "team=a", "--async", "--grpc-web"];
    let ended = spawn_blocking(move || run(&address, &words, None)).await;
    let ended = ended.expect("it ends");
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success(), "{ended:?}");
    let whole = format!("{APPS} applications: {APPS} succeeded, 0 failed");
    assert!(said.contains(&whole), "{said}");
    let mut synced = std::mem::take(&mut *synced.lock().expect("no panic"));
    synced.sort();
    let expected: Vec<String> = (0..APPS).map(|n| format!("app-{n:02}")).collect();
    assert_eq!(synced, expected, "each once");
}

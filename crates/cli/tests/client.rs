//! The client's commands and a server that is not ours: what is sent to it, and when.

use crate::scenarios::world::program;
use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode, Uri},
    response::IntoResponse,
};
use prost::Message;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener},
    process::{Command, Output},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};
use tempfile::TempDir;
use tiphys_api::{
    Application, ApplicationSet,
    application::ApplicationList,
    meta::Time,
    rpc::{
        application::{ApplicationCreateRequest, ApplicationQuery, ApplicationSyncRequest},
        application_set::ApplicationSetCreateRequest,
    },
};
use tiphys_testkit::{PATIENCE, free_port};
use tokio::{
    sync::Barrier,
    task::spawn_blocking,
    time::{sleep, timeout},
};

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

/// Runs it elsewhere, so that the test can serve: its exit code, and what it wrote to both.
async fn ended(address: &str, words: Vec<&'static str>) -> (Option<i32>, String, String) {
    let address = address.to_owned();
    let ended = spawn_blocking(move || run(&address, &words, None)).await;
    let ended = ended.expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&ended.stdout), text(&ended.stderr));
    (ended.status.code(), out, errors)
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_sorted_by_names_and_by_paths() {
    let app = |name: &str, health: &str, seconds: i64| {
        let mut app = Application::default();
        app.metadata.name = name.to_owned();
        app.metadata.creation_timestamp = Some(Time { seconds, nanos: 0 });
        app.status.health.status = health.to_owned();
        app
    };
    let list = ApplicationList {
        items: vec![
            app("web-10", "Healthy", 1),
            app("web-9", "Degraded", 3),
            app("api", "Healthy", 2),
        ],
        ..ApplicationList::default()
    };
    let list = list.encode_to_vec();
    let router = Router::new().fallback(move || {
        let list = list.clone();
        async move { answer(Ok(list)) }
    });
    let address = serve(router).await.to_string();
    let words = ["app", "list", "-o", "name", "--grpc-web", "--sort-by"];
    for (by, expected) in [
        ("name", "api\nweb-9\nweb-10\n"),
        ("HEALTH", "web-9\nweb-10\napi\n"),
        ("created", "web-10\napi\nweb-9\n"),
        ("age", "web-9\napi\nweb-10\n"),
        ("{.status.health.status}", "web-9\nweb-10\napi\n"),
        (".metadata.creationTimestamp", "web-10\napi\nweb-9\n"),
    ] {
        let (code, out, errors) = ended(&address, [&words[..], &[by]].concat()).await;
        assert_eq!((code, out.as_str()), (Some(0), expected), "{by}: {errors}");
    }
    for by in ["nme", ".metadata.nme"] {
        let (code, out, errors) = ended(&address, [&words[..], &[by]].concat()).await;
        assert_eq!((code, out.as_str()), (Some(20), ""), "{by}");
        let fields = "it has name, cluster, namespace, project, status, health,";
        assert!(errors.contains(by) && errors.contains(fields), "{errors}");
    }
}

/// A proxy says that the server is away. Without the flag that is the answer.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_tried_again_as_often_as_asked_for() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let router = Router::new().fallback(move || {
        let is_first = count.fetch_add(1, SeqCst) == 0;
        async move {
            match is_first {
                true => StatusCode::SERVICE_UNAVAILABLE.into_response(),
                false => answer(Ok(Vec::new())).into_response(),
            }
        }
    });
    let address = serve(router).await.to_string();
    for (more, code, requests) in [
        (&[][..], Some(20), 1),
        (&["--http-retry-max", "0"], Some(20), 1),
        (&["--http-retry-max", "1"], Some(0), 2),
    ] {
        asked.store(0, SeqCst);
        let words = [&["app", "list", "--grpc-web"][..], more].concat();
        let (found, _, errors) = ended(&address, words).await;
        let found = (found, asked.load(SeqCst));
        assert_eq!(found, (code, requests), "{more:?}: {errors}");
    }
}

/// Whether the server got such a call, a proxy does not say.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_change_something_are_sent_once() {
    const CREATE: [&str; 4] = ["account", "generate-token", "--account", "ci"];
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let router = Router::new().fallback(move || {
        count.fetch_add(1, SeqCst);
        async { StatusCode::GATEWAY_TIMEOUT }
    });
    let address = serve(router).await.to_string();
    for more in [&["--grpc-web"][..], &[]] {
        asked.store(0, SeqCst);
        let words = [&CREATE[..], &["--http-retry-max", "2"], more].concat();
        let (code, _, errors) = ended(&address, words).await;
        let found = (code, asked.load(SeqCst));
        assert_eq!(found, (Some(20), 1), "{more:?}: {errors}");
    }

    // What was not sent is tried again.
    let address = format!("127.0.0.1:{}", free_port());
    let place = address.clone();
    tokio::spawn(async move {
        sleep(Duration::from_millis(500)).await;
        let listener = tokio::net::TcpListener::bind(&place).await;
        let router = Router::new().fallback(|| async { answer(Ok(Vec::new())) });
        axum::serve(listener.expect("a free port"), router).await
    });
    let words = [&CREATE[..], &["--grpc-web", "--http-retry-max", "9"]].concat();
    let (code, _, errors) = ended(&address, words).await;
    assert_eq!(code, Some(0), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_yet_is_waited_for_if_asked() {
    let address = format!("127.0.0.1:{}", free_port());
    let (code, _, errors) = ended(&address, vec!["app", "list"]).await;
    let failed = "Failed to establish connection";
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains(failed), "{errors}");
    let place = address.clone();
    tokio::spawn(async move {
        sleep(Duration::from_millis(500)).await;
        let listener = tokio::net::TcpListener::bind(&place).await;
        let headers = [("content-type", "application/grpc"), ("grpc-status", "12")];
        let router = Router::new().fallback(move || async move { (headers, ()) });
        axum::serve(listener.expect("a free port"), router).await
    });
    let words = vec!["app", "list", "--http-retry-max", "9"];
    let (code, _, errors) = ended(&address, words).await;
    assert_eq!(code, Some(20), "{errors}");
    assert!(errors.contains("Unimplemented"), "{errors}");
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

const TWO_APPS: &str = "kind: Application\nmetadata: {name: a}\n---\nkind: Application\nmetadata: {name: b}\nspec: {source: {repoURL: https://git.example/r, path: .}}\n";
const A_SET: &str = "kind: ApplicationSet\nmetadata: {name: folders}\n";

/// Answers the calls with which Applications and sets are created; what they had to create is told.
fn created(heard: Arc<Mutex<Vec<String>>>) -> Router {
    Router::new().fallback(move |uri: Uri, body: Bytes| {
        let tell = |what: String| heard.lock().expect("no panic").push(what);
        let answer = match uri.path() {
            "/application.ApplicationService/Get" => {
                let query: ApplicationQuery = message(&body);
                let mut app = Application::default();
                app.metadata.name = query.name.expect("a name");
                answer(Ok(app.encode_to_vec()))
            }
            "/application.ApplicationService/Create" => {
                let request: ApplicationCreateRequest = message(&body);
                let app = request.application;
                let source = app.spec.source.clone().unwrap_or_default();
                let values = source.helm.and_then(|helm| helm.values_object);
                let values = serde_json::to_string(&values).expect("JSON");
                tell(format!("{} {values}", app.metadata.name));
                answer(Ok(app.encode_to_vec()))
            }
            "/applicationset.ApplicationSetService/Get" => {
                answer(Ok(ApplicationSet::default().encode_to_vec()))
            }
            "/applicationset.ApplicationSetService/Create" => {
                let request: ApplicationSetCreateRequest = message(&body);
                let set = request.applicationset.expect("a set");
                tell(set.metadata.name.clone());
                answer(Ok(set.encode_to_vec()))
            }
            other => answer(Err(other)),
        };
        async move { answer }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_created_may_come_from_a_url() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let address = serve(created(heard.clone())).await.to_string();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let ask = asked.clone();
    let files = serve(Router::new().fallback(move |uri: Uri, headers: HeaderMap| {
        let secrets = ["authorization", "cookie", "referer"]
            .map(|name| headers.get(name).map(|value| format!("{value:?}")));
        ask.lock().expect("no panic").push(secrets);
        let answer = match uri.path() {
            "/apps.yaml" => (StatusCode::OK, TWO_APPS),
            "/set.yaml" => (StatusCode::OK, A_SET),
            "/values.yaml" => (StatusCode::OK, "replicas: 2\n"),
            _ => (StatusCode::NOT_FOUND, ""),
        };
        async move { answer }
    }))
    .await;
    let elsewhere = serve(Router::new().fallback(move |uri: Uri| {
        let there = format!("http://{files}{}", uri.path());
        async move { (StatusCode::FOUND, [("location", there)]) }
    }))
    .await;
    let url = |path: &str| format!("http://me:hidden@{elsewhere}/{path}?signature=hidden");
    let call = async |words: Vec<String>| {
        let address = address.clone();
        let ended = spawn_blocking(move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            run(&address, &[&words[..], &["--grpc-web"]].concat(), None)
        });
        ended.await.expect("it ends")
    };
    let words = |fixed: &str, last: String| -> Vec<String> {
        let fixed = fixed.split(' ').map(str::to_owned);
        fixed.chain([last]).collect()
    };
    let of_file = call(words("app create -f", url("apps.yaml"))).await;
    assert!(of_file.status.success(), "{of_file:?}");
    let set = call(words("appset create", url("set.yaml"))).await;
    assert!(set.status.success(), "{set:?}");
    let flags = "app create c --repo https://git.example/r --path . --values-literal-file";
    let of_flags = call(words(flags, url("values.yaml"))).await;
    assert!(of_flags.status.success(), "{of_flags:?}");
    assert_eq!(
        *heard.lock().expect("no panic"),
        ["a null", "b null", "folders", "c {\"replicas\":2}"]
    );
    for verb in ["app create -f", "appset create", "proj create -f"] {
        let ended = call(words(verb, url("no.yaml"))).await;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success(), "{verb}: {ended:?}");
        assert!(said.contains("404"), "{verb}: {said}");
        assert!(!said.contains("hidden"), "{verb}: {said}");
    }
    let asked = std::mem::take(&mut *asked.lock().expect("no panic"));
    assert_eq!(asked.len(), 6);
    for secrets in asked {
        assert_eq!(secrets, [None, None, None], "sent to another host");
    }
}

//! `/terminal`: who gets a shell, and how long they keep it.

use crate::common::{World, app};
use futures::{SinkExt as _, StreamExt as _};
use http::{Method, Request, StatusCode, header};
use serde_json::{Value, json};
use std::{fs, io::BufReader, sync::Arc, time::Duration};
use tiphys_server::audit::{AuditOptions, Verdict, chain};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, client::IntoClientRequest as _, handshake::client::Response},
};

const PASSWORD: &str = "another password";
const POLICY: &str = "p, role:dev, applications, get, default/*, allow\n\
                      p, role:dev, exec, create, default/*, allow\n\
                      g, dev, role:dev\n";
const QUERY: &str =
    "pod=web-1&container=main&appName=web&appNamespace=argocd&projectName=default&namespace=n";

type Socket = WebSocketStream<TcpStream>;

/// `dev` may open terminals of `web`, whose pod runs `main` and has run `setup`.
async fn world() -> World {
    let hash = bcrypt::hash(PASSWORD, 4).expect("it hashes");
    let config = [
        ("exec.enabled", "true"),
        ("url", "https://cd.example.com/argo"),
        ("accounts.dev", "login"),
        ("policy.csv", POLICY),
    ];
    let secrets = [("accounts.dev.password", hash.as_str())];
    let world = World::start_by_policy(&config, &secrets).await;
    furnish(&world).await;
    world
}

/// Makes the Application with its pods.
async fn furnish(world: &World) {
    let made = world
        .rest(Method::POST, "/api/v1/applications", Some(app("web")))
        .await;
    assert_eq!(made.0, 200, "{}", made.1);
    let pod = |name: &str| json!({"kind": "Pod", "version": "v1", "name": name, "namespace": "n", "uid": name});
    // Neither is a pod that was found.
    let unfound = json!({"kind": "Pod", "version": "v1", "name": "unfound", "namespace": "n"});
    let mut namesake = pod("namesake");
    namesake["group"] = "example.com".into();
    let tree = json!({"nodes": [pod("web-1"), pod("gone"), unfound, namesake]});
    *world.live.tree.lock().expect("not poisoned") =
        Some(Arc::new(serde_json::from_value(tree).expect("a tree")));
    let live = json!({"kind": "Pod", "metadata": {"name": "web-1"}, "status": {
        "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
        "initContainerStatuses": [{"name": "setup", "state": {"terminated": {"exitCode": 0}}}],
    }});
    let mut objects = world.live.objects.lock().expect("not poisoned");
    objects.insert("web-1".into(), live);
}

async fn token(world: &World) -> String {
    let body = json!({"username": "dev", "password": PASSWORD});
    let (status, answer) = world
        .rest_as("", Method::POST, "/api/v1/session", Some(body))
        .await;
    assert_eq!(status, 200, "{answer}");
    answer["token"].as_str().expect("a token").to_owned()
}

/// Asks as a browser does: with the session in a cookie, and from a page.
async fn ask(
    world: &World,
    token: &str,
    query: &str,
    origin: &str,
) -> Result<(Socket, Response), Error> {
    let uri = format!("ws://{}/terminal?{query}", world.address);
    let mut request = uri.into_client_request().expect("a request");
    let headers = request.headers_mut();
    if !token.is_empty() {
        let cookie = format!("argocd.token={token}");
        headers.insert(header::COOKIE, cookie.parse().expect("a cookie"));
    }
    if !origin.is_empty() {
        headers.insert(header::ORIGIN, origin.parse().expect("an origin"));
    }
    let stream = TcpStream::connect(world.address).await.expect("connected");
    client_async(request, stream).await
}

async fn open(world: &World, token: &str) -> Socket {
    let opened = ask(world, token, QUERY, "").await;
    opened.expect("a terminal").0
}

async fn send(socket: &mut Socket, message: Value) {
    let sent = socket.send(Message::text(message.to_string())).await;
    sent.expect("sent");
}

async fn type_(socket: &mut Socket, data: &str) {
    send(socket, json!({"operation": "stdin", "data": data})).await;
}

/// What is printed next; `None` at the end.
async fn next(socket: &mut Socket) -> Option<Value> {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(20), socket.next());
        match next.await.expect("within 20 s") {
            Some(Ok(Message::Text(text))) => {
                return Some(serde_json::from_str(&text).expect("JSON"));
            }
            Some(Ok(Message::Ping(_))) => {}
            Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
            Some(Ok(other)) => panic!("{other:?}"),
        }
    }
}

fn printed(data: &str) -> Option<Value> {
    Some(json!({"operation": "stdout", "data": data, "rows": 0, "cols": 0}))
}

#[tokio::test]
async fn what_is_typed_reaches_the_first_shell_that_the_container_has() {
    let world = world().await;
    let token = token(&world).await;
    let mut socket = open(&world, &token).await;
    assert_eq!(next(&mut socket).await, printed("sh in web-1/main\r\n"));
    send(
        &mut socket,
        json!({"operation": "resize", "cols": 100, "rows": 30}),
    )
    .await;
    assert_eq!(next(&mut socket).await, printed("100x30\r\n"));
    type_(&mut socket, "echo ä\r").await;
    assert_eq!(next(&mut socket).await, printed("echo ä\r"));
    type_(&mut socket, "exit").await;
    assert_eq!(next(&mut socket).await, None);

    // What comes while a shell does not start is for the next one.
    let mut socket = open(&world, &token).await;
    let size = json!({"operation": "resize", "cols": 80, "rows": 24});
    send(&mut socket, size).await;
    type_(&mut socket, "early\r").await;
    let (mut said, all) = (String::new(), ["sh in web-1/main", "80x24", "early"]);
    while !all.iter().all(|part| said.contains(part)) {
        let message = next(&mut socket).await.expect("more is printed");
        said.push_str(message["data"].as_str().expect("text"));
    }

    // One that is asked for and configured is the only one that is tried.
    let only = format!("{QUERY}&shell=bash");
    let (mut socket, _) = ask(&world, &token, &only, "").await.expect("a terminal");
    let why = "Failed to exec container: bash: there is no bash\r\n";
    assert_eq!(next(&mut socket).await, printed(why));
    assert_eq!(next(&mut socket).await, None);
    let other = format!("{QUERY}&shell=/bin/evil");
    let (mut socket, _) = ask(&world, &token, &other, "").await.expect("a terminal");
    assert_eq!(next(&mut socket).await, printed("sh in web-1/main\r\n"));
    world.store.configure("exec.shells", "ash,bash");
    let (mut socket, _) = ask(&world, &token, QUERY, "").await.expect("a terminal");
    let why = "Failed to exec container: bash: there is no bash\r\n";
    assert_eq!(next(&mut socket).await, printed(why));
}

#[tokio::test]
async fn what_was_opened_and_refused_is_in_the_audit_log() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    let policy = format!("{POLICY}p, bob, applications, get, default/*, allow\n");
    let config = [
        ("exec.enabled", "true"),
        ("accounts.dev", "apiKey"),
        ("accounts.bob", "apiKey"),
        ("policy.csv", policy.as_str()),
    ];
    let options = AuditOptions {
        file: Some(path.clone()),
        events: false,
    };
    let world = World::start_audited(&config, options).await;
    furnish(&world).await;
    let mut found = Vec::new();
    for account in ["dev", "bob"] {
        let at = format!("/api/v1/account/{account}/token");
        let body = json!({"name": account, "id": "ci"});
        let (_, made) = world.rest(Method::POST, &at, Some(body)).await;
        let token = made["token"].as_str().expect("a token").to_owned();
        let opened = ask(&world, &token, QUERY, "").await;
        assert_eq!(opened.is_ok(), account == "dev");
        let mut records = Vec::new();
        let log = BufReader::new(fs::File::open(&path).expect("a log"));
        chain::verify(log, |record, _| records.push(record)).expect("the chain holds");
        let last = records.pop().expect("a record");
        let of = last.changes.iter();
        let of = of.map(|c| format!("{} {} {}/{}", c.done, c.kind, c.namespace, c.name));
        found.push((
            last.call,
            last.who.user,
            last.verdict,
            of.collect::<Vec<_>>(),
        ));
    }
    let terminal = |user: &str, verdict, of: &[&str]| {
        let of = of.iter().map(|of| (*of).to_owned()).collect::<Vec<_>>();
        ("/terminal".to_owned(), user.to_owned(), verdict, of)
    };
    let dev = terminal("dev", Verdict::Allowed, &["opened Pod n/web-1/main"]);
    assert_eq!(found, [dev, terminal("bob", Verdict::Denied, &[])]);
}

#[tokio::test]
async fn others_get_none() {
    let world = world().await;
    let token = token(&world).await;
    let changed = |from: &str, to: &str| QUERY.replace(from, to);
    let foreign = "https://evil.example.com";
    for (token, query, origin, status, text) in [
        ("", QUERY.to_owned(), "", 400, "Auth cookie not found"),
        ("a.b.c", QUERY.to_owned(), "", 401, "Invalid token"),
        (
            &token,
            QUERY.to_owned(),
            foreign,
            403,
            "the request comes from another site",
        ),
        (
            &token,
            changed("web-1", "other"),
            "",
            400,
            "Pod doesn't belong to specified app",
        ),
        (
            &token,
            changed("web-1", "unfound"),
            "",
            400,
            "Pod doesn't belong to specified app",
        ),
        (
            &token,
            changed("web-1", "namesake"),
            "",
            400,
            "Pod doesn't belong to specified app",
        ),
        (&token, changed("web-1", "gone"), "", 400, "Cannot find pod"),
        (
            &token,
            changed("=main", "=setup"),
            "",
            400,
            "container find running",
        ),
        (
            &token,
            changed("=main", "=none"),
            "",
            400,
            "container find running",
        ),
        (&token, changed("=web&", "=db&"), "", 404, "App not found"),
    ] {
        let refused = ask(&world, token, &query, origin).await;
        let Err(Error::Http(answer)) = refused else {
            panic!("{query}: {refused:?}");
        };
        let body = answer.body().clone().unwrap_or_default();
        let body = String::from_utf8_lossy(&body).trim().to_owned();
        assert_eq!((answer.status().as_u16(), body.as_str()), (status, text));
    }
    for own in [
        "https://cd.example.com",
        &format!("http://{}", world.address),
    ] {
        let opened = ask(&world, &token, QUERY, own).await;
        assert!(opened.is_ok(), "{own}: {opened:?}");
    }
    // Not a WebSocket.
    let plain = Request::get(format!("/terminal?{QUERY}"))
        .header(header::COOKIE, format!("argocd.token={token}"))
        .body(http_body_util::Full::default())
        .expect("a request");
    assert_eq!(world.send(plain).await.status(), StatusCode::BAD_REQUEST);

    let reading = POLICY.replace("exec, create", "logs, get");
    world.store.configure("policy.csv", &reading);
    assert!(matches!(
        ask(&world, &token, QUERY, "").await,
        Err(Error::Http(answer)) if answer.status() == StatusCode::UNAUTHORIZED
    ));
    world.store.configure("policy.csv", POLICY);
    world.store.configure("exec.enabled", "false");
    assert!(matches!(
        ask(&world, &token, QUERY, "").await,
        Err(Error::Http(answer)) if answer.status() == StatusCode::NOT_FOUND
    ));
    // Strangers are not told that terminals are off.
    for (stranger, status) in [("", 400), ("a.b.c", 401)] {
        assert!(matches!(
            ask(&world, stranger, QUERY, "").await,
            Err(Error::Http(answer)) if answer.status().as_u16() == status
        ));
    }
}

#[tokio::test]
async fn a_terminal_ends_with_the_permission_and_the_session() {
    let world = world().await;
    let session = token(&world).await;
    let mut socket = open(&world, &session).await;
    assert_eq!(next(&mut socket).await, printed("sh in web-1/main\r\n"));
    world
        .store
        .configure("policy.csv", &POLICY.replace("exec, create", "logs, get"));
    // Nobody types: it ends by itself.
    assert_eq!(next(&mut socket).await, printed("Permission denied"));
    assert_eq!(next(&mut socket).await, None);
    world.store.configure("policy.csv", POLICY);

    let mut socket = open(&world, &session).await;
    assert_eq!(next(&mut socket).await, printed("sh in web-1/main\r\n"));
    let request = Request::get("/auth/logout")
        .header(header::COOKIE, format!("argocd.token={session}"))
        .body(http_body_util::Full::default())
        .expect("a request");
    world.send(request).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    // What is typed afterwards does not reach the shell, which would print it.
    type_(&mut socket, "rm -r /").await;
    let again = "\nReconnect because the token was refreshed...\n";
    assert_eq!(next(&mut socket).await, printed(again));
    assert_eq!(next(&mut socket).await, Some(json!({"Code": 1})));
    assert_eq!(next(&mut socket).await, None);
}

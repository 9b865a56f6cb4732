//! What people reported about watches behind a proxy
//! (`../shared/cases/reports/users/23-idle-streams`): it cuts a stream on which nothing comes.

use crate::scenarios::world::{World, program};
use axum::{Router, body::Body, http::HeaderValue, response::Response, routing::post};
use futures::{StreamExt as _, stream};
use prost::Message as _;
use serde_json::json;
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use tiphys_api::rpc::application::LogEntry;
use tiphys_testkit::{PATIENCE, Repo, eventually, output_of};

/// How long a stream may be silent. The report has ten seconds; the rest of it is shorter here, too.
const IDLE: Duration = Duration::from_secs(2);

/// A proxy for the API.
#[derive(Clone)]
pub struct Proxy {
    port: u16,
    /// It takes nothing otherwise, as while it is restarted.
    is_up: Arc<AtomicBool>,
    /// Connections so far, and those that are open.
    count: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

impl Proxy {
    pub fn start(server: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let proxy = Self {
            port,
            is_up: Arc::new(AtomicBool::new(true)),
            count: Arc::default(),
            open: Arc::default(),
        };
        let (own, server) = (proxy.clone(), server.to_owned());
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.expect("a connection");
                if own.is_up.load(SeqCst) {
                    own.count.fetch_add(1, SeqCst);
                    own.open.fetch_add(1, SeqCst);
                    let server = TcpStream::connect(&server).expect("the server");
                    carry(client, server, Arc::clone(&own.open));
                }
            }
        });
        proxy
    }

    /// Takes nothing more, and waits until all that was open is cut.
    pub fn close(&self) {
        self.is_up.store(false, SeqCst);
        eventually(PATIENCE, "everything is cut", || {
            let open = self.open.load(SeqCst);
            (open == 0).then_some(()).ok_or(format!("{open} are open"))
        });
    }

    pub fn reopen(&self) {
        self.is_up.store(true, SeqCst);
    }

    /// Waits for so many more connections.
    pub fn until_more(&self, wanted: usize) {
        self.until(self.count.load(SeqCst) + wanted);
    }

    /// Waits for so many connections.
    fn until(&self, wanted: usize) {
        eventually(PATIENCE, "streams are opened again", || {
            let count = self.count.load(SeqCst);
            (count >= wanted)
                .then_some(())
                .ok_or(format!("{count} of {wanted}"))
        });
    }
}

fn carry(mut client: TcpStream, mut server: TcpStream, open: Arc<AtomicUsize>) {
    let (mut from, mut to) = (
        client.try_clone().expect("a handle"),
        server.try_clone().expect("a handle"),
    );
    thread::spawn(move || std::io::copy(&mut from, &mut to));
    server.set_read_timeout(Some(IDLE)).expect("a limit");
    thread::spawn(move || {
        let mut buffer = [0; 65536];
        while let Ok(count @ 1..) = server.read(&mut buffer) {
            if client.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = (
            client.shutdown(Shutdown::Both),
            server.shutdown(Shutdown::Both),
        );
        open.fetch_sub(1, SeqCst);
    });
}

/// Answers with one line of a log and then nothing, and the second time with the last line.
fn log_server() -> String {
    let asked = Arc::new(AtomicUsize::new(0));
    let line = |content: &str, last| {
        let entry = LogEntry {
            content: content.to_owned(),
            last,
            ..LogEntry::default()
        }
        .encode_to_vec();
        let length = u32::try_from(entry.len()).expect("short");
        [&[0], &length.to_be_bytes()[..], &entry].concat()
    };
    let answer = move || {
        let first = asked.fetch_add(1, SeqCst) == 0;
        let begin = stream::iter([if first {
            line("one", false)
        } else {
            line("", true)
        }]);
        let rest = match first {
            true => stream::pending().boxed(),
            false => stream::empty().boxed(),
        };
        let body = begin.chain(rest).map(Ok::<_, std::io::Error>);
        let mut answer = Response::new(Body::from_stream(body));
        let kind = HeaderValue::from_static("application/grpc");
        answer.headers_mut().insert("content-type", kind);
        std::future::ready(answer)
    };
    let logs = "/application.ApplicationService/PodLogs";
    let router = Router::new().route(logs, post(answer));
    let (say, heard) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
            let listener = listener.expect("a port");
            let address = listener.local_addr().expect("an address");
            say.send(address.to_string()).expect("the test waits");
            axum::serve(listener, router).await.expect("it serves");
        });
    });
    heard.recv().expect("it listens")
}

/// A log that is followed goes on after a silence, over both transports.
#[test]
fn a_log_survives_a_proxy_that_cuts_silent_streams() {
    for more in [&[][..], &["--grpc-web"]] {
        let proxy = Proxy::start(&log_server());
        let address = format!("127.0.0.1:{}", proxy.port);
        let connect = ["--server", &address, "--plaintext", "--auth-token", "t"];
        let words = ["app", "logs", "web", "--follow"];
        let ended = output_of(&program(), &[&words[..], &connect, more].concat());
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (Some(0), ""),
            "{more:?}"
        );
        assert_eq!(ended.stdout, "one\n", "{more:?}");
        assert!(proxy.count.load(SeqCst) >= 2, "{more:?}");
    }
}

pub struct Session<'w> {
    world: &'w World,
    address: String,
    config: String,
}

impl<'w> Session<'w> {
    pub fn new(world: &'w World, proxy: &Proxy, name: &str) -> Self {
        let password = eventually(PATIENCE, "the password is shown", || {
            world.tiphys.password().ok_or("it is not yet".to_owned())
        });
        let folder = world.tiphys.data().expect("a folder of its own");
        let own = Self {
            world,
            address: format!("127.0.0.1:{}", proxy.port),
            config: folder.join(name).to_string_lossy().into_owned(),
        };
        let login = ["login", &own.address, "--plaintext"];
        let as_admin = ["--username", "admin", "--password", &password];
        let connect = ["--config", &own.config];
        let ended = output_of(&program(), &[&login[..], &as_admin, &connect].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        own
    }

    pub fn start(&self, words: &[&str]) -> Child {
        let mut command = Command::new(program());
        command
            .args(words)
            .args(["--server", &self.address, "--config", &self.config])
            .env("HOME", self.world.tiphys.data().expect("a folder"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().expect("it starts")
    }
}

/// Its exit code, and what it printed to both.
fn ended(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn a_watch_survives_a_proxy_that_cuts_silent_streams() {
    let Some(world) = World::embedded("idle_streams") else {
        return;
    };
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "paused": true, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]}
            }
        }
    });
    let repo = Repo::with(&[("web/deployment.yaml", deployment.to_string().as_str())]);
    world.deploy("web", &repo.url(), "web", &json!({}));
    world.until("web", "Synced and Suspended", |app| {
        app["status"]["sync"]["status"] == "Synced"
            && app["status"]["health"]["status"] == "Suspended"
            && app["status"]["operationState"]["phase"] == "Succeeded"
    });
    let proxy = Proxy::start(world.tiphys.url.trim_start_matches("http://"));
    let session = Session::new(&world, &proxy, "session");
    let other_way = Proxy::start(world.tiphys.url.trim_start_matches("http://"));
    let leaver = Session::new(&world, &other_way, "leaver");

    let health = ["app", "wait", "web", "--health"];
    let waits = |more: &[&str]| session.start(&[&health[..], &["--timeout", "100"], more].concat());
    let patient = [waits(&[]), waits(&["--grpc-web"])];
    // It ends by itself, with nothing new to see.
    let (code, _, err) = ended(session.start(&[&health[..], &["--timeout", "4"]].concat()));
    assert_eq!(code, Some(20), "{err}");
    assert!(err.contains("timed out"), "{err}");

    // A session that ends is not tried again for ever.
    let before = other_way.count.load(SeqCst);
    let left = leaver.start(&[&health[..], &["--timeout", "100"]].concat());
    // The second stream of the command.
    other_way.until(before + 2);
    let logout = ["logout", &leaver.address, "--config", &leaver.config];
    let said = output_of(&program(), &logout);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let (code, _, err) = ended(left);
    assert_eq!(code, Some(20), "{err}");
    assert!(err.contains("Unauthenticated"), "{err}");

    world.patch("deployments", "web", &json!({"spec": {"paused": false}}));
    for one in patient {
        let (code, out, err) = ended(one);
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains("Healthy"), "{out}");
        assert!(err.is_empty(), "{err}");
    }

    // It is deleted while nobody looks.
    let before = proxy.count.load(SeqCst);
    let gone = session.start(&["app", "wait", "web", "--delete", "--timeout", "100"]);
    proxy.until(before + 2);
    proxy.close();
    world.kube.delete(&crate::scenarios::world::app_path("web"));
    eventually(PATIENCE, "web is gone", || {
        world
            .get_app("web")
            .map_or(Ok(()), |app| Err(app.to_string()))
    });
    proxy.reopen();
    let (code, out, err) = ended(gone);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("deleted"), "{out}");
}

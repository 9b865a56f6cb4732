//! A small git server on loopback: HTTP/1.1 in front of `git http-backend`, with or without TLS,
//! passwords and redirects.
//!
//! Main type: [`Server`].

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

/// How it answers.
#[derive(Clone, Default)]
pub struct Setup {
    /// The name and the password that it wants.
    pub user: Option<(&'static str, &'static str)>,
    /// The bearer token that it wants.
    pub token: Option<&'static str>,
    /// Redirect every request to this server.
    pub redirect: Option<String>,
    pub tls: bool,
    /// Only version 1 of git's protocol, which does not serve commits by SHA unless a ref points to
    /// them.
    pub old: bool,
    /// Objects of Git LFS, by digest.
    pub lfs: Option<Lfs>,
    /// Makes something else of what git answers.
    pub spoil: Option<Spoil>,
    /// While it is set, a status such as `503 Service Unavailable` that everything is answered with.
    pub instead: Arc<Mutex<Option<&'static str>>>,
}

/// Changes the content of an answer; the command of git's protocol that it is to, or an empty text.
pub type Spoil = Arc<dyn Fn(&str, &mut Vec<u8>) + Send + Sync>;

/// What the LFS server of every repository has.
#[derive(Clone, Default)]
pub struct Lfs {
    pub objects: std::collections::BTreeMap<String, Vec<u8>>,
    /// Where they are, if not here, with an Authorization header for there.
    pub elsewhere: Option<(String, String)>,
}

impl Lfs {
    /// The answer to a request for objects, or for one; `None`: it is neither.
    fn answer(&self, host: &str, target: &str, body: &[u8]) -> Option<Vec<u8>> {
        if let Some((_, oid)) = target.split_once("/info/lfs/object/") {
            return Some(response("200 OK", self.objects.get(oid)?));
        }
        if !target.ends_with(".git/info/lfs/objects/batch") {
            return None;
        }
        let question: serde_json::Value = serde_json::from_slice(body).expect("JSON");
        assert_eq!(question["operation"], "download");
        let answer = |asked: &serde_json::Value| {
            let oid = asked["oid"].as_str().expect("a digest");
            if !self.objects.contains_key(oid) {
                return json!({"oid": oid, "error": {"code": 404, "message": "Object does not exist"}});
            }
            let own = target.trim_end_matches("objects/batch");
            let here = json!({"href": format!("http://{host}{own}object/{oid}")});
            let download = self.elsewhere.as_ref().map_or(here, |(url, authorization)| {
                json!({"href": format!("{url}/{oid}"), "header": {"Authorization": authorization}})
            });
            json!({"oid": oid, "size": asked["size"], "actions": {"download": download}})
        };
        let objects = question["objects"].as_array().expect("objects").iter();
        let answer =
            json!({"transfer": "basic", "objects": objects.map(answer).collect::<Vec<_>>()});
        Some(response("200 OK", answer.to_string().as_bytes()))
    }
}

fn response(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A running server; it ends when this is dropped.
pub struct Server {
    port: u16,
    tls: bool,
    ca: String,
    log: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the repositories of a folder.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(root: &Path, setup: Setup) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let port = listener.local_addr().expect("address").port();
        let (log, stop) = (
            Arc::new(Mutex::new(Vec::new())),
            Arc::new(AtomicBool::new(false)),
        );
        let (config, ca) = tls();
        let shared = Shared {
            root: root.to_owned(),
            setup: setup.clone(),
            log: Arc::clone(&log),
        };
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (shared, config) = (shared.clone(), Arc::clone(&config));
                std::thread::spawn(move || shared.connection(stream, config));
            }
        });
        Self {
            port,
            tls: setup.tls,
            ca,
            log,
            stop,
            thread: Some(thread),
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!(
            "{}://localhost:{}{path}",
            if self.tls { "https" } else { "http" },
            self.port
        )
    }

    /// The authority of its certificate.
    pub fn ca(&self) -> String {
        self.ca.clone()
    }

    /// One line per request: what it was, and `authorization` if it had one.
    ///
    /// # Panics
    /// If a connection panicked.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().expect("log").clone()
    }

    /// The number of requests whose line contains a text.
    pub fn count(&self, what: &str) -> usize {
        self.log().iter().filter(|line| line.contains(what)).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server ends");
        }
    }
}

fn tls() -> (Arc<rustls::ServerConfig>, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .expect("versions")
    .with_no_client_auth()
    .with_single_cert(vec![made.cert.der().clone()], key)
    .expect("config");
    (Arc::new(config), made.cert.pem())
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

#[derive(Clone)]
struct Shared {
    root: PathBuf,
    setup: Setup,
    log: Arc<Mutex<Vec<String>>>,
}

impl Shared {
    fn connection(&self, tcp: TcpStream, config: Arc<rustls::ServerConfig>) {
        let stream: Box<dyn Stream> = if self.setup.tls {
            let Ok(connection) = rustls::ServerConnection::new(config) else {
                return;
            };
            Box::new(rustls::StreamOwned::new(connection, tcp))
        } else {
            Box::new(tcp)
        };
        let mut stream = BufReader::new(stream);
        while self.request(&mut stream).is_some() {}
    }

    fn request(&self, stream: &mut BufReader<Box<dyn Stream>>) -> Option<()> {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let mut words = line.split_whitespace();
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim().split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let header = |name: &str| {
            headers
                .iter()
                .find(|(n, _)| n == name)
                .map_or("", |(_, v)| v.as_str())
        };
        let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
        stream.read_exact(&mut body).ok()?;
        let command = command(&body);
        let authorized = if header("authorization").is_empty() {
            ""
        } else {
            "authorization"
        };
        self.log
            .lock()
            .ok()?
            .push(format!("{method} {target} {command} {authorized}"));
        let answer = self.answer(&method, &target, &headers, &body);
        stream.get_mut().write_all(&answer).ok()?;
        stream.get_mut().flush().ok()
    }

    fn answer(
        &self,
        method: &str,
        target: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Vec<u8> {
        let header = |name: &str| {
            headers
                .iter()
                .find(|(n, _)| n == name)
                .map_or("", |(_, v)| v.as_str())
        };
        if let Some(status) = self.setup.instead.lock().ok().and_then(|instead| *instead) {
            return response(status, b"");
        }
        if let Some(to) = &self.setup.redirect {
            return format!(
                "HTTP/1.1 302 Found\r\nLocation: {to}{target}\r\nContent-Length: 0\r\n\r\n"
            )
            .into_bytes();
        }
        let wanted = match (&self.setup.user, &self.setup.token) {
            (Some((user, password)), _) => Some(format!(
                "Basic {}",
                base64(format!("{user}:{password}").as_bytes())
            )),
            (None, Some(token)) => Some(format!("Bearer {token}")),
            (None, None) => None,
        };
        if wanted.is_some_and(|w| w != header("authorization")) {
            return b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"\r\nContent-Length: 0\r\n\r\n".to_vec();
        }
        let lfs = self.setup.lfs.as_ref();
        if let Some(answer) = lfs.and_then(|lfs| lfs.answer(header("host"), target, body)) {
            return answer;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut child = Command::new("git")
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", &self.root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "safe.directory")
            .env("GIT_CONFIG_VALUE_0", "*")
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("REQUEST_METHOD", method)
            .env("CONTENT_TYPE", header("content-type"))
            .env("CONTENT_LENGTH", body.len().to_string())
            .env(
                "GIT_PROTOCOL",
                if self.setup.old {
                    ""
                } else {
                    header("git-protocol")
                },
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("git http-backend");
        child
            .stdin
            .take()
            .expect("stdin")
            .write_all(body)
            .expect("the body");
        let out = child.wait_with_output().expect("output").stdout;
        let split = out
            .windows(4)
            .position(|w| w == b"\r\n\r\n")
            .map_or(out.len(), |i| i + 4);
        let (head, content) = out.split_at(split);
        let spoiled = self.setup.spoil.as_ref().map(|spoil| {
            let mut spoiled = content.to_vec();
            spoil(command(body), &mut spoiled);
            spoiled
        });
        let content = spoiled.as_deref().unwrap_or(content);
        let head = String::from_utf8_lossy(head);
        let status = head
            .lines()
            .find_map(|l| l.strip_prefix("Status: "))
            .unwrap_or("200 OK");
        let head: String = head
            .lines()
            .filter(|l| !l.is_empty() && !l.starts_with("Status: "))
            .map(|l| format!("{l}\r\n"))
            .collect();
        let mut answer = format!(
            "HTTP/1.1 {status}\r\n{head}Content-Length: {}\r\n\r\n",
            content.len()
        )
        .into_bytes();
        answer.extend_from_slice(content);
        answer
    }
}

/// The command of a request in version 2 of git's protocol.
fn command(body: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(body);
    let mut commands = ["ls-refs", "fetch"].into_iter();
    let is_asked = |command: &&str| text.contains(&format!("command={command}"));
    commands.find(is_asked).unwrap_or("")
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let letter = LETTERS[(n >> (18 - 6 * i) & 63) as usize] as char;
            out.push(if i > chunk.len() { '=' } else { letter });
        }
    }
    out
}

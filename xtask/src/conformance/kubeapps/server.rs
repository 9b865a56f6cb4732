//! The servers of the recorded scenarios, as `fixtures/serve.go` means them: two over http, one
//! over https, each of which is also a proxy, and a registry of files.
//!
//! Main type: [`Servers`].

use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// The addresses in the recorded texts.
const RECORDED: [&str; 3] = ["127.0.0.1:18471", "127.0.0.1:18472", "127.0.0.1:18473"];
const NAMES: [char; 3] = ['A', 'B', 'T'];
const PATIENCE: Duration = Duration::from_secs(60);

/// What is served in one step.
#[derive(Default)]
struct Served {
    /// Path, with the listener's name and a colon before it, and the folders below the fixtures.
    mounts: Vec<(String, Vec<PathBuf>)>,
    /// Rules by the first folder of a mount, and those of the registry.
    rules: Vec<(String, Rule)>,
    registry: Option<PathBuf>,
    requests: Vec<Request>,
    index: Option<Vec<u8>>,
}

struct Rule {
    value: Value,
    used: u64,
}

/// A request as a server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `A`, `B` or `T`.
    pub listener: char,
    pub target: String,
    pub authorization: String,
}

struct Shared {
    fixtures: PathBuf,
    ports: [u16; 3],
    served: Mutex<Served>,
    tls: Arc<rustls::ServerConfig>,
}

pub struct Servers {
    shared: Arc<Shared>,
    /// PEM text of the authority of the third server, and of another one.
    pub authorities: [String; 2],
}

const REGISTRY: &str = "/v2/";

impl Servers {
    /// `fixtures`: what `gen.py` made, and `real` beside it.
    pub fn start(fixtures: &Path) -> anyhow::Result<Self> {
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listeners = [listen()?, listen()?, listen()?];
        let mut ports = [0; 3];
        for (port, listener) in ports.iter_mut().zip(&listeners) {
            *port = listener.local_addr()?.port();
        }
        let (authority, tls) = certificates()?;
        let (other, _) = certificates()?;
        let shared = Arc::new(Shared {
            fixtures: fixtures.to_owned(),
            ports,
            served: Mutex::default(),
            tls,
        });
        for (listener, name) in listeners.into_iter().zip(NAMES) {
            let shared = Arc::clone(&shared);
            // They serve until the process ends.
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let shared = Arc::clone(&shared);
                    std::thread::spawn(move || shared.connection(name, stream));
                }
            });
        }
        Ok(Self {
            shared,
            authorities: [authority, other],
        })
    }

    /// Serves what a step names.
    pub fn serve(&self, step: &Value) -> anyhow::Result<()> {
        let mut served = Served::default();
        for (path, folders) in step["mounts"].as_object().into_iter().flatten() {
            let path = match path.split_once(":/") {
                Some((listener, rest)) => format!("{listener}:/{rest}"),
                None => path.clone(),
            };
            let folders = folders.as_str().unwrap_or_default().split(',');
            let folders: Vec<PathBuf> = folders.map(|f| self.shared.fixtures.join(f)).collect();
            for folder in &folders {
                let Ok(text) = fs::read_to_string(folder.join("_rules.json")) else {
                    continue;
                };
                let rules: Vec<Value> = serde_json::from_str(&self.to_ours(&text))?;
                let of = |value| (path.clone(), Rule { value, used: 0 });
                served.rules.extend(rules.into_iter().map(of));
            }
            served.mounts.push((path, folders));
        }
        if step["registry"] == Value::Bool(true) {
            served.registry = Some(self.shared.fixtures.join("registry"));
        }
        let rules =
            serde_json::from_str::<Vec<Value>>(&self.to_ours(&step["v2_rules"].to_string()));
        let of = |value| (REGISTRY.to_owned(), Rule { value, used: 0 });
        served
            .rules
            .extend(rules.unwrap_or_default().into_iter().map(of));
        *self.shared.lock() = served;
        Ok(())
    }

    /// What was asked for in this step, and the last index that was served.
    pub fn seen(&self) -> (Vec<Request>, Option<Vec<u8>>) {
        let mut served = self.shared.lock();
        (std::mem::take(&mut served.requests), served.index.take())
    }

    /// A recorded text with our addresses.
    pub fn to_ours(&self, text: &str) -> String {
        self.shared.to_ours(text)
    }

    /// A text of ours with the recorded addresses.
    pub fn to_recorded(&self, text: &str) -> String {
        let pairs = RECORDED.iter().zip(self.shared.ports);
        pairs.fold(text.to_owned(), |text, (recorded, port)| {
            text.replace(&format!("127.0.0.1:{port}"), recorded)
        })
    }
}

fn certificates() -> anyhow::Result<(String, Arc<rustls::ServerConfig>)> {
    let authority_key = rcgen::KeyPair::generate()?;
    let mut authority = rcgen::CertificateParams::new(Vec::new())?;
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pem = authority.self_signed(&authority_key)?.pem();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate()?;
    let names = ["127.0.0.1", "charts.test", "registry.test"].map(str::to_owned);
    let leaf = rcgen::CertificateParams::new(names)?.signed_by(&key, &issuer)?;
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der())
        .map_err(|e| anyhow::anyhow!("the key: {e}"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)?;
    Ok((pem, Arc::new(config)))
}

/// The first line and the headers of a request, lower case names.
struct Head {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
}

impl Head {
    fn read(stream: &mut dyn Read) -> Option<Self> {
        let mut reader = BufReader::with_capacity(1, stream).take(1 << 16);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split(' ').map(str::to_owned);
        let (method, target) = (words.next()?, words.next()?);
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            match line.trim_end().split_once(':') {
                Some((name, value)) => {
                    headers.push((name.to_lowercase(), value.trim().to_owned()));
                }
                None => break,
            }
        }
        Some(Self {
            method,
            target,
            headers,
        })
    }

    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

/// What a request is answered with.
#[derive(Default)]
struct Reply {
    status: u64,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn to_ours(&self, text: &str) -> String {
        let pairs = RECORDED.iter().zip(self.ports);
        pairs.fold(text.to_owned(), |text, (recorded, port)| {
            text.replace(recorded, &format!("127.0.0.1:{port}"))
        })
    }

    fn connection(&self, listener: char, mut stream: TcpStream) {
        let _ = stream.set_read_timeout(Some(PATIENCE));
        if listener != 'T' {
            self.answer(listener, &mut stream);
            return;
        }
        let Ok(session) = rustls::ServerConnection::new(Arc::clone(&self.tls)) else {
            return;
        };
        let mut first = [0; 1];
        if matches!(stream.peek(&mut first), Ok(1)) && first[0] != 0x16 {
            let _ = stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
            return;
        }
        let mut tls = rustls::StreamOwned::new(session, stream);
        self.answer(listener, &mut tls);
        tls.conn.send_close_notify();
        let _ = tls.flush();
    }

    fn answer(&self, listener: char, stream: &mut (impl Read + Write + Tunnel)) {
        let Some(head) = Head::read(stream) else {
            return;
        };
        if head.method == "CONNECT" {
            stream.tunnel(self.ports[2]);
            return;
        }
        let reply = self.reply(listener, &head);
        let mut text = format!("HTTP/1.1 {} x\r\nConnection: close\r\n", reply.status);
        text.push_str(&format!("Content-Length: {}\r\n", reply.body.len()));
        for (name, value) in &reply.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        // A client that went away does not matter.
        let _ = stream.write_all(text.as_bytes());
        if head.method != "HEAD" {
            let _ = stream.write_all(&reply.body);
        }
        let _ = stream.flush();
    }

    fn reply(&self, listener: char, head: &Head) -> Reply {
        let mut served = self.lock();
        served.requests.push(Request {
            listener,
            target: head.target.clone(),
            authorization: head.header("authorization").to_owned(),
        });
        // A proxy is asked for the whole address.
        let target = match head.target.strip_prefix("http://") {
            Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => &head.target,
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = decoded(path);
        if path.starts_with(REGISTRY)
            && let Some(registry) = served.registry.clone()
        {
            let rule = served
                .rules
                .iter_mut()
                .find_map(|(of, rule)| (of == REGISTRY).then(|| rule.applies(&path)).flatten());
            if let Some(reply) = rule.and_then(|rule| apply(&rule, head, query)) {
                return reply;
            }
            return from_registry(&registry, &path);
        }
        let mount = served
            .mounts
            .iter()
            .enumerate()
            .filter_map(|(place, (mount, _))| {
                let mount = match mount.split_once(':') {
                    Some((name, mount)) => (name == listener.to_string()).then_some(mount)?,
                    None => mount,
                };
                let below = format!("{}/", mount.trim_end_matches('/'));
                (path == mount || path.starts_with(&below)).then_some((mount.len(), place))
            });
        let Some((length, place)) = mount.max() else {
            return not_found("no such mount\n");
        };
        let rest = path
            .get(length..)
            .unwrap_or_default()
            .trim_start_matches('/')
            .to_owned();
        let (mount, folders) = served.mounts[place].clone();
        let rule = served
            .rules
            .iter_mut()
            .find_map(|(of, rule)| (*of == mount).then(|| rule.applies(&rest)).flatten());
        if let Some(reply) = rule.as_ref().and_then(|rule| apply(rule, head, query)) {
            return reply;
        }
        let file = rule.as_ref().and_then(|rule| rule["file"].as_str());
        let reply = self.file(&folders, file.unwrap_or(&rest));
        if reply.status == 200 && rest.ends_with(".yaml") {
            served.index = Some(reply.body.clone());
        }
        reply
    }

    fn file(&self, folders: &[PathBuf], name: &str) -> Reply {
        let name = Path::new(name);
        if !name
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
        {
            return not_found("not found\n");
        }
        let content = folders
            .iter()
            .find_map(|folder| fs::read(folder.join(name)).ok());
        let Some(mut body) = content else {
            return not_found("not found\n");
        };
        let extension = name
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default();
        if extension == "yaml"
            && let Ok(text) = std::str::from_utf8(&body)
        {
            body = self.to_ours(text).into_bytes();
        }
        let kind = match extension {
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "jpg" => "image/jpeg",
            "gif" => "image/gif",
            "tgz" => "application/gzip",
            "yaml" => "text/yaml",
            "html" => "text/html",
            "webp" => "image/webp",
            _ => "application/octet-stream",
        };
        Reply {
            status: 200,
            headers: vec![("Content-Type".to_owned(), kind.to_owned())],
            body,
        }
    }
}

fn not_found(body: &str) -> Reply {
    Reply {
        status: 404,
        body: body.as_bytes().to_vec(),
        ..Reply::default()
    }
}

impl Rule {
    /// The rule, if it is for a path and was not used up.
    fn applies(&mut self, path: &str) -> Option<Value> {
        let of = self.value["path"].as_str().unwrap_or_default();
        let matches = of == "*"
            || of == path
            || of
                .strip_prefix("suffix:")
                .is_some_and(|end| path.ends_with(end))
            || of
                .strip_suffix('*')
                .is_some_and(|start| path.starts_with(start));
        if !matches {
            return None;
        }
        let times = self.value["times"].as_u64().unwrap_or_default();
        let left = times == 0 || self.used < times;
        self.used += 1;
        left.then(|| self.value.clone())
    }
}

/// The answer of a rule, if it has one.
fn apply(rule: &Value, head: &Head, query: &str) -> Option<Reply> {
    let text = |name: &str| rule[name].as_str().filter(|text| !text.is_empty());
    let headers = rule["headers"].as_object().into_iter().flatten();
    let mut headers: Vec<(String, String)> = headers
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    let mut reply = |status: u64, body: &str, more: Option<(&str, &str)>| {
        let more = more.map(|(name, value)| (name.to_owned(), value.to_owned()));
        if let Some(more) = more
            && headers.iter().all(|(name, _)| *name != more.0)
        {
            headers.push(more);
        }
        Some(Reply {
            status,
            headers: std::mem::take(&mut headers),
            body: body.as_bytes().to_vec(),
        })
    };
    if text("auth").is_some_and(|wanted| head.header("authorization") != wanted) {
        let challenge = ("WWW-Authenticate", "Basic realm=\"fixture\"");
        return reply(401, "credentials needed\n", Some(challenge));
    }
    if text("query").is_some_and(|wanted| query != wanted) {
        return reply(403, "query needed\n", None);
    }
    if let Some(to) = text("redirect") {
        return reply(302, "", Some(("Location", to)));
    }
    let status = rule["status"].as_u64().filter(|status| *status != 0);
    if status.is_some() || rule["body"].is_string() {
        let body = rule["body"].as_str().unwrap_or_default();
        return reply(status.unwrap_or(200), body, None);
    }
    None
}

/// What the registry has at `/v2/<repository>/{tags/list,manifests/<name>,blobs/<digest>}`.
fn from_registry(registry: &Path, path: &str) -> Reply {
    let path = path.trim_start_matches(REGISTRY).trim_end_matches('/');
    if path.is_empty() {
        return Reply {
            status: 200,
            ..Reply::default()
        };
    }
    let path = match path.strip_suffix("/tags/list") {
        Some(repository) => format!("{repository}/tags.json"),
        None => path.to_owned(),
    };
    let path = Path::new(&path);
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    match fs::read(registry.join(path)).ok().filter(|_| is_plain) {
        None => not_found("{\"errors\":[{\"code\":\"MANIFEST_UNKNOWN\"}]}"),
        Some(body) => {
            let manifest: Option<Value> = serde_json::from_slice(&body).ok();
            let kind = manifest
                .as_ref()
                .and_then(|m| m["mediaType"].as_str().map(str::to_owned));
            let kind = kind.unwrap_or_else(|| "application/octet-stream".to_owned());
            Reply {
                status: 200,
                headers: vec![("Content-Type".to_owned(), kind)],
                body,
            }
        }
    }
}

fn decoded(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|d| std::str::from_utf8(d).ok());
        match digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A stream that may become one to another server.
trait Tunnel {
    fn tunnel(&mut self, port: u16);
}

impl Tunnel for TcpStream {
    fn tunnel(&mut self, port: u16) {
        let Ok(mut other) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else {
            return;
        };
        let _ = self.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        let (Ok(mut from), Ok(mut to)) = (self.try_clone(), other.try_clone()) else {
            return;
        };
        let back = std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
        let _ = std::io::copy(&mut other, self);
        let _ = self.shutdown(Shutdown::Both);
        let _ = back.join();
    }
}

impl<S> Tunnel for rustls::StreamOwned<rustls::ServerConnection, S>
where
    S: Read + Write,
{
    fn tunnel(&mut self, _: u16) {}
}

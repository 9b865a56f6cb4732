//! Chart archives, and a small HTTP server on loopback that serves them.
//!
//! Main types: [`FileServer`] and [`Answer`]; main function: [`package`].

use crate::archive::{TarEntry, gzip, tar};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

/// A chart's archive, as `helm package` makes it: the files below a folder with the chart's name.
pub fn package(name: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let below = |(path, content): &(&str, &str)| (format!("{name}/{path}"), (*content).to_owned());
    let files: Vec<(String, String)> = files.iter().map(below).collect();
    let entries: Vec<TarEntry<'_>> = files
        .iter()
        .map(|(path, content)| TarEntry::file(path, content))
        .collect();
    gzip(&tar(&entries))
}

/// A chart with one ConfigMap of the release's name, whose data are the values under `data`.
pub fn plain_chart(name: &str, version: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let chart = format!(
        "apiVersion: v2\nname: {name}\nversion: {version}\ndescription: The {name} chart\nhome: https://example.com/{name}\nmaintainers:\n- name: Ann\n  email: ann@example.com\n"
    );
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-{{ .Chart.Name }}\ndata:\n  version: {{ .Chart.Version | quote }}\n  colour: {{ .Values.colour | quote }}\n";
    let mut files = vec![
        ("Chart.yaml", chart.as_str()),
        ("values.yaml", "colour: red\n"),
        ("templates/cm.yaml", template),
    ];
    for (path, content) in more {
        files.retain(|(known, _)| known != path);
        files.push((path, content));
    }
    package(name, &files)
}

/// The index of a repository, in the form that Helm writes. Each chart: name, version, URL, digest.
pub fn index(charts: &[(&str, &str, &str, &str)]) -> String {
    let mut by_name: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for (name, version, url, digest) in charts {
        by_name
            .entry(name)
            .or_default()
            .push((version, url, digest));
    }
    let mut text = "apiVersion: v1\nentries:\n".to_owned();
    for (name, versions) in by_name {
        let _ = writeln!(text, "  {name}:");
        for (version, url, digest) in versions {
            let _ = write!(
                text,
                "  - apiVersion: v2\n    created: \"2026-01-01T00:00:00Z\"\n    description: A chart\n    digest: {digest}\n    \
                 name: {name}\n    urls:\n    - {url}\n    version: {version}\n"
            );
        }
    }
    text.push_str("generated: \"2026-01-01T00:00:00Z\"\n");
    text
}

/// What a path answers.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// 0 means 200.
    pub status: u16,
    pub body: Vec<u8>,
    /// Header lines, such as `Location: /other`.
    pub headers: Vec<String>,
    /// The name and password it is for; everybody else gets a 401.
    pub only_for: Option<(&'static str, &'static str)>,
    /// The Authorization header it is for, and what the WWW-Authenticate header says to everybody
    /// else.
    pub only_with: Option<(String, String)>,
}

impl From<Vec<u8>> for Answer {
    fn from(body: Vec<u8>) -> Self {
        Self {
            body,
            ..Self::default()
        }
    }
}

impl From<&str> for Answer {
    fn from(body: &str) -> Self {
        body.as_bytes().to_vec().into()
    }
}

/// A request as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The Authorization header, or empty.
    pub authorization: String,
}

/// Serves files by path over HTTP until it is dropped. An answer with an ETag header is not sent to
/// a client that has it already.
pub struct FileServer {
    port: u16,
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    answers: Mutex<BTreeMap<String, Answer>>,
    received: Mutex<Vec<Received>>,
}

impl FileServer {
    pub fn start() -> Self {
        Self::at(0)
    }

    /// On this port; 0: on any.
    pub fn at(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a port of loopback");
        let port = listener.local_addr().expect("an address").port();
        let (shared, stop) = (
            Arc::new(Shared::default()),
            Arc::new(AtomicBool::new(false)),
        );
        let (of_thread, stopped) = (Arc::clone(&shared), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&of_thread);
                std::thread::spawn(move || shared.connection(&stream));
            }
        });
        Self {
            port,
            shared,
            stop,
            thread: Some(thread),
        }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Sets what a path, with its query, answers from now on.
    pub fn serve(&self, path: &str, answer: impl Into<Answer>) {
        lock(&self.shared.answers).insert(path.to_owned(), answer.into());
    }

    pub fn remove(&self, path: &str) {
        lock(&self.shared.answers).remove(path);
    }

    /// The requests since this was called last.
    pub fn received(&self) -> Vec<Received> {
        std::mem::take(&mut *lock(&self.shared.received))
    }

    /// The paths of the requests since the last call.
    pub fn paths(&self) -> Vec<String> {
        self.received().into_iter().map(|r| r.path).collect()
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn connection(&self, mut stream: &TcpStream) {
        let mut reader = BufReader::new(stream.take(1 << 20));
        let mut line = String::new();
        if reader.read_line(&mut line).is_err() {
            return;
        }
        let mut words = line.split(' ').map(str::to_owned);
        let (method, path) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let (mut authorization, mut known) = (String::new(), String::new());
        let mut length = 0;
        loop {
            let mut header = String::new();
            match reader.read_line(&mut header) {
                Ok(n) if n > 0 && !header.trim().is_empty() => {}
                _ => break,
            }
            let Some((name, value)) = header.split_once(':') else {
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "authorization" => value.trim().clone_into(&mut authorization),
                "content-length" => length = value.trim().parse().unwrap_or_default(),
                "if-none-match" => value.trim().clone_into(&mut known),
                _ => {}
            }
        }
        // Bytes that nobody has read would break the connection with the answer.
        let _ = std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink());
        let is_head = method == "HEAD";
        lock(&self.received).push(Received {
            method,
            path: path.clone(),
            authorization: authorization.clone(),
        });
        let answer = lock(&self.answers).get(&path).cloned();
        let mut answer = answer.unwrap_or_else(|| Answer {
            status: 404,
            ..Answer::default()
        });
        let asked = answer
            .only_for
            .map(|(name, password)| basic(name, password));
        if asked.is_some_and(|asked| asked != authorization) {
            answer = Answer {
                status: 401,
                ..Answer::default()
            };
        }
        let wrong = answer
            .only_with
            .take_if(|(wanted, _)| *wanted != authorization);
        if let Some((_, challenge)) = wrong {
            answer = Answer {
                status: 401,
                headers: vec![format!("WWW-Authenticate: {challenge}")],
                ..Answer::default()
            };
        }
        let is_known = |header: &String| {
            !known.is_empty() && header.strip_prefix("ETag: ") == Some(known.as_str())
        };
        if answer.headers.iter().any(is_known) {
            (answer.status, answer.body) = (304, Vec::new());
        }
        let status = if answer.status == 0 {
            200
        } else {
            answer.status
        };
        let mut head = format!(
            "HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close\r\n",
            answer.body.len()
        );
        for header in &answer.headers {
            let _ = write!(head, "{header}\r\n");
        }
        head.push_str("\r\n");
        // A client that went away does not matter.
        let _ = stream.write_all(head.as_bytes());
        if !is_head {
            let _ = stream.write_all(&answer.body);
        }
    }
}

/// The Authorization header of a name and a password.
pub fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

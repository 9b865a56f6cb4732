//! A host of Git on the loopback interface that answers as it is told to. Main type: [`Server`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub method: String,
    /// As it was sent.
    pub path: String,
    pub query: BTreeMap<String, String>,
    /// By names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// What it is answered with.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// Ends the connection after so many bytes of the body.
    pub cut: Option<usize>,
}

impl Reply {
    pub fn new(status: u16, body: impl ToString) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.to_string(),
            cut: None,
        }
    }

    pub fn header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }
}

/// It ends when it is dropped.
pub struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub async fn start(answer: impl Fn(&str, &Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (list, own, answer) = (Arc::clone(&asked), url.clone(), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (list, own, answer) = (Arc::clone(&list), own.clone(), Arc::clone(&answer));
                tokio::spawn(async move {
                    serve(stream, |asked| {
                        list.lock().expect("no panic").push(asked.clone());
                        answer(&own, asked)
                    })
                    .await;
                });
            }
        });
        Self { url, asked, task }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }
}

async fn serve(mut stream: TcpStream, answer: impl Fn(&Asked) -> Reply) {
    let Some(asked) = read(&mut stream).await else {
        return;
    };
    let reply = answer(&asked);
    let mut head = format!(
        "HTTP/1.1 {} X\r\ncontent-length: {}\r\nconnection: close\r\n",
        reply.status,
        reply.body.len()
    );
    let is_typed = reply.headers.iter().any(|(name, _)| name == "content-type");
    if !is_typed {
        head.push_str("content-type: application/json\r\n");
    }
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let body = &reply.body.as_bytes()[..reply.cut.unwrap_or(reply.body.len())];
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body).await;
    let _ = stream.shutdown().await;
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        let count = stream.read(&mut part).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&part[..count]);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?);
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length");
    let length = length.and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
    while bytes.len() < end + 4 + length {
        let count = stream.read(&mut part).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&part[..count]);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Some(Asked {
        method,
        path: path.to_owned(),
        query: pairs(query),
        headers,
        body: String::from_utf8_lossy(&bytes[end + 4..]).into_owned(),
    })
}

/// The parameters of a query.
pub fn pairs(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// Without the escapes of URLs.
pub fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, tail)) = rest.split_first() {
        let hex = || u8::from_str_radix(std::str::from_utf8(tail.get(..2)?).ok()?, 16).ok();
        match (first, hex()) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (b'+', _) => {
                bytes.push(b' ');
                rest = tail;
            }
            (byte, _) => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

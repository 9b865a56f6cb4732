//! Hands messages over to a NATS server. Main function: [`publish`].
//!
//! A client of our own, because a message counts as sent only when the server has read it: a PING
//! follows it, and an error about the message comes before the PONG. The client library does not
//! tell. Not spoken: WebSockets, and more than one message on a connection.

mod nkey;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use percent_encoding::percent_decode_str;
use reqwest::Url;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use tiphys_notify::send::Published;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite},
    io::{AsyncWriteExt as _, BufReader},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

/// How long one server may take until it waits for the message, and for that.
const TIMEOUT: Duration = Duration::from_secs(10);
const PORT: u16 = 4222;
/// How much of an error is told.
const SHOWN: usize = 300;
/// Longest line of a server.
const LINE: u64 = 64 << 10;

trait Both: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Both for T {}
type Stream = BufReader<Box<dyn Both>>;

/// What a server says about itself first.
#[derive(Deserialize)]
#[serde(default)]
struct Info {
    tls_required: bool,
    tls_available: bool,
    headers: bool,
    max_payload: usize,
    nonce: String,
}

impl Default for Info {
    fn default() -> Self {
        Self {
            tls_required: false,
            tls_available: false,
            headers: false,
            max_payload: usize::MAX,
            nonce: String::new(),
        }
    }
}

/// What a client says about itself.
#[derive(Default, Serialize)]
struct Connect {
    verbose: bool,
    pedantic: bool,
    tls_required: bool,
    headers: bool,
    protocol: u8,
    name: &'static str,
    lang: &'static str,
    version: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    user: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pass: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    auth_token: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    nkey: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    sig: String,
}

/// Hands over to the first server that answers.
///
/// # Errors
/// If none took it. The text has no secrets.
pub(super) async fn publish(message: &Published) -> Result<(), String> {
    let header = header(message)?;
    let mut failure = String::new();
    for text in message.url.split(',') {
        let url = address(text.trim())?;
        let handed = hand_over(&url, message, &header).await;
        let host = url.host_str().unwrap_or_default();
        match handed {
            Ok(()) => return Ok(()),
            Err(Refusal::Message(why)) => return Err(format!("{host}: {why}")),
            Err(Refusal::Connection(why)) => failure = format!("{host}: {why}"),
        }
    }
    Err(failure)
}

/// Why a server did not take a message.
enum Refusal {
    /// Another server may take it.
    Connection(String),
    Message(String),
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::Connection(error.to_string())
    }
}

fn address(text: &str) -> Result<Url, String> {
    let with_scheme = match text.contains("://") {
        true => text.to_owned(),
        false => format!("nats://{text}"),
    };
    // Not the text: it may have a password.
    let url = Url::parse(&with_scheme).ok().filter(Url::has_host);
    let url = url.ok_or("url is not an address of a NATS server, such as nats://nats:4222")?;
    match url.scheme() {
        "nats" | "tls" => Ok(url),
        other => Err(format!(
            "{other}:// is not supported; use nats:// or tls://"
        )),
    }
}

/// The headers as they are sent; empty if there are none.
fn header(message: &Published) -> Result<String, String> {
    if message.headers.is_empty() {
        return Ok(String::new());
    }
    let mut text = "NATS/1.0\r\n".to_owned();
    for (name, value) in &message.headers {
        if name.is_empty() || name.contains([':', '\r', '\n']) || value.contains(['\r', '\n']) {
            return Err(format!("the header {name:?} has characters that end it"));
        }
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    Ok(text)
}

async fn hand_over(url: &Url, message: &Published, header: &str) -> Result<(), Refusal> {
    let late = |_| format!("no answer within {} s", TIMEOUT.as_secs());
    let ready = tokio::time::timeout(TIMEOUT, ready(url, message, header)).await;
    let mut stream = ready.map_err(|e| Refusal::Connection(late(e)))??;
    // From here on it may have been taken.
    let told = tokio::time::timeout(TIMEOUT, tell(&mut stream, message, header)).await;
    told.map_err(late)
        .and_then(|told| told)
        .map_err(Refusal::Message)
}

/// A connection on which the server waits for messages.
async fn ready(url: &Url, message: &Published, header: &str) -> Result<Stream, Refusal> {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_matches(['[', ']']);
    let tcp = TcpStream::connect((host, url.port().unwrap_or(PORT))).await?;
    let mut stream: Stream = BufReader::new(Box::new(tcp));
    let info = line(&mut stream).await?;
    let info = info.strip_prefix("INFO ").unwrap_or_default();
    let info: Info = serde_json::from_str(info)
        .map_err(|_| Refusal::Connection("it is not a NATS server".to_owned()))?;
    let is_encrypted = url.scheme() == "tls" || info.tls_required;
    if is_encrypted {
        if !info.tls_required && !info.tls_available {
            return Err(Refusal::Connection("it offers no TLS".to_owned()));
        }
        stream = encrypted(stream, host).await?;
    }
    if !header.is_empty() && !info.headers {
        return Err(Refusal::Message("it takes no headers".to_owned()));
    }
    let (size, most) = (header.len() + message.data.len(), info.max_payload);
    if size > most {
        let why = format!("the message has {size} bytes, and it takes {most}");
        return Err(Refusal::Message(why));
    }
    let connect = connect(url, message, &info, is_encrypted)?;
    let connect = serde_json::to_string(&connect)
        .map_err(|_| Refusal::Message("no text for CONNECT".to_owned()))?;
    say(&mut stream, &format!("CONNECT {connect}\r\nPING\r\n")).await?;
    pong(&mut stream).await.map_err(Refusal::Connection)?;
    Ok(stream)
}

/// Sends the message, and waits until the server has read it.
async fn tell(stream: &mut Stream, message: &Published, header: &str) -> Result<(), String> {
    let (subject, data) = (&message.subject, &message.data);
    let (length, size) = (header.len(), header.len() + data.len());
    let text = match header.is_empty() {
        true => format!("PUB {subject} {size}\r\n{data}\r\nPING\r\n"),
        false => format!("HPUB {subject} {length} {size}\r\n{header}{data}\r\nPING\r\n"),
    };
    say(stream, &text).await.map_err(|e| e.to_string())?;
    pong(stream).await
}

async fn encrypted(stream: Stream, host: &str) -> Result<Stream, Refusal> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| Refusal::Connection("its name cannot be in a certificate".to_owned()))?;
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream.into_inner()).await?;
    Ok(BufReader::new(Box::new(stream)))
}

fn connect(
    url: &Url,
    message: &Published,
    info: &Info,
    tls_required: bool,
) -> Result<Connect, Refusal> {
    let mut connect = Connect {
        tls_required,
        headers: true,
        protocol: 1,
        name: "tiphys-notifications",
        lang: "rust",
        version: env!("CARGO_PKG_VERSION"),
        ..Connect::default()
    };
    // As NATS' own client: who is in the URL counts before any other.
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    if let Some(password) = url.password() {
        (connect.user, connect.pass) = (plain(url.username()), plain(password));
        return Ok(connect);
    }
    if !url.username().is_empty() {
        connect.auth_token = plain(url.username());
        return Ok(connect);
    }
    connect.user.clone_from(&message.username);
    connect.pass.clone_from(&message.password);
    if !message.nkey.is_empty() {
        let key = nkey::Key::of_seed(&message.nkey).map_err(Refusal::Message)?;
        connect.nkey = key.public();
        connect.sig = URL_SAFE_NO_PAD.encode(key.sign(info.nonce.as_bytes()));
    }
    Ok(connect)
}

async fn say(stream: &mut Stream, text: &str) -> std::io::Result<()> {
    stream.write_all(text.as_bytes()).await?;
    stream.flush().await
}

/// Reads until the server has answered a PING.
async fn pong(stream: &mut Stream) -> Result<(), String> {
    loop {
        let line = line(stream).await.map_err(|e| e.to_string())?;
        if line == "PONG" {
            return Ok(());
        }
        if line == "PING" {
            say(stream, "PONG\r\n").await.map_err(|e| e.to_string())?;
        } else if let Some(error) = line.strip_prefix("-ERR") {
            let error = error.trim().trim_matches('\'');
            return Err(error.chars().take(SHOWN).collect());
        }
    }
}

async fn line(stream: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<String> {
    let mut line = String::new();
    stream.take(LINE).read_line(&mut line).await?;
    match line.strip_suffix('\n') {
        Some(line) => Ok(line.trim_end().to_owned()),
        None => Err(std::io::Error::other("the connection ended")),
    }
}

#[cfg(test)]
mod tests;

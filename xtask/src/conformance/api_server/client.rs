//! Sends recorded requests as they were sent: HTTP/1.1 and gRPC over loopback. Main functions:
//! [`http`] and [`grpc`].

use anyhow::{Context, bail};
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{net::SocketAddr, time::Duration};
use tokio::{net::TcpStream, time::Instant};

/// The host that was recorded.
pub const HOST: &str = "argocd.example.com";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request as it is sent.
pub struct Sent {
    pub method: String,
    /// With its query.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    /// The lines that are read of a stream, and for how long.
    pub read: Option<(usize, Duration)>,
}

/// An answer; the status is missing if none came in time.
#[derive(Default)]
pub struct Received {
    pub status: Option<u16>,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

pub async fn http(server: SocketAddr, sent: Sent) -> anyhow::Result<Received> {
    let stream = TcpStream::connect(server).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .context("no connection")?;
    let driven = tokio::spawn(connection);
    let mut request = Request::builder()
        .method(sent.method.as_str())
        .uri(&sent.target);
    if !sent
        .headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        request = request.header("Host", HOST);
    }
    for (name, value) in &sent.headers {
        request = request.header(name, value);
    }
    let body = Full::new(Bytes::from(sent.body.unwrap_or_default()));
    let request = request.body(body).context("no valid request")?;
    let patience = sent.read.map_or(PATIENCE, |(_, patience)| patience);
    let end = Instant::now() + patience;
    let answer = tokio::time::timeout_at(end, sender.send_request(request)).await;
    let received = match answer {
        Err(_) if sent.read.is_some() => Received::default(),
        Err(_) => bail!("no answer within {} s", patience.as_secs()),
        Ok(answer) => {
            let (parts, body) = answer?.into_parts();
            let lines = sent.read.map(|(lines, _)| lines);
            Received {
                status: Some(parts.status.as_u16()),
                headers: texts(&parts.headers),
                body: read(body, lines, end).await?,
            }
        }
    };
    driven.abort();
    Ok(received)
}

/// The body, or that many lines of it, or what came until then.
async fn read(mut body: Incoming, lines: Option<usize>, end: Instant) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let frame = match tokio::time::timeout_at(end, body.frame()).await {
            Err(_) if lines.is_some() => break,
            Err(_) => bail!("the answer does not end"),
            Ok(None) => break,
            Ok(Some(frame)) => frame?,
        };
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if let Some(lines) = lines {
            let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n');
            if let Some((last, _)) = ends.take(lines).nth(lines.saturating_sub(1)) {
                bytes.truncate(last + 1);
                break;
            }
        }
    }
    Ok(bytes)
}

fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let pairs = headers.iter();
    pairs
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect()
}

/// The answer to a gRPC call.
#[derive(Default)]
pub struct Reply {
    pub code: Option<i64>,
    pub message: String,
    pub messages: Vec<Bytes>,
}

/// Sends messages to a method of a service, with metadata.
pub async fn grpc(
    server: SocketAddr,
    method: &str,
    metadata: &[(String, String)],
    messages: &[Vec<u8>],
) -> anyhow::Result<Reply> {
    let stream = TcpStream::connect(server).await?;
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.context("no connection")?;
    let driven = tokio::spawn(connection);
    let mut request = Request::post(format!("http://{HOST}{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for (name, value) in metadata {
        request = request.header(name, value);
    }
    let mut body = BytesMut::new();
    for message in messages {
        body.extend_from_slice(&[0]);
        body.extend_from_slice(&u32::try_from(message.len())?.to_be_bytes());
        body.extend_from_slice(message);
    }
    let request = request
        .body(Full::new(body.freeze()))
        .context("no valid request")?;
    let end = Instant::now() + Duration::from_secs(3);
    let mut reply = Reply::default();
    if let Ok(answer) = tokio::time::timeout_at(end, sender.send_request(request)).await {
        let (parts, mut body) = answer?.into_parts();
        reply.status(&parts.headers);
        let mut bytes = BytesMut::new();
        while let Ok(Some(frame)) = tokio::time::timeout_at(end, body.frame()).await {
            match frame?.into_data() {
                Ok(data) => bytes.extend_from_slice(&data),
                Err(other) => {
                    if let Ok(trailers) = other.into_trailers() {
                        reply.status(&trailers);
                    }
                }
            }
        }
        while bytes.len() >= 5 {
            let length = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]) as usize;
            if bytes.len() < 5 + length {
                break;
            }
            bytes.advance(5);
            reply.messages.push(bytes.split_to(length).freeze());
        }
    }
    driven.abort();
    Ok(reply)
}

impl Reply {
    fn status(&mut self, headers: &HeaderMap) {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(code) = text("grpc-status").and_then(|code| code.parse().ok()) {
            self.code = Some(code);
        }
        if let Some(message) = text("grpc-message") {
            self.message = tiphys_rpc::table::percent_decode(message);
        }
    }
}

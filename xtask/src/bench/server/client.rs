//! Requests over a connection that stays open, whose answers are read to their end and thrown away:
//! the client is the same for both servers, and cheap. Main type: [`Client`].

use anyhow::{Context, ensure};
use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use std::{net::SocketAddr, time::Duration};
use tiphys_api::rpc::application::ApplicationQuery;
use tokio::{net::TcpStream, runtime::Runtime};

const PATIENCE: Duration = Duration::from_secs(120);
/// How much of an answer is kept for an error.
const BEGINNING: usize = 300;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// A GET of this path.
    Rest(String),
    /// A method of the service of Applications.
    Grpc(&'static str, Box<ApplicationQuery>),
}

/// One connection for each of the two protocols; that of gRPC is opened when it is needed.
pub struct Client {
    server: SocketAddr,
    token: String,
    rest: http1::SendRequest<Full<Bytes>>,
    grpc: Option<http2::SendRequest<Full<Bytes>>>,
    runtime: Runtime,
}

impl Client {
    /// # Errors
    /// If the server cannot be reached.
    pub fn connect(server: SocketAddr, token: &str) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let rest = runtime.block_on(rest(server))?;
        Ok(Self {
            server,
            token: token.to_owned(),
            rest,
            grpc: None,
            runtime,
        })
    }

    /// The size of the answer.
    ///
    /// # Errors
    /// If it is not a success.
    pub fn ask(&mut self, ask: &Ask) -> anyhow::Result<usize> {
        let Self {
            server,
            token,
            rest,
            grpc,
            runtime,
        } = self;
        runtime.block_on(async {
            let answer = async {
                match ask {
                    Ask::Rest(path) => get(rest, *server, token, path).await,
                    Ask::Grpc(method, query) => {
                        if grpc.is_none() {
                            *grpc = Some(open(*server).await?);
                        }
                        let sender = grpc.as_mut().context("it was opened")?;
                        call(sender, *server, token, method, query).await
                    }
                }
            };
            let answer = tokio::time::timeout(PATIENCE, answer).await;
            answer.with_context(|| format!("no answer within {} s", PATIENCE.as_secs()))?
        })
    }
}

async fn connected(server: SocketAddr) -> anyhow::Result<TokioIo<TcpStream>> {
    let stream = TcpStream::connect(server).await?;
    // Otherwise a small request may wait for the acknowledgement of the one before.
    stream.set_nodelay(true)?;
    Ok(TokioIo::new(stream))
}

/// A connection for HTTP/1.1.
pub async fn rest(server: SocketAddr) -> anyhow::Result<http1::SendRequest<Full<Bytes>>> {
    let stream = connected(server).await?;
    let (sender, connection) = http1::handshake::<_, Full<Bytes>>(stream).await?;
    tokio::spawn(connection);
    Ok(sender)
}

async fn open(server: SocketAddr) -> anyhow::Result<http2::SendRequest<Full<Bytes>>> {
    let stream = connected(server).await?;
    let executor = TokioExecutor::new();
    let (sender, connection) = http2::handshake::<_, _, Full<Bytes>>(executor, stream).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// A GET with the token.
///
/// # Errors
/// If the path is none.
pub fn request(
    server: SocketAddr,
    token: &str,
    path: &str,
    accept: &str,
) -> anyhow::Result<Request<Full<Bytes>>> {
    let request = Request::get(path)
        .header("host", server.to_string())
        .header("authorization", format!("Bearer {token}"))
        .header("accept", accept)
        .body(Full::new(Bytes::new()))?;
    Ok(request)
}

async fn get(
    sender: &mut http1::SendRequest<Full<Bytes>>,
    server: SocketAddr,
    token: &str,
    path: &str,
) -> anyhow::Result<usize> {
    sender.ready().await?;
    let request = request(server, token, path, "application/json")?;
    let (parts, body) = sender.send_request(request).await?.into_parts();
    let read = read(body).await?;
    ensure!(
        parts.status.is_success(),
        "GET {path}: {} {}",
        parts.status,
        String::from_utf8_lossy(&read.beginning)
    );
    Ok(read.size)
}

async fn call(
    sender: &mut http2::SendRequest<Full<Bytes>>,
    server: SocketAddr,
    token: &str,
    method: &str,
    query: &ApplicationQuery,
) -> anyhow::Result<usize> {
    sender.ready().await?;
    let path = format!("http://{server}/application.ApplicationService/{method}");
    let request = Request::post(path)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("token", token)
        .body(Full::new(framed(query)?))?;
    let (parts, body) = sender.send_request(request).await?.into_parts();
    let read = read(body).await?;
    // An answer without a message has its status in the headers.
    let told = read.trailers.as_ref().unwrap_or(&parts.headers);
    let text = |name: &str| told.get(name).and_then(|value| value.to_str().ok());
    ensure!(
        text("grpc-status") == Some("0"),
        "{method}: {} {:?} {}",
        parts.status,
        text("grpc-status"),
        text("grpc-message").unwrap_or_default()
    );
    Ok(read.size)
}

/// A message as gRPC sends it: not compressed, with its length.
fn framed(query: &ApplicationQuery) -> anyhow::Result<Bytes> {
    let message = query.encode_to_vec();
    let mut bytes = BytesMut::with_capacity(5 + message.len());
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.len())?);
    bytes.put_slice(&message);
    Ok(bytes.freeze())
}

/// What is left of an answer that was read.
#[derive(Default)]
struct Read {
    size: usize,
    beginning: Vec<u8>,
    trailers: Option<HeaderMap>,
}

async fn read(mut body: Incoming) -> anyhow::Result<Read> {
    let mut read = Read::default();
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => {
                read.size += data.len();
                let left = BEGINNING.saturating_sub(read.beginning.len());
                read.beginning
                    .extend_from_slice(&data[..left.min(data.len())]);
            }
            Err(other) => read.trailers = other.into_trailers().ok(),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_length_before_it() {
        let query = ApplicationQuery {
            name: Some("web".to_owned()),
            ..ApplicationQuery::default()
        };
        let bytes = framed(&query).expect("short");
        assert_eq!(bytes[..], *b"\0\0\0\0\x05\x0a\x03web");
        let none = framed(&ApplicationQuery::default()).expect("short");
        assert_eq!(none[..], [0_u8; 5]);
    }
}

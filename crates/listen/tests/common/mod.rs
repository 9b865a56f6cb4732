//! A server on loopback, and misbehaving clients.

#![allow(dead_code)]

use bytes::Bytes;
use futures::stream;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody, combinators::BoxBody};
use std::{convert::Infallible, net::SocketAddr, time::Duration};
use tiphys_listen::{Builder, Connections, Limits, Received, Tls, serve};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Timeout to detect hangs, long enough for any machine.
pub const HANGS: Duration = Duration::from_secs(60);

/// Limits under which no client is too slow.
pub fn patient() -> Limits {
    let hour = Duration::from_secs(3600);
    Limits {
        total: 20,
        per_peer: 20,
        handshake: hour,
        headers: hour,
        body: hour,
        idle: hour,
        stalled: hour,
        ping: hour,
        drain: hour,
    }
}

/// A short limit, which clients soon exceed.
pub const SOON: Duration = Duration::from_millis(150);

pub struct World {
    pub address: SocketAddr,
    pub connections: Connections,
    pub stop: DropGuard,
}

impl World {
    pub async fn start(limits: Limits, tls: Option<Tls>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Self::serve(listener, Connections::new(limits), tls)
    }

    pub fn serve(listener: TcpListener, connections: Connections, tls: Option<Tls>) -> Self {
        let address = listener.local_addr().expect("an address");
        let stop = CancellationToken::new();
        let builder = Builder::new(hyper_util::rt::TokioExecutor::new());
        tokio::spawn(serve(
            listener,
            tls,
            builder,
            |request, _| answer(request),
            connections.clone(),
            stop.clone(),
        ));
        Self {
            address,
            connections,
            stop: stop.drop_guard(),
        }
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address)
            .await
            .expect("a connection")
    }

    pub async fn say(&self, text: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.expect("it is sent");
        stream
    }

    /// Sends one request on its own connection and returns the whole response, which is empty if
    /// there is none.
    pub async fn ask(&self, text: &str) -> String {
        let mut stream = self.say(text).await;
        let mut answer = Vec::new();
        // A reset connection also ends the response.
        let _ = tokio::time::timeout(HANGS, stream.read_to_end(&mut answer))
            .await
            .expect("an answer, or an end");
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub async fn is_well(&self) {
        let answer = self
            .ask("GET /small HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            .await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
    }

    /// Waits until this many connections are open.
    pub async fn until_open(&self, count: usize) {
        let reached = async {
            while self.connections.open() != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let why = || format!("{} are open, not {count}", self.connections.open());
        tokio::time::timeout(HANGS, reached)
            .await
            .unwrap_or_else(|_| panic!("{}", why()));
    }
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

async fn answer(request: Request<Received>) -> Answer {
    let path = request.uri().path().to_owned();
    let body = match path.as_str() {
        "/endless" => StreamBody::new(stream::repeat_with(|| {
            Ok(Frame::data(Bytes::from(vec![b'x'; 64 << 10])))
        }))
        .boxed(),
        // Like a watch without events.
        "/quiet" => StreamBody::new(stream::pending()).boxed(),
        "/read" => match request.into_body().collect().await {
            Ok(all) => http_body_util::Full::new(all.to_bytes()).boxed(),
            Err(e) => return status(StatusCode::REQUEST_TIMEOUT, &e.to_string()),
        },
        _ => return status(StatusCode::OK, "small"),
    };
    Response::new(body)
}

fn status(status: StatusCode, text: &str) -> Answer {
    let mut response =
        Response::new(http_body_util::Full::new(Bytes::from(text.to_owned())).boxed());
    *response.status_mut() = status;
    response
}

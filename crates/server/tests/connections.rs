//! Idle connections of clients that are not logged in. The limits themselves are tested in
//! `tiphys-listen`.

use crate::common;

use common::World;
use http::Method;
use std::time::Duration;
use tiphys_server::Options;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const HANGS: Duration = Duration::from_secs(60);

#[tokio::test]
async fn strangers_keep_nobody_out() {
    let soon = Duration::from_millis(200);
    let limits = tiphys_listen::Limits {
        total: 30,
        per_peer: 30,
        headers: soon,
        body: soon,
        idle: soon,
        ..Default::default()
    };
    let world = World::start()
        .await
        .again(Options {
            connections: limits,
            ..Options::default()
        })
        .await;
    let body = "POST /api/v1/session HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{";
    let mut strangers = Vec::new();
    for text in ["", "GET /api/ver", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", body]
        .iter()
        .cycle()
        .take(100)
    {
        let mut stream = TcpStream::connect(world.address)
            .await
            .expect("a connection");
        stream.write_all(text.as_bytes()).await.expect("it is sent");
        strangers.push(stream);
    }
    assert_eq!(
        world
            .rest(Method::GET, "/api/v1/applications", None)
            .await
            .0,
        200
    );
    assert!(world.connections.open() <= 30);
    for mut stranger in strangers {
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(HANGS, stranger.read_to_end(&mut answer))
            .await
            .expect("it ends");
    }
    let closed = async {
        while world.connections.open() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANGS, closed)
        .await
        .expect("none is left");
}

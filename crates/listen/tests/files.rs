//! A process that cannot open more files. This is a separate binary, because the limit applies to
//! the whole process.

mod common;

use common::{World, patient};
use futures::future::join_all;
use rlimit::Resource;
use tiphys_listen::{Connections, Limits};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

fn files() -> u64 {
    std::fs::read_dir("/proc/self/fd")
        .expect("the system tells")
        .count() as u64
}

#[tokio::test]
async fn without_file_descriptors_silent_connections_make_room() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    // All connections wait in the socket's queue; the one with a request is the last.
    let silent = join_all((0..60).map(|_| TcpStream::connect(address))).await;
    let mut client = TcpStream::connect(address).await.expect("a connection");
    client
        .write_all(b"GET /small HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .await
        .expect("it is sent");
    let connections = Connections::new(Limits {
        total: 100,
        per_peer: 100,
        ..patient()
    });
    let (_, hard) = Resource::NOFILE.get().expect("a limit");
    Resource::NOFILE
        .set(files() + 8, hard)
        .expect("a lower limit");
    let world = World::serve(listener, connections, None);
    let mut answer = Vec::new();
    tokio::time::timeout(common::HANGS, client.read_to_end(&mut answer))
        .await
        .expect("an answer")
        .expect("it is read");
    assert!(
        answer.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    drop(silent);
    world.until_open(0).await;
}

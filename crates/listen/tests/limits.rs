//! Clients that keep connections open without using them.

mod common;

use common::{HANGS, SOON, World, patient};
use futures::future::join_all;
use std::{sync::Arc, time::Duration};
use tiphys_listen::{Limits, Tls};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

fn tls(redirects: bool) -> Tls {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions");
    let config = config
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("it is used");
    Tls {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        redirects,
    }
}

#[tokio::test]
async fn plain_http_is_sent_to_the_right_address() {
    let plain = "GET /small?a=1 HTTP/1.1\r\nhost: cd.example.com:8443\r\nconnection: close\r\n\r\n";
    let world = World::start(patient(), Some(tls(true))).await;
    let answer = world.ask(plain).await.to_lowercase();
    assert!(
        answer.starts_with("http/1.1 307 temporary redirect\r\n")
            && answer.contains("\r\nlocation: https://cd.example.com:8443/small?a=1\r\n"),
        "{answer}"
    );
    // The kinds of servers that nobody opens in a browser do not answer.
    let world = World::start(patient(), Some(tls(false))).await;
    let answer = world.ask(plain).await;
    assert!(!answer.contains("HTTP/1.1"), "{answer}");
}

#[tokio::test]
async fn silent_connections_make_room() {
    let world = World::start(patient(), None).await;
    let silent = join_all((0..70).map(|_| world.connect())).await;
    world.until_open(20).await;
    for _ in 0..5 {
        world.is_well().await;
    }
    assert!(world.connections.open() <= 20);
    drop(silent);
    world.until_open(0).await;
}

#[tokio::test]
async fn a_connection_must_ask_something() {
    let world = World::start(
        Limits {
            headers: SOON,
            ..patient()
        },
        None,
    )
    .await;
    // No data; the start of a request; the start of HTTP/2, with and without an end.
    let says = [
        "",
        "GET / HT",
        "PRI * HTTP/2.0\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ];
    let silent = join_all(says.iter().cycle().take(16).map(|text| world.say(text))).await;
    world.is_well().await;
    world.until_open(0).await;
    drop(silent);
}

#[tokio::test]
async fn headers_may_not_come_byte_by_byte() {
    let world = World::start(
        Limits {
            headers: SOON,
            ..patient()
        },
        None,
    )
    .await;
    let drip = |mut stream: tokio::net::TcpStream| async move {
        let request = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}", "y".repeat(100_000));
        for byte in request.bytes() {
            if stream.write_all(&[byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        panic!("all of it was taken");
    };
    let dripping: Vec<_> = join_all((0..10).map(|_| world.connect()))
        .await
        .into_iter()
        .map(|s| tokio::spawn(drip(s)))
        .collect();
    world.is_well().await;
    for one in dripping {
        tokio::time::timeout(HANGS, one)
            .await
            .expect("it is ended")
            .expect("it was not taken");
    }
    world.until_open(0).await;
}

#[tokio::test]
async fn a_handshake_must_end() {
    let world = World::start(
        Limits {
            handshake: SOON,
            ..patient()
        },
        Some(tls(true)),
    )
    .await;
    // No data, and the start of a ClientHello.
    let silent = join_all(
        ["", "\x16\x03\x01\x02\x00\x01"]
            .iter()
            .cycle()
            .take(16)
            .map(|text| world.say(text)),
    )
    .await;
    world.until_open(0).await;
    drop(silent);
    // Connections in their handshake are also closed to make room.
    let world = World::start(
        Limits {
            total: 4,
            ..patient()
        },
        Some(tls(false)),
    )
    .await;
    let silent = join_all((0..30).map(|_| world.connect())).await;
    world.until_open(4).await;
    drop(silent);
    world.until_open(0).await;
}

#[tokio::test]
async fn a_body_must_come() {
    let world = World::start(
        Limits {
            body: SOON,
            ..patient()
        },
        None,
    )
    .await;
    let part = "POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nsome";
    let answers = join_all((0..10).map(|_| world.ask(part))).await;
    for answer in answers {
        assert!(
            answer.starts_with("HTTP/1.1 408")
                && answer.contains("the body was not received within"),
            "{answer:?}"
        );
    }
    let whole = world
        .ask("POST /read HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 4\r\n\r\nsome")
        .await;
    assert!(whole.starts_with("HTTP/1.1 200"), "{whole:?}");
    world.until_open(0).await;
}

#[tokio::test]
async fn incomplete_bodies_make_room() {
    let world = World::start(patient(), None).await;
    let part = "POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nsome";
    let stopped = join_all((0..70).map(|_| world.say(part))).await;
    world.until_open(20).await;
    world.is_well().await;
    drop(stopped);
}

#[tokio::test]
async fn an_answer_must_be_read() {
    let world = World::start(
        Limits {
            stalled: SOON,
            ..patient()
        },
        None,
    )
    .await;
    let mut readers =
        join_all((0..10).map(|_| world.say("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n"))).await;
    for reader in &mut readers {
        reader.read_exact(&mut [0; 100]).await.expect("a beginning");
    }
    world.is_well().await;
    world.until_open(0).await;
}

#[tokio::test]
async fn who_reads_slowly_goes_on() {
    let stalled = Duration::from_secs(3);
    let world = World::start(
        Limits {
            stalled,
            ..patient()
        },
        None,
    )
    .await;
    let mut slow = world.say("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut buffer = vec![0; 1 << 20];
    // Longer than the limit in total.
    for _ in 0..40 {
        slow.read_exact(&mut buffer).await.expect("more");
        tokio::time::sleep(stalled / 30).await;
    }
    assert_eq!(world.connections.open(), 1);
}

#[tokio::test]
async fn unused_connections_end_and_quiet_streams_do_not() {
    let limits = Limits {
        headers: SOON,
        idle: SOON,
        stalled: SOON,
        total: 2,
        ..patient()
    };
    let world = World::start(limits, None).await;
    let mut quiet = world.say("GET /quiet HTTP/1.1\r\nhost: a\r\n\r\n").await;
    quiet
        .read_exact(&mut [0; 12])
        .await
        .expect("the headers come at once");
    for _ in 0..5 {
        let mut unused = world.say("GET /small HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let mut answer = Vec::new();
        // The connection is closed although the client would keep it.
        tokio::time::timeout(HANGS, unused.read_to_end(&mut answer))
            .await
            .expect("an end")
            .expect("it is not reset");
        assert!(answer.starts_with(b"HTTP/1.1 200"));
    }
    world.until_open(1).await;
    // A connection in use is not closed.
    let mut second = world.say("GET /quiet HTTP/1.1\r\nhost: a\r\n\r\n").await;
    second
        .read_exact(&mut [0; 12])
        .await
        .expect("the headers come at once");
    assert_eq!(
        world.ask("GET /small HTTP/1.1\r\nhost: a\r\n\r\n").await,
        ""
    );
    drop((quiet, second));
    world.until_open(0).await;
    world.is_well().await;
}

#[tokio::test]
async fn shutting_down_ends_what_is_silent_and_what_does_not_end() {
    let world = World::start(
        Limits {
            drain: SOON,
            ..patient()
        },
        None,
    )
    .await;
    let open = [
        world.connect().await,
        world.say("GET /quiet HTTP/1.1\r\nhost: a\r\n\r\n").await,
    ];
    world.until_open(2).await;
    let World {
        connections, stop, ..
    } = world;
    drop(stop);
    let ended = async {
        while connections.open() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANGS, ended).await.expect("they end");
    drop(open);
}

/// A connection from another loopback address.
async fn from(world: &World, peer: &str, text: &str) -> tokio::net::TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    let address = format!("{peer}:0").parse().expect("an address");
    socket.bind(address).expect("a loopback address");
    let mut stream = socket.connect(world.address).await.expect("a connection");
    stream.write_all(text.as_bytes()).await.expect("it is sent");
    stream
}

#[tokio::test]
async fn one_peer_does_not_take_the_places_of_others() {
    const QUIET: &str = "GET /quiet HTTP/1.1\r\nhost: a\r\n\r\n";
    let world = World::start(
        Limits {
            per_peer: 3,
            ..patient()
        },
        None,
    )
    .await;
    let silent = join_all((0..10).map(|_| from(&world, "127.0.0.2", ""))).await;
    world.until_open(3).await;
    drop(silent);
    world.until_open(0).await;
    // Those in use are not closed for more from the same peer.
    let mut busy = join_all((0..3).map(|_| from(&world, "127.0.0.2", QUIET))).await;
    for one in &mut busy {
        one.read_exact(&mut [0; 12]).await.expect("the headers");
    }
    let mut more = from(&world, "127.0.0.2", QUIET).await;
    let mut answer = Vec::new();
    let ended = tokio::time::timeout(HANGS, more.read_to_end(&mut answer)).await;
    drop(ended.expect("an end"));
    assert!(answer.is_empty(), "{answer:?}");
    world.is_well().await;
    assert_eq!(world.connections.open(), 3);
}

#[tokio::test]
async fn a_client_that_answers_no_ping_is_gone() {
    // The beginning of HTTP/2 and empty settings.
    let begin = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let world = World::start(patient(), None).await;
    let patiently = world.say(begin).await;
    let hasty = World::start(
        Limits {
            ping: SOON,
            ..patient()
        },
        None,
    )
    .await;
    let silent = join_all((0..5).map(|_| hasty.say(begin))).await;
    hasty.until_open(0).await;
    assert_eq!(world.connections.open(), 1);
    drop((silent, patiently));
    hasty.is_well().await;
}

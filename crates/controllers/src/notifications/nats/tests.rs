//! A NATS server on the loopback interface, which says what it is told to.

use super::*;
use tiphys_testkit::nats_server::NatsServer;
use tokio::{net::TcpListener, task::JoinHandle};

/// One connection: `info`, then a line of `answers` for each PING. Returns what was read.
async fn server(info: &'static str, answers: &'static [&'static str]) -> (u16, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let (mut read, mut answers) = (String::new(), answers.iter());
        let info = format!("INFO {info}\r\n");
        writer.write_all(info.as_bytes()).await.expect("written");
        loop {
            let before = read.len();
            let length = reader.read_line(&mut read).await.expect("text");
            if length == 0 {
                return read;
            }
            if read[before..].trim() == "PING" {
                let Some(answer) = answers.next() else {
                    return read;
                };
                let answer = format!("{answer}\r\n");
                writer.write_all(answer.as_bytes()).await.expect("written");
            }
        }
    });
    (port, task)
}

fn message(url: &str) -> Published {
    Published {
        url: url.to_owned(),
        nkey: String::new(),
        username: String::new(),
        password: String::new(),
        headers: Vec::new(),
        subject: "apps.shop".to_owned(),
        data: "shop is\nwell".to_owned(),
    }
}

const WELL: &[&str] = &["PONG", "PONG"];

/// What CONNECT said, and what came behind the first PING.
async fn sent(
    info: &'static str,
    answers: &'static [&'static str],
    of: impl Fn(u16) -> Published,
) -> (Result<(), String>, serde_json::Value, String) {
    let (port, task) = server(info, answers).await;
    let result = publish(&of(port)).await;
    let read = task.await.expect("read");
    let (first, rest) = read.split_once("\r\n").unwrap_or((&read, ""));
    let said = first.strip_prefix("CONNECT ").unwrap_or("null");
    let rest = rest.strip_prefix("PING\r\n").unwrap_or(rest);
    (
        result,
        serde_json::from_str(said).expect("JSON"),
        rest.to_owned(),
    )
}

#[tokio::test]
async fn a_message_is_published_and_its_reading_waited_for() {
    let plain = |port| message(&format!("nats://127.0.0.1:{port}"));
    let (result, said, rest) = sent("{}", WELL, plain).await;
    assert_eq!(result, Ok(()));
    assert_eq!(rest, "PUB apps.shop 12\r\nshop is\nwell\r\nPING\r\n");
    let expected = serde_json::json!({
        "verbose": false, "pedantic": false, "tls_required": false, "headers": true,
        "protocol": 1, "name": "tiphys-notifications", "lang": "rust",
        "version": env!("CARGO_PKG_VERSION"),
    });
    assert_eq!(said, expected);
    let with_headers = |port| Published {
        headers: vec![("A".into(), "1".into()), ("Team".into(), "web".into())],
        ..message(&format!("127.0.0.1:{port}"))
    };
    // A server asks, too.
    let (result, _, rest) = sent(
        r#"{"headers": true}"#,
        &["PONG", "PING\r\nPONG"],
        with_headers,
    )
    .await;
    assert_eq!(result, Ok(()));
    let header = "NATS/1.0\r\nA: 1\r\nTeam: web\r\n\r\n";
    let expected = format!(
        "HPUB apps.shop {} {}\r\n{header}shop is\nwell\r\nPING\r\n",
        header.len(),
        header.len() + 12
    );
    assert!(rest.starts_with(&expected), "{rest:?}");
}

#[tokio::test]
async fn a_client_says_who_it_is() {
    // Key, public key and signature come from NATS' own Go library (nkeys 0.4.7).
    const SEED: &str = "SUADAMJSGM2DKNRXHA4WCYTDMRSWMMBRGIZTINJWG44DSYLCMNSGKZRF4M";
    const PUBLIC: &str = "UAR3YVERFQPG5EWEVBUCLSDH4J773RKVX755IJCPC6RGVP7752LF22PY";
    const SIGNED: &str =
        "jBTaPuX11YFn8bl7SXxzHicgJUR90utc-nEW_pcKIvWjo6kYH2hiSo5PsIutyaJTBReKCPcOE-sww_MqKYCvBA";
    let info = r#"{"nonce": "nonce-1"}"#;
    type Case<'a> = (
        &'a str,
        (&'a str, &'a str),
        &'a str,
        &'a [(&'a str, &'a str)],
    );
    let cases: [Case<'_>; 5] = [
        ("", ("", ""), SEED, &[("nkey", PUBLIC), ("sig", SIGNED)]),
        ("", ("u", "p"), "", &[("user", "u"), ("pass", "p")]),
        (
            "a%40b:c%2Fd@",
            ("", ""),
            "",
            &[("user", "a@b"), ("pass", "c/d")],
        ),
        ("tok%3Den@", ("", ""), "", &[("auth_token", "tok=en")]),
        ("x:y@", ("u", "p"), SEED, &[("user", "x"), ("pass", "y")]),
    ];
    for (in_url, (username, password), nkey, expected) in cases {
        let of = |port| Published {
            username: username.into(),
            password: password.into(),
            nkey: nkey.into(),
            ..message(&format!("nats://{in_url}127.0.0.1:{port}"))
        };
        let (result, said, _) = sent(info, WELL, of).await;
        assert_eq!(result, Ok(()));
        for name in ["user", "pass", "auth_token", "nkey", "sig"] {
            let wanted = expected.iter().find(|(own, _)| *own == name);
            assert_eq!(
                said[name].as_str(),
                wanted.map(|(_, value)| *value),
                "{in_url} {name}"
            );
        }
    }
}

/// Each is a failure that is told without a secret, whenever the server says so.
#[tokio::test]
async fn what_was_not_taken_is_told() {
    let cases: [(&'static str, &'static [&'static str], &str); 7] = [
        (
            "{}",
            &["-ERR 'Authorization Violation'"],
            "Authorization Violation",
        ),
        (
            "{}",
            &[
                "PONG",
                "-ERR 'Permissions Violation for Publish to \"apps.shop\"'",
            ],
            "Permissions Violation for Publish to \"apps.shop\"",
        ),
        ("{}", &["PONG"], "the connection ended"),
        ("{}", &[], "the connection ended"),
        ("nonsense", WELL, "it is not a NATS server"),
        (
            r#"{"max_payload": 11}"#,
            WELL,
            "the message has 12 bytes, and it takes 11",
        ),
        ("{}", WELL, "it offers no TLS"),
    ];
    for (info, answers, expected) in cases {
        let scheme = if expected.contains("TLS") {
            "tls"
        } else {
            "nats"
        };
        let of = |port| message(&format!("{scheme}://u:s3cret@127.0.0.1:{port}"));
        let (result, ..) = sent(info, answers, of).await;
        let told = result.expect_err(expected);
        assert_eq!(told, format!("127.0.0.1: {expected}"));
    }
    for (url, nkey, headers, expected) in [
        (
            "ws://127.0.0.1",
            "",
            vec![],
            "ws:// is not supported; use nats:// or tls://",
        ),
        (
            "nats://",
            "",
            vec![],
            "url is not an address of a NATS server, such as nats://nats:4222",
        ),
        (
            "nats://127.0.0.1",
            "",
            vec![("a".to_owned(), "b\r\nPUB x 0".to_owned())],
            "the header \"a\" has characters that end it",
        ),
    ] {
        let message = Published {
            nkey: nkey.to_owned(),
            headers,
            ..message(url)
        };
        assert_eq!(publish(&message).await, Err(expected.to_owned()), "{url}");
    }
    for seed in [
        "SUA",
        "x",
        "UAR3YVERFQPG5EWEVBUCLSDH4J773RKVX755IJCPC6RGVP7752LF22PY",
        "SUADAMJSGM2DKNRXHA4WCYTDMRSWMMBRGIZTINJWG44DSYLCMNSGKZRF4A",
    ] {
        let told = nkey::Key::of_seed(seed).map(drop);
        assert_eq!(
            told,
            Err("nkey is not the seed of a key".to_owned()),
            "{seed}"
        );
    }
}

#[tokio::test]
async fn another_server_is_tried_but_not_another_time() {
    let (port, task) = server("{}", WELL).await;
    let url = format!("nats://127.0.0.1:1, nats://127.0.0.1:{port}");
    assert_eq!(publish(&message(&url)).await, Ok(()));
    assert!(task.await.expect("read").contains("PUB apps.shop 12"));
    // The first may have taken it: it refuses, hangs up, or says nothing any more.
    let cases: [(&'static [&'static str], &str); 3] = [
        (&["PONG", "-ERR 'no'"], "no"),
        (&["PONG"], "the connection ended"),
        (&["PONG", ""], "no answer within 10 s"),
    ];
    for (answers, told) in cases {
        let (first, one) = server("{}", answers).await;
        let (second, other) = server("{}", WELL).await;
        let url = format!("nats://127.0.0.1:{first},nats://127.0.0.1:{second}");
        let result = publish(&message(&url)).await;
        assert_eq!(result, Err(format!("127.0.0.1: {told}")));
        assert!(one.await.expect("read").contains("PUB apps.shop 12"));
        assert!(!other.is_finished());
        other.abort();
    }
}

/// Debian's server: a password, a key, headers, and what a user may not publish.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_server() {
    const SEED: &str = "SUADAMJSGM2DKNRXHA4WCYTDMRSWMMBRGIZTINJWG44DSYLCMNSGKZRF4M";
    let config = r#"
        max_payload: 1024
        authorization { users = [
            { user: all, password: s3cret }
            { nkey: UAR3YVERFQPG5EWEVBUCLSDH4J773RKVX755IJCPC6RGVP7752LF22PY
              permissions: { publish: "apps.>" } }
        ] }
    "#;
    let dir = std::env::temp_dir().join(format!("tiphys-nats-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let Some(server) = NatsServer::start_or_skip(&dir, config) else {
        return;
    };
    let url = format!("127.0.0.1:{}", server.port());
    let mut subscription = server.listen("all", "s3cret");
    let with_password = Published {
        username: "all".into(),
        password: "s3cret".into(),
        headers: vec![("Team".into(), "web".into())],
        ..message(&url)
    };
    assert_eq!(publish(&with_password).await, Ok(()));
    let got = subscription.message();
    let text = "NATS/1.0\r\nTeam: web\r\n\r\nshop is\nwell".to_owned();
    assert_eq!(got, ("apps.shop".to_owned(), text));
    let with_key = Published {
        nkey: SEED.into(),
        ..message(&url)
    };
    assert_eq!(publish(&with_key).await, Ok(()));
    assert_eq!(subscription.message().1, "shop is\nwell");
    for (refused, told) in [
        (message(&url), "Authorization Violation"),
        (
            Published {
                password: "other".into(),
                ..with_password.clone()
            },
            "Authorization Violation",
        ),
        (
            Published {
                subject: "other".into(),
                ..with_key.clone()
            },
            "Permissions Violation for Publish to \"other\"",
        ),
        (
            Published {
                data: "x".repeat(1025),
                ..with_key.clone()
            },
            "the message has 1025 bytes, and it takes 1024",
        ),
    ] {
        assert_eq!(publish(&refused).await, Err(format!("127.0.0.1: {told}")));
    }
    std::fs::remove_dir_all(dir).expect("removed");
}

//! Clients that are slow, disconnect halfway or send too much: their requests end, and no other
//! client has to wait for them.

use axum::body::Body;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, StreamBody};
use serde_json::json;
use std::convert::Infallible;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tiphys_embedded_kube::auth::{TokenUser, UserInfo};
use tiphys_embedded_kube::{EmbeddedKube, Limits, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn start() -> EmbeddedKube {
    let quick = Duration::from_millis(400);
    let connections = tiphys_listen::Limits {
        headers: quick,
        ping: quick,
        ..tiphys_listen::Limits::default()
    };
    let limits = Limits {
        requests: 1,
        queue: Duration::from_millis(100),
        request: quick,
        connections,
    };
    let user = TokenUser {
        token: "t-ann".into(),
        info: UserInfo::new("ann", &[]),
    };
    let options = Options {
        admin_token: Some("t-admin".into()),
        users: vec![user],
        limits,
        ..Options::default()
    };
    EmbeddedKube::start(options).await.expect("it starts")
}

fn request(method: &str, path: &str, token: &str, body: Body) -> Request<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {token}"));
    request
        .header("content-type", "application/json")
        .body(body)
        .expect("a request")
}

/// A body that never ends. It must not be read when its request is refused.
fn endless(read: Arc<std::sync::atomic::AtomicUsize>) -> Body {
    let stream = futures::stream::unfold((), move |()| {
        let read = read.clone();
        async move {
            read.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            Some((
                Ok::<_, Infallible>(http_body::Frame::data(Bytes::from_static(b" "))),
                (),
            ))
        }
    });
    Body::new(StreamBody::new(stream))
}

#[tokio::test]
async fn what_is_refused_is_not_read_and_what_never_ends_is_ended() {
    let kube = start().await;
    let router = kube.client_router();
    let read = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let refused = router
        .clone()
        .oneshot(request("POST", MAPS, "t-ann", endless(read.clone())))
        .await
        .expect("it answers");
    assert_eq!(
        (
            refused.status().as_u16(),
            read.load(std::sync::atomic::Ordering::SeqCst)
        ),
        (403, 0)
    );
    let begun = Instant::now();
    let late = router
        .clone()
        .oneshot(request("POST", MAPS, "t-admin", endless(read)))
        .await
        .expect("it answers");
    assert_eq!(late.status(), 504);
    assert!(begun.elapsed() < Duration::from_secs(5));
    kube.shutdown().await;
}

#[tokio::test]
async fn more_requests_than_places_wait_and_are_sent_away() {
    let kube = start().await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "ann"},
        "subjects": [{"kind": "User", "name": "ann"}], "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    let router = kube.client_router();
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    let made = router
        .clone()
        .oneshot(request(
            "POST",
            path,
            "t-admin",
            Body::from(role.to_string()),
        ))
        .await
        .expect("it answers");
    assert_eq!(made.status(), 201);
    let read = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let slow = tokio::spawn(router.clone().oneshot(request(
        "POST",
        MAPS,
        "t-ann",
        endless(read.clone()),
    )));
    while read.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let second = router
        .clone()
        .oneshot(request("GET", MAPS, "t-ann", Body::empty()))
        .await
        .expect("it answers");
    assert_eq!(
        (
            second.status().as_u16(),
            second.headers()["retry-after"].to_str().ok()
        ),
        (429, Some("1"))
    );
    // The administrator's requests have a separate limit, and a watch needs no slot.
    assert_eq!(
        router
            .clone()
            .oneshot(request("GET", MAPS, "t-admin", Body::empty()))
            .await
            .expect("it answers")
            .status(),
        200
    );
    assert_eq!(
        slow.await.expect("it ends").expect("it answers").status(),
        504
    );
    let third = router
        .clone()
        .oneshot(request("GET", MAPS, "t-ann", Body::empty()))
        .await
        .expect("it answers");
    assert_eq!(third.status(), 200);
    kube.shutdown().await;
}

#[tokio::test]
async fn large_answers_are_compressed_for_those_who_ask() {
    let kube = start().await;
    let router = kube.client_router();
    let body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"k": "value ".repeat(40_000)}}).to_string();
    let made = router
        .clone()
        .oneshot(request("POST", MAPS, "t-admin", Body::from(body)))
        .await
        .expect("it answers");
    assert_eq!(made.status(), 201);
    let get = |path: &str| {
        let mut request = request("GET", path, "t-admin", Body::empty());
        request.headers_mut().insert(
            "accept-encoding",
            "deflate, gzip;q=0.8".parse().expect("a value"),
        );
        request
    };
    let answer = router
        .clone()
        .oneshot(get(&format!("{MAPS}/large")))
        .await
        .expect("it answers");
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    let zipped = answer
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    assert!(zipped.len() < 20_000, "{}", zipped.len());
    let mut text = String::new();
    flate2::read::GzDecoder::new(zipped.as_ref())
        .read_to_string(&mut text)
        .expect("it is gzip");
    let object: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(object["metadata"]["name"], "large");
    let small = router
        .clone()
        .oneshot(get(&format!("{MAPS}/kube-root-ca.crt")))
        .await
        .expect("it answers");
    assert!(!small.headers().contains_key("content-encoding"));
    let plain = router
        .oneshot(request(
            "GET",
            &format!("{MAPS}/large"),
            "t-admin",
            Body::empty(),
        ))
        .await
        .expect("it answers");
    assert!(!plain.headers().contains_key("content-encoding"));
    kube.shutdown().await;
}

/// A connection over TLS that speaks HTTP/1.1.
async fn connect(address: std::net::SocketAddr) -> TlsStream<TcpStream> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(trust::Anything(provider.clone()));
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions");
    let config = config
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.expect("it connects");
    let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .expect("TLS")
}

/// What comes until the server closes; it must do so soon.
async fn all(stream: &mut TlsStream<TcpStream>) -> String {
    let mut bytes = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut bytes)).await;
    assert!(ended.is_ok(), "the connection ends");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn connections_that_do_nothing_end() {
    let kube = start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    kube.serve(listener);
    // Half a request.
    let mut half = connect(address).await;
    half.write_all(b"GET /api HTTP/1.1\r\nHost: x\r\nAuthor")
        .await
        .expect("it is sent");
    assert!(!all(&mut half).await.contains("200 OK"));
    // Headers, and a body of which one byte comes.
    let mut slow = connect(address).await;
    let head = format!(
        "POST {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t-admin\r\nContent-Length: 100\r\n\r\n{{"
    );
    slow.write_all(head.as_bytes()).await.expect("it is sent");
    let mut start = [0_u8; 12];
    tokio::time::timeout(Duration::from_secs(5), slow.read_exact(&mut start))
        .await
        .expect("in time")
        .expect("an answer");
    assert_eq!(&start, b"HTTP/1.1 504");
    // More headers than any client needs.
    let mut long = connect(address).await;
    let head = format!(
        "GET /version HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n",
        "y".repeat(2 << 20)
    );
    let _ = long.write_all(head.as_bytes()).await;
    let answer = all(&mut long).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
        "{}",
        &answer[..answer.len().min(80)]
    );
    // A path that is longer than that.
    let mut far = connect(address).await;
    let _ = far
        .write_all(format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(100_000)).as_bytes())
        .await;
    let answer = all(&mut far).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 414"),
        "{}",
        &answer[..answer.len().min(80)]
    );
    // Meanwhile others are served.
    let mut good = connect(address).await;
    good.write_all(b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await
        .expect("it is sent");
    assert!(all(&mut good).await.starts_with("HTTP/1.1 200 OK"));
    kube.shutdown().await;
}

#[tokio::test]
async fn silent_connections_keep_nobody_out() {
    let limits = tiphys_listen::Limits {
        total: 20,
        ..tiphys_listen::Limits::default()
    };
    let limits = Limits {
        connections: limits,
        ..Limits::default()
    };
    let kube = EmbeddedKube::start(Options {
        limits,
        ..Options::default()
    })
    .await
    .expect("it starts");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    kube.serve(listener);
    let mut silent = Vec::new();
    for _ in 0..60 {
        // Nothing at all, not even the beginning of a handshake; and nothing after it.
        silent.push(TcpStream::connect(address).await.expect("it connects"));
    }
    let quiet = connect(address).await;
    let mut good = connect(address).await;
    good.write_all(b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await
        .expect("it is sent");
    assert!(all(&mut good).await.starts_with("HTTP/1.1 200 OK"));
    drop((silent, quiet));
    kube.shutdown().await;
}

mod trust {
    //! This test is about HTTP, not certificates.

    use rustls::DigitallySignedStruct;
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::crypto::CryptoProvider;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use std::sync::Arc;

    #[derive(Debug)]
    pub struct Anything(pub Arc<CryptoProvider>);

    impl ServerCertVerifier for Anything {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, rustls::Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
}

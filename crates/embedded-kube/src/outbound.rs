//! Outgoing HTTPS requests to webhooks. Main types: [`Post`], [`Endpoint`]; main function:
//! [`post_all`].
//!
//! A write runs on a single thread from beginning to end, so the caller blocks. Errors have the
//! wording of Go.

use crate::reader::Reader;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use serde_json::Value;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tiphys_apimachinery::Gvr;
use tiphys_gocompat::x509;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The maximum size of a response.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// The target of a request, from `clientConfig`.
#[derive(Debug)]
pub struct Endpoint {
    /// The URL in messages, without the query.
    pub url: String,
    /// Host and port.
    authority: String,
    host: String,
    path: String,
    trust: Arc<RootCertStore>,
    /// Why the target cannot be reached.
    unreachable: Option<String>,
}

/// A request with a JSON body.
#[derive(Debug)]
pub struct Post {
    pub endpoint: Endpoint,
    pub timeout: Duration,
    pub body: Vec<u8>,
}

/// Status, media type and body.
pub type Answer = (u16, String, Bytes);

impl Endpoint {
    /// Parses `clientConfig`. A service is looked up; errors are reported when it is called.
    pub fn read(reader: &dyn Reader, config: &Value) -> Result<Self, String> {
        let trust = Arc::new(trusted(config["caBundle"].as_str().unwrap_or(""))?);
        let service = &config["service"];
        if service.is_object() {
            let text = |field: &str| service[field].as_str().unwrap_or("");
            let port = service["port"].as_i64().unwrap_or(443);
            let host = format!("{}.{}.svc", text("name"), text("namespace"));
            let path = format!("/{}", text("path").trim_start_matches('/'));
            let authority = format!("{host}:{port}");
            let unreachable = Some(nobody(reader, text("namespace"), text("name"), port));
            return Ok(Self {
                url: format!("https://{authority}{path}"),
                authority,
                host,
                path,
                trust,
                unreachable,
            });
        }
        let url = config["url"].as_str().unwrap_or("");
        let rest = url
            .strip_prefix("https://")
            .ok_or_else(|| format!("unsupported protocol scheme in {url:?}"))?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => host,
            _ => authority,
        };
        let with_port = if host.len() == authority.len() {
            format!("{authority}:443")
        } else {
            authority.to_owned()
        };
        let path = if path.is_empty() { "/" } else { path };
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let url = format!("https://{authority}{path}");
        Ok(Self {
            url,
            authority: with_port,
            host,
            path: path.to_owned(),
            trust,
            unreachable: None,
        })
    }
}

/// Why the certificates of a CA bundle cannot be read.
pub fn unreadable(bundle: &str) -> Option<String> {
    if bundle.is_empty() {
        None
    } else {
        trusted(bundle).err()
    }
}

/// The certificates of a CA bundle, or those of the system if there is none.
fn trusted(bundle: &str) -> Result<RootCertStore, String> {
    use base64::Engine;
    let mut store = RootCertStore::empty();
    if bundle.is_empty() {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(store);
    }
    let pem = base64::engine::general_purpose::STANDARD
        .decode(bundle)
        .map_err(|e| e.to_string())?;
    let failed = |why: &str| format!("unable to load root certificates: {why}");
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|_| failed("unable to parse bytes as PEM block"))?;
        store
            .add(certificate)
            .map_err(|_| failed("failed to parse certificate: x509: malformed certificate"))?;
    }
    if store.is_empty() {
        Err(failed("unable to parse bytes as PEM block"))
    } else {
        Ok(store)
    }
}

/// No container runs, so nothing listens behind a service.
fn nobody(reader: &dyn Reader, namespace: &str, name: &str, port: i64) -> String {
    let Ok(service) = reader.get(&Gvr::new("", "v1", "services"), namespace, name) else {
        return format!("service \"{name}\" not found");
    };
    let ip = service.str_at("/spec/clusterIP");
    if service.str_at("/spec/type") == "ExternalName" {
        return format!(
            "dial tcp: lookup {}: no such host",
            service.str_at("/spec/externalName")
        );
    }
    if ip == "None" {
        return "cannot route to service with ClusterIP \"None\"".to_owned();
    }
    let ports = service.pointer("/spec/ports").and_then(Value::as_array);
    if !ports.is_some_and(|list| list.iter().any(|p| p["port"] == port)) {
        return format!("no service port {port} found for service \"{name}\"");
    }
    format!("dial tcp {ip}:{port}: connect: connection refused")
}

/// Sends all requests concurrently and waits for every response.
pub fn post_all(posts: Vec<Post>) -> Vec<Result<Answer, String>> {
    if posts.is_empty() {
        return Vec::new();
    }
    let wait = move || {
        // A separate runtime, because this thread may belong to one, which must not be blocked on.
        let work = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime
                .map(|runtime| runtime.block_on(futures::future::join_all(posts.iter().map(post))))
        });
        match work.join() {
            Ok(Ok(answers)) => answers,
            Ok(Err(error)) => vec![Err(error.to_string())],
            Err(_) => vec![Err("the request was aborted".to_owned())],
        }
    };
    let shared = tokio::runtime::Handle::try_current()
        .is_ok_and(|h| h.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread);
    if shared {
        tokio::task::block_in_place(wait)
    } else {
        wait()
    }
}

async fn post(post: &Post) -> Result<Answer, String> {
    let url = format!("{}?timeout={}s", post.endpoint.url, post.timeout.as_secs());
    let answered = match tokio::time::timeout(post.timeout, exchange(post)).await {
        Ok(answered) => answered,
        Err(_) => Err("context deadline exceeded".to_owned()),
    };
    answered.map_err(|why| format!("Post \"{url}\": {why}"))
}

async fn exchange(post: &Post) -> Result<Answer, String> {
    let Endpoint {
        authority,
        host,
        path,
        trust,
        unreachable,
        ..
    } = &post.endpoint;
    if let Some(why) = unreachable {
        return Err(why.clone());
    }
    let stream = TcpStream::connect(authority.as_str())
        .await
        .map_err(|e| dial(authority, host, &e))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?;
    let config = config
        .with_root_certificates(trust.clone())
        .with_no_client_auth();
    let name = ServerName::try_from(host.clone()).map_err(|e| e.to_string())?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|e| tls(&e, host))?;
    let gone = |_| "EOF".to_owned();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(gone)?;
    tokio::spawn(connection);
    let request = http::Request::post(format!("{path}?timeout={}s", post.timeout.as_secs()))
        .header(HOST, authority.as_str())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, */*")
        .body(Full::new(Bytes::from(post.body.clone())))
        .map_err(|e| e.to_string())?;
    let response = sender.send_request(request).await.map_err(gone)?;
    let media = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("")
        .to_owned();
    let code = response.status().as_u16();
    let body = Limited::new(response.into_body(), MAX_ANSWER)
        .collect()
        .await
        .map_err(|_| "unexpected EOF".to_owned())?;
    Ok((code, media, body.to_bytes()))
}

fn dial(authority: &str, host: &str, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            format!("dial tcp {authority}: connect: connection refused")
        }
        ErrorKind::NetworkUnreachable => {
            format!("dial tcp {authority}: connect: network is unreachable")
        }
        ErrorKind::HostUnreachable => format!("dial tcp {authority}: connect: no route to host"),
        _ if error.raw_os_error().is_none() => format!("dial tcp: lookup {host}: no such host"),
        _ => format!("dial tcp {authority}: connect: {error}"),
    }
}

fn tls(error: &std::io::Error, host: &str) -> String {
    const FAILED: &str = "tls: failed to verify certificate: x509";
    let inner = error
        .get_ref()
        .and_then(|e| e.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => {
            format!("{FAILED}: certificate signed by unknown authority")
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            presented,
            ..
        })) => {
            format!("{FAILED}: {}", x509::wrong_name(presented, host))
        }
        Some(rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => {
            format!("{FAILED}: certificate has expired or is not yet valid")
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        Some(other) => format!("tls: {other}"),
        None => "EOF".to_owned(),
    }
}

/// The error for an HTTP status without a usable response.
pub fn refused(code: u16, media: &str, text: &str) -> String {
    // Only text is quoted.
    let text = if media.is_empty() || media.starts_with("text/") {
        text
    } else {
        "unknown"
    };
    match code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => text.to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        406 => format!("the server was unable to respond with a content type that the client supports: {text}"),
        409 => "the server reported a conflict".to_owned(),
        415 => format!("the server was unable to understand the media type of the request: {text}"),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request".to_owned(),
        500.. => format!("an error on the server ({text:?}) has prevented the request from succeeding"),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    }
}

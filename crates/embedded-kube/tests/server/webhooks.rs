//! Admission webhooks, compared with how kube-apiserver 1.36.3 handled the same answers
//! (`webhooks.json`), with a webhook server on the loopback address.

use crate::server::policies::{picked, same_names, send};
use crate::server::support::{Comparison, start};
use axum::Router;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_embedded_kube::Data;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps?dryRun=All";

/// An authority and the certificate that it gave to 127.0.0.1.
pub struct Pki {
    pub ca: String,
    certificate: rcgen::Certificate,
    key: KeyPair,
}

pub fn pki(name: &str) -> Pki {
    let mut authority = CertificateParams::new(Vec::<String>::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, name);
    let authority_key = KeyPair::generate().expect("a key");
    let ca = authority
        .self_signed(&authority_key)
        .expect("a certificate")
        .pem();
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
    let key = KeyPair::generate().expect("a key");
    let certificate = server
        .signed_by(&key, &Issuer::new(authority, authority_key))
        .expect("a certificate");
    Pki {
        ca,
        certificate,
        key,
    }
}

/// What an echo tells of an object.
fn slim(object: &Value) -> Value {
    let mut object = object.clone();
    if object.is_object() {
        let metadata = object["metadata"].as_object().cloned().unwrap_or_default();
        let mut has: Vec<&String> = metadata.keys().collect();
        has.sort();
        object["metadata"] =
            json!({"has": has, "name": metadata.get("name"), "labels": metadata.get("labels")});
    }
    object
}

/// The answer to a review: status, media type, text; nothing to hang up.
async fn answer(
    behaviours: &Value,
    path: &str,
    review: &Value,
) -> Option<(u16, &'static str, String)> {
    let (name, query) = path
        .trim_start_matches('/')
        .split_once('?')
        .unwrap_or((path, ""));
    if review["kind"] == "ConversionReview" {
        if name == "h500" {
            return Some((500, "application/json", "boom".to_owned()));
        }
        let kind = if name == "wrongreview" {
            "Pod2"
        } else {
            "ConversionReview"
        };
        let mut value = json!({"kind": kind, "apiVersion": review["apiVersion"]});
        if let Some(response) = crate::server::conversion::converted(name, review) {
            value["response"] = response;
        }
        return Some((200, "application/json", value.to_string()));
    }
    let behaviour = match name {
        "echo" => {
            let mut request = review["request"].clone();
            request.as_object_mut()?.remove("uid");
            for field in ["object", "oldObject"] {
                request[field] = slim(&request[field]);
            }
            let seen = json!({"query": query, "kind": review["kind"], "apiVersion": review["apiVersion"], "request": request});
            json!({"response": {"allowed": false, "status": {"message": seen.to_string()}}})
        }
        _ => behaviours[name].clone(),
    };
    if behaviour["close"] == true {
        return None;
    }
    if let Some(seconds) = behaviour["delay"].as_u64() {
        tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
    }
    if let Some(text) = behaviour["text"].as_str() {
        let code = behaviour["code"]
            .as_u64()
            .and_then(|c| u16::try_from(c).ok())
            .unwrap_or(200);
        return Some((code, "text/plain", text.to_owned()));
    }
    let or = |field: &str, default: &Value| {
        behaviour
            .get(field)
            .cloned()
            .unwrap_or_else(|| default.clone())
    };
    let mut value = json!({"apiVersion": or("apiVersion", &review["apiVersion"]), "kind": or("kind", &json!("AdmissionReview"))});
    if let Some(response) = behaviour["response"].as_object() {
        let mut all: Map<String, Value> = json!({"uid": review["request"]["uid"]})
            .as_object()
            .cloned()
            .unwrap_or_default();
        all.extend(response.clone());
        value["response"] = all.into();
    }
    Some((200, "application/json", value.to_string()))
}

/// Serves one request of each connection, on a thread of its own; gives the port.
pub fn serve(pki: &Pki, behaviours: Value) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pki.key.serialize_der()));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|b| {
            b.with_no_client_auth()
                .with_single_cert(vec![pki.certificate.der().clone()], key)
        })
        .expect("a certificate for the server");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    listener.set_nonblocking(true).expect("a socket");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            let behaviours = Arc::new(behaviours);
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, behaviours) = (acceptor.clone(), behaviours.clone());
                tokio::spawn(async move { one(acceptor, socket, &behaviours).await });
            }
        });
    });
    port
}

async fn one(
    acceptor: TlsAcceptor,
    socket: tokio::net::TcpStream,
    behaviours: &Value,
) -> Option<()> {
    let mut stream = acceptor.accept(socket).await.ok()?;
    let mut bytes = Vec::new();
    let (head, mut body) = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            break (head.to_owned(), body.as_bytes().to_vec());
        }
    };
    let length = head.lines().find_map(|l| {
        l.to_lowercase()
            .strip_prefix("content-length: ")
            .and_then(|n| n.parse::<usize>().ok())
    })?;
    while body.len() < length {
        stream.read_buf(&mut body).await.ok()?;
    }
    let review: Value = serde_json::from_slice(&body).ok()?;
    let path = head.split(' ').nth(1)?;
    let (code, media, text) = answer(behaviours, path, &review).await?;
    let answer = format!(
        "HTTP/1.1 {code} X\r\ncontent-type: {media}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(answer.as_bytes()).await.ok()?;
    stream.shutdown().await.ok()
}

fn configuration(case: &Value, port: u16, good: &Pki, other: &Pki) -> Value {
    let mut hooks = Vec::new();
    for (i, given) in case["hooks"].as_array().into_iter().flatten().enumerate() {
        let mut hook = given.as_object().cloned().unwrap_or_default();
        let mut take = |field: &str| hook.remove(field);
        let (path, ca, host, url) = (take("path"), take("ca"), take("host"), take("url"));
        let text = |value: &Option<Value>, default: &str| {
            value
                .as_ref()
                .and_then(Value::as_str)
                .unwrap_or(default)
                .to_owned()
        };
        let bundle = match text(&ca, "good").as_str() {
            "good" => good.ca.clone(),
            "other" => other.ca.clone(),
            "garbage" => {
                "-----BEGIN CERTIFICATE-----\nMTIz\n-----END CERTIFICATE-----\n".to_owned()
            }
            _ => String::new(),
        };
        let own = format!(
            "https://{}:{port}/{}",
            text(&host, "127.0.0.1"),
            text(&path, "")
        );
        let mut config = match take("service") {
            Some(service) => json!({"service": service}),
            None => json!({"url": url.unwrap_or_else(|| own.into())}),
        };
        if !bundle.is_empty() {
            config["caBundle"] = STANDARD.encode(bundle).into();
        }
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]});
        let mut whole = json!({"name": format!("h{i}.{}.example.com", case["name"].as_str().unwrap_or("")), "clientConfig": config,
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "objectSelector": {"matchLabels": {"case": case["name"]}}, "rules": [rule]});
        whole.as_object_mut().expect("a map").extend(hook);
        hooks.push(whole);
    }
    let kind = format!(
        "{}WebhookConfiguration",
        case["kind"].as_str().unwrap_or("")
    );
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": case["name"]}, "webhooks": hooks})
}

/// Without what differs each time: the port, and uids (eight hexadecimal digits and a dash).
pub fn normal(text: &str, port: u16) -> String {
    let text = same_names(&text.replace(&format!(":{port}/"), ":PORT/"));
    match text.split_once("response.uid=\"") {
        Some((before, rest)) => format!(
            "{before}response.uid=\"UID{}",
            rest.trim_start_matches(|c| c != '"')
        ),
        None => text,
    }
}

/// The services that webhooks are reached by, and an object to update.
async fn prepare(router: &Router) {
    for (name, spec) in [
        ("hooksvc", json!({"ports": [{"port": 443}]})),
        (
            "hookless",
            json!({"clusterIP": "None", "ports": [{"port": 443}]}),
        ),
    ] {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
        assert_eq!(
            send(
                router,
                "POST",
                "/api/v1/namespaces/default/services",
                "application/json",
                &service
            )
            .await
            .0,
            201
        );
    }
    let kept = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hookupd", "labels": {"case": "v-echo-update"}}, "data": {"k": "v"}});
    assert_eq!(
        send(
            router,
            "POST",
            "/api/v1/namespaces/default/configmaps",
            "application/json",
            &kept
        )
        .await
        .0,
        201
    );
}

/// Sends a recorded request and compares its answer.
async fn compare(
    router: &Router,
    case: &Value,
    request: &Value,
    port: u16,
    comparison: &mut Comparison,
) {
    let text =
        |field: &str, default: &'static str| request[field].as_str().unwrap_or(default).to_owned();
    let (method, path, media) = (
        text("method", "POST"),
        text("path", CONFIG_MAPS),
        text("media", "application/json"),
    );
    let plain = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let mut body = if method == "POST" && request["body"].is_null() {
        plain
    } else {
        request["body"].clone()
    };
    if body["metadata"].is_object() {
        body["metadata"]["labels"]["case"] = case["name"].clone();
    }
    let (code, answer, warnings) = send(router, &method, &path, &media, &body).await;
    let mut found = json!({"code": code});
    if code >= 400 {
        found["message"] = normal(answer["message"].as_str().unwrap_or(""), port).into();
        if answer["reason"].is_string() {
            found["reason"] = answer["reason"].clone();
        }
    } else if let Some(list) = request["pick"].as_array() {
        found["picked"] = picked(&answer, list.iter().filter_map(Value::as_str)).into();
    }
    if !warnings.is_empty() {
        found["warnings"] = warnings.into();
    }
    let mut wanted = request["answer"].clone();
    if let Some(text) = wanted["message"].as_str().map(|t| normal(t, port)) {
        wanted["message"] = text.into();
    }
    let what = format!("{} {method} {path}", case["name"]);
    comparison.add(&what, &found, &wanted);
}

#[tokio::test]
async fn webhooks_are_called_as_by_a_real_server() {
    let kube = start(Data::Memory).await;
    let router = kube.router();
    let data: Value =
        serde_json::from_str(include_str!("webhooks.json")).expect("the answers are JSON");
    let (good, other) = (pki("good"), pki("other"));
    let port = serve(&good, data["behaviours"].clone());
    prepare(&router).await;
    let cases = data["cases"].as_array().cloned().unwrap_or_default();
    for case in &cases {
        let kind = case["kind"].as_str().unwrap_or("").to_lowercase();
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
        let created = send(
            &router,
            "POST",
            &path,
            "application/json",
            &configuration(case, port, &good, &other),
        )
        .await;
        assert_eq!(created.0, 201, "{}", created.1);
    }
    let mut comparison = Comparison::default();
    for case in &cases {
        for request in case["requests"].as_array().into_iter().flatten() {
            compare(&router, case, request, port, &mut comparison).await;
        }
    }
    comparison.finish();
    kube.shutdown().await;
}

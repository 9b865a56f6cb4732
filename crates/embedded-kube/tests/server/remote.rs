//! A plain HTTP client over TLS for requests to a real API server. It supports a kubeconfig with a
//! token, and uses one connection.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use std::sync::Arc;
use tiphys_gocompat::yaml;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub struct Remote {
    sender: SendRequest<Full<Bytes>>,
    address: String,
    pub token: String,
}

impl Remote {
    /// To the first cluster of a kubeconfig, as its first user.
    pub async fn connect(kubeconfig: &str) -> Self {
        let text = std::fs::read_to_string(kubeconfig).expect("the kubeconfig is there");
        let config = yaml::parse_document(
            text.as_bytes(),
            &yaml::Limits::default(),
            yaml::Duplicates::Refuse,
        )
        .expect("YAML");
        let at = |path: &str| {
            config
                .pointer(path)
                .and_then(Value::as_str)
                .expect("a field of the kubeconfig")
                .to_owned()
        };
        let address = at("/clusters/0/cluster/server")
            .trim_start_matches("https://")
            .to_owned();
        let pem = STANDARD
            .decode(at("/clusters/0/cluster/certificate-authority-data"))
            .expect("base64");
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            roots
                .add(certificate.expect("a certificate"))
                .expect("it can be trusted");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config_builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("TLS versions");
        let tls = TlsConnector::from(Arc::new(
            config_builder
                .with_root_certificates(roots)
                .with_no_client_auth(),
        ));
        let stream = TcpStream::connect(&address).await.expect("it connects");
        let host = address.split(':').next().expect("a host").to_owned();
        let stream = tls
            .connect(ServerName::try_from(host).expect("a name"), stream)
            .await
            .expect("TLS");
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        Self {
            sender,
            address,
            token: at("/users/0/user/token"),
        }
    }

    /// Code and answer; text when it is not JSON.
    pub async fn send(
        &mut self,
        method: &str,
        path: &str,
        media: &str,
        body: Bytes,
    ) -> (u16, Value) {
        self.sender.ready().await.expect("the connection is open");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.address)
            .header("content-type", media);
        let request = request
            .header("authorization", format!("Bearer {}", self.token))
            .body(Full::new(body))
            .expect("a request");
        let response = self.sender.send_request(request).await.expect("it answers");
        let code = response.status().as_u16();
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        (
            code,
            serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())),
        )
    }

    pub async fn json(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let bytes = if body.is_null() {
            Bytes::new()
        } else {
            body.to_string().into()
        };
        self.send(method, path, "application/json", bytes).await
    }
}

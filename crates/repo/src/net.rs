//! Connections to a server: TCP, with or without TLS. Main type: [`Tls`]; main function: [`dial`].

mod certificates;
mod late;

pub use certificates::Reviewed;
pub(crate) use late::late_roots;

use http::Uri;
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::{io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::transport::Endpoint;

const DIAL_TIMEOUT: Duration = Duration::from_secs(30);
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Which server certificates to trust, and our client certificate. All of it PEM.
#[derive(Clone, Default)]
pub struct Tls {
    /// Accept any certificate, as long as the server has its key.
    pub any: bool,
    /// Trust the system's certificate authorities.
    pub system: bool,
    /// Trust these too.
    pub trusted: Vec<u8>,
    /// Our client certificate and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// TCP or TLS.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Opens a stream to `host:port`; `protocol` is for ALPN: `h2`, `http/1.1` or empty.
pub async fn dial(server: &str, tls: Option<&Tls>, protocol: &str) -> io::Result<Box<dyn Io>> {
    match tls {
        None => Ok(Box::new(tcp(server).await?)),
        Some(tls) => Ok(Box::new(handshake(server, tls, protocol).await?)),
    }
}

/// The endpoint for gRPC. The connector does TLS, so the channel must not know about it.
pub fn endpoint(server: &str, plaintext: bool) -> Result<Endpoint, String> {
    let scheme = if plaintext { "http" } else { "https" };
    let origin: Uri = format!("{scheme}://{server}")
        .parse()
        .map_err(|e| format!("not an address: {e}"))?;
    let endpoint = Endpoint::from_shared(format!("http://{server}"))
        .and_then(|e| {
            e.origin(origin)
                .user_agent(concat!("tiphys/", env!("CARGO_PKG_VERSION")))
        })
        .map_err(|e| e.to_string())?;
    Ok(endpoint
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE))
}

/// TCP with TLS.
pub async fn handshake(
    server: &str,
    tls: &Tls,
    protocol: &str,
) -> io::Result<TlsStream<TcpStream>> {
    secure(tcp(server).await?, server, tls, protocol).await
}

/// TLS over an existing stream to the server, such as one through a proxy.
pub async fn secure(
    stream: TcpStream,
    server: &str,
    tls: &Tls,
    protocol: &str,
) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host(server).to_owned())
        .map_err(|e| invalid(format!("{server} is not the name of a server: {e}")))?;
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "tls: handshake timed out");
    let connector = TlsConnector::from(Arc::new(tls.config(protocol)?));
    let shaken = timeout(DIAL_TIMEOUT, connector.connect(name, stream))
        .await
        .map_err(late)?;
    shaken.map_err(|e| io::Error::new(e.kind(), certificates::fault(&e, host(server))))
}

/// Plain TCP.
pub async fn tcp(server: &str) -> io::Result<TcpStream> {
    let (name, port) = server.rsplit_once(':').unwrap_or((server, ""));
    let is_bracketed = name.starts_with('[') && name.ends_with(']');
    if name.contains(':') && !is_bracketed {
        return Err(invalid(format!(
            "dial tcp: address {server}: too many colons in address"
        )));
    }
    if !port.is_empty() && port.parse::<u16>().is_err() {
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        let why = if is_number {
            format!("address {port}: invalid port")
        } else {
            format!("lookup tcp/{port}: unknown port")
        };
        return Err(invalid(format!("dial tcp: {why}")));
    }
    let failed = |e: io::Error| {
        let why = reason(&e);
        let text = match e.raw_os_error() {
            Some(_) => format!("dial tcp {server}: connect: {why}"),
            None => format!("dial tcp: lookup {}: no such host", host(server)),
        };
        io::Error::new(e.kind(), text)
    };
    // Without a host it is this machine.
    let address = match name {
        "" => format!("localhost:{port}"),
        _ => server.to_owned(),
    };
    let late = |_| {
        io::Error::new(
            io::ErrorKind::TimedOut,
            format!("dial tcp {server}: i/o timeout"),
        )
    };
    let stream = timeout(DIAL_TIMEOUT, TcpStream::connect(address))
        .await
        .map_err(late)?
        .map_err(failed)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The system's error with Go's wording.
pub fn reason(e: &io::Error) -> String {
    let text = e.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    if e.raw_os_error().is_some() {
        text.to_lowercase()
    } else {
        text.to_owned()
    }
}

/// The host of `host:port`, without the brackets of an IPv6 address.
fn host(server: &str) -> &str {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

impl Tls {
    /// `protocol` is for ALPN, or empty.
    pub fn config(&self, protocol: &str) -> io::Result<ClientConfig> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| invalid(format!("tls: {e}")))?;
        let builder = if self.any {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AcceptAll(provider)))
        } else {
            let roots = self.roots()?;
            if roots.is_empty() {
                // The verifier below is not made without any.
                builder.with_root_certificates(roots)
            } else {
                let verifier =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()
                        .map_err(|e| invalid(format!("tls: {e}")))?;
                let verifier = Reviewed::new(verifier, certificates::names_first);
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(verifier))
            }
        };
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = rustls_pemfile::certs(&mut certificate.as_slice())
                    .collect::<Result<Vec<_>, _>>()?;
                let key = rustls_pemfile::private_key(&mut key.as_slice())?;
                let key = key.ok_or_else(|| {
                    invalid("the client certificate key has no private key in PEM form".into())
                })?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|e| invalid(format!("the client certificate: {e}")))?
            }
        };
        if !protocol.is_empty() {
            config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        }
        Ok(config)
    }

    /// The authorities that are trusted.
    pub fn roots(&self) -> io::Result<RootCertStore> {
        let mut store = RootCertStore::empty();
        if self.system {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        let certificates =
            rustls_pemfile::certs(&mut self.trusted.as_slice()).collect::<Result<Vec<_>, _>>()?;
        if certificates.is_empty() && !self.trusted.is_empty() {
            return Err(invalid(
                "the server certificate file has no certificate in PEM form".into(),
            ));
        }
        for certificate in certificates {
            store
                .add(certificate)
                .map_err(|e| invalid(format!("the server certificate file: {e}")))?;
        }
        Ok(store)
    }
}

/// See [`Tls::any`].
#[derive(Debug)]
struct AcceptAll(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAll {
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
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        assert_eq!(host("cd.example.com:443"), "cd.example.com");
        assert_eq!(host("[::1]:443"), "::1");
    }

    #[tokio::test]
    async fn a_port_that_is_none_is_named() {
        for (server, expected) in [
            (
                "127.0.0.1:8080x",
                "dial tcp: lookup tcp/8080x: unknown port",
            ),
            ("127.0.0.1:99999", "dial tcp: address 99999: invalid port"),
        ] {
            let error = tcp(server).await.map(|_| ()).expect_err("it is no port");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn files_without_certificates_are_refused() {
        let tls = Tls {
            trusted: b"nothing".to_vec(),
            ..Tls::default()
        };
        let message = tls.config("h2").err().map(|e| e.to_string());
        assert_eq!(
            message.as_deref(),
            Some("the server certificate file has no certificate in PEM form")
        );
        let tls = Tls {
            identity: Some((Vec::new(), Vec::new())),
            ..Tls::default()
        };
        assert!(tls.config("h2").is_err());
    }
}

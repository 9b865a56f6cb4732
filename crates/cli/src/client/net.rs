//! The byte stream to a server: TCP, and TLS above it. Main functions: [`dial`] and [`probe`].

use super::{Connection, Failure, failure::reason};
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::{io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

const DIAL_TIMEOUT: Duration = Duration::from_secs(30);

/// TCP or TLS.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// The host of `host:port`, without the brackets of an IPv6 address.
fn host(server: &str) -> &str {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

async fn tcp(server: &str) -> io::Result<TcpStream> {
    let failed = |e: io::Error| io::Error::new(e.kind(), format!("dial tcp {server}: {}", reason(&e)));
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, format!("dial tcp {server}: i/o timeout"));
    let stream = timeout(DIAL_TIMEOUT, TcpStream::connect(server)).await.map_err(late)?.map_err(failed)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Opens the stream; `protocol` is what TLS asks for: `h2` or `http/1.1`.
pub async fn dial(c: &Connection, protocol: &str) -> io::Result<Box<dyn Io>> {
    let stream = tcp(&c.server).await?;
    if c.plaintext {
        return Ok(Box::new(stream));
    }
    Ok(Box::new(handshake(stream, &c.server, Arc::new(tls_config(c, protocol)?)).await?))
}

async fn handshake(stream: TcpStream, server: &str, config: Arc<ClientConfig>) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let name = ServerName::try_from(host(server).to_owned())
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, format!("{server} is not the name of a server: {e}")))?;
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "tls: handshake timed out");
    let shaken = timeout(DIAL_TIMEOUT, TlsConnector::from(config).connect(name, stream)).await.map_err(late)?;
    shaken.map_err(|e| io::Error::new(e.kind(), format!("tls: {e}")))
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

fn tls_config(c: &Connection, protocol: &str) -> io::Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| invalid(format!("tls: {e}")))?;
    let builder = if c.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAll(provider)))
    } else {
        builder.with_root_certificates(roots(&c.server_certificate)?)
    };
    let mut config = match &c.client_certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = rustls_pemfile::certs(&mut certificate.as_slice()).collect::<Result<Vec<_>, _>>()?;
            let key = rustls_pemfile::private_key(&mut key.as_slice())?;
            let key = key.ok_or_else(|| invalid("the client certificate key has no private key in PEM form".into()))?;
            builder.with_client_auth_cert(chain, key).map_err(|e| invalid(format!("the client certificate: {e}")))?
        }
    };
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    Ok(config)
}

/// What the system trusts, and the given certificates.
fn roots(extra: &[u8]) -> io::Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let mut given: &[u8] = extra;
    let certificates = rustls_pemfile::certs(&mut given).collect::<Result<Vec<_>, _>>()?;
    if certificates.is_empty() && !extra.is_empty() {
        return Err(invalid("the server certificate file has no certificate in PEM form".into()));
    }
    for certificate in certificates {
        store.add(certificate).map_err(|e| invalid(format!("the server certificate file: {e}")))?;
    }
    Ok(store)
}

/// `--insecure`: any certificate will do, as long as the server has its key.
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
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// What a server speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsProbe {
    Plaintext,
    Trusted,
    /// TLS, with a certificate that does not convince, and why.
    Untrusted(String),
}

/// Finds out whether a server speaks TLS and whether its certificate is good.
pub async fn probe(c: &Connection) -> Result<TlsProbe, Failure> {
    let failure = |e: io::Error| Failure::error(e.to_string());
    let any = Connection { insecure: true, plaintext: false, ..c.clone() };
    let stream = tcp(&c.server).await.map_err(failure)?;
    if handshake(stream, &c.server, Arc::new(tls_config(&any, "h2").map_err(failure)?)).await.is_err() {
        return Ok(TlsProbe::Plaintext);
    }
    let strict = Connection { insecure: false, ..any };
    let stream = tcp(&c.server).await.map_err(failure)?;
    match handshake(stream, &c.server, Arc::new(tls_config(&strict, "h2").map_err(failure)?)).await {
        Ok(_) => Ok(TlsProbe::Trusted),
        Err(e) => Ok(TlsProbe::Untrusted(e.to_string())),
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

    #[test]
    fn files_without_certificates_are_refused() {
        let c = Connection { server_certificate: b"nothing".to_vec(), ..Default::default() };
        let message = tls_config(&c, "h2").err().map(|e| e.to_string());
        assert_eq!(message.as_deref(), Some("the server certificate file has no certificate in PEM form"));
        let c = Connection { client_certificate: Some((Vec::new(), Vec::new())), ..Default::default() };
        assert!(tls_config(&c, "h2").is_err());
    }
}

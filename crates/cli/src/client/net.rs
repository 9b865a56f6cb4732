//! The byte stream to the API server. Main functions: [`dial`] and [`probe`].

use super::{Connection, Failure};
use std::io;
use tiphys_repo::net::{self, Io, Tls};

/// Opens the stream; `protocol` is what TLS asks for: `h2` or `http/1.1`.
pub async fn dial(c: &Connection, protocol: &str) -> io::Result<Box<dyn Io>> {
    let tls = (!c.plaintext).then(|| tls(c, c.insecure));
    net::dial(&c.server, tls.as_ref(), protocol).await
}

fn tls(c: &Connection, any: bool) -> Tls {
    Tls { any, system: true, trusted: c.server_certificate.clone(), identity: c.client_certificate.clone() }
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
    net::tcp(&c.server).await.map_err(|e| Failure::error(e.to_string()))?;
    if net::handshake(&c.server, &tls(c, true), "h2").await.is_err() {
        return Ok(TlsProbe::Plaintext);
    }
    match net::handshake(&c.server, &tls(c, false), "h2").await {
        Ok(_) => Ok(TlsProbe::Trusted),
        Err(e) => Ok(TlsProbe::Untrusted(e.to_string())),
    }
}

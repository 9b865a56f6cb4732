//! The byte stream to the API server. Main functions: [`dial`] and [`probe`].

use super::{Connection, Failure, proxy};
use crate::failure::hint::NO_SERVER;
use std::io;
use tiphys_repo::net::{self, Io, Tls};
use tokio::net::TcpStream;

/// For HTTP/2. Errors begin as the `argocd` command's do.
pub async fn dial_h2(c: &Connection) -> io::Result<Box<dyn Io>> {
    let stream = proxy::tcp(c)
        .await
        .map_err(|e| io::Error::new(e.kind(), dialed(&e)))?;
    secured(c, stream, "h2")
        .await
        .map_err(|e| io::Error::new(e.kind(), connected(&e)))
}

/// Of an error before there is a connection.
fn dialed(e: &io::Error) -> String {
    format!("error dial proxy: {e}")
}

/// Of an error of TLS.
fn connected(e: &io::Error) -> String {
    format!("error creating connection: {e}")
}

/// Opens the stream; `protocol` is for ALPN: `h2` or `http/1.1`.
pub async fn dial(c: &Connection, protocol: &str) -> io::Result<Box<dyn Io>> {
    secured(c, proxy::tcp(c).await?, protocol).await
}

async fn secured(c: &Connection, stream: TcpStream, protocol: &str) -> io::Result<Box<dyn Io>> {
    if c.plaintext {
        return Ok(Box::new(stream));
    }
    Ok(Box::new(
        net::secure(stream, &c.server, &tls(c, c.insecure), protocol).await?,
    ))
}

fn tls(c: &Connection, any: bool) -> Tls {
    Tls {
        any,
        system: true,
        trusted: c.server_certificate.clone(),
        identity: c.client_certificate.clone(),
    }
}

/// The protocol of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsProbe {
    Plaintext,
    Trusted,
    /// TLS with an untrusted certificate, and why.
    Untrusted(String),
}

/// Detects whether a server uses TLS and whether its certificate is trusted.
pub async fn probe(c: &Connection) -> Result<TlsProbe, Failure> {
    let open = async || {
        proxy::tcp(c)
            .await
            .map_err(|e| Failure::error(dialed(&e)).with_hint(NO_SERVER))
    };
    if net::secure(open().await?, &c.server, &tls(c, true), "h2")
        .await
        .is_err()
    {
        return Ok(TlsProbe::Plaintext);
    }
    match net::secure(open().await?, &c.server, &tls(c, false), "h2").await {
        Ok(_) => Ok(TlsProbe::Trusted),
        Err(e) => Ok(TlsProbe::Untrusted(connected(&e))),
    }
}

//! TLS to PostgreSQL. Main types: [`Ssl`], [`SslMode`] and [`Connector`].

use crate::CatalogError;
use rustls::{
    CertificateError,
    client::{WebPkiServerVerifier, danger::ServerCertVerified},
    pki_types::{CertificateDer, ServerName},
};
use std::{
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    str::FromStr,
    sync::Arc,
    task::{Context, Poll},
};
use tiphys_repo::net::{Reviewed, Tls};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    config::SslMode as Demand,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// What is demanded of a connection, as `sslmode` of PostgreSQL's own clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    Disable,
    /// TLS only where the server refuses everything else.
    Allow,
    /// TLS, if the server has it, with any certificate.
    #[default]
    Prefer,
    /// TLS; with authorities as `VerifyCa`.
    Require,
    /// The certificate must be of a known authority.
    VerifyCa,
    /// And of the host that was asked.
    VerifyFull,
}

/// The words for them.
const MODES: [(&str, SslMode); 6] = [
    ("disable", SslMode::Disable),
    ("allow", SslMode::Allow),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyFull),
];

impl FromStr for SslMode {
    type Err = CatalogError;

    fn from_str(text: &str) -> Result<Self, CatalogError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let known = MODES.iter().find(|(word, _)| *word == text);
        known.map(|(_, mode)| *mode).ok_or_else(|| {
            let words = MODES.map(|(word, _)| word).join(", ");
            CatalogError::Invalid(format!("{text:?} is no sslmode: it is one of {words}"))
        })
    }
}

impl SslMode {
    /// What a connection demands, one attempt after the other.
    pub(super) fn attempts(self) -> &'static [Demand] {
        match self {
            Self::Disable => &[Demand::Disable],
            Self::Allow => &[Demand::Disable, Demand::Require],
            Self::Prefer => &[Demand::Prefer],
            Self::Require | Self::VerifyCa | Self::VerifyFull => &[Demand::Require],
        }
    }
}

/// What libpq's settings of the same names say. The files, in PEM, are read for each connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ssl {
    pub mode: SslMode,
    root: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

/// A certificate and its key.
type Pair = (Vec<u8>, Vec<u8>);

/// In place of a file: the authorities of the system, for certificates of the host that was asked.
const SYSTEM: &str = "system";

impl Ssl {
    /// `sslmode`, `sslrootcert`, `sslcert` and `sslkey`; what is empty is not set.
    ///
    /// # Errors
    /// The mode is none, or too weak for the system's authorities.
    pub fn new(
        mode: &str,
        root: impl Into<PathBuf>,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, CatalogError> {
        let root = root.into();
        let is_system = root.as_os_str() == SYSTEM;
        let parsed = match mode {
            "" if is_system => SslMode::VerifyFull,
            mode => mode.parse()?,
        };
        if is_system && parsed != SslMode::VerifyFull {
            return Err(CatalogError::Invalid(format!(
                "weak sslmode {mode:?} may not be used with sslrootcert=system (use verify-full)"
            )));
        }
        Ok(Self {
            mode: parsed,
            root,
            certificate: certificate.into(),
            key: key.into(),
        })
    }

    /// As the environment has them: PGSSLMODE, PGSSLROOTCERT, PGSSLCERT and PGSSLKEY.
    ///
    /// # Errors
    /// As [`Ssl::new`].
    pub fn from_environment(get: impl Fn(&str) -> String) -> Result<Self, CatalogError> {
        Self::new(
            &get("PGSSLMODE"),
            get("PGSSLROOTCERT"),
            get("PGSSLCERT"),
            get("PGSSLKEY"),
        )
    }

    /// What [`Ssl::new`] takes.
    pub(super) fn words(&self) -> (String, String, String, String) {
        let mode = MODES.iter().find(|(_, mode)| *mode == self.mode);
        let text = |path: &Path| path.to_string_lossy().into_owned();
        (
            mode.map_or("", |(word, _)| word).to_owned(),
            text(&self.root),
            text(&self.certificate),
            text(&self.key),
        )
    }

    /// Authorities in PEM; empty: the system's.
    fn authorities(&self) -> Result<Vec<u8>, CatalogError> {
        let is_system = self.root.as_os_str().is_empty() || self.root.as_os_str() == SYSTEM;
        if is_system || self.mode == SslMode::Disable {
            return Ok(Vec::new());
        }
        read("sslrootcert", &self.root)
    }

    /// Our certificate and its key, if there is one.
    fn identity(&self) -> Result<Option<Pair>, CatalogError> {
        if self.certificate.as_os_str().is_empty() || self.mode == SslMode::Disable {
            return Ok(None);
        }
        let certificate = read("sslcert", &self.certificate)?;
        if self.key.as_os_str().is_empty() {
            return Err(CatalogError::Invalid("sslcert needs sslkey".to_owned()));
        }
        private(&self.key)?;
        Ok(Some((certificate, read("sslkey", &self.key)?)))
    }
}

fn read(setting: &str, path: &Path) -> Result<Vec<u8>, CatalogError> {
    std::fs::read(path).map_err(|e| {
        let path = path.display();
        CatalogError::Invalid(format!("{setting} {path} cannot be read: {e}"))
    })
}

/// Refuses a key that others can read. One of the system's administrator may be for a group.
fn private(key: &Path) -> Result<(), CatalogError> {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(found) = std::fs::metadata(key) else {
        // Reading it says why.
        return Ok(());
    };
    let others = if found.uid() == 0 { 0o037 } else { 0o077 };
    if found.mode() & others == 0 {
        return Ok(());
    }
    Err(CatalogError::Invalid(format!(
        "private key file {:?} has group or world access; file must have permissions u=rw (0600) \
         or less if owned by the current user, or permissions u=rw,g=r (0640) or less if owned by \
         root",
        key.display().to_string()
    )))
}

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector(TlsConnector);

impl Connector {
    /// Reads the files of the settings.
    pub fn new(ssl: &Ssl) -> Result<Self, CatalogError> {
        let failed = |why: String| CatalogError::Database(why);
        let (mode, authorities) = (ssl.mode, ssl.authorities()?);
        let has_own = !authorities.is_empty();
        let tls = Tls {
            any: match mode {
                SslMode::VerifyCa | SslMode::VerifyFull => false,
                SslMode::Require => !has_own,
                SslMode::Disable | SslMode::Allow | SslMode::Prefer => true,
            },
            system: !has_own,
            trusted: authorities,
            identity: ssl.identity()?,
        };
        let config = tls.config("").map_err(|e| failed(e.to_string()));
        let mut config = config?;
        if !tls.any && mode != SslMode::VerifyFull {
            let roots = tls.roots().map_err(|e| failed(e.to_string()))?;
            let provider = Arc::clone(config.crypto_provider());
            let whole = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
            let whole = whole.build().map_err(|e| failed(e.to_string()))?;
            let verifier = Arc::new(Reviewed::new(whole, any_name));
            config.dangerous().set_certificate_verifier(verifier);
        }
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

/// Accepts a certificate that is right in all but its names, which are looked at last.
fn any_name(
    verified: Result<ServerCertVerified, rustls::Error>,
    _: &CertificateDer<'_>,
    _: &ServerName<'_>,
) -> Result<ServerCertVerified, rustls::Error> {
    use CertificateError::{NotValidForName, NotValidForNameContext};
    match verified {
        Err(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
            Ok(ServerCertVerified::assertion())
        }
        verified => verified,
    }
}

/// A connector for one host.
pub(super) struct Named {
    connector: TlsConnector,
    host: ServerName<'static>,
}

/// An encrypted connection.
pub(super) struct Encrypted<S>(TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Connector {
    type Stream = Encrypted<S>;
    type TlsConnect = Named;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Named, Self::Error> {
        Ok(Named {
            connector: self.0.clone(),
            host: ServerName::try_from(host.to_owned())?,
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Named {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let shaken = self.connector.connect(self.host, stream).await;
            shaken.map(Encrypted)
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

//! The port's TLS: off, a given certificate, or a self-signed one created at startup, and which
//! clients, versions and ciphers are accepted.

use rustls::{
    RootCertStore, ServerConfig, SupportedProtocolVersion,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{VerifierBuilderError, WebPkiClientVerifier},
    version::{TLS12, TLS13},
};
use std::sync::Arc;

/// The TLS mode of the port.
#[derive(Clone)]
pub enum Tls {
    /// Plain HTTP, with HTTP/2 by prior knowledge.
    Off,
    /// A self-signed certificate for these names, new at each start.
    SelfSigned(Vec<String>),
    /// A certificate chain and its key, as PEM text.
    Pem { chain: String, key: String },
    /// One of the others, with rules of its own.
    Ready(Arc<ServerConfig>),
}

/// What is accepted besides what is usual.
#[derive(Clone, Debug, Default)]
pub struct TlsRules {
    /// PEM text of the authorities that clients must have a certificate of. None: they need none.
    pub client_authorities: Option<String>,
    /// The only version; None: 1.2 and 1.3.
    pub version: Option<TlsVersion>,
    /// The only cipher suites of version 1.2, by their IANA names; empty: all that are safe.
    pub ciphers: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    V12,
    V13,
}

/// An error while setting up TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot make a self-signed certificate: {0}")]
    SelfSigned(#[from] rcgen::Error),
    #[error("tls.crt or tls.key is not valid PEM: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("tls.crt and tls.key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
    #[error("the authorities of clients are not valid PEM: {0}")]
    Authorities(rustls::pki_types::pem::Error),
    #[error("the authorities of clients cannot be used: {0}")]
    Clients(#[from] VerifierBuilderError),
    #[error("invalid cipher suite specified: {0}")]
    Cipher(String),
}

/// A new self-signed certificate for these names, and its key, as PEM texts.
///
/// # Errors
/// A name cannot be one of a certificate.
pub fn self_signed(names: Vec<String>) -> Result<(String, String), TlsError> {
    let made = rcgen::generate_simple_self_signed(names)?;
    Ok((made.cert.pem(), made.signing_key.serialize_pem()))
}

impl TlsRules {
    fn versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        match self.version {
            None => vec![&TLS13, &TLS12],
            Some(TlsVersion::V12) => vec![&TLS12],
            Some(TlsVersion::V13) => vec![&TLS13],
        }
    }

    fn provider(&self) -> Result<CryptoProvider, TlsError> {
        let all = ring::default_provider();
        if self.ciphers.is_empty() {
            return Ok(all);
        }
        let name = |suite: &rustls::SupportedCipherSuite| format!("{:?}", suite.suite());
        let is_known = |named: &&String| all.cipher_suites.iter().any(|s| name(s) == **named);
        if let Some(unknown) = self.ciphers.iter().find(|named| !is_known(named)) {
            return Err(TlsError::Cipher(unknown.clone()));
        }
        let is_chosen = |suite: &rustls::SupportedCipherSuite| {
            suite.tls13().is_some() || self.ciphers.contains(&name(suite))
        };
        let chosen = all.cipher_suites.iter().copied().filter(is_chosen);
        Ok(CryptoProvider {
            cipher_suites: chosen.collect(),
            ..all
        })
    }

    fn config(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(self.provider()?);
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&self.versions())?;
        let builder = match &self.client_authorities {
            None => builder.with_no_client_auth(),
            Some(text) => {
                let mut roots = RootCertStore::empty();
                for authority in CertificateDer::pem_slice_iter(text.as_bytes()) {
                    roots.add(authority.map_err(TlsError::Authorities)?)?;
                }
                let clients =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(clients.build()?)
            }
        };
        let mut config = builder.with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl Tls {
    /// The same with rules of its own.
    ///
    /// # Errors
    /// Certificates, authorities or ciphers cannot be used.
    pub fn with(&self, rules: &TlsRules) -> Result<Self, TlsError> {
        let (chain, key) = match self {
            Self::Off => return Ok(Self::Off),
            Self::Ready(config) => return Ok(Self::Ready(Arc::clone(config))),
            Self::SelfSigned(names) => {
                let made = rcgen::generate_simple_self_signed(names.clone())?;
                (
                    vec![made.cert.der().clone()],
                    PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into()),
                )
            }
            Self::Pem { chain, key } => {
                let chain = CertificateDer::pem_slice_iter(chain.as_bytes())
                    .collect::<Result<Vec<_>, _>>()?;
                (chain, PrivateKeyDer::from_pem_slice(key.as_bytes())?)
            }
        };
        rules.config(chain, key).map(Self::Ready)
    }

    pub(super) fn config(&self) -> Result<Option<Arc<ServerConfig>>, TlsError> {
        Ok(match self.with(&TlsRules::default())? {
            Self::Ready(config) => Some(config),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations() {
        assert!(Tls::Off.config().expect("no TLS").is_none());
        let own = Tls::SelfSigned(vec!["localhost".into()]);
        assert!(own.config().expect("it is made").is_some());
        let broken = Tls::Pem {
            chain: String::new(),
            key: "x".into(),
        };
        assert!(broken.config().is_err());
    }

    #[test]
    fn rules() {
        let own = Tls::SelfSigned(vec!["localhost".into()]);
        let named = |names: &[&str]| TlsRules {
            ciphers: names.iter().map(|name| (*name).to_owned()).collect(),
            ..TlsRules::default()
        };
        let config = |rules: &TlsRules| match own.with(rules) {
            Ok(Tls::Ready(config)) => Ok(config),
            Ok(_) => panic!("it is TLS"),
            Err(e) => Err(e.to_string()),
        };
        let one = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";
        let chosen = config(&named(&[one])).expect("a known cipher");
        let suites = &chosen.crypto_provider().cipher_suites;
        let old: Vec<String> = suites
            .iter()
            .filter(|s| s.tls13().is_none())
            .map(|s| format!("{:?}", s.suite()))
            .collect();
        assert_eq!(old, [one]);
        assert!(suites.len() > 1, "those of 1.3 cannot be chosen");
        assert_eq!(
            config(&named(&["TLS_RSA_WITH_RC4_128_SHA"])).expect_err("unsafe"),
            "invalid cipher suite specified: TLS_RSA_WITH_RC4_128_SHA"
        );
        let nobody = TlsRules {
            client_authorities: Some(String::new()),
            ..TlsRules::default()
        };
        assert!(
            config(&nobody).is_err(),
            "no authorities are not all authorities"
        );
    }
}

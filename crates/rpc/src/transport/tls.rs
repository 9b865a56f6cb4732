//! The port's TLS: off, a given certificate, or a self-signed one created at startup.

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
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
}

impl Tls {
    pub(super) fn config(&self) -> Result<Option<Arc<ServerConfig>>, TlsError> {
        let (chain, key) = match self {
            Self::Off => return Ok(None),
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
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Some(Arc::new(config)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations() {
        assert!(Tls::Off.config().expect("no TLS").is_none());
        assert!(
            Tls::SelfSigned(vec!["localhost".into()])
                .config()
                .expect("it is made")
                .is_some()
        );
        assert!(
            Tls::Pem {
                chain: String::new(),
                key: "x".into()
            }
            .config()
            .is_err()
        );
    }
}

//! Authorities of the system that are read when a server shows its certificate, not before. Main
//! function: [`late_roots`].

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::sync::{Arc, OnceLock};

/// For whoever asks without TLS and meets it at most in a redirect: reading all authorities takes
/// longer than many questions.
///
/// # Errors
/// TLS cannot be set up.
pub fn late_roots() -> Result<ClientConfig, Error> {
    let roots = LateRoots::new();
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&roots.provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(roots))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

#[derive(Debug)]
struct LateRoots {
    provider: Arc<CryptoProvider>,
    verifier: OnceLock<Result<Arc<WebPkiServerVerifier>, Error>>,
}

impl LateRoots {
    fn new() -> Self {
        Self {
            provider: Arc::new(ring::default_provider()),
            verifier: OnceLock::new(),
        }
    }

    fn verifier(&self) -> Result<&WebPkiServerVerifier, Error> {
        let read = || {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let provider = Arc::clone(&self.provider);
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|e| Error::General(format!("the authorities of the system: {e}")))
        };
        let verifier = self.verifier.get_or_init(read);
        verifier.as_deref().map_err(Clone::clone)
    }
}

impl ServerCertVerifier for LateRoots {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?
            .verify_server_cert(certificate, others, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_read_for_a_certificate_and_decide() {
        let roots = LateRoots::new();
        assert!(!roots.supported_verify_schemes().is_empty());
        assert!(roots.verifier.get().is_none());
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
        let made = made.expect("a certificate");
        let name = ServerName::try_from("localhost").expect("a name");
        let shown = roots.verify_server_cert(made.cert.der(), &[], &name, &[], UnixTime::now());
        assert!(shown.is_err(), "nobody of the system signed it");
        assert!(roots.verifier.get().is_some());
        assert!(late_roots().is_ok());
    }
}

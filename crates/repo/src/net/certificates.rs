//! Checks a server's certificate, and says in Go's words what is wrong with it. Main type:
//! [`Reviewed`]; main functions: [`names_first`] and [`fault`].

use rustls::{
    CertificateError, DigitallySignedStruct, Error, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use std::{io, sync::Arc};
use tiphys_gocompat::x509;

const FAILED: &str = "tls: failed to verify certificate: x509";

/// What becomes of webpki's verdict on a certificate that a server of this name has shown.
type Review = fn(
    Result<ServerCertVerified, Error>,
    &CertificateDer<'_>,
    &ServerName<'_>,
) -> Result<ServerCertVerified, Error>;

/// Checks signatures as webpki does, and certificates, too, but another has the last word on these.
#[derive(Debug)]
pub struct Reviewed {
    webpki: Arc<WebPkiServerVerifier>,
    review: Review,
}

impl Reviewed {
    pub fn new(webpki: Arc<WebPkiServerVerifier>, review: Review) -> Self {
        Self { webpki, review }
    }
}

/// Of a certificate that is wrong in both, the names are what is reported, as by Go: who adds the
/// authority should not meet the next error afterwards.
pub(super) fn names_first(
    verified: Result<ServerCertVerified, Error>,
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
) -> Result<ServerCertVerified, Error> {
    match verified {
        // A bad signature: another authority of the same name is known.
        Err(Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
        }
        verified => verified,
    }
}

impl ServerCertVerifier for Reviewed {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self
            .webpki
            .verify_server_cert(certificate, others, name, ocsp, now);
        (self.review)(verified, certificate, name)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

/// Why a handshake with a host failed.
pub(super) fn fault(e: &io::Error, host: &str) -> String {
    let inner = e.get_ref().and_then(|e| e.downcast_ref::<Error>());
    let Some(Error::InvalidCertificate(wrong)) = inner else {
        return format!("tls: {e}");
    };
    match wrong {
        CertificateError::UnknownIssuer => {
            format!("{FAILED}: certificate signed by unknown authority")
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!("{FAILED}: {}", x509::wrong_name(presented, host))
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            format!("{FAILED}: certificate has expired or is not yet valid")
        }
        _ => format!("tls: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_in_gos_words() {
        let told = |wrong: CertificateError| {
            let e = io::Error::new(io::ErrorKind::InvalidData, Error::InvalidCertificate(wrong));
            fault(&e, "127.0.0.1")
        };
        let named = |presented: &[&str]| CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("127.0.0.1").expect("an address"),
            presented: presented.iter().map(|name| (*name).to_owned()).collect(),
        };
        for (wrong, expected) in [
            (
                CertificateError::UnknownIssuer,
                "certificate signed by unknown authority",
            ),
            (
                CertificateError::Expired,
                "certificate has expired or is not yet valid",
            ),
            (
                named(&["DnsName(\"localhost\")"]),
                "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
            ),
            (
                named(&["IpAddress(10.0.0.1)"]),
                "certificate is valid for 10.0.0.1, not 127.0.0.1",
            ),
        ] {
            let expected = format!("tls: failed to verify certificate: x509: {expected}");
            assert_eq!(told(wrong), expected);
        }
        let other = io::Error::new(io::ErrorKind::UnexpectedEof, "handshake eof");
        assert_eq!(fault(&other, "127.0.0.1"), "tls: handshake eof");
    }
}

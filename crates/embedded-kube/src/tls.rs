//! The server's certificate and the administrator's token, created once and kept in the data
//! folder.
//!
//! Main type: [`Identity`]. The token and the key are secrets, so the type does not implement
//! Debug.

use crate::error::Error;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::Rng;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};
use std::path::Path;
use std::sync::Arc;

/// The server's certificate and keys, and the administrator's token.
pub struct Identity {
    pub ca_pem: String,
    cert_pem: String,
    key_pem: String,
    pub token: String,
    /// Signs the tokens of service accounts.
    pub account_key_pem: String,
}

const FILES: [&str; 4] = ["ca.crt", "server.crt", "server.key", "admin.token"];
/// Added later than the other files, so it may be missing.
const ACCOUNT_KEY: &str = "sa.key";

impl Identity {
    /// Reads the identity from the folder, or creates a new one there. A given token replaces the
    /// stored one.
    pub fn load(folder: Option<&Path>, token: Option<String>) -> Result<Self, Error> {
        let Some(folder) = folder else {
            return Self::make(token);
        };
        let io = |e: std::io::Error| Error::Identity(format!("{}: {e}", folder.display()));
        let read = |name: &str| std::fs::read_to_string(folder.join(name));
        let [ca, cert, key, kept] = FILES.map(read);
        if let (Ok(ca_pem), Ok(cert_pem), Ok(key_pem), Ok(kept)) = (ca, cert, key, kept) {
            let account_key_pem = match read(ACCOUNT_KEY) {
                Ok(pem) => pem,
                Err(_) => {
                    let pem = new_key()?;
                    write_private(&folder.join(ACCOUNT_KEY), &pem).map_err(io)?;
                    pem
                }
            };
            return Ok(Self {
                ca_pem,
                cert_pem,
                key_pem,
                token: token.unwrap_or_else(|| kept.trim().to_owned()),
                account_key_pem,
            });
        }
        let identity = Self::make(token)?;
        std::fs::create_dir_all(folder).map_err(io)?;
        let contents = [
            &identity.ca_pem,
            &identity.cert_pem,
            &identity.key_pem,
            &identity.token,
        ];
        for (name, text) in FILES.iter().zip(contents) {
            write_private(&folder.join(name), text).map_err(io)?;
        }
        write_private(&folder.join(ACCOUNT_KEY), &identity.account_key_pem).map_err(io)?;
        Ok(identity)
    }

    fn make(token: Option<String>) -> Result<Self, Error> {
        let failed = |e: rcgen::Error| Error::Identity(format!("cannot make a certificate: {e}"));
        let mut authority = CertificateParams::new(Vec::<String>::new()).map_err(failed)?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        authority
            .distinguished_name
            .push(DnType::CommonName, "tiphys-embedded-ca");
        let authority_key = KeyPair::generate().map_err(failed)?;
        let ca = authority.self_signed(&authority_key).map_err(failed)?;
        let names = [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "127.0.0.1",
            "::1",
        ];
        let mut server =
            CertificateParams::new(names.map(str::to_owned).to_vec()).map_err(failed)?;
        server
            .distinguished_name
            .push(DnType::CommonName, "tiphys-embedded-kube");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(failed)?;
        let cert = server
            .signed_by(&key, &Issuer::new(authority, authority_key))
            .map_err(failed)?;
        let token = token.unwrap_or_else(random_token);
        Ok(Self {
            ca_pem: ca.pem(),
            cert_pem: cert.pem(),
            key_pem: key.serialize_pem(),
            token,
            account_key_pem: new_key()?,
        })
    }

    /// TLS with HTTP/2 and HTTP/1.1.
    pub fn server_config(&self) -> Result<ServerConfig, Error> {
        let failed = |what: &str| {
            Error::Identity(format!(
                "{what}; remove the data folder's `pki` folder to make a new one"
            ))
        };
        let chain: Result<Vec<_>, _> =
            rustls::pki_types::CertificateDer::pem_slice_iter(self.cert_pem.as_bytes()).collect();
        let chain =
            chain.map_err(|e| failed(&format!("the server certificate cannot be read: {e}")))?;
        let key = PrivatePkcs8KeyDer::from_pem_slice(self.key_pem.as_bytes());
        let key = key.map_err(|e| failed(&format!("the server key cannot be read: {e}")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|b| {
                b.with_no_client_auth()
                    .with_single_cert(chain, PrivateKeyDer::Pkcs8(key))
            })
            .map_err(|e| failed(&format!("the server certificate cannot be used: {e}")))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// A kubeconfig for the administrator.
    pub fn kubeconfig(&self, address: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: tiphys\n  cluster:\n    server: https://{address}\n    \
             certificate-authority-data: {}\nusers:\n- name: admin\n  user:\n    token: {}\ncontexts:\n- name: tiphys\n  context:\n    \
             cluster: tiphys\n    user: admin\ncurrent-context: tiphys\n",
            STANDARD.encode(&self.ca_pem),
            self.token
        )
    }
}

fn new_key() -> Result<String, Error> {
    let key =
        KeyPair::generate().map_err(|e| Error::Identity(format!("cannot make a key: {e}")))?;
    Ok(key.serialize_pem())
}

fn random_token() -> String {
    let mut bytes = [0_u8; 32];
    rand::rng().fill(&mut bytes);
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Only the owner may read it; an existing file, which another process may have open, is not
/// written to.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let part = path.with_extension("part");
    if let Err(e) = std::fs::remove_file(&part)
        && e.kind() != std::io::ErrorKind::NotFound
    {
        return Err(e);
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&part, path)
}

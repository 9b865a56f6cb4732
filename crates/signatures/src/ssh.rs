//! Signatures by `ssh-keygen -Y sign`. The key is in the signature: whether it is permitted is decided
//! by its fingerprint, which nobody else's key has.

use crate::{Check, Verdict};
use ssh_key::{Algorithm, HashAlg, PublicKey, SshSig};

/// What git signs for.
const NAMESPACE: &str = "git";

pub fn check(signature: &[u8], text: &[u8]) -> Check {
    let Ok(parsed) = SshSig::from_pem(signature) else {
        return Check::unreadable();
    };
    let key = PublicKey::from(parsed.public_key().clone());
    let good = key.verify(NAMESPACE, text, &parsed).is_ok();
    Check {
        verdict: if good { Verdict::Good } else { Verdict::Bad },
        key: key.fingerprint(HashAlg::Sha256).to_string(),
        cipher: match key.algorithm() {
            Algorithm::Rsa { .. } => "RSA",
            Algorithm::Ecdsa { .. } | Algorithm::SkEcdsaSha2NistP256 => "ECDSA",
            Algorithm::Ed25519 | Algorithm::SkEd25519 => "ED25519",
            _ => "",
        },
    }
}

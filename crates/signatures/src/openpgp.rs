//! OpenPGP signatures of a text, judged as gpg does it, in its order.

use crate::{
    Check, Keyring, Verdict,
    certificate::{Component, ends, is_weak, knows_all_critical},
};
use pgp::{
    composed::{Deserializable, DetachedSignature},
    crypto::public_key::PublicKeyAlgorithm,
    packet::{Signature, SignatureType},
    types::VerifyingKey,
};

pub fn check(keyring: &Keyring, signature: &[u8], text: &[u8], now: i64) -> Check {
    let Some(signature) = parse(signature) else {
        return Check::unreadable();
    };
    let cipher = cipher(&signature);
    let Some(issuer) = issuer(&signature) else {
        return Check {
            cipher,
            ..Check::unreadable()
        };
    };
    let mut missing = true;
    let mut verdict = Verdict::MissingKey;
    for certificate in keyring.certificates() {
        let primary = &certificate.primary;
        let found = if primary.id == issuer {
            Some(verdict_of(&signature, primary, text, now))
        } else {
            let subkey = certificate.subkeys.iter().find(|sub| sub.id == issuer);
            subkey.map(|sub| verdict_of(&signature, sub, text, now))
        };
        if let Some(found) = found
            // Two keys can have the same id.
            && (missing || verdict == Verdict::Bad)
        {
            (missing, verdict) = (false, found);
        }
    }
    Check {
        verdict,
        key: issuer,
        cipher,
    }
}

/// Exactly one signature: of several it would be unclear whose it is.
fn parse(armored: &[u8]) -> Option<Signature> {
    let (mut all, _) = DetachedSignature::from_armor_many(armored).ok()?;
    let first = all.next()?.ok()?;
    all.next().is_none().then_some(first.signature)
}

/// The id of the key that claims to have made it.
fn issuer(signature: &Signature) -> Option<String> {
    if let Some(fingerprint) = signature.issuer_fingerprint().first() {
        let text = format!("{fingerprint:X}");
        return Some(text.get(text.len().checked_sub(16)?..)?.to_owned());
    }
    let ids = signature.issuer_key_id();
    ids.first().map(|id| id.to_string().to_uppercase())
}

fn verdict_of<K: VerifyingKey>(
    signature: &Signature,
    by: &Component<K>,
    text: &[u8],
    now: i64,
) -> Verdict {
    let made = signature.created().map_or(0, |at| i64::from(at.as_secs()));
    let is_of_text = matches!(
        signature.typ(),
        Some(SignatureType::Binary | SignatureType::Text)
    );
    let good = is_of_text
        && by.signs
        && made >= by.created
        && !is_weak(signature.hash_alg(), false)
        && knows_all_critical(signature)
        && signature.verify(&by.key, text).is_ok();
    if !good {
        Verdict::Bad
    } else if ends(signature).is_some_and(|end| now >= end) {
        Verdict::ExpiredSignature
    } else if by.expires.is_some_and(|end| now >= end) {
        Verdict::ExpiredKey
    } else if by.is_revoked {
        Verdict::RevokedKey
    } else {
        Verdict::Good
    }
}

fn cipher(signature: &Signature) -> &'static str {
    match signature.config().map(|config| config.pub_alg) {
        Some(PublicKeyAlgorithm::RSA | PublicKeyAlgorithm::RSASign) => "RSA",
        Some(PublicKeyAlgorithm::DSA) => "DSA",
        Some(PublicKeyAlgorithm::ECDSA) => "ECDSA",
        Some(PublicKeyAlgorithm::EdDSALegacy | PublicKeyAlgorithm::Ed25519) => "EDDSA",
        Some(PublicKeyAlgorithm::Ed448) => "ED448",
        _ => "",
    }
}

//! The public keys of an installation.
//!
//! Main type: [`Keyring`].

use crate::certificate::Certificate;
use pgp::{
    armor::{BlockType, Dearmor},
    composed::{ArmorOptions, Deserializable, SignedPublicKey},
    crypto::ecc_curve::ECCCurve,
    types::{EcdsaPublicParams, EddsaLegacyPublicParams, KeyDetails, PublicParams},
};
use std::{collections::BTreeMap, fmt};

/// Longest text with keys.
const MAX_TEXT: usize = 4 << 20;
/// Keys in one text.
const MAX_KEYS: usize = 100;

/// Why a text is not accepted as keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError(String);

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeyError {}

fn wrong(reason: impl Into<String>) -> KeyError {
    KeyError(reason.into())
}

/// A public key of people, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// 16 upper-case hexadecimal digits.
    pub id: String,
    /// 40 upper-case hexadecimal digits.
    pub fingerprint: String,
    /// The main user id.
    pub owner: String,
    /// As gpg names it, such as `rsa4096`.
    pub sub_type: String,
    /// This key alone, armored.
    pub data: String,
}

/// The keys of an armored text, each once.
///
/// # Errors
/// It cannot be read, has a key without a valid user id, or exceeds a limit.
pub fn parse(text: &str, now: i64) -> Result<Vec<PublicKey>, KeyError> {
    let keys = certificates(text, now)?;
    let of = |(key, certificate): &(SignedPublicKey, Certificate)| {
        let fingerprint = format!("{:X}", key.primary_key.fingerprint());
        let data = key.to_armored_string(ArmorOptions::default());
        Ok(PublicKey {
            id: certificate.primary.id.clone(),
            fingerprint,
            owner: certificate.owner.clone(),
            sub_type: sub_type(key.primary_key.public_params()),
            data: data
                .map_err(|_| wrong("a key cannot be written"))?
                .trim_end()
                .to_owned(),
        })
    };
    keys.iter().map(of).collect()
}

fn certificates(text: &str, now: i64) -> Result<Vec<(SignedPublicKey, Certificate)>, KeyError> {
    if text.len() > MAX_TEXT {
        return Err(wrong(format!("it is longer than {MAX_TEXT} bytes")));
    }
    let mut out: Vec<(SignedPublicKey, Certificate)> = Vec::new();
    for block in blocks(text) {
        let mut armor = Dearmor::new(block.as_bytes());
        armor.read_header().map_err(|e| unreadable(&e))?;
        match armor.typ {
            Some(BlockType::PublicKey) => {}
            Some(other) => return Err(wrong(format!("it is no public key but a {other}"))),
            None => return Err(wrong("it is no public key")),
        }
        let (keys, _) =
            SignedPublicKey::from_armor_many(block.as_bytes()).map_err(|e| unreadable(&e))?;
        for key in keys {
            let key = key.map_err(|e| unreadable(&e))?;
            if out.len() == MAX_KEYS {
                return Err(wrong(format!("it has more than {MAX_KEYS} keys")));
            }
            let certificate = Certificate::of(&key, now)
                .ok_or_else(|| wrong("a key has no user id that it has signed itself"))?;
            if !out
                .iter()
                .any(|(_, known)| known.primary.id == certificate.primary.id)
            {
                out.push((key, certificate));
            }
        }
    }
    if out.is_empty() {
        return Err(wrong("it has no public key"));
    }
    Ok(out)
}

/// Without the library's text: where `RUST_BACKTRACE` is set, that resolves and prints a backtrace,
/// which takes hundreds of megabytes.
fn unreadable(_: &pgp::errors::Error) -> KeyError {
    wrong("it cannot be read as OpenPGP")
}

/// The armored blocks of a text.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    const BEGIN: &str = "-----BEGIN PGP ";
    let starts: Vec<usize> = text.match_indices(BEGIN).map(|(at, _)| at).collect();
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([text.len()]).collect();
    starts
        .into_iter()
        .zip(ends)
        .take(MAX_KEYS + 1)
        .filter_map(|(start, end)| text.get(start..end))
}

fn sub_type(params: &PublicParams) -> String {
    match params {
        PublicParams::RSA(rsa) => {
            use rsa::traits::PublicKeyParts as _;
            format!("rsa{}", rsa.key.n().bits())
        }
        PublicParams::DSA(dsa) => format!("dsa{}", dsa.key.components().p().bits()),
        PublicParams::EdDSALegacy(EddsaLegacyPublicParams::Ed25519 { .. })
        | PublicParams::Ed25519(_) => "ed25519".to_owned(),
        PublicParams::Ed448(_) => "ed448".to_owned(),
        PublicParams::ECDSA(params) => match params {
            EcdsaPublicParams::P256 { .. } => "nistp256".to_owned(),
            EcdsaPublicParams::P384 { .. } => "nistp384".to_owned(),
            EcdsaPublicParams::P521 { .. } => "nistp521".to_owned(),
            EcdsaPublicParams::Secp256k1 { .. } => "secp256k1".to_owned(),
            EcdsaPublicParams::Unsupported { curve, .. } => curve_name(curve),
        },
        _ => "unknown".to_owned(),
    }
}

fn curve_name(curve: &ECCCurve) -> String {
    curve.name().to_lowercase()
}

/// The keys that signatures are checked with.
#[derive(Clone, Debug, Default)]
pub struct Keyring(Vec<Certificate>);

impl Keyring {
    /// The keys of the settings, by their id, and what is wrong with the others: those are not in it.
    pub fn new(texts: &BTreeMap<String, String>, now: i64) -> (Self, Vec<String>) {
        let (mut keyring, mut faults) = (Self::default(), Vec::new());
        for (name, text) in texts {
            let fault = match (key_id(name), certificates(text, now)) {
                (Ok(id), Ok(keys)) => {
                    match keys.into_iter().map(|(_, key)| key).collect::<Vec<_>>() {
                        keys if keys.len() != 1 => {
                            "more than one key found in input data".to_owned()
                        }
                        keys if keys
                            .iter()
                            .all(|key| key.primary.id.eq_ignore_ascii_case(id)) =>
                        {
                            keyring.0.extend(keys);
                            continue;
                        }
                        _ => "it has another key id".to_owned(),
                    }
                }
                (Err(e), _) | (_, Err(e)) => e.to_string(),
            };
            faults.push(format!("{name}: {fault}"));
        }
        (keyring, faults)
    }

    pub(crate) fn certificates(&self) -> &[Certificate] {
        &self.0
    }
}

/// The short id of a key that is given by its id or its fingerprint.
///
/// # Errors
/// It is neither.
pub fn key_id(text: &str) -> Result<&str, KeyError> {
    let is_hex = text.bytes().all(|b| b.is_ascii_hexdigit());
    match text.len() {
        40 if is_hex => Ok(&text[24..]),
        16 if is_hex => Ok(text),
        _ => Err(wrong(format!("'{text}' is not a valid GnuPG key ID"))),
    }
}

/// Whether it is the fingerprint of an ssh key, as `ssh-keygen -l` prints it.
pub fn is_fingerprint(text: &str) -> bool {
    let Some(hash) = text.strip_prefix("SHA256:") else {
        return false;
    };
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    hash.len() == 43 && hash.bytes().all(is_digit)
}

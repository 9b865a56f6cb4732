//! What the self-signatures of an OpenPGP key say of it: which of its keys may sign, until when, and
//! what was revoked. Nothing counts that the key did not sign itself.
//!
//! Main type: [`Certificate`].

use pgp::{
    composed::{SignedPublicKey, SignedPublicSubKey},
    crypto::hash::HashAlgorithm,
    packet::{PublicKey, PublicSubkey, Signature, SignatureType, SubpacketData},
    types::{KeyDetails, Tag},
};

/// Signatures that are looked at for each part of a key: people collect thousands from others.
const MAX_SIGNATURES: usize = 500;

/// A key that may or may not sign.
#[derive(Clone, Debug)]
pub struct Component<K> {
    pub key: K,
    pub id: String,
    pub created: i64,
    /// Seconds since 1970.
    pub expires: Option<i64>,
    pub is_revoked: bool,
    pub signs: bool,
}

/// An OpenPGP key with its subkeys.
#[derive(Clone, Debug)]
pub struct Certificate {
    pub primary: Component<PublicKey>,
    pub subkeys: Vec<Component<PublicSubkey>>,
    /// The main user id.
    pub owner: String,
}

impl Certificate {
    /// None if it has no user id that the key itself has signed.
    pub fn of(key: &SignedPublicKey, now: i64) -> Option<Self> {
        let (primary, now_) = (&key.primary_key, now);
        let mut users: Vec<(&[u8], &Signature)> = Vec::new();
        for user in &key.details.users {
            let own = |s: &&Signature| {
                s.verify_certification(primary, Tag::UserId, &user.id)
                    .is_ok()
            };
            let signatures = usable(&user.signatures, primary, now_);
            let newest = newest(signatures.filter(own));
            let Some(newest) = newest else { continue };
            if newest.typ() != Some(SignatureType::CertRevocation) {
                users.push((user.id.id(), newest));
            }
        }
        let main = users
            .iter()
            .max_by_key(|(_, s)| (s.is_primary(), created(s)))?;
        let owner = String::from_utf8_lossy(main.0).into_owned();
        let direct = usable(&key.details.direct_signatures, primary, now)
            .filter(|s| s.typ() == Some(SignatureType::Key) && s.verify_key(primary).is_ok());
        let selfs = newest(users.iter().map(|(_, s)| *s).chain(direct))?;
        let is_revoked = key
            .details
            .revocation_signatures
            .iter()
            .take(MAX_SIGNATURES)
            .any(|s| {
                s.typ() == Some(SignatureType::KeyRevocation) && s.verify_key(primary).is_ok()
            });
        let primary = Component {
            id: id_of(primary),
            created: i64::from(primary.created_at().as_secs()),
            expires: expiry(selfs, primary),
            is_revoked,
            signs: flags(selfs).is_none_or(|flags| flags.sign()),
            key: primary.clone(),
        };
        let subkeys = key.public_subkeys.iter().take(MAX_SIGNATURES);
        let subkeys = subkeys
            .filter_map(|sub| subkey(sub, &primary, now))
            .collect();
        Some(Self {
            primary,
            subkeys,
            owner,
        })
    }
}

fn subkey(
    sub: &SignedPublicSubKey,
    primary: &Component<PublicKey>,
    now: i64,
) -> Option<Component<PublicSubkey>> {
    let own = |s: &&Signature| s.verify_subkey_binding(&primary.key, &sub.key).is_ok();
    let bindings = usable(&sub.signatures, &primary.key, now)
        .filter(|s| s.typ() == Some(SignatureType::SubkeyBinding));
    let binding = newest(bindings.filter(own))?;
    // Whoever claims a signing key as a subkey must have it.
    let is_mutual = || {
        binding.embedded_signature().is_some_and(|back| {
            back.verify_primary_key_binding(&sub.key, &primary.key)
                .is_ok()
        })
    };
    let is_revoked = sub
        .signatures
        .iter()
        .take(MAX_SIGNATURES)
        .any(|s| s.typ() == Some(SignatureType::SubkeyRevocation) && own(&s));
    let until = expiry(binding, &sub.key);
    Some(Component {
        id: id_of(&sub.key),
        created: i64::from(sub.key.created_at().as_secs()),
        expires: [until, primary.expires].into_iter().flatten().min(),
        is_revoked: is_revoked || primary.is_revoked,
        signs: flags(binding).is_some_and(|flags| flags.sign()) && is_mutual(),
        key: sub.key.clone(),
    })
}

pub fn id_of(key: &impl KeyDetails) -> String {
    key.legacy_key_id().to_string().to_uppercase()
}

fn created(signature: &Signature) -> i64 {
    signature.created().map_or(0, |at| i64::from(at.as_secs()))
}

/// The signatures that the key may have made itself, and that have not expired.
fn usable<'a>(
    all: &'a [Signature],
    by: &PublicKey,
    now: i64,
) -> impl Iterator<Item = &'a Signature> + use<'a> {
    let (id, fingerprint) = (by.legacy_key_id(), by.fingerprint());
    all.iter().take(MAX_SIGNATURES).filter(move |s| {
        let by_id = s.issuer_key_id().contains(&&id);
        let own = by_id || s.issuer_fingerprint().contains(&&fingerprint);
        own && !is_weak(s.hash_alg(), true)
            && knows_all_critical(s)
            && ends(s).is_none_or(|end| now < end)
    })
}

/// When a signature expires.
pub fn ends(signature: &Signature) -> Option<i64> {
    let seconds = signature.signature_expiration_time()?.as_secs();
    (seconds != 0).then(|| created(signature) + i64::from(seconds))
}

fn newest<'a>(signatures: impl Iterator<Item = &'a Signature>) -> Option<&'a Signature> {
    signatures.max_by_key(|s| created(s))
}

fn expiry(signature: &Signature, key: &impl KeyDetails) -> Option<i64> {
    let seconds = signature.key_expiration_time()?.as_secs();
    let from = i64::from(key.created_at().as_secs());
    (seconds != 0).then(|| from + i64::from(seconds))
}

fn flags(signature: &Signature) -> Option<pgp::packet::KeyFlags> {
    let says = signature
        .config()?
        .hashed_subpackets()
        .any(|packet| matches!(packet.data, SubpacketData::KeyFlags(_)));
    says.then(|| signature.key_flags())
}

/// Whether texts can be made that have the same hash. Of a key's signatures about itself its owner
/// chose the text, so that SHA-1, which old keys have, is enough for them.
pub fn is_weak(hash: Option<HashAlgorithm>, about_itself: bool) -> bool {
    match hash {
        Some(HashAlgorithm::Sha1) => !about_itself,
        Some(
            HashAlgorithm::Sha256
            | HashAlgorithm::Sha384
            | HashAlgorithm::Sha512
            | HashAlgorithm::Sha224
            | HashAlgorithm::Sha3_256
            | HashAlgorithm::Sha3_512,
        ) => false,
        _ => true,
    }
}

/// Whether it contains nothing that must be understood and is not.
pub fn knows_all_critical(signature: &Signature) -> bool {
    signature.config().is_some_and(|config| {
        config.hashed_subpackets().all(|packet| {
            let unknown = matches!(
                packet.data,
                SubpacketData::Other(..)
                    | SubpacketData::Experimental(..)
                    | SubpacketData::Notation(_)
                    | SubpacketData::RegularExpression(_)
                    | SubpacketData::SignatureTarget(..)
            );
            !(packet.is_critical && unknown)
        })
    })
}

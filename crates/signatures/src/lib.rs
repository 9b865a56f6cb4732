//! Who signed a text: OpenPGP and ssh signatures as git writes them, and the public keys to check them
//! with.
//!
//! Main types: [`Keyring`] and [`Check`]. It decides nothing about whose signature is permitted, and
//! knows neither Git nor the settings. Keys and signatures come from outside: both are limited in size
//! and number.

mod certificate;
mod keys;
mod openpgp;
mod ssh;

pub use keys::{KeyError, Keyring, PublicKey, is_fingerprint, key_id, parse};

use std::fmt;

/// What a signature is worth. The texts are those of Argo CD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Good,
    /// It does not belong to the text, or cannot be read.
    Bad,
    /// By a key of the keyring that may no longer be used.
    ExpiredSignature,
    ExpiredKey,
    RevokedKey,
    MissingKey,
    Unsigned,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Good => "signed",
            Self::Bad => "bad signature",
            Self::ExpiredSignature => "expired signature",
            Self::ExpiredKey => "signed with expired key",
            Self::RevokedKey => "signed with revoked key",
            Self::MissingKey => "signed with key not in keyring",
            Self::Unsigned => "unsigned",
        })
    }
}

/// A checked signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub verdict: Verdict,
    /// The id of an OpenPGP key or subkey, 16 upper-case hexadecimal digits; the fingerprint of an ssh
    /// key, `SHA256:…`. Empty if it is not known.
    pub key: String,
    /// As gpg names it, such as `RSA`; empty if it is not known.
    pub cipher: &'static str,
}

impl Check {
    /// Of a text without a signature.
    pub const fn unsigned() -> Self {
        Self {
            verdict: Verdict::Unsigned,
            key: String::new(),
            cipher: "",
        }
    }

    const fn unreadable() -> Self {
        Self {
            verdict: Verdict::Bad,
            key: String::new(),
            cipher: "",
        }
    }
}

/// Longest armored signature.
const MAX_SIGNATURE: usize = 64 << 10;

/// Checks an armored signature of a text. `now`: seconds since 1970.
pub fn check(keyring: &Keyring, signature: &[u8], text: &[u8], now: i64) -> Check {
    let trimmed = signature.trim_ascii();
    if trimmed.is_empty() {
        return Check::unsigned();
    }
    if trimmed.len() > MAX_SIGNATURE {
        return Check::unreadable();
    }
    if trimmed.starts_with(b"-----BEGIN SSH SIGNATURE-----") {
        ssh::check(trimmed, text)
    } else {
        openpgp::check(keyring, trimmed, text, now)
    }
}

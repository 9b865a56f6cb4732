//! Lines of OpenSSH's `known_hosts` as Go's `golang.org/x/crypto/ssh` reads them, with its errors.
//!
//! Main types: [`Entry`], the words of a line, and [`HostKey`], the key that it holds.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The three words of a line: host, type of the key, and the key with its comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub host: String,
    pub kind: String,
    pub key: String,
}

impl Entry {
    /// `None` for comments, empty lines, lines with fewer words, and lines with a marker
    /// (`@revoked`), which are no entry for a host.
    pub fn read(line: &str) -> Option<Self> {
        let mut words = line.trim().splitn(3, ' ');
        let (host, kind, key) = (words.next()?, words.next()?, words.next()?);
        (!host.starts_with(['#', '@'])).then(|| Self {
            host: host.to_owned(),
            kind: kind.to_owned(),
            key: key.to_owned(),
        })
    }

    /// The key that the entry holds.
    pub fn host_key(&self) -> Result<HostKey, Invalid> {
        HostKey::read(&self.to_string())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.host, self.kind, self.key)
    }
}

/// Why a line has no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("ssh: invalid entry in known_hosts data")]
    Entry,
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    #[error("ssh: short read")]
    Short,
    #[error("ssh: trailing junk in public key")]
    Junk,
    #[error("ssh: unknown key algorithm: {0}")]
    Algorithm(String),
    #[error("ssh: unsupported curve")]
    Curve,
    #[error("invalid size {0} for Ed25519 public key")]
    Size(usize),
    #[error(
        "ssh: known hosts key type mismatch: human-readable type {named:?}, encoded type {encoded:?}"
    )]
    Mismatch { named: String, encoded: String },
}

/// A public key and the hosts that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostKey {
    pub hosts: Vec<String>,
    blob: Vec<u8>,
}

impl HostKey {
    /// Reads one line.
    pub fn read(line: &str) -> Result<Self, Invalid> {
        if line.contains(['\n', '\r']) {
            return Err(Invalid::Entry);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let words = match words.as_slice() {
            words if !(3..=5).contains(&words.len()) => return Err(Invalid::Entry),
            [marker, rest @ ..] if marker.starts_with('@') => rest,
            words => words,
        };
        let &[hosts, named, key, ..] = words else {
            return Err(Invalid::Entry);
        };
        let blob = STANDARD
            .decode(key)
            .map_err(|e| Invalid::Base64(place(e)))?;
        let encoded = algorithm(&blob)?;
        if named != encoded {
            return Err(Invalid::Mismatch {
                named: named.to_owned(),
                encoded,
            });
        }
        Ok(Self {
            hosts: hosts.split(',').map(str::to_owned).collect(),
            blob,
        })
    }

    /// SHA-256 of the key, as `ssh-keygen -l` shows it, without `SHA256:`.
    pub fn fingerprint(&self) -> String {
        STANDARD_NO_PAD.encode(Sha256::digest(&self.blob))
    }
}

fn place(e: base64::DecodeError) -> usize {
    match e {
        base64::DecodeError::InvalidByte(at, _)
        | base64::DecodeError::InvalidLastSymbol(at, _)
        | base64::DecodeError::InvalidLength(at) => at,
        base64::DecodeError::InvalidPadding => 0,
    }
}

/// The algorithm of a public key in the format of RFC 4253, whose parts must all be there.
fn algorithm(blob: &[u8]) -> Result<String, Invalid> {
    let (name, rest) = string(blob)?;
    let name = String::from_utf8_lossy(name).into_owned();
    let parts = match name.as_str() {
        "ssh-ed25519" => 1,
        "ssh-rsa" | "sk-ssh-ed25519@openssh.com" => 2,
        "ecdsa-sha2-nistp256" | "ecdsa-sha2-nistp384" | "ecdsa-sha2-nistp521" => 2,
        "sk-ecdsa-sha2-nistp256@openssh.com" => 3,
        "ssh-dss" => 4,
        _ => return Err(Invalid::Algorithm(name)),
    };
    let mut rest = rest;
    for part in 0..parts {
        let (value, after) = string(rest)?;
        rest = after;
        if part == 0 && name.contains("ed25519") && value.len() != 32 {
            return Err(Invalid::Size(value.len()));
        }
        if part == 0 && name.contains("ecdsa") && !is_curve(&name, value) {
            return Err(Invalid::Curve);
        }
    }
    if rest.is_empty() {
        Ok(name)
    } else {
        Err(Invalid::Junk)
    }
}

/// Whether the curve that a key names is that of its algorithm.
fn is_curve(algorithm: &str, curve: &[u8]) -> bool {
    let algorithm = algorithm.trim_end_matches("@openssh.com");
    let named = algorithm.rsplit('-').next().unwrap_or_default();
    named.as_bytes() == curve
}

/// A string with its length in front, and what follows.
fn string(bytes: &[u8]) -> Result<(&[u8], &[u8]), Invalid> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or(Invalid::Short)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| Invalid::Short)?;
    rest.split_at_checked(length).ok_or(Invalid::Short)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED25519: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAfuCHKVTjquxvt6CM6tdG4SLp1Btn/nOeHHE5UOzRdf";

    #[test]
    fn fingerprints_are_opensshs() {
        let key = HostKey::read(&format!(
            "a.example,b.example ssh-ed25519 {ED25519} comment"
        ))
        .expect("it reads");
        assert_eq!(key.hosts, ["a.example", "b.example"]);
        assert_eq!(
            key.fingerprint(),
            "eUXGGm1YGsMAS7vkcx6JOJdOGHPem5gQp4taiCfCLB8"
        );
    }

    #[test]
    fn errors_are_gos() {
        let message = |line: &str| HostKey::read(line).expect_err(line).to_string();
        let cases = [
            ("h ssh-rsa AA\nx", "ssh: invalid entry in known_hosts data"),
            ("h ssh-ed25519", "ssh: invalid entry in known_hosts data"),
            ("h ssh-ed25519 nope", "ssh: short read"),
            ("h ssh-ed25519 no!pe", "illegal base64 data at input byte 2"),
            ("h x AAAAAXg=", "ssh: unknown key algorithm: x"),
            (
                "h ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAAXg=",
                "invalid size 1 for Ed25519 public key",
            ),
        ];
        for (line, want) in cases {
            assert_eq!(message(line), want, "{line}");
        }
        assert_eq!(
            message(&format!("h ssh-rsa {ED25519}")),
            r#"ssh: known hosts key type mismatch: human-readable type "ssh-rsa", encoded type "ssh-ed25519""#
        );
    }

    #[test]
    fn only_entries_of_hosts_are_read() {
        for line in [
            "",
            "# comment with words",
            "host only-two",
            "@revoked h ssh-rsa AAAA",
        ] {
            assert_eq!(Entry::read(line), None, "{line}");
        }
        let line = "[h]:22 ssh-rsa AAAA a comment";
        let entry = Entry::read(&format!("  {line} ")).expect("it reads");
        assert_eq!(
            (entry.key.as_str(), entry.to_string()),
            ("AAAA a comment", line.to_owned())
        );
    }
}

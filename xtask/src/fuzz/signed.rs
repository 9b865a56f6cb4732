//! The target for OpenPGP packets and ssh signatures: keys and signatures as they come from outside.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::{collections::BTreeMap, sync::OnceLock};
use tiphys_signatures::{Keyring, Verdict, check, parse};

/// The key that some of the seeds are by.
const KEY: &str = include_str!("../../../crates/testkit/fixtures/signed/key.asc");
/// What nobody has signed.
const TEXT: &[u8] = b"nobody has signed this";
const NOW: i64 = 1_800_000_000;

fn keyring() -> &'static Keyring {
    static KEYRING: OnceLock<Keyring> = OnceLock::new();
    KEYRING.get_or_init(|| {
        let keys = parse(KEY, NOW).unwrap_or_default();
        let texts: BTreeMap<String, String> = keys.into_iter().map(|k| (k.id, k.data)).collect();
        Keyring::new(&texts, NOW).0
    })
}

/// The body of an armored block: of keys, of an OpenPGP signature and of an ssh signature.
pub fn run(input: &[u8]) -> Result<(), String> {
    let body = String::from_utf8_lossy(input);
    let armored = |kind: &str| format!("-----BEGIN {kind}-----\n\n{body}\n-----END {kind}-----\n");
    if let Ok(keys) = parse(&armored("PGP PUBLIC KEY BLOCK"), NOW) {
        for key in keys {
            let again = parse(&key.data, NOW).map_err(|e| format!("what was written: {e}"))?;
            if again != [key] {
                return Err("a key differs after it was written".to_owned());
            }
        }
    }
    for kind in ["PGP SIGNATURE", "SSH SIGNATURE"] {
        let found = check(keyring(), armored(kind).as_bytes(), TEXT, NOW);
        if found.verdict == Verdict::Good {
            return Err(format!("{kind}: good without being of the text"));
        }
    }
    Ok(())
}

/// Signatures embedded in each other.
pub fn nested(levels: usize) -> String {
    // No more fit into the length of a subpacket.
    let mut signature = Vec::new();
    for _ in 0..levels.min(3_000) {
        let inner = signature;
        let Ok(length) = u16::try_from(inner.len() + 6) else {
            signature = inner;
            break;
        };
        // Version 4, a primary key binding, RSA, SHA-256, no hashed subpackets.
        signature = vec![4, 0x19, 1, 8, 0, 0];
        signature.extend(length.to_be_bytes());
        signature.push(255);
        signature.extend((u32::from(length) - 5).to_be_bytes());
        signature.push(32);
        signature.extend(inner);
        signature.extend([0, 0, 0, 0]);
    }
    let length = u32::try_from(signature.len()).unwrap_or(u32::MAX);
    let mut packet = vec![0xc2, 255];
    packet.extend(length.to_be_bytes());
    packet.extend(signature);
    STANDARD.encode(packet)
}

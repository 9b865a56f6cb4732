//! The keys with which clients sign in to NATS: Ed25519, as text in base32 with a kind and a check
//! sum. Main type: [`Key`].

use data_encoding::BASE32_NOPAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

/// The first byte of any seed; the kind of the key follows it.
const SEED: u8 = 18 << 3;

/// A key, which is not printed.
pub(super) struct Key {
    kind: u8,
    pair: Ed25519KeyPair,
}

impl Key {
    /// # Errors
    /// If it is not a seed, such as `SUA…`. The text is not in the message.
    pub fn of_seed(text: &str) -> Result<Self, String> {
        let wrong = || "nkey is not the seed of a key".to_owned();
        let bytes = BASE32_NOPAD.decode(text.trim().as_bytes());
        let bytes = bytes.map_err(|_| wrong())?;
        let (content, sum) = bytes.split_last_chunk::<2>().ok_or_else(wrong)?;
        let ([first, second], seed) = content.split_first_chunk::<2>().ok_or_else(wrong)?;
        if u16::from_le_bytes(*sum) != check_sum(content) || first & 0b1111_1000 != SEED {
            return Err(wrong());
        }
        Ok(Self {
            // Five bits, of which three are in the first byte.
            kind: (first & 0b111) << 5 | (second & 0b1111_1000) >> 3,
            pair: Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| wrong())?,
        })
    }

    pub fn public(&self) -> String {
        let mut bytes = vec![self.kind];
        bytes.extend_from_slice(self.pair.public_key().as_ref());
        let sum = check_sum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        BASE32_NOPAD.encode(&bytes)
    }

    pub fn sign(&self, text: &[u8]) -> Vec<u8> {
        self.pair.sign(text).as_ref().to_vec()
    }
}

/// CRC-16 as XMODEM has it.
fn check_sum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum: u16, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| {
            let shifted = sum << 1;
            if sum & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

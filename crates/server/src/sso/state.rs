//! The cookie that a browser carries to the identity provider and back: sealed with the server's
//! key, so that nobody can make one. Main type: [`LoginState`].

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use rand::Rng as _;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What a sign-in was begun with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginState {
    /// The provider must send it back.
    pub state: String,
    /// Where the browser goes afterwards; empty: to the start page.
    pub return_url: String,
    /// PKCE's secret, if it is used.
    pub verifier: Option<String>,
    /// The second in which it is over.
    pub ends: i64,
}

fn key(signing_key: &[u8]) -> Option<LessSafeKey> {
    if signing_key.is_empty() {
        return None;
    }
    let mut hash = Sha256::new();
    hash.update(b"tiphys sign-in state\0");
    hash.update(signing_key);
    let key = UnboundKey::new(&AES_256_GCM, &hash.finalize()).ok()?;
    Some(LessSafeKey::new(key))
}

impl LoginState {
    /// In letters that a cookie may have. `None`: the server has no key.
    pub fn seal(&self, signing_key: &[u8]) -> Option<String> {
        let key = key(signing_key)?;
        let nonce: [u8; NONCE_LEN] = rand::rng().random();
        let mut content = serde_json::to_vec(self).ok()?;
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::empty(),
            &mut content,
        )
        .ok()?;
        Some(BASE64_URL_SAFE_NO_PAD.encode([&nonce[..], &content].concat()))
    }

    /// `None`: it is not from this server, or over.
    pub fn open(text: &str, signing_key: &[u8], now: i64) -> Option<Self> {
        let mut content = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        if content.len() < NONCE_LEN {
            return None;
        }
        let mut sealed = content.split_off(NONCE_LEN);
        let nonce = Nonce::try_assume_unique_for_key(&content).ok()?;
        let opened = key(signing_key)?
            .open_in_place(nonce, Aad::empty(), &mut sealed)
            .ok()?;
        let state: Self = serde_json::from_slice(opened).ok()?;
        (state.ends > now).then_some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_server_makes_states() {
        let state = LoginState {
            state: "s".into(),
            return_url: "https://cd.example.com/x".into(),
            verifier: Some("v".into()),
            ends: 100,
        };
        let sealed = state.seal(b"key").expect("a key");
        assert_eq!(LoginState::open(&sealed, b"key", 99), Some(state.clone()));
        assert_eq!(LoginState::open(&sealed, b"key", 100), None);
        assert_eq!(LoginState::open(&sealed, b"other", 99), None);
        let mut forged = sealed.clone();
        let last = if forged.remove(0) == 'A' { 'B' } else { 'A' };
        forged.insert(0, last);
        assert_eq!(LoginState::open(&forged, b"key", 99), None);
        for text in ["", "zz", "00", &sealed[..10]] {
            assert_eq!(LoginState::open(text, b"key", 99), None, "{text}");
        }
        assert_eq!(state.seal(b""), None);
    }
}

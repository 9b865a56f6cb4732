//! Tokens whose form and signature were checked: clients send the same one with each request.
//! Whether a session has ended must be asked each time all the same.
//!
//! Main type: [`KnownTokens`].

use super::Claims;
use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

/// Then it begins anew.
const MAX_TOKENS: usize = 1024;

/// What the tokens of this server say.
#[derive(Default)]
pub(crate) struct KnownTokens(RwLock<Known>);

#[derive(Default)]
struct Known {
    /// Which they are signed with.
    key: Vec<u8>,
    claims: HashMap<String, Claims>,
}

impl KnownTokens {
    /// The claims of a token that was signed with this key, if it was added.
    pub fn get(&self, token: &str, key: &[u8]) -> Option<Claims> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if known.key != key {
            return None;
        }
        known.claims.get(token).cloned()
    }

    /// `claims` are those of the token, whose signature by the key was checked.
    pub fn add(&self, token: &str, key: &[u8], claims: &Claims) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.key != key || known.claims.len() >= MAX_TOKENS {
            known.claims.clear();
            known.key = key.to_vec();
        }
        known.claims.insert(token.to_owned(), claims.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[test]
    fn a_token_is_known_by_its_key_and_not_forever() {
        let known = KnownTokens::default();
        let claims = Claims::session("ann", 60, Timestamp::UNIX_EPOCH);
        let is_known = |token: &str, key: &[u8]| {
            let found = known.get(token, key);
            found.is_some_and(|found| found.jti == claims.jti)
        };
        assert!(!is_known("one", b"key"));
        known.add("one", b"key", &claims);
        assert!(is_known("one", b"key"));
        assert!(!is_known("two", b"key") && !is_known("one", b"other"));
        known.add("two", b"other", &claims);
        assert!(is_known("two", b"other"));
        assert!(!is_known("one", b"key") && !is_known("one", b"other"));
        for number in 0..MAX_TOKENS {
            known.add(&number.to_string(), b"other", &claims);
        }
        assert!(!is_known("two", b"other"));
    }
}

//! What tells the ID tokens of providers apart. Main function: [`token_id`].

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// Claims that differ between tokens, as far as a token has them.
const IDENTITY: [&str; 8] = ["iss", "sub", "iat", "exp", "jti", "sid", "nonce", "at_hash"];

/// A text that no two ID tokens have in common.
pub(super) fn identity(claims: &Map<String, Value>) -> String {
    let parts = IDENTITY.map(|name| claims.get(name).cloned().unwrap_or_default());
    Value::from(parts.to_vec()).to_string()
}

/// The id by which a token is revoked: its own, or a hash of what tells it apart if its provider
/// gives it none.
pub fn token_id(claims: &Map<String, Value>) -> String {
    // Entra names its tokens otherwise, and some providers not at all.
    let mut named = ["jti", "uti", "at_hash"].into_iter();
    let named = named.find_map(|name| {
        let id = claims.get(name).and_then(Value::as_str)?;
        (!id.is_empty()).then(|| id.to_owned())
    });
    named.unwrap_or_else(|| {
        let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(identity(claims)));
        format!("sha256-{hash}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_token_has_an_id() {
        let id = |claims: Value| token_id(claims.as_object().expect("claims"));
        assert_eq!(id(json!({"at_hash": "h", "uti": "u", "jti": ""})), "u");
        let nameless = |iat: i64| id(json!({"iss": "i", "sub": "u", "iat": iat, "groups": [iat]}));
        assert_eq!(nameless(1), nameless(1));
        assert_ne!(nameless(1), nameless(2));
        // It becomes a key of a Secret.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        assert!(nameless(1).chars().all(is_plain), "{}", nameless(1));
        // What is asked for afterwards does not change it.
        let more = id(json!({"iss": "i", "sub": "u", "iat": 1, "groups": ["others"]}));
        assert_eq!(nameless(1), more);
    }
}

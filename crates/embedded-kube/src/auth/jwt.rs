//! Service account tokens: signed claims about the bearer and the objects that the token is bound
//! to.
//!
//! Main types: [`Signer`] and [`Claims`]. It does not check whether the account still exists.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use rcgen::KeyPair;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The issuer of the tokens, and their default audience.
pub const ISSUER: &str = "https://kubernetes.default.svc";
/// The issuer of tokens in Secrets.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// Tolerated clock skew, in seconds.
const LEEWAY: i64 = 60;
/// How many verified tokens are cached, so that each token is verified only once.
const REMEMBERED: usize = 4_096;
/// Longer tokens are rejected without being parsed.
const MAX_TOKEN: usize = 16 * 1024;

/// An object that a token refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ref {
    pub name: String,
    pub uid: String,
}

/// The Kubernetes-specific part of the claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    pub namespace: String,
    pub serviceaccount: Ref,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Ref>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Ref>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Ref>,
}

/// The claims of a token. Times are Unix seconds; a token of a Secret has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    pub audiences: Vec<String>,
    pub not_before: i64,
    pub expires: Option<i64>,
    pub id: String,
    pub bound: Bound,
    /// A token of a Secret: valid as long as the Secret contains this token.
    pub legacy: bool,
}

/// Signs and verifies with one key.
pub struct Signer {
    encoding: EncodingKey,
    decoding: DecodingKey,
    header: Header,
    /// The two coordinates of the public key.
    point: (String, String),
    verified: Mutex<HashMap<[u8; 32], Arc<Claims>>>,
}

impl Signer {
    /// From a PKCS#8 PEM of an elliptic curve key (P-256).
    pub fn new(pem: &str) -> Result<Self, String> {
        let pair = KeyPair::from_pem(pem).map_err(|e| e.to_string())?;
        let public = pair.public_key_raw();
        let [_, point @ ..] = public else {
            return Err("the key has no public part".into());
        };
        if point.len() != 64 {
            return Err("the key is not a P-256 key".into());
        }
        let half = |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(&point[range]);
        let header = Header {
            kid: Some(URL_SAFE_NO_PAD.encode(Sha256::digest(public))),
            typ: None,
            ..Header::new(Algorithm::ES256)
        };
        Ok(Self {
            encoding: EncodingKey::from_ec_der(pair.serialized_der()),
            decoding: DecodingKey::from_ec_der(public),
            header,
            point: (half(0..32), half(32..64)),
            verified: Mutex::default(),
        })
    }

    /// Signs a token that expires.
    pub fn sign(&self, claims: &Claims, now: i64) -> Result<String, String> {
        let text = json!({
            "aud": claims.audiences, "exp": claims.expires, "iat": now, "iss": ISSUER, "jti": claims.id, "nbf": claims.not_before,
            "sub": crate::base::user::account_name(&claims.bound.namespace, &claims.bound.serviceaccount.name), "kubernetes.io": claims.bound,
        });
        self.encode(&text)
    }

    /// Signs the token of a Secret, which does not expire.
    pub fn sign_legacy(
        &self,
        namespace: &str,
        account: &Ref,
        secret: &str,
    ) -> Result<String, String> {
        let text = json!({
            "iss": LEGACY_ISSUER, "sub": crate::base::user::account_name(namespace, &account.name),
            "kubernetes.io/serviceaccount/namespace": namespace, "kubernetes.io/serviceaccount/secret.name": secret,
            "kubernetes.io/serviceaccount/service-account.name": account.name,
            "kubernetes.io/serviceaccount/service-account.uid": account.uid,
        });
        self.encode(&text)
    }

    fn encode(&self, claims: &Value) -> Result<String, String> {
        jsonwebtoken::encode(&self.header, claims, &self.encoding).map_err(|e| e.to_string())
    }

    /// The claims of the token, if this server has signed it. Times are not checked.
    pub fn verify(&self, token: &str) -> Option<Arc<Claims>> {
        if token.len() > MAX_TOKEN || token.bytes().filter(|b| *b == b'.').count() != 2 {
            return None;
        }
        let key: [u8; 32] = Sha256::digest(token).into();
        let lock = || {
            self.verified
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
        };
        if let Some(known) = lock().get(&key) {
            return Some(known.clone());
        }
        let mut validation = Validation::new(Algorithm::ES256);
        validation.required_spec_claims.clear();
        (
            validation.validate_exp,
            validation.validate_nbf,
            validation.validate_aud,
        ) = (false, false, false);
        let claims = jsonwebtoken::decode::<Value>(token, &self.decoding, &validation)
            .ok()?
            .claims;
        let claims = Arc::new(Claims::read(&claims)?);
        let mut verified = lock();
        if verified.len() >= REMEMBERED {
            verified.clear();
        }
        verified.insert(key, claims.clone());
        Some(claims)
    }

    /// The public key, for clients that verify tokens themselves.
    pub fn key_set(&self) -> Value {
        json!({"keys": [{"use": "sig", "kty": "EC", "kid": self.header.kid, "crv": "P-256", "alg": "ES256", "x": self.point.0, "y": self.point.1}]})
    }
}

impl Claims {
    fn read(value: &Value) -> Option<Self> {
        let word = |field: &str| {
            value
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        if word("iss") == LEGACY_ISSUER {
            let of = |field: &str| word(&format!("kubernetes.io/serviceaccount/{field}"));
            let bound = Bound {
                namespace: of("namespace"),
                serviceaccount: Ref {
                    name: of("service-account.name"),
                    uid: of("service-account.uid"),
                },
                secret: Some(Ref {
                    name: of("secret.name"),
                    uid: String::new(),
                }),
                ..Bound::default()
            };
            return Some(Self {
                audiences: vec![ISSUER.to_owned()],
                bound,
                legacy: true,
                ..Self::default()
            });
        }
        if word("iss") != ISSUER {
            return None;
        }
        Some(Self {
            audiences: value["aud"]
                .as_array()?
                .iter()
                .filter_map(|a| a.as_str().map(str::to_owned))
                .collect(),
            not_before: value["nbf"].as_i64()?,
            expires: Some(value["exp"].as_i64()?),
            id: word("jti"),
            bound: serde_json::from_value(value.get("kubernetes.io")?.clone()).ok()?,
            legacy: false,
        })
    }

    /// Why the token is not valid at this time.
    pub fn check_time(&self, now: i64) -> Result<(), &'static str> {
        if self
            .expires
            .is_some_and(|end| now > end.saturating_add(LEEWAY))
        {
            return Err("service account token has expired");
        }
        if now < self.not_before.saturating_sub(LEEWAY) {
            return Err("service account token is not valid yet");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer() -> Signer {
        Signer::new(&KeyPair::generate().expect("a key").serialize_pem()).expect("a signer")
    }

    #[test]
    fn what_is_signed_is_read_again_and_nothing_else_is() {
        let (one, other) = (signer(), signer());
        let bound = Bound {
            namespace: "ns".into(),
            serviceaccount: Ref {
                name: "sa".into(),
                uid: "u".into(),
            },
            ..Bound::default()
        };
        let claims = Claims {
            audiences: vec!["a".into()],
            not_before: 100,
            expires: Some(700),
            id: "j".into(),
            bound,
            legacy: false,
        };
        let token = one.sign(&claims, 100).expect("signs");
        assert_eq!(one.verify(&token).as_deref(), Some(&claims));
        assert_eq!(one.verify(&token).as_deref(), Some(&claims), "from memory");
        assert!(other.verify(&token).is_none());
        let (head, signature) = token.rsplit_once('.').expect("three parts");
        let (_, body) = head.split_once('.').expect("three parts");
        // The algorithm "none", and the same claims without signature.
        let unsigned = format!("{}.{body}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#));
        for bad in [
            unsigned,
            format!("{head}."),
            format!("{head}.{}", signature.to_uppercase()),
            "a.b.c".into(),
            String::new(),
        ] {
            assert!(one.verify(&bad).is_none(), "{bad}");
        }
        assert!(
            claims.check_time(760).is_ok()
                && claims.check_time(761).is_err()
                && claims.check_time(39).is_err()
        );
        let legacy = one
            .sign_legacy(
                "ns",
                &Ref {
                    name: "sa".into(),
                    uid: "u".into(),
                },
                "s",
            )
            .expect("signs");
        assert!(one.verify(&legacy).is_some_and(|c| c.legacy
            && c.expires.is_none()
            && c.bound.secret.as_ref().is_some_and(|s| s.name == "s")));
    }
}

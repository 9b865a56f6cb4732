//! Session tokens: HS256 JWTs signed with `server.secretkey` as in Argo CD, so that each accepts
//! the other's tokens.

use crate::{
    ApiError,
    sso::{token_id, whole_seconds},
};
use base64::{
    DecodeError, Engine as _, engine::general_purpose::STANDARD, prelude::BASE64_URL_SAFE_NO_PAD,
};
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use rand::Rng as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_gocompat::json_error;
use tiphys_rbac::user_id;

const ISSUER: &str = "argocd";
pub(crate) const EXPIRED: &str = "token has invalid claims: token is expired";
/// Tokens issued here are never longer.
const MAX_BYTES: usize = 8 * 1024;
/// Bytes of the claims in a log.
const MAX_LOGGED: usize = 4 * 1024;

/// The claims of a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Claims {
    pub iss: String,
    /// `account:capability`, or `proj:<project>:<role>`.
    pub sub: String,
    /// 0: never.
    #[serde(default, skip_serializing_if = "is_never")]
    pub exp: i64,
    #[serde(default)]
    pub nbf: i64,
    pub iat: i64,
    #[serde(default)]
    pub jti: String,
    /// All claims, if an identity provider signed them and not this server.
    #[serde(skip)]
    pub provider: Option<Arc<Map<String, Value>>>,
}

impl Claims {
    /// Claims for a login session of the account.
    pub fn session(account: &str, seconds: i64, now: Timestamp) -> Self {
        let now = now.as_second();
        Self {
            iss: ISSUER.into(),
            sub: format!("{account}:login"),
            exp: now.saturating_add(seconds),
            nbf: now,
            iat: now,
            jti: uuid::Uuid::new_v4().to_string(),
            provider: None,
        }
    }

    /// Claims for a token: `exp` 0 means that it never expires.
    pub fn token(sub: String, id: String, expires_in: i64, now: Timestamp) -> Self {
        let now = now.as_second();
        Self {
            iss: ISSUER.into(),
            sub,
            exp: if expires_in == 0 {
                0
            } else {
                now.saturating_add(expires_in)
            },
            nbf: now,
            iat: now,
            jti: id,
            provider: None,
        }
    }

    /// What an identity provider says of a user.
    pub fn of_provider(claims: Map<String, Value>) -> Self {
        let text = |name: &str| {
            let value = claims.get(name).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let seconds = |name: &str| claims.get(name).and_then(whole_seconds).unwrap_or_default();
        Self {
            iss: text("iss"),
            sub: text("sub"),
            exp: seconds("exp"),
            nbf: seconds("nbf"),
            iat: seconds("iat"),
            jti: token_id(&claims),
            provider: Some(Arc::new(claims)),
        }
    }

    /// Whether the caller has an account here, or a token of this server.
    pub fn is_local(&self) -> bool {
        self.provider.is_none()
    }

    /// The name for people to read.
    pub fn display_name(&self) -> &str {
        let Some(claims) = &self.provider else {
            return self.account();
        };
        let email = claims.get("email").and_then(Value::as_str);
        email.filter(|e| !e.is_empty()).unwrap_or(self.account())
    }

    /// The claims as policies see them.
    pub fn for_policies(&self) -> Arc<Map<String, Value>> {
        self.provider.clone().unwrap_or_else(|| {
            let subject = Value::from(self.account());
            Arc::new(Map::from_iter([("sub".to_owned(), subject)]))
        })
    }

    /// The claims as JSON for a log, with Argo CD's names and order. They let nobody in.
    pub fn for_log(&self, with_groups: bool) -> String {
        if let Some(claims) = &self.provider {
            let shown: BTreeMap<_, _> = claims
                .iter()
                .filter(|(name, _)| with_groups || *name != "groups")
                .collect();
            let text = serde_json::to_string(&shown).unwrap_or_default();
            if text.len() <= MAX_LOGGED {
                return text;
            }
        }
        // Argo CD's own have no capability when they are logged.
        let subject = if self.is_local() {
            self.account()
        } else {
            self.sub.as_str()
        };
        let times = [("exp", self.exp), ("iat", self.iat), ("nbf", self.nbf)];
        let times = times.into_iter().filter(|(_, second)| *second != 0);
        let texts = [
            ("iss", self.iss.as_str()),
            ("jti", self.jti.as_str()),
            ("sub", subject),
        ];
        let has = |name: &str| {
            let provider = self.provider.as_ref();
            name != "jti" || provider.is_none_or(|claims| claims.contains_key(name))
        };
        // An id that was made here is no claim of the provider.
        let texts = texts
            .into_iter()
            .filter(|(name, text)| !text.is_empty() && has(name));
        let shown: BTreeMap<_, _> = times
            .map(|(name, second)| (name, Value::from(second)))
            .chain(texts.map(|(name, text)| (name, Value::from(text))))
            .collect();
        serde_json::to_string(&shown).unwrap_or_default()
    }

    /// The project and the role of a project's token.
    pub fn project_role(&self) -> Option<(&str, &str)> {
        if !self.is_local() {
            return None;
        }
        let (project, role) = self.sub.strip_prefix("proj:")?.split_once(':')?;
        (!role.contains(':')).then_some((project, role))
    }

    /// The subject of policies: an account, a project's role, or the provider's user.
    pub fn account(&self) -> &str {
        if let Some(claims) = &self.provider {
            return user_id(claims);
        }
        if self.project_role().is_some() {
            return &self.sub;
        }
        self.sub
            .split_once(':')
            .map_or(self.sub.as_str(), |(account, _)| account)
    }

    pub fn is_over(&self, now: Timestamp) -> bool {
        self.exp != 0 && self.exp <= now.as_second()
    }

    /// The capability that the account needs. A token that does not say so was made for API calls.
    pub fn capability(&self) -> &'static str {
        if !self.is_local() || self.sub.split(':').nth(1) == Some("login") {
            return "login";
        }
        "apiKey"
    }
}

fn is_never(exp: &i64) -> bool {
    *exp == 0
}

/// A new `server.secretkey`: base64 of 32 random bytes.
pub fn new_signing_key() -> String {
    STANDARD.encode(rand::rng().random::<[u8; 32]>())
}

pub(crate) fn sign(claims: &Claims, key: &[u8]) -> Result<String, ApiError> {
    if key.is_empty() {
        return Err(ApiError::internal(
            "argocd-secret has no server.secretkey: no session can be signed",
        ));
    }
    jsonwebtoken::encode(
        &Header::new(Algorithm::HS256),
        claims,
        &EncodingKey::from_secret(key),
    )
    .map_err(|e| ApiError::internal(format!("cannot sign the session token: {e}")))
}

/// The issuer that an unverified token names, to know who can verify it.
pub(crate) fn issuer(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Issuer {
        iss: String,
    }
    let (_, rest) = text.split_once('.')?;
    let (claims, _) = rest.split_once('.')?;
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?;
    let issuer: Issuer = serde_json::from_slice(&claims).ok()?;
    Some(issuer.iss)
}

/// Whether the token is one of this server, or claims to be.
pub(crate) fn is_local(text: &str) -> bool {
    issuer(text).is_none_or(|issuer| issuer == ISSUER)
}

/// A part of a token.
fn decoded(name: &str, part: &str) -> Result<Vec<u8>, String> {
    BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|e| {
        let at = match e {
            DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
            // A character too many.
            _ => part.len() / 4 * 4,
        };
        format!(
            "token is malformed: could not base64 decode {name}: illegal base64 data at input \
             byte {at}"
        )
    })
}

/// Refuses what is no token that this server signs, in the words of the library that the
/// reference uses.
fn check_form(text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.split('.').collect();
    let [header, _, signature] = parts.as_slice() else {
        return Err("token is malformed: token contains an invalid number of segments".into());
    };
    let header = decoded("header", header)?;
    let header: Value = serde_json::from_slice(&header).map_err(|e| {
        let why = json_error::of_unmarshal(&header, &e);
        format!("token is malformed: could not JSON decode header: {why}")
    })?;
    match header.get("alg").and_then(Value::as_str) {
        None => Err("token is unverifiable: signing method (alg) is unspecified".into()),
        Some("HS256") => decoded("signature", signature).map(drop),
        Some(other) => Err(format!(
            "token is unverifiable: error while executing keyfunc: unexpected signing method: \
             {other}"
        )),
    }
}

/// Parses and checks a token; the error says why it is not valid.
pub(crate) fn parse(text: &str, key: &[u8], now: Timestamp) -> Result<Claims, String> {
    if text.len() > MAX_BYTES {
        return Err("token is malformed: it is too long".into());
    }
    if key.is_empty() {
        return Err("the server has no signing key".into());
    }
    check_form(text)?;
    let mut validation = Validation::new(Algorithm::HS256);
    // Times are checked below, against the given time.
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation.set_issuer(&[ISSUER]);
    validation.set_required_spec_claims(&["iss", "sub"]);
    let claims = jsonwebtoken::decode::<Claims>(text, &DecodingKey::from_secret(key), &validation)
        .map_err(|e| match e.kind() {
            jsonwebtoken::errors::ErrorKind::InvalidSignature => {
                "token signature is invalid: signature is invalid".to_owned()
            }
            kind => format!("token is malformed: {kind:?}"),
        })?
        .claims;
    if claims.is_over(now) {
        return Err(EXPIRED.into());
    }
    if claims.nbf > now.as_second() {
        return Err("token has invalid claims: token is not valid yet".into());
    }
    // Projects know their first tokens by the time of their issue only.
    if claims.jti.is_empty() && claims.project_role().is_none() {
        return Err(
            "token does not have a unique identifier (jti claim) and cannot be validated".into(),
        );
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a valid second")
    }

    #[test]
    fn only_a_login_is_no_token_for_calls() {
        for (sub, known) in [
            ("bob:login", ("bob", "login")),
            ("bob:login:more", ("bob", "login")),
            ("bob:apiKey", ("bob", "apiKey")),
            ("bob:fly", ("bob", "apiKey")),
            ("bob", ("bob", "apiKey")),
        ] {
            let claims = Claims::token(sub.to_owned(), "id".to_owned(), 0, at(1000));
            assert_eq!((claims.account(), claims.capability()), known, "{sub}");
        }
    }

    #[test]
    fn a_token_is_valid_from_issue_to_expiry_with_its_key_only() {
        let claims = Claims::session("admin", 60, at(1000));
        let token = sign(&claims, b"key").expect("it signs");
        let read = parse(&token, b"key", at(1059)).expect("it is valid");
        assert_eq!((read.account(), read.capability()), ("admin", "login"));
        assert!(
            parse(&token, b"key", at(1060))
                .expect_err("expired")
                .contains("expired")
        );
        assert!(parse(&token, b"key", at(999)).is_err());
        assert!(
            parse(&token, b"other", at(1000))
                .expect_err("signature")
                .contains("signature")
        );
        assert!(parse("garbage", b"key", at(1000)).is_err());
        assert_eq!(
            parse("eyJhbGciOiJIUzI1NiJ9.e30.x", b"key", at(1000)).expect_err("no signature"),
            "token is malformed: could not base64 decode signature: illegal base64 data at input \
             byte 0"
        );
        assert!(sign(&claims, b"").is_err());
    }

    #[test]
    fn claims_in_a_log_are_argo_cds() {
        let mut claims = Claims::session("admin", 60, at(1000));
        claims.jti = "an-id".to_owned();
        assert_eq!(
            claims.for_log(false),
            r#"{"exp":1060,"iat":1000,"iss":"argocd","jti":"an-id","nbf":1000,"sub":"admin"}"#
        );
        let role = Claims::token("proj:p:r".to_owned(), String::new(), 0, at(1000));
        let sub = r#"{"iat":1000,"iss":"argocd","nbf":1000,"sub":"proj:p:r"}"#;
        assert_eq!(role.for_log(false), sub);

        let provided = |groups: Value| {
            let claims = serde_json::json!({
                "sub": "u", "iss": "https://idp", "iat": 1, "email": "a@b", "groups": groups,
            });
            Claims::of_provider(claims.as_object().expect("an object").clone())
        };
        let few = provided(serde_json::json!(["dev"]));
        let without = r#"{"email":"a@b","iat":1,"iss":"https://idp","sub":"u"}"#;
        assert_eq!(few.for_log(false), without);
        assert!(few.for_log(true).contains(r#""groups":["dev"]"#));
        let many = provided(serde_json::json!(["x".repeat(MAX_LOGGED)]));
        assert_eq!(
            many.for_log(true),
            r#"{"iat":1,"iss":"https://idp","sub":"u"}"#
        );
    }

    #[test]
    fn other_algorithms_and_issuers_are_refused() {
        let claims = Claims::session("admin", 60, at(1000));
        let other = jsonwebtoken::encode(
            &Header::new(Algorithm::HS384),
            &claims,
            &EncodingKey::from_secret(b"key"),
        )
        .expect("it signs");
        assert!(parse(&other, b"key", at(1000)).is_err());
        let foreign = Claims {
            iss: "else".into(),
            ..claims
        };
        assert!(parse(&sign(&foreign, b"key").expect("it signs"), b"key", at(1000)).is_err());
        // {"alg":"none"} with an empty signature
        let none = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJpc3MiOiJhcmdvY2QiLCJzdWIiOiJhZG1pbiIsImV4cCI6OTk5OTk5OTk5OX0.";
        assert!(parse(none, b"key", at(1000)).is_err());
    }
}

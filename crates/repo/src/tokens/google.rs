//! Tokens of Google's service accounts, for Cloud Source repositories.

use super::{
    Login, Token, Tokens,
    ask::{Content, Issued},
    jwt, refused,
};
use crate::{RepoAccess, RepoError, secret::Secret};
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

const SERVER: &str = "https://oauth2.googleapis.com/token";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const VALID: SignedDuration = SignedDuration::from_hours(1);

/// The JSON text of a key.
#[derive(Deserialize)]
struct Key {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    client_email: String,
    #[serde(default)]
    private_key: String,
    #[serde(default)]
    private_key_id: String,
    #[serde(default)]
    token_uri: String,
}

impl Tokens {
    pub(super) async fn google(
        &self,
        access: &RepoAccess,
        key: &Secret,
    ) -> Result<Token, RepoError> {
        // Not the parser's message, which could quote the key.
        let key: Key = serde_json::from_str(key.expose())
            .map_err(|_| refused(access, "gcpServiceAccountKey is no JSON text of a key"))?;
        if key.kind != "service_account" {
            let why = format!(
                "gcpServiceAccountKey has type {:?}, only service_account is supported",
                key.kind
            );
            return Err(refused(access, why));
        }
        let server = if key.token_uri.is_empty() {
            SERVER
        } else {
            &key.token_uri
        };
        let now = Timestamp::now();
        let claims = json!({
            "iss": key.client_email,
            "scope": SCOPE,
            "aud": server,
            "iat": now.as_second(),
            "exp": (now + VALID).as_second(),
        });
        let assertion = jwt::signed(&claims, &key.private_key_id, &key.private_key)
            .map_err(|e| refused(access, format!("gcpServiceAccountKey: {e}")))?;
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("assertion", &assertion),
        ];
        let (issued, _): (Issued, _) = self
            .ask(access, Method::POST, server, &[], Content::Form(&form))
            .await?;
        let lifetime = issued.lifetime();
        let login = Login::Password {
            username: key.client_email,
            password: Secret::from(issued.access_token),
        };
        Ok(Token::new(login, lifetime))
    }
}

//! Google's application default credentials.
//!
//! Main function: [`token`]; main type: [`Tokens`]. A key file (a setting's, `GOOGLE_APPLICATION_CREDENTIALS`, or
//! `gcloud`'s), else the metadata server's service account.

use crate::{CloudError, Env, Grant, Token, kept::Kept, read, web};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use rustls::{
    SignatureScheme,
    pki_types::{PrivateKeyDer, pem::PemObject as _},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{path::Path, sync::Arc};

const SCOPES: &str =
    "https://www.googleapis.com/auth/cloud-platform https://www.googleapis.com/auth/userinfo.email";
const TOKENS: &str = "https://oauth2.googleapis.com/token";
const BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// A credentials file of any type.
#[derive(Deserialize)]
#[serde(default)]
struct Credentials {
    #[serde(rename = "type")]
    kind: String,
    client_email: String,
    private_key: String,
    private_key_id: String,
    token_uri: String,
    client_id: String,
    client_secret: String,
    refresh_token: String,
}

impl Default for Credentials {
    fn default() -> Self {
        let empty = String::new;
        Self {
            kind: empty(),
            client_email: empty(),
            private_key: empty(),
            private_key_id: empty(),
            token_uri: TOKENS.to_owned(),
            client_id: empty(),
            client_secret: empty(),
            refresh_token: empty(),
        }
    }
}

/// Tokens by key file, asked for again shortly before they end.
#[derive(Default)]
pub struct Tokens {
    env: Env,
    kept: Kept<Token>,
}

impl Tokens {
    pub fn new(env: Env) -> Self {
        Self {
            env,
            kept: Kept::default(),
        }
    }

    /// # Errors
    /// As [`token`].
    pub async fn of(&self, key_file: &str) -> Result<Arc<Token>, CloudError> {
        if let Some(kept) = self.kept.get(&[key_file], Timestamp::now()) {
            return kept;
        }
        let asked = token(&self.env, key_file).await;
        let asked = asked.map(|token| {
            let until = token.until;
            (token, until)
        });
        self.kept.put(&[key_file], Timestamp::now(), asked)
    }
}

/// `key_file`: the file that a setting names; empty if none does.
///
/// # Errors
/// The text has no secrets.
pub async fn token(env: &Env, key_file: &str) -> Result<Token, CloudError> {
    let well_known = env.home(".config/gcloud/application_default_credentials.json");
    let file = Some(key_file.to_owned())
        .filter(|file| !file.is_empty())
        .or_else(|| env.get("GOOGLE_APPLICATION_CREDENTIALS"))
        .or_else(|| Path::new(&well_known).exists().then_some(well_known));
    let Some(file) = file else {
        return of_machine(env).await;
    };
    let text = read(&file).await?;
    let wrong = |why: String| CloudError::settings(format!("{file}: {why}"));
    let credentials: Credentials = serde_json::from_str(&text)
        .map_err(|e| wrong(format!("it cannot be read ({})", web::place(&e))))?;
    let answer = match credentials.kind.as_str() {
        "service_account" => {
            let assertion = assertion(&credentials, Timestamp::now()).map_err(wrong)?;
            let fields = [("grant_type", BEARER), ("assertion", &assertion)];
            web::send(web::post(&credentials.token_uri, &[], &fields)?).await?
        }
        "authorized_user" => {
            let fields = [
                ("grant_type", "refresh_token"),
                ("refresh_token", &credentials.refresh_token),
                ("client_id", &credentials.client_id),
                ("client_secret", &credentials.client_secret),
            ];
            web::send(web::post(&credentials.token_uri, &[], &fields)?).await?
        }
        other => {
            return Err(wrong(format!(
                "credentials of type {other:?} are not supported; use service_account or authorized_user"
            )));
        }
    };
    web::json::<Grant>(&answer)?.token()
}

/// The service account of the instance or, with workload identity, of the pod.
async fn of_machine(env: &Env) -> Result<Token, CloudError> {
    let host = env
        .get("GCE_METADATA_HOST")
        .unwrap_or_else(|| "169.254.169.254".to_owned());
    let url = format!(
        "http://{host}/computeMetadata/v1/instance/service-accounts/default/token?scopes={}",
        web::escape(&SCOPES.replace(' ', ","))
    );
    let answer = web::send_here(web::get(&url, &[("metadata-flavor", "Google")])?).await;
    let answer = answer.map_err(|why| CloudError::Machine {
        without: "GOOGLE_APPLICATION_CREDENTIALS is not set",
        why: Box::new(why),
    })?;
    web::json::<Grant>(&answer)?.token()
}

/// A JWT for the service account, signed with its key.
fn assertion(account: &Credentials, now: Timestamp) -> Result<String, String> {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = json!({"alg": "RS256", "typ": "JWT", "kid": account.private_key_id});
    let claims = json!({"iss": account.client_email, "scope": SCOPES, "aud": account.token_uri, "iat": now.as_second(), "exp": now.as_second() + 3600});
    let text = format!("{}.{}", part(header), part(claims));
    let key = PrivateKeyDer::from_pem_slice(account.private_key.as_bytes())
        .map_err(|e| format!("private_key: {e}"))?;
    let key = rustls::crypto::ring::sign::any_supported_type(&key)
        .map_err(|e| format!("private_key: {e}"))?;
    let signer = key
        .choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256])
        .ok_or("private_key: it is not an RSA key")?;
    let signature = signer
        .sign(text.as_bytes())
        .map_err(|e| format!("private_key: {e}"))?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

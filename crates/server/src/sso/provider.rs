//! What an identity provider says over HTTP: where things are, its keys, tokens and groups.
//!
//! Main type: [`Provider`]. Its answers are bounded, nothing is sent on to where it redirects, and
//! strangers cannot have it asked often.

use super::{
    DexTls,
    config::{DEX_PATH, Graph, SsoConfig},
    oidc::{self, Discovery, OidcError, Tokens, encoded},
    overage,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, jwk::JwkSet};
use reqwest::{Client, redirect::Policy};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Mutex;

const TIMEOUT: Duration = Duration::from_secs(10);
/// As much as fits into the cookies of a session, and what is said beside it.
const MAX_TOKEN: usize = 128 * 1024;
/// How long what the provider says about itself is used.
const LIFETIME: Duration = Duration::from_secs(600);
/// How soon the provider is asked again for something that it did not have.
const PAUSE: Duration = Duration::from_secs(5);
/// How far the clocks may differ before a token is not valid yet, as in the reference.
const NOT_BEFORE_LEEWAY: i64 = 300;

/// The algorithms whose verification needs no secret.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Why the provider could not be used, or does not vouch for a token. Never has a token in it.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    #[error(transparent)]
    Oidc(#[from] OidcError),
    #[error("{0}")]
    Token(String),
    #[error("the token is expired")]
    Expired,
}

struct Known<T> {
    value: Option<Arc<T>>,
    asked: Option<Instant>,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self {
            value: None,
            asked: None,
        }
    }
}

/// One provider, as the settings describe it.
pub struct Provider {
    pub config: Arc<SsoConfig>,
    /// Where Dex answers, without the path of the issuer.
    dex: String,
    client: Client,
    discovery: Mutex<Known<Discovery>>,
    keys: Mutex<Known<JwkSet>>,
}

impl Provider {
    /// `dex`: the address of the Dex server, such as `http://argocd-dex-server:5556`.
    pub fn new(
        config: Arc<SsoConfig>,
        (dex, dex_tls): (&str, &DexTls),
    ) -> Result<Self, ProviderError> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failed = |e: reqwest::Error| ProviderError::Token(format!("rootCA: {e}"));
        let accepts_any = config.is_insecure || config.is_dex() && dex_tls.accepts_any;
        let mut builder = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(TIMEOUT)
            .timeout(TIMEOUT)
            .tls_danger_accept_invalid_certs(accepts_any);
        if config.is_dex() && !dex_tls.trusted.is_empty() {
            let bundle = reqwest::Certificate::from_pem_bundle(dex_tls.trusted.as_bytes());
            builder = builder.tls_certs_merge(bundle.map_err(failed)?);
        }
        if !config.root_ca.is_empty() {
            let bundle = reqwest::Certificate::from_pem_bundle(config.root_ca.as_bytes());
            builder = builder.tls_certs_merge(bundle.map_err(failed)?);
        }
        let asked = match config.is_dex() {
            true => dex,
            false => &config.issuer,
        };
        Ok(Self {
            client: oidc::client_for(builder, asked).map_err(failed)?,
            dex: dex.trim_end_matches('/').to_owned(),
            config,
            discovery: Mutex::default(),
            keys: Mutex::default(),
        })
    }

    /// Where a URL below the issuer answers: Dex is asked directly, because the address in its
    /// issuer is this server's own.
    fn address(&self, url: &str) -> String {
        let below = self
            .config
            .is_dex()
            .then(|| url.strip_prefix(&*self.config.issuer));
        match below.flatten() {
            Some(rest) => format!("{}{DEX_PATH}{rest}", self.dex),
            None => url.to_owned(),
        }
    }

    pub async fn discovery(&self) -> Result<Arc<Discovery>, ProviderError> {
        let url = oidc::metadata_url(&self.config.issuer);
        let found = self.known(&self.discovery, &url, LIFETIME).await?;
        // Otherwise another provider's document could name keys of its own.
        if !self.config.is_issuer(&found.issuer) {
            let error = OidcError::Issuer {
                found: found.issuer.clone(),
                expected: self.config.issuer.clone(),
            };
            return Err(error.into());
        }
        Ok(found)
    }

    /// What was fetched not longer ago than `age`, or is fetched now.
    async fn known<T: DeserializeOwned>(
        &self,
        known: &Mutex<Known<T>>,
        url: &str,
        age: Duration,
    ) -> Result<Arc<T>, ProviderError> {
        let mut known = known.lock().await;
        let asked = known.asked.map(|at| at.elapsed());
        if let (Some(value), Some(asked)) = (&known.value, asked)
            && (asked < age || asked < PAUSE)
        {
            return Ok(value.clone());
        }
        if asked.is_some_and(|asked| asked < PAUSE) {
            let error = OidcError::Request {
                url: url.to_owned(),
                why: "it did not answer a moment ago".to_owned(),
            };
            return Err(error.into());
        }
        known.asked = Some(Instant::now());
        let value = Arc::new(oidc::json(self.client.get(self.address(url)), url).await?);
        known.value = Some(Arc::clone(&value));
        Ok(value)
    }

    /// Exchanges a code for tokens.
    pub async fn exchange(
        &self,
        code: &str,
        redirect: &str,
        verifier: Option<&str>,
    ) -> Result<Tokens, ProviderError> {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect),
        ];
        form.extend(verifier.map(|verifier| ("code_verifier", verifier)));
        self.tokens(form).await
    }

    /// New tokens for a refresh token.
    pub async fn refresh(&self, token: &str) -> Result<Tokens, ProviderError> {
        let form = vec![("grant_type", "refresh_token"), ("refresh_token", token)];
        self.tokens(form).await
    }

    /// Asks the token endpoint as the client that the settings name.
    async fn tokens<'a>(
        &'a self,
        mut form: Vec<(&'a str, &'a str)>,
    ) -> Result<Tokens, ProviderError> {
        let discovery = self.discovery().await?;
        let config = &self.config;
        let methods = &discovery.token_endpoint_auth_methods_supported;
        let posts = methods.iter().any(|m| m == "client_secret_post")
            && !methods.iter().any(|m| m == "client_secret_basic");
        if posts || config.client_secret.is_empty() {
            form.push(("client_id", &config.client_id));
        }
        if posts && !config.client_secret.is_empty() {
            form.push(("client_secret", &config.client_secret));
        }
        let url = &discovery.token_endpoint;
        let mut request = self.client.post(self.address(url));
        if !posts && !config.client_secret.is_empty() {
            let pair = format!(
                "{}:{}",
                encoded_value(&config.client_id),
                encoded_value(&config.client_secret)
            );
            let basic = format!("Basic {}", BASE64_STANDARD.encode(pair));
            request = request.header("authorization", basic);
        }
        Ok(oidc::tokens(request, url, &form).await?)
    }

    /// The claims that the provider vouches for.
    pub async fn verify(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Map<String, Value>, ProviderError> {
        let refused = |why: &str| ProviderError::Token(why.to_owned());
        if token.len() > MAX_TOKEN {
            return Err(refused("the token is too long"));
        }
        let header = jsonwebtoken::decode_header(token)
            .map_err(|e| refused(&format!("the token's header: {e}")))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(refused("the token's algorithm is not accepted"));
        }
        let mut validation = Validation::new(header.alg);
        // Checked below: by this server's clock, and by the settings.
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        let claims = match self.signed(token, &header, &validation, LIFETIME).await? {
            Some(claims) => claims,
            // The keys may be others by now.
            None => self
                .signed(token, &header, &validation, Duration::ZERO)
                .await?
                .ok_or_else(|| refused("no key of the provider fits the token's signature"))?,
        };
        self.check(&claims, now)?;
        Ok(claims)
    }

    /// The claims, if a key that is not older than `age` fits.
    async fn signed(
        &self,
        token: &str,
        header: &jsonwebtoken::Header,
        validation: &Validation,
        age: Duration,
    ) -> Result<Option<Map<String, Value>>, ProviderError> {
        let url = self.discovery().await?.jwks_uri.clone();
        let keys = self.known(&self.keys, &url, age).await?;
        let fits =
            |key: &&jsonwebtoken::jwk::Jwk| header.kid.is_none() || key.common.key_id == header.kid;
        for key in keys.keys.iter().filter(fits) {
            let Ok(key) = DecodingKey::from_jwk(key) else {
                continue;
            };
            if let Ok(data) = jsonwebtoken::decode::<Map<String, Value>>(token, &key, validation) {
                return Ok(Some(data.claims));
            }
        }
        Ok(None)
    }

    fn check(&self, claims: &Map<String, Value>, now: Timestamp) -> Result<(), ProviderError> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
        let seconds = |name: &str| claims.get(name).and_then(whole_seconds);
        let refused = |why: String| Err(ProviderError::Token(why));
        let config = &self.config;
        if !config.is_issuer(text("iss")) {
            return refused("the token has another issuer".to_owned());
        }
        let audiences: Vec<&str> = match claims.get("aud") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let is_ours = |a: &&str| config.audiences.iter().any(|ours| ours == a);
        let is_for_us = match audiences.is_empty() {
            true => config.accepts_no_audience,
            false => audiences.iter().any(is_ours),
        };
        if !is_for_us {
            return refused(format!(
                "the token's audience is {audiences:?}, not one of {:?}",
                config.audiences
            ));
        }
        if seconds("exp").is_none_or(|exp| exp <= now.as_second()) {
            return Err(ProviderError::Expired);
        }
        if seconds("nbf").is_some_and(|nbf| nbf > now.as_second() + NOT_BEFORE_LEEWAY) {
            return refused("the token is not valid yet".to_owned());
        }
        let subject = text("sub");
        // Only this server issues tokens of projects.
        if subject.is_empty() || subject.starts_with("proj:") {
            return refused(format!("the token's subject {subject:?} cannot be a user"));
        }
        Ok(())
    }

    /// The groups that the user info endpoint names.
    pub async fn groups(
        &self,
        path: &str,
        access_token: &str,
        subject: &str,
    ) -> Result<Value, ProviderError> {
        let url = if path.is_empty() {
            self.discovery().await?.userinfo_endpoint.clone()
        } else {
            format!("{}{path}", self.config.issuer.trim_end_matches('/'))
        };
        let request = self
            .client
            .get(self.address(&url))
            .bearer_auth(access_token);
        let info: Map<String, Value> = oidc::json(request, &url).await?;
        if info.get("sub").and_then(Value::as_str) != Some(subject) {
            return Err(ProviderError::Token(
                "the userinfo endpoint answered about another subject".to_owned(),
            ));
        }
        Ok(info.get("groups").cloned().unwrap_or_else(|| {
            let has: Vec<&str> = info.keys().map(String::as_str).collect();
            tracing::warn!(
                subject,
                "The userinfo endpoint names no groups, only {}",
                has.join(", ")
            );
            Value::Null
        }))
    }

    /// The groups that Entra ID left out of a token.
    pub async fn groups_left_out(
        &self,
        graph: &Graph,
        access_token: &str,
    ) -> Result<Value, ProviderError> {
        overage::groups(&self.client, graph, access_token).await
    }

    /// Passes a request for Dex on to it.
    pub async fn dex(
        &self,
        method: reqwest::Method,
        path_and_query: &str,
        headers: reqwest::header::HeaderMap,
        body: Vec<u8>,
    ) -> Result<reqwest::Response, ProviderError> {
        let url = format!("{}{path_and_query}", self.dex);
        let request = self
            .client
            .request(method, &url)
            .headers(headers)
            .body(body);
        let answer = request.send().await.map_err(|e| OidcError::Request {
            url,
            why: e.without_url().to_string(),
        })?;
        Ok(answer)
    }
}

/// A time in seconds; some providers send a float.
pub fn whole_seconds(value: &Value) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a time in the far future is one"
    )]
    let of_float = |f: f64| f as i64;
    value.as_i64().or_else(|| value.as_f64().map(of_float))
}

fn encoded_value(value: &str) -> String {
    encoded(&[("", value)]).trim_start_matches('=').to_owned()
}

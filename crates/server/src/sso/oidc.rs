//! OpenID Connect over HTTP, as the server and the command line need it: what a provider says about
//! itself, tokens for a code, and PKCE.
//!
//! Main functions: [`metadata`], [`tokens`]. It knows no settings and no sessions, remembers
//! nothing, and leaves connections (trust, redirects, timeouts) to its caller.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use rand::{Rng as _, distr::Alphanumeric};
use reqwest::{Client, ClientBuilder, RequestBuilder, StatusCode, Url};
use serde::{Deserialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};
use tiphys_cluster::connect::is_here;

/// The largest answer that is read, in bytes.
const MAX_ANSWER: usize = 1 << 20;
/// Letters of a code verifier; RFC 7636 wants 43 to 128.
const VERIFIER: usize = 64;

/// Why a provider gave no answer, or refused. Never has a token or a secret in it.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    #[error("{url}: {why}")]
    Request { url: String, why: String },
    #[error("its discovery document names the issuer {found:?}, not {expected:?}")]
    Issuer { found: String, expected: String },
    /// As the OAuth 2 library of the reference prints it.
    #[error("oauth2: {code:?} {description:?}")]
    Refused { code: String, description: String },
}

/// `/.well-known/openid-configuration`.
#[derive(Clone, Debug, Deserialize, Default)]
#[serde(default)]
pub struct Discovery {
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub jwks_uri: String,
    pub userinfo_endpoint: String,
    pub token_endpoint_auth_methods_supported: Vec<String>,
    pub scopes_supported: Vec<String>,
}

/// The answer of the token endpoint. There is no `Debug`, because it has tokens.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Tokens {
    #[serde(deserialize_with = "or_empty")]
    pub id_token: String,
    #[serde(deserialize_with = "or_empty")]
    pub access_token: String,
    #[serde(deserialize_with = "or_empty")]
    pub refresh_token: String,
    /// Seconds.
    pub expires_in: Option<u64>,
    #[serde(deserialize_with = "or_empty")]
    error: String,
    #[serde(deserialize_with = "or_empty")]
    error_description: String,
}

/// Some servers send null for what they leave out.
fn or_empty<'de, D: serde::Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

/// Whether two texts name the same issuer: a slash at the end does not matter.
pub fn is_same_issuer(one: &str, other: &str) -> bool {
    !one.is_empty() && one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// Where an issuer describes itself.
pub fn metadata_url(issuer: &str) -> String {
    let issuer = issuer.trim_end_matches('/');
    format!("{issuer}/.well-known/openid-configuration")
}

/// What an issuer says about itself, asked without a memory.
///
/// # Errors
/// If it does not answer, or describes another issuer, which could name keys of its own.
pub async fn metadata(client: &Client, issuer: &str) -> Result<Discovery, OidcError> {
    let url = metadata_url(issuer);
    let found: Discovery = json(client.get(&url), &url).await?;
    if !is_same_issuer(&found.issuer, issuer) {
        return Err(OidcError::Issuer {
            found: found.issuer,
            expected: issuer.to_owned(),
        });
    }
    Ok(found)
}

/// Sends a request and reads its bounded answer. `url` is what errors name.
///
/// # Errors
/// If there is no answer, or one that is too long.
pub async fn send(request: RequestBuilder, url: &str) -> Result<(StatusCode, Vec<u8>), OidcError> {
    let failed = |why: String| fault(url, why);
    let reason = |e: reqwest::Error| failed(e.without_url().to_string());
    let mut answer = request.send().await.map_err(reason)?;
    let (status, mut content) = (answer.status(), Vec::new());
    while let Some(chunk) = answer.chunk().await.map_err(reason)? {
        if content.len() + chunk.len() > MAX_ANSWER {
            return Err(failed(format!("more than {MAX_ANSWER} bytes")));
        }
        content.extend_from_slice(&chunk);
    }
    Ok((status, content))
}

/// As [`send`], for an answer that must be a success with a document.
///
/// # Errors
/// Those of [`send`], another status, and what is no such document.
pub async fn json<T: DeserializeOwned>(request: RequestBuilder, url: &str) -> Result<T, OidcError> {
    let (status, content) = send(request, url).await?;
    if !status.is_success() {
        return Err(fault(url, status.to_string()));
    }
    serde_json::from_slice(&content).map_err(|e| {
        let place = format!("line {}, column {}", e.line(), e.column());
        fault(
            url,
            format!("the answer is not the expected JSON ({place})"),
        )
    })
}

/// Asks a token endpoint. `form` has the grant; the client's identity is in it or in the request.
///
/// # Errors
/// Those of [`send`], the provider's refusal, another status, and what is no such document.
pub async fn tokens(
    request: RequestBuilder,
    url: &str,
    form: &[(&str, &str)],
) -> Result<Tokens, OidcError> {
    let request = request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(encoded(form));
    let (status, content) = send(request, url).await?;
    let tokens: Tokens = match serde_json::from_slice(&content) {
        Err(e) if status.is_success() => {
            let why = format!(
                "the answer is not the expected JSON (column {})",
                e.column()
            );
            return Err(fault(url, why));
        }
        tokens => tokens.unwrap_or_default(),
    };
    if !tokens.error.is_empty() {
        return Err(OidcError::Refused {
            code: tokens.error,
            description: tokens.error_description,
        });
    }
    if !status.is_success() {
        return Err(fault(url, status.to_string()));
    }
    Ok(tokens)
}

/// A client for one provider: what is on this machine is never asked through the proxy of the
/// environment.
pub fn client_for(builder: ClientBuilder, url: &str) -> reqwest::Result<Client> {
    match url.parse().is_ok_and(|url| is_here(&url)) {
        true => builder.no_proxy().build(),
        false => builder.build(),
    }
}

fn fault(url: &str, why: String) -> OidcError {
    OidcError::Request {
        url: url.to_owned(),
        why,
    }
}

/// A secret of this many letters and digits, such as a state.
pub fn letters(count: usize) -> String {
    let letters = rand::rng().sample_iter(Alphanumeric).take(count);
    letters.map(char::from).collect()
}

/// A code verifier of PKCE.
pub fn verifier() -> String {
    letters(VERIFIER)
}

/// Adds the challenge of a verifier to the address of an authorization endpoint.
pub fn add_challenge(url: &mut Url, verifier: &str) {
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    url.query_pairs_mut()
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256");
}

/// A query, which is also the body of a form.
pub fn encoded(pairs: &[(&str, &str)]) -> String {
    // Any base does: only the query is used.
    let url = Url::parse_with_params("http://form.invalid/", pairs);
    let query = url.ok().and_then(|u| u.query().map(str::to_owned));
    query.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_are_compared_without_their_last_slash() {
        for (one, other, same) in [
            ("https://a/dex", "https://a/dex/", true),
            ("https://a", "https://b", false),
            ("https://a/dex", "https://a", false),
            ("", "", false),
        ] {
            assert_eq!(is_same_issuer(one, other), same, "{one} {other}");
        }
        assert_eq!(
            metadata_url("https://a/dex/"),
            "https://a/dex/.well-known/openid-configuration"
        );
    }

    /// The example of RFC 7636, appendix B.
    #[test]
    fn a_challenge_is_the_hash_of_its_verifier() {
        let mut url = Url::parse("https://a/auth").expect("a URL");
        add_challenge(&mut url, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(
            url.query(),
            Some(
                "code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM\
                 &code_challenge_method=S256"
            )
        );
        assert!(verifier().len() == 64 && verifier() != verifier());
    }

    #[test]
    fn forms_are_encoded() {
        assert_eq!(encoded(&[("a b", "c&d"), ("e", "")]), "a+b=c%26d&e=");
    }
}

//! Entra ID names at most 200 groups in a token; those who are in more have a note there instead,
//! and Microsoft Graph says their groups.
//!
//! The note also names an address, which is never asked: the caller's access token would go wherever
//! a token says.

use super::{config::Graph, oidc, provider::ProviderError};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use reqwest::Client;
use serde::Deserialize;
use serde_json::{Map, Value};

const SCOPE: &str = "User.Read";

/// Whether the provider says that the groups are elsewhere.
pub fn leaves_groups_out(claims: &Map<String, Value>) -> bool {
    let names = claims.get("_claim_names").and_then(Value::as_object);
    let has_sources = claims.get("_claim_sources").is_some_and(|v| !v.is_null());
    has_sources && names.is_some_and(|names| names.contains_key("groups"))
}

/// The groups of whom the access token is of.
pub async fn groups(
    client: &Client,
    graph: &Graph,
    access_token: &str,
) -> Result<Value, ProviderError> {
    #[derive(Deserialize)]
    struct Answer {
        value: Vec<String>,
    }
    if !may_be_asked(access_token) {
        return Err(ProviderError::Token(format!(
            "access token missing {SCOPE} scope; ensure the {SCOPE} delegated permission is granted \
             on the app registration in Azure AD"
        )));
    }
    let url = format!("{}/me/getMemberGroups", graph.endpoint);
    let request = client
        .post(&url)
        .bearer_auth(access_token)
        .header("content-type", "application/json")
        .body(r#"{"securityEnabledOnly":true}"#);
    let answer: Answer = oidc::json(request, &url).await?;
    Ok(answer.value.into())
}

/// Whether the token has the scope. It is the provider's, and only looked into.
fn may_be_asked(access_token: &str) -> bool {
    let is_scope = |scope: &str| scope.eq_ignore_ascii_case(SCOPE);
    let payload = access_token.split('.').nth(1).unwrap_or_default();
    let content = BASE64_URL_SAFE_NO_PAD.decode(payload).unwrap_or_default();
    let claims: Value = serde_json::from_slice(&content).unwrap_or_default();
    match &claims["scp"] {
        Value::String(scopes) => scopes.split_whitespace().any(is_scope),
        Value::Array(scopes) => scopes.iter().filter_map(Value::as_str).any(is_scope),
        _ => false,
    }
}

#[cfg(test)]
mod tests;

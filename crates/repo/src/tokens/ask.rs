//! Questions to the servers that give tokens.

use super::{Tokens, refused};
use crate::{RepoAccess, RepoError};
use reqwest::{Method, Url, header::HeaderMap};
use serde::{Deserialize, de::DeserializeOwned};
use tiphys_api::{access::shown_url, repo_url::RepoUrl};

/// Longest answer.
const MAX_ANSWER: u64 = 1024 * 1024;
/// Longest message of a server in an error.
const MAX_MESSAGE: usize = 300;

/// What a server says about a refusal: GitHub in `message`, OAuth in the others.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    message: String,
    error: String,
    error_description: String,
}

/// The answer of an OAuth server.
#[derive(Deserialize)]
pub(super) struct Issued {
    pub access_token: String,
    #[serde(default)]
    expires_in: serde_json::Value,
}

impl Issued {
    /// Seconds; some servers write a text.
    pub fn lifetime(&self) -> Option<u64> {
        let text = self.expires_in.as_str().and_then(|text| text.parse().ok());
        self.expires_in.as_u64().or(text)
    }
}

pub(super) enum Content<'a> {
    None,
    Form(&'a [(&'a str, &'a str)]),
}

impl Tokens {
    /// The answer of a server that gives tokens for `access`.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        access: &RepoAccess,
        method: Method,
        url: &str,
        headers: &[(&'static str, &str)],
        content: Content<'_>,
    ) -> Result<(T, HeaderMap), RepoError> {
        let address = Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host())
            .ok_or_else(|| refused(access, format!("{url:?} is no address of a server")))?;
        let asking = asking(access, &address);
        let _share = self.clients.contact(&asking, &address).await?;
        let mut request = self.clients.of(&asking, true)?.request(method, address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Content::Form(pairs) = content {
            request = request
                .header("Content-Type", "application/x-www-form-urlencoded")
                .body(form(pairs));
        }
        let failed = |e: RepoError| RepoError::NoToken {
            url: shown_url(&access.url),
            reason: e.to_string(),
            retryable: e.retryable(),
        };
        let answer = request.send().await;
        let answer = answer.map_err(|e| failed(self.clients.failed(url, &e)))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = self.clients.body(url, MAX_ANSWER, answer).await;
        let body = body.map_err(failed)?;
        if !status.is_success() {
            let said = message(&body);
            return Err(RepoError::NoToken {
                url: shown_url(&access.url),
                reason: format!("{} answered {status}{said}", shown_url(url)),
                retryable: status.is_server_error() || status.as_u16() == 429,
            });
        }
        let answer = serde_json::from_slice(&body);
        // Not the parser's message, which could quote a token.
        let answer =
            answer.map_err(|_| refused(access, format!("{}: bad answer", shown_url(url))))?;
        Ok((answer, headers))
    }
}

/// How a server is reached: like the repository, if it has the same host.
pub(super) fn asking(access: &RepoAccess, address: &Url) -> RepoAccess {
    let same =
        RepoUrl::parse(&access.url).is_ok_and(|url| Some(url.host.as_str()) == address.host_str());
    let known = if same {
        access.clone()
    } else {
        RepoAccess::default()
    };
    RepoAccess {
        url: address.to_string(),
        ca_data: known.ca_data,
        tls_client_cert: known.tls_client_cert,
        tls_client_key: known.tls_client_key,
        insecure: known.insecure,
        proxy: access.proxy.clone(),
        no_proxy: access.no_proxy.clone(),
        project: access.project.clone(),
        ..RepoAccess::default()
    }
}

fn form(pairs: &[(&str, &str)]) -> String {
    let Ok(mut url) = Url::parse("http://form.invalid") else {
        return String::new();
    };
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

fn message(body: &[u8]) -> String {
    let said: Refusal = serde_json::from_slice(body).unwrap_or_default();
    let said = [said.message, said.error_description, said.error];
    let Some(said) = said.into_iter().find(|said| !said.is_empty()) else {
        return String::new();
    };
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(": {}", line.chars().take(MAX_MESSAGE).collect::<String>())
}

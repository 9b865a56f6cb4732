//! The browser's way to the identity provider and back: `/auth/login` and `/auth/callback`.

use crate::{
    cookies::{COOKIE, pieces},
    sso::{
        LoginState, PAUSE, Provider, ProviderError, SsoConfig, leaves_groups_out,
        oidc::{add_challenge, encoded, letters, verifier},
    },
    state::State,
};
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode,
    header::{COOKIE as COOKIES, HOST, SET_COOKIE},
};
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};
use tiphys_rpc::{set_cookie, set_cookies, text};
use tonic::body::Body;

pub const LOGIN: &str = "/auth/login";
pub const CALLBACK: &str = "/auth/callback";
/// What the names of the cookies of sign-ins begin with.
const STATE_COOKIE: &str = "argocd.oauthstate";
/// How long a sign-in may take, in seconds.
const PATIENCE: i64 = 300;
/// How many sign-ins a browser may have begun at once.
const AT_ONCE: usize = 16;
const NOT_OURS: &str = "Invalid redirect URL: the protocol and host (including port) must match and the path must be within allowed URLs if provided\n";

type Answer = Response<Body>;

/// What the handlers begin with, or the answer if nobody can sign in this way.
pub async fn provider(state: &State) -> Result<(Arc<SsoConfig>, Arc<Provider>, Vec<u8>), Answer> {
    let settings = state.settings.get().await.map_err(|e| {
        tracing::error!(error = e.message, "The settings cannot be read");
        text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the settings cannot be read\n",
        )
    })?;
    let config = match &settings.sso {
        Ok(Some(config)) => config.clone(),
        Ok(None) => return Err(text(StatusCode::NOT_FOUND, "404 page not found\n")),
        Err(fault) => {
            tracing::error!(%fault, "Nobody can sign in with the identity provider");
            return Err(text(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("{fault}\n"),
            ));
        }
    };
    let provider = state.sso.provider(&config).map_err(unusable)?;
    Ok((config, provider, settings.signing_key.clone()))
}

fn unusable(e: ProviderError) -> Answer {
    tracing::error!(error = %e, "The identity provider cannot be used");
    text(StatusCode::INTERNAL_SERVER_ERROR, format!("{e}\n"))
}

fn parameter(request: &Request<Body>, name: &str) -> Option<String> {
    let query = request.uri().query()?;
    let url = Url::parse(&format!("http://query.invalid/?{query}")).ok()?;
    let mut pairs = url.query_pairs();
    pairs.find(|(n, _)| n == name).map(|(_, v)| v.into_owned())
}

/// This server's own address for the caller: the one of the settings that has the host of the
/// request, or the first one.
fn base<'a>(config: &'a SsoConfig, headers: &HeaderMap) -> Option<&'a str> {
    let host = headers.get(HOST).and_then(|h| h.to_str().ok());
    let has_host = |url: &&String| {
        let Ok(url) = Url::parse(url) else {
            return false;
        };
        let name = url.host_str().unwrap_or_default();
        let full = url
            .port()
            .map_or(name.to_owned(), |port| format!("{name}:{port}"));
        host == Some(&*full)
    };
    let found = config.base_urls.iter().find(has_host);
    found
        .or_else(|| config.base_urls.first())
        .map(String::as_str)
}

/// Whether a browser may be sent there after the sign-in. Paths are compared by whole segments.
fn is_ours(return_url: &str, config: &SsoConfig) -> bool {
    if return_url.is_empty() {
        return true;
    }
    // A proxy may decode what is escaped.
    let decoded = percent_decode_str(return_url).collect::<Vec<u8>>();
    if decoded.iter().any(|b| b.is_ascii_control() || *b == b'\\') {
        return false;
    }
    let Ok(wanted) = Url::parse(return_url) else {
        return false;
    };
    if !wanted.username().is_empty() || wanted.password().is_some() {
        return false;
    }
    let below = |base: &str| {
        let base = base.trim_end_matches('/');
        wanted.path() == base
            || wanted
                .path()
                .strip_prefix(base)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    config.base_urls.iter().any(|ours| {
        Url::parse(ours).is_ok_and(|ours| ours.origin() == wanted.origin() && below(ours.path()))
    })
}

pub fn redirect(to: &str) -> Answer {
    tiphys_rpc::redirect(StatusCode::SEE_OTHER, to)
}

/// The name of the cookie that a sign-in is remembered with. It is the sign-in's own: a browser may
/// begin several at once, such as when it opens its tabs again.
fn state_cookie_name(state: &str) -> String {
    let known: String = state
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(8)
        .collect();
    format!("{STATE_COOKIE}.{known}")
}

/// A cookie that comes along when the provider sends the browser back. None: it is over.
fn state_cookie(name: &str, value: Option<&str>, only_https: bool) -> Option<HeaderValue> {
    let secure = if only_https { "; Secure" } else { "" };
    let ends = match value {
        None => "; Max-Age=0".to_owned(),
        Some(_) => {
            let ends = Timestamp::now().as_second() + PATIENCE;
            let ends = Timestamp::from_second(ends).ok()?;
            ends.strftime("; Expires=%a, %d %b %Y %H:%M:%S GMT")
                .to_string()
        }
    };
    let value = value.unwrap_or_default();
    let cookie = format!("{name}={value}{ends}; HttpOnly{secure}; SameSite=Lax");
    HeaderValue::from_str(&cookie).ok()
}

/// Whether cookies are for HTTPS only: where this server's own address is.
fn only_https(state: &State, base: &str) -> bool {
    state.options.secure_cookie || base.starts_with("https://")
}

/// Sends the browser to the provider.
pub async fn login(state: Arc<State>, request: Request<Body>) -> Answer {
    let (config, provider, signing_key) = match provider(&state).await {
        Ok(found) => found,
        Err(answer) => return answer,
    };
    let return_url = parameter(&request, "return_url").unwrap_or_default();
    if !is_ours(&return_url, &config) {
        return text(StatusCode::BAD_REQUEST, NOT_OURS);
    }
    let Some(base) = base(&config, request.headers()) else {
        let why = "argocd-cm has no url, which the identity provider needs to send browsers back\n";
        return text(StatusCode::INTERNAL_SERVER_ERROR, why);
    };
    let discovery = match provider.discovery().await {
        Ok(discovery) => discovery,
        Err(e) => return unusable(e),
    };
    let begun = LoginState {
        state: letters(32),
        return_url,
        verifier: config.uses_pkce.then(verifier),
        ends: Timestamp::now().as_second() + PATIENCE,
    };
    let Ok(mut url) = Url::parse(&discovery.authorization_endpoint) else {
        let why = "the identity provider names no valid authorization_endpoint\n";
        return text(StatusCode::INTERNAL_SERVER_ERROR, why);
    };
    let redirect_uri = format!("{base}{CALLBACK}");
    {
        let scopes = config.requested_scopes().join(" ");
        let mut query = url.query_pairs_mut();
        query
            .append_pair("client_id", &config.client_id)
            .append_pair("redirect_uri", &redirect_uri)
            .append_pair("response_type", "code")
            .append_pair("scope", &scopes)
            .append_pair("state", &begun.state);
        if !config.id_token_claims.is_empty() {
            let claims = serde_json::json!({"id_token": config.id_token_claims});
            query.append_pair("claims", &claims.to_string());
        }
        if !config.domain_hint.is_empty() {
            query.append_pair("domain_hint", &config.domain_hint);
        }
        if !config.connector_id.is_empty() {
            query.append_pair("connector_id", &config.connector_id);
        }
    }
    if let Some(verifier) = &begun.verifier {
        add_challenge(&mut url, verifier);
    }
    let Some(sealed) = begun.seal(&signing_key) else {
        let why = "argocd-secret has no server.secretkey\n";
        return text(StatusCode::INTERNAL_SERVER_ERROR, why);
    };
    let mut answer = redirect(url.as_str());
    let only_https = only_https(&state, base);
    let cookie = state_cookie(&state_cookie_name(&begun.state), Some(&sealed), only_https);
    // A browser that is sent around in a circle would otherwise send more and more of them.
    let mut earlier = state_cookies(request.headers());
    if earlier.len() < AT_ONCE {
        earlier.clear();
    }
    let over = earlier
        .iter()
        .filter_map(|(name, _)| state_cookie(name, None, only_https));
    let set = over.chain(cookie).map(|cookie| (SET_COOKIE, cookie));
    answer.headers_mut().extend(set);
    answer
}

/// The cookies of sign-ins that a browser has begun, with their names.
fn state_cookies(headers: &HeaderMap) -> Vec<(String, String)> {
    let all = headers.get_all(COOKIES).iter();
    let texts = all.filter_map(|value| value.to_str().ok());
    texts
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| name.starts_with(STATE_COOKIE))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The provider has sent the browser back.
pub async fn callback(state: Arc<State>, request: Request<Body>) -> Answer {
    let (config, provider, signing_key) = match provider(&state).await {
        Ok(found) => found,
        Err(answer) => return answer,
    };
    if let Some(error) = parameter(&request, "error").filter(|e| !e.is_empty()) {
        let why = parameter(&request, "error_description").unwrap_or_default();
        let shown = plain(&format!("{error}: {why}"));
        return text(StatusCode::BAD_REQUEST, format!("{shown}\n"));
    }
    let Some(code) = parameter(&request, "code").filter(|code| !code.is_empty()) else {
        let why = "the identity provider sent no code; the implicit flow is not supported\n";
        return text(StatusCode::BAD_REQUEST, why);
    };
    let sent = parameter(&request, "state").unwrap_or_default();
    let name = state_cookie_name(&sent);
    let begun = state_cookies(request.headers());
    if begun.is_empty() {
        return text(StatusCode::BAD_REQUEST, "http: named cookie not present\n");
    }
    let now = Timestamp::now();
    let begun = begun
        .iter()
        .find(|(known, _)| *known == name)
        .and_then(|(_, sealed)| LoginState::open(sealed, &signing_key, now.as_second()))
        .filter(|begun| begun.state == sent);
    let Some(begun) = begun else {
        let why = "invalid state in 'argocd.oauthstate' cookie: begin the sign-in again\n";
        return text(StatusCode::BAD_REQUEST, why);
    };
    let base = base(&config, request.headers()).unwrap_or_default();
    let options = &state.options;
    let finished = finish(&state, &config, &provider, &code, base, &begun, now).await;
    let only_https = only_https(&state, base);
    // It is used once.
    let over = state_cookie(&name, None, only_https).map(|over| (SET_COOKIE, over));
    match finished {
        Ok(token) => {
            let start = format!("/{}", options.root_path.trim_matches('/'));
            // The addresses in the settings may be others by now.
            let to = Some(begun.return_url.as_str());
            let to = to.filter(|url| !url.is_empty() && is_ours(url, &config));
            let mut answer = redirect(to.unwrap_or(&start));
            match session_cookies(&state, &config, request.headers(), &token) {
                Ok(cookies) => {
                    let cookies = cookies.into_iter().map(|cookie| (SET_COOKIE, cookie));
                    answer.headers_mut().extend(over.into_iter().chain(cookies));
                    answer
                }
                Err(why) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")),
            }
        }
        Err(why) => {
            tracing::warn!(%why, "A sign-in with the identity provider failed");
            let why = format!("{}\n", plain(&why));
            let mut answer = text(StatusCode::INTERNAL_SERVER_ERROR, why);
            answer.headers_mut().extend(over);
            answer
        }
    }
}

/// The cookies with the token of a session, and the ends of those that a longer token has left.
fn session_cookies(
    state: &State,
    config: &SsoConfig,
    headers: &HeaderMap,
    token: &str,
) -> Result<Vec<HeaderValue>, String> {
    let only_https = only_https(state, base(config, headers).unwrap_or_default());
    let root = &state.options.root_path;
    let mut cookies = set_cookies(COOKIE, token, root, only_https)?;
    let is_set = |name: &String| {
        let begin = format!("{name}=");
        let mut set = cookies.iter();
        set.any(|cookie| cookie.as_bytes().starts_with(begin.as_bytes()))
    };
    let left: Vec<_> = pieces(headers)
        .into_iter()
        .filter(|name| !is_set(name))
        .filter_map(|name| set_cookie(&name, "", root, only_https))
        .collect();
    cookies.extend(left);
    Ok(cookies)
}

/// The cookies with a new token for a caller whose token has so many seconds left, if the settings
/// want it refreshed by then, and the provider gave the means to do so. A token that has just been
/// issued is not: where all are shorter than the settings want, each call would ask for another.
pub async fn renewed(
    state: &State,
    headers: &HeaderMap,
    claims: &Map<String, Value>,
    left: i64,
) -> Vec<HeaderValue> {
    // Whoever calls was just let in by these settings.
    let Ok(settings) = state.settings.get().await else {
        return Vec::new();
    };
    let Ok(Some(config)) = &settings.sso else {
        return Vec::new();
    };
    let is_low = |below: Duration| left < i64::try_from(below.as_secs()).unwrap_or(i64::MAX);
    if !config.refresh_below.is_some_and(is_low) {
        return Vec::new();
    }
    let now = Timestamp::now();
    let issued = claims.get("iat").and_then(Value::as_f64);
    let age = issued.map(|issued| now.as_duration().as_secs_f64() - issued);
    if age.is_some_and(|age| age < PAUSE.as_secs_f64()) {
        return Vec::new();
    }
    let refreshed = state.sso.refreshed(config, claims, now).await;
    let Some(token) = refreshed else {
        return Vec::new();
    };
    session_cookies(state, config, headers, &token).unwrap_or_else(|why| {
        tracing::warn!(%why, "A refreshed token cannot be given to the browser");
        Vec::new()
    })
}

/// The ID token for a code. The error is for the browser.
async fn finish(
    state: &State,
    config: &Arc<SsoConfig>,
    provider: &Provider,
    code: &str,
    base: &str,
    begun: &LoginState,
    now: Timestamp,
) -> Result<String, String> {
    let redirect_uri = format!("{base}{CALLBACK}");
    let tokens = provider
        .exchange(code, &redirect_uri, begun.verifier.as_deref())
        .await
        .map_err(|e| format!("failed to get token: {e}"))?;
    if tokens.id_token.is_empty() {
        return Err("no id_token in token response".to_owned());
    }
    let claims = provider.verify(&tokens.id_token, now).await;
    let claims = claims.map_err(|e| format!("invalid session token: {e}"))?;
    let subject = claims
        .get("sub")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let is_needed = config.user_info.is_some() || config.graph.is_some();
    if is_needed && !tokens.access_token.is_empty() {
        let access_token = tokens.access_token;
        state
            .sso
            .signed_in(subject, access_token, tokens.expires_in);
    }
    if config.refresh_below.is_some() && !tokens.refresh_token.is_empty() {
        state.sso.can_refresh(&claims, tokens.refresh_token, now);
    }
    if !is_needed && leaves_groups_out(&claims) {
        tracing::warn!(
            sub = subject,
            "The token names no groups, because the user is in more of them than Entra ID puts into \
             it; azure.enableUserGroupOverageClaim in oidc.config has them asked for"
        );
    }
    tracing::info!(sub = subject, "A user signed in with the identity provider");
    Ok(tokens.id_token)
}

/// Text of others, without what a terminal or a browser could take for more than text.
pub fn on_one_line(text: &str) -> String {
    let safe = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(safe).collect()
}

/// The beginning of it, for pages and the log.
fn plain(text: &str) -> String {
    on_one_line(text).chars().take(1000).collect()
}

/// Where a browser goes after the end of its session: to the provider, which is to know of it, if
/// it gave the token.
pub fn logout_target(
    config: &SsoConfig,
    headers: &HeaderMap,
    token: Option<&str>,
) -> Option<String> {
    let base = base(config, headers);
    let Some(token) = token.filter(|_| !config.logout_url.is_empty()) else {
        return base.map(str::to_owned);
    };
    let value = |text: &str| encoded(&[("", text)]).trim_start_matches('=').to_owned();
    let target = config.logout_url.replace("{{token}}", &value(token));
    Some(target.replace("{{logoutRedirectURL}}", base.unwrap_or_default()))
}

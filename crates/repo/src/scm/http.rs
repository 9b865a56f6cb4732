//! Questions to the API of a host. Main type: [`Session`].
//!
//! One request has a deadline and a limit of bytes. Redirects are followed here, so that credentials
//! stay on the origin of the API, whatever header they are in. HTML is no answer.

use super::{Account, Login, Scm, ScmError};
use crate::{
    RepoAccess,
    ground::blocking,
    http::{reason, retry_after},
    secret::Secret,
};
use reqwest::{
    Method, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use tiphys_api::access::shown_url;

const MAX_REDIRECTS: usize = 5;
/// Longest answer to one request.
const MAX_ANSWER: u64 = 16 << 20;
/// AWS' names for a rate limit that is used up.
const THROTTLED: [&str; 3] = [
    "ThrottlingException",
    "ThrottledException",
    "TooManyRequestsException",
];
/// The pause before a question is asked again whose rate was too high; each further one is twice as
/// long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest message of a host in an error.
const MAX_MESSAGE: usize = 300;
/// How long a host that refuses requests is left alone: without a time of its own, and at most.
const PAUSE: Duration = Duration::from_secs(60);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// A host's API, asked as one account.
pub(super) struct Session<'a> {
    scm: &'a Scm,
    /// How it is reached, without credentials.
    access: RepoAccess,
    base: Url,
    headers: HeaderMap,
    /// What must not appear in messages.
    secret: String,
    /// Whose rate limit is used up.
    key: [u8; 32],
    /// Where the token comes from that is sent in addition to the headers.
    app: Option<App>,
    /// How often a question is asked again whose rate was too high.
    repeats: u32,
}

/// The installation of an App, and its token now.
struct App {
    access: RepoAccess,
    token: Mutex<Secret>,
}

impl App {
    fn token(&self) -> Secret {
        let token = self.token.lock();
        token.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a POST sends, and how long its answer may take.
struct Content {
    headers: HeaderMap,
    json: String,
    timeout: Duration,
}

/// An answer that is no redirect.
struct Answer {
    url: Url,
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl<'a> Session<'a> {
    /// `base`: the address that paths are appended to.
    pub fn new(scm: &'a Scm, account: &Account, base: &str) -> Result<Self, ScmError> {
        let url = Url::parse(base)
            .ok()
            .filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host());
        let mut base =
            url.ok_or_else(|| ScmError::settings(format!("{base:?} is no address of an API")))?;
        // Credentials are those of the account.
        let _ = (base.set_username(""), base.set_password(None));
        base.set_query(None);
        base.set_fragment(None);
        let access = RepoAccess {
            url: base.to_string(),
            ca_data: account.ca_data.clone(),
            insecure: account.insecure,
            proxy: account.proxy.clone(),
            no_proxy: account.no_proxy.clone(),
            ..RepoAccess::default()
        };
        let secret = match &account.login {
            Login::Token(secret) | Login::Password { secret, .. } => secret.expose().to_owned(),
            Login::Anonymous | Login::GitHubApp { .. } => String::new(),
        };
        let mut hash = Sha256::new();
        hash.update(base.origin().ascii_serialization());
        hash.update([0]);
        hash.update(&secret);
        if let Login::GitHubApp {
            id, installation, ..
        } = &account.login
        {
            hash.update(format!("{id}/{installation}"));
        }
        Ok(Self {
            scm,
            access,
            base,
            headers: HeaderMap::new(),
            secret,
            key: hash.finalize().into(),
            app: None,
            repeats: 0,
        })
    }

    /// Where limits are per second: how often a question is asked again whose rate was too high.
    pub fn repeats(&mut self, times: u32) {
        self.repeats = times;
    }

    /// Asks with the token of an App's installation at an owner, whose rate limit is its own. A
    /// token that the host refuses is dropped, and fetched anew once.
    pub async fn installed(&mut self, access: RepoAccess, owner: &str) -> Result<(), ScmError> {
        let token = self.scm.tokens.signed_in(&access).await?.password;
        self.counts_as(&owner.to_lowercase());
        let token = Mutex::new(token);
        self.app = Some(App { access, token });
        Ok(())
    }

    /// Whose rate limit is used up, where the account alone does not tell.
    pub fn counts_as(&mut self, who: &str) {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update(who);
        self.key = hash.finalize().into();
    }

    /// Another token in place of one that was refused; false if nobody can give one.
    async fn renewed(&self, refused: Option<&Secret>) -> Result<bool, ScmError> {
        let (Some(app), Some(refused)) = (&self.app, refused) else {
            return Ok(false);
        };
        // Another request may have renewed it meanwhile.
        if app.token() == *refused {
            self.scm.tokens.refused(&app.access);
            let token = self.scm.tokens.signed_in(&app.access).await?.password;
            *app.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
        }
        Ok(app.token() != *refused)
    }

    /// Sends a header with every request to the API's origin.
    pub fn header(&mut self, name: &'static str, value: &str) -> Result<(), ScmError> {
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            ScmError::settings("a token has characters that cannot be in a header".to_owned())
        })?;
        value.set_sensitive(true);
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(())
    }

    /// As [`Self::header`], for a name and a password, of which either may be empty.
    pub fn basic(&mut self, username: &str, password: &str) -> Result<(), ScmError> {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let both = STANDARD.encode(format!("{username}:{password}"));
        self.header("authorization", &format!("Basic {both}"))
    }

    /// The address of a resource. Each part is one segment of the path, whatever is in it.
    pub fn url(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Url, ScmError> {
        let mut text = self.base.as_str().trim_end_matches('/').to_owned();
        for part in path {
            if part.is_empty() || part.split('/').any(|part| matches!(part, "." | "..")) {
                return Err(ScmError::settings(format!(
                    "{part:?} cannot be part of a path of {}",
                    self.base
                )));
            }
            text.push('/');
            text.push_str(&encoded(part));
        }
        let mut url =
            Url::parse(&text).map_err(|e| ScmError::settings(format!("{text:?}: {e}")))?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    /// A resource as JSON, with the answer's headers.
    pub async fn get<T>(&self, url: &Url) -> Result<(T, HeaderMap), ScmError>
    where
        T: DeserializeOwned + Send + 'static,
    {
        match self.get_optional(url).await? {
            (Some(value), headers) => Ok((value, headers)),
            (None, _) => Err(self.wrong(url, "the answer has no content")),
        }
    }

    /// Whether there is a resource; only a "not found" of the host says that there is none.
    pub async fn exists(&self, url: &Url) -> Result<bool, ScmError> {
        match self.get::<serde::de::IgnoredAny>(url).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// As [`Self::get`]; `None` if the host says that there is no content.
    pub async fn get_optional<T>(&self, url: &Url) -> Result<(Option<T>, HeaderMap), ScmError>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let answer = self.ask(Method::GET, url, None).await?;
        if answer.status == StatusCode::NO_CONTENT {
            return Ok((None, answer.headers));
        }
        let value = self.parsed(url, answer.body).await?;
        Ok((Some(value), answer.headers))
    }

    /// The JSON of an answer.
    pub async fn parsed<T>(&self, url: &Url, body: Vec<u8>) -> Result<T, ScmError>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let parsed = blocking(move || Ok(serde_json::from_slice::<T>(&body))).await?;
        // Not the parser's message, which quotes the content.
        parsed.map_err(|e| {
            let (line, column) = (e.line(), e.column());
            let what = match e.classify() {
                serde_json::error::Category::Data => "other JSON than its API defines",
                _ => "no complete JSON",
            };
            self.wrong(
                url,
                &format!("the answer is {what} (line {line}, column {column})"),
            )
        })
    }

    /// Sends JSON with headers, which may say what type of JSON it is, and returns the body of the
    /// answer. `timeout` replaces the usual one.
    pub async fn post(
        &self,
        url: &Url,
        headers: &[(&'static str, String)],
        json: String,
        timeout: Duration,
    ) -> Result<Vec<u8>, ScmError> {
        let mut content = Content {
            headers: HeaderMap::new(),
            json,
            timeout,
        };
        let kind = HeaderValue::from_static("application/json");
        content.headers.insert(CONTENT_TYPE, kind);
        for (name, value) in headers {
            let value = HeaderValue::from_str(value);
            let mut value = value.map_err(|_| self.wrong(url, "a header has a bad value"))?;
            value.set_sensitive(true);
            content.headers.insert(HeaderName::from_static(name), value);
        }
        let answer = self.ask(Method::POST, url, Some(&content)).await?;
        Ok(answer.body)
    }

    /// An answer of the API to be refused.
    pub fn wrong(&self, url: &Url, reason: &str) -> ScmError {
        ScmError::Answer {
            url: shown_url(url.as_str()),
            reason: reason.to_owned(),
        }
    }

    /// An absolute address from an answer, which must be of this API.
    pub fn same_origin(&self, from: &Url, address: &str) -> Result<Url, ScmError> {
        let url = from
            .join(address)
            .map_err(|_| self.wrong(from, "the next page has no address"))?;
        match url.origin() == self.base.origin() {
            true => Ok(url),
            false => Err(self.wrong(from, "the next page is on another host")),
        }
    }

    async fn ask(
        &self,
        method: Method,
        url: &Url,
        content: Option<&Content>,
    ) -> Result<Answer, ScmError> {
        self.permitted()?;
        let mut at = url.clone();
        let mut token = self.app.as_ref().map(App::token);
        let mut may_renew = true;
        for _ in 0..=MAX_REDIRECTS {
            let with = (content, token.as_ref());
            let mut answer = self.patiently(&method, &at, with).await?;
            if answer.status == StatusCode::UNAUTHORIZED
                && std::mem::take(&mut may_renew)
                && self.renewed(token.as_ref()).await?
            {
                token = self.app.as_ref().map(App::token);
                let with = (content, token.as_ref());
                answer = self.once(&method, &at, with).await?;
            }
            let is_followed = method == Method::GET && is_redirect(answer.status);
            if !is_followed {
                return self.accepted(answer);
            }
            let location = answer.headers.get(LOCATION).and_then(|l| l.to_str().ok());
            let next = location.and_then(|location| at.join(location).ok());
            at = next
                .filter(|url| matches!(url.scheme(), "https" | "http"))
                .ok_or_else(|| self.wrong(url, "it is redirected to no address"))?;
        }
        Err(self.wrong(url, "it is redirected too often"))
    }

    /// As [`Self::once`], and again while AWS says that it is asked too fast.
    async fn patiently(
        &self,
        method: &Method,
        url: &Url,
        with: (Option<&Content>, Option<&Secret>),
    ) -> Result<Answer, ScmError> {
        let mut pause = FIRST_PAUSE;
        for _ in 0..self.repeats {
            let answer = self.once(method, url, with).await?;
            if !is_throttled(&answer) {
                return Ok(answer);
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.once(method, url, with).await
    }

    async fn once(
        &self,
        method: &Method,
        url: &Url,
        (content, token): (Option<&Content>, Option<&Secret>),
    ) -> Result<Answer, ScmError> {
        let clients = &self.scm.clients;
        let _share = clients.contact(&self.access, url).await?;
        let mut request = clients
            .of(&self.access, true)?
            .request(method.clone(), url.clone());
        if url.origin() == self.base.origin() {
            request = request.headers(self.headers.clone());
            if let Some(token) = token {
                request = request.bearer_auth(token.expose());
            }
        }
        if let Some(content) = content {
            request = request
                .headers(content.headers.clone())
                .timeout(content.timeout)
                .body(content.json.clone());
        }
        let sent = request.send().await;
        let answer = sent.map_err(|e| match e.is_timeout() {
            true => self.wrong(url, "it did not answer in time"),
            false => self.wrong(url, &format!("it cannot be reached: {}", reason(&e))),
        })?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = clients.body(url.as_str(), MAX_ANSWER, answer).await?;
        Ok(Answer {
            url: url.clone(),
            status,
            headers,
            body,
        })
    }

    /// Passes on what is an answer of the API.
    fn accepted(&self, answer: Answer) -> Result<Answer, ScmError> {
        let (status, url) = (answer.status, shown_url(answer.url.as_str()));
        if is_rate_limit(status, &answer.headers) {
            return Err(self.limited(&answer.headers));
        }
        let kind = answer.headers.get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let first = answer.body.iter().find(|b| !b.is_ascii_whitespace());
        if kind.to_ascii_lowercase().starts_with("text/html") || first == Some(&b'<') {
            let reason = format!("it answered {status} with a web page in place of JSON");
            return Err(self.wrong(&answer.url, &reason));
        }
        if status.is_success() {
            return Ok(answer);
        }
        let (said, key) = message(&answer.body);
        if THROTTLED.contains(&key.as_str()) {
            return Err(self.limited(&answer.headers));
        }
        let token = self.app.as_ref().map(App::token);
        let token = token.as_ref().map_or("", |token| token.expose());
        let tells = |secret: &str| !secret.is_empty() && said.contains(secret);
        let said = match tells(&self.secret) || tells(token) {
            true => String::new(),
            false => said,
        };
        Err(match status {
            StatusCode::NOT_FOUND => ScmError::NotFound { url, said, key },
            status => ScmError::Status {
                url,
                status: status.as_u16(),
                said,
                key,
            },
        })
    }

    /// Asks nothing while the account's rate limit is used up.
    fn permitted(&self) -> Result<(), ScmError> {
        match self.scm.limited.get(&self.key) {
            Some((end, until)) if Instant::now() < end => Err(ScmError::RateLimited {
                host: self.base.host_str().unwrap_or_default().to_owned(),
                until,
            }),
            _ => Ok(()),
        }
    }

    fn limited(&self, headers: &HeaderMap) -> ScmError {
        let now = jiff::Timestamp::now();
        let number = |name: &str| -> Option<i64> { headers.get(name)?.to_str().ok()?.parse().ok() };
        let reset = ["x-ratelimit-reset", "ratelimit-reset"]
            .into_iter()
            .find_map(number)
            .and_then(|at| u64::try_from(at - now.as_second()).ok());
        let pause = retry_after(headers).or(reset).map(Duration::from_secs);
        let pause = pause
            .unwrap_or(PAUSE)
            .clamp(Duration::from_secs(1), LONGEST_PAUSE);
        let until = jiff::SignedDuration::try_from(pause)
            .ok()
            .and_then(|pause| now.checked_add(pause).ok())
            .unwrap_or(now);
        let until = jiff::Timestamp::from_second(until.as_second()).unwrap_or(until);
        let end = Instant::now() + pause;
        self.scm.limited.insert(self.key, (end, until));
        ScmError::RateLimited {
            host: self.base.host_str().unwrap_or_default().to_owned(),
            until,
        }
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// GitHub answers 403 where others answer 429.
fn is_rate_limit(status: StatusCode, headers: &HeaderMap) -> bool {
    let used_up = || {
        let left = headers.get("x-ratelimit-remaining");
        left.is_some_and(|left| left == "0") || headers.contains_key("retry-after")
    };
    status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::FORBIDDEN && used_up()
}

/// What AWS answers to who asks too fast.
fn is_throttled(answer: &Answer) -> bool {
    !answer.status.is_success() && THROTTLED.contains(&message(&answer.body).1.as_str())
}

/// Encodes a text as one segment of a path.
fn encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
    text.bytes()
        .map(|b| match plain(b) {
            true => char::from(b).to_string(),
            false => format!("%{b:02X}"),
        })
        .collect()
}

/// What a host says about an error, and the name that Azure DevOps or AWS gives it.
fn message(body: &[u8]) -> (String, String) {
    let json: Value = match body.len() {
        0..=65_536 => serde_json::from_slice(body).unwrap_or_default(),
        _ => Value::Null,
    };
    let texts = [
        &json["message"],
        &json["Message"],
        &json["error"]["message"],
        &json["errors"][0]["message"],
        &json["error_description"],
        &json["error"],
    ];
    let key = json["typeKey"].as_str().or_else(|| {
        // With a namespace before it, or without.
        json["__type"].as_str()?.rsplit('#').next()
    });
    let key = key.unwrap_or_default().to_owned();
    let said = texts
        .iter()
        .find_map(|text| text.as_str().filter(|text| !text.trim().is_empty()));
    // AWS may say no more than the name.
    let said = said.or(json["__type"].as_str().map(|_| key.as_str()));
    let line = said.unwrap_or_default().split_whitespace();
    let line = line.collect::<Vec<_>>().join(" ");
    let said = match line.is_empty() {
        true => line,
        false => format!(": {}", line.chars().take(MAX_MESSAGE).collect::<String>()),
    };
    (said, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_stays_one() {
        for (text, segment) in [
            ("argo-cd", "argo-cd"),
            ("acme/shop", "acme%2Fshop"),
            ("a b?c#d%2F", "a%20b%3Fc%23d%252F"),
            ("ä", "%C3%A4"),
        ] {
            assert_eq!(encoded(text), segment, "{text}");
        }
    }

    #[test]
    fn what_hosts_say_about_errors() {
        for (body, said, key) in [
            (r#"{"message": "Not  Found"}"#, ": Not Found", ""),
            (r#"{"error": {"message": "no"}}"#, ": no", ""),
            (r#"{"errors": [{"message": "no"}]}"#, ": no", ""),
            (
                r#"{"message": "TF1", "typeKey": "GitItemNotFoundException"}"#,
                ": TF1",
                "GitItemNotFoundException",
            ),
            (
                r#"{"__type": "com.amazonaws.codecommit#FolderDoesNotExistException", "message": "no"}"#,
                ": no",
                "FolderDoesNotExistException",
            ),
            (
                r#"{"__type": "AccessDeniedException", "Message": "not you"}"#,
                ": not you",
                "AccessDeniedException",
            ),
            (
                r#"{"__type": "a#InvalidTokenException", "message": ""}"#,
                ": InvalidTokenException",
                "InvalidTokenException",
            ),
            ("404 page not found", "", ""),
            ("", "", ""),
        ] {
            let expected = (said.to_owned(), key.to_owned());
            assert_eq!(message(body.as_bytes()), expected, "{body}");
        }
    }
}

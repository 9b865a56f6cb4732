//! Tokens of GitHub Apps: the App proves itself by its key and gets a token for one installation.

use super::{Login, Token, Tokens, ask::Content, jwt, refused};
use crate::{RepoAccess, RepoError, secret::Secret};
use jiff::{SignedDuration, Timestamp};
use reqwest::{Method, header::HeaderMap};
use serde::Deserialize;
use serde_json::json;
use tiphys_api::repo_url::RepoUrl;

const API: &str = "https://api.github.com";
/// The user name that a token is a password of.
const USER: &str = "x-access-token";
/// GitHub accepts statements that are valid for at most 10 minutes, and its clock may be behind.
const EARLIER: SignedDuration = SignedDuration::from_secs(60);
const VALID: SignedDuration = SignedDuration::from_mins(5);
/// Pages of 100 installations that are looked through.
const PAGES: usize = 100;

pub(super) struct App<'a> {
    pub id: i64,
    pub installation: i64,
    pub key: &'a Secret,
    pub api: &'a str,
}

#[derive(Deserialize)]
struct Installation {
    id: i64,
    #[serde(default)]
    account: Option<Account>,
}

#[derive(Deserialize)]
struct Account {
    #[serde(default)]
    login: String,
}

#[derive(Deserialize)]
struct Issued {
    token: String,
    #[serde(default)]
    expires_at: String,
}

impl Tokens {
    pub(super) async fn github(
        &self,
        access: &RepoAccess,
        app: &App<'_>,
    ) -> Result<Token, RepoError> {
        let now = Timestamp::now();
        let claims = json!({
            "iss": app.id.to_string(),
            "iat": (now - EARLIER).as_second(),
            "exp": (now + VALID).as_second(),
        });
        let statement = jwt::signed(&claims, "", app.key.expose())
            .map_err(|e| refused(access, format!("GitHub App {}: {e}", app.id)))?;
        let bearer = format!("Bearer {statement}");
        let headers = [
            ("Authorization", bearer.as_str()),
            ("Accept", "application/vnd.github+json"),
        ];
        let api = if app.api.is_empty() { API } else { app.api };
        let api = api.trim_end_matches('/');
        let installation = match app.installation {
            0 => self.installation(access, app, api, &headers).await?,
            installation => installation,
        };
        let url = format!("{api}/app/installations/{installation}/access_tokens");
        let (issued, _): (Issued, _) = self
            .ask(access, Method::POST, &url, &headers, Content::None)
            .await?;
        let until = issued.expires_at.parse::<Timestamp>().ok();
        let left = until.map(|until| until.duration_since(now).as_secs());
        let login = Login::Password {
            username: USER.to_owned(),
            password: Secret::from(issued.token),
        };
        Ok(Token::new(
            login,
            left.map(|left| u64::try_from(left).unwrap_or_default()),
        ))
    }

    /// The installation for the owner of the repository.
    async fn installation(
        &self,
        access: &RepoAccess,
        app: &App<'_>,
        api: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<i64, RepoError> {
        let owner = owner(&access.url).ok_or_else(|| {
            refused(
                access,
                "the URL has no owner, whose installation of the GitHub App could be found: set \
                 githubAppInstallationID",
            )
        })?;
        for page in 1..=PAGES {
            let url = format!("{api}/app/installations?per_page=100&page={page}");
            let (found, told): (Vec<Installation>, _) = self
                .ask(access, Method::GET, &url, headers, Content::None)
                .await?;
            let of_owner = found.iter().find(|found| {
                let login = found.account.as_ref().map(|account| &account.login);
                login.is_some_and(|login| login.eq_ignore_ascii_case(&owner))
            });
            if let Some(found) = of_owner {
                return Ok(found.id);
            }
            if !has_next(&told) {
                break;
            }
        }
        Err(refused(
            access,
            format!("GitHub App {} is not installed for {owner}", app.id),
        ))
    }
}

fn has_next(told: &HeaderMap) -> bool {
    told.get_all("link")
        .iter()
        .filter_map(|link| link.to_str().ok())
        .any(|link| link.contains("rel=\"next\""))
}

/// The first folder of a repository's URL.
pub(super) fn owner(url: &str) -> Option<String> {
    let url = RepoUrl::parse(url).ok()?;
    let mut parts = url.path.split('/').filter(|part| !part.is_empty());
    let owner = parts.next()?.to_owned();
    // A path of one part is a repository without an owner.
    parts.next().map(|_| owner)
}

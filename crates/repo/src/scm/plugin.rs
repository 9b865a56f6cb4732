//! Plugins of generators, which answer with parameters over HTTP. Main function: [`ask`].

use super::{Account, Scm, ScmError, http::Session};
use crate::secret::Secret;
use reqwest::Url;
use std::time::Duration;

/// The longest that one may take.
const LONGEST: Duration = Duration::from_secs(600);

pub async fn ask(
    scm: &Scm,
    url: &str,
    token: &Secret,
    body: String,
    timeout: Duration,
) -> Result<Vec<u8>, ScmError> {
    let account = Account {
        login: super::Login::Token(token.clone()),
        ..Account::default()
    };
    let mut session = Session::new(scm, &account, url)?;
    session.header("authorization", &format!("Bearer {}", token.expose()))?;
    let url = Url::parse(url).map_err(|e| ScmError::settings(format!("{url:?}: {e}")))?;
    session.post(&url, &[], body, timeout.min(LONGEST)).await
}

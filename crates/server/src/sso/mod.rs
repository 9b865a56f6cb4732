//! Signing in with an identity provider: OpenID Connect, directly or through Dex.
//!
//! Main type: [`Sso`]. What the provider says of a caller becomes [`Claims`](crate::auth::Claims);
//! what these permit is not decided here.

mod config;
mod dex_config;
mod identity;
pub mod oidc;
mod overage;
mod provider;
mod refresh;
mod state;

pub use config::{DEX_PATH, SsoConfig, SsoFault, dex_secret, references};
pub use dex_config::{DexConfiguration, DexFault, DexInput, DexOptions};
pub use identity::token_id;
pub(crate) use overage::leaves_groups_out;
pub(crate) use provider::Provider;
pub use provider::{ProviderError, whole_seconds};
pub(crate) use refresh::PAUSE;
pub(crate) use state::LoginState;

use jiff::Timestamp;
use refresh::Refreshes;
use serde_json::{Map, Value};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How many callers' access tokens and groups are remembered.
const REMEMBERED: usize = 10_000;

/// How the certificate of the Dex server is checked.
#[derive(Clone, Debug, Default)]
pub struct DexTls {
    pub accepts_any: bool,
    /// Certificates that are trusted besides those of the system, as PEM.
    pub trusted: String,
}

/// What is known of the provider that the settings name.
pub struct Sso {
    /// The address of the Dex server.
    dex: String,
    dex_tls: DexTls,
    current: Mutex<Option<Arc<Provider>>>,
    sessions: Mutex<HashMap<String, Session>>,
    refreshes: Refreshes,
}

/// What asks for a caller's groups; by subject.
struct Session {
    access_token: String,
    ends: Instant,
    groups: Option<(Instant, Value)>,
}

impl Sso {
    pub fn new(dex: String, dex_tls: DexTls) -> Self {
        Self {
            dex,
            dex_tls,
            current: Mutex::default(),
            sessions: Mutex::default(),
            refreshes: Refreshes::default(),
        }
    }

    /// The provider of these settings.
    pub(crate) fn provider(&self, config: &Arc<SsoConfig>) -> Result<Arc<Provider>, ProviderError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(provider) = &*current
            && provider.config == *config
        {
            return Ok(provider.clone());
        }
        let provider = Arc::new(Provider::new(config.clone(), (&self.dex, &self.dex_tls))?);
        *current = Some(provider.clone());
        Ok(provider)
    }

    /// The claims of a token that the provider issued.
    pub async fn verify(
        &self,
        config: &Arc<SsoConfig>,
        token: &str,
        now: Timestamp,
    ) -> Result<Map<String, Value>, ProviderError> {
        self.provider(config)?.verify(token, now).await
    }

    /// Remembers the access token that came with an ID token.
    pub(crate) fn signed_in(&self, subject: &str, access_token: String, seconds: Option<u64>) {
        let lifetime = Duration::from_secs(seconds.unwrap_or(300).min(24 * 3600));
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= REMEMBERED {
            let now = Instant::now();
            sessions.retain(|_, session| session.ends > now);
        }
        if sessions.len() < REMEMBERED {
            let session = Session {
                access_token,
                ends: Instant::now() + lifetime,
                groups: None,
            };
            sessions.insert(subject.to_owned(), session);
        }
    }

    /// Puts the groups that are not in the token into the claims, if the settings want that: those
    /// of the user info endpoint, or those that Entra ID left out.
    ///
    /// # Errors
    /// Also if this server has no access token of the caller: then groups would be missing without
    /// a word.
    pub async fn add_groups(
        &self,
        config: &Arc<SsoConfig>,
        claims: &mut Map<String, Value>,
    ) -> Result<(), ProviderError> {
        let place = match (&config.user_info, &config.graph) {
            (Some(user_info), _) => Place::UserInfo(user_info),
            (None, Some(graph)) if overage::leaves_groups_out(claims) => Place::Graph(graph),
            _ => return Ok(()),
        };
        let subject = claims.get("sub").and_then(Value::as_str);
        let subject = subject.unwrap_or_default().to_owned();
        let groups = match self.remembered(&subject, &place)? {
            Remembered::Groups(groups) => groups,
            Remembered::AccessToken(token) => {
                let provider = self.provider(config)?;
                let groups = match place {
                    Place::UserInfo(info) => provider.groups(&info.path, &token, &subject).await?,
                    Place::Graph(graph) => provider.groups_left_out(graph, &token).await?,
                };
                let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(session) = sessions.get_mut(&subject) {
                    session.groups = Some((Instant::now(), groups.clone()));
                }
                groups
            }
        };
        claims.insert("groups".to_owned(), groups);
        Ok(())
    }

    fn remembered(&self, subject: &str, place: &Place<'_>) -> Result<Remembered, ProviderError> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sessions.get(subject).filter(|s| s.ends > Instant::now());
        let known = known.ok_or_else(|| {
            ProviderError::Token(format!("{}: no accessToken for {subject}", place.failed()))
        })?;
        Ok(match &known.groups {
            Some((at, groups)) if at.elapsed() < place.lifetime() => {
                Remembered::Groups(groups.clone())
            }
            _ => Remembered::AccessToken(known.access_token.clone()),
        })
    }
}

/// Where a caller's groups are.
enum Place<'a> {
    UserInfo(&'a config::UserInfo),
    Graph(&'a config::Graph),
}

impl Place<'_> {
    fn failed(&self) -> &'static str {
        match self {
            Self::UserInfo(_) => "error while querying userinfo endpoint",
            Self::Graph(_) => "error fetching groups from Azure overage claim",
        }
    }

    fn lifetime(&self) -> Duration {
        match self {
            Self::UserInfo(info) => info.lifetime,
            Self::Graph(graph) => graph.lifetime.unwrap_or(Duration::MAX),
        }
    }
}

enum Remembered {
    Groups(Value),
    AccessToken(String),
}

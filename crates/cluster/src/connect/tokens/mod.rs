//! Cloud provider tokens for a cluster, created in this process; Argo CD runs `argocd-k8s-auth` for
//! this.
//!
//! Main type: [`Tokens`]. A token is cached until a minute before it expires. It knows nothing
//! about its cluster.

mod eks;

use http::{HeaderValue, Request, header::AUTHORIZATION};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize as _;
use serde_json::Value;
use std::{pin::Pin, sync::Arc, time::Duration};
use tiphys_cloud::{Env, Token, azure, gcp};
use tokio::{sync::Mutex, time::Instant};
use tower::{BoxError, filter::AsyncPredicate};

/// The program in Argo CD's image that this replaces.
const PROGRAM: &str = "argocd-k8s-auth";
/// A token is renewed this long before it expires.
const MARGIN: SignedDuration = SignedDuration::from_secs(60);
/// An error is returned again for this long instead of retrying.
const PAUSE: Duration = Duration::from_secs(5);
/// The token provider.
enum Login {
    Aws(eks::Login),
    Gcp,
    Azure,
}

enum Kept {
    Nothing,
    Token(Token),
    Failure(Instant, String),
}

/// The source of a cluster's tokens.
pub(super) struct Tokens {
    login: Login,
    env: Env,
    kept: Mutex<Kept>,
}

impl Tokens {
    fn new(login: Login, env: Env) -> Self {
        Self {
            login,
            env,
            kept: Mutex::new(Kept::Nothing),
        }
    }

    /// `awsAuthConfig` of a cluster's Secret.
    pub fn aws(config: &Value) -> Result<Self, String> {
        let login = eks::Login::deserialize(config).map_err(|e| e.to_string())?;
        Ok(Self::new(Login::Aws(login), Env::default()))
    }

    /// `execProviderConfig` if it names Argo CD's own program; `None` for any other, which is
    /// executed.
    pub fn of_exec(exec: &Value) -> Option<Result<Self, String>> {
        let command = exec.get("command").and_then(Value::as_str)?;
        (command.rsplit('/').next() == Some(PROGRAM)).then(|| {
            let args: Vec<&str> = exec
                .get("args")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let env = exec
                .get("env")
                .and_then(Value::as_object)
                .into_iter()
                .flatten();
            let env = env
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect();
            let env = Env::with(env);
            let login = match args.split_first() {
                Some((&"aws", args)) => Login::Aws(eks::Login::of_args(args)?),
                Some((&"gcp", [])) => Login::Gcp,
                Some((&"azure", [])) => Login::Azure,
                _ => {
                    return Err(format!(
                        "{PROGRAM}: the first argument must be aws, gcp or azure"
                    ));
                }
            };
            Ok(Self::new(login, env))
        })
    }

    async fn token(&self) -> Result<Token, String> {
        match &self.login {
            Login::Aws(login) => login
                .token(&self.env)
                .await
                .map_err(|e| format!("AWS: {e}")),
            Login::Gcp => gcp::token(&self.env, "")
                .await
                .map_err(|e| format!("Google Cloud: {e}")),
            Login::Azure => azure::token(&self.env)
                .await
                .map_err(|e| format!("Azure: {e}")),
        }
    }

    /// The Authorization header for a request made now.
    async fn header(&self) -> Result<HeaderValue, BoxError> {
        let mut kept = self.kept.lock().await;
        let good = match &*kept {
            Kept::Token(token) => token.until - MARGIN > Timestamp::now(),
            Kept::Failure(at, _) => at.elapsed() < PAUSE,
            Kept::Nothing => false,
        };
        if !good {
            *kept = match self.token().await {
                Ok(token) => Kept::Token(token),
                Err(why) => Kept::Failure(Instant::now(), why),
            };
        }
        match &*kept {
            Kept::Token(token) => {
                let mut value = HeaderValue::try_from(format!("Bearer {}", token.value))?;
                value.set_sensitive(true);
                Ok(value)
            }
            Kept::Failure(_, why) => Err(format!("no token for the cluster: {why}").into()),
            Kept::Nothing => Err("no token for the cluster".into()),
        }
    }
}

/// Adds the token to each request.
#[derive(Clone)]
pub(super) struct Bearer(pub Arc<Tokens>);

impl<B: Send + 'static> AsyncPredicate<Request<B>> for Bearer {
    type Future = Pin<Box<dyn Future<Output = Result<Request<B>, BoxError>> + Send>>;
    type Request = Request<B>;

    fn check(&mut self, mut request: Request<B>) -> Self::Future {
        let tokens = self.0.clone();
        Box::pin(async move {
            let value = tokens.header().await?;
            request.headers_mut().insert(AUTHORIZATION, value);
            Ok(request)
        })
    }
}

#[cfg(test)]
mod tests;

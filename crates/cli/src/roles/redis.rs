//! The Redis that Argo CD's servers read. Main type: [`RedisArgs`], with the flags and variables of Argo CD's controller.

use anyhow::{Context, bail};
use clap::Args;
use std::{fs, path::PathBuf, time::Duration};
use tiphys_controllers::redis::{Format, Place};
use tiphys_gocompat::duration;
use tiphys_repo::{Secret, net::Tls};

const PORT: u16 = 6379;

#[derive(Args, Debug)]
pub struct RedisArgs {
    /// Redis that trees, differences and clusters are written to for Argo CD's servers [default: none]
    #[arg(long = "redis", value_name = "HOST:PORT", env = "REDIS_SERVER")]
    server: Option<String>,
    /// Database of Redis
    #[arg(long = "redisdb", value_name = "N", default_value_t = 0, env = "REDISDB")]
    db: i64,
    /// User of Redis
    #[arg(long = "redis-username", value_name = "NAME", default_value = "", env = "REDIS_USERNAME", hide = true)]
    username: String,
    /// Password of Redis; better through the variable than on the command line
    #[arg(long = "redis-password", value_name = "TEXT", default_value = "", env = "REDIS_PASSWORD", hide_env_values = true)]
    password: Secret,
    /// Speak TLS with Redis
    #[arg(long = "redis-use-tls")]
    use_tls: bool,
    /// Certificates that Redis may have, as PEM [default: those of the system]
    #[arg(long = "redis-ca-certificate", value_name = "FILE", requires = "use_tls")]
    ca_certificate: Option<PathBuf>,
    /// Certificate to show to Redis
    #[arg(long = "redis-client-certificate", value_name = "FILE", requires = "client_key")]
    client_certificate: Option<PathBuf>,
    /// Key of that certificate
    #[arg(long = "redis-client-key", value_name = "FILE", requires = "client_certificate")]
    client_key: Option<PathBuf>,
    /// Any certificate of Redis will do
    #[arg(long = "redis-insecure-skip-tls-verify", requires = "use_tls")]
    insecure_skip_tls_verify: bool,
    /// How values are compressed: gzip or none
    #[arg(long = "redis-compress", value_name = "HOW", default_value = "gzip", env = "REDIS_COMPRESSION")]
    compress: String,
    /// What all keys begin with
    #[arg(long = "redis-key-prefix", value_name = "TEXT", default_value = "", env = "ARGOCD_REDIS_KEY_PREFIX", hide = true)]
    prefix: String,
    /// How long what is said of an Application counts
    #[arg(long, value_name = "DURATION", default_value = "1h", env = "ARGOCD_APP_STATE_CACHE_EXPIRATION")]
    app_state_cache_expiration: String,
}

impl RedisArgs {
    /// Where it is; `None`: there is none.
    pub fn place(&self) -> anyhow::Result<Option<Place>> {
        let Some(server) = self.server.as_deref().filter(|s| !s.is_empty()) else { return Ok(None) };
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().with_context(|| format!("--redis {server}: {port:?} is no port"))?),
            None => (server, PORT),
        };
        let compress = match self.compress.as_str() {
            "gzip" => true,
            "none" => false,
            other => bail!("--redis-compress {other:?} is not known; use gzip or none"),
        };
        let keep = &self.app_state_cache_expiration;
        let seconds = duration::parse(keep).with_context(|| format!("--app-state-cache-expiration {keep:?}"))? / 1_000_000_000;
        let Some(seconds) = u64::try_from(seconds).ok().filter(|s| *s > 0) else {
            bail!("--app-state-cache-expiration {keep} is less than a second");
        };
        let format = Format { prefix: self.prefix.clone(), compress, keep: Duration::from_secs(seconds) };
        let (username, password) = (self.username.clone(), self.password.clone());
        Ok(Some(Place { host: host.to_owned(), port, db: self.db, username, password, tls: self.tls()?, format }))
    }

    fn tls(&self) -> anyhow::Result<Option<Tls>> {
        if !self.use_tls {
            return Ok(None);
        }
        let read = |path: &PathBuf| fs::read(path).with_context(|| format!("{} cannot be read", path.display()));
        let identity = match (&self.client_certificate, &self.client_key) {
            (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
            _ => None,
        };
        let trusted = self.ca_certificate.as_ref().map(read).transpose()?;
        Ok(Some(Tls { any: self.insecure_skip_tls_verify, system: trusted.is_none(), trusted: trusted.unwrap_or_default(), identity }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        redis: RedisArgs,
    }

    fn of(words: &[&str]) -> anyhow::Result<Option<Place>> {
        Line::parse_from(["x"].iter().chain(words)).redis.place()
    }

    #[test]
    fn where_redis_is() {
        assert!(of(&[]).expect("valid").is_none() && of(&["--redis", ""]).expect("valid").is_none());
        let place = of(&["--redis", "argocd-redis", "--redisdb", "3", "--redis-compress", "none", "--app-state-cache-expiration", "90s"]);
        let place = place.expect("valid").expect("there is one");
        assert_eq!((place.host.as_str(), place.port, place.db), ("argocd-redis", 6379, 3));
        assert_eq!((place.format.compress, place.format.keep.as_secs()), (false, 90));
        assert!(place.tls.is_none());
        let tls = of(&["--redis", "a", "--redis-use-tls", "--redis-insecure-skip-tls-verify"]).expect("valid").and_then(|p| p.tls);
        assert!(tls.is_some_and(|tls| tls.any && tls.system));
        for wrong in
            [&["--redis", "a:b"][..], &["--redis", "a", "--redis-compress", "zip"], &["--redis", "a", "--app-state-cache-expiration", "0s"]]
        {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}

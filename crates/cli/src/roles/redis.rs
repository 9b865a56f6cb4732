//! The Redis that is shared with Argo CD's servers. Main types: [`RedisArgs`], with the flags and
//! variables of Argo CD's, and [`Cache`], which repo-servers share.

use anyhow::{Context, bail};
use clap::Args;
use futures::future::BoxFuture;
use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};
use tiphys_controllers::redis::{Format, Login, Place, Sentinels, Server, Store};
use tiphys_gocompat::duration;
use tiphys_repo::{Secret, net::Tls};
use tiphys_repo_server::SharedCache;

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

#[derive(Args, Debug)]
pub struct RedisArgs {
    /// Redis that is shared with Argo CD's servers, which read trees, differences and clusters there,
    /// and with repo-servers [default: none]
    #[arg(id = "redis", long, value_name = "HOST:PORT", env = "REDIS_SERVER")]
    server: Option<String>,
    /// Sentinel that knows which Redis is the master; instead of --redis, can be repeated
    #[arg(
        long = "sentinel",
        value_name = "HOST:PORT",
        value_delimiter = ',',
        env = "REDIS_SENTINEL_HOSTS"
    )]
    sentinels: Vec<String>,
    /// What sentinels call the master
    #[arg(
        long = "sentinelmaster",
        value_name = "NAME",
        default_value = "master",
        env = "REDIS_SENTINEL_MASTER"
    )]
    sentinel_master: String,
    /// User of the sentinels
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        env = "REDIS_SENTINEL_USERNAME",
        hide = true
    )]
    sentinel_username: String,
    /// Password of the sentinels
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        env = "REDIS_SENTINEL_PASSWORD",
        hide = true,
        hide_env_values = true
    )]
    sentinel_password: Secret,
    /// Database of Redis
    #[arg(
        long = "redisdb",
        value_name = "N",
        default_value_t = 0,
        env = "REDISDB"
    )]
    db: i64,
    /// User of Redis
    #[arg(
        id = "redis_username",
        long = "redis-username",
        value_name = "NAME",
        default_value = "",
        env = "REDIS_USERNAME",
        hide = true
    )]
    username: String,
    /// Password of Redis; better through the variable than on the command line
    #[arg(
        id = "redis_password",
        long = "redis-password",
        value_name = "TEXT",
        default_value = "",
        env = "REDIS_PASSWORD",
        hide_env_values = true
    )]
    password: Secret,
    /// Folder of a mounted Secret with users and passwords (files auth_username, auth,
    /// sentinel_username, sentinel_auth) instead of them
    #[arg(
        long = "redis-credentials",
        value_name = "DIR",
        env = "REDIS_CREDS_DIR_PATH",
        hide = true
    )]
    credentials: Option<PathBuf>,
    /// Speak TLS with Redis
    #[arg(long = "redis-use-tls")]
    use_tls: bool,
    /// Certificates that Redis may have, as PEM [default: those of the system]
    #[arg(long = "redis-ca-certificate", value_name = "FILE")]
    ca_certificate: Option<PathBuf>,
    /// Certificate to show to Redis
    #[arg(
        id = "redis_client_certificate",
        long = "redis-client-certificate",
        value_name = "FILE",
        requires = "redis_client_key"
    )]
    client_certificate: Option<PathBuf>,
    /// Key of that certificate
    #[arg(
        id = "redis_client_key",
        long = "redis-client-key",
        value_name = "FILE",
        requires = "redis_client_certificate"
    )]
    client_key: Option<PathBuf>,
    /// Any certificate of Redis will do
    #[arg(
        id = "redis_insecure_skip_tls_verify",
        long = "redis-insecure-skip-tls-verify"
    )]
    insecure_skip_tls_verify: bool,
    /// How values are compressed: gzip or none
    #[arg(
        // The id of the global flag, which this one replaces here.
        id = "redis_compress",
        long = "redis-compress",
        value_name = "HOW",
        default_value = "gzip",
        env = "REDIS_COMPRESSION"
    )]
    compress: String,
    /// What all keys begin with
    #[arg(
        long = "redis-key-prefix",
        value_name = "TEXT",
        default_value = "",
        env = "ARGOCD_REDIS_KEY_PREFIX",
        hide = true
    )]
    prefix: String,
}

/// How long values are kept: the text of a flag, in whole seconds.
pub fn lifetime(flag: &str, text: &str) -> anyhow::Result<Duration> {
    let nanos = duration::parse(text).with_context(|| format!("--{flag} {text:?}"))?;
    match u64::try_from(nanos / 1_000_000_000) {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => bail!("--{flag} {text} is less than a second"),
    }
}

impl RedisArgs {
    /// Its address and options; `None`: there is none. `keep`: how long the values of an
    /// Application are kept.
    pub fn place(&self, keep: Duration) -> anyhow::Result<Option<Place>> {
        let Some(server) = self.server()? else {
            return Ok(None);
        };
        let compress = match self.compress.as_str() {
            "gzip" => true,
            "none" => false,
            other => bail!("--redis-compress {other:?} is not known; use gzip or none"),
        };
        let format = Format {
            prefix: self.prefix.clone(),
            compress,
            keep,
        };
        let login = self.login(("auth_username", "auth"), (&self.username, &self.password))?;
        Ok(Some(Place {
            server,
            db: self.db,
            login,
            tls: self.tls()?,
            format,
        }))
    }

    /// Sentinels take precedence over an address.
    fn server(&self) -> anyhow::Result<Option<Server>> {
        let said = |text: &&str| !text.is_empty();
        let addresses = self
            .sentinels
            .iter()
            .map(|s| s.trim())
            .filter(said)
            .map(|s| address("--sentinel", s, SENTINEL_PORT));
        let addresses: Vec<String> = addresses.collect::<anyhow::Result<_>>()?;
        if !addresses.is_empty() {
            let login = self.login(
                ("sentinel_username", "sentinel_auth"),
                (&self.sentinel_username, &self.sentinel_password),
            )?;
            return Ok(Some(Server::Known(Sentinels {
                addresses,
                master: self.sentinel_master.clone(),
                login,
            })));
        }
        let server = self
            .server
            .as_deref()
            .filter(said)
            .map(|server| address("--redis", server, PORT).map(Server::At));
        server.transpose()
    }

    /// User and password: from the files in the folder, if there is one, else as given. A missing
    /// file counts as empty.
    fn login(&self, files: (&str, &str), given: (&String, &Secret)) -> anyhow::Result<Login> {
        let Some(folder) = self
            .credentials
            .as_ref()
            .filter(|folder| !folder.as_os_str().is_empty())
        else {
            return Ok(Login {
                username: given.0.clone(),
                password: given.1.clone(),
            });
        };
        Ok(Login {
            username: read_credential(folder, files.0)?,
            password: read_credential(folder, files.1)?.into(),
        })
    }

    fn tls(&self) -> anyhow::Result<Option<Tls>> {
        if !self.use_tls {
            return Ok(None);
        }
        let read = |path: &PathBuf| {
            fs::read(path).with_context(|| format!("{} cannot be read", path.display()))
        };
        let identity = match (&self.client_certificate, &self.client_key) {
            (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
            _ => None,
        };
        let trusted = self.ca_certificate.as_ref().map(read).transpose()?;
        Ok(Some(Tls {
            any: self.insecure_skip_tls_verify,
            system: trusted.is_none(),
            trusted: trusted.unwrap_or_default(),
            identity,
        }))
    }
}

/// The address with a port.
fn address(flag: &str, text: &str, port: u16) -> anyhow::Result<String> {
    match text.rsplit_once(':') {
        Some((_, port)) => port
            .parse::<u16>()
            .map(|_| text.to_owned())
            .with_context(|| format!("{flag} {text}: {port:?} is no port")),
        None => Ok(format!("{text}:{port}")),
    }
}

/// What repo-servers share.
pub struct Cache(pub Store);

impl SharedCache for Cache {
    fn get(&self, name: String) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move { self.0.get(&name).await })
    }

    fn put(&self, name: String, json: Vec<u8>, keep: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.0.put(&name, json, keep).await })
    }
}

fn read_credential(folder: &Path, name: &str) -> anyhow::Result<String> {
    fs::metadata(folder).with_context(|| {
        format!(
            "folder {} with the credentials of Redis cannot be read",
            folder.display()
        )
    })?;
    match fs::read_to_string(folder.join(name)) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(String::new()),
        read => Ok(read
            .with_context(|| format!("{} cannot be read", folder.join(name).display()))?
            .trim()
            .to_owned()),
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
        let keep = Duration::from_secs(90);
        Line::parse_from(["x"].iter().chain(words))
            .redis
            .place(keep)
    }

    #[test]
    fn where_redis_is() {
        assert!(
            of(&[]).expect("valid").is_none() && of(&["--redis", ""]).expect("valid").is_none()
        );
        let place = of(&[
            "--redis",
            "argocd-redis",
            "--redisdb",
            "3",
            "--redis-compress",
            "none",
        ]);
        let place = place.expect("valid").expect("there is one");
        assert!(
            matches!(&place.server, Server::At(address) if address == "argocd-redis:6379")
                && place.db == 3
        );
        assert_eq!(
            (place.format.compress, place.format.keep.as_secs()),
            (false, 90)
        );
        assert!(place.tls.is_none());
        let tls = of(&[
            "--redis",
            "a",
            "--redis-use-tls",
            "--redis-insecure-skip-tls-verify",
        ])
        .expect("valid")
        .and_then(|p| p.tls);
        assert!(tls.is_some_and(|tls| tls.any && tls.system));
        for wrong in [
            &["--redis", "a:b"][..],
            &["--redis", "a", "--redis-compress", "zip"],
        ] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn lifetimes() {
        let hour = lifetime("x", "1h").expect("valid");
        assert_eq!(hour.as_secs(), 3600);
        for wrong in ["0s", "900ms", "-1h", "soon"] {
            assert!(lifetime("x", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sentinels_count_before_an_address() {
        let folder = tempfile::TempDir::new().expect("a folder");
        fs::write(folder.path().join("auth"), "a\n").expect("a file");
        fs::write(folder.path().join("sentinel_username"), "watcher").expect("a file");
        let credentials = folder.path().to_str().expect("a plain name");
        let words = [
            "--redis",
            "x",
            "--sentinel",
            "a",
            "--sentinel",
            "b:1,",
            "--sentinelmaster",
            "main",
            "--redis-credentials",
            credentials,
        ];
        let place = of(&words).expect("valid").expect("there is one");
        let Server::Known(sentinels) = place.server else {
            panic!("not an address")
        };
        assert_eq!(
            (sentinels.addresses, sentinels.master.as_str()),
            (vec!["a:26379".to_owned(), "b:1".to_owned()], "main")
        );
        assert_eq!(
            (place.login.username.as_str(), place.login.password.expose()),
            ("", "a")
        );
        assert_eq!(
            (
                sentinels.login.username.as_str(),
                sentinels.login.password.expose()
            ),
            ("watcher", "")
        );
        assert!(of(&["--sentinel", "a:b"]).is_err());
        assert!(of(&["--redis", "a", "--redis-credentials", "/nowhere"]).is_err());
    }
}

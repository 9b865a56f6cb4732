//! `tiphys repo-server`, or the program under the name `argocd-repo-server`: renders for controllers
//! and API servers, over gRPC. Main type: [`RepoServerRoleArgs`], with Argo CD's flags.

use super::{
    controller::terminated,
    git::GitArgs,
    logs::Logs,
    metrics,
    redis::{self, RedisArgs},
    repositories::RepositoryArgs,
    traces::TraceArgs,
    wire,
};
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use std::{
    fs,
    io::ErrorKind,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tiphys_apimachinery::quantity::Quantity;
use tiphys_controllers::{metrics::RedisRequests, redis::Store};
use tiphys_gocompat::duration;
use tiphys_listen::{Connections, Limits};
use tiphys_repo::{ContactWatch, RepoOptions, Repos};
use tiphys_repo_server::{GitMetrics, Server, ServerOptions, Shared, StreamLimits, TrustPaths};
use tiphys_rpc::{Tls, TlsRules, TlsVersion};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The name of the service for collectors of traces.
const SERVICE: &str = "argocd-repo-server";
/// Where certificates are, in the folder of the configuration.
const CERTIFICATES: &str = "reposerver/tls";
const CLIENT_AUTHORITIES: &str = "reposerver/mtls/client-ca.crt";
/// The names in a certificate of its own.
const NAMES: [&str; 2] = ["localhost", "reposerver"];

/// Render for controllers and API servers, Argo CD's or ours (repository.RepoServerService)
#[derive(Args, Debug)]
pub struct RepoServerRoleArgs {
    /// Address to listen on
    #[arg(
        long,
        default_value = "0.0.0.0",
        env = "ARGOCD_REPO_SERVER_LISTEN_ADDRESS"
    )]
    address: IpAddr,
    /// Port of the service
    #[arg(long, default_value_t = 8081)]
    port: u16,
    /// Address of the port of metrics
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "0.0.0.0",
        env = "ARGOCD_REPO_SERVER_METRICS_LISTEN_ADDRESS"
    )]
    metrics_address: IpAddr,
    /// Port of /metrics and /healthz, without TLS; 0 for none
    #[arg(long, value_name = "PORT", default_value_t = 8084)]
    metrics_port: u16,
    /// Most renders at a time; 0: twice the number of processors
    #[arg(
        long = "parallelismlimit",
        value_name = "N",
        default_value_t = 0,
        env = "ARGOCD_REPO_SERVER_PARALLELISM_LIMIT"
    )]
    parallelism_limit: usize,
    /// How long the refs of a repository are not looked up again, unless a client wants it
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "3m",
        env = "ARGOCD_RECONCILIATION_TIMEOUT"
    )]
    revision_cache_expiration: String,
    /// Most bytes of a folder's manifests, together
    #[arg(
        long = "max-combined-directory-manifests-size",
        value_name = "QUANTITY",
        default_value = "10M",
        env = "ARGOCD_REPO_SERVER_MAX_COMBINED_DIRECTORY_MANIFESTS_SIZE"
    )]
    combined: String,
    /// Most bytes of an archive that a client sends to be rendered
    #[arg(
        long = "streamed-manifest-max-tar-size",
        value_name = "QUANTITY",
        default_value = "100M",
        env = "ARGOCD_REPO_SERVER_STREAMED_MANIFEST_MAX_TAR_SIZE"
    )]
    streamed: String,
    /// Most bytes that it may unpack to, in memory
    #[arg(
        long = "streamed-manifest-max-extracted-size",
        value_name = "QUANTITY",
        default_value = "256Mi",
        env = "ARGOCD_REPO_SERVER_STREAMED_MANIFEST_MAX_EXTRACTED_SIZE"
    )]
    extracted: String,
    /// List folders whose names begin with a dot, too, where the folders of a repository are asked
    /// for
    #[arg(long, env = "ARGOCD_REPO_SERVER_INCLUDE_HIDDEN_DIRECTORIES")]
    include_hidden_directories: bool,
    /// Most megabytes of a message
    #[arg(
        long,
        value_name = "MB",
        default_value_t = 100,
        env = "ARGOCD_GRPC_MAX_SIZE_MB"
    )]
    max_message_mb: u32,
    /// How long manifests and the metadata of commits are kept in Redis
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "24h",
        env = "ARGOCD_REPO_CACHE_EXPIRATION"
    )]
    repo_cache_expiration: String,
    #[command(flatten)]
    redis: RedisArgs,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    traces: TraceArgs,
    #[command(flatten)]
    repositories: RepositoryArgs,
    #[command(flatten, next_help_heading = "Limits of repositories")]
    git: GitArgs,
}

/// The TLS of the port.
#[derive(Args, Debug)]
struct TlsArgs {
    /// Serve without TLS, as behind a proxy that ends it
    #[arg(long, env = "ARGOCD_REPO_SERVER_DISABLE_TLS")]
    disable_tls: bool,
    /// Authorities whose certificates clients must have; a file that is not there: clients need none
    /// [default: reposerver/mtls/client-ca.crt in the folder of the configuration]
    #[arg(long, value_name = "FILE", env = "ARGOCD_REPO_SERVER_CLIENT_CA_PATH")]
    client_ca_path: Option<PathBuf>,
    /// Oldest version of TLS: 1.2 or 1.3
    #[arg(
        long = "tlsminversion",
        value_name = "VERSION",
        default_value = "1.2",
        env = "ARGOCD_TLS_MIN_VERSION"
    )]
    oldest: String,
    /// Newest version of TLS
    #[arg(
        long = "tlsmaxversion",
        value_name = "VERSION",
        default_value = "1.3",
        env = "ARGOCD_TLS_MAX_VERSION"
    )]
    newest: String,
    /// Cipher suites of TLS 1.2, by their IANA names, with colons between them [default: all that
    /// are safe]
    #[arg(
        long = "tlsciphers",
        value_name = "NAMES",
        value_delimiter = ':',
        env = "ARGOCD_TLS_CIPHERS"
    )]
    ciphers: Vec<String>,
}

/// What is mounted from the ConfigMaps and Secrets of an installation.
#[derive(Args, Debug)]
struct TrustArgs {
    /// Folder of the configuration: certificates are in reposerver/tls
    #[arg(
        long = "config-dir",
        value_name = "DIR",
        default_value = "/app/config",
        env = "ARGOCD_APP_CONF_PATH"
    )]
    config: PathBuf,
    /// Folder with ssh_known_hosts
    #[arg(
        long = "ssh-dir",
        value_name = "DIR",
        default_value = "/app/config/ssh",
        env = "ARGOCD_SSH_DATA_PATH"
    )]
    ssh: PathBuf,
    /// Folder with certificate authorities, in files with the names of hosts
    #[arg(
        id = "trusted_tls",
        long = "tls-dir",
        value_name = "DIR",
        default_value = "/app/config/tls",
        env = "ARGOCD_TLS_DATA_PATH"
    )]
    authorities: PathBuf,
    /// Folder with the public keys of signatures
    #[arg(
        long = "gpg-dir",
        value_name = "DIR",
        default_value = "/app/config/gpg/source",
        env = "ARGOCD_GPG_DATA_PATH"
    )]
    gpg: PathBuf,
}

/// Runs until stopped.
pub async fn run(args: RepoServerRoleArgs, logs: Logs) -> anyhow::Result<()> {
    args.traces.begin(SERVICE, &logs.traces)?;
    let tls = args.tls.read(&args.trust.config)?;
    let repositories = args.repositories.folder()?;
    let git = GitMetrics::default();
    let counted = git.clone();
    let options = RepoOptions {
        contacts: ContactWatch::new(move |contact| counted.add(contact)),
        ..args.repo_options()?
    };
    let repos = Repos::with_options(&repositories.path, options);
    let server = Server::new(repos, args.options()?);
    let server = Arc::new(match args.shared()? {
        Some(shared) => server.sharing(shared),
        None => server,
    });
    let listener = TcpListener::bind((args.address, args.port))
        .await
        .with_context(|| {
            let port = args.port;
            format!("port {port} cannot be opened; choose another with --port")
        })?;
    let stop = CancellationToken::new();
    let place = (args.metrics_address, args.metrics_port);
    let text = {
        let server = Arc::clone(&server);
        move || server.metrics() + &git.text()
    };
    metrics::of_repo_server(place, (args.address, args.port), text, stop.clone()).await?;
    let serving = {
        let (stop, connections) = (stop.clone(), Connections::new(limits()));
        tokio::spawn(async move { server.serve(listener, tls, connections, stop).await })
    };
    tracing::info!(port = args.port, "{SERVICE} begins");
    terminated().await?;
    stop.cancel();
    serving.await??;
    drop(repositories);
    Ok(())
}

/// Few clients, which keep their connections; each of them sends many requests at a time.
fn limits() -> Limits {
    Limits {
        idle: Duration::from_secs(3600),
        drain: Duration::from_secs(20),
        ..Limits::default()
    }
}

/// A size in bytes, as Kubernetes writes quantities.
fn bytes(flag: &str, text: &str) -> anyhow::Result<u64> {
    let quantity: Quantity = text
        .parse()
        .map_err(|e| anyhow::anyhow!("--{flag} {text:?}: {e}"))?;
    u64::try_from(quantity.value()).with_context(|| format!("--{flag} {text:?} is negative"))
}

impl RepoServerRoleArgs {
    fn repo_options(&self) -> anyhow::Result<RepoOptions> {
        let keep = &self.revision_cache_expiration;
        let nanos = duration::parse(keep)
            .with_context(|| format!("--revision-cache-expiration {keep:?}"))?;
        let mut options = RepoOptions {
            allow_local: self.repositories.are_local_allowed(),
            parallelism: self.parallelism_limit,
            refs_ttl: Duration::from_nanos(u64::try_from(nanos).unwrap_or_default()),
            ..self.git.options()
        };
        let flag = "max-combined-directory-manifests-size";
        options.budget.combined_bytes = bytes(flag, &self.combined)?;
        Ok(options)
    }

    /// What other repo-servers have rendered, if there is a Redis.
    fn shared(&self) -> anyhow::Result<Option<Shared>> {
        let keep = redis::lifetime("repo-cache-expiration", &self.repo_cache_expiration)?;
        let place = self.redis.place(keep)?;
        Ok(place.map(|place| Shared {
            cache: Arc::new(redis::Cache(Store::new(place, RedisRequests::default()))),
            keep,
        }))
    }

    fn options(&self) -> anyhow::Result<ServerOptions> {
        let megabytes = usize::try_from(self.max_message_mb)?;
        Ok(ServerOptions {
            max_message: megabytes.saturating_mul(1 << 20),
            trust: TrustPaths {
                known_hosts: self.trust.ssh.join("ssh_known_hosts"),
                certificates: self.trust.authorities.clone(),
                keys: self.trust.gpg.clone(),
            },
            version: wire::version().version,
            streamed: StreamLimits {
                archive: bytes("streamed-manifest-max-tar-size", &self.streamed)?,
                bytes: bytes("streamed-manifest-max-extracted-size", &self.extracted)?,
            },
            hidden_folders: self.include_hidden_directories,
        })
    }
}

impl TlsArgs {
    fn read(&self, config: &Path) -> anyhow::Result<Tls> {
        let authorities = match &self.client_ca_path {
            Some(path) => {
                ensure!(
                    !self.disable_tls,
                    "--client-ca-path cannot be used when --disable-tls is enabled"
                );
                path.clone()
            }
            None => config.join(CLIENT_AUTHORITIES),
        };
        if self.disable_tls {
            return Ok(Tls::Off);
        }
        let folder = config.join(CERTIFICATES);
        let certificate = match (
            read(&folder.join("tls.crt"))?,
            read(&folder.join("tls.key"))?,
        ) {
            (Some(chain), Some(key)) => Tls::Pem { chain, key },
            _ => Tls::SelfSigned(NAMES.map(str::to_owned).into()),
        };
        let rules = TlsRules {
            client_authorities: read(&authorities)?,
            version: self.version()?,
            ciphers: self.ciphers.clone(),
        };
        if rules.client_authorities.is_some() {
            tracing::info!(authorities = %authorities.display(), "clients need certificates");
        }
        Ok(certificate.with(&rules)?)
    }

    /// The only version. What is older than 1.2 is not offered.
    fn version(&self) -> anyhow::Result<Option<TlsVersion>> {
        let rank = |text: &str| {
            let known = ["1.0", "1.1", "1.2", "1.3"];
            let found = known.iter().position(|version| *version == text);
            found.with_context(|| format!("TLS version {text:?} is not known"))
        };
        let (oldest, newest) = (rank(&self.oldest)?, rank(&self.newest)?);
        if oldest > newest {
            bail!(
                "minimum TLS version {} must not be higher than maximum TLS version {}",
                self.oldest,
                self.newest
            );
        }
        match (oldest, newest) {
            (_, 0 | 1) => bail!("TLS versions before 1.2 are not supported"),
            (3, _) => Ok(Some(TlsVersion::V13)),
            (_, 2) => Ok(Some(TlsVersion::V12)),
            _ => Ok(None),
        }
    }
}

/// The text of a file, if it is there.
fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        read => {
            Ok(Some(read.with_context(|| {
                format!("{} cannot be read", path.display())
            })?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(oldest: &str, newest: &str, client_ca_path: Option<PathBuf>) -> TlsArgs {
        TlsArgs {
            disable_tls: false,
            client_ca_path,
            oldest: oldest.to_owned(),
            newest: newest.to_owned(),
            ciphers: Vec::new(),
        }
    }

    #[test]
    fn versions() {
        for (oldest, newest, expected) in [
            ("1.2", "1.3", Some(None)),
            ("1.0", "1.3", Some(None)),
            ("1.3", "1.3", Some(Some(TlsVersion::V13))),
            ("1.2", "1.2", Some(Some(TlsVersion::V12))),
            ("1.0", "1.1", None),
            ("1.3", "1.2", None),
            ("2", "1.3", None),
        ] {
            let version = args(oldest, newest, None).version().ok();
            assert_eq!(version, expected, "{oldest} {newest}");
        }
    }

    #[test]
    fn certificates_are_where_argo_cd_mounts_them() {
        let dir = tempfile::TempDir::new().expect("a folder");
        let plain = args("1.2", "1.3", None);
        assert!(
            matches!(plain.read(dir.path()), Ok(Tls::Ready(_))),
            "its own"
        );
        let folder = dir.path().join(CERTIFICATES);
        fs::create_dir_all(&folder).expect("made");
        fs::write(folder.join("tls.crt"), "x").expect("written");
        fs::write(folder.join("tls.key"), "x").expect("written");
        assert!(
            plain.read(dir.path()).is_err(),
            "a broken one is not replaced"
        );
        let off = TlsArgs {
            disable_tls: true,
            ..args("1.2", "1.3", None)
        };
        assert!(matches!(off.read(dir.path()), Ok(Tls::Off)));
        let both = TlsArgs {
            disable_tls: true,
            ..args("1.2", "1.3", Some("ca.crt".into()))
        };
        assert!(both.read(dir.path()).is_err());
    }

    #[test]
    fn sizes_are_quantities() {
        assert_eq!(bytes("x", "10M").expect("valid"), 10_000_000);
        assert_eq!(bytes("x", "1Gi").expect("valid"), 1 << 30);
        assert!(bytes("x", "much").is_err());
        assert!(bytes("x", "-1").is_err());
    }
}

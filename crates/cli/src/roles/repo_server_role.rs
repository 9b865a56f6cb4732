//! `tiphys repo-server`, or the program under the name `argocd-repo-server`: renders for controllers
//! and API servers, over gRPC. Main type: [`RepoServerRoleArgs`], with Argo CD's flags.

use super::{
    git_service::{GitServiceArgs, Service},
    logs::Logs,
    redis::{self, RedisArgs},
    source_limits,
    tls::TlsVersionArgs,
    traces::TraceArgs,
    wire,
};
use anyhow::{Context as _, ensure};
use clap::Args;
use std::{
    fs,
    io::ErrorKind,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tiphys_controllers::{metrics::RedisRequests, redis::Store};
use tiphys_gocompat::duration;
use tiphys_listen::Limits;
use tiphys_repo::RepoOptions;
use tiphys_repo_server::{Server, ServerOptions, Shared, StreamLimits, TrustPaths};
use tiphys_rpc::Tls;

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
    /// Most bytes that it may unpack to
    #[arg(
        long = "streamed-manifest-max-extracted-size",
        value_name = "QUANTITY",
        default_value = "1G",
        env = "ARGOCD_REPO_SERVER_STREAMED_MANIFEST_MAX_EXTRACTED_SIZE"
    )]
    extracted: String,
    /// List folders whose names begin with a dot, too, where the folders of a repository are asked
    /// for
    #[arg(long, env = "ARGOCD_REPO_SERVER_INCLUDE_HIDDEN_DIRECTORIES")]
    include_hidden_directories: bool,
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
    service: GitServiceArgs,
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
    #[command(flatten)]
    versions: TlsVersionArgs,
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
    let service = Service {
        name: SERVICE,
        place: (args.address, args.port),
        tls,
        limits: limits(),
        metrics: (args.metrics_address, args.metrics_port),
        text: |server, git| server.metrics() + &git.text(),
    };
    let (options, repositories) = (args.options()?, args.repo_options()?);
    let shared = args.shared()?;
    let make = |repos| {
        let server = Server::new(repos, options);
        Ok(match shared {
            Some(shared) => server.sharing(shared),
            None => server,
        })
    };
    args.service.serve(service, repositories, make).await
}

/// Few clients, which keep their connections; each of them sends many requests at a time.
fn limits() -> Limits {
    Limits {
        idle: Duration::from_secs(3600),
        drain: Duration::from_secs(20),
        ..Limits::default()
    }
}

/// A size in bytes.
fn bytes(flag: &str, text: &str) -> anyhow::Result<u64> {
    let bytes = source_limits::bytes(text);
    bytes.map_err(|e| anyhow::anyhow!("--{flag} {text:?}: {e}"))
}

impl RepoServerRoleArgs {
    fn repo_options(&self) -> anyhow::Result<RepoOptions> {
        let keep = &self.revision_cache_expiration;
        let nanos = duration::parse(keep)
            .with_context(|| format!("--revision-cache-expiration {keep:?}"))?;
        let mut options = RepoOptions {
            parallelism: self.parallelism_limit,
            refs_ttl: Duration::from_nanos(u64::try_from(nanos).unwrap_or_default()),
            ..self.service.repo_options()
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
        Ok(ServerOptions {
            max_message: self.service.max_message()?,
            trust: TrustPaths {
                keys: self.trust.gpg.clone(),
                ..self.service.trust()
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
        let rules = self.versions.rules(read(&authorities)?)?;
        if rules.client_authorities.is_some() {
            tracing::info!(authorities = %authorities.display(), "clients need certificates");
        }
        Ok(certificate.with(&rules)?)
    }
}

/// The text of a file, if it is there.
pub fn read(path: &Path) -> anyhow::Result<Option<String>> {
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
    use crate::roles::repositories::check_local;
    use clap::Parser;

    #[derive(Parser)]
    struct Role {
        #[command(flatten)]
        args: RepoServerRoleArgs,
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn repositories_of_this_machine_are_refused() {
        let of = |words: &[&str]| Role::parse_from([&["x"], words].concat()).args;
        check_local(|words| of(words).repo_options().expect("valid")).await;
    }

    fn args(client_ca_path: Option<PathBuf>) -> TlsArgs {
        TlsArgs {
            disable_tls: false,
            client_ca_path,
            versions: TlsVersionArgs::default(),
        }
    }

    #[test]
    fn certificates_are_where_argo_cd_mounts_them() {
        let dir = tempfile::TempDir::new().expect("a folder");
        let plain = args(None);
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
            ..args(None)
        };
        assert!(matches!(off.read(dir.path()), Ok(Tls::Off)));
        let both = TlsArgs {
            disable_tls: true,
            ..args(Some("ca.crt".into()))
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

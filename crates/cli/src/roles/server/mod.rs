//! `tiphys server`, or the program under the name `argocd-server`: the API and the page, beside a
//! controller and a repo-server of Argo CD or of ours. Main type: [`ServerArgs`], with Argo CD's
//! flags.

pub mod headless;
mod published;

use super::{
    argocd::{PlaneArgs, named},
    audit::AuditArgs,
    catalog::CatalogArgs,
    connections::ConnectionArgs,
    controller::terminated,
    logs::Logs,
    metrics,
    redis::RedisArgs,
    repo_server_role::read,
    tls::TlsVersionArgs,
    traces::TraceArgs,
    up::bootstrap,
    wire::{ControlPlane, Elsewhere},
};
use anyhow::Context as _;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use clap::Args;
use published::InRedis;
use serde_json::Value;
use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
};
use tiphys_cluster::{records::SettingsOverrides, request::Call};
use tiphys_controllers::{
    metrics::report::Choice,
    redis::{Format, Reader},
};
use tiphys_server::{DexTls, Options, Tls, adapters::Unpublished};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The name of the service for collectors of traces.
const SERVICE: &str = "argocd-server";
/// The Secret whose certificate comes before that of argocd-secret.
const TLS_SECRET: &str = "argocd-server-tls";
/// Where the certificate of the Dex server is mounted, in the folder of the configuration.
const DEX_AUTHORITY: &str = "dex/tls/ca.crt";
const WITHOUT_REDIS: &str = "this server has no Redis (--redis), where controllers publish trees, differences and states of clusters";

/// Serve the API and the page beside a controller and a repo-server, Argo CD's or ours
#[derive(Args, Debug)]
pub struct ServerArgs {
    /// Address to listen on
    #[arg(long, default_value = "0.0.0.0", env = "ARGOCD_SERVER_LISTEN_ADDRESS")]
    address: IpAddr,
    /// Port of API and page
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Address of the port of metrics
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "0.0.0.0",
        env = "ARGOCD_SERVER_METRICS_LISTEN_ADDRESS"
    )]
    metrics_address: IpAddr,
    /// Port of /metrics and /healthz, without TLS; 0 for none
    #[arg(long, value_name = "PORT", default_value_t = 8083)]
    metrics_port: u16,
    /// Serve without TLS, as behind a proxy that ends it
    #[arg(long, env = "ARGOCD_SERVER_INSECURE")]
    insecure: bool,
    /// Path prefix that a proxy keeps
    #[arg(long, default_value = "", env = "ARGOCD_SERVER_ROOTPATH")]
    rootpath: String,
    /// Path prefix that a proxy cuts off; --rootpath counts instead
    #[arg(long, default_value = "/", env = "ARGOCD_SERVER_BASEHREF")]
    base_href: String,
    /// Folder with files that are served beside the page, such as the style sheet of ui.cssurl
    #[arg(long, value_name = "DIR", env = "ARGOCD_SERVER_STATIC_ASSETS")]
    static_files: Option<PathBuf>,
    /// Folder with extensions of the page: scripts extension*.js that run in everybody's browser
    #[arg(long, value_name = "DIR")]
    pub page_extensions: Option<PathBuf>,
    /// Let everybody do everything, without a session
    #[arg(long, env = "ARGOCD_SERVER_DISABLE_AUTH")]
    disable_auth: bool,
    /// Pass requests below /extensions on to the services of argocd-cm
    #[arg(long, env = "ARGOCD_SERVER_ENABLE_PROXY_EXTENSION")]
    enable_proxy_extension: bool,
    /// Do not describe the API at /swagger.json and /swagger-ui
    #[arg(long, env = "ARGOCD_SERVER_DISABLE_SWAGGER_UI")]
    disable_swagger_ui: bool,
    /// Namespaces with Applications beside it: names, globs, /expressions/
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        env = "ARGOCD_APPLICATION_NAMESPACES"
    )]
    application_namespaces: Vec<String>,
    /// Say that Applications with a sourceHydrator are hydrated
    #[arg(long, env = "ARGOCD_HYDRATOR_ENABLED")]
    hydrator_enabled: bool,
    #[command(flatten)]
    http: HttpArgs,
    #[command(flatten)]
    dex: DexArgs,
    #[command(flatten)]
    tls: TlsVersionArgs,
    #[command(flatten)]
    connections: ConnectionArgs,
    #[command(flatten)]
    audit: AuditArgs,
    #[command(flatten)]
    traces: TraceArgs,
    #[command(flatten)]
    redis: RedisArgs,
    #[command(flatten)]
    plane: PlaneArgs,
    #[command(flatten, next_help_heading = "Chart catalogue")]
    catalog: CatalogArgs,
}

/// Answers over plain HTTP.
#[derive(Args, Debug)]
struct HttpArgs {
    /// Value of the header X-Frame-Options; empty: none [default: sameorigin]
    #[arg(long, value_name = "TEXT", env = "ARGOCD_SERVER_X_FRAME_OPTIONS")]
    x_frame_options: Option<String>,
    /// Value of the header Content-Security-Policy; empty: none [default: only what the page needs]
    #[arg(
        long,
        value_name = "TEXT",
        env = "ARGOCD_SERVER_CONTENT_SECURITY_POLICY"
    )]
    content_security_policy: Option<String>,
    /// Content types that requests other than GET may have, with semicolons between them; empty:
    /// any, with which other sites can use the session of a browser
    #[arg(
        long,
        value_name = "TYPES",
        default_value = "application/json",
        env = "ARGOCD_API_CONTENT_TYPES"
    )]
    api_content_types: String,
    /// Whether answers are compressed [default: true]
    #[arg(long, value_name = "BOOL", env = "ARGOCD_SERVER_ENABLE_GZIP")]
    enable_gzip: Option<bool>,
}

impl HttpArgs {
    fn options(&self, others: Options) -> Options {
        let text = |given: &Option<String>, default: String| given.clone().unwrap_or(default);
        let types = self.api_content_types.split(';').map(str::trim);
        Options {
            gzip: self.enable_gzip != Some(false),
            content_types: types.filter(|t| !t.is_empty()).map(str::to_owned).collect(),
            frame_options: text(&self.x_frame_options, others.frame_options),
            content_security_policy: text(
                &self.content_security_policy,
                others.content_security_policy,
            ),
            ..others
        }
    }
}

/// The Dex server, for `dex.config`.
#[derive(Args, Debug)]
struct DexArgs {
    /// Address of the Dex server; without a scheme, by TLS unless --dex-server-plaintext
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "http://argocd-dex-server:5556",
        env = "ARGOCD_SERVER_DEX_SERVER"
    )]
    dex_server: String,
    /// Speak to the Dex server without TLS
    #[arg(long, env = "ARGOCD_SERVER_DEX_SERVER_PLAINTEXT")]
    dex_server_plaintext: bool,
    /// Check the Dex server's certificate against dex/tls/ca.crt in the folder of the configuration
    #[arg(long, env = "ARGOCD_SERVER_DEX_SERVER_STRICT_TLS")]
    dex_server_strict_tls: bool,
    /// Folder of the configuration
    #[arg(
        long = "config-dir",
        value_name = "DIR",
        default_value = "/app/config",
        env = "ARGOCD_APP_CONF_PATH"
    )]
    config: std::path::PathBuf,
}

impl DexArgs {
    fn url(&self) -> String {
        match self.dex_server.contains("://") {
            true => self.dex_server.clone(),
            false if self.dex_server_plaintext => format!("http://{}", self.dex_server),
            false => format!("https://{}", self.dex_server),
        }
    }

    fn tls(&self) -> anyhow::Result<DexTls> {
        if self.dex_server_plaintext || !self.dex_server_strict_tls {
            return Ok(DexTls {
                accepts_any: true,
                trusted: String::new(),
            });
        }
        let path: &Path = &self.config.join(DEX_AUTHORITY);
        let missing = || format!("--dex-server-strict-tls: {} is not there", path.display());
        Ok(DexTls {
            accepts_any: false,
            trusted: read(path)?.with_context(missing)?,
        })
    }
}

/// Runs until stopped. `overrides` override the settings.
pub async fn run(args: ServerArgs, overrides: SettingsOverrides, logs: Logs) -> anyhow::Result<()> {
    let options = args.options(args.connections.options_of_role())?;
    let (cluster, namespace) = args.plane.connect().await?;
    bootstrap::own_records(&cluster, &namespace).await?;
    let others = named(&args.application_namespaces);
    let place = (cluster, namespace.clone());
    let mut begun = args.plane.begin(place, others, overrides).await?;
    args.traces.begin(SERVICE, &logs.traces)?;
    if args.redis.place(Format::default().keep)?.is_none() {
        tracing::warn!("{WITHOUT_REDIS}: they are not shown");
    }
    let elsewhere = args.elsewhere(&namespace, WITHOUT_REDIS)?;
    begun.plane.without_controller(elsewhere);
    let listener = TcpListener::bind((args.address, args.port))
        .await
        .with_context(|| {
            let port = args.port;
            format!("port {port} cannot be opened; choose another with --port")
        })?;
    let tls = args.certificate(&begun.plane).await?;
    let server = begun
        .plane
        .server(!args.insecure, &args.rootpath, options)?;
    let stop = CancellationToken::new();
    let report = begun.plane.report(Choice::default());
    let catalog = args.catalog.start(&begun.plane.charts, &stop).await?;
    let (address, port) = (args.metrics_address, args.metrics_port);
    // Its health is told until the last call has ended.
    let ended = CancellationToken::new();
    metrics::of_api(address, port, server.clone(), report, ended.clone()).await?;
    let stopped = stop.clone();
    let serving = tokio::spawn(async move { server.serve(listener, tls, stopped).await });
    tracing::info!(namespace, port = args.port, "{SERVICE} begins");
    terminated().await?;
    stop.cancel();
    serving.await??;
    ended.cancel();
    catalog.await?;
    drop(begun.repositories);
    Ok(())
}

impl ServerArgs {
    fn options(&self, others: Options) -> anyhow::Result<Options> {
        Ok(self.http.options(Options {
            dex_server: self.dex.url(),
            dex_tls: self.dex.tls()?,
            hydrator_enabled: self.hydrator_enabled,
            auth_disabled: self.disable_auth,
            base_href: self.base_href.clone(),
            static_files: self.static_files.clone(),
            page_extensions: self.page_extensions.clone(),
            proxy_extensions: self.enable_proxy_extension,
            swagger: !self.disable_swagger_ui,
            audit: self.audit.options(),
            ..others
        }))
    }

    /// Where controllers publish; `missing` is said where that is not known.
    fn elsewhere(&self, namespace: &str, missing: &'static str) -> anyhow::Result<Elsewhere> {
        // It writes no values of Applications.
        let keep = Format::default().keep;
        let Some(place) = self.redis.place(keep)? else {
            return Ok(Elsewhere {
                published: Arc::new(Unpublished(missing)),
                sessions: None,
            });
        };
        let redis = Arc::new(InRedis {
            reader: Reader::start(place),
            namespace: namespace.to_owned(),
        });
        Ok(Elsewhere {
            published: redis.clone(),
            sessions: Some(redis),
        })
    }

    /// The certificate of the Secret for it, or in argocd-secret, or a new one.
    async fn certificate(&self, plane: &ControlPlane) -> anyhow::Result<Tls> {
        if self.insecure {
            return Ok(Tls::Off);
        }
        let found = match of_secret(plane).await? {
            Some((chain, key)) => Tls::Pem { chain, key },
            None => super::control_plane::tls_of(plane),
        };
        Ok(found.with(&self.tls.rules(None)?)?)
    }
}

/// Certificate and key in the Secret of their own.
async fn of_secret(plane: &ControlPlane) -> anyhow::Result<Option<(String, String)>> {
    let (cluster, namespace) = (&plane.records.cluster, &plane.records.namespace);
    let call = Call::get(format!(
        "/api/v1/namespaces/{namespace}/secrets/{TLS_SECRET}"
    ));
    let secret: Value = match cluster.http().json(&call).await {
        Ok(secret) => secret,
        Err(e) if e.is_not_found() => return Ok(None),
        Err(e) => return Err(e).context(format!("Secret {TLS_SECRET} cannot be read")),
    };
    let text = |key: &str| {
        let packed = secret["data"][key].as_str()?;
        String::from_utf8(BASE64_STANDARD.decode(packed).ok()?).ok()
    };
    Ok(text("tls.crt").zip(text("tls.key")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::repositories::check_local;
    use clap::Parser;

    #[derive(Parser)]
    struct Role {
        #[command(flatten)]
        args: ServerArgs,
    }

    fn of(words: &[&str]) -> ServerArgs {
        Role::parse_from([&["x"], words].concat()).args
    }

    #[test]
    fn the_ports_are_argo_cds() {
        let args = of(&[]);
        assert_eq!((args.port, args.metrics_port), (8080, 8083));
        assert_eq!(of(&["--metrics-port", "0"]).metrics_port, 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn repositories_of_this_machine_are_refused() {
        check_local(|words| of(words).plane.repo_options()).await;
    }
}

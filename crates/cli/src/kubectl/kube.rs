//! kubectl's flags for selecting a cluster, and the resulting connection. Main type: [`KubeArgs`].

use super::failure::Trouble;
use std::{path::PathBuf, time::Duration};
use tiphys_cluster::{Cluster, ConnectOptions, Discovery, Overrides, Source};
use tiphys_gocompat::duration;

/// As kubectl's global flags; the environment and the files are its too.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Cluster")]
pub struct KubeArgs {
    /// Path of the kubeconfig [default: $KUBECONFIG, ~/.kube/config, the service account of the
    /// pod]
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
    /// Cluster of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    cluster: Option<String>,
    /// User of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    user: Option<String>,
    /// Namespace of this request; objects that name another one are refused
    #[arg(long, short = 'n', global = true, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Address and port of the API server
    #[arg(long, short = 's', global = true, value_name = "URL")]
    server: Option<String>,
    /// Username to impersonate
    #[arg(long = "as", global = true, value_name = "USER")]
    impersonate: Option<String>,
    /// Group to impersonate (can be repeated)
    #[arg(
        long = "as-group",
        global = true,
        value_name = "GROUP",
        requires = "impersonate"
    )]
    impersonate_groups: Vec<String>,
    /// Bearer token
    #[arg(long, global = true, value_name = "TOKEN")]
    token: Option<String>,
    /// Username for basic authentication
    #[arg(long, global = true, hide = true, value_name = "NAME")]
    username: Option<String>,
    /// Password for basic authentication
    #[arg(long, global = true, hide = true, value_name = "PASSWORD")]
    password: Option<String>,
    /// Connect through this proxy
    #[arg(long, global = true, value_name = "URL")]
    proxy_url: Option<String>,
    /// (no effect: compressed answers are never asked for)
    #[arg(long, global = true, hide = true)]
    disable_compression: bool,
    /// How long to wait for an answer, such as 5s; 0: as long as usual
    #[arg(long, global = true, value_name = "TIME", value_parser = patience)]
    request_timeout: Option<Duration>,
    /// File with the certificate of the authority that signed the server's
    #[arg(long, global = true, value_name = "FILE")]
    certificate_authority: Option<String>,
    /// File with a client certificate
    #[arg(long, global = true, value_name = "FILE")]
    client_certificate: Option<String>,
    /// File with the key of the client certificate
    #[arg(long, global = true, value_name = "FILE")]
    client_key: Option<String>,
    /// Do not check the server's certificate
    #[arg(long, global = true)]
    insecure_skip_tls_verify: Option<bool>,
    /// Name that the server's certificate must have
    #[arg(long, global = true, value_name = "NAME")]
    tls_server_name: Option<String>,
}

/// A number of seconds, or a duration as Go writes it.
fn patience(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let nanos = duration::parse(text).map_err(|e| e.to_string())?;
    u64::try_from(nanos)
        .map(Duration::from_nanos)
        .map_err(|_| "it is negative".to_owned())
}

/// A cluster, and the namespace to use.
pub struct Target {
    pub discovery: Discovery,
    pub namespace: String,
    /// The namespace was given on the command line: objects in others are refused.
    pub enforce: bool,
}

impl KubeArgs {
    /// The context that was chosen on the command line.
    pub fn context(&self) -> Option<&str> {
        self.context.as_deref()
    }

    /// Connects and discovers the kinds.
    pub async fn connect(&self) -> Result<Target, Trouble> {
        let cluster = Cluster::connect(self.options())
            .await
            .map_err(Trouble::text)?;
        let namespace = self
            .namespace()
            .map_or_else(|| cluster.default_namespace().to_owned(), str::to_owned);
        let discovery = Discovery::new(cluster).await.map_err(Trouble::text)?;
        Ok(Target {
            discovery,
            enforce: self.namespace().is_some(),
            namespace,
        })
    }

    /// The connection options.
    pub fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new(self.source());
        options.overrides = Overrides {
            cluster: self.cluster.clone(),
            user: self.user.clone(),
            server: self.server.clone(),
            certificate_authority: self.certificate_authority.clone(),
            insecure_skip_tls_verify: self.insecure_skip_tls_verify,
            tls_server_name: self.tls_server_name.clone(),
            client_certificate: self.client_certificate.clone(),
            client_key: self.client_key.clone(),
            token: self.token.clone(),
            impersonate: self.impersonate.clone(),
            impersonate_groups: self.impersonate_groups.clone(),
            proxy_url: self.proxy_url.clone(),
            username: self.username.clone(),
            password: self.password.clone(),
        };
        if let Some(patience) = self.request_timeout.filter(|time| !time.is_zero()) {
            options.timeout = patience;
        }
        options
    }

    /// Whether the command line or the environment selects a cluster.
    pub fn names_cluster(&self) -> bool {
        let set = std::env::var_os("KUBECONFIG").is_some_and(|v| !v.is_empty());
        set || [
            self.context.is_some(),
            self.cluster.is_some(),
            self.server.is_some(),
            self.kubeconfig.is_some(),
        ]
        .contains(&true)
    }

    /// Whether there is anything that could say where a cluster is.
    pub fn has_configuration(&self) -> bool {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let usual = home.is_some_and(|home| home.join(".kube/config").is_file());
        let is_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        self.names_cluster() || usual || is_pod
    }

    /// The same, with another file.
    pub fn with_kubeconfig(self, path: PathBuf) -> Self {
        Self {
            kubeconfig: Some(path),
            ..self
        }
    }

    /// The current cluster of the kubeconfig, or that of a context.
    pub fn of_context(context: Option<String>) -> Self {
        Self {
            context,
            ..Self::default()
        }
    }

    /// The namespace of the command line.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|n| !n.is_empty())
    }

    fn source(&self) -> Source {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let home = std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".kube/config"));
        let in_pod = is_set("KUBERNETES_SERVICE_HOST") && self.server.is_none();
        if self.kubeconfig.is_none()
            && in_pod
            && !is_set("KUBECONFIG")
            && !home.is_some_and(|h| h.exists())
        {
            return Source::InCluster;
        }
        Source::Kubeconfig {
            path: self.kubeconfig.clone(),
            context: self.context.clone(),
        }
    }
}

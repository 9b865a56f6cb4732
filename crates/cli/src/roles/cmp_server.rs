//! `tiphys cmp-server`, or the program under the name `argocd-cmp-server`: serves the plugin of a
//! `plugin.yaml` on a unix socket, to our renderers or to Argo CD's repo-server. The only role that
//! runs programs of its users.

use super::{
    controller::terminated,
    plugins::{SOCKETS, SOCKETS_VARIABLE},
};
use anyhow::Context as _;
use clap::{Args, Parser};
use std::{env, path::PathBuf, sync::Arc};
use tiphys_cmp::{Config, ReceiveLimits, Server, ServerOptions};

/// The name of Argo CD's program.
pub const NAME: &str = "argocd-cmp-server";
/// In the folder that is named, or in that of temporary files.
const WORK: &str = "_cmp_server";

/// Serve a config management plugin (plugin.yaml) to a renderer on the same machine
#[derive(Args, Debug)]
pub struct CmpServerArgs {
    /// Folder with plugin.yaml
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/home/argocd/cmp-server/config"
    )]
    config_dir_path: PathBuf,
    /// Folder for the socket
    #[arg(long, value_name = "DIR", default_value = SOCKETS, env = SOCKETS_VARIABLE)]
    plugins_dir: PathBuf,
    /// Folder for the files that are received; the folder _cmp_server in it is emptied at the start
    /// [default: that of temporary files]
    #[arg(long, value_name = "DIR", env = "ARGOCD_CMP_WORKDIR")]
    workdir: Option<PathBuf>,
    /// Most megabytes of a message, and of what a command prints
    #[arg(
        long,
        value_name = "MB",
        default_value_t = 100,
        env = "ARGOCD_GRPC_MAX_SIZE_MB"
    )]
    max_message_mb: u32,
}

/// The command line of Argo CD's program.
#[derive(Parser, Debug)]
#[command(name = NAME, no_binary_name = true)]
pub struct Called {
    #[command(flatten)]
    pub args: CmpServerArgs,
    /// json or text
    #[arg(long, default_value = "json", env = "ARGOCD_CMP_SERVER_LOGFORMAT")]
    pub logformat: String,
    /// trace, debug, info, warn or error
    #[arg(long, default_value = "info", env = "ARGOCD_CMP_SERVER_LOGLEVEL")]
    pub loglevel: String,
    #[command(flatten)]
    traces: Traces,
}

/// Accepted, and without effect: this role sends no traces.
#[derive(Args, Debug)]
struct Traces {
    #[arg(long, hide = true, env = "ARGOCD_CMP_SERVER_OTLP_ADDRESS")]
    otlp_address: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", env = "ARGOCD_CMP_SERVER_OTLP_INSECURE")]
    otlp_insecure: Option<String>,
    #[arg(long, hide = true, env = "ARGOCD_CMP_SERVER_OTLP_HEADERS")]
    otlp_headers: Vec<String>,
    #[arg(long, hide = true, env = "ARGOCD_CMP_SERVER_OTLP_ATTRS")]
    otlp_attrs: Vec<String>,
    #[arg(long, hide = true, env = "ARGOCD_CMP_SERVER_OTLP_SAMPLE_RATIO")]
    otlp_sample_ratio: Option<String>,
}

impl Called {
    /// Says which of the flags have no effect.
    pub fn warn(&self) {
        if self
            .traces
            .otlp_address
            .as_ref()
            .is_some_and(|address| !address.is_empty())
        {
            tracing::warn!("--otlp-address has no effect here: {NAME} sends no traces");
        }
    }
}

/// Runs until stopped.
pub async fn run(args: CmpServerArgs) -> anyhow::Result<()> {
    let config = Config::read(&args.config_dir_path)?;
    if !config.discovers() {
        tracing::info!(
            "No discovery configuration is defined for the plugin. To use it, specify {:?} in the Application's spec.source.plugin.name field.",
            config.name()
        );
    }
    let work = args.workdir.unwrap_or_else(env::temp_dir).join(WORK);
    let options = ServerOptions {
        config,
        sockets: args.plugins_dir,
        limits: ReceiveLimits::default(),
        max_message: usize::try_from(args.max_message_mb)?.saturating_mul(1 << 20),
        work: work.clone(),
    };
    let server = Server::new(options).with_context(|| format!("cannot use {}", work.display()))?;
    let (path, server) = (server.socket(), Arc::new(server));
    let stop = async {
        let _ = terminated().await;
    };
    server
        .serve(stop)
        .await
        .with_context(|| format!("cannot serve on {}", path.display()))
}

/// `argocd-git-ask-pass PROMPT`: prints the user name or the password that git asks for, to those
/// who were lent one.
pub async fn ask_pass(words: &[String]) -> anyhow::Result<String> {
    let [prompt] = words else {
        anyhow::bail!("expected 1 argument, got {}", words.len());
    };
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let nonce = tiphys_repo::ASK_PASS_NONCE;
    let nonce = variable(nonce).with_context(|| format!("{nonce} is not set"))?;
    let socket = variable("ARGOCD_ASK_PASS_SOCK");
    let socket = PathBuf::from(socket.unwrap_or_else(|| tiphys_repo::ASK_PASS_SOCKET.to_owned()));
    tiphys_repo::ask_pass(&socket, &nonce, prompt)
        .await
        .map_err(anyhow::Error::msg)
}

#[cfg(test)]
mod tests {
    use super::Called;
    use clap::{CommandFactory as _, Parser as _};

    #[test]
    fn argo_cds_flags_are_accepted() {
        Called::command().debug_assert();
        let called = Called::try_parse_from([
            "--config-dir-path",
            "/config",
            "--loglevel",
            "debug",
            "--logformat=text",
            "--otlp-insecure=false",
            "--otlp-insecure",
            "--otlp-address",
            "",
        ]);
        let e = called.expect_err("one of them twice").to_string();
        assert!(e.contains("--otlp-insecure"), "{e}");
        let words = ["--config-dir-path", "/config", "--otlp-insecure=false"];
        let called = Called::try_parse_from(words).expect("valid");
        assert_eq!(called.args.config_dir_path.to_str(), Some("/config"));
        assert_eq!(called.loglevel, "info");
    }
}

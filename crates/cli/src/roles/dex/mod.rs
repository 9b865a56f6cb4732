//! `tiphys dex`, or the program under the name `argocd-dex`: writes Dex's configuration, or runs
//! Dex with it. Main functions: [`read`] and [`run`].

mod installation;
mod process;
mod running;

use crate::{flags::adapt, kubectl::kube::KubeArgs, output, private};
use anyhow::Context as _;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use installation::Installation;
use std::{
    env,
    path::{Path, PathBuf},
};
use tiphys_server::sso::{DexConfiguration, DexOptions};

/// The name of Argo CD's program.
pub const NAME: &str = "argocd-dex";
/// Ours.
pub const OWN_NAME: &str = "tiphys dex";
/// Where Argo CD's has its files.
const FOLDER: &str = "/tmp";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// Write Dex's configuration, or run Dex with it
#[derive(Parser)]
#[command(name = NAME, no_binary_name = true)]
pub struct Line {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run the program dex of PATH with a configuration made of dex.config in argocd-cm, and again
    /// when that changes
    #[command(after_help = "Examples:
  tiphys dex rundex -n argocd
  tiphys dex rundex --disable-tls --config-dir /run/dex")]
    Rundex(Box<RunArgs>),
    /// Print Dex's configuration, made of dex.config in argocd-cm, without its secrets; with --out
    /// write it with them
    #[command(after_help = "Examples:
  tiphys dex gendexcfg -n argocd
  tiphys dex gendexcfg --disable-tls -o dex.yaml")]
    Gendexcfg(Box<GenerateArgs>),
}

#[derive(Args)]
struct RunArgs {
    /// Folder for dex.yaml, tls.crt and tls.key, which only this user may read
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    config_dir: PathBuf,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Args)]
struct GenerateArgs {
    /// File to write, with the secrets, which only this user may read [default: standard output,
    /// without them]
    #[arg(long, short = 'o', value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Args)]
struct CommonArgs {
    /// Let Dex serve without TLS [env: ARGOCD_DEX_SERVER_DISABLE_TLS]
    #[arg(long)]
    disable_tls: Option<bool>,
    /// Format of the log, json or text, also of Dex's [env: ARGOCD_DEX_SERVER_LOGFORMAT] [default:
    /// json]
    #[arg(long, value_name = "FORMAT")]
    logformat: Option<String>,
    /// Level of the log, also of Dex's: debug, info, warn or error [env:
    /// ARGOCD_DEX_SERVER_LOGLEVEL] [default: info]
    #[arg(long, value_name = "LEVEL")]
    loglevel: Option<String>,
    #[command(flatten)]
    kube: KubeArgs,
}

/// An optional key of a ConfigMap may make a variable empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

impl CommonArgs {
    fn serves_tls(&self) -> bool {
        // As Argo CD reads variables; what is neither true nor false does not count.
        let off = || {
            variable("ARGOCD_DEX_SERVER_DISABLE_TLS")
                .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        };
        !self.disable_tls.unwrap_or_else(off)
    }

    fn log_format(&self) -> String {
        let given = self.logformat.clone();
        given
            .or_else(|| variable("ARGOCD_DEX_SERVER_LOGFORMAT"))
            .unwrap_or_else(|| "json".to_owned())
    }

    fn log_level(&self) -> String {
        let given = self.loglevel.clone();
        given
            .or_else(|| variable("ARGOCD_DEX_SERVER_LOGLEVEL"))
            .unwrap_or_else(|| "info".to_owned())
    }

    fn options(&self, folder: &Path) -> DexOptions {
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        DexOptions {
            certificate: self.serves_tls().then(|| (path(CERTIFICATE), path(KEY))),
            log_level: self.log_level(),
            log_format: self.log_format(),
        }
    }
}

impl Line {
    fn common(&self) -> &CommonArgs {
        match &self.verb {
            Verb::Rundex(args) => &args.common,
            Verb::Gendexcfg(args) => &args.common,
        }
    }

    pub fn log_format(&self) -> String {
        self.common().log_format()
    }

    pub fn log_level(&self) -> String {
        self.common().log_level()
    }
}

/// Reads the command line.
///
/// # Errors
/// It cannot be read, or asks for help.
pub fn read(name: &'static str, words: &[String]) -> Result<Line, clap::Error> {
    let command = adapt(Line::command().name(name).bin_name(name));
    Line::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// Writes the configuration, or runs Dex until stopped.
pub async fn run(line: Line) -> anyhow::Result<()> {
    match line.verb {
        Verb::Rundex(args) => running::run(*args).await,
        Verb::Gendexcfg(args) => generate(*args).await,
    }
}

async fn generate(args: GenerateArgs) -> anyhow::Result<()> {
    let options = args.common.options(Path::new(FOLDER));
    let installation = Installation::connect(&args.common.kube, options).await?;
    let Some(configuration) = installation.configuration().await? else {
        tracing::info!("dex is not configured: argocd-cm has no dex.config, or no url");
        return Ok(());
    };
    warn_of(&configuration);
    let Some(path) = args.out.filter(|path| !path.as_os_str().is_empty()) else {
        output::print(&configuration.shown());
        return Ok(());
    };
    private::write(&path, configuration.text().as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Names the fields that look like references, not what they say: it may be a secret.
fn warn_of(configuration: &DexConfiguration) {
    for field in configuration.unresolved() {
        tracing::warn!(
            path = field.as_str(),
            "a field of dex.config begins with $, but names no key of a Secret; Dex looks for it \
             in its environment. A Secret other than argocd-secret needs the label \
             app.kubernetes.io/part-of: argocd"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> Result<Line, clap::Error> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        read(NAME, &words)
    }

    #[test]
    fn flags_are_argo_cds() {
        let words = [
            "gendexcfg",
            "-n",
            "cd",
            "-o",
            "dex.yaml",
            "--disable-tls",
            "--loglevel=debug",
            "--logformat",
            "text",
        ];
        let read = line(&words).expect("valid");
        let Verb::Gendexcfg(args) = &read.verb else {
            panic!("another verb");
        };
        assert_eq!(args.common.kube.namespace(), Some("cd"));
        assert_eq!(args.out.as_deref(), Some(Path::new("dex.yaml")));
        assert_eq!([read.log_format(), read.log_level()], ["text", "debug"]);
        let options = args.common.options(Path::new("/tmp"));
        assert_eq!(options.certificate, None);
        assert_eq!([options.log_level, options.log_format], ["debug", "text"]);

        let read = line(&["rundex", "--disable-tls=false"]).expect("valid");
        let Verb::Rundex(args) = &read.verb else {
            panic!("another verb");
        };
        assert_eq!(args.config_dir, Path::new("/tmp"));
        let files = ("/tmp/tls.crt".to_owned(), "/tmp/tls.key".to_owned());
        let options = args.common.options(&args.config_dir);
        assert_eq!(options.certificate, Some(files));
        assert!(line(&["rundex", "--out", "dex.yaml"]).is_err());
        assert!(line(&["rundex", "--nope"]).is_err());
        for verb in ["rundex", "gendexcfg"] {
            let help = line(&[verb, "--help"]).err().expect("help").to_string();
            let example = format!("Examples:\n  tiphys dex {verb}");
            assert!(help.contains(&example), "{help}");
        }
    }
}

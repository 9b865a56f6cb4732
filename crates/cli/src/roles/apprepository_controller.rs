//! `apprepository-controller`: kubeapps' controller of this name, with its flags.

use super::{controller::terminated, replicas};
use anyhow::Context;
use std::path::PathBuf;
use tiphys_catalog::apprepository::Options;
use tiphys_cluster::{Cluster, ConnectOptions, Overrides, Source};
use tiphys_controllers::apprepository::jobs::{self, JobsOptions};
use tokio_util::sync::CancellationToken;

pub const NAME: &str = "apprepository-controller";

/// Make CronJobs and Jobs that read the chart repositories of AppRepositories, as kubeapps'
/// controller does, with its flags
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct AppRepositoryControllerArgs {
    /// Flags of kubeapps' controller; --help explains them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// What the command line says.
pub enum Line {
    Help,
    Run(Box<Settings>),
}

pub struct Settings {
    options: Options,
    connect: ConnectOptions,
}

/// Reads the flags.
///
/// # Errors
/// A flag is unknown or its value cannot be used.
pub fn read(words: &[String]) -> anyhow::Result<Line> {
    if words.iter().any(|word| word == "--help" || word == "-h") {
        return Ok(Line::Help);
    }
    let url = std::env::var("OCI_CATALOG_URL").unwrap_or_default();
    let options = Options::parse(words, &url)?;
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (kubeconfig, server) = (given(&options.kubeconfig), given(&options.api_server));
    let connect = if kubeconfig.is_none() && server.is_none() {
        ConnectOptions::new(Source::InCluster)
    } else {
        ConnectOptions {
            overrides: Overrides {
                server,
                ..Overrides::default()
            },
            ..ConnectOptions::kubeconfig(kubeconfig.map(PathBuf::from), None)
        }
    };
    Ok(Line::Run(Box::new(Settings { options, connect })))
}

/// Runs until stopped.
pub async fn run(settings: Settings) -> anyhow::Result<()> {
    let cluster = Cluster::connect(settings.connect).await?;
    let stop = CancellationToken::new();
    tracing::info!(
        namespace = settings.options.namespace,
        "AppRepositories are followed"
    );
    let namespace = &settings.options.namespace;
    let leases = replicas::start_for_chart_repositories(&cluster, namespace).await;
    let options = JobsOptions::new(settings.options);
    let controller = tokio::spawn(jobs::run(cluster, options, leases, stop.clone()));
    terminated().await?;
    stop.cancel();
    controller.await.context("the controller ended")?;
    Ok(())
}

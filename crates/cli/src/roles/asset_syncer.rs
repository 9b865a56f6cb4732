//! `asset-syncer`: kubeapps' program of this name, as Jobs run it.

use std::process::ExitCode;
use tiphys_catalog::asset_syncer::{CA_FILE, Surroundings, run};

pub const NAME: &str = "asset-syncer";

/// Sync a chart repository into PostgreSQL, as kubeapps' asset-syncer does, with its arguments
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct AssetSyncerArgs {
    /// sync NAME URL TYPE, delete NAME or invalidate-cache; --help explains the flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// Runs it; errors are told as kubeapps' program tells them.
pub async fn start(words: &[String]) -> ExitCode {
    let from = |name: &str| std::env::var(name).unwrap_or_default();
    let surroundings = Surroundings {
        database_password: from("DB_PASSWORD").into(),
        authorization: from("AUTHORIZATION_HEADER").into(),
        docker_config: from("DOCKER_CONFIG_JSON").into(),
        ssl: ["PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY"].map(from),
        ca_file: CA_FILE.into(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Surroundings::default()
    };
    match run(words, &surroundings).await {
        Ok(said) => {
            eprint!("{said}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("Error: {e}");
            ExitCode::FAILURE
        }
    }
}

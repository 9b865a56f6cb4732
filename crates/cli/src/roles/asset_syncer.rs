//! `asset-syncer`: kubeapps' program of this name, as Jobs run it.

use std::{fs::OpenOptions, io::Write as _, path::Path, process::ExitCode};
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

/// The kubelet puts what is in it into the status of the pod, where the controller reads it.
const TERMINATION_LOG: &str = "/dev/termination-log";
/// The kubelet takes no more.
const TERMINATION_BYTES: usize = 4096;

/// Writes into a file that the kubelet made; elsewhere there is none.
fn leave(file: &Path, said: &str) {
    let said = &said[..said.floor_char_boundary(TERMINATION_BYTES)];
    let opened = OpenOptions::new().write(true).truncate(true).open(file);
    // The same is in the log.
    let _ = opened.and_then(|mut file| file.write_all(said.as_bytes()));
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
            let said = format!("Error: {e}");
            eprintln!("{said}");
            leave(Path::new(TERMINATION_LOG), &said);
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_left_for_the_kubelet() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("log");
        leave(&file, "nobody made it");
        assert!(!file.exists());
        std::fs::write(&file, "before").expect("a file");
        leave(&file, "Error: x");
        let read = || std::fs::read_to_string(&file).expect("a file");
        assert_eq!(read(), "Error: x");
        leave(&file, &format!("x{}", "é".repeat(4096)));
        assert_eq!(read().len(), 4095);
    }
}

//! `catalog sync`: reads repositories.

use super::{alone, failed, named};
use crate::{client::Failure, output};
use std::sync::Arc;
use tiphys_catalog::{RepoSpec, Store};

/// Read the repositories of the catalogue
#[derive(clap::Args)]
pub struct Sync {
    /// Repositories [default: all]
    names: Vec<String>,
}

impl Sync {
    pub async fn run(self, store: Arc<Store>) -> Result<(), Failure> {
        let mut failures = 0;
        for repo in named(&store, &self.names)? {
            let name = &repo.id.name;
            let sync = RepoSpec::sync(Arc::clone(&store), &repo).map_err(failed)?;
            let report = alone(&store, &repo.id, sync.at_work(), sync.run()).await;
            let line = match report {
                Err(e) => {
                    failures += 1;
                    format!("{name}: {e}\n")
                }
                Ok(report) if report.unchanged && report.files + report.failed_files == 0 => {
                    format!("{name}: unchanged\n")
                }
                Ok(report) => {
                    let mut line = if report.unchanged {
                        format!("{name}: unchanged")
                    } else {
                        format!(
                            "{name}: {} charts, {} changed, {} removed",
                            report.charts, report.changed, report.removed
                        )
                    };
                    for (number, what) in [
                        (report.files, "files read"),
                        (report.failed_files, "files failed"),
                    ] {
                        if number > 0 {
                            line.push_str(&format!(", {number} {what}"));
                        }
                    }
                    if report.skipped > 0 {
                        line.push_str(&format!(
                            ", {} entries skipped (`catalog problems {name}` says why)",
                            report.skipped
                        ));
                    }
                    line + "\n"
                }
            };
            output::print(&line);
        }
        if failures > 0 {
            return Err(Failure::error(format!(
                "{failures} repositories could not be read"
            )));
        }
        Ok(())
    }
}

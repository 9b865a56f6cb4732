//! `catalog sync`: reads repositories, or asks a server to.

use super::{
    Catalogue, alone, called, failed, named,
    server::{self, Server},
};
use crate::{client::Failure, output};
use std::sync::Arc;
use tiphys_api::rpc::catalog::SyncRequest;
use tiphys_catalog::{RepoSpec, Store};

const SYNC: &str = "/catalog.CatalogService/SyncRepository";

/// Read the repositories of the catalogue
///
/// A server reads them by itself, as often as they say. It is asked to do so now, and what comes of
/// it is not waited for: `tiphys catalog repos list` shows it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  # Of the server that you are logged in to, else of this machine
  tiphys catalog sync argo

  # All of this machine, although you are logged in
  tiphys catalog sync --local")]
pub struct Sync {
    /// Repositories [default: all]
    names: Vec<String>,
}

impl Sync {
    pub(super) async fn run(self, of: &Catalogue) -> Result<(), Failure> {
        match of {
            Catalogue::Here(store) => self.here(store).await,
            Catalogue::Of(server) => self.ask(server).await,
        }
    }

    async fn ask(self, server: &Server) -> Result<(), Failure> {
        let mut failures = 0;
        for repo in server.named(&self.names).await? {
            let name = called(&server::id(&repo));
            let request = SyncRequest {
                namespace: repo.namespace,
                name: repo.name,
            };
            let line = match server.tell(SYNC, request).await {
                Ok(()) => format!(
                    "{name}: the server will read it (`tiphys catalog repos list` shows the result)"
                ),
                Err(e) => {
                    failures += 1;
                    format!("{name}: {e}")
                }
            };
            output::print(&(line + "\n"));
        }
        if failures > 0 {
            return Err(Failure::error(format!(
                "{failures} repositories will not be read"
            )));
        }
        Ok(())
    }

    async fn here(self, store: &Arc<Store>) -> Result<(), Failure> {
        let mut failures = 0;
        for repo in named(store, &self.names)? {
            let name = &repo.id.name;
            let sync = RepoSpec::sync(Arc::clone(store), &repo).map_err(failed)?;
            let report = alone(store, &repo.id, sync.at_work(), sync.run()).await;
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

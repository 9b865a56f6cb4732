//! Where the API server records who changed what. Main type: [`AuditArgs`].

use clap::Args;
use std::path::PathBuf;
use tiphys_server::audit::AuditOptions;

#[derive(Args, Debug)]
pub struct AuditArgs {
    /// Append a record of every change and every refusal to this file; nothing is changed while it
    /// cannot be written
    #[arg(long, value_name = "FILE", env = "TIPHYS_AUDIT_LOG")]
    audit_log: Option<PathBuf>,
    /// Write each of these records as a Kubernetes Event, too
    #[arg(long, env = "TIPHYS_AUDIT_EVENTS")]
    audit_events: bool,
}

impl AuditArgs {
    pub fn options(&self) -> AuditOptions {
        AuditOptions {
            file: self.audit_log.clone(),
            events: self.audit_events,
        }
    }
}

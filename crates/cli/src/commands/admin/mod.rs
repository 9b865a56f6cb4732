//! `admin`: administration of the settings and the cluster itself, without the API. Main type:
//! [`AdminCommand`].

mod audit;
mod backup;
mod generate;
mod notifications;
mod overrides;
mod password;
mod rbac;

use crate::client::Failure;

#[derive(clap::Subcommand)]
pub enum AdminCommand {
    /// Provides set of commands for settings validation and troubleshooting
    #[command(subcommand)]
    Settings(SettingsCommand),
    /// Manage applications configuration
    #[command(subcommand)]
    App(generate::AppSpecCommand),
    /// Manage projects configuration
    #[command(subcommand)]
    Proj(generate::ProjSpecCommand),
    /// Set of CLI commands that helps manage notifications settings
    #[command(subcommand)]
    Notifications(Box<notifications::NotificationsCommand>),
    /// Check and show an audit log
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    InitialPassword(password::InitialPassword),
    Export(backup::Export),
    Import(Box<backup::Import>),
}

#[derive(clap::Subcommand)]
pub enum SettingsCommand {
    /// Troubleshoot resource overrides
    #[command(subcommand)]
    ResourceOverrides(overrides::OverridesCommand),
    /// Validate and test RBAC configuration
    #[command(subcommand)]
    Rbac(Box<rbac::RbacCommand>),
}

impl AdminCommand {
    pub async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Settings(SettingsCommand::ResourceOverrides(command)) => command.run(),
            Self::Settings(SettingsCommand::Rbac(command)) => command.run().await,
            Self::App(command) => command.run(),
            Self::Proj(command) => command.run().await,
            Self::Notifications(command) => command.run().await,
            Self::Audit(command) => command.run(),
            Self::InitialPassword(command) => command.run().await,
            Self::Export(command) => command.run().await,
            Self::Import(command) => command.run().await,
        }
    }
}

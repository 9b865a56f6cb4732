//! `admin`: administration of the settings and the cluster itself, without the API. Main type:
//! [`AdminCommand`].

mod audit;
mod backup;
mod clusters;
mod dashboard;
mod declared;
mod generate;
mod kubeconfig;
mod notifications;
mod overrides;
mod password;
mod project_policies;
mod rbac;
mod reconcile;
mod redis;
mod settings;
mod shards;

use crate::{
    client::Failure,
    commands::apply::HintedError,
    kubectl::kube::{KubeArgs, Target},
};

#[derive(clap::Subcommand)]
pub enum AdminCommand {
    /// Provides set of commands for settings validation and troubleshooting
    #[command(subcommand)]
    Settings(SettingsCommand),
    /// Manage applications configuration
    #[command(subcommand)]
    App(generate::AppSpecCommand),
    /// Manage clusters configuration
    #[command(subcommand)]
    Cluster(Box<clusters::ClustersCommand>),
    /// Manage projects configuration
    #[command(subcommand)]
    Proj(generate::ProjSpecCommand),
    /// Manage repositories configuration
    #[command(subcommand)]
    Repo(declared::RepoSpecCommand),
    /// Set of CLI commands that helps manage notifications settings
    #[command(subcommand)]
    Notifications(Box<notifications::NotificationsCommand>),
    Dashboard(Box<dashboard::Dashboard>),
    /// Check and show an audit log
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    InitialPassword(password::InitialPassword),
    RedisInitialPassword(redis::RedisInitialPassword),
    Export(backup::Export),
    Import(Box<backup::Import>),
}

#[derive(clap::Subcommand)]
pub enum SettingsCommand {
    Validate(Box<settings::Validate>),
    /// Troubleshoot resource overrides
    #[command(subcommand)]
    ResourceOverrides(Box<overrides::OverridesCommand>),
    /// Validate and test RBAC configuration
    #[command(subcommand)]
    Rbac(Box<rbac::RbacCommand>),
}

impl AdminCommand {
    pub async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Settings(SettingsCommand::ResourceOverrides(command)) => command.run().await,
            Self::Settings(SettingsCommand::Rbac(command)) => command.run().await,
            Self::Settings(SettingsCommand::Validate(command)) => command.run().await,
            Self::Cluster(command) => command.run().await,
            Self::RedisInitialPassword(command) => command.run().await,
            Self::App(command) => command.run().await,
            Self::Repo(command) => command.run(),
            Self::Proj(command) => command.run().await,
            Self::Notifications(command) => command.run().await,
            Self::Dashboard(command) => command.run().await,
            Self::Audit(command) => command.run(),
            Self::InitialPassword(command) => command.run().await,
            Self::Export(command) => command.run().await,
            Self::Import(command) => command.run().await,
        }
    }
}

/// Connects to the cluster. Without any configuration it says so in Go's words.
async fn connect(kube: &KubeArgs) -> Result<Target, HintedError> {
    use crate::{commands::core::NO_CONFIGURATION, kubectl::failure::Trouble};
    if !kube.has_configuration() {
        return Err(Trouble::text(NO_CONFIGURATION).into());
    }
    Ok(kube.connect().await?)
}

/// A request to the cluster that failed, as Argo CD's commands report it.
fn failed(error: &HintedError) -> Failure {
    Failure::error(error.trouble.to_string())
}

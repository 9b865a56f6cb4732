//! `admin notifications`: tries triggers and templates. Main type: [`NotificationsCommand`].

mod catalog;
mod subject;
mod template;
mod trigger;

use crate::client::Failure;

/// Set of CLI commands that helps manage notifications settings
#[derive(clap::Subcommand)]
pub enum NotificationsCommand {
    /// Notification triggers related commands
    #[command(subcommand)]
    Trigger(trigger::TriggerCommand),
    /// Notification templates related commands
    #[command(subcommand)]
    Template(template::TemplateCommand),
    Catalog(catalog::Catalog),
}

impl NotificationsCommand {
    pub async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Trigger(command) => command.run().await,
            Self::Template(command) => command.run().await,
            Self::Catalog(command) => command.run(),
        }
    }
}

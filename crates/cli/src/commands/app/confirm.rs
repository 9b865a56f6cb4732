//! `app confirm-deletion`: approves a deletion or pruning that waits for it.

use super::AppRef;
use crate::{
    client::{ConnectArgs, Failure},
    output::{self, time},
};
use jiff::Timestamp;
use tiphys_api::{
    Application, constants::DELETION_APPROVED, rpc::application::ApplicationUpdateRequest,
};

#[derive(clap::Args)]
pub struct ConfirmDeletion {
    /// The application
    app: String,
    /// Namespace of the application
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
}

impl ConfirmDeletion {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let app_ref = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        let mut app = super::get(&client, &app_ref, None).await?;
        app.metadata
            .annotations
            .insert(DELETION_APPROVED.into(), time::rfc3339(Timestamp::now()));
        let request = ApplicationUpdateRequest {
            project: Some(app.spec.project.clone()),
            application: app,
            validate: Some(false),
            resource_version: None,
        };
        let updated: Application = client
            .unary("/application.ApplicationService/Update", request)
            .await?;
        output::print(&format!(
            "Application '{}' updated successfully\n",
            updated.metadata.name
        ));
        Ok(())
    }
}
